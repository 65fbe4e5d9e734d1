import { setTimeout as delay } from 'node:timers/promises'
import { failureOf, isBusy, locked } from './sqlite-failure.js'

/** A process that was frozen past the time still gets this many attempts. */
const attemptsMin = 20

/** Does something with the file at once or, while somebody else has it locked, again and again. */
export async function patiently<T>(work: () => T, path: string, forMs: number, since: number = performance.now()): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return work()
    } catch (error) {
      if (!isBusy(error)) throw failureOf(error, path)
      const waitedMs = performance.now() - since
      if (waitedMs >= forMs && attempt >= attemptsMin) throw locked(error, path, waitedMs)
    }
    // With jitter, so that those who wait do not always meet again.
    await delay(1 + Math.random() * 4)
  }
}
