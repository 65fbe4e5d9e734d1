import type { Failure } from '../kernel/failure.js'
import type { RetryShape } from '../kernel/shape.js'

/** How an attempt that threw or timed out is repeated; `attempts` counts the first one. */
export interface Retry {
  attempts?: number
  backoffMs?: number
  factor?: number
  maxBackoffMs?: number
  if?: (failure: Failure) => boolean
}

/** The kernel's part of a retry, every default filled in; `if` stays with the code. */
export function retryShape(retry: Retry | undefined): RetryShape {
  return Object.freeze({
    attempts: retry?.attempts ?? 1,
    backoffMs: retry?.backoffMs ?? 0,
    factor: retry?.factor ?? 2,
    maxBackoffMs: retry?.maxBackoffMs ?? 30_000,
  })
}
