import { type ChildProcess, spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'

/** Whether the long version of a test is wanted: `TUTTI_SOAK=on`. */
export const soaking: boolean = process.env['TUTTI_SOAK'] === 'on'

/** A process of its own that runs a script of `children/`, over what was built into `dist`. */
export class Child implements Disposable {
  readonly #process: ChildProcess
  readonly #lines: string[] = []
  readonly #ended: Promise<number | null>
  #errors = ''
  #wake: () => void = () => {}

  constructor(script: string, ...args: readonly (string | number)[]) {
    const file = fileURLToPath(new URL(`./children/${script}.js`, import.meta.url))
    this.#process = spawn(process.execPath, [file, ...args.map(String)], { stdio: ['pipe', 'pipe', 'pipe'] })
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
    this.#ended = new Promise((resolve) => {
      this.#process.on('close', (code) => {
        resolve(code)
        this.#wake()
      })
    })
  }

  get pid(): number {
    return this.#process.pid ?? 0
  }

  /** Everything that it has said and nobody has read. */
  get said(): readonly string[] {
    return this.#lines
  }

  /** The next line that it says. */
  async line(): Promise<string> {
    for (;;) {
      const line = this.#lines.shift()
      if (line !== undefined) return line
      const woken = new Promise<void>((resolve) => {
        this.#wake = resolve
      })
      const end = await Promise.race([woken, this.#ended])
      if (end !== undefined && this.#lines.length === 0) throw new Error(`the child ended with ${String(end)}: ${this.#errors}`)
    }
  }

  tell(line: string): void {
    this.#process.stdin?.write(`${line}\n`)
  }

  signal(signal: NodeJS.Signals): void {
    this.#process.kill(signal)
  }

  /** Its exit code, when it has ended by itself. */
  async end(): Promise<number | null> {
    const code = await this.#ended
    if (code !== 0 && code !== null) throw new Error(`the child ended with ${code}: ${this.#errors}`)
    return code
  }

  /** As by `kill -9`. */
  async kill(): Promise<void> {
    this.#process.kill('SIGKILL')
    await this.#ended
  }

  [Symbol.dispose](): void {
    this.#process.kill('SIGKILL')
  }
}
