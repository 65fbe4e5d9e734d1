import { existsSync } from 'node:fs'
import { setTimeout } from 'node:timers/promises'
import { agent, graph, open, resource, type Run, tool, topology, type Tutti, TuttiError } from 'tutti'
import { script, virtualClock } from 'tutti/testing'
import { expect, test } from 'vitest'
import { z } from 'zod'
import { sqliteStore } from '../../src/stores/sqlite.js'
import { Folder } from '../stores/folder.js'
import { opened, solo, type SoloTurn } from './opened.js'

/** What a call says that it is refused with; each must be INVALID_INPUT. */
async function refusal(calling: () => Promise<unknown>): Promise<string> {
  try {
    return `accepted: ${JSON.stringify(await calling())}`
  } catch (error) {
    return TuttiError.is(error, 'INVALID_INPUT') ? error.message : `refused otherwise: ${String(error)}`
  }
}

/** An engine is opened and closed. */
async function openAndClose(options: unknown): Promise<string> {
  await (await open(options as never)).close()
  return 'opened'
}

const finishing = solo((turn) => turn.finish(turn.request))
const db = resource<number>('db')

test.each([
  [null, /open\(\) takes an object of options, not null/],
  [5, /object of options, not 5/],
  ['x.db', /object of options, not 'x.db'/],
  [[], /object of options, not a list/],
  [{ stor: 'x.db' }, /there is no option 'stor' here \(did you mean store\?\); there are store, definitions/],
  [{ store: 5 }, /store is the path of a file, 'memory:' or a store, not 5/],
  [{ store: {} }, /store is the path/],
  [{ definitions: finishing }, /definitions is a list/],
  [{ definitions: new Set([finishing]) }, /definitions is a list/],
  [{ definitions: [{}] }, /definitions is a list of what topology.* has made, not this one/],
  [{ definitions: [finishing, solo((turn) => turn.finish(1))] }, /definitions: there are two of the name 'solo'/],
  [{ resources: db.of(1) }, /resources is a list/],
  [{ resources: [db] }, /resources is a list of what resource.* has made, not this one/],
  [{ resources: [db.of(1), db.of(2)] }, /resources: there are two of the name 'db'/],
  [{ models: 'sim' }, /models is a function, not 'sim'/],
  [{ prices: 5 }, /prices is an object, not 5/],
  [{ prices: { gpt: 1 } }, /the price of 'gpt'/],
  [{ concurrency: 1.5 }, /concurrency is a whole number of at least 1, not 1.5/],
  [{ concurrency: '4' }, /concurrency is a whole number of at least 1, not '4'/],
  [{ concurrency: 0 }, /concurrency is a whole number of at least 1, not 0/],
  [{ limits: 5 }, /limits is an object, not 5/],
  [{ limits: null }, /limits is an object, not null/],
  [{ limits: { maxTurn: 1 } }, /limits.maxTurn: there is no limit 'maxTurn' \(did you mean maxTurns\?\)/],
  [{ limits: { maxTurns: -1 } }, /limits.maxTurns: maxTurns is a whole number of at least 1, not -1/],
  [{ clock: {} }, /clock is an object with now\(\) and sleep\(ms\), not this one/],
  [{ workerTtlMs: 0 }, /workerTtlMs is a number of milliseconds above 0, not 0/],
  [{ workerTtlMs: 'x' }, /workerTtlMs is a number/],
  [{ graceMs: '10' }, /graceMs is a number of milliseconds of at least 0, not '10'/],
  [{ graceMs: Number.NaN }, /graceMs is a number .*, not NaN/],
  [{ durability: 'powr' }, /durability is 'process' or 'power', not 'powr'/],
  [{ onLog: 5 }, /onLog is a function, not 5/],
  [{ invariants: 'on' }, /invariants is true or false, not 'on'/],
])('no engine is opened with %j', async (options, message) => {
  const given = options !== null && typeof options === 'object' && !Array.isArray(options) ? { store: 'memory:', ...options } : options
  expect(await refusal(() => openAndClose(given))).toMatch(message)
})

