import { painted, unpainted } from '../inspect/theme.js'
import type { ExitCode } from './exit-code.js'
import { pieces, type Shown } from './shown.js'

type Write = (chunk: string | Uint8Array, ...more: readonly unknown[]) => boolean

/** What a command may write to: data to one side, everything else to the other. */
export class Terminal {
  readonly #out: NodeJS.WriteStream
  readonly #err: NodeJS.WriteStream
  readonly #env: NodeJS.ProcessEnv
  readonly #write: Write
  readonly #unread = new AbortController()
  #isLeft = false
  /** The lines below everything else, which are drawn over. */
  #drawn: readonly Shown[] = []
  /** What others have written of a line that is not finished, while something is drawn. */
  #held: Uint8Array = new Uint8Array()
  /** Whether others have left the cursor amid a line. */
  #isAmid = false

  constructor(out: NodeJS.WriteStream, err: NodeJS.WriteStream, env: NodeJS.ProcessEnv) {
    this.#out = out
    this.#err = err
    this.#env = env
    this.#write = err.write.bind(err) as Write
    // What code prints comes here too: it must not be drawn over.
    if (this.isLive) err.write = ((chunk, ...more) => this.#writeOfOthers(chunk, more)) as Write as typeof err.write
  }

  /** Whether the process ends because a command wants it to. */
  get isLeft(): boolean {
    return this.#isLeft
  }

  /** Aborted once nobody reads the data any more. */
  get unread(): AbortSignal {
    return this.#unread.signal
  }

  nobodyReads(): void {
    this.#unread.abort()
  }

  /** Ends the process. */
  leave(code: ExitCode): never {
    this.#isLeft = true
    this.settle()
    process.exit(code)
  }

  /** A line of data. */
  data(line: Shown): void {
    this.#out.write(`${this.#painted(line, this.#out)}\n`)
  }

  /** Data that others read: JSON, SVG, HTML. It is written as it is. */
  raw(text: string): void {
    this.#out.write(text)
  }

  /** A value as JSON. JSON leaves some characters alone that steer terminals or turn the direction of writing. */
  json(value: unknown, space = 2): void {
    this.#out.write(`${jsonText(value, space)}\n`)
  }

  /** A line about what is going on. */
  note(line: Shown = []): void {
    this.#above(`${this.#painted(line, this.#err)}\n`)
  }

  /** Draws lines below everything else, in place of those that are drawn there. Only where `isLive`. */
  draw(lines: readonly Shown[]): void {
    const before = this.#drawn.length
    // What was typed meanwhile, a Ctrl-C for example, has moved the cursor.
    const up = before > 0 ? `\r\u001b[${before}A\u001b[0J` : this.#isAmid ? '\n' : ''
    this.#drawn = lines
    this.#isAmid = false
    this.#write(up + lines.map((line) => `${this.#painted(line, this.#err)}\n`).join(''))
  }

  /** Leaves what is drawn as it is. */
  settle(): void {
    if (this.#held.length > 0) this.#above(Buffer.concat([this.#held, Buffer.from('\n')]))
    this.#held = new Uint8Array()
    this.#drawn = []
  }

  #above(text: string | Uint8Array): void {
    const lines = this.#drawn
    if (lines.length > 0) this.draw([])
    this.#write(text)
    this.#isAmid = false
    if (lines.length > 0) this.draw(lines)
  }

  /** Goes above what is drawn, in whole lines: the end of one that is not finished is waited for. */
  #writeOfOthers(chunk: string | Uint8Array, more: readonly unknown[]): boolean {
    const bytes = typeof chunk === 'string' ? Buffer.from(chunk, typeof more[0] === 'string' ? (more[0] as BufferEncoding) : 'utf8') : chunk
    if (this.#drawn.length === 0) {
      if (bytes.length > 0) this.#isAmid = bytes.at(-1) !== newline
      return this.#write(chunk, ...more)
    }
    const all = Buffer.concat([this.#held, bytes])
    const end = all.lastIndexOf(newline) + 1
    this.#held = all.subarray(end)
    if (end > 0) this.#above(all.subarray(0, end))
    return this.#write('', ...more.filter((one) => typeof one === 'function'))
  }

  /** Whether progress can be drawn over: a terminal that knows how, and a person who wants it. */
  get isLive(): boolean {
    return this.#hasAnsi(this.#err)
  }

  /** Whether data may be coloured. */
  get isColoured(): boolean {
    return this.#hasAnsi(this.#out)
  }

  get columns(): number {
    return Math.max(20, known(this.#err.columns) ?? 80)
  }

  /** How wide a drawing among the data may be. */
  get width(): number {
    return Math.max(40, known(this.#out.columns) ?? 100)
  }

  get rows(): number {
    return Math.max(8, known(this.#err.rows) ?? 24)
  }

  #hasAnsi(stream: NodeJS.WriteStream): boolean {
    return stream.isTTY === true && (this.#env['NO_COLOR'] ?? '') === '' && this.#env['TERM'] !== 'dumb'
  }

  #painted(line: Shown, stream: NodeJS.WriteStream): string {
    const paint = this.#hasAnsi(stream) ? painted : unpainted
    return pieces(line)
      .map(({ text, colours }) => paint(text, ...colours))
      .join('')
  }
}

const newline = 10

/** A terminal that does not know its size may say that it is 0. */
const known = (size: number | undefined): number | undefined => (size === 0 ? undefined : size)

/** What can't be seen, or does something else than being seen; but for the ends of our own lines and what joins letters. */
const steering = /(?![\n\u200C\u200D])[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu

export function jsonText(value: unknown, space = 0): string {
  return JSON.stringify(value ?? null, null, space).replace(steering, (found) => found.split('').map(unitOf).join(''))
}

const unitOf = (unit: string): string => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`
