import type { Exploration } from './explore/exploration.js'

/** What a matcher of vitest gives. */
interface Matched {
  readonly pass: boolean
  readonly message: () => string
}

/** `expect(await explore(definition)).toBeOrderIndependent()`: fails with the whole finding. For `expect.extend(matchers)`. */
export function toBeOrderIndependent(received: unknown): Matched {
  const found = received as Partial<Exploration> | null
  if (typeof found !== 'object' || found === null || typeof found.text !== 'function' || typeof found.independent !== 'boolean')
    throw new TypeError('toBeOrderIndependent takes what explore(definition) gives: await it first')
  const { independent, text } = found
  return {
    pass: independent,
    message: () => `the outcome was expected ${independent ? 'to depend' : 'not to depend'} on the order\n\n${text()}`,
  }
}

/** The matchers of this package, as `expect.extend` takes them. */
export const matchers: { readonly toBeOrderIndependent: typeof toBeOrderIndependent } = Object.freeze({ toBeOrderIndependent })

/** What the matchers add to `expect`. */
export interface OrderMatchers<R = unknown> {
  toBeOrderIndependent(): R
}
