import { decodeEvents } from '../engine/codec.js'
import type { Store } from '../engine/store.js'
import type { Event } from '../kernel/event.js'

/** The events of a run after a sequence number, as far as they are written. */
export async function journalOf(store: Store, id: string, after = 0): Promise<Event[]> {
  const loaded = await store.load(id, { after })
  return loaded === null ? [] : decodeEvents(loaded.rows, after, (hash) => store.blob(hash))
}
