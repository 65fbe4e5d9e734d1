import type { Append, Put, StoredRecord, Verdict } from '../engine/store.js'
import { isAppend } from '../engine/store.js'
import { restored, stored } from './sqlite-body.js'
import type { Connection } from './sqlite-connection.js'
import type { SqlValue } from './sqlite-driver.js'
import { sql } from './sqlite-statements.js'

interface Standing {
  readonly rid: number
  readonly head: number
  readonly epoch: number
  readonly worker: number | null
}

/**
 * Does one item of a batch, inside a transaction. Everything that can refuse it is looked at before anything is written, so that an item
 * never has to be taken back.
 */
export function commitItem(connection: Connection, places: Places, item: Append | Put): Verdict {
  if (isAppend(item)) return goesOn(connection, places, item) ? { ok: true } : append(connection, places, item)
  const puts = [item, ...(item.puts ?? [])]
  const conflict = firstConflict(connection, puts)
  if (conflict === null) for (const each of puts) put(connection, each, null)
  return conflict ?? { ok: true }
}

/** Where the runs of late stand. A run keeps its place for as long as it is there, and none is given twice. */
export class Places {
  #known = new Map<string, number>()

  of(run: string): number | undefined {
    return this.#known.get(run)
  }

  keep(run: string, rid: number): void {
    if (this.#known.size >= placesMax) this.#known = new Map()
    this.#known.set(run, rid)
  }
}

const placesMax = 10_000

/**
 * What happens most: the owner of a run adds to its journal, and nothing else of it changes. One update moves its head if it still is
 * where it is expected, under its owner; false if it is not, or if there is more to do.
 */
function goesOn(connection: Connection, places: Places, item: Append): boolean {
  const { owner, own, create, status, waits, wake, ended } = item
  const rid = places.of(item.run)
  if (rid === undefined || owner === undefined || item.by !== owner.worker || own !== undefined || create !== undefined) return false
  if (status !== undefined || waits !== undefined || wake !== undefined || ended === true || (item.puts?.length ?? 0) > 0) return false
  if (connection.run(sql.goOn, item.head, rid, item.expect, owner.worker, owner.epoch).changes === 0) return false
  for (const { seq, n, body } of item.rows) connection.run(sql.event, rid, seq, n, item.at, stored(body))
  attach(connection, rid, item)
  return true
}

function append(connection: Connection, places: Places, item: Append): Verdict {
  const known = connection.get<Standing>(sql.standing, item.run)
  const refusal = known === undefined ? (item.create === undefined ? 'gone' : null) : refusalOf(known, item)
  // A key that is taken says more than that the run exists: it may be the same start, sent again.
  const conflict = item.puts !== undefined && (refusal === null || refusal === 'exists') ? firstConflict(connection, item.puts) : null
  if (conflict !== null) return conflict
  if (refusal !== null) return { ok: false, why: refusal }
  const { rid, epoch, worker } = known === undefined ? create(connection, item) : change(connection, known, item)
  if (worker === item.by) places.keep(item.run, rid)
  for (const { seq, n, body } of item.rows) connection.run(sql.event, rid, seq, n, item.at, stored(body))
  if (item.marks !== undefined || item.puts !== undefined || item.blobs !== undefined || item.snapshot !== undefined)
    attach(connection, rid, item)
  // A worker that was fenced takes nothing, whatever it asks for.
  const took = item.own === 'take' ? worker === item.by : item.create !== undefined
  return took ? { ok: true, epoch } : { ok: true }
}

function refusalOf(known: Standing, item: Append): 'exists' | 'epoch' | 'head' | null {
  if (item.create !== undefined) return 'exists'
  if (item.owner !== undefined && (known.worker !== item.owner.worker || known.epoch !== item.owner.epoch)) return 'epoch'
  return known.head === item.expect ? null : 'head'
}

interface Changed {
  readonly rid: number
  readonly epoch: number
  readonly worker: number | null
}

function create(connection: Connection, item: Append): Changed {
  const { definition, version, tags } = item.create ?? { definition: '', version: '', tags: {} }
  const { worker, wake } = ownerAfter(connection, null, item)
  const epoch = item.own === 'take' ? 1 : 0
  const said: SqlValue[] = [item.run, definition, version, JSON.stringify(tags), item.status ?? 'running', JSON.stringify(item.waits ?? [])]
  const { rowid } = connection.run(sql.create, ...said, item.head, epoch, worker, wake ?? null, item.at, item.ended ? item.at : null)
  for (const [key, value] of Object.entries(tags)) connection.run(sql.tag, key, value, rowid)
  return { rid: rowid, epoch, worker }
}

/** Touches only the columns that change: each that stands in an index has its price. */
function change(connection: Connection, known: Standing, item: Append): Changed {
  const { rid } = known
  if (known.worker !== null && known.worker !== item.by) connection.run(sql.ring, known.worker, rid)
  const { worker, wake } = ownerAfter(connection, known.worker, item)
  const epoch = item.own === 'take' ? known.epoch + 1 : known.epoch
  const columns: [name: string, value: SqlValue][] = []
  if (item.status !== undefined) columns.push(['status', item.status])
  if (item.waits !== undefined) columns.push(['waits', JSON.stringify(item.waits)])
  if (wake !== undefined) columns.push(['wake', wake])
  if (item.ended) columns.push(['ended', item.at])
  if (epoch !== known.epoch) columns.push(['epoch', epoch])
  if (worker !== known.worker) columns.push(['worker', worker])
  if (columns.length === 0) connection.run(sql.head, item.head, rid)
  else connection.run(changeOf(columns.map(([name]) => name)), item.head, ...columns.map(([, value]) => value), rid)
  return { rid, epoch, worker }
}

const changeOf = (columns: readonly string[]): string =>
  `update run set head = ?, ${columns.map((name) => `${name} = ?`).join(', ')} where rid = ?`

/** Who owns the run after an append, and when it is due. A worker that was fenced can take nothing: what it would take is due at once. */
function ownerAfter(
  connection: Connection,
  worker: number | null,
  item: Append,
): { readonly worker: number | null; readonly wake: number | null | undefined } {
  if (item.ended || item.own === 'release') return { worker: null, wake: item.wake }
  if (item.own !== 'take') return { worker, wake: item.wake }
  if (connection.get(sql.isWorker, item.by) === undefined) return { worker: null, wake: item.at }
  return { worker: item.by, wake: item.wake }
}

function attach(connection: Connection, rid: number, { marks = [], puts = [], blobs = [], snapshot }: Append): void {
  for (const { kind, key, body } of marks) {
    if (body === null) connection.run(sql.unmark, rid, kind, key)
    else connection.run(sql.mark, rid, kind, key, stored(body))
  }
  for (const item of puts) put(connection, item, rid)
  for (const { hash, body } of blobs) {
    connection.run(sql.blobIn, hash, stored(body))
    connection.run(sql.blobRef, rid, hash)
  }
  if (snapshot !== undefined) connection.run(sql.snapshot, rid, snapshot.seq, snapshot.version, stored(snapshot.body))
}

function firstConflict(connection: Connection, puts: readonly Put[]): Verdict | null {
  for (const item of puts) {
    const conflict = conflictOf(connection, item)
    if (conflict !== null) return conflict
  }
  return null
}

function conflictOf(connection: Connection, { kind, key, expect }: Put): Verdict | null {
  const found = connection.get<{ revision: number; body: SqlValue }>(sql.record, kind, key)
  if ((found?.revision ?? 0) === expect) return null
  const record: StoredRecord | null = found === undefined ? null : { revision: found.revision, body: restored(found.body) }
  return { ok: false, why: 'record', found: record }
}

function put(connection: Connection, { kind, key, expect, body, wakeMarked }: Put, rid: number | null): void {
  connection.run(sql.put, kind, key, expect + 1, stored(body), rid)
  if (wakeMarked === undefined) return
  connection.run(sql.wakeMarked, wakeMarked.at, wakeMarked.kind, wakeMarked.key)
  connection.run(sql.ringMarked, wakeMarked.kind, wakeMarked.key)
}
