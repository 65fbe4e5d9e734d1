import { fail, forkItems, perform } from './acting.js'
import { release, timeOut } from './barrier.js'
import { liveAttempt } from './branches.js'
import { cancelRun, crossLimit, fenceAborted } from './closing.js'
import type { ActivitySpeaker, Command, Refusal, RefusalCode, Speaker } from './command.js'
import { giveUpCrashing, undoSucceeded, undoThrew } from './compensation.js'
import { consequences } from './consequences.js'
import { cannotContinue, rearrange } from './continuing.js'
import { crashesMax } from './crashes.js'
import type { Draft } from './draft.js'
import { draftOf, emit, NeedsCode } from './draft.js'
import type { Event } from './event.js'
import type { Failure, FailureCode } from './failure.js'
import { abortedWork } from './fold-undo.js'
import { editable, type Folding } from './folding.js'
import { recordValue } from './fold-turns.js'
import { failPartly, itemOf, stepOf } from './gate.js'
import { attemptId, byId, rootBarrier, rootBranch } from './ids.js'
import { joinSpec } from './join.js'
import { illegal, spelledOut } from './legal.js'
import type { Halted } from './lifecycle.js'
import { startsOf } from './recount.js'
import { backoffMs } from './retry.js'
import type { AgentShape, Code, GraphShape } from './shape.js'
import type { Branch, State } from './state.js'
import { branchOf, clockAt, isInherited, isOver, shapeOf } from './state.js'
import type { Reserve, Usage } from './usage.js'

/** What a command comes to: events (none if it asks for what is so already) with the state they fold to, or a refusal. */
export type Decision = { readonly events: readonly Event[]; readonly state: State } | { readonly refusal: Refusal }

/**
 * Decides one command, to its end. Pure: the same state, command and time give the same events. `code` has the definition's merge
 * and result functions; without it, what needs them is refused with NEEDS_CODE and can be decided where they are.
 */
export function decide(state: State, command: Command, at: number, code: Code | null): Decision {
  const own = editable(state)
  const decided = decideOn(own, command, at, code)
  if ('refusal' in decided) return decided
  if (decided.events.length === 0) return { events: decided.events, state }
  own.edit = null
  return { events: decided.events, state: own }
}

/** Decides a command on a state that belongs to the caller, who drops what it has become if the command is refused. */
export function decideOn(
  state: Folding,
  command: Command,
  at: number,
  code: Code | null,
): { readonly events: readonly Event[] } | { readonly refusal: Refusal } {
  const draft = draftOf(state, at, code)
  try {
    const refusal = carryOut(draft, command)
    if (refusal !== null) return { refusal }
    if (draft.events.length > 0 && !isRecord(draft.events)) consequences(draft)
    return { events: draft.events }
  } catch (error) {
    if (error instanceof NeedsCode) return { refusal: { code: 'NEEDS_CODE', message: `${error.what} is needed to decide this` } }
    throw error
  }
}

/**
 * What most commands are: an activity of a turn that is owed has come to a value, in a run that counts nothing of what it uses. It moves
 * nobody, so that nothing follows but its record. Null: it is something else, and decided as everything is.
 */
export function recordOn(state: Folding, command: Extract<Command, { type: 'activity.complete' }>, at: number): readonly Event[] | null {
  const { branch, agent, turn, attempt, key, name, delivered, value, usage, timeouts } = command
  if (state.run === null || value === undefined || usage !== undefined || timeouts !== undefined || speaking(state, command) === null)
    return null
  const { tokens, costUsd } = state.run.shape.limits
  if (tokens !== undefined || costUsd !== undefined) return null
  const work = state.work.get(branch)
  if (work !== undefined && work.records.get(key) !== undefined) return null
  const event: Event = {
    seq: state.seq + 1,
    at: Math.max(at, state.at),
    type: 'activity.completed',
    branch,
    agent,
    turn,
    attempt,
    key,
    name,
    delivered,
    value,
  }
  state.seq = event.seq
  state.at = event.at
  recordValue(state, event, work, value)
  return [event]
}

