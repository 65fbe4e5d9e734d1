import type { JoinSpec } from './join.js'
import type { MessageKind } from './message.js'

/** `notify`: the caller goes on at once, nobody waits for the answer. */
export interface Edge {
  readonly from: string
  readonly to: string
  readonly notify?: boolean
}

/** Node names that are not agents. */
export const reserved: readonly string[] = ['Start', 'End', 'User']

/** How an attempt that threw or timed out is repeated; `attempts` counts the first one. */
export interface RetryShape {
  readonly attempts: number
  readonly backoffMs: number
  readonly factor: number
  readonly maxBackoffMs: number
}

/** What the kernel knows of an agent: no code, only how its turns are to be treated. */
export interface AgentShape {
  /** The messages its code can take: all of them for a function, those with a handler otherwise. */
  readonly takes: readonly MessageKind[]
  readonly maxRejections: number
  readonly retry: RetryShape
  readonly timeoutMs: number | null
  /** Given where turns are remembered: with every request anew, for the branch, or with the conversations of a session too. */
  readonly remembers?: 'turn' | 'run' | 'session'
  /** A turn of it can be undone. */
  readonly compensates?: true
  /** So can what its tools do. */
  readonly toolsCompensate?: true
}

/** The limits of a run, every default filled in; null is none. */
export interface RunLimits {
  readonly timeoutMs: number | null
  readonly maxTurns: number
  readonly maxTurnsPerBranch: number
  readonly maxBranches: number
  readonly maxDepth: number
  readonly maxFanOut: number
  readonly concurrency: number | null
  /** Given where there is one. */
  readonly tokens?: number
  readonly costUsd?: number
  /** Of a child run, whose limits of these are what was left above it then: what may be used in all. */
  readonly wholeTokens?: number
  readonly wholeCostUsd?: number
}

export const defaultLimits: RunLimits = {
  timeoutMs: null,
  maxTurns: 1_000_000,
  maxTurnsPerBranch: 1_000,
  maxBranches: 1_000_000,
  maxDepth: 32,
  maxFanOut: 100_000,
  concurrency: null,
}

/** What a definition of either kind has. It is journaled with the run, so that folding needs no code. */
interface AnyShape {
  readonly name: string
  readonly version: string
  readonly digest: string
  /** Agents, or steps, in declared order. */
  readonly nodes: readonly string[]
  readonly edges: readonly Edge[]
  /** Where branches of one scope meet, in declared order. */
  readonly joins: readonly string[]
  readonly agents: Readonly<Record<string, AgentShape>>
  readonly limits: RunLimits
  /** What a join does with each key of the state; `function` is in the definition's code. */
  readonly merge: Readonly<Record<string, 'mine' | 'last' | 'function'>>
}

/** The plain data of a topology: all that the kernel knows of it. */
export interface TopologyShape extends AnyShape {
  readonly kind: 'topology'
  readonly result: 'one' | 'list' | 'function'
}

/** What happens when a step, or one item of it, has failed for good. */
export type OnError = 'fail' | 'skip' | 'pause' | { fallback: unknown }

/** The plain data of one step. */
export interface StepShape {
  readonly id: string
  readonly after: readonly string[]
  readonly join: JoinSpec
  readonly kind: 'run' | 'ask' | 'child'
  readonly hasWhen: boolean
  readonly hasEach: boolean
  /** How many items run at once; null is all. */
  readonly concurrency: number | null
  readonly onError: OnError
  /** Of an ask: how long it waits for a person. */
  readonly expiresMs: number | null
  readonly compensates: boolean
}

/** The plain data of a graph: to the kernel, a root barrier with a slot per step, and a gate before each. */
export interface GraphShape extends AnyShape {
  readonly kind: 'graph'
  readonly result: 'steps' | 'function'
  readonly stragglers: 'wait' | 'cancel'
  readonly required: readonly string[]
  /** In declared order, as `nodes` are. */
  readonly steps: readonly StepShape[]
}

export type Shape = TopologyShape | GraphShape

/** The pure functions of a definition, which `decide` may call and whose results it records. */
export interface Code {
  readonly merge: Readonly<Record<string, (base: unknown, changed: readonly unknown[]) => unknown>>
  readonly result?: (finishes: readonly { by: string; branch: string; output: unknown }[]) => unknown
  /** A graph's: makes the output from its steps. */
  readonly output?: (ctx: { readonly input: unknown; readonly steps: Readonly<Record<string, unknown>> }) => unknown
}
