import type { Maybe } from '../define/maybe.js'
import type { ActivityContext, StepOptions } from '../define/work.js'
import type { UndoMark } from '../kernel/command.js'
import type { Failure } from '../kernel/failure.js'
import type { Reserve, Usage } from '../kernel/usage.js'

/** How an activity of a model's turn is executed, beyond what a step of a user can say. */
export interface ActivityOptions extends StepOptions {
  /** It can be undone: its start is recorded, with what it was given. */
  readonly undo?: UndoMark
  /** What it may use of what is limited: set aside, and recorded, before it starts. */
  readonly reserve?: Reserve
  /** What it has used, from what came of it. */
  readonly usage?: (result: { readonly value: unknown } | { readonly error: Failure }) => Usage | undefined
  /** What the try that has just failed has used of what is limited; undefined: nothing. It is asked once, before the next. */
  readonly usedByLast?: () => Reserve | undefined
  /** How long to wait before it is tried again, instead of what its retry says; undefined: as that says. */
  readonly waitMs?: (failure: Failure) => number | undefined
  /** Aborted where it is of no use any more: then it does not wait until it is tried again. */
  readonly stop?: AbortSignal
}

/** Executes an activity: its result is recorded once and given back on re-execution. */
export type RunActivity = (name: string, run: (ctx: ActivityContext) => Maybe<unknown>, options: ActivityOptions) => Promise<unknown>
