import { differenceOf, matters } from './compare.js'
import { inOrder } from './following.js'
import type { Happening } from './happening.js'
import type { Divergence, Search, Seen } from './search.js'

/** The two happenings whose order decides, and the nearest two schedules that show it. */
export interface Swap {
  /** As it was in `a`: the first before the second. `together`: in one of the two they were let go in one go, in the other one had come to rest first. */
  readonly how: 'swapped' | 'together'
  readonly first: Happening
  readonly second: Happening
  readonly a: Seen
  readonly b: Seen
}

/** Finds what must change places: goes from one order to the other by changing neighbours, and halves the way to where it flips. */
export async function swapOf(search: Search, { a, b }: Divergence): Promise<Swap | null> {
  // Where something went wrong, that is the reason.
  if (b.played.taken.some(({ fault }) => fault !== null)) return null
  const one = singlesOf(a)
  const other = singlesOf(b)
  const swaps = swapsBetween(
    one.map(({ id }) => id),
    other.map(({ id }) => id),
  )
  const differs = (seen: Seen): boolean => seen.outcome.choices !== a.outcome.choices || matters(differenceOf(a.outcome, seen.outcome))
  const playedAfter = async (count: number): Promise<Seen | null> => search.look(inOrder(orderAfter(one, swaps, count)))
  let low = { at: 0, seen: await playedAfter(0) }
  let high = { at: swaps.length, seen: await playedAfter(swaps.length) }
  if (swaps.length === 0 || low.seen === null || high.seen === null || differs(low.seen) || !differs(high.seen)) return apart(a, b)
  while (high.at - low.at > 1) {
    const at = (low.at + high.at) >> 1
    const seen = await playedAfter(at)
    if (seen !== null && differs(seen)) high = { at, seen }
    else low = { at, seen: seen ?? low.seen }
  }
  const [first, second] = swaps[low.at] ?? []
  const named = (id: string | undefined): Happening | undefined => one.find((happening) => happening.id === id)
  const [x, y] = [named(first), named(second)]
  if (x === undefined || y === undefined || low.seen === null || high.seen === null) return apart(a, b)
  return { how: 'swapped', first: x, second: y, a: low.seen, b: high.seen }
}

const singlesOf = (seen: Seen): Happening[] => seen.played.taken.flatMap(({ option }) => [...option])

/** The swaps of neighbours that lead from one order to the other, over what both have. */
function swapsBetween(from: readonly string[], to: readonly string[]): (readonly [string, string])[] {
  const place = new Map(to.map((id, index) => [id, index]))
  const order = from.filter((id) => place.has(id))
  const swaps: (readonly [string, string])[] = []
  const placeOf = (id: string | undefined): number => (id === undefined ? -1 : (place.get(id) ?? -1))
  for (let end = 1; end < order.length; end++)
    for (let at = end; at > 0 && placeOf(order[at - 1]) > placeOf(order[at]); at--) {
      const [x, y] = [order[at - 1], order[at]]
      if (x === undefined || y === undefined) break
      swaps.push([x, y])
      order[at - 1] = y
      order[at] = x
    }
  return swaps
}

function orderAfter(from: readonly Happening[], swaps: readonly (readonly [string, string])[], count: number): string[] {
  const order = from.map(({ id }) => id)
  for (const [x, y] of swaps.slice(0, count)) {
    const [atX, atY] = [order.indexOf(x), order.indexOf(y)]
    if (atX < 0 || atY < 0) continue
    order.splice(atY, 1)
    order.splice(order.indexOf(x), 0, y)
  }
  return order
}

/** Where it is not the order but that some were let go in one go, or the first place at which the two differ. */
const apart = (a: Seen, b: Seen): Swap | null => together(a, b, b, a) ?? together(a, b, a, b) ?? firstDifference(a, b)

/** Two that one of them lets go in one go, and the other one after the other. */
function together(a: Seen, b: Seen, inOne: Seen, singly: Seen): Swap | null {
  const alone = singly.played.taken.flatMap(({ option }) => (option.length === 1 ? option : []))
  for (const { option } of inOne.played.taken) {
    const [first, second] = alone.filter(({ id }) => option.length > 1 && option.some((other) => other.id === id))
    if (first !== undefined && second !== undefined) return { how: 'together', first, second, a, b }
  }
  return null
}

function firstDifference(a: Seen, b: Seen): Swap | null {
  const one = a.played.taken
  const other = b.played.taken
  for (let at = 0; at < one.length && at < other.length; at++) {
    const mine = one[at]?.option ?? []
    const theirs = other[at]?.option ?? []
    if (mine.length === theirs.length && mine.every(({ id }, index) => id === theirs[index]?.id)) continue
    const alone = mine.length < theirs.length ? mine : theirs
    const [first] = alone
    const together = mine.length < theirs.length ? theirs : mine
    const second = together.find(({ id }) => id !== first?.id)
    if (first === undefined || second === undefined) return null
    return { how: mine.length === theirs.length ? 'swapped' : 'together', first, second, a, b }
  }
  return null
}
