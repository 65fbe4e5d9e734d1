import type { ActivityLog } from './activity-log.js'
import type { Action, Approval, BranchState } from './action.js'
import type { Failure } from './failure.js'
import { childBranch, rootBranch } from './ids.js'
import type { JoinSpec } from './join.js'
import { Branches, liveAttempt } from './branches.js'
import type { BranchMemory } from './memory.js'
import type { StepMessage, TurnMessage } from './message.js'
import type { Reach } from './reach.js'
import type { Shape, StepShape } from './shape.js'
import type { SlotMap } from './slot-map.js'
import { type Edit, Trie } from './trie.js'
import { TurnQueue } from './turn-queue.js'
import type { AbortedWork, Undo } from './undo-state.js'
import { nothingDone } from './undo-state.js'
import { nothingSpent, type Reserve, type Spent, type Usage } from './usage.js'

/**
 * The state of a run: what its journal folds to. It holds what is live and what is still owed, never what is over: a branch leaves it
 * when its slots settle, a barrier when it has fired. Persistent, so that keeping an older one costs a pointer.
 *
 * 1. Only `evolve` makes a new state.
 * 2. `queue` holds the branches that are ready and not started, by ticket; one that has started says so itself; no branch is both.
 * 3. `fresh` counts those in the queue whose turn has not been counted yet (first attempts).
 * 4. Times are those of the run's own clock, which stands still while it is paused, except `at`, `startedAt` and `pausedAt`.
 */
export interface State {
  /** The token of who is folding into it, the sequence that it began from: null in every state that anybody else sees. */
  readonly edit: Edit | null
  readonly status: 'new' | 'running' | 'compensating' | 'succeeded' | 'failed' | 'cancelled'
  readonly run: RunFacts | null
  readonly seq: number
  readonly at: number
  readonly pausedAt: number | null
  /** Where its journal says that it was paused last. */
  readonly pausedSeq: number
  readonly pausedMs: number
  /** What whoever has resumed it since then knew of the run that waits for it; null: nobody has, or none waits. */
  readonly resumed: Known | null
  readonly branches: Branches
  readonly barriers: Trie<Barrier>
  readonly asks: Trie<OpenAsk>
  /** Asks that are over, so that a second answer can be told from an unknown ask. */
  readonly closedAsks: Trie<'answered' | 'expired' | 'closed'>
  readonly timers: Trie<Timer>
  /** How many of the timers are sleeps of turns, and how many hold back a next attempt. */
  readonly sleeps: number
  readonly backoffs: number
  readonly queue: TurnQueue
  readonly fresh: number
  /** How many branches are in a turn: an attempt at it has started and not ended. */
  readonly running: number
  readonly aborting: Trie<Attempt>
  /** What is recorded of the activities of each branch's current turn. */
  readonly work: Trie<TurnWork>
  /** The reach per set of waiting agents, computed once each. */
  readonly reaches: Trie<Reach>
  readonly turnsUsed: number
  readonly branchesUsed: number
  /** Tokens and money, against the limits of the run. */
  readonly spent: Spent
  /** Whether a worker has it, as far as the journal knows: still so at the next claim means that the worker died. */
  readonly held: boolean
  /** Whether that worker was given it paused: it may have died before anything of it could begin, and who resumes it does not know. */
  readonly idle: boolean
  /** Where the journal says who has it now, and for which agents turns waited then; null: it was made there. */
  readonly claimed: { readonly seq: number; readonly waited: readonly string[] } | null
  /** The branches whose turns only slept when it was given back before that, if it has something to undo: of these all is known. */
  readonly asleep: Trie<true>
  /** How often the owner died in each branch's current turn since its last record. */
  readonly crashes: Trie<number>
  /** Of a graph: what each gate has seen settle so far. */
  readonly gates: Trie<Gate>
  /** Everything of it was closed, by a cancel or a limit: nothing changes how it ends. */
  readonly closing: boolean
  /** How the run will end once nothing of it is still running. */
  readonly outcome: Outcome | null
  /** It was asked for that nothing be undone. */
  readonly keepsDone: boolean
  readonly undo: Undo
}