/** What is recorded of an activity moves nobody: nothing follows from it. */
function isRecord(events: readonly Event[]): boolean {
  if (events.length !== 1) return false
  const type = events[0]?.type
  return type === 'activity.completed' || type === 'activity.started' || type === 'activity.failed' || type === 'sleep.started'
}

const refuse = (code: RefusalCode, message: string): Refusal => ({ code, message })

/** The one switch over commands: null if it was carried out. */
function carryOut(draft: Draft, command: Command): Refusal | null {
  const { state } = draft
  if (command.type === 'run.start') return start(draft, command)
  if (state.run === null) return refuse('RUN_NOT_FOUND', 'there is no such run')
  switch (command.type) {
    case 'run.claim':
      return claim(draft, command)
    case 'run.release':
      // It may end while its worker closes: then there is nothing left to give back.
      if (state.held && !isOver(state)) emit(draft, { type: 'run.released' })
      return null
    case 'run.pause':
      return pause(draft, command.by)
    case 'run.resume':
      if (state.pausedAt === null) return refuse('RUN_NOT_PAUSED', `the run ${state.run.id} is not paused`)
      emit(draft, {
        type: 'run.resumed',
        ...(command.by !== undefined && { by: command.by }),
        ...(command.above !== undefined && { above: command.above }),
      })
      return null
    case 'run.cancel':
      return cancel(draft, command.reason, command.by, command.compensate ?? true)
    case 'run.overspend':
      // What a child run has used may have been counted since: then it is in both.
      if (state.seq !== command.seq) return refuse('STALE_REVISION', `the run ${state.run.id} has gone on since event ${command.seq}`)
      if (isUndecided(state)) crossSpent(draft, command.more)
      return null
    case 'turn.complete': {
      const branch = speaking(state, command)
      if (branch === null) return stale(command)
      const problem = illegal(state, branch, command.action)
      if (problem !== null) return reject(draft, branch, problem)
      const action = spelledOut(state, branch, command.action)
      const { id, agent, turn, attempt } = branch
      emit(draft, { seq: 0, at: 0, type: 'turn.completed', branch: id, agent, turn, attempt, action })
      perform(draft, branchOf(draft.state, branch.id), action)
      return null
    }
    case 'step.complete':
    case 'step.skip':
    case 'step.each': {
      const branch = speaking(state, command)
      return branch === null ? stale(command) : settleStep(draft, branch, command)
    }
    case 'turn.reject': {
      const branch = speaking(state, command)
      return branch === null ? stale(command) : reject(draft, branch, command.problem)
    }
    case 'turn.fail': {
      const branch = speaking(state, command)
      return branch === null ? stale(command) : failAttempt(draft, branch, command)
    }
    case 'turn.settle': {
      const attempt = state.aborting.get(attemptId(command.branch, command.turn, command.attempt))
      if (attempt === undefined) return stale(command)
      const { branch, agent, turn } = attempt
      const { done, notUndone, usage } = command
      // It did nothing here that counts, and may have done it before, under another worker: nobody knows.
      const how = done === undefined && isInherited(state, attempt) ? 'fenced' : command.how
      emit(draft, {
        type: 'turn.aborted',
        branch,
        agent,
        turn,
        attempt: attempt.attempt,
        how,
        ...(done !== undefined && { done }),
        ...(notUndone !== undefined && { notUndone }),
        ...(usage !== undefined && { usage }),
      })
      if (usage !== undefined && isUndecided(draft.state)) crossSpent(draft, nothing)
      return null
    }
    case 'activity.start':
    case 'activity.complete':
    case 'activity.fail':
    case 'sleep.start':
      return record(draft, command)
    case 'ask.answer':
      return answer(draft, command.askId, command.value, command.by)
    case 'timer.fire':
      return timer(draft, command.timer)
    case 'undo.complete':
      return undoSucceeded(draft, command)
    case 'undo.fail':
      return undoThrew(draft, command, command.error, command.retryable)
  }
}

