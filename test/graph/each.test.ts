import { type GraphBuilder, graph, open } from 'tutti'
import { describe, expect, test } from 'vitest'
import { everyOrder, nothingLeft, scenario, Stage } from '../scenarios/adapter.js'

const oddBreaks = ({ item }: { item: number }): string => {
  if (item % 2 === 1) throw new Error(`${item} broke`)
  return `${item} is fine`
}

describe('a step over a list', () => {
  test('of no items gives an empty list, and what comes after it runs', async () => {
    await using tutti = await open({ store: 'memory:', invariants: true })
    const definition = graph('none')
      .step('none', { each: () => [] as number[], run: () => 1 })
      .step('after', { after: ['none'], run: ({ steps }) => steps.none.length })
      .output()
    expect(await tutti.execute(definition)).toEqual({ none: [], after: 0 })
  })

  test('of one item gives a list of one', async () => {
    await using tutti = await open({ store: 'memory:', invariants: true })
    const definition = graph('one')
      .step('one', { each: () => ['x'], run: ({ item, index }) => `${item}${index}` })
      .output()
    expect(await tutti.execute(definition)).toEqual({ one: ['x0'] })
  })

  test('is reported with what each item is, not with where it stands', async () => {
    await using tutti = await open({ store: 'memory:', invariants: true })
    const cities = graph('cities')
      .step('visit', { each: () => ['Rome', { city: 'Oslo' }, null], run: ({ item }) => item })
      .output()
    const run = await tutti.start(cities)
    await run.result()
    const { interactions } = await run.report()
    expect(interactions.map(({ from, to, request }) => [from, to, request])).toEqual([
      ['Start', 'visit', undefined],
      ['visit', 'visit', 'Rome'],
      ['visit', 'visit', { city: 'Oslo' }],
      ['visit', 'visit', null],
    ])
  })

  test('of 10,000 items gives all of them in their order', async () => {
    await using tutti = await open({ store: 'memory:', invariants: true })
    let runs = 0
    const definition = graph('many')
      .step('many', { each: () => Array.from({ length: 10_000 }, (_, at) => at), run: ({ item }) => (runs++, item * 2) })
      .step('sum', { after: ['many'], run: ({ steps }) => steps.many.reduce((a, b) => a + b, 0) })
      .output()
    const { many, sum } = await tutti.execute(definition)
    expect(many).toEqual(Array.from({ length: 10_000 }, (_, at) => at * 2))
    expect(sum).toBe(99_990_000)
    expect(runs).toBe(10_000)
  }, 60_000)

  scenario('gives its results in item order, whoever ended first', async (raise) => {
    const orders = await everyOrder(4, async (schedule) => {
      await using stage = await raise()
      const definition = graph('order')
        .step('all', { each: () => ['a', 'b', 'c', 'd'], run: (ctx) => stage.held(ctx.item, ctx, `${ctx.item}${ctx.index}`) })
        .output(({ steps }) => steps.all)
      const run = await stage.tutti.start(definition)
      await stage.drain(schedule)
      expect(await run.output()).toEqual(['a0', 'b1', 'c2', 'd3'])
    })
    expect(orders).toBe(24)
  })

  test('lets no more items run at once than `concurrency` says, and loses none for it', async () => {
    await using tutti = await open({ store: 'memory:', invariants: true })
    let now = 0
    let most = 0
    const definition = graph('few')
      .step('few', {
        each: () => Array.from({ length: 40 }, (_, at) => at),
        concurrency: 3,
        run: async ({ item }) => {
          most = Math.max(most, ++now)
          await new Promise((resolve) => setImmediate(resolve))
          now -= 1
          return item
        },
      })
      .output(({ steps }) => steps.few)
    expect(await tutti.execute(definition)).toEqual(Array.from({ length: 40 }, (_, at) => at))
    expect(most).toBe(3)
  })

  test('evaluates its list once, and its items see what their step saw', async () => {
    await using tutti = await open({ store: 'memory:', invariants: true })
    let lists = 0
    const definition = graph('once')
      .step('base', { run: () => 10 })
      .step('each', {
        after: ['base'],
        retry: { attempts: 3 },
        each: ({ steps }) => (lists++, [steps.base, steps.base + 1]),
        run: ({ item, steps, attempt }) => {
          if (attempt < 3) throw new Error('not yet')
          return item + steps.base
        },
      })
      .output(({ steps }) => steps.each)
    expect(await tutti.execute(definition)).toEqual([20, 21])
    expect(lists).toBe(1)
  })

  test('fails with what `each` gave if that is no list, or no JSON', async () => {
    await using tutti = await open({ store: 'memory:', invariants: true })
    const of = (list: unknown) =>
      graph('bad')
        .step('bad', { each: () => list as number[], run: () => 1 })
        .output()
    for (const list of [5, null, 'text', { length: 2 }, [() => 1], [1n]])
      expect(await (await tutti.start(of(list))).result()).toMatchObject({
        status: 'failed',
        error: { code: 'STEP_FAILED', at: { step: 'bad' }, message: expect.stringMatching(list === null ? /not null/ : /list|gave/) },
      })
  })
})

