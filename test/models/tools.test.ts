import type { LanguageModelV3CallOptions } from '@ai-sdk/provider'
import type { ModelFactory, Run } from 'tutti'
import { tool, topology } from 'tutti'
import { script } from 'tutti/testing'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { toolbox } from '../../src/define/toolbox.js'
import { simModel } from '../../src/models/sim.js'
import { Transcript } from '../../src/models/transcript.js'
import { memoryStore } from '../../src/stores/memory.js'
import { codeOf, deferred, journal, journalSoFar, opened, rest, timed } from '../engine/opened.js'
import { called, type Heard, lastResults, saying, spied } from './spied.js'

const solo = (tools: Record<string, ReturnType<typeof tool<any, any>>>, more: object = {}) =>
  topology({ name: 'solo', flows: ['Start -> A -> End'], agents: { A: { tools, ...more } } })
const named = (run: (input: { name: string }) => unknown, more: object = {}) =>
  tool({ description: 'Does it.', input: z.object({ name: z.string() }), run, ...more })
/** First these calls at once, then the end. */
const calling =
  (...names: string[]): ModelFactory =>
  () =>
    saying(({ index }) => (index > 0 ? [called('finish', { output: 'ok' })] : names.map((name, at) => called('work', { name }, `c${at}`))))
const finished = { status: 'succeeded', output: 'ok' }

describe('tools of one answer', () => {
  test('run at the same time, and their results stand in the order of the calls, whoever was first', async () => {
    const gates = { a: deferred<string>(), b: deferred<string>(), c: deferred<string>() }
    const started: string[] = []
    const work = named(({ name }) => {
      started.push(name)
      return gates[name as 'a'].promise
    })
    const { models, heard } = spied(calling('a', 'b', 'c'))
    await using tutti = await opened({ models })
    const run = await tutti.start(solo({ work }))
    await rest()
    expect(started).toEqual(['a', 'b', 'c'])
    for (const name of ['c', 'a', 'b'] as const) {
      gates[name].resolve(`${name} done`)
      await rest()
    }
    expect(await run.result()).toMatchObject(finished)
    expect(lastResults(heard[1] as Heard)).toEqual(['a done', 'b done', 'c done'])
  })

  test('that fail are told to the model, and the others go on', async () => {
    const work = named(({ name }) => {
      if (name === 'b') throw new Error('no luck')
      return name === 'c' ? undefined : name
    })
    const { models, heard } = spied(calling('a', 'b', 'c'))
    await using tutti = await opened({ models })
    expect(await (await tutti.start(solo({ work }))).result()).toMatchObject(finished)
    expect(lastResults(heard[1] as Heard)).toEqual(['a', 'it failed: no luck', null])
  })

  test('with arguments that their schema refuses are not called, beside one that is', async () => {
    const { models, heard } = spied(() =>
      saying(({ index }) =>
        index > 0 ? [called('finish', { output: 'ok' })] : [called('work', { nam: 1 }, 'x'), called('work', { name: 'a' }, 'y')],
      ),
    )
    await using tutti = await opened({ models })
    expect(await (await tutti.start(solo({ work: named(({ name }) => name) }))).result()).toMatchObject(finished)
    expect(lastResults(heard[1] as Heard)).toEqual([expect.stringMatching(/the input of work is not valid/), 'a'])
  })

  test('that could not be called are told as such in the turns that follow too, not as calls that somebody forgot', async () => {
    const says = [[called('fly', {}, 'x'), called('work', { name: 'a' }, 'y')], [called('swim', {})], [called('finish', { output: 'ok' })]]
    const { models, heard } = spied(() => saying(({ index }) => says[index] ?? []))
    await using tutti = await opened({ models })
    expect(await (await tutti.start(solo({ work: named(({ name }) => name) }))).result()).toMatchObject(finished)
    const [, , later] = heard
    expect(later?.text).toContain('not done: there is no such tool, or it does not take these arguments')
    expect(later?.text).not.toContain('the turn ended before it was called')
  })

  test('of which none can be called send the answer back', async () => {
    const { models, heard } = spied(script({ A: [{ tool: 'fly', input: {} }, { finish: 'ok' }] }))
    await using tutti = await opened({ models })
    const run = await tutti.start(solo({ work: named(() => 1) }))
    expect(await run.result()).toMatchObject(finished)
    expect(lastResults(heard[1] as Heard)[0]).toMatch(/there is no tool "fly". Allowed are: finish; work/)
    expect((await journal(run)).filter(({ type }) => type === 'turn.rejected')).toHaveLength(1)
  })

  test('that take too long are given up', async () => {
    const work = named(() => new Promise(() => {}), { timeoutMs: 500 })
    const { models, heard } = spied(calling('a'))
    await using play = await timed({ models })
    const run = await play.tutti.start(solo({ work }))
    await play.clock.advance(600)
    await expect.poll(() => heard).toHaveLength(2)
    // It ignores its signal: the turn does not end before its grace has.
    await play.clock.advance(10_000)
    expect(await run.result()).toMatchObject(finished)
    expect(lastResults(heard[1] as Heard)).toEqual([expect.stringMatching(/took longer than 500 ms/)])
  })

  test('that must not be repeated and took too long are told as what nobody knows, then and in the turns that follow, not as failed', async () => {
    const work = named(() => new Promise(() => {}), { timeoutMs: 500, idempotent: false })
    const again = (place: { index: number }) =>
      [[called('work', { name: 'a' }, 'c0')], [{ type: 'text' as const, text: ' ' }], [called('finish', { output: 'ok' })]][place.index] ??
      []
    const { models, heard } = spied(() => saying(again))
    await using play = await timed({ models })
    const run = await play.tutti.start(solo({ work }))
    await play.clock.advance(600)
    await expect.poll(() => heard).toHaveLength(2)
    await play.clock.advance(10_000)
    expect(await run.result()).toMatchObject(finished)
    for (const call of heard.slice(1))
      expect(lastResults(call)).toEqual([expect.stringMatching(/^nobody knows whether it was done: .* took longer than 500 ms/)])
    expect(heard).toHaveLength(3)
  })

  test('called for ever come to an end', async () => {
    await using tutti = await opened({ models: () => saying(() => [called('work', { name: 'again' })]) })
    const result = await (await tutti.start(solo({ work: named(() => 1) }))).result()
    expect(result).toMatchObject({ status: 'failed', error: { code: 'AGENT_FAILED', message: expect.stringMatching(/100 times/) } })
  })
})

