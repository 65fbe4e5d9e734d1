import type { Claimed, Store } from '../engine/store.js'

const nothing: Claimed = Object.freeze({ rows: Object.freeze([]), nextWake: null })

/**
 * A store that says when something was written to it, by this process or by another. Of the runs that nobody owns it gives only the one that a
 * command is about and those below it: a command ends soon, and what it has begun of others would be cut off.
 */
export class WatchedStore {
  readonly store: Store
  readonly #unwatch: () => void
  #version = 0
  #about: string | null = null
  #wake: () => void = () => {}

  constructor(store: Store) {
    this.store = Object.freeze<Store>({
      ...store,
      commit: async (batch) => {
        const verdicts = await store.commit(batch)
        this.moved()
        return verdicts
      },
      claim: async (wanted) => (this.#about === null ? nothing : store.claim({ ...wanted, only: this.#about })),
    })
    this.#unwatch = store.onMoved(() => this.moved())
  }

  /** From now on the run that the command is about may be taken over. */
  about(run: string): void {
    this.#about = run
  }

  get version(): number {
    return this.#version
  }

  /** Resolves when the version is another than this one. One waits at a time. */
  async movedSince(version: number): Promise<void> {
    // Watching a store keeps no process alive; whoever waits for what another process writes must be.
    const alive = setInterval(() => {}, 60_000)
    while (this.#version === version)
      await new Promise<void>((resolve) => {
        this.#wake = resolve
      })
    clearInterval(alive)
  }

  /** Lets whoever waits look again. */
  moved(): void {
    this.#version++
    this.#wake()
  }

  async close(): Promise<void> {
    this.#unwatch()
    await this.store.close()
  }
}
