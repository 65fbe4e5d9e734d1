import { execFileSync, spawnSync } from 'node:child_process'
import { appendFileSync, existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { until } from '../durable/processes.js'
import { main, type Place } from './place.js'

/** Whether there is a real terminal to be had. Where everything is checked, there must be; elsewhere one may do without. */
export function hasTmux(): boolean {
  if (spawnSync('tmux', ['-V']).status === 0) return true
  if ((process.env['CI'] ?? '') !== '') throw new Error('tmux is missing: .ci/run installs it; the tests in a real terminal need it')
  return false
}

let opened = 0

/** A real terminal, in which a person types. Everything that is written to it, byte by byte, is kept too. */
export class Screen implements Disposable {
  readonly #socket = `tutti-${process.pid}-${opened++}`
  readonly #raw: string

  constructor(place: Place, env: Readonly<Record<string, string>> = {}) {
    this.#raw = join(place.folder, `${this.#socket}.raw`)
    appendFileSync(this.#raw, '')
    const settings = Object.entries({ PS1: '$ ', ...env }).flatMap(([name, value]) => ['-e', `${name}=${value}`])
    // A plain shell, so that nothing but what is typed and what commands write is on the screen.
    this.#tmux('-f', '/dev/null', 'new-session', '-d', '-x', '110', '-y', '40', '-c', place.folder, ...settings, 'sh')
    this.#tmux('pipe-pane', '-o', `cat >> '${this.#raw}'`)
    this.type(`alias tutti="'${process.execPath}' '${main}'"; unset npm_command CI; clear`)
  }

  type(line: string): void {
    this.#tmux('send-keys', '-l', line)
    this.press('Enter')
  }

  press(key: string): void {
    this.#tmux('send-keys', key)
  }

  /** What a person sees, with what has scrolled away. */
  text(): string {
    return this.#tmux('capture-pane', '-p', '-J', '-S', '-200')
  }

  /** Waits until it shows something. */
  async shows(pattern: RegExp): Promise<string> {
    let seen = ''
    try {
      await until(`the screen shows ${String(pattern)}`, () => pattern.test((seen = this.text())), 30_000)
    } catch (error) {
      throw new Error(`${String(error)}\n${seen}`)
    }
    return seen
  }

  /** The bytes that were written to it. */
  written(): string {
    return existsSync(this.#raw) ? readFileSync(this.#raw, 'utf8') : ''
  }

  #tmux(...args: readonly string[]): string {
    return execFileSync('tmux', ['-L', this.#socket, ...args], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] })
  }

  [Symbol.dispose](): void {
    spawnSync('tmux', ['-L', this.#socket, 'kill-server'])
  }
}
