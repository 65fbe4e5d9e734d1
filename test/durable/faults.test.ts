import * as tutti from 'tutti'
import { expect, test } from 'vitest'
import { z } from 'zod'
import { memoryStore } from '../../src/stores/memory.js'
import { sqliteStore, storeOver } from '../../src/stores/sqlite.js'
import { loadDriver, openDatabase } from '../../src/stores/sqlite-driver.js'
import { openConnection } from '../../src/stores/sqlite-open.js'
import { codeOf, deferred, solo, type SoloTurn } from '../engine/opened.js'
import { counted } from './children/counted.js'
import { orphan } from './children/plays.js'
import { saying } from '../models/spied.js'
import { again } from './lossy.js'
import { Child, patience, Place, times, until } from './processes.js'

const durability = 'process' as const

test('on a full disk commands are refused, nothing acknowledged is lost, and work goes on when there is room', patience, async () => {
  using place = new Place()
  const connection = await openConnection(place.store, { durability })
  const store = storeOver(connection, await loadDriver(), { durability })
  const pages = (): number => connection.get<{ page_count: number }>('pragma page_count')?.page_count ?? 0
  const gate = deferred<string>()
  let executed = 0
  const definition = solo(async (turn: SoloTurn) => {
    const value = await turn.step('held', () => {
      executed++
      return turn.request === 'held' ? gate.promise : 'value'
    })
    return turn.finish(value)
  })
  const engine = await tutti.open({ store, definitions: [definition] })
  const inFlight = await engine.start(definition, { input: 'held' })
  await until('it is in flight', () => executed === 1)
  connection.exec(`pragma max_page_count = ${pages() + 24}`)
  const acknowledged: tutti.Run[] = []
  let refusal: unknown
  for (let n = 0; n < 200 && refusal === undefined; n++) {
    const started = engine.start(definition, { input: 'x'.repeat(20_000) })
    const code = await codeOf(started)
    if (typeof code === 'string') refusal = code
    else acknowledged.push(await started)
  }
  expect(refusal).toBe('STORE_UNAVAILABLE')
  expect(acknowledged.length).toBeGreaterThan(0)
  // What is in flight ends, and can't be recorded yet.
  gate.resolve('x'.repeat(60_000))
  await new Promise((resolve) => setTimeout(resolve, 60))
  expect(await inFlight.status()).toBe('running')
  connection.exec('pragma max_page_count = 1000000')
  expect(await inFlight.output()).toBe('x'.repeat(60_000))
  for (const run of acknowledged) expect(await run.output()).toBe('value')
  expect(await (await engine.start(definition)).output()).toBe('value')
  // Nothing was executed again for want of room.
  expect(executed).toBe(acknowledged.length + 2)
  await engine.close()
  await store.close()
})

test('while somebody holds the file locked commands are refused, and work goes on when they let go', patience, async () => {
  using place = new Place()
  const store = await sqliteStore(place.store, { durability, patience: { writeMs: 150 } })
  const gate = deferred<string>()
  const begun = deferred()
  const definition = solo(async (turn: SoloTurn) => {
    const held = (): Promise<string> => {
      begun.resolve()
      return gate.promise
    }
    return turn.finish(await turn.step('held', held))
  })
  const engine = await tutti.open({ store, definitions: [definition] })
  const run = await engine.start(definition)
  await begun.promise
  await using frozen = new Child('locker', place)
  await frozen.line()
  expect(await codeOf(engine.start(definition))).toBe('STORE_LOCKED')
  expect(await codeOf(run.pause())).toBe('STORE_LOCKED')
  gate.resolve('recorded later')
  await new Promise((resolve) => setTimeout(resolve, 50))
  expect(await run.status()).toBe('running')
  frozen.tell('let go')
  expect(await run.output()).toBe('recorded later')
  await engine.close()
  await store.close()
})

