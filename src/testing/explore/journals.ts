import { childRunsIn } from '../../engine/child-run.js'
import type { Engine } from '../../engine/engine.js'
import type { Event } from '../../kernel/event.js'
import type { Journals } from './recorded.js'

/** The journals of a run and of all runs that it has waited for. */
export async function journalsOf(engine: Engine, id: string, own: readonly Event[]): Promise<Journals> {
  const journals = new Map<string, readonly Event[]>([[id, own]])
  // What is found on the way is read too.
  for (const journal of journals.values())
    for (const child of childRunsIn(journal)) {
      const found = journals.has(child) ? [] : await engine.journal(child)
      if (found.length > 0) journals.set(child, found)
    }
  return new Map([...journals].map(([run, journal]) => [run.slice(id.length), journal]))
}
