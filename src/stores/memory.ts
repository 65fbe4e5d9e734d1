import type {
  Append,
  EventRow,
  ListFilter,
  Mark,
  MarkRow,
  Peer,
  Put,
  RunRow,
  Snapshot,
  Store,
  StoredRecord,
  Verdict,
  Wanted,
} from '../engine/store.js'
import { isAppend } from '../engine/store.js'
import { checkNames } from './names.js'

interface Kept {
  row: RunRow
  wake: number | null
  snapshot: Snapshot | null
  readonly rows: EventRow[]
  readonly marks: Map<string, KeptMark>
  /** The keys of the records that were put with it. */
  readonly records: Set<string>
  readonly blobs: Set<string>
}

/** `place`: among the marks of all runs, the number of the one that was set first. */
interface KeptMark extends Mark {
  readonly place: number
}

/** `run`: what it belongs to. */
interface KeptRecord extends StoredRecord {
  readonly kind: string
  readonly key: string
  readonly run: string | null
}

/** `runs`: how many refer to it. */
interface KeptBlob {
  readonly body: string
  runs: number
}

interface Worker {
  beat: number
  /** The number of the newest commit it knows of. */
  seen: number
  readonly rung: Set<string>
}

/** Neither has a line break in it: names are checked before anything is kept. */
const keyOf = (kind: string, key: string): string => `${kind}\n${key}`

/**
 * A store in the memory of this process, for tests and for trying things out. Several engines may share one, as processes share a file.
 *
 * 1. All of a commit happens between two awaits, so a batch is atomic by construction.
 * 2. What is handed out is never changed afterwards.
 */
