import { graph, open } from 'tutti'
import { expect, expectTypeOf, test } from 'vitest'
import { z } from 'zod'

test('the types know of every step that it may be skipped because of those before it, whatever its join', async () => {
  const definition = graph('types')
    .step('sure', { run: () => 1 })
    .step('one', { when: () => false as boolean, run: () => 1 })
    .step('two', { onError: 'skip', run: (): number => Number.parseInt(fail('no'), 10) })
    .step('any', { after: ['one', 'two'], join: 'any', run: () => 1 })
    .step('anySure', { after: ['one', 'sure'], join: 'any', run: () => 1 })
    .step('quorum', { after: ['one', 'sure'], join: { quorum: 2 }, run: () => 1 })
    .step('settled', { after: ['one', 'two'], join: 'settled', run: () => 1 })
    .step('policy', { after: ['one', 'two'], join: { policy: 'settled' }, run: () => 1 })
    .ask('person', { after: ['any'], question: () => 'go on?', schema: z.boolean() })
    .output(({ steps }) => {
      expectTypeOf(steps.any).toEqualTypeOf<number | undefined>()
      expectTypeOf(steps.anySure).toEqualTypeOf<number>()
      expectTypeOf(steps.quorum).toEqualTypeOf<number | undefined>()
      expectTypeOf(steps.settled).toEqualTypeOf<number>()
      expectTypeOf(steps.policy).toEqualTypeOf<number>()
      expectTypeOf(steps.person).toEqualTypeOf<boolean | undefined>()
      return Object.keys(steps)
    })
  await using tutti = await open({ store: 'memory:' })
  expect(await tutti.execute(definition)).toEqual(['sure', 'anySure', 'settled', 'policy'])
})

function fail(why: string): never {
  throw new Error(why)
}
