import type { AgentCode } from '../define/agent-code.js'
import type { Definition, Internals } from '../define/definition.js'
import type { LanguageModel } from '../define/language-model.js'
import { isLater, type Maybe } from '../define/maybe.js'
import type { Schema } from '../define/schema.js'
import type { ActivitySpeaker, Command } from '../kernel/command.js'
import { attemptId } from '../kernel/ids.js'
import type { Attempt } from '../kernel/state.js'
import type { Usage } from '../kernel/usage.js'
import type { PriceOf } from '../models/budget.js'
import { resolveModel } from '../models/resolve.js'
import type { Toolboxes } from '../models/toolboxes.js'
import { failedBy, rejectedBy } from './agent-turns.js'
import type { AgentHere } from './agents.js'
import type { Alarms } from './alarms.js'
import type { BodiesPort } from './bodies.js'
import type { ChildDone, endChildRun } from './child-run.js'
import { childRun } from './child-run.js'
import type { Execution } from './execution.js'
import type { Gate, Lane } from './gate.js'
import { turnId } from './held-turns.js'
import type { Outcome, RunEntry } from './run-entry.js'
import type { ActivityOutcome, Seam } from './seam.js'
import { isWithinAbove } from './spent-below.js'
import type { Clock } from './tutti.js'

/** What all runs of a process share in executing their bodies. */
export interface SharedPort extends BodiesPort {
  readonly gate: Gate
  readonly toolboxes: Toolboxes
  readonly priceOf: PriceOf
  readonly later: Seam['later']
  resources(entry: RunEntry): Maybe<ReadonlyMap<string, unknown>>
  endChild(entry: RunEntry, of: Attempt): Promise<void>
  childEnded(entry: RunEntry, of: Attempt): ReturnType<typeof endChildRun>
}

/** Whose turns they are that have one name in a definition: looked up once for all of them. */
export interface Actor {
  /** Null: it is a step. */
  readonly agent: AgentCode | null
  /** What this process knows of that agent. */
  readonly here: AgentHere | null
  /** Null: its turns only wait for other runs. With room of their own they would take that of the others' turns. */
  readonly lane: Lane | null
}

/** What is said of an agent's concurrency is not said of a step that happens to have its name. */
const stepLane = 'a step'

const noResources: ReadonlyMap<string, unknown> = new Map<string, unknown>([])

/** What an execution needs of its run. */
export type ExecutionPort = Omit<RunPort, 'entry' | 'actorOf'>

/** What the executions of one run are given: one for all of them, and with methods, because a wide fan-out or many runs have thousands. */
export class RunPort {
  readonly entry: RunEntry
  readonly definition: Internals
  readonly runId: string
  readonly clock: Clock
  readonly alarms: Pick<Alarms, 'at'>
  readonly graceMs: number
  readonly maxValue: number
  readonly later: Seam['later']
  readonly toolboxes: Toolboxes
  readonly priceOf: PriceOf
  /** Whether there is a harness that may know what activities come to. */
  readonly isPlayed: boolean
  readonly #shared: SharedPort
  readonly #hasResources: boolean
  readonly #actors = new Map<string, Actor>()
  /**
   * Attempts whose end is being counted for a breaker: that comes before it is decided, since a failure too many must keep the next one from
   * starting. What an attempt says meanwhile, as that its body has ended after its time, waits for its turn.
   */
  readonly #counting = new Map<Attempt, Promise<void>>()

  constructor(shared: SharedPort, entry: RunEntry, definition: Internals) {
    const { options } = shared.engine
    this.entry = entry
    this.definition = definition
    this.runId = entry.id
    this.clock = options.clock
    this.alarms = shared.alarms
    this.graceMs = options.graceMs
    this.maxValue = options.store.promises.maxValue
    this.later = shared.later
    this.toolboxes = shared.toolboxes
    this.priceOf = shared.priceOf
    this.isPlayed = options.seam?.activity !== undefined
    this.#shared = shared
    this.#hasResources = options.resources.length > 0
  }

