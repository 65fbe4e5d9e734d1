import { type Schema, topology } from 'tutti'
import { expect, test } from 'vitest'
import { z } from 'zod'
import { codeOf, type HubTurn, hub, journal, opened, solo, type SoloTurn, type WorkerTurn } from './opened.js'

const Topic = z.object({ topic: z.string().min(1), depth: z.number().default(2) })

test('an input that the schema refuses starts nothing, and the error says what is wrong and where', async () => {
  await using tutti = await opened()
  let acted = 0
  const definition = topology({
    name: 'strict',
    input: Topic,
    flows: ['Start -> A -> End'],
    agents: {
      A: (turn) => {
        acted++
        return turn.finish(turn.request)
      },
    },
  })
  for (const input of [{}, { topic: '' }, { topic: 1 }, null, 'x', undefined]) {
    const error = await tutti.start(definition, { input } as never).catch((thrown: unknown) => thrown)
    expect(error).toMatchObject({ code: 'INVALID_INPUT', hint: expect.stringContaining('strict') })
  }
  expect(await codeOf(tutti.start(definition, { input: { topic: 1 } } as never))).toBe('INVALID_INPUT')
  expect(await tutti.start(definition, { input: { topic: 1 } } as never).catch((error: Error) => error.message)).toMatch(/topic/)
  expect((await tutti.runs()).runs).toEqual([])
  expect(acted).toBe(0)
  expect(await tutti.execute(definition, { input: { topic: 'rain' } })).toEqual({ topic: 'rain', depth: 2 })
})

test('an agent right after Start takes the input by its own schema too', async () => {
  await using tutti = await opened()
  const definition = solo({ input: Topic, act: (turn: { request: unknown; finish(v: unknown): never }) => turn.finish(turn.request) })
  expect(await codeOf(tutti.start(definition, { input: {} }))).toBe('INVALID_INPUT')
  expect(await tutti.execute(definition, { input: { topic: 'rain', depth: 1 } })).toEqual({ topic: 'rain', depth: 1 })
})

test('a request that the peer refuses rejects the turn with the issues as feedback, and nothing is sent', async () => {
  await using tutti = await opened()
  const received: unknown[] = []
  const feedback: unknown[] = []
  const definition = hub(
    (turn: HubTurn) => {
      if (turn.message.kind === 'join') return turn.finish(turn.message.join.values)
      if (turn.message.kind === 'feedback') {
        feedback.push(turn.message.problem)
        return turn.fork([{ to: 'W', request: { topic: 'mended' } }])
      }
      return turn.fork([
        { to: 'W', request: { topic: 'fine' } },
        { to: 'W', request: { topic: 7 } },
      ])
    },
    {
      input: Topic,
      act: (turn: WorkerTurn) => {
        received.push(turn.request)
        return turn.reply(turn.request)
      },
    },
  )
  expect(await tutti.execute(definition)).toEqual([{ topic: 'mended', depth: 2 }])
  expect(received).toEqual([{ topic: 'mended', depth: 2 }])
  expect(feedback).toEqual([expect.stringMatching(/call 1.*W.*topic/)])
})

test('a reply that the output refuses rejects the turn, and one that it changes arrives changed', async () => {
  await using tutti = await opened()
  const definition = hub(
    (turn: HubTurn) => (turn.message.kind === 'join' ? turn.finish(turn.message.join.values) : turn.fork([{ to: 'W', request: 'x' }])),
    {
      output: z.object({ score: z.number(), why: z.string().default('no reason') }),
      act: (turn: WorkerTurn) => turn.reply(turn.message.kind === 'feedback' ? { score: 1 } : { score: 'high' }),
    },
  )
  const run = await tutti.start(definition)
  expect(await run.output()).toEqual([{ score: 1, why: 'no reason' }])
  expect((await journal(run)).filter(({ type }) => type === 'turn.rejected')).toMatchObject([
    { agent: 'W', branch: 'r.0', problem: expect.stringMatching(/reply of W.*score/) },
  ])
})

test.each(['invoke', 'reply'] as const)('what is sent to who waits over a notify edge is a request: %s', async (way) => {
  await using tutti = await opened()
  const noted: unknown[] = []
  const definition = topology({
    name: 'noting',
    flows: ['Start -> H -> End', 'H -> W', 'W ~> H', 'W -> End'],
    result: 'list',
    agents: {
      H: {
        input: Topic,
        act: (turn) => {
          if (turn.message.kind === 'join') return turn.finish('h')
          if (turn.branchId === 'r') return turn.fork(['W'])
          noted.push(turn.request)
          return turn.finish('noted')
        },
      },
      W: {
        output: z.string(),
        act: (turn) => {
          if (turn.message.kind === 'join') return turn.finish('w')
          const request = turn.message.kind === 'feedback' ? { topic: 'rain' } : 'no topic'
          return way === 'invoke' ? turn.invoke('H', request as never) : turn.reply(request as never)
        },
      },
    },
  })
  const run = await tutti.start(definition, { input: { topic: 'sun' } })
  expect(await run.output()).toEqual(['w'])
  expect(noted).toEqual([{ topic: 'rain', depth: 2 }])
  expect((await journal(run)).filter(({ type }) => type === 'turn.rejected')).toMatchObject([
    { agent: 'W', problem: expect.stringMatching(/^the request to H is not valid/) },
  ])
})

