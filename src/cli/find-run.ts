import type { RunRow, Store } from '../engine/store.js'
import { notFound, wrongUse } from './cli-error.js'

/** How many runs are named when the beginning of an id fits several. */
const namedMax = 5

/** The run that is meant by an id, the beginning of one, or `@last`. */
export async function findRun(store: Store, given: string): Promise<RunRow> {
  if (given === '@last') return lastRun(store)
  if (given === '') throw wrongUse('an id may not be empty')
  const exact = await store.load(given, { after: Number.MAX_SAFE_INTEGER })
  if (exact !== null) return exact.row
  // A child run is named in full: its id begins with that of its run. All are listed, because any number of them may be newer than that.
  const fits = given.includes(':') ? () => true : isTop
  const found = (await store.list({ prefix: given, limit: Number.POSITIVE_INFINITY })).filter(fits)
  const [only, ...others] = found
  if (only === undefined) throw notFound(`there is no run ${given}`, 'tutti ls lists them')
  if (others.length === 0) return only
  const ids = found.slice(0, namedMax).map(({ id }) => id)
  throw wrongUse(`${found.length} runs begin with ${given}: ${ids.join(', ')}${found.length > namedMax ? ', …' : ''}`)
}

/** Whether a run was started by somebody, and not by a step of another. */
export function isTop({ id }: { readonly id: string }): boolean {
  return !id.includes(':')
}

/** The id of the run that was started by somebody: its own, or that of the run whose step it is. */
export function topOf({ id }: { readonly id: string }): string {
  return id.replace(/:.*/s, '')
}

async function lastRun(store: Store): Promise<RunRow> {
  let before: number | undefined
  for (;;) {
    const rows = await store.list({ limit: 100, ...(before !== undefined && { before }) })
    const top = rows.find(isTop)
    if (top !== undefined) return top
    before = rows.at(-1)?.order
    if (before === undefined) throw notFound('there are no runs yet', 'start one with tutti run or tutti demo')
  }
}
