import type { Internals } from '../define/definition.js'
import type { Schema } from '../define/schema.js'
import type { Command, Refusal } from '../kernel/command.js'
import type { State } from '../kernel/state.js'
import { newState } from '../kernel/state.js'
import type { Execution } from './execution.js'
import type { RunPort } from './run-port.js'
import type { Append, Put } from './store.js'
import type { UndoExecution } from './undo-execution.js'

/** What became of a command. */
export interface Outcome {
  readonly refusal?: Refusal
}

/** A command on its way. */
export interface Submission {
  readonly command: Command
  /** The idempotency key it is remembered under. */
  readonly put: Put | undefined
  /** It speaks for the owner of the run: once that is somebody else, it says nothing. */
  readonly owned: boolean
  /** About how much it keeps of memory. */
  readonly bytes: number
  readonly settle: (outcome: Outcome) => void
  /** Nothing came of it, and nothing will; null: then that is all that its owner hears. */
  readonly fail: ((error: unknown) => void) | null
}

/**
 * What was decided and may be in the store or not: its commit failed, and to get no answer is not to be refused. Nothing is decided of the
 * run, and nothing of it shown, before that is known.
 */
export interface Unsure {
  readonly item: Append
  /** What it was decided for, by whoever still waits. */
  readonly taken: readonly Submission[]
  readonly refusals: ReadonlyMap<Submission, Refusal> | null
}

/**
 * What a process knows of one run. It belongs to the loop that flushes: nobody else changes its state.
 *
 * 1. `state` is the fold of the journal up to `state.seq`, all of it durable.
 * 2. Effects are performed only while `owner` is set.
 */
export interface RunEntry {
  readonly id: string
  state: State
  /** Where the store has it among all runs; null: the store was not read yet. An id may be used again, this is not. */
  order: number | null
  /** How often others had been heard of when this run, which is over, was last known to be there. */
  seenAt: number
  /** The store keeps it no longer; there may be another of its id. */
  isGone: boolean
  /** How many bytes and events the journal has grown since the newest snapshot. */
  grown: { bytes: number; events: number }
  snapshotBytes: number
  definition: Internals | null
  owner: { readonly worker: number; readonly epoch: number } | null
  /** When an append showed last that it is this worker's, in nanoseconds by the process's own clock. */
  provenAt: bigint
  /** It was given to this worker, and its journal does not say so yet: nothing of it is performed. */
  claiming: boolean
  queue: Submission[]
  /** The loop has it on its list. */
  isReady: boolean
  /** Somebody else has appended, or nobody knows whether we have: it must be read again before anything is decided. */
  stale: boolean
  unsure: Unsure | null
  /** It is being read: nothing of it is committed meanwhile, which would be read as if others had done it. */
  reading: Promise<void> | null
  broken: Error | null
  readonly executions: Map<string, Execution>
  /** How often turns have come to be owed that are still to be dispatched, where so many are owed at once that each waits for its time. */
  owed: number
  /** The undos that run here, by what they undo. */
  readonly undos: Map<string, UndoExecution>
  /** What happened to it reaches the runs that it waits for. */
  aligned: Promise<void>
  readonly alarms: Map<string, () => void>
  readonly askSchemas: Map<string, Schema>
  readonly refusals: Map<string, number>
  /** The agents that its turns wait for, each with when to look again, if there is such a time. */
  readonly held: Map<string, number | null>
  /** The same, as the store knows it. */
  marked: ReadonlyMap<string, number | null>
  resources: Promise<ReadonlyMap<string, unknown>> | null
  /** What its executions are given. */
  port: RunPort | null
}

const done = Promise.resolve()
/** Before any time of the process's clock that counts. */
const neverProven = -(2n ** 63n)
/** Most runs wait for no agent. */
const nobody: RunEntry['marked'] = new Map([])

export function newEntry(id: string, definition: Internals | null): RunEntry {
  return {
    id,
    state: newState,
    order: null,
    seenAt: -1,
    isGone: false,
    grown: { bytes: 0, events: 0 },
    snapshotBytes: 0,
    definition,
    owner: null,
    provenAt: neverProven,
    claiming: false,
    queue: [],
    isReady: false,
    stale: false,
    unsure: null,
    reading: null,
    broken: null,
    executions: new Map(),
    owed: 0,
    undos: new Map(),
    aligned: done,
    alarms: new Map(),
    askSchemas: new Map(),
    refusals: new Map(),
    held: new Map(),
    marked: nobody,
    resources: null,
    port: null,
  }
}
