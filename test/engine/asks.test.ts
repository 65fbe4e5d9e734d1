import { type Definition, graph, topology, TuttiError } from 'tutti'
import { expect, test } from 'vitest'
import { z } from 'zod'
import { memoryStore } from '../../src/stores/memory.js'
import { handedOut } from '../kernel/handed.js'
import { codeOf, deferred, forksEach, hub, journal, opened, rest, solo, type SoloTurn, timed, typesOf } from './opened.js'

const asksOnce = (turn: SoloTurn) =>
  turn.message.kind === 'answer' ? turn.finish({ asked: turn.message.question, got: turn.message.value }) : turn.ask({ may: 'I?' })

test('an ask waits for a person, and the answer is the next turn', async () => {
  await using tutti = await opened()
  const run = await tutti.start(solo(asksOnce), { tags: { team: 'red' } })
  await rest()
  const [ask] = await run.asks()
  expect(ask).toMatchObject({ kind: 'question', question: { may: 'I?' }, runId: run.id, branch: 'r', agent: 'A', tags: { team: 'red' } })
  expect(await tutti.asks()).toEqual([ask])
  expect(await tutti.asks({ agent: 'A', tags: { team: 'red' }, runId: run.id })).toEqual([ask])
  expect(await tutti.asks({ agent: 'B' })).toEqual([])
  expect(await tutti.asks({ tags: { team: 'blue' } })).toEqual([])
  await run.answer(ask?.id ?? '', { yes: true }, { by: 'ann' })
  expect(await run.output()).toEqual({ asked: { may: 'I?' }, got: { yes: true } })
  expect((await journal(run)).find(({ type }) => type === 'ask.answered')).toMatchObject({ by: 'ann', value: { yes: true } })
  expect(await tutti.asks()).toEqual([])
})

test('one of two answers wins, the other is refused, and an ask that never was is unknown', async () => {
  await using tutti = await opened()
  const run = await tutti.start(solo(asksOnce))
  await rest()
  const [ask] = await run.asks()
  const codes = await Promise.all([codeOf(run.answer(ask?.id ?? '', 'a')), codeOf(run.answer(ask?.id ?? '', 'b'))])
  expect(codes.filter((code) => code === 'ASK_ALREADY_ANSWERED')).toHaveLength(1)
  expect(await run.output()).toMatchObject({ got: codes[0] === 'ASK_ALREADY_ANSWERED' ? 'b' : 'a' })
  expect(await codeOf(run.answer(ask?.id ?? '', 'c'))).toBe('ASK_ALREADY_ANSWERED')
  expect(await codeOf(run.answer('nobody', 'c'))).toBe('ASK_NOT_FOUND')
})

test('answers are taken while a run is paused, and acted upon when it goes on', async () => {
  await using tutti = await opened()
  const run = await tutti.start(solo(asksOnce))
  await rest()
  await run.pause()
  const [ask] = await run.asks()
  await run.answer(ask?.id ?? '', 1)
  await rest()
  expect(await run.status()).toBe('paused')
  await run.resume()
  expect(await run.output()).toMatchObject({ got: 1 })
})

test('an answer that its schema refuses leaves the ask open, and one that it changes arrives changed', async () => {
  await using tutti = await opened()
  const schema = z.object({ amount: z.number().int(), note: z.string().default('none') })
  const run = await tutti.start(
    solo((turn) => (turn.message.kind === 'answer' ? turn.finish(turn.message.value) : turn.ask('how much?', { schema }))),
  )
  await rest()
  const [ask] = await run.asks()
  expect(ask?.schema).toMatchObject({ type: 'object', properties: { amount: { type: 'integer' } } })
  const before = typesOf(await (await tutti.run(run.id)).asks().then(() => []))
  for (const bad of [{ amount: 'x' }, {}, null, 1.5]) {
    const error = await run.answer(ask?.id ?? '', bad).catch((thrown: unknown) => thrown)
    expect(error).toMatchObject({ code: 'ASK_INVALID_ANSWER', message: expect.any(String), hint: expect.any(String) })
  }
  expect(before).toEqual([])
  expect(await run.asks()).toEqual([ask])
  await run.answer(ask?.id ?? '', { amount: 3 })
  expect(await run.output()).toEqual({ amount: 3, note: 'none' })
})

