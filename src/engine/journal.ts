import type { Event } from '../kernel/event.js'
import { decodeEvents, JournalDamaged } from './codec.js'
import type { Loaded, Store } from './store.js'

/** Part of a journal; `isLast`: nothing will ever follow it. `order` tells its run from another that has had the same id. */
export interface JournalPart {
  readonly events: readonly Event[]
  readonly isLast: boolean
  readonly order: number
}

/** All that has happened in a run; nothing, if there is none. */
export async function journalOf(store: Store, runId: string): Promise<Event[]> {
  const loaded = await store.load(runId)
  return (loaded && (await eventsOf(store, loaded, 0))) ?? []
}

/** What follows a place in the journal, at most so many rows. Null: there is no such run. */
export async function journalAfter(store: Store, runId: string, after: number, limit: number): Promise<JournalPart | null> {
  const loaded = await store.load(runId, { after, limit })
  if (loaded === null) return null
  const events = await eventsOf(store, loaded, after)
  if (events === null) return null
  const { endedAt, head, order } = loaded.row
  return { events, isLast: endedAt !== null && (events.at(-1)?.seq ?? after) >= head, order }
}

/** The events that were loaded; null: the run was deleted before its large values could be read. */
export async function eventsOf(store: Store, { row, rows }: Loaded, after: number): Promise<Event[] | null> {
  try {
    return await decodeEvents(rows, after, (hash) => store.blob(hash))
  } catch (error) {
    const now = await store.load(row.id, { after: Number.MAX_SAFE_INTEGER })
    if (now?.row.order !== row.order) return null
    throw error instanceof JournalDamaged ? error.of(row.id) : error
  }
}
