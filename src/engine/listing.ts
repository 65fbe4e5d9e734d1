import { checkOptions } from '../define/call-check.js'
import { aNumber, aText, atLeastOne, either, type Kind, listOf, oneOf, tagRecord } from '../define/option-check.js'
import { deepFreeze } from '../kernel/deep-freeze.js'
import type { Ask } from '../inspect/ask.js'
import { oldestFirst } from '../inspect/oldest-first.js'
import type { RunStatus } from '../inspect/report-data.js'
import { asksIn } from './asks-in.js'
import type { Engine } from './engine.js'
import { summaryWithChildren } from './summary-with-children.js'
import type { RunFilter, RunSummary, Tutti } from './tutti.js'

/** Which asks `asks` lists. */
export type AskFilter = NonNullable<Parameters<Tutti['asks']>[0]>

const statuses: Readonly<Record<RunStatus, true>> = {
  running: true,
  paused: true,
  compensating: true,
  succeeded: true,
  failed: true,
  cancelled: true,
}
const aStatus = oneOf(...Object.keys(statuses))

const runKinds: Readonly<Record<keyof RunFilter, Kind>> = {
  status: either(aStatus, listOf(aStatus, 'them')),
  definition: aText,
  tags: tagRecord,
  since: aNumber,
  limit: atLeastOne,
  cursor: { is: (value) => typeof value === 'string' && /^\d+$/.test(value), words: 'one that runs() has given' },
}

const askKinds: Readonly<Record<keyof AskFilter, Kind>> = { runId: aText, agent: aText, tags: tagRecord }

/** At most so many runs are on one page. */
const pageMax = 1_000

/** The runs of the store, newest first, a page at a time. */
export async function listRuns(engine: Engine, filter: RunFilter = {}): Promise<{ runs: readonly RunSummary[]; cursor?: string }> {
  checkOptions('runs()', filter, runKinds)
  const limit = Math.min(pageMax, filter.limit ?? 100)
  const status: readonly RunStatus[] | undefined = typeof filter.status === 'string' ? [filter.status] : filter.status
  const rows = await engine.options.store.list({
    ...(status !== undefined && { status }),
    ...(filter.definition !== undefined && { definition: filter.definition }),
    ...(filter.tags !== undefined && { tags: filter.tags }),
    ...(filter.since !== undefined && { since: filter.since }),
    ...(filter.cursor !== undefined && { before: Number(filter.cursor) }),
    // One more than is shown: whether there is another page is known by it.
    limit: limit + 1,
  })
  const shown = rows.slice(0, limit)
  const runs: RunSummary[] = []
  for (const row of shown) runs.push(await summaryWithChildren(engine.options.store, row, engine.executes(row)))
  const last = shown.at(-1)
  return deepFreeze({ runs, ...(rows.length > limit && last !== undefined && { cursor: String(last.order) }) })
}

/** The open asks of all runs, oldest first. */
export async function listAsks(engine: Engine, filter: AskFilter = {}): Promise<readonly Ask[]> {
  checkOptions('asks()', filter, askKinds)
  const marks = await engine.options.store.marks({ kind: 'ask', ...(filter.runId !== undefined && { run: filter.runId }) })
  const unreadable = (runId: string): void =>
    engine.options.onLog({ level: 'error', message: 'what it asks a person is damaged in the store: its own asks() have it', runId })
  const asks = asksIn(marks, unreadable)
    .filter((ask) => filter.agent === undefined || ask.agent === filter.agent)
    .filter((ask) => Object.entries(filter.tags ?? {}).every(([key, value]) => ask.tags[key] === value))
    .sort(oldestFirst)
  return deepFreeze(asks)
}
