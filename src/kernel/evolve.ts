import type { Action } from './action.js'
import type { Event, EventBody, Goes } from './event.js'
import { attemptId, backoffTimer, runTimer, sleepTimer } from './ids.js'
import type { StepMessage, TurnMessage } from './message.js'
import { reachKey, reachOf } from './reach.js'
import { dependentsOf, recounted } from './recount.js'
import { contributions, joinData, reportedSlots } from './reported.js'
import { Row } from './row.js'
import type { Shape } from './shape.js'
import type { ActivityRecord, Asked, Attempt, Barrier, Branch, Gate, SettledSlot, State, TurnWork } from './state.js'
import { barrierOf, branchOf, clockAt, enclosingForks, shapeOf } from './state.js'
import { Trie } from './trie.js'

/** Folds one event into the state. Applies no rule and runs no code of users: the event says what was decided. */
export function evolve(before: State, event: Event): State {
  const state: State = { ...before, seq: event.seq, at: event.at }
  switch (event.type) {
    case 'run.started':
      return runStarted(state, event)
    case 'run.claimed':
      return runClaimed(state, event)
    case 'run.released':
      return { ...state, held: false }
    case 'run.paused':
      return { ...state, pausedAt: event.at }
    case 'run.resumed':
      return unpaused(state)
    case 'run.closing':
      return {
        ...unpaused(state),
        timers: Trie.empty(),
        outcome: event.cause === 'limit' ? { status: 'failed', error: event.error } : { status: 'cancelled', reason: event.reason ?? null },
      }
    case 'run.decided':
      return {
        ...state,
        outcome: event.status === 'failed' ? { status: 'failed', error: event.error } : { status: 'succeeded', output: event.output },
      }
    case 'run.succeeded':
      return over({ ...state, outcome: { status: 'succeeded', output: event.output } }, 'succeeded')
    case 'run.failed':
      return over({ ...state, outcome: { status: 'failed', error: event.error } }, 'failed')
    case 'run.cancelled':
      return over({ ...state, outcome: { status: 'cancelled', reason: event.reason ?? null } }, 'cancelled')
    case 'barrier.opened':
      return barrierOpened(state, event)
    case 'barrier.arrived':
      return barrierArrived(state, event)
    case 'barrier.fired':
      return barrierFired(state, event)
    case 'barrier.released': {
      const barrier = barrierOf(state, event.barrier)
      return goOn(state, barrier, event.goes, barrier.fired?.ok ?? false, barrier.fired?.deciding ?? null, event.state)
    }
    case 'barrier.closed':
      return withoutBarrier(state, event.barrier)
    case 'branch.opened':
      return branchOpened(state, event)
    case 'branch.moved': {
      const branch = branchOf(state, event.branch)
      const asked = [askedBy(branch)]
      return nextTurn(relocated(state, branch, event.to), { ...branch, agent: event.to, requests: asked }, requestMessage(asked))
    }
    case 'branch.notified':
      return branchNotified(state, event)
    case 'branch.held':
      return branchHeld(state, event)
    case 'branch.settled':
      return branchSettled(state, event)
    case 'rendezvous.fired':
      return rendezvousFired(state, event)
    case 'turn.started':
      return turnStarted(state, event)
    case 'turn.completed':
      return turnCompleted(state, event)
    case 'turn.rejected':
      return turnRejected(state, event)
    case 'turn.failed':
      return turnFailed(state, event)
    case 'turn.aborted':
      return { ...state, aborting: state.aborting.delete(attemptId(event.branch, event.turn, event.attempt)) }
    case 'activity.started':
      return recorded(state, event, { status: 'started' })
    case 'activity.completed':
      return recorded(state, event, { status: 'completed', ...(event.value !== undefined && { value: event.value }) })
    case 'activity.failed':
      return recorded(state, event, { status: 'failed', error: event.error })
    case 'sleep.started': {
      const id = sleepTimer(event.branch, event.key)
      const due = clockAt(state, event.at) + event.ms
      return { ...recorded(state, event, { status: 'sleeping' }), timers: state.timers.set(id, { id, kind: 'sleep', due }) }
    }
    case 'ask.opened':
      return askOpened(state, event)
    case 'ask.answered': {
      const ask = state.asks.get(event.askId)
      const closed = withoutAsk(state, event.askId, 'answered')
      // A step has no second turn: the answer is its output.
      if (ask?.kind !== 'question' || shapeOf(state).kind === 'graph') return closed
      return nextTurn(closed, branchOf(state, event.branch), {
        kind: 'answer',
        askId: event.askId,
        question: ask.question,
        value: event.value,
      })
    }
    case 'ask.expired': {
      const ask = state.asks.get(event.askId)
      const question = ask?.kind === 'question' ? ask.question : null
      if (event.final) return withoutAsk(state, event.askId, 'expired')
      return nextTurn(withoutAsk(state, event.askId, 'expired'), branchOf(state, event.branch), {
        kind: 'expired',
        askId: event.askId,
        question,
      })
    }
    case 'gate.opened':
      return gateOpened(state, event)
    case 'step.completed':
      return stepCompleted(state, event)
    case 'step.skipped':
      return stepSkipped(state, event)
    case 'timer.fired':
      return timerFired(state, event.timer)
  }
}

