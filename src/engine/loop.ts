import { settle } from '../define/maybe.js'
import { TuttiError } from '../define/tutti-error.js'
import type { Command, Refusal } from '../kernel/command.js'
import { DecisionSeries } from '../kernel/decision-series.js'
import type { Event } from '../kernel/event.js'
import { evolve } from '../kernel/evolve.js'
import { checkStep, InvariantError } from '../kernel/invariants.js'
import { toJson } from '../kernel/json.js'
import type { State } from '../kernel/state.js'
import { isOver, newState } from '../kernel/state.js'
import { thrownText } from '../kernel/thrown-text.js'
import { agentKind } from './agent-record.js'
import type { Backlog } from './backlog.js'
import { weightOf } from './backlog.js'
import { encodeEvents, encodeSnapshot, signed } from './codec.js'
import { waitFor } from './out-of-reach.js'
import type { Outcome, RunEntry, Submission, Unsure } from './run-entry.js'
import { dueAt, marksOf, statusOf, waitsOf } from './run-view.js'
import type { Seam } from './seam.js'
import type { Append, EventRow, Mark, Put, Snapshot, Store, Verdict } from './store.js'
import { dueNow, verdictsNow } from './store.js'
import type { Clock, LogEntry } from './tutti.js'
import { closedEngine } from './while-open.js'

export interface LoopPort {
  readonly store: Store
  readonly worker: number
  readonly clock: Clock
  readonly invariants: boolean
  readonly onLog: (entry: LogEntry) => void
  readonly later: Seam['later']
  readonly backlog: Backlog
  /** Makes sure that what is decided next is decided on what is in the store now; null: it is. */
  refresh(entries: readonly RunEntry[]): Promise<void> | null
  /** Something of a run is durable. */
  advance(entry: RunEntry, events: readonly Event[], state: State): void
  /** The same, where nothing has happened but that activities came to something, or that some of many answered: nothing is owed for it. */
  recorded(entry: RunEntry, events: readonly Event[], state: State): void
  /** Around all that is told of one commit. */
  concluding(conclude: () => void): void
  /** Somebody else owns the run now. */
  lost(entry: RunEntry): void
  /** Whether a run may be let go, as it is now. */
  mayRelease(entry: RunEntry): boolean
  /** Whether all turns of a run sleep, and for long or while it is paused. */
  isAsleep(entry: RunEntry): boolean
  refused(code: string, entry: RunEntry): void
  broken(entry: RunEntry): void
}

/** How many commands of one run are decided in one append, and how many runs share a transaction. */
const commandsMax = 512
const runsMax = 512
/** Where many runs are started at once, those under way go on first: beside so many of them few others begin. Few that are at work at a time stay at hand. */
const atWork = 128
const startsMin = 4
/** A snapshot is due when the journal has grown by this many events, and by four times the snapshot's size. */
const snapshotEvents = 2_000
/** About what an event has, and what a branch and a slot that has settled add to a snapshot. */
const eventBytes = 100
const branchBytes = 500
const slotBytes = 100

type Holds = RunEntry['marked']
type Changing<T> = { -readonly [K in keyof T]: T[K] }

interface Plan {
  readonly entry: RunEntry
  readonly taken: readonly Submission[]
  readonly refusals: ReadonlyMap<Submission, Refusal> | null
  readonly state: State
  readonly events: readonly Event[]
  readonly item: Append | null
  /** The agents that it then is known to wait for. */
  readonly held: Holds
  readonly isQuiet: boolean
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
  #ready: RunEntry[] = []
  /** Those that are to be started. */
  readonly #starting: RunEntry[] = []
  readonly #backlog: Backlog
  #flushing = false
  /** The store is out of reach, and is tried again after a while. */
  #isWaiting = false
  /** It is not waited for any longer. */
  #isGivenUp = false
  readonly #idle: (() => void)[] = []
  #failures = 0
  #closed = false

  constructor(port: LoopPort) {
    this.#port = port
    this.#backlog = port.backlog
  }

