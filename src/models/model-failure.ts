import { CodedFailure, failureOf } from '../define/failure-of.js'
import type { LanguageModel } from '../define/language-model.js'
import { TuttiError } from '../define/tutti-error.js'
import type { Failure } from '../kernel/failure.js'
import { CutShort } from './model-answer.js'
import { secretsSentBy, withoutKeys } from './secrets.js'

/** What errors of providers, of `fetch` and of sockets have in common, as far as it is looked at. */
interface AnyError {
  readonly name?: unknown
  readonly message?: unknown
  readonly code?: unknown
  readonly cause?: unknown
  readonly statusCode?: unknown
  readonly isRetryable?: unknown
  readonly responseHeaders?: unknown
  /** Of one that a cassette plays: how often the call was tried when it was recorded. */
  readonly recordedAttempts?: unknown
}

const networkCodes = /^(?:ECONNRESET|ECONNREFUSED|ECONNABORTED|EPIPE|ETIMEDOUT|EAI_AGAIN|ENETUNREACH|EHOSTUNREACH|UND_ERR_\w+)$/
const networkWords = /fetch failed|terminated|network|socket hang up|other side closed|premature close/i
/** What the AI SDK calls an answer that it can't read: it breaks off, or is the word of a server in between. */
const unreadable = /^AI_(?:JSONParseError|TypeValidationError|EmptyResponseBodyError)$/
/** The same of one that could be read and has nothing in it that is asked for: said with no status, and only of an answer. */
const unfit = 'AI_InvalidResponseDataError'
/** How deep the causes of an error are looked at. */
const causesMax = 5
/** Nobody waits longer than this for a server that asks for it. */
const waitMaxMs = 3_600_000

/** Who was called: a model, by its name; or none, because an agent has none. */
export interface Called {
  readonly name: string
  readonly model: LanguageModel | null
}

/** A failed call of a model as data: `retryable` says whether its error is of a kind that passes. Headers and bodies may hold secrets: they stay out, and so does what a server repeats of them. */
export function modelFailure(thrown: unknown, { name, model }: Called, attempt: number, now: number): CodedFailure {
  const errors = causesOf(thrown)
  const { message, status } = toldOf(thrown, model)
  const retryAfterMs = waitOf(errors, now)
  return new CodedFailure({
    code: 'MODEL_FAILED',
    message: `${name}: ${message}`,
    retryable: passes(errors),
    data: {
      model: name,
      attempts: typeof errors[0]?.recordedAttempts === 'number' ? errors[0].recordedAttempts : attempt,
      ...(thrown instanceof TuttiError && { code: thrown.code, hint: thrown.hint }),
      ...(status !== undefined && { status }),
      ...(retryAfterMs !== undefined && { retryAfterMs }),
    },
    at: {},
  })
}

/** What is told of an error of a model: its words and its status. */
export function toldOf(thrown: unknown, model: LanguageModel | null): { readonly message: string; readonly status?: number } {
  const errors = causesOf(thrown)
  const status = statusIn(errors)
  const message = withoutKeys(wordsOf(thrown, errors), process.env, secretsSentBy(model)).slice(0, 1_000)
  return { message, ...(status !== undefined && { status }) }
}

/** Whether the server had said yes to a call that failed: its answer could not be read to the end. */
export function wasTaken(thrown: unknown): boolean {
  const errors = causesOf(thrown)
  return isFine(statusIn(errors)) || isUnfit(errors)
}

const isUnfit = (errors: readonly AnyError[]): boolean => errors.some(({ name }) => name === unfit)

const isFine = (status: number | undefined): boolean => status !== undefined && status >= 200 && status < 300

/** How long the server wants to be left alone, if it said so. */
export function retryAfterOf(failure: Failure): number | undefined {
  const wait = (failure.data as { readonly retryAfterMs?: unknown } | undefined)?.retryAfterMs
  return typeof wait === 'number' ? wait : undefined
}

/** How often the model was called before it failed for good. */
export function attemptsOf(failure: Failure): number {
  const attempts = (failure.data as { readonly attempts?: unknown } | undefined)?.attempts
  return typeof attempts === 'number' ? attempts : 1
}

/** Where the AI SDK says only that an answer could not be read, its cause says why. */
function wordsOf(thrown: unknown, [, cause]: readonly AnyError[]): string {
  const { message } = failureOf(thrown)
  return /^(?:Failed to process \w+|Invalid JSON) response$/.test(message) && cause !== undefined
    ? `${message}: ${failureOf(cause).message}`
    : message
}

function causesOf(thrown: unknown): AnyError[] {
  const found: AnyError[] = []
  for (let next = thrown; typeof next === 'object' && next !== null && found.length < causesMax; next = (next as AnyError).cause)
    found.push(next)
  return found
}

const statusIn = (errors: readonly AnyError[]): number | undefined =>
  errors.map(({ statusCode }) => statusCode).find((code) => typeof code === 'number')

/** Whether the same call may well succeed a moment later. */
function passes(errors: readonly AnyError[]): boolean {
  // An answer that was cut off is reported with the status of its beginning, which was fine.
  if (errors.some(isNetwork)) return true
  const status = statusIn(errors)
  // As in a stream: whether somebody listens decides nothing.
  if (isFine(status) && errors.some(({ name }) => typeof name === 'string' && unreadable.test(name))) return true
  if (isUnfit(errors)) return true
  // A stream that begins with an error has this status with Anthropic, and nearly all of them are said not to pass.
  if (status !== undefined && status >= 500) return true
  if (errors[0]?.isRetryable === false) return false
  if (status !== undefined) return status === 408 || status === 409 || status === 429
  return errors.some(({ isRetryable }) => isRetryable === true)
}

function isNetwork(error: AnyError): boolean {
  // Whose own time for the call was over.
  if (error instanceof CutShort || error.name === 'TimeoutError') return true
  if (typeof error.code === 'string' && networkCodes.test(error.code)) return true
  return error instanceof TypeError && typeof error.message === 'string' && networkWords.test(error.message)
}

function waitOf(errors: readonly AnyError[], now: number): number | undefined {
  for (const { responseHeaders } of errors) {
    if (typeof responseHeaders !== 'object' || responseHeaders === null) continue
    const headers = new Map(Object.entries(responseHeaders).map(([key, value]) => [key.toLowerCase(), String(value)]))
    const ms = headers.get('retry-after-ms')
    const seconds = headers.get('retry-after')
    const wait = ms !== undefined ? Number(ms) : seconds === undefined ? Number.NaN : secondsOrDate(seconds, now)
    if (Number.isFinite(wait)) return Math.min(waitMaxMs, Math.max(0, Math.round(wait)))
  }
  return undefined
}

const secondsOrDate = (text: string, now: number): number =>
  /^\s*\d+(?:\.\d+)?\s*$/.test(text) ? Number(text) * 1_000 : Date.parse(text) - now