type Of<T extends EventBody['type']> = Extract<Event, { type: T }>

// ── the run ──────────────────────────────────────────────────────────────────────────────────────────────

function runStarted(state: State, event: Of<'run.started'>): State {
  const { timeoutMs } = event.shape.limits
  const due = event.at + (timeoutMs ?? 0)
  return {
    ...state,
    status: 'running',
    held: true,
    run: {
      id: event.runId,
      nonce: event.nonce,
      shape: event.shape,
      input: event.input,
      tags: event.tags,
      session: event.session ?? null,
      parent: event.parent ?? null,
      state: event.state,
      startedAt: event.at,
      dependents: dependentsOf(event.shape),
    },
    gates: gatesOf(event.shape),
    timers: timeoutMs === null ? state.timers : state.timers.set(runTimer, { id: runTimer, kind: 'run', due }),
  }
}

function gatesOf(shape: Shape): Trie<Gate> {
  if (shape.kind !== 'graph') return Trie.empty()
  return Trie.from(shape.steps.map(({ id, after }) => [id, { pending: after.length, succeeded: 0 }] as const))
}

function runClaimed(state: State, { shape }: Of<'run.claimed'>): State {
  let { crashes } = state
  if (state.held) for (const branch of state.turns.keys()) crashes = crashes.set(branch, (crashes.get(branch) ?? 0) + 1)
  const claimed: State = { ...state, held: true, crashes }
  return shape === undefined || state.run === null ? claimed : recounted({ ...claimed, run: { ...state.run, shape } })
}

function unpaused(state: State): State {
  if (state.pausedAt === null) return state
  return { ...state, pausedAt: null, pausedMs: state.pausedMs + (state.at - state.pausedAt) }
}

function over(state: State, status: 'succeeded' | 'failed' | 'cancelled'): State {
  return { ...unpaused(state), status, timers: Trie.empty() }
}

function timerFired(state: State, id: string): State {
  const timer = state.timers.get(id)
  const fired = { ...state, timers: state.timers.delete(id) }
  if (timer?.kind !== 'backoff') return fired
  return queued(fired, branchOf(state, id.slice(0, -backoffTimer('').length)))
}

// ── the queue of turns ───────────────────────────────────────────────────────────────────────────────────

function putBranch(state: State, branch: Branch): State {
  return { ...state, branches: state.branches.set(branch.id, branch) }
}

