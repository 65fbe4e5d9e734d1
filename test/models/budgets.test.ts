import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Graph, GraphBuilder, ModelFactory, Store } from 'tutti'
import { agent, graph, topology } from 'tutti'
import { script, virtualClock } from 'tutti/testing'
import { describe, expect, test } from 'vitest'
import { deferred, journal, opened, rest } from '../engine/opened.js'
import { placeOf } from '../../src/models/call-place.js'
import { memoryStore } from '../../src/stores/memory.js'
import { called, saying } from './spied.js'

const team = topology({
  name: 'team',
  flows: ['Start -> H -> End', 'H <-> W'],
  agents: {
    H: (turn) =>
      turn.message.kind === 'join'
        ? turn.finish(turn.message.join.values.length)
        : turn.fork(Array.from({ length: 8 }, (_, n) => ({ to: 'W' as const, request: n }))),
    W: {},
  },
})

/** Models that answer when the test says so, and how many were called. */
function counted(): { models: ModelFactory; calls: () => number; go: () => void } {
  const gate = deferred()
  let calls = 0
  const model = saying(() => [{ type: 'text', text: 'done' }])
  return {
    calls: () => calls,
    go: () => gate.resolve(),
    models: () => ({
      ...model,
      doGenerate: async (options: Parameters<typeof model.doGenerate>[0]) => {
        calls++
        await gate.promise
        return model.doGenerate(options)
      },
    }),
  }
}

