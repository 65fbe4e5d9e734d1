import { arm, disarm } from './fold-timers.js'
import type { Action } from './action.js'
import { ActivityLog } from './activity-log.js'
import { liveAttempt } from './branches.js'
import { abortedWork, activityDone, childLeft, turnDone, undoDue } from './fold-undo.js'
import { type ChangingBranch, changingBranch, type Folding, type Of } from './folding.js'
import { attemptId, backoffTimer, sleepTimer } from './ids.js'
import { changed } from './lifecycle.js'
import { forgetting, remembering } from './memory.js'
import type { StepMessage, TurnMessage } from './message.js'
import type { Siblings } from './siblings.js'
import type { ActivityRecord, Branch, State, TurnWork } from './state.js'
import { clockAt, requestsOf } from './state.js'
import { Trie } from './trie.js'
import { plus, type Reserve, reserving, settling, usedBy } from './usage.js'

// ── the queue of turns ───────────────────────────────────────────────────────────────────────────────────

/** The branch waits for its (next attempt at its) turn to start. */
export function enqueue(state: Folding, branch: ChangingBranch): void {
  branch.standing = { status: 'ready', ticket: state.queue.tail }
  state.queue = state.queue.push(branch.id, state.edit)
  if (branch.attempt === 1) state.fresh++
}

export function dequeue(state: Folding, branch: Branch): void {
  if (branch.standing.status !== 'ready' || branch.standing.ticket === null) return
  state.queue = state.queue.delete(branch.standing.ticket, state.edit)
  if (branch.attempt === 1) state.fresh--
}

export function nextTurn(state: Folding, branch: ChangingBranch, message: TurnMessage | StepMessage): void {
  branch.turn++
  branch.attempt = 1
  branch.rejections = 0
  branch.failures = 0
  say(branch, message)
  const anew = message.kind === 'request' || message.kind === 'merged'
  if (anew && branch.memory !== null && remembers(state, branch.agent) === 'turn') branch.memory = forgetting(branch.memory, branch.agent)
  enqueue(state, branch)
}

/** What its agent was last asked is kept when it is told something else. */
function say(branch: ChangingBranch, message: TurnMessage | StepMessage): void {
  if (branch.requests === null && branch.message !== message) branch.requests = requestsOf(branch)
  branch.message = message
}

const remembers = (state: Folding, agent: string) => state.run?.shape.agents[agent]?.remembers

/** What the branch remembers once its turn, as it is recorded now, is over; an attempt that was sent back has no action. */
function remembered(state: Folding, branch: Branch, action?: Action): Branch['memory'] {
  const { id, agent, turn, message } = branch
  if (remembers(state, agent) === undefined || message.kind === 'step') return branch.memory
  const work = state.work.get(id)
  const settled = [...(work?.records.values() ?? [])].filter(({ order }) => order >= 0).sort((a, b) => a.order - b.order)
  return remembering(branch.memory, agent, { branch: id, turn, message, records: settled, ...(action !== undefined && { action }) })
}

// ── turns ────────────────────────────────────────────────────────────────────────────────────────────────

const started: Branch['standing'] = Object.freeze({ status: 'ready', ticket: null })

export function turnStarted(state: Folding, event: Of<'turn.started'>): void {
  state.running++
  const ticket = state.branches.ticketOfNext(event.branch, event.seq, event.at)
  if (ticket !== null) {
    state.branches = state.branches.startNext(event.branch, event.seq, event.at, state.edit)
    state.queue = state.queue.delete(ticket, state.edit)
    state.fresh--
    state.turnsUsed++
    return
  }
  const branch = changingBranch(state, event.branch)
  dequeue(state, branch)
  branch.standing = started
  branch.startSeq = event.seq
  branch.startAt = event.at
  if (branch.attempt === 1) state.turnsUsed++
}

