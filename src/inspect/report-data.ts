import type { Failure } from '../kernel/failure.js'
import type { Slot } from '../kernel/join.js'

/** `paused` is a running run whose dispatch stands still. The last three are final. */
export type RunStatus = 'running' | 'paused' | 'compensating' | 'succeeded' | 'failed' | 'cancelled'

/** What was undone when a run failed or was cancelled; none: there was nothing to undo. */
export type Rollback = 'none' | 'complete' | 'partial'

/** What models have used; the cost is there only where all of it is known. */
export interface UsageTotal {
  inputTokens: number
  outputTokens: number
  costUsd?: number
}

/** What a run did, derived from its journal. Everything but `measured` is the same in every order. */
export interface Report {
  runId: string
  definition: string
  version: string
  status: RunStatus
  output?: unknown
  error?: Failure
  rollback?: Rollback
  notUndone: readonly string[]
  agents: readonly string[]
  interactions: readonly { branch: string; turn: number; from: string; to: string; request?: unknown; outcome: Slot['status'] }[]
  /** Of a topology; `error`: why it failed, if it did. */
  branches: readonly { id: string; agents: readonly string[]; turns: number; status: string; error?: Failure }[]
  /** Of a graph. */
  steps: readonly { id: string; item?: number; status: 'succeeded' | 'failed' | 'skipped'; output?: unknown; cause?: string }[]
  detached: readonly { branch: string; agent: string; status: 'arrived' | 'failed'; error?: Failure }[]
  choices: readonly { at: string; kind: 'join' | 'timeout' | 'limit' | 'gate' | 'undo' | 'stop'; decidedBy: readonly (number | string)[] }[]
  measured: {
    startedAt: number
    endedAt?: number
    durations: Readonly<Record<string, number>>
    attempts: Readonly<Record<string, number>>
    cancelled: number
    refusals: Readonly<Record<string, number>>
    usage: UsageTotal
    /** The same by agent and by branch, if a model was called. */
    usageBy?: Readonly<Record<'agents' | 'branches', Readonly<Record<string, UsageTotal & { calls: number }>>>>
  }
}