test('B7 a model is not asked before the result of its tool is recorded', async () => {
  const seen: number[] = []
  const { models } = spied(script({ A: [{ tool: 'work', input: { name: 'a' } }, { finish: 'ok' }] }))
  let run: Run | null = null
  const watching: ModelFactory = (ref) => {
    const model = models(ref) as ReturnType<typeof saying>
    return {
      ...model,
      doGenerate: async (options: Parameters<typeof model.doGenerate>[0]) => {
        const events = run === null ? [] : await journalSoFar(run)
        seen.push(events.filter(({ type }) => type === 'activity.completed').length)
        return model.doGenerate(options)
      },
    } as typeof model
  }
  await using tutti = await opened({ models: watching })
  run = await tutti.start(solo({ work: named(() => 1) }))
  await run.result()
  expect(seen.at(-1)).toBe(2)
})

test('a turn goes on in another process though a tool that it has called is gone there: what came of it is recorded', async () => {
  const store = memoryStore()
  let calls = 0
  const boxes = ['one', 'other'].map((name) => {
    const work = named(() => ++calls)
    return toolbox({ description: 'a box', open: () => ({ list: async () => ({ [name]: work }), close: async () => {} }) })
  })
  const [before, after] = boxes.map((box) => solo({ t: box as never })) as [ReturnType<typeof solo>, ReturnType<typeof solo>]
  const hanging = deferred()
  const models: ModelFactory = () => ({
    ...saying(() => []),
    doGenerate: async (options: LanguageModelV3CallOptions) => {
      if (options.prompt.some(({ role }) => role === 'tool')) await hanging.promise
      return saying(() => [called('t_one', { name: 'a' })]).doGenerate(options)
    },
  })
  const first = await opened({ store, models, graceMs: 0 })
  const run = await first.start(before, { id: 'one' })
  // The answer, and what came of the tool.
  await expect.poll(async () => (await journalSoFar(run)).filter(({ type }) => type === 'activity.completed').length).toBe(2)
  await first.close()
  const { models: ending, heard } = spied(() => saying(() => [called('finish', { output: 'ok' })]))
  await using second = await opened({ store, models: ending, definitions: [after] })
  expect(await (await second.run('one')).result()).toMatchObject(finished)
  expect(lastResults(heard[0] as Heard)).toEqual([1])
  expect(calls).toBe(1)
})

