import type { Draft } from './draft.js'
import { emit } from './draft.js'
import type { Failure, FailureCode } from './failure.js'
import { byId } from './ids.js'
import { barrierOf, branchOf, liveIn, runsChild } from './state.js'

/** Cancels what is live in a scope, down to the last grandchild. Detached branches are not in it and go on. */
export function closeScope(draft: Draft, barrier: string): void {
  const open = barrierOf(draft.state, barrier)
  // Whoever is live owes a slot.
  if (open.pending === 0) return
  const live = [...liveIn(draft.state, open)]
  live.sort((a, b) => a.slot - b.slot)
  for (const { id } of live) cancelBranch(draft, id)
}

function cancelBranch(draft: Draft, id: string): void {
  const { standing } = branchOf(draft.state, id)
  const waits = standing.status === 'forked' || standing.status === 'undoing' || standing.status === 'asking'
  const inner = waits ? standing.barrier : null
  if (inner !== null) closeBarrier(draft, inner)
  emit(draft, { type: 'branch.settled', branch: id, status: 'cancelled' })
}

function closeBarrier(draft: Draft, barrier: string): void {
  closeScope(draft, barrier)
  emit(draft, { type: 'barrier.closed', barrier })
}

/** Closes every open barrier, detached ones too: what comes late is refused as stale. */
function closeAll(draft: Draft): void {
  const tops = [...draft.state.barriers.values()].filter((barrier) => barrier.kind !== 'fork')
  for (const { id } of byId(tops, (barrier) => barrier.id)) closeBarrier(draft, id)
}

export function cancelRun(draft: Draft, reason: string | undefined, by: string | undefined, compensate: boolean): void {
  emit(draft, {
    type: 'run.closing',
    cause: 'cancel',
    ...(reason !== undefined && { reason }),
    ...(by !== undefined && { by }),
    ...(!compensate && { compensate }),
  })
  closeAll(draft)
}

/**
 * Nobody executes what was aborted any more: it has ended, but not the runs that it waited for. Unless it only slept, nobody knows what it came to.
 * Whether there was anything.
 */
export function fenceAborted(draft: Draft): boolean {
  const { seq } = draft.state
  for (const { branch, agent, turn, attempt, undo } of byId(draft.state.aborting.values(), (aborted) => aborted.branch)) {
    const how = undo?.asleep === true ? 'ended' : 'fenced'
    if (!runsChild(draft.state, agent)) emit(draft, { type: 'turn.aborted', branch, agent, turn, attempt, how })
  }
  return draft.state.seq !== seq
}

/** Crossing a limit fails the run, not the branch that happened to cross it. */
export function crossLimit(draft: Draft, code: FailureCode, message: string): void {
  const error: Failure = { code, message, retryable: false, at: {} }
  emit(draft, { type: 'run.closing', cause: 'limit', error })
  closeAll(draft)
}
