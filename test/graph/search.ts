/** Many random graphs, each in many orders, on the reference and on the kernel. */
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

export function search(options: { from: number; graphs: number; orders: number; departuresMax?: number }): Found {
  const found: Found = { graphs: 0, games: 0, moves: 0, compared: 0, statuses: {}, departures: [] }
  for (let seed = options.from; seed < options.from + options.graphs; seed++) {
    found.graphs += 1
    explore(seed, options.orders, found)
    if (found.departures.length >= (options.departuresMax ?? 3)) break
  }
  return found
}

function explore(seed: number, orders: number, found: Found): void {
  const sample = sampleGraph(seed)
  const internals = definitionOf(sample.graph, sample.conditional)
  const byChoices = new Map<string, Played>()
  for (let order = 0; order < orders; order++) {
    try {
      const played = playBoth(sample, internals, order)
      found.games += 1
      found.moves += played.moves.length
      found.statuses[played.status] = (found.statuses[played.status] ?? 0) + 1
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
