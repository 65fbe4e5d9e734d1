import { execFile } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, relative, sep } from 'node:path'
import { fileURLToPath } from 'node:url'

export const root: string = fileURLToPath(new URL('../..', import.meta.url))

/** The layers, from the bottom up: each may import only from those before it. */
export const layers = ['kernel', 'define', 'inspect', 'models', 'engine', 'stores', 'testing', 'cli'] as const

/** A copy of the house's configuration in a folder of its own, where rules can be broken to see that they bite. */
export class Workshop implements Disposable {
  readonly folder: string = mkdtempSync(join(tmpdir(), 'tutti-house-'))

  constructor(files: Readonly<Record<string, string>> = {}) {
    const configs = sourcesOf(root, 'src', 'tsconfig.json')
    for (const file of ['package.json', 'tsconfig.json', 'tsconfig.base.json', '.oxlintrc.json', ...configs]) {
      mkdirSync(dirname(join(this.folder, file)), { recursive: true })
      cpSync(join(root, file), join(this.folder, file))
    }
    symlinkSync(join(root, 'node_modules'), join(this.folder, 'node_modules'), 'junction')
    for (const [file, text] of Object.entries(files)) this.write(file, text)
  }

  write(file: string, text: string): void {
    mkdirSync(dirname(join(this.folder, file)), { recursive: true })
    writeFileSync(join(this.folder, file), text)
  }

  /** What the compiler prints; empty when it is content. */
  tsc(...args: string[]): Promise<string> {
    return this.#node('typescript/bin/tsc', [...args, '--pretty', 'false'])
  }

  /** What the linter finds, as `file: rule`. */
  async oxlint(): Promise<string[]> {
    const { diagnostics } = JSON.parse(await this.#node('oxlint/bin/oxlint', ['--format', 'json', 'src'])) as {
      diagnostics: { code: string; filename: string }[]
    }
    return diagnostics.map(({ filename, code }) => `${filename.split(sep).join('/')}: ${code}`)
  }

  [Symbol.dispose](): void {
    rmSync(this.folder, { recursive: true, force: true })
  }

  #node(script: string, args: readonly string[]): Promise<string> {
    return new Promise((resolve) => {
      execFile(process.execPath, [join(root, 'node_modules', script), ...args], { cwd: this.folder }, (_, stdout, stderr) =>
        resolve(stdout + stderr),
      )
    })
  }
}

/** The files below `folder` whose name ends so, relative to `from`, with forward slashes. */
export function sourcesOf(from: string, folder: string, ending = '.ts'): string[] {
  return readdirSync(join(from, folder), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name.endsWith(ending))
    .map((entry) => relative(from, join(entry.parentPath, entry.name)).split(sep).join('/'))
    .sort()
}

/** The code of a file with comments blanked, and strings too unless they are wanted; lines stay where they are. */
export function codeOf(file: string, keep: 'strings' | 'code' = 'code'): string {
  return strip(readFileSync(join(root, file), 'utf8'), keep)
}

const blank = (text: string) => text.replaceAll(/[^\n]/g, ' ')
const token = /\/\*[\s\S]*?\*\/|\/\/[^\n]*|'(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*"|`(?:\\.|[^`\\])*`/g

/** What `codeOf` does to a text. The expressions inside a template stay. */
export function strip(text: string, keep: 'strings' | 'code' = 'code'): string {
  return text.replaceAll(token, (found) => {
    if (found.startsWith('/')) return blank(found)
    if (keep === 'strings') return found
    if (found.startsWith('`'))
      return found.replaceAll(/\$\{[^}]*\}|[^\n$]+?(?=\$\{|\n|$)|\$/g, (part) => (part.startsWith('${') ? part : blank(part)))
    return blank(found)
  })
}
