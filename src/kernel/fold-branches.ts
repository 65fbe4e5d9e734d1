import { arm, disarm } from './fold-timers.js'
import type { Action } from './action.js'
import type { Goes } from './event.js'
import { closeAsk, dequeue, dropWork, nextTurn } from './fold-turns.js'
import { abortedWork, choseSlots, follow, forkClosed, forkOpened, joinLines, joinSlots, stepDone } from './fold-undo.js'
import { type ChangingBarrier, type ChangingBranch, changingBarrier, changingBranch, type Folding, type Of } from './folding.js'
import { attemptId, backoffTimer, childBranch } from './ids.js'
import { alikeFrom, liveAttempt, type Place } from './branches.js'
import { inherited } from './memory.js'
import type { TurnMessage } from './message.js'
import { reachKey, reachOf } from './reach.js'
import { startsOf } from './recount.js'
import { contributions, joinData, reportedSlots } from './reported.js'
import { SlotMap } from './slot-map.js'
import type { Asked, Barrier, Branch, Contribution, Group, SettledSlot } from './state.js'
import { barrierOf, branchOf, clockAt, enclosingForks, requestsOf, shapeOf, slotsOf } from './state.js'
import { settling, usedBy } from './usage.js'

/** Shared, because most branches carry nothing, and begin like this. */
const none: readonly Contribution[] = Object.freeze([])
const gated: Branch['standing'] = Object.freeze({ status: 'gated' })
const held: Branch['standing'] = Object.freeze({ status: 'held' })

function putBarrier(state: Folding, barrier: Barrier): void {
  state.barriers = state.barriers.set(barrier.id, barrier, state.edit)
}

// ── where branches are, for the rendezvous ───────────────────────────────────────────────────────────────

/** Adds a live branch that is not held to the counts of what it reaches (or takes it out again). */
function count(state: Folding, barrier: ChangingBarrier, agent: string, by: 1 | -1): void {
  const { approaching } = barrier
  if (approaching.length === 0) return
  for (const index of state.reaches.get(barrier.reach)?.from[agent] ?? []) approaching[index] = (approaching[index] ?? 0) + by
}

/** Puts a branch into the group at a rendezvous, or takes it out. */
function regroup(state: Folding, barrier: ChangingBarrier, node: string, branch: Branch, how: 'in' | 'out'): void {
  const index = shapeOf(state).joins.indexOf(node)
  const group = barrier.groups[index] ?? SlotMap.from<string>([])
  const next: Group = how === 'in' ? group.set(branch.slot, branch.id) : group.delete(branch.slot, state.edit)
  barrier.groups[index] = next.size === 0 ? null : next
}

/** What its last action asked of the next agent. */
function askedBy(branch: Branch): Asked {
  return asked(branch.agent, branch.action === null ? undefined : valueOf(branch.action), branch.state)
}

