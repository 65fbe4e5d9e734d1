import { type Limits, type RunResult } from 'tutti'
import { expect, test } from 'vitest'
import { lasting } from '../graph/lasting.js'
import { codeOf, deferred, forksEach, hub, opened, rest, solo, type WorkerTurn } from './opened.js'

const three = hub(forksEach([1, 2, 3]), (turn) => turn.reply(turn.request))

test('crossing a limit fails the run, blames no branch, and says which limit it was', async () => {
  await using tutti = await opened()
  for (const [limits, code] of [
    [{ maxTurns: 4 }, 'LIMIT_TURNS'],
    [{ maxTurns: 3 }, 'LIMIT_TURNS'],
    [{ maxTurnsPerBranch: 1 }, 'LIMIT_TURNS'],
    [{ maxBranches: 3 }, 'LIMIT_BRANCHES'],
    [{ maxFanOut: 2 }, 'LIMIT_FANOUT'],
  ] as const) {
    const result = await (await tutti.start(three, { limits })).result()
    const [name, value] = Object.entries(limits)[0] ?? []
    expect(result).toMatchObject({ status: 'failed', error: { code, at: {}, message: expect.stringContaining(String(name)) } })
    expect((result as Extract<RunResult, { status: 'failed' }>).error.message).toContain(String(value))
  }
  expect(await tutti.execute(three, { limits: { maxTurns: 5, maxTurnsPerBranch: 2, maxBranches: 4, maxFanOut: 3, maxDepth: 1 } })).toEqual([
    1, 2, 3,
  ])
})

test('of the limits of the definition, the engine and the start, the tightest holds, whichever that is', async () => {
  const places = ['definition', 'open', 'start'] as const
  for (const tight of places) {
    const limits = (place: (typeof places)[number]): { limits: Limits } => ({ limits: { maxTurns: place === tight ? 4 : 50 } })
    await using tutti = await opened(limits('open'))
    const definition = hub(forksEach([1, 2, 3]), (turn) => turn.reply(turn.request), limits('definition'))
    const run = await tutti.start(definition, limits('start'))
    expect(await run.result(), tight).toMatchObject({ error: { code: 'LIMIT_TURNS', message: expect.stringContaining('4') } })
  }
  await using tutti = await opened({ limits: { maxTurns: 4 } })
  expect(await (await tutti.start(three)).result()).toMatchObject({ error: { code: 'LIMIT_TURNS' } })
})

test('a limit that is none is refused when it is given', async () => {
  await using tutti = await opened()
  for (const limits of [
    { maxTurns: 0 },
    { maxTurns: -1 },
    { maxTurns: 1.5 },
    { timeoutMs: Number.NaN },
    { concurrency: 0 },
    { maxTruns: 3 },
    { maxDepth: '3' },
  ])
    expect(await codeOf(tutti.start(three, { limits: limits as Limits })), JSON.stringify(limits)).toBe('INVALID_INPUT')
  expect((await tutti.runs()).runs).toEqual([])
})

test('agents that play ping-pong come to an end', async () => {
  await using tutti = await opened()
  const definition = hub(
    (turn) => turn.invoke('W', 1),
    (turn) => turn.invoke('H', 1),
  )
  const result = await (await tutti.start(definition)).result()
  expect(result).toMatchObject({ status: 'failed', error: { code: 'LIMIT_TURNS', message: expect.stringContaining('1000') } })
})

/** How many workers are busy at once, at most. */
function crowd(width: number, worker: Readonly<Record<string, unknown>> = {}, rest: Readonly<Record<string, unknown>> = {}) {
  const gates: (() => void)[] = []
  const busy = { now: 0, most: 0 }
  const definition = hub(
    forksEach(Array.from({ length: width }, (_, at) => at)),
    {
      ...worker,
      act: async (turn: WorkerTurn) => {
        busy.most = Math.max(busy.most, ++busy.now)
        await new Promise<void>((resolve) => gates.push(resolve))
        busy.now--
        return turn.reply(turn.request)
      },
    },
    rest,
  )
  const drain = async (): Promise<void> => {
    for (await settle(); gates.length > 0; await settle()) gates.shift()?.()
  }
  return { busy, definition, drain }
}
const settle = (): Promise<void> => rest(15)

test('the concurrency of a run delays its turns, in the order in which they came', async () => {
  await using tutti = await opened()
  const { busy, definition, drain } = crowd(7, {}, { limits: { concurrency: 3 } })
  const run = await tutti.start(definition)
  await drain()
  expect(await run.output()).toEqual([0, 1, 2, 3, 4, 5, 6])
  expect(busy.most).toBe(3)
})

test('the concurrency of a process holds for all runs in it together', async () => {
  await using tutti = await opened({ concurrency: 2 })
  const { busy, definition, drain } = crowd(3)
  const runs = await Promise.all([tutti.start(definition), tutti.start(definition), tutti.start(definition)])
  await drain()
  for (const run of runs) expect(await run.output()).toEqual([0, 1, 2])
  expect(busy.most).toBe(2)
})

test('the concurrency of an agent holds for all its turns in all runs, and delays nobody else', async () => {
  await using tutti = await opened()
  const { busy, definition, drain } = crowd(3, { concurrency: 2 })
  const runs = await Promise.all([tutti.start(definition), tutti.start(definition)])
  await rest()
  expect(await tutti.execute(solo((turn) => turn.finish('free')))).toBe('free')
  await drain()
  for (const run of runs) expect(await run.output()).toEqual([0, 1, 2])
  expect(busy.most).toBe(2)
})

test('the concurrency of an agent and of an engine count in each of several processes for itself', async () => {
  for (const [agent, options] of [
    [{ concurrency: 2 }, {}],
    [{}, { concurrency: 2 }],
  ]) {
    const store = lasting()
    await using one = await opened({ store, ...options })
    await using other = await opened({ store, ...options })
    const { busy, definition, drain } = crowd(3, agent)
    const runs = await Promise.all([one.start(definition), other.start(definition)])
    await drain()
    for (const run of runs) expect(await run.output()).toEqual([0, 1, 2])
    expect(busy.most).toBe(4)
  }
})

test('a run that waits for a person, or sleeps in backoff, takes no place of others', async () => {
  await using tutti = await opened({ concurrency: 1 })
  const held = deferred()
  const asks = await tutti.start(solo((turn) => (turn.message.kind === 'answer' ? turn.finish() : turn.ask('?'))))
  await rest()
  expect(await tutti.execute(solo((turn) => turn.finish('free')))).toBe('free')
  const [ask] = await asks.asks()
  await asks.answer(ask?.id ?? '', 1)
  await asks.result()
  held.resolve()
})

test('nothing that was limited is lost: hundreds of children, two at a time', async () => {
  await using tutti = await opened({ concurrency: 2 })
  const definition = hub(forksEach(Array.from({ length: 300 }, (_, at) => at)), (turn) => turn.reply(turn.request))
  expect(await tutti.execute(definition)).toHaveLength(300)
})
