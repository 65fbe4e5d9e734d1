import * as tutti from 'tutti'
import { expect, test } from 'vitest'
import { openConnection } from '../../src/stores/sqlite-open.js'
import { sqliteStore } from '../../src/stores/sqlite.js'
import { codeOf, deferred, rest, solo, type SoloTurn } from '../engine/opened.js'
import { patience, Place, until } from './processes.js'

const durability = 'process' as const

/** A run in flight, given back, and one of those that are there with a hole in its journal. */
async function leftBehind(
  place: Place,
  definition: tutti.Definition<unknown>,
  ids: readonly string[],
  damaged: string,
  there = ids,
): Promise<void> {
  const engine = await tutti.open({ store: place.store, definitions: [definition], graceMs: 0 })
  for (const id of ids) await engine.start(definition, { id })
  await until('all are there', async () => (await engine.runs()).runs.length === there.length)
  await engine.close()
  const connection = await openConnection(place.store, { durability })
  const { changes } = connection.run('delete from batched where seq = 1 and rid = (select rid from run where id = ?)', damaged)
  connection.close()
  expect(changes).toBe(1)
}

const held = () => {
  const gate = deferred<string>()
  return { gate, definition: solo(async (turn: SoloTurn) => turn.finish(await turn.step('held', () => gate.promise))) }
}

test('who has a run that can not be read takes others all the same, and says so once', patience, async () => {
  using place = new Place()
  const { gate, definition } = held()
  await leftBehind(place, definition, ['damaged', 'whole'], 'damaged')
  const told: string[] = []
  await using second = await tutti.open({ store: place.store, definitions: [definition], onLog: ({ message }) => void told.push(message) })
  await until('it is told of', () => told.length > 0)
  const third = await tutti.open({ store: place.store, definitions: [definition], graceMs: 0 })
  await third.start(definition, { id: 'later' })
  await third.close()
  gate.resolve('done')
  for (const id of ['whole', 'later']) expect(await (await second.run(id)).output()).toBe('done')
  expect(told).toEqual(['a run could not be claimed: the journal of the run damaged is damaged: event 1 is not there'])
})

test('who starts a run under the id of one that can not be read is told, and all others go on', patience, async () => {
  using place = new Place()
  const { gate, definition } = held()
  await leftBehind(place, definition, ['damaged'], 'damaged')
  gate.resolve('done')
  const told: string[] = []
  await using engine = await tutti.open({ store: place.store, definitions: [definition], onLog: ({ message }) => void told.push(message) })
  for (let time = 0; time < 3; time++) expect(await codeOf(engine.start(definition, { id: 'damaged' }))).toBe('STORE_UNAVAILABLE')
  for (let n = 0; n < 20; n++) expect(await engine.execute(definition)).toBe('done')
  expect(told.filter((line) => line.includes('out of reach'))).toEqual([])
})

test('a child run whose parent can not be read waits, says so, and can be looked at', patience, async () => {
  using place = new Place()
  const { definition } = held()
  const parent = tutti.graph('parent').step('child', { run: definition }).output()
  await leftBehind(place, parent, ['p'], 'p', ['p', 'p:child'])
  const told: string[] = []
  const engine = await tutti.open({
    store: place.store,
    definitions: [parent],
    onLog: ({ message, runId }) => void told.push(`${runId} ${message}`),
  })
  const child = await engine.run('p:child')
  await until('it waits', async () => (await child.summary()).waitsFor.length > 0)
  expect(await child.summary()).toMatchObject({ status: 'running', waitsFor: ['definition'] })
  expect(told).toContain('p its child runs wait: the journal of the run p is damaged: event 1 is not there')
  await engine.close()
})

test('a run whose child run can not be read can be paused, and says what it waits for', patience, async () => {
  using place = new Place()
  const { definition } = held()
  const parent = tutti.graph('parent').step('child', { run: definition }).output()
  await leftBehind(place, parent, ['p'], 'p:child', ['p', 'p:child'])
  const told: string[] = []
  const engine = await tutti.open({ store: place.store, definitions: [parent], onLog: ({ message }) => void told.push(message) })
  const why = 'the journal of the run p:child is damaged: event 1 is not there'
  await until('it is told of', () => told.includes(`another run waits for this one: ${why}`))
  const run = await engine.run('p')
  await run.pause()
  expect(await run.status()).toBe('paused')
  expect(told).toContain(`it could not be told what happens above it: ${why}`)
  await engine.close()
})

test.each([
  ['a run that can not be read any more leaves its child run as it is', 'p'],
  ['a run waits for its child run that can not be read any more', 'p:child'],
])('%s, and they go on once it can', patience, async (_, damaged) => {
  using place = new Place()
  const asks = solo((turn: SoloTurn) => (turn.message.kind === 'request' ? turn.ask('?') : turn.finish('answered')))
  const parent = tutti.graph('parent').step('child', { run: asks }).output()
  const told: string[] = []
  const first = await tutti.open({ store: place.store, definitions: [parent], onLog: ({ message }) => void told.push(message) })
  await first.start(parent, { id: 'p' })
  await until('it asks', async () => (await first.asks()).length === 1)
  const store = await sqliteStore(place.store, { durability })
  const head = (await store.load(damaged))?.row.head ?? 0
  const row = { seq: head + 1, n: 1, body: 'no JSON' }
  await store.commit([{ run: damaged, expect: head, head: head + 1, by: 9, rows: [row], at: 0 }])
  await until('it is told of', () => told.some((line) => line.startsWith('the run is stopped')))
  await rest()
  await store.close()
  await first.close()

  const connection = await openConnection(place.store, { durability })
  connection.run('delete from batched where body = ?', row.body)
  connection.close()
  await using second = await tutti.open({ store: place.store, definitions: [parent] })
  const child = await second.run('p:child')
  for (const ask of await child.asks()) await child.answer(ask.id, 'yes')
  expect(await (await second.run('p')).result()).toMatchObject({ status: 'succeeded', output: { child: 'answered' } })
})