function start(draft: Draft, command: Extract<Command, { type: 'run.start' }>): Refusal | null {
  if (draft.state.run !== null) return refuse('RUN_EXISTS', `there is a run ${command.runId} already`)
  const { type: _, runId, shape, ...rest } = command
  emit(draft, { type: 'run.started', runId, definition: shape.name, version: shape.version, shape, ...rest })
  if (command.undoes !== undefined) {
    emit(draft, { type: 'run.decided', status: 'succeeded' })
    return null
  }
  if (shape.kind === 'graph') return startGraph(draft, shape)
  const starts = startsOf(shape)
  emit(draft, { type: 'barrier.opened', barrier: rootBarrier, kind: 'root', width: starts.length, join: joinSpec('all') })
  if (starts.length > shape.limits.maxBranches) {
    crossLimit(draft, 'LIMIT_BRANCHES', `the run needs more than the ${shape.limits.maxBranches} branches it may have (maxBranches)`)
    return null
  }
  starts.forEach((to, slot) => {
    emit(draft, { type: 'branch.opened', branch: rootBranch(slot, starts.length), parent: null, to, barrier: rootBarrier, slot })
  })
  return null
}

/** A branch per step, each behind its gate; a gate over nothing opens at once. */
function startGraph(draft: Draft, { steps, stragglers, limits }: GraphShape): null {
  const join = joinSpec({ policy: 'all', stragglers })
  emit(draft, { type: 'barrier.opened', barrier: rootBarrier, kind: 'root', width: steps.length, join })
  if (steps.length > limits.maxBranches) {
    crossLimit(draft, 'LIMIT_BRANCHES', `the run needs more than the ${limits.maxBranches} branches it may have (maxBranches)`)
    return null
  }
  steps.forEach(({ id }, slot) => {
    emit(draft, {
      type: 'branch.opened',
      branch: rootBranch(slot, steps.length),
      parent: null,
      to: id,
      barrier: rootBarrier,
      slot,
      gated: true,
    })
  })
  draft.gates = steps.filter(({ after }) => after.length === 0).map(({ id }) => id)
  return null
}

/** A worker takes the run over. Whoever had it is fenced off, so that what it was aborting has ended. */
function claim(draft: Draft, { epoch, shape, waited, unbegun }: Extract<Command, { type: 'run.claim' }>): Refusal | null {
  if (isOver(draft.state)) return refuse('RUN_ENDED', `the run ${draft.state.run?.id} has ended`)
  if (shape !== undefined) {
    const problem = cannotContinue(draft.state, shape)
    if (problem !== null) return refuse('CANNOT_CONTINUE', problem)
    // What may have been done is known by the version that it was begun under.
    fenceAborted(draft)
  }
  emit(draft, {
    type: 'run.claimed',
    epoch,
    ...(shape !== undefined && { shape }),
    ...(waited !== undefined && { waited }),
    ...(unbegun !== undefined && { unbegun }),
  })
  fenceAborted(draft)
  giveUpCrashing(draft)
  if (shape !== undefined) rearrange(draft)
  for (const [id, crashes] of byId(draft.state.crashes.entries(), ([branch]) => branch)) {
    const branch = draft.state.branches.get(id)
    if (branch === undefined || crashes < crashesMax) continue
    const message = `the process died ${crashes} times in turn ${branch.turn} of ${branch.agent} with nothing recorded in between`
    failAttempt(draft, branch, { error: { code: 'TURN_CRASHED', message, retryable: false, at: {} }, retryable: false })
  }
  fenceAborted(draft)
  return null
}

// ── steering ─────────────────────────────────────────────────────────────────────────────────────────────

/** Nothing is left to steer: the run is over, or everything of it is closed and it only waits for aborted attempts. */
const isEnding = (state: State): boolean => isOver(state) || (state.closing && !willUndo(state))