/** Starts the first turns of all children of a fork at once, by so many events from `seq` on: which would do the same one by one. */
export function startAll(state: Folding, siblings: Siblings, seq: number, at: number): void {
  const { opened } = siblings
  state.branches = state.branches.startAll(siblings, seq, at, state.edit)
  state.queue = state.queue.dropFirst(opened, state.edit)
  state.running += opened
  state.fresh -= opened
  state.turnsUsed += opened
}

export function turnCompleted(state: Folding, event: Of<'turn.completed'>): void {
  const branch = changingBranch(state, event.branch)
  turnDone(state, branch, event.action)
  branch.memory = remembered(state, branch, event.action)
  branch.action = event.action
  if ('state' in event.action && event.action.state !== undefined) branch.state = event.action.state
  dropWork(state, branch.id)
  endAttempt(state, branch)
}

function endAttempt(state: Folding, branch: ChangingBranch): void {
  if (branch.startSeq === 0) return
  branch.startSeq = 0
  branch.startAt = 0
  state.running--
}

export function turnRejected(state: Folding, event: Of<'turn.rejected'>): void {
  const branch = changingBranch(state, event.branch)
  const memory = remembered(state, branch)
  dropWork(state, branch.id)
  endAttempt(state, branch)
  branch.rejections++
  if (event.final) return
  branch.attempt++
  branch.memory = memory
  say(branch, { kind: 'feedback', problem: event.problem })
  enqueue(state, branch)
}

export function turnFailed(state: Folding, event: Of<'turn.failed'>): void {
  const branch = changingBranch(state, event.branch)
  // Whoever died of it may have done it, as whoever ran out of time may do it yet.
  const isUnsettled = event.timedOut === true || event.unsettled === true || event.error.code === 'TURN_CRASHED'
  const attempt = isUnsettled ? { ...liveAttempt(branch), ...abortedWork(state, branch) } : null
  if (event.notUndone !== undefined) childLeft(state, branch.id, event.notUndone)
  if (event.usage !== undefined) state.spent = settling(state.spent, undefined, usedBy(event.usage))
  if (event.final) dropWork(state, branch.id)
  else keepWork(state, branch.id, event.repeated)
  endAttempt(state, branch)
  if (attempt !== null) state.aborting = state.aborting.set(attemptId(branch.id, branch.turn, branch.attempt), attempt, state.edit)
  branch.failures = event.pauses ? 0 : branch.failures + 1
  if (event.final) return
  branch.attempt++
  if (event.retryAt === undefined) return enqueue(state, branch)
  const id = backoffTimer(branch.id)
  arm(state, { id, kind: 'backoff', due: clockAt(state, event.at) + event.retryAt - event.at })
  branch.standing = { status: 'backing-off' }
}

export function timerFired(state: Folding, id: string): void {
  const timer = disarm(state, id)
  if (timer?.kind === 'undo') undoDue(state, id)
  if (timer?.kind === 'backoff') enqueue(state, changingBranch(state, id.slice(0, -backoffTimer('').length)))
}

// ── activities ───────────────────────────────────────────────────────────────────────────────────────────

const nothingUsed: Reserve = Object.freeze({ tokens: 0, costUsd: 0 })
const noWork: TurnWork = { records: ActivityLog.from([]), count: 0, earlier: Trie.empty<ActivityRecord>() }

type Settled = Of<'activity.completed' | 'activity.failed'>

/** An activity is over: its result is the next of its attempt. */
export function activitySettled(state: Folding, event: Settled): void {
  const work = state.work.get(event.branch) ?? noWork
  const before = work.records.get(event.key)
  activityDone(state, event, before)
  // What it used counts instead of what was set aside for it.
  const reserve = reserveOf(before)
  if (reserve !== undefined || event.usage !== undefined) {
    const counted = before?.status === 'started' ? before.counted : undefined
    const used = usedBy(event.usage)
    state.spent = settling(state.spent, reserve, counted === undefined ? used : plus(used, counted, -1))
  }
  if (before?.status === 'sleeping') disarm(state, sleepTimer(event.branch, event.key))
  record(state, event.branch, work, settledRecord(event, work.count), work.count + 1)
}

