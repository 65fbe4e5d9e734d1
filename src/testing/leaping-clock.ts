import { systemClock } from '../engine/clock.js'
import type { Clock } from '../engine/tutti.js'

/** The time of this machine, from which it goes ahead when it is told to. */
export class LeapingClock implements Clock {
  #aheadMs = 0
  readonly #naps = new Set<AbortController>()

  now(): number {
    return systemClock.now() + this.#aheadMs
  }

  async sleep(ms: number, signal?: AbortSignal): Promise<void> {
    const due = this.now() + ms
    // Whoever is woken by a leap looks how much there is left.
    while (signal?.aborted !== true && this.now() < due) await this.#nap(due - this.now(), signal)
  }

  /** Goes to this time, if it has not come yet. */
  leapTo(at: number): void {
    this.#aheadMs += Math.max(0, at - this.now())
    for (const nap of this.#naps) nap.abort()
  }

  async #nap(ms: number, signal?: AbortSignal): Promise<void> {
    const nap = new AbortController()
    const end = (): void => nap.abort()
    this.#naps.add(nap)
    signal?.addEventListener('abort', end, { once: true })
    await systemClock.sleep(ms, nap.signal)
    signal?.removeEventListener('abort', end)
    this.#naps.delete(nap)
  }
}