test(
  'an engine whose file is locked is closed when its grace is over, and what it did not record is done at the next open',
  patience,
  async () => {
    using place = new Place()
    const begun = deferred()
    const gate = deferred()
    let executed = 0
    const definition = solo(async (turn: SoloTurn) => {
      const value = await turn.step('held', async () => {
        begun.resolve()
        await gate.promise
        return ++executed
      })
      return turn.finish(value)
    })
    const given = { store: place.store, definitions: [definition], graceMs: 300 }
    const first = await tutti.open(given)
    const { id } = await first.start(definition)
    await begun.promise
    await using frozen = new Child('locker', place)
    await frozen.line()
    gate.resolve()
    await new Promise((resolve) => setTimeout(resolve, 50))
    const since = performance.now()
    await first.close()
    expect(performance.now() - since).toBeLessThan(5_000)
    await frozen.kill()
    await using second = await tutti.open(given)
    expect(await (await second.run(id)).output()).toBe(2)
  },
)

test('a value over the limit is a final failure, wherever it enters, and the step is not tried again', patience, async () => {
  using place = new Place()
  const store = await sqliteStore(place.store, { durability, maxValue: 100_000 })
  let executed = 0
  const large = 'x'.repeat(100_001)
  const step = solo({
    retry: { attempts: 3 },
    act: async (turn: SoloTurn) => {
      const made = (): string => {
        executed++
        return large
      }
      return turn.finish(await turn.step('large', made, { retry: { attempts: 3 } }))
    },
  })
  const engine = await tutti.open({ store })
  expect(await (await engine.start(step)).result()).toMatchObject({
    status: 'failed',
    error: { code: 'VALUE_TOO_LARGE', retryable: false },
  })
  expect(executed).toBe(1)
  expect(await codeOf(engine.start(step, { input: large }))).toBe('VALUE_TOO_LARGE')
  const asks = await engine.start(solo((turn: SoloTurn) => (turn.message.kind === 'answer' ? turn.finish(1) : turn.ask('?'))))
  await until('it asks', async () => (await asks.asks()).length === 1)
  const [ask] = await asks.asks()
  expect(await codeOf(asks.answer(ask?.id ?? '', large))).toBe('VALUE_TOO_LARGE')
  await asks.answer(ask?.id ?? '', 'small')
  expect(await asks.output()).toBe(1)
  await engine.close()
  await store.close()
})

test(
  'a store that fails with errors of its driver delays a run and fails nothing of it, and calls say STORE_UNAVAILABLE',
  patience,
  async () => {
    const inner = memoryStore()
    const reset = Object.assign(new Error('read ECONNRESET'), { code: 'ECONNRESET' })
    let calls = 0
    let isDown = false
    // Every seventh call fails, every other of those after it was done.
    const failing = <A extends readonly unknown[], T>(call: (...args: A) => Promise<T>): ((...args: A) => Promise<T>) => {
      return (...args) => {
        if (!isDown && ++calls % 7 !== 0) return call(...args)
        if (isDown || calls % 2 === 0) throw reset
        return call(...args).then(() => Promise.reject(reset))
      }
    }
    const { commit, load, list, marks, record, records, claim, beat, mine } = inner
    const faulty = { commit, load, list, marks, record, records, claim, beat, mine }
    const failed = Object.fromEntries(Object.entries(faulty).map(([name, call]) => [name, failing(call as never)]))
    const team = tutti.topology({
      name: 'team',
      flows: ['Start -> H -> End', 'H <-> A'],
      agents: {
        H: (turn) => (turn.message.kind === 'join' ? turn.finish(turn.message.join.values) : turn.fork(['A', 'A', 'A'])),
        A: async (turn) => turn.reply(await turn.step('work', () => turn.branchId)),
      },
    })
    const undone: unknown[] = []
    const definition = tutti
      .graph('above')
      .step('each', { each: () => [1, 2, 3], run: team, compensate: ({ output }) => void undone.push(output) })
      .step('one', { run: async ({ step }) => (await step('a', () => 1)) + (await step('b', () => 2)) })
      .output()
    isDown = true
    expect(await codeOf(tutti.open({ store: { ...inner, join: failing(inner.join) } }))).toBe('STORE_UNAVAILABLE')
    isDown = false
    await using engine = await tutti.open({ store: { ...inner, ...failed }, invariants: true, onLog: () => {} })
    for (let n = 0; n < 3; n++) {
      const run = await again(() => engine.start(definition, { id: `R${n}`, key: `start ${n}` }))
      const values = ['r.0', 'r.1', 'r.2']
      expect(await again(() => run.output())).toEqual({ each: [values, values, values], one: 3 })
    }
    expect(undone).toEqual([])
    isDown = true
    expect(await codeOf(engine.start(definition))).toBe('STORE_UNAVAILABLE')
    expect(await engine.runs().catch((error: unknown) => error)).toMatchObject({ code: 'STORE_UNAVAILABLE', cause: reset })
    isDown = false
  },
)

