import type { Clock } from '../../engine/tutti.js'

interface Sleeper {
  readonly due: number
  readonly wake: () => void
  /** Whose body sleeps; null of a deadline, which somebody has who is at work, or of the engine itself. */
  readonly of: string | null
}

/** A clock that moves when the scheduler says so, to the earliest time that anybody waits for. */
export class VirtualTime {
  #now: number
  #sleepers: Sleeper[] = []

  constructor(start: number) {
    this.#now = start
  }

  get now(): number {
    return this.#now
  }

  /** When somebody is to be woken next. */
  get due(): number | null {
    let least: number | null = null
    for (const { due } of this.#sleepers) if (least === null || due < least) least = due
    return least
  }

  /** How many things of this lane sleep. */
  asleepIn(lane: string): number {
    return this.#sleepers.filter(({ of }) => of === lane).length
  }

  /** The clock as one process sees it: once that is dead, nobody of it wakes. `of`: the lane that sleeps by it. */
  clockOf(alive: () => boolean, of: string | null): Clock {
    return {
      now: () => this.#now,
      sleep: (ms, signal) =>
        new Promise((resolve) => {
          if (ms <= 0 || signal?.aborted) return resolve()
          const sleeper: Sleeper = { due: this.#now + ms, wake: () => (alive() ? resolve() : undefined), of }
          this.#sleepers.push(sleeper)
          signal?.addEventListener('abort', () => this.#forget(sleeper, resolve), { once: true })
        }),
    }
  }

  #forget(sleeper: Sleeper, resolve: () => void): void {
    const at = this.#sleepers.indexOf(sleeper)
    if (at >= 0) this.#sleepers.splice(at, 1)
    resolve()
  }

  /** Goes to the earliest time that somebody waits for, and wakes all who wait for it, in the order in which they fell asleep. */
  advance(): void {
    const { due } = this
    if (due === null) return
    this.#now = due
    const woken = this.#sleepers.filter((sleeper) => sleeper.due <= due)
    this.#sleepers = this.#sleepers.filter((sleeper) => sleeper.due > due)
    for (const { wake } of woken) wake()
  }

  /** A process has died: nobody of it waits any more. */
  clear(): void {
    this.#sleepers = []
  }
}
