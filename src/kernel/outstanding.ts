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

/** What came to be owed, and what no longer is. */
export interface Owed {
  /** The turns to perform, in the order in which they have started: a wide fork owes thousands at once. */
  readonly turns: readonly Attempt[]
  readonly others: readonly Exclude<Effect, { type: 'turn.perform' }>[]
  readonly timersGone: readonly string[]
}

/** Everything that is owed. */
export function outstanding(state: State): Effect[] {
  return effectsOf(owedSince(null, state))
}

export function effectsOf({ turns, others }: Owed): Effect[] {
  return [...turns.map((attempt) => ({ type: 'turn.perform', attempt }) as const), ...others]
}

/** What has changed of it between two states; costs as much as the difference. Mostly little of it has. */
export function owedSince(before: State | null, after: State): Owed {
  const { branches, seq, aborting, timers, undo } = before ?? newState
  const others: Exclude<Effect, { type: 'turn.perform' }>[] = []
  let timersGone: readonly string[] = none
  const turns = branches === after.branches ? noTurns : Branches.begunSince(branches, seq, after.branches).sort((a, b) => a.seq - b.seq)
  if (aborting !== after.aborting)
    for (const [, attempt] of Trie.changes(aborting, after.aborting).set) others.push({ type: 'turn.abort', attempt })
  if (timers !== after.timers) {
    const { set, gone } = Trie.changes(timers, after.timers)
    for (const [, timer] of set) others.push({ type: 'timer.wait', timer })
    timersGone = gone
  }
  if (undo.running !== after.undo.running)
    for (const [, run] of Trie.changes(undo.running, after.undo.running).set.toSorted(([, a], [, b]) => a.seq - b.seq))
      others.push({ type: 'undo.perform', undo: run })
  return { turns, others, timersGone }
}

const none: readonly string[] = Object.freeze([])
const noTurns: readonly Attempt[] = Object.freeze([])