test('where a run waits for another one, and the store does not give it, somebody is told why', patience, async () => {
  const inner = memoryStore()
  let isBroken = true
  // It fails only where a journal is read from its beginning.
  const load: typeof inner.load = async (run, options) => {
    if (isBroken && run.includes(':') && options?.snapshot !== true) throw new TypeError('rows.map is not a function')
    return inner.load(run, options)
  }
  const spends = saying(() => [{ type: 'text', text: 'done' }])
  const asked = tutti.topology({ name: 'asked', flows: ['Start -> A -> End'], agents: { A: {} } })
  const above = tutti
    .graph('above')
    .step('one', { run: asked, input: () => 'x' })
    .output(({ steps }) => steps.one)
  const told: string[] = []
  const onLog = ({ message }: { readonly message: string }) => void told.push(message)
  await using engine = await tutti.open({ store: { ...inner, load }, models: () => spends, onLog })
  const run = await engine.start(above)
  await until('it is told of', () => told.some((line) => line.endsWith('the store failed: rows.map is not a function')))
  expect(told).toHaveLength(1)
  isBroken = false
  expect(await run.output()).toBe('done')
})

test(
  'what a child run would be given over the limit is a final failure of its step, and of no run above it is anything tried again',
  patience,
  async () => {
    using place = new Place()
    const store = await sqliteStore(place.store, { durability, maxValue: 100_000 })
    const engine = await tutti.open({ store })
    const taken = tutti
      .graph('taken')
      .step('take', { run: () => 'taken' })
      .output()
    const stateful = tutti.topology({
      name: 'stateful',
      flows: ['Start -> A -> End'],
      state: () => ({ kept: 'x'.repeat(100_001) }),
      merge: { kept: 'mine' },
      agents: { A: (turn) => turn.finish(1) },
    })
    let given = 0
    const inputs = tutti.graph('inputs').step('give', {
      input: () => {
        given++
        return 'x'.repeat(100_001)
      },
      run: taken,
      retry: { attempts: 3 },
    })
    const states = tutti.graph('states').step('give', { input: () => 'x', run: stateful, retry: { attempts: 3 } })
    const error = { code: 'VALUE_TOO_LARGE', retryable: false }
    expect(await (await engine.start(inputs.output())).result()).toMatchObject({ error })
    expect(await (await engine.start(states.output())).result()).toMatchObject({ error })
    expect(given).toBe(1)
    const above = tutti.graph('above').step('run', { input: () => 'x', run: inputs.output(), retry: { attempts: 3 } })
    expect(await (await engine.start(above.output())).result()).toMatchObject({
      error: { code: 'CHILD_FAILED', retryable: false, cause: error },
    })
    expect(given).toBe(2)
    await engine.close()
    await store.close()
  },
)