/** The branch waits for its (next attempt at its) turn to start. */
function queued(state: State, branch: Branch): State {
  const ticket = state.queueTail
  return {
    ...state,
    branches: state.branches.set(branch.id, { ...branch, standing: { status: 'ready', ticket } }),
    queue: state.queue.set(`${ticket}`, branch.id),
    queueTail: ticket + 1,
    fresh: state.fresh + (branch.attempt === 1 ? 1 : 0),
  }
}

function nextTurn(state: State, branch: Branch, message: TurnMessage | StepMessage): State {
  return queued(state, { ...branch, turn: branch.turn + 1, attempt: 1, rejections: 0, failures: 0, message: Object.freeze(message) })
}

function unqueued(state: State, branch: Branch): State {
  if (branch.standing.status !== 'ready' || branch.standing.ticket === null) return state
  return {
    ...state,
    queue: state.queue.delete(`${branch.standing.ticket}`),
    fresh: state.fresh - (branch.attempt === 1 ? 1 : 0),
  }
}

function attemptOf(branch: Branch, { at, seq }: Event): Attempt {
  return Object.freeze({ branch: branch.id, agent: branch.agent, turn: branch.turn, attempt: branch.attempt, at, seq })
}

function turnStarted(state: State, event: Of<'turn.started'>): State {
  const branch = branchOf(state, event.branch)
  const ticket = branch.standing.status === 'ready' ? branch.standing.ticket : null
  const started = unqueued(state, branch)
  return {
    ...started,
    branches: started.branches.set(branch.id, { ...branch, standing: { status: 'ready', ticket: null } }),
    queueHead: ticket === null ? state.queueHead : Math.max(state.queueHead, ticket + 1),
    turns: started.turns.set(branch.id, attemptOf(branch, event)),
    turnsUsed: state.turnsUsed + (branch.attempt === 1 ? 1 : 0),
  }
}

function turnCompleted(state: State, event: Of<'turn.completed'>): State {
  const branch = branchOf(state, event.branch)
  const next = 'state' in event.action && event.action.state !== undefined ? event.action.state : branch.state
  return putBranch(
    { ...withoutWork(state, branch.id), turns: state.turns.delete(branch.id) },
    { ...branch, action: event.action, state: next },
  )
}

function turnRejected(state: State, event: Of<'turn.rejected'>): State {
  const branch = branchOf(state, event.branch)
  const ended = { ...withoutWork(state, branch.id), turns: state.turns.delete(branch.id) }
  const message = Object.freeze({ kind: 'feedback', problem: event.problem } as const)
  if (event.final) return putBranch(ended, { ...branch, rejections: branch.rejections + 1 })
  return queued(ended, { ...branch, attempt: branch.attempt + 1, rejections: branch.rejections + 1, message })
}

function turnFailed(state: State, event: Of<'turn.failed'>): State {
  const branch = branchOf(state, event.branch)
  const attempt = state.turns.get(branch.id) ?? attemptOf(branch, event)
  const ended: State = {
    ...(event.final ? withoutWork(state, branch.id) : withEarlierWork(state, branch.id)),
    turns: state.turns.delete(branch.id),
    aborting: event.timedOut ? state.aborting.set(attemptId(branch.id, branch.turn, branch.attempt), attempt) : state.aborting,
  }
  if (event.final) return putBranch(ended, { ...branch, failures: branch.failures + 1 })
  const again: Branch = { ...branch, attempt: branch.attempt + 1, failures: event.pauses ? 0 : branch.failures + 1 }
  if (event.retryAt === undefined) return queued(ended, again)
  const id = backoffTimer(branch.id)
  return putBranch(
    { ...ended, timers: ended.timers.set(id, { id, kind: 'backoff', due: event.retryAt }) },
    { ...again, standing: { status: 'backing-off' } },
  )
}

// ── activities ───────────────────────────────────────────────────────────────────────────────────────────

const noWork: TurnWork = { records: Trie.empty<ActivityRecord>(), count: 0, earlier: Trie.empty<ActivityRecord>() }

