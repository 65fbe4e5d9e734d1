import { getEventListeners } from 'node:events'
import { topology } from 'tutti'
import { virtualClock } from 'tutti/testing'
import { expect, test } from 'vitest'
import { timed } from './opened.js'

test('whoever has slept leaves nothing with the signal it slept under', async () => {
  const clock = virtualClock()
  const stop = new AbortController()
  const slept: string[] = []
  const sleep = async (ms: number): Promise<void> => {
    await clock.sleep(ms, stop.signal)
    slept.push(`${ms} at ${clock.now()}`)
  }
  const all = [sleep(20), sleep(10), sleep(99)]
  await clock.advance(20)
  expect(getEventListeners(stop.signal, 'abort')).toHaveLength(1)
  stop.abort()
  await Promise.all(all)
  expect(getEventListeners(stop.signal, 'abort')).toHaveLength(0)
  expect(slept).toEqual(['10 at 10', '20 at 20', '99 at 20'])
})

test('time goes only forwards, and in numbers', async () => {
  const clock = virtualClock(5)
  for (const ms of [-1, Number.NaN, Number.POSITIVE_INFINITY, '1'] as number[]) await expect(clock.advance(ms)).rejects.toThrow(TypeError)
  expect(clock.now()).toBe(5)
  expect(() => virtualClock('now' as never)).toThrow(TypeError)
})

test('of those who advance it at once one goes after the other, and it never goes back', async () => {
  const clock = virtualClock()
  const seen: string[] = []
  const sleep = async (ms: number): Promise<void> => {
    await clock.sleep(ms)
    seen.push(`${ms} at ${clock.now()}`)
  }
  void sleep(15)
  void sleep(5).then(() => clock.advance(100))
  await Promise.all([clock.advance(10), clock.advance(10)])
  expect(clock.now()).toBe(20)
  expect(seen).toEqual(['5 at 5', '15 at 15'])
  await clock.advance(0)
  expect(clock.now()).toBe(120)
})

test('nobody falls asleep for what is no time', async () => {
  const clock = virtualClock()
  for (const ms of [Number.NaN, undefined, '5'] as number[]) await expect(clock.sleep(ms)).rejects.toThrow(TypeError)
})

test.each([
  ['many steps, one after the other', { width: 1, steps: 200, rounds: 1 }],
  ['many turns, one after the other', { width: 1, steps: 1, rounds: 100 }],
  ['many branches with steps', { width: 50, steps: 10, rounds: 2 }],
])('time goes on when all that takes none is done: %s are there before a join runs out of it', async (_, { width, steps, rounds }) => {
  await using stage = await timed({ invariants: false })
  const { tutti, clock } = stage
  const team = topology({
    name: 'team',
    flows: ['Start -> H -> End', 'H <-> W', 'W <-> V'],
    state: () => ({ round: 1 }),
    merge: { round: 'mine' },
    agents: {
      H: (turn) => {
        if (turn.message.kind === 'join') return turn.finish(turn.message.join.values.length)
        const join = { policy: 'all', timeoutMs: 100, insufficient: 'resume' } as const
        const calls = Array.from({ length: width }, () => 'W' as const)
        return turn.fork(calls, { join })
      },
      W: async (turn) => {
        for (let step = 0; step < steps; step++) await turn.step('work', () => step)
        const { round } = turn.state
        return round === rounds ? turn.reply('done') : turn.invoke('V', null, { state: { round: round + 1 } })
      },
      V: (turn) => turn.invoke('W'),
    },
  })
  const run = await tutti.start(team)
  await clock.advance(1_000)
  expect(await run.output()).toBe(width)
})

test('time goes on all the same for whoever looks at the clock until it does', async () => {
  const clock = virtualClock()
  const seen: number[] = []
  const watching = (async () => {
    while (clock.now() < 10) await new Promise((resolve) => setImmediate(resolve))
    seen.push(clock.now())
  })()
  await clock.advance(10)
  await watching
  expect(seen).toEqual([10])
})
