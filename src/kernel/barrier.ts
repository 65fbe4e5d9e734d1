import { closeScope } from './closing.js'
import type { Draft } from './draft.js'
import { emit } from './draft.js'
import { decideRun } from './ending.js'
import { completeEach, letThrough } from './gate.js'
import type { Goes } from './event.js'
import type { Failure } from './failure.js'
import { askOf } from './ids.js'
import type { Slot } from './join.js'
import { needOf } from './join.js'
import { mergedAtJoin } from './merging.js'
import { contributions, joinData, reportedSlots, type Tally, tallyOf } from './reported.js'
import type { Barrier, Branch, Firing } from './state.js'
import { barrierOf, branchOf } from './state.js'
import type { Onward } from './undo-state.js'

/** Fires a barrier whose slots changed, if its join says so (KERNEL §5). */
export function evaluate(draft: Draft, id: string): void {
  const barrier = draft.state.barriers.get(id)
  if (barrier === undefined || barrier.fired !== null) return
  const delivered = deliveredOf(barrier)
  const need = needOf(barrier.join.policy, barrier.calls.length)
  const early = barrier.join.stragglers === 'cancel' && (delivered >= need || delivered + barrier.pending < need)
  if (barrier.pending === 0 || early) fire(draft, barrier, false)
  else if (barrier.each !== null) letThrough(draft, id)
}

/** A skipped step stands in nobody's way. */
const deliveredOf = (barrier: Barrier): number => barrier.arrived + barrier.escaped + barrier.skipped

/** The time of a fork is over: what is pending is cancelled, what has settled decides. */
export function timeOut(draft: Draft, id: string): void {
  fire(draft, barrierOf(draft.state, id), true)
}

/** How a barrier fires: whether it is ok, and which slots decided, if that was a choice. */
function firingOf(barrier: Barrier, byTimeout: boolean): Firing {
  const { policy, stragglers } = barrier.join
  const ok = deliveredOf(barrier) >= needOf(policy, barrier.calls.length)
  const choice = byTimeout || (stragglers === 'cancel' && !(policy === 'all' && ok))
  if (!choice) return { ok, deciding: null, byTimeout }
  const deciding: number[] = []
  for (const [index, slot] of barrier.slots.entries()) {
    const delivered = slot.status === 'arrived' || slot.status === 'escaped' || slot.status === 'skipped'
    if (delivered || byTimeout || !ok) deciding.push(index)
  }
  return { ok, deciding, byTimeout }
}

function fire(draft: Draft, open: Barrier, byTimeout: boolean): void {
  const firing = firingOf(open, byTimeout)
  closeScope(draft, open.id)
  const barrier = barrierOf(draft.state, open.id)
  const tally = tallyOf(barrier, firing.deciding)
  if (barrier.kind !== 'fork' || barrier.waiting === null) {
    emitFired(draft, barrier, firing, tally, {})
    if (barrier.kind === 'root') decideRun(draft, barrier)
    return
  }
  const waiting = branchOf(draft.state, barrier.waiting)
  if (barrier.each !== null) {
    emitFired(draft, barrier, firing, tally, { goes: 'step' })
    return completeEach(draft, barrier, waiting)
  }
  if (!firing.ok && barrier.join.insufficient === 'ask') return askWhether(draft, barrier, firing, tally, waiting)
  const next = whatNext(draft, barrier, firing, tally, waiting, firing.ok || barrier.join.insufficient === 'resume')
  if (draft.state.undo.forks.has(barrier.id)) {
    emitFired(draft, barrier, firing, tally, { goes: 'undo' })
    return undoFirst(draft, barrier.id, next)
  }
  emitFired(draft, barrier, firing, tally, next)
  settleWaiting(draft, waiting, next)
}

/** What does not count is undone before the waiting branch goes on or fails. */
function undoFirst(draft: Draft, barrier: string, { goes = 'turn', state, error }: Next): void {
  emit(draft, {
    type: 'barrier.undoing',
    barrier,
    goes,
    all: goes === 'fail',
    ...(state !== undefined && { state }),
    ...(error !== undefined && { error }),
  })
}

/** What did not count is undone: the waiting branch goes on as was decided when its fork fired. */
export function goOnAfterUndo(draft: Draft, id: string, { goes, state, error }: Onward): void {
  const waiting = branchOf(draft.state, barrierOf(draft.state, id).waiting ?? '')
  emit(draft, { type: 'barrier.released', barrier: id, goes, ...(state !== undefined && { state }) })
  settleWaiting(draft, waiting, { goes, ...(error !== undefined && { error }) })
}

