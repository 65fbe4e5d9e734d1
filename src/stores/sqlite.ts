import { isStorable } from '../define/storable.js'
import type { Executable, Loaded, LoadOptions, Refused, RunRow, Snapshot, Store, Wanted } from '../engine/store.js'
import { canBeListed } from './names.js'
import { restored } from './sqlite-body.js'
import { Changes } from './sqlite-changes.js'
import { Commits } from './sqlite-commit.js'
import type { Connection } from './sqlite-connection.js'
import type { Driver, SqlValue } from './sqlite-driver.js'
import { loadDriver } from './sqlite-driver.js'
import type { StoredRun } from './sqlite-list.js'
import { limitOf, listRuns, runRow } from './sqlite-list.js'
import { WorkerLocks } from './sqlite-lock.js'
import type { OpenFile } from './sqlite-open.js'
import { openConnection } from './sqlite-open.js'
import { sql } from './sqlite-statements.js'

export interface SqliteOptions extends OpenFile {
  /** How many bytes one value may have; 16 MB if it is not said. */
  readonly maxValue?: number
}

/** A store in one file of this machine, which any number of its processes may share. */
export async function sqliteStore(path: string, options: SqliteOptions): Promise<Store> {
  const connection = await openConnection(path, options)
  return storeOver(connection, await loadDriver(), options)
}

/**
 * The store over an open file.
 *
 * 1. A transaction begins and ends between two awaits: nobody in this process sees it open.
 * 2. What only reads takes no write lock; what may write looks first whether there is anything to write.
 * 3. What could never be kept is never found: one of the drivers cuts it to what may be there.
 */
export function storeOver(connection: Connection, driver: Driver, { durability, maxValue = 16 * 2 ** 20 }: SqliteOptions): Store {
  const locks = new WorkerLocks(driver, connection.path)
  const changes = new Changes(connection)
  const commits = new Commits(connection, changes)
  /** What the workers of this handle have said, also while they are fenced. */
  const ttls = new Map<number, number | null>()

  return Object.freeze<Store>({
    promises: Object.freeze({ durable: durability, reach: 'machine', maxValue }),
    join: async ({ nonce, ttlMs = null }) => {
      const held = new Set<number>()
      try {
        return await connection.write(
          () => join(connection, locks, { nonce, ttl: ttlMs }, held),
          (worker) => {
            ttls.set(worker, ttlMs)
            changes.joined(worker)
            changes.committed(worker)
          },
        )
      } catch (error) {
        for (const worker of held) locks.release(worker)
        throw error
      }
    },
    leave: async (worker, at) => {
      await connection.write(
        () => {
          connection.run(sql.leave, worker)
          free(connection, worker, at)
        },
        () => {
          ttls.delete(worker)
          changes.left(worker)
          changes.committed(null)
        },
      )
      locks.remove(worker)
    },
    beat: async (worker) => {
      const { all } = await connection.write(
        () => {
          const wasFenced = connection.run(sql.beat, worker).changes === 0
          if (wasFenced) rejoin(connection, locks, worker, ttls.get(worker) ?? null)
          return { wasFenced, all: connection.all<StoredWorker>(sql.workers) }
        },
        ({ wasFenced }) => {
          if (wasFenced) changes.committed(worker)
        },
      )
      const peers = all.filter(({ id }) => id !== worker)
      locks.lookOnlyAt(new Set(peers.map(({ id }) => id)))
      return peers.map(({ id, beat, ttl }) => ({ worker: id, beat, gone: locks.isGone(id), ...(ttl !== null && { ttlMs: ttl }) }))
    },
    fence: async ({ worker, beat }, at) => {
      const freed = await connection.write(
        () => (connection.run(sql.fence, worker, beat).changes === 0 ? null : free(connection, worker, at)),
        (count) => {
          if (count !== null) changes.committed(null)
        },
      )
      if (freed === null) return 0
      locks.remove(worker)
      return freed
    },
    claim: async ({ worker, now, limit, ...wanted }) => {
      const due = await connection.read(() => dueRuns(connection, wanted, now, 1))
      const claimed = (): Promise<readonly RunRow[]> =>
        connection.write(
          () => claim(connection, worker, dueRuns(connection, wanted, now, limit)),
          (rows) => {
            if (rows.length > 0) changes.committed(worker)
          },
        )
      const rows = due.length === 0 ? [] : await claimed()
      return { rows, nextWake: await connection.read(() => nextWake(connection, wanted)) }
    },
    commit: (batch) => commits.commit(batch),
    load: (run, options) => connection.read(() => (isStorable(run) ? load(connection, run, options ?? {}) : null)),
    list: (filter) => connection.read(() => (canBeListed(filter) ? listRuns(connection, filter) : [])),
    marks: ({ kind, run }) =>
      connection.read(() => {
        if (!isStorable(kind) || !isStorable(run ?? '')) return []
        const found = run === undefined ? connection.all<FoundMark>(sql.marks, kind) : connection.all<FoundMark>(sql.marksOf, run, kind)
        return found.map((mark) => ({ run: mark.run, kind, key: mark.key, body: restored(mark.body) }))
      }),
    record: (kind, key) =>
      connection.read(() => {
        if (!isStorable(kind) || !isStorable(key)) return null
        const found = connection.get<{ revision: number; body: SqlValue }>(sql.record, kind, key)
        return found === undefined ? null : { revision: found.revision, body: restored(found.body) }
      }),
    records: (kind) =>
      connection.read(() =>
        connection
          .all<{ key: string; revision: number; body: SqlValue }>(sql.records, kind)
          .map(({ key, revision, body }) => ({ key, revision, body: restored(body) }))
          .sort((a, b) => (a.key < b.key ? -1 : 1)),
      ),
    blob: (hash) =>
      connection.read(() => {
        const found = connection.get<{ body: SqlValue }>(sql.blob, hash)
        return found === undefined ? null : restored(found.body)
      }),
    moved: (worker) => changes.moved(worker),
    mine: async (worker) => {
      const [owned, isRung] = await connection.read(() => [ownedBy(connection, worker), connection.get(sql.isRung, worker) !== undefined])
      if (!isRung) return { owned, rung: [] }
      return connection.write(() => {
        const rung = connection.all<{ id: string }>(sql.rung, worker).map(({ id }) => id)
        connection.run(sql.silence, worker)
        return { owned: ownedBy(connection, worker), rung }
      })
    },
    onMoved: (wake) => changes.onMoved(wake),
    gc: async ({ endedBefore, limit }) => {
      const none = await connection.read(() => connection.get(sql.ended, endedBefore, 1) === undefined)
      if (none) return 0
      return connection.write(
        () => {
          let deleted = 0
          // First what lies below others, then those.
          for (let gone = 1; gone > 0 && deleted < limit; deleted += gone) {
            const old = connection.all<Ended>(sql.ended, endedBefore, limitOf(limit - deleted))
            for (const run of old) drop(connection, run)
            gone = old.length
          }
          return deleted
        },
        () => changes.committed(null),
      )
    },
    close: async () => {
      changes.close()
      locks.close()
      connection.close()
    },
  })
}