describe('a list that could not be made', () => {
  const of = (onError: 'fail' | 'skip' | { fallback: string }) =>
    graph('unmade')
      .step('each', {
        each: (): string[] => {
          throw new Error('no list')
        },
        onError,
        run: ({ item }) => item,
      })
      .step('after', { after: ['each'], run: ({ steps }) => steps.each.length })
      .output()

  test('fails its step', async () => {
    await using tutti = await open({ store: 'memory:', invariants: true })
    expect(await (await tutti.start(of('fail'))).result()).toMatchObject({ status: 'failed', error: { message: 'no list' } })
  })

  // By its types such a step is never skipped and its output is always a list: what `onError` offers is for an item.
  test('fails it also where `onError` has something instead of an item', async () => {
    await using tutti = await open({ store: 'memory:', invariants: true })
    for (const onError of ['skip', { fallback: 'instead' }] as const)
      expect(await (await tutti.start(of(onError))).result()).toMatchObject({ status: 'failed', error: { message: 'no list' } })
  })
})

describe('an item that fails', () => {
  const items = [0, 1, 2, 3]

  test('fails its step once all items have settled, with the failure of the lowest', async () => {
    await using stage = await Stage.open()
    const definition = graph('fails')
      .step('each', {
        each: () => items,
        run: async (ctx) => {
          await stage.held(`i${ctx.item}`, ctx)
          return oddBreaks(ctx)
        },
      })
      .step('after', { after: ['each'], run: () => 'never' })
      .step('anyway', { after: ['each'], join: 'settled', run: ({ steps }) => steps.each === undefined })
      .output()
    const run = await stage.tutti.start(definition)
    for (const name of ['i3', 'i1', 'i0']) {
      await stage.quiesce()
      stage.release(name)
    }
    await stage.quiesce()
    expect(await run.status()).toBe('running')
    stage.release('i2')
    expect(await run.result()).toMatchObject({ status: 'failed', error: { message: '1 broke', at: { step: 'each' } } })
    const done: unknown[] = []
    for await (const event of run.events()) if (event.type === 'step.completed') done.push([event.step, event.item, event.output])
    expect(done).toContainEqual(['each', 0, '0 is fine'])
    expect(done).toContainEqual(['each', 2, '2 is fine'])
    expect(done).toContainEqual(['anyway', undefined, true])
    expect(await stage.quiesce()).toEqual(nothingLeft)
  })

  test("is undefined in its place under 'skip', which the others don't notice", async () => {
    await using tutti = await open({ store: 'memory:', invariants: true })
    const definition = graph('skips')
      .step('each', { each: () => items, onError: 'skip', run: oddBreaks })
      .step('after', { after: ['each'], run: ({ steps }) => steps.each.map((item) => typeof item) })
      .output()
    const { each, after } = await tutti.execute(definition)
    expect(each).toEqual(['0 is fine', null, '2 is fine', null])
    expect(after).toEqual(['string', 'undefined', 'string', 'undefined'])
  })

  test('is null in what the run gives wherever it stands there, also in what has no prototype, as a grouping', async () => {
    await using tutti = await open({ store: 'memory:', invariants: true })
    const definition = graph('grouped')
      .step('each', { each: () => items, onError: 'skip', run: oddBreaks })
      .output(({ steps }) => Object.assign(Object.create(null) as object, { all: [{ found: steps.each }] }))
    expect(await tutti.execute(definition)).toEqual({ all: [{ found: ['0 is fine', null, '2 is fine', null] }] })
  })

  test('has the fallback in its place', async () => {
    await using tutti = await open({ store: 'memory:', invariants: true })
    const definition = graph('falls')
      .step('each', { each: () => items, onError: { fallback: 'instead' }, run: oddBreaks })
      .output(({ steps }) => steps.each)
    expect(await tutti.execute(definition)).toEqual(['0 is fine', 'instead', '2 is fine', 'instead'])
  })

  test("pauses the run under 'pause'; resuming tries that item again, and the others not", async () => {
    await using tutti = await open({ store: 'memory:', invariants: true })
    const tries: number[] = []
    let repaired = false
    const definition = graph('pauses')
      .step('each', {
        each: () => items,
        onError: 'pause',
        run: ({ item }) => {
          tries.push(item)
          if (item === 2 && !repaired) throw new Error('broken')
          return item
        },
      })
      .output(({ steps }) => steps.each)
    const run = await tutti.start(definition)
    for await (const event of run.events()) if (event.type === 'run.paused') break
    expect(await run.status()).toBe('paused')
    repaired = true
    await run.resume()
    expect(await run.output()).toEqual(items)
    expect(tries.toSorted((a, b) => a - b)).toEqual([0, 1, 2, 2, 3])
  })

  test('is retried on its own before anything else is made of it', async () => {
    await using tutti = await open({ store: 'memory:', invariants: true })
    const tries = new Map<number, number>()
    const definition = graph('retries')
      .step('each', {
        each: () => items,
        retry: { attempts: 3 },
        onError: { fallback: -1 },
        run: ({ item, attempt }) => {
          tries.set(item, (tries.get(item) ?? 0) + 1)
          if (attempt <= item) throw new Error(`not in attempt ${attempt}`)
          return attempt
        },
      })
      .output(({ steps }) => steps.each)
    expect(await tutti.execute(definition)).toEqual([1, 2, 3, -1])
    expect([...tries.entries()].toSorted(([a], [b]) => a - b)).toEqual([
      [0, 1],
      [1, 2],
      [2, 3],
      [3, 3],
    ])
  })
})

