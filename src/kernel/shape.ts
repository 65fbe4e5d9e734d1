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

/** The plain data of a topology: all that the kernel knows of it. It is journaled with the run, so that folding needs no code. */
export interface TopologyShape {
  readonly kind: 'topology'
  readonly name: string
  readonly version: string
  readonly digest: string
  /** Agents in declared order. */
  readonly nodes: readonly string[]
  readonly edges: readonly Edge[]
  /** Where branches of one scope meet, in declared order. */
  readonly joins: readonly string[]
  readonly agents: Readonly<Record<string, AgentShape>>
  readonly limits: RunLimits
  /** What a join does with each key of the state; `function` is in the definition's code. */
  readonly merge: Readonly<Record<string, 'mine' | 'last' | 'function'>>
  readonly result: 'one' | 'list' | 'function'
}

export type Shape = TopologyShape

/** The pure functions of a definition, which `decide` may call and whose results it records. */
export interface Code {
  readonly merge: Readonly<Record<string, (base: unknown, changed: readonly unknown[]) => unknown>>
  readonly result?: (finishes: readonly { by: string; branch: string; output: unknown }[]) => unknown
}
