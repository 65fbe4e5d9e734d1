import type { Clock } from './tutti.js'

/** How often whoever sleeps looks at the clock: the timers of a machine that was asleep, or whose clock was set, know nothing of it. */
const lookMs = 60_000

/** The time of this machine. */
export const systemClock: Clock = Object.freeze({
  now: () => Date.now(),
  sleep: async (ms: number, signal?: AbortSignal) => {
    for (let left = ms; left > 0 && !signal?.aborted; ) {
      const [napMs, from] = [Math.min(left, lookMs), Date.now()]
      await nap(napMs, signal)
      left -= Math.max(napMs, Date.now() - from)
    }
  },
})

/** The longest that a timer can wait: one that is asked for more fires at once. */
const timerMs = 2 ** 31 - 1

/**
 * A clock of somebody else's. A sleep that was broken off is over: also one that is rejected then, as those of node:timers/promises are. It is asked
 * for no more at a time than a timer can wait, since that is what it is mostly made of; one that leaps may have come further meanwhile.
 */
export function givenClock(given: Clock): Clock {
  return Object.freeze({
    now: () => given.now(),
    sleep: async (ms: number, signal?: AbortSignal) => {
      try {
        let left = ms
        while (left > timerMs) {
          const from = given.now()
          await given.sleep(timerMs, signal)
          left -= Math.max(timerMs, given.now() - from)
          if (left <= 0 || signal?.aborted) return
        }
        await given.sleep(left, signal)
      } catch (error) {
        if (!signal?.aborted) throw error
      }
    },
  })
}

function nap(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const end = (): void => {
      clearTimeout(timer)
      signal?.removeEventListener('abort', end)
      resolve()
    }
    const timer = setTimeout(end, ms)
    signal?.addEventListener('abort', end, { once: true })
  })
}
