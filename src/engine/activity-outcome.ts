import { bytesOver } from '../define/bytes-over.js'
import { CodedFailure, failureOf, storableFailure, tooLarge } from '../define/failure-of.js'
import { type Code, TuttiError } from '../define/tutti-error.js'
import type { ActivitySpeaker, Command } from '../kernel/command.js'
import type { Failure } from '../kernel/failure.js'
import type { NotJson } from '../kernel/json.js'
import { toJson } from '../kernel/json.js'
import type { ActivityRecord, Attempt } from '../kernel/state.js'
import type { ActivityOptions } from '../models/activity-port.js'
import type { CalledStep } from './called-step.js'
import type { ActivityOutcome } from './seam.js'

export type FailedOutcome = Extract<ActivityOutcome, { readonly error: Failure }>

/** What the body of an activity has returned, as data. */
export function resultOf(name: string, value: unknown, options: ActivityOptions, maxValue: number): ActivityOutcome {
  const json = toJson(value)
  if ('problem' in json) return failedWith(mayBeDone(noJson(name, json), options), maxValue)
  const size = bytesOver(maxValue, json.size, json.value)
  return size === null ? json : failedWith(mayBeDone(tooLarge(`the result of the step '${name}'`, size, maxValue), options), maxValue)
}

/** What was thrown, as what an activity came to. */
export function failedWith(thrown: unknown, maxValue: number): FailedOutcome {
  const error = storableFailure(failureOf(thrown), maxValue)
  return { error, retryable: error.retryable }
}

/**
 * It has not thrown, so it may have been done. What must not be repeated is not, also by whoever tries its turn again; of what can be
 * undone, with no result nothing undoes it: that is said, and never a clean failure.
 */
export function mayBeDone(error: CodedFailure, { idempotent, undo }: ActivityOptions): CodedFailure {
  return idempotent !== false && undo === undefined
    ? error
    : new CodedFailure({ ...error.failure, code: 'ACTIVITY_OUTCOME_UNKNOWN', retryable: false })
}

function noJson(name: string, { path, problem }: NotJson): CodedFailure {
  const message = `the result of the step '${name}' is no JSON at ${path}: ${problem}`
  return new CodedFailure({ code: 'AGENT_FAILED', message, retryable: false, at: {} })
}

/** What is to be recorded of an activity that has ended. */
export function outcomeOf(
  { branch, agent, turn, attempt }: Attempt,
  { key, name, delivered, options, timeouts }: CalledStep,
  result: ActivityOutcome,
): Command {
  const usage = options.usage?.(result)
  // Most are of this kind: made in one piece, because that is a third of the work while the code is cold.
  if (usage === undefined && timeouts.length === 0 && 'value' in result && result.value !== undefined)
    return { type: 'activity.complete', branch, agent, turn, attempt, key, name, delivered, value: result.value }
  const speaker: ActivitySpeaker = { branch, agent, turn, attempt, key, name, delivered }
  const more = { ...(usage !== undefined && { usage }), ...(timeouts.length > 0 && { timeouts }) }
  if ('error' in result) return { type: 'activity.fail', ...speaker, error: result.error, ...more }
  return { type: 'activity.complete', ...speaker, ...(result.value !== undefined && { value: result.value }), ...more }
}

/** A success of an earlier attempt is recorded again for this one; what it used has been counted. */
export function givenBack(speaker: ActivitySpeaker, { value, usage }: ActivityRecord & { readonly status: 'completed' }): Command {
  const used = usage === undefined ? {} : { usage: { calls: usage.calls, inputTokens: 0, outputTokens: 0, counted: true } as const }
  return { type: 'activity.complete', ...speaker, ...(value !== undefined && { value }), ...used }
}

/** The body has asked for something else than its journal has. */
export function nondeterministic(message: string): CodedFailure {
  return new CodedFailure({
    code: 'NONDETERMINISTIC_TURN',
    message: `the turn did not ask for what its journal has: ${message}`,
    retryable: false,
    at: {},
  })
}

/** Why what must not be repeated is not. */
export function unknownOutcome({ name }: ActivitySpeaker, earlier: ActivityRecord | undefined): Failure {
  const why =
    earlier?.status === 'completed'
      ? 'an earlier attempt has completed one of several of that name, and nobody knows which; give each a key of its own'
      : 'it was started before, and nobody knows whether it completed'
  return {
    code: 'ACTIVITY_OUTCOME_UNKNOWN',
    message: `the step '${name}' must not be repeated: ${why}`,
    retryable: false,
    at: {},
  }
}

/** A recorded failure as the body catches it: the same on every execution. */
export function errorOf(failure: Failure): Error {
  const { code, message, retryable, data } = failure
  const fields: { readonly code?: Code } = typeof data === 'object' && data !== null ? data : {}
  // What we say of a step and is final stays so for the turn that does not catch it.
  if (code !== 'AGENT_FAILED' || (!retryable && fields.code === undefined)) return new CodedFailure(failure)
  // Of those with a code of their own, only errors of ours are never tried again.
  const error = retryable || fields.code === undefined ? new Error(message) : new TuttiError(fields.code, message)
  return Object.assign(error, fields)
}
