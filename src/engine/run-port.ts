import type { Definition, Internals } from '../define/definition.js'
import type { Maybe } from '../define/maybe.js'
import type { Schema } from '../define/schema.js'
import type { ActivitySpeaker, Command } from '../kernel/command.js'
import { attemptId } from '../kernel/ids.js'
import type { Attempt } from '../kernel/state.js'
import type { Usage } from '../kernel/usage.js'
import type { PriceOf } from '../models/budget.js'
import { resolveModel } from '../models/resolve.js'
import type { Toolboxes } from '../models/toolboxes.js'
import { agentOf } from './agent-turns.js'
import type { Alarms } from './alarms.js'
import type { ChildDone, endChildRun } from './child-run.js'
import { childRun } from './child-run.js'
import type { Engine } from './engine.js'
import type { Execution, ExecutionPort } from './execution.js'
import { turnId } from './held-turns.js'
import type { Outcome, RunEntry } from './run-entry.js'
import type { ActivityOutcome, Seam } from './seam.js'

/** What all runs of a process share in executing their bodies. */
export interface SharedPort {
  readonly engine: Engine
  readonly alarms: Alarms
  readonly toolboxes: Toolboxes
  readonly priceOf: PriceOf
  readonly later: Seam['later']
  entered(execution: Execution): void
  ended(port: RunPort, execution: Execution): void
  submit(port: RunPort, by: Attempt, command: Command, settled: (outcome: Outcome) => void): void
  mayStart(entry: RunEntry): Maybe<boolean>
  mayGoOn(entry: RunEntry): Maybe<boolean>
  resources(entry: RunEntry): Maybe<ReadonlyMap<string, unknown>>
  endChild(entry: RunEntry, of: Attempt): Promise<void>
  childEnded(entry: RunEntry, of: Attempt): ReturnType<typeof endChildRun>
}

/** What the executions of one run are given: one for all of them, and with methods, because a wide fan-out or many runs have thousands. */
export class RunPort implements ExecutionPort {
  readonly entry: RunEntry
  readonly definition: Internals
  readonly runId: string
  readonly clock: ExecutionPort['clock']
  readonly alarms: Alarms
  readonly graceMs: number
  readonly maxValue: number
  readonly later: Seam['later']
  readonly toolboxes: Toolboxes
  readonly priceOf: PriceOf
  readonly isPlayed: boolean
  readonly #shared: SharedPort

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
  }

  clockOf({ branch }: Attempt): ExecutionPort['clock'] {
    return this.#shared.engine.options.seam?.clock?.(this.runId, branch) ?? this.clock
  }

  entered(execution: Execution): void {
    this.#shared.entered(execution)
  }

  begins(attempt: Attempt): void {
    const agent = agentOf(this.definition, attempt)
    if (agent !== null) this.#shared.engine.agents.begins(agent.name)
  }

  ended(execution: Execution): void {
    this.#shared.ended(this, execution)
  }

  returnedLate(): void {
    this.#shared.engine.refuse('STALE_ATTEMPT', this.entry)
  }

  submit(by: Attempt, command: Command, settled: (outcome: Outcome) => void): void {
    this.#shared.submit(this, by, command, settled)
  }

  mayStart(): Maybe<boolean> {
    return this.#shared.mayStart(this.entry)
  }

  mayGoOn(): Maybe<boolean> {
    return this.#shared.mayGoOn(this.entry)
  }

  get isPaused(): boolean {
    return this.entry.state.pausedAt !== null
  }

  isAdmitted(attempt: Attempt): boolean {
    const { entry } = this
    if (this.isPaused) return false
    const agent = agentOf(this.definition, attempt)
    return agent === null || this.#shared.engine.agents.admission(agent.name, 'fail', () => turnId(entry, attempt)) === 'go'
  }

  resources(): Maybe<ReadonlyMap<string, unknown>> {
    return this.#shared.resources(this.entry)
  }

  known(speaker: ActivitySpeaker): Promise<ActivityOutcome> | null {
    return this.#shared.engine.options.seam?.activity?.(this.runId, speaker) ?? null
  }

  lend({ branch, agent, turn, attempt }: Attempt, name: string, value: unknown): unknown {
    const to = { run: this.runId, branch, agent, id: attemptId(branch, turn, attempt) }
    return this.#shared.engine.options.seam?.lend(name, value, to) ?? value
  }

  emit(branch: string, agent: string, data: unknown): void {
    this.#shared.engine.listeners.tell(this.runId, { type: 'emit', branch, agent, after: this.entry.state.seq, data })
  }

  model(ref: Parameters<ExecutionPort['model']>[0]): ReturnType<ExecutionPort['model']> {
    return resolveModel(ref, { models: this.#shared.engine.options.models, env: process.env })
  }

  listener(branch: string, agent: string, attempt: number): ((text: string) => void) | null {
    const { entry } = this
    const { listeners } = this.#shared.engine
    if (!listeners.hasTakers(this.runId)) return null
    return (text) => listeners.tell(entry.id, { type: 'text.delta', branch, agent, after: entry.state.seq, text, attempt })
  }

  keepAskSchema(branch: string, schema: Schema | undefined): void {
    const { askSchemas } = this.entry
    if (schema === undefined) askSchemas.delete(branch)
    else askSchemas.set(branch, schema)
  }

  child(of: Attempt, child: Definition, input: unknown, signal: AbortSignal): Promise<ChildDone> {
    return childRun(this.#shared.engine, this.entry.state, of, child, input, signal)
  }

  async giveUp(of: Attempt): Promise<{ notUndone?: readonly string[]; usage?: Usage }> {
    const { done, ...left } = await this.#shared.childEnded(this.entry, of)
    // It had come to its end, and what it did is not to be used.
    return done?.child === undefined ? left : { ...left, notUndone: [done.child, ...(left.notUndone ?? [])] }
  }

  endChild(of: Attempt): Promise<void> {
    return this.#shared.endChild(this.entry, of)
  }
}
