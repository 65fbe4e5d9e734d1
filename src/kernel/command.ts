import type { Action, BranchState } from './action.js'
import type { Failure } from './failure.js'
import type { Shape } from './shape.js'
import type { LateWork, UndoneRun } from './event.js'
import type { Halted } from './lifecycle.js'
import type { Known, Parent, Said } from './state.js'
import type { Reserve, Usage } from './usage.js'

/** Which execution of which turn speaks: a completion that does not match what is owed is refused. */
export interface Speaker {
  readonly branch: string
  readonly agent: string
  readonly turn: number
  readonly attempt: number
}

/** Which call of an activity speaks. */
export interface ActivitySpeaker extends Speaker {
  readonly key: string
  readonly name: string
  readonly delivered: number
}

/** How an activity came to what it did, as far as the clock decided it. */
export interface Tried {
  /** Which of its own attempts ran out of time; absent if none did. */
  readonly timeouts?: readonly number[]
}

/** Of an activity that can be undone: which tool did it, with what. */
export interface UndoMark {
  readonly tool: string
  readonly input: unknown
}

/** What is asked of a run, in the imperative: by people, by workers, by timers. */
export type Command =
  | {
      readonly type: 'run.start'
      readonly runId: string
      readonly nonce: string
      readonly shape: Shape
      readonly input?: unknown
      readonly tags: Readonly<Record<string, string>>
      readonly session?: string
      readonly conversation?: readonly Said[]
      readonly parent?: Parent
      readonly state?: BranchState
      /** The run only undoes what another has done. */
      readonly undoes?: UndoneRun
    }
  | {
      readonly type: 'run.claim'
      readonly epoch: number
      readonly shape?: Shape
      readonly waited?: readonly string[]
      readonly unbegun?: readonly string[]
    }
  | { readonly type: 'run.release' }
  | { readonly type: 'run.pause'; readonly by?: string }
  | { readonly type: 'run.resume'; readonly by?: string; readonly above?: Known }
  | { readonly type: 'run.cancel'; readonly reason?: string; readonly by?: string; readonly compensate?: boolean }
  /** What its child runs use now, with what is set aside there, is over what it may use: said of what it was at `seq`. */
  | { readonly type: 'run.overspend'; readonly more: Reserve; readonly seq: number }
  | ({ readonly type: 'turn.complete'; readonly action: Action } & Speaker)
  /** A step's body returned. */
  | ({
      readonly type: 'step.complete'
      readonly output?: unknown
      readonly child?: string
      readonly notUndone?: readonly string[]
      readonly usage?: Usage
    } & Speaker)
  /** Its `when` said no. */
  | ({ readonly type: 'step.skip' } & Speaker)
  /** Its `each` gave items. */
  | ({ readonly type: 'step.each'; readonly items: readonly unknown[] } & Speaker)
  /** What the turn returned can't be accepted: no action, not JSON, or refused by a schema. */
  | ({ readonly type: 'turn.reject'; readonly problem: string } & Speaker)
  /** The attempt threw or ran out of time. `retryable`: its kind of failure may be tried again. */
  | ({
      readonly type: 'turn.fail'
      readonly error: Failure
      readonly retryable: boolean
      readonly timedOut?: boolean
      /** It was not begun, because its agent may not act. */
      readonly stopped?: Halted
      /** The names that the attempt has called several steps by, without a key of their own. */
      readonly repeated?: readonly string[]
      readonly notUndone?: readonly string[]
      readonly usage?: Usage
    } & Speaker)
  /** An attempt that was aborted has ended, or is fenced off. */
  | ({
      readonly type: 'turn.settle'
      readonly how: 'ended' | 'fenced'
      readonly done?: LateWork
      readonly notUndone?: readonly string[]
      readonly usage?: Usage
    } & Speaker)
  /**
   * The activity must not be repeated, can be undone, uses what is limited, or is at work while its turn sleeps as well: its start is recorded.
   * `used`: it is tried again, and this is what the last try has used.
   */
  | ({ readonly type: 'activity.start'; readonly undo?: UndoMark; readonly reserve?: Reserve; readonly used?: Reserve } & ActivitySpeaker)
  | ({ readonly type: 'activity.complete'; readonly value?: unknown; readonly usage?: Usage } & Tried & ActivitySpeaker)
  | ({ readonly type: 'activity.fail'; readonly error: Failure; readonly usage?: Usage } & Tried & ActivitySpeaker)
  | ({ readonly type: 'sleep.start'; readonly ms: number } & ActivitySpeaker)
  | { readonly type: 'ask.answer'; readonly askId: string; readonly value: unknown; readonly by?: string }
  | { readonly type: 'timer.fire'; readonly timer: string }
  | { readonly type: 'undo.complete'; readonly of: string; readonly attempt: number; readonly revision: number }
  | {
      readonly type: 'undo.fail'
      readonly of: string
      readonly attempt: number
      readonly revision: number
      readonly error: Failure
      readonly retryable: boolean
    }

/** A command that changes nothing, and why. */
export interface Refusal {
  readonly code: RefusalCode
  readonly message: string
}

export type RefusalCode =
  | 'RUN_EXISTS'
  | 'RUN_NOT_FOUND'
  | 'RUN_NOT_PAUSED'
  | 'RUN_ENDED'
  | 'ASK_NOT_FOUND'
  | 'ASK_ALREADY_ANSWERED'
  | 'ASK_INVALID_ANSWER'
  | 'STALE_ATTEMPT'
  | 'STALE_REVISION'
  | 'ALREADY_COMPENSATED'
  | 'ACTIVITY_RECORDED'
  | 'STALE_TIMER'
  | 'TIMER_NOT_DUE'
  /** The decision calls a function of the definition, which this process does not have. */
  | 'NEEDS_CODE'
  /** The run has something in flight that this version of its definition has no place for. */
  | 'CANNOT_CONTINUE'
  /** Its idempotency key has been used: the first outcome stands. */
  | 'KEY_TAKEN'
