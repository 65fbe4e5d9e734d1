import type { Maybe } from './maybe.js'
import type { Resource } from './resource.js'
import type { Retry } from './retry.js'
import type { Tags } from './tags.js'

/** What the code of an activity is given. Its functions are bound: `({ use, emit }) => …` works. */
export interface ActivityContext {
  readonly signal: AbortSignal
  /** The same on every attempt, for whoever has to recognise a repeated effect. */
  readonly idempotencyKey: string
  readonly attempt: number
  /** A live value of this process; never journaled. */
  use<T>(resource: Resource<T>): T
  /** A transient part for `events({ deltas: true })`; never journaled. */
  emit(data: unknown): void
}

/** What a turn and a step are given. */
export interface Work extends ActivityContext {
  readonly runId: string
  readonly branchId: string
  readonly tags: Tags
  /** Journaled: once its result is recorded, it is never executed again. */
  step<T>(name: string, run: (ctx: ActivityContext) => Maybe<T>, options?: StepOptions): Promise<T>
  /** Durable. */
  sleep(ms: number): Promise<void>
  /** The time of the last delivered event: the same on re-execution. */
  now(): number
  /** Seeded by run, branch and turn: the same on re-execution. */
  random(): number
}

/** How one activity is executed. */
export interface StepOptions {
  key?: string
  idempotent?: boolean
  retry?: Retry
  timeoutMs?: number
}

/** What an undo is given: what was done. */
export interface Done<T = unknown> extends ActivityContext {
  readonly output: T
  readonly input: unknown
  readonly item?: unknown
  readonly activities: Readonly<Record<string, unknown>>
}
