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
