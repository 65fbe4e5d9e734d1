/** The rules again with forks of any width kept as wide ones are: random topologies have narrow ones. */
import fc from 'fast-check'
import { expect, test, vi } from 'vitest'
import * as branches from '../../src/kernel/branches.js'
import { inSeries } from '../kernel/in-series.js'
import { undoSample } from './random.js'
import { difference } from './side-by-side.js'

vi.mock('../../src/kernel/branches.js', async (original) => ({ ...(await original<typeof branches>()), alikeFrom: 0 }))

test('property: the kernel does what the reference does, also with branches that are kept as one', { timeout: 3_600_000 }, () => {
  expect(branches.alikeFrom).toBe(0)
  const open = vi.spyOn(branches.Branches.prototype, 'open')
  const hold = vi.spyOn(branches.Branches.prototype, 'hold')
  const endAlike = vi.spyOn(branches.Branches.prototype, 'endAlike')
  fc.assert(
    fc.property(fc.nat(2 ** 31 - 1), (seed) => {
      expect(difference(seed, 6)).toBeNull()
      expect(difference(seed, 3, undefined, undoSample)).toBeNull()
      // As an engine decides, which has short ways for those that are kept as one.
      expect(difference(seed, 6, inSeries)).toBeNull()
      expect(difference(seed, 3, inSeries, undoSample)).toBeNull()
    }),
    { numRuns: 60, seed: Number(process.env['TUTTI_SEED'] ?? 2), endOnFailure: true },
  )
  expect(open.mock.calls.length).toBeGreaterThan(1_000)
  expect(hold.mock.calls.length).toBeGreaterThan(1_000)
  expect(endAlike.mock.calls.length).toBeGreaterThan(20)
})
