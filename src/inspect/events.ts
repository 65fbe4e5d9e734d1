import type { Tags } from '../define/tags.js'
import type { Message } from '../define/turn.js'
import type { Rollback } from './report-data.js'
import type { Action } from '../kernel/action.js'
import type { Failure } from '../kernel/failure.js'
import type { Join, Slot } from '../kernel/join.js'
import type { Halted } from '../kernel/lifecycle.js'
import type { Ask } from './ask.js'

interface At4 {
  agent: string
  turn: number
  attempt: number
}

/** What a journal tells the public, by type. */
export interface Events {
  'run.started': { runId: string; definition: string; version: string; input: unknown; tags: Tags }
  'run.claimed': { epoch: number }
  'run.released': {}
  'run.paused': { by?: string }
  'run.resumed': { by?: string }
  'run.closing': { cause: 'cancel'; reason?: string; by?: string } | { cause: 'limit'; error: Failure }
  'run.compensating': { cause: Failure }
  'run.succeeded': { output: unknown }
  'run.failed': { error: Failure; rollback: Rollback }
  'run.cancelled': { reason?: string; rollback: Rollback }
  'branch.opened': { parent: string | null; to: string; barrier: string; slot: number; gated?: boolean }
  'branch.settled': { status: Slot['status']; error?: Failure }
  'branch.moved': { to: string }
  'branch.held': { node: string }
  'rendezvous.fired': { barrier: string; node: string; merged: readonly string[] }
  'gate.opened': { sees?: readonly string[]; decidedBy?: readonly string[] }
  'turn.started': At4 & { message: Message }
  'turn.completed': At4 & { action: Action }
  'turn.rejected': At4 & { problem: string; final: boolean }
  'turn.failed': At4 & { error: Failure; retryAt?: number; final: boolean; timedOut?: boolean; stopped?: Halted }
  'turn.aborted': At4 & { how: 'ended' | 'fenced' }
  'sleep.started': At4 & { key: string; name: string; ms: number }
  'activity.completed': At4 & { key: string; name: string; value: unknown; timeouts?: readonly number[] }
  'activity.failed': At4 & { key: string; name: string; error: Failure; timeouts?: readonly number[] }
  'barrier.opened': { barrier: string; kind: 'root' | 'fork' | 'detached'; width: number; join: Join }
  'barrier.arrived': { barrier: string; slot: number; by: string }
  'barrier.fired': {
    barrier: string
    ok: boolean
    width: number
    arrived: number
    failed: number
    escaped: number
    cancelled: number
    decidedBy?: readonly number[]
    byTimeout?: boolean
    goes?: 'turn' | 'escape' | 'fail' | 'ask' | 'step'
  }
  'barrier.released': { barrier: string }
  'ask.opened': { ask: Ask }
  'ask.answered': { askId: string; value: unknown; by?: string }
  'ask.expired': { askId: string }
  'step.completed': { step: string; item?: number; output: unknown }
  'step.skipped': { step: string; item?: number; cause: string }
  'undo.planned': { barrier: string; entries: readonly string[]; unknown?: readonly string[]; decidedBy?: readonly string[] }
  'undo.started': { of: string; attempt: number }
  'undo.completed': { of: string; attempt: number }
  'undo.failed': { of: string; attempt: number; error: Failure; final: boolean; retryAt?: number }
}

/** One event of a run, in the order of `seq`. */
export type JournalEvent = {
  [T in keyof Events]: { readonly seq: number; readonly at: number; readonly branch?: string; readonly type: T } & Readonly<Events[T]>
}[keyof Events]

/**
 * A transient part between two events; never journaled and never replayed. `attempt` says how often the model was called for this answer: with a new
 * one, what was heard of the last is void.
 */
export type Delta = { readonly branch: string; readonly agent: string; readonly after: number } & (
  | { readonly type: 'text.delta'; readonly text: string; readonly attempt: number }
  | { readonly type: 'emit'; readonly data: unknown }
)
