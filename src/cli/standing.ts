import { summaryOf } from '../engine/run-view.js'
import type { RunRow, Store } from '../engine/store.js'
import { summaryWithChildren } from '../engine/summary-with-children.js'
import type { RunSummary } from '../engine/tutti.js'
import { isDue, strandedAmong } from './is-stranded.js'
import { RunTree } from './run-tree.js'

/** A run at a glance, with what its row alone does not say. */
export interface Standing extends Omit<RunSummary, 'waitsFor'> {
  /** `process`: there is something to do, and nobody who does it. */
  readonly waitsFor: readonly Awaited[]
  /** Somebody has cancelled it, and what that takes is not done yet. */
  readonly cancelling?: true
  /** Why it was, if somebody has said so. */
  readonly reason?: string
}

type Awaited = RunSummary['waitsFor'][number] | 'process'

const order: readonly Awaited[] = ['person', 'timer', 'agent', 'definition', 'process']

/** How a run stands. */
export async function standingOf(store: Store, row: RunRow): Promise<Standing> {
  const tree = await treeOf(store, row)
  const stranded = await strandedIn(store, tree === null ? [] : [tree])
  return standing(row, (await summaryWithChildren(store, row, true)).waitsFor, tree, stranded)
}

/** How runs stand; with `alone`, child runs are listed beside them, and each is told what it waits for itself. */
export async function standingsOf(store: Store, rows: readonly RunRow[], { alone }: { readonly alone: boolean }): Promise<Standing[]> {
  const trees = new Map<string, RunTree | null>()
  for (const row of rows) trees.set(row.id, await treeOf(store, row))
  const stranded = await strandedIn(
    store,
    [...trees.values()].filter((tree) => tree !== null),
  )
  const standings: Standing[] = []
  for (const row of rows) {
    const waits = alone ? summaryOf(row, true).waitsFor : (await summaryWithChildren(store, row, true)).waitsFor
    standings.push(standing(row, waits, trees.get(row.id) ?? null, stranded))
  }
  return standings
}

/**
 * Those of some runs that have something to do and nobody who does it. To see who lives, one has to be written among them. Where the store
 * can't be written now, what can be read is shown all the same.
 */
export async function strandedIn(store: Store, trees: readonly RunTree[]): Promise<ReadonlySet<string>> {
  try {
    return await strandedAmong(store, trees)
  } catch {
    return new Set()
  }
}

/** What is written of a run that may go on; null of one that is over, or was let go because it waits for somebody: journals can be long. */
async function treeOf(store: Store, row: RunRow): Promise<RunTree | null> {
  const { id, endedAt, status, worker, waits } = row
  if (endedAt !== null || status === 'paused') return null
  const isWaiting = worker === null && (waits.includes('person') || waits.includes('agent'))
  if (isWaiting && !(await isDue(store, row))) return null
  const tree = new RunTree(store, id)
  await tree.catchUp()
  return tree
}

function standing(row: RunRow, waitsFor: RunSummary['waitsFor'], tree: RunTree | null, stranded: ReadonlySet<string>): Standing {
  const waits = new Set<Awaited>(waitsFor)
  if (stranded.has(row.id)) waits.add('process')
  // Whether somebody has the definition is not known here, and is not said.
  return { ...summaryOf(row, true), waitsFor: order.filter((what) => waits.has(what)), ...cancellingIn(tree) }
}

function cancellingIn(tree: RunTree | null): Pick<Standing, 'cancelling' | 'reason'> {
  const outcome = tree?.isBeingCancelled() === true ? tree.state().outcome : null
  if (outcome?.status !== 'cancelled') return {}
  return { cancelling: true, ...(outcome.reason !== null && { reason: outcome.reason }) }
}
