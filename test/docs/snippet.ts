import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

export const root = join(dirname(fileURLToPath(import.meta.url)), '../..')

/** One block of code in a page. */
export interface Snippet {
  readonly page: string
  /** The line of the page on which its code begins. */
  readonly line: number
  readonly code: string
  /** What it says that it prints: each `// → …`, in the order in which they stand. */
  readonly prints: readonly string[]
}

/** The pages whose code is run. */
export function pages(): string[] {
  const guide = readdirSync(join(root, 'docs/guide')).filter((name) => name.endsWith('.md'))
  return ['README.md', 'docs/options.md', ...guide.sort().map((name) => `docs/guide/${name}`)]
}

export function snippetsOf(page: string, text: string = readFileSync(join(root, page), 'utf8')): Snippet[] {
  const found: Snippet[] = []
  let begun: { readonly line: number; readonly runs: boolean } | null = null
  let lines: string[] = []
  for (const [index, line] of text.split('\n').entries()) {
    const fence = /^\s*```\s*(\S*)/.exec(line)
    if (fence === null) {
      if (begun !== null) lines.push(line)
      continue
    }
    if (begun === null) begun = { line: index + 2, runs: /^(?:ts|js|typescript|javascript|mjs|mts)$/i.test(fence[1] ?? '') }
    else {
      if (begun.runs) found.push({ page, line: begun.line, code: `${lines.join('\n')}\n`, prints: printsOf(lines) })
      begun = null
    }
    if (begun !== null) lines = []
  }
  if (begun !== null) throw new Error(`${page}:${begun.line} the block has no end`)
  return found
}

function printsOf(lines: readonly string[]): string[] {
  return lines.flatMap((line) => /\/\/ → (.*)$/.exec(line)?.[1]?.trimEnd() ?? [])
}
