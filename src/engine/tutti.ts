/// <reference lib="esnext.disposable" preserve="true" />
import type { Definition } from '../define/definition.js'
import type { Limits } from '../define/limits.js'
import type { Provided } from '../define/resource.js'
import type { Tags } from '../define/tags.js'
import type { Report, Rollback, RunStatus } from '../inspect/report-data.js'
import type { Failure } from '../kernel/failure.js'
import type { AgentCall, States } from '../kernel/lifecycle.js'
import type { ModelSource } from '../models/model-factory.js'
import type { Prices } from '../models/price.js'
import type { Ask } from '../inspect/ask.js'
import type { Delta, JournalEvent } from '../inspect/events.js'
import type { Store } from './store.js'

/** Time, as the engine sees it. */
export interface Clock {
  now(): number
  sleep(ms: number, signal?: AbortSignal): Promise<void>
}

/** One line of what the engine has to say about itself. */
export interface LogEntry {
  level: 'debug' | 'info' | 'warn' | 'error'
  message: string
  runId?: string
}

/** How an engine is opened. */
export interface OpenOptions {
  store?: string | Store
  definitions?: readonly Definition[]
  resources?: readonly Provided[]
  models?: ModelSource
  /** What models cost, in USD per million tokens, by their names: `{ 'openai/gpt-5.4-mini': { input, output } }`. */
  prices?: Prices
  /** How many turns, steps and undos run at once in this process: another process on the same store has its own. */
  concurrency?: number
  limits?: Limits
  clock?: Clock
  workerTtlMs?: number
  graceMs?: number
  durability?: 'process' | 'power'
  onLog?: (entry: LogEntry) => void
  /** Checks the kernel's invariants after every event; a violation stops that run. Off unless TUTTI_INVARIANTS=on. */
  invariants?: boolean
}

/** How a run is started. */
export interface StartOptions {
  id?: string | undefined
  key?: string | undefined
  tags?: Tags | undefined
  session?: string | undefined
  limits?: Limits | undefined
  /** Aborted, it cancels the run; before there is one, the start is rejected with its reason, and nothing is recorded. */
  signal?: AbortSignal | undefined
}

/** What a definition takes. */
export type InputOf<D> = D extends Definition<infer I, any> ? I : unknown

/** What a definition gives. */
export type OutputOf<D> = D extends Definition<never, infer O> ? O : unknown

/** The arguments of `start` after the definition: `input` is demanded where the definition does. */
export type StartArgs<I> = unknown extends I
  ? [options?: StartOptions & { input?: unknown }]
  : undefined extends I
    ? [options?: StartOptions & { input?: I }]
    : [options: StartOptions & { input: I }]

/** Who commands, and the key under which a repeated command has its first outcome again. */
export interface Command {
  key?: string | undefined
  by?: string | undefined
}

/** An engine over a store. */
export interface Tutti extends AsyncDisposable {
  start<D extends Definition | string>(definition: D, ...args: StartArgs<InputOf<D>>): Promise<Run<OutputOf<D>>>
  /** `start`, then `output`. */
  execute<D extends Definition | string>(definition: D, ...args: StartArgs<InputOf<D>>): Promise<OutputOf<D>>
  run(id: string): Promise<Run>
  run<O>(id: string, of: Definition<never, O>): Promise<Run<O>>
  runs(filter?: RunFilter): Promise<{ runs: readonly RunSummary[]; cursor?: string }>
  asks(filter?: { runId?: string; agent?: string; tags?: Tags }): Promise<readonly Ask[]>
  readonly agents: AgentControl
  /** Deletes runs that have ended, with all that belongs to them, a few at a time; how many these were. */
  gc(what: Retention): Promise<number>
  /** How often something was refused in this process since it was opened, by code. */
  refusals(): Readonly<Record<string, number>>
  close(): Promise<void>
}

