import { randomUUID } from 'node:crypto'
import type { RunRow, Store } from '../engine/store.js'
import { RunTree } from './run-tree.js'

/** How long a run that nobody owns is watched: whoever has just answered or started it takes it in far less. */
const watchMs = 500
/** For how long a run that was resumed is left to whoever did so, however slow the machine is. */
const takingMs = 10_000

/** Whether a run has something to do and nobody who does it: its process died. */
export async function isStranded(store: Store, row: RunRow): Promise<boolean> {
  const tree = new RunTree(store, row.id)
  const last = (await tree.catchUp()).filter(({ run }) => run === row.id).at(-1)?.event
  if (tree.stop() !== null) return false
  if (last?.type === 'run.resumed' && Date.now() - last.at < takingMs) return false
  if (row.worker !== null) return isDead(store, row.worker)
  await new Promise((resolve) => setTimeout(resolve, watchMs))
  const now = await store.load(row.id, { after: row.head })
  return now !== null && now.row.head === row.head && now.row.worker === null
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
