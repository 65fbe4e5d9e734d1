import type { ListFilter, RunRow } from '../engine/store.js'
import type { Connection } from './sqlite-connection.js'
import type { SqlValue } from './sqlite-driver.js'
import { head } from './sqlite-statements.js'

/** A run as it is stored. */
export interface StoredRun {
  readonly rid: number
  readonly id: string
  readonly definition: string
  readonly version: string
  readonly tags: string
  readonly status: string
  readonly waits: string
  readonly head: number
  readonly epoch: number
  readonly worker: number | null
  readonly started: number
  readonly ended: number | null
}

export function runRow(run: StoredRun): RunRow {
  return {
    order: run.rid,
    id: run.id,
    definition: run.definition,
    version: run.version,
    tags: JSON.parse(run.tags) as RunRow['tags'],
    status: run.status,
    waits: JSON.parse(run.waits) as RunRow['waits'],
    head: run.head,
    epoch: run.epoch,
    worker: run.worker,
    startedAt: run.started,
    endedAt: run.ended,
  }
}

/** The runs, newest first. */
export function listRuns(connection: Connection, filter: ListFilter): readonly RunRow[] {
  return listQueries(filter)
    .flatMap(({ text, values }) => connection.all<StoredRun>(text, ...values))
    .sort((a, b) => b.rid - a.rid)
    .slice(0, Math.max(0, filter.limit))
    .map(runRow)
}

/** How many rows a statement may give: -1 is all of them. */
export function limitOf(limit: number): number {
  return limit < 2 ** 31 ? Math.max(0, Math.floor(limit)) : -1
}

interface Query {
  readonly text: string
  readonly values: readonly SqlValue[]
}

/**
 * What to ask for. The narrowest condition leads, by its index and newest first, so that as few rows are read as can be: the beginning of an
 * id (few have it, so that they may be sorted), else a tag, else each status by itself, else the definition; the others are looked at in
 * the rows that it finds.
 */
export function listQueries(filter: ListFilter): readonly Query[] {
  const [tag, ...tags] = Object.entries(filter.tags ?? {})
  const others: Condition[] = [
    ...tags.map(hasTag),
    ...(filter.definition === undefined ? [] : [{ text: 'run.definition = ?', values: [filter.definition] }]),
    ...(filter.since === undefined ? [] : [{ text: 'run.started >= ?', values: [filter.since] }]),
  ]
  if (filter.prefix !== undefined) {
    const conditions = [beginning(filter.prefix), ...(tag === undefined ? [] : [hasTag(tag)]), ...inStatus(filter.status), ...others]
    return [query('run indexed by sqlite_autoindex_run_1', 'run.rid', conditions, filter)]
  }
  if (tag !== undefined)
    return [query('tag cross join run on run.rid = tag.rid', 'tag.rid', [tagged(tag), ...inStatus(filter.status), ...others], filter)]
  if (filter.status !== undefined) {
    // One that is given twice is asked for once.
    return [...new Set(filter.status)].map((status) =>
      query('run indexed by run_status', 'run.rid', [{ text: 'run.status = ?', values: [status] }, ...others], filter),
    )
  }
  return [query(filter.definition === undefined ? 'run' : 'run indexed by run_definition', 'run.rid', others, filter)]
}

type Condition = Query

/** Texts are compared by their bytes, and nothing comes after the last of all characters. */
const beginning = (prefix: string): Condition => ({ text: 'run.id >= ? and run.id < ?', values: [prefix, `${prefix}\u{10FFFF}`] })

const hasTag = ([key, value]: readonly [string, string]): Condition => ({
  text: 'exists (select 1 from tag where key = ? and value = ? and rid = run.rid)',
  values: [key, value],
})

const tagged = ([key, value]: readonly [string, string]): Condition => ({ text: 'tag.key = ? and tag.value = ?', values: [key, value] })

function inStatus(status: readonly string[] | undefined): readonly Condition[] {
  if (status === undefined) return []
  return [{ text: `run.status in (${status.map(() => '?').join(', ')})`, values: status }]
}

const columns = `id, definition, version, tags, status, waits, ${head}, epoch, worker, started, ended`

function query(from: string, rid: string, conditions: readonly Condition[], { before, limit }: ListFilter): Query {
  const all = before === undefined ? conditions : [...conditions, { text: `${rid} < ?`, values: [before] }]
  const where = all.length === 0 ? '' : ` where ${all.map(({ text }) => text).join(' and ')}`
  return {
    text: `select run.rid, ${columns} from ${from}${where} order by ${rid} desc limit ?`,
    values: [...all.flatMap(({ values }) => values), limitOf(limit)],
  }
}
