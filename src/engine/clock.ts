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
