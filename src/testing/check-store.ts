import type { Store } from '../engine/store.js'
import { appendChecks } from './check-store-appends.js'
import { handleChecks } from './check-store-handles.js'
import { keepingChecks } from './check-store-keeping.js'
import { ownerChecks } from './check-store-owners.js'
import { readingChecks } from './check-store-reading.js'
import { recordChecks } from './check-store-records.js'
import type { StoreCheck, TwoHandles } from './store-check.js'
import { runnerAround, type TestRunner } from './test-runner.js'

/** Where the tests go, if it is not the runner that calls: `describe` and `test` of anything that has both. */
export interface CheckStoreOptions extends TestRunner {
  /** Opens another handle on the data of the store that `make` made last. Without it, what needs two handles is not checked. */
  readonly again?: () => Promise<Store>
}

/**
 * Registers a test for everything that a store promises. `make` gives a store with nothing in it.
 *
 * They go to the test runner that calls: vitest, `node:test`, or whatever has `describe` and `test` among the globals; any other is handed
 * in. The checks throw, and need no runner's `expect`.
 *
 * ```ts
 * checkStore('mine', () => openMine(':memory:'))
 * ```
 */
export function checkStore(name: string, make: () => Promise<Store>, options: CheckStoreOptions = {}): void {
  const { describe, test } = { ...runnerAround(), ...options }
  if (describe === undefined || test === undefined) {
    throw new Error("checkStore found no test runner: hand it in, as in checkStore(name, make, { describe, test }) with those of 'vitest'")
  }
  const { again } = options
  const checks: readonly StoreCheck<TwoHandles>[] = [
    ...appendChecks,
    ...readingChecks,
    ...recordChecks,
    ...ownerChecks,
    ...keepingChecks,
    ...(again === undefined ? [] : handleChecks),
  ]
  describe(`the store ${name}`, () => {
    for (const { promise, holds } of checks) {
      test(promise, async () => {
        const opened: Store[] = []
        const open = async (opening: () => Promise<Store>): Promise<Store> => {
          const store = await opening()
          opened.push(store)
          return store
        }
        try {
          await holds({ store: await open(make), again: () => open(again ?? make) })
        } finally {
          for (const store of opened.toReversed()) await store.close()
        }
      })
    }
  })
}