/** The same of one of which nothing was recorded before, and that has come to a value and counts nothing of what it used. */
export function recordValue(state: Folding, { branch, key, name, delivered, at }: Settled, work: TurnWork = noWork, value: unknown): void {
  const { count } = work
  record(state, branch, work, Object.freeze({ key, name, delivered, at, order: count, status: 'completed', value }), count + 1)
}

function settledRecord(event: Settled, order: number): ActivityRecord {
  const { key, name, delivered, at, usage } = event
  if (event.type === 'activity.failed')
    return Object.freeze({ key, name, delivered, at, order, status: 'failed', error: event.error, ...(usage !== undefined && { usage }) })
  const { value } = event
  const given = { ...(value !== undefined && { value }), ...(usage !== undefined && { usage }) }
  return Object.freeze({ key, name, delivered, at, order, status: 'completed', ...given })
}

export function activityStarted(state: Folding, event: Of<'activity.started'>): void {
  const { branch, key, name, delivered, at, undo, reserve, used } = event
  const work = state.work.get(branch) ?? noWork
  const before = work.records.get(key)
  // It is tried again, by whoever knows what it has used; or because nobody knows what came of it, and then nobody will know what it has used.
  const last = reserveOf(before)
  if (last !== undefined) state.spent = settling(state.spent, last, used ?? last)
  if (reserve !== undefined) state.spent = reserving(state.spent, reserve)
  const counted = used === undefined || before?.status !== 'started' ? undefined : plus(before.counted ?? nothingUsed, used)
  const given = {
    ...(undo !== undefined && { undo }),
    ...(reserve !== undefined && { reserve }),
    ...(counted !== undefined && { counted }),
  }
  const started = Object.freeze({ key, name, delivered, at, order: -1, status: 'started', ...given } as const)
  if (before === undefined) record(state, branch, work, started, work.count)
  else setRecord(state, branch, work, started, work.count)
}

function record(state: Folding, branch: string, work: TurnWork, one: ActivityRecord, count: number): void {
  if (state.crashes.size > 0) state.crashes = state.crashes.delete(branch, state.edit)
  setRecord(state, branch, work, one, count)
}

/** The same of one that takes the place of what is known already: a turn that has only begun something again has come no further. */
function setRecord(state: Folding, branch: string, work: TurnWork, one: ActivityRecord, count: number): void {
  state.work = state.work.set(branch, { records: work.records.with(one), count, earlier: work.earlier }, state.edit)
}

const reserveOf = (record: ActivityRecord | undefined): Reserve | undefined => (record?.status === 'started' ? record.reserve : undefined)

export function sleepStarted(state: Folding, event: Of<'sleep.started'>): void {
  const { branch, key, name, delivered, at } = event
  const work = state.work.get(branch) ?? noWork
  record(state, branch, work, Object.freeze({ key, name, delivered, at, order: -1, status: 'sleeping' }), work.count)
  const id = sleepTimer(branch, key)
  arm(state, { id, kind: 'sleep', due: clockAt(state as State, event.at) + event.ms })
}

/** The turn is over, or begins again from nothing: its records go, and its sleeps with them. */
export function dropWork(state: Folding, branch: string): void {
  if (state.crashes.size > 0) state.crashes = state.crashes.delete(branch, state.edit)
  const work = state.work.get(branch)
  if (work === undefined) return
  letGo(state, branch, work)
  state.work = state.work.delete(branch, state.edit)
}

/** Sleeps are over; what was set aside for an activity whose outcome nobody knows counts as used. */
function letGo(state: Folding, branch: string, work: TurnWork): void {
  if (work.records.isSettled) return
  for (const record of work.records.values()) {
    if (record.status === 'sleeping') disarm(state, sleepTimer(branch, record.key))
    const reserve = reserveOf(record)
    if (reserve !== undefined) state.spent = settling(state.spent, reserve, reserve)
  }
}

