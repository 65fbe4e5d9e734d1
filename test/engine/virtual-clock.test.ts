import { getEventListeners } from 'node:events'
import { virtualClock } from 'tutti/testing'
import { expect, test } from 'vitest'

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