interface StoredWorker {
  readonly id: number
  readonly beat: number
  readonly ttl: number | null
}

interface Due {
  readonly rid: number
  readonly wake: number
}

interface Ended {
  readonly rid: number
  readonly tags: string
}

interface FoundMark {
  readonly run: string
  readonly key: string
  readonly body: SqlValue
}

/**
 * `held`: whose lock is held although it may come to nothing. A number whose lock somebody has is left out: it is a worker's of a store that was
 * removed from here, or replaced, and that it still has open.
 */
function join(
  connection: Connection,
  locks: WorkerLocks,
  { nonce, ttl }: { readonly nonce: string; readonly ttl: number | null },
  held: Set<number>,
): number {
  for (;;) {
    const { rowid: worker } = connection.run(sql.join, nonce, process.pid, ttl)
    locks.removeOthers(new Set(connection.all<StoredWorker>(sql.workers).map(({ id }) => id)))
    if (locks.holdFree(worker)) {
      held.add(worker)
      return worker
    }
    connection.run(sql.leave, worker)
  }
}

/** It was taken for dead and is not: it owns nothing any more, and may take runs again. */
function rejoin(connection: Connection, locks: WorkerLocks, worker: number, ttl: number | null): void {
  locks.release(worker)
  locks.hold(worker)
  connection.run(sql.rejoin, worker, `again ${worker}`, process.pid, ttl)
}

function free(connection: Connection, worker: number, at: number): number {
  connection.run(sql.silence, worker)
  return connection.run(sql.free, at, worker).changes
}

/** The earliest first, whatever their definition. */
function dueRuns(connection: Connection, { definitions, except = [], only }: Wanted, now: number, limit: number): readonly Due[] {
  const left = leftOut(connection, except)
  const found = versionsOf(definitions).flatMap(([name, version]) =>
    only === undefined
      ? connection.all<Due>(sql.due, name, version, now, limitOf(limit + left.size))
      : dueIn(connection, only).filter((due) => due.definition === name && due.version === version && due.wake <= now),
  )
  return found
    .filter(({ rid }) => !left.has(rid))
    .sort((a, b) => a.wake - b.wake || a.rid - b.rid)
    .slice(0, limit)
}

