/** Longer texts are not made: they are not held against their pattern either. */
const lengthMax = 64
/** From a character to another, both included, by their code points. */
type Range = readonly [from: number, to: number]
type Make = () => string

const span = (chars: string): Range => [chars.codePointAt(0) as number, chars.codePointAt(chars.length - 1) as number]
const letters = span('az')
const sets: Readonly<Record<string, readonly Range[]>> = {
  d: [span('09')],
  w: [letters, span('AZ'), span('09')],
  s: [span(' ')],
  D: [letters],
  W: [span('-')],
  S: [letters],
}
const controls: Readonly<Record<string, string>> = { n: '\n', r: '\r', t: '\t', f: '\f', v: '\v', 0: '\0' }
/** Of those that a class excludes, one is likely not among them. */
const others = Array.from('aA0- _.,:/#@')

/** Something in a pattern that is not understood here. */
class Unread extends Error {}

/**
 * A text that is likely to match a regular expression, from reading it: each choice by `chance`, each repetition as short as it may be and by
 * up to `more` longer. Where it begins and ends is passed over, so whoever uses the text holds it against the pattern. undefined: too clever.
 */
export function samplePattern(pattern: string, chance: () => number, more: number): string | undefined {
  try {
    return new Reader(pattern, chance, more).whole()()
  } catch (error) {
    if (error instanceof Unread) return undefined
    throw error
  }
}

class Reader {
  readonly #chars: readonly string[]
  readonly #chance: () => number
  readonly #more: number
  #at = 0

  constructor(pattern: string, chance: () => number, more: number) {
    // Nested as deep as it is long, a longer one could be deeper than the stack.
    if (pattern.length > 1_000) throw new Unread()
    this.#chars = Array.from(pattern)
    this.#chance = chance
    this.#more = more
  }

  whole(): Make {
    const make = this.#choice()
    if (this.#at < this.#chars.length) throw new Unread()
    return make
  }

  #choice(): Make {
    const ways = [this.#sequence()]
    while (this.#eat('|')) ways.push(this.#sequence())
    return () => this.#pick(ways)()
  }

  #sequence(): Make {
    const parts: Make[] = []
    while (this.#at < this.#chars.length && !this.#sees('|') && !this.#sees(')')) parts.push(this.#repeated())
    return () => short(parts.map((make) => make()).join(''))
  }

  #repeated(): Make {
    const make = this.#atom()
    const [all, sign, least = '', comma, most = ''] =
      /^(?:([*+?])|\{(\d+)(,?)(\d*)\})\??/.exec(this.#chars.slice(this.#at, this.#at + 20).join('')) ?? []
    if (all === undefined) return make
    this.#at += all.length
    const low = sign === undefined ? Number(least) : sign === '+' ? 1 : 0
    const high = sign === '?' ? 1 : sign !== undefined || (comma === ',' && most === '') ? lengthMax : comma === '' ? low : Number(most)
    const times = Math.min(low + this.#more, Math.max(low, high))
    return () => {
      let text = ''
      for (let made = 0; made < times; made++) {
        const next = make()
        if (next === '') break
        text = short(text + next)
      }
      return text
    }
  }

  #atom(): Make {
    const char = this.#next()
    switch (char) {
      case '(':
        return this.#group()
      case '[':
        return this.#class()
      case '\\': {
        if (this.#eat('b') || this.#eat('B')) return () => ''
        const ranges = this.#escaped()
        return () => this.#oneOf(ranges)
      }
      case '^':
      case '$':
        return () => ''
      case '.':
        return () => this.#oneOf([letters])
      default:
        return () => char
    }
  }

  #group(): Make {
    const [start = ''] = /^\?(?::|<\w+>)/.exec(this.#chars.slice(this.#at, this.#at + 60).join('')) ?? []
    // What looks ahead or back.
    if (start === '' && this.#sees('?')) throw new Unread()
    this.#at += start.length
    const make = this.#choice()
    if (!this.#eat(')')) throw new Unread()
    return make
  }

  #class(): Make {
    const isExcluding = this.#eat('^')
    const ranges: Range[] = []
    while (!this.#eat(']')) {
      const from = this.#member()
      const isRange = this.#sees('-') && this.#chars[this.#at + 1] !== ']' && from.length === 1
      if (isRange) this.#at++
      const to = isRange ? this.#member() : from
      if (isRange) ranges.push([from[0]?.[0] ?? 0, to[0]?.[0] ?? 0])
      else ranges.push(...from)
    }
    if (!isExcluding) return () => this.#oneOf(ranges)
    const free = others.filter((char) => !ranges.some(([from, to]) => span(char)[0] >= from && span(char)[0] <= to))
    return () => this.#pick(free)
  }

  #member(): readonly Range[] {
    const char = this.#next()
    return char === '\\' ? this.#escaped() : [span(char)]
  }

  /** What stands for a character, behind a backslash. */
  #escaped(): readonly Range[] {
    const char = this.#next()
    const [all, ...codes] = /^(?:x(\w{2})|u(\w{4})|u\{(\w+)\})/.exec([char, ...this.#chars.slice(this.#at, this.#at + 10)].join('')) ?? []
    if (all !== undefined) {
      this.#at += all.length - 1
      const code = Number.parseInt(codes.find((each) => each !== undefined) ?? '', 16)
      if (!(code <= 0x10ffff)) throw new Unread()
      return [[code, code]]
    }
    if (Object.hasOwn(sets, char)) return sets[char] ?? []
    // References to what was matched, properties of characters, and what comes in later versions.
    if (/[1-9A-Za-z]/.test(char) && !Object.hasOwn(controls, char)) throw new Unread()
    return [span(controls[char] ?? char)]
  }

  #oneOf(ranges: readonly Range[]): string {
    const [from, to] = this.#pick(ranges)
    return String.fromCodePoint(from + Math.floor(this.#chance() * (Math.max(from, to) - from + 1)))
  }

  #pick<T>(list: readonly T[]): T {
    if (list.length === 0) throw new Unread()
    return list[Math.floor(this.#chance() * list.length)] as T
  }

  #sees(char: string): boolean {
    return this.#chars[this.#at] === char
  }

  #eat(char: string): boolean {
    if (!this.#sees(char)) return false
    this.#at++
    return true
  }

  #next(): string {
    const char = this.#chars[this.#at++]
    if (char === undefined) throw new Unread()
    return char
  }
}

function short(text: string): string {
  if (text.length > lengthMax) throw new Unread()
  return text
}
