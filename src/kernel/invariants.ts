import type { Event } from './event.js'
import { backoffTimer, runTimer } from './ids.js'
import type { Barrier, Branch, State } from './state.js'
import { attemptOf, attemptsOf, isOver, liveIn, shapeOf, slotsOf, waitingAgent } from './state.js'

/** What must hold of every run (KERNEL §9), by number and name. */
export const invariants = {
  1: 'a slot settles once, and every pending slot is owed by exactly one live branch',
  2: 'a barrier fires at most once, and never before its width is known',
  3: 'every live branch owes a slot of an open barrier, in a run that is not over',
  4: "a turn's agent is its branch's agent, and what it did is judged by that agent's edges",
  5: 'one live attempt per turn; attempts and turns only grow',
  6: 'a forked branch waits at an open fork that waits for it; a held branch is in exactly one group',
  7: 'nothing follows a terminal event, the sequence has no gap, effects are owed for live branches only',
  8: 'no limit is exceeded, and a run that is not over owes, asks or sleeps on something',
} as const

export interface Violation {
  readonly invariant: keyof typeof invariants
  readonly explain: string
}

/** Above this number of branches only what the events touched is looked at, and all of it at the end. */
const fullCheckMax = 500

/** A bug of ours: it stops the run that shows it, and never the process. */
export class InvariantError extends Error {
  override readonly name: string = 'InvariantError'
  readonly violations: readonly Violation[]
  constructor(violations: readonly Violation[]) {
    super(violations.map(({ invariant, explain }) => `invariant ${invariant} (${invariants[invariant]}): ${explain}`).join('\n'))
    this.violations = violations
  }
}

/** Checks one decided step: each of its events as it is folded, and the state that it leaves. */
export function checkStep(before: State, events: readonly Event[], fold: (state: State, event: Event) => State): Violation[] {
  const found: Violation[] = []
  let state = before
  for (const event of events) {
    const after = fold(state, event)
    found.push(...checkEvent(state, event, after))
    state = after
  }
  const touched = state.branches.size > fullCheckMax && !isOver(state) ? touchedBy(events) : null
  found.push(...checkState(state, touched))
  return found
}

type Bad = (invariant: keyof typeof invariants, explain: string) => void

function collector(): { found: Violation[]; bad: Bad } {
  const found: Violation[] = []
  return { found, bad: (invariant, explain) => found.push({ invariant, explain }) }
}

/** What must hold of every single event, also in the middle of a step. */
export function checkEvent(before: State, event: Event, after: State): Violation[] {
  const { found, bad } = collector()
  if (event.seq !== before.seq + 1) bad(7, `event ${event.seq} follows ${before.seq}`)
  if (isOver(before)) bad(7, `${event.type} follows the end of the run`)
  switch (event.type) {
    case 'turn.started':
      if (attemptOf(before, event.branch) !== undefined) bad(5, `turn ${event.turn} of ${event.branch} starts while an attempt is live`)
      sameAgent(bad, after.branches.get(event.branch), event)
      break
    case 'turn.completed':
    case 'turn.rejected':
    case 'turn.failed':
      if (attemptOf(before, event.branch) === undefined) bad(5, `${event.type} of ${event.branch}, which has no live attempt`)
      sameAgent(bad, before.branches.get(event.branch), event)
      if (event.type === 'turn.completed' && shapeOf(before).kind === 'topology') judged(bad, before, event)
      break
    case 'barrier.fired': {
      const barrier = before.barriers.get(event.barrier)
      if (barrier === undefined || barrier.fired !== null) bad(2, `${event.barrier} fires a second time`)
      else if (event.width !== barrier.calls.length || barrier.pending > 0)
        bad(2, `${event.barrier} fires with a width of ${event.width} and ${barrier.pending} pending`)
      break
    }
    case 'barrier.arrived':
      if (before.barriers.get(event.barrier)?.slots.get(event.slot) !== undefined)
        bad(1, `slot ${event.slot} of ${event.barrier} settles again`)
      break
    default:
      break
  }
  if ('branch' in event && typeof event.branch === 'string')
    onlyGrows(bad, before.branches.get(event.branch), after.branches.get(event.branch))
  return found
}

function sameAgent(
  bad: Bad,
  branch: Branch | undefined,
  event: { readonly type: string; readonly branch: string; readonly agent: string },
): void {
  if (branch?.agent !== event.agent)
    bad(4, `${event.type} on ${event.branch} names ${event.agent}, but its agent is ${branch?.agent ?? 'not there'}`)
}

function judged(bad: Bad, before: State, event: Extract<Event, { type: 'turn.completed' }>): void {
  const branch = before.branches.get(event.branch)
  if (branch === undefined) return
  const has = (to: string): boolean => shapeOf(before).edges.some((edge) => edge.from === branch.agent && edge.to === to)
  const { action } = event
  if (action.type === 'invoke' && !has(action.to)) bad(4, `${branch.agent} on ${branch.id} invoked ${action.to} with no edge`)
  if (action.type === 'reply' && !has(waitingAgent(before, branch) ?? '')) bad(4, `${branch.agent} on ${branch.id} replied with no edge`)
  if (action.type === 'finish' && !has('End')) bad(4, `${branch.agent} on ${branch.id} finished with no edge to End`)
  if (action.type === 'ask' && action.approval === undefined && !has('User'))
    bad(4, `${branch.agent} on ${branch.id} asked with no edge to User`)
  if (action.type === 'fork')
    for (const to of new Set(action.calls.map((call) => call.to)))
      if (!has(to)) bad(4, `${branch.agent} on ${branch.id} forked to ${to} with no edge`)
}

