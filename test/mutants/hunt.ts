import type { reportOf } from '../../src/inspect/report.js'
import { sampleGraph, undoGraph } from '../graph/random.js'
import { definitionOf, playBoth as playGraph } from '../graph/side-by-side.js'
import type { Sample } from '../reference/random.js'
import { Random, sample, undoSample } from '../reference/random.js'
import type { Decide } from '../reference/side-by-side.js'
import { playBoth } from '../reference/side-by-side.js'
import type { Orders } from './orders.js'

/** After how many schedules a fault was seen; null if it was not. */
export type Hunted = number | null

const ordersEach = 8

/** Plays random topologies on a kernel and on the reference of the rules until they differ. */
export const huntTopologies = (decides: Decide, orders: Orders, budget: number): Hunted => hunt(sample, decides, orders, budget)

/** The same with topologies of which much is undone. */
export const huntUndoing = (decides: Decide, orders: Orders, budget: number): Hunted => hunt(undoSample, decides, orders, budget)

function hunt(sampler: (seed: number) => Sample, decides: Decide, orders: Orders, budget: number): Hunted {
  let schedules = 0
  for (let seed = 1; ; seed++) {
    const game = sampler(seed)
    const random = new Random(`mutants ${seed}`)
    for (let nth = 0; nth < ordersEach; nth++) {
      if (schedules++ >= budget) return null
      try {
        if (playBoth(game, orders(random, nth), decides) !== null) return schedules
      } catch {
        return schedules
      }
    }
  }
}

/** Plays random graphs, at random, on a kernel and on the reference of the rules until they differ, or two orders of equal choices do. */
export function huntGraphs(decides: Decide, reports: typeof reportOf, budget: number): Hunted {
  let schedules = 0
  for (let seed = 1; ; seed++) {
    const game = seed % 2 === 0 ? undoGraph(seed) : sampleGraph(seed)
    const internals = definitionOf(game.graph, game.conditional)
    const facts = new Map<string, string>()
    for (let order = 0; order < ordersEach; order++) {
      if (schedules++ >= budget) return null
      try {
        const played = playGraph(game, internals, order, { decides, reports })
        const key = `${played.status === 'cancelled'} ${played.choices}`
        if ((facts.get(key) ?? played.facts) !== played.facts) return schedules
        facts.set(key, played.facts)
      } catch {
        return schedules
      }
    }
  }
}
