import type { RunRow, Store } from '../engine/store.js'
import type { Ask } from '../inspect/ask.js'
import type { Event } from '../kernel/event.js'
import { journalOf } from './journal.js'

/** What a run was given from outside: its input, and what people answered. */
export interface Recorded {
  readonly input?: unknown
  /** Asks have the same ids in every order: they derive from their branches. */
  readonly answers: (ask: Ask) => unknown
}

/** Reads from the journals of a run and its child runs what they were given. */
export async function recordedOf(store: Store, { id }: RunRow): Promise<Recorded> {
  const events = await journalOf(store, id)
  const answers = answersOf(events, '')
  for (const child of await store.list({ prefix: `${id}:`, limit: Number.POSITIVE_INFINITY }))
    for (const [ask, value] of answersOf(await journalOf(store, child.id), child.id.slice(id.length))) answers.set(ask, value)
  const started = events.find((event) => event.type === 'run.started')
  return {
    ...(started?.input !== undefined && { input: started.input }),
    answers: ({ runId, id: ask }) => answers.get(`${runId.replace(/^[^:]*/, '')}/${ask}`),
  }
}

function answersOf(events: readonly Event[], of: string): Map<string, unknown> {
  return new Map(events.flatMap((event) => (event.type === 'ask.answered' ? [[`${of}/${event.askId}`, event.value] as const] : [])))
}
