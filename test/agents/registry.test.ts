import { agent, graph, type OpenOptions, open, type Tutti, topology } from 'tutti'
import { expect, test } from 'vitest'
import { agentKind } from '../../src/engine/agent-record.js'
import type { Store } from '../../src/engine/store.js'
import { memoryStore } from '../../src/stores/memory.js'
import { codeOf, journal, opened, rest, solo } from '../engine/opened.js'

const pair = topology({
  name: 'pair',
  flows: ['Start -> Ada -> End', 'Ada <-> Bob'],
  agents: { Ada: (turn) => turn.finish('done'), Bob: (turn) => turn.reply('done') },
})

const on = (store: Store, options: OpenOptions = {}): Promise<Tutti> => opened({ store, ...options })

test('the agents of a definition are registered and running once a process has opened the store with it', async () => {
  const store = memoryStore()
  await using tutti = await on(store, { definitions: [pair] })
  expect(await tutti.agents.list()).toEqual([
    { name: 'Ada', status: 'running', runtime: 'running', revision: 1, attempt: 1 },
    { name: 'Bob', status: 'running', runtime: 'running', revision: 1, attempt: 1 },
  ])
  await using another = await on(store)
  expect(await another.agents.list()).toEqual(await tutti.agents.list())
})

test('the agents of what is started, and those that are steps of a graph, are registered too', async () => {
  await using tutti = await opened()
  expect(await tutti.agents.list()).toEqual([])
  await tutti.execute(pair)
  const Carl = agent({ name: 'Carl', act: (turn) => turn.finish('c') })
  await tutti.execute(graph('steps').step('c', { run: Carl }).output())
  expect((await tutti.agents.list()).map(({ name }) => name)).toEqual(['Ada', 'Bob', 'Carl'])
})

test('an agent nobody has heard of is not found, whatever its name', async () => {
  await using tutti = await opened({ definitions: [pair] })
  for (const name of ['Nobody', '', 'Ada\0', '__proto__', 7 as unknown as string]) {
    expect(await codeOf(tutti.agents.get(name))).toBe('AGENT_NOT_FOUND')
    expect(await codeOf(tutti.agents.pause(name))).toBe('AGENT_NOT_FOUND')
    expect(await codeOf(tutti.agents.history(name))).toBe('AGENT_NOT_FOUND')
  }
})

test('both halves of a record change together, and each change is one revision', async () => {
  await using tutti = await opened({ definitions: [pair] })
  const { agents } = tutti
  const is = (status: string, runtime: string, revision: number, attempt = 1) => ({ name: 'Ada', status, runtime, revision, attempt })
  expect(await agents.pause('Ada')).toEqual(is('paused', 'paused', 2))
  expect(await agents.pause('Ada')).toEqual(is('paused', 'paused', 2))
  expect(await codeOf(agents.start('Ada'))).toBe('INVALID_TRANSITION')
  expect(await agents.resume('Ada')).toEqual(is('running', 'running', 3))
  expect(await codeOf(agents.resume('Ada'))).toBe('AGENT_NOT_PAUSED')
  expect(await agents.start('Ada')).toEqual(is('running', 'running', 3))
  // Nothing of it is in flight: it has stopped by the time the call returns.
  expect(await agents.stop('Ada')).toEqual(is('stopped', 'stopped', 5))
  expect(await agents.stop('Ada')).toEqual(is('stopped', 'stopped', 5))
  expect(await codeOf(agents.pause('Ada'))).toBe('INVALID_TRANSITION')
  expect(await agents.start('Ada')).toEqual(is('running', 'running', 6, 2))
  expect(await agents.terminate('Ada')).toEqual(is('terminated', 'stopped', 8, 2))
  expect(await agents.terminate('Ada')).toEqual(is('terminated', 'stopped', 8, 2))
  for (const call of ['start', 'stop', 'pause'] as const) expect(await codeOf(agents[call]('Ada'))).toBe('INVALID_TRANSITION')
  expect(await codeOf(agents.resume('Ada'))).toBe('AGENT_NOT_PAUSED')
  expect(await agents.get('Ada')).toEqual(is('terminated', 'stopped', 8, 2))
  expect(await agents.get('Bob')).toMatchObject({ status: 'running', revision: 1 })
})

