import type { Action, BranchState } from '../../src/kernel/action.js'
import type { Join, JoinData } from '../../src/kernel/join.js'
import type { TurnMessage } from '../../src/kernel/message.js'
import type { Asked } from '../../src/kernel/state.js'

/** What an agent of a test is shown: the same things that an agent of a user is. */
export interface TestTurn {
  readonly agent: string
  readonly branch: string
  readonly turn: number
  readonly attempt: number
  readonly message: TurnMessage
  readonly request: unknown
  readonly requests: readonly Asked[]
  readonly state: BranchState | undefined
  readonly waiting: string | null
  readonly targets: readonly string[]
}

/** What becomes of an attempt: an action, or one of the ways in which it gives none. */
export type Made =
  | Action
  | { readonly throw: string; readonly retryable?: boolean }
  /** It runs out of its time, and is still there to be settled. */
  | { readonly timesOut: string }
  /** What it returned could not be accepted by its host. */
  | { readonly unacceptable: string }
  /** It does not return: only a cancellation ends it. */
  | { readonly hangs: true }

/** An agent of a test: a pure function of what it is shown. */
export type Act = (turn: TestTurn) => Made

const carrying = (state: BranchState | undefined): { readonly state?: BranchState } => (state === undefined ? {} : { state })
const given = <K extends string>(key: K, value: unknown): { [P in K]?: unknown } =>
  (value === undefined ? {} : { [key]: value }) as { [P in K]?: unknown }

export const invoke = (to: string, request?: unknown, state?: BranchState): Action => ({
  type: 'invoke',
  to,
  ...given('request', request),
  ...carrying(state),
})
export const reply = (value?: unknown, state?: BranchState): Action => ({ type: 'reply', ...given('value', value), ...carrying(state) })
export const finish = (output?: unknown): Action => ({ type: 'finish', ...given('output', output) })
export const ask = (question: unknown, timeoutMs?: number): Action => ({
  type: 'ask',
  question,
  ...(timeoutMs === undefined ? {} : { timeoutMs }),
})
export const failing = (message: string): Action => ({
  type: 'fail',
  error: { code: 'AGENT_FAILED', message, retryable: false, at: {} },
})

/** Calls are names, or names with what is asked of them. */
export function fork(calls: readonly (string | { to: string; request?: unknown })[], join?: Join, state?: BranchState): Action {
  const given = calls.map((call) => (typeof call === 'string' ? { to: call } : call))
  return { type: 'fork', calls: given, ...(join === undefined ? {} : { join }), ...carrying(state) }
}

/** A join in short: what arrived, and the status of what did not. */
export function seen(join: JoinData): unknown[] {
  return join.slots.map((slot) => (slot.status === 'arrived' ? (slot.value ?? null) : slot.status))
}

/** Replies with a value; its own name in small letters if none is given. */
export const replies =
  (value?: unknown): Act =>
  ({ agent }) =>
    reply(value ?? agent.toLowerCase())

/** Passes on to another agent with its own name in small letters. */
export const passes =
  (to: string, value?: unknown): Act =>
  ({ agent }) =>
    invoke(to, value ?? agent.toLowerCase())

/** Finishes with a value; its own name in small letters if none is given. */
export const finishes =
  (value?: unknown): Act =>
  ({ agent }) =>
    finish(value ?? agent.toLowerCase())

/** Forks when it is called, and does `then` (finishing with the join in short, if not said) once it is joined. */
export function forks(
  calls: readonly (string | { to: string; request?: unknown })[],
  join?: Join,
  then: (join: JoinData, turn: TestTurn) => Made = (joined) => finish(seen(joined)),
): Act {
  return (turn) => (turn.message.kind === 'join' ? then(turn.message.join, turn) : fork(calls, join))
}
