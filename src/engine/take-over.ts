import { missedBy, unbegunIn } from './child-run.js'
import type { Command } from '../kernel/command.js'
import { newState } from '../kernel/state.js'
import { thrownText } from '../kernel/thrown-text.js'
import { JournalDamaged } from './codec.js'
import type { Engine } from './engine.js'
import { isSameRun, type Lookout, markedIn } from './lookout.js'
import { isOutOfReach } from './out-of-reach.js'
import type { KnownRuns } from './known-runs.js'
import type { Outcome, RunEntry } from './run-entry.js'
import { dueNow, type Refused, type RunRow } from './store.js'

export interface TakeOverPort {
  readonly engine: Engine
  readonly lookout: Lookout
  /** The runs that this process knows. */
  readonly runs: KnownRuns
  /** Says something for the owner of a run. */
  submit(entry: RunEntry, command: Command): Promise<Outcome>
  /** What was said of a run is so of those that it waits for. */
  align(entry: RunEntry): Promise<void>
  lost(entry: RunEntry): void
  gone(entry: RunEntry): void
  /** Those are told who wait for what happens in a run. */
  told(entry: RunEntry): void
}

/**
 * Takes over the runs that the store has given this worker, or gives them back.
 *
 * 1. Nothing of a run is performed before its claim is in the journal.
 * 2. A run that the definitions of this process can't go on with is not asked for again as long as nothing happens to it.
 */
export class TakeOver {
  readonly #port: TakeOverPort
  /** Each with where its journal ended then. */
  readonly #refused = new Map<string, number>()

  constructor(port: TakeOverPort) {
    this.#port = port
  }

  /** The runs that were given to this worker and that its definitions can't go on with. */
  get refused(): readonly Refused[] {
    return [...this.#refused].map(([run, head]) => ({ run, head }))
  }

  /** Whether nothing has happened to a run since it was found that this process can't go on with it. */
  refuses({ id, head }: RunRow): boolean {
    return this.#refused.get(id) === head
  }

  forget(runId: string): void {
    this.#refused.delete(runId)
  }

  /** There is another definition: all may be tried again. Whether there were any. */
  tryAgain(): boolean {
    const some = this.#refused.size > 0
    this.#refused.clear()
    return some
  }

  /** This worker was given a run: what it owes is performed once the claim is in the journal. */
  async claimed(row: RunRow): Promise<void> {
    try {
      await this.#take(row)
    } catch (error) {
      this.#port.engine.options.onLog({
        level: 'error',
        message: `a run could not be claimed: ${thrownText(error)}`,
        runId: row.id,
      })
      // Then it is tried again; what can't be read will not be better then, and must not keep this worker from all others.
      if (isOutOfReach(error) && !(error instanceof JournalDamaged)) throw error
    }
  }

  /** Takes over what the store has given this worker without its knowing. What is being made here is no such thing. */
  async reclaim(): Promise<void> {
    const { engine, lookout, runs } = this.#port
    const { store, worker } = engine.options
    for (const [id, epoch] of await lookout.lookAtOurs()) {
      const entry = runs.get(id)
      const isKnown = entry?.owner?.epoch === epoch && !entry.claiming
      if (isKnown || entry?.state === newState) continue
      const loaded = await store.load(id, { after: Number.MAX_SAFE_INTEGER })
      if (loaded?.row.worker === worker && loaded.row.epoch === epoch) await this.claimed(loaded.row)
    }
  }

  async #take(row: RunRow): Promise<void> {
    const { engine, lookout, runs } = this.#port
    const { store, worker } = engine.options
    const known = await engine.entry(row.id)
    if (known !== null && known.state !== newState && !isSameRun(known, row)) this.#port.gone(known)
    const entry = await engine.entry(row.id)
    if (entry === null) return
    if (entry.owner !== null) this.#port.lost(entry)
    // Somebody here is trying to start it, and has not heard yet that it is there; or has looked at it, and it has gone on since.
    if (entry.state.seq < row.head) await lookout.readNext(entry)
    const definition = await engine.definitionOf(entry.state, row.version)
    if (definition === null) return this.#giveBack(entry, row, `there is no version ${row.version} of ${row.definition} here`)
    const marked = await markedIn(store, row)
    const branches = entry.state.held ? await unbegunIn(store, entry.state) : []
    entry.definition = definition
    entry.marked = marked
    entry.owner = { worker, epoch: row.epoch }
    entry.claiming = true
    entry.stale = true
    // Also one that was changed and has kept its version.
    const under = entry.state.run?.shape
    const shape =
      under?.digest === definition.shape.digest ? undefined : { ...definition.shape, limits: (under ?? definition.shape).limits }
    runs.add(entry)
    const waited = marked.size > 0 ? { waited: [...marked.keys()] } : {}
    const unbegun = branches.length > 0 ? { unbegun: branches } : {}
    const claim = { type: 'run.claim', epoch: row.epoch, ...(shape !== undefined && { shape }), ...waited, ...unbegun } as const
    const missed = await missedBy(engine, entry.state)
    // In the same append: nothing of it is performed before. A pause comes before the claim: then it was given paused.
    const said = missed === null ? [claim] : missed.type === 'run.pause' ? [missed, claim] : [claim, missed]
    const outcomes = await Promise.all(said.map((command) => this.#port.submit(entry, command)))
    const refusal = outcomes[said.indexOf(claim)]?.refusal
    if (refusal?.code === 'CANNOT_CONTINUE') return this.#giveBack(entry, row, refusal.message)
    this.#refused.delete(row.id)
    // The body of a step tells the run that it waits for; in a paused run none begins.
    if (missed !== null || entry.state.pausedAt !== null) await this.#port.align(entry)
  }

  /** A run that this process can't go on with is left to others, as it is: it waits for its definition, until something else happens to it. */
  async #giveBack(entry: RunEntry, { id, epoch, head }: RunRow, why: string): Promise<void> {
    const { store, worker, clock, onLog } = this.#port.engine.options
    this.#port.lost(entry)
    entry.definition = null
    for (;;) {
      const at = clock.now()
      const { seq } = entry.state
      const given = {
        run: id,
        expect: seq,
        head: seq,
        owner: { worker, epoch },
        by: worker,
        rows: [],
        at,
        own: 'release',
        wake: dueNow,
      } as const
      const [verdict] = await store.commit([given])
      if (verdict === undefined || verdict.ok || verdict.why !== 'head') break
      await this.#port.lookout.readNext(entry)
    }
    // As it was when it was claimed: what has happened since may have made room for it.
    this.#refused.set(id, head)
    onLog({ level: 'warn', message: `the run waits for another version of its definition: ${why}`, runId: id })
    this.#port.told(entry)
  }
}
