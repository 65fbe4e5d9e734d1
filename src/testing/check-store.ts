import type { Store } from '../engine/store.js'
import { appendChecks } from './check-store-appends.js'
import { handleChecks } from './check-store-handles.js'
import { keepingChecks } from './check-store-keeping.js'
import { ownerChecks } from './check-store-owners.js'
import { readingChecks } from './check-store-reading.js'
import { recordChecks } from './check-store-records.js'

/** Where the tests go: `describe` and `test` of vitest, of `node:test`, or of anything that has both. */
export interface CheckStoreOptions {
  readonly describe?: (name: string, body: () => void) => unknown
  readonly test?: (name: string, body: () => Promise<void>) => unknown
  /** Opens another handle on the data of the store that `make` made last. Without it, what needs two handles is not checked. */
  readonly again?: () => Promise<Store>
}

/**
 * Registers a test for everything that a store promises. `make` gives a store with nothing in it.
 *
 * The test runner is handed in, or found among the globals, and never imported: so registering stays synchronous, as runners want it,
 * and what else is in this module can be used where no runner is installed. The checks throw, and need no runner's `expect`.
 *
 * ```ts
 * import { describe, test } from 'vitest'
 * checkStore('mine', () => openMine(':memory:'), { describe, test })
 * ```
 */
export function checkStore(name: string, make: () => Promise<Store>, options: CheckStoreOptions = {}): void {
  const { describe, test } = { ...globals(), ...options }
  if (describe === undefined || test === undefined) {
    throw new Error("checkStore found no test runner: hand it in, as in checkStore(name, make, { describe, test }) with those of 'vitest'")
  }
  const { again } = options
  const single = [...appendChecks, ...readingChecks, ...recordChecks, ...ownerChecks, ...keepingChecks]
  describe(`the store ${name}`, () => {
    for (const { promise, holds } of again === undefined ? single : [...single, ...handleChecks]) {
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

function globals(): CheckStoreOptions {
  const { describe, test } = globalThis as CheckStoreOptions
  return { ...(describe !== undefined && { describe }), ...(test !== undefined && { test }) }
}