test(
  'a value is as large as its JSON: many small numbers fit, and what needs more bytes than it has characters does not',
  patience,
  async () => {
    using place = new Place()
    const store = await sqliteStore(place.store, { durability, maxValue: 100_000 })
    const engine = await tutti.open({ store })
    const given = solo((turn: SoloTurn) => turn.finish(turn.request))
    const stepped = solo(async (turn: SoloTurn) => turn.finish(await turn.step('given', () => turn.request)), { name: 'stepped' })
    const fits: readonly unknown[] = [
      Array.from({ length: 49_000 }, () => 1),
      'x'.repeat(99_000),
      '名'.repeat(33_000),
      '\u0001'.repeat(16_500),
      Array.from({ length: 4_100 }, () => -1.234567890123456e-300),
    ]
    for (const input of fits) {
      expect(await engine.execute(given, { input })).toEqual(input)
      expect(await engine.execute(stepped, { input })).toEqual(input)
    }
    const large: readonly unknown[] = [
      Array.from({ length: 51_000 }, () => 1),
      '名'.repeat(34_000),
      '\u0001'.repeat(17_000),
      '\ud800'.repeat(17_000),
      { ['名'.repeat(34_000)]: 1 },
      Array.from({ length: 21_000 }, () => null),
    ]
    for (const value of large) {
      expect(await codeOf(engine.start(given, { input: value }))).toBe('VALUE_TOO_LARGE')
      const returns = solo((turn: SoloTurn) => turn.finish(value), { name: 'returns' })
      const steps = solo(async (turn: SoloTurn) => turn.finish(await turn.step('large', () => value)), { name: 'steps' })
      const stateful = tutti.topology({
        name: 'stateful',
        flows: ['Start -> A -> End'],
        state: () => ({ kept: value }),
        merge: { kept: 'mine' },
        agents: { A: (turn) => turn.finish(1) },
      })
      expect(await codeOf(engine.start(stateful))).toBe('VALUE_TOO_LARGE')
      const graph = tutti.graph('graph')
      const graphs = [
        graph.step('large', { run: () => value }).output(),
        graph.step('large', { each: () => [value], run: () => 1 }).output(),
        graph.ask('large', { question: () => value, schema: z.any() }).output(),
      ]
      for (const definition of [returns, steps, ...graphs])
        expect(await (await engine.start(definition)).result()).toMatchObject({ error: { code: 'VALUE_TOO_LARGE', retryable: false } })
    }
    await engine.close()
    await store.close()
  },
)

test('what is thrown, a tag and a reason are values too: over the limit they are refused like any other', patience, async () => {
  using place = new Place()
  const store = await sqliteStore(place.store, { durability, maxValue: 100_000 })
  const large = 'x'.repeat(100_001)
  let executed = 0
  const thrown = [new Error(large), Object.assign(new Error('small'), { body: large }), large]
  const throws = (turn: SoloTurn): string => {
    executed++
    throw thrown[Number(turn.request)]
  }
  const inStep = async (turn: SoloTurn) => turn.finish(await turn.step('throws', () => throws(turn), { retry: { attempts: 3 } }))
  const definitions = [solo({ retry: { attempts: 3 }, act: throws }, { name: 'turn' }), solo(inStep, { name: 'step' })]
  const engine = await tutti.open({ store, definitions })
  for (const { name } of definitions)
    for (const input of thrown.keys()) {
      const result = await (await engine.start(name, { input })).result()
      expect(result).toMatchObject({ status: 'failed', error: { code: 'VALUE_TOO_LARGE', retryable: false } })
      expect(JSON.stringify(result).length).toBeLessThan(10_000)
    }
  expect(executed).toBe(definitions.length * thrown.length)
  const undone = tutti
    .graph('undone')
    .step('done', {
      run: () => 1,
      compensate: () => {
        throw new Error(large)
      },
    })
    .step('fails', {
      after: ['done'],
      run: () => {
        throw new Error('no')
      },
    })
    .output()
  const told: string[] = []
  for await (const event of (await engine.start(undone)).events()) told.push(JSON.stringify(event))
  expect(told.join()).toMatch(/what was thrown has about \d+ bytes/)
  expect(told.join().length).toBeLessThan(10_000)
  expect(await codeOf(engine.start('turn', { tags: { large } }))).toBe('VALUE_TOO_LARGE')
  const asks = await engine.start(solo((turn: SoloTurn) => turn.ask('?'), { name: 'asks' }))
  expect(await codeOf(asks.cancel({ reason: large }))).toBe('VALUE_TOO_LARGE')
  await asks.cancel({ reason: 'small' })
  expect(await asks.result()).toMatchObject({ status: 'cancelled', reason: 'small' })
  await engine.close()
  await store.close()
})

