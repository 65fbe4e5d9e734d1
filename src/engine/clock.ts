import type { Clock } from './tutti.js'

/** Node's timers overflow beyond this and would fire at once. */
const longestMs = 2 ** 31 - 1

/** The time of this machine. */
export const systemClock: Clock = Object.freeze({
  now: () => Date.now(),
  sleep: async (ms: number, signal?: AbortSignal) => {
    for (let left = ms; left > 0 && !signal?.aborted; left -= longestMs) await nap(Math.min(left, longestMs), signal)
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