test('what is wrong with the options of open is said all at once, and no file is made', async () => {
  using place = new Folder()
  const store = place.file()
  await expect(open({ store, durability: 'powr', graceMs: -1, limit: {} } as never)).rejects.toMatchObject({
    code: 'INVALID_INPUT',
    problems: [
      { code: 'BAD_OPTION', where: 'durability' },
      { code: 'BAD_OPTION', where: 'graceMs' },
      { code: 'UNKNOWN_OPTION', where: 'limit' },
    ],
  })
  expect(existsSync(store)).toBe(false)
})

test('every option that open declares is taken', async () => {
  using place = new Folder()
  const store = await sqliteStore(place.file(), { durability: 'process' })
  const all = {
    store,
    definitions: [finishing, finishing],
    resources: [db.of(1), resource<number>('other').perRun(() => 2)],
    models: () => undefined,
    prices: { gpt: { input: 1, output: 2 } },
    concurrency: Number.POSITIVE_INFINITY,
    limits: { timeoutMs: 0.5, maxTurns: 1, tokens: 1, costUsd: 0.1 },
    clock: virtualClock(),
    workerTtlMs: 0.5,
    graceMs: 0,
    durability: 'power',
    onLog: () => {},
    invariants: true,
  }
  expect(await refusal(() => openAndClose(all))).toMatch(/opened/)
  const left = Object.fromEntries(Object.keys(all).map((key) => [key, undefined]))
  expect(await refusal(() => openAndClose({ ...left, store: 'memory:' }))).toMatch(/opened/)
  await store.close()
})