test('a resume whose one half is legal and whose other half is not changes neither', async () => {
  const store = memoryStore()
  await using tutti = await on(store, { definitions: [pair] })
  const found = await store.record(agentKind, 'Ada')
  const broken = JSON.stringify({ ...JSON.parse(found?.body ?? ''), status: 'paused', runtime: 'crashed' })
  await store.commit([{ kind: agentKind, key: 'Ada', expect: 1, body: broken }])
  expect(await codeOf(tutti.agents.resume('Ada'))).toBe('AGENT_NOT_PAUSED')
  expect(await codeOf(tutti.agents.start('Ada'))).toBe('INVALID_TRANSITION')
  expect(await store.record(agentKind, 'Ada')).toEqual({ revision: 2, body: broken })
})

test('a change that is based on another revision is refused, and changes nothing', async () => {
  await using tutti = await opened({ definitions: [pair] })
  expect(await tutti.agents.pause('Ada', { ifRevision: 1 })).toMatchObject({ revision: 2 })
  expect(await codeOf(tutti.agents.resume('Ada', { ifRevision: 1 }))).toBe('REVISION_CHANGED')
  expect(await codeOf(tutti.agents.pause('Ada', { ifRevision: 3 }))).toBe('REVISION_CHANGED')
  expect(await tutti.agents.resume('Ada', { ifRevision: 2 })).toMatchObject({ status: 'running', revision: 3 })
})

test('a key of a stop has one outcome, however soon the agent has stopped', async () => {
  for (const call of ['stop', 'terminate'] as const) {
    await using tutti = await opened({ definitions: [pair] })
    const stop = () => tutti.agents[call]('Ada', { key: 'k' })
    const [first, ...others] = [...(await Promise.all([stop(), stop(), stop()])), await stop()]
    for (const other of others) expect(other).toEqual(first)
    expect(await tutti.agents.get('Ada')).toMatchObject({ status: first?.status, runtime: 'stopped' })
  }
})

test('a key has its first outcome again, and is of no use for anything else on the store', async () => {
  const store = memoryStore()
  await using tutti = await on(store, { definitions: [pair] })
  await using another = await on(store)
  const paused = await tutti.agents.pause('Ada', { key: 'k' })
  await tutti.agents.resume('Ada')
  expect(await another.agents.pause('Ada', { key: 'k' })).toEqual(paused)
  expect(await tutti.agents.get('Ada')).toMatchObject({ status: 'running', revision: 3 })
  expect(await codeOf(tutti.agents.pause('Bob', { key: 'k' }))).toBe('KEY_REUSED')
  expect(await codeOf(tutti.agents.resume('Ada', { key: 'k' }))).toBe('KEY_REUSED')
  expect(await codeOf(tutti.start(pair, { key: 'k' }))).toBe('KEY_REUSED')
  await tutti.start(pair, { key: 'of a run' })
  expect(await codeOf(tutti.agents.pause('Ada', { key: 'of a run' }))).toBe('KEY_REUSED')
  // What asks for what is so already has an outcome too; a refusal has none.
  await tutti.agents.start('Ada', { key: 'noop' })
  await tutti.agents.pause('Ada')
  expect(await tutti.agents.start('Ada', { key: 'noop' })).toMatchObject({ status: 'running', revision: 3 })
  expect(await codeOf(tutti.agents.start('Ada', { key: 'refused' }))).toBe('INVALID_TRANSITION')
  await tutti.agents.resume('Ada')
  expect(await tutti.agents.start('Ada', { key: 'refused' })).toMatchObject({ status: 'running', revision: 5 })
  for (const key of ['', 'x'.repeat(257), 'a\nb']) expect(await codeOf(tutti.agents.pause('Ada', { key }))).toBe('INVALID_INPUT')
})

test('one key given by many at once changes an agent once, and all have that outcome', async () => {
  const store = memoryStore()
  const engines = await Promise.all(Array.from({ length: 4 }, () => on(store, { definitions: [pair] })))
  const calls = Array.from({ length: 8 }, () => engines.map(({ agents }) => agents.pause('Ada', { key: 'same' }))).flat()
  expect(new Set((await Promise.all(calls)).map((record) => JSON.stringify(record))).size).toBe(1)
  expect(await engines[0]?.agents.get('Ada')).toMatchObject({ status: 'paused', revision: 2 })
  await Promise.all(engines.map((engine) => engine.close()))
})