function onlyGrows(bad: Bad, before: Branch | undefined, after: Branch | undefined): void {
  if (before === undefined || after === undefined) return
  if (after.turn < before.turn || (after.turn === before.turn && after.attempt < before.attempt))
    bad(5, `${after.id} went from turn ${before.turn}, attempt ${before.attempt} back to ${after.turn}, ${after.attempt}`)
}

interface Touched {
  readonly branches: ReadonlySet<string>
  readonly barriers: ReadonlySet<string>
}

function touchedBy(events: readonly Event[]): Touched {
  const branches = new Set<string>()
  const barriers = new Set<string>()
  for (const event of events) {
    if ('branch' in event && typeof event.branch === 'string') branches.add(event.branch)
    if ('barrier' in event && event.type !== 'barrier.arrived') barriers.add(event.barrier)
  }
  return { branches, barriers }
}

/** What must hold between two steps. `touched`: look at these only. */
export function checkState(state: State, touched: Touched | null = null): Violation[] {
  const { found, bad } = collector()
  if (state.run === null) return found
  const branches = touched === null ? [...state.branches.values()] : [...touched.branches].flatMap((id) => state.branches.get(id) ?? [])
  const barriers = touched === null ? [...state.barriers.values()] : [...touched.barriers].flatMap((id) => state.barriers.get(id) ?? [])
  for (const barrier of barriers) checkBarrier(bad, state, barrier)
  for (const branch of branches) checkBranch(bad, state, branch)
  checkRun(bad, state, touched === null)
  return found
}

function checkBarrier(bad: Bad, state: State, barrier: Barrier): void {
  const { id, pending, arrived, failed, escaped, cancelled, skipped, calls } = barrier
  if (arrived + failed + escaped + cancelled + skipped + pending !== calls.length)
    bad(1, `the counts of ${id} don't add up to its width ${calls.length}`)
  const owed = new Map<number, string>()
  for (const branch of liveIn(state, barrier)) {
    const branchId = branch.id
    for (const slot of slotsOf(branch)) {
      if (owed.has(slot)) bad(1, `slot ${slot} of ${id} is owed by ${owed.get(slot)} and ${branchId}`)
      if (barrier.slots.get(slot) !== undefined) bad(1, `slot ${slot} of ${id} is owed by ${branchId} and has settled`)
      owed.set(slot, branchId)
    }
  }
  if (owed.size !== pending) bad(1, `${pending} slots of ${id} are pending, ${owed.size} are owed`)
  if (barrier.fired === null && pending === 0) bad(2, `${id} has nothing pending and has not fired`)
  if (barrier.fired !== null && pending > 0) bad(2, `${id} has fired with ${pending} pending`)
  if (barrier.kind === 'fork') {
    const standing = state.branches.get(barrier.waiting ?? '')?.standing
    const waits =
      (standing?.status === 'forked' || standing?.status === 'undoing' || standing?.status === 'asking') && standing.barrier === id
    if (!waits) bad(6, `nobody waits at the fork ${id}`)
  }
}

function checkBranch(bad: Bad, state: State, branch: Branch): void {
  const { id, scope, standing } = branch
  const barrier = state.barriers.get(scope)
  if (slotsOf(branch).length === 0) bad(3, `${id} owes no slot`)
  if (barrier === undefined) return bad(3, `${id} owes slots of ${scope}, which is not open`)
  const groups = barrier.groups.filter((group) => group?.get(branch.slot) === id).length
  switch (standing.status) {
    case 'ready':
      if (groups !== 0) bad(6, `${id} is ready and in a group`)
      if (standing.ticket === null && branch.startSeq === 0) bad(5, `${id} is in a turn that is not owed`)
      if (standing.ticket !== null && state.queue.get(standing.ticket) !== id) bad(5, `${id} is ready and not in the queue`)
      return
    case 'held':
      if (groups !== 1) bad(6, `${id} is held in ${groups} groups`)
      return
    case 'forked':
      if (state.barriers.get(standing.barrier)?.waiting !== id) bad(6, `${id} waits at ${standing.barrier}, which does not wait for it`)
      return
    case 'asking':
      if (state.asks.get(standing.ask)?.branch !== id) bad(6, `${id} asks ${standing.ask}, which is not open`)
      return
    case 'gated':
      return
    case 'undoing':
      if (!state.undo.plans.has(standing.barrier)) bad(6, `${id} waits for the undoing of ${standing.barrier}, which has no plan`)
      return
    case 'backing-off':
      if (!state.timers.has(backoffTimer(id))) bad(8, `${id} backs off with no timer`)
      return
  }
}

function checkRun(bad: Bad, state: State, all: boolean): void {
  const { limits } = shapeOf(state)
  const owed = all ? attemptsOf(state).length : state.running
  if (owed !== state.running) bad(7, `${state.running} turns are owed, and ${owed} branches are in one`)
  const live = state.branches.size + state.running + state.aborting.size + state.barriers.size + state.undo.plans.size
  if (isOver(state) && live > 0) bad(7, 'the run is over and something of it is live')
  if (state.turnsUsed > limits.maxTurns) bad(8, `${state.turnsUsed} turns of ${limits.maxTurns}`)
  if (state.branchesUsed > limits.maxBranches) bad(8, `${state.branchesUsed} branches of ${limits.maxBranches}`)
  if (limits.concurrency !== null && state.running > limits.concurrency) bad(8, `${state.running} turns at once of ${limits.concurrency}`)
  const working = state.running + state.aborting.size + state.asks.size + state.undo.running.size
  const waits = working + state.timers.size > 0 || state.pausedAt !== null
  const onlyClock = state.timers.size === 1 && state.timers.has(runTimer) && working === 0
  if (!isOver(state) && (!waits || (onlyClock && state.pausedAt === null))) bad(8, 'the run is not over and owes nothing: a deadlock')
}