test('C5 a list of 5,000 that is made after the join is there: the join waits for all of them', async () => {
  await using tutti = await open({ store: 'memory:', invariants: true })
  let running = 0
  const definition = graph('dynamic')
    .step('plan', { run: () => 5_000 })
    .step('work', {
      after: ['plan'],
      each: async ({ steps }) => {
        await new Promise((resolve) => setImmediate(resolve))
        return Array.from({ length: steps.plan }, (_, at) => at)
      },
      run: async ({ item }) => {
        running += 1
        await new Promise((resolve) => setImmediate(resolve))
        running -= 1
        return item
      },
    })
    .step('join', { after: ['work'], run: ({ steps }) => ({ width: new Set(steps.work).size, stillRunning: running }) })
    .output(({ steps }) => steps.join)
  expect(await tutti.execute(definition)).toEqual({ width: 5_000, stillRunning: 0 })
}, 60_000)

test('C5 a thousand steps that one step depends on have all settled when it starts', async () => {
  await using tutti = await open({ store: 'memory:', invariants: true })
  const ids = Array.from({ length: 1_000 }, (_, at) => `s${at}`)
  let wide = graph('steps') as unknown as GraphBuilder<unknown, any>
  for (const [at, id] of ids.entries()) wide = wide.step(id, { run: () => at })
  const definition = wide
    .step('join', { after: ids, run: ({ steps }) => Object.values(steps as Record<string, number>).length })
    .output(({ steps }) => (steps as { join: number }).join)
  expect(await tutti.execute(definition)).toBe(1_000)
}, 60_000)
