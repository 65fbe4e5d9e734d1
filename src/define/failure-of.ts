import { deepFreeze } from '../kernel/deep-freeze.js'
import type { Failure } from '../kernel/failure.js'
import { jsonSize, toJson } from '../kernel/json.js'
import { bytesOver } from './bytes-over.js'
import { type Code, TuttiError } from './tutti-error.js'

/** A failure that keeps its own code when it reaches the end of a turn. */
export class CodedFailure extends Error {
  readonly failure: Failure
  constructor(failure: Failure) {
    super(failure.message)
    this.name = failure.code
    this.failure = failure
  }

  /** What a body tells it by when it catches it. Not a field of its own: what is made of those that it has stays as it is. */
  get code(): Failure['code'] {
    return this.failure.code
  }
}

/** A value over the limit is a final failure, never a retry. */
export function tooLarge(what: string, size: number, max: number): CodedFailure {
  const message = `${what} has about ${size} bytes; the store takes ${max}. Keep it elsewhere and pass a reference`
  return new CodedFailure({ code: 'VALUE_TOO_LARGE', message, retryable: false, at: {} })
}

/** A failure as it can be recorded: what was thrown may be over the limit like any other value. A code of the engine's says more than that. */
export function storableFailure(failure: Failure, max: number): Failure {
  const said = [failure.message, failure.data]
  const size = bytesOver(max, jsonSize(said), said)
  if (size === null) return failure
  const { failure: instead } = tooLarge('what was thrown', size, max)
  const isThrown = failure.code === 'AGENT_FAILED' || failure.code === 'STEP_FAILED'
  return deepFreeze(isThrown ? instead : { ...instead, code: failure.code, retryable: failure.retryable })
}

/** What the code does wrong, and would do again; what else we throw may pass. */
const faults: readonly Code[] = [
  'DUPLICATE_STEP_KEY',
  'NESTED_STEP',
  'INVALID_INPUT',
  'INVALID_TOPOLOGY',
  'INVALID_GRAPH',
  'KEY_REUSED',
  'VALUE_TOO_LARGE',
]

const isFault = (thrown: unknown): boolean => TuttiError.is(thrown) && faults.includes(thrown.code)

/** What was thrown, as data: its message, and its own code and fields where they are JSON. */
export function failureOf(thrown: unknown, code: 'AGENT_FAILED' | 'STEP_FAILED' = 'AGENT_FAILED'): Failure {
  try {
    if (thrown instanceof CodedFailure) return deepFreeze(inPlace(thrown.failure, code))
    const data = fieldsOf(thrown)
    return deepFreeze({ code, message: messageOf(thrown), retryable: !isFault(thrown), at: {}, ...(data !== undefined && { data }) })
  } catch {
    // A getter of it throws, or it is a proxy that does: it failed, whatever it has to say.
    return deepFreeze({ code, message: 'something was thrown that cannot be looked at', retryable: true, at: {} })
  }
}

/** In a graph it is a step that has failed, no agent. */
const inPlace = (failure: Failure, code: Failure['code']): Failure => (failure.code === 'AGENT_FAILED' ? { ...failure, code } : failure)

function messageOf(thrown: unknown): string {
  if (thrown instanceof Error) return String(thrown.message || thrown.name)
  if (typeof thrown === 'string') return thrown
  const message = (thrown as { message?: unknown } | null | undefined)?.message
  if (typeof message === 'string' && message !== '') return message
  const json = toJson(thrown)
  if ('problem' in json) return `something was thrown that is neither an Error nor JSON (${json.problem})`
  return JSON.stringify(json.value) ?? 'undefined was thrown'
}

/** The own enumerable fields that are JSON; an error's code above all. */
function fieldsOf(thrown: unknown): unknown {
  if (typeof thrown !== 'object' || thrown === null) return undefined
  const made: Record<string, unknown> = {}
  for (const [key, value] of Object.entries(thrown)) {
    if (key === 'message' || key === '__proto__' || value === undefined) continue
    const json = toJson(value)
    if (!('problem' in json)) made[key] = json.value
  }
  return Object.keys(made).length === 0 ? undefined : Object.freeze(made)
}
