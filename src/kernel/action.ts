import type { Failure } from './failure.js'
import type { Join } from './join.js'

/** A branch's state: a frozen record of JSON values. */
export type BranchState = Readonly<Record<string, unknown>>

export interface Invoke {
  readonly type: 'invoke'
  readonly to: string
  readonly request?: unknown
  readonly state?: BranchState
}
export interface Reply {
  readonly type: 'reply'
  readonly value?: unknown
  readonly state?: BranchState
}
export interface Fork {
  readonly type: 'fork'
  readonly calls: readonly { readonly to: string; readonly request?: unknown }[]
  readonly join?: Join
  readonly compensate?: boolean
  readonly state?: BranchState
}
export interface Finish<V = unknown> {
  readonly type: 'finish'
  readonly output?: V
}
export interface AskAction {
  readonly type: 'ask'
  readonly question: unknown
  readonly timeoutMs?: number
  readonly schema?: object
  /** A call of a tool that a person must approve: `call` is its place in the answer of the model. Needs no edge. */
  readonly approval?: Approval
  readonly state?: BranchState
}
/** What a person is asked to approve: this tool, with exactly this input. */
export interface Approval {
  readonly tool: string
  readonly input: unknown
  readonly call: number
}
export interface Fail {
  readonly type: 'fail'
  readonly error: Failure
}

/** What a turn returns: plain data. Making one does nothing; returning it does. */
export type Action = Invoke | Reply | Fork | Finish | AskAction | Fail
