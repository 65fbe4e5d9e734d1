/**
 * The port to where runs are kept. A store never looks into payloads: it commits, loads, lists, claims and compares.
 *
 * 1. A batch is one transaction: each item is done whole or not at all, and one item's conflict never fails the others.
 * 2. An append succeeds only if the run's head is what it expects and, where it names an owner, only while that worker owns the run
 *    under that epoch.
 * 3. What `commit` has answered is as durable as `promises` says.
 * 4. A run has at most one owner; each change of owner raises its epoch, in the same write.
 */
export interface Store {
  readonly promises: StorePromises
  /** Makes a worker known and gives its number, which is never given again. `ttlMs`: for how long it may be silent. */
  join(worker: { readonly nonce: string; readonly ttlMs?: number }): Promise<number>
  /** Forgets a worker and gives its runs back, due at `at`. */
  leave(worker: number, at: number): Promise<void>
  /**
   * Says that a worker is alive, and what is known of all others. One that was fenced meanwhile joins again and owns nothing; the others
   * are told, as of one that joins.
   */
  beat(worker: number): Promise<readonly Peer[]>
  /** Declares a worker dead if its beat is still the one that was seen, and gives its runs back, due at `at`; how many these were. */
  fence(peer: { readonly worker: number; readonly beat: number }, at: number): Promise<number>
  /** Takes runs of these definitions that nobody owns and that are due; each with a new epoch. */
  claim(wanted: Wanted & { readonly worker: number; readonly now: number; readonly limit: number }): Promise<Claimed>
  /**
   * Rejects with STORE_LOCKED or STORE_UNAVAILABLE when it can't say what came of the batch: all of it may be there, or nothing. What is no
   * TuttiError, here and in all others that give a promise, is taken for STORE_UNAVAILABLE.
   */
  commit(batch: readonly (Append | Put)[]): Promise<readonly Verdict[]>
  load(run: string, options?: LoadOptions): Promise<Loaded | null>
  /** The runs, newest first. */
  list(filter: ListFilter): Promise<readonly RunRow[]>
  /** In the order in which they were first set, of all runs together; one that is changed keeps its place. */
  marks(filter: MarkFilter): Promise<readonly MarkRow[]>
  record(kind: string, key: string): Promise<StoredRecord | null>
  /** All records of a kind, by key. */
  records(kind: string): Promise<readonly (StoredRecord & { readonly key: string })[]>
  blob(hash: string): Promise<string | null>
  /** False: certainly nobody but this worker has committed since it last asked. Cheap: it is asked before every effect. */
  moved(worker: number): boolean
  /** Which runs a worker owns, under which epoch, and for which of them somebody rang since it last asked. */
  mine(worker: number): Promise<{ readonly owned: ReadonlyMap<string, number>; readonly rung: readonly string[] }>
  /** Calls when somebody may have committed; gives a function that stops it. */
  onMoved(wake: () => void): () => void
  /**
   * Deletes runs that ended before a time, with all that belongs to them, at most `limit` of them; how many these were. What lies below a
   * run that has not ended, as `r:step` and `r:step:undo` do below `r`, is still needed by it and stays; and that run stays until nothing lies
   * below it, or the next of its id would take over what is left of it.
   */
  gc(what: { readonly endedBefore: number; readonly limit: number }): Promise<number>
  close(): Promise<void>
}

export interface StorePromises {
  /** What survives: nothing, the death of the process, or a power cut. */
  readonly durable: 'none' | 'process' | 'power'
  /** Who can share it. */
  readonly reach: 'process' | 'machine' | 'fleet'
  /** How many bytes one value may have. */
  readonly maxValue: number
}

/**
 * Another worker. `gone`: it is certainly dead, so that nobody need wait for its beat. `ttlMs`: what it said when it joined first, if it did and
 * the store has kept it.
 */
export interface Peer {
  readonly worker: number
  readonly beat: number
  readonly gone: boolean
  readonly ttlMs?: number
}

/** A definition that a worker can execute, with the versions of runs that it goes on with. */
export interface Executable {
  readonly name: string
  readonly versions: readonly string[]
}

/** A run that a worker was given and can't go on with, as long as its journal ends where it does. */
export interface Refused {
  readonly run: string
  readonly head: number
}

/** Which runs a worker takes. */
export interface Wanted {
  readonly definitions: readonly Executable[]
  /** These are left to others. */
  readonly except?: readonly Refused[]
  /** If given, only this run and those below it. */
  readonly only?: string
}

/** `nextWake`: when the earliest of what is left is due, of these definitions and owned by nobody; in the past if `limit` left some. */
export interface Claimed {
  readonly rows: readonly RunRow[]
  readonly nextWake: number | null
}

/** Several events of one append, packed: `seq` is the first, `n` how many. */
export interface EventRow {
  readonly seq: number
  readonly n: number
  readonly body: string
}

