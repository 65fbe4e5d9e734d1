import { decodeEvents } from '../engine/codec.js'
import { eventView } from '../engine/run-view.js'
import type { Loaded, RunRow, Store } from '../engine/store.js'
import type { JournalEvent } from '../inspect/events.js'
import type { Event } from '../kernel/event.js'

/** The events of a run after a sequence number, as far as they are written. */
export async function journalOf(store: Store, id: string, after = 0): Promise<Event[]> {
  const loaded = await store.load(id, { after })
  return loaded === null ? [] : eventsOf(store, loaded, after)
}

/** The events of what was loaded. */
export function eventsOf(store: Store, { rows }: Loaded, after: number): Promise<Event[]> {
  return decodeEvents(rows, after, (hash) => store.blob(hash))
}

/** Events as the public sees them. */
export function publicEvents(events: readonly Event[], { id, tags }: RunRow): readonly JournalEvent[] {
  return events.map((event) => eventView(event, { runId: id, tags }))
}
