import { evaluate, goOnAfterUndo } from './barrier.js'
import { crossLimit, fenceAborted } from './closing.js'
import { startUndos, undoProgress } from './compensation.js'
import type { Draft } from './draft.js'
import { emit, emitFolded, none } from './draft.js'
import { endIfOver } from './ending.js'
import { startAll } from './fold-turns.js'
import { innermostFirst } from './ids.js'
import { decideGates } from './gate.js'
import { meet } from './rendezvous.js'
import { idAt, messageAt, type Siblings } from './siblings.js'
import { branchOf, shapeOf } from './state.js'
import { nothingDone } from './undo-state.js'

/**
 * Takes a command to its end: first all barriers that were touched are evaluated, then all rendezvous that can fire do, together, and
 * again until nothing changes. Only then are new turns owed.
 */
export function consequences(draft: Draft): void {
  const { state } = draft
  // Mostly there is little to look at: that is seen from here.
  do settleBarriers(draft)
  while ((draft.scopes.length > 0 && meet(draft)) || (draft.gates.length > 0 && decideGates(draft)) || (!state.held && endReleased(draft)))
  checkTurns(draft)
  if (state.outcome !== null) endIfOver(draft)
  if (state.queue.size > 0) startTurns(draft)
  if (state.undo !== nothingDone) startUndos(draft)
}

/** Whoever let the run go has ended its bodies before: what is aborted then has ended. */
function endReleased(draft: Draft): boolean {
  return draft.state.aborting.size > 0 && fenceAborted(draft)
}

/** A branch that waits for an undo goes on as soon as there is nothing to wait for, before any rendezvous is looked at. */
function settleBarriers(draft: Draft): void {
  do evaluateTouched(draft)
  while (draft.state.undo !== nothingDone && draft.state.undo.plans.size > 0 && goOnUndoing(draft))
}

function goOnUndoing(draft: Draft): boolean {
  return undoProgress(draft, (barrier, onward) => goOnAfterUndo(draft, barrier, onward))
}

/** The innermost first, so that what comes of an inner barrier has reached the outer one when it is looked at. */
function evaluateTouched(draft: Draft): void {
  while (draft.slots.length > 0) {
    const touched = draft.slots.length < 2 ? draft.slots : innermostFirst(new Set(draft.slots), (id) => id)
    draft.slots = none
    for (let place = 0; place < touched.length; place++) evaluate(draft, touched[place] ?? '')
  }
}

/** Turns are reserved before any of them starts: all that are owed now, or none. */
function checkTurns(draft: Draft): void {
  const { state } = draft
  if (state.status !== 'running') return
  const { maxTurns, maxTurnsPerBranch } = shapeOf(state).limits
  let looping = false
  for (let place = 0; place < draft.turned.length; place++)
    if ((state.branches.get(draft.turned[place] ?? '')?.turn ?? 0) > maxTurnsPerBranch) looping = true
  // Which of the two is crossed first may depend on the order, so both say the same.
  if (state.turnsUsed + state.fresh <= maxTurns && !looping) return
  crossLimit(
    draft,
    'LIMIT_TURNS',
    `the run needs more turns than it may take: ${maxTurns} in all (maxTurns), ${maxTurnsPerBranch} of one branch (maxTurnsPerBranch)`,
  )
}

/** All of a wide fork at once: nothing has happened to any of them since they were opened, one after the other. */
function startSiblings(draft: Draft, siblings: Siblings): void {
  const { state, at } = draft
  const { opened, calls } = siblings
  startAll(state, siblings, state.seq + 1, at)
  emitFolded(draft, opened, (slot, seq) => ({
    seq,
    at,
    type: 'turn.started',
    branch: idAt(siblings, slot),
    agent: calls[slot]?.to ?? '',
    turn: 1,
    attempt: 1,
    message: messageAt(siblings, slot),
  }))
}

function startTurns(draft: Draft): void {
  const { concurrency } = shapeOf(draft.state).limits
  if (draft.state.status !== 'running' || draft.state.pausedAt !== null) return
  for (let id = draft.state.queue.first; id !== undefined; id = draft.state.queue.first) {
    if (concurrency !== null && draft.state.running >= concurrency) return
    const siblings = concurrency === null ? draft.state.branches.untouchedFrom(id) : null
    if (siblings !== null) {
      startSiblings(draft, siblings)
      continue
    }
    const { agent, turn, attempt, message } = branchOf(draft.state, id)
    emit(draft, { seq: 0, at: 0, type: 'turn.started', branch: id, agent, turn, attempt, message })
  }
}
