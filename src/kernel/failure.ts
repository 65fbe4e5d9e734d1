/** Why a branch or a run failed. Closed: each code has its page under docs/errors. */
export type FailureCode =
  | 'AGENT_FAILED'
  | 'STEP_FAILED'
  | 'REJECTED'
  | 'TIMEOUT'
  | 'ASK_EXPIRED'
  | 'JOIN_FAILED'
  | 'JOIN_INSUFFICIENT'
  | 'MERGE_FAILED'
  | 'RESULT_FAILED'
  | 'NO_RESULT'
  | 'SEVERAL_FINISHES'
  | 'REQUIRED_SKIPPED'
  | 'CHILD_FAILED'
  | 'TURN_CRASHED'
  | 'NONDETERMINISTIC_TURN'
  | 'ACTIVITY_OUTCOME_UNKNOWN'
  | 'RESOURCE_MISSING'
  | 'AGENT_STOPPED'
  | 'VALUE_TOO_LARGE'
  | 'MODEL_FAILED'
  | 'CANCELLED'
  | `LIMIT_${'TURNS' | 'BRANCHES' | 'DEPTH' | 'FANOUT' | 'TOKENS' | 'COST' | 'TIME'}`

/** Where a failure began. A kernel failure never names an attempt: attempts depend on timing, causes must not. */
export interface FailureAt {
  branch?: string
  agent?: string
  step?: string
  turn?: number
  attempt?: number
}

/** A failure as data: it travels in events, in slots and in reports. */
export interface Failure {
  code: FailureCode
  message: string
  retryable: boolean
  data?: unknown
  at: FailureAt
  cause?: Failure
  others?: readonly Failure[]
}