  /** What somebody asks for. Resolves when what came of it is durable. */
  submit(entry: RunEntry, command: Command, options: { readonly put?: Put | undefined; readonly owned: boolean }): Promise<Outcome> {
    if (this.#closed) return Promise.reject(closedEngine())
    const { put, owned } = options
    return new Promise((settle, fail) => this.#queue(entry, { command, put, owned, bytes: weightOf(command), settle, fail }))
  }

  /** What the owner of a run has to say of it. `settled` is told what came of it when that is durable, and not if the loop is closed before. */
  say(entry: RunEntry, command: Command, settled: (outcome: Outcome) => void): void {
    if (!this.#closed) this.#queue(entry, { command, put: undefined, owned: true, bytes: weightOf(command), settle: settled, fail: null })
  }

  #queue(entry: RunEntry, submission: Submission): void {
    if (entry.broken !== null) return fail(submission, entry.broken)
    this.#backlog.add(submission.bytes)
    entry.queue.push(submission)
    this.wake(entry)
  }

  wake(entry: RunEntry): void {
    if (!entry.isReady) {
      entry.isReady = true
      if (entry.state === newState) this.#starting.push(entry)
      else this.#ready.push(entry)
    }
    if (this.#flushing) return
    this.#flushing = true
    this.#port.later(this.#flush)
  }

  /** Resolves when the loop has looked at a run, or at what it was about before that. */
  passes(entry: RunEntry): Promise<void> {
    this.wake(entry)
    return new Promise((resolve) => this.#idle.push(resolve))
  }

  /** Resolves when nothing is on its way that anybody has said: what only has to be read again may wait for the store for ever. One that is given up is not waited for. */
  async idle(): Promise<void> {
    while (this.#flushing && !this.#isGivenUp && !(this.#isWaiting && this.#backlog.isEmpty))
      await new Promise<void>((resolve) => this.#idle.push(resolve))
  }

  /** From now on nothing is kept for a store that is out of reach: what is not recorded is as if the process had died before. */
  giveUp(): void {
    this.#isGivenUp = true
  }

  close(): void {
    this.#closed = true
  }

  /** One transaction; what is ready after it has its turn in the next macrotask, so that others have theirs in between. */
  readonly #flush = (): void => {
    const entries = this.#take()
    try {
      const reading = this.#port.refresh(entries)
      if (reading !== null)
        return void reading.then(
          () => this.#commit(entries),
          (error) => this.#hold(entries, error),
        )
    } catch (error) {
      return this.#hold(entries, error)
    }
    this.#commit(entries)
  }

  #take(): readonly RunEntry[] {
    const entries = this.#ready
    this.#ready = entries.length > runsMax ? entries.splice(runsMax) : []
    if (this.#starting.length > 0) entries.push(...this.#starting.splice(0, Math.max(startsMin, atWork - entries.length)))
    for (const entry of entries) entry.isReady = false
    return entries
  }

  #commit(entries: readonly RunEntry[]): void {
    const plans: Plan[] = []
    const items: Append[] = []
    const at = this.#port.clock.now()
    for (const entry of entries) {
      const plan = this.#plan(entry, at)
      if (plan === null) continue
      plans.push(plan)
      if (plan.item !== null) items.push(plan.item)
    }
    const sentAt = process.hrtime.bigint()
    const conclude = (said: readonly Verdict[]): void => this.#port.concluding(() => this.#concludeAll(plans, said, sentAt))
    if (items.length === 0) return conclude(noVerdicts)
    let verdicts: readonly Verdict[] | undefined
    try {
      const said = this.#port.store.commit(items)
      verdicts = verdictsNow(said)
      if (verdicts === undefined) return void said.then(conclude, (error) => this.#doubt(plans, entries, error))
    } catch (error) {
      return this.#doubt(plans, entries, error)
    }
    conclude(verdicts)
  }

  /** The store gave no answer: it is asked what came of it. Whoever waits is told that, if it can be had, and else the error. */
  #doubt(plans: readonly Plan[], entries: readonly RunEntry[], error: unknown): void {
    for (const { entry, item, taken, refusals } of plans) {
      entry.stale = true
      if (item !== null) entry.unsure = { item, taken, refusals }
      else entry.queue.unshift(...taken)
    }
    const hold = (): void => this.#hold(entries, error)
    settle(() => this.#port.refresh(entries), hold, hold)
  }

  /** It was found out, and the entry's state is what it led to: what is in the store was said, what is not is decided again. */
  resolve(entry: RunEntry, { taken, refusals }: Unsure, isThere: boolean): void {
    if (isThere) this.#tell(entry, taken, refusals)
    else this.#again(entry, taken)
  }

  #concludeAll(plans: readonly Plan[], verdicts: readonly Verdict[], sentAt: bigint): void {
    this.#failures = 0
    let next = 0
    for (const plan of plans) this.#conclude(plan, plan.item === null ? done : (verdicts[next++] ?? { ok: false, why: 'gone' }), sentAt)
    this.#backlog.relieve()
    this.#rest()
  }

  #rest(): void {
    this.#flushing = false
    this.#isWaiting = false
    if (this.#idle.length > 0) for (const go of this.#idle.splice(0)) go()
    const left = this.#ready[0] ?? this.#starting[0]
    if (left !== undefined) this.wake(left)
  }

  /** The store is out of reach: who asked is told, what executions have to say is kept, and the loop tries again after a while. */
  #hold(entries: readonly RunEntry[], error: unknown): void {
    const waitMs = waitFor(this.#failures++)
    const next = this.#isGivenUp ? 'and is not waited for any longer' : `trying again in ${waitMs} ms`
    this.#port.onLog({
      level: 'error',
      message: `the store is out of reach, ${next}: ${thrownText(error)}`,
    })
    // Those that came while the lock was waited for have waited too, and would have to wait as long again.
    for (const entry of TuttiError.is(error, 'STORE_LOCKED') ? new Set([...entries, ...this.#ready, ...this.#starting]) : entries) {
      entry.queue = this.#kept(entry.queue, error)
      if (entry.unsure !== null) entry.unsure = { ...entry.unsure, taken: this.#kept(entry.unsure.taken, error) }
    }
    this.#backlog.relieve()
    if (this.#closed || this.#isGivenUp) return this.#rest()
    this.#isWaiting = true
    if (this.#idle.length > 0) for (const go of this.#idle.splice(0)) go()
    this.#port.later(() => {
      for (const entry of entries) if (entry.queue.length > 0 || entry.stale || saysMore(entry)) this.wake(entry)
      this.#rest()
    }, waitMs)
  }

  /** Those that are not kept are told why. */
  #kept(submissions: readonly Submission[], error: unknown): Submission[] {
    return submissions.filter((submission) => {
      if (submission.owned && !this.#isGivenUp) return true
      this.#backlog.remove(submission.bytes)
      fail(submission, error)
      return false
    })
  }

  #settle(submission: Submission, outcome: Outcome): void {
    this.#backlog.remove(submission.bytes)
    submission.settle(outcome)
  }

  /** Decides what is queued, one command after the other, on the state that the one before it leaves. */
  #plan(entry: RunEntry, at: number): Plan | null {
    if (entry.isGone) return this.#refuseGone(entry)
    if (entry.broken !== null) return null
    const taken = this.#takeOf(entry)
    if (taken.length === 0 && !saysMore(entry)) return null
    try {
      return this.#decided(entry, taken, at)
    } catch (error) {
      const left = this.#withoutUnsayable(taken)
      if (left.length === taken.length) this.break(entry, taken, error)
      else this.#again(entry, left)
      return null
    }
  }

  /** Whoever asked may look whether there is another run of this id. */
  #refuseGone(entry: RunEntry): null {
    const refusal = { code: 'RUN_NOT_FOUND', message: `there is no run ${entry.id}` } as const
    for (const submission of entry.queue.splice(0)) this.#settle(submission, { refusal })
    return null
  }

  /** What somebody asked for in words that no journal can hold fails alone: neither the run nor who asked for something else is concerned. */
  #withoutUnsayable(taken: readonly Submission[]): readonly Submission[] {
    return taken.filter((submission) => {
      const { owned, command } = submission
      const problem = owned ? null : problemOf(command)
      if (problem === null) return true
      this.#backlog.remove(submission.bytes)
      fail(submission, new TuttiError('INVALID_INPUT', `${command.type} can't be recorded: ${problem}`))
      return false
    })
  }

  /** It is decided again. */
  #again(entry: RunEntry, taken: readonly Submission[]): void {
    entry.queue.unshift(...taken)
    if (entry.queue.length > 0 || saysMore(entry)) this.wake(entry)
  }