interface Next {
  readonly goes?: Goes
  readonly state?: Branch['state']
  readonly error?: Failure
}

function emitFired(draft: Draft, barrier: Barrier, firing: Firing, tally: Tally, next: Next): void {
  emit(draft, {
    type: 'barrier.fired',
    barrier: barrier.id,
    ok: firing.ok,
    width: barrier.calls.length,
    ...tally,
    ...(firing.deciding !== null && { decidedBy: firing.deciding }),
    ...(firing.byTimeout && { byTimeout: true }),
    ...(next.goes !== undefined && { goes: next.goes }),
    ...(next.state !== undefined && { state: next.state }),
  })
}

/** What becomes of the waiting branch: it fails, goes past its fork because everybody has, or has a turn with the join. */
function whatNext(draft: Draft, barrier: Barrier, firing: Firing, tally: Tally, waiting: Branch, goesOn: boolean): Next {
  if (!goesOn) return { goes: 'fail', error: joinFailure(barrier, reportedSlots(barrier, firing.deciding), waiting) }
  const gone = tally.escaped > 0 && tally.arrived + tally.failed === 0
  if (barrier.join.policy !== 'settled' && gone && contributions(barrier, firing.deciding).here.length === 0) return { goes: 'escape' }
  const merged = mergedAtJoin(draft, barrier, waiting, firing.deciding)
  if ('problem' in merged)
    return { goes: 'fail', error: { code: 'MERGE_FAILED', message: merged.problem, retryable: false, at: placeOf(waiting) } }
  return { goes: 'turn', state: merged.state }
}

const placeOf = (branch: Branch): Failure['at'] => ({ branch: branch.id, agent: branch.agent, turn: branch.turn })

/** Where a failure began. What lies between is told by the causes: told again at each join, it would be longer than all of them. */
function beginningOf(failure: Failure): Failure {
  let first = failure
  while (first.cause !== undefined) first = first.cause
  return first
}

function joinFailure(barrier: Barrier, slots: readonly Slot[], waiting: Branch): Failure {
  const lowest = slots.find((slot) => slot.status === 'failed')
  const where = `the join of ${waiting.agent} (barrier ${barrier.id})`
  if (lowest?.status === 'failed')
    return {
      code: 'JOIN_FAILED',
      message: `${where} failed in slot ${lowest.index}, ${lowest.to}: ${beginningOf(lowest.error).message}`,
      retryable: false,
      at: placeOf(waiting),
      cause: lowest.error,
    }
  const delivered = slots.filter((slot) => slot.status === 'arrived' || slot.status === 'escaped').length
  return {
    code: 'JOIN_INSUFFICIENT',
    message: `${where} got ${delivered} of the ${needOf(barrier.join.policy, slots.length)} it needs`,
    retryable: false,
    at: placeOf(waiting),
  }
}

function settleWaiting(draft: Draft, waiting: Branch, next: Next): void {
  if (next.error !== undefined) emit(draft, { type: 'branch.settled', branch: waiting.id, status: 'failed', error: next.error })
  else if (next.goes === 'escape') emit(draft, { type: 'branch.settled', branch: waiting.id, status: 'escaped' })
}

function askWhether(draft: Draft, barrier: Barrier, firing: Firing, tally: Tally, waiting: Branch): void {
  emitFired(draft, barrier, firing, tally, { goes: 'ask' })
  const join = joinData(false, reportedSlots(barrier, firing.deciding), contributions(barrier, firing.deciding).here)
  const ask = {
    id: askOf(waiting.id, waiting.asks + 1),
    branch: waiting.id,
    agent: waiting.agent,
    openedAt: draft.at,
    kind: 'join',
    barrier: barrier.id,
    join,
  } as const
  emit(draft, { type: 'ask.opened', branch: waiting.id, ask })
}

/** A person has said whether to go on with what there is. */
export function release(draft: Draft, id: string, goesOn: boolean): void {
  const barrier = barrierOf(draft.state, id)
  const firing = barrier.fired
  if (firing === null || barrier.waiting === null) return
  const waiting = branchOf(draft.state, barrier.waiting)
  const next = whatNext(draft, barrier, firing, tallyOf(barrier, firing.deciding), waiting, goesOn)
  if (draft.state.undo.forks.has(id)) return undoFirst(draft, id, next)
  emit(draft, { type: 'barrier.released', barrier: id, goes: next.goes ?? 'turn', ...(next.state !== undefined && { state: next.state }) })
  settleWaiting(draft, waiting, next)
}