/** Whether something may have been done, and nobody knows. */
const isUnknown = (record: ActivityRecord): boolean =>
  record.status === 'started' || (record.status === 'failed' && record.error.code === 'ACTIVITY_OUTCOME_UNKNOWN')

/** After a throw the next attempt keeps what succeeded, and knows what may have been done and must not be repeated. */
function keepWork(state: Folding, branch: string, repeated: readonly string[] = []): void {
  state.crashes = state.crashes.delete(branch, state.edit)
  const work = state.work.get(branch)
  if (work === undefined) return
  const names = new Map(repeated.map((name) => [name, 1]))
  for (const { name } of work.records.values()) names.set(name, (names.get(name) ?? 0) + 1)
  let { earlier } = work
  for (const record of work.records.values()) {
    if (record.status !== 'completed' && !isUnknown(record)) continue
    const isOneOfSeveral = (names.get(record.name) ?? 0) > 1
    earlier = earlier.set(record.key, isOneOfSeveral ? Object.freeze({ ...record, isOneOfSeveral }) : record)
  }
  letGo(state, branch, work)
  state.work = state.work.set(branch, { ...noWork, earlier }, state.edit)
}

// ── asks ─────────────────────────────────────────────────────────────────────────────────────────────────

export function askOpened(state: Folding, event: Of<'ask.opened'>): void {
  const { ask } = event
  const branch = changingBranch(state, event.branch)
  const common = { id: ask.id, branch: ask.branch, agent: ask.agent, openedAt: ask.openedAt }
  const barrier = ask.kind === 'join' ? ask.barrier : null
  branch.asks++
  branch.standing = { status: 'asking', ask: ask.id, barrier }
  if (ask.kind === 'join') {
    state.asks = state.asks.set(ask.id, { ...common, kind: 'join', barrier: ask.barrier }, state.edit)
    return
  }
  if (ask.kind === 'approval') {
    const { tool, input, call } = ask
    state.asks = state.asks.set(ask.id, { ...common, kind: 'approval', tool, input, call }, state.edit)
    return
  }
  const { timeoutMs, schema } = ask
  const expiresAt = timeoutMs === undefined ? null : ask.openedAt + timeoutMs
  state.asks = state.asks.set(
    ask.id,
    { ...common, kind: 'question', question: ask.question, expiresAt, ...(schema !== undefined && { schema }) },
    state.edit,
  )
  if (timeoutMs !== undefined) arm(state, { id: ask.id, kind: 'ask', due: clockAt(state as State, event.at) + timeoutMs })
}

export function closeAsk(state: Folding, id: string, how: 'answered' | 'expired' | 'closed'): void {
  state.asks = state.asks.delete(id, state.edit)
  state.closedAsks = state.closedAsks.set(id, changed('ask', state.closedAsks.get(id) ?? 'open', how), state.edit)
  disarm(state, id)
}

export function askAnswered(state: Folding, event: Of<'ask.answered'>): void {
  const ask = state.asks.get(event.askId)
  closeAsk(state, event.askId, 'answered')
  // A step has no second turn: the answer is its output.
  if (ask === undefined || ask.kind === 'join' || state.run?.shape.kind === 'graph') return
  const question = ask.kind === 'question' ? ask.question : { tool: ask.tool, input: ask.input, call: ask.call }
  nextTurn(state, changingBranch(state, event.branch), { kind: 'answer', askId: event.askId, question, value: event.value })
}

export function askExpired(state: Folding, event: Of<'ask.expired'>): void {
  const ask = state.asks.get(event.askId)
  closeAsk(state, event.askId, 'expired')
  if (event.final) return
  nextTurn(state, changingBranch(state, event.branch), {
    kind: 'expired',
    askId: event.askId,
    question: ask?.kind === 'question' ? ask.question : null,
  })
}
