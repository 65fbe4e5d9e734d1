import type { Action } from './action.js'
import type { Goes } from './event.js'
import { closeAsk, dequeue, dropWork, nextTurn, putBranch } from './fold-turns.js'
import { abortedWork, choseSlots, follow, forkClosed, forkOpened, joinLines, joinSlots, stepDone } from './fold-undo.js'
import { copyBarrier, copyBranch, type Folding, type Of } from './folding.js'
import { attemptId, backoffTimer } from './ids.js'
import { inherited } from './memory.js'
import type { TurnMessage } from './message.js'
import { reachKey, reachOf } from './reach.js'
import { contributions, joinData, reportedSlots } from './reported.js'
import { Row } from './row.js'
import type { Asked, Barrier, Branch, Contribution, Gate, SettledSlot } from './state.js'
import { barrierOf, branchOf, clockAt, enclosingForks, shapeOf } from './state.js'
import { Trie } from './trie.js'

/** Shared, because most branches carry nothing. */
const none: readonly Contribution[] = Object.freeze([])

type Changing = ReturnType<typeof copyBarrier>

function putBarrier(state: Folding, barrier: Barrier): void {
  state.barriers = state.barriers.set(barrier.id, barrier, state.edit)
}

// ── where branches are, for the rendezvous ───────────────────────────────────────────────────────────────

/** Adds a live branch that is not held to the counts of what it reaches (or takes it out again). */
function count(state: Folding, barrier: Changing, agent: string, by: 1 | -1): void {
  if (barrier.approaching.length === 0) return
  const reached = state.reaches.get(barrier.reach)?.from[agent] ?? []
  if (reached.length === 0) return
  const approaching = barrier.approaching.slice()
  for (const index of reached) approaching[index] = (approaching[index] ?? 0) + by
  barrier.approaching = approaching
}