/** A run, and how far its journal went when somebody looked at it. */
export interface Known {
  readonly run: string
  readonly seq: number
}

/** What stays the same for the whole run. */
export interface RunFacts {
  readonly id: string
  readonly nonce: string
  readonly shape: Shape
  readonly input: unknown
  readonly tags: Readonly<Record<string, string>>
  readonly session: string | null
  /** What was said in its session before it started. */
  readonly conversation: readonly Said[]
  /** The step that this is a child run of. */
  readonly parent: Parent | null
  /** What `state` gave for the input: where the root's branches begin. */
  readonly state: BranchState | undefined
  readonly startedAt: number
  /** Whom each agent may invoke, and whether that is a notify edge. */
  readonly targets: Readonly<Record<string, ReadonlyMap<string, boolean>>>
  /** Where each node stands in declared order. */
  readonly places: Readonly<Record<string, number>>
  /** Of a graph: which slot of the root each step has, which it keeps under every version. */
  readonly slots: Readonly<Record<string, number>>
  /** With how many branches its root began: their ids say so. */
  readonly width: number
  /** Of a graph that went on under another version: the steps that had begun before, as they were then. */
  readonly earlier: readonly StepShape[]
  /** Of a graph: which steps come after which. */
  readonly dependents: Readonly<Record<string, readonly string[]>>
  /** Whether something of it can be undone. */
  readonly undoes: boolean
  /** The run whose work this one undoes. */
  readonly undoOf: { readonly run: string; readonly nonce: string } | null
}

/** What one run has added to the conversation of its session: what it was asked, and what it gave. */
export interface Said {
  readonly input?: unknown
  readonly output?: unknown
}

/** `depth`: how many runs are around it. */
export interface Parent {
  readonly run: string
  readonly branch: string
  readonly depth: number
}

export type Outcome =
  | { readonly status: 'succeeded'; readonly output: unknown }
  | { readonly status: 'failed'; readonly error: Failure }
  | { readonly status: 'cancelled'; readonly reason: string | null }

/** What a live branch is doing. */
export type Standing =
  /** A turn is owed: `ticket` is its place in the queue, null once it has started. */
  | { readonly status: 'ready'; readonly ticket: number | null }
  | { readonly status: 'backing-off' }
  | { readonly status: 'forked'; readonly barrier: string }
  | { readonly status: 'undoing'; readonly barrier: string }
  | { readonly status: 'asking'; readonly ask: string; readonly barrier: string | null }
  /** At the rendezvous that is its agent by then. */
  | { readonly status: 'held' }
  /** A step behind its gate, or an item of an `each` that waits for one before it. */
  | { readonly status: 'gated' }

/** A gate watches the slots of other steps and owns none of them. */
export interface Gate {
  readonly pending: number
  readonly succeeded: number
}

/** One thread of control that is not over. */
export interface Branch {
  readonly id: string
  readonly agent: string
  readonly scope: string
  /** The lowest slot of its scope that it owes, and all of them, ascending: null if it is the only one. */
  readonly slot: number
  readonly slots: readonly number[] | null
  readonly depth: number
  readonly turn: number
  readonly attempt: number
  /** The event that started the attempt that is live, and its time; 0 while there is none. */
  readonly startSeq: number
  readonly startAt: number
  readonly rejections: number
  readonly failures: number
  readonly standing: Standing
  readonly state: BranchState | undefined
  readonly message: TurnMessage | StepMessage
  /** What its agent was last asked: one request, or those that met at a rendezvous. Null while that is just what `message` says. */
  readonly requests: Asked | readonly Asked[] | null
  readonly carried: readonly Contribution[]
  /** What those of its agents remember that do; null while there is nothing. */
  readonly memory: BranchMemory | null
  /** What its last turn did; its values are taken from here, so that they stand once in the journal. */
  readonly action: Action | null
  readonly children: number
  readonly forks: number
  readonly asks: number
}

