import { expect, test } from 'vitest'
import { search } from './search.js'

test('property: the kernel and the rule book agree on random graphs, move by move, and for equal choices no order changes anything', () => {
  const found = search({ from: 1, graphs: 500, orders: 10 })
  expect(found.departures).toEqual([])
  expect(found.games).toBe(5_000)
  // A search that meets no failure, or has nothing to compare, would agree with anything.
  expect(found.compared).toBeGreaterThan(3_000)
  expect(found.statuses['failed']).toBeGreaterThan(1_000)
  expect(found.statuses['succeeded']).toBeGreaterThan(1_000)
  expect(found.statuses['cancelled']).toBeGreaterThan(50)
}, 120_000)
