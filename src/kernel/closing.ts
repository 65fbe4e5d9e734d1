import type { Draft } from './draft.js'
import { emit } from './draft.js'
import type { Failure, FailureCode } from './failure.js'
import { byId } from './ids.js'
import type { Branch } from './state.js'
import { barrierOf, branchOf, liveIn, runsChild } from './state.js'

/** A scope that is being closed, and who is still live in it: the last is the next. */
interface Closing {
  readonly barrier: string
  readonly live: string[]
}

/**
 * Cancels what is live in a scope, down to the last grandchild. Detached branches are not in it and go on. Not recursive: forks nest as
 * deep as the run's limits let them.
 */
export function closeScope(draft: Draft, barrier: string): void {
  // Whoever is live owes a slot.
  if (barrierOf(draft.state, barrier).pending === 0) return
  const inside: Closing[] = []
  for (let scope = closingOf(draft, barrier); ; ) {
    const id = scope.live.at(-1)
    const inner = id === undefined ? null : innerOf(branchOf(draft.state, id))
    if (inner !== null) {
      inside.push(scope)
      scope = closingOf(draft, inner)
      continue
    }
    if (id === undefined) {
      const around = inside.pop()
      if (around === undefined) return
      emit(draft, { type: 'barrier.closed', barrier: scope.barrier })
      scope = around
    }
    const cancelled = scope.live.pop()
    if (cancelled !== undefined) emit(draft, { type: 'branch.settled', branch: cancelled, status: 'cancelled' })
  }
}

function closingOf(draft: Draft, barrier: string): Closing {
  const live = [...liveIn(draft.state, barrierOf(draft.state, barrier))]
  live.sort((a, b) => b.slot - a.slot)
  return { barrier, live: live.map(({ id }) => id) }
}

/** The fork that a branch waits at. */
function innerOf({ standing }: Branch): string | null {
  const waits = standing.status === 'forked' || standing.status === 'undoing' || standing.status === 'asking'
  return waits ? standing.barrier : null
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
