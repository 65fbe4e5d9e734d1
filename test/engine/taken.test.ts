/** What is given is what is recorded: whoever has given it may go on with it, and change it. */
import { graph, topology } from 'tutti'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { codeOf, hub, journal, opened, rest, solo } from './opened.js'

const slowly = <T>(schema: z.ZodType<T>) =>
  schema.refine(async () => {
    await rest(2)
    return true
  })

/** Gives an object, and changes it before anybody who only looks later has looked. */
function changing(): { n: number } {
  const given = { n: 1 }
  queueMicrotask(() => {
    given.n = 2
  })
  return given
}

describe('what a caller gives', () => {
  test('an answer is recorded as it was when it was given, with who gave it and under which key', async () => {
    await using tutti = await opened()
    const run = await tutti.start(
      solo({ act: { request: (turn: any) => turn.ask('?'), answer: (turn: any, value: any) => turn.finish(value) } }),
    )
    await rest()
    const [ask] = await run.asks()
    const value = { n: 1 }
    const command = { key: 'k', by: 'ann' }
    const answering = run.answer(ask?.id ?? '', value, command)
    value.n = 2
    Object.assign(command, { key: 'other', by: 'bob' })
    await answering
    expect(await run.output()).toEqual({ n: 1 })
    expect((await journal(run)).find(({ type }) => type === 'ask.answered')).toMatchObject({ by: 'ann', value: { n: 1 } })
    expect(await codeOf(run.answer(ask?.id ?? '', { n: 1 }, { key: 'k', by: 'ann' }))).toEqual({ accepted: undefined })
  })

  test('a start is what it was when it was called, and so is what its key stands for', async () => {
    await using tutti = await opened()
    const definition = graph('g', { input: slowly(z.object({ n: z.number() })) })
      .step('a', { run: ({ input }) => input })
      .output(({ steps }) => steps.a)
    const input = { n: 1 }
    const tags = { of: 'one' }
    const limits = { maxTurns: 7 }
    const starting = tutti.start(definition, { input, tags, limits, key: 'k' })
    input.n = 2
    tags.of = 'two'
    limits.maxTurns = 1
    const run = await starting
    expect(await run.output()).toEqual({ n: 1 })
    expect(run.tags).toEqual({ of: 'one' })
    expect((await journal(run))[0]).toMatchObject({ input: { n: 1 }, shape: { limits: { maxTurns: 7 } } })
    expect((await tutti.start(definition, { input: { n: 1 }, key: 'k' })).id).toBe(run.id)
    expect(await codeOf(tutti.start(definition, { input: { n: 2 }, key: 'k' }))).toBe('KEY_REUSED')
  })

  test('the limits of an engine are those that it was opened with', async () => {
    const limits = { maxTurns: 7 }
    const opening = opened({ limits })
    limits.maxTurns = 1
    await using tutti = await opening
    limits.maxTurns = 2
    const run = await tutti.start(solo((turn) => turn.finish('ok')))
    await run.output()
    expect((await journal(run))[0]).toMatchObject({ shape: { limits: { maxTurns: 7 } } })
  })

  test('what is said to an agent is what was said when it was called', async () => {
    await using tutti = await opened({ definitions: [solo((turn) => turn.finish('ok'))] })
    const command = { by: 'ann', key: 'k', ifRevision: (await tutti.agents.get('A')).revision }
    const pausing = tutti.agents.pause('A', command)
    Object.assign(command, { by: 'bob', key: 'other', ifRevision: 99 })
    await pausing
    expect((await tutti.agents.history('A')).at(-1)).toMatchObject({ by: 'ann' })
  })
})

