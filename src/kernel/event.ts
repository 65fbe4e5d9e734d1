import type { Action, Approval, BranchState } from './action.js'
import type { Failure } from './failure.js'
import type { JoinData, JoinSpec } from './join.js'
import type { StepMessage, TurnMessage } from './message.js'
import type { Shape } from './shape.js'
import type { Tried, UndoMark } from './command.js'
import type { Halted } from './lifecycle.js'
import type { Known, Parent, Said } from './state.js'
import type { DoneNode } from './undo-state.js'
import type { Reserve, Usage } from './usage.js'

/** What becomes of the branch that waits at a fork that has fired. */
export type Goes = 'turn' | 'escape' | 'fail' | 'ask' | 'step' | 'undo'

interface OfTurn {
  readonly branch: string
  readonly agent: string
  readonly turn: number
  readonly attempt: number
}

interface OfActivity extends OfTurn {
  readonly key: string
  readonly name: string
  /** How many results of its attempt the body had been given when it called. */
  readonly delivered: number
}

/** How much of what a run had done was undone, and what was not. */
export interface RolledBack {
  readonly rollback: 'none' | 'complete' | 'partial'
  readonly notUndone?: readonly string[]
}

/** What an aborted attempt turned out to have done. */
export interface LateWork {
  readonly output?: unknown
  readonly child?: string
}

/** The run whose work another run undoes; its nonce is in the keys of that work. */
export interface UndoneRun {
  readonly run: string
  readonly nonce: string
  readonly nodes: readonly DoneNode[]
}

