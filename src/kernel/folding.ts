import type { Event, EventBody } from './event.js'
import type { Barrier, Branch, State } from './state.js'

type Mutable<T> = { -readonly [K in keyof T]: T[K] }

/**
 * A state while an event is folded into it. It belongs to one call of `evolve`, or to one decision in the making, and to nobody else;
 * what it holds is persistent, so that a copy of it costs one object.
 */
export type Folding = Mutable<State>

/** The events of some types. */
export type Of<T extends EventBody['type']> = Extract<Event, { type: T }>

// Copied field by field: these are the objects that every event copies, and spreading one of this size takes the engine's slow path.

/** A copy of a state that its maker may change. */
export function copyState(state: State): Folding {
  return {
    edit: state.edit,
    status: state.status,
    run: state.run,
    seq: state.seq,
    at: state.at,
    pausedAt: state.pausedAt,
    pausedMs: state.pausedMs,
    branches: state.branches,
    barriers: state.barriers,
    asks: state.asks,
    closedAsks: state.closedAsks,
    timers: state.timers,
    queue: state.queue,
    queueHead: state.queueHead,
    queueTail: state.queueTail,
    fresh: state.fresh,
    turns: state.turns,
    aborting: state.aborting,
    work: state.work,
    reaches: state.reaches,
    turnsUsed: state.turnsUsed,
    branchesUsed: state.branchesUsed,
    spent: state.spent,
    held: state.held,
    crashes: state.crashes,
    gates: state.gates,
    closing: state.closing,
    outcome: state.outcome,
    keepsDone: state.keepsDone,
    undo: state.undo,
  }
}

/** A copy of a branch that its maker may change before it is put back. */
export function copyBranch(branch: Branch): Mutable<Branch> {
  return {
    id: branch.id,
    agent: branch.agent,
    scope: branch.scope,
    slots: branch.slots,
    depth: branch.depth,
    turn: branch.turn,
    attempt: branch.attempt,
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

/** A copy of a barrier that its maker may change before it is put back. */
export function copyBarrier(barrier: Barrier): Mutable<Barrier> {
  return {
    id: barrier.id,
    kind: barrier.kind,
    waiting: barrier.waiting,
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
    approaching: barrier.approaching,
    groups: barrier.groups,
    fired: barrier.fired,
  }
}
