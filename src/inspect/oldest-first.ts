import { compareIds } from '../kernel/ids.js'
import type { Ask } from './ask.js'

/** The order in which open asks are listed. Those of one moment stand in the order of their branches, whatever a store gives first. */
export function oldestFirst(a: Ask, b: Ask): number {
  if (a.openedAt !== b.openedAt) return a.openedAt - b.openedAt
  if (a.runId !== b.runId) return a.runId < b.runId ? -1 : 1
  return compareIds(a.branch, b.branch) || compareIds(a.id, b.id)
}