test('large values, and values that look like a reference to one, come back as they were, also after a restart', patience, async () => {
  using place = new Place()
  const large = 'ü'.repeat(80_000)
  const input = {
    large,
    again: [large, { deep: { large } }],
    ref: { '$tutti.blob': 'no hash' },
    plain: { '$tutti.plain': { '$tutti.blob': 'x' }, beside: 1 },
    both: { '$tutti.blob': large, list: [{ '$tutti.plain': 3 }] },
    many: Array.from({ length: 300 }, (_, n) => ({ n, text: `item ${n}` })),
  }
  const definition = solo(async (turn: SoloTurn) => {
    if (turn.message.kind !== 'answer') {
      const kept = await turn.step('keep', () => turn.request)
      expect(kept).toEqual(input)
      return turn.ask(kept)
    }
    return turn.finish([turn.request, turn.message.question, turn.message.value])
  })
  const first = await tutti.open({ store: place.store, definitions: [definition] })
  const { id } = await first.start(definition, { input })
  await until('it asks', async () => (await first.asks()).length === 1)
  await first.close()
  await using second = await tutti.open({ store: place.store, definitions: [definition] })
  const [ask] = await second.asks()
  expect(ask).toMatchObject({ question: input })
  const run = await second.run(id)
  await run.answer(ask?.id ?? '', input)
  expect(await run.output()).toEqual([input, input, input])
  await using third = await tutti.open({ store: place.store })
  expect(await (await third.run(id)).output()).toEqual([input, input, input])
})

test('runs that only wait are let go, however many there are, and each is found again', { timeout: patience.timeout * 2 }, async () => {
  using place = new Place()
  const store = await sqliteStore(place.store, { durability })
  const definition = counted(tutti, () => {})
  const engine = await tutti.open({ store, definitions: [definition] })
  const count = times(2_000, 20_000)
  const runs: tutti.Run[] = []
  for (let n = 0; n < count; n += 500) runs.push(...(await Promise.all(Array.from({ length: 500 }, () => engine.start(definition)))))
  await until('all ask', async () => (await engine.asks()).length === count, patience.timeout)
  const held = async (): Promise<number> => {
    const { runs: listed } = { runs: await store.list({ limit: count }) }
    return listed.filter(({ worker }) => worker !== null).length
  }
  await until('most are let go', async () => (await held()) <= 300)
  for (const run of [runs[0], runs[Math.floor(count / 2)], runs.at(-1)]) {
    const [ask] = (await run?.asks()) ?? []
    await run?.answer(ask?.id ?? '', 'found')
    expect(await run?.output()).toBe('found')
  }
  await engine.close()
  await store.close()
})

test('questions of runs that were let go expire when they are due', patience, async () => {
  using place = new Place()
  const definition = solo((turn: SoloTurn) =>
    turn.message.kind === 'request' ? turn.ask('?', { timeoutMs: 800 }) : turn.finish('expired'),
  )
  await using engine = await tutti.open({ store: place.store, definitions: [definition], workerTtlMs: 60_000 })
  const asking = counted(tutti, () => {})
  const expiring = await Promise.all(Array.from({ length: 20 }, () => engine.start(definition)))
  // Enough of others that only wait, so that there is no room for these.
  await Promise.all(Array.from({ length: 300 }, () => engine.start(asking)))
  const since = performance.now()
  for (const run of expiring) expect(await run.output()).toBe('expired')
  // Long before the next beat of the worker, which is the safety net.
  expect(performance.now() - since).toBeLessThan(6_000)
})

test('old runs are deleted in small batches, with their keys and values; the others stay', patience, async () => {
  using place = new Place()
  const store = await sqliteStore(place.store, { durability })
  const lines: string[] = []
  const definition = orphan(tutti, (line) => lines.push(line.split(' ')[2] ?? ''), { steps: 1, ms: 0 })
  const waiting = counted(tutti, () => {})
  const engine = await tutti.open({ store, definitions: [definition, waiting] })
  const stays = await engine.start(waiting, { input: 'y'.repeat(70_000) })
  for (let n = 0; n < 7; n++)
    await (await engine.start(definition, { id: `old-${n}`, key: `key-${n}`, input: 'x'.repeat(70_000 + n) })).output()
  const batches: number[] = []
  for (let gone = 1; gone > 0; batches.push(gone)) gone = await store.gc({ endedBefore: Date.now() + 1_000, limit: 3 })
  expect(batches).toEqual([3, 3, 1, 0])
  expect((await engine.runs()).runs.map(({ id }) => id)).toEqual([stays.id])
  await until('it asks', async () => (await stays.asks()).length === 1)
  await using other = await tutti.open({ store: place.store })
  expect(await codeOf(other.run('old-0'))).toBe('RUN_NOT_FOUND')
  // The id and the key are free again, and the effects of the new run are others.
  const again = await tutti.open({ store, definitions: [definition] })
  expect(await (await again.start(definition, { id: 'old-0', key: 'key-0' })).output()).toBe(1)
  expect(new Set(lines).size).toBe(8)
  await again.close()
  await engine.close()
  await store.close()
})

