import fc from 'fast-check'
import { expect, test } from 'vitest'
import { undoSample } from './random.js'
import { difference } from './side-by-side.js'

const [topologies = 400, orders = 10] = (process.env['TUTTI_DIFFERENTIAL'] ?? '').split(',').filter(Boolean).map(Number)

// A failure prints its seed: `difference(seed, orders)` plays it again. The seeds are the same on every run unless TUTTI_SEED says otherwise.
test('property: the kernel does what the reference of the rules does, move by move, in every order', { timeout: 3_600_000 }, () => {
  fc.assert(
    fc.property(fc.nat(2 ** 31 - 1), (seed) => {
      expect(difference(seed, orders)).toBeNull()
    }),
    { numRuns: topologies, seed: Number(process.env['TUTTI_SEED'] ?? 1), endOnFailure: true },
  )
})

const [undoing = 50, undoOrders = 5] = (process.env['TUTTI_UNDO_DIFFERENTIAL'] ?? '').split(',').filter(Boolean).map(Number)

test('property: the kernel undoes what the reference undoes, as it does, move by move, in every order', { timeout: 3_600_000 }, () => {
  fc.assert(
    fc.property(fc.nat(2 ** 31 - 1), (seed) => {
      expect(difference(seed, undoOrders, undefined, undoSample)).toBeNull()
    }),
    { numRuns: undoing, seed: Number(process.env['TUTTI_SEED'] ?? 1), endOnFailure: true },
  )
})
