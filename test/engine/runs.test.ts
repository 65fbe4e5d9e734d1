import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { topology, TuttiError } from 'tutti'
import { expect, test } from 'vitest'
import { codeOf, deferred, forksEach, hub, journal, opened, rest, solo, typesOf } from './opened.js'

const echo = solo((turn) => turn.finish({ got: turn.request ?? null }))
const failing = solo((turn) => turn.fail(Object.assign(new Error('no luck'), { code: 'E_LUCK', tries: 3 })))

test('a run is started, has an id, and gives its output', async () => {
  await using tutti = await opened()
  const run = await tutti.start(echo, { input: { a: [1] }, tags: { tenant: 'acme' } })
  expect(run).toMatchObject({ id: expect.stringMatching(/^[A-Za-z0-9_-]{1,64}$/), definition: 'solo', tags: { tenant: 'acme' } })
  expect(await run.output()).toEqual({ got: { a: [1] } })
  expect(await tutti.execute(echo, { input: 7 })).toEqual({ got: 7 })
  expect(await tutti.execute(echo)).toEqual({ got: null })
})

test('start is acknowledged when the run is on record, before its first turn has ended', async () => {
  await using tutti = await opened()
  const held = deferred()
  const run = await tutti.start(
    solo(async (turn) => {
      await held.promise
      return turn.finish()
    }),
  )
  expect(await run.status()).toBe('running')
  expect((await tutti.runs()).runs.map(({ id }) => id)).toEqual([run.id])
  held.resolve()
  expect(await run.result()).toMatchObject({ status: 'succeeded' })
})

test('a definition can be started by its name if it was given at open, and an unknown one is refused', async () => {
  await using tutti = await opened({ definitions: [echo] })
  expect(await tutti.execute('solo', { input: 1 })).toEqual({ got: 1 })
  expect(await codeOf(tutti.start('nobody'))).toBe('DEFINITION_NOT_FOUND')
  expect(await codeOf(tutti.start({} as typeof echo))).not.toHaveProperty('accepted')
  expect((await tutti.runs()).runs).toHaveLength(1)
})

test('start executes the very object it is given, though another of its name was given before', async () => {
  await using tutti = await opened({ definitions: [echo] })
  const held = deferred()
  const other = solo(async (turn) => {
    await held.promise
    return turn.finish('the other')
  })
  const run = await tutti.start(other)
  const first = await tutti.execute(echo, { input: 'first' })
  held.resolve()
  expect(first).toEqual({ got: 'first' })
  expect(await run.output()).toBe('the other')
})

test('result never throws for a run that failed; output and execute do, with the failure', async () => {
  await using tutti = await opened()
  const run = await tutti.start(failing)
  const failure = { code: 'AGENT_FAILED', message: 'no luck', data: { code: 'E_LUCK', tries: 3 }, at: { branch: 'r', agent: 'A', turn: 1 } }
  expect(await run.result()).toMatchObject({ status: 'failed', error: failure, rollback: 'none' })
  const error = await run.output().catch((thrown: unknown) => thrown)
  expect(TuttiError.is(error, 'RUN_FAILED')).toBe(true)
  expect(error).toMatchObject({ failure, message: expect.stringContaining('no luck') })
  expect(await codeOf(tutti.execute(failing))).toBe('RUN_FAILED')
})

test('the result of a run is the same whenever it is asked for, by whoever, and as often as one likes', async () => {
  await using tutti = await opened()
  const run = await tutti.start(echo, { input: 1 })
  const early = await Promise.all([run.result(), run.result(), (await tutti.run(run.id)).result()])
  const late = await run.result()
  for (const result of early) expect(result).toEqual(late)
})

test('a run is found by its id, typed by its definition, and refused under another one', async () => {
  await using tutti = await opened()
  const { id } = await tutti.start(echo, { id: 'R-1_x' })
  expect(await (await tutti.run(id)).output()).toEqual({ got: null })
  expect((await tutti.run(id, echo)).definition).toBe('solo')
  const other = topology({ name: 'other', flows: ['Start -> A -> End'], agents: { A: (turn) => turn.finish() } })
  expect(await codeOf(tutti.run(id, other))).toBe('RUN_OF_OTHER_DEFINITION')
  expect(await codeOf(tutti.run('nobody'))).toBe('RUN_NOT_FOUND')
})

