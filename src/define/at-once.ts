import type { Maybe } from './maybe.js'
import { isLater } from './maybe.js'

/**
 * A function that is called where the kernel decides, which can't wait. A promise is refused; and that it may be rejected later must not
 * count as unhandled.
 */
export function atOnce<A extends readonly unknown[], R>(call: (...given: A) => Maybe<R>, what: string): (...given: A) => R {
  return (...given) => {
    const made = call(...given)
    if (!isLater(made)) return made
    Promise.resolve(made).catch(() => {})
    throw new TypeError(`${what} gave a promise, which can't be waited for there: do what takes time in a turn or a step before it`)
  }
}
