import { Branches } from './branches.js'
import type { Attempt, State, Timer } from './state.js'
import { newState } from './state.js'
import { Trie } from './trie.js'
import type { UndoAttempt } from './undo-state.js'

/** Something a worker owes the run. Derived from the state, never decided beside it: recovery is "load, fold, perform what is outstanding". */
export type Effect =
  | { readonly type: 'turn.perform'; readonly attempt: Attempt }
  | { readonly type: 'turn.abort'; readonly attempt: Attempt }
  | { readonly type: 'timer.wait'; readonly timer: Timer }
  | { readonly type: 'undo.perform'; readonly undo: UndoAttempt }

/** Everything that is owed. */
export function outstanding(state: State): Effect[] {
  return owedSince(null, state).begun
}

/** What came to be owed, and what no longer is, between two states; costs as much as the difference. Mostly little of it has changed. */
export function owedSince(before: State | null, after: State): { readonly begun: Effect[]; readonly timersGone: readonly string[] } {
  const { branches, seq, aborting, timers, undo } = before ?? newState
  const begun: Effect[] = []
  let timersGone: readonly string[] = none
  if (branches !== after.branches)
    for (const attempt of Branches.begunSince(branches, seq, after.branches).sort((a, b) => a.seq - b.seq))
      begun.push({ type: 'turn.perform', attempt })
  if (aborting !== after.aborting)
    for (const [, attempt] of Trie.changes(aborting, after.aborting).set) begun.push({ type: 'turn.abort', attempt })
  if (timers !== after.timers) {
    const { set, gone } = Trie.changes(timers, after.timers)
    for (const [, timer] of set) begun.push({ type: 'timer.wait', timer })
    timersGone = gone
  }
  if (undo.running !== after.undo.running)
    for (const [, run] of Trie.changes(undo.running, after.undo.running).set.toSorted(([, a], [, b]) => a.seq - b.seq))
      begun.push({ type: 'undo.perform', undo: run })
  return { begun, timersGone }
}

const none: readonly string[] = Object.freeze([])
