import { topology } from '../../src/define/topology.js'
import { TuttiError } from '../../src/define/tutti-error.js'
import type { Problem } from '../../src/kernel/problem.js'

/** The problems with which a definition is refused; none if it is accepted. */
export function problemsOf(define: () => unknown): readonly Problem[] {
  try {
    define()
    return []
  } catch (error) {
    if (TuttiError.is(error) && error.problems !== undefined) return error.problems
    throw error
  }
}

/** As `CODE where`, which is what tests compare. */
export function codesOf(define: () => unknown): string[] {
  return problemsOf(define).map(({ code, where }) => `${code} ${where}`)
}

/** `topology` without its types, for what must not compile and is written all the same. */
export const loosely = topology as unknown as (def: Record<string, unknown>) => ReturnType<typeof topology>

/** Agents that do nothing, by name. */
export function idle(...names: readonly string[]): Record<string, () => never> {
  const act = (): never => {
    throw new Error('nobody runs this agent')
  }
  return Object.fromEntries(names.map((name) => [name, act]))
}
