import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { expect, test } from 'vitest'
import { snippetsOf } from '../docs/snippet.js'
import { root } from '../house/workshop.js'
import { packed, Project } from './installed.js'

const files = packed()

test('every relative link of the pages in the package leads to what is in the package', () => {
  const there = (path: string) => files.some((file) => file === path || file.startsWith(`${path}/`))
  const links = files
    .filter((page) => page.endsWith('.md'))
    .flatMap((page) =>
      [...readFileSync(join(root, page), 'utf8').matchAll(/\]\((?![a-z]+:)([^)#]+)/g)].map(([, to = '']) => {
        const { pathname } = new URL(to, `file:///${page}`)
        return { page, to, path: pathname.slice(1).replace(/\/$/, '') }
      }),
    )
  expect(links.filter(({ path }) => !there(path))).toEqual([])
  expect(links.map(({ path }) => path)).toEqual(expect.arrayContaining(['docs/pictures/research.svg', 'examples', 'CONTRIBUTING.md']))
})

test('a strict project that has nothing but the package compiles the code of the README and everything that is exported', {
  timeout: 60_000,
}, async () => {
  using project = new Project(files)
  const snippets = snippetsOf('README.md').map(({ code, line }) => ({ file: `readme-${line}.ts`, code }))
  const doors = ['tutti', 'tutti/testing', 'tutti/store'].map((door, index) => `export * as door${index} from '${door}'\n`)
  for (const { file, code } of snippets) project.write(file, code)
  project.write('doors.ts', doors.join(''))
  expect(snippets.length).toBeGreaterThan(1)
  expect(await project.tsc([...snippets.map(({ file }) => file), 'doors.ts'])).toBe('')
})

test('without the packages of the AI SDK a model is still a model', { timeout: 60_000 }, async () => {
  using project = new Project(files)
  project.write('model.ts', "import { agent } from 'tutti'\nagent({ name: 'Ann', model: 5 })\n")
  expect(await project.tsc(['model.ts'])).toMatch(/model\.ts\(2,\d+\): error TS2322/)
})

test('what a project exports can be declared: an unfinished graph, and one with an output schema that a helper adds steps to', {
  timeout: 60_000,
}, async () => {
  using project = new Project(files, ['zod'])
  project.write(
    'exported.ts',
    `import { graph, type GraphBuilder } from 'tutti'
import { z } from 'zod'
export const begun = graph<{ n: number }>('begun').step('a', { run: ({ input }) => input.n }).ask('b', { question: () => 'ok?', schema: z.boolean() })
export const withPosting = <In, Raw, Out>(to: GraphBuilder<In, {}, Raw, Out>) => to.step('post', { run: () => 'posted' })
export const checked = withPosting(graph('checked', { output: z.object({ post: z.string() }) })).output()
`,
  )
  expect(await project.tsc(['exported.ts'], { declaration: true })).toBe('')
})

test('a graph of many steps is compiled by an older TypeScript too, which keeps nothing that it has worked out', {
  timeout: 120_000,
}, async () => {
  using project = new Project(files)
  const steps = Array.from(
    { length: 24 },
    (_, i) => `.step('s${i + 1}', { after: ['s${i}'], run: ({ steps }) => ({ n: steps.s${i}.n + 1 }) })`,
  )
  const first = "import { graph } from 'tutti'\nconst many = graph('many').step('s0', { run: () => ({ n: 0 }) })"
  project.write('many.ts', [first, ...steps, '.output(({ steps }) => steps.s24.n)', 'void many'].join('\n'))
  // The one that `attw` brings along.
  const brought = createRequire(createRequire(import.meta.url).resolve('@arethetypeswrong/core'))
  expect(await project.tsc(['many.ts'], {}, dirname(brought.resolve('typescript/package.json')))).toBe('')
})

test('who forks to an agent that needs a request, and gives none, is told how such a call looks', { timeout: 60_000 }, async () => {
  using project = new Project(files, ['zod'])
  project.write(
    'fork.ts',
    `import { topology } from 'tutti'
import { z } from 'zod'
topology({
  name: 'fork',
  flows: ['Start -> Hub -> End', 'Hub <-> Ann | Ben'],
  agents: {
    Hub: (turn) => turn.fork(['Ann', 'Ben'], { request: 'x' }),
    Ann: { input: z.string(), act: (turn) => turn.reply(1) },
    Ben: (turn) => turn.reply(2),
  },
})
`,
  )
  expect(await project.tsc(['fork.ts'])).toMatch(/fork\.ts\(7,\d+\): .*\{ to: "Ann"; request: string; \}/)
})

test('what one door of the package makes, the others know: they have their code in common', async () => {
  using project = new Project(files)
  project.write(
    'doors.mjs',
    `import { open, topology, TuttiError } from 'tutti'
import { checkStore, explore } from 'tutti/testing'
import { atOnce } from 'tutti/store'
const one = topology({ name: 'one', flows: ['Start -> A -> End'], agents: { A: (turn) => turn.finish('done') } })
const { independent } = await explore(one, { input: null })
const tutti = await open({ store: 'memory:' })
const refused = await explore({}, { input: null }).catch((error) => error)
console.log(independent, await tutti.execute(one), refused instanceof TuttiError, typeof checkStore, typeof atOnce)
await tutti.close()
`,
  )
  expect(await project.node('doors.mjs')).toBe('true done true function function\n')
})

test('to load the package is to load few files where many were compiled, and each says where it comes from', () => {
  const loaded = loadedWith('bundle/index.js')
  expect([...loaded].filter((file) => !files.includes(file) || !files.includes(`${file}.map`))).toEqual([])
  expect(loaded.size).toBeGreaterThan(1)
  expect(loaded.size * 3).toBeLessThan(loadedWith('dist/index.js').size)
})

/** All files that are loaded with one. */
function loadedWith(file: string, loaded = new Set<string>()): ReadonlySet<string> {
  if (loaded.has(file)) return loaded
  loaded.add(file)
  const text = readFileSync(join(root, file), 'utf8')
  for (const [, next = ''] of text.matchAll(/^(?:import|export|\}).* ?["'](\.[^"']+)["'];$/gm))
    loadedWith(join(dirname(file), next), loaded)
  return loaded
}
