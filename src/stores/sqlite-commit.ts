import type { Append, Put, StoredRecord, Verdict } from '../engine/store.js'
import { atOnce, isAppend } from '../engine/store.js'
import { checkNames } from './names.js'
import { restored, stored } from './sqlite-body.js'
import type { Changes } from './sqlite-changes.js'
import type { Connection } from './sqlite-connection.js'
import type { SqlValue } from './sqlite-driver.js'
import { failureOf, isBusy } from './sqlite-failure.js'
import { sql } from './sqlite-statements.js'

/** Where a run stood when this process last appended to it. It keeps its row for as long as it is there, and no row is given twice. */
interface Place {
  readonly rid: number
  head: number
}

const placesMax = 10_000

/** What a batch has written. `by`: who commits, if it is one: only then is it known that nobody else has; `seen`: a worker that is there. */
interface Written {
  by: number | null | undefined
  seen: number | null
  readonly places: { readonly place: Place; readonly head: number }[]
}

/**
 * Writes batches.
 *
 * 1. Everything that can refuse an item is looked at before anything of it is written, so that none has to be taken back.
 * 2. What happens most, the owner of a run adds to its journal and nothing else of it changes, is one statement. It needs no other look at
 *    the head: a journal only grows, so it is at least what this process has left, and no two rows begin at the same event.
 */
export class Commits {
  readonly #connection: Connection
  readonly #changes: Changes
  #places = new Map<string, Place>()

  constructor(connection: Connection, changes: Changes) {
    this.#connection = connection
    this.#changes = changes
  }

  commit(batch: readonly (Append | Put)[]): Promise<readonly Verdict[]> {
    const item = batch[0]
    try {
      if (batch.length === 1 && item !== undefined && isAppend(item) && this.#alone(item)) return written
    } catch (error) {
      return Promise.reject(error)
    }
    const kept: Written = { by: undefined, seen: null, places: [] }
    return this.#connection.write(
      () => this.#commitAll(batch, kept),
      () => this.#committed(kept),
    )
  }

  /** Writes one row in one statement, which is a transaction by itself: whether it has. If not, then nothing was written. */
  #alone(item: Append): boolean {
    const connection = this.#connection
    if (item.rows.length !== 1 || item.marks !== undefined || item.blobs !== undefined || item.snapshot !== undefined) return false
    if (changesRun(item)) return false
    const place = this.#placeOf(item)
    if (place === null || !connection.isFree()) return false
    try {
      if (!this.#begins(sql.goOnAlone, place, item)) return false
    } catch (error) {
      // Somebody else writes: then it waits like all others.
      if (isBusy(error)) return false
      throw failureOf(error, connection.path)
    }
    place.head = endOf(item, place.head)
    this.#changes.committed(item.by)
    return true
  }

  #commitAll(batch: readonly (Append | Put)[], written: Written): readonly Verdict[] {
    // It may be another attempt.
    written.by = undefined
    written.seen = null
    written.places.length = 0
    const verdicts: Verdict[] = []
    for (let index = 0; index < batch.length; index++) {
      const item = batch[index] as Append | Put
      checkNames(item)
      verdicts.push(isAppend(item) ? this.#append(item, written) : this.#put(item))
    }
    return verdicts
  }

