import { TuttiError } from '../define/tutti-error.js'
import type { Store } from '../engine/store.js'

/** Where runs are kept: in the memory of this process, or in a file. */
export type StorePlace = { readonly kind: 'memory' } | { readonly kind: 'file'; readonly path: string }

/** What is meant by the text that names a store; nothing is the file where runs are kept when nobody says where. */
export function storePlace(where = './.tutti/tutti.db'): StorePlace {
  if (where === 'memory:') return { kind: 'memory' }
  if (/^[a-z]+:\/\//i.test(where) || where.trim() === '')
    throw new TuttiError('STORE_UNAVAILABLE', `the store '${where.replace(/\/\/[^@]*@/, '//…@')}' is not available in this version`, {
      hint: "give the path of a file, or 'memory:'",
    })
  return { kind: 'file', path: where.replace(/^sqlite:/, '') }
}

/** Opens a store; whoever opened it closes it. Each kind is loaded only when it is needed: who keeps runs in memory needs no driver. */
export async function openStore(place: StorePlace, durability: 'process' | 'power'): Promise<Store> {
  if (place.kind === 'memory') return (await import('./memory.js')).memoryStore()
  return (await import('./sqlite.js')).sqliteStore(place.path, { durability })
}
