import { execFile } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { format } from 'node:util'
import { afterAll, expect, test, vi } from 'vitest'
import { pages, root, type Snippet, snippetsOf } from './snippet.js'

// Inside the project, so that `tutti` is the sources and everything else is found; a folder of its own, so that two runs don't meet.
const generated = join(root, 'test/docs/.generated')
mkdirSync(generated, { recursive: true })
const folder = mkdtempSync(join(generated, 'run-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

function written({ page, line, code }: Snippet): string {
  const file = join(folder, `${page.replace(/\W+/g, '-')}-${line}.ts`)
  // Marked as a module, so that it may await even if it imports nothing.
  writeFileSync(file, `${code}export {}\n`)
  return file
}

/** Runs a snippet to its end and gives the lines it printed. */
async function printed(file: string): Promise<string[]> {
  const lines: string[] = []
  const log = vi.spyOn(console, 'log').mockImplementation((...args: unknown[]) => void lines.push(...format(...args).split('\n')))
  try {
    await import(/* @vite-ignore */ file)
  } finally {
    log.mockRestore()
  }
  return lines
}

/** What the compiler has against the files of a folder. */
function compiled(files: readonly string[]): Promise<string> {
  const config = { extends: '../../../tsconfig.json', include: [], files }
  writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify(config))
  const args = [join(root, 'node_modules/typescript/bin/tsc'), '-p', folder, '--pretty', 'false']
  return new Promise((resolve) => execFile(process.execPath, args, { cwd: folder }, (_, stdout, stderr) => resolve(stdout + stderr)))
}

const snippets = pages().flatMap((page) => snippetsOf(page).map((snippet) => ({ ...snippet, file: written(snippet) })))

test('every page has code that runs', () => {
  expect(pages().filter((page) => !snippets.some((snippet) => snippet.page === page))).toEqual([])
})

test.each(snippets)('the code in $page, line $line, runs and prints what the page says', async ({ file, prints }) => {
  expect(await printed(file)).toEqual(prints)
})

test('the code in the pages compiles as strictly as the project does', { timeout: 60_000 }, async () => {
  expect(await compiled(snippets.map(({ file }) => file))).toBe('')
})

test('code that throws, that prints something else, or that does not compile is found', { timeout: 60_000 }, async () => {
  const text = ['```ts', "throw new Error('broken')", '```', '```js', 'console.log(1 + 1) // → 3', '```', '```sh', 'exit 1', '```'].join(
    '\n',
  )
  const [throws, lies, ...rest] = snippetsOf('sample.md', text)
  expect(rest).toEqual([])
  if (throws === undefined || lies === undefined) throw new Error('the blocks were not found')
  await expect(printed(written(throws))).rejects.toThrow('broken')
  expect(await printed(written(lies))).toEqual(['2'])
  expect(lies.prints).toEqual(['3'])
  const wrong = written({
    page: 'sample.md',
    line: 99,
    code: "import { open } from 'tutti'\nawait open({ stor: 'memory:' })\n",
    prints: [],
  })
  expect(await compiled([wrong])).toMatch(/sample-md-99\.ts.*TS2561/)
})

test('every page of the guide is in the index', () => {
  const index = readFileSync(join(root, 'docs/README.md'), 'utf8')
  expect(pages().filter((page) => page !== 'README.md' && !index.includes(`](${page.replace('docs/', '')})`))).toEqual([])
})

test('no page names a file that is not there', () => {
  const errors = readdirSync(join(root, 'docs/errors')).map((name) => `docs/errors/${name}`)
  const dead = [...pages(), ...errors, 'CONTRIBUTING.md', 'CHANGELOG.md', 'docs/README.md', 'docs/turn.md', 'docs/events.md'].flatMap(
    (page) =>
      [...readFileSync(join(root, page), 'utf8').matchAll(/\]\((?!https?:)([^)#]+)/g)]
        .filter(([, to = '']) => !existsSync(join(root, dirname(page), to)))
        .map(([, to]) => `${page}: ${to}`),
  )
  expect(dead).toEqual([])
})
