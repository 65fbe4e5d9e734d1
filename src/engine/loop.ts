import { TuttiError } from '../define/tutti-error.js'
import type { Command } from '../kernel/command.js'
import { DecisionSeries } from '../kernel/decision-series.js'
import type { Event } from '../kernel/event.js'
import { evolve } from '../kernel/evolve.js'
import { checkStep, InvariantError } from '../kernel/invariants.js'
import type { State } from '../kernel/state.js'
import { isOver } from '../kernel/state.js'
import { agentKind } from './agent-record.js'
import { encodeEvents, encodeSnapshot } from './codec.js'
import type { Outcome, RunEntry, Submission } from './run-entry.js'
import { dueAt, marksOf, statusOf, waitsOf } from './run-view.js'
import type { Seam } from './seam.js'
import type { Append, Mark, Put, Store, Verdict } from './store.js'
import { isAppend } from './store.js'
import type { Clock, LogEntry } from './tutti.js'

export interface LoopPort {
  readonly store: Store
  readonly worker: number
  readonly clock: Clock
  readonly invariants: boolean
  readonly onLog: (entry: LogEntry) => void
  readonly later: Seam['later']
  /** Makes sure that what is decided next is decided on what is in the store now. */
  refresh(entries: readonly RunEntry[]): Promise<void> | null
  /** Something of a run is durable. */
  advance(entry: RunEntry, events: readonly Event[], state: State): void
  /** Somebody else owns the run now. */
  lost(entry: RunEntry): void
  /** Whether a run may be let go, as it is now. */
  mayRelease(entry: RunEntry): boolean
  /** Whether all turns of a run sleep for long. */
  isAsleep(entry: RunEntry): boolean
  refused(code: string): void
  broken(entry: RunEntry): void
}

/** How many commands of one run are decided in one append, and how many runs share a transaction. */
const commandsMax = 512
const runsMax = 512
/** Above so many commands that are not durable yet, new runs wait. */
const unsettledMax = 4_000
/** How long the loop waits before it tries a store again that is out of reach. */
const retryMs = { first: 20, most: 1_000 }
/** A snapshot is due when the journal has grown by this many events, and by four times the snapshot's size. */
const snapshotEvents = 2_000
/** About what one branch adds to a snapshot. */
const branchBytes = 500

type Holds = RunEntry['marked']

interface Plan {
  readonly entry: RunEntry
  readonly taken: readonly Submission[]
  readonly outcomes: readonly Outcome[]
  readonly state: State
  readonly events: readonly Event[]
  readonly item: Append | Put | null
  /** The agents that it then is known to wait for. */
  readonly held: Holds
}

/**
 * Takes what is queued, decides it, commits it, and acknowledges it: the appends of all runs that are ready in one tick share a
 * transaction.
 *
 * 1. Only the loop changes an entry's state, and only after the store has said yes.
 * 2. Nothing is acknowledged before it is durable.
 * 3. A refusal is given only on a state that was read after the command came in.
 */
export class Loop {
  readonly #port: LoopPort
  readonly #ready = new Set<RunEntry>()
  readonly #roomless: (() => void)[] = []
  #unsettled = 0
  #flushing = false
  readonly #idle: (() => void)[] = []
  #failures = 0
  #closed = false

  constructor(port: LoopPort) {
    this.#port = port
  }