/** What happened, in the past tense. An event says all that folding needs: no rule is applied again when a journal is read. */
export type EventBody =
  | {
      readonly type: 'run.started'
      readonly runId: string
      readonly nonce: string
      readonly definition: string
      readonly version: string
      readonly shape: Shape
      readonly input?: unknown
      readonly tags: Readonly<Record<string, string>>
      readonly session?: string
      /** What was said in the session before, as it was when the run started. */
      readonly conversation?: readonly Said[]
      readonly parent?: Parent
      readonly state?: BranchState
      /** Given to a run that only undoes what another has done. */
      readonly undoes?: UndoneRun
    }
  /** A worker performs its effects from here on; `shape` is given where another version of the definition goes on with it. */
  /** `waited`: agents whose turns were only waiting, so that it was not them who made the last owner die. */
  /** `unbegun`: branches of steps that run a definition and whose run was not there yet, so that it may have been them. */
  | {
      readonly type: 'run.claimed'
      readonly epoch: number
      readonly shape?: Shape
      readonly waited?: readonly string[]
      readonly unbegun?: readonly string[]
    }
  /** Its worker has given it back. */
  | { readonly type: 'run.released' }
  | { readonly type: 'run.paused'; readonly by?: string }
  /** `above`: what was known then of the run that waits for it, if one does. */
  | { readonly type: 'run.resumed'; readonly by?: string; readonly above?: Known }
  /** Everything that is live is being closed: the run was cancelled, or it crossed a limit. */
  | { readonly type: 'run.closing'; readonly cause: 'cancel'; readonly reason?: string; readonly by?: string; readonly compensate?: false }
  | { readonly type: 'run.closing'; readonly cause: 'limit'; readonly error: Failure }
  /** The root has fired; the run ends once nothing of it is still running. */
  | { readonly type: 'run.decided'; readonly status: 'succeeded'; readonly output?: unknown }
  | { readonly type: 'run.decided'; readonly status: 'failed'; readonly error: Failure }
  /** Nothing of it runs any more, and what it has done is being undone. */
  | { readonly type: 'run.compensating'; readonly cause: Failure }
  | ({ readonly type: 'run.succeeded'; readonly output?: unknown } & Partial<RolledBack>)
  | ({ readonly type: 'run.failed'; readonly error: Failure } & RolledBack)
  | ({ readonly type: 'run.cancelled'; readonly reason?: string } & RolledBack)
  | {
      readonly type: 'barrier.opened'
      readonly barrier: string
      readonly kind: 'root' | 'fork' | 'detached'
      /** The branch that forks or notifies. */
      readonly branch?: string
      /** Of a detached barrier inside a fork: which of its calls. */
      readonly call?: number
      readonly width: number
      readonly join: JoinSpec
      /** Given for the items of a step: how many may run at once. */
      readonly each?: { readonly concurrency: number | null }
      /** What was done under it is undone where it does not count. */
      readonly compensate?: boolean
    }
  | { readonly type: 'barrier.arrived'; readonly barrier: string; readonly slot: number; readonly by: string; readonly branch?: string }
  | {
      readonly type: 'barrier.fired'
      readonly barrier: string
      readonly ok: boolean
      readonly width: number
      readonly arrived: number
      readonly failed: number
      readonly escaped: number
      readonly cancelled: number
      /** Given if it was a choice: the slots whose results count; the others read cancelled. */
      readonly decidedBy?: readonly number[]
      readonly byTimeout?: boolean
      readonly goes?: Goes
      readonly state?: BranchState
    }
  /** A person has said what becomes of a join that was not met. */
  | { readonly type: 'barrier.released'; readonly barrier: string; readonly goes: Goes; readonly state?: BranchState }
  /** Before the branch that waits for it goes on like this, what does not count is undone; `all`: the join has failed. */
  | {
      readonly type: 'barrier.undoing'
      readonly barrier: string
      readonly goes: Goes
      readonly all: boolean
      readonly state?: BranchState
      readonly error?: Failure
    }
  /** Its scope was cancelled from above. */
  | { readonly type: 'barrier.closed'; readonly barrier: string }
  | {
      readonly type: 'branch.opened'
      readonly branch: string
      readonly parent: string | null
      readonly to: string
      readonly barrier: string
      readonly slot: number
      /** It waits: behind its step's gate, or for an item before it. */
      readonly gated?: boolean
    }
  | { readonly type: 'branch.moved'; readonly branch: string; readonly to: string }
  | { readonly type: 'branch.notified'; readonly branch: string; readonly to: string }
  | { readonly type: 'branch.held'; readonly branch: string; readonly node: string }
  | { readonly type: 'branch.settled'; readonly branch: string; readonly status: 'arrived' | 'cancelled' }
  | { readonly type: 'branch.settled'; readonly branch: string; readonly status: 'failed'; readonly error: Failure }
  /** `to` is the barrier further out that it contributes to; absent when it goes past its fork with what it carries. */
  | { readonly type: 'branch.settled'; readonly branch: string; readonly status: 'escaped'; readonly to?: string }
  | {
      readonly type: 'rendezvous.fired'
      readonly barrier: string
      readonly node: string
      readonly branch: string
      readonly merged: readonly string[]
      readonly state?: BranchState
    }
  /** A step may run, with the outputs of those it sees; `decidedBy` is given where that was a choice. */
  | { readonly type: 'gate.opened'; readonly branch: string; readonly sees?: readonly string[]; readonly decidedBy?: readonly string[] }
  | {
      readonly type: 'step.completed'
      readonly branch: string
      readonly step: string
      readonly item?: number
      readonly output?: unknown
      readonly holes?: readonly number[]
      readonly fallback?: boolean
      /** The run that it was, if that has done something that can be undone. */
      readonly child?: string
      /** What that run could not undo, though it succeeded. */
      readonly notUndone?: readonly string[]
      /** What the models of that run have used. */
      readonly usage?: Usage
    }
  | {
      readonly type: 'step.skipped'
      readonly branch: string
      readonly step: string
      readonly item?: number
      /** The step that failed or was skipped before it, 'when', or what its own failure said. */
      readonly cause: string
      readonly error?: Failure
    }
  | ({ readonly type: 'turn.started'; readonly message: TurnMessage | StepMessage } & OfTurn)
  | ({ readonly type: 'turn.completed'; readonly action: Action } & OfTurn)
  | ({ readonly type: 'turn.rejected'; readonly problem: string; readonly final: boolean } & OfTurn)
  | ({
      readonly type: 'turn.failed'
      readonly error: Failure
      readonly timedOut?: boolean
      /** It was not begun, because its agent may not act: what that was then. */
      readonly stopped?: Halted
      /** A worker before this one may have done of it what can be undone, and nobody knows. */
      readonly unsettled?: true
      /** By the clock on the wall, if the run is not paused meanwhile. */
      readonly retryAt?: number
      readonly final: boolean
      /** The run is paused by it, and tries the step again when it is resumed. */
      readonly pauses?: boolean
      /** The names that the attempt has called several steps by: the next one can't know which of them was which. */
      readonly repeated?: readonly string[]
      /** What a child run has done and could not undo. */
      readonly notUndone?: readonly string[]
      /** What its models have used. */
      readonly usage?: Usage
    } & OfTurn)
  /** An aborted attempt has ended by itself, or was fenced off when its grace was over. */
  | ({
      readonly type: 'turn.aborted'
      readonly how: 'ended' | 'fenced'
      readonly done?: LateWork
      readonly notUndone?: readonly string[]
      readonly usage?: Usage
    } & OfTurn)
  /** `undo` is given where the activity can be undone, `used` where it is tried again: what the last try has used. */
  | ({ readonly type: 'activity.started'; readonly undo?: UndoMark; readonly reserve?: Reserve; readonly used?: Reserve } & OfActivity)
  /** `late`: its attempt had been aborted; its result is used for nothing but to undo it. */
  | ({ readonly type: 'activity.completed'; readonly value?: unknown; readonly usage?: Usage; readonly late?: boolean } & Tried &
      OfActivity)
  | ({ readonly type: 'activity.failed'; readonly error: Failure; readonly usage?: Usage } & Tried & OfActivity)
  | ({ readonly type: 'sleep.started'; readonly ms: number } & OfActivity)
  | { readonly type: 'ask.opened'; readonly branch: string; readonly ask: AskData }
  | { readonly type: 'ask.answered'; readonly branch: string; readonly askId: string; readonly value: unknown; readonly by?: string }
  /** `final`: its branch has no code for that, and fails. */
  | { readonly type: 'ask.expired'; readonly branch: string; readonly askId: string; readonly final: boolean }
  | { readonly type: 'timer.fired'; readonly timer: string }
  /** What is undone for a barrier, `#` for the whole run; `unknown` is left as it is; `decidedBy` is given where the plan is a choice. */
  | {
      readonly type: 'undo.planned'
      readonly barrier: string
      readonly entries: readonly string[]
      readonly unknown?: readonly string[]
      readonly decidedBy?: readonly string[]
    }
  | { readonly type: 'undo.started'; readonly of: string; readonly attempt: number }
  | { readonly type: 'undo.completed'; readonly of: string; readonly attempt: number }
  | {
      readonly type: 'undo.failed'
      readonly of: string
      readonly attempt: number
      readonly error: Failure
      readonly final: boolean
      readonly retryAt?: number
    }

/** An ask as it is journaled. */
export type AskData = { readonly id: string; readonly branch: string; readonly agent: string; readonly openedAt: number } & (
  | { readonly kind: 'question'; readonly question: unknown; readonly timeoutMs?: number; readonly schema?: object }
  | ({ readonly kind: 'approval' } & Approval)
  | { readonly kind: 'join'; readonly barrier: string; readonly join: JoinData }
)

/** One line of a journal. */
export type Event = { readonly seq: number; readonly at: number } & EventBody
