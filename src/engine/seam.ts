import type { ActivitySpeaker, Command, Tried } from '../kernel/command.js'
import type { Event } from '../kernel/event.js'
import type { Failure } from '../kernel/failure.js'
import type { Attempt, State } from '../kernel/state.js'
import type { UndoAttempt } from '../kernel/undo-state.js'
import type { Clock } from './tutti.js'

/** Something that an engine is about to do. */
export type Held =
  /** The body of a turn is to be executed. */
  | { readonly type: 'start'; readonly run: string; readonly attempt: Attempt }
  /** What undoes something is to be executed. */
  | { readonly type: 'undo'; readonly run: string; readonly undo: UndoAttempt; readonly branch: string; readonly agent: string }
  /** An execution or a timer has something to say: it is decided when it is let go. */
  | { readonly type: 'command'; readonly run: string; readonly command: Command }

/** What an activity came to. */
export type ActivityOutcome = ({ readonly value: unknown } | { readonly error: Failure; readonly retryable: boolean }) & Tried

/** Who is given a resource: an attempt at a turn, or at an undo. */
export interface Borrower {
  readonly run: string
  readonly branch: string
  readonly agent: string
  readonly id: string
}

/**
 * Where a harness takes hold of an engine, to choose the order of what it does. An engine that is given none waits for nobody.
 *
 * Everything that an order could change goes through here, through the clock, or through the store; all else is bound to follow.
 */
export interface Seam {
  /** Calls `go` when it may happen: twice where it happens twice, never where the process dies first. `instead` is said in its place. */
  hold(what: Held, go: (instead?: Command) => void): void
  /** Calls back in the next macrotask, together with what else waits for that; `afterMs`: not before so much time has passed. */
  later(task: () => void, afterMs?: number): void
  /** What the keys and the random numbers of a run derive from. */
  nonce(run: string): string
  /** A resource, as it is handed to somebody. */
  lend(name: string, value: unknown, to: Borrower): unknown
  /** The clock, as one branch sees it: who sleeps can then be told from who waits for something else. */
  clock?(run: string, branch: string): Clock
  /** What an activity comes to, where that is known: then it is not performed. */
  activity?(run: string, of: ActivitySpeaker): Promise<ActivityOutcome> | null
  /** Something of a run is durable. */
  committed(run: string, events: readonly Event[], state: State): void
}

/** A macrotask of its own, of the harness if there is one. */
export function laterOf(seam: Seam | undefined): Seam['later'] {
  if (seam !== undefined) return (task, afterMs) => seam.later(task, afterMs)
  return (task, afterMs) => {
    if (afterMs === undefined) setImmediate(task)
    else setTimeout(task, afterMs)
  }
}
