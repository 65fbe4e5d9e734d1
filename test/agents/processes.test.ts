import * as tutti from 'tutti'
import { expect, test } from 'vitest'
import { deadly, inOrder } from '../durable/children/plays.js'
import { Child, patience, Place, until } from '../durable/processes.js'

const options = { name: 'order', steps: ['a', 'b'] }

test('an agent that is stopping has stopped once the process with its last turn in flight was killed', patience, async () => {
  using place = new Place()
  await using child = new Child('player', place, { play: 'inOrder', ids: ['run'], options: { ...options, hangsAt: 'b' } })
  await until('its turn is in flight', () => place.lines('executed').includes('b'))
  await using engine = await tutti.open({ store: place.store, workerTtlMs: 200 })
  const [agent] = await engine.agents.list()
  const name = agent?.name ?? ''
  expect(await engine.agents.stop(name)).toMatchObject({ status: 'stopped', runtime: 'stopping' })
  expect(await engine.agents.get(name)).toMatchObject({ runtime: 'stopping' })
  await child.kill()
  await until('it has stopped', async () => (await engine.agents.get(name)).runtime === 'stopped')
  expect((await engine.agents.history(name)).map(({ call }) => call)).toEqual(['register', 'stop', 'settle'])
})

test('a pause outlives the process that was killed with it: the next one waits, and goes on at the resume', patience, async () => {
  using place = new Place()
  await using child = new Child('player', place, { play: 'inOrder', ids: ['run'], options: { ...options, hangsAt: 'b' } })
  await until('its turn is in flight', () => place.lines('executed').includes('b'))
  const caller = await tutti.open({ store: place.store })
  const [agent] = await caller.agents.list()
  const name = agent?.name ?? ''
  await caller.agents.pause(name)
  await child.kill()
  await caller.close()

  const definition = inOrder(tutti, (line) => place.write(line), options)
  await using engine = await tutti.open({ store: place.store, definitions: [definition], workerTtlMs: 200, invariants: true })
  const run = await engine.run('run')
  await until('it waits for its agent', async () => (await run.summary()).waitsFor.includes('agent'))
  expect(place.lines('executed')).toEqual(['a', 'b'])
  await engine.agents.resume(name)
  expect(await run.output()).toEqual(['a', 'b'])
  // What was recorded before is not executed again.
  expect(place.lines('executed')).toEqual(['a', 'b', 'b'])
})

test.each(['killed', 'closed'])(
  'a turn that waited for its agent in a process that was %s is given up after five deaths all the same',
  patience,
  async (how) => {
    using place = new Place()
    const definition = deadly(tutti, (line) => place.write(line), { die: () => {} })
    const opened = () => tutti.open({ store: place.store, definitions: [definition], invariants: true })
    const first = await opened()
    const name = (await first.agents.list())[0]?.name ?? ''
    await first.agents.pause(name)
    await using child = how === 'killed' ? new Child('player', place, { play: 'deadly', ids: ['run'] }) : null
    if (child === null) await first.start(definition, { id: 'run', key: 'start run' })
    await until('it waits', async () => (await first.runs()).runs.some(({ waitsFor }) => waitsFor.includes('agent')))
    await first.close()
    await child?.kill()

    await using caller = await tutti.open({ store: place.store })
    await caller.agents.resume(name)
    for (let death = 1; death <= 5; death++) {
      await using deadlyOne = new Child('player', place, { play: 'deadly', ids: ['run'] })
      expect(await deadlyOne.end()).toBe('SIGKILL')
    }
    await using last = await opened()
    expect(await (await last.run('run')).result()).toMatchObject({ status: 'failed', error: { code: 'TURN_CRASHED' } })
    expect(place.lines('executed')).toHaveLength(5)
  },
)
