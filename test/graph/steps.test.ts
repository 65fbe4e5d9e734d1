/* oxlint-disable unicorn/no-thenable -- one test is about such objects */
import { graph, open, resource, topology, TuttiError } from 'tutti'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { rest, untilAborted } from '../engine/opened.js'
import { nothingLeft, scenario, someOrders, Stage } from '../scenarios/adapter.js'
import { lasting } from './lasting.js'

describe('a step', () => {
  test('has journaled activities: what succeeded in an attempt that threw is not executed again', async () => {
    await using tutti = await open({ store: 'memory:', invariants: true })
    const calls: string[] = []
    const definition = graph('acts')
      .step('work', {
        retry: { attempts: 3 },
        run: async ({ step, attempt }) => {
          const a = await step('a', () => (calls.push('a'), 1))
          const b = await step('b', () => (calls.push('b'), a + 1))
          if (attempt < 3) throw new Error('again')
          return { a, b, attempt }
        },
      })
      .output(({ steps }) => steps.work)
    expect(await tutti.execute(definition)).toEqual({ a: 1, b: 2, attempt: 3 })
    expect(calls).toEqual(['a', 'b'])
  })

  test('sleeps durably, and its sleep does not count against its timeout', async () => {
    await using stage = await Stage.open()
    const definition = graph('sleeps')
      .step('nap', {
        timeoutMs: 1_000,
        run: async ({ sleep, now }) => {
          const before = now()
          await sleep(5_000)
          return now() - before
        },
      })
      .output(({ steps }) => steps.nap)
    const run = await stage.tutti.start(definition)
    await stage.advance(4_999)
    expect(await run.status()).toBe('running')
    await stage.advance(1)
    expect(await run.output()).toBe(5_000)
  })

  test('draws the same numbers and reads the same time in every attempt, and others draw others', async () => {
    await using stage = await Stage.open()
    const seen = new Map<string, unknown[]>()
    const note = (id: string, what: unknown) => seen.set(id, [...(seen.get(id) ?? []), what])
    const definition = graph('draws')
      .step('a', {
        retry: { attempts: 2 },
        run: ({ random, attempt }) => {
          note('a', [random(), random()])
          if (attempt === 1) throw new Error('again')
        },
      })
      .step('b', { run: ({ random }) => note('b', [random(), random()]) && null })
      .step('c', { each: () => [1, 2], run: ({ random, index }) => note(`c${index}`, [random(), random()]) && null })
      .output()
    await stage.tutti.execute(definition)
    expect(seen.get('a')?.[0]).toEqual(seen.get('a')?.[1])
    expect(new Set([...seen.values()].map((drawn) => JSON.stringify(drawn[0]))).size).toBe(4)
  })

  test('takes live things from resources, which are never journaled', async () => {
    const shop = resource<{ name: string; sell(): string }>('shop')
    await using tutti = await open({ store: 'memory:', invariants: true, resources: [shop.of({ name: 'corner', sell: () => 'sold' })] })
    const missing = resource<number>('missing')
    const definition = graph('uses')
      .step('sell', { run: async ({ use, step }) => [use(shop).name, await step('sell', (ctx) => ctx.use(shop).sell())] })
      .output(({ steps }) => steps.sell)
    expect(await tutti.execute(definition)).toEqual(['corner', 'sold'])
    const without = graph('lacks')
      .step('x', { run: ({ use }) => use(missing) })
      .output()
    expect(await (await tutti.start(without)).result()).toMatchObject({
      status: 'failed',
      error: { code: 'RESOURCE_MISSING', at: { step: 'x' } },
    })
  })

  test('has an idempotency key of its own that stays the same when it is tried again', async () => {
    await using tutti = await open({ store: 'memory:', invariants: true })
    const keys = new Map<string, string[]>()
    const definition = graph('keys')
      .step('one', {
        retry: { attempts: 2 },
        run: ({ idempotencyKey, attempt }) => {
          keys.set('one', [...(keys.get('one') ?? []), idempotencyKey])
          if (attempt === 1) throw new Error('again')
        },
      })
      .step('items', { each: () => [0, 1], run: ({ idempotencyKey, index }) => keys.set(`item${index}`, [idempotencyKey]) && null })
      .output()
    await tutti.execute(definition)
    expect(keys.get('one')?.length).toBe(2)
    expect(new Set(keys.get('one')).size).toBe(1)
    expect(new Set([...keys.values()].flat()).size).toBe(3)
  })

  test('is given frozen values, and what it returns can be changed by nobody afterwards', async () => {
    await using tutti = await open({ store: 'memory:', invariants: true })
    const mine = { list: [1, 2] }
    const definition = graph('frozen')
      .step('a', { run: () => mine })
      .step('b', {
        after: ['a'],
        each: () => {
          mine.list.push(3)
          return [{ deep: { x: 1 } }]
        },
        run: ({ steps, item, input }) =>
          [steps, steps.a, steps.a.list, item, item.deep, input as object].map((value) => Object.isFrozen(value)),
      })
      .step('c', { after: ['a', 'b'], run: ({ steps }) => steps.a.list })
      .output()
    const run = await tutti.start(definition, { input: { some: ['thing'] } })
    const { b, c } = await run.output()
    expect(b).toEqual([[true, true, true, true, true, true]])
    expect(c).toEqual([1, 2])
  })

  test('sees the outputs of what it depends on, and of nothing else', async () => {
    await using tutti = await open({ store: 'memory:', invariants: true })
    const definition = graph('sees')
      .step('a', { run: () => 1 })
      .step('b', { after: ['a'], run: () => 2 })
      .step('c', { after: ['b'], run: ({ steps }) => Object.keys(steps) })
      .output(({ steps }) => steps.c)
    expect(await tutti.execute(definition)).toEqual(['b'])
  })

  test('that returns what is no JSON fails and says where', async () => {
    await using tutti = await open({ store: 'memory:', invariants: true })
    const definition = graph('nojson')
      .step('a', { run: () => ({ deep: [new Date(0)] }) })
      .output()
    expect(await (await tutti.start(definition)).result()).toMatchObject({
      status: 'failed',
      error: { code: 'STEP_FAILED', message: expect.stringMatching(/deep/) },
    })
  })

  test('decides once whether it runs, however often it is tried', async () => {
    await using tutti = await open({ store: 'memory:', invariants: true })
    let asked = 0
    const definition = graph('when')
      .step('a', {
        when: () => ++asked === 1,
        retry: { attempts: 3 },
        run: ({ attempt }) => {
          if (attempt < 3) throw new Error('again')
          return attempt
        },
      })
      .output()
    expect(await tutti.execute(definition)).toEqual({ a: 3 })
    expect(asked).toBe(1)
  })

  test('draws the same numbers however often it is tried, whatever its `when` has drawn', async () => {
    await using tutti = await open({ store: 'memory:', invariants: true })
    const drawn: number[] = []
    const draw = (random: () => number): boolean => drawn.push(random()) > 0
    const definition = graph('draws')
      .step('a', {
        when: ({ random }) => draw(random),
        retry: { attempts: 3 },
        run: ({ attempt, random }) => {
          draw(random)
          if (attempt < 3) throw new Error('again')
        },
      })
      .output()
    await tutti.execute(definition)
    expect(drawn).toHaveLength(4)
    expect(new Set(drawn).size).toBe(2)
    expect(new Set(drawn.slice(1)).size).toBe(1)
  })

  test('may look something up, journaled, to find out for what it runs', async () => {
    await using tutti = await open({ store: 'memory:', invariants: true })
    const definition = graph('looks')
      .step('a', { each: async ({ step }) => step('list', () => [1, 2]), run: ({ item }) => item })
      .output()
    expect(await tutti.execute(definition)).toEqual({ a: [1, 2] })
  })

  test('may look something up, journaled, to find out whether it runs', async () => {
    await using tutti = await open({ store: 'memory:', invariants: true })
    const definition = graph('looks')
      .step('a', { when: async ({ step }) => (await step('ready', () => 'yes')) === 'yes', run: () => 1 })
      .output()
    expect(await tutti.execute(definition)).toEqual({ a: 1 })
  })

  test.each([true, false])(
    'is given no step of its `when` for one of its own when it is tried again (waited for: %s)',
    async (isAwaited) => {
      await using tutti = await open({ store: 'memory:', invariants: true })
      const definition = graph('looks')
        .step('a', {
          retry: { attempts: 3 },
          when: async ({ step }) => {
            const looking = step('fetch', async () => 'the flag')
            return !isAwaited || (await looking) === 'the flag'
          },
          run: async ({ step, attempt }) => {
            await step('before', () => 1)
            if (attempt < 3) throw new Error('again')
            return step('fetch', () => 'the data')
          },
        })
        .output()
      expect(await tutti.execute(definition)).toEqual({ a: 'the data' })
    },
  )

  test('is the same again in another process though its `when` did not wait for a step that it called', async () => {
    const store = lasting()
    const done: string[] = []
    const definition = (isLast: boolean) =>
      graph('notes')
        .step('a', {
          when: ({ step }) => {
            void step('note', async () => (await rest(10), done.push('note')))
            return true
          },
          run: async ({ step, signal }) => {
            const noted = step('slow', async () => (await rest(40), done.push('slow')))
            return [await noted, isLast || (await untilAborted(signal))]
          },
        })
        .output()
    const first = await open({ store, definitions: [definition(false)], invariants: true })
    const run = await first.start('notes', { id: 'run' })
    let recorded = 0
    for await (const { type } of run.events()) if (type === 'activity.completed' && ++recorded === 3) break
    await first.close()
    await using second = await open({ store, definitions: [definition(true)], invariants: true })
    expect(await (await second.run('run')).result()).toMatchObject({ status: 'succeeded', output: { a: [2, true] } })
    expect(done).toEqual(['note', 'slow'])
  })

  test('goes the way that its `when` said first, also if that is quicker when it is asked again than a step that it does not wait for', async () => {
    const store = lasting()
    const definition = (ended: 'never' | 'at last') =>
      graph('quicker')
        .step('a', {
          retry: { attempts: 2 },
          when: async ({ step, attempt }) => {
            void step('note', () => 1)
            if (ended === 'at last') return false
            if (attempt === 1) await rest()
            return attempt === 1
          },
          run: async ({ step, attempt, signal }) => {
            await step('done', () => 1)
            if (attempt === 1) throw new Error('again')
            return ended === 'at last' || untilAborted(signal)
          },
        })
        .output()
    const first = await open({ store, definitions: [definition('never')], invariants: true })
    const run = await first.start('quicker', { id: 'run' })
    let recorded = 0
    for await (const { type } of run.events()) if (type === 'activity.completed' && ++recorded === 6) break
    await first.close()
    await using second = await open({ store, definitions: [definition('at last')], invariants: true })
    expect(await (await second.run('run')).result()).toMatchObject({ status: 'succeeded', output: { a: true } })
  })

  test.each([
    ['~when', {}],
    ['~when+', {}],
    ['~~when', {}],
    ['~when#0', {}],
    ['ready', { key: '~when#0' }],
    ['~when', { key: '~when' }],
  ])('may call that, and what it does then, what it likes (%s, %j): it is not taken for what was decided', async (name, options) => {
    await using tutti = await open({ store: 'memory:', invariants: true })
    const looked: string[] = []
    const look = (what: string) => async () => looked.push(what)
    const definition = graph('looks')
      .step('a', {
        retry: { attempts: 2 },
        when: async ({ step }) =>
          (await step(name, look('first'), options)) === 1 && (await step('~when', look('second'), { key: 'second' })) === 2,
        run: async ({ step, attempt }) => {
          const third = await step('~when', look('third'), { key: 'third' })
          if (attempt === 1) throw new Error('again')
          return third
        },
      })
      .output()
    expect(await tutti.execute(definition)).toMatchObject({ a: expect.any(Number) as number })
    expect(looked.slice(0, 3)).toEqual(['first', 'second', 'third'])
  })
})

