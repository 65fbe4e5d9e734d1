import { agent, graph, open, TuttiError, topology } from 'tutti'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { nothingLeft, Stage } from '../scenarios/adapter.js'
import { lasting } from './lasting.js'

const score = () =>
  topology({
    name: 'score',
    input: z.object({ text: z.string() }),
    output: z.object({ score: z.number() }),
    flows: ['Start -> R', 'R -> End'],
    agents: { R: (turn) => turn.finish({ score: (turn.request as { text: string }).text.length }) },
  })
const writer = () =>
  agent({
    name: 'Writer',
    input: z.object({ words: z.number() }),
    output: z.string(),
    act: (turn) => (turn as any).finish('word '.repeat(turn.request.words).trim()),
  })

const thrown = (): never => {
  throw new Error('no')
}
const isFirst = ({ runId }: { runId: string }): boolean => !runId.includes('@')
/** A run whose only work is done in a fork. */
const forking = (act: (turn: any) => any) =>
  topology({
    name: 'forking',
    flows: ['Start -> H -> End', 'H <-> B'],
    agents: { H: (turn) => (turn.message.kind === 'join' ? turn.finish() : turn.fork(['B'])), B: act },
  })

describe('a step that runs', () => {
  test('an agent, a topology or a graph is a child run with an id of its own, fed by `input`', async () => {
    await using tutti = await open({ store: 'memory:', invariants: true })
    const inner = graph('inner', { input: z.object({ n: z.number() }) })
      .step('double', { run: ({ input }) => input.n * 2 })
      .output(({ steps }) => steps.double)
    const definition = graph('outer', { input: z.object({ words: z.number() }) })
      .step('write', { input: ({ input }) => ({ words: input.words }), run: writer() })
      .step('rate', { after: ['write'], input: ({ steps }) => ({ text: steps.write }), run: score() })
      .step('twice', { after: ['rate'], input: ({ steps }) => ({ n: steps.rate.score }), run: inner })
      .output()
    const run = await tutti.start(definition, { id: 'P', input: { words: 2 }, tags: { team: 'red' } })
    expect(await run.output()).toEqual({ write: 'word word', rate: { score: 9 }, twice: 18 })
    const { runs } = await tutti.runs()
    expect(runs.map(({ id }) => id).toSorted()).toEqual(['P', 'P:rate', 'P:twice', 'P:write'])
    expect(runs.every(({ tags }) => tags['team'] === 'red')).toBe(true)
    expect(await (await tutti.run('P:twice')).output()).toBe(18)
  })

  test('an agent has its schemas held to what was sent and said, once, whatever they make of it', async () => {
    await using tutti = await open({ store: 'memory:', invariants: true })
    const output = z.number().transform((n) => `#${n}`)
    const counter = agent({
      name: 'Counter',
      input: z.string().transform(Number),
      output,
      act: (turn) => (turn as any).finish(turn.request + 1),
    })
    const definition = graph('counted')
      .step('count', { input: () => '5', run: counter })
      .output(({ steps }) => steps.count)
    expect(await tutti.execute(definition)).toBe('#6')
  })

  test('a definition for each item has a child run for each, named by its place', async () => {
    await using tutti = await open({ store: 'memory:', invariants: true })
    const definition = graph('each')
      .step('rate', { each: () => ['a', 'bb', 'ccc'], input: ({ item }) => ({ text: item }), run: score() })
      .output(({ steps }) => steps.rate)
    const run = await tutti.start(definition, { id: 'P' })
    expect(await run.output()).toEqual([{ score: 1 }, { score: 2 }, { score: 3 }])
    const { runs } = await tutti.runs({ definition: 'score' })
    expect(runs.map(({ id }) => id).toSorted()).toEqual(['P:rate:0', 'P:rate:1', 'P:rate:2'])
  })

  test('a definition that is tried again is another run, with the number of the attempt', async () => {
    await using tutti = await open({ store: 'memory:', invariants: true })
    let tries = 0
    const flaky = graph('flaky')
      .step('once', {
        run: () => {
          if (++tries < 3) throw new Error(`try ${tries}`)
          return tries
        },
      })
      .output(({ steps }) => steps.once)
    const definition = graph('again')
      .step('child', { retry: { attempts: 3 }, run: flaky })
      .output(({ steps }) => steps.child)
    expect(await tutti.execute(definition, { id: 'P' })).toBe(3)
    const { runs } = await tutti.runs({ definition: 'flaky' })
    expect(runs.map(({ id, status }) => `${id} ${status}`).toSorted()).toEqual([
      'P:child failed',
      'P:child@2 failed',
      'P:child@3 succeeded',
    ])
  })

  test('a child that fails every time it is tried is named without the number of the attempt', async () => {
    await using tutti = await open({ store: 'memory:', invariants: true })
    const bad = graph('bad')
      .step('never', {
        run: () => {
          throw new Error('no')
        },
      })
      .output()
    const definition = graph('again')
      .step('child', { retry: { attempts: 2 }, run: bad })
      .output()
    const result = await (await tutti.start(definition, { id: 'P' })).result()
    const { runs } = await tutti.runs({ definition: 'bad' })
    expect(runs.map(({ id }) => id).toSorted()).toEqual(['P:child', 'P:child@2'])
    expect(JSON.stringify(result)).toContain('the child run P:child failed')
    expect(JSON.stringify({ ...result.report, measured: null })).not.toContain('P:child@2')
  })

  test('a child whose agent fails on purpose is tried again as a whole, as its step says', async () => {
    await using tutti = await open({ store: 'memory:', invariants: true })
    let tries = 0
    const unsure = topology({
      name: 'unsure',
      flows: ['Start -> A', 'A -> End'],
      agents: { A: (turn) => (++tries < 2 ? turn.fail('not now') : turn.finish(tries)) },
    })
    const definition = graph('again')
      .step('child', { retry: { attempts: 2 }, run: unsure })
      .output(({ steps }) => steps.child)
    expect(await tutti.execute(definition)).toBe(2)
  })

  test.each([
    ['in a fork', forking((turn) => turn.reply(isFirst(turn) ? thrown() : 1)), 'succeeded'],
    ['in a fork, on purpose', forking((turn) => (isFirst(turn) ? turn.fail('not now') : turn.reply(1))), 'succeeded'],
    ['because its agent was sent back', forking((turn) => (isFirst(turn) ? turn.finish() : turn.reply(1))), 'succeeded'],
    [
      'because what it requires was skipped',
      graph('skips', { required: ['a'] })
        .step('a', { onError: 'skip', run: (ctx) => (isFirst(ctx) ? thrown() : 1) })
        .output(),
      'succeeded',
    ],
    [
      'in a fork of its own child',
      graph('middle')
        .step('low', { run: forking((turn) => turn.reply(isFirst(turn) ? thrown() : 1)) })
        .output(),
      'succeeded',
    ],
    [
      'by what must be done once',
      forking(async (turn) => turn.reply(await turn.step('pay', () => (isFirst(turn) ? 1n : 1), { idempotent: false }))),
      'failed',
    ],
  ])('a child that fails %s is started anew as its step says, unless that would do something twice', async (_, child, status) => {
    await using tutti = await open({ store: 'memory:', invariants: true })
    const definition = graph('again')
      .step('child', { retry: { attempts: 3 }, run: child })
      .output()
    expect(await (await tutti.start(definition, { id: 'P' })).result()).toMatchObject({ status })
    const tries = (await tutti.runs()).runs.filter(({ id }) => /^P:child(@\d)?$/.test(id))
    expect(tries).toHaveLength(status === 'succeeded' ? 2 : 1)
  })

  test('a child that fails fails with CHILD_FAILED, and the cause down to where it began', async () => {
    await using tutti = await open({ store: 'memory:', invariants: true })
    const broken = topology({
      name: 'broken',
      flows: ['Start -> A', 'A -> End'],
      agents: { A: (turn) => turn.fail(new Error('deep down')) },
    })
    const middle = graph('middle').step('low', { run: broken }).output()
    const definition = graph('top')
      .step('high', { run: middle })
      .step('beside', { run: () => 1 })
      .output()
    expect(await (await tutti.start(definition, { id: 'P' })).result()).toMatchObject({
      status: 'failed',
      error: {
        code: 'CHILD_FAILED',
        message: expect.stringContaining('P:high'),
        at: { step: 'high' },
        cause: {
          code: 'CHILD_FAILED',
          message: expect.stringContaining('P:high:low'),
          at: { step: 'low' },
          cause: { code: 'AGENT_FAILED', message: 'deep down', at: { agent: 'A' } },
        },
      },
    })
  })

  test('a child that fails is skipped or replaced where the step says so', async () => {
    await using tutti = await open({ store: 'memory:', invariants: true })
    const broken = graph('broken')
      .step('a', {
        run: (): number => {
          throw new Error('no')
        },
      })
      .output(({ steps }) => steps.a)
    const definition = graph('lenient')
      .step('skipped', { onError: 'skip', run: broken })
      .step('instead', { onError: { fallback: 7 }, run: broken })
      .output()
    expect(await tutti.execute(definition)).toEqual({ instead: 7 })
  })

  test('a child whose input is refused fails, and starts no run', async () => {
    await using tutti = await open({ store: 'memory:', invariants: true })
    const definition = graph('wrong')
      .step('rate', { input: () => ({ text: 5 }) as never, run: score() })
      .output()
    const result = await (await tutti.start(definition, { id: 'P' })).result()
    expect(result).toMatchObject({ status: 'failed', error: { at: { step: 'rate' } } })
    expect((await tutti.runs({ definition: 'score' })).runs).toEqual([])
  })
})

