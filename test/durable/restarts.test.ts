import { graph, open, topology } from 'tutti'
import { expect, test } from 'vitest'
import { sqliteStore } from '../../src/stores/sqlite.js'
import { deferred, rest } from '../engine/opened.js'
import { patience, Place, until } from './processes.js'

test('a graph that is paused with a step in flight is paused after a restart, and goes on where it was', patience, async () => {
  using place = new Place()
  const done: string[] = []
  const held = deferred()
  const steps = (wait: Promise<void>) =>
    graph('paused')
      .step('a', {
        run: async () => {
          done.push('a')
          await wait
          return 'a'
        },
      })
      .step('b', { after: ['a'], run: ({ steps: { a } }) => (done.push('b'), `${a}b`) })
      .step('beside', { run: async ({ step }) => step('once', () => (done.push('beside'), 'beside')) })
      .step('c', { after: ['b', 'beside'], run: ({ steps: { b, beside } }) => (done.push('c'), `${b} ${beside}`) })
      .output()
  const first = await open({ store: place.store, definitions: [steps(held.promise)], invariants: true })
  const run = await first.start(steps(held.promise), { id: 'r' })
  await until('a is in flight', () => done.includes('a') && done.includes('beside'))
  await run.pause({ by: 'ann' })
  held.resolve()
  await until('a has ended', async () => (await run.report()).steps.some(({ id, status }) => id === 'a' && status === 'succeeded'))
  await first.close()

  await using second = await open({ store: place.store, definitions: [steps(Promise.resolve())], invariants: true })
  const again = await second.run('r')
  await rest()
  expect(await again.summary()).toMatchObject({ status: 'paused', paused: true })
  expect(done.filter((step) => step === 'b' || step === 'c')).toEqual([])
  await again.resume()
  expect(await again.output()).toMatchObject({ c: 'ab beside' })
  expect(done.sort()).toEqual(['a', 'b', 'beside', 'c'])
})

test('a step that paused its run when it failed is tried again at the resume, after a restart too', patience, async () => {
  using place = new Place()
  let broken = true
  const steps = graph('mended')
    .step('mend', {
      onError: 'pause',
      run: () => {
        if (broken) throw new Error('it is broken')
        return 'mended'
      },
    })
    .output()
  const first = await open({ store: place.store, definitions: [steps], invariants: true })
  const run = await first.start(steps, { id: 'r' })
  await until('it is paused', async () => (await run.status()) === 'paused')
  await first.close()
  broken = false
  await using second = await open({ store: place.store, definitions: [steps], invariants: true })
  const again = await second.run('r')
  expect(await again.status()).toBe('paused')
  await again.resume()
  expect(await again.output()).toEqual({ mend: 'mended' })
})

test("with durability: 'power' everything is as it is otherwise, and goes on after a restart", patience, async () => {
  using place = new Place()
  const definition = topology({
    name: 'asks',
    flows: ['Start -> A -> End', 'A -> User'],
    agents: {
      A: async (turn) => {
        if (turn.message.kind === 'answer') return turn.finish([await turn.step('again', () => 'x'), turn.message.value])
        await turn.step('before', () => 'x')
        return turn.ask('what?')
      },
    },
  })
  const first = await open({ store: place.store, definitions: [definition], durability: 'power', invariants: true })
  const run = await first.start(definition, { id: 'r', key: 'k' })
  await until('it asks', async () => (await run.asks()).length === 1)
  await first.agents.pause('A')
  await first.close()

  await using second = await open({ store: place.store, definitions: [definition], durability: 'power', invariants: true })
  const again = await second.start(definition, { id: 'r', key: 'k' })
  const [ask] = await again.asks()
  await again.answer(ask?.id ?? '', 42)
  await rest()
  expect(await again.summary()).toMatchObject({ status: 'running', waitsFor: ['agent'] })
  await second.agents.resume('A')
  expect(await again.output()).toEqual(['x', 42])
  const store = await sqliteStore(place.store, { durability: 'power' })
  expect(store.promises.durable).toBe('power')
  await store.close()
})
