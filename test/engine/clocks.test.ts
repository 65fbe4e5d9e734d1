import type { Clock } from 'tutti'
import { expect, test, vi } from 'vitest'
import { systemClock } from '../../src/engine/clock.js'
import { memoryStore } from '../../src/stores/memory.js'
import { codeOf, opened, rest, solo } from './opened.js'

/** A clock that stands at a time. */
const standing = (at: number): Clock => ({
  now: () => at,
  sleep: (_, signal) => new Promise((resolve) => signal?.addEventListener('abort', () => resolve(), { once: true })),
})

test('what is given back as due now is so also after the clock was set back', async () => {
  const store = memoryStore()
  const hanging = solo((turn) => new Promise((_, reject) => turn.signal.addEventListener('abort', () => reject(turn.signal.reason))))
  const first = await opened({ store, clock: standing(3_600_000), definitions: [hanging] })
  await first.start(hanging, { id: 'run' })
  await rest()
  await first.close()
  const finishing = solo((turn) => turn.finish('done'))
  await using second = await opened({ store, clock: standing(0), definitions: [finishing] })
  expect(await (await second.run('run')).output()).toBe('done')
})

test('a run that waits for an agent goes on when it is resumed after the clock was set back', async () => {
  const store = memoryStore()
  const definition = solo((turn) => turn.finish('done'))
  const first = await opened({ store, clock: standing(3_600_000), definitions: [definition] })
  await first.agents.pause('A')
  await first.start(definition, { id: 'run' })
  await rest()
  await first.close()
  const steering = await opened({ store, clock: standing(7_200_000) })
  await steering.agents.resume('A')
  await steering.close()
  await using second = await opened({ store, clock: standing(0), definitions: [definition] })
  expect(await codeOf(second.run('other'))).toBe('RUN_NOT_FOUND')
  expect(await (await second.run('run')).output()).toBe('done')
})

test('whoever sleeps long finds out within a minute that the machine was asleep, and sleeps no longer because its clock was set back', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'Date'] })
  try {
    const hour = 3_600_000
    const woken: string[] = []
    const sleeps = async (name: string): Promise<void> => {
      await systemClock.sleep(3 * hour)
      woken.push(name)
    }
    void sleeps('asleep')
    vi.setSystemTime(Date.now() + 4 * hour)
    await vi.advanceTimersByTimeAsync(60_000)
    expect(woken).toEqual(['asleep'])
    void sleeps('set back')
    vi.setSystemTime(Date.now() - 2 * hour)
    await vi.advanceTimersByTimeAsync(3 * hour - 1)
    expect(woken).toEqual(['asleep'])
    await vi.advanceTimersByTimeAsync(1)
    expect(woken).toEqual(['asleep', 'set back'])
  } finally {
    vi.useRealTimers()
  }
})

test('a worker that may be silent for years does not beat all the time', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  try {
    const store = memoryStore()
    let beats = 0
    const beat: typeof store.beat = (worker) => (beats++, store.beat(worker))
    await using _ = await opened({ store: { ...store, beat }, workerTtlMs: 2 ** 40 })
    await vi.advanceTimersByTimeAsync(1_000)
    expect(beats).toBe(1)
  } finally {
    vi.useRealTimers()
  }
})
