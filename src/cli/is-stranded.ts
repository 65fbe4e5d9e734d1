import { randomUUID } from 'node:crypto'
import type { RunRow, Store } from '../engine/store.js'
import { RunTree } from './run-tree.js'

/** How long a run that nobody owns is watched: whoever has just answered or started it takes it in far less. */
const watchMs = 500
/** For how long a run that was resumed is left to whoever did so, however slow the machine is. */
const takingMs = 10_000

/** Whether a run has something to do and nobody who does it: its process died. */
export async function isStranded(store: Store, id: string): Promise<boolean> {
  const tree = new RunTree(store, id)
  const last = (await tree.catchUp()).filter(({ run }) => run === id).at(-1)?.event
  if (tree.stop() !== null) return false
  if (last?.type === 'run.resumed' && Date.now() - last.at < takingMs) return false
  // Read after its journal: whoever resumed it may have taken it meanwhile, and who had it before is dead.
  const before = await rowOf(store, id)
  if (before === null) return false
  if (before.worker !== null) return isDead(store, before.worker)
  await new Promise((resolve) => setTimeout(resolve, watchMs))
  const now = await rowOf(store, id)
  return now !== null && now.head === before.head && now.worker === null
}

async function rowOf(store: Store, id: string): Promise<RunRow | null> {
  return (await store.load(id, { after: Number.MAX_SAFE_INTEGER }))?.row ?? null
}

/** Peers are seen by those who have joined. */
async function isDead(store: Store, worker: number): Promise<boolean> {
  const self = await store.join({ nonce: randomUUID() })
  try {
    const peers = await store.beat(self)
    return peers.find((peer) => peer.worker === worker)?.gone ?? true
  } finally {
    await store.leave(self, Date.now())
  }
}
