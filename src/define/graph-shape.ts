import type { JoinSpec } from '../kernel/join.js'
import type { RetryShape, RunLimits } from '../kernel/shape.js'

/** What happens when a step, or one item of it, has failed for good. */
export type OnError = 'fail' | 'skip' | 'pause' | { fallback: unknown }

/** The plain data of one step. */
export interface StepShape {
  readonly id: string
  readonly after: readonly string[]
  readonly join: JoinSpec
  readonly kind: 'run' | 'ask' | 'child'
  readonly hasWhen: boolean
  readonly hasEach: boolean
  /** How many items run at once; null is all. */
  readonly concurrency: number | null
  readonly onError: OnError
  readonly retry: RetryShape
  readonly timeoutMs: number | null
  readonly compensates: boolean
}

/** The plain data of a graph. */
export interface GraphShape {
  readonly kind: 'graph'
  readonly name: string
  readonly version: string
  readonly digest: string
  readonly limits: RunLimits
  readonly stragglers: 'wait' | 'cancel'
  readonly concurrency: number | null
  readonly required: readonly string[]
  /** In declared order. */
  readonly steps: readonly StepShape[]
}
