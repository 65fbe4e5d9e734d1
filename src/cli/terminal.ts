import { painted, unpainted } from '../inspect/theme.js'
import type { ExitCode } from './exit-code.js'
import { pieces, type Shown } from './shown.js'

/** What a command may write to: data to one side, everything else to the other. */
export class Terminal {
  readonly #out: NodeJS.WriteStream
  readonly #err: NodeJS.WriteStream
  readonly #env: NodeJS.ProcessEnv
  #isLeft = false

  constructor(out: NodeJS.WriteStream, err: NodeJS.WriteStream, env: NodeJS.ProcessEnv) {
    this.#out = out
    this.#err = err
    this.#env = env
  }

  /** Whether the process ends because a command wants it to. */
  get isLeft(): boolean {
    return this.#isLeft
  }

  /** Ends the process. */
  leave(code: ExitCode): never {
    this.#isLeft = true
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
    this.#err.write(`${this.#painted(line, this.#err)}\n`)
  }

  /** Replaces what the last call has drawn; nothing is left of it when there are no lines. Only where `isLive`. */
  redraw(lines: readonly Shown[], before: number): void {
    // What was typed meanwhile, a Ctrl-C for example, has moved the cursor.
    const up = before === 0 ? '' : `\r\u001b[${before}A\u001b[0J`
    this.#err.write(up + lines.map((line) => `${this.#painted(line, this.#err)}\n`).join(''))
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
    return Math.max(20, this.#err.columns ?? 80)
  }

  /** How wide a drawing among the data may be. */
  get width(): number {
    return Math.max(40, this.#out.columns ?? 100)
  }

  get rows(): number {
    return Math.max(8, this.#err.rows ?? 24)
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

/** What can't be seen, or does something else than being seen; but for the ends of our own lines and what joins letters. */
const steering = /(?![\n\u200C\u200D])[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu

export function jsonText(value: unknown, space = 0): string {
  return JSON.stringify(value ?? null, null, space).replace(steering, (found) => found.split('').map(unitOf).join(''))
}

const unitOf = (unit: string): string => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`
