import { expect, test } from 'vitest'
import { undoGraph } from './random.js'
import { search } from './search.js'

const [from = 1, graphs = 500, orders = 10] = (process.env['TUTTI_GRAPHS'] ?? '').split(',').filter(Boolean).map(Number)

test('property: the kernel and the rule book agree on random graphs, move by move, and for equal choices no order changes anything', {
  timeout: 3_600_000,
}, () => {
  const found = search({ from, graphs, orders })
  expect(found.departures).toEqual([])
  expect(found.games).toBe(graphs * orders)
  // A search that meets no failure, or has nothing to compare, would agree with anything.
  expect(found.compared).toBeGreaterThan(found.games * 0.6)
  expect(found.statuses['failed']).toBeGreaterThan(found.games * 0.2)
  expect(found.statuses['succeeded']).toBeGreaterThan(found.games * 0.2)
  expect(found.statuses['cancelled']).toBeGreaterThan(found.games * 0.01)
})

const [first = 1, undoing = 80, undoOrders = 6] = (process.env['TUTTI_UNDO_GRAPHS'] ?? '').split(',').filter(Boolean).map(Number)

// What can be undone of a graph are its steps: no body of one has tools.
const sampler = (seed: number) => ({ ...undoGraph(seed), does: () => [] })

test('property: the kernel and the rule book agree on what random graphs undo, and in which order', { timeout: 3_600_000 }, () => {
  const found = search({ from: first, graphs: undoing, orders: undoOrders, sampler })
  expect(found.departures).toEqual([])
  expect(found.statuses['complete']).toBeGreaterThan(found.games / 10)
  expect(found.statuses['partial']).toBeGreaterThan(found.games / 60)
})