  #takeOf(entry: RunEntry): readonly Submission[] {
    const { queue } = entry
    if (queue.length > commandsMax) {
      entry.queue = queue.splice(commandsMax)
      this.wake(entry)
    } else entry.queue = []
    for (let index = 0; index < queue.length; index++) {
      const { owned, command } = queue[index] as Submission
      if ((owned && entry.owner === null) || command.type === 'run.release') return this.#decidable(entry, queue)
    }
    return queue
  }

  /** What speaks for an owner that is none any more says nothing; nor is a run let go in which there is something to do. */
  #decidable(entry: RunEntry, queue: readonly Submission[]): readonly Submission[] {
    const message = entry.owner === null ? 'another worker owns the run' : 'there is something to do in the run'
    return queue.filter((submission) => {
      const { owned, command } = submission
      const may = !(owned && entry.owner === null) && (command.type !== 'run.release' || this.#port.mayRelease(entry))
      if (!may) this.#settle(submission, { refusal: { code: 'STALE_ATTEMPT', message } })
      return may
    })
  }

  #decided(entry: RunEntry, taken: readonly Submission[], at: number): Plan {
    const code = entry.definition?.code ?? null
    const series = new DecisionSeries(entry.state, at, code)
    let refusals: Map<Submission, Refusal> | null = null
    let puts: readonly Put[] = noPuts
    for (let index = 0; index < taken.length; index++) {
      const submission = taken[index] as Submission
      const { command, put } = submission
      const isTaken = put !== undefined && puts.some(({ key }) => key === put.key)
      // What is checked after each command must be kept from before it.
      const before = this.#port.invariants ? series.made().state : null
      const decision = isTaken ? keyTaken(put) : series.decide(command)
      if ('refusal' in decision) {
        refusals ??= new Map()
        refusals.set(submission, decision.refusal)
        continue
      }
      if (before !== null) checkInvariants(before, decision.events)
      if (put !== undefined) puts = [...puts, put]
    }
    // What is made here and can't be executed here is given back at once.
    if (entry.state === newState && entry.definition === null) series.decide({ type: 'run.release' })
    const { state, events, isQuiet } = series.made()
    const isAlone = isQuiet && events.length > 0 && puts.length === 0 && isUndisturbed(entry)
    const held = isAlone || isOver(state) ? nobody : heldBy(entry)
    const item = isAlone ? this.#appendOf(entry, state, events, at) : this.#itemOf(entry, state, events, puts, at, held)
    // Others may ask for the same at the same moment: whose it is must show, should the store not say what came of it.
    if (item !== null && taken.some(({ owned }) => !owned)) item.rows = signed(item.rows, this.#port.worker)
    return { entry, taken, refusals, state, events, item, held, isQuiet: isAlone }
  }

  /** A bug of ours, or a journal that can't be read, stops that run and keeps its journal; never the process. */
  break(entry: RunEntry, taken: readonly Submission[], error: unknown): void {
    const broken = error instanceof Error ? error : new Error(thrownText(error))
    entry.broken = broken
    this.#port.onLog({ level: 'error', message: `the run is stopped: ${broken.message}`, runId: entry.id })
    for (const submission of [...taken, ...entry.queue.splice(0)]) {
      this.#backlog.remove(submission.bytes)
      fail(submission, broken)
    }
    this.#port.broken(entry)
  }

  /** What every append has; and all that it has if only records are added: what else there could be to say is then not even looked for. */
  #appendOf(entry: RunEntry, state: State, events: readonly Event[], at: number): Changing<Append> {
    const { rows, blobs } = encodeEvents(events)
    const item: Changing<Append> = { run: entry.id, expect: entry.state.seq, head: state.seq, by: this.#port.worker, rows, at }
    if (entry.owner !== null) item.owner = entry.owner
    if (blobs.length > 0) item.blobs = blobs
    const snapshot = this.#snapshot(entry, state, rows, events.length)
    if (snapshot !== null) item.snapshot = snapshot
    return item
  }

  #itemOf(entry: RunEntry, state: State, events: readonly Event[], puts: readonly Put[], at: number, held: Holds): Changing<Append> | null {
    if (events.length === 0 && puts.length === 0 && !saysMore(entry)) return null
    const before = entry.state
    const item = this.#appendOf(entry, state, events, at)
    if (puts.length > 0) item.puts = puts
    const creates = before.run === null && state.run !== null
    if (creates) {
      const { shape, tags } = state.run
      item.create = { definition: shape.name, version: shape.version, tags }
    }
    const released = !state.held && isReleased(events)
    // One that is made and given back at once is nobody's from the beginning.
    if (creates !== released) item.own = creates ? 'take' : 'release'
    // One that is owned and waits for no agent says nothing of when it is due.
    if (item.own !== 'take' && (released || entry.owner === null || entry.held.size > 0)) {
      const wake = wakeOf(entry, state, released, events.length, this.#port)
      if (wake !== undefined) item.wake = wake
    }
    const version = state.run?.shape.version
    if (!creates && version !== undefined && version !== before.run?.shape.version) item.version = version
    const stands = before.status === state.status && before.pausedAt === state.pausedAt
    if (!stands) {
      const status = statusOf(state)
      if (creates || statusOf(before) !== status) item.status = status
      if (isOver(state)) item.ended = true
    }
    const agents = entry.marked.size === 0 && held.size === 0 ? noMarks : agentMarks(entry.marked, held)
    if (creates || agents.length > 0 || waitsChanged(before, state)) item.waits = waitsOf(state, held)
    const marks = stands && before.asks === state.asks ? agents : [...marksOf(before, state), ...agents]
    if (marks.length > 0) item.marks = marks
    return item
  }

  /** A snapshot, if the journal has grown by enough since the last. */
  #snapshot(entry: RunEntry, state: State, rows: readonly EventRow[], events: number): Snapshot | null {
    const { grown } = entry
    grown.events += events
    // Many events that are written as one are read as many.
    for (const { body, n } of rows) grown.bytes += Math.max(body.length, n * eventBytes)
    if (grown.events <= snapshotEvents || isOver(state)) return null
    if (grown.bytes <= 4 * Math.max(entry.snapshotBytes, state.branches.size * branchBytes)) return null
    const bytes = sizeOf(state)
    if (grown.bytes <= 4 * bytes) {
      // Not asked again before it can have become worth while.
      entry.snapshotBytes = bytes
      return null
    }
    const snapshot = encodeSnapshot(state)
    entry.grown = { bytes: 0, events: 0 }
    entry.snapshotBytes = snapshot?.body.length ?? Number.POSITIVE_INFINITY
    return snapshot
  }

  #conclude(plan: Plan, verdict: Verdict, sentAt: bigint): void {
    const { entry, taken, refusals, events, state } = plan
    if (!verdict.ok) return this.#conflict(plan, verdict)
    if (plan.item !== null && entry.owner !== null) {
      entry.marked = plan.held
      if (plan.item.owner !== undefined && plan.item.rows.length > 0) entry.provenAt = sentAt
    }
    if (verdict.epoch !== undefined) entry.owner = { worker: this.#port.worker, epoch: verdict.epoch }
    if (plan.isQuiet) this.#port.recorded(entry, events, state)
    else if (plan.item !== null) this.#port.advance(entry, events, state)
    this.#tell(entry, taken, refusals)
  }

  #tell(entry: RunEntry, taken: readonly Submission[], refusals: Unsure['refusals']): void {
    for (let index = 0; index < taken.length; index++) {
      const submission = taken[index] as Submission
      const refusal = refusals?.get(submission)
      if (refusal !== undefined) this.#port.refused(refusal.code, entry)
      this.#backlog.remove(submission.bytes)
      submission.settle(refusal === undefined ? carriedOut : { refusal })
    }
  }

  /** Somebody else was first: what they did is read, and it is decided again. A key that is taken is for the caller to look at. */
  #conflict({ entry, taken }: Plan, verdict: Exclude<Verdict, { ok: true }>): void {
    if (verdict.why === 'epoch') this.#port.lost(entry)
    const again = verdict.why === 'record' ? taken.filter(({ put }) => put === undefined) : taken
    if (verdict.why === 'record')
      for (const submission of taken) if (submission.put !== undefined) this.#settle(submission, keyTaken(submission.put))
    entry.stale = true
    this.#again(entry, again)
  }
}

