import type { Store } from 'tutti'
import { memoryStore } from '../../src/stores/memory.js'

/** A store in memory that outlives the engines on it. */
export function lasting(): Store {
  const store = memoryStore()
  return new Proxy({} as Store, {
    get: (_, key) => {
      const value: unknown = store[key as keyof typeof store]
      if (key === 'close') return async () => {}
      return typeof value === 'function' ? value.bind(store) : value
    },
  })
}
