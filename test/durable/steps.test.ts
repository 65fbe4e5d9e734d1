import * as tutti from 'tutti'
import { expect, test } from 'vitest'
import { randomOf } from '../scenarios/adapter.js'
import { chains, chainsOutput, charge, deadly, inOrder } from './children/plays.js'
import { Child, each, patience, Place, saying, seed, times, until } from './processes.js'

/** Opens the store here, with a definition, and gives how its runs end. */
async function ending(place: Place, definition: tutti.Topology<unknown, unknown>, ids: readonly string[]): Promise<tutti.RunResult[]> {
  await using engine = await tutti.open({ store: place.store, definitions: [definition], invariants: true })
  const results: tutti.RunResult[] = []
  for (const id of ids) results.push(await (await engine.start(definition, { id, key: `start ${id}` })).result())
  return results
}

test('six parallel chains of steps give the right outputs wherever their process is killed', patience, async () => {
  const perBatch = 10
  const random = randomOf(seed)
  const batches = Array.from({ length: times(5, 50) }, () => [random() * 45, random() * 30])
  await saying(`TUTTI_SEED=${seed}`, () =>
    each(batches, 2, async (moments) => {
      using place = new Place()
      const ids = Array.from({ length: perBatch }, (_, n) => `run-${n}`)
      for (const ms of moments) {
        await using child = new Child('player', place, { play: 'chains', ids })
        await child.line()
        await new Promise((resolve) => setTimeout(resolve, ms))
        await child.kill()
      }
      await saying(`killed after ${moments.join(' and ')} ms`, async () => {
        const definition = chains(tutti, (line) => place.write(line))
        const results = await ending(place, definition, ids)
        for (const result of results) expect(result).toMatchObject({ status: 'succeeded', output: chainsOutput })
        // One key stands for one effect, however often it was tried.
        const effects = new Map<string, Set<string>>()
        for (const line of place.lines('store')) {
          const [key = '', ...what] = line.split(' ')
          effects.set(key, (effects.get(key) ?? new Set()).add(what.join(' ')))
        }
        expect(effects.size).toBe(perBatch * 6)
        for (const [key, what] of effects) expect([...what], `${key} stands for more than one effect`).toHaveLength(1)
      })
    }),
  )
})

test.each([
  { what: 'another step is called first', now: ['x', 'a', 'b', 'c'], says: ['a#0', 'x#0'] },
  { what: 'a recorded step is left out', now: ['b', 'c'], says: ['a#0', 'b'] },
  { what: 'the turn ends early', now: [], says: ['a#0', 'ended'] },
])('code that changed under a turn fails it with both sides shown, and executes nothing: $what', patience, async ({ now, says }) => {
  using place = new Place()
  await using child = new Child('player', place, {
    play: 'inOrder',
    options: { name: 'changed', steps: ['a', 'b', 'c'], hangsAt: 'c' },
    ids: ['run'],
  })
  await until('the third step is executed', () => place.lines('executed').includes('c'))
  await child.kill()
  const definition = inOrder(tutti, (line) => place.write(line), { name: 'changed', steps: now })
  const [result] = await ending(place, definition, ['run'])
  expect(result).toMatchObject({ status: 'failed', error: { code: 'NONDETERMINISTIC_TURN' } })
  const { message } = (result as { error: tutti.Failure }).error
  for (const side of says) expect(message).toContain(side)
  expect(place.lines('executed')).toEqual(['a', 'b', 'c'])
})

test('repeated steps that come in another order fail the turn and execute nothing', patience, async () => {
  using place = new Place()
  const before = { name: 'changed', steps: ['s', 's', 't', 's'], hangsAt: 't' }
  await using child = new Child('player', place, { play: 'inOrder', options: before, ids: ['run'] })
  await until('the third step is executed', () => place.lines('executed').includes('t'))
  await child.kill()
  const definition = inOrder(tutti, (line) => place.write(line), { name: 'changed', steps: ['s', 't', 's'] })
  const [result] = await ending(place, definition, ['run'])
  expect(result).toMatchObject({ status: 'failed', error: { code: 'NONDETERMINISTIC_TURN' } })
  expect(place.lines('executed')).toEqual(['s', 's', 't'])
})