describe('an attempt that takes too long', () => {
  test('is aborted and tried again; the last one fails the step with TIMEOUT', async () => {
    await using stage = await Stage.open()
    const tried: number[] = []
    const definition = graph('slow')
      .step('slow', {
        timeoutMs: 100,
        retry: { attempts: 2 },
        run: (ctx) => {
          tried.push(ctx.attempt)
          return stage.held('slow', ctx)
        },
      })
      .step('after', { after: ['slow'], run: () => 1 })
      .output()
    const run = await stage.tutti.start(definition)
    await stage.advance(100)
    await stage.advance(100)
    expect(await run.result()).toMatchObject({ status: 'failed', error: { code: 'TIMEOUT', at: { step: 'slow' } } })
    expect(tried).toEqual([1, 2])
    expect(stage.effects().map(({ status }) => status)).toEqual(['aborted', 'aborted'])
    expect(await stage.quiesce()).toEqual(nothingLeft)
  })

  test('falls back where the step says so, and counts for each item on its own', async () => {
    await using stage = await Stage.open()
    const definition = graph('items')
      .step('each', {
        each: () => ['quick', 'slow'],
        timeoutMs: 100,
        onError: { fallback: 'too late' },
        run: (ctx) => (ctx.item === 'slow' ? stage.held('slow', ctx, 'slow') : ctx.item),
      })
      .output(({ steps }) => steps.each)
    const run = await stage.tutti.start(definition)
    await stage.advance(100)
    expect(await run.output()).toEqual(['quick', 'too late'])
  })

  test('waits between attempts as its backoff says', async () => {
    await using stage = await Stage.open()
    const at: number[] = []
    const definition = graph('backoff')
      .step('a', {
        retry: { attempts: 3, backoffMs: 1_000, factor: 2 },
        run: () => {
          at.push(stage.now())
          throw new Error('again')
        },
      })
      .output()
    const run = await stage.tutti.start(definition)
    await stage.advance(10_000)
    expect(await run.status()).toBe('failed')
    const [first = 0, second = 0, third = 0] = at
    expect(at.length).toBe(3)
    expect(second - first).toBeGreaterThanOrEqual(500)
    expect(second - first).toBeLessThanOrEqual(1_000)
    expect(third - second).toBeGreaterThanOrEqual(1_000)
    expect(third - second).toBeLessThanOrEqual(2_000)
  })
})

