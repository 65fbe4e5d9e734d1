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

/** What came to be owed, and what no longer is, between two states; costs as much as the difference. */
export function owedSince(before: State | null, after: State): { readonly begun: Effect[]; readonly timersGone: readonly string[] } {
  const begun: Effect[] = []
  if (before !== null && isSame(before, after)) return { begun, timersGone: [] }
  const aborting = Trie.changes(before?.aborting ?? Trie.empty<Attempt>(), after.aborting)
  const timers = Trie.changes(before?.timers ?? Trie.empty<Timer>(), after.timers)
  const { branches, seq } = before ?? newState
  const started = Branches.begunSince(branches, seq, after.branches)
  for (const attempt of started.sort((a, b) => a.seq - b.seq)) begun.push({ type: 'turn.perform', attempt })
  for (const [, attempt] of aborting.set) begun.push({ type: 'turn.abort', attempt })
  for (const [, timer] of timers.set) begun.push({ type: 'timer.wait', timer })
  const undos = Trie.changes(before?.undo.running ?? Trie.empty<UndoAttempt>(), after.undo.running)
  for (const [, undo] of undos.set.toSorted(([, a], [, b]) => a.seq - b.seq)) begun.push({ type: 'undo.perform', undo })
  return { begun, timersGone: timers.gone }
}

/** Most commits record the result of an activity, and owe nothing new. */
function isSame(before: State, after: State): boolean {
  const { branches, aborting, timers, undo } = before
  return branches === after.branches && aborting === after.aborting && timers === after.timers && undo.running === after.undo.running
}
