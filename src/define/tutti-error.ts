import type { Failure } from '../kernel/failure.js'
import type { Problem } from '../kernel/problem.js'

/** What public calls throw. Closed: each code has its page under docs/errors. */
export type Code =
  | 'INVALID_TOPOLOGY'
  | 'INVALID_GRAPH'
  | 'INVALID_INPUT'
  | 'RUN_NOT_PAUSED'
  | 'RUN_NOT_FOUND'
  | 'RUN_EXISTS'
  | 'RUN_FAILED'
  | 'RUN_CANCELLED'
  | 'RUN_OF_OTHER_DEFINITION'
  | 'AGENT_NOT_PAUSED'
  | 'REVISION_CHANGED'
  | 'KEY_REUSED'
  | 'ASK_NOT_FOUND'
  | 'ASK_ALREADY_ANSWERED'
  | 'ASK_INVALID_ANSWER'
  | 'RUN_ENDED'
  | 'AGENT_NOT_FOUND'
  | 'INVALID_TRANSITION'
  | 'DEFINITION_NOT_FOUND'
  | 'CLOSED'
  | 'DUPLICATE_STEP_KEY'
  | 'NESTED_STEP'
  | 'VALUE_TOO_LARGE'
  | 'STORE_UNAVAILABLE'
  | 'STORE_LOCKED'
  | 'STORE_TOO_NEW'
  | 'NOT_A_STORE'
  | 'MODEL_UNAVAILABLE'

/** What goes with an error besides its code and message. */
export interface TuttiErrorDetails {
  readonly hint?: string | undefined
  readonly problems?: readonly Problem[] | undefined
  readonly failure?: Failure | undefined
  readonly cause?: unknown
}

// Registered, so that an error is known even when two copies of this package are loaded.
const brand: unique symbol = Symbol.for('tutti.error')

/** Thrown by public calls. Match it by `code`. */
export class TuttiError extends Error {
  readonly code: Code
  declare readonly hint?: string
  declare readonly problems?: readonly Problem[]
  declare readonly failure?: Failure

  constructor(code: Code, message: string, details: TuttiErrorDetails = {}) {
    super(message, details.cause === undefined ? undefined : { cause: details.cause })
    this.code = code
    if (details.hint !== undefined) this.hint = details.hint
    if (details.problems !== undefined) this.problems = Object.freeze(details.problems.map((problem) => Object.freeze({ ...problem })))
    if (details.failure !== undefined) this.failure = details.failure
  }

  static is(e: unknown, code?: Code): e is TuttiError {
    if (typeof e !== 'object' || e === null || !(brand in e)) return false
    return code === undefined || (e as { readonly code?: unknown }).code === code
  }
}
// On the prototype, so that neither shows among an error's own properties.
Object.defineProperty(TuttiError.prototype, 'name', { value: 'TuttiError', configurable: true })
Object.defineProperty(TuttiError.prototype, brand, { value: true })