describe('retries', () => {
  test('are not wasted on what `if` refuses', async () => {
    await using tutti = await open({ store: 'memory:', invariants: true })
    let tries = 0
    const definition = graph('if')
      .step('a', {
        retry: { attempts: 5, if: ({ data }) => (data as { code?: string } | undefined)?.code !== 'FATAL' },
        run: () => {
          tries += 1
          throw Object.assign(new Error('no'), { code: tries === 2 ? 'FATAL' : 'PASSING' })
        },
      })
      .output()
    expect(await (await tutti.start(definition)).result()).toMatchObject({ status: 'failed', error: { data: { code: 'FATAL' } } })
    expect(tries).toBe(2)
  })
})

describe('limits', () => {
  test.each([
    { concurrency: 2 },
    { limits: { concurrency: 2 } },
    { concurrency: 2, limits: { concurrency: 5 } },
    { concurrency: 5, limits: { concurrency: 2 } },
  ])('a graph lets no more steps run at once than its concurrency, and runs all of them: %j', async (options) => {
    await using tutti = await open({ store: 'memory:', invariants: true })
    let now = 0
    let most = 0
    const busy = async () => {
      most = Math.max(most, ++now)
      await new Promise((resolve) => setImmediate(resolve))
      now -= 1
      return 1
    }
    const definition = graph('two', options)
      .step('a', { run: busy })
      .step('b', { run: busy })
      .step('c', { run: busy })
      .step('d', { each: () => [1, 2, 3, 4, 5], run: busy })
      .output()
    expect(await tutti.execute(definition)).toEqual({ a: 1, b: 1, c: 1, d: [1, 1, 1, 1, 1] })
    expect(most).toBe(2)
  })

  scenario('I4 with a budget of six turns and eight steps to do, none is begun that there is no room for', async (raise) => {
    await using stage = await raise()
    let wide = graph('eight') as any
    for (let at = 0; at < 8; at++) wide = wide.step(`s${at}`, { run: (ctx: never) => stage.held(`s${at}`, ctx) })
    const run = await stage.tutti.start(wide.output(), { limits: { maxTurns: 6 } })
    expect(await run.result()).toMatchObject({ status: 'failed', error: { code: 'LIMIT_TURNS' } })
    expect(stage.effects()).toEqual([])
    expect(await stage.quiesce()).toEqual(nothingLeft)
  })

  scenario('I4 with a budget of six turns and a list of eight, at most six ever start, in whatever order', async (raise) => {
    for (const concurrency of [1, 2, 3, 8]) {
      await someOrders(7, 12, async (schedule) => {
        await using stage = await raise()
        const definition = graph('list')
          .step('each', { each: () => [0, 1, 2, 3, 4, 5, 6, 7], concurrency, run: (ctx) => stage.held(`i${ctx.item}`, ctx, ctx.item) })
          .output()
        const run = await stage.tutti.start(definition, { limits: { maxTurns: 6 } })
        await stage.drain(schedule)
        expect(await run.result()).toMatchObject({ status: 'failed', error: { code: 'LIMIT_TURNS', at: {} } })
        // The turn that made the list counts, too.
        expect(stage.effects().length).toBeLessThanOrEqual(5)
        expect(await stage.quiesce()).toEqual(nothingLeft)
      })
    }
  })

  test('a list longer than the fan-out fails the run before any item starts', async () => {
    await using tutti = await open({ store: 'memory:', invariants: true })
    let ran = 0
    const definition = graph('fan', { limits: { maxFanOut: 3 } })
      .step('each', { each: () => [1, 2, 3, 4], onError: 'skip', run: () => ran++ })
      .output()
    expect(await (await tutti.start(definition)).result()).toMatchObject({ status: 'failed', error: { code: 'LIMIT_FANOUT' } })
    expect(ran).toBe(0)
  })

  test('a run that takes too long fails with LIMIT_TIME, and nothing of it goes on', async () => {
    await using stage = await Stage.open()
    const definition = graph('long', { limits: { timeoutMs: 1_000 } })
      .step('a', { onError: 'skip', run: (ctx) => stage.held('a', ctx) })
      .step('b', { after: ['a'], join: 'settled', run: () => 1 })
      .output()
    const run = await stage.tutti.start(definition)
    await stage.advance(1_000)
    expect(await run.result()).toMatchObject({ status: 'failed', error: { code: 'LIMIT_TIME' } })
    expect(await stage.quiesce()).toEqual(nothingLeft)
  })
})