test('who changed what from which revision is kept, the last fifty changes, and nothing of what was worked on', async () => {
  await using tutti = await opened({ definitions: [pair] })
  const { agents } = tutti
  await agents.pause('Ada', { by: 'ann' })
  await agents.pause('Ada', { by: 'bob' })
  await codeOf(agents.start('Ada', { by: 'carl' }))
  await agents.resume('Ada', { by: 'dora' })
  const change = { at: expect.any(Number) }
  expect(await agents.history('Ada')).toEqual([
    {
      ...change,
      call: 'register',
      revision: 1,
      from: { status: 'pending', runtime: 'stopped' },
      to: { status: 'running', runtime: 'running' },
    },
    {
      ...change,
      call: 'pause',
      by: 'ann',
      revision: 2,
      from: { status: 'running', runtime: 'running' },
      to: { status: 'paused', runtime: 'paused' },
    },
    {
      ...change,
      call: 'resume',
      by: 'dora',
      revision: 3,
      from: { status: 'paused', runtime: 'paused' },
      to: { status: 'running', runtime: 'running' },
    },
  ])
  for (let round = 0; round < 30; round++) {
    await agents.pause('Ada')
    await agents.resume('Ada')
  }
  const history = await agents.history('Ada')
  expect(history).toHaveLength(50)
  expect(history.map(({ revision }) => revision)).toEqual(Array.from({ length: 50 }, (_, at) => at + 14))
  expect(await codeOf(agents.pause('Ada', { by: 'x'.repeat(300) }))).toBe('INVALID_INPUT')
})

test('every refusal is counted by its code', async () => {
  await using tutti = await opened({ definitions: [pair] })
  await codeOf(tutti.agents.resume('Ada'))
  await codeOf(tutti.agents.resume('Ada'))
  await codeOf(tutti.agents.pause('Nobody'))
  await codeOf(tutti.agents.pause('Ada', { ifRevision: 9 }))
  await tutti.agents.terminate('Ada')
  await codeOf(tutti.agents.start('Ada'))
  const run = await tutti.start(pair)
  await run.result()
  await codeOf(run.resume())
  await codeOf(run.pause())
  expect(tutti.refusals()).toMatchObject({
    AGENT_NOT_PAUSED: 2,
    AGENT_NOT_FOUND: 1,
    REVISION_CHANGED: 1,
    INVALID_TRANSITION: 1,
    RUN_ENDED: 1,
    RUN_NOT_PAUSED: 1,
  })
})

test('what was decided about an agent outlives every process', async () => {
  const store = memoryStore()
  const first = await on(store, { definitions: [pair] })
  await first.agents.pause('Ada')
  await first.agents.stop('Bob')
  await first.close()
  await using second = await on(store, { definitions: [pair] })
  expect(await second.agents.list()).toMatchObject([
    { name: 'Ada', status: 'paused', runtime: 'paused', revision: 2 },
    { name: 'Bob', status: 'stopped', runtime: 'stopped', revision: 3 },
  ])
  expect(await codeOf(first.agents.resume('Ada'))).toBe('CLOSED')
})

test('a record that can not be read keeps nobody from working with the others', async () => {
  const store = memoryStore()
  await store.commit([{ kind: agentKind, key: 'Odd', expect: 0, body: '{"status":"dancing"}' }])
  await using tutti = await open({ store, definitions: [pair] })
  expect(await tutti.execute(pair)).toBe('done')
  expect(await tutti.agents.get('Ada')).toMatchObject({ status: 'running' })
  await expect(tutti.agents.get('Odd')).rejects.toThrow(/can't be read/)
})

test('who paused, resumed, answered and cancelled a run is kept with it, and not what was answered', async () => {
  await using tutti = await opened()
  const run = await tutti.start(solo((turn) => (turn.message.kind === 'answer' ? turn.ask('and now?') : turn.ask('what?'))))
  await rest()
  await run.pause({ by: 'ann' })
  await run.pause({ by: 'nobody' })
  await run.resume()
  const [ask] = await run.asks()
  await run.answer(ask?.id ?? '', 'a secret', { by: 'bob' })
  await run.cancel({ by: 'carl', reason: 'enough' })
  await run.result()
  const history = await run.history()
  expect(history.map(({ call, by }) => [call, by])).toEqual([
    ['pause', 'ann'],
    ['resume', undefined],
    ['answer', 'bob'],
    ['cancel', 'carl'],
  ])
  const events = await journal(run)
  expect(history.map(({ revision }) => events.find(({ seq }) => seq === revision)?.type)).toEqual([
    'run.paused',
    'run.resumed',
    'ask.answered',
    'run.closing',
  ])
  expect(JSON.stringify(history)).not.toContain('secret')
})
