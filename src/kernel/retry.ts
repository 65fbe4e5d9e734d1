import type { RetryShape } from './shape.js'

/** A number in [0, 1) that depends on its seed alone. */
export function seededUnit(seed: string): number {
  let hash = 0x9e3779b9
  for (let i = 0; i < seed.length; i++) {
    hash = Math.imul(hash ^ seed.charCodeAt(i), 0x85ebca6b)
    hash ^= hash >>> 13
  }
  hash = Math.imul(hash ^ (hash >>> 16), 0xc2b2ae35)
  return ((hash ^ (hash >>> 15)) >>> 0) / 2 ** 32
}

/** How long to wait before the next attempt: exponential, bounded, with jitter of up to a half that is seeded and so the same on replay. */
export function backoffMs(retry: RetryShape, failures: number, seed: string): number {
  const full = Math.min(retry.maxBackoffMs, retry.backoffMs * retry.factor ** (failures - 1))
  return Math.round(full * (0.5 + seededUnit(seed) / 2))
}