test('further steps after the last record are fine', patience, async () => {
  using place = new Place()
  const before = { name: 'grown', steps: ['a', 'b'], hangsAt: 'b' }
  await using child = new Child('player', place, { play: 'inOrder', options: before, ids: ['run'] })
  await until('the second step is executed', () => place.lines('executed').includes('b'))
  await child.kill()
  const definition = inOrder(tutti, (line) => place.write(line), { name: 'grown', steps: ['a', 'b', 'c'] })
  expect(await ending(place, definition, ['run'])).toMatchObject([{ status: 'succeeded', output: ['a', 'b', 'c'] }])
  expect(place.lines('executed')).toEqual(['a', 'b', 'b', 'c'])
})

test.each([false, true])(
  'what must not be repeated is not, and is reported as unknown (caught by the body: %s)',
  patience,
  async (caught) => {
    using place = new Place()
    await using child = new Child('player', place, { play: 'charge', options: { hangs: true }, ids: ['run'] })
    await until('it is charged', () => place.lines('charged').length > 0)
    await child.kill()
    const [result] = await ending(
      place,
      charge(tutti, (line) => place.write(line), { caught }),
      ['run'],
    )
    if (caught) expect(result).toMatchObject({ status: 'succeeded', output: 'caught ACTIVITY_OUTCOME_UNKNOWN' })
    else expect(result).toMatchObject({ status: 'failed', error: { code: 'ACTIVITY_OUTCOME_UNKNOWN' } })
    expect(place.lines('charged')).toHaveLength(1)
  },
)

test('what must not be repeated and nobody knows of is not by a retry of the turn either', patience, async () => {
  using place = new Place()
  await using child = new Child('player', place, { play: 'charge', options: { hangs: true }, ids: ['run'] })
  await until('it is charged', () => place.lines('charged').length > 0)
  await child.kill()
  const definition = charge(tutti, (line) => place.write(line), { rethrown: true })
  expect(await ending(place, definition, ['run'])).toMatchObject([{ status: 'failed', error: { message: 'no luck' } }])
  expect(place.lines('caught')).toHaveLength(3)
  expect(place.lines('charged')).toHaveLength(1)
})

test('E6 a turn that kills its process five times fails, and is not begun a sixth time', patience, async () => {
  using place = new Place()
  const killed = async (): Promise<void> => {
    await using child = new Child('player', place, { play: 'deadly', ids: ['run'] })
    expect(await child.end()).toBe('SIGKILL')
  }
  for (let death = 1; death <= 5; death++) await killed()
  const definition = deadly(tutti, (line) => place.write(line), { die: () => {} })
  const [result] = await ending(place, definition, ['run'])
  expect(result).toMatchObject({ status: 'failed', error: { code: 'TURN_CRASHED' } })
  expect(place.lines('executed')).toHaveLength(5)
})

test('a turn that records something new before each death goes on as often as it dies', patience, async () => {
  using place = new Place()
  const records = 8
  for (let death = 1; death < records; death++) {
    await using child = new Child('player', place, { play: 'deadly', options: { records }, ids: ['run'] })
    expect(await child.end()).toBe('SIGKILL')
  }
  const definition = deadly(tutti, (line) => place.write(line), { die: () => {}, records })
  expect(await ending(place, definition, ['run'])).toMatchObject([{ status: 'succeeded', output: 'it lives' }])
})

test('a turn that was begun once is not given up however many processes die that were given its run paused', patience, async () => {
  using place = new Place()
  const worker = (): Child => new Child('worker', place, { play: 'inOrder', options: { name: 'held', steps: ['a'], hangsAt: 'a' } })
  await using first = worker()
  await first.line()
  first.tell(JSON.stringify({ start: ['run'] }))
  await until('it is begun', () => place.lines('executed').length === 1)
  const engine = await tutti.open({ store: place.store })
  const run = await engine.run('run')
  await run.pause()
  await first.kill()
  for (let deaths = 1; deaths <= 5; deaths++) {
    await using next = worker()
    let claims = 0
    for await (const { type } of run.events()) if (type === 'run.claimed' && ++claims === deaths) break
    // It is as good as dead, and nobody knows yet.
    await next.freeze(place)
    await run.resume()
    await run.pause()
    await next.kill()
  }
  await run.resume()
  await engine.close()
  const definition = inOrder(tutti, (line) => place.write(line), { name: 'held', steps: ['a'] })
  await using last = await tutti.open({ store: place.store, definitions: [definition], invariants: true })
  expect(await (await last.run('run')).result()).toMatchObject({ status: 'succeeded', output: ['a'] })
  expect(place.lines('executed')).toHaveLength(2)
})
