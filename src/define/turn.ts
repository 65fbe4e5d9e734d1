import type { AskAction, Fail, Finish, Fork, Invoke, Reply } from '../kernel/action.js'
import type { Join, JoinData } from '../kernel/join.js'
import type { Reserved } from './edges.js'
import type { Schema } from './schema.js'
import type { Work } from './work.js'

/** All that types know of one agent in its topology. */
export interface Seat {
  name: string
  to: string
  peers: object
  replies: object
  input: unknown
  output: unknown
  answer: unknown
  state: unknown
  result: unknown
}

/** A seat of which nothing is known. */
export interface AnySeat extends Seat {
  peers: Record<string, unknown>
  replies: Record<string, any>
}

type Peers<To, All> = { [K in Exclude<To, Reserved> & string]: K extends keyof All ? All[K] : unknown }

/** The seat of agent `N`, which may invoke `To`. */
export interface Role<
  N extends string,
  To extends string,
  I = unknown,
  O = unknown,
  A = unknown,
  S = unknown,
  R = unknown,
  Ins = unknown,
  Outs = unknown,
> extends Seat {
  name: N
  to: To
  peers: Peers<To, Ins>
  replies: Peers<To, Outs>
  input: I
  output: O
  answer: A
  state: S
  result: [R] extends [never] ? O : R
}

/** What a turn has instead of an action that its agent's edges do not allow. */
export interface Denied<Why extends string> {
  readonly '~denied': Why
}

type Opt<T, O> = unknown extends T ? [request?: T, options?: O] : [request: T, options?: O]

type Calls<P extends Seat> = {
  [K in keyof P['peers']]: unknown extends P['peers'][K] ? K | { to: K; request?: unknown } : { to: K; request: P['peers'][K] }
}

/** One call of a fork: a name where the peer needs no request, else a name and a request. */
export type Call<P extends Seat = Seat> = Calls<P>[keyof P['peers']]

/** An action may give the branch its next state. */
export interface Carry<P extends Seat = Seat> {
  state?: P['state']
}

/** What a join gives, with what each agent delivered. */
export interface JoinResult<R = Record<string, any>> extends JoinData<R> {
  /** What calls to one agent delivered, in slot order; a fresh list. */
  from<K extends keyof R>(to: K): R[K][]
}

/** Why this turn happens. */
export type Message<P extends Seat = Seat> =
  | { kind: 'request'; from: string; value: P['input'] }
  | { kind: 'merged'; requests: readonly { from: string; value: P['input'] }[] }
  | { kind: 'join'; join: JoinResult<P['replies']> } // journals hold JoinData; `from` is added for the agent
  | { kind: 'answer'; askId: string; question: unknown; value: P['answer'] }
  | { kind: 'expired'; askId: string; question: unknown }
  | { kind: 'feedback'; problem: string }

/** One entry of what an agent remembers. */
export interface MemoryEntry {
  role: 'system' | 'user' | 'assistant' | 'tool'
  content: unknown
}

/** One activation of one agent on one branch. Making an action does nothing; returning it does. */
export interface Turn<P extends Seat = AnySeat> extends Work {
  readonly agent: P['name']
  readonly turn: number
  readonly message: Message<P>
  /** What this agent was asked; the same in join, answer and feedback turns. */
  readonly request: P['input']
  /** More than one after a rendezvous. */
  readonly requests: readonly { readonly from: string; readonly value: P['input']; readonly state: P['state'] }[]
  /** Belongs to this branch and travels with it; a fork copies it, a join merges it key by key. */
  readonly state: P['state']
  /** Who waits for this branch's reply. */
  readonly waiting: string | null
  readonly memory: readonly MemoryEntry[]
  readonly targets: readonly P['to'][]
  invoke<K extends keyof P['peers']>(to: K, ...args: Opt<P['peers'][K], Carry<P>>): Invoke
  /** To whoever waits; needs the edge, as `invoke` does. */
  reply(value: P['output'], options?: Carry<P>): Reply
  /** Takes calls, spelled out here so that the compiler says how they look. */
  fork(calls: readonly Calls<P>[keyof P['peers']][], options?: { request?: unknown; join?: Join; compensate?: boolean } & Carry<P>): Fork
  finish: 'End' extends P['to'] ? <V extends P['result']>(output?: V) => Finish<V> : Denied<`${P['name']} has no edge to End`>
  ask: 'User' extends P['to']
    ? (question: unknown, options?: { timeoutMs?: number; schema?: Schema } & Carry<P>) => AskAction
    : Denied<`${P['name']} has no edge to User`>
  fail(error: unknown): Fail
}