function regroup(state: Folding, barrier: Changing, node: string, change: (group: Trie<true>) => Trie<true>): void {
  const index = shapeOf(state).joins.indexOf(node)
  const groups = barrier.groups.slice()
  const group = change(groups[index] ?? Trie.empty<true>())
  groups[index] = group.size === 0 ? null : group
  barrier.groups = groups
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

function requestMessage(all: readonly Asked[]): TurnMessage {
  const [only] = all
  if (only !== undefined && all.length === 1) {
    const { from, value } = only
    return value === undefined ? { kind: 'request', from } : { kind: 'request', from, value }
  }
  return {
    kind: 'merged',
    requests: all.map(({ from, value }) => (value === undefined ? { from } : { from, value })),
  }
}

// ── branches ─────────────────────────────────────────────────────────────────────────────────────────────

export function branchOpened(state: Folding, event: Of<'branch.opened'>): void {
  const barrier = barrierOf(state, event.barrier)
  const parent = event.parent === null ? null : branchOf(state, event.parent)
  const first = asked(parent === null ? 'Start' : parent.agent, barrier.calls[event.slot]?.request, barrier.base)
  const branch: Branch = {
    id: event.branch,
    agent: event.to,
    scope: event.barrier,
    slots: [event.slot],
    // How many forks are around it: a detached branch begins anew.
    depth: parent === null || barrier.kind === 'detached' ? 0 : parent.depth + 1,
    turn: 0,
    attempt: 1,
    rejections: 0,
    failures: 0,
    standing: { status: 'gated' },
    state: barrier.base,
    message: requestMessage([first]),
    requests: [first],
    carried: none,
    memory: parent === null ? null : inherited(parent.memory),
    action: null,
    children: 0,
    forks: 0,
    asks: 0,
  }
  if (barrier.approaching.length > 0) {
    const next = copyBarrier(barrier)
    count(state, next, branch.agent, 1)
    putBarrier(state, next)
  }
  state.branchesUsed++
  follow(state, branch.id, event.parent)
  if (parent !== null) {
    const adopting = copyBranch(parent)
    adopting.children++
    putBranch(state, adopting)
  }
  if (event.gated) putBranch(state, branch)
  else nextTurn(state, branch, branch.message)
}

export function branchMoved(state: Folding, event: Of<'branch.moved'>): void {
  const branch = branchOf(state, event.branch)
  const request = askedBy(branch)
  if (shapeOf(state).joins.length > 0) {
    const barrier = copyBarrier(barrierOf(state, branch.scope))
    count(state, barrier, branch.agent, -1)
    count(state, barrier, event.to, 1)
    putBarrier(state, barrier)
  }
  const next = copyBranch(branch)
  next.agent = event.to
  next.requests = [request]
  nextTurn(state, next, requestMessage([request]))
}

export function branchNotified(state: Folding, event: Of<'branch.notified'>): void {
  const branch = branchOf(state, event.branch)
  const request = branch.action === null ? undefined : valueOf(branch.action)
  const join = joinData(true, [{ index: 0, to: event.to, request, status: 'arrived', by: event.to, value: undefined }], [])
  nextTurn(state, branch, { kind: 'join', join })
}

export function branchHeld(state: Folding, event: Of<'branch.held'>): void {
  const branch = branchOf(state, event.branch)
  const barrier = copyBarrier(barrierOf(state, branch.scope))
  count(state, barrier, branch.agent, -1)
  regroup(state, barrier, event.node, (group) => group.set(branch.id, true))
  putBarrier(state, barrier)
  putBranch(state, {
    ...branch,
    agent: event.node,
    requests: [askedBy(branch)],
    standing: { status: 'held', node: event.node },
  })
}

export function rendezvousFired(state: Folding, event: Of<'rendezvous.fired'>): void {
  const barrier = copyBarrier(barrierOf(state, event.barrier))
  const survivor = branchOf(state, event.branch)
  const others = event.merged.map((id) => branchOf(state, id))
  const all = [survivor, ...others]
  for (const other of others) state.branches = state.branches.delete(other.id, state.edit)
  regroup(state, barrier, event.node, () => Trie.empty<true>())
  count(state, barrier, event.node, 1)
  putBarrier(state, barrier)
  joinLines(
    state,
    survivor.id,
    all.map(({ id }) => id),
    `${event.node}@${survivor.id}/${survivor.turn}`,
  )
  const requests = all.flatMap((branch) => branch.requests)
  const merged: Branch = {
    ...survivor,
    slots: others.length === 0 ? survivor.slots : all.flatMap((branch) => branch.slots).sort((a, b) => a - b),
    carried: others.length === 0 ? survivor.carried : all.flatMap((branch) => branch.carried),
    requests,
    state: event.state ?? survivor.state,
  }
  nextTurn(state, merged, requestMessage(requests))
}

export function branchSettled(state: Folding, event: Of<'branch.settled'>): void {
  const branch = branchOf(state, event.branch)
  remove(state, branch, (first) => settledSlot(branch, event, first))
}

/** The branch is over: those of its slots that are pending settle, and everything that it waited for is let go. */
function remove(state: Folding, branch: Branch, slotOf: (first: boolean) => SettledSlot): void {
  const { id, standing, slots } = branch
  const barrier = copyBarrier(barrierOf(state, branch.scope))
  if (standing.status === 'held') regroup(state, barrier, standing.node, (group) => group.delete(id))
  else count(state, barrier, branch.agent, -1)
  slots.forEach((slot, place) => {
    if (barrier.slots.get(slot) === undefined) settle(barrier, slot, slotOf(place === 0))
  })
  putBarrier(state, barrier)
  dequeue(state, branch)
  const attempt = state.turns.get(id)
  const aborted = attempt === undefined ? null : { ...attempt, ...abortedWork(state, branch) }
  dropWork(state, id)
  if (barrier.kind === 'root' && state.gates.size > 0)
    countAtGates(state, branch.agent, barrier.slots.get(slots[0] ?? 0)?.status === 'arrived')
  if (standing.status === 'asking' && state.asks.has(standing.ask)) closeAsk(state, standing.ask, 'closed')
  if (standing.status === 'backing-off') state.timers = state.timers.delete(backoffTimer(id), state.edit)
  state.branches = state.branches.delete(id, state.edit)
  if (aborted === null) return
  state.turns = state.turns.delete(id, state.edit)
  state.aborting = state.aborting.set(attemptId(id, aborted.turn, aborted.attempt), aborted, state.edit)
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

export function gatesOf(shape: ReturnType<typeof shapeOf>): Trie<Gate> {
  if (shape.kind !== 'graph') return Trie.empty()
  return Trie.from(shape.steps.map(({ id, after }) => [id, { pending: after.length, succeeded: 0 }] as const))
}

/** A step's slot has settled: the gates that watch it count it. */
function countAtGates(state: Folding, step: string, succeeded: boolean): void {
  for (const id of state.run?.dependents[step] ?? []) {
    const gate = state.gates.get(id)
    if (gate !== undefined)
      state.gates = state.gates.set(id, { pending: gate.pending - 1, succeeded: gate.succeeded + (succeeded ? 1 : 0) }, state.edit)
  }
}

export function gateOpened(state: Folding, event: Of<'gate.opened'>): void {
  const branch = branchOf(state, event.branch)
  const barrier = barrierOf(state, branch.scope)
  if (barrier.each === null) return nextTurn(state, branch, { kind: 'step', sees: event.sees ?? [] })
  // An item sees what its step sees.
  const step = barrier.waiting === null ? undefined : state.branches.get(barrier.waiting)?.message
  putBarrier(state, { ...barrier, each: { ...barrier.each, opened: barrier.each.opened + 1 } })
  nextTurn(state, branch, { kind: 'step', sees: step?.kind === 'step' ? step.sees : [], item: branch.slots[0] ?? 0 })
}

export function stepCompleted(state: Folding, event: Of<'step.completed'>): void {
  const branch = branchOf(state, event.branch)
  stepDone(state, branch, event)
  state.turns = state.turns.delete(branch.id, state.edit)
  remove(state, branch, () => ({
    status: 'arrived',
    branch: branch.id,
    first: true,
    by: branch.agent,
    ...(event.output !== undefined && { value: event.output }),
    ...(event.holes !== undefined && { holes: event.holes }),
    state: undefined,
    carried: [],
  }))
}

export function stepSkipped(state: Folding, event: Of<'step.skipped'>): void {
  const branch = branchOf(state, event.branch)
  state.turns = state.turns.delete(branch.id, state.edit)
  const { cause, error } = event
  remove(state, branch, () => ({ status: 'skipped', branch: branch.id, first: true, cause, ...(error !== undefined && { error }) }))
}

// ── barriers ─────────────────────────────────────────────────────────────────────────────────────────────

export function barrierOpened(state: Folding, event: Of<'barrier.opened'>): void {
  const { joins } = shapeOf(state)
  const branch = event.branch === undefined ? null : branchOf(state, event.branch)
  const waiting = event.kind === 'fork' && branch !== null ? branch.id : null
  if (branch !== null)
    putBranch(state, {
      ...branch,
      forks: branch.forks + 1,
      ...(waiting !== null && { standing: { status: 'forked', barrier: event.barrier } }),
    })
  putBarrier(state, {
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
  if (timeoutMs !== null) state.timers = state.timers.set(event.barrier, { id: event.barrier, kind: 'join', due }, state.edit)
  if (joins.length > 0) addReach(state, event.barrier)
}

function callsOf(state: Folding, branch: Branch | null, event: Of<'barrier.opened'>): Barrier['calls'] {
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

function addReach(state: Folding, id: string): void {
  const { nodes, edges, joins } = shapeOf(state)
  const waiting = new Set([...enclosingForks(state, id)].map(({ agent }) => agent))
  const reach = reachKey(waiting)
  if (!state.reaches.has(reach)) state.reaches = state.reaches.set(reach, reachOf(nodes, edges, joins, waiting))
  putBarrier(state, { ...barrierOf(state, id), reach })
}

function settle(barrier: Changing, index: number, slot: SettledSlot): void {
  barrier.slots = barrier.slots.set(index, slot)
  barrier.pending--
  barrier[slot.status]++
}

export function barrierArrived(state: Folding, event: Of<'barrier.arrived'>): void {
  const barrier = copyBarrier(barrierOf(state, event.barrier))
  const { slot, by } = event
  const branch = event.branch === undefined ? null : branchOf(state, event.branch)
  const value = branch === null || branch.action === null ? undefined : valueOf(branch.action)
  const first = branch === null || branch.slots[0] === slot
  const carried = branch !== null && first ? branch.carried : none
  const common = { status: 'arrived', branch: branch?.id ?? null, first, by, state: branch?.state, carried } as const
  settle(
    barrier,
    slot,
    value === undefined ? common : { status: 'arrived', branch: common.branch, first, by, value, state: common.state, carried },
  )
  putBarrier(state, barrier)
}

export function dropBarrier(state: Folding, id: string): void {
  state.barriers = state.barriers.delete(id, state.edit)
  forkClosed(state, id)
  state.timers = state.timers.delete(id, state.edit)
}

export function barrierFired(state: Folding, event: Of<'barrier.fired'>): void {
  const barrier = barrierOf(state, event.barrier)
  const deciding = event.decidedBy ?? null
  choseSlots(state, barrier.id, deciding)
  if (event.goes === undefined || event.goes === 'step') return dropBarrier(state, barrier.id)
  if (event.goes !== 'ask' && event.goes !== 'undo') return goOn(state, barrier, event.goes, event.ok, deciding, event.state)
  putBarrier(state, { ...barrier, fired: { ok: event.ok, deciding, byTimeout: event.byTimeout ?? false } })
  state.timers = state.timers.delete(barrier.id, state.edit)
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
  const waiting = branchOf(state, barrier.waiting)
  const branch: Branch = {
    ...waiting,
    carried: outward.length === 0 ? waiting.carried : [...waiting.carried, ...outward],
    state: merged ?? waiting.state,
  }
  if (goes === 'escape') putBranch(state, branch)
  else nextTurn(state, branch, { kind: 'join', join: joinData(ok, reportedSlots(barrier, deciding), here) })
}