describe('a limit of tokens', () => {
  test('I4 is kept before anything is called: with room for some of eight calls at once, no more than those start', async () => {
    const { models, calls, go } = counted()
    await using tutti = await opened({ models })
    const run = await tutti.start(team, { limits: { tokens: 20_000 } })
    const result = await run.result()
    expect(result).toMatchObject({ status: 'failed', error: { code: 'LIMIT_TOKENS' } })
    expect(calls()).toBeLessThan(8)
    const started = (await journal(run)).filter(({ type }) => (type as string) === 'activity.started')
    const reserved = started.reduce((sum, event) => sum + (event as unknown as { reserve: { tokens: number } }).reserve.tokens, 0)
    expect(reserved).toBeLessThanOrEqual(20_000)
    expect(calls()).toBeLessThanOrEqual(started.length)
    go()
  })

  test('counts what calls really used once they are over', async () => {
    const { models, calls, go } = counted()
    go()
    await using tutti = await opened({ models })
    const result = await (await tutti.start(team, { limits: { tokens: 100_000 } })).result()
    expect(result).toMatchObject({ status: 'succeeded', output: 8, report: { measured: { usage: { inputTokens: 80, outputTokens: 40 } } } })
    expect(calls()).toBe(8)
  })

  test.each([
    ['a provider that tells none', { inputTokens: {}, outputTokens: {} }],
    ['a provider that tells nonsense', { inputTokens: { total: -1 }, outputTokens: { total: Number.NaN } }],
  ])('counts what is estimated for %s, or it would hold nothing', async (_, usage) => {
    const solo = topology({ name: 'solo', flows: ['Start -> A -> End'], agents: { A: { maxRejections: 1_000 } } })
    let calls = 0
    const model = saying(() => [called('nothing', { number: ++calls })], usage as never)
    await using tutti = await opened({ models: () => model })
    expect(await (await tutti.start(solo, { limits: { tokens: 20_000 } })).result()).toMatchObject({
      status: 'failed',
      error: { code: 'LIMIT_TOKENS' },
      report: { measured: { usage: { inputTokens: expect.toSatisfy((tokens: number) => tokens > 10_000 && tokens <= 20_000) } } },
    })
    expect(calls).toBeLessThan(50)
  })

  test.each([
    ['told', { inputTokens: { total: 100 }, outputTokens: { total: 10 } }, { inputTokens: 300, outputTokens: 30 }],
    ['estimated', { inputTokens: {}, outputTokens: {} }, null],
  ])('counts what attempts have used that broke off, as it is %s', async (_, usage, counted) => {
    const solo = topology({ name: 'solo', flows: ['Start -> A -> End'], agents: { A: { retry: { backoffMs: 1 } } } })
    const answers = ['error', 'error', 'stop'] as const
    const model = {
      ...saying(() => []),
      doGenerate: async ({ providerOptions }: { providerOptions?: unknown }) => {
        const unified = answers[placeOf({ providerOptions })?.index ?? 0] ?? 'stop'
        return { content: [{ type: 'text', text: 'a text of some words' }], finishReason: { unified, raw: unified }, usage, warnings: [] }
      },
    } as unknown as ReturnType<typeof saying>
    await using tutti = await opened({ models: () => model })
    const { measured } = (await (await tutti.start(solo, { limits: { tokens: 100_000 } })).result()).report
    if (counted !== null) return expect(measured.usage).toEqual(counted)
    expect(measured.usage.outputTokens % 3).toBe(0)
    expect(measured.usage.outputTokens).toBeGreaterThan(15)
    expect(measured.usage.inputTokens).toBeGreaterThan(30)
  })

  test('sets as much aside for a text of characters of several bytes as it may have tokens', async () => {
    const { models, calls, go } = counted()
    go()
    await using tutti = await opened({ models })
    const solo = topology({ name: 'solo', flows: ['Start -> A -> End'], agents: { A: {} } })
    const result = await (await tutti.start(solo, { input: '漢'.repeat(6_000), limits: { tokens: 5_000 } })).result()
    expect(result).toMatchObject({ status: 'failed', error: { code: 'LIMIT_TOKENS' } })
    expect(calls()).toBe(0)
  })

  test('counts a call that was given up with all that was set aside for it: nobody will know what it used', async () => {
    // Each round one of two answers, the other listens to nobody; a call may use at most 4,096 tokens and what its prompt has.
    const race = (rounds: number) =>
      topology({
        name: 'race',
        flows: ['Start -> H -> End', 'H <-> W'],
        agents: {
          H: (turn) => (turn.turn > rounds ? turn.finish('done') : turn.fork(['W', 'W'], { join: 'any', request: turn.turn })),
          W: {},
        },
      })
    const never = deferred()
    const quick = saying(() => [{ type: 'text', text: 'done' }])
    let calls = 0
    const models: ModelFactory = () => ({
      ...quick,
      doGenerate: async (options: Parameters<typeof quick.doGenerate>[0]) => {
        if (++calls % 2 === 0) await never.promise
        return quick.doGenerate(options)
      },
    })
    const usage = { inputTokens: 20, outputTokens: 10 }
    await using tutti = await opened({ models, graceMs: 1 })
    const limits = { tokens: 20_000 }
    expect(await (await tutti.start(race(2), { limits })).result()).toMatchObject({ status: 'succeeded', report: { measured: { usage } } })
    expect(await (await tutti.start(race(9), { limits })).result()).toMatchObject({ status: 'failed', error: { code: 'LIMIT_TOKENS' } })
    expect(calls).toBeLessThanOrEqual(4 + 8)
    never.resolve()
  })

  test('I4 is kept by a call that is tried again because its answer broke off: where there is no room for another, none is made', async () => {
    let calls = 0
    const model = saying(() => [])
    const doStream = async ({ maxOutputTokens = 0 }) => {
      calls++
      const said = [
        { type: 'text-delta', id: '1', delta: 'y'.repeat(3 * maxOutputTokens) },
        { type: 'error', error: 'the server had an error' },
      ]
      return { stream: new ReadableStream({ start: (to) => (said.forEach((part) => to.enqueue(part)), to.close()) }) }
    }
    const solo = topology({ name: 'solo', flows: ['Start -> A -> End'], agents: { A: { retry: { attempts: 9, backoffMs: 1 } } } })
    await using tutti = await opened({ models: () => ({ ...model, doStream }) as typeof model })
    // Each may use a quarter of it, and what is asked.
    const run = await tutti.start(solo, { limits: { tokens: 4_000 } })
    for await (const _ of run.events({ deltas: true }));
    expect(await run.result()).toMatchObject({ status: 'failed', error: { code: 'LIMIT_TOKENS' } })
    expect(calls).toBe(3)
  })

  test('counts a call that its process has left in the middle, each time, and so often none is made again', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'tutti-budgets-'))
    try {
      let calls = 0
      const never = saying(() => [])
      const models: ModelFactory = () => ({ ...never, doGenerate: () => (calls++, new Promise(() => {})) })
      const solo = topology({ name: 'solo', flows: ['Start -> A -> End'], agents: { A: {} } })
      // Room for three answers of 1,250 tokens and what is asked, and for none more.
      const limits = { tokens: 5_000 }
      for (let process = 1; process <= 3; process++) {
        await using tutti = await opened({ store: join(folder, 'runs.db'), definitions: [solo], models, graceMs: 1 })
        if (process === 1) await tutti.start(solo, { id: 'R', limits })
        await expect.poll(() => calls).toBe(process)
      }
      await using tutti = await opened({ store: join(folder, 'runs.db'), definitions: [solo], models, graceMs: 1 })
      expect(await (await tutti.run('R')).result()).toMatchObject({ status: 'failed', error: { code: 'LIMIT_TOKENS' } })
      expect(calls).toBe(3)
    } finally {
      rmSync(folder, { recursive: true, force: true })
    }
  })

  test('that is not there journals no start of a call', async () => {
    await using tutti = await opened({ models: script({ W: ['w'] }) })
    const run = await tutti.start(team)
    await run.output()
    expect((await journal(run)).filter(({ type }) => (type as string) === 'activity.started')).toEqual([])
  })
})

