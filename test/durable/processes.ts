import { type ChildProcess, spawn } from 'node:child_process'
import { appendFileSync, existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type Database, loadDriver, openDatabase } from '../../src/stores/sqlite-driver.js'

/** Whether the long version of a test is wanted: `TUTTI_SOAK=1`. */
export const soaking: boolean = !['', '0', 'off'].includes(process.env['TUTTI_SOAK'] ?? '')

/** As many as `npm test` has time for, or as many as a soak does. */
export const times = (test: number, soak: number): number => (soaking ? soak : test)

/** How long a test may take here. */
export const patience = { timeout: soaking ? 3_600_000 : 60_000 }

/** The seed of this execution: given, so that a failure can be repeated, or drawn. */
export const seed: number = Number(process.env['TUTTI_SEED'] ?? Date.now() % 1_000_000)

function isFree(database: Database): boolean {
  try {
    database.exec('begin immediate')
    database.exec('rollback')
    return true
  } catch {
    return false
  }
}

/** A folder for one store and the files beside it, which goes with the test. */
export class Place implements Disposable {
  readonly folder: string = mkdtempSync(join(tmpdir(), 'tutti-durable-'))
  readonly store: string = join(this.folder, 'tutti.db')
  readonly log: string = join(this.folder, 'effects.log')

  /** What was done outside, in order: a word, and what it was done for. */
  lines(word?: string): string[] {
    if (!existsSync(this.log)) return []
    const all = readFileSync(this.log, 'utf8').split('\n').filter(Boolean)
    return word === undefined ? all : all.filter((line) => line.startsWith(`${word} `)).map((line) => line.slice(word.length + 1))
  }

  write(line: string): void {
    appendFileSync(this.log, `${line}\n`)
  }

  [Symbol.dispose](): void {
    rmSync(this.folder, { recursive: true, force: true })
  }
}

/** A process of its own that runs a script of `children/` over what was built into `dist`. */
export class Child implements AsyncDisposable {
  readonly #process: ChildProcess
  readonly #lines: string[] = []
  readonly #ended: Promise<NodeJS.Signals | number | null>
  #errors = ''
  #isOver = false
  #wake: () => void = () => {}

  constructor(script: string, { store, log }: Place, given: object = {}, env: Readonly<Record<string, string>> = {}) {
    const file = fileURLToPath(new URL(`./children/${script}.js`, import.meta.url))
    this.#process = spawn(process.execPath, [file, JSON.stringify({ store, log, ...given })], {
      stdio: ['pipe', 'pipe', 'pipe'],
      env: { ...process.env, TUTTI_INVARIANTS: 'on', ...env },
    })
    let rest = ''
    this.#process.stdout?.setEncoding('utf8').on('data', (text: string) => {
      const lines = (rest + text).split('\n')
      rest = lines.pop() ?? ''
      this.#lines.push(...lines)
      this.#wake()
    })
    this.#process.stderr?.setEncoding('utf8').on('data', (text: string) => {
      this.#errors += text
    })
    // It may be gone before it has read what it is told.
    this.#process.stdin?.on('error', () => {})
    this.#ended = new Promise((resolve) => {
      this.#process.on('close', (code, signal) => {
        this.#isOver = true
        resolve(signal ?? code)
        this.#wake()
      })
    })
  }

  /** Stops it, and not inside of a transaction: nobody else could write until it goes on. */
  async freeze({ store }: Place): Promise<void> {
    const database = openDatabase(await loadDriver(), store, 'write')
    try {
      for (;;) {
        this.signal('SIGSTOP')
        if (isFree(database)) return
        this.signal('SIGCONT')
        await new Promise((resolve) => setTimeout(resolve, 2))
      }
    } finally {
      database.close()
    }
  }

  get errors(): string {
    return this.#errors
  }

  get isOver(): boolean {
    return this.#isOver
  }

  /** The next line that it says. */
  async line(): Promise<string> {
    for (;;) {
      const line = this.#lines.shift()
      if (line !== undefined) return line
      if (this.#isOver) throw new Error(`the child ended with ${String(await this.#ended)}: ${this.#errors}`)
      await new Promise<void>((resolve) => {
        this.#wake = resolve
      })
    }
  }

  /** The next line that it says, as JSON. */
  async said<T = unknown>(): Promise<T> {
    return JSON.parse(await this.line()) as T
  }

  tell(line: string): void {
    this.#process.stdin?.write(`${line}\n`)
  }

  signal(signal: NodeJS.Signals): void {
    this.#process.kill(signal)
  }

  /** Its exit code or the signal that ended it; what it complained about, if it ended badly. */
  async end(): Promise<NodeJS.Signals | number | null> {
    const how = await this.#ended
    if (how !== 0 && how !== 'SIGKILL') throw new Error(`the child ended with ${String(how)}: ${this.#errors}`)
    return how
  }

  /** As by `kill -9`; how it ended, which may have been before. */
  async kill(): Promise<NodeJS.Signals | number | null> {
    this.#process.kill('SIGKILL')
    return this.#ended
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (!this.#isOver) await this.kill()
  }
}

/** Does something for each, a few at once; the first failure is thrown. */
export async function each<T>(items: readonly T[], atOnce: number, work: (item: T) => Promise<void>): Promise<void> {
  const left = [...items]
  const lane = async (): Promise<void> => {
    for (let item = left.shift(); item !== undefined; item = left.shift()) await work(item)
  }
  await Promise.all(Array.from({ length: atOnce }, lane))
}

/** Waits until something holds, and says what did not if it takes too long. */
export async function until(what: string, holds: () => unknown, forMs = 15_000): Promise<void> {
  const end = performance.now() + forMs
  while (!(await holds())) {
    if (performance.now() > end) throw new Error(`after ${forMs} ms it still does not hold: ${what}`)
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
}

/** Adds to an error what one needs to see it again. */
export async function saying<T>(what: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    if (error instanceof Error) error.message += `\n  ${what}`
    throw error
  }
}
