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

/** A clock of somebody else's. A sleep that was broken off is over: also one that is rejected then, as those of node:timers/promises are. */
export function givenClock(given: Clock): Clock {
  return Object.freeze({
    now: () => given.now(),
    sleep: async (ms: number, signal?: AbortSignal) => {
      try {
        await given.sleep(ms, signal)
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
