import type { Maybe } from '../define/maybe.js'
import type { Event } from '../kernel/event.js'
import { evolve } from '../kernel/evolve.js'
import type { State } from '../kernel/state.js'
import { newState } from '../kernel/state.js'
import { thrownText } from '../kernel/thrown-text.js'
import { agentKind } from './agent-record.js'
import { JournalDamaged } from './codec.js'
import { eventsOf } from './journal.js'
import { waitFor } from './out-of-reach.js'
import type { KnownRuns } from './known-runs.js'
import type { RunEntry, Unsure } from './run-entry.js'
import type { Seam } from './seam.js'
import type { Append, EventRow, Loaded, RunRow, Store } from './store.js'
import type { LogEntry } from './tutti.js'

export interface LookoutPort {
  readonly store: Store
  readonly worker: number
  readonly onLog: (entry: LogEntry) => void
  /** With a harness every question is put to the store: it decides what happens in between. */
  readonly seam: Seam | undefined
  isClosed(): boolean
  /** The runs that this process knows. */
  readonly runs: KnownRuns
  /** Somebody else has committed. */
  moved(): void
  /** What there is to know of agents is read again. */
  refreshAgents(): Promise<void>
  /** The loop looks at a run; `passes` resolves when it has. */
  wake(entry: RunEntry): void
  passes(entry: RunEntry): Promise<void>
  /** Something of a run is durable that this process did not know. */
  advance(entry: RunEntry, events: readonly Event[], state: State): void
  /** Somebody else owns the run now. */
  lost(entry: RunEntry): void
  /** Its journal can't be read: nothing is decided of it any more. */
  damaged(entry: RunEntry, error: JournalDamaged): void
  /** The store keeps the run no longer. */
  gone(entry: RunEntry): void
  /** What came of an append that nobody was sure of is known now, and the state is what it led to. */
  foundOut(entry: RunEntry, unsure: Unsure, isThere: boolean): void
}

/**
 * For so long an append of its owner shows that nobody else has the run, and that nobody had cancelled it: it would have been refused; and so long
 * what the store said last counts for all that begins in the same macrotask. It is no longer than what passes between asking the store and starting an effect when a process is busy, and that nobody can close.
 */
const provenNs = 200_000n

/** Others may have written to it: nobody here owns it, or somebody said so, and it is not read yet. */
export function isBehind(entry: RunEntry): boolean {
  return entry.stale || entry.reading !== null || (entry.owner === null && entry.state !== newState)
}

/** Whether somebody waits for what comes of it: that must be right as of now. */
const isAsked = ({ queue }: RunEntry): boolean => queue.some(({ owned }) => !owned)

/** Whether an append is what follows in the journal; one without events leaves no trace there. */
function isFollowing({ rows }: Append, found: readonly EventRow[]): boolean {
  return rows.length > 0 && rows.every(({ seq, body }, index) => found[index]?.seq === seq && found[index].body === body)
}

/** Whether what the store has under the id of a run is the run that is known: that may have been deleted, and its id used again. */
export function isSameRun({ order, state }: RunEntry, row: RunRow): boolean {
  return order === null ? row.startedAt === state.run?.startedAt : row.order === order
}

/** The agents that a run waits for, as the store knows it. */
export async function markedIn(store: Store, { id, waits }: RunRow): Promise<RunEntry['marked']> {
  const marks = waits.includes('agent') ? await store.marks({ kind: agentKind, run: id }) : []
  return new Map(marks.map(({ key, body }) => [key, JSON.parse(body ?? 'null') as number | null]))
}

/**
 * Knows what others have written to the store, as far as this process must: before an effect starts, before something is decided that
 * somebody waits for, and before anybody is shown how a run stands.
 *
 * 1. A run is read by one at a time, and not while the loop commits to it.
 * 2. What was committed while a look was under way is looked at again.
 * 3. Who asks may be among those that are told, and ask again: so they are told once in a macrotask, and of what could not be looked at
 *    when it could.
 */