/** What a run that is closing has done is undone, which can be paused. */
const willUndo = (state: State): boolean => !state.keepsDone && (state.undo.nodes.size > 0 || state.undo.plans.size > 0)

/** What is left of a run that is still shown as running may take as long as what was in flight in it. */
function endedText(state: State): string {
  if (isOver(state)) return `the run ${state.run?.id} has ended`
  const ends = state.outcome?.status === 'cancelled' ? 'is being cancelled' : 'is ending'
  const isHeld = state.pausedAt !== null && willUndo(state)
  const waits = isHeld ? 'it is paused, and undoes what it has done once it is resumed' : 'it only waits for what was in flight to stop'
  return `the run ${state.run?.id} ${ends}: ${waits}`
}

function pause(draft: Draft, by: string | undefined): Refusal | null {
  const { state } = draft
  if (isEnding(state)) return refuse('RUN_ENDED', endedText(state))
  if (state.pausedAt === null) emit(draft, { type: 'run.paused', ...(by !== undefined && { by }) })
  return null
}

function cancel(draft: Draft, reason: string | undefined, by: string | undefined, compensate: boolean): Refusal | null {
  const { state } = draft
  if (state.outcome?.status === 'cancelled') return null
  if (isOver(state) || state.closing) return refuse('RUN_ENDED', endedText(state))
  if (state.status === 'compensating') {
    const undoes = state.run?.undoOf ? `undoes what ${state.run.undoOf.run} has done` : 'has failed and undoes what it has done'
    return refuse('RUN_ENDED', `the run ${state.run?.id} ${undoes}: that is not cancelled`)
  }
  cancelRun(draft, reason, by, compensate)
  return null
}

function answer(draft: Draft, askId: string, value: unknown, by: string | undefined): Refusal | null {
  const ask = draft.state.asks.get(askId)
  if (ask === undefined) {
    const closed = draft.state.closedAsks.get(askId)
    if (closed === 'answered') return refuse('ASK_ALREADY_ANSWERED', `the ask ${askId} has been answered already`)
    const why = closed === 'expired' ? 'has expired' : closed === 'closed' ? 'is closed: its branch was cancelled' : 'does not exist'
    return refuse('ASK_NOT_FOUND', `the ask ${askId} ${why}`)
  }
  if (ask.kind === 'join' && typeof value !== 'boolean')
    return refuse('ASK_INVALID_ANSWER', `the ask ${askId} is about a join: answer true to go on with what there is, or false to fail`)
  if (ask.kind === 'approval' && !isVerdict(value))
    return refuse('ASK_INVALID_ANSWER', `the ask ${askId} is about a call of ${ask.tool}: answer true, false or { approved, reason }`)
  emit(draft, { type: 'ask.answered', branch: ask.branch, askId, value, ...(by !== undefined && { by }) })
  if (ask.kind === 'join') release(draft, ask.barrier, value === true)
  else if (shapeOf(draft.state).kind === 'graph')
    emit(draft, { type: 'step.completed', branch: ask.branch, step: ask.agent, output: value })
  return null
}

/** What a person may say of a call that waits for approval. */
function isVerdict(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return typeof value === 'boolean'
  const { approved, reason } = value as { readonly approved?: unknown; readonly reason?: unknown }
  return typeof approved === 'boolean' && (reason === undefined || typeof reason === 'string')
}

// ── turns ────────────────────────────────────────────────────────────────────────────────────────────────

/** The branch whose turn this is, if exactly this execution of it is owed. */
function speaking(state: State, speaker: Speaker): Branch | null {
  const owed = state.branches.get(speaker.branch)
  if (owed === undefined || owed.startSeq === 0) return null
  if (owed.turn !== speaker.turn || owed.attempt !== speaker.attempt || owed.agent !== speaker.agent) return null
  return owed
}

function stale({ branch, agent, turn, attempt }: Speaker): Refusal {
  return refuse('STALE_ATTEMPT', `attempt ${attempt} at turn ${turn} of ${agent} on branch ${branch} is not owed`)
}

