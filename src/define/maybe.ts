/** What user code may give at once or later. */
export type Maybe<T> = T | Promise<T>

/** Whether a value is still to come: also one that only behaves like a promise, as queries of databases do. */
export const isLater = <T>(value: Maybe<T>): value is Promise<T> =>
  typeof (value as { then?: unknown } | null | undefined)?.then === 'function'

/**
 * Goes on with a value: at once if it is there, else when it comes. Like an async function, but one that waits only if it must: what
 * happens ten thousand times in a fan-out need not make a promise for each thing that is known already.
 */
export function andThen<T, U>(value: Maybe<T>, next: (value: T) => Maybe<U>): Maybe<U> {
  return isLater(value) ? Promise.resolve(value).then(next) : next(value)
}

/** Does something that gives its result at once or later, and tells one of two what came of it. */
export function settle<T>(work: () => Maybe<T>, done: (value: T) => void, failed: (thrown: unknown) => void): void {
  let value: Maybe<T>
  let later: Promise<T> | null
  try {
    value = work()
    later = isLater(value) ? Promise.resolve(value) : null
  } catch (thrown) {
    return failed(thrown)
  }
  if (later === null) done(value as T)
  else later.then(done, failed)
}
