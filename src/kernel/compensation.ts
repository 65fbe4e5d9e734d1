import { crashesMax } from './crashes.js'
import { deepFreeze } from './deep-freeze.js'
import type { Refusal } from './command.js'
import type { Draft } from './draft.js'
import { emit } from './draft.js'
import type { RolledBack } from './event.js'
import type { Failure } from './failure.js'
import { entryOf, nodesUnder } from './fold-undo.js'
import { byId, compareIds, innermostFirst, rootBarrier, undoTimer } from './ids.js'
import { compareEntries } from './ready-undos.js'
import { reportedSlots } from './reported.js'
import { backoffMs } from './retry.js'
import type { RetryShape } from './shape.js'
import type { Outcome, State } from './state.js'
import { barrierOf, shapeOf } from './state.js'
import { type DoneNode, type Entry, nothingDone, type Onward, type Path, type Plan, type Seat } from './undo-state.js'

/**
 * Undoing (KERNEL §13).
 *
 * 1. A plan is made once, after all attempts and plans under it have ended: so it does not matter which of them failed first.
 * 2. What it contains of what an order could have left out makes it a choice, and is journaled with it.
 * 3. Nothing of it depends on the clock: what is independent is undone in parallel, what follows from something before it.
 */

/** How often an undo is tried, and how long it waits in between. */
const undoRetry: RetryShape = { attempts: 5, backoffMs: 50, factor: 3, maxBackoffMs: 30_000 }

// ── of a fork ────────────────────────────────────────────────────────────────────────────────────────────

/** Makes the plans that need not wait any more, and lets go on those that waited for one that is over. True if any did. */
export function undoProgress(draft: Draft, goOn: (barrier: string, onward: Onward) => void): boolean {
  let progress = false
  // The innermost first: those further out wait for them.
  for (const { barrier } of innermostFirst(draft.state.undo.plans.values(), (plan) => plan.barrier)) {
    const plan = draft.state.undo.plans.get(barrier)
    if (plan === undefined || plan.onward === null) continue
    const free = plan.status === 'waiting' && isQuiet(draft.state, barrier) && !planFork(draft, plan)
    if (!free && draft.state.undo.plans.get(barrier)?.status !== 'over') continue
    goOn(barrier, plan.onward)
    progress = true
  }
  return progress
}

/** Nothing under the barrier is aborting or being undone. */
function isQuiet(state: State, barrier: string): boolean {
  const here = ({ seats }: Path): boolean => seats.some((seat) => seat.barrier === barrier)
  for (const { undo } of state.aborting.values()) if (undo !== undefined && here(undo.path)) return false
  for (const { path } of state.undo.plans.values()) if (here(path)) return false
  return true
}

/** What was done under the slots that don't count, or, if the join has failed, under all of them. False if that is nothing. */
function planFork(draft: Draft, plan: Plan): boolean {
  const barrier = barrierOf(draft.state, plan.barrier)
  const slots = reportedSlots(barrier, barrier.fired?.deciding ?? null)
  const undone = (slot: number): boolean => {
    const status = slots[slot]?.status
    return plan.onward?.all === true || status === 'failed' || status === 'cancelled'
  }
  const taken = open(nodesUnder(draft.state, plan.barrier)).filter(({ path }) =>
    path.seats.some((seat) => seat.barrier === plan.barrier && undone(seat.slot)),
  )
  if (taken.length > 0) emitPlan(draft, plan.barrier, taken)
  return taken.length > 0
}

/** What no plan has taken yet, by id. */
function open(nodes: readonly DoneNode[]): Entry[] {
  const entries: Entry[] = []
  for (const { entry } of nodes) if (entry?.status === 'done') entries.push(entry)
  return sorted(entries)
}

function sorted(entries: readonly Entry[]): Entry[] {
  return [...entries].sort(compareEntries)
}

function emitPlan(draft: Draft, barrier: string, taken: readonly Entry[]): void {
  const ids = (entries: readonly Entry[]): string[] => entries.map(({ id }) => id)
  const unknown = taken.filter(({ known }) => known === 'unknown')
  const chosen = taken.filter(({ known, path }) => known !== 'returned' || readsCancelled(draft.state, path))
  emit(draft, {
    type: 'undo.planned',
    barrier,
    entries: ids(taken.filter(({ known }) => known !== 'unknown')),
    ...(unknown.length > 0 && { unknown: ids(unknown) }),
    // That something is not known is another choice than that it was done.
    ...(chosen.length > 0 && { decidedBy: chosen.map(({ id, known }) => (known === 'unknown' ? `${id}?` : id)) }),
  })
}

/** Whether it was done under a slot that reads cancelled: then another order might not have come so far. */
function readsCancelled({ closing, undo }: State, path: Path): boolean {
  if (closing) return true
  for (let seats: readonly Seat[] | undefined = path.seats; seats !== undefined; seats = undo.origins.get(seats.at(-1)?.barrier ?? ''))
    if (seats.some(({ barrier, slot }) => undo.decided.get(barrier)?.includes(slot) === false)) return true
  return false
}