const ofTurn = ({ id, agent, turn, attempt }: Branch) => ({ branch: id, agent, turn, attempt }) as const

function settleStep(draft: Draft, branch: Branch, command: Extract<Command, { type: 'step.complete' | 'step.skip' | 'step.each' }>): null {
  const common = { branch: branch.id, step: branch.agent, ...itemOf(draft, branch) }
  switch (command.type) {
    case 'step.complete':
      emit(draft, {
        type: 'step.completed',
        ...common,
        ...(command.output !== undefined && { output: command.output }),
        ...(command.child !== undefined && { child: command.child }),
        ...(command.notUndone !== undefined && { notUndone: command.notUndone }),
        ...(command.usage !== undefined && { usage: command.usage }),
      })
      if (command.usage !== undefined) crossSpent(draft, nothing)
      return null
    case 'step.skip':
      emit(draft, { type: 'step.skipped', ...common, cause: 'when' })
      return null
    case 'step.each': {
      const calls = Object.freeze(command.items.map((item) => Object.freeze({ to: branch.agent, request: item })))
      emit(draft, { type: 'turn.completed', ...ofTurn(branch), action: Object.freeze({ type: 'fork', calls }) })
      forkItems(draft, branch, stepOf(draft, branch)?.concurrency ?? null)
      return null
    }
  }
}

/** The same turn, next attempt, with the reason as its message; once too often, the branch fails. */
function reject(draft: Draft, branch: Branch, problem: string): null {
  const { maxRejections, takes } = agentOf(draft, branch)
  const final = branch.rejections >= maxRejections || !takes.includes('feedback')
  emit(draft, { type: 'turn.rejected', ...ofTurn(branch), problem, final })
  if (final) fail(draft, branch, { code: 'REJECTED', message: naming(branch, problem), retryable: false, at: {} })
  return null
}

/** Whoever reads of it elsewhere is told who it was. */
function naming({ agent, id }: Branch, problem: string): string {
  const who = `${agent} (branch ${id})`
  return problem.startsWith(who) ? problem : `${who} was sent back too often: ${problem}`
}

function agentOf(draft: Draft, branch: Branch): AgentShape {
  const agent = shapeOf(draft.state).agents[branch.agent]
  if (agent === undefined) throw new Error(`there is no agent ${branch.agent}`)
  return agent
}

interface Failed {
  readonly error: Failure
  readonly retryable: boolean
  readonly timedOut?: boolean
  readonly stopped?: Halted
  readonly repeated?: readonly string[]
  readonly notUndone?: readonly string[]
  readonly usage?: Usage
}

function failAttempt(draft: Draft, branch: Branch, failed: Failed): null {
  const { error, retryable, timedOut, stopped, repeated, notUndone, usage } = failed
  const used = usage === undefined ? {} : { usage }
  // What a child run could not undo must not be passed over: nothing is tried again, nothing stands in for it.
  const partial = notUndone !== undefined && notUndone.length > 0
  const left = partial ? { notUndone } : {}
  // A limit fails the run, not the step that came upon it.
  if (error.code.startsWith('LIMIT_')) {
    emit(draft, { type: 'turn.failed', ...ofTurn(branch), error, final: true, ...left, ...used })
    crossLimit(draft, error.code, error.message)
    return null
  }
  const { retry } = agentOf(draft, branch)
  const failures = branch.failures + 1
  const spent = partial || !retryable || failures >= retry.attempts
  // The step waits for somebody to look at it, and is tried again when the run is resumed.
  const pauses = spent && !partial && stepOf(draft, branch)?.onError === 'pause'
  const final = spent && !pauses
  const seed = `${draft.state.run?.nonce}/${branch.id}/${branch.turn}/${branch.attempt}`
  const delay = spent ? 0 : backoffMs(retry, failures, seed)
  const retryAt = delay > 0 ? { retryAt: draft.at + delay } : {}
  const unsettled = isLeftUnknown(draft.state, branch, failed)
  const attempt = ofTurn(branch)
  emit(draft, {
    type: 'turn.failed',
    ...attempt,
    error,
    final,
    ...(timedOut && { timedOut }),
    ...(stopped !== undefined && { stopped }),
    ...(unsettled && { unsettled }),
    ...retryAt,
    ...(pauses && { pauses }),
    ...(!final && repeated !== undefined && { repeated }),
    ...left,
    ...used,
  })
  if (unsettled) emit(draft, { type: 'turn.aborted', ...attempt, how: 'fenced' })
  if (usage !== undefined && crossSpent(draft, nothing)) return null
  if (pauses && draft.state.pausedAt === null) emit(draft, { type: 'run.paused', by: `the step ${branch.agent}` })
  if (partial) failPartly(draft, branch, error)
  else if (final) fail(draft, branch, error)
  return null
}

