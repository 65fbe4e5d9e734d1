import type { Maybe } from '../define/maybe.js'
import type { Command } from '../kernel/command.js'
import { entryOf } from '../kernel/fold-undo.js'
import { attemptId } from '../kernel/ids.js'
import type { Attempt } from '../kernel/state.js'
import { runsChild } from '../kernel/state.js'
import { thrownText } from '../kernel/thrown-text.js'
import type { UndoAttempt } from '../kernel/undo-state.js'
import { pricesFrom } from '../models/price.js'
import { Toolboxes } from '../models/toolboxes.js'
import type { Alarms } from './alarms.js'
import { endChildRun, undoChildRun } from './child-run.js'
import type { Engine } from './engine.js'
import { Execution } from './execution.js'
import { Gate, type Lane } from './gate.js'
import { turnId } from './held-turns.js'
import type { Outcome, RunEntry } from './run-entry.js'
import { type Actor, RunPort, type SharedPort } from './run-port.js'
import { disposeResources, runResources } from './run-resources.js'
import type { Held } from './seam.js'
import { UndoExecution } from './undo-execution.js'

/** A body on its way: it waits for room, has it and waits to be let go, runs, or is taken back before it runs. */
export interface Body {
  /** Whose room it takes; null: it only waits for a run. */
  readonly actor: { readonly lane: Lane | null }
  stage: 'waiting' | 'entered' | 'running' | 'gone'
  run(): void
  /** What a harness is told of it. */
  held(): Held
}

export interface BodiesPort {
  readonly engine: Engine
  readonly alarms: Alarms
  concurrencyOf(agent: string): number
  /** Whether its agent, which is not free, lets a turn begin; if not, it waits or fails. */
  mayBegin(entry: RunEntry, attempt: Attempt, actor: Actor): boolean
  /** It was not begun after all, because of its agent. */
  again(entry: RunEntry, attempt: Attempt): void
  say(entry: RunEntry, command: Command, settled?: (outcome: Outcome) => void): void
  /** Resolves when there is room for what bodies come to; null: there is. */
  room(): Promise<void> | null
  /** Whether a body of a run may start: this process still owns it. Later, if too much is not durable yet. */
  mayStart(entry: RunEntry): Maybe<boolean>
  /** The same of a step of a body that goes on. */
  mayGoOn(entry: RunEntry): Maybe<boolean>
  /** A body of a run has ended, or no turn of it waits for its time any more. */
  ended(entry: RunEntry): void
  /** A body has to wait for room. */
  crowded(): void
}

const undoLane = 'an undo'

/** How many bodies begin in one macrotask, and how many turns are dispatched in one. */
const atOnce = 256

/** Turns that have come to be owed together, and which of them is next. */
interface Owed {
  readonly entry: RunEntry
  readonly turns: readonly Attempt[]
  next: number
}

/**
 * The bodies of turns and of undos that this process executes.
 *
 * 1. Of each attempt at most one is executed here at a time.
 * 2. One begins when there is room, and when those have been told who wait for what was just committed. Until then it can be taken back.
 */
export class Bodies {
  readonly #port: BodiesPort
  readonly #gate: Gate
  readonly #toolboxes = new Toolboxes()
  readonly #shared: SharedPort
  /** Those that begin in the next macrotask. */
  #beginning: Body[] = []
  /** The turns that are still to be dispatched. */
  #owing: Owed[] = []
  #isLetting = false
  /** What gives bodies their results. */
  #giving: (() => void)[] = []
  #holds = false
  /** What was made for runs and is being let go of. */
  readonly #disposing = new Set<Promise<void>>()

