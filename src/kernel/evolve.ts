import { arm, disarmRun } from './fold-timers.js'
import type { Event } from './event.js'
import {
  barrierArrived,
  barrierFired,
  barrierOpened,
  barrierReleased,
  branchHeld,
  branchMoved,
  branchNotified,
  branchOpened,
  branchSettled,
  dropBarrier,
  gateOpened,
  rendezvousFired,
  stepCompleted,
  stepSkipped,
} from './fold-branches.js'
import {
  activitySettled,
  activityStarted,
  askAnswered,
  askExpired,
  askOpened,
  sleepStarted,
  timerFired,
  turnCompleted,
  turnFailed,
  turnRejected,
  turnStarted,
} from './fold-turns.js'
import {
  abortedEnded,
  barrierUndoing,
  entryOf,
  lateActivity,
  takeOver,
  undoCompleted,
  undoFailed,
  undoPlanned,
  undoStarted,
} from './fold-undo.js'
import { editable, type Folding, type Of } from './folding.js'
import { attemptId, runTimer, undoTimer } from './ids.js'
import { changed } from './lifecycle.js'
import { continued } from './continued.js'
import { dependentsOf, gatesOf, placesIn, targetsIn, undoesIn, widthOf } from './recount.js'
import type { Outcome, State } from './state.js'
import { Trie } from './trie.js'
import { attemptsOf, isAsleep, runsChild } from './state.js'
import { settling, usedBy } from './usage.js'

/** Folds one event into a state and gives the next one. Applies no rule and runs no code of users: the event says what was decided. */
export function evolve(before: State, event: Event): State {
  const state = editable(before)
  fold(state, event)
  state.edit = null
  return state
}

/** Folds one event into a state that nobody else has. The one switch over events. */
export function fold(state: Folding, event: Event): void {
  state.seq = event.seq
  state.at = event.at
  switch (event.type) {
    // First those that come by the thousand.
    case 'activity.completed':
      return event.late ? activityLate(state, event) : activitySettled(state, event)
    case 'turn.started':
      return turnStarted(state, event)
    case 'turn.completed':
      return turnCompleted(state, event)
    case 'branch.opened':
      return branchOpened(state, event)
    case 'barrier.arrived':
      return barrierArrived(state, event)
    case 'branch.settled':
      return branchSettled(state, event)
    case 'run.started':
      return runStarted(state, event)
    case 'run.claimed':
      return runClaimed(state, event)
    case 'run.released':
      state.held = false
      return
    case 'run.paused':
      state.pausedAt = event.at
      state.pausedSeq = event.seq
      state.resumed = null
      return
    case 'run.resumed':
      state.resumed = event.above ?? null
      return unpause(state)
    case 'run.closing':
      // A limit that is crossed in what was in flight fails a paused run, which goes on being paused: what was done is undone when it is resumed.
      if (event.cause === 'cancel') unpause(state)
      state.closing = true
      disarmRun(state)
      state.keepsDone = event.cause === 'cancel' && event.compensate === false
      state.outcome =
        event.cause === 'limit' ? { status: 'failed', error: event.error } : { status: 'cancelled', reason: event.reason ?? null }
      return
    case 'run.decided':
      state.outcome = event.status === 'failed' ? { status: 'failed', error: event.error } : { status: 'succeeded', output: event.output }
      return
    case 'run.compensating':
      state.status = changed('run', state.status, 'compensating')
      disarmRun(state)
      return
    case 'run.succeeded':
      return end(state, { status: 'succeeded', output: event.output })
    case 'run.failed':
      return end(state, { status: 'failed', error: event.error })
    case 'run.cancelled':
      return end(state, { status: 'cancelled', reason: event.reason ?? null })
    case 'barrier.opened':
      return barrierOpened(state, event)
    case 'barrier.fired':
      return barrierFired(state, event)
    case 'barrier.released':
      return barrierReleased(state, event)
    case 'barrier.undoing':
      return barrierUndoing(state, event)
    case 'barrier.closed':
      return dropBarrier(state, event.barrier)
    case 'branch.moved':
      return branchMoved(state, event)
    case 'branch.notified':
      return branchNotified(state, event)
    case 'branch.held':
      return branchHeld(state, event)
    case 'rendezvous.fired':
      return rendezvousFired(state, event)
    case 'gate.opened':
      return gateOpened(state, event)
    case 'step.completed':
      return stepCompleted(state, event)
    case 'step.skipped':
      return stepSkipped(state, event)
    case 'turn.rejected':
      return turnRejected(state, event)
    case 'turn.failed':
      return turnFailed(state, event)
    case 'turn.aborted':
      return turnAborted(state, event)
    case 'activity.started':
      return activityStarted(state, event)
    case 'activity.failed':
      return activitySettled(state, event)
    case 'sleep.started':
      return sleepStarted(state, event)
    case 'ask.opened':
      return askOpened(state, event)
    case 'ask.answered':
      return askAnswered(state, event)
    case 'ask.expired':
      return askExpired(state, event)
    case 'timer.fired':
      return timerFired(state, event.timer)
    case 'undo.planned':
      return undoPlanned(state, event)
    case 'undo.started':
      return undoStarted(state, event)
    case 'undo.completed':
      return undoCompleted(state, event)
    case 'undo.failed':
      return undoFailed(state, event)
  }
}