/** Which ended runs are kept no longer: those that ended before a time, or so long ago; at most `limit` of them, the oldest first. */
export interface Retention {
  endedBefore?: number | undefined
  olderThanMs?: number | undefined
  limit?: number | undefined
}

/** Which runs `runs` lists. */
export interface RunFilter {
  status?: RunStatus | readonly RunStatus[]
  definition?: string
  tags?: Tags
  since?: number
  limit?: number
  cursor?: string
}

/** Steers agents, for every run on the store. */
export interface AgentControl {
  list(): Promise<readonly AgentRecord[]>
  get(name: string): Promise<AgentRecord>
  pause(name: string, o?: AgentCommand): Promise<AgentRecord>
  resume(name: string, o?: AgentCommand): Promise<AgentRecord>
  start(name: string, o?: AgentCommand): Promise<AgentRecord>
  stop(name: string, o?: AgentCommand): Promise<AgentRecord>
  terminate(name: string, o?: AgentCommand): Promise<AgentRecord>
  /** Who changed it, from which revision; the last fifty changes, oldest first. */
  history(name: string): Promise<readonly AgentChange[]>
}

/** A command to an agent, and the revision it is based on. */
export interface AgentCommand extends Command {
  ifRevision?: number | undefined
}
export type AgentStatus = States['agentStatus']
export type RuntimeState = States['agentRuntime']

/** Status and runtime state in one record, so that a resume commits both or neither. */
export interface AgentRecord {
  name: string
  status: AgentStatus
  runtime: RuntimeState
  revision: number
  attempt: number
}

/** One change of an agent: `revision` is the one it led to, so that it was based on the one before. */
export interface AgentChange {
  readonly call: AgentCall
  readonly at: number
  readonly by?: string
  readonly revision: number
  readonly from: { readonly status: AgentStatus; readonly runtime: RuntimeState }
  readonly to: { readonly status: AgentStatus; readonly runtime: RuntimeState }
}

/** One execution of a definition on an input. */
export interface Run<out O = unknown> {
  readonly id: string
  readonly definition: string
  readonly tags: Tags
  /** Never throws for a run that failed. */
  result(): Promise<RunResult<O>>
  /** Throws RUN_FAILED / RUN_CANCELLED. */
  output(): Promise<O>
  events(options?: {
    after?: number | undefined
    signal?: AbortSignal | undefined
    deltas?: false | undefined
  }): AsyncIterable<JournalEvent>
  events(options: { after?: number | undefined; signal?: AbortSignal | undefined; deltas: true }): AsyncIterable<JournalEvent | Delta>
  status(): Promise<RunStatus>
  summary(): Promise<RunSummary>
  report(): Promise<Report>
  pause(o?: Command): Promise<void>
  resume(o?: Command): Promise<void>
  cancel(o?: Command & { reason?: string; compensate?: boolean }): Promise<void>
  asks(): Promise<readonly Ask[]>
  answer(askId: string, value: unknown, o?: Command): Promise<void>
  /** Who steered it, and when; the last fifty changes, oldest first. */
  history(): Promise<readonly RunChange[]>
}

/** One change of a run by somebody: `revision` is the event of the journal that it led to, so that it was based on the one before. */
export interface RunChange {
  readonly call: 'pause' | 'resume' | 'cancel' | 'answer'
  readonly at: number
  readonly by?: string
  readonly revision: number
}

/** How a run ended. */
export type RunResult<O = unknown> =
  | { readonly status: 'succeeded'; readonly output: O; readonly rollback: Rollback; readonly report: Report }
  | { readonly status: 'failed'; readonly error: Failure; readonly rollback: Rollback; readonly report: Report }
  | { readonly status: 'cancelled'; readonly reason?: string; readonly rollback: Rollback; readonly report: Report }

/** A run at a glance. */
export interface RunSummary {
  id: string
  definition: string
  version: string
  status: RunStatus
  paused: boolean
  tags: Tags
  startedAt: number
  endedAt?: number
  waitsFor: readonly ('person' | 'timer' | 'agent' | 'definition')[]
}