const startRefusals: readonly (readonly [options: unknown, message: RegExp])[] = [
  [null, /start\(\) takes an object of options, not null/],
  [5, /object of options, not 5/],
  [{ tag: { a: 'b' } }, /there is no option 'tag' here \(did you mean tags\?\)/],
  [{ by: 'me' }, /there is no option 'by'/],
  [{ id: 5 }, /id is a text of 1 to 64 letters, digits, _ and -, not 5/],
  [{ id: 'a b' }, /id is a text .*, not 'a b'/],
  [{ id: null }, /id is a text .*, not null/],
  [{ tags: null }, /tags is a record of texts.*, not null/],
  [{ tags: { a: 'x', b: 1 } }, /tags is a record of texts.*, not one in which b is 1$/],
  [{ tags: { a: 'x\0y' } }, /tags is a record of texts.*, not one in which a is "x\\u0000y"$/],
  [{ tags: { 'k\n': 'x' } }, /tags is a record of texts.*, not one with the name "k\\n"$/],
  [{ tags: JSON.parse('{"__proto__":"x"}') }, /the tags can't be kept, at __proto__/],
  [{ limits: 5 }, /limits is an object, not 5/],
  [{ limits: null }, /limits is an object, not null/],
  [{ limits: { foo: 1 } }, /there is no limit 'foo'/],
  [{ limits: { maxTurns: 'x' } }, /maxTurns is a whole number of at least 1, not 'x'/],
  [{ limits: { maxTurns: 0 } }, /maxTurns is .*, not 0; left out, it is 1000000$/],
  [{ limits: { tokens: 0 } }, /tokens is .*, not 0; leave it out for no limit$/],
  [{ limits: { concurrency: 0 } }, /concurrency is .*, not 0; leave it out for no limit$/],
  [{ key: 5 }, /an idempotency key is a text/],
  [{ session: 5 }, /a session is a text/],
  [{ signal: 5 }, /signal is an AbortSignal, not 5/],
  [{ signal: null }, /signal is an AbortSignal, not null/],
  [{ signal: new AbortController() }, /signal is an AbortSignal, not an object/],
  [{ signal: { aborted: true } }, /signal is an AbortSignal, not an object/],
]

test('options that are inherited are held to what they must be, and taken', async () => {
  await using tutti = await opened()
  class Chosen {
    readonly #id: string
    constructor(id: string) {
      this.#id = id
    }
    get id(): string {
      return this.#id
    }
  }
  for (const options of [Object.create({ id: 'a b!' }), new Chosen('a b!')])
    expect(await refusal(() => tutti.start(finishing, options as never))).toMatch(/id is a text .*, not 'a b!'/)
  expect((await tutti.runs()).runs).toEqual([])
  expect((await tutti.start(finishing, Object.create({ id: 'made' }) as never)).id).toBe('made')
  expect((await tutti.start(finishing, new Chosen('got'))).id).toBe('got')
})

/** One that has its options as a class has them. */
class Inherits {
  get maxTurns(): number {
    return 1
  }
}
const two = (rest: object = {}): ReturnType<typeof solo> =>
  topology({
    name: 'two',
    flows: ['Start -> A -> B -> End'],
    agents: { A: (turn) => turn.invoke('B'), B: (turn) => turn.finish(1) },
    ...rest,
  }) as never

test('limits that are inherited are held to what they must be, and hold', async () => {
  const limits = new Inherits()
  const error = { code: 'RUN_FAILED', failure: { code: 'LIMIT_TURNS' } }
  await using tutti = await opened()
  await expect(tutti.execute(two(), { limits })).rejects.toMatchObject(error)
  await expect(tutti.execute(two({ limits }))).rejects.toMatchObject(error)
  const steps = graph('steps', { limits })
    .step('a', { run: () => 1 })
    .step('b', { run: () => 2 })
    .output()
  await expect(tutti.execute(steps)).rejects.toMatchObject(error)
  await using limited = await opened({ limits })
  await expect(limited.execute(two())).rejects.toMatchObject(error)
  const wrong = Object.create({ maxTurns: 0 }) as object
  expect(await refusal(() => tutti.start(two(), { limits: wrong }))).toMatch(/maxTurns is a whole number/)
  expect(await refusal(() => openAndClose({ store: 'memory:', limits: wrong }))).toMatch(/maxTurns is a whole number/)
  expect(() => two({ limits: wrong })).toThrow(/maxTurns is a whole number/)
})

test('what an engine is opened with may be inherited', async () => {
  class Options {
    get store(): string {
      return 'memory:'
    }
    get clock(): ReturnType<typeof virtualClock> {
      return virtualClock(77)
    }
  }
  await using tutti = await open(new Options())
  const run = await tutti.start(finishing)
  await run.result()
  expect((await run.summary()).startedAt).toBe(77)
})

test('what an agent or a tool is made of may be inherited, and its methods find what they belong to', async () => {
  class Clerk {
    readonly #tries: number[] = []
    get tries(): readonly number[] {
      return this.#tries
    }
    get retry(): object {
      return Object.create({ attempts: 3 }) as object
    }
    act(turn: SoloTurn): unknown {
      this.#tries.push(turn.attempt)
      if (turn.attempt < 3) throw new Error('not yet')
      return turn.finish(turn.attempt)
    }
  }
  await using tutti = await opened()
  const [recorded, listed] = [new Clerk(), new Clerk()]
  expect(await tutti.execute(solo(recorded as never))).toBe(3)
  expect(recorded.tries).toEqual([1, 2, 3])
  const inList = Object.assign(listed, { name: 'A' }) as unknown as { name: 'A' }
  expect(await tutti.execute(solo('' as never, { agents: [agent(inList)] }))).toBe(3)
  class Refund {
    readonly description = 'Pays back.'
    readonly input = z.object({ cents: z.number() })
    readonly #limit = 5
    run({ cents }: { cents: number }): number {
      return cents
    }
    needsApproval({ cents }: { cents: number }): boolean {
      return cents > this.#limit
    }
  }
  const models = script({ A: [{ tool: 'refund', input: { cents: 6 } }, { finish: 'paid' }] })
  await using asking = await opened({ models })
  const flows = ['Start -> A -> End', 'A -> User']
  const run = await asking.start(topology({ name: 'desk', flows, agents: { A: { tools: { refund: tool(new Refund()) } } } }))
  for await (const event of run.events()) if (event.type === 'ask.opened') break
  expect(await run.asks()).toMatchObject([{ kind: 'approval', tool: 'refund', input: { cents: 6 } }])
})

test('a command under a key that is inherited is done once', async () => {
  await using tutti = await opened()
  const run = await tutti.start(
    solo({ act: { request: (turn: SoloTurn) => turn.ask('sure?'), answer: (turn: SoloTurn, said: unknown) => turn.finish(said) } }),
  )
  for await (const event of run.events()) if (event.type === 'ask.opened') break
  const [ask] = await run.asks()
  const command = Object.create({ key: 'mine' }) as object
  await run.answer(ask?.id ?? '', 'yes', command)
  await run.answer(ask?.id ?? '', 'yes', command)
  expect(await run.output()).toBe('yes')
})

test.each(startRefusals)('no run is started with %j', async (options, message) => {
  await using tutti = await opened()
  expect(await refusal(() => tutti.start(finishing, options as never))).toMatch(message)
  expect(await refusal(() => tutti.execute(finishing, options as never))).toMatch(message)
  expect((await tutti.runs()).runs).toEqual([])
})

const status = /status is 'running' or 'paused' or 'compensating' or 'succeeded' or 'failed' or 'cancelled' or a list of them, not/
const runsRefusals: readonly (readonly [filter: unknown, message: RegExp])[] = [
  [null, /runs\(\) takes an object of options, not null/],
  ['running', /object of options, not 'running'/],
  [{ states: 'running' }, /there is no option 'states'/],
  [{ status: 'done' }, status],
  [{ status: ['running', 'done'] }, status],
  [{ definition: 5 }, /definition is a string that is not empty, not 5/],
  [{ tags: 5 }, /tags is a record of texts/],
  [{ tags: { a: 1 } }, /tags is a record of texts/],
  [{ since: '2020' }, /since is a number, not '2020'/],
  [{ limit: 0 }, /limit is a whole number of at least 1, not 0/],
  [{ limit: 1.5 }, /limit is a whole number of at least 1, not 1.5/],
  [{ cursor: 5 }, /cursor is one that runs\(\) has given, not 5/],
  [{ cursor: '' }, /cursor is one that runs\(\) has given/],
]

test.each(runsRefusals)('no runs are listed by %j', async (filter, message) => {
  await using tutti = await opened()
  expect(await refusal(() => tutti.runs(filter as never))).toMatch(message)
})

const asksRefusals: readonly (readonly [filter: unknown, message: RegExp])[] = [
  [null, /asks\(\) takes an object of options, not null/],
  [{ run: 'a' }, /there is no option 'run'/],
  [{ runId: 5 }, /runId is a string that is not empty, not 5/],
  [{ agent: 5 }, /agent is a string/],
  [{ tags: { a: 1 } }, /tags is a record of texts/],
]

test.each(asksRefusals)('no asks are listed by %j', async (filter, message) => {
  await using tutti = await opened()
  expect(await refusal(() => tutti.asks(filter as never))).toMatch(message)
})

const eventsRefusals: readonly (readonly [options: unknown, message: RegExp])[] = [
  [null, /events\(\) takes an object of options, not null/],
  [{ from: 1 }, /there is no option 'from'/],
  [{ after: -1 }, /after is a whole number of at least 0, not -1/],
  [{ signal: 5 }, /signal is an AbortSignal, not 5/],
  [{ deltas: 'yes' }, /deltas is true or false, not 'yes'/],
]

test.each(eventsRefusals)('no events are read with %j', async (options, message) => {
  await using tutti = await opened()
  const run = await tutti.start(finishing, { input: 1 })
  expect(
    await refusal(async () =>
      run
        .events(options as never)
        [Symbol.asyncIterator]()
        .next(),
    ),
  ).toMatch(message)
})

type Commanded = (run: Run, tutti: Tutti, options: never) => Promise<unknown>

const commands: Readonly<Record<string, Commanded>> = {
  'run.pause()': (run, _, o) => run.pause(o),
  'run.resume()': (run, _, o) => run.resume(o),
  'run.cancel()': (run, _, o) => run.cancel(o),
  'run.answer()': (run, _, o) => run.answer('r.ask1', 'yes', o),
  'agents.pause()': (_, tutti, o) => tutti.agents.pause('A', o),
  'agents.terminate()': (_, tutti, o) => tutti.agents.terminate('A', o),
}

const commandRefusals: readonly (readonly [call: string, options: unknown, message: RegExp])[] = [
  ...Object.keys(commands).flatMap((call) => [
    [call, null, /takes an object of options, not null/] as const,
    [call, { idempotencyKey: 'a' }, /there is no option 'idempotencyKey' here/] as const,
    [call, { by: 5 }, /`by` is a text/] as const,
  ]),
  ['run.cancel()', { reason: 5 }, /reason is a string, not 5/],
  ['run.cancel()', { compensate: 'no' }, /compensate is true or false, not 'no'/],
  ['run.pause()', { reason: 'rest' }, /there is no option 'reason' here; there are key, by/],
  ['agents.pause()', { ifRevision: '1' }, /ifRevision is a number, not '1'/],
]

test.each(commandRefusals)('%s with %j does nothing', async (call, options, message) => {
  await using tutti = await opened()
  const asking = topology({ name: 'asking', flows: ['Start -> A -> End', 'A -> User'], agents: { A: async (turn) => turn.ask('sure?') } })
  const run = await tutti.start(asking)
  for await (const { type } of run.events()) if (type === 'ask.opened') break
  expect(await refusal(() => commands[call]?.(run, tutti, options as never) ?? Promise.resolve())).toMatch(message)
  expect({ status: await run.status(), asks: (await run.asks()).length, agent: (await tutti.agents.get('A')).status }).toEqual({
    status: 'running',
    asks: 1,
    agent: 'running',
  })
})

test('every option that start, runs and asks declare is taken', async () => {
  await using tutti = await opened()
  const { signal } = new AbortController()
  const options = { id: 'a', input: 1, key: 'k', tags: { a: 'b' }, session: 's', limits: { maxTurns: 5 }, signal }
  expect(await tutti.execute(finishing, options)).toBe(1)
  const left = { id: undefined, key: undefined, tags: undefined, session: undefined, limits: undefined, signal: undefined }
  expect(await tutti.execute(finishing, { ...left, input: 2 })).toBe(2)
  const filter = { status: 'succeeded', definition: 'solo', tags: { a: 'b' }, since: 0, limit: 5_000, cursor: '9' } as const
  expect((await tutti.runs(filter)).runs.map(({ id }) => id)).toEqual(['a'])
  expect((await tutti.runs({ status: ['failed', 'cancelled'] })).runs).toEqual([])
  expect(await tutti.asks({ runId: 'a', agent: 'A', tags: {} })).toEqual([])
})

test('a clock whose sleeps are rejected when they are broken off, as those of Node are, is a clock', async () => {
  const clock = { now: () => Date.now(), sleep: (ms: number, signal?: AbortSignal) => setTimeout(ms, undefined, { signal }) }
  await using tutti = await opened({ clock, graceMs: 50 })
  const asleep = await tutti.start(solo(async (turn) => turn.finish(await turn.sleep(60_000))))
  const again = { retry: { attempts: 2, backoffMs: 60_000 } }
  const backing = await tutti.start(
    solo(async (turn) => turn.finish(await turn.step('call', () => Promise.reject(new Error('busy')), again))),
  )
  expect(await tutti.execute(solo({ timeoutMs: 60_000, act: async (turn: SoloTurn) => turn.finish(await turn.sleep(5)) }))).toBeUndefined()
  for (const run of [asleep, backing]) {
    await run.cancel()
    expect((await run.result()).status).toBe('cancelled')
  }
})
