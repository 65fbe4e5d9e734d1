import { expect, test } from 'vitest'
import { differences } from './side-by-side.js'

const [from = 5_000, topologies = 400, orders = 10] = (process.env['TUTTI_DIFFERENTIAL'] ?? '').split(',').filter(Boolean).map(Number)

test('property: the kernel does what the reference of the rules does, move by move, in every order', { timeout: 3_600_000 }, () => {
  const { played, found } = differences({ from, topologies, orders })
  expect(found).toEqual([])
  expect(played).toBe(topologies * orders)
})
