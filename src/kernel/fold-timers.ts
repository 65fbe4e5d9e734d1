import type { Folding } from './folding.js'
import type { Timer } from './state.js'
import { Trie } from './trie.js'

// Timers are set and taken away here alone: how many are sleeps of turns, and how many hold back an attempt, is counted with it. That is asked after
// each commit, and a run may have thousands.

/** Sets a timer, in place of one that has its id. */
export function arm(state: Folding, timer: Timer): void {
  disarm(state, timer.id)
  state.timers = state.timers.set(timer.id, timer, state.edit)
  count(state, timer, 1)
}

/** Takes a timer away, and gives it if it was there. */
export function disarm(state: Folding, id: string): Timer | undefined {
  const timer = state.timers.size === 0 ? undefined : state.timers.get(id)
  if (timer === undefined) return undefined
  state.timers = state.timers.delete(id, state.edit)
  count(state, timer, -1)
  return timer
}

/** Timers of a run stand for nothing once it is closing: all but those of undos, which go on where something is being undone. */
export function disarmRun(state: Folding): void {
  const isUndoing = state.undo.plans.size > 0
  state.timers = isUndoing ? Trie.from(state.timers.entries().filter(([, { kind }]) => kind === 'undo')) : Trie.empty()
  state.sleeps = 0
  state.backoffs = 0
}

function count(state: Folding, { kind }: Timer, by: number): void {
  if (kind === 'sleep') state.sleeps += by
  else if (kind === 'backoff') state.backoffs += by
}