export interface Asked {
  readonly from: string
  readonly value?: unknown
  readonly state?: BranchState | undefined
}

/** What an escaping branch leaves for a barrier further out. */
export interface Contribution {
  readonly for: string
  readonly by: string
  readonly branch: string
  readonly value?: unknown
}

/** Where slots are counted. */
export interface Barrier {
  readonly id: string
  readonly kind: 'root' | 'fork' | 'detached'
  /** The branch that waits for a fork, and its agent, which stays the same while it waits. */
  readonly waiting: string | null
  readonly waitingAgent: string | null
  readonly join: JoinSpec
  readonly calls: readonly { readonly to: string; readonly request?: unknown }[]
  /** Those that have settled. */
  readonly slots: SlotMap<SettledSlot>
  readonly pending: number
  readonly arrived: number
  readonly failed: number
  readonly escaped: number
  readonly cancelled: number
  readonly skipped: number
  /** Of an `each`: how many items may run at once (null: all), and how many have been let through so far. */
  readonly each: { readonly concurrency: number | null; readonly opened: number } | null
  /** The state with which the scope began. */
  readonly base: BranchState | undefined
  /** The branch that forked or notified, null at the root; its child of slot 0 has the ordinal `firstChild`, the others follow. */
  readonly opener: string | null
  readonly firstChild: number
  readonly reach: string
  /** Per rendezvous: how many live branches that are not held reach it, and who is held there. */
  readonly approaching: readonly number[]
  readonly groups: readonly (Group | null)[]
  /** Set when it has fired and a person is asked whether to go on with what there is. */
  readonly fired: Firing | null
}

/** Those that are held at one rendezvous of a scope, by their lowest slots. */
export type Group = SlotMap<string>

/** How a barrier fired: `deciding` null means that every slot counts. */
export interface Firing {
  readonly ok: boolean
  readonly deciding: readonly number[] | null
  readonly byTimeout: boolean
}

/** The record of a slot that has settled. `carried` is given for the lowest slot of its branch only, `first` marks that slot. */
export type SettledSlot = {
  /** Null: a call over a notify edge, which arrives with no branch. */ readonly branch: string | null
  readonly first: boolean
} & (
  | {
      readonly status: 'arrived'
      readonly by: string
      readonly value?: unknown
      /** Of an `each`: items that were skipped, which JSON can't tell from null. */
      readonly holes?: readonly number[]
      readonly state: BranchState | undefined
      readonly carried: readonly Contribution[]
    }
  | { readonly status: 'escaped'; readonly carried: readonly Contribution[] }
  | { readonly status: 'failed'; readonly by: string; readonly error: Failure }
  | { readonly status: 'cancelled' }
  | { readonly status: 'skipped'; readonly cause: string; readonly error?: Failure }
)

/** A question that waits for a person. */
export type OpenAsk = {
  readonly id: string
  readonly branch: string
  readonly agent: string
  readonly openedAt: number
} & (
  | { readonly kind: 'question'; readonly question: unknown; readonly expiresAt: number | null; readonly schema?: object }
  | ({ readonly kind: 'approval' } & Approval)
  | { readonly kind: 'join'; readonly barrier: string }
)

/** A timer that is armed; `due` is on the run's clock. */
export interface Timer {
  readonly id: string
  readonly kind: 'run' | 'join' | 'ask' | 'backoff' | 'sleep' | 'undo'
  readonly due: number
}

/** One attempt at a turn; `at` is when it started, `seq` the event that said so. */
export interface Attempt {
  readonly branch: string
  readonly agent: string
  readonly turn: number
  readonly attempt: number
  readonly at: number
  readonly seq: number
  /** Of one that is aborted, in a run where things are undone. */
  readonly undo?: AbortedWork
}