type ActivityCommand = Extract<Command, ActivitySpeaker>

/** Of these nothing is known of what their bodies came to under a worker before this one: they have not come so far again. */
const unheard: readonly FailureCode[] = ['AGENT_STOPPED', 'RESOURCE_MISSING', 'NONDETERMINISTIC_TURN']

/** Whether a worker before this one may have done of it what can be undone, and nobody will know: as if it had been aborted there. */
function isLeftUnknown(state: State, branch: Branch, { error, timedOut }: Failed): boolean {
  if (state.run?.undoes !== true || timedOut === true || !isInherited(state, liveAttempt(branch))) return false
  return unheard.includes(error.code) || (abortedWork(state, branch).undo?.open ?? []).length > 0
}

/**
 * Once the result of an activity is recorded, nothing of it is recorded again. What uses something that is limited says each time that it is
 * started, also where it was begun by a process that has died.
 */
function record(draft: Draft, command: ActivityCommand): Refusal | null {
  if (speaking(draft.state, command) === null) return command.type === 'activity.complete' ? recordLate(draft, command) : stale(command)
  const known = draft.state.work.get(command.branch)?.records.get(command.key)
  if (known !== undefined && (known.status !== 'started' || (command.type === 'activity.start' && known.reserve === undefined)))
    return refuse(
      'ACTIVITY_RECORDED',
      `the activity ${command.key} of turn ${command.turn} on branch ${command.branch} is recorded already`,
    )
  switch (command.type) {
    case 'activity.start':
      return startActivity(draft, command)
    case 'activity.complete':
      emit(draft, {
        type: 'activity.completed',
        ...activityOf(command),
        ...(command.value !== undefined && { value: command.value }),
        ...(command.usage !== undefined && { usage: command.usage }),
        ...(command.timeouts !== undefined && { timeouts: command.timeouts }),
      })
      crossSpent(draft, nothing)
      return null
    case 'activity.fail': {
      const { error, usage, timeouts } = command
      const more = { ...(usage !== undefined && { usage }), ...(timeouts !== undefined && { timeouts }) }
      emit(draft, { type: 'activity.failed', ...activityOf(command), error, ...more })
      crossSpent(draft, nothing)
      return null
    }
    case 'sleep.start':
      emit(draft, { type: 'sleep.started', ...activityOf(command), ms: command.ms })
      return null
  }
}

/** What an event says of its activity: the attempt, which is owed, and which of its calls it was. */
function activityOf({ branch, agent, turn, attempt, key, name, delivered }: ActivityCommand) {
  return { branch, agent, turn, attempt, key, name, delivered } as const
}

const nothing: Reserve = Object.freeze({ tokens: 0, costUsd: 0 })

/** What it may use is set aside before it starts: where there is not enough left, the run has crossed its limit and nothing starts. */
function startActivity(draft: Draft, command: Extract<Command, { type: 'activity.start' }>): null {
  const { undo, reserve, used } = command
  const marks = { ...(undo !== undefined && { undo }), ...(reserve !== undefined && { reserve }), ...(used !== undefined && { used }) }
  // What was set aside for the last try is set aside again; what that has used comes on top.
  if (!crossSpent(draft, used ?? reserve ?? nothing)) emit(draft, { type: 'activity.started', ...activityOf(command), ...marks })
  return null
}

