import { noMsOrMore } from '../define/option-check.js'
import type { Clock } from '../engine/tutti.js'

interface Sleeper {
  readonly due: number
  readonly wake: () => void
}

/** After so many macrotasks in which nobody looked at the clock, what was woken has come to rest: an engine looks whenever it records something. */
const quietTasks = 20
/** Time goes on after so many, for whoever looks at the clock until it does. */
const busyTasks = 100_000

/** A clock that stands still until it is told: `advance` wakes every sleeper on the way, in order, and lets all that follows happen. */
export function virtualClock(start = 0): Clock & { advance(ms: number): Promise<void> } {
  if (!Number.isFinite(start)) throw new TypeError(`virtualClock takes the time that it starts at, in milliseconds, not ${String(start)}`)
  const sleepers = new Set<Sleeper>()
  let now = start
  let looks = 0

  const look = (): number => {
    looks++
    return now
  }

  const sleep = (ms: number, signal?: AbortSignal): Promise<void> =>
    new Promise((resolve) => {
      if (typeof ms !== 'number' || Number.isNaN(ms)) throw new TypeError(`sleep takes a number of milliseconds, not ${String(ms)}`)
      looks++
      if (ms <= 0 || signal?.aborted) return resolve()
      const wake = (): void => {
        sleepers.delete(sleeper)
        signal?.removeEventListener('abort', wake)
        resolve()
      }
      const sleeper: Sleeper = { due: now + ms, wake }
      sleepers.add(sleeper)
      signal?.addEventListener('abort', wake, { once: true })
    })

  const rest = async (): Promise<void> => {
    for (let tasks = 0, quiet = 0, seen = looks; quiet < quietTasks && tasks < busyTasks; tasks++, quiet++) {
      await new Promise((resolve) => setImmediate(resolve))
      if (looks === seen) continue
      seen = looks
      quiet = 0
    }
  }

  const goOn = async (ms: number): Promise<void> => {
    const target = now + ms
    await rest()
    for (;;) {
      const due = [...sleepers].filter((sleeper) => sleeper.due <= target).sort((a, b) => a.due - b.due)
      const [next] = due
      if (next === undefined) break
      now = Math.max(now, next.due)
      for (const sleeper of due) {
        if (sleeper.due > now) break
        sleeper.wake()
      }
      await rest()
    }
    now = target
  }

  // One after the other: two at once would each end where it alone comes to, and the clock would go back.
  let last = Promise.resolve()
  const advance = async (ms: number): Promise<void> => {
    if (!noMsOrMore.is(ms)) throw new TypeError(`advance takes ${noMsOrMore.words}, not ${String(ms)}`)
    last = last.then(() => goOn(ms))
    return last
  }

  return Object.freeze({ now: look, sleep, advance })
}