type Recorded = Of<'activity.started' | 'activity.completed' | 'activity.failed' | 'sleep.started'>
type How<R = ActivityRecord> = R extends unknown ? Omit<R, 'key' | 'name' | 'order' | 'delivered' | 'at'> : never

function recorded(state: State, { branch, key, name, delivered, at }: Recorded, how: How): State {
  const work = state.work.get(branch) ?? noWork
  const settled = how.status === 'completed' || how.status === 'failed'
  const alive = state.crashes.has(branch) ? state.crashes.delete(branch) : state.crashes
  const record = Object.freeze({ key, name, delivered, at, order: settled ? work.count : -1, ...how }) as ActivityRecord
  return {
    ...state,
    crashes: alive,
    work: state.work.set(branch, { ...work, records: work.records.set(key, record), count: work.count + (settled ? 1 : 0) }),
    timers: settled && work.records.get(key)?.status === 'sleeping' ? state.timers.delete(sleepTimer(branch, key)) : state.timers,
  }
}

/** The turn is over, or begins again from nothing: its records go, and its sleeps with them. */
function withoutWork(state: State, branch: string): State {
  const work = state.work.get(branch)
  const alive = state.crashes.has(branch) ? { ...state, crashes: state.crashes.delete(branch) } : state
  return work === undefined ? alive : { ...awoken(alive, branch, work), work: state.work.delete(branch) }
}

function awoken(state: State, branch: string, work: TurnWork): State {
  let { timers } = state
  for (const record of work.records.values()) if (record.status === 'sleeping') timers = timers.delete(sleepTimer(branch, record.key))
  return { ...state, timers }
}

/** After a throw the next attempt keeps what succeeded, and knows what had been started and must not be repeated. */
function withEarlierWork(before: State, branch: string): State {
  const state = before.crashes.has(branch) ? { ...before, crashes: before.crashes.delete(branch) } : before
  const work = state.work.get(branch)
  if (work === undefined) return state
  let { earlier } = work
  for (const record of work.records.values())
    if (record.status === 'completed' || record.status === 'started') earlier = earlier.set(record.key, record)
  return { ...awoken(state, branch, work), work: state.work.set(branch, { ...noWork, earlier }) }
}

// ── asks ─────────────────────────────────────────────────────────────────────────────────────────────────

function askOpened(state: State, event: Of<'ask.opened'>): State {
  const { ask } = event
  const branch = branchOf(state, event.branch)
  const common = { id: ask.id, branch: ask.branch, agent: ask.agent, openedAt: ask.openedAt }
  const barrier = ask.kind === 'join' ? ask.barrier : null
  const asking = putBranch(state, { ...branch, asks: branch.asks + 1, standing: { status: 'asking', ask: ask.id, barrier } })
  if (ask.kind === 'join') return { ...asking, asks: state.asks.set(ask.id, { ...common, kind: 'join', barrier: ask.barrier }) }
  const due = clockAt(state, event.at) + (ask.timeoutMs ?? 0)
  const open = {
    ...common,
    kind: 'question' as const,
    question: ask.question,
    expiresAt: ask.timeoutMs === undefined ? null : ask.openedAt + ask.timeoutMs,
    ...(ask.schema !== undefined && { schema: ask.schema }),
  }
  return {
    ...asking,
    asks: state.asks.set(ask.id, open),
    timers: ask.timeoutMs === undefined ? state.timers : state.timers.set(ask.id, { id: ask.id, kind: 'ask', due }),
  }
}

function withoutAsk(state: State, id: string, how: 'answered' | 'expired' | 'closed'): State {
  return { ...state, asks: state.asks.delete(id), closedAsks: state.closedAsks.set(id, how), timers: state.timers.delete(id) }
}

// ── where branches are, for the rendezvous ───────────────────────────────────────────────────────────────

