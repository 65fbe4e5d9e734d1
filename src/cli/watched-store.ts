import type { Store } from '../engine/store.js'

/** A store that says when something was written to it, by this process or by another. */
export class WatchedStore {
  readonly store: Store
  readonly #unwatch: () => void
  #version = 0
  #wake: () => void = () => {}

  constructor(store: Store) {
    this.store = Object.freeze<Store>({
      ...store,
      commit: async (batch) => {
        const verdicts = await store.commit(batch)
        this.moved()
        return verdicts
      },
    })
    this.#unwatch = store.onMoved(() => this.moved())
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
