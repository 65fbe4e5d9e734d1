import { samplePattern } from './sample-pattern.js'

/** What free values are filled with. */
export interface Filling {
  /** A number in [0, 1), another one on each call. */
  readonly chance: () => number
  /** What a text that may be anything says. */
  readonly words: string
}

/** A text of each format that a schema may ask for. */
const formats: Readonly<Record<string, (chance: () => number) => string>> = {
  date: (chance) => `2025-01-${two(1 + Math.floor(chance() * 28))}`,
  time: (chance) => `${two(Math.floor(chance() * 24))}:30:00Z`,
  'date-time': (chance) => `2025-01-${two(1 + Math.floor(chance() * 28))}T12:00:00Z`,
  duration: () => 'PT1H',
  email: (chance) => `simulated${Math.floor(chance() * 1000)}@example.com`,
  uri: (chance) => `https://example.com/simulated/${Math.floor(chance() * 1000)}`,
  url: (chance) => `https://example.com/simulated/${Math.floor(chance() * 1000)}`,
  'uri-reference': () => '/simulated',
  hostname: () => 'simulated.example.com',
  ipv4: () => '192.0.2.1',
  ipv6: () => '2001:db8::1',
  uuid: (chance) => `${hex(chance, 8)}-${hex(chance, 4)}-4${hex(chance, 3)}-8${hex(chance, 3)}-${hex(chance, 12)}`,
}

/** What texts of a pattern often are. Those that a pattern refuses are not given. */
const guesses: readonly string[] =
  'a A 1 abc ABC Abc 12 123 1234 12345 a1 A1 abc-123 ABC-123 a_b 2025-01-01 12:00 1.0.0 #000000 +41000000000 example.com /a'.split(' ')

const two = (n: number): string => String(n).padStart(2, '0')
const hex = (chance: () => number, length: number): string => Array.from({ length }, () => Math.floor(chance() * 16).toString(16)).join('')

/** A text that the schema takes, as far as its format, its length and its pattern can be met by guessing. */
export function sampleText(schema: Readonly<Record<string, unknown>>, { chance, words }: Filling): string {
  const least = bound(schema['minLength'], 0)
  const most = bound(schema['maxLength'], Number.POSITIVE_INFINITY)
  const format = schema['format']
  const known = typeof format === 'string' && Object.hasOwn(formats, format) ? formats[format]?.(chance) : undefined
  const fits = (text: string) => text.length >= least && text.length <= most && matches(schema['pattern'], text)
  const plain = fitted(words, least, most)
  const found = (known === undefined ? [plain, ...guesses, ...guesses.map((guess) => fitted(guess, least, most))] : [known]).find(fits)
  // A pattern that nothing here matches: what is said about the length is kept, and the agent is told about the rest.
  return found ?? readFrom(schema['pattern'], chance, least, most).find(fits) ?? known ?? plain
}

/** What the pattern itself says of its texts, from short to long. */
function readFrom(pattern: unknown, chance: () => number, least: number, most: number): string[] {
  if (typeof pattern !== 'string') return []
  const made = [0, 0, 0, 1, 2, 4, 8, 16, 24, 32, 48].flatMap((more) => samplePattern(pattern, chance, more) ?? [])
  return [...made, ...made.map((text) => fitted(text, least, most))]
}

const bound = (value: unknown, otherwise: number): number => (typeof value === 'number' ? value : otherwise)

/** The text, cut or repeated to a length that is allowed. */
function fitted(text: string, least: number, most: number): string {
  const enough = text.length >= least ? text : text.padEnd(Math.min(least, 10_000), text === '' ? '.' : text)
  return enough.length > most ? enough.slice(0, most) : enough
}

/** Patterns come from anywhere and some take for ever on long texts, so that only short ones are held against them. */
function matches(pattern: unknown, text: string): boolean {
  if (typeof pattern !== 'string') return true
  if (text.length > 64) return false
  try {
    return new RegExp(pattern, 'u').test(text)
  } catch {
    return true
  }
}