/** Adds a live branch that is not held to the counts of what it reaches (or takes it out again). */
function counted(state: State, barrier: Barrier, agent: string, by: 1 | -1): Barrier {
  const reached = state.reaches.get(barrier.reach)?.from[agent] ?? []
  if (reached.length === 0) return barrier
  const approaching = barrier.approaching.slice()
  for (const index of reached) approaching[index] = (approaching[index] ?? 0) + by
  return { ...barrier, approaching }
}

function putBarrier(state: State, barrier: Barrier): State {
  return { ...state, barriers: state.barriers.set(barrier.id, barrier) }
}

function relocated(state: State, branch: Branch, to: string): State {
  const barrier = barrierOf(state, branch.scope)
  return putBarrier(state, counted(state, counted(state, barrier, branch.agent, -1), to, 1))
}

const nodeIndex = (state: State, node: string): number => shapeOf(state).joins.indexOf(node)

function regrouped(state: State, barrier: Barrier, node: string, change: (group: Trie<true>) => Trie<true>): Barrier {
  const index = nodeIndex(state, node)
  const groups = barrier.groups.slice()
  const group = change(groups[index] ?? Trie.empty<true>())
  groups[index] = group.size === 0 ? null : group
  return { ...barrier, groups }
}

/** What its last action asked of the next agent. */
function askedBy(branch: Branch): Asked {
  const value = branch.action === null ? undefined : valueOf(branch.action)
  return Object.freeze({
    from: branch.agent,
    ...(value !== undefined && { value }),
    ...(branch.state !== undefined && { state: branch.state }),
  })
}

/** The value that an action sends. */
function valueOf(action: Action): unknown {
  switch (action.type) {
    case 'invoke':
      return action.request
    case 'reply':
      return action.value
    case 'finish':
      return action.output
    case 'fork':
    case 'ask':
    case 'fail':
      return undefined
  }
}

function requestMessage(asked: readonly Asked[]): TurnMessage {
  const requests = asked.map(({ from, value }) => Object.freeze({ from, ...(value !== undefined && { value }) }))
  const [only] = requests
  return only !== undefined && requests.length === 1 ? { kind: 'request', ...only } : { kind: 'merged', requests: Object.freeze(requests) }
}

// ── branches ─────────────────────────────────────────────────────────────────────────────────────────────

function branchOpened(state: State, event: Of<'branch.opened'>): State {
  const barrier = barrierOf(state, event.barrier)
  const parent = event.parent === null ? null : branchOf(state, event.parent)
  const value = barrier.calls[event.slot]?.request
  const asked: Asked = Object.freeze({
    from: parent === null ? 'Start' : parent.agent,
    ...(value !== undefined && { value }),
    ...(barrier.base !== undefined && { state: barrier.base }),
  })
  const branch: Branch = {
    id: event.branch,
    agent: event.to,
    scope: event.barrier,
    slots: [event.slot],
    depth: parent === null ? 0 : parent.depth + 1,
    turn: 0,
    attempt: 1,
    rejections: 0,
    failures: 0,
    standing: { status: 'ready', ticket: null },
    state: barrier.base,
    message: requestMessage([asked]),
    requests: Object.freeze([asked]),
    carried: [],
    action: null,
    children: 0,
    forks: 0,
    asks: 0,
  }
  const opened = putBarrier(
    { ...state, branchesUsed: state.branchesUsed + 1 },
    counted(state, { ...barrier, live: barrier.live.set(branch.id, true) }, branch.agent, 1),
  )
  const adopted = parent === null ? opened : putBranch(opened, { ...parent, children: parent.children + 1 })
  if (event.gated) return putBranch(adopted, { ...branch, standing: { status: 'gated' } })
  return nextTurn(adopted, branch, branch.message)
}

// ── steps ────────────────────────────────────────────────────────────────────────────────────────────────