describe('a tool that a person must approve', () => {
  const paid: string[] = []
  const pay = tool({
    description: 'Pays.',
    input: z.object({ amount: z.number() }),
    needsApproval: ({ amount }) => amount > 10,
    run: ({ amount }) => {
      paid.push(String(amount))
      return `paid ${amount}`
    },
  })
  const paying = solo({ pay })
  const begin = async (models: ModelFactory, answers: readonly unknown[]) => {
    paid.length = 0
    const spy = spied(models)
    await using tutti = await opened({ models: spy.models })
    const run = await tutti.start(paying)
    const left = [...answers]
    const asks: unknown[] = []
    for await (const event of run.events()) {
      if (event.type !== 'ask.opened') continue
      asks.push(event.ask)
      // Whoever follows the run is told the same as whoever looks.
      expect(await run.asks()).toEqual([event.ask])
      expect(paid).toHaveLength(answers.filter((answer, at) => at < answers.length - left.length && answer === true).length)
      await run.answer(event.ask.id, left.shift())
    }
    return { result: await run.result(), heard: spy.heard, asks, run }
  }
  const replies = (...amounts: number[]) =>
    script({ A: [...amounts.map((amount) => ({ tool: 'pay', input: { amount } })), { finish: 'ok' }] })

  test('is called once somebody has said yes, though the agent has no edge to User', async () => {
    const { result, heard, asks } = await begin(replies(50), [true])
    expect(result).toMatchObject(finished)
    expect(asks).toMatchObject([{ kind: 'approval', tool: 'pay', input: { amount: 50 } }])
    expect(paid).toEqual(['50'])
    expect(lastResults(heard[1] as Heard)).toEqual(['paid 50'])
  })

  test('is told in the report with what it was to be called with, whatever the answer was', async () => {
    const { result } = await begin(replies(50), [false])
    expect(result.report.interactions).toMatchObject([
      { from: 'A', to: 'User', request: { tool: 'pay', input: { amount: 50 } }, outcome: 'arrived' },
      { from: 'A', to: 'End', request: 'ok' },
    ])
  })

  test('is not asked about where its function says no', async () => {
    const { asks } = await begin(replies(5), [])
    expect(asks).toEqual([])
    expect(paid).toEqual(['5'])
  })

  test('is not called after a no, and the model is told why', async () => {
    const { result, heard } = await begin(replies(50), [{ approved: false, reason: 'too much' }])
    expect(result).toMatchObject(finished)
    expect(paid).toEqual([])
    expect(lastResults(heard[1] as Heard)).toEqual(['not done: a person refused it: too much'])
  })

  test('is asked about if its function has said so once, whatever it would say later', async () => {
    let looks = 0
    const pay = tool({
      description: 'Pays.',
      input: z.object({ to: z.string() }),
      needsApproval: () => looks++ < 2,
      run: ({ to }) => to,
    })
    const models: ModelFactory = () =>
      saying(({ index }) =>
        index === 0 ? [called('pay', { to: 'ann' }, 'a'), called('pay', { to: 'bob' }, 'b')] : [called('finish', { output: 'ok' })],
      )
    await using tutti = await opened({ models })
    const run = await tutti.start(solo({ pay }))
    const asked: unknown[] = []
    for await (const event of run.events()) {
      if (event.type !== 'ask.opened') continue
      asked.push(event.ask.kind === 'approval' && event.ask.input)
      await run.answer(event.ask.id, true)
    }
    expect(await run.result()).toMatchObject(finished)
    expect(asked).toEqual([{ to: 'ann' }, { to: 'bob' }])
    expect(looks).toBe(2)
  })

  test('with other arguments than those approved needs another approval', async () => {
    const { result, asks, heard } = await begin(replies(50, 5_000), [true, false])
    expect(result).toMatchObject(finished)
    expect(asks).toMatchObject([{ input: { amount: 50 } }, { input: { amount: 5_000 } }])
    expect(paid).toEqual(['50'])
    expect(lastResults(heard[2] as Heard)).toEqual(['not done: a person refused it'])
  })

  test('beside others waits for its own answer: each is asked about, what needs none runs at once', async () => {
    const models: ModelFactory = () =>
      saying(({ index }) =>
        index > 0
          ? [called('finish', { output: 'ok' })]
          : [called('pay', { amount: 20 }, 'a'), called('pay', { amount: 1 }, 'b'), called('pay', { amount: 30 }, 'c')],
      )
    const spy = spied(models)
    paid.length = 0
    await using tutti = await opened({ models: spy.models })
    const run = await tutti.start(paying)
    const answers = [true, { approved: false }]
    for await (const event of run.events()) if (event.type === 'ask.opened') await run.answer(event.ask.id, answers.shift())
    expect(await run.result()).toMatchObject(finished)
    expect(paid).toEqual(['1', '20'])
    expect(spy.heard).toHaveLength(2)
    expect(lastResults(spy.heard[1] as Heard)).toEqual(['paid 20', 'paid 1', 'not done: a person refused it'])
  })

  test('takes only yes or no for an answer, and stays open for one', async () => {
    paid.length = 0
    await using tutti = await opened({ models: replies(50) })
    const run = await tutti.start(paying)
    await rest()
    const [ask] = await run.asks()
    expect(await codeOf(run.answer(ask?.id ?? '', 'sure'))).toBe('ASK_INVALID_ANSWER')
    expect(paid).toEqual([])
    await run.answer(ask?.id ?? '', { approved: true })
    expect(await run.result()).toMatchObject(finished)
    expect(paid).toEqual(['50'])
  })

  test('is not called with what was approved for other arguments, whatever brought the two together', () => {
    const parts = [{ type: 'call', id: 'a', tool: 'pay', input: '{"amount":5000}' }] as const
    const answered = (input: unknown): Transcript => {
      const transcript = new Transcript()
      transcript.say({ parts, finish: 'tool-calls', model: 'm', attempts: 1, inputTokens: 0, outputTokens: 0 })
      transcript.hear({ kind: 'answer', askId: 'r~1', question: { tool: 'pay', input, call: 0 }, value: true })
      return transcript
    }
    expect(answered({ amount: 5_000 }).calls).toMatchObject([{ approved: true, output: null }])
    expect(answered({ amount: 50 }).calls).toMatchObject([
      { approved: false, output: { value: expect.stringMatching(/not the arguments/) } },
    ])
  })

  test('cannot be approved by a question that looks like it', async () => {
    paid.length = 0
    const sly = topology({ name: 'sly', flows: ['Start -> A -> End', 'A -> User'], agents: { A: { tools: { pay } } } })
    const models: ModelFactory = () =>
      saying(({ index }) =>
        index === 0
          ? [called('pay', { amount: 99 }, 'p'), called('ask_user', { question: { tool: 'pay', input: { amount: 99 }, call: 0 } }, 'q')]
          : [called('finish', { output: 'ok' })],
      )
    await using tutti = await opened({ models })
    const run = await tutti.start(sly)
    await rest()
    const asks = await run.asks()
    expect(asks).toMatchObject([{ kind: 'approval' }])
    await run.answer(asks[0]?.id ?? '', false)
    expect(await run.result()).toMatchObject(finished)
    expect(paid).toEqual([])
  })
})