/** About how large a snapshot would be. */
function sizeOf({ branches, barriers }: State): number {
  return barriers.values().reduce((bytes, { slots }) => bytes + slots.size * slotBytes, branches.size * branchBytes)
}

function checkInvariants(state: State, events: readonly Event[]): void {
  const violations = checkStep(state, events, evolve)
  if (violations.length > 0) throw new InvariantError(violations)
}

const done: Verdict = Object.freeze({ ok: true })
const carriedOut: Outcome = Object.freeze({})
const noPuts: readonly Put[] = Object.freeze([])
const noMarks: readonly Mark[] = Object.freeze([])
const noVerdicts: readonly Verdict[] = Object.freeze([])

const keyTaken = ({ key }: Put): { readonly refusal: Refusal } => ({ refusal: { code: 'KEY_TAKEN', message: `the key ${key} is taken` } })

/** Why a command is no JSON; null if it is. */
function problemOf(command: Command): string | null {
  const json = toJson(command)
  return 'problem' in json ? `it is no JSON at ${json.path}: ${json.problem}` : null
}

/** Nothing comes of it. An owner hears that it can't be said: its run is stopped, and nobody waits for more. */
function fail(submission: Submission, error: unknown): void {
  if (submission.fail !== null) submission.fail(error)
  else submission.settle({ refusal: { code: 'STALE_ATTEMPT', message: thrownText(error) } })
}