const holding = (stage: Stage) =>
  graph('holding')
    .step('first', { run: (ctx) => stage.held('first', ctx, 1) })
    .step('second', { after: ['first'], run: (ctx) => stage.held('second', ctx, 2) })
    .output(({ steps }) => steps.second)

describe('a child run', () => {
  test('is paused and resumed with the run that it belongs to, down to the last grandchild', async () => {
    await using stage = await Stage.open()
    const middle = graph('middle')
      .step('low', { run: holding(stage) })
      .output(({ steps }) => steps.low)
    const definition = graph('top')
      .step('high', { run: middle })
      .output(({ steps }) => steps.high)
    const run = await stage.tutti.start(definition, { id: 'P' })
    await stage.quiesce()
    await run.pause()
    await stage.quiesce()
    const statuses = async () => (await stage.tutti.runs()).runs.map(({ id, status }) => `${id} ${status}`).toSorted()
    expect(await statuses()).toEqual(['P paused', 'P:high paused', 'P:high:low paused'])
    stage.release('first')
    await stage.quiesce()
    expect(stage.waiting()).toEqual([])
    await run.resume()
    await stage.quiesce()
    expect(await statuses()).toEqual(['P running', 'P:high running', 'P:high:low running'])
    stage.release('second')
    expect(await run.output()).toBe(2)
    expect(await stage.quiesce()).toEqual(nothingLeft)
  })

  test('is cancelled with the run that it belongs to, and its effects are aborted and awaited', async () => {
    await using stage = await Stage.open()
    const middle = graph('middle')
      .step('low', { run: holding(stage) })
      .output()
    const definition = graph('top').step('high', { run: middle }).output()
    const run = await stage.tutti.start(definition, { id: 'P' })
    await stage.quiesce()
    await run.cancel({ reason: 'enough' })
    expect(await run.result()).toMatchObject({ status: 'cancelled', reason: 'enough' })
    expect(stage.effects().map(({ name, status }) => `${name} ${status}`)).toEqual(['first aborted'])
    const { runs } = await stage.tutti.runs()
    expect(runs.map(({ id, status }) => `${id} ${status}`).toSorted()).toEqual(['P cancelled', 'P:high cancelled', 'P:high:low cancelled'])
    expect(await stage.quiesce()).toEqual(nothingLeft)
  })

  test('is cancelled with its step where the first failure ends the graph', async () => {
    await using stage = await Stage.open()
    const definition = graph('fast', { stragglers: 'cancel' })
      .step('child', { run: holding(stage) })
      .step('bad', { run: (ctx) => stage.held('bad', ctx) })
      .output()
    const run = await stage.tutti.start(definition, { id: 'P' })
    await stage.quiesce()
    stage.release('bad', { throw: new Error('bad') })
    expect(await run.result()).toMatchObject({ status: 'failed', error: { message: 'bad' } })
    expect(await (await stage.tutti.run('P:child')).status()).toBe('cancelled')
    expect(await stage.quiesce()).toEqual(nothingLeft)
  })

  test('is cancelled when its step runs out of time, and the next attempt is another run', async () => {
    await using stage = await Stage.open()
    const definition = graph('late')
      .step('child', { timeoutMs: 1_000, retry: { attempts: 2 }, run: holding(stage) })
      .output(({ steps }) => steps.child)
    const run = await stage.tutti.start(definition, { id: 'P' })
    await stage.advance(1_000)
    expect(await (await stage.tutti.run('P:child')).status()).toBe('cancelled')
    stage.release('first')
    await stage.quiesce()
    stage.release('second')
    expect(await run.output()).toBe(2)
    expect((await stage.tutti.runs({ definition: 'holding' })).runs.map(({ id }) => id).toSorted()).toEqual(['P:child', 'P:child@2'])
  })

  test.each(['the run that it waits for', 'its input'])(
    'whose run is paused takes no time of its step, also if that was about %s then',
    async (about) => {
      await using stage = await Stage.open()
      const input = about === 'its input' ? (ctx: Parameters<Stage['held']>[1]) => stage.held('input', ctx) : () => null
      const definition = graph('late')
        .step('child', { timeoutMs: 1_000, input, run: holding(stage) })
        .output(({ steps }) => steps.child)
      const run = await stage.tutti.start(definition, { id: 'P' })
      await stage.advance(400)
      await run.pause()
      if (about === 'its input') stage.release('input')
      await stage.advance(100_000)
      expect(await run.status()).toBe('paused')
      await run.resume()
      await stage.advance(599)
      expect(await run.status()).toBe('running')
      await stage.advance(1)
      expect(await run.result()).toMatchObject({ status: 'failed', error: { code: 'TIMEOUT' } })
    },
  )

  test('that is cancelled by somebody else fails the step that waits for it', async () => {
    await using stage = await Stage.open()
    const definition = graph('top')
      .step('child', { run: holding(stage) })
      .output()
    const run = await stage.tutti.start(definition, { id: 'P' })
    await stage.quiesce()
    await (await stage.tutti.run('P:child')).cancel({ reason: 'by hand' })
    expect(await run.result()).toMatchObject({
      status: 'failed',
      error: { code: 'CHILD_FAILED', cause: { code: 'CANCELLED', message: 'by hand' } },
    })
  })

  test("that failed under 'pause' stays as it was; resuming the run starts another", async () => {
    await using stage = await Stage.open()
    let broken = true
    const flaky = graph('flaky')
      .step('a', {
        run: () => {
          if (broken) throw new Error('broken')
          return 1
        },
      })
      .output(({ steps }) => steps.a)
    const definition = graph('top')
      .step('child', { onError: 'pause', run: flaky })
      .output(({ steps }) => steps.child)
    const run = await stage.tutti.start(definition, { id: 'P' })
    await stage.quiesce()
    expect(await run.status()).toBe('paused')
    broken = false
    await run.resume()
    expect(await run.output()).toBe(1)
    const { runs } = await stage.tutti.runs({ definition: 'flaky' })
    expect(runs.map(({ id, status }) => `${id} ${status}`).toSorted()).toEqual(['P:child failed', 'P:child@2 succeeded'])
  })

  test('that pauses itself waits for a person who resumes it, and so does the run above; one that its run has paused does not', async () => {
    await using stage = await Stage.open()
    let broken = true
    const inner = graph('inner')
      .step('a', {
        onError: 'pause',
        run: () => {
          if (broken) throw new Error('broken')
          return 1
        },
      })
      .output(({ steps }) => steps.a)
    const middle = graph('middle')
      .step('inner', { run: inner })
      .output(({ steps }) => steps.inner)
    const top = graph('top')
      .step('middle', { run: middle })
      .output(({ steps }) => steps.middle)
    const run = await stage.tutti.start(top, { id: 'P' })
    const waiting = async () => {
      await stage.quiesce()
      const { runs } = await stage.tutti.runs()
      return runs.map(({ id, status, waitsFor }) => `${[id, status, ...waitsFor].join(' ')}`).toSorted()
    }
    expect(await waiting()).toEqual(['P running person', 'P:middle running person', 'P:middle:inner paused'])
    expect((await run.summary()).waitsFor).toEqual(['person'])
    await run.pause()
    expect(await waiting()).toEqual(['P paused', 'P:middle paused', 'P:middle:inner paused'])
    await run.resume()
    broken = false
    await (await stage.tutti.run('P:middle:inner')).resume()
    expect(await run.output()).toBe(1)
  })

  test('is cancelled while it is paused with its run', async () => {
    await using stage = await Stage.open()
    const definition = graph('top')
      .step('child', { run: holding(stage) })
      .output()
    const run = await stage.tutti.start(definition, { id: 'P' })
    await stage.quiesce()
    await run.pause()
    await stage.quiesce()
    await run.cancel()
    expect((await run.result()).status).toBe('cancelled')
    expect(await (await stage.tutti.run('P:child')).status()).toBe('cancelled')
    expect(await stage.quiesce()).toEqual(nothingLeft)
  })

  test('outlives the engine that it began on: whoever takes the run over goes on with it', async () => {
    const store = lasting()
    let calls = 0
    const definition = (go: Promise<void>) => {
      const inner = graph('inner')
        .step('first', { run: ({ step }) => step('call', () => ++calls) })
        .step('second', { after: ['first'], run: async ({ steps }) => (await go, steps.first) })
        .output(({ steps }) => steps.second)
      return graph('outer')
        .step('child', { run: inner })
        .output(({ steps }) => steps.child)
    }
    const never = new Promise<void>(() => {})
    const first = await open({ store, invariants: true, graceMs: 10 })
    await first.start(definition(never), { id: 'P' })
    // The child begins a moment after its parent.
    while ((await first.runs({ definition: 'inner' })).runs.length === 0) await new Promise((resolve) => setImmediate(resolve))
    for await (const event of (await first.run('P:child')).events()) if (event.type === 'turn.started' && event.agent === 'second') break
    await first.close()
    await using second = await open({ store, invariants: true, definitions: [definition(Promise.resolve())] })
    expect(await (await second.run('P')).output()).toBe(1)
    expect(await (await second.run('P:child')).status()).toBe('succeeded')
    expect(calls).toBe(1)
  })

  test('is gone on with also when what it was given would not be taken any more: it was taken when it began', async () => {
    const store = lasting()
    const definition = (is: 'first' | 'later', go: Promise<void>) => {
      const inner = graph('inner', { input: z.string().refine(() => is === 'first') })
        .step('wait', { run: async () => (await go, 'inner') })
        .output(({ steps }) => steps.wait)
      const forking = topology({
        name: 'stateful',
        flows: ['Start -> A -> End'],
        state: () => (is === 'first' ? { n: 1 } : thrown()),
        merge: { n: 'mine' },
        agents: { A: async (turn) => (await go, turn.finish(turn.state.n)) },
      })
      return graph('outer')
        .step('schema', { input: () => 'x', run: inner })
        .step('state', { input: () => 'x', run: forking })
        .step('json', {
          input: () => (is === 'first' ? 'x' : new Map()),
          run: graph('any')
            .step('a', { run: () => go })
            .output(() => 'any'),
        })
        .output()
    }
    const first = await open({ store, invariants: true, graceMs: 10 })
    await first.start(definition('first', new Promise<void>(() => {})), { id: 'P' })
    while ((await first.runs()).runs.length < 4) await new Promise((resolve) => setImmediate(resolve))
    await first.close()
    await using second = await open({ store, invariants: true, definitions: [definition('later', Promise.resolve())] })
    const result = await (await second.run('P')).result()
    expect(result).toMatchObject({ status: 'succeeded', output: { schema: 'inner', state: 1, json: 'any' } })
    for (const id of ['P:schema', 'P:state', 'P:json']) expect(await (await second.run(id)).status()).toBe('succeeded')
  })

  test('may ask a person, who answers it there', async () => {
    await using stage = await Stage.open()
    const asking = graph('asking')
      .ask('really', { question: () => 'really?', schema: z.boolean() })
      .output(({ steps }) => steps.really)
    const definition = graph('top')
      .step('child', { run: asking })
      .output(({ steps }) => steps.child)
    const run = await stage.tutti.start(definition, { id: 'P' })
    await stage.quiesce()
    const [ask] = await stage.tutti.asks()
    expect(ask).toMatchObject({ runId: 'P:child', agent: 'really', question: 'really?' })
    // What it waits for, whoever waits for it does too.
    expect(await run.summary()).toMatchObject({ id: 'P', status: 'running', waitsFor: ['person'] })
    expect((await stage.tutti.runs()).runs.map(({ waitsFor }) => waitsFor)).toEqual([['person'], ['person']])
    await run.pause()
    expect(await run.summary()).toMatchObject({ status: 'paused', waitsFor: ['person'] })
    await run.resume()
    await (await stage.tutti.run('P:child')).answer(ask?.id ?? '', true)
    expect(await run.output()).toBe(true)
    expect((await run.summary()).waitsFor).toEqual([])
  })

  test('nests no deeper than the depth that a run may have', async () => {
    await using tutti = await open({ store: 'memory:', invariants: true })
    let ran = 0
    let deep = graph('g0')
      .step('s', { run: () => ++ran })
      .output() as any
    for (let level = 1; level <= 4; level++) deep = graph(`g${level}`).step('s', { run: deep }).output()
    expect(await (await tutti.start(deep, { id: 'P', limits: { maxDepth: 4 } })).result()).toMatchObject({ status: 'succeeded' })
    expect(ran).toBe(1)
    const result = await (await tutti.start(deep, { id: 'Q', limits: { maxDepth: 3 } })).result()
    const causes: unknown[] = []
    for (let error = (result as any).error; error !== undefined; error = error.cause) causes.push(error.code)
    expect(causes.at(-1)).toBe('LIMIT_DEPTH')
    expect(ran).toBe(1)
  })

  test('is not held up by the room that its own step takes', async () => {
    await using stage = await Stage.open(undefined, { concurrency: 1 })
    const inner = graph('inner')
      .step('a', { run: () => 1 })
      .output(({ steps }) => steps.a)
    const definition = graph('outer')
      .step('child', { run: inner })
      .output(({ steps }) => steps.child)
    const run = await stage.tutti.start(definition)
    await stage.quiesce()
    expect(await run.status()).toBe('succeeded')
  })

  test('of an agent is not held up by a step of the same name', async () => {
    await using stage = await Stage.open()
    const Solo = agent({ name: 'Solo', concurrency: 1, act: (turn) => (turn as any).finish('done') })
    const definition = graph('same').step('Solo', { run: Solo }).output()
    const run = await stage.tutti.start(definition)
    await stage.quiesce()
    expect(await run.status()).toBe('succeeded')
  })

  test('runs under the limits that are left to it: those of the run around it hold for it too', async () => {
    await using tutti = await open({ store: 'memory:', invariants: true })
    const inner = graph('inner')
      .step('a', { run: () => 1 })
      .step('b', { after: ['a'], run: () => 2 })
      .step('c', { after: ['b'], run: () => 3 })
      .output()
    const definition = graph('outer').step('child', { run: inner }).output()
    expect(await (await tutti.start(definition, { limits: { maxTurns: 2 } })).result()).toMatchObject({
      status: 'failed',
      error: { code: 'CHILD_FAILED', cause: { code: 'LIMIT_TURNS' } },
    })
  })

  test('cannot be started by hand under an id that belongs to children', async () => {
    await using tutti = await open({ store: 'memory:', invariants: true })
    await expect(
      tutti.start(
        graph('x')
          .step('a', { run: () => 1 })
          .output(),
        { id: 'P:child' },
      ),
    ).rejects.toSatisfy((error) => TuttiError.is(error, 'INVALID_INPUT'))
  })
})