describe('a tool whose input is no object', () => {
  interface Tree {
    readonly of: readonly Tree[]
  }
  const tree: z.ZodType<Tree> = z.lazy(() => z.object({ of: z.array(tree) }))
  const shapes: readonly [string, z.ZodType, unknown][] = [
    ['a text', z.string(), 'hello'],
    ['a list', z.array(z.number()), [1, 2]],
    ['one of several', z.union([z.object({ a: z.string() }), z.object({ b: z.string() })]), { b: 'x' }],
    [
      'one of several kinds',
      z.discriminatedUnion('kind', [z.object({ kind: z.literal('a') }), z.object({ kind: z.literal('b') })]),
      { kind: 'b' },
    ],
    ['an object or nothing', z.object({ a: z.string() }).nullable(), null],
    ['anything', z.unknown(), 7],
    ['one that contains itself', z.union([tree, z.string()]), { of: [{ of: [] }] }],
    ['one that has that field', z.union([z.object({ input: z.string() }), z.string()]), { input: 'x' }],
  ]
  const tried = async (input: z.ZodType, models: ModelFactory, more: object = {}, drive?: (run: Run) => Promise<unknown>) => {
    const given: unknown[] = []
    const work = tool({ description: 'Does it.', input, run: (value) => void given.push(value), ...more })
    const { models: spying, heard } = spied(models)
    await using tutti = await opened({ models: spying })
    const run = await tutti.start(solo({ work }))
    await drive?.(run)
    return { result: await run.result(), given, heard }
  }
  const told = (heard: readonly Heard[]) =>
    heard
      .at(-1)
      ?.options.prompt.flatMap(({ content }) => (Array.isArray(content) ? content.filter(({ type }) => type === 'tool-call') : []))
  const saysIt =
    (value: unknown): ModelFactory =>
    () =>
      saying(({ index }) => [index > 0 ? called('finish', { output: 'ok' }) : called('work', { input: value })])

  test.each(shapes)('is offered as an object that has it, and is given what was in there: %s', async (_, input, value) => {
    const { result, given, heard } = await tried(input, saysIt(value))
    expect(result).toMatchObject(finished)
    expect(given).toEqual([value])
    expect(told(heard)).toMatchObject([{ toolName: 'work', input: { input: value } }])
  })

  test.each(shapes.filter(([name]) => name !== 'one that has that field'))('is called by scripts as it is: %s', async (_, input, value) => {
    const { result, given, heard } = await tried(input, script({ A: [{ tool: 'work', input: value }, { finish: 'ok' }] }))
    expect(result).toMatchObject(finished)
    expect(given).toEqual([value])
    expect(told(heard)).toMatchObject([
      { input: expect.objectContaining(Object(value) === value && !Array.isArray(value) ? (value as object) : { input: value }) as object },
    ])
  })

  test.each(shapes)('is called by the simulated model: %s', async (_, input) => {
    const { result, given } = await tried(input, ({ agent }) => simModel(agent))
    expect(result).toMatchObject({ status: 'succeeded' })
    expect(given).toHaveLength(1)
  })

  test.each<[z.ZodType, unknown]>([
    [z.object({ input: z.string() }).meta({ id: 'Named' }), { input: 'x' }],
    [tree.meta({ id: 'Tree', description: 'A tree.' }), { of: [{ of: [] }] }],
  ])('is not one that is an object and has a name', async (input, value) => {
    const calls: ModelFactory = () =>
      saying(({ index }) => [index > 0 ? called('finish', { output: 'ok' }) : called('work', value as object)])
    for (const models of [calls, script({ A: [{ tool: 'work', input: value }, { finish: 'ok' }] })]) {
      const { result, given, heard } = await tried(input, models)
      expect(result).toMatchObject(finished)
      expect(given).toEqual([value])
      expect(told(heard)).toMatchObject([{ input: value }])
    }
    const simulated = await tried(input, ({ agent }) => simModel(agent))
    expect(simulated.given).toHaveLength(1)
  })

  test('is approved as it was called', async () => {
    const answer = async (run: Run) => {
      for await (const event of run.events()) {
        if (event.type !== 'ask.opened' || event.ask.kind !== 'approval') continue
        expect(event.ask.input).toEqual({ input: 'hello' })
        return run.answer(event.ask.id, true)
      }
    }
    const { result, given } = await tried(z.string(), saysIt('hello'), { needsApproval: true }, answer)
    expect(result).toMatchObject(finished)
    expect(given).toEqual(['hello'])
  })

  test('is told what is wrong with it, and keeps an object that is called like the field', async () => {
    const wrong = await tried(z.string(), saysIt(7))
    expect(wrong.heard.at(-1)?.text).toMatch(/the input of work is not valid/)
    const named = await tried(z.object({ input: z.string() }), saysIt('x'))
    expect(named.given).toEqual([{ input: 'x' }])
  })
})
