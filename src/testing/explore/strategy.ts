import { commutingIn } from './commuting.js'
import { deviating } from './deviating.js'
import { exhaustive } from './exhaustive.js'
import { faulting } from './faulting.js'
import { following } from './following.js'
import type { Search } from './search.js'
import { hurriesMax } from './stage.js'
import type { PctBound } from './walking.js'
import { walkAtRandom, walkByCoverage, walkByPriority } from './walking.js'

/** How schedules are chosen. `auto`: every order if there are few enough, else deviations, priorities and coverage. */
export type Strategy = 'auto' | 'exhaustive' | 'deviations' | 'pct' | 'coverage' | 'random'

/** What a strategy came to. */
export interface Done {
  readonly exhaustive: boolean
  readonly bounds: readonly PctBound[]
  /** What it left out. */
  readonly left: readonly string[]
}

/** Carries a strategy out, first-come order first, until something is found or the budget is spent. */
export async function carriedOut(search: Search, strategy: Strategy, seed: string, all: boolean): Promise<Done> {
  await search.play(following([]))
  const orders = await ordered(search, strategy, seed, all)
  const left = [...(await faulting(search)), ...(search.isHurried ? [hurried] : [])]
  return { ...orders, exhaustive: orders.exhaustive && left.length === 0, left: [...orders.left, ...left] }
}

const hurried = `time that passes more than ${hurriesMax} times in a schedule while something else can happen`

/** While faults are asked for, half of the budget is theirs. */
const shareOf = (search: Search, part: number): number =>
  Math.ceil(search.budget * part * (search.setting.faults.some((fault) => fault !== 'timeout') ? 0.5 : 1))

async function ordered(search: Search, strategy: Strategy, seed: string, all: boolean): Promise<Done> {
  const budget = shareOf(search, 1)
  switch (strategy) {
    case 'auto':
      return automatic(search, seed, all)
    case 'exhaustive':
      return everyOrder(search, budget)
    case 'deviations': {
      const complete = await deviating(search, [], 2, budget)
      return left(
        complete
          ? 'orders with more than two deviations from first-come'
          : 'most orders with two deviations from first-come, and all with more',
      )
    }
    case 'pct': {
      const two = await walkByPriority(search, seed, 2, Math.ceil(budget / 2))
      const three = await walkByPriority(search, seed, 3, budget)
      return { ...left(sampled), bounds: boundsOf(two, three) }
    }
    case 'coverage': {
      const states = await walkByCoverage(search, seed, budget)
      return left(`${sampled}; ${states} different states were seen`)
    }
    case 'random':
      await walkAtRandom(search, seed, budget)
      return left(sampled)
  }
}

const boundsOf = (...bounds: readonly (PctBound | null)[]): PctBound[] => bounds.flatMap((bound) => bound ?? [])
const sampled = 'every order: these were drawn by chance'
const left = (...what: readonly string[]): Done => ({ exhaustive: false, bounds: [], left: what })

async function everyOrder(search: Search, until: number): Promise<Done> {
  const complete = await exhaustive(search, commutingIn, until)
  return complete ? { exhaustive: true, bounds: [], left: [] } : left('every order: there are more than were played')
}

/** A bug that one deviation shows is found first; then every order, if that fits half of the budget; else what finds most in the rest. */
async function automatic(search: Search, seed: string, all: boolean): Promise<Done> {
  if (all) return everyOrder(search, shareOf(search, 1))
  const singles = await deviating(search, [], 1, shareOf(search, 0.25))
  const tried = await everyOrder(search, shareOf(search, 0.6))
  if (tried.exhaustive) return tried
  await deviating(search, [], 2, shareOf(search, 0.7))
  const two = await walkByPriority(search, seed, 2, shareOf(search, 0.8))
  const three = await walkByPriority(search, seed, 3, shareOf(search, 0.9))
  const states = await walkByCoverage(search, seed, shareOf(search, 1))
  const played = singles
    ? 'all single deviations from first-come order were played'
    : 'not even all single deviations from first-come order were played'
  return {
    exhaustive: false,
    bounds: boundsOf(two, three),
    left: [`every order: ${played}, then a part of the others (${states} different states seen)`],
  }
}