export function memoryStore(): Store {
  const runs = new Map<string, Kept>()
  /** Those that lie below a run, by its id: whoever lists runs asks for them at each. */
  const below = new Map<string, Map<string, Kept>>()
  /** Those that nobody owns and that will be due: however many others there are, a claim looks at no more. */
  const unowned = new Set<Kept>()
  const records = new Map<string, KeptRecord>()
  const blobs = new Map<string, KeptBlob>()
  const workers = new Map<number, Worker>()
  /** What each has said, also while it is fenced. */
  const ttls = new Map<number, number>()
  const wakers = new Set<() => void>()
  let joined = 0
  let created = 0
  let marked = 0
  let commits = 0

  function conflictOf(put: Put): Verdict | null {
    const found = records.get(keyOf(put.kind, put.key)) ?? null
    return (found?.revision ?? 0) === put.expect
      ? null
      : { ok: false, why: 'record', found: found && { revision: found.revision, body: found.body } }
  }

  function conflictIn(puts: readonly Put[]): Verdict | null {
    for (const put of puts) {
      const conflict = conflictOf(put)
      if (conflict !== null) return conflict
    }
    return null
  }

  function applyPut(put: Put, of?: Kept): void {
    const { kind, key, body, wakeMarked } = put
    const run = of?.row.id ?? records.get(keyOf(kind, key))?.run ?? null
    records.set(keyOf(kind, key), { kind, key, body, revision: put.expect + 1, run })
    if (run !== null) runs.get(run)?.records.add(keyOf(kind, key))
    if (wakeMarked === undefined) return
    for (const kept of runs.values()) {
      if (!kept.marks.has(keyOf(wakeMarked.kind, wakeMarked.key))) continue
      kept.wake = wakeMarked.at
      sort(kept)
      ring(kept.row)
    }
  }

  /** Called whenever its owner has changed, or when it is due. */
  function sort(kept: Kept): void {
    const { row, wake } = kept
    if (row.worker === null && row.endedAt === null && wake !== null) unowned.add(kept)
    else unowned.delete(kept)
  }

  function ring(row: RunRow): void {
    if (row.worker !== null) workers.get(row.worker)?.rung.add(row.id)
  }

  function append(item: Append): Verdict {
    const known = runs.get(item.run)
    const refusal = known === undefined ? (item.create === undefined ? 'gone' : null) : refusalOf(known, item)
    const conflict = item.puts === undefined ? null : conflictIn(item.puts)
    // A key that is taken says more than that the run exists: it may be the same start, sent again.
    if (conflict !== null && (refusal === null || refusal === 'exists')) return conflict
    if (refusal !== null) return { ok: false, why: refusal }
    const kept = known ?? create(item)
    apply(kept, item)
    // A worker that was fenced takes nothing, whatever it asks for.
    const took = item.own === 'take' ? kept.row.worker === item.by : item.create !== undefined
    return took ? { ok: true, epoch: kept.row.epoch } : { ok: true }
  }

  function change(item: Put): Verdict {
    const { puts = [] } = item
    const conflict = conflictOf(item) ?? conflictIn(puts)
    if (conflict !== null) return conflict
    applyPut(item)
    for (const put of puts) applyPut(put)
    return { ok: true }
  }

  function refusalOf({ row }: Kept, item: Append): 'exists' | 'epoch' | 'head' | null {
    if (item.create !== undefined) return 'exists'
    if (item.owner !== undefined && (row.worker !== item.owner.worker || row.epoch !== item.owner.epoch)) return 'epoch'
    return row.head === item.expect ? null : 'head'
  }

  function create(item: Append): Kept {
    const { definition, version, tags } = item.create ?? { definition: '', version: '', tags: {} }
    const row = {
      order: ++created,
      id: item.run,
      definition,
      version,
      tags,
      status: 'running',
      waits: [],
      head: 0,
      epoch: 0,
      worker: null,
      startedAt: item.at,
      endedAt: null,
    }
    const kept: Kept = { row, wake: null, snapshot: null, rows: [], marks: new Map(), records: new Set(), blobs: new Set() }
    runs.set(item.run, kept)
    const top = topOf(item.run)
    if (top !== null) below.set(top, (below.get(top) ?? new Map<string, Kept>()).set(item.run, kept))
    return kept
  }

  function apply(kept: Kept, item: Append): void {
    const { row } = kept
    for (const events of item.rows) kept.rows.push(events)
    if (item.by !== row.worker) ring(row)
    // Made for every append, so each field is named: to spread the row costs as much as all else here.
    kept.row = {
      order: row.order,
      id: row.id,
      definition: row.definition,
      version: item.version ?? row.version,
      tags: row.tags,
      status: item.status ?? row.status,
      waits: item.waits ?? row.waits,
      head: item.head,
      epoch: item.own === 'take' ? row.epoch + 1 : row.epoch,
      worker: ownerAfter(row, item),
      startedAt: row.startedAt,
      endedAt: item.ended ? item.at : row.endedAt,
    }
    if (item.wake !== undefined) kept.wake = item.wake
    if (item.own === 'take' && !workers.has(item.by)) kept.wake = item.at
    sort(kept)
    if (item.snapshot !== undefined) kept.snapshot = item.snapshot
    if (item.marks !== undefined) for (const mark of item.marks) applyMark(kept, mark)
    if (item.puts !== undefined) for (const put of item.puts) applyPut(put, kept)
    if (item.blobs !== undefined) for (const { hash, body } of item.blobs) refer(kept, hash, body)
  }

  function applyMark({ marks }: Kept, { kind, key, body }: Mark): void {
    const name = keyOf(kind, key)
    if (body === null) marks.delete(name)
    else marks.set(name, { kind, key, body, place: marks.get(name)?.place ?? ++marked })
  }

  /** A worker that was fenced can take nothing: what it would take is due at once. */
  function ownerAfter(row: RunRow, item: Append): number | null {
    if (item.ended || item.own === 'release') return null
    if (item.own !== 'take') return row.worker
    return workers.has(item.by) ? item.by : null
  }

  function refer(kept: Kept, hash: string, body: string): void {
    const blob = blobs.get(hash) ?? { body, runs: 0 }
    blobs.set(hash, blob)
    if (!kept.blobs.has(hash)) blob.runs++
    kept.blobs.add(hash)
  }

  /** Deletes a run with all that belongs to it, and the blobs that nobody refers to any more. */
  function drop(id: string, kept: Kept): void {
    runs.delete(id)
    unowned.delete(kept)
    const top = topOf(id)
    const beside = top === null ? undefined : below.get(top)
    beside?.delete(id)
    if (top !== null && beside?.size === 0) below.delete(top)
    for (const key of kept.records) if (records.get(key)?.run === id) records.delete(key)
    for (const hash of kept.blobs) {
      const blob = blobs.get(hash)
      if (blob !== undefined && --blob.runs === 0) blobs.delete(hash)
    }
  }

  function free(worker: number, at: number): number {
    let freed = 0
    for (const kept of runs.values()) {
      if (kept.row.worker !== worker) continue
      kept.row = { ...kept.row, worker: null }
      kept.wake = at
      sort(kept)
      freed++
    }
    workers.delete(worker)
    return freed
  }

  /** Everybody has to look again; the one who commits knows what it did. */
  function committed(by: number | null): void {
    commits++
    const self = by === null ? undefined : workers.get(by)
    if (self !== undefined && self.seen === commits - 1) self.seen = commits
    for (const wake of wakers) wake()
  }

  const claimable = ({ row }: Kept, { definitions, except = [], only }: Wanted): boolean =>
    (only === undefined || row.id === only || row.id.startsWith(`${only}:`)) &&
    !except.some(({ run, head }) => run === row.id && head === row.head) &&
    definitions.some(({ name, versions }) => name === row.definition && versions.includes(row.version))

  return Object.freeze<Store>({
    promises: Object.freeze({ durable: 'none', reach: 'process', maxValue: 16 * 2 ** 20 }),
    join: async ({ ttlMs }) => {
      if (ttlMs !== undefined) ttls.set(joined + 1, ttlMs)
      workers.set(++joined, { beat: 0, seen: commits, rung: new Set() })
      committed(joined)
      return joined
    },
    leave: async (worker, at) => {
      free(worker, at)
      ttls.delete(worker)
      committed(null)
    },
    beat: async (worker) => {
      const self = workers.get(worker)
      if (self !== undefined) self.beat++
      else {
        workers.set(worker, { beat: 0, seen: -1, rung: new Set() })
        committed(worker)
      }
      const peers: Peer[] = []
      for (const [number, { beat }] of workers) {
        const ttlMs = ttls.get(number)
        if (number !== worker) peers.push({ worker: number, beat, gone: false, ...(ttlMs !== undefined && { ttlMs }) })
      }
      return peers
    },
    fence: async (peer, at) => {
      if (workers.get(peer.worker)?.beat !== peer.beat) return 0
      const freed = free(peer.worker, at)
      committed(null)
      return freed
    },
    claim: async ({ worker, now, limit, ...wanted }) => {
      const rows: RunRow[] = []
      let nextWake: number | null = null
      const waiting: { kept: Kept; wake: number }[] = []
      for (const kept of unowned) if (kept.wake !== null && claimable(kept, wanted)) waiting.push({ kept, wake: kept.wake })
      for (const { kept, wake } of waiting.sort((a, b) => a.wake - b.wake || a.kept.row.order - b.kept.row.order)) {
        // A worker that was fenced is given nothing: nobody would ever take it back.
        if (wake > now || rows.length >= limit || !workers.has(worker)) nextWake ??= wake
        else {
          kept.row = { ...kept.row, worker, epoch: kept.row.epoch + 1 }
          sort(kept)
          rows.push(kept.row)
        }
      }
      if (rows.length > 0) committed(worker)
      return { rows, nextWake }
    },
    commit: async (batch) => {
      for (const item of batch) checkNames(item)
      const verdicts: Verdict[] = []
      let by: number | null = null
      for (const item of batch) {
        if (!isAppend(item)) verdicts.push(change(item))
        else {
          verdicts.push(append(item))
          by ??= item.by
        }
      }
      committed(by)
      return verdicts
    },
    load: async (run, { after = 0, limit = Number.POSITIVE_INFINITY, snapshot = false } = {}) => {
      const kept = runs.get(run)
      if (kept === undefined) return null
      const from = snapshot && kept.snapshot !== null ? Math.max(after, kept.snapshot.seq) : after
      const first = firstAfter(kept.rows, from)
      return { row: kept.row, rows: kept.rows.slice(first, first + limit), snapshot: snapshot ? kept.snapshot : null }
    },
    list: async (filter) => {
      const found: RunRow[] = []
      const top = filter.prefix === undefined ? null : topOf(filter.prefix)
      const among = top === null ? runs : (below.get(top) ?? new Map<string, Kept>())
      for (const { row } of [...among.values()].reverse()) {
        if (found.length >= filter.limit) break
        if (matches(row, filter)) found.push(row)
      }
      return found
    },
    marks: async ({ kind, run }) => {
      const found: { readonly place: number; readonly mark: MarkRow }[] = []
      const one = run === undefined ? undefined : runs.get(run)
      for (const [id, { marks }] of run === undefined ? runs : one === undefined ? [] : [[run, one] as const]) {
        for (const { place, ...mark } of marks.values()) if (mark.kind === kind) found.push({ place, mark: { run: id, ...mark } })
      }
      return found.sort((a, b) => a.place - b.place).map(({ mark }) => mark)
    },
    record: async (kind, key) => {
      const found = records.get(keyOf(kind, key))
      return found === undefined ? null : { revision: found.revision, body: found.body }
    },
    records: async (kind) =>
      [...records.values()]
        .filter((record) => record.kind === kind)
        .map(({ key, revision, body }) => ({ key, revision, body }))
        .sort((a, b) => (a.key < b.key ? -1 : 1)),
    blob: async (hash) => blobs.get(hash)?.body ?? null,
    moved: (worker) => {
      const self = workers.get(worker)
      if (self === undefined) return true
      const moved = self.seen !== commits
      self.seen = commits
      return moved
    },
    mine: async (worker) => {
      const self = workers.get(worker)
      const rung = [...(self?.rung ?? [])]
      self?.rung.clear()
      return { owned: new Map([...runs].flatMap(([id, { row }]) => (row.worker === worker ? [[id, row.epoch] as const] : []))), rung }
    },
    onMoved: (wake) => {
      wakers.add(wake)
      return () => wakers.delete(wake)
    },
    gc: async ({ endedBefore, limit }) => {
      const isNeeded = (id: string): boolean => runs.get(topOf(id) ?? '')?.row.endedAt === null
      let deleted = 0
      // First what lies below others, then those.
      for (let gone = 1; gone > 0 && deleted < limit; deleted += gone) {
        const old = [...runs]
          .filter(([id, { row }]) => row.endedAt !== null && row.endedAt < endedBefore && !isNeeded(id) && !below.has(id))
          .sort(byEnd)
          .slice(0, limit - deleted)
        for (const [id, kept] of old) drop(id, kept)
        gone = old.length
      }
      if (deleted > 0) committed(null)
      return deleted
    },
    close: async () => {},
  })
}