describe('a limit of cost', () => {
  const solo = topology({ name: 'solo', flows: ['Start -> A -> End'], agents: { A: {} } })
  const models: ModelFactory = () => saying(({ index }) => (index < 3 ? [called('nothing', {})] : [called('finish', { output: 'ok' })]))

  test('is kept by the prices that are given', async () => {
    const prices = { 'test/saying': { input: 1_000, output: 1_000 } }
    await using tutti = await opened({ models, prices })
    expect(await (await tutti.start(solo, { limits: { costUsd: 0.001 } })).result()).toMatchObject({
      status: 'failed',
      error: { code: 'LIMIT_COST' },
    })
    const rich = await (await tutti.start(solo, { limits: { costUsd: 1_000 } })).result()
    // Three answers were sent back, so there were three; each took 15 tokens.
    expect(rich.report.measured.usage).toMatchObject({ inputTokens: 30, outputTokens: 15, costUsd: expect.closeTo(0.045, 6) })
  })

  test('that nobody can keep, because no price is known, is no limit: the call is not made', async () => {
    await using tutti = await opened({ models })
    const result = await (await tutti.start(solo, { limits: { costUsd: 5 } })).result()
    expect(result).toMatchObject({
      status: 'failed',
      error: { code: 'MODEL_FAILED', message: expect.stringMatching(/nobody knows what test\/saying costs/) },
    })
    expect(result.report.measured.usage).toEqual({ inputTokens: 0, outputTokens: 0 })
  })
})