test('the answer schema of an agent holds for its asks, and one of the ask itself comes first, for that ask alone', async () => {
  await using tutti = await opened()
  const asked = solo({
    answer: z.string(),
    act: (turn: SoloTurn) => {
      if (turn.turn === 1) return turn.ask('a number', { schema: z.number() })
      if (turn.turn === 2) return turn.ask('a text')
      return turn.finish(turn.message.kind === 'answer' ? turn.message.value : null)
    },
  })
  const run = await tutti.start(asked)
  await rest()
  const [first] = await run.asks()
  expect(await codeOf(run.answer(first?.id ?? '', 'text'))).toBe('ASK_INVALID_ANSWER')
  await run.answer(first?.id ?? '', 1)
  await rest()
  const [second] = await run.asks()
  expect(await codeOf(run.answer(second?.id ?? '', 1))).toBe('ASK_INVALID_ANSWER')
  await run.answer(second?.id ?? '', 'text')
  expect(await run.output()).toBe('text')
})

test('an answer that is no JSON is refused', async () => {
  await using tutti = await opened()
  const run = await tutti.start(solo(asksOnce))
  await rest()
  const [ask] = await run.asks()
  for (const bad of [() => 1, 1n, Number.NaN, new Date(), new Map(), JSON.parse('{"__proto__":1}')])
    expect(await codeOf(run.answer(ask?.id ?? '', bad))).toBe('ASK_INVALID_ANSWER')
  await run.answer(ask?.id ?? '', 'fine')
  expect(await run.output()).toMatchObject({ got: 'fine' })
})

test('an ask expires in time, is a turn if the agent takes that, and fails the branch if not', async () => {
  await using at = await timed()
  const takes = solo((turn) =>
    turn.message.kind === 'expired' ? turn.finish(turn.message.question) : turn.ask('quick?', { timeoutMs: 1_000 }),
  )
  const fails = solo({
    act: { request: (turn: SoloTurn) => turn.ask('quick?', { timeoutMs: 1_000 }), answer: (turn: SoloTurn) => turn.finish() },
  })
  const [first, second] = [await at.tutti.start(takes), await at.tutti.start(fails)]
  await rest()
  const [ask] = await first.asks()
  expect(ask?.expiresAt).toBe(1_000)
  await at.clock.advance(999)
  expect(await first.asks()).toHaveLength(1)
  await at.clock.advance(1)
  expect(await first.output()).toBe('quick?')
  expect(await second.result()).toMatchObject({ status: 'failed', error: { code: 'ASK_EXPIRED' } })
  expect(await codeOf(first.answer(ask?.id ?? '', 1))).toBe('ASK_NOT_FOUND')
})

test('when an ask expires is known before and after a pause, from the run and from the list of all asks; during it there is no such time', async () => {
  await using at = await timed()
  const run = await at.tutti.start(
    hub(forksEach([5_000, 7_000, null], 'settled'), (turn) =>
      turn.message.kind === 'request'
        ? turn.ask('?', turn.request === null ? {} : { timeoutMs: turn.request as number })
        : turn.reply(turn.message.kind),
    ),
  )
  await rest()
  const expiry = async () => {
    const [own, all] = [await run.asks(), await at.tutti.asks()].map((asks) => new Map(asks.map(({ id, expiresAt }) => [id, expiresAt])))
    expect(all).toEqual(own)
    return [...(own ?? new Map<string, number | undefined>()).values()].sort((a = 0, b = 0) => a - b)
  }
  expect(await expiry()).toEqual([5_000, 7_000, undefined])
  await at.clock.advance(1_000)
  await run.pause()
  await at.clock.advance(10_000)
  expect(await expiry()).toEqual([undefined, undefined, undefined])
  await run.resume()
  expect(await expiry()).toEqual([15_000, 17_000, undefined])
  await at.clock.advance(4_000)
  expect(await expiry()).toEqual([17_000, undefined])
  await run.cancel()
  expect(await at.tutti.asks()).toEqual([])
})

test('an ask that is opened while its run is paused expires as long after the resume as it may take', async () => {
  await using at = await timed()
  const held = deferred()
  const run = await at.tutti.start(
    solo(async (turn) => {
      if (turn.message.kind === 'expired') return turn.finish(at.clock.now())
      await held.promise
      return turn.ask('?', { timeoutMs: 1_000 })
    }),
  )
  await rest()
  await run.pause()
  held.resolve()
  await at.clock.advance(500)
  expect(await run.asks()).toMatchObject([{ question: '?' }])
  await run.resume()
  expect(await run.asks()).toMatchObject([{ expiresAt: 1_500 }])
  expect(await at.tutti.asks()).toMatchObject([{ expiresAt: 1_500 }])
  await at.clock.advance(1_000)
  expect(await run.output()).toBe(1_500)
})