/** How a run ends that is closing, or was decided, is not changed any more by what it has used. */
const isUndecided = ({ status, closing, outcome }: State): boolean => status === 'running' && !closing && outcome === null

/** Fails the run if what is used, what is set aside and `more` are over what it may use. */
function crossSpent(draft: Draft, more: Reserve): boolean {
  const { tokens, wholeTokens = tokens, costUsd, wholeCostUsd = costUsd } = shapeOf(draft.state).limits
  const { spent } = draft.state
  if (tokens !== undefined && spent.tokens + spent.reserved.tokens + more.tokens > tokens)
    crossLimit(draft, 'LIMIT_TOKENS', `the run needs more than the ${wholeTokens} tokens it may use (tokens)`)
  // Sums of fractions are not exact: a billionth of a dollar is no crossing.
  else if (costUsd !== undefined && spent.costUsd + spent.reserved.costUsd + more.costUsd > costUsd + 1e-9)
    crossLimit(draft, 'LIMIT_COST', `the run needs more than the ${wholeCostUsd} USD it may cost (costUsd)`)
  else return false
  return true
}

/** It was done after its attempt had been aborted: that is used for nothing but to undo it. */
function recordLate(draft: Draft, command: Extract<Command, { type: 'activity.complete' }>): Refusal | null {
  const { branch, turn, attempt, key, value } = command
  const aborted = draft.state.aborting.get(attemptId(branch, turn, attempt))
  if (aborted?.undo?.open.some((open) => open.key === key) !== true) return stale(command)
  emit(draft, { type: 'activity.completed', ...activityOf(command), ...(value !== undefined && { value }), late: true })
  return null
}

// ── time ─────────────────────────────────────────────────────────────────────────────────────────────────

function timer(draft: Draft, id: string): Refusal | null {
  const { state } = draft
  const armed = state.timers.get(id)
  if (armed === undefined) return refuse('STALE_TIMER', `the timer ${id} is not armed`)
  if (state.pausedAt !== null || armed.due > clockAt(state, draft.at)) return refuse('TIMER_NOT_DUE', `the timer ${id} is not due`)
  switch (armed.kind) {
    case 'run':
      emit(draft, { type: 'timer.fired', timer: id })
      crossLimit(draft, 'LIMIT_TIME', `the run takes longer than the ${shapeOf(state).limits.timeoutMs} ms it may take (timeout)`)
      return null
    case 'join':
      timeOut(draft, id)
      return null
    case 'ask':
      return expire(draft, id)
    case 'backoff':
    case 'undo':
      emit(draft, { type: 'timer.fired', timer: id })
      return null
    case 'sleep':
      return wake(draft, id)
  }
}

/** A durable sleep is over: that is its result. */
function wake(draft: Draft, id: string): null {
  const [branchId = '', ...rest] = id.split('/')
  const branch = branchOf(draft.state, branchId)
  const key = rest.join('/')
  const sleeping = draft.state.work.get(branchId)?.records.get(key)
  if (sleeping !== undefined)
    emit(draft, { type: 'activity.completed', ...ofTurn(branch), key, name: sleeping.name, delivered: sleeping.delivered })
  return null
}

function expire(draft: Draft, id: string): null {
  const ask = draft.state.asks.get(id)
  if (ask === undefined) return null
  const branch = branchOf(draft.state, ask.branch)
  const final = !agentOf(draft, branch).takes.includes('expired')
  emit(draft, { type: 'ask.expired', branch: ask.branch, askId: id, final })
  if (!final) return null
  fail(draft, branch, { code: 'ASK_EXPIRED', message: `nobody answered the ask ${id} of ${ask.agent} in time`, retryable: false, at: {} })
  return null
}