describe('what a graph gives', () => {
  test('is what `output` makes of its steps and its input; if that throws, the run fails', async () => {
    await using tutti = await open({ store: 'memory:', invariants: true })
    const definition = graph('out', {})
      .step('a', { run: () => 2 })
      .output(({ steps, input }) => steps.a * (input as number))
    expect(await tutti.execute(definition, { input: 21 })).toBe(42)
    const throwing = graph('out2')
      .step('a', { run: () => 2 })
      .output(() => {
        throw new Error('no output')
      })
    expect(await (await tutti.start(throwing)).result()).toMatchObject({
      status: 'failed',
      error: { code: 'RESULT_FAILED', message: '`output` threw: no output' },
    })
  })

  test('is refused by its schema with the place of what is wrong', async () => {
    await using tutti = await open({ store: 'memory:', invariants: true })
    const definition = graph('out', { output: z.object({ a: z.object({ n: z.string() }) }) })
      .step('a', { run: () => ({ n: 2 }) })
      .output()
    const result = await (await tutti.start(definition)).result()
    expect(result).toMatchObject({
      status: 'failed',
      error: { code: 'RESULT_FAILED', message: expect.stringMatching(/^`output` threw: the output is not valid: a\.n: /) },
    })
  })

  test('is refused with the path to what is no JSON in it, and whatever is thrown instead of it is told', async () => {
    await using tutti = await open({ store: 'memory:', invariants: true })
    const gives = async (output: () => unknown) => {
      const result = await (
        await tutti.start(
          graph('out')
            .step('a', { run: () => 1 })
            .output(output),
        )
      ).result()
      return result.status === 'failed' ? `${result.error.code} ${result.error.message}` : result.status
    }
    const round: Record<string, unknown> = {}
    round['in'] = [{ round }]
    const deep = (levels: number): unknown => (levels === 0 ? 1 : [deep(levels - 1)])
    expect(await gives(() => round)).toMatch(/RESULT_FAILED .* at in\[0\]\.round.*: a value that contains itself/)
    expect(await gives(() => deep(5_000))).toMatch(/RESULT_FAILED .* nested more than/)
    expect(await gives(() => ({ a: [undefined, { [Symbol('s')]: 1 }] }))).toMatch(
      /RESULT_FAILED .* at a\[1\]: a property named by a symbol/,
    )
    expect(await gives(() => ({ found: 'abc'.match(/b/) }))).toMatch(/RESULT_FAILED .* at found: a list with a property of its own, index/)
    expect(await gives(() => [Object.assign([1], { [Symbol('s')]: 1 })])).toMatch(/RESULT_FAILED .* at \[0\]: a property named by a symbol/)
    const thrown: unknown[] = [
      Object.create(null),
      Object.assign(new Error('x'), { message: Object.create(null) }),
      Symbol('odd'),
      undefined,
    ]
    for (const odd of thrown)
      expect(
        await gives(() => {
          throw odd
        }),
      ).toMatch(/RESULT_FAILED .* threw: /)
  })

  test('is made at once: what is known to be asynchronous is refused when it is defined, what turns out to be fails the run and no more', async () => {
    const schemaOf = (validate: unknown): any => ({ '~standard': { version: 1, vendor: 'test', validate } })
    const one = (options: object) => graph('later', options).step('a', { run: () => 1 })
    const known: (() => unknown)[] = [
      () => one({}).output(async () => 1),
      () => one({ output: schemaOf(async (value: unknown) => ({ value })) }).output(),
      () => topology({ name: 't', flows: ['Start -> A -> End'], agents: { A: (turn) => turn.finish() }, result: async () => 1 }),
    ]
    for (const define of known) expect(define).toThrow(/not async|at once/)
    await using tutti = await open({ store: 'memory:', invariants: true })
    const late = () => Promise.reject(new Error('too late'))
    const query = { then: (done: (value: unknown) => void) => setImmediate(done, { value: 1 }) }
    const found = [one({}).output(late), one({ output: schemaOf(late) }).output(), one({ output: schemaOf(() => query) }).output(() => 2)]
    for (const definition of found)
      expect(await (await tutti.start(definition)).result()).toMatchObject({
        status: 'failed',
        error: { code: 'RESULT_FAILED', message: expect.stringContaining('gave a promise') },
      })
  })
})

