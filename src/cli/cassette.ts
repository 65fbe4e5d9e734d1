import { existsSync } from 'node:fs'
import { notFound } from './cli-error.js'
import type { Loaded } from './load-file.js'

/** Where what models say is written down, or played from instead of asking them. */
export interface Cassette {
  readonly record?: string
  readonly replay?: string
}

/** What was loaded, with models that write down what they say, or that play it. `close` ends a recording. */
export async function withCassette(
  loaded: Loaded,
  { record: to, replay: from }: Cassette,
): Promise<{ readonly loaded: Loaded; readonly close: () => Promise<void> }> {
  if (to === undefined && from === undefined) return { loaded, close: async () => {} }
  // Not loaded otherwise: what it needs is large.
  const { record, replay } = await import('../models/cassette.js')
  if (to !== undefined) {
    const recording = record(to, loaded.given.models)
    return { loaded: { ...loaded, given: { ...loaded.given, models: recording } }, close: () => recording.close() }
  }
  if (from === undefined || !existsSync(from)) throw notFound(`there is no recording ${from}`, 'make one with tutti run --record')
  return { loaded: { ...loaded, given: { ...loaded.given, models: replay(from) } }, close: async () => {} }
}
