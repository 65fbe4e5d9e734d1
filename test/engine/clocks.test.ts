import type { Clock } from 'tutti'
import { virtualClock } from 'tutti/testing'
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

test('a clock that is made of timers, which can not wait for a month, sleeps for a month, and no step runs out of time by it', async () => {
  const month = 30 * 86_400_000
  let asked = 0
  const timers: Clock = {
    now: () => Date.now(),
    sleep: (ms, signal) =>
      new Promise((resolve) => {
        asked++
        // As setTimeout does, without its warning.
        const timer = setTimeout(resolve, ms > 2 ** 31 - 1 ? 1 : ms)
        signal?.addEventListener('abort', () => resolve(clearTimeout(timer)), { once: true })
      }),
  }
  await using tutti = await opened({ clock: timers })
  const sleeping = solo(async (turn) => (await turn.sleep(month), turn.finish('awake')), { name: 'sleeping' })
  const run = await tutti.start(sleeping)
  const step = solo(
    async (turn) => {
      const work = async (): Promise<string> => {
        await new Promise((resolve) => setTimeout(resolve, 50))
        return 'done'
      }
      return turn.finish(await turn.step('work', work, { timeoutMs: month }))
    },
    { name: 'slow' },
  )
  expect(await tutti.execute(step)).toBe('done')
  expect(await run.status()).toBe('running')
  expect(asked).toBeLessThan(20)
})

test("a clock of one's own that is told to go on wakes who has slept for a year, and not before", async () => {
  const clock = virtualClock()
  await using tutti = await opened({ clock })
  const year = 365 * 86_400_000
  const run = await tutti.start(solo(async (turn) => (await turn.sleep(year), turn.finish(turn.now()))))
  await clock.advance(year - 1)
  expect(await run.status()).toBe('running')
  await clock.advance(1)
  expect(await run.output()).toBe(year)
})

test("a clock of one's own that leaps over a month at once wakes who has slept for that long", async () => {
  let now = 0
  const sleepers = new Set<{ readonly due: number; wake(): void }>()
  const leaping: Clock = {
    now: () => now,
    sleep: (ms, signal) =>
      new Promise((resolve) => {
        const sleeper = { due: now + ms, wake: () => resolve(void sleepers.delete(sleeper)) }
        sleepers.add(sleeper)
        signal?.addEventListener('abort', sleeper.wake, { once: true })
      }),
  }
  const month = 30 * 86_400_000
  await using tutti = await opened({ clock: leaping })
  const run = await tutti.start(solo(async (turn) => (await turn.sleep(month), turn.finish('awake'))))
  await vi.waitFor(() => expect(sleepers.size).toBeGreaterThan(0))
  await new Promise((resolve) => setTimeout(resolve, 50))
  now += month
  for (const sleeper of sleepers) if (sleeper.due <= now) sleeper.wake()
  expect(await run.output()).toBe('awake')
})