function gateOpened(state: State, event: Of<'gate.opened'>): State {
  const branch = branchOf(state, event.branch)
  const barrier = barrierOf(state, branch.scope)
  if (barrier.each === null) return nextTurn(state, branch, { kind: 'step', sees: event.sees ?? [] })
  // An item sees what its step sees.
  const step = barrier.waiting === null ? undefined : state.branches.get(barrier.waiting)?.message
  const sees = step?.kind === 'step' ? step.sees : []
  const through = putBarrier(state, { ...barrier, each: { ...barrier.each, opened: barrier.each.opened + 1 } })
  return nextTurn(through, branch, { kind: 'step', sees, item: branch.slots[0] ?? 0 })
}

function stepCompleted(state: State, event: Of<'step.completed'>): State {
  const branch = branchOf(state, event.branch)
  const slot: SettledSlot = {
    status: 'arrived',
    branch: branch.id,
    first: true,
    by: branch.agent,
    ...(event.output !== undefined && { value: event.output }),
    ...(event.holes !== undefined && { holes: event.holes }),
    state: undefined,
    carried: [],
  }
  return removed({ ...state, turns: state.turns.delete(branch.id) }, branch, () => slot)
}

function stepSkipped(state: State, event: Of<'step.skipped'>): State {
  const branch = branchOf(state, event.branch)
  const slot: SettledSlot = {
    status: 'skipped',
    branch: branch.id,
    first: true,
    cause: event.cause,
    ...(event.error !== undefined && { error: event.error }),
  }
  return removed({ ...state, turns: state.turns.delete(branch.id) }, branch, () => slot)
}

/** A step's slot has settled: the gates that watch it count it. */
function gatesAfter(state: State, barrier: Barrier, step: string, status: SettledSlot['status']): State {
  if (barrier.kind !== 'root' || state.gates.size === 0) return state
  let { gates } = state
  for (const id of state.run?.dependents[step] ?? []) {
    const gate = gates.get(id)
    if (gate !== undefined) gates = gates.set(id, { pending: gate.pending - 1, succeeded: gate.succeeded + (status === 'arrived' ? 1 : 0) })
  }
  return { ...state, gates }
}

function branchNotified(state: State, event: Of<'branch.notified'>): State {
  const branch = branchOf(state, event.branch)
  const request = branch.action === null ? undefined : valueOf(branch.action)
  const join = joinData(true, [{ index: 0, to: event.to, request, status: 'arrived', by: event.to, value: undefined }], [])
  return nextTurn(state, branch, { kind: 'join', join })
}

function branchHeld(state: State, event: Of<'branch.held'>): State {
  const branch = branchOf(state, event.branch)
  const barrier = counted(state, barrierOf(state, branch.scope), branch.agent, -1)
  return putBranch(
    putBarrier(
      state,
      regrouped(state, barrier, event.node, (group) => group.set(branch.id, true)),
    ),
    { ...branch, agent: event.node, requests: Object.freeze([askedBy(branch)]), standing: { status: 'held', node: event.node } },
  )
}

function rendezvousFired(state: State, event: Of<'rendezvous.fired'>): State {
  const barrier = barrierOf(state, event.barrier)
  const survivor = branchOf(state, event.branch)
  const others = event.merged.map((id) => branchOf(state, id))
  const all = [survivor, ...others]
  let branches = state.branches
  let live = barrier.live
  for (const other of others) {
    branches = branches.delete(other.id)
    live = live.delete(other.id)
  }
  const met = regrouped(state, { ...barrier, live }, event.node, () => Trie.empty<true>())
  const requests = Object.freeze(all.flatMap((branch) => branch.requests))
  const merged: Branch = {
    ...survivor,
    slots: others.length === 0 ? survivor.slots : all.flatMap((branch) => branch.slots).sort((a, b) => a - b),
    carried: others.length === 0 ? survivor.carried : all.flatMap((branch) => branch.carried),
    requests,
    state: event.state ?? survivor.state,
  }
  return nextTurn(putBarrier({ ...state, branches }, counted(state, met, event.node, 1)), merged, requestMessage(requests))
}

