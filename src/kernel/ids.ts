/** Ids derive from what is there: a child from its parent and an ordinal, a barrier or an ask from its branch and a number. */

export const rootBarrier = '#'

/** `width`: with how many the root began. One that comes later must not be taken for a child of the only one there was. */
export function rootBranch(ordinal: number, width: number): string {
  if (ordinal >= width) return `r+${ordinal}`
  return width === 1 ? 'r' : `r.${ordinal}`
}

export const childBranch = (parent: string, ordinal: number): string => `${parent}.${ordinal}`
export const forkBarrier = (branch: string, number: number): string => `${branch}#${number}`
export const askOf = (branch: string, number: number): string => `${branch}~${number}`
export const backoffTimer = (branch: string): string => `${branch}/backoff`
export const sleepTimer = (branch: string, key: string): string => `${branch}/${key}`
export const undoTimer = (entry: string): string => `${entry}/undo`
export const attemptId = (branch: string, turn: number, attempt: number): string => `${branch}/${turn}/${attempt}`

/** The timer of the whole run. */
export const runTimer = 'run'

const partsOf = (id: string): number[] => (id.match(/\d+/g) ?? []).map(Number)

/** Ids in the order of their parts as numbers; a parent comes before its children. */
export function compareIds(a: string, b: string): number {
  const left = partsOf(a)
  const right = partsOf(b)
  const shared = Math.min(left.length, right.length)
  for (let i = 0; i < shared; i++) {
    const difference = (left[i] ?? 0) - (right[i] ?? 0)
    if (difference !== 0) return difference
  }
  return left.length - right.length
}

/** A copy in the order of ids. */
export function byId<T>(list: Iterable<T>, id: (item: T) => string): T[] {
  return [...list].sort((a, b) => compareIds(id(a), id(b)))
}

const depthOf = (id: string): number => id.split('.').length

/** A copy in the order of barriers, the innermost first. */
export function innermostFirst<T>(list: Iterable<T>, barrier: (item: T) => string): T[] {
  return [...list].sort((a, b) => depthOf(barrier(b)) - depthOf(barrier(a)) || compareIds(barrier(b), barrier(a)))
}

/** Run ids: `[A-Za-z0-9_-]{1,64}`; those of child runs add `:step`, `:item` and `@try`. */
export const runIdPattern: RegExp = /^[A-Za-z0-9_-]{1,64}$/