  actorOf(name: string): Actor {
    const known = this.#actors.get(name)
    if (known !== undefined) return known
    const actor = this.#newActor(name)
    this.#actors.set(name, actor)
    return actor
  }

  #newActor(name: string): Actor {
    const { engine, gate } = this.#shared
    if (this.definition.kind === 'graph')
      return { agent: null, here: null, lane: this.definition.steps[name]?.kind === 'child' ? null : gate.lane(stepLane) }
    const agent = this.definition.agents[name] ?? null
    return { agent, here: agent === null ? null : engine.agents.here(agent.name), lane: gate.lane(name) }
  }

  /** The clock that an attempt sleeps by; what it has as a deadline goes by the other. */
  clockOf({ branch }: Attempt): Clock {
    return this.#shared.engine.options.seam?.clock?.(this.runId, branch) ?? this.clock
  }

  /** An execution begins: whether it may, because this process still owns the run. */
  begin({ actor: { here } }: Execution): Maybe<boolean> {
    if (here !== null) here.inFlight++
    return this.#shared.mayStart(this.entry)
  }

  /** Whether it may begin now: its run is not paused and its agent may act, as far as was known when `begin` had its answer. */
  isAdmitted({ attempt, actor: { here } }: Execution): boolean {
    return this.entry.state.pausedAt === null && (here === null || here.isFree || this.#isLetIn(here, attempt))
  }

  #isLetIn(here: AgentHere, attempt: Attempt): boolean {
    return this.#shared.engine.agents.admission(here, 'fail', () => turnId(this.entry, attempt)) === 'go'
  }

  get isPaused(): boolean {
    return this.entry.state.pausedAt !== null
  }

  /** Whether this process still owns the run: asked before each step. */
  mayGoOn(): Maybe<boolean> {
    return this.#shared.mayGoOn(this.entry)
  }

  /** Whether what a call has set aside leaves the runs above within what they may use. */
  isWithinAbove(): Maybe<boolean> {
    const isWithin = isWithinAbove(this.#shared.engine, this.entry.state, this.later)
    // To look takes a while: by then its own run may be another's.
    return isLater(isWithin) ? isWithin.then((may) => may && this.mayGoOn()) : isWithin
  }

  /** Nothing of an execution runs any more, or it is fenced off. */
  ended(execution: Execution): void {
    const { entry } = this
    const { attempt, id } = execution
    const { here } = execution.actor
    // After it was fenced off, another execution may have its place.
    const isLast = entry.executions.get(id) === execution
    if (isLast) entry.executions.delete(id)
    // One that was taken back before it ran has left.
    if (execution.stage === 'running') {
      this.#shared.gate.leave(execution)
      if (here !== null) here.inFlight--
    }
    if (here?.isFree === false) this.#left(here, attempt)
    if (isLast && execution.heldBack && entry.owner !== null) this.#shared.again(entry, attempt)
    this.#shared.ended(entry)
  }

  #left(here: AgentHere, attempt: Attempt): void {
    this.#shared.engine.agents.ended(here, () => turnId(this.entry, attempt))
  }

  /** A body, or a step of it, has returned after it was aborted: that is counted, and used for nothing. */
  returnedLate(): void {
    this.#shared.engine.refuse('STALE_ATTEMPT', this.entry)
  }

  /** Says something, after what is being counted of its attempt; `settled` is told, once, whether it was refused. */
  submit({ attempt, actor }: Execution, command: Command, settled: (outcome: Outcome) => void): void {
    const { agent, here } = actor
    const isCounted = here !== null && (!here.isFree || agent?.options.breaker !== undefined)
    if (isCounted || this.#counting.size > 0) this.#submitCounted(actor, attempt, command, settled)
    else this.#shared.say(this.entry, command, settled)
  }

  #submitCounted(actor: Actor, attempt: Attempt, command: Command, settled: (outcome: Outcome) => void): void {
    const counted = this.#counted(actor, attempt, command)
    if (counted !== null) this.#counting.set(attempt, counted)
    const waitsFor = this.#counting.get(attempt)
    if (waitsFor === undefined) return this.#shared.say(this.entry, command, settled)
    void waitsFor.then(() => {
      this.#counting.delete(attempt)
      this.#shared.say(this.entry, command, settled)
    })
  }

  /** Whether its agent worked, for its breaker; null: there is nothing to wait for. */
  #counted({ agent, here }: Actor, attempt: Attempt, command: Command): Promise<void> | null {
    const { entry } = this
    const failed = failedBy(command)
    // Of a run that another worker has, nothing is said any more.
    if (agent === null || here === null || failed === null || entry.owner === null) return null
    const { agents } = this.#shared.engine
    const { breaker } = agent.options
    if (!agents.counts(here, breaker, failed)) return null
    return agents.attempted(here.name, () => turnId(entry, attempt), breaker, { failed, rejected: () => rejectedBy(command, entry.state) })
  }

  /** The run's resources, made before its first turn. */
  resources(): Maybe<ReadonlyMap<string, unknown>> {
    return this.#hasResources ? this.#shared.resources(this.entry) : noResources
  }

  /** What an activity comes to; null: no harness knows it. */
  known(speaker: ActivitySpeaker): Promise<ActivityOutcome> | null {
    return this.#shared.engine.options.seam?.activity?.(this.runId, speaker) ?? null
  }

  /** A resource as an attempt is given it. */
  lend({ branch, agent, turn, attempt }: Attempt, name: string, value: unknown): unknown {
    const to = { run: this.runId, branch, agent, id: attemptId(branch, turn, attempt) }
    return this.#shared.engine.options.seam?.lend(name, value, to) ?? value
  }

  emit(branch: string, agent: string, data: unknown): void {
    this.#shared.engine.listeners.tell(this.runId, { type: 'emit', branch, agent, after: this.entry.state.seq, data })
  }

  /** The model of an agent. */
  model(ref: { readonly agent: string; readonly model: LanguageModel | string | undefined }): Promise<LanguageModel> {
    return resolveModel(ref, { models: this.#shared.engine.options.models, env: process.env })
  }

  /** Tells on what a model says as it says it; null if nobody listens. */
  listener(branch: string, agent: string, attempt: number): ((text: string) => void) | null {
    const { entry } = this
    const { listeners } = this.#shared.engine
    if (!listeners.hasTakers(this.runId)) return null
    return (text) => listeners.tell(entry.id, { type: 'text.delta', branch, agent, after: entry.state.seq, text, attempt })
  }

  /** What an answer to this branch must be; undefined: nothing of its own. */
  keepAskSchema(branch: string, schema: Schema | undefined): void {
    const { askSchemas } = this.entry
    if (schema === undefined) askSchemas.delete(branch)
    else askSchemas.set(branch, schema)
  }

  /** Runs a definition as a child of this attempt. */
  child(of: Attempt, child: Definition, input: unknown, signal: AbortSignal): Promise<ChildDone> {
    return childRun(this.#shared.engine, this.entry.state, of, child, input, signal)
  }

  /** Ends the run that this attempt may have; what that leaves behind. */
  async giveUp(of: Attempt): Promise<{ notUndone?: readonly string[]; usage?: Usage }> {
    const { done, ...left } = await this.#shared.childEnded(this.entry, of)
    // It had come to its end, and what it did is not to be used.
    return done?.child === undefined ? left : { ...left, notUndone: [done.child, ...(left.notUndone ?? [])] }
  }

  /** Ends the run that this attempt may have, and says that the attempt is over. */
  endChild(of: Attempt): Promise<void> {
    return this.#shared.endChild(this.entry, of)
  }
}