test('an id is used once, and one that is none is refused before anything is recorded', async () => {
  await using tutti = await opened()
  await tutti.execute(echo, { id: 'once' })
  expect(await codeOf(tutti.start(echo, { id: 'once' }))).toBe('RUN_EXISTS')
  for (const id of ['', 'a b', 'ä', 'a/b', 'x'.repeat(65), '../x']) expect(await codeOf(tutti.start(echo, { id }))).toBe('INVALID_INPUT')
  expect((await tutti.runs()).runs).toHaveLength(1)
})

test('who is refused a run is told what to do instead', async () => {
  await using tutti = await opened()
  const run = await tutti.start(echo, { id: 'taken' })
  await run.result()
  await expect(tutti.start(echo, { id: 'taken' })).rejects.toMatchObject({
    code: 'RUN_EXISTS',
    hint: expect.stringContaining('another id'),
  })
  const other = topology({ name: 'other', flows: ['Start -> A -> End'], agents: { A: (turn) => turn.finish() } })
  await expect(tutti.run('taken', other)).rejects.toMatchObject({ hint: expect.stringContaining('tutti.run(id)') })
  const held = await tutti.start(solo(async (turn) => (await turn.sleep(1_000_000), turn.finish())))
  await held.cancel()
  await expect(held.output()).rejects.toMatchObject({ code: 'RUN_CANCELLED', hint: expect.stringContaining('run.history()') })
})

test('of several starts with one id, at the same time, one is accepted and the run can be steered', async () => {
  await using tutti = await opened()
  let acted = 0
  const held = deferred()
  const waits = solo(async (turn) => {
    acted++
    await Promise.race([held.promise, new Promise((resolve) => turn.signal.addEventListener('abort', resolve))])
    return turn.finish()
  })
  const results = await Promise.all(Array.from({ length: 5 }, () => codeOf(tutti.start(waits, { id: 'R' }))))
  expect(results.filter((result) => result === 'RUN_EXISTS')).toHaveLength(4)
  const run = await tutti.run('R')
  await rest()
  expect(acted).toBe(1)
  await run.cancel()
  expect(await run.result()).toMatchObject({ status: 'cancelled' })
})

test('runs are listed newest first, by status, definition, tags and pages', async () => {
  await using tutti = await opened()
  for (let at = 0; at < 5; at++)
    await (await tutti.start(at % 2 ? failing : echo, { id: `R${at}`, tags: { at: `${at}`, all: 'yes' } })).result()
  const ids = async (filter: Parameters<typeof tutti.runs>[0]) => (await tutti.runs(filter)).runs.map(({ id }) => id)
  expect(await ids({})).toEqual(['R4', 'R3', 'R2', 'R1', 'R0'])
  expect(await ids({ status: 'failed' })).toEqual(['R3', 'R1'])
  expect(await ids({ status: ['failed', 'succeeded'], tags: { at: '2' } })).toEqual(['R2'])
  expect(await ids({ tags: { all: 'yes', at: '9' } })).toEqual([])
  expect(await ids({ definition: 'nobody' })).toEqual([])
  const seen: string[] = []
  for (let cursor: string | undefined; ; ) {
    const page = await tutti.runs({ limit: 2, ...(cursor !== undefined && { cursor }) })
    seen.push(...page.runs.map(({ id }) => id))
    cursor = page.cursor
    if (cursor === undefined) break
  }
  expect(seen).toEqual(['R4', 'R3', 'R2', 'R1', 'R0'])
  // After a page that is full and the last one there is none.
  expect(Object.keys(await tutti.runs({ limit: 5 }))).toEqual(['runs'])
  expect(Object.keys(await tutti.runs({ limit: 4 }))).toEqual(['runs', 'cursor'])
})