/** What is added to one run; all or nothing. What is absent stays as it is. */
export interface Append {
  readonly run: string
  /** Given for a new run; `exists` if there is one of this id. */
  readonly create?: { readonly definition: string; readonly version: string; readonly tags: Readonly<Record<string, string>> }
  /** The sequence before and after. */
  readonly expect: number
  readonly head: number
  /** Given by the owner; absent: a command from elsewhere. */
  readonly owner?: { readonly worker: number; readonly epoch: number }
  /** Who commits: nobody rings for it. */
  readonly by: number
  readonly rows: readonly EventRow[]
  readonly at: number
  readonly status?: string
  /** Given where the run goes on under another version of its definition. */
  readonly version?: string
  /** What the run waits for, for those who list it. */
  readonly waits?: readonly string[]
  /** When an unowned run is due; null: not until something happens to it. */
  readonly wake?: number | null
  readonly ended?: boolean
  /**
   * `take`: whoever commits becomes its owner, under a new epoch; but a worker that was fenced does not: the run is then due at `at`, for
   * others. `release`: nobody owns it any more.
   */
  readonly own?: 'take' | 'release'
  readonly marks?: readonly Mark[]
  readonly puts?: readonly Put[]
  readonly blobs?: readonly { readonly hash: string; readonly body: string }[]
  readonly snapshot?: Snapshot
}

/** A fold of the journal up to `seq`, so that a long run loads fast. */
export interface Snapshot {
  readonly seq: number
  readonly version: string
  readonly body: string
}

/** Something a run can be found by; a null body takes it away. */
export interface Mark {
  readonly kind: string
  readonly key: string
  readonly body: string | null
}

/**
 * A record changed by compare-and-set: `expect` is its revision, 0 if it must not exist. Inside an append it belongs to that run and is
 * deleted with it. `wakeMarked`: every run with this mark is due at `at` and its owner is rung, in the same write. `puts`: others that are
 * done with it; if one of them can't be, none is.
 */
export interface Put {
  readonly kind: string
  readonly key: string
  readonly expect: number
  readonly body: string
  readonly wakeMarked?: { readonly kind: string; readonly key: string; readonly at: number }
  readonly puts?: readonly Put[]
}

export interface StoredRecord {
  readonly revision: number
  readonly body: string
}

/** `epoch` is given where the append made a run or took it; a worker that was fenced takes none. */
export type Verdict =
  | { readonly ok: true; readonly epoch?: number }
  | { readonly ok: false; readonly why: 'head' | 'epoch' | 'exists' | 'gone' }
  | { readonly ok: false; readonly why: 'record'; readonly found: StoredRecord | null }

export interface RunRow {
  /** Where it stands among all runs, oldest first: the cursor of a listing. */
  readonly order: number
  readonly id: string
  readonly definition: string
  readonly version: string
  readonly tags: Readonly<Record<string, string>>
  readonly status: string
  readonly waits: readonly string[]
  readonly head: number
  readonly epoch: number
  readonly worker: number | null
  readonly startedAt: number
  readonly endedAt: number | null
}

/** `after`: only rows that hold events after this one. `snapshot`: the newest one too, and then only rows after it. */
export interface LoadOptions {
  readonly after?: number
  readonly limit?: number
  readonly snapshot?: boolean
}

export interface Loaded {
  readonly row: RunRow
  readonly rows: readonly EventRow[]
  readonly snapshot: Snapshot | null
}

export interface ListFilter {
  readonly status?: readonly string[]
  readonly definition?: string
  readonly tags?: Readonly<Record<string, string>>
  readonly since?: number
  /** Only those whose id begins so. */
  readonly prefix?: string
  /** Only those that are older than the run of this order. */
  readonly before?: number
  readonly limit: number
}

export interface MarkFilter {
  readonly kind: string
  readonly run?: string
}

export interface MarkRow extends Mark {
  readonly run: string
}

/** When a run is due that is due now: no time of a clock, which may be set back, and what it was due by then would be long to come. */
export const dueNow = 0

/** What a store says of a batch that it has written before anybody could wait for it. */
const saidAtOnce: unique symbol = Symbol('said at once')

/** The verdicts of a batch that is durable already: whoever knows how to look need not wait. */
export function atOnce(verdicts: readonly Verdict[]): Promise<readonly Verdict[]> {
  // Not frozen: Node itself writes to promises.
  return Object.assign(Promise.resolve(verdicts), { [saidAtOnce]: verdicts })
}

/** The verdicts, if they are there already. */
export function verdictsNow(said: Promise<readonly Verdict[]>): readonly Verdict[] | undefined {
  return (said as { readonly [saidAtOnce]?: readonly Verdict[] })[saidAtOnce]
}

/** Tells the two kinds of a batch apart. */
export function isAppend(item: Append | Put): item is Append {
  return 'run' in item
}