/** The run that an id lies below, as `r:step` and `r:step:undo` do below `r`; null if below none. */
function topOf(id: string): string | null {
  const end = id.indexOf(':')
  return end < 0 ? null : id.slice(0, end)
}

/** The first row that holds an event after a sequence number. */
function firstAfter(rows: readonly EventRow[], after: number): number {
  let low = 0
  for (let high = rows.length; low < high; ) {
    const middle = (low + high) >> 1
    const row = rows[middle]
    if (row !== undefined && row.seq + row.n - 1 <= after) low = middle + 1
    else high = middle
  }
  return low
}

const byEnd = ([, a]: readonly [string, Kept], [, b]: readonly [string, Kept]): number => (a.row.endedAt ?? 0) - (b.row.endedAt ?? 0)

function matches(row: RunRow, filter: ListFilter): boolean {
  return (
    (filter.status === undefined || filter.status.includes(row.status)) &&
    (filter.definition === undefined || filter.definition === row.definition) &&
    (filter.since === undefined || row.startedAt >= filter.since) &&
    (filter.prefix === undefined || row.id.startsWith(filter.prefix)) &&
    (filter.before === undefined || row.order < filter.before) &&
    Object.entries(filter.tags ?? {}).every(([key, value]) => row.tags[key] === value)
  )
}
