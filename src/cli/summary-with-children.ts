import { summaryOf } from '../engine/run-view.js'
import type { RunRow, Store } from '../engine/store.js'
import type { RunSummary } from '../engine/tutti.js'

const order: RunSummary['waitsFor'] = ['person', 'timer', 'agent', 'definition']

/** A run at a glance, where its child runs are not listed beside it: what they wait for, it waits for. */
export async function summaryWithChildren(store: Store, row: RunRow): Promise<RunSummary> {
  // Whether somebody has the definition is not known here, and is not said.
  const summary = summaryOf(row, true)
  if (row.endedAt !== null) return summary
  const children = await store.list({ prefix: `${row.id}:`, status: ['running', 'paused'], limit: Number.POSITIVE_INFINITY })
  const waits = new Set([summary, ...children.map((child) => summaryOf(child, true))].flatMap(({ waitsFor }) => waitsFor))
  return { ...summary, waitsFor: order.filter((what) => waits.has(what)) }
}