function branchSettled(state: State, event: Of<'branch.settled'>): State {
  const branch = branchOf(state, event.branch)
  return removed(state, branch, (first) => settledSlot(branch, event, first))
}

/** The branch is over: those of its slots that are pending settle, and everything that it waited for is let go. */
function removed(state: State, branch: Branch, slotOf: (first: boolean) => SettledSlot): State {
  const { standing } = branch
  let barrier = { ...barrierOf(state, branch.scope) }
  barrier = { ...barrier, live: barrier.live.delete(branch.id) }
  if (standing.status === 'held') barrier = regrouped(state, barrier, standing.node, (group) => group.delete(branch.id))
  else barrier = counted(state, barrier, branch.agent, -1)
  branch.slots.forEach((slot, place) => {
    if (barrier.slots.get(slot) === undefined) barrier = settled(barrier, slot, slotOf(place === 0))
  })
  const attempt = state.turns.get(branch.id)
  const status = barrier.slots.get(branch.slots[0] ?? 0)?.status ?? 'cancelled'
  let next = gatesAfter(withoutWork(unqueued(putBarrier(state, barrier), branch), branch.id), barrier, branch.agent, status)
  if (standing.status === 'asking' && next.asks.has(standing.ask)) next = withoutAsk(next, standing.ask, 'closed')
  if (standing.status === 'backing-off') next = { ...next, timers: next.timers.delete(backoffTimer(branch.id)) }
  return {
    ...next,
    branches: next.branches.delete(branch.id),
    turns: next.turns.delete(branch.id),
    aborting: attempt === undefined ? next.aborting : next.aborting.set(attemptId(branch.id, attempt.turn, attempt.attempt), attempt),
  }
}

function settledSlot(branch: Branch, event: Of<'branch.settled'>, first: boolean): SettledSlot {
  switch (event.status) {
    case 'failed':
      return { status: 'failed', branch: branch.id, first, by: branch.agent, error: event.error }
    case 'escaped': {
      const value = branch.action === null ? undefined : valueOf(branch.action)
      const own =
        event.to === undefined ? [] : [{ for: event.to, by: branch.agent, branch: branch.id, ...(value !== undefined && { value }) }]
      return { status: 'escaped', branch: branch.id, first, carried: first ? [...branch.carried, ...own] : [] }
    }
    case 'arrived':
    case 'cancelled':
      return { status: 'cancelled', branch: branch.id, first }
  }
}

// ── barriers ─────────────────────────────────────────────────────────────────────────────────────────────

function barrierOpened(state: State, event: Of<'barrier.opened'>): State {
  const shape = shapeOf(state)
  const branch = event.branch === undefined ? null : branchOf(state, event.branch)
  const waiting = event.kind === 'fork' && branch !== null ? branch.id : null
  const acted: State =
    branch === null
      ? state
      : putBranch(state, {
          ...branch,
          forks: branch.forks + 1,
          ...(waiting !== null && { standing: { status: 'forked', barrier: event.barrier } }),
        })
  const due = clockAt(state, event.at) + (event.join.timeoutMs ?? 0)
  const barrier: Barrier = {
    id: event.barrier,
    kind: event.kind,
    waiting,
    join: event.join,
    calls: callsOf(state, branch, event),
    slots: Row.of<SettledSlot>(event.width),
    pending: event.width,
    arrived: 0,
    failed: 0,
    escaped: 0,
    cancelled: 0,
    skipped: 0,
    each: event.each === undefined ? null : { concurrency: event.each.concurrency, opened: 0 },
    base: branch === null ? state.run?.state : branch.state,
    live: Trie.empty<true>(),
    reach: '',
    approaching: shape.joins.map(() => 0),
    groups: shape.joins.map(() => null),
    fired: null,
  }
  const opened: State = {
    ...putBarrier(acted, barrier),
    timers: event.join.timeoutMs === null ? state.timers : state.timers.set(barrier.id, { id: barrier.id, kind: 'join', due }),
  }
  return shape.joins.length === 0 ? opened : withReach(opened, barrier)
}

