import type { Event, EventBody } from './event.js'
import type { Barrier, Branch, Group, State } from './state.js'
import { barrierOf, branchOf } from './state.js'

type Mutable<T> = { -readonly [K in keyof T]: T[K] }

/**
 * A state while an event is folded into it. It belongs to one call of `evolve`, or to one decision in the making, and to nobody else;
 * what it holds is persistent, so that a copy of it costs one object. A branch or a barrier is copied when it is first changed, and
 * from then on changed in place: whoever keeps one from before an event must not expect it to stay as it was.
 */
export type Folding = Mutable<State>

/** The events of some types. */
export type Of<T extends EventBody['type']> = Extract<Event, { type: T }>

// Copied field by field: these are the objects that every event copies, and spreading one of this size takes the engine's slow path.

/** A copy of a state that its maker may change, until it lets go of the token. */
export function editable(state: State): Folding {
  return {
    edit: state.seq,
    status: state.status,
    run: state.run,
    seq: state.seq,
    at: state.at,
    pausedAt: state.pausedAt,
    pausedSeq: state.pausedSeq,
    pausedMs: state.pausedMs,
    resumed: state.resumed,
    branches: state.branches,
    barriers: state.barriers,
    asks: state.asks,
    closedAsks: state.closedAsks,
    timers: state.timers,
    sleeps: state.sleeps,
    backoffs: state.backoffs,
    queue: state.queue,
    fresh: state.fresh,
    running: state.running,
    aborting: state.aborting,
    work: state.work,
    reaches: state.reaches,
    turnsUsed: state.turnsUsed,
    branchesUsed: state.branchesUsed,
    spent: state.spent,
    held: state.held,
    idle: state.idle,
    claimed: state.claimed,
    asleep: state.asleep,
    crashes: state.crashes,
    gates: state.gates,
    closing: state.closing,
    outcome: state.outcome,
    keepsDone: state.keepsDone,
    undo: state.undo,
  }
}

function copyBranch(branch: Branch): ChangingBranch {
  return {
    id: branch.id,
    agent: branch.agent,
    scope: branch.scope,
    slot: branch.slot,
    slots: branch.slots,
    depth: branch.depth,
    turn: branch.turn,
    attempt: branch.attempt,
    startSeq: branch.startSeq,
    startAt: branch.startAt,
    rejections: branch.rejections,
    failures: branch.failures,
    standing: branch.standing,
    state: branch.state,
    message: branch.message,
    requests: branch.requests,
    carried: branch.carried,
    memory: branch.memory,
    action: branch.action,
    children: branch.children,
    forks: branch.forks,
    asks: branch.asks,
  }
}

/** Most have no rendezvous. */
const own = <T>(list: readonly T[]): T[] => (list.length === 0 ? (list as T[]) : list.slice())

function copyBarrier(barrier: Barrier): ChangingBarrier {
  return {
    id: barrier.id,
    kind: barrier.kind,
    waiting: barrier.waiting,
    waitingAgent: barrier.waitingAgent,
    join: barrier.join,
    calls: barrier.calls,
    slots: barrier.slots,
    pending: barrier.pending,
    arrived: barrier.arrived,
    failed: barrier.failed,
    escaped: barrier.escaped,
    cancelled: barrier.cancelled,
    skipped: barrier.skipped,
    each: barrier.each,
    base: barrier.base,
    opener: barrier.opener,
    firstChild: barrier.firstChild,
    reach: barrier.reach,
    approaching: own(barrier.approaching),
    groups: own(barrier.groups),
    fired: barrier.fired,
  }
}

export type ChangingBranch = Mutable<Branch>
export type ChangingBarrier = Omit<Mutable<Barrier>, 'approaching' | 'groups'> & {
  approaching: number[]
  groups: (Group | null)[]
}

/** A live branch, to be changed. */
export function changingBranch(state: Folding, id: string): ChangingBranch {
  const own = state.branches.own(id, state.edit)
  if (own !== undefined) return own
  const copy = copyBranch(branchOf(state, id))
  state.branches = state.branches.set(id, copy, state.edit)
  return copy
}

/** An open barrier, to be changed. */
export function changingBarrier(state: Folding, id: string): ChangingBarrier {
  const own = state.barriers.own(id, state.edit)
  if (own !== undefined) return own as ChangingBarrier
  const copy = copyBarrier(barrierOf(state, id))
  state.barriers = state.barriers.set(id, copy, state.edit)
  return copy
}
