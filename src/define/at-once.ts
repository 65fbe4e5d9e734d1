import type { Maybe } from './maybe.js'
import { isLater } from './maybe.js'

/** Whatever becomes of a promise that nobody waits for: that it is rejected must not count as unhandled. */
export function unheard(later: PromiseLike<unknown>): void {
  Promise.resolve(later).catch(() => {})
}

/**
 * A function that is called where the kernel decides, which can't wait. A promise is refused.
 */
export function atOnce<A extends readonly unknown[], R>(call: (...given: A) => Maybe<R>, what: string): (...given: A) => R {
  return (...given) => {
    const made = call(...given)
    if (!isLater(made)) return made
    unheard(made)
    throw new TypeError(`${what} gave a promise, which can't be waited for there: do what takes time in a turn or a step before it`)
  }
}
