/** Many random graphs, each in many orders, on the reference and on the kernel. */
import type { GraphSample } from './random.js'
import { sampleGraph } from './random.js'
import type { Played } from './side-by-side.js'
import { definitionOf, Departure, playBoth } from './side-by-side.js'

export interface Found {
  graphs: number
  games: number
  moves: number
  /** Games with the choices of one that was played before, and so compared with it. */
  compared: number
  readonly statuses: Record<string, number>
  readonly departures: string[]
}

export interface Search {
  readonly from: number
  readonly graphs: number
  readonly orders: number
  readonly departuresMax?: number
  readonly sampler?: (seed: number) => GraphSample
}

export function search(options: Search): Found {
  const found: Found = { graphs: 0, games: 0, moves: 0, compared: 0, statuses: {}, departures: [] }
  for (let seed = options.from; seed < options.from + options.graphs; seed++) {
    found.graphs += 1
    explore((options.sampler ?? sampleGraph)(seed), options.orders, found)
    if (found.departures.length >= (options.departuresMax ?? 3)) break
  }
  return found
}

function explore(sample: GraphSample, orders: number, found: Found): void {
  const { seed } = sample
  const internals = definitionOf(sample.graph, sample.conditional)
  const byChoices = new Map<string, Played>()
  for (let order = 0; order < orders; order++) {
    try {
      const played = playBoth(sample, internals, order)
      found.games += 1
      found.moves += played.moves.length
      for (const said of [played.status, played.rollback]) found.statuses[said] = (found.statuses[said] ?? 0) + 1
      const before = byChoices.get(`${played.status === 'cancelled'} ${played.choices}`)
      if (before === undefined) byChoices.set(`${played.status === 'cancelled'} ${played.choices}`, played)
      else if (before.facts === played.facts) found.compared += 1
      else
        throw new Departure(
          `seed ${seed}: two orders with equal choices end differently\n  ${before.facts}\n  ${before.moves.join(', ')}\n  ${played.facts}\n  ${played.moves.join(', ')}`,
        )
    } catch (error) {
      if (!(error instanceof Departure)) throw error
      found.departures.push(error.message)
      return
    }
  }
}
