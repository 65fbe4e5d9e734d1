import type { Chooser, Move, Point, Situation } from './scheduler.js'
import type { Option } from './happening.js'
import { idOf } from './happening.js'
import type { Search } from './search.js'

/** Whether two options can change places at a point, with nothing to tell which was first. */
export type Commutes = (a: Option, b: Option) => boolean

export type CommutesIn = (situation: Situation) => Commutes

interface Node {
  readonly options: readonly Option[]
  /** What need not be tried here: the same was explored in another order. */
  readonly asleep: Map<string, Option>
  readonly commutes: Commutes
  chosen: number
}

/**
 * How many schedules may be given up for each that may be played. Sleep sets see that an order is redundant only once it is under way, and
 * of a wide fork almost all are: without an end to them no budget would be one.
 */
const givenUpPerPlayed = 8

/**
 * Every order there is, depth first. With `commutes`, orders that differ only by what commutes are played once (sleep sets); without it
 * all are. True if nothing is left.
 */
export async function exhaustive(search: Search, commutesIn: CommutesIn | null, until: number = search.budget): Promise<boolean> {
  const stack: Node[] = []
  const givenUpMax = search.givenUp + until * givenUpPerPlayed
  for (;;) {
    if (!search.goesOn || search.schedules >= until || search.givenUp >= givenUpMax) return false
    await search.play(descending(stack, commutesIn))
    if (!backtrack(stack)) return true
  }
}

function descending(stack: Node[], commutesIn: CommutesIn | null): Chooser {
  let depth = 0
  return (point) => {
    const known = stack[depth]
    if (known === undefined) {
      const made = nodeAt(point, stack.at(-1), commutesIn)
      const first = awake(made, 0)
      if (first === null) return null
      made.chosen = first
      stack.push(made)
    }
    return { take: stack[depth++]?.chosen ?? 0 } satisfies Move
  }
}

function nodeAt(point: Point, parent: Node | undefined, commutesIn: CommutesIn | null): Node {
  const options = Array.from({ length: point.count }, (_, which) => point.option(which))
  const asleep = new Map<string, Option>()
  const chosen = parent?.options[parent.chosen]
  if (parent !== undefined && chosen !== undefined)
    for (const [id, option] of parent.asleep) if (parent.commutes(option, chosen)) asleep.set(id, option)
  return { options, asleep, commutes: commutesIn?.(point.situation) ?? (() => false), chosen: 0 }
}

/** The next option that is not asleep. */
function awake({ options, asleep }: Node, from: number): number | null {
  for (let which = from; which < options.length; which++) {
    const option = options[which]
    if (option !== undefined && !asleep.has(idOf(option))) return which
  }
  return null
}

/** Goes back to the last point where something is left to try. */
function backtrack(stack: Node[]): boolean {
  for (let node = stack.at(-1); node !== undefined; node = stack.at(-1)) {
    const tried = node.options[node.chosen]
    if (tried !== undefined) node.asleep.set(idOf(tried), tried)
    const next = awake(node, node.chosen + 1)
    if (next !== null) {
      node.chosen = next
      return true
    }
    stack.pop()
  }
  return false
}