describe('what a turn gives', () => {
  const late = (act: (turn: any, given: any) => unknown) =>
    solo(async (turn) => {
      const given = { n: 1 }
      turn
        .step('in the background', async () => {
          await rest(5)
          given.n = 2
        })
        .catch(() => {})
      await rest(2)
      return act(turn, given)
    })

  test.each([
    ['made by its turn', (turn: any, given: unknown) => turn.finish(given)],
    ['made by hand', (_: unknown, output: unknown) => ({ type: 'finish', output })],
  ])('an action %s is what it was when it was returned, whatever goes on beside', async (_, act) => {
    await using tutti = await opened()
    expect(await tutti.execute(late(act))).toEqual({ n: 1 })
  })

  test('a failure is what it was when it was thrown, or made', async () => {
    await using tutti = await opened()
    const throwing = late((_, data) => {
      throw Object.assign(new Error('no'), { data })
    })
    expect(await (await tutti.start(throwing)).result()).toMatchObject({ error: { data: { data: { n: 1 } } } })
    const failing = late((turn, data) => turn.fail(Object.assign(new Error('no'), { data })))
    expect(await (await tutti.start(failing)).result()).toMatchObject({ error: { data: { data: { n: 1 } } } })
  })

  test('each reply is what it was when it was made, although the next body changes the same object before it is looked at', async () => {
    await using tutti = await opened()
    const shared = { log: [] as unknown[] }
    const replies = (output?: unknown) =>
      hub(
        (turn) =>
          turn.message.kind === 'join'
            ? turn.finish(turn.message.join.values)
            : turn.fork([0, 1, 2].map((request) => ({ to: 'W', request }))),
        {
          ...(output !== undefined && { output }),
          act: async (turn: any) => {
            shared.log.push(turn.request)
            return turn.reply(shared)
          },
        },
      )
    const expected = [{ log: [0] }, { log: [0, 1] }, { log: [0, 1, 2] }]
    expect(await tutti.execute(replies())).toEqual(expected)
    shared.log = []
    expect(await tutti.execute(replies(slowly(z.any())))).toEqual(expected)
  })

  test.each([
    ['made by its turn', (turn: any, calls: any, state: any) => turn.fork(calls, { state })],
    ['made by hand', (_: unknown, calls: any, state: any) => ({ type: 'fork', calls, state })],
  ])('all calls of a fork %s are taken before a schema is asked about the first', async (_, forks) => {
    await using tutti = await opened()
    const seen: unknown[] = []
    const definition = topology({
      name: 'calls',
      flows: ['Start -> H -> End', 'H <-> W'],
      state: () => ({ n: 0 }),
      merge: { n: 'mine' },
      agents: {
        H: {
          act: {
            request: (turn: any) => {
              const given = [{ n: 1 }, { n: 2 }]
              const state = { n: 3 }
              setImmediate(() => {
                for (const request of [...given, state]) request.n = 99
              })
              return forks(
                turn,
                given.map((request) => ({ to: 'W', request })),
                state,
              )
            },
            join: (turn: any, join: any) => turn.finish(join.values),
          },
        },
        W: {
          input: slowly(z.object({ n: z.number() })),
          act: (turn: any) => {
            seen.push(turn.state)
            return turn.reply(turn.request)
          },
        },
      },
    } as never) as ReturnType<typeof solo>
    expect(await tutti.execute(definition)).toEqual([{ n: 1 }, { n: 2 }])
    expect(seen).toEqual([{ n: 3 }, { n: 3 }])
  })

  test('what is made can not be changed, and made into another action it is looked at anew', async () => {
    await using tutti = await opened()
    const made: unknown[] = []
    const definition = solo(
      (turn) => {
        const action = turn.finish({ n: 1 })
        made.push(action)
        expect(() => Object.assign(action, { output: 2 })).toThrow(TypeError)
        return { ...action, output: changing }
      },
      { limits: { maxTurns: 1 } },
    )
    expect(await (await tutti.start(definition)).result()).toMatchObject({ status: 'failed' })
    expect(made[0]).toEqual({ type: 'finish', output: { n: 1 } })
  })

  test('a step is recorded as what it returned, also one with a timeout', async () => {
    await using tutti = await opened()
    const later = (): Promise<unknown> => {
      const given = { n: 1 }
      const returned = Promise.resolve(given)
      void returned
        .then(() => {})
        .then(() => {
          given.n = 2
        })
      return returned
    }
    const definition = solo(async (turn) =>
      turn.finish([
        await turn.step('now', changing),
        await turn.step('later', later),
        await turn.step('timed', later, { timeoutMs: 1_000 }),
      ]),
    )
    expect(await tutti.execute(definition)).toEqual([{ n: 1 }, { n: 1 }, { n: 1 }])
  })
})

test('what the code of a graph gives is taken at once: items, outputs, questions and the inputs of child runs', async () => {
  await using tutti = await opened()
  const child = graph('child', { input: z.object({ n: z.number() }) })
    .step('a', { run: ({ input }) => input })
    .output(({ steps }) => steps.a)
  const whole = graph('whole')
    .step('run', { run: () => changing() })
    .step('each', {
      each: () => {
        const items = [changing(), { n: 5 }]
        queueMicrotask(() => items.pop())
        return items
      },
      run: ({ item }) => item,
    })
    .step('child', { run: child, input: () => changing() })
    .ask('ask', { question: () => changing(), schema: z.string() })
    .output(({ steps }) => ({ ...steps }))
  const run = await tutti.start(whole)
  for (let tries = 0; tries < 50 && (await run.asks()).length === 0; tries++) await rest()
  const [ask] = await run.asks()
  expect((ask as { question?: unknown } | undefined)?.question).toEqual({ n: 1 })
  await run.answer(ask?.id ?? '', 'ok')
  expect(await run.output()).toEqual({ run: { n: 1 }, each: [{ n: 1 }, { n: 5 }], child: { n: 1 }, ask: 'ok' })
})

test('a join can be handed on as the value that it is', async () => {
  await using tutti = await opened()
  const whole = topology({
    name: 'whole',
    flows: ['Start -> H -> End', 'H <-> A | B'],
    agents: {
      H: {
        act: {
          request: (turn) => turn.fork(['A', 'B'], { join: 'settled' }),
          join: (turn, join) => turn.finish({ join, ofA: join.from('A') }),
        },
      },
      A: (turn) => turn.reply('a'),
      B: (turn) => turn.fail('no'),
    },
  })
  expect(await tutti.execute(whole)).toMatchObject({
    ofA: ['a'],
    join: { ok: true, values: ['a'], slots: [{ status: 'arrived', value: 'a' }, { status: 'failed' }] },
  })
})
