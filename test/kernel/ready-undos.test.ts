import fc from 'fast-check'
import { expect, test } from 'vitest'
import { compareEntries, type Placed, ReadyUndos } from '../../src/kernel/ready-undos.js'

const placed = fc
  .record({ path: fc.array(fc.nat(12), { maxLength: 3 }), turn: fc.integer({ min: 1, max: 3 }), of: fc.constantFrom('', '/pay', '/book') })
  .map(({ path, turn, of }): Placed => {
    const branch = ['r', ...path].join('.')
    return { id: `${branch}/${turn}${of}`, branch, turn }
  })

const idsOf = (ready: ReadyUndos): string[] => ready.all().map(({ id }) => id)
const inOrder = (all: readonly Placed[]): string[] => [...all].sort(compareEntries).map(({ id }) => id)

test('property: the undos that may start come in the order of their ids, in whichever they came to be ready, and whatever has left', () => {
  fc.assert(
    fc.property(
      fc.uniqueArray(placed, { selector: ({ id }) => id, maxLength: 40 }),
      fc.array(fc.nat(39), { maxLength: 20 }),
      (all, leaving) => {
        let left = all
        let ready = all.reduce((some, one) => some.with(one), ReadyUndos.none)
        const before = ready
        for (const place of leaving) {
          const gone = left[place]
          if (gone === undefined) continue
          left = left.filter((one) => one !== gone)
          ready = ready.without(gone.id)
        }
        expect([ready.size, idsOf(ready)]).toEqual([left.length, inOrder(left)])
        const started: string[] = []
        for (let { first } = ready; first !== null; { first } = ready) {
          started.push(first.id)
          ready = ready.without(first.id)
        }
        expect([ready.size, started]).toEqual([0, inOrder(left)])
        // Who has another version has it still.
        expect([before.size, idsOf(before)]).toEqual([all.length, inOrder(all)])
      },
    ),
  )
})