/**
 * The activities of a turn. `records` are those of the current attempt, by key; `earlier` what attempts that threw have left: their
 * successes, which the retry is given back, and what may have been done and must not be repeated.
 */
export interface TurnWork {
  readonly records: ActivityLog
  readonly count: number
  readonly earlier: Trie<ActivityRecord>
}

/** `order` is its place among the results of its attempt, `delivered` how many of them the body had been given when it called. */
export type ActivityRecord = {
  readonly key: string
  readonly name: string
  readonly order: number
  readonly delivered: number
  readonly at: number
  readonly usage?: Usage
  /** Of an earlier attempt that has called several steps by this name: nobody knows which of them it was. */
  readonly isOneOfSeveral?: true
} & (
  | { readonly status: 'completed'; readonly value?: unknown }
  | { readonly status: 'failed'; readonly error: Failure }
  /** Journaled before it ran: its outcome is not known. */
  | {
      readonly status: 'started'
      readonly reserve?: Reserve
      /** What its tries before this one have used, which counts already. */
      readonly counted?: Reserve
      readonly undo?: { readonly tool: string; readonly input: unknown }
    }
  | { readonly status: 'sleeping' }
)

export const newState: State = Object.freeze({
  edit: null,
  status: 'new',
  run: null,
  seq: 0,
  at: 0,
  pausedAt: null,
  pausedSeq: 0,
  pausedMs: 0,
  resumed: null,
  branches: Branches.empty(),
  barriers: Trie.empty<Barrier>(),
  asks: Trie.empty<OpenAsk>(),
  closedAsks: Trie.empty<'answered' | 'expired' | 'closed'>(),
  timers: Trie.empty<Timer>(),
  sleeps: 0,
  backoffs: 0,
  queue: TurnQueue.from([], 0),
  fresh: 0,
  running: 0,
  aborting: Trie.empty<Attempt>(),
  work: Trie.empty<TurnWork>(),
  reaches: Trie.empty<Reach>(),
  turnsUsed: 0,
  branchesUsed: 0,
  spent: nothingSpent,
  held: false,
  idle: false,
  claimed: null,
  asleep: Trie.empty<true>(),
  crashes: Trie.empty<number>(),
  gates: Trie.empty<Gate>(),
  closing: false,
  outcome: null,
  keepsDone: false,
  undo: nothingDone,
})

/** The run's own clock at a moment of the wall's: it stands still while the run is paused. */
export function clockAt(state: State, at: number): number {
  return (state.pausedAt ?? at) - state.pausedMs
}

export function isOver(state: State): boolean {
  return state.status === 'succeeded' || state.status === 'failed' || state.status === 'cancelled'
}

/** The shape of a run that has started. */
export function shapeOf(state: State): Shape {
  if (state.run === null) throw new Error('the run has not started')
  return state.run.shape
}

/** Whom an agent may invoke, and whether that is a notify edge. */
export function targetsOf(state: State, agent: string): ReadonlyMap<string, boolean> {
  return state.run?.targets[agent] ?? new Map()
}

/** A branch that must be there. */
export function branchOf(state: State, id: string): Branch {
  const branch = state.branches.get(id)
  if (branch === undefined) throw new Error(`there is no live branch ${id}`)
  return branch
}

/** The slots of its scope that a branch owes, ascending. */
export function slotsOf({ slot, slots }: Branch): readonly number[] {
  return slots ?? [slot]
}

const isList = (requests: Asked | readonly Asked[]): requests is readonly Asked[] => Array.isArray(requests)

/** What the agent of a branch was last asked. */
export function requestsOf({ requests, message }: Branch): readonly Asked[] {
  if (requests !== null) return isList(requests) ? requests : [requests]
  if (message.kind !== 'request') return []
  const { from, value } = message
  return [value === undefined ? { from } : { from, value }]
}