  submit(entry: RunEntry, command: Command, options: { readonly put?: Put | undefined; readonly owned: boolean }): Promise<Outcome> {
    if (this.#closed) return Promise.reject(new TuttiError('CLOSED', 'this engine is closed', { hint: 'open another one' }))
    if (entry.broken !== null) return Promise.reject(entry.broken)
    return new Promise((resolve, reject) => {
      this.#unsettled++
      const { put, owned } = options
      entry.queue.push({ command, ...(put !== undefined && { put }), owned, resolve, reject })
      this.wake(entry)
    })
  }

  /** Resolves when there is room for more. */
  async room(): Promise<void> {
    while (this.#unsettled > unsettledMax) await new Promise<void>((resolve) => this.#roomless.push(resolve))
  }

  wake(entry: RunEntry): void {
    this.#ready.add(entry)
    if (this.#flushing) return
    this.#flushing = true
    this.#port.later(() => void this.#flush())
  }

  /** Resolves when nothing is on its way. */
  async idle(): Promise<void> {
    while (this.#flushing) await new Promise<void>((resolve) => this.#idle.push(resolve))
  }

  close(): void {
    this.#closed = true
  }

  async #flush(): Promise<void> {
    try {
      await this.#flushAll()
    } finally {
      this.#flushing = false
      for (const go of this.#idle.splice(0)) go()
      const [left] = this.#ready
      if (left !== undefined) this.wake(left)
    }
  }

  #take(): readonly RunEntry[] {
    const entries = this.#ready.size <= runsMax ? [...this.#ready] : [...this.#ready].slice(0, runsMax)
    for (const entry of entries) this.#ready.delete(entry)
    return entries
  }

  async #flushAll(): Promise<void> {
    while (this.#ready.size > 0) {
      const entries = this.#take()
      try {
        const reading = this.#port.refresh(entries)
        if (reading !== null) await reading
      } catch (error) {
        await this.#hold(entries, error)
        continue
      }
      const plans = entries.flatMap((entry) => this.#plan(entry) ?? [])
      const items = plans.flatMap((plan) => plan.item ?? [])
      let verdicts: readonly Verdict[] = []
      try {
        if (items.length > 0) verdicts = await this.#port.store.commit(items)
        this.#failures = 0
      } catch (error) {
        for (const plan of plans) plan.entry.queue.unshift(...plan.taken)
        await this.#hold(entries, error)
        continue
      }
      let next = 0
      for (const plan of plans) this.#conclude(plan, plan.item === null ? { ok: true } : (verdicts[next++] ?? { ok: false, why: 'gone' }))
      this.#admit()
    }
  }

  /** The store is out of reach: who asked is told, what executions have to say is kept, and the loop tries again after a while. */
  async #hold(entries: readonly RunEntry[], error: unknown): Promise<void> {
    const waitMs = Math.min(retryMs.most, retryMs.first * 2 ** this.#failures++)
    this.#port.onLog({
      level: 'error',
      message: `the store is out of reach, trying again in ${waitMs} ms: ${error instanceof Error ? error.message : String(error)}`,
    })
    for (const entry of entries) {
      const kept = entry.queue.filter((submission) => submission.owned)
      for (const submission of entry.queue) if (!submission.owned) this.#settle(submission, () => submission.reject(error))
      entry.queue = kept
    }
    if (this.#closed) return
    await new Promise<void>((resolve) => this.#port.later(resolve, waitMs))
    for (const entry of entries) if (entry.queue.length > 0) this.#ready.add(entry)
  }

  #settle(_: Submission, how: () => void): void {
    this.#unsettled--
    how()
  }

  #admit(): void {
    if (this.#unsettled <= unsettledMax) for (const go of this.#roomless.splice(0)) go()
  }

  /** Decides what is queued, one command after the other, on the state that the one before it leaves. */
  #plan(entry: RunEntry): Plan | null {
    const queued = entry.queue.splice(0, commandsMax)
    if (entry.queue.length > 0) this.#ready.add(entry)
    const taken = queued.filter((submission) => this.#mayBeDecided(entry, submission))
    if (taken.length === 0 && !saysMore(entry)) return null
    const at = this.#port.clock.now()
    try {
      return this.#decided(entry, taken, at)
    } catch (error) {
      this.#break(entry, taken, error)
      return null
    }
  }

  /** What speaks for an owner that is none any more says nothing; nor is a run let go in which there is something to do. */
  #mayBeDecided(entry: RunEntry, submission: Submission): boolean {
    const lost = submission.owned && entry.owner === null
    const busy = submission.command.type === 'run.release' && !this.#port.mayRelease(entry)
    if (!lost && !busy) return true
    const message = lost ? 'another worker owns the run' : 'there is something to do in the run'
    this.#settle(submission, () => submission.resolve({ refusal: { code: 'STALE_ATTEMPT', message } }))
    return false
  }

  #decided(entry: RunEntry, taken: readonly Submission[], at: number): Plan {
    const code = entry.definition?.code ?? null
    const outcomes: Outcome[] = []
    const events: Event[] = []
    const puts: Put[] = []
    let series = new DecisionSeries(entry.state, at, code)
    for (const { command, put } of taken) {
      if (put !== undefined && puts.some(({ key }) => key === put.key)) {
        outcomes.push({ refusal: { code: 'KEY_TAKEN', message: `the key ${put.key} is taken` } })
        continue
      }
      // What is checked after each command must be kept from before it.
      const before = this.#port.invariants ? series.end() : null
      if (before !== null) series = new DecisionSeries(before, at, code)
      const decision = series.decide(command)
      outcomes.push(decision)
      if ('refusal' in decision) continue
      if (before !== null) checkInvariants(before, decision.events)
      for (const event of decision.events) events.push(event)
      if (put !== undefined) puts.push(put)
    }
    const state = series.end()
    const held = isOver(state) ? nobody : heldBy(entry)
    return { entry, taken, outcomes, state, events, item: this.#itemOf(entry, state, events, puts, at, held), held }
  }

  /** A bug of ours stops that run and keeps its journal; never the process. */
  #break(entry: RunEntry, taken: readonly Submission[], error: unknown): void {
    const broken = error instanceof Error ? error : new Error(String(error))
    entry.broken = broken
    this.#port.onLog({ level: 'error', message: `the run is stopped: ${broken.message}`, runId: entry.id })
    for (const submission of [...taken, ...entry.queue.splice(0)]) this.#settle(submission, () => submission.reject(broken))
    this.#port.broken(entry)
  }