test('a finish is held by the output of the topology, or else of the agent, up to the limit of rejections', async () => {
  await using tutti = await opened()
  for (const rest of [{ output: z.number() }, {}]) {
    let attempts = 0
    const act = (turn: { finish(v: unknown): never }) => {
      attempts++
      return turn.finish(attempts < 3 ? 'no number' : 3)
    }
    expect(await tutti.execute(solo({ act, ...('output' in rest ? {} : { output: z.number() }) }, rest))).toBe(3)
    attempts = -10
    const run = await tutti.start(solo({ act, maxRejections: 1, ...('output' in rest ? {} : { output: z.number() }) }, rest))
    expect(await run.result()).toMatchObject({ status: 'failed', error: { code: 'REJECTED', message: expect.stringContaining('output') } })
    expect(attempts).toBe(-8)
  }
})

test('a schema may take its time', async () => {
  await using tutti = await opened()
  const slow = z.string().refine(async (text) => {
    await new Promise((resolve) => setImmediate(resolve))
    return text.length > 1
  }, 'too short')
  const definition = solo((turn) => turn.finish(turn.request), { input: slow, output: slow })
  expect(await tutti.start(definition, { input: 'x' }).catch((error: Error) => error.message)).toMatch(/too short/)
  expect(await tutti.execute(definition, { input: 'xy' })).toBe('xy')
})

test('a schema that makes something else than JSON of a value is refused like the value', async () => {
  await using tutti = await opened()
  const dates = z.string().transform((text) => new Date(text))
  expect(
    await codeOf(
      tutti.start(
        solo((turn) => turn.finish(), { input: dates }),
        { input: '2020-01-01' },
      ),
    ),
  ).toBe('INVALID_INPUT')
  const run = await tutti.start(
    solo({ output: dates, maxRejections: 0, act: (turn: { finish(v: unknown): never }) => turn.finish('2020-01-01') }),
  )
  expect(await run.result()).toMatchObject({ status: 'failed', error: { code: 'REJECTED', message: expect.stringContaining('Date') } })
})

test('what a schema has against a value as a whole is said of no place, whatever kind of list its paths are', async () => {
  await using tutti = await opened()
  /** As arktype's: made of its items, so that its own `map` of an empty one begins with its length. */
  class Path extends Array<PropertyKey> {
    constructor(...items: PropertyKey[]) {
      super()
      this.push(...items)
    }
  }
  const refusing = (...place: PropertyKey[]): Schema => ({
    '~standard': { version: 1, vendor: 'test', validate: () => ({ issues: [{ message: 'it is wrong', path: new Path(...place) }] }) },
  })
  const said = (input: Schema) =>
    tutti
      .start(
        solo((turn) => turn.finish(), { input }),
        { input: 1 },
      )
      .catch((error: Error) => error.message)
  expect(await said(refusing())).toBe('the input is not valid: it is wrong')
  expect(await said(refusing('list', 2, 'name'))).toBe('the input is not valid: list.2.name: it is wrong')
})

test('a schema that throws refuses what it was to check, is named, and disturbs nobody else', async () => {
  await using tutti = await opened()
  const throwing: Schema = {
    '~standard': {
      version: 1,
      vendor: 'test',
      validate: () => {
        throw new Error('the schema broke')
      },
    },
  }
  const refused = (what: string) => ({ code: 'INVALID_INPUT', message: `the schema of ${what} threw: the schema broke` })
  const rejected = (what: string) => ({
    status: 'failed',
    error: { code: 'REJECTED', message: expect.stringContaining(`the schema of ${what} threw: the schema broke`) },
  })
  const finishes = (turn: SoloTurn) => turn.finish(1)
  await expect(tutti.start(solo(finishes, { input: throwing }), { input: 1 })).rejects.toMatchObject(refused('the input'))
  await expect(tutti.start(solo({ input: throwing, act: finishes }))).rejects.toMatchObject(refused('the input, for A,'))
  expect(await (await tutti.start(solo(finishes, { output: throwing }))).result()).toMatchObject(rejected('the output'))
  const asks = hub((turn) => turn.fork([{ to: 'W', request: 1 }]), { input: throwing, act: (turn: WorkerTurn) => turn.reply(1) })
  expect(await (await tutti.start(asks)).result()).toMatchObject(rejected('the request to W'))
  const run = await tutti.start(
    solo((turn) => (turn.message.kind === 'answer' ? turn.finish(turn.message.value) : turn.ask('ok?', { schema: throwing }))),
  )
  for await (const event of run.events()) if (event.type === 'ask.opened') break
  const [ask] = await run.asks()
  await expect(run.answer(ask?.id ?? '', 1)).rejects.toMatchObject({
    code: 'ASK_INVALID_ANSWER',
    message: 'the schema of the answer threw: the schema broke',
  })
  expect(await run.asks()).toHaveLength(1)
  expect(await tutti.execute(solo((turn) => turn.finish('others go on')))).toBe('others go on')
})
