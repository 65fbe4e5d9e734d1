import type { Failure } from '../kernel/failure.js'
import type { RetryShape } from '../kernel/shape.js'
import { atOnce } from './at-once.js'

/** How an attempt that threw or timed out is repeated; `attempts` counts the first one. */
export interface Retry {
  attempts?: number
  backoffMs?: number
  factor?: number
  maxBackoffMs?: number
  if?: (failure: Failure) => boolean
}

/** Whether what failed is to be tried again, by its `if`. If that can't say so at once, the failure that it was asked about stands. */
export function wantsRetry(says: Retry['if'], failure: Failure): boolean {
  try {
    return (says && atOnce(says, '`retry.if`')(failure)) ?? true
  } catch {
    return false
  }
}

/** Of what is code: it is tried once. */
const once: RetryShape = Object.freeze({ attempts: 1, backoffMs: 0, factor: 2, maxBackoffMs: 30_000 })

/** The kernel's part of a retry, every default filled in; `if` stays with the code. */
export function retryShape(retry: Retry | undefined, defaults: RetryShape = once): RetryShape {
  return Object.freeze({
    attempts: retry?.attempts ?? defaults.attempts,
    backoffMs: retry?.backoffMs ?? defaults.backoffMs,
    factor: retry?.factor ?? defaults.factor,
    maxBackoffMs: retry?.maxBackoffMs ?? defaults.maxBackoffMs,
  })
}