  #itemOf(entry: RunEntry, state: State, events: readonly Event[], puts: readonly Put[], at: number, held: Holds): Append | Put | null {
    const [put] = puts
    if (events.length === 0 && !saysMore(entry)) return put ?? null
    const before = entry.state
    const { rows, blobs } = encodeEvents(events)
    const bytes = rows.reduce((sum, { body }) => sum + body.length, 0)
    const creates =
      before.run === null && state.run !== null
        ? { definition: state.run.shape.name, version: state.run.shape.version, tags: state.run.tags }
        : null
    const grown = { bytes: entry.grown.bytes + bytes, events: entry.grown.events + events.length }
    const snapshot =
      grown.events > snapshotEvents && grown.bytes > 4 * Math.max(entry.snapshotBytes, state.branches.size * branchBytes) && !isOver(state)
        ? encodeSnapshot(state)
        : undefined
    entry.grown = snapshot === undefined ? grown : { bytes: 0, events: 0 }
    if (snapshot !== undefined) entry.snapshotBytes = snapshot.body.length
    const waiting = before.timers !== state.timers || before.asks !== state.asks || before.turns.size !== state.turns.size
    const agents = agentMarks(entry.marked, held)
    return {
      run: entry.id,
      ...(creates !== null && { create: creates, own: 'take' as const }),
      expect: before.seq,
      head: state.seq,
      by: this.#port.worker,
      ...(entry.owner !== null && { owner: entry.owner }),
      rows,
      at,
      ...(creates !== null || statusOf(before) !== statusOf(state) ? { status: statusOf(state) } : {}),
      ...(creates !== null || agents.length > 0 || (waiting && waitsOf(before).join() !== waitsOf(state).join())
        ? { waits: waitsOf(state, held) }
        : {}),
      ...(events.some(isRelease) && { own: 'release' as const }),
      ...(creates === null && wakeOf(entry, state, events, at, () => this.#port.isAsleep(entry))),
      ...(isOver(state) && { ended: true }),
      ...marked(before, state, agents),
      ...(puts.length > 0 && { puts }),
      ...(blobs.length > 0 && { blobs }),
      ...(snapshot !== undefined && { snapshot }),
    }
  }

  #conclude(plan: Plan, verdict: Verdict): void {
    const { entry, taken, outcomes, events, state } = plan
    if (!verdict.ok) return this.#conflict(plan, verdict)
    if (plan.item !== null && entry.owner !== null) entry.marked = plan.held
    if (verdict.epoch !== undefined) entry.owner = { worker: this.#port.worker, epoch: verdict.epoch }
    if (plan.item !== null && isAppend(plan.item)) this.#port.advance(entry, events, state)
    taken.forEach((submission, index) => {
      const outcome = outcomes[index] ?? { refusal: { code: 'STALE_ATTEMPT', message: 'it was not decided' } as const }
      if (outcome.refusal !== undefined) {
        entry.refusals.set(outcome.refusal.code, (entry.refusals.get(outcome.refusal.code) ?? 0) + 1)
        this.#port.refused(outcome.refusal.code)
      }
      this.#unsettled--
      submission.resolve(outcome)
    })
  }

  /** Somebody else was first: what they did is read, and it is decided again. A key that is taken is for the caller to look at. */
  #conflict({ entry, taken }: Plan, verdict: Exclude<Verdict, { ok: true }>): void {
    if (verdict.why === 'epoch') this.#port.lost(entry)
    const again = verdict.why === 'record' ? taken.filter(({ put }) => put === undefined) : taken
    if (verdict.why === 'record')
      for (const submission of taken)
        if (submission.put !== undefined)
          this.#settle(submission, () =>
            submission.resolve({ refusal: { code: 'KEY_TAKEN', message: `the key ${submission.put?.key} is taken` } }),
          )
    entry.queue.unshift(...again)
    entry.stale = true
    if (entry.queue.length > 0 || saysMore(entry)) this.#ready.add(entry)
  }
}

