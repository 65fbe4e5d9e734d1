import type { Happening } from './happening.js'
import { idOf } from './happening.js'
import { following } from './following.js'
import { Random } from './random.js'
import type { Deviation, Schedule } from './schedule.js'
import type { Chooser, Move, Point } from './scheduler.js'
import type { Search } from './search.js'
import { faultNumbers } from './setting.js'

/** How often a walk lets something go wrong, if anything may. */
const faultChance = 0.03

/** A uniform walk. */
export async function walkAtRandom(search: Search, seed: string, until: number): Promise<void> {
  for (let index = 0; search.goesOn && search.schedules < until; index++) {
    const random = new Random(`${seed} walk ${index}`)
    await search.play(faulty(search, random, ({ count }) => ({ take: random.below(count) })))
  }
}

/** Lets something go wrong now and then. */
function faulty(search: Search, random: Random, choose: (point: Point) => Move): Chooser {
  const faults = faultNumbers(search.setting.faults)
  if (faults.length === 0) return choose
  return (point) => {
    const move = choose(point)
    return random.next() < faultChance ? { ...move, fault: random.pick(faults) } : move
  }
}

/**
 * Probabilistic concurrency testing: every lane has a random priority, the highest goes first, and at `depth - 1` random steps the lane
 * that goes falls to the bottom. A bug that needs `depth` things in order is found by one walk with a chance of at least
 * 1 / (lanes × steps^(depth - 1)).
 */
export async function walkByPriority(search: Search, seed: string, depth: number, until: number): Promise<PctBound | null> {
  let steps = Math.max(1, search.longest)
  let lanes = 1
  let walks = 0
  for (; search.goesOn && search.schedules < until; walks++) {
    const walk = prioritised(new Random(`${seed} pct ${depth} ${walks}`), depth, steps)
    await search.play(faulty(search, walk.random, walk.choose))
    steps = Math.max(steps, search.longest)
    lanes = Math.max(lanes, walk.lanes.size)
  }
  return walks === 0 ? null : { depth, walks, lanes, steps, chance: 1 / (lanes * steps ** (depth - 1)) }
}

export interface PctBound {
  readonly depth: number
  readonly walks: number
  readonly lanes: number
  readonly steps: number
  /** With which one walk finds a bug of this depth, at least. */
  readonly chance: number
}

interface PriorityWalk {
  readonly random: Random
  readonly lanes: Map<string, number>
  readonly choose: (point: Point) => Move
}

function prioritised(random: Random, depth: number, steps: number): PriorityWalk {
  const lanes = new Map<string, number>()
  const changes = new Map<number, number>()
  for (let index = 1; index < depth; index++) changes.set(random.below(steps), -index)
  const priorityOf = ({ lane }: Happening): number => {
    const known = lanes.get(lane)
    if (known !== undefined) return known
    const made = random.next()
    lanes.set(lane, made)
    return made
  }
  const choose = (point: Point): Move => {
    let take = 0
    let best: Happening | null = null
    for (let which = 0; which < point.count; which++) {
      const [only, more] = point.option(which)
      if (only === undefined || more !== undefined) continue
      if (best === null || priorityOf(only) > priorityOf(best)) {
        best = only
        take = which
      }
    }
    const change = changes.get(point.step)
    if (change !== undefined && best !== null) lanes.set(best.lane, change)
    return { take }
  }
  return { random, lanes, choose }
}

/** Guided by coverage: schedules that came to states nobody had come to are varied further. */
export async function walkByCoverage(search: Search, seed: string, until: number): Promise<number> {
  const random = new Random(`${seed} coverage`)
  const states = new Set<string>()
  const worth: Schedule[] = [[]]
  while (search.goesOn && search.schedules < until) {
    const base = random.pick(worth)
    const before = states.size
    const played = await search.play(visiting(following(varied(base, random, search)), states))
    if (states.size > before) worth.push(played.schedule)
  }
  return states.size
}

function visiting(choose: Chooser, states: Set<string>): Chooser {
  return (point) => {
    const waiting: string[] = []
    for (let which = 0; which < point.count; which++) waiting.push(idOf(point.option(which)))
    states.add(waiting.sort().join(','))
    return choose(point)
  }
}

/** One deviation more, one less, or one changed. */
function varied(base: Schedule, random: Random, search: Search): Schedule {
  const kept = base.filter(() => random.next() > 0.15)
  const faults = faultNumbers(search.setting.faults)
  const made: Deviation = {
    at: random.below(Math.max(1, search.longest)),
    ...(faults.length > 0 && random.next() < 0.2
      ? { kind: 'fault', which: random.pick(faults) }
      : { kind: random.next() < 0.3 ? 'hold' : 'take', which: 1 + random.below(6) }),
  }
  return [...kept, made].sort((a, b) => a.at - b.at)
}