function asked(from: string, value: unknown, state: Branch['state']): Asked {
  if (value === undefined && state === undefined) return { from }
  if (state === undefined) return { from, value }
  return value === undefined ? { from, state } : { from, value, state }
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

function requestMessage(from: string, value: unknown): TurnMessage {
  return value === undefined ? { kind: 'request', from } : { kind: 'request', from, value }
}

function mergedMessage(all: readonly Asked[]): TurnMessage {
  return {
    kind: 'merged',
    requests: all.map((asking) => (asking.state === undefined ? asking : asked(asking.from, asking.value, undefined))),
  }
}

// ── branches ─────────────────────────────────────────────────────────────────────────────────────────────

export function branchOpened(state: Folding, event: Of<'branch.opened'>): void {
  let barrier = barrierOf(state, event.barrier)
  if (event.slot >= barrier.calls.length) {
    addSlot(state, event)
    barrier = barrierOf(state, event.barrier)
  }
  const parent = event.parent === null ? null : branchOf(state, event.parent)
  if (barrier.approaching.length > 0) count(state, changingBarrier(state, barrier.id), event.to, 1)
  state.branchesUsed++
  if (parent !== null) {
    follow(state, event.branch, parent.id)
    changingBranch(state, parent.id).children++
  }
  if (event.gated || parent === null || !openAlike(state, event, barrier, parent)) openByItself(state, event, barrier, parent)
}

/** The root has one more slot: for a step of the version that a graph goes on under. */
function addSlot(state: Folding, { barrier, slot, to }: Of<'branch.opened'>): void {
  const root = changingBarrier(state, barrier)
  root.calls = [...root.calls, { to }]
  root.pending++
  if (state.run !== null) state.run = { ...state.run, slots: { ...state.run.slots, [to]: slot } }
}

/**
 * Opens all children of a fork at once, and gives their ids: as many events would do the same one by one. Null, and nothing is changed, if
 * there is more to be done for each.
 */
export function openAll(state: Folding, id: string, opener: string): readonly string[] | null {
  const barrier = barrierOf(state, id)
  const parent = branchOf(state, opener)
  if (!isOfAlike(barrier, parent) || barrier.approaching.length > 0 || state.undo.frontier.has(opener)) return null
  const { calls, firstChild } = barrier
  const ids = calls.map((_, slot) => childBranch(opener, firstChild + slot))
  state.branches = state.branches.openFirst(barrier, parent, ids, state.queue.tail, state.edit)
  changingBranch(state, opener).children += ids.length
  state.branchesUsed += ids.length
  state.queue = state.queue.pushAll(ids, state.edit)
  state.fresh += ids.length
  return ids
}

/** Whether the children of a fork begin alike, and are worth keeping as one. */
function isOfAlike({ kind, calls, base }: Barrier, parent: Branch): boolean {
  return kind === 'fork' && calls.length >= alikeFrom && base === undefined && parent.memory === null
}

/** Opens a child of a fork as one like its siblings: whether it is one. */
function openAlike(state: Folding, { branch, slot }: Of<'branch.opened'>, barrier: Barrier, parent: Branch): boolean {
  if (!isOfAlike(barrier, parent)) return false
  const branches = state.branches.open(barrier, parent, slot, state.queue.tail, state.edit)
  if (branches === null) return false
  state.branches = branches
  state.queue = state.queue.push(branch, state.edit)
  state.fresh++
  return true
}

function openByItself(state: Folding, event: Of<'branch.opened'>, barrier: Barrier, parent: Branch | null): void {
  const from = parent === null ? 'Start' : parent.agent
  const request = barrier.calls[event.slot]?.request
  const branch: ChangingBranch = {
    id: event.branch,
    agent: event.to,
    scope: event.barrier,
    slot: event.slot,
    slots: null,
    // How many forks are around it: a detached branch begins anew.
    depth: parent === null || barrier.kind === 'detached' ? 0 : parent.depth + 1,
    turn: 0,
    attempt: 1,
    startSeq: 0,
    startAt: 0,
    rejections: 0,
    failures: 0,
    standing: gated,
    state: barrier.base,
    message: requestMessage(from, request),
    requests: barrier.base === undefined ? null : asked(from, request, barrier.base),
    carried: none,
    memory: parent === null ? null : inherited(parent.memory),
    action: null,
    children: 0,
    forks: 0,
    asks: 0,
  }
  state.branches = state.branches.set(branch.id, branch, state.edit)
  if (!event.gated) nextTurn(state, branch, branch.message)
}

export function branchMoved(state: Folding, event: Of<'branch.moved'>): void {
  const branch = changingBranch(state, event.branch)
  const asking = askedBy(branch)
  if (shapeOf(state).joins.length > 0) {
    const barrier = changingBarrier(state, branch.scope)
    count(state, barrier, branch.agent, -1)
    count(state, barrier, event.to, 1)
  }
  branch.agent = event.to
  branch.requests = asking
  nextTurn(state, branch, requestMessage(asking.from, asking.value))
}

export function branchNotified(state: Folding, event: Of<'branch.notified'>): void {
  const branch = changingBranch(state, event.branch)
  const request = branch.action === null ? undefined : valueOf(branch.action)
  const join = joinData(true, [{ index: 0, to: event.to, request, status: 'arrived', by: event.to, value: undefined }], [])
  nextTurn(state, branch, { kind: 'join', join })
}

export function branchHeld(state: Folding, event: Of<'branch.held'>): void {
  const branch = changingBranch(state, event.branch)
  const barrier = changingBarrier(state, branch.scope)
  count(state, barrier, branch.agent, -1)
  regroup(state, barrier, event.node, branch, 'in')
  branch.requests = askedBy(branch)
  branch.agent = event.node
  branch.standing = held
  state.branches = state.branches.hold(branch, state.edit)
}

export function rendezvousFired(state: Folding, event: Of<'rendezvous.fired'>): void {
  const barrier = changingBarrier(state, event.barrier)
  const survivor = changingBranch(state, event.branch)
  const group = shapeOf(state).joins.indexOf(event.node)
  // It is none where the version that the run goes on under has no rendezvous there.
  if (group >= 0) barrier.groups[group] = null
  count(state, barrier, event.node, 1)
  joinLines(state, survivor.id, [survivor.id, ...event.merged], `${event.node}@${survivor.id}/${survivor.turn}`)
  if (event.merged.length > 0) takeIn(state, survivor, event.merged)
  survivor.state = event.state ?? survivor.state
  const requests = requestsOf(survivor)
  const only = requests.length === 1 ? requests[0] : undefined
  nextTurn(state, survivor, only === undefined ? mergedMessage(requests) : requestMessage(only.from, only.value))
}

/** What others owe, carry and were asked is the survivor's from here on. */
function takeIn(state: Folding, survivor: ChangingBranch, others: readonly string[]): void {
  const slots = [...slotsOf(survivor)]
  const carried = [...survivor.carried]
  const requests = [...requestsOf(survivor)]
  for (const id of others) {
    const other = branchOf(state, id)
    if (other.slots === null) slots.push(other.slot)
    else slots.push(...other.slots)
    if (other.carried.length > 0) carried.push(...other.carried)
    requests.push(...requestsOf(other))
    state.branches = state.branches.delete(id, state.edit)
  }
  survivor.slots = slots.sort((a, b) => a - b)
  survivor.slot = slots[0] ?? survivor.slot
  survivor.carried = carried
  survivor.requests = requests
}

export function branchSettled(state: Folding, event: Of<'branch.settled'>): void {
  const branch = branchOf(state, event.branch)
  if (event.status !== 'arrived') settleSlots(state, branch, (first) => settledSlot(branch, event, first))
  remove(state, branch, 'aborted')
}

/** What becomes of the slots of a branch that are still pending. */
function settleSlots(state: Folding, branch: Branch, slotOf: (first: boolean) => SettledSlot): void {
  const barrier = changingBarrier(state, branch.scope)
  slotsOf(branch).forEach((slot, place) => {
    if (barrier.slots.get(slot) === undefined) settle(state, barrier, slot, slotOf(place === 0))
  })
}

/** The branch is over and its slots have settled: everything that it waited for is let go. What becomes of an attempt that is live? */
function remove(state: Folding, branch: Branch, live: 'ended' | 'aborted'): void {
  const { id, standing } = branch
  const barrier = changingBarrier(state, branch.scope)
  if (standing.status === 'held') regroup(state, barrier, branch.agent, branch, 'out')
  else count(state, barrier, branch.agent, -1)
  dequeue(state, branch)
  if (branch.startSeq !== 0) state.running--
  const aborted = branch.startSeq === 0 || live === 'ended' ? null : { ...liveAttempt(branch), ...abortedWork(state, branch) }
  dropWork(state, id)
  if (barrier.kind === 'root' && state.gates.size > 0)
    countAtGates(state, branch.agent, barrier.slots.get(branch.slot)?.status === 'arrived')
  if (standing.status === 'asking' && state.asks.has(standing.ask)) closeAsk(state, standing.ask, 'closed')
  if (standing.status === 'backing-off') disarm(state, backoffTimer(id))
  state.branches = state.branches.delete(id, state.edit)
  if (aborted !== null) state.aborting = state.aborting.set(attemptId(id, aborted.turn, aborted.attempt), aborted, state.edit)
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

// ── steps ────────────────────────────────────────────────────────────────────────────────────────────────

/** A step's slot has settled: the gates that watch it count it. */
function countAtGates(state: Folding, step: string, succeeded: boolean): void {
  for (const id of state.run?.dependents[step] ?? []) {
    const gate = state.gates.get(id)
    if (gate !== undefined)
      state.gates = state.gates.set(id, { pending: gate.pending - 1, succeeded: gate.succeeded + (succeeded ? 1 : 0) }, state.edit)
  }
}

export function gateOpened(state: Folding, event: Of<'gate.opened'>): void {
  const branch = changingBranch(state, event.branch)
  const { each, waiting } = barrierOf(state, branch.scope)
  if (each === null) return nextTurn(state, branch, { kind: 'step', sees: event.sees ?? [] })
  // An item sees what its step sees.
  const step = waiting === null ? undefined : state.branches.get(waiting)?.message
  changingBarrier(state, branch.scope).each = { ...each, opened: each.opened + 1 }
  nextTurn(state, branch, { kind: 'step', sees: step?.kind === 'step' ? step.sees : [], item: branch.slot })
}

export function stepCompleted(state: Folding, event: Of<'step.completed'>): void {
  const branch = branchOf(state, event.branch)
  stepDone(state, branch, event)
  if (event.usage !== undefined) state.spent = settling(state.spent, undefined, usedBy(event.usage))
  settleSlots(state, branch, () => ({
    status: 'arrived',
    branch: branch.id,
    first: true,
    by: branch.agent,
    ...(event.output !== undefined && { value: event.output }),
    ...(event.holes !== undefined && { holes: event.holes }),
    state: undefined,
    carried: none,
  }))
  remove(state, branch, 'ended')
}

export function stepSkipped(state: Folding, event: Of<'step.skipped'>): void {
  const branch = branchOf(state, event.branch)
  const { cause, error } = event
  settleSlots(state, branch, () => ({ status: 'skipped', branch: branch.id, first: true, cause, ...(error !== undefined && { error }) }))
  remove(state, branch, 'ended')
}

// ── barriers ─────────────────────────────────────────────────────────────────────────────────────────────

export function barrierOpened(state: Folding, event: Of<'barrier.opened'>): void {
  const { joins } = shapeOf(state)
  const branch = event.branch === undefined ? null : changingBranch(state, event.branch)
  const waiting = event.kind === 'fork' && branch !== null ? branch.id : null
  if (branch !== null) branch.forks++
  if (branch !== null && waiting !== null) branch.standing = { status: 'forked', barrier: event.barrier }
  putBarrier(state, {
    id: event.barrier,
    kind: event.kind,
    waiting,
    waitingAgent: waiting === null || branch === null ? null : branch.agent,
    join: event.join,
    calls: callsOf(state, branch, event),
    slots: SlotMap.from([]),
    pending: event.width,
    arrived: 0,
    failed: 0,
    escaped: 0,
    cancelled: 0,
    skipped: 0,
    each: event.each === undefined ? null : { concurrency: event.each.concurrency, opened: 0 },
    base: branch === null ? state.run?.state : branch.state,
    opener: branch?.id ?? null,
    firstChild: branch === null ? 0 : branch.children,
    reach: '',
    approaching: joins.map(() => 0),
    groups: joins.map(() => null),
    fired: null,
  })
  forkOpened(state, event)
  const { timeoutMs } = event.join
  const due = clockAt(state, event.at) + (timeoutMs ?? 0)
  if (timeoutMs !== null) arm(state, { id: event.barrier, kind: 'join', due })
  if (joins.length > 0) addReach(state, event.barrier)
}

function callsOf(state: Folding, branch: Branch | null, event: Of<'barrier.opened'>): Barrier['calls'] {
  const shape = shapeOf(state)
  if (branch === null && shape.kind === 'graph') return shape.steps.map(({ id }) => ({ to: id }))
  if (branch === null) return startsOf(shape).map((to) => ({ to, request: state.run?.input }))
  const { action } = branch
  if (action?.type === 'invoke') return [{ to: action.to, request: action.request }]
  if (action?.type !== 'fork') return []
  return event.call === undefined ? action.calls : action.calls.slice(event.call, event.call + 1)
}

function addReach(state: Folding, id: string): void {
  const { nodes, edges, joins } = shapeOf(state)
  const waiting = new Set([...enclosingForks(state, id)].map(({ agent }) => agent))
  const reach = reachKey(waiting)
  if (!state.reaches.has(reach)) state.reaches = state.reaches.set(reach, reachOf(nodes, edges, joins, waiting))
  changingBarrier(state, id).reach = reach
}

function settle(state: Folding, barrier: ChangingBarrier, index: number, slot: SettledSlot): void {
  barrier.slots = barrier.slots.set(index, slot, state.edit)
  barrier.pending--
  barrier[slot.status]++
}

export function barrierArrived(state: Folding, event: Of<'barrier.arrived'>): void {
  const { slot, by } = event
  const branch = event.branch === undefined ? null : branchOf(state, event.branch)
  const first = branch === null || branch.slot === slot
  settle(state, changingBarrier(state, event.barrier), slot, arrivedSlot(branch, first, by))
}

function arrivedSlot(branch: Branch | null, first: boolean, by: string): SettledSlot {
  if (branch === null) return { status: 'arrived', branch: null, first, by, state: undefined, carried: none }
  const value = branch.action === null ? undefined : valueOf(branch.action)
  const carried = first ? branch.carried : none
  if (value === undefined) return { status: 'arrived', branch: branch.id, first, by, state: branch.state, carried }
  return { status: 'arrived', branch: branch.id, first, by, value, state: branch.state, carried }
}

/** One of those alike has answered: its turn is over, its slot has arrived and it is gone, as three events would have it one after the other. */
export function settleAlike(state: Folding, barrier: string, place: Place, by: string, value: unknown): void {
  const { id: branch, slot } = place
  const settled: SettledSlot =
    value === undefined
      ? { status: 'arrived', branch, first: true, by, state: undefined, carried: none }
      : { status: 'arrived', branch, first: true, by, value, state: undefined, carried: none }
  settle(state, changingBarrier(state, barrier), slot, settled)
  state.branches = state.branches.endAlike(place, state.edit)
  state.running--
}

export function dropBarrier(state: Folding, id: string): void {
  state.barriers = state.barriers.delete(id, state.edit)
  forkClosed(state, id)
  disarm(state, id)
}

export function barrierFired(state: Folding, event: Of<'barrier.fired'>): void {
  const barrier = barrierOf(state, event.barrier)
  const deciding = event.decidedBy ?? null
  choseSlots(state, barrier.id, deciding)
  if (event.goes === undefined || event.goes === 'step') return dropBarrier(state, barrier.id)
  if (event.goes !== 'ask' && event.goes !== 'undo') return goOn(state, barrier, event.goes, event.ok, deciding, event.state)
  changingBarrier(state, barrier.id).fired = { ok: event.ok, deciding, byTimeout: event.byTimeout ?? false }
  disarm(state, barrier.id)
}

export function barrierReleased(state: Folding, event: Of<'barrier.released'>): void {
  const barrier = barrierOf(state, event.barrier)
  goOn(state, barrier, event.goes, barrier.fired?.ok ?? false, barrier.fired?.deciding ?? null, event.state)
}

/** The waiting branch goes on: with a turn that is shown the join, or past the barrier with what was left for those further out. */
function goOn(
  state: Folding,
  barrier: Barrier,
  goes: Goes,
  ok: boolean,
  deciding: readonly number[] | null,
  merged: Branch['state'],
): void {
  dropBarrier(state, barrier.id)
  if (barrier.waiting === null || goes === 'fail') return
  joinSlots(state, barrier, deciding)
  const { here, outward } = contributions(barrier, deciding)
  const branch = changingBranch(state, barrier.waiting)
  if (outward.length > 0) branch.carried = [...branch.carried, ...outward]
  branch.state = merged ?? branch.state
  if (goes !== 'escape') nextTurn(state, branch, { kind: 'join', join: joinData(ok, reportedSlots(barrier, deciding), here) })
}