function checkInvariants(state: State, events: readonly Event[]): void {
  const violations = checkStep(state, events, evolve)
  if (violations.length > 0) throw new InvariantError(violations)
}

/** What it can be found by, where that has changed. */
function marked(before: State, state: State, agents: readonly Mark[]): { marks?: readonly Mark[] } {
  if (before.asks === state.asks && before.status === state.status) return agents.length === 0 ? {} : { marks: agents }
  return { marks: [...marksOf(before, state), ...agents] }
}

const nobody: Holds = new Map([])

const isRelease = ({ type }: Event): boolean => type === 'run.released'

/** For which agents a run is known to wait once its next append is durable. Who has just got it does not know yet, and leaves it. */
function heldBy({ claiming, held, marked }: RunEntry): Holds {
  if (claiming) return marked
  return held.size === 0 ? nobody : new Map(held)
}

/** Whether the store is to know something else of which agents a run waits for. */
export function saysMore({ owner, claiming, held, marked }: RunEntry): boolean {
  if (owner === null || claiming) return false
  if (held.size !== marked.size) return true
  for (const [agent, until] of held) if (marked.get(agent) !== until) return true
  return false
}

function agentMarks(before: Holds, after: Holds): Mark[] {
  if (before.size === 0 && after.size === 0) return []
  return [
    ...[...after].flatMap(([key, until]) => (before.get(key) === until ? [] : [{ kind: agentKind, key, body: JSON.stringify(until) }])),
    ...[...before.keys()].filter((key) => !after.has(key)).map((key) => ({ kind: agentKind, key, body: null })),
  ]
}

/**
 * When the run is due, if the store is to be told. Of a run that nobody owns it is: a worker must find it, if there is now something to
 * do. A run that waits for agents says so while it is owned, and its release leaves it: if an agent was resumed in between, then the
 * store has said that the run is due now, and this must not be forgotten.
 */
function wakeOf(
  entry: RunEntry,
  state: State,
  events: readonly Event[],
  at: number,
  isAsleep: () => boolean,
): { readonly wake?: number | null } {
  const { owner, held } = entry
  if (!events.some(isRelease)) return owner === null || held.size > 0 ? { wake: dueAt(state, at, held) } : {}
  // What else is in the append may have ended its sleep.
  if (held.size === 0) return { wake: dueAt(state, at, held, events.length === 1 && isAsleep()) }
  return events.length === 1 && !saysMore(entry) ? {} : { wake: at }
}