test('a summary says how a run stands and what it waits for', async () => {
  await using tutti = await opened()
  const asks = await tutti.start(
    solo((turn) => (turn.message.kind === 'answer' ? turn.finish(turn.message.value) : turn.ask('well?'))),
    { tags: { a: 'b' } },
  )
  await rest()
  expect(await asks.summary()).toMatchObject({
    id: asks.id,
    definition: 'solo',
    status: 'running',
    paused: false,
    tags: { a: 'b' },
    waitsFor: ['person'],
  })
  await asks.pause()
  expect(await asks.summary()).toMatchObject({ status: 'paused', paused: true })
  await asks.resume()
  const [ask] = await asks.asks()
  await asks.answer(ask?.id ?? '', 1)
  await asks.result()
  const { startedAt, endedAt = 0, ...summary } = await asks.summary()
  expect(summary).toMatchObject({ status: 'succeeded', waitsFor: [] })
  expect(endedAt).toBeGreaterThanOrEqual(startedAt)
})

test('runs of one definition know nothing of each other', async () => {
  await using tutti = await opened()
  const squares = hub(forksEach([1, 2, 3]), async (turn) =>
    turn.reply(await turn.step('square', () => turn.request ** 2 + Number(turn.tags['plus']))),
  )
  const runs = await Promise.all(Array.from({ length: 50 }, (_, plus) => tutti.start(squares, { tags: { plus: `${plus}` } })))
  expect(await Promise.all(runs.map((run) => run.output()))).toEqual(runs.map((_, plus) => [1 + plus, 4 + plus, 9 + plus]))
})

test('the report is there while a run goes on and after it, and is the one of its result', async () => {
  await using tutti = await opened()
  const held = deferred()
  const run = await tutti.start(
    hub(forksEach(['x', 'y']), async (turn) => {
      await held.promise
      return turn.reply(turn.request)
    }),
  )
  await rest()
  expect(await run.report()).toMatchObject({ runId: run.id, status: 'running', agents: ['H', 'W'] })
  held.resolve()
  const result = await run.result()
  expect(await run.report()).toEqual(result.report)
  expect(result.report).toMatchObject({ status: 'succeeded', output: ['x', 'y'], branches: [{ id: 'r' }, { id: 'r.0' }, { id: 'r.1' }] })
})

test('a journal begins with the start of its run, has no gap, and ends with its end', async () => {
  await using tutti = await opened()
  const run = await tutti.start(echo)
  const events = await journal(run)
  expect(events.map(({ seq }) => seq)).toEqual(events.map((_, at) => at + 1))
  expect(typesOf(events).at(0)).toBe('run.started')
  expect(typesOf(events).at(-1)).toBe('run.succeeded')
})

test('five agents give the same word whoever answers first', async () => {
  await using tutti = await opened()
  const order: (() => void)[] = []
  const slow = (value: string) => async (turn: { reply(value: unknown): never }) => {
    await new Promise<void>((resolve) => order.push(resolve))
    return turn.reply(value)
  }
  const words = new Set<unknown>()
  for (const last of [0, 1, 2]) {
    order.length = 0
    const run = await tutti.start(
      topology({
        name: 'secret-word',
        flows: ['Start -> O -> End', 'O -> A | B | C', 'C -> D', 'A | B | D -> O'],
        agents: {
          O: { act: { request: (turn) => turn.fork(['A', 'B', 'C']), join: (turn, join) => turn.finish(join.values.join('')) } },
          A: slow('M') as never,
          B: slow('A') as never,
          C: (turn) => turn.invoke('D', 'R'),
          D: slow('RS') as never,
        },
      }),
    )
    await rest()
    for (const at of [0, 1, 2]) if (at !== last) order[at]?.()
    await rest()
    order[last]?.()
    words.add(await run.output())
  }
  expect([...words]).toEqual(['MARS'])
})

test('of runs that are over and large few stay in memory, and all can be asked for', async () => {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  await using tutti = await opened()
  const definition = solo((turn) => turn.finish({ large: 'x'.repeat(100_000), n: turn.request }))
  const outputs: WeakRef<object>[] = []
  for (let n = 0; n < 40; n++) outputs.push(new WeakRef((await tutti.execute(definition, { id: `run-${n}`, input: n })) as object))
  for (let tries = 0; tries < 5; tries++) {
    await new Promise((resolve) => setImmediate(resolve))
    collect()
  }
  expect(outputs.filter((ref) => ref.deref() !== undefined).length).toBeLessThan(12)
  expect(await (await tutti.run('run-0')).output()).toMatchObject({ n: 0 })
})
