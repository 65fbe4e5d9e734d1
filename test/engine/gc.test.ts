import { graph } from 'tutti'
import { expect, test } from 'vitest'
import { memoryStore } from '../../src/stores/memory.js'
import { sqliteStore } from '../../src/stores/sqlite.js'
import { Place } from '../durable/processes.js'
import { codeOf, opened, rest, solo, timed } from './opened.js'

const definition = solo((turn) => (turn.request === 'ask' ? turn.ask('?') : turn.finish(turn.request)))

test.each(['memory', 'sqlite'])('what has ended long ago is deleted with its keys, and nothing else is (%s)', async (kind) => {
  using place = new Place()
  const store = kind === 'memory' ? memoryStore() : await sqliteStore(place.store, { durability: 'process' })
  {
    await using at = await timed({ store, definitions: [definition] })
    const { tutti, clock } = at
    for (let n = 0; n < 120; n++) await (await tutti.start(definition, { id: `old-${n}`, key: `key-${n}`, input: n })).result()
    const waiting = await tutti.start(definition, { id: 'waiting', key: 'waiting', input: 'ask' })
    await rest()
    await clock.advance(10_000)
    await (await tutti.start(definition, { id: 'new', input: 'new' })).result()

    expect(await tutti.gc({ olderThanMs: 5_000, limit: 7 })).toBe(7)
    expect(await codeOf(tutti.run('old-6'))).toBe('RUN_NOT_FOUND')
    expect((await (await tutti.run('old-7')).result()).status).toBe('succeeded')
    expect(await tutti.gc({ olderThanMs: 5_000 })).toBe(113)
    expect(await tutti.gc({ olderThanMs: 5_000 })).toBe(0)
    const { runs } = await tutti.runs()
    expect(runs.map(({ id }) => id)).toEqual(['new', 'waiting'])
    // Its key is free again; that of a run that is kept is not.
    expect((await tutti.start(definition, { id: 'again', key: 'key-3', input: 'another' })).id).toBe('again')
    expect(await codeOf(tutti.start(definition, { id: 'other', key: 'waiting', input: 'other' }))).toBe('KEY_REUSED')
    expect(await tutti.agents.get('A')).toMatchObject({ status: 'running' })
    const [ask] = await waiting.asks()
    expect(ask?.runId).toBe('waiting')
  }
  await store.close()
})

test('what is to be kept must be said, and said well', async () => {
  await using tutti = await opened()
  const kept = await tutti.start(definition, { input: 1 })
  await kept.result()
  await new Promise((resolve) => setTimeout(resolve, 2))
  for (const bad of [
    {},
    { endedBefore: 1, olderThanMs: 1 },
    { olderThanMs: -1 },
    { olderThanMs: Number.NaN },
    { endedBefore: 1, limit: -1 },
    // What is not understood must not be taken for "all of them".
    undefined,
    null,
    'all',
    { olderThanMs: null },
    { endedBefore: null },
    { olderThanMs: 0, limit: null },
    { olderThanMs: 0, limt: 1 },
    { olderThanMs: 0, definition: 'solo' },
  ])
    expect(await codeOf(tutti.gc(bad as never)), JSON.stringify(bad)).toBe('INVALID_INPUT')
  expect(await kept.status()).toBe('succeeded')
  expect(await tutti.gc({ olderThanMs: Number.POSITIVE_INFINITY })).toBe(0)
})

test.each(['memory', 'sqlite'])('a run of an id that was used before takes over nothing that lay below the first (%s)', async (kind) => {
  using place = new Place()
  const store = kind === 'memory' ? memoryStore() : await sqliteStore(place.store, { durability: 'process' })
  const child = graph<string>('child')
    .step('say', { run: ({ input }) => `of the ${input}` })
    .output(({ steps }) => steps.say)
  const parent = graph<string>('parent')
    .step('kid', { input: ({ input }) => input, run: child })
    .output(({ steps }) => steps.kid)
  {
    await using at = await timed({ store, definitions: [parent] })
    const { tutti, clock } = at
    expect(await tutti.execute(parent, { id: 'run', input: 'first' })).toBe('of the first')
    await clock.advance(10)
    // Both ended in the same millisecond: of the two, what lies below goes first.
    expect(await tutti.gc({ olderThanMs: 5, limit: 1 })).toBe(1)
    expect((await tutti.runs()).runs.map(({ id }) => id)).toEqual(['run'])
    expect(await tutti.gc({ olderThanMs: 5, limit: 1 })).toBe(1)
    expect(await tutti.execute(parent, { id: 'run', input: 'second' })).toBe('of the second')
  }
  await store.close()
})
