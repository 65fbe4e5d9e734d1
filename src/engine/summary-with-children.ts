import { summaryOf } from './run-view.js'
import type { RunRow, Store } from './store.js'
import type { RunSummary } from './tutti.js'

const order: readonly RunSummary['waitsFor'][number][] = ['person', 'timer', 'agent', 'definition']

/**
 * A run at a glance: what its child runs wait for, it waits for. One of them that is paused while it is not has been paused for itself, and waits
 * for somebody who resumes it. Who has their definitions is said of them alone.
 */
export async function summaryWithChildren(store: Store, row: RunRow, hasDefinition: boolean): Promise<RunSummary> {
  const summary = summaryOf(row, hasDefinition)
  if (row.endedAt !== null) return summary
  const children = await store.list({ prefix: `${row.id}:`, status: ['running', 'paused'], limit: Number.POSITIVE_INFINITY })
  if (children.length === 0) return summary
  const below = children.map((child) => summaryOf(child, true))
  const waits = new Set([summary, ...below].flatMap(({ waitsFor }) => waitsFor))
  if (!summary.paused && below.some(({ paused }) => paused)) waits.add('person')
  return Object.freeze({ ...summary, waitsFor: Object.freeze(order.filter((what) => waits.has(what))) })
}