describe('a budget', () => {
  const writer = agent({ name: 'Writer', instructions: 'write' })
  const items =
    (count: number): (() => number[]) =>
    () =>
      Array.from({ length: count }, (_, item) => item)
  const written = { each: items(6), input: () => 'x', run: writer } as const

  /** Models that use so many tokens with each call. */
  const using = (tokens: number): { models: ModelFactory; calls: () => number } => {
    let calls = 0
    const model = saying(() => [called('finish', { output: 'ok' })])
    return {
      calls: () => calls,
      models: () => ({
        ...model,
        doGenerate: async (options: Parameters<typeof model.doGenerate>[0]) => {
          calls++
          const answer = await model.doGenerate(options)
          const { inputTokens, outputTokens } = answer.usage
          return {
            ...answer,
            usage: { ...answer.usage, inputTokens: { ...inputTokens, total: tokens }, outputTokens: { ...outputTokens, total: 0 } },
          }
        },
      }),
    }
  }

  test('I4 tells a model of a child run the same, whatever was used before it, and by nobody more than its own limit allows', async () => {
    const own = topology({ name: 'own', flows: ['Start -> Small -> End'], agents: { Small: {} }, limits: { tokens: 2_000 } })
    const told = new Set<string>()
    for (const before of [0, 100, 900]) {
      const answers: Record<string, number | undefined> = {}
      const model = saying(() => [called('finish', { output: 'ok' })])
      const models: ModelFactory = () => ({
        ...model,
        doGenerate: async (options: Parameters<typeof model.doGenerate>[0]) => {
          const run = placeOf(options)?.run ?? ''
          answers[run] = options.maxOutputTokens
          const answer = await model.doGenerate(options)
          const total = run === 'R:first' ? before : 10
          return { ...answer, usage: { ...answer.usage, inputTokens: { ...answer.usage.inputTokens, total } } }
        },
      })
      await using tutti = await opened({ models })
      const below = graph('below')
        .step('deep', { input: () => 'x', run: writer })
        .output()
      const line = graph('line')
        .step('first', { input: () => 'x', run: writer })
        .step('then', { after: ['first'], input: () => 'x', run: writer })
        .step('own', { after: ['first'], input: () => 'x', run: own })
        .step('below', { after: ['first'], input: () => ({}), run: below })
        .output()
      await tutti.execute(line, { id: 'R', input: undefined, limits: { tokens: 8_000 } })
      told.add(
        JSON.stringify(
          Object.entries(answers)
            .map(([run, most]) => `${run}: ${most}`)
            .sort(),
        ),
      )
    }
    expect([...told]).toEqual([JSON.stringify(['R:below:deep: 2000', 'R:first: 2000', 'R:own: 500', 'R:then: 2000'])])
  })

  test('I4 that a child run crosses is told as what may be used in all, there too: what was left depends on what ended before it', async () => {
    const line = graph('line')
      .step('w', { ...written, concurrency: 1 })
      .output(({ steps }) => steps.w)
    for (const [limits, said] of [
      [{ tokens: 5_000 }, 'the run needs more than the 5000 tokens it may use (tokens)'],
      [{ costUsd: 7 }, 'the run needs more than the 7 USD it may cost (costUsd)'],
    ] as const)
      for (const used of [1_000, 1_500]) {
        await using tutti = await opened({ models: using(used).models, prices: { 'test/saying': { input: 1_000, output: 1_000 } } })
        const run = await tutti.start(line, { id: 'R', limits })
        expect(await run.result()).toMatchObject({ status: 'failed', error: { message: said } })
        const { runs } = await tutti.runs()
        const messages = await Promise.all(runs.map(async ({ id }) => (await (await tutti.run(id)).report()).error?.message))
        expect(new Set(messages)).toEqual(new Set([undefined, said]))
      }
  })

  test('is what the runs of its steps use too, one after the other', async () => {
    const { models, calls } = using(1_000)
    await using tutti = await opened({ models })
    const line = graph('line')
      .step('w', { ...written, concurrency: 1 })
      .output(({ steps }) => steps.w)
    const limits = { tokens: 5_000 }
    expect(await (await tutti.start(line, { limits })).result()).toMatchObject({
      status: 'failed',
      error: { code: 'LIMIT_TOKENS', message: 'the run needs more than the 5000 tokens it may use (tokens)' },
    })
    // A call is made only while there is room for all that it may use.
    expect(calls()).toBeGreaterThan(1)
    expect(calls() * 1_000).toBeLessThanOrEqual(5_000)
  })

  test('that is crossed in the run of a step fails the run, though the step may be skipped', async () => {
    const { models } = using(3_000)
    await using tutti = await opened({ models })
    const skipping = graph('skipping')
      .step('w', { ...written, concurrency: 1, onError: 'skip' })
      .output()
    expect(await (await tutti.start(skipping, { limits: { tokens: 14_000 } })).result()).toMatchObject({
      status: 'failed',
      error: { code: 'LIMIT_TOKENS' },
    })
    // One that is the step's own fails the step alone.
    const poor = topology({ name: 'poor', flows: ['Start -> A -> End'], agents: { A: {} }, limits: { tokens: 1 } })
    const patient = graph('patient')
      .step('p', { run: poor, input: () => 'x', onError: 'skip' })
      .output()
    expect(await (await tutti.start(patient, { limits: { tokens: 100_000 } })).result()).toMatchObject({ status: 'succeeded' })
  })

  test('is crossed when runs of steps that go on at the same time have used more than it, together', async () => {
    const { models } = using(3_000)
    await using tutti = await opened({ models })
    const wide = graph('wide')
      .step('w', written)
      .output(({ steps }) => steps.w)
    expect(await (await tutti.start(wide, { limits: { tokens: 14_000 } })).result()).toMatchObject({
      status: 'failed',
      error: { code: 'LIMIT_TOKENS' },
    })
    const enough = await (await tutti.start(wide, { limits: { tokens: 50_000 } })).result()
    expect(enough).toMatchObject({ status: 'succeeded', report: { measured: { usage: { inputTokens: 18_000 } } } })
  })

  /** The work of so many agents, each in a run of its own, in whatever way these go on at the same time. */
  const sideBySide: Readonly<Record<string, (count: number) => Graph<unknown, unknown>>> = {
    'the items of a step': (count) =>
      graph('items')
        .step('w', { ...written, each: items(count) })
        .output(),
    steps: (count) => {
      const empty = graph('steps') as unknown as GraphBuilder<unknown, Record<string, never>>
      const step = { input: () => 'x', run: writer }
      return items(count)()
        .reduce((steps, n) => steps.step(`s${n}` as never, step as never) as never, empty)
        .output()
    },
    'items of items, and a fork beside': (count) => {
      const inner = graph('inner')
        .step('w', { ...written, each: items(2) })
        .output()
      const fork = topology({
        name: 'fork',
        flows: ['Start -> H -> End', 'H <-> W'],
        agents: { H: (turn) => (turn.message.kind === 'join' ? turn.finish(1) : turn.fork(['W', 'W'], { request: 'x' })), W: {} },
      })
      return graph('outer')
        .step('i', { each: items(Math.ceil(count / 2)), input: () => 'x', run: inner })
        .step('f', { input: () => 'x', run: fork })
        .output()
    },
  }

  for (const [how, make] of Object.entries(sideBySide))
    test.each([1, 2, 7, 33])(
      `I4 is kept by ${how} that go on at the same time, %i of them: no more calls start than there is room for`,
      async (width) => {
        const { models, calls, go } = counted()
        await using tutti = await opened({ models })
        const limits = { tokens: 14_000 }
        const run = await tutti.start(make(width), { limits })
        // Each sets 3,500 aside for its answer, and some for its prompt.
        const mostAtOnce = 3
        const needs = how.includes('fork') ? 2 * Math.ceil(width / 2) + 2 : width
        await rest(200)
        expect(calls()).toBeLessThanOrEqual(mostAtOnce)
        if (needs <= mostAtOnce) expect(calls()).toBe(needs)
        go()
        expect(await run.result()).toMatchObject(
          needs <= mostAtOnce ? { status: 'succeeded' } : { status: 'failed', error: { code: 'LIMIT_TOKENS', at: {} } },
        )
        expect(calls()).toBeLessThanOrEqual(mostAtOnce)
      },
    )

  test('I4 is kept when runs of steps begin one after the other and answer late, and has room again for what was not used', async () => {
    const clock = virtualClock()
    const gates = [deferred(), deferred(), deferred(), deferred(), deferred()]
    let calls = 0
    const model = saying(() => [called('finish', { output: 'ok' })])
    const models: ModelFactory = () => ({
      ...model,
      doGenerate: async (options: Parameters<typeof model.doGenerate>[0]) => {
        await gates[calls++]?.promise
        return model.doGenerate(options)
      },
    })
    await using tutti = await opened({ models, clock })
    const late = graph('late')
      .step('w', { each: items(5), input: ({ item, sleep }) => sleep(item * 10).then(() => 'x'), run: writer })
      .output()
    for (const frees of [true, false]) {
      calls = 0
      const run = await tutti.start(late, { limits: { tokens: 14_000 } })
      for (let n = 0; n < 5; n++) {
        if (frees) gates[n]?.resolve()
        await rest()
        await clock.advance(10)
        await rest()
      }
      expect(calls).toBe(frees ? 5 : 3)
      for (const gate of gates) gate.resolve()
      expect(await run.result()).toMatchObject(frees ? { status: 'succeeded' } : { status: 'failed', error: { code: 'LIMIT_TOKENS' } })
      gates.splice(0, 5, deferred(), deferred(), deferred(), deferred(), deferred())
    }
  })

  test('I4 that the runs of steps have crossed is told the same, whoever of them finds out, and is a choice', async () => {
    const told = new Set<string>()
    for (const room of [1, 2, 3, 4]) {
      const { models, calls } = counted()
      await using tutti = await opened({ models })
      const wide = graph('wide')
        .step('w', { ...written, concurrency: room })
        .step('v', { ...written, each: items(4) })
        .output()
      const run = await tutti.start(wide, { id: 'R', limits: { tokens: 14_000 } })
      const { measured: _, ...report } = (await run.result()).report
      told.add(JSON.stringify(report))
      expect(report.choices).toEqual([{ at: 'run', kind: 'limit', decidedBy: ['LIMIT_TOKENS'] }])
      expect(calls()).toBeLessThanOrEqual(3)
    }
    expect(told.size).toBe(1)
  })

  test('I4 that runs have crossed whose steps nobody has the code of ends them: none of their calls is waited for in vain', async () => {
    const store = memoryStore()
    let isHeld = true
    const child = topology({
      name: 'child',
      flows: ['Start -> C -> W -> End'],
      agents: { C: (turn) => (isHeld ? new Promise<never>(() => {}) : turn.invoke('W', { request: 'x' })), W: {} },
    })
    const parent = graph('parent')
      .step('w', { each: items(5), input: () => 'x', run: child })
      .output()
    const { models, calls } = counted()
    const first = await opened({ store, models, definitions: [parent], graceMs: 0 })
    const { id } = await first.start(parent, { limits: { tokens: 14_000 } })
    await rest(100)
    await first.close()
    isHeld = false
    await using second = await opened({ store, models, definitions: [child] })
    for (const item of items(5)()) expect(await (await second.run(`${id}:w:${item}`)).result()).toMatchObject({ status: 'cancelled' })
    expect(calls()).toBeLessThanOrEqual(3)
    await using third = await opened({ store, models, definitions: [parent] })
    expect(await (await third.run(id)).result()).toMatchObject({ status: 'failed', error: { code: 'LIMIT_TOKENS' } })
  })

  test('a call is not begun by a worker that has lost its run while it looked what others have used', async () => {
    const inner = memoryStore()
    const looking = deferred()
    const found = deferred()
    // It tells nobody by itself, as no other process can, takes its time, and gives the run to others.
    const store: Store = {
      ...inner,
      onMoved: () => () => {},
      claim: async () => ({ rows: [], nextWake: null }),
      load: async (id, options) => {
        if (id !== 'R:late') return inner.load(id, options)
        looking.resolve()
        await found.promise
        return null
      },
    }
    const { models, calls, go } = counted()
    go()
    const both = graph('both')
      .step('late', { input: () => new Promise<never>(() => {}), run: writer })
      .step('here', { input: () => 'x', run: writer })
      .output()
    await using tutti = await opened({ store, models, clock: virtualClock(), graceMs: 0 })
    await tutti.start(both, { id: 'R', limits: { tokens: 100_000 } })
    await looking.promise
    for (let beat = 0; beat < 100; beat++) await inner.fence({ worker: 1, beat }, 0)
    // Longer than what its own append has shown may be taken for so.
    await new Promise((resolve) => setTimeout(resolve, 5))
    found.resolve()
    await rest()
    expect(calls()).toBe(0)
  })

  test('a call that is not begun yet, because it looks what others have used, is over at once when its run is cancelled', async () => {
    const inner = memoryStore()
    const looking = deferred()
    const found = deferred()
    const store: Store = {
      ...inner,
      load: async (id, options) => {
        if (id !== 'R:late') return inner.load(id, options)
        looking.resolve()
        await found.promise
        return null
      },
    }
    const { models, calls } = counted()
    const both = graph('both')
      .step('late', { input: ({ sleep }) => sleep(3_600_000).then(() => 'x'), run: writer })
      .step('here', { input: () => 'x', run: writer })
      .output()
    await using tutti = await opened({ store, models, clock: virtualClock(), graceMs: 60_000 })
    await tutti.start(both, { id: 'R', limits: { tokens: 100_000 } })
    await looking.promise
    const here = await tutti.run('R:here')
    await here.cancel()
    await rest()
    expect(await here.status()).toBe('cancelled')
    expect(await journal(here)).toContainEqual(expect.objectContaining({ type: 'turn.aborted', how: 'ended' }))
    expect(calls()).toBe(0)
    found.resolve()
  })

  test('counts what the run of a step has used that was given up', async () => {
    const model = saying(() => [called('nothing', {})])
    const models: ModelFactory = () => ({
      ...model,
      doGenerate: async (options: Parameters<typeof model.doGenerate>[0]) => {
        await new Promise((resolve) => setTimeout(resolve, 20))
        return model.doGenerate(options)
      },
    })
    await using tutti = await opened({ models })
    const stubborn = agent({ name: 'Stubborn', maxRejections: 1_000 })
    const impatient = graph('impatient')
      .step('s', { run: stubborn, input: () => 'x', timeoutMs: 150, onError: 'skip' })
      .step('after', { after: ['s'], join: 'all', run: () => 1, onError: 'skip' })
      .output()
    const run = await tutti.start(impatient, { id: 'impatient' })
    const { measured } = (await run.result()).report
    const below = (await (await tutti.run('impatient:s')).report()).measured.usage
    expect(below.inputTokens).toBeGreaterThan(0)
    expect(measured.usage).toEqual(below)
  })

  test('counts a call that was given up in the run of a step with all that was set aside for it, also when that run is over', async () => {
    const never = deferred()
    const quick = saying(() => [{ type: 'text', text: 'done' }])
    let calls = 0
    const models: ModelFactory = () => ({
      ...quick,
      doGenerate: async (options: Parameters<typeof quick.doGenerate>[0]) => {
        if (++calls % 2 === 0) await never.promise
        return quick.doGenerate(options)
      },
    })
    const race = topology({
      name: 'race',
      flows: ['Start -> H -> End', 'H <-> W'],
      agents: { H: (turn) => (turn.turn > 1 ? turn.finish('done') : turn.fork(['W', 'W'], { join: 'any', request: 'go' })), W: {} },
    })
    const races = (rounds: number) => {
      const below = graph('below')
        .step('race', { run: race, input: () => 0 })
        .output()
      const step = { each: items(rounds), run: below, input: () => 0, concurrency: 1 } as const
      return graph('races')
        .step('one', step)
        .output(() => 'done')
    }
    await using tutti = await opened({ models, graceMs: 1 })
    const limits = { tokens: 20_000 }
    const few = await (await tutti.start(races(2), { limits })).result()
    expect(few).toMatchObject({ status: 'succeeded', report: { measured: { usage: { inputTokens: 20, outputTokens: 10 } } } })
    expect(await (await tutti.start(races(9), { limits })).result()).toMatchObject({ status: 'failed', error: { code: 'LIMIT_TOKENS' } })
    expect(calls).toBeLessThanOrEqual(4 + 8)
    never.resolve()
  })

  test('and the report count what runs below the runs of steps have used, also what failed', async () => {
    const { models } = using(100)
    await using tutti = await opened({ models })
    let tries = 0
    const inner = graph('inner')
      .step('w', { ...written, each: items(2) })
      .step('fails', {
        after: ['w'],
        run: () => {
          if (++tries < 2) throw new Error('no')
          return 1
        },
      })
      .output()
    const outer = graph('outer')
      .step('i', { run: inner, input: () => 0, retry: { attempts: 2, backoffMs: 0, if: () => true } })
      .step('last', { after: ['i'], run: writer, input: () => 'x' })
      .output()
    const { report, status } = await (await tutti.start(outer)).result()
    expect({ status, usage: report.measured.usage, by: report.measured.usageBy?.agents }).toMatchObject({
      status: 'succeeded',
      usage: { inputTokens: 500, outputTokens: 0 },
      by: { i: { calls: 4, inputTokens: 400 }, last: { calls: 1, inputTokens: 100 } },
    })
  })
})

test('text is told as it comes to those who listen, and is in no journal', async () => {
  const solo = topology({ name: 'solo', flows: ['Start -> A -> End'], agents: { A: {} } })
  await using tutti = await opened({ models: script({ A: ['one two three'] }) })
  const run = await tutti.start(solo)
  const heard: string[] = []
  for await (const event of run.events({ deltas: true }))
    if (event.type === 'text.delta') heard.push(`${event.branch} ${event.agent}: ${event.text}`)
  expect(heard).toEqual(['r A: one ', 'r A: two ', 'r A: three'])
  expect((await journal(run)).map(({ type }) => type as string)).not.toContain('text.delta')
  await rest(1)
})