type DueOf = Due & { readonly definition: string; readonly version: string }

/** What nobody owns of a run and those below it, due now or later. */
const dueIn = (connection: Connection, run: string): readonly DueOf[] => connection.all<DueOf>(sql.dueIn, run, run, run)

/** Those of them to which nothing has happened since. */
function leftOut(connection: Connection, except: readonly Refused[]): ReadonlySet<number> {
  const left = new Set<number>()
  for (const { run, head } of except) {
    const standing = connection.get<{ rid: number; head: number }>(sql.standing, run)
    if (standing?.head === head) left.add(standing.rid)
  }
  return left
}

/** A worker that was fenced is given nothing: nobody would ever take it back. */
function claim(connection: Connection, worker: number, due: readonly Due[]): readonly RunRow[] {
  if (connection.get(sql.isWorker, worker) === undefined) return []
  return due.flatMap(({ rid }) => {
    connection.run(sql.claim, worker, rid)
    const run = connection.get<StoredRun>(sql.runOf, rid)
    return run === undefined ? [] : [runRow(run)]
  })
}

function nextWake(connection: Connection, wanted: Wanted): number | null {
  const { definitions, except = [], only } = wanted
  if (except.length > 0 || only !== undefined) return dueRuns(connection, wanted, Number.MAX_SAFE_INTEGER, 1)[0]?.wake ?? null
  const wakes = versionsOf(definitions).flatMap(
    ([name, version]) => connection.get<{ wake: number | null }>(sql.nextWake, name, version)?.wake ?? [],
  )
  return wakes.length === 0 ? null : Math.min(...wakes)
}

/** Each name with each version, once. */
function versionsOf(definitions: readonly Executable[]): readonly (readonly [name: string, version: string])[] {
  const known = new Map<string, Set<string>>()
  for (const { name, versions } of definitions) known.set(name, new Set([...(known.get(name) ?? []), ...versions]))
  return [...known].flatMap(([name, versions]) => [...versions].map((version) => [name, version] as const))
}

function ownedBy(connection: Connection, worker: number): ReadonlyMap<string, number> {
  return new Map(connection.all<{ id: string; epoch: number }>(sql.owned, worker).map(({ id, epoch }) => [id, epoch]))
}

function load(
  connection: Connection,
  id: string,
  { after = 0, limit = Number.POSITIVE_INFINITY, snapshot = false }: LoadOptions,
): Loaded | null {
  const run = connection.get<StoredRun>(sql.run, id)
  if (run === undefined) return null
  const newest = snapshot ? (connection.get<{ seq: number; version: string; body: SqlValue }>(sql.newestSnapshot, run.rid) ?? null) : null
  const from = newest === null ? after : Math.max(after, newest.seq)
  const rows = eventsOf(connection, run.rid, from, limit)
  const taken: Snapshot | null = newest && { seq: newest.seq, version: newest.version, body: restored(newest.body) }
  return { row: runRow(run), rows: rows.map(({ seq, n, body }) => ({ seq, n, body: restored(body) })), snapshot: taken }
}

interface StoredEvents {
  readonly seq: number
  readonly n: number
  readonly body: SqlValue
}

function eventsOf(connection: Connection, rid: number, from: number, limit: number): readonly StoredEvents[] {
  const most = limitOf(limit)
  const batched = connection.all<StoredEvents>(sql.batched, rid, rid, from, from, most)
  const alone = connection.all<StoredEvents>(sql.alone, rid, rid, from, rid, rid, from, most)
  if (alone.length === 0) return batched
  return [...batched, ...alone].sort((a, b) => a.seq - b.seq).slice(0, most < 0 ? undefined : most)
}

/** Deletes a run with all that belongs to it, and the blobs that nobody refers to any more. */
function drop(connection: Connection, { rid, tags }: Ended): void {
  const hashes = connection.all<{ hash: string }>(sql.refsOf, rid)
  connection.run(sql.dropRefs, rid)
  connection.run(sql.dropAlone, rid, rid)
  for (const { hash } of hashes) connection.run(sql.dropBlob, hash)
  for (const [key, value] of Object.entries(JSON.parse(tags) as Record<string, string>)) connection.run(sql.dropTag, key, value, rid)
  for (const statement of [sql.dropBatched, sql.dropSnapshot, sql.dropMarks, sql.dropRecords, sql.dropRun]) connection.run(statement, rid)
}