/** A barrier that must be there. */
export function barrierOf(state: State, id: string): Barrier {
  const barrier = state.barriers.get(id)
  if (barrier === undefined) throw new Error(`there is no open barrier ${id}`)
  return barrier
}

/** The attempt of a branch that has started and not ended. */
export function attemptOf(state: State, id: string): Attempt | undefined {
  const branch = state.branches.get(id)
  return branch === undefined || branch.startSeq === 0 ? undefined : liveAttempt(branch)
}

/**
 * Whether a worker before this one may have executed an attempt, and done what nobody knows. What is a run of its own was executed for itself, and
 * what slept when it was given back had done no more than is recorded.
 */
export function isInherited(state: State, { branch, agent, seq }: Attempt): boolean {
  const { claimed, asleep } = state
  if (claimed === null || seq >= claimed.seq || asleep.get(branch) !== undefined) return false
  return !claimed.waited.includes(agent) && !runsChild(state, agent)
}

/** Whether a body only sleeps. What is at work beside a sleep is recorded as started. */
export function isAsleep(work: TurnWork | undefined): boolean {
  const records = work?.records.values() ?? []
  return records.some(({ status }) => status === 'sleeping') && !records.some(({ status }) => status === 'started')
}

/** All attempts that have started and not ended. */
export function attemptsOf(state: State): Attempt[] {
  const attempts: Attempt[] = []
  if (state.running > 0) for (const branch of state.branches.values()) if (branch.startSeq !== 0) attempts.push(liveAttempt(branch))
  return attempts
}

/** The forks around a scope, from the inside out, with the agent that waits at each. */
export function* enclosingForks(state: State, scope: string): Generator<{ barrier: Barrier; agent: string }> {
  for (let barrier = barrierOf(state, scope); barrier.waiting !== null; ) {
    const waiting = branchOf(state, barrier.waiting)
    yield { barrier, agent: waiting.agent }
    barrier = barrierOf(state, waiting.scope)
  }
}

/** Whether an invoke of that agent answers it: it waits at a fork around the branch, and is not only notified (KERNEL §3). */
export function isAnswer(state: State, branch: Branch, to: string): boolean {
  if (targetsOf(state, branch.agent).get(to) === true) return false
  for (let barrier = barrierOf(state, branch.scope); barrier.waiting !== null; ) {
    if (barrier.waitingAgent === to) return true
    barrier = barrierOf(state, branchOf(state, barrier.waiting).scope)
  }
  return false
}

/** The live branches of a scope, by the slot that each was opened for. Their ids follow from the barrier: no list of them is kept. */
export function* liveIn(state: State, barrier: Barrier): Generator<Branch> {
  for (let slot = 0; slot < barrier.calls.length; slot++) {
    const id = barrier.opener === null ? rootBranch(slot, state.run?.width ?? 0) : childBranch(barrier.opener, barrier.firstChild + slot)
    const branch = state.branches.get(id)
    if (branch?.scope === barrier.id) yield branch
  }
}

/** Whether a step runs a definition of its own: its attempts only wait for that run, which goes on by itself. */
export function runsChild({ run }: State, step: string): boolean {
  if (run?.shape.kind !== 'graph') return false
  const isIt = ({ id, kind }: StepShape): boolean => id === step && kind === 'child'
  return run.shape.steps.some(isIt) || run.earlier.some(isIt)
}

/** What a graph says of a step; of one that the version it goes on under does not have, what it said when that began. */
export function stepShape({ run }: State, step: string): StepShape | null {
  if (run?.shape.kind !== 'graph') return null
  return run.shape.steps[run.places[step] ?? -1] ?? run.earlier.find(({ id }) => id === step) ?? null
}

/** Who waits for a branch's reply. */
export function waitingAgent(state: State, branch: Branch): string | null {
  return barrierOf(state, branch.scope).waitingAgent
}
