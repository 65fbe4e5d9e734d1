import { statSync } from 'node:fs'
import type { Store } from '../engine/store.js'
import { openStore, storePlace } from '../stores/open-store.js'
import { unreachable } from '../stores/sqlite-failure.js'
import { notFound, wrongUse } from './cli-error.js'

/** Opens a store for those who start runs: it is made if there is none. */
export function openOrMake(given: string | undefined): Promise<Store> {
  return openStore(storePlace(given), 'process')
}

/** Opens a store for those who look and steer: null if there is none where runs are kept by default, so that looking makes no file. */
export async function openIfThere(given: string | undefined): Promise<Store | null> {
  const place = storePlace(given)
  if (place.kind === 'memory') throw wrongUse("the store 'memory:' ends with its process: there is nothing to look at")
  if (isThere(place.path)) return openStore(place, 'process')
  if (given === undefined) return null
  throw notFound(`there is no store at ${place.path}`)
}

/** Whether there is a store; throws where nobody can say. */
export function isThere(path: string): boolean {
  try {
    statSync(path)
    return true
  } catch (error) {
    if ((error as { readonly code?: unknown }).code === 'ENOENT') return false
    throw unreachable(error, path)
  }
}

/** Opens a store that must be there. */
export async function openExisting(given: string | undefined): Promise<Store> {
  const store = await openIfThere(given)
  if (store === null) throw notFound('there are no runs here yet', 'start one with tutti run or tutti demo, or name a store with --store')
  return store
}
