import type { Delta } from '../inspect/events.js'

/** What somebody waits for: that anything happens in a run, or only that it ends, or that it is no longer known here how it goes on. */
export type Awaited = 'anything' | 'end'

export interface Waiting {
  readonly wait: Promise<void>
  readonly stop: () => void
}

interface Waiter {
  readonly for: Awaited
  readonly wake: () => void
}

/** Who waits for what happens in the runs of a store, and who listens to what is only said. */
export class Listeners {
  readonly #waiters = new Map<string, Set<Waiter>>()
  readonly #takers = new Map<string, Set<(delta: Delta) => void>>()
  #count = 0
  #alive: NodeJS.Timeout | null = null

  /** Resolves when it may have happened. */
  waitFor(runId: string, what: Awaited): Waiting {
    const waiters = this.#waiters.get(runId) ?? new Set<Waiter>()
    this.#waiters.set(runId, waiters)
    let wake = (): void => {}
    const wait = new Promise<void>((resolve) => {
      wake = resolve
    })
    const waiter = { for: what, wake }
    waiters.add(waiter)
    if (this.#count++ === 0) this.#staysAlive(true)
    return {
      wait,
      stop: () => {
        if (!waiters.delete(waiter)) return
        if (--this.#count === 0) this.#staysAlive(false)
        if (waiters.size === 0) this.#waiters.delete(runId)
      },
    }
  }

  happened(runId: string, isEnd: boolean): void {
    const waiters = this.#waiters.get(runId)
    if (waiters === undefined) return
    for (const waiter of waiters) if (isEnd || waiter.for === 'anything') waiter.wake()
  }

  /** Something may have happened in any run. */
  wakeAll(): void {
    for (const waiters of this.#waiters.values()) for (const { wake } of waiters) wake()
  }

  /** Whoever waits for a run that another process executes would else find its own process ended: watching a store keeps none alive. */
  #staysAlive(stays: boolean): void {
    this.#alive ??= setInterval(() => {}, 60_000)
    if (stays) this.#alive.ref()
    else this.#alive.unref()
  }

  onDelta(runId: string, take: (delta: Delta) => void): () => void {
    const takers = this.#takers.get(runId) ?? new Set<(delta: Delta) => void>()
    this.#takers.set(runId, takers)
    takers.add(take)
    return () => {
      takers.delete(take)
      if (takers.size === 0) this.#takers.delete(runId)
    }
  }

  hasTakers(runId: string): boolean {
    return this.#takers.has(runId)
  }

  tell(runId: string, delta: Delta): void {
    Object.freeze(delta)
    for (const take of this.#takers.get(runId) ?? []) take(delta)
  }

  /** All are woken, and nothing keeps the process alive any more. */
  close(): void {
    if (this.#alive !== null) clearInterval(this.#alive)
    this.wakeAll()
  }
}