test('a run whose journal has a hole is not gone on with, and the others are', patience, async () => {
  using place = new Place()
  const gate = deferred<string>()
  const definition = solo(async (turn: SoloTurn) => turn.finish(await turn.step('held', () => gate.promise)))
  const first = await tutti.open({ store: place.store, definitions: [definition], graceMs: 0 })
  await first.start(definition, { id: 'damaged' })
  await first.start(definition, { id: 'whole' })
  await first.close()
  const connection = await openConnection(place.store, { durability })
  connection.exec("delete from batched where seq = 1 and rid = (select rid from run where id = 'damaged')")
  connection.close()
  gate.resolve('done')
  const told: string[] = []
  await using second = await tutti.open({
    store: place.store,
    definitions: [definition],
    onLog: ({ runId, message }) => void told.push(`${runId}: ${message}`),
  })
  expect(await (await second.run('whole')).output()).toBe('done')
  expect(await codeOf(second.run('damaged'))).toBe('STORE_UNAVAILABLE')
  await until('it is told of', () => told.some((line) => line.startsWith('damaged: ') && line.includes('event 1 is not there')))
})

test('a question that is damaged in the store keeps nobody from those of other runs', patience, async () => {
  using place = new Place()
  const asking = tutti.topology({
    name: 'asking',
    flows: ['Start -> A -> User', 'A -> End'],
    agents: { A: { act: { request: (turn) => turn.ask('well?'), answer: (turn, value) => turn.finish(value) } } },
  })
  const told: string[] = []
  await using engine = await tutti.open({
    store: place.store,
    definitions: [asking],
    onLog: ({ runId, message }) => void told.push(`${runId}: ${message}`),
  })
  for (const id of ['cut', 'null', 'whole']) await engine.start(asking, { id })
  await until('all ask', async () => (await engine.asks()).length === 3)
  const connection = await openConnection(place.store, { durability })
  connection.exec("update mark set body = '{' where rid = (select rid from run where id = 'cut')")
  connection.exec("update mark set body = 'null' where rid = (select rid from run where id = 'null')")
  connection.close()
  expect((await engine.asks()).map(({ runId }) => runId)).toEqual(['whole'])
  expect(told.map((line) => line.split(':')[0])).toEqual(['cut', 'null'])
  const run = await engine.run('cut')
  const [ask] = await run.asks()
  await run.answer(ask?.id ?? '', 'yes')
  expect(await run.output()).toBe('yes')
})

test('a process whose store has become that of a later version says so, writes nothing more, and can be closed', patience, async () => {
  using place = new Place()
  const definition = solo((turn: SoloTurn) => turn.finish('done'))
  const engine = await tutti.open({ store: place.store, definitions: [definition] })
  const run = await engine.start(definition, { id: 'before' })
  expect(await run.output()).toBe('done')
  const later = openDatabase(await loadDriver(), place.store, 'write')
  later.exec('pragma user_version = 99')
  expect(await codeOf(engine.start(definition, { id: 'after' }))).toBe('STORE_TOO_NEW')
  expect(await codeOf(engine.runs())).toBe('STORE_TOO_NEW')
  expect(later.prepare('select id from run').all()).toEqual([{ id: 'before' }])
  later.close()
  await engine.close()
  expect(await codeOf(tutti.open({ store: place.store }))).toBe('STORE_TOO_NEW')
})
