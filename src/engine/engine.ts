import type { Definition, Internals } from '../define/definition.js'
import { internalsOf } from '../define/definition.js'
import { isLater, type Maybe } from '../define/maybe.js'
import type { Provided } from '../define/resource.js'
import { provisionOf } from '../define/resource.js'
import { TuttiError } from '../define/tutti-error.js'
import type { Command } from '../kernel/command.js'
import type { Event } from '../kernel/event.js'
import { evolve } from '../kernel/evolve.js'
import { attemptId } from '../kernel/ids.js'
import { owedSince } from '../kernel/outstanding.js'
import type { State, Timer } from '../kernel/state.js'
import { attemptsOf, isOver, newState } from '../kernel/state.js'
import { thrownText } from '../kernel/thrown-text.js'
import type { ModelSource } from '../models/model-factory.js'
import type { Prices } from '../models/price.js'
import type { Recorded } from './activities.js'
import { agentsOf } from './agent-turns.js'
import { Agents } from './agents.js'
import { Alarms } from './alarms.js'
import { Backlog } from './backlog.js'
import { Bodies } from './bodies.js'
import { alignChildren, alignWithAbove, knowingAbove, patiently } from './child-run.js'
import { decodeSnapshot, JournalDamaged } from './codec.js'
import { stepOfChild } from './child-run.js'
import { Definitions } from './definitions.js'
import { HeldTurns } from './held-turns.js'
import { eventsOf, journalOf } from './journal.js'
import { isForgettable, KnownRuns } from './known-runs.js'
import { Listeners } from './listeners.js'
import { isBehind, Lookout } from './lookout.js'
import { isMarkedStill, Loop, saysMore } from './loop.js'
import { isOutOfReach } from './out-of-reach.js'
import type { Outcome, RunEntry, Unsure } from './run-entry.js'
import { newEntry } from './run-entry.js'
import { isHeldBack, longSleepMs, sleepsUntil } from './run-view.js'
import type { Seam } from './seam.js'
import { laterOf } from './seam.js'
import type { Looks } from './spent-below.js'
import { dueNow, type Put, type RunRow, type Store } from './store.js'
import { TakeOver } from './take-over.js'
import { passOverTurnsOver } from './turn-over.js'
import type { Clock, LogEntry } from './tutti.js'
import { Worker } from './worker.js'

export interface EngineOptions {
  readonly store: Store
  readonly worker: number
  readonly clock: Clock
  readonly ttlMs: number
  readonly graceMs: number
  readonly concurrency: number
  readonly definitions: readonly Definition[]
  readonly resources: readonly Provided[]
  readonly models?: ModelSource | undefined
  readonly prices?: Prices | undefined
  readonly invariants: boolean
  readonly onLog: (entry: LogEntry) => void
  readonly seam?: Seam
}

const nothing = (): void => {}

/** How many runs that only wait stay in memory; the others are let go, and found again when something happens to them. */
const waitingMax = 256

/** For so long a store is waited for at least when an engine is closed: bodies may have no grace at all, and one that is in reach answers. */
const answerMs = 1_000

/** Whether something was refused because the run that was known is gone. There may be another of its id. */
const isOfGone = ({ isGone }: RunEntry, { refusal }: Outcome): boolean => isGone && refusal?.code === 'RUN_NOT_FOUND'

/** What is said of a run is also said of those that it waits for. */
const isSteering = ({ type }: Command): boolean =>
  type === 'run.pause' || type === 'run.resume' || type === 'run.cancel' || type === 'run.overspend'

/** A recorded activity reaches the execution that waits for it. */
function route(entry: RunEntry, event: Recorded): void {
  entry.executions.get(attemptId(event.branch, event.turn, event.attempt))?.recorded(event)
}

/**
 * Drives the kernel over a store: what is decided is committed by the loop, and then performed here, by the run's owner alone.
 *
 * 1. No effect starts before what owes it is durable, nor after the run has another owner.
 * 2. `#runs` has the runs of this process and those that somebody asks about; `#waiting` those of its own that owe nothing now.
 */