export class Lookout {
  readonly #port: LookoutPort
  #looking: Promise<void> | null = null
  /** There is something to look at that no look has seen. */
  #lookAgain = false
  #failures = 0
  #isRingLost = false
  /** How often it was heard that others have committed. */
  #heard = 0
  /** In this macrotask it was told that others have committed; `again`: and once more. */
  #told: 'no' | 'once' | 'again' = 'no'
  #asked = false
  /** By the process's own clock. */
  #askedAt = 0n
  readonly #askAgain = (): void => {
    this.#asked = false
  }

  constructor(port: LookoutPort) {
    this.#port = port
  }

  /** Whether this process may still start an effect of a run: asked before each turn, mostly before each step, and cheap while nobody else writes. */
  stillOwns(entry: RunEntry): Maybe<boolean> {
    if (this.#port.isClosed()) return false
    this.#askMoved()
    if (this.#looking === null && entry.owner === null) return false
    return this.#looking === null && !isBehind(entry) ? true : this.#ownsStill(entry)
  }

  /** The same of a step: what its run's own append has just shown need not be asked again. */
  goesOnOwning(entry: RunEntry): Maybe<boolean> {
    if (this.#port.seam === undefined && process.hrtime.bigint() - entry.provenAt < provenNs && entry.owner !== null && !isBehind(entry))
      return !this.#port.isClosed()
    return this.stillOwns(entry)
  }

  /** What others have done is known before an effect starts: it may be what was not to start any more. */
  async #ownsStill(entry: RunEntry): Promise<boolean> {
    await this.catchUp(entry)
    return entry.owner !== null
  }

  /** Asked once for all that goes on at the same time. Many turns that begin in one macrotask take a while, and the process may have been frozen between two. */
  #askMoved(): void {
    if (this.#port.seam === undefined) {
      const now = process.hrtime.bigint()
      if (this.#asked && now - this.#askedAt < provenNs) return
      if (!this.#asked) queueMicrotask(this.#askAgain)
      this.#asked = true
      this.#askedAt = now
    }
    this.onMoved()
  }

  /** The store says it once: whoever asks tells all that wait for it. */
  onMoved(): void {
    if (this.#port.isClosed()) return
    const owed = this.#lookAgain && this.#looking === null
    const moved = this.#port.store.moved(this.#port.worker)
    if (moved) this.#heard++
    if (!moved && !owed) return
    this.look()
    // What can't be looked at now is told when it could be.
    if (moved && this.#failures === 0) this.#tell()
  }

  #tell(): void {
    if (this.#port.seam !== undefined) return this.#port.moved()
    if (this.#told !== 'no') {
      this.#told = 'again'
      return
    }
    this.#told = 'once'
    setImmediate(() => {
      const again = this.#told === 'again'
      this.#told = 'no'
      if (again && !this.#port.isClosed()) this.#tell()
    })
    this.#port.moved()
  }

  /** The store could not be looked at: nobody else would try it again while nobody asks. */
  #failed(error: unknown): void {
    this.#lookAgain = true
    this.#port.onLog({ level: 'warn', message: `the store could not be looked at: ${thrownText(error)}` })
    const again = (): void => {
      if (this.#lookAgain) this.look()
    }
    const waitMs = waitFor(this.#failures++)
    if (this.#port.seam === undefined) setTimeout(again, waitMs).unref()
    else this.#port.seam.later(again, waitMs)
  }

  /** What could not be looked at for a while was told to nobody. */
  #succeeded(): void {
    if (this.#failures === 0) return
    this.#failures = 0
    this.#tell()
  }

  /** Somebody else has committed: which runs are still ours, and in which has something happened? */
  look(): void {
    if (this.#port.isClosed()) return
    // What was committed after the look under way had read is not in it.
    this.#lookAgain = true
    this.#looking ??= this.#lookNow()
      .then(
        () => this.#succeeded(),
        (error: unknown) => this.#failed(error),
      )
      .finally(() => {
        this.#looking = null
      })
  }

  async #lookNow(): Promise<void> {
    while (this.#lookAgain) {
      this.#lookAgain = false
      await this.lookAtOurs()
      await this.#port.refreshAgents()
    }
  }

  /** The runs that the store has given this worker, each with its epoch. What is not among them any more is lost. */
  async lookAtOurs(): Promise<ReadonlyMap<string, number>> {
    const { runs } = this.#port
    // What becomes ours while the store is asked may not be in its answer.
    const held = [...runs.values()].flatMap((entry) => (entry.owner === null ? [] : [{ entry, owner: entry.owner }]))
    const { owned, rung } = await this.#mine()
    for (const { entry, owner } of held) if (entry.owner === owner && owned.get(entry.id) !== owner.epoch) this.#port.lost(entry)
    for (const id of rung) {
      const entry = runs.get(id)
      if (entry === undefined) continue
      entry.stale = true
      this.#port.wake(entry)
    }
    return owned
  }

  /** Who has rung the store says once: where its answer was lost, it may have been for any of our runs. */
  async #mine(): Promise<{ readonly owned: ReadonlyMap<string, number>; readonly rung: Iterable<string> }> {
    const isLost = this.#isRingLost
    this.#isRingLost = false
    try {
      const { owned, rung } = await this.#port.store.mine(this.#port.worker)
      return { owned, rung: isLost ? [...owned.keys(), ...rung] : rung }
    } catch (error) {
      this.#isRingLost = true
      throw error
    }
  }

  /**
   * Before anything is decided, what others did is read. If only the owner speaks nobody is asked: others can but pause, cancel or
   * answer, so that what is refused stays refused, and what is not is refused by the store. Null: there is nothing to wait for.
   */
  refresh(entries: readonly RunEntry[]): Promise<void> | null {
    if (entries.some(isAsked)) this.#askMoved()
    return this.#looking === null && !entries.some(isBehind) ? null : this.#readAll(entries)
  }

  async #readAll(entries: readonly RunEntry[]): Promise<void> {
    if (this.#looking !== null) await this.#looking
    for (const entry of entries) if (isBehind(entry) && entry.broken === null) await this.#readOrBreak(entry)
  }

  /** One that can't be read must not hold up those that are read with it. */
  async #readOrBreak(entry: RunEntry): Promise<void> {
    try {
      await this.readNext(entry)
    } catch (error) {
      if (!(error instanceof JournalDamaged)) throw error
      this.#port.damaged(entry, error)
    }
  }

  /** Before anybody is shown how a run stands, what others did to it is read. */
  seeNow(entry: RunEntry): Maybe<void> {
    this.#askMoved()
    return this.#looking !== null || isBehind(entry) ? this.catchUp(entry) : undefined
  }

  /** Nothing happens to a run that is over, but that it is deleted: so it is read again only if others have committed since. */
  seeOver(entry: RunEntry): Promise<void> | undefined {
    if (this.#port.isClosed()) return undefined
    this.#askMoved()
    return entry.seenAt === this.#heard ? undefined : this.readNext(entry)
  }

  /** A run is over, and is there. */
  sawOver(entry: RunEntry): void {
    entry.seenAt = this.#heard
  }

  /** Reads what others have done to a run. If it is ours the loop does, because what it is committing must not be read as if others had done it. */
  async catchUp(entry: RunEntry): Promise<void> {
    if (this.#looking !== null) await this.#looking
    for (;;) {
      if (entry.reading !== null) await entry.reading
      else if (entry.owner === null) return isBehind(entry) ? this.#read(entry) : undefined
      else if (entry.stale && entry.broken === null && !this.#port.isClosed()) await this.#port.passes(entry)
      else return
    }
  }

  async readNext(entry: RunEntry): Promise<void> {
    while (entry.reading !== null) await entry.reading
    await this.#read(entry)
  }

  /** Nobody reads it now; whoever wants to waits for this one. */
  #read(entry: RunEntry): Promise<void> {
    const reading = this.#readOn(entry)
    const over = (): void => {
      entry.reading = null
    }
    entry.reading = reading.then(over, over)
    return reading
  }

  async #readOn(entry: RunEntry): Promise<void> {
    const { store } = this.#port
    const { unsure } = entry
    entry.stale = false
    try {
      const heard = this.#heard
      const loaded = await store.load(entry.id, { after: entry.state.seq })
      if (!this.#isThere(entry, loaded)) {
        this.#port.gone(entry)
        if (unsure !== null) this.#foundOut(entry, unsure.item, false)
        return
      }
      entry.seenAt = heard
      const read = loaded === null ? [] : await eventsOf(store, loaded, entry.state.seq)
      // It was deleted meanwhile.
      if (read === null) return await this.#readOn(entry)
      const marked = loaded === null || unsure === null ? entry.marked : await markedIn(store, loaded.row)
      const isThere = loaded !== null && unsure !== null && isFollowing(unsure.item, loaded.rows)
      if (isThere) this.#own(entry, unsure.item, loaded.row)
      if (entry.owner !== null) entry.marked = marked
      // Somebody else may have read them meanwhile.
      const events = read.filter(({ seq }) => seq > entry.state.seq)
      if (events.length > 0) this.#port.advance(entry, events, events.reduce(evolve, entry.state))
      if (unsure !== null) this.#foundOut(entry, unsure.item, isThere)
    } catch (error) {
      entry.stale = true
      throw error
    }
  }

  /** One that nobody here knows anything of yet may be there or not. */
  #isThere(entry: RunEntry, loaded: Loaded | null): boolean {
    if (entry.state !== newState && (loaded === null || !isSameRun(entry, loaded.row))) return false
    entry.order = loaded?.row.order ?? null
    return true
  }

  /** A run that is found to have been made here is ours, unless it was taken from us since. */
  #own(entry: RunEntry, { create }: Append, { worker, epoch }: RunRow): void {
    if (create !== undefined && worker === this.#port.worker) entry.owner ??= { worker, epoch }
  }

  /** Whoever waits for it may be others by now than when the reading began. */
  #foundOut(entry: RunEntry, item: Append, isThere: boolean): void {
    const { unsure } = entry
    if (unsure?.item !== item) return
    entry.unsure = null
    this.#port.foundOut(entry, unsure, isThere)
  }
}