  constructor(port: BodiesPort) {
    this.#port = port
    const { options } = port.engine
    const { seam } = options
    this.#gate = new Gate(
      options.concurrency,
      (agent) => port.concurrencyOf(agent),
      this.#entered,
      () => port.crowded(),
    )
    this.#shared = {
      ...port,
      gate: this.#gate,
      toolboxes: this.#toolboxes,
      priceOf: pricesFrom(options.prices ?? {}),
      later: seam === undefined ? (task, afterMs) => this.#later(task, afterMs) : (task, afterMs) => seam.later(task, afterMs),
      resources: (entry) => this.#resources(entry),
      endChild: (entry, of) => this.#endChild(entry, of),
      childEnded: (entry, of) => this.#childEnded(entry, of),
    }
  }

  /** What limits there are has changed. */
  lookAgain(): void {
    this.#gate.lookAgain()
  }

  /** Whether the bodies of a run have room that others wait for. */
  isInTheWay({ executions }: RunEntry): boolean {
    for (const { actor } of executions.values()) if (actor.lane !== null && this.#gate.isWanted(actor.lane)) return true
    return false
  }

  // ── turns ──────────────────────────────────────────────────────────────────────────────────────────────

  /**
   * Executes all turns that have come to be owed. Where there are more than begin at once, each is made ready when its time comes: thousands
   * that wait are copied whenever memory is collected.
   */
  dispatchAll(entry: RunEntry, turns: readonly Attempt[]): void {
    const isSoon = entry.owed === 0 && (turns.length <= atOnce || this.#port.engine.options.seam !== undefined)
    if (isSoon) for (let place = 0; place < turns.length; place++) this.dispatch(entry, turns[place] as Attempt)
    else if (turns.length > 0) {
      entry.owed++
      this.#owing.push({ entry, turns, next: 0 })
      if (!this.#isLetting) this.#letGoSoon()
    }
  }

  /**
   * Makes ready as many of those that wait for their time as begin at once, of all runs in the order in which they came. Half of them also where
   * others fill every macrotask: many small runs that go on again and again would keep them waiting for their end.
   */
  #dispatchOwed(): void {
    let room = Math.max(atOnce / 2, atOnce - this.#beginning.length)
    while (room-- > 0) {
      const first = this.#owing[0]
      if (first === undefined) return
      const { entry, turns } = first
      const attempt = turns[first.next++] as Attempt
      if (first.next === turns.length) {
        this.#owing.shift()
        entry.owed--
      }
      if (entry.state.branches.isLive(attempt)) this.dispatch(entry, attempt)
      if (entry.owed === 0) this.#port.ended(entry)
    }
  }

  /** The turns of a run that still wait for their time. */
  owed(entry: RunEntry): ReadonlySet<string> {
    const those =
      entry.owed === 0 ? [] : this.#owing.filter(({ entry: of }) => of === entry).flatMap(({ turns, next }) => turns.slice(next))
    return new Set(those.map(({ branch, turn, attempt }) => attemptId(branch, turn, attempt)))
  }

  /** What waits for its time waits no more. */
  #dropOwed(entry: RunEntry): void {
    if (entry.owed === 0) return
    entry.owed = 0
    this.#owing = this.#owing.filter(({ entry: of }) => of !== entry)
  }

  /** Executes an attempt at a turn, if it is not executed already, its agent may act and its run is not stopped by a fault of ours. */
  dispatch(entry: RunEntry, attempt: Attempt): void {
    const { definition } = entry
    if (definition === null || entry.broken !== null || this.#port.engine.closed) return
    // One for all executions of a run in a definition.
    if (entry.port?.definition !== definition) entry.port = new RunPort(this.#shared, entry, definition)
    const actor = entry.port.actorOf(attempt.agent)
    const id = attemptId(attempt.branch, attempt.turn, attempt.attempt)
    if (entry.executions.has(id)) return
    if (actor.here?.isFree === false && !this.#port.mayBegin(entry, attempt, actor)) return
    const execution = new Execution(entry.port, actor, entry.state, attempt, id)
    entry.executions.set(id, execution)
    this.#gate.enter(execution)
  }

  /** The attempt is not wanted any more: one that runs is told so, one that does not is over. */
  abort(entry: RunEntry, attempt: Attempt): void {
    const id = attemptId(attempt.branch, attempt.turn, attempt.attempt)
    const execution = entry.executions.get(id)
    if (execution?.stage === 'running') return execution.abort('the branch was cancelled')
    this.#forgo(entry, attempt)
    // A run that an execution before this one has started goes on by itself.
    if (runsChild(entry.state, attempt.agent)) void this.#endChild(entry, attempt)
    else this.#settle(entry, attempt)
  }

  /** An attempt that does not run here is not going to. */
  #forgo(entry: RunEntry, attempt: Attempt): void {
    const id = attemptId(attempt.branch, attempt.turn, attempt.attempt)
    const execution = entry.executions.get(id)
    if (execution !== undefined) this.#takeBack(execution)
    this.#port.engine.agents.unprobe(attempt.agent, () => turnId(entry, attempt))
    entry.executions.delete(id)
  }

  async #endChild(entry: RunEntry, attempt: Attempt): Promise<void> {
    try {
      this.#settle(entry, attempt, await this.#childEnded(entry, attempt))
    } catch {
      // Whoever takes the run over tries it again.
    }
  }

  /** Throws if this process stops. */
  async #childEnded(entry: RunEntry, attempt: Attempt): ReturnType<typeof endChildRun> {
    const { engine } = this.#port
    try {
      return await endChildRun(engine, entry.state, attempt)
    } catch (error) {
      if (engine.closed) throw error
      engine.options.onLog({ level: 'error', message: `a child run could not be ended: ${thrownText(error)}`, runId: entry.id })
      return {}
    }
  }

  #settle(entry: RunEntry, { branch, agent, turn, attempt }: Attempt, late: Awaited<ReturnType<typeof endChildRun>> = {}): void {
    this.#port.say(entry, { type: 'turn.settle', branch, agent, turn, attempt, how: 'ended', ...late })
  }

  // ── undos ──────────────────────────────────────────────────────────────────────────────────────────────

  undo(entry: RunEntry, undo: UndoAttempt): void {
    const { definition } = entry
    const { engine, alarms } = this.#port
    if (definition === null || engine.closed || entry.undos.has(undo.of)) return
    const { options, listeners } = engine
    const { branch, agent, what } = entryOf(entry.state, undo.of)
    const id = `undo ${undo.of}/${undo.attempt}`
    const execution: UndoExecution = new UndoExecution(
      {
        clock: options.clock,
        alarms,
        definition,
        graceMs: options.graceMs,
        maxValue: options.store.promises.maxValue,
        ended: () => {
          const isLast = entry.undos.get(undo.of) === execution
          if (isLast) entry.undos.delete(undo.of)
          this.#gate.leave(execution)
          if (isLast && entry.owner !== null) this.#undoAgain(entry, undo, execution.heldBack)
          this.#port.ended(entry)
        },
        submit: (command) => new Promise((resolve) => this.#port.say(entry, command, resolve)),
        mayStart: () => this.#port.mayStart(entry),
        isAdmitted: () => entry.state.pausedAt === null,
        resources: () => this.#resources(entry),
        emit: (data) => listeners.tell(entry.id, { type: 'emit', branch, agent, after: entry.state.seq, data }),
        lend: (name, value) => options.seam?.lend(name, value, { run: entry.id, branch, agent, id }) ?? value,
        undoChild: (run, signal) => undoChildRun(engine, entry.state, run, signal),
      },
      entry.state,
      undo,
      { lane: what === 'child' ? null : this.#gate.lane(undoLane) },
    )
    entry.undos.set(undo.of, execution)
    this.#gate.enter(execution)
  }

  /** An undo that had not begun may begin, if its run was resumed meanwhile; and so may the next attempt at one that has run out of time. */
  #undoAgain(entry: RunEntry, { of, attempt }: UndoAttempt, heldBack: boolean): void {
    const owed = entry.state.undo.running.get(of)
    if (owed !== undefined && (heldBack || owed.attempt !== attempt) && entry.state.pausedAt === null) this.undo(entry, owed)
  }

  // ── both ───────────────────────────────────────────────────────────────────────────────────────────────

  /** It has room: it begins in the next macrotask, or when a harness lets it. */
  readonly #entered = (body: Body): void => {
    body.stage = 'entered'
    const { seam } = this.#port.engine.options
    if (seam !== undefined) return seam.hold(body.held(), () => go(body))
    this.#beginning.push(body)
    if (!this.#isLetting) this.#letGoSoon()
  }

  /** So many at once that others have their turn in between, and that the first may have ended before the last begins. */
  readonly #letGo = (): void => {
    const room = this.#port.room()
    if (room !== null) return void room.then(this.#letGo)
    if (this.#owing.length > 0) this.#dispatchOwed()
    const bodies = this.#beginning
    this.#beginning = bodies.length > atOnce ? bodies.splice(atOnce) : []
    this.#isLetting = false
    for (let place = 0; place < bodies.length; place++) go(bodies[place] as Body)
    if (this.#beginning.length + this.#owing.length > 0 && !this.#isLetting) this.#letGoSoon()
  }

  #letGoSoon(): void {
    this.#isLetting = true
    setImmediate(this.#letGo)
  }

  #takeBack(body: Body): void {
    const { stage } = body
    if (stage === 'running' || stage === 'gone') return
    body.stage = 'gone'
    this.#gate.leave(body)
  }

  #later(task: () => void, afterMs: number | undefined): void {
    if (afterMs === undefined) this.#give(task)
    else setTimeout(task, afterMs)
  }

  /** Gives a body a result: at the end of the macrotask in which it was committed, or in the next one. */
  #give(task: () => void): void {
    if (this.#giving.push(task) === 1 && !this.#holds) setImmediate(() => this.#giveAll())
  }

  /** A body is given one result at most, because what it then asks for has its turn later. */
  #giveAll(): void {
    const tasks = this.#giving
    this.#giving = []
    for (const task of tasks) task()
  }

  /** Tells of a commit; who waits for its results has them after all else that follows from it, in the same macrotask. */
  hold(conclude: () => void): void {
    const before = this.#giving
    this.#giving = []
    this.#holds = true
    try {
      conclude()
    } finally {
      this.#holds = false
      const tasks = this.#giving
      // What waits for the next macrotask already goes on waiting.
      this.#giving = before
      for (const task of tasks) task()
    }
  }

  /** The run is paused: what has not begun is taken back. It is still owed, and whoever resumes the run has it executed. */
  pause(entry: RunEntry): void {
    this.#dropOwed(entry)
    for (const { stage, attempt } of entry.executions.values()) if (stage !== 'running') this.#forgo(entry, attempt)
    for (const [of, undo] of entry.undos) {
      if (undo.stage === 'running') continue
      this.#takeBack(undo)
      entry.undos.delete(of)
    }
    const made = entry.resources
    // What could not be made is made anew for those that begin when it is resumed.
    made?.catch(() => {
      if (entry.resources === made) entry.resources = null
    })
  }

  /** A fault of ours has stopped the run: what runs is told so, and nothing more of it begins. */
  stop(entry: RunEntry): void {
    const why = 'the run is stopped'
    for (const execution of entry.executions.values()) execution.abort(why)
    for (const undo of entry.undos.values()) {
      this.#takeBack(undo)
      undo.fence(why)
    }
  }

  /** Another worker owns the run: nothing of it is said here any more. */
  fence(entry: RunEntry): void {
    this.#dropOwed(entry)
    for (const execution of entry.executions.values()) {
      this.#takeBack(execution)
      execution.fence('another worker owns the run')
      this.#port.engine.agents.unprobe(execution.attempt.agent, () => turnId(entry, execution.attempt))
    }
    entry.executions.clear()
    for (const undo of entry.undos.values()) {
      this.#takeBack(undo)
      undo.fence('another worker owns the run')
    }
    entry.undos.clear()
    this.dispose(entry)
  }

  /** The engine is closed: bodies are told so, and awaited for their grace. */
  async leave(entry: RunEntry): Promise<void> {
    const why = 'the engine is closed'
    const bodies = [...entry.executions.values(), ...entry.undos.values()]
    for (const body of bodies) this.#takeBack(body)
    await Promise.all(bodies.map((body) => body.leave(why)))
  }

  /** What was made for runs may take as long to be let go of as a body to end. */
  async close(): Promise<void> {
    const { clock, graceMs } = this.#port.engine.options
    await this.#toolboxes.close()
    if (this.#disposing.size === 0) return
    const grace = new AbortController()
    await Promise.race([Promise.all(this.#disposing), clock.sleep(graceMs, grace.signal)])
    grace.abort()
  }

  // ── resources ──────────────────────────────────────────────────────────────────────────────────────────

  /** Made before the first turn of a run in this process. */
  #resources(entry: RunEntry): Maybe<ReadonlyMap<string, unknown>> {
    entry.resources ??= runResources(this.#port.engine.options.resources, entry.state)
    return entry.resources
  }

  dispose(entry: RunEntry): void {
    const made = entry.resources
    entry.resources = null
    if (made === null) return
    const { resources: provided, onLog } = this.#port.engine.options
    const warn = (error: unknown): void =>
      onLog({ level: 'warn', message: `a resource could not be disposed: ${thrownText(error)}`, runId: entry.id })
    // A resource that could not be made has nothing to dispose: its failure was the turn's.
    made.then(
      (resources) => {
        const disposing = disposeResources(provided, resources)
          .catch(warn)
          .finally(() => this.#disposing.delete(disposing))
        this.#disposing.add(disposing)
      },
      () => {},
    )
  }
}

/** Runs a body that was not taken back, once, however often it is let go. */
function go(body: Body): void {
  if (body.stage !== 'entered') return
  body.stage = 'running'
  body.run()
}
