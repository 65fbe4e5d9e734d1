import { randomUUID } from 'node:crypto'
import type { RunRow, Store } from '../engine/store.js'
import { RunTree } from './run-tree.js'

/** How long a run that nobody owns is watched: whoever has just answered or started it takes it in far less. */
const watchMs = 500
/** For how long a run that was resumed is left to whoever did so, however slow the machine is. */
const takingMs = 10_000

/** Whether a run may go on and nobody has it, be it only because it owes nothing before a time. */
export async function isFree(store: Store, id: string): Promise<boolean> {
  const tree = new RunTree(store, id)
  await tree.catchUp()
  return (await freeAmong(store, [tree], async () => false)).has(id)
}

/** Those of some runs, as far as they have been read, that have something to do and nobody who does it: their process died. */
export function strandedAmong(store: Store, trees: readonly RunTree[]): Promise<ReadonlySet<string>> {
  const resting = new Set(trees.filter((tree) => tree.isResting()).map(({ id }) => id))
  return freeAmong(store, trees, async (row) => resting.has(row.id) || (row.waits.includes('agent') && !(await isDue(store, row))))
}

/**
 * Whether the time has come for a run that nobody owns, as when nobody has answered in time, or an agent may act again. Asked for none, a claim
 * only looks.
 */
export async function isDue(store: Store, { id, definition, version }: RunRow): Promise<boolean> {
  const definitions = [{ name: definition, versions: [version] }]
  const { nextWake } = await store.claim({ worker: 0, definitions, only: id, now: Number.NEGATIVE_INFINITY, limit: 0 })
  return nextWake !== null && nextWake <= Date.now()
}

/** Those that nobody has. `isLeft`: whether whoever is there leaves one alone until it is due, or until something happens to it. */
async function freeAmong(store: Store, trees: readonly RunTree[], isLeft: (row: RunRow) => Promise<boolean>): Promise<ReadonlySet<string>> {
  const owing = trees.filter((tree) => tree.stop() === null && !isBeingTaken(tree))
  // Read after their journals: whoever resumed one may have taken it meanwhile, and who had it before is dead.
  const rows = (await Promise.all(owing.map(({ id }) => rowOf(store, id)))).filter((row) => row !== null)
  if (rows.length === 0) return new Set()
  const alive = await aliveIn(store)
  const dead = rows.filter(({ worker }) => worker !== null && !alive.has(worker))
  const unowned = rows.filter(({ worker }) => worker === null)
  const left = alive.size === 0 ? [] : await Promise.all(unowned.map(isLeft))
  const free = unowned.filter((_, index) => left[index] !== true)
  return new Set([...dead, ...(await untaken(store, free))].map(({ id }) => id))
}

function isBeingTaken(tree: RunTree): boolean {
  const last = tree.last()
  return last?.type === 'run.resumed' && Date.now() - last.at < takingMs
}

/** Those that nobody has taken, nor anybody written to, after a while. */
async function untaken(store: Store, rows: readonly RunRow[]): Promise<readonly RunRow[]> {
  if (rows.length === 0) return []
  await new Promise((resolve) => setTimeout(resolve, watchMs))
  const now = await Promise.all(rows.map(({ id }) => rowOf(store, id)))
  return rows.filter(({ head }, index) => now[index]?.head === head && now[index].worker === null)
}

async function rowOf(store: Store, id: string): Promise<RunRow | null> {
  return (await store.load(id, { after: Number.MAX_SAFE_INTEGER }))?.row ?? null
}

/** Peers are seen by those who have joined. */
async function aliveIn(store: Store): Promise<ReadonlySet<number>> {
  const self = await store.join({ nonce: randomUUID() })
  try {
    const peers = await store.beat(self)
    return new Set(peers.flatMap(({ worker, gone }) => (gone ? [] : worker)))
  } finally {
    await store.leave(self, Date.now())
  }
}