test('a definition that is wrong says all that is wrong, before anything runs', () => {
  const broken = () =>
    (graph('broken', { required: ['nobody'] }) as any)
      .step('a', { after: ['b'], run: () => 1 })
      .step('b', { after: ['a'], run: () => 1 })
      .step('b', { run: () => 1 })
      .step('c', { after: ['nowhere'], run: () => 1 })
      .step('d', { each: [1, 2], run: () => 1 })
      .step('e', { join: 'any', run: () => 1 })
      .output()
  try {
    broken()
    expect.unreachable('it was accepted')
  } catch (error) {
    expect(TuttiError.is(error, 'INVALID_GRAPH')).toBe(true)
    const codes = ((error as TuttiError).problems ?? []).map(({ code, where }) => `${code} ${where}`)
    expect(codes.toSorted()).toEqual([
      'BAD_JOIN steps.e.join',
      'BAD_OPTION steps.d.each',
      'CYCLE a -> b -> a',
      'DUPLICATE_STEP steps.b',
      'UNKNOWN_STEP required',
      'UNKNOWN_STEP steps.c.after',
    ])
  }
})

test('the report measures how long each step and item took', async () => {
  await using tutti = await open({ store: 'memory:', invariants: true })
  const definition = graph('timed')
    .step('a', { run: () => 1 })
    .step('e', { each: () => [1, 2], run: ({ item }) => item })
    .output()
  const { report } = await (await tutti.start(definition)).result()
  expect(Object.keys(report.measured.durations).sort()).toEqual(['r.0/1', 'r.1.0/1', 'r.1.1/1', 'r.1/1'])
})