test('the time of an ask stands still while the run is paused', async () => {
  await using at = await timed()
  const run = await at.tutti.start(
    solo((turn) => (turn.message.kind === 'expired' ? turn.finish('expired') : turn.ask('?', { timeoutMs: 1_000 }))),
  )
  await rest()
  await at.clock.advance(600)
  await run.pause()
  await at.clock.advance(10_000)
  await run.resume()
  await at.clock.advance(399)
  expect(await run.status()).toBe('running')
  await at.clock.advance(1)
  expect(await run.output()).toBe('expired')
})

test('a join that got too little asks a person, who says whether to go on', async () => {
  await using tutti = await opened()
  const join = { policy: 'all', insufficient: 'ask' }
  for (const goesOn of [true, false]) {
    const run = await tutti.start(hub(forksEach([1, 2], join), (turn) => (turn.request === 1 ? turn.fail('broke') : turn.reply(2))))
    await rest()
    const [ask] = await run.asks()
    expect(ask).toMatchObject({ kind: 'join', join: { ok: false, slots: [{ status: 'failed' }, { status: 'arrived', value: 2 }] } })
    expect(await codeOf(run.answer(ask?.id ?? '', 'maybe'))).toBe('ASK_INVALID_ANSWER')
    await run.answer(ask?.id ?? '', goesOn)
    expect(await run.result()).toMatchObject(
      goesOn ? { status: 'succeeded', output: [2] } : { status: 'failed', error: { code: 'JOIN_FAILED' } },
    )
  }
})

/** What needs code of the definition as soon as it is answered. */
const needsCode = {
  'a join that then merges states': () =>
    hub(
      forksEach([1, 2], { policy: 'all', insufficient: 'ask' }),
      (turn) => (turn.request === 1 ? turn.fail('broke') : turn.reply(2, { state: { n: 1 } } as never)),
      { state: () => ({ n: 0 }), merge: { n: (base: number, changed: readonly number[]) => base + changed.length } },
    ),
  'the last step of a graph that makes its output': () =>
    graph('asks')
      .ask('last', { question: () => '?', schema: z.boolean() })
      .output(({ steps }) => [steps.last]),
}

test.each(Object.entries(needsCode))(
  'an answer that can not be decided without the definition is refused where that is missing, with a code and what to do: %s',
  async (_, make) => {
    const store = memoryStore()
    const definition: Definition<unknown, unknown> = make()
    await using owner = await opened({ store })
    await using other = await opened({ store })
    const run = await owner.start(definition)
    await rest()
    const [ask] = await run.asks()
    const elsewhere = await other.run(run.id)
    const refused: unknown = await elsewhere.answer(ask?.id ?? '', true).catch((error: unknown) => error)
    expect(refused).toBeInstanceOf(TuttiError)
    expect(refused).toMatchObject({ code: 'DEFINITION_NOT_FOUND', hint: expect.stringContaining('definitions') })
    expect(await elsewhere.asks()).toHaveLength(1)
    await run.answer(ask?.id ?? '', true)
    expect(await elsewhere.output()).toEqual(definition.name === 'asks' ? [true] : [2])
  },
)

test('an agent with no edge to User cannot ask, and one whose handlers take no answer cannot either', async () => {
  await using tutti = await opened()
  const noAnswer = solo({ maxRejections: 0, act: { request: (turn: SoloTurn) => turn.ask('?') } })
  expect(await (await tutti.start(noAnswer)).result()).toMatchObject({
    status: 'failed',
    error: { code: 'REJECTED', message: expect.stringContaining('answer') },
  })
  expect(await tutti.asks()).toEqual([])
})

test('an answer costs the same however many other asks with a time limit are open', async () => {
  const answered = async (width: number): Promise<number> => {
    await using tutti = await opened({ invariants: false })
    const run = await tutti.start(
      topology({
        name: 'many',
        flows: ['Start -> H -> End', 'H <-> A', 'A -> User'],
        agents: {
          H: (turn) =>
            turn.message.kind === 'join' ? turn.finish(null) : turn.fork(Array.from({ length: width }, () => ({ to: 'A', request: null }))),
          A: (turn) => (turn.message.kind === 'answer' ? turn.reply(null) : turn.ask('?', { timeoutMs: 1_000_000 })),
        },
      }),
    )
    await rest()
    const asks = await run.asks()
    const handed = await handedOut(async () => {
      for (const { id } of asks.slice(0, 10)) await run.answer(id, true)
      await rest()
    })
    expect([asks.length, (await run.asks()).length]).toEqual([width, width - 10])
    return handed
  }
  const few = await answered(20)
  expect(await answered(200)).toBe(few)
})
