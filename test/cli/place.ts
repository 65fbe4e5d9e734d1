import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('../..', import.meta.url))

/** The command, as it is installed: what `npm run build` has made of it. */
export const main: string = join(root, 'bundle/cli/main.js')

/** How long a test may take where many processes are started on a machine that is busy. */
export const patience = { testTimeout: 60_000 }

/** What a command said, and how it ended. */
export interface Said {
  readonly code: number | null
  readonly out: string
  readonly err: string
}

/** A command that goes on, with what it has said so far. */
export interface Begun {
  readonly process: ChildProcessWithoutNullStreams
  readonly end: Promise<Said>
  readonly out: () => string
  readonly err: () => string
}

/** A folder in which somebody uses the command line, and has installed what their files import; it goes with the test. */
export class Place implements Disposable {
  readonly folder: string = mkdtempSync(join(tmpdir(), 'tutti-cli-'))

  constructor(isInstalled = true) {
    if (!isInstalled) return
    mkdirSync(join(this.folder, 'node_modules'))
    symlinkSync(root, join(this.folder, 'node_modules/tutti'), 'junction')
  }

  /** One in which nothing is installed: files import what the command line gives them, which takes each command a thread more. */
  static bare(): Place {
    return new Place(false)
  }

  write(file: string, text: string): void {
    writeFileSync(join(this.folder, file), text)
  }

  read(file: string): string {
    return existsSync(join(this.folder, file)) ? readFileSync(join(this.folder, file), 'utf8') : ''
  }

  has(file: string): boolean {
    return existsSync(join(this.folder, file))
  }

  /** Calls the command in a pipe, to its end. */
  async tutti(...args: readonly string[]): Promise<Said> {
    return this.begin(...args).end
  }

  /** Calls the command in a pipe; it can be given input and signals before its end. */
  begin(...args: readonly string[]): Begun {
    // Called by itself and with no key, whatever the tests were called by.
    const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !/^npm_command$|^TUTTI_|_API_KEY$|_BASE_URL$/.test(name)))
    const child = spawn(process.execPath, [main, ...args], { cwd: this.folder, env: { ...env, FORCE_COLOR: '1' } })
    const said = { out: '', err: '' }
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      said.out += text
    })
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      said.err += text
    })
    const end = new Promise<Said>((resolve) => {
      child.on('close', (code) => resolve({ code, ...said }))
    })
    return { process: child, end, out: () => said.out, err: () => said.err }
  }

  /** What a command prints as JSON. */
  async json<T>(...args: readonly string[]): Promise<T> {
    const { code, out, err } = await this.tutti(...args, '--json')
    if (code !== 0) throw new Error(`tutti ${args.join(' ')} ended with ${code}: ${err}`)
    return JSON.parse(out) as T
  }

  [Symbol.dispose](): void {
    rmSync(this.folder, { recursive: true, force: true })
  }
}

/** Files that people might write. */
export const files = {
  /** Asks a person, and says what they said. */
  asking: `import { topology } from 'tutti'
export default topology({
  name: 'asking',
  flows: ['Start -> Clerk -> End', 'Clerk -> User'],
  agents: {
    Clerk: { act: { request: (turn) => turn.ask({ about: turn.request }), answer: (turn, value) => turn.finish({ said: value }) } },
  },
})
`,
  /** Writes down each time a step is executed, and waits until a file is there. */
  waiting: `import { appendFileSync, existsSync } from 'node:fs'
import { graph } from 'tutti'
const untilThere = async (file, signal) => {
  while (!existsSync(file)) {
    if (signal.aborted) throw signal.reason
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
}
export default graph('waiting')
  .step('first', { run: async ({ step }) => step('write', () => (appendFileSync('effects.log', 'first\\n'), 1)) })
  .step('second', {
    after: ['first'],
    run: async ({ step, signal }) => {
      await step('begin', () => (appendFileSync('effects.log', 'begin\\n'), 1))
      await untilThere('go', signal)
      return 'gone on'
    },
  })
  .step('third', { after: ['second'], run: ({ steps }) => steps.second })
  .output(({ steps }) => steps.third)
`,
} as const
