import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'

/** One place in what was built, and what stands there instead. */
export interface Cut {
  readonly file: string
  readonly find: string
  readonly put: string
}

/** A small, realistic bug. It is planted in a copy of what was built, so that nothing of it is ever published. */
export interface Mutant {
  readonly name: string
  readonly cuts: readonly Cut[]
}

const root: string = fileURLToPath(new URL('../../', import.meta.url))

/** Why a mutant can't be planted any more; null if it can. */
export function problemOf({ cuts }: Mutant): string | null {
  const texts = new Map<string, string>()
  for (const { file, find, put } of cuts) {
    const text = texts.get(file) ?? readFileSync(join(root, 'dist', file), 'utf8')
    const times = text.split(find).length - 1
    if (times !== 1) return `${file} has ${times} of: ${find}`
    texts.set(
      file,
      text.replace(find, () => put),
    )
  }
  return null
}

/** A copy of what was built with a mutant in it, for as long as it is used. */
export class Planted implements Disposable {
  readonly #folder: string

  constructor(mutant: Mutant) {
    // Inside the project, so that what it depends on is found.
    const cache = join(root, 'node_modules', '.cache')
    mkdirSync(cache, { recursive: true })
    this.#folder = mkdtempSync(join(cache, 'tutti-mutant-'))
    cpSync(join(root, 'dist'), this.#folder, { recursive: true, filter: (path) => !/\.(map|d\.ts|tsbuildinfo)$/.test(path) })
    writeFileSync(join(this.#folder, 'package.json'), '{ "type": "module" }')
    for (const { file, find, put } of mutant.cuts) {
      const path = join(this.#folder, file)
      const text = readFileSync(path, 'utf8')
      if (text.split(find).length !== 2) throw new Error(`${mutant.name}: ${file} does not have once: ${find}`)
      writeFileSync(
        path,
        text.replace(find, () => put),
      )
    }
  }

  /** Where it is, for processes that are given `TUTTI_DIST`. */
  get url(): string {
    return `${pathToFileURL(this.#folder).href}/`
  }

  load<T>(file: string): Promise<T> {
    return import(/* @vite-ignore */ pathToFileURL(join(this.#folder, file)).href) as Promise<T>
  }

  [Symbol.dispose](): void {
    rmSync(this.#folder, { recursive: true, force: true })
  }
}
