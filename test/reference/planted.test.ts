import { cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { expect, test } from 'vitest'
import { sample, undoSample } from './random.js'
import type { Decide } from './side-by-side.js'
import { difference } from './side-by-side.js'

const project = fileURLToPath(new URL('../..', import.meta.url))

interface Fault {
  readonly name: string
  /** It is about undoing, and seen from this topology on. */
  readonly undoing?: number
  readonly changes: readonly { readonly file: string; readonly find: string; readonly replace: string }[]
}

/** Small, realistic bugs, planted in a copy of the built kernel: none of them is in what is published. */
const faults: readonly Fault[] = [
  {
    name: 'a join in order of arrival',
    changes: [
      { file: 'folding.js', find: 'fired: barrier.fired,', replace: 'fired: barrier.fired, arrivals: barrier.arrivals,' },
      {
        file: 'fold-branches.js',
        find: 'barrier.pending--;',
        replace: 'barrier.pending--; barrier.arrivals = [...(barrier.arrivals ?? []), index];',
      },
      {
        file: 'reported.js',
        find: 'return barrier.calls.map((call, index) =>',
        replace: 'return (barrier.arrivals ?? []).map((index) => [barrier.calls[index], index]).map(([call, index]) =>',
      },
    ],
  },
  {
    name: 'a rendezvous that merges in order of arrival',
    changes: [
      {
        file: 'fold-branches.js',
        find: 'branch.requests = [askedBy(branch)]',
        replace: 'branch.requests = [Object.assign(askedBy(branch), { seq: state.seq })]',
      },
      {
        file: 'rendezvous.js',
        find: 'sort((a, b) => (a.slots[0] ?? 0) - (b.slots[0] ?? 0))',
        replace: 'sort((a, b) => a.requests[0].seq - b.requests[0].seq)',
      },
    ],
  },
  {
    name: 'losers of a choice that keep their result',
    changes: [{ file: 'barrier.js', find: 'if (delivered || byTimeout || !ok)', replace: 'if (true)' }],
  },
  {
    name: 'waiting branches that do not hold a rendezvous back',
    changes: [
      {
        file: 'rendezvous.js',
        find: '(barrier.approaching[index] ?? 0) > 0',
        replace: '[...draft.state.turns.values()].length > 0 && (barrier.approaching[index] ?? 0) > 0',
      },
    ],
  },
  {
    name: 'a cause that is the highest failure',
    changes: [
      {
        file: 'barrier.js',
        find: "slots.find((slot) => slot.status === 'failed')",
        replace: "slots.findLast((slot) => slot.status === 'failed')",
      },
    ],
  },
  {
    name: 'groups upstream that do not hold back',
    changes: [{ file: 'rendezvous.js', find: '(upstream[index] ?? []).some(', replace: '[].some(' }],
  },
  {
    name: 'a meeting that forgets where its survivor came from',
    undoing: 32,
    changes: [{ file: 'fold-undo.js', find: 'own !== undefined && !others.includes(branch)', replace: 'own !== undefined' }],
  },
  {
    name: 'a plan that does not wait for what is being aborted',
    undoing: 1,
    changes: [{ file: 'compensation.js', find: 'undo !== undefined && here(undo.path)', replace: 'false' }],
  },
  {
    name: 'a plan that does not wait for the plans under it',
    undoing: 32,
    changes: [{ file: 'compensation.js', find: 'if (here(path))', replace: 'if (false)' }],
  },
  {
    name: 'a plan that says nothing of what depends on the order',
    undoing: 1,
    changes: [{ file: 'compensation.js', find: 'chosen.length > 0 &&', replace: 'false &&' }],
  },
  {
    name: 'a rollback that counts what nobody is told of',
    undoing: 100,
    changes: [{ file: 'compensation.js', find: 'barrier === rootBarrier || !readsCancelled(state, path)', replace: 'true' }],
  },
]

async function planted({ name, changes }: Fault): Promise<Decide> {
  const folder = join(project, 'node_modules/.cache/tutti-planted', name.replaceAll(' ', '-'))
  rmSync(folder, { recursive: true, force: true })
  mkdirSync(folder, { recursive: true })
  cpSync(join(project, 'dist/kernel'), folder, { recursive: true })
  writeFileSync(join(folder, 'package.json'), '{ "type": "module" }')
  for (const { file, find, replace } of changes) {
    const text = readFileSync(join(folder, file), 'utf8')
    if (!text.includes(find)) throw new Error(`${name}: there is no '${find}' in ${file} any more`)
    writeFileSync(join(folder, file), text.replace(find, replace))
  }
  const { decide } = (await import(/* @vite-ignore */ pathToFileURL(join(folder, 'decide.js')).href)) as { decide: Decide }
  return decide
}

/** The random topology in which the fault is seen. */
function found(decide: Decide, most: number, undoing: number | undefined): number | null {
  const from = undoing ?? 1
  for (let seed = from; seed < from + most; seed++) {
    try {
      if (difference(seed, 8, decide, undoing === undefined ? sample : undoSample) !== null) return seed
    } catch {
      return seed
    }
  }
  return null
}

for (const fault of faults) {
  test(`the search finds ${fault.name}`, { timeout: 120_000 }, async () => {
    expect(found(await planted(fault), 1_500, fault.undoing)).not.toBeNull()
  })
}