  /** What is known of places holds only once it is in the file. */
  #committed({ by = null, places }: Written): void {
    for (let index = 0; index < places.length; index++) {
      const { place, head } = places[index] as Written['places'][number]
      place.head = head
    }
    this.#changes.committed(by)
  }

  #append(item: Append, written: Written): Verdict {
    written.by = written.by === undefined || written.by === item.by ? item.by : null
    const connection = this.#connection
    const place = this.#placeOf(item)
    if (place === null || !this.#begins(sql.goOn, place, item)) return this.#appendAny(item, written)
    if (changesRun(item) && item.owner !== undefined) change(connection, { rid: place.rid, ...item.owner }, item)
    addRows(connection, place.rid, item, 1)
    attach(connection, place.rid, item)
    written.places.push({ place, head: endOf(item, place.head) })
    return done
  }

  /** Where the run of an append stands, if it is its owner's, expects what this process has left, and can be refused for nothing else. */
  #placeOf(item: Append): Place | null {
    const { owner } = item
    if (owner === undefined || item.by !== owner.worker || item.own === 'take' || item.create !== undefined) return null
    if (item.rows.length === 0 || (item.puts !== undefined && item.puts.length > 0)) return null
    const place = this.#places.get(item.run)
    return place === undefined || place.head !== item.expect ? null : place
  }

  /** Writes the first row of an owner's append: false if it is not the owner any more, or another row stands there. */
  #begins(statement: string, { rid }: Place, { rows, expect, at, owner }: Append): boolean {
    const row = rows[0]
    if (row === undefined || row.seq !== expect + 1 || owner === undefined) return false
    const { changes } = this.#connection
      .statement(statement)
      .run(row.seq, row.n, at, stored(row.body), rid, owner.worker, owner.epoch, row.seq)
    return changes > 0
  }

  #appendAny(item: Append, written: Written): Verdict {
    const connection = this.#connection
    // Mostly a run is new, and nothing was to be looked at before.
    const made = item.create !== undefined && item.puts === undefined ? create(connection, item, written) : null
    if (made !== null) return this.#made(item, written, made)
    const known = connection.get<Standing>(sql.standing, item.run)
    const refusal = known === undefined ? (item.create === undefined ? 'gone' : null) : refusalOf(known, item)
    // A key that is taken says more than that the run exists: it may be the same start, sent again.
    const conflict = item.puts !== undefined && (refusal === null || refusal === 'exists') ? firstConflict(connection, item.puts) : null
    if (conflict !== null) return conflict
    if (refusal !== null) return { ok: false, why: refusal }
    const changed = known === undefined ? create(connection, item, written) : change(connection, known, item)
    return changed === null ? { ok: false, why: 'exists' } : this.#made(item, written, changed, known?.head)
  }

  /** The row of the run says what the append makes of it: what belongs to it follows. */
  #made(item: Append, written: Written, { rid, epoch, worker }: Changed, head = 0): Verdict {
    const connection = this.#connection
    if (worker === item.by) written.places.push({ place: this.#keep(item.run, rid), head: endOf(item, head) })
    addRows(connection, rid, item, 0)
    attach(connection, rid, item)
    // A worker that was fenced takes nothing, whatever it asks for.
    const took = item.own === 'take' ? worker === item.by : item.create !== undefined
    return took ? { ok: true, epoch } : done
  }

  /** Its head is known once all is in the file. */
  #keep(run: string, rid: number): Place {
    const known = this.#places.get(run)
    if (known?.rid === rid) return known
    if (this.#places.size >= placesMax) this.#places = new Map()
    const place = { rid, head: Number.NaN }
    this.#places.set(run, place)
    return place
  }

  #put(item: Put): Verdict {
    const puts = [item, ...(item.puts ?? [])]
    const conflict = firstConflict(this.#connection, puts)
    if (conflict === null) for (const each of puts) put(this.#connection, each, null)
    return conflict ?? done
  }
}

const done: Verdict = Object.freeze({ ok: true })
/** What is said of one append in one statement is always the same. */
const written: Promise<readonly Verdict[]> = atOnce(Object.freeze([done]))

/** Whether an append changes more of a run than its journal. */
function changesRun({ status, version, waits, wake, ended, own }: Append): boolean {
  return (
    status !== undefined || version !== undefined || waits !== undefined || wake !== undefined || ended !== undefined || own !== undefined
  )
}

interface Standing extends Changed {
  readonly head: number
}

/** Where the journal ends after an append. */
function endOf({ rows }: Append, before: number): number {
  const last = rows[rows.length - 1]
  return last === undefined ? before : last.seq + last.n - 1
}

function addRows(connection: Connection, rid: number, { rows, at }: Append, from: number): void {
  for (let index = from; index < rows.length; index++) {
    const row = rows[index]
    if (row !== undefined) connection.do(sql.event, rid, row.seq, row.n, at, stored(row.body))
  }
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

/** Null: there is one of this id. */
function create(connection: Connection, item: Append, written: Written): Changed | null {
  const { definition, version, tags } = item.create ?? { definition: '', version: '', tags: {} }
  const { worker, wake } = ownerAfter(connection, null, item, written)
  const epoch = item.own === 'take' ? 1 : 0
  const said: SqlValue[] = [item.run, definition, version, JSON.stringify(tags), item.status ?? 'running', JSON.stringify(item.waits ?? [])]
  const { changes, rowid } = connection.run(sql.create, ...said, epoch, worker, wake ?? null, item.at, item.ended ? item.at : null)
  if (changes === 0) return null
  for (const [key, value] of Object.entries(tags)) connection.do(sql.tag, key, value, rowid)
  return { rid: rowid, epoch, worker }
}

/** Touches only the columns that change: each that stands in an index has its price. */
function change(connection: Connection, known: Changed, item: Append): Changed {
  const { rid } = known
  if (known.worker !== null && known.worker !== item.by) connection.do(sql.ring, known.worker, rid)
  const { worker, wake } = ownerAfter(connection, known.worker, item)
  const epoch = item.own === 'take' ? known.epoch + 1 : known.epoch
  const columns: [name: string, value: SqlValue][] = []
  if (item.status !== undefined) columns.push(['status', item.status])
  if (item.version !== undefined) columns.push(['version', item.version])
  if (item.waits !== undefined) columns.push(['waits', JSON.stringify(item.waits)])
  if (wake !== undefined) columns.push(['wake', wake])
  if (item.ended) columns.push(['ended', item.at])
  if (epoch !== known.epoch) columns.push(['epoch', epoch])
  if (worker !== known.worker) columns.push(['worker', worker])
  if (columns.length > 0) connection.do(changeOf(columns.map(([name]) => name)), ...columns.map(([, value]) => value), rid)
  return { rid, epoch, worker }
}

const changeOf = (columns: readonly string[]): string => `update run set ${columns.map((name) => `${name} = ?`).join(', ')} where rid = ?`

/** Who owns the run after an append, and when it is due. A worker that was fenced can take nothing: what it would take is due at once. */
function ownerAfter(
  connection: Connection,
  worker: number | null,
  item: Append,
  written?: Written,
): { readonly worker: number | null; readonly wake: number | null | undefined } {
  if (item.ended || item.own === 'release') return { worker: null, wake: item.wake }
  if (item.own !== 'take') return { worker, wake: item.wake }
  if (!isWorker(connection, item.by, written)) return { worker: null, wake: item.at }
  return { worker: item.by, wake: item.wake }
}

/** Within a transaction nobody comes or goes: who was seen is not looked for again. */
function isWorker(connection: Connection, worker: number, written: Written | undefined): boolean {
  if (written?.seen === worker) return true
  const isThere = connection.get(sql.isWorker, worker) !== undefined
  if (isThere && written !== undefined) written.seen = worker
  return isThere
}

function attach(connection: Connection, rid: number, { marks, puts, blobs, snapshot }: Append): void {
  // Most appends have nothing but their events.
  if (marks === undefined && puts === undefined && blobs === undefined && snapshot === undefined) return
  for (const { kind, key, body } of marks ?? []) {
    if (body === null) connection.do(sql.unmark, rid, kind, key)
    else connection.do(sql.mark, rid, kind, key, stored(body))
  }
  for (const item of puts ?? []) put(connection, item, rid)
  for (const { hash, body } of blobs ?? []) {
    connection.do(sql.blobIn, hash, stored(body))
    connection.do(sql.blobRef, rid, hash)
  }
  if (snapshot !== undefined) connection.do(sql.snapshot, rid, snapshot.seq, snapshot.version, stored(snapshot.body))
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
  connection.do(sql.put, kind, key, expect + 1, stored(body), rid)
  if (wakeMarked === undefined) return
  connection.do(sql.wakeMarked, wakeMarked.at, wakeMarked.kind, wakeMarked.key)
  connection.do(sql.ringMarked, wakeMarked.kind, wakeMarked.key)
}
