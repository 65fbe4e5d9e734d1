import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { tsImport } from 'tsx/esm/api'
import { expect, test } from 'vitest'
import type { Reference } from './model.js'
import { undoSample } from './random.js'
import { search } from './search.js'

const here = fileURLToPath(new URL('.', import.meta.url))
const cache = fileURLToPath(new URL('../../node_modules/.cache/tutti-readings', import.meta.url))

interface Misreading {
  readonly name: string
  readonly file: 'model.ts' | 'undoing.ts'
  readonly find: string
  readonly replace: string
  /** Where the search begins: some are rare, and finding them is not to take minutes. */
  readonly from?: number
}

/** The rule book read another way, each in a copy of the reference: every one of them looks plausible, and depends on the order. */
const misreadings: readonly Misreading[] = [
  {
    name: 'plans by the clock',
    file: 'undoing.ts',
    find: 'if (later.node !== earlier.node) return this.cameBecauseOf(later.node, earlier.node)',
    replace: 'return later.place > earlier.place',
  },
  {
    name: 'plans that are no choice',
    file: 'model.ts',
    find: "if (uncertain.length > 0) this.#choose({ at, kind: 'undo', decidedBy: uncertain }, owner)",
    replace: 'void [uncertain, owner]',
  },
  {
    name: 'an unknown outcome that is the same choice as a known one',
    file: 'model.ts',
    find: "status === 'unknown' ? `${id}?` : id",
    replace: 'status === id ? `${id}?` : id',
  },
  {
    name: 'a branch that is undoing does not hold a rendezvous back',
    file: 'model.ts',
    find: "isLive(branch) && branch.status !== 'held' && branch.scope === scope",
    replace: "isLive(branch) && branch.status !== 'held' && branch.status !== 'undoing' && branch.scope === scope",
    from: 18,
  },
  {
    name: 'plans that do not wait for aborting attempts',
    file: 'model.ts',
    find: "[...this.#aborting].some((id) => isUnder(id.split('/')[0] as string))",
    replace: 'false',
  },
  {
    name: 'plans that do not wait for plans under them',
    file: 'model.ts',
    find: 'running.some((plan) => isUnder(this.#barrier(plan.at).owner as string))',
    replace: 'false',
    from: 32,
  },
  {
    name: 'reports that list what was done under cancelled slots',
    file: 'model.ts',
    find: "return at === '#' || this.#isVisible(this.#barrier(at).owner as string)",
    replace: "return at !== ''",
  },
  {
    name: 'a plan under a cancelled slot that failed, and left no trace in the choices',
    file: 'model.ts',
    find: "if (!this.#isVisiblePlan(plan) && left.length > 0) seen.push({ at: plan.at, kind: 'undo', decidedBy: left })",
    replace: 'void [seen, left]',
  },
  {
    name: 'an entry that a second plan takes again',
    file: 'undoing.ts',
    find: 'filter((entry) => entry.plan === null)',
    replace: "filter((entry) => entry.plan === null || entry.status === 'failed')",
    from: 22,
  },
  {
    name: 'a fork that reaches detached branches',
    file: 'model.ts',
    find: "if (scope.kind !== 'fork') return false",
    replace: "if (scope.kind === 'root') return false",
    from: 8,
  },
]

async function misread({ name, file, find, replace }: Misreading): Promise<typeof Reference> {
  const folder = join(cache, name.replaceAll(' ', '-').replaceAll(',', ''))
  rmSync(folder, { recursive: true, force: true })
  mkdirSync(folder, { recursive: true })
  writeFileSync(join(folder, 'package.json'), '{ "type": "module" }')
  for (const source of ['model.ts', 'undoing.ts']) {
    const text = readFileSync(join(here, source), 'utf8')
    if (source === file && text.split(find).length !== 2) throw new Error(`${name}: '${find}' is not once in ${file} any more`)
    const changed = source === file ? text.replace(find, () => replace) : text
    writeFileSync(join(folder, source), changed)
  }
  const module = (await tsImport(pathToFileURL(join(folder, 'model.ts')).href, import.meta.url)) as { Reference: typeof Reference }
  return module.Reference
}

for (const misreading of misreadings) {
  test(`the search finds ${misreading.name}`, { timeout: 120_000 }, async () => {
    const Model = await misread(misreading)
    const found = search({ from: misreading.from ?? 1, topologies: 400, orders: 12, most: 1, sampler: undoSample, Model })
    expect(found.divergences).toHaveLength(1)
  })
}