export class Engine {
  readonly options: EngineOptions
  readonly agents: Agents
  readonly listeners: Listeners = new Listeners()
  /** How often something was refused, by code. */
  readonly refusals: Map<string, number> = new Map()
  readonly #alarms: Alarms
  readonly #backlog = new Backlog()
  readonly #loop: Loop
  readonly #lookout: Lookout
  readonly #worker: Worker
  readonly #bodies: Bodies
  readonly #heldTurns: HeldTurns
  readonly #runs = new KnownRuns()
  readonly #loading = new Map<string, Promise<RunEntry | null>>()
  readonly #waiting = new Set<RunEntry>()
  readonly #definitions: Definitions
  readonly #takeOver: TakeOver
  readonly looks: Looks = new Map()
  #announcing: Promise<void> | null = null
  readonly #unsubscribe: () => void
  readonly #stopPassing: () => void = passOverTurnsOver()
  readonly #opening: Promise<void>
  #closed = false

  constructor(options: EngineOptions) {
    this.options = options
    const { store, worker, clock, invariants, onLog } = options
    this.#definitions = new Definitions(options.definitions)
    this.#alarms = new Alarms(clock)
    this.#loop = new Loop({
      store,
      worker,
      clock,
      invariants,
      onLog,
      later: laterOf(options.seam),
      backlog: this.#backlog,
      refresh: (entries) => this.#lookout.refresh(entries),
      advance: this.#advance,
      recorded: this.#recorded,
      concluding: (conclude) => this.#bodies.hold(conclude),
      lost: (entry) => this.#lost(entry),
      mayRelease: (entry) => this.#closed || this.#isIdle(entry),
      isAsleep: (entry) => !this.#closed && this.#isAsleep(entry),
      refused: (code, entry) => this.refuse(code, entry),
      broken: (entry) => {
        this.#bodies.stop(entry)
        this.#tellWaiting(entry)
      },
    })
    this.#lookout = new Lookout({
      store,
      worker,
      onLog,
      seam: options.seam,
      isClosed: () => this.#closed,
      runs: this.#runs,
      moved: () => {
        this.#worker.noticed()
        this.listeners.wakeAll()
      },
      refreshAgents: () => this.agents.refresh(),
      wake: (entry) => this.#loop.wake(entry),
      passes: (entry) => this.#loop.passes(entry),
      advance: this.#advance,
      lost: (entry) => this.#lost(entry),
      damaged: (entry, error) => {
        const taken = entry.unsure?.taken ?? []
        entry.unsure = null
        this.#loop.break(entry, taken, error)
      },
      gone: (entry) => this.#gone(entry),
      foundOut: (entry, unsure, isThere) => this.#foundOut(entry, unsure, isThere),
    })
    this.agents = new Agents({ store, worker, clock, onLog, changed: (name) => this.#onAgent(name), unsure: () => this.#lookout.look() })
    this.#bodies = new Bodies({
      engine: this,
      alarms: this.#alarms,
      concurrencyOf: (agent) => this.#agentConcurrency(agent),
      mayBegin: (entry, attempt, actor) => this.#heldTurns.mayBegin(entry, attempt, actor),
      again: (entry, attempt) => this.#heldTurns.again(entry, attempt),
      say: this.#say,
      room: () => (this.#backlog.isFull ? this.#backlog.room() : null),
      mayStart: this.#mayStart,
      mayGoOn: (entry) => (this.#backlog.isFull ? this.#startLater(entry) : this.#lookout.goesOnOwning(entry)),
      ended: (entry) => {
        // Others have ended in the same commit or were aborted: the last of them asks.
        if (entry.executions.size > entry.state.running) return
        if (isOver(entry.state)) this.#forget(entry)
        else if (!this.#closed) this.#keepOrLetGo(entry)
      },
      crowded: () => this.#makeRoom(),
    })
    for (const provided of options.resources) provisionOf(provided)
    this.#heldTurns = new HeldTurns({
      agents: this.agents,
      alarms: this.#alarms,
      clock,
      entries: () => this.#runs.values(),
      dispatch: (entry, attempt) => this.#bodies.dispatch(entry, attempt),
      owed: (entry) => this.#bodies.owed(entry),
      say: this.#say,
      changed: (entry) => {
        this.#loop.wake(entry)
        this.#keepOrLetGo(entry)
      },
    })
    this.#takeOver = new TakeOver({
      engine: this,
      lookout: this.#lookout,
      runs: this.#runs,
      submit: (entry, command) => this.#loop.submit(entry, command, { owned: true }),
      align: (entry) => this.#align(entry),
      lost: (entry) => this.#lost(entry),
      gone: (entry) => this.#gone(entry),
      told: (entry) => this.#tellWaiting(entry),
    })
    this.#worker = new Worker({
      store,
      worker,
      clock,
      ttlMs: options.ttlMs,
      onLog,
      executables: () => this.#definitions.executables(),
      refused: () => this.#takeOver.refused,
      claimed: (row) => this.#takeOver.claimed(row),
      reclaim: () => this.#takeOver.reclaim(),
      at: (due, ring) => this.#alarms.at(due, ring),
      watched: () => this.agents.watched(),
    })
    this.#unsubscribe = store.onMoved(() => this.#lookout.onMoved())
    this.#opening = this.#open()
    this.#opening.catch(() => {})
  }

  /** No run is taken before it is known which agents may act. */
  async #open(): Promise<void> {
    await this.agents.refresh()
    await this.announce()
    await this.agents.watched()
    if (!this.#closed) this.#worker.start()
  }

  /** Makes the agents of all definitions of this process known to the store; null: they are. */
  announce(): Promise<void> | null {
    if (this.#definitions.news.size === 0) return null
    this.#announcing ??= this.#announce().finally(() => {
      this.#announcing = null
    })
    return this.#announcing
  }

  async #announce(): Promise<void> {
    for (;;) {
      const news = [...this.#definitions.news]
      if (news.length === 0) return
      await this.agents.register([...new Set(news.flatMap(agentsOf))])
      for (const internals of news) this.#definitions.announced(internals)
    }
  }

  /** Resolves when this engine has begun to work. */
  ready(): Promise<void> {
    return this.#opening
  }

  /** Takes what the store gives now, and did not give before. */
  lookForRuns(): void {
    this.#worker.claim()
  }

  /** What waits for an agent is looked at again, and what was let go may be due. */
  #onAgent(name: string): void {
    if (this.#closed) return
    this.#heldTurns.lookAgain(name)
    this.#worker.claim()
  }

  /** Something was refused, by a run if there is one. */
  refuse(code: string, entry?: RunEntry): void {
    for (const { refusals } of entry === undefined ? [this] : [this, entry]) refusals.set(code, (refusals.get(code) ?? 0) + 1)
  }

  // ── definitions ────────────────────────────────────────────────────────────────────────────────────────

  /** Makes a definition known, and those that its steps run, so that a child run can be recovered too. */
  register(definition: Definition): Internals {
    const internals = internalsOf(definition)
    if (this.#definitions.add(internals)) {
      if (this.#takeOver.tryAgain()) this.#worker.claim()
      this.#bodies.lookAgain()
    }
    return internals
  }

  /** What a name means in this process. */
  definition(name: string): Internals | null {
    return this.#definitions.named(name)
  }

  /** What a run is executed with: of a child run, what the step that it belongs to says in the definition of its parent. Null also if nobody can say. */
  async definitionOf({ run }: State, version: string | undefined = run?.shape.version): Promise<Internals | null> {
    if (run === null || version === undefined) return null
    const { id, parent } = run
    const name = run.shape.name
    // With none of that name there is none in a step either.
    const above = parent === null || this.definition(name) === null ? null : await this.#readable(parent.run)
    if (above === 'damaged') return null
    const whole = above === null ? null : (above.definition ?? (await this.definitionOf(above.state)))
    const step = whole?.kind === 'graph' && parent !== null ? whole.steps[stepOfChild(id, parent.run)] : undefined
    return this.#definitions.of({ id, name, version }, step?.kind === 'child' ? internalsOf(step.child) : null)
  }

  async #readable(runId: string): Promise<RunEntry | null | 'damaged'> {
    try {
      return await this.entry(runId)
    } catch (error) {
      if (!(error instanceof JournalDamaged)) throw error
      this.options.onLog({ level: 'error', message: `its child runs wait: ${thrownText(error)}`, runId })
      return 'damaged'
    }
  }

  /** Whether this process can execute a run: it has its definition, in its version or one that goes on with it, and can with this run. */
  executes(row: RunRow): boolean {
    if (this.#takeOver.refuses(row)) return false
    return this.#definitions.executables().some(({ name, versions }) => name === row.definition && versions.includes(row.version))
  }

  /** The least of what the definitions of this process say of an agent's name. */
  #agentConcurrency(agent: string): number {
    let least = Number.POSITIVE_INFINITY
    for (const internals of this.#definitions.all())
      if (internals.kind === 'topology') least = Math.min(least, internals.agents[agent]?.options.concurrency ?? Number.POSITIVE_INFINITY)
    return least
  }

  // ── commands ───────────────────────────────────────────────────────────────────────────────────────────

  /** Submits a command to a run that is there. Resolves when what came of it is durable. */
  async submit(runId: string, command: Command, put?: Put): Promise<Outcome> {
    const entry = await this.entry(runId)
    if (entry === null) return { refusal: { code: 'RUN_NOT_FOUND', message: `there is no run ${runId}` } }
    const said = command.type === 'run.resume' ? knowingAbove(this, entry.state, command) : command
    const outcome = await this.#loop.submit(entry, isLater(said) ? await said : said, { put, owned: false })
    if (isOfGone(entry, outcome)) return this.submit(runId, command, put)
    if (outcome.refusal === undefined && isSteering(command)) await this.#align(entry)
    // Nobody has it: if there is now something to do, nobody else would tell this worker.
    if (outcome.refusal === undefined && entry.owner === null && !isOver(entry.state)) this.#worker.claim()
    return outcome
  }

  /** What was said of a run before, by somebody who may have died since, is so of those that it waits for. */
  async alignAgain(runId: string): Promise<void> {
    const entry = await this.current(runId)
    if (entry !== null) await this.#align(entry)
  }

  /** What was said of a run is so of those that it waits for, once the store is in reach. If it can't be, whoever takes them over sees to it. */
  #align(entry: RunEntry): Promise<void> {
    // One after the other: who comes second finds done what the first did.
    entry.aligned = entry.aligned
      .then(() => patiently(this, () => alignChildren(this, entry.state)))
      .catch((error: unknown) => {
        if (!this.#closed)
          this.options.onLog({ level: 'warn', message: `its child runs could not be told: ${thrownText(error)}`, runId: entry.id })
      })
    return entry.aligned
  }

  /** Submits the first command of a run. With no definition here it waits for who has it. */
  async create(runId: string, definition: Internals | null, command: Command, put?: Put): Promise<Outcome> {
    while (this.#backlog.isFull) await this.#backlog.room()
    // That there is one of this id already is for the store to say: one that is over may have been deleted since.
    const known = this.#runs.get(runId)
    const entry = known === undefined || isForgettable(known) ? newEntry(runId, definition) : known
    this.#runs.add(entry)
    const kept = definition !== null && this.#definitions.keep(runId, definition)
    if (kept) this.#bodies.lookAgain()
    try {
      const outcome = await this.#loop.submit(entry, command, { put, owned: false })
      if (outcome.refusal !== undefined && kept) this.#definitions.forget(runId)
      return isOfGone(entry, outcome) ? await this.create(runId, definition, command, put) : outcome
    } finally {
      this.#dropUnmade(entry)
    }
  }

  /** Nothing came of a run: if there is ever one of this id, nothing is known of it here. */
  #dropUnmade(entry: RunEntry): void {
    if (entry.state !== newState || entry.queue.length > 0 || entry.unsure !== null) return
    this.#runs.drop(entry)
    if (this.#definitions.forget(entry.id)) this.#bodies.lookAgain()
  }

  /** What an execution or a timer has to say. After the engine was closed it is said to nobody: the run goes on elsewhere. */
  readonly #say = (entry: RunEntry, command: Command, settled: (outcome: Outcome) => void = nothing): void => {
    if (this.#closed) return
    const { seam } = this.options
    if (seam === undefined) return this.#loop.say(entry, command, settled)
    // A harness may let it happen twice: who said it is told once.
    let told = false
    const tell = (outcome: Outcome): void => {
      if (!told) settled(outcome)
      told = true
    }
    seam.hold({ type: 'command', run: entry.id, command }, (instead = command) => this.#loop.say(entry, instead, tell))
  }

  // ── what follows a commit ──────────────────────────────────────────────────────────────────────────────

  readonly #advance = (entry: RunEntry, events: readonly Event[], state: State): void => {
    const before = entry.state
    entry.state = state
    this.options.seam?.committed(entry.id, events, state)
    let claimed = false
    for (let place = 0; place < events.length; place++) {
      const event = events[place] as Event
      if (event.type === 'activity.completed' || event.type === 'activity.failed') route(entry, event)
      else if (event.type === 'run.claimed' && event.epoch === entry.owner?.epoch) {
        claimed = true
        entry.claiming = false
      }
      // One before this worker's own claim was the last owner's.
      else if (event.type === 'run.released' && !entry.claiming) this.#lost(entry)
    }
    const { owner } = entry
    // Whoever claims a run performs all that is outstanding in it, not only what came last; and nothing before that is durable.
    if (owner !== null && !entry.claiming) this.#perform(entry, claimed ? null : before)
    this.#heldTurns.forget(entry)
    if (saysMore(entry)) this.#loop.wake(entry)
    const over = isOver(state)
    if (over) {
      this.#takeOver.forget(entry.id)
      this.#lookout.sawOver(entry)
      this.#forget(entry)
    } else this.#keepOrLetGo(entry)
    this.listeners.happened(entry.id, over || entry.owner === null || entry.broken !== null)
  }

  /** The same, where nothing has happened but that activities came to something, or that some of many answered: nobody owes anything new for it. */
  readonly #recorded = (entry: RunEntry, events: readonly Event[], state: State): void => {
    entry.state = state
    this.options.seam?.committed(entry.id, events, state)
    for (let place = 0; place < events.length; place++) {
      const event = events[place] as Event
      if (event.type === 'activity.completed') route(entry, event)
    }
    // Something other than its sleep may have woken it.
    this.#waiting.delete(entry)
    this.listeners.happened(entry.id, entry.owner === null || entry.broken !== null)
  }

  /** The one switch over effects: starts what came to be owed. */
  #perform(entry: RunEntry, before: State | null): void {
    const { state } = entry
    const { turns, others, timersGone } = owedSince(before, state)
    for (let place = 0; place < timersGone.length; place++) this.#disarm(entry, timersGone[place] as string)
    const isSteered = before !== null && (before.pausedAt === null) !== (state.pausedAt === null)
    // What was started before a pause and has not begun, or was in flight when its worker died, begins when the run is resumed; and with it
    // what the resume starts.
    if (state.pausedAt === null && !isSteered) this.#bodies.dispatchAll(entry, turns)
    for (let place = 0; place < others.length; place++) {
      const effect = others[place] as (typeof others)[number]
      switch (effect.type) {
        case 'turn.abort':
          this.#bodies.abort(entry, effect.attempt)
          break
        case 'timer.wait':
          this.#await(entry, effect.timer)
          break
        case 'undo.perform':
          if (state.pausedAt === null) this.#bodies.undo(entry, effect.undo)
          break
      }
    }
    if (isSteered) this.#pausedOrResumed(entry)
  }

  /** While a run is paused its clock stands still and nothing begins: its alarms and what has not begun are taken back, and come again later. */
  #pausedOrResumed(entry: RunEntry): void {
    for (const timer of entry.state.timers.values()) this.#await(entry, timer)
    for (const execution of entry.executions.values()) execution.pausedOrResumed()
    void this.#align(entry)
    if (entry.state.pausedAt !== null) return this.#bodies.pause(entry)
    this.#bodies.dispatchAll(
      entry,
      attemptsOf(entry.state).sort((a, b) => a.seq - b.seq),
    )
    for (const undo of entry.state.undo.running.values()) this.#bodies.undo(entry, undo)
  }

  #await(entry: RunEntry, timer: Timer): void {
    this.#disarm(entry, timer.id)
    if (entry.state.pausedAt !== null) return
    const ring = (): void => this.#say(entry, { type: 'timer.fire', timer: timer.id })
    entry.alarms.set(timer.id, this.#alarms.at(timer.due + entry.state.pausedMs, ring))
  }

  #disarm(entry: RunEntry, timer: string): void {
    entry.alarms.get(timer)?.()
    entry.alarms.delete(timer)
  }

  /** Whether a body may start. What happened to the runs above has reached its run first. */
  readonly #mayStart = (entry: RunEntry, isAligned = entry.state.run?.parent === null): Maybe<boolean> => {
    if (!isAligned) return alignWithAbove(this, entry).then(() => this.#mayStart(entry, true))
    const isLate = this.#backlog.isFull || (entry.marked.size > 0 && isMarkedStill(entry))
    return isLate ? this.#startLater(entry) : this.#lookout.stillOwns(entry)
  }

  /** Too much is not durable yet, or the store takes a turn for one that still waits for its agent: the effect waits, and by then the run may be another's. */
  async #startLater(entry: RunEntry): Promise<boolean> {
    while (this.#backlog.isFull) await this.#backlog.room()
    while (isMarkedStill(entry) && entry.broken === null && !this.#closed) await this.#loop.passes(entry)
    return this.#lookout.stillOwns(entry)
  }

  // ── owning ─────────────────────────────────────────────────────────────────────────────────────────────

  /** Another worker owns the run: nothing of it is performed or recorded here any more. */
  #lost(entry: RunEntry): void {
    entry.owner = null
    entry.claiming = false
    this.#waiting.delete(entry)
    entry.held.clear()
    entry.marked = new Map()
    for (const off of entry.alarms.values()) off()
    entry.alarms.clear()
    this.#bodies.fence(entry)
  }

  /** The run was deleted, with all that it was: whoever asks for its id next finds what is there now. */
  #gone(entry: RunEntry): void {
    if (entry.isGone) return
    entry.isGone = true
    this.#lost(entry)
    this.#takeOver.forget(entry.id)
    this.#runs.drop(entry)
    if (this.#definitions.forget(entry.id)) this.#bodies.lookAgain()
    if (entry.queue.length > 0) this.#loop.wake(entry)
    this.#tellWaiting(entry)
  }

  /** What came of an append that nobody was sure of is known now. */
  #foundOut(entry: RunEntry, unsure: Unsure, isThere: boolean): void {
    this.#loop.resolve(entry, unsure, isThere)
    this.#dropUnmade(entry)
    // Whoever asked for it may have been told that the store is out of reach, and not look at it again.
    if (isThere && entry.owner === null && !isOver(entry.state)) this.#worker.claim()
  }

  /**
   * Runs that only wait are let go from memory when there are many, and those that sleep when others wait for their room: a timer, a person or a
   * resume brings them back.
   */
  #keepOrLetGo(entry: RunEntry): void {
    if (entry.owner === null) return
    if (!this.#isIdle(entry) || entry.queue.length > 0) {
      this.#waiting.delete(entry)
      return
    }
    this.#waiting.add(entry)
    if (this.#bodies.isInTheWay(entry)) return this.#letGo(entry)
    if (this.#waiting.size <= waitingMax) return
    const [oldest] = this.#waiting
    if (oldest !== undefined) this.#letGo(oldest)
  }

  /** Of the runs that sleep, the first that has room which somebody waits for is let go. */
  #makeRoom(): void {
    for (const entry of this.#waiting) if (this.#bodies.isInTheWay(entry) && this.#isIdle(entry)) return this.#letGo(entry)
  }

  #letGo(entry: RunEntry): void {
    this.#waiting.delete(entry)
    void this.#loop.submit(entry, { type: 'run.release' }, { owned: true }).then(
      ({ refusal }) => {
        if (refusal !== undefined) return
        this.#runs.drop(entry)
        // So that it is known when the earliest of them is due.
        this.#worker.claim()
      },
      () => {},
    )
  }

  /** Whether a run owes nothing now, and the store knows what it waits for. */
  #isIdle(entry: RunEntry): boolean {
    const { state, executions, undos, held } = entry
    // First what is mostly so: it is asked whenever a turn has ended.
    if (entry.owed > 0 || (executions.size > 0 && !this.#isAsleep(entry))) return false
    if (state.aborting.size + state.undo.running.size + undos.size > 0 || saysMore(entry)) return false
    return executions.size > 0 || isHeldBack(state, held)
  }

  /** Whether all turns of a run sleep, and for long or while it is paused: then their bodies need not be kept, and are executed again when they wake. */
  #isAsleep({ state, executions, held }: RunEntry): boolean {
    if (executions.size !== state.running || held.size > 0) return false
    for (const execution of executions.values()) if (!execution.isAsleep) return false
    // While it is paused its sleeps stand still.
    return state.pausedAt !== null || (sleepsUntil(state) ?? 0) > this.options.clock.now() + longSleepMs
  }

  /** The run is over, and nothing of it runs any more. */
  #forget(entry: RunEntry): void {
    this.#waiting.delete(entry)
    if (entry.executions.size > 0 || entry.undos.size > 0 || entry.queue.length > 0) return
    for (const off of entry.alarms.values()) off()
    entry.alarms.clear()
    entry.owner = null
    entry.port = null
    this.#bodies.dispose(entry)
    if (this.#definitions.forget(entry.id)) this.#bodies.lookAgain()
    this.#runs.over(entry)
  }

  // ── looking ────────────────────────────────────────────────────────────────────────────────────────────

  /** What is known of a run, loaded if need be. */
  entry(runId: string): Maybe<RunEntry | null> {
    const known = this.#runs.get(runId)
    return known !== undefined && known.state !== newState ? known : this.#find(runId, known)
  }

  async #find(runId: string, known: RunEntry | undefined): Promise<RunEntry | null> {
    if (known !== undefined) {
      // It may have been made, and then there is more to know.
      if (known.state === newState && isBehind(known)) await this.#lookout.catchUp(known)
      if (known.state !== newState || this.#closed) return known
      // Somebody here asks for it to be made, and the store may not have answered yet: it may be there already.
      do await this.#loop.passes(known)
      while (known.state === newState && known.queue.length > 0 && known.broken === null && !this.#closed)
      return this.#runs.get(runId) === known ? known : this.entry(runId)
    }
    const loading = this.#loading.get(runId) ?? this.#load(runId).finally(() => this.#loading.delete(runId))
    this.#loading.set(runId, loading)
    return loading
  }

  async #load(runId: string): Promise<RunEntry | null> {
    const loaded = await this.options.store.load(runId, { snapshot: true })
    if (loaded === null) return null
    const entry = newEntry(runId, null)
    entry.order = loaded.row.order
    const snapshot = decodeSnapshot(loaded.snapshot)
    const whole = snapshot !== null || loaded.snapshot === null ? loaded : ((await this.options.store.load(runId)) ?? loaded)
    const state = snapshot ?? newState
    const events = await eventsOf(this.options.store, whole, state.seq)
    if (events === null) return null
    entry.state = events.reduce(evolve, state)
    // Nothing of a run that is over is decided any more.
    if (!isOver(entry.state)) entry.definition = await this.definitionOf(entry.state, loaded.row.version)
    const known = this.#runs.get(runId)
    if (known !== undefined) return known
    if (!isOver(entry.state)) this.#runs.add(entry)
    return entry
  }

  /** Forgets runs that are over: the store may keep them no longer. */
  forgetEnded(): void {
    this.#runs.forgetOver()
  }

  /** The state of a run as it is now. */
  current(runId: string): Maybe<RunEntry | null> {
    const entry = this.entry(runId)
    return isLater(entry) ? entry.then((found) => this.#seen(runId, found)) : this.#seen(runId, entry)
  }

  #seen(runId: string, entry: RunEntry | null): Maybe<RunEntry | null> {
    if (entry === null) return null
    const seeing = isOver(entry.state) ? this.#seeOver(entry) : this.#lookout.seeNow(entry)
    if (isLater(seeing)) return seeing.then(() => (entry.isGone ? this.current(runId) : entry))
    return entry.isGone ? this.current(runId) : entry
  }

  /** How a run has ended is said as long as nobody knows better. */
  #seeOver(entry: RunEntry): Maybe<void> {
    return this.#lookout.seeOver(entry)?.catch((error: unknown) => {
      if (!isOutOfReach(error)) throw error
    })
  }

  /** Why a run was stopped by a fault of ours; null: it was not, as far as is known here. */
  stoppedBy(runId: string): Error | null {
    return this.#runs.get(runId)?.broken ?? null
  }

  /** All that has happened in a run; nothing, if there is none. */
  journal(runId: string): Promise<Event[]> {
    return journalOf(this.options.store, runId)
  }

  /** Tells those who wait for it what has happened in a run. */
  #tellWaiting(entry: RunEntry): void {
    this.listeners.happened(entry.id, isOver(entry.state) || entry.owner === null || entry.broken !== null)
  }

  get closed(): boolean {
    return this.#closed
  }

  /** Lets go cleanly: bodies are aborted and awaited for their grace, runs are given back as due now. The store has that grace too, in all. */
  async close(): Promise<void> {
    if (this.#closed) return
    const { clock, graceMs } = this.options
    this.#alarms.at(clock.now() + graceMs, () => this.#loop.giveUp())
    const inTime = this.#patience()
    await inTime(this.#finishing())
    this.#closed = true
    this.#backlog.close()
    this.#unsubscribe()
    // Nothing ends here any more: a step that waits for the end of its own run, which was cancelled, would wait for all of its grace.
    this.listeners.wakeAll()
    const owned = [...this.#runs.values()].filter((entry) => entry.owner !== null)
    await Promise.all(owned.map((entry) => this.#bodies.leave(entry)))
    await inTime(
      Promise.allSettled(
        owned
          .filter(({ state, broken }) => !isOver(state) && broken === null)
          .map((entry) => this.#loop.submit(entry, { type: 'run.release' }, { owned: true })),
      ),
    )
    this.#loop.close()
    this.#alarms.close()
    await this.#bodies.close()
    await inTime(this.#leave())
    this.listeners.close()
    // What was aborted last is looked at in this macrotask.
    setImmediate(this.#stopPassing)
  }

  /** Waits for what takes the store until the grace that all of it has is over: then the store is given up, whether or not it ever answers. */
  #patience(): (work: Promise<unknown>) => Promise<void> {
    const { clock, graceMs } = this.options
    let leftMs = Math.max(graceMs, answerMs)
    return async (work) => {
      const since = clock.now()
      const grace = new AbortController()
      await Promise.race([work.then(() => grace.abort()), clock.sleep(leftMs, grace.signal)])
      if (!grace.signal.aborted) this.#loop.giveUp()
      grace.abort()
      leftMs = Math.max(0, leftMs - (clock.now() - since))
    }
  }

  /** Nothing more is taken, and what is on its way is recorded. */
  async #finishing(): Promise<void> {
    await this.#opening.catch(() => {})
    await this.#worker.stop()
    await this.#loop.idle()
  }

  async #leave(): Promise<void> {
    const { store, worker, onLog } = this.options
    try {
      await store.leave(worker, dueNow)
    } catch (error) {
      onLog({
        level: 'warn',
        message: `the worker could not leave the store: ${error instanceof TuttiError ? error.code : thrownText(error)}`,
      })
    }
  }
}