function runStarted(state: Folding, event: Of<'run.started'>): void {
  const { timeoutMs } = event.shape.limits
  state.status = changed('run', state.status, 'running')
  state.held = true
  state.run = {
    id: event.runId,
    nonce: event.nonce,
    shape: event.shape,
    input: event.input,
    tags: event.tags,
    session: event.session ?? null,
    conversation: event.conversation ?? [],
    parent: event.parent ?? null,
    state: event.state,
    startedAt: event.at,
    targets: targetsIn(event.shape),
    places: placesIn(event.shape),
    slots: event.shape.kind === 'graph' ? placesIn(event.shape) : {},
    width: widthOf(event.shape),
    earlier: [],
    dependents: dependentsOf(event.shape),
    undoes: event.undoes !== undefined || undoesIn(event.shape),
    undoOf: event.undoes === undefined ? null : { run: event.undoes.run, nonce: event.undoes.nonce },
  }
  if (event.undoes !== undefined) takeOver(state, event.undoes.nodes)
  if (event.shape.kind === 'graph') state.gates = gatesOf(event.shape)
  if (timeoutMs !== null) arm(state, { id: runTimer, kind: 'run', due: event.at + timeoutMs })
}

function turnAborted(state: Folding, event: Of<'turn.aborted'>): void {
  const id = attemptId(event.branch, event.turn, event.attempt)
  abortedEnded(state, event, state.aborting.get(id))
  if (event.usage !== undefined) state.spent = settling(state.spent, undefined, usedBy(event.usage))
  state.aborting = state.aborting.delete(id, state.edit)
}

function activityLate(state: Folding, event: Of<'activity.completed'>): void {
  const id = attemptId(event.branch, event.turn, event.attempt)
  const attempt = state.aborting.get(id)
  if (attempt !== undefined) state.aborting = state.aborting.set(id, lateActivity(state, event, attempt), state.edit)
}

function runClaimed(state: Folding, { seq, shape, waited = [], unbegun }: Of<'run.claimed'>): void {
  if (state.held && !state.idle)
    for (const key of [...turnsAtWork(state, waited, new Set(unbegun)), ...undosAtWork(state)])
      state.crashes = state.crashes.set(key, (state.crashes.get(key) ?? 0) + 1, state.edit)
  state.asleep = givenBackAsleep(state)
  state.held = true
  state.idle = state.pausedAt !== null
  state.claimed = { seq, waited }
  if (shape !== undefined) Object.assign(state, continued(state, shape))
}

/** Of a worker that died nobody knows whether it had come further than its records. */
function givenBackAsleep(state: Folding): Trie<true> {
  if (state.held || state.run?.undoes !== true) return Trie.empty()
  const asleep = attemptsOf(state).filter(({ branch }) => isAsleep(state.work.get(branch)))
  return Trie.from(asleep.map(({ branch }) => [branch, true] as const))
}

/** The branches of turns during which a process can have died: one that waits for its agent, for a run or for its sleep kills nobody. */
function turnsAtWork(state: Folding, waited: readonly string[], unbegun: ReadonlySet<string>): string[] {
  return attemptsOf(state).flatMap(({ branch, agent }) => {
    const waitsForRun = runsChild(state, agent) && !unbegun.has(branch)
    return waited.includes(agent) || waitsForRun || isAsleep(state.work.get(branch)) ? [] : [branch]
  })
}

function undosAtWork(state: Folding): string[] {
  return state.undo.running.keys().flatMap((of) => (entryOf(state, of).what === 'child' ? [] : [undoTimer(of)]))
}

function unpause(state: Folding): void {
  if (state.pausedAt === null) return
  state.pausedMs += state.at - state.pausedAt
  state.pausedAt = null
}

function end(state: Folding, outcome: Outcome): void {
  unpause(state)
  state.outcome = outcome
  state.status = changed('run', state.status, outcome.status)
  if (state.timers.size > 0) disarmRun(state)
}