function callsOf(state: State, branch: Branch | null, event: Of<'barrier.opened'>): Barrier['calls'] {
  const shape = shapeOf(state)
  if (branch === null && shape.kind === 'graph') return shape.steps.map(({ id }) => ({ to: id }))
  if (branch === null) {
    const starts = shape.edges.filter((edge) => edge.from === 'Start')
    return starts.map(({ to }) => ({ to, request: state.run?.input }))
  }
  const { action } = branch
  if (action?.type === 'invoke') return [{ to: action.to, request: action.request }]
  if (action?.type !== 'fork') return []
  return event.call === undefined ? action.calls : action.calls.slice(event.call, event.call + 1)
}

function withReach(state: State, barrier: Barrier): State {
  const { nodes, edges, joins } = shapeOf(state)
  const waiting = new Set([...enclosingForks(state, barrier.id)].map(({ agent }) => agent))
  const reach = reachKey(waiting)
  const known = state.reaches.has(reach) ? state.reaches : state.reaches.set(reach, reachOf(nodes, edges, joins, waiting))
  return putBarrier({ ...state, reaches: known }, { ...barrier, reach })
}

function settled(barrier: Barrier, index: number, slot: SettledSlot): Barrier {
  return {
    ...barrier,
    slots: barrier.slots.set(index, slot),
    pending: barrier.pending - 1,
    [slot.status]: barrier[slot.status] + 1,
  }
}

function barrierArrived(state: State, event: Of<'barrier.arrived'>): State {
  const barrier = barrierOf(state, event.barrier)
  if (event.branch === undefined)
    return putBarrier(
      state,
      settled(barrier, event.slot, { status: 'arrived', branch: null, first: true, by: event.by, state: undefined, carried: [] }),
    )
  const branch = branchOf(state, event.branch)
  const value = branch.action === null ? undefined : valueOf(branch.action)
  const first = branch.slots[0] === event.slot
  return putBarrier(
    state,
    settled(barrier, event.slot, {
      status: 'arrived',
      branch: branch.id,
      first,
      by: event.by,
      ...(value !== undefined && { value }),
      state: branch.state,
      carried: first ? branch.carried : [],
    }),
  )
}

function withoutBarrier(state: State, id: string): State {
  return { ...state, barriers: state.barriers.delete(id), timers: state.timers.delete(id) }
}

function barrierFired(state: State, event: Of<'barrier.fired'>): State {
  const barrier = barrierOf(state, event.barrier)
  const deciding = event.decidedBy ?? null
  if (event.goes === undefined || event.goes === 'step') return withoutBarrier(state, barrier.id)
  if (event.goes !== 'ask') return goOn(state, barrier, event.goes, event.ok, deciding, event.state)
  return {
    ...putBarrier(state, { ...barrier, fired: { ok: event.ok, deciding, byTimeout: event.byTimeout ?? false } }),
    timers: state.timers.delete(barrier.id),
  }
}

/** The waiting branch goes on: with a turn that is shown the join, or past the barrier with what was left for those further out. */
function goOn(state: State, barrier: Barrier, goes: Goes, ok: boolean, deciding: readonly number[] | null, merged: Branch['state']): State {
  const fired = withoutBarrier(state, barrier.id)
  if (barrier.waiting === null || goes === 'fail') return fired
  const { here, outward } = contributions(barrier, deciding)
  const waiting = branchOf(state, barrier.waiting)
  const branch: Branch = { ...waiting, carried: [...waiting.carried, ...outward], state: merged ?? waiting.state }
  if (goes === 'escape') return putBranch(fired, branch)
  return nextTurn(fired, branch, { kind: 'join', join: joinData(ok, reportedSlots(barrier, deciding), here) })
}