// ── of the run ───────────────────────────────────────────────────────────────────────────────────────────

/** Begins to undo what the run has done, now that nothing of it runs any more. False if there is nothing to undo. */
export function compensateRun(draft: Draft, outcome: Outcome): boolean {
  const taken = open(nodesUnder(draft.state, rootBarrier))
  if (taken.length === 0) return false
  emit(draft, { type: 'run.compensating', cause: deepFreeze(causeOf(outcome)) })
  emitPlan(draft, rootBarrier, taken)
  return true
}

function causeOf(outcome: Outcome): Failure {
  if (outcome.status === 'failed') return outcome.error
  const why = outcome.status === 'cancelled' && outcome.reason !== null ? `: ${outcome.reason}` : ''
  return { code: 'CANCELLED', message: `the run is taken back${why}`, retryable: false, at: {} }
}

/** How much of what was to be undone is: all of it, or not; or there was nothing. Where a slot reads cancelled, nobody is told what came of it. */
export function rollbackOf(state: State): RolledBack {
  const { undo } = state
  // Mostly there was nothing.
  if (undo === nothingDone) return { rollback: 'none' }
  const seen = [...undo.undone.entries()].some(([barrier, path]) => barrier === rootBarrier || !readsCancelled(state, path))
  if (undo.left.size === 0) return { rollback: seen ? 'complete' : 'none' }
  const turnOf = (id: string): number => undo.nodes.get(id)?.entry?.turn ?? 0
  const left = [...undo.left.entries()].sort(
    ([a, x], [b, y]) => compareIds(x.branch, y.branch) || turnOf(a) - turnOf(b) || (a < b ? -1 : 1),
  )
  return { rollback: 'partial', notUndone: left.map(([id]) => id) }
}

// ── undos ────────────────────────────────────────────────────────────────────────────────────────────────

/** Starts the undos that need not wait any more, as far as there is room. */
export function startUndos(draft: Draft): void {
  const { pausedAt } = draft.state
  if (draft.state.undo.ready.size === 0 || pausedAt !== null) return
  const { concurrency } = shapeOf(draft.state).limits
  for (let { first } = draft.state.undo.ready; first !== null; { first } = draft.state.undo.ready) {
    if (concurrency !== null && draft.state.running + draft.state.undo.running.size >= concurrency) return
    emit(draft, { type: 'undo.started', of: first.id, attempt: entryOf(draft.state, first.id).attempt + 1 })
  }
}

interface UndoSpeaker {
  readonly of: string
  readonly attempt: number
  readonly revision: number
}

/** Why this is not the undo that is owed; null if it is. */
function notOwed(state: State, { of, attempt, revision }: UndoSpeaker): Refusal | null {
  const entry = state.undo.nodes.get(of)?.entry ?? null
  if (entry?.status === 'compensated') return { code: 'ALREADY_COMPENSATED', message: `${of} has been undone already` }
  const running = state.undo.running.get(of)
  if (running === undefined || running.attempt !== attempt)
    return { code: 'STALE_ATTEMPT', message: `attempt ${attempt} at undoing ${of} is not owed` }
  if (running.revision !== revision)
    return { code: 'STALE_REVISION', message: `${of} has changed since revision ${revision}: it is at ${running.revision}` }
  return null
}

export function undoSucceeded(draft: Draft, speaker: UndoSpeaker): Refusal | null {
  const refusal = notOwed(draft.state, speaker)
  if (refusal === null) emit(draft, { type: 'undo.completed', of: speaker.of, attempt: speaker.attempt })
  return refusal
}

/** The attempt failed: the next one follows, or it is given up and the others go on. */
export function undoThrew(draft: Draft, speaker: UndoSpeaker, error: Failure, retryable: boolean): Refusal | null {
  const refusal = notOwed(draft.state, speaker)
  if (refusal !== null) return refusal
  const { of, attempt } = speaker
  const failures = entryOf(draft.state, of).failures + 1
  const final = !retryable || failures >= undoRetry.attempts
  const delay = final ? 0 : backoffMs(undoRetry, failures, `${draft.state.run?.nonce}/${of}/undo/${attempt}`)
  const retryAt = delay > 0 ? { retryAt: draft.at + delay } : {}
  emit(draft, { type: 'undo.failed', of, attempt, error, final, ...retryAt })
  return null
}

/** Undos that kill the process that tries them are given up, like turns. */
export function giveUpCrashing(draft: Draft): void {
  for (const { of, attempt, revision } of byId(draft.state.undo.running.values(), ({ of }) => of)) {
    const crashes = draft.state.crashes.get(undoTimer(of)) ?? 0
    if (crashes < crashesMax) continue
    const message = `the process died ${crashes} times while it undid ${of}`
    undoThrew(draft, { of, attempt, revision }, { code: 'TURN_CRASHED', message, retryable: false, at: {} }, false)
  }
}