function waitsChanged(before: State, state: State): boolean {
  if (before.timers === state.timers && before.asks === state.asks && (before.running === state.running || state.timers.size === 0))
    return false
  return waitsOf(before).join() !== waitsOf(state).join()
}

const nobody: Holds = new Map([])

/** Also one that was claimed in the same append is given back. */
const isReleased = (events: readonly Event[]): boolean => events.some(({ type }) => type === 'run.released')

/** For which agents a run is known to wait once its next append is durable. Who has just got it does not know yet, and leaves it. */
function heldBy({ claiming, held, marked }: RunEntry): Holds {
  if (claiming) return marked
  return held.size === 0 ? nobody : new Map(held)
}

/** Whether its owner has nothing to say of it but what happens in it. */
const isUndisturbed = ({ owner, claiming, held, marked }: RunEntry): boolean =>
  owner !== null && !claiming && held.size === 0 && marked.size === 0

/** Whether the store is to know something else of which agents a run waits for. */
export function saysMore({ owner, claiming, held, marked }: RunEntry): boolean {
  if (owner === null || claiming) return false
  if (held.size !== marked.size) return true
  for (const [agent, until] of held) if (marked.get(agent) !== until) return true
  return false
}

/** Whether the store has it that a run waits for an agent for which it waits no more: who dies in a turn of that agent would be taken for one that only waited. */
export function isMarkedStill({ held, marked }: RunEntry): boolean {
  for (const agent of marked.keys()) if (!held.has(agent)) return true
  return false
}

function agentMarks(before: Holds, after: Holds): Mark[] {
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
function wakeOf(entry: RunEntry, state: State, released: boolean, events: number, port: LoopPort): number | null | undefined {
  const { held } = entry
  if (!released) return dueAt(state, held)
  // What else is in the append may have ended its sleep.
  if (held.size === 0) return dueAt(state, held, events === 1 && port.isAsleep(entry))
  return events === 1 && !saysMore(entry) ? undefined : dueNow
}
