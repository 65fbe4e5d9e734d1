import type { Action, AskAction } from '../kernel/action.js'
import type { Event } from '../kernel/event.js'
import type { Failure } from '../kernel/failure.js'
import { byId, rootBarrier } from '../kernel/ids.js'
import type { Slot } from '../kernel/join.js'
import { graphLists } from './graph-report.js'
import type { Report, RunStatus } from './report-data.js'
import { chooseTimeouts } from './step-timeouts.js'
import { usageReport } from './usage-report.js'

/**
 * The report of a run: one pass over its journal, then a walk over what is reported of it (KERNEL §12).
 *
 * 1. Everything but `measured` is the same bytes in every order, for fixed choices. So nothing is listed as it came: branches by id, what
 *    one branch did in its own order, calls as they were declared.
 * 2. Below a slot that reads cancelled nothing is looked at: what was done there depends on when the choice fell.
 * 3. A slot settles with the branch that survived its merges, whose seat is always a lower one.
 */
export function reportOf(events: Iterable<Event>, extra: { readonly refusals?: Readonly<Record<string, number>> } = {}): Report {
  const journal = [...events]
  const run = factsOf(journal)
  const { started, ended } = run
  return {
    ...unmeasured(run, journal),
    measured: {
      startedAt: started.at,
      ...(ended !== null && { endedAt: ended.at }),
      durations: durationsOf(run),
      attempts: run.attempts,
      cancelled: run.cancelled,
      refusals: extra.refusals ?? {},
      ...usageReport(journal),
    },
  }
}

/** What is the same in every order. */
type Unmeasured = Omit<Report, 'measured'>

/** The report without what was measured, for whoever compares orders: that is asked for many times, of many short journals. */
export function unmeasuredReport(journal: readonly Event[]): Unmeasured {
  return unmeasured(factsOf(journal), journal)
}

function unmeasured(run: RunFacts, journal: readonly Event[]): Unmeasured {
  const { started, ended } = run
  return {
    runId: started.runId,
    definition: started.definition,
    version: run.version,
    status: statusOf(run),
    ...(ended?.type === 'run.succeeded' && ended.output !== undefined && { output: ended.output }),
    ...(ended?.type === 'run.failed' && { error: withoutAttempts(ended.error) }),
    ...(ended !== null && { rollback: ended.rollback ?? 'none' }),
    notUndone: ended?.notUndone ?? [],
    ...withUndo(run, run.closing ? closedLists(run) : started.shape.kind === 'graph' ? graphLists(journal) : listsOf(run)),
  }
}

function durationsOf({ timed }: RunFacts): Record<string, number> {
  const durations: Record<string, number> = {}
  for (const { branch, number, ms } of timed) durations[`${branch}/${number}`] = ms ?? 0
  return durations
}

type Lists = Pick<Report, 'agents' | 'interactions' | 'branches' | 'steps' | 'detached' | 'choices'>

/** All that is left of a run that was cancelled or crossed a limit: how far it had come by then depends on the order. */
const nothing: Lists = { agents: [], interactions: [], branches: [], steps: [], detached: [], choices: [] }

/** That it crossed a limit is then its only choice, and which one it was: another order may have crossed another, or none. */
function closedLists({ crossed }: RunFacts): Lists {
  if (crossed === null) return nothing
  return { ...nothing, choices: [{ at: 'run', kind: crossed === 'LIMIT_TIME' ? 'timeout' : 'limit', decidedBy: [crossed] }] }
}

/**
 * The choices that plans were, also in a run that was cancelled. Of a plan under a slot that reads cancelled nothing is reported but
 * what it did not undo: that remains, whoever reads it. So it is with what child runs could not undo whose step was given up, and with
 * all of them in a run that was cancelled or crossed a limit.
 */
function withUndo(run: RunFacts, lists: Lists): Lists {
  const { plans, closing } = run
  const shown = new Set(lists.branches.filter(({ status }) => status !== 'cancelled').map(({ id }) => id))
  const isShown = ({ owner }: PlanFacts): boolean => owner === null || (!closing && shown.has(owner.id))
  const choices = [...plans.values()].flatMap((plan): Choice[] => {
    const { barrier, owner, choice, left } = plan
    if (owner === null) return choice === null ? [] : [choice]
    return isShown(plan) || left.length === 0 ? [] : [{ at: barrier, kind: 'undo', decidedBy: [...left].sort() }]
  })
  const left = leftByChildren(run)
  if (left.length > 0) {
    const own = choices.findIndex(({ at }) => at === rootBarrier)
    const [plan] = own < 0 ? [] : choices.splice(own, 1)
    choices.push({ at: rootBarrier, kind: 'undo', decidedBy: [...(plan?.decidedBy ?? []), ...left] })
  }
  const timeouts = [...plans.values()].flatMap((plan) => (isShown(plan) ? plan.timeouts : []))
  // What is independent is undone in parallel: as they came, they would be in any order.
  timeouts.sort((a, b) => (a.at === b.at ? 0 : a.at < b.at ? -1 : 1))
  if (choices.length + timeouts.length === 0) return lists
  return { ...lists, choices: [...lists.choices, ...byId(choices, ({ at }) => at), ...timeouts] }
}

/** What child runs could not undo, as far as it depends on when a choice fell. */
function leftByChildren({ ended, closing, left }: RunFacts): string[] {
  const notUndone = new Set(ended?.notUndone)
  return left.flatMap(({ ids, givenUp }) => (givenUp || closing ? ids.filter((id) => notUndone.has(id)) : [])).sort()
}

function statusOf({ ended, paused, compensating }: RunFacts): RunStatus {
  switch (ended?.type) {
    case 'run.succeeded':
      return 'succeeded'
    case 'run.failed':
      return 'failed'
    case 'run.cancelled':
      return 'cancelled'
    case undefined:
      return paused ? 'paused' : compensating ? 'compensating' : 'running'
  }
}

/** A failure says where it began, never in which attempt, nor how often something was tried before: that depends on timing. */
function withoutAttempts({ code, message, retryable, data, at, cause, others }: Failure): Failure {
  const { branch, agent, step, turn } = at
  return {
    code,
    message,
    retryable,
    ...(data !== undefined && { data: code === 'MODEL_FAILED' ? withoutTries(data) : data }),
    at: {
      ...(branch !== undefined && { branch }),
      ...(agent !== undefined && { agent }),
      ...(step !== undefined && { step }),
      ...(turn !== undefined && { turn }),
    },
    ...(cause !== undefined && { cause: withoutAttempts(cause) }),
    ...(others !== undefined && { others: others.map(withoutAttempts) }),
  }
}

/** What a failed call of a model says of itself, but for how often it was made and how long it was to wait. */
function withoutTries(data: unknown): unknown {
  if (typeof data !== 'object' || data === null) return data
  const { attempts: _attempts, retryAfterMs: _wait, ...rest } = data as { readonly [key: string]: unknown }
  return rest
}

// ── what the journal says ────────────────────────────────────────────────────────────────────────────────

type Of<T extends Event['type']> = Extract<Event, { type: T }>
type Status = Slot['status']
type Choice = Report['choices'][number]
type Interaction = Report['interactions'][number]

interface RunFacts {
  readonly started: Of<'run.started'>
  /** Of the definition that went on with it last. */
  version: string
  /** The agents in declared order, then those of earlier versions. */
  nodes: readonly string[]
  readonly root: BarrierFacts
  readonly branches: Map<string, BranchFacts>
  readonly barriers: Map<string, BarrierFacts>
  ended: Of<'run.succeeded' | 'run.failed' | 'run.cancelled'> | null
  paused: boolean
  /** It was cancelled, or crossed a limit. */
  closing: boolean
  /** The code of that limit. */
  crossed: Failure['code'] | null
  compensating: boolean
  /** By the barrier that each belongs to. */
  readonly plans: Map<string, PlanFacts>
  /** What child runs could not undo; `givenUp`: their step was not waited for any more. */
  readonly left: { readonly ids: readonly string[]; readonly givenUp: boolean }[]
  cancelled: number
  /** The turns of which it is known how long they took. */
  readonly timed: TurnFacts[]
  readonly attempts: Record<string, number>
}

interface BarrierFacts {
  readonly kind: 'root' | 'fork' | 'detached'
  readonly owner: BranchFacts | null
  /** The agent that waits here: the owner's when it forked. */
  readonly waiting: string | null
  /** Who was given each slot; `notified` has nobody who could settle it and has arrived. */
  readonly seats: (BranchFacts | 'notified')[]
  /** The slots that count, if its firing was a choice. */
  decidedBy: ReadonlySet<number> | null
  /** The slots as they are reported, once that was asked for; null is pending. */
  read: readonly (Status | null)[] | null
}

/** `owner`: the branch that waits for it, null of the run's own; `left`: what it did not undo. */
interface PlanFacts {
  readonly barrier: string
  readonly owner: BranchFacts | null
  readonly choice: Choice | null
  readonly entries: ReadonlySet<string>
  readonly left: string[]
  /** The undos that ran out of time. */
  readonly timeouts: Choice[]
}

interface BranchFacts {
  readonly id: string
  /** The agent it was opened at. */
  readonly to: string
  readonly scope: BarrierFacts
  readonly seat: number
  /** Forked and detached ones, in the order of their ordinals. */
  readonly children: BranchFacts[]
  readonly turns: TurnFacts[]
  /** Its own: of its turns, its asks and its forks, in the order in which it came to them. */
  readonly choices: Choice[]
  standing: 'running' | 'held' | 'forked' | 'asking'
  survivor: BranchFacts | null
  settled: { readonly status: Status; readonly error?: Failure } | null
}

/** A turn, however many attempts it took. */
interface TurnFacts {
  readonly branch: string
  readonly number: number
  readonly agent: string
  readonly at: number
  action: Action | null
  /** Where the calls of its fork are counted. */
  fork: BarrierFacts | null
  /** Of what ends without its branch: a notification has arrived, an ask was answered or has expired. */
  outcome: Status | null
  /** How long it took, once that is known. */
  ms: number | null
}

function factsOf(events: Iterable<Event>): RunFacts {
  let run: RunFacts | null = null
  for (const event of events) {
    if (event.type === 'run.started') run = newRun(event)
    else if (run === null) throw new Error(`a journal begins with run.started, not with ${event.type}`)
    else note(run, event)
  }
  if (run === null) throw new Error('there is no report of an empty journal')
  return run
}

function newRun(started: Of<'run.started'>): RunFacts {
  const root = newBarrier('root', null)
  const { version, shape } = started
  return {
    started,
    version,
    nodes: shape.nodes,
    root,
    branches: new Map(),
    barriers: new Map(),
    ended: null,
    paused: false,
    closing: false,
    crossed: null,
    compensating: false,
    plans: new Map(),
    left: [],
    cancelled: 0,
    timed: [],
    attempts: {},
  }
}

function newBarrier(kind: BarrierFacts['kind'], owner: BranchFacts | null): BarrierFacts {
  const waiting = kind === 'fork' ? (owner?.turns.at(-1)?.agent ?? null) : null
  return { kind, owner, waiting, seats: [], decidedBy: null, read: null }
}

/** Notes what one event adds. */
function note(run: RunFacts, event: Event): void {
  switch (event.type) {
    case 'run.claimed':
      if (event.shape === undefined) return
      run.version = event.shape.version
      run.nodes = [...new Set([...event.shape.nodes, ...run.nodes])]
      return
    case 'run.paused':
      run.paused = true
      return
    case 'run.resumed':
      run.paused = false
      return
    case 'run.closing':
      // Whoever cancels a run takes its pause back; one that crossed a limit stands still until it is resumed.
      if (event.cause === 'cancel') run.paused = false
      run.closing = true
      if (event.cause === 'limit') run.crossed = event.error.code
      return
    case 'run.compensating':
      run.compensating = true
      return
    case 'undo.planned':
      return undoPlanned(run, event)
    case 'undo.failed':
      return undoFailed(run, event)
    case 'run.succeeded':
    case 'run.failed':
    case 'run.cancelled':
      run.ended = event
      return
    case 'barrier.opened':
      return barrierOpened(run, event)
    case 'barrier.arrived':
      if (event.branch === undefined) barrierOf(run, event.barrier).seats[event.slot] = 'notified'
      return
    case 'barrier.fired':
      return barrierFired(run, event)
    case 'barrier.released':
      return stand(barrierOf(run, event.barrier).owner, 'running')
    case 'branch.opened':
      return branchOpened(run, event)
    case 'branch.notified':
      return came(branchOf(run, event.branch), 'arrived')
    case 'branch.held':
      return stand(branchOf(run, event.branch), 'held')
    case 'branch.settled':
      if (event.status === 'cancelled') run.cancelled++
      branchOf(run, event.branch).settled = event.status === 'failed' ? { status: 'failed', error: event.error } : { status: event.status }
      return
    case 'rendezvous.fired': {
      const survivor = branchOf(run, event.branch)
      for (const id of event.merged) branchOf(run, id).survivor = survivor
      return stand(survivor, 'running')
    }
    case 'turn.started':
      return turnStarted(run, event)
    case 'turn.completed':
      turnOf(run, event).action = event.action
      return turnEnded(run, event)
    case 'turn.rejected':
      return event.final ? turnEnded(run, event) : undefined
    case 'turn.failed':
      return turnFailed(run, event)
    case 'turn.aborted':
      return leftBehind(run, event, true)
    case 'activity.completed':
    case 'activity.failed':
      return chooseTimeouts(branchOf(run, event.branch).choices, event)
    case 'ask.opened':
      return stand(branchOf(run, event.branch), 'asking')
    case 'ask.answered':
      return came(branchOf(run, event.branch), 'arrived')
    case 'ask.expired': {
      const branch = branchOf(run, event.branch)
      branch.choices.push({ at: event.askId, kind: 'timeout', decidedBy: [] })
      return came(branch, 'failed')
    }
    // These leave nothing in a report, or say again what another event says.
    case 'run.started':
    case 'run.released':
    case 'run.decided':
    case 'barrier.closed':
    case 'barrier.undoing':
    case 'undo.started':
    case 'undo.completed':
    case 'branch.moved':
    case 'activity.started':
    case 'sleep.started':
    case 'timer.fired':
      return
    // Of a graph, which is reported by its steps and not by its branches: only how long they took is taken from here.
    case 'gate.opened':
      return
    case 'step.completed':
    case 'step.skipped': {
      const turn = branchOf(run, event.branch).turns.at(-1)
      if (turn?.ms === null) took(run, turn, event.at)
      if (event.type === 'step.completed') leftBehind(run, event, false)
      return
    }
  }
}

function branchOf(run: RunFacts, id: string): BranchFacts {
  const branch = run.branches.get(id)
  if (branch === undefined) throw new Error(`the journal has no branch ${id}`)
  return branch
}

function barrierOf(run: RunFacts, id: string): BarrierFacts {
  const barrier = run.barriers.get(id)
  if (barrier === undefined) throw new Error(`the journal has no barrier ${id}`)
  return barrier
}

function stand(branch: BranchFacts | null, standing: BranchFacts['standing']): void {
  if (branch !== null) branch.standing = standing
}

/** What the branch's last turn did has come to something, and it goes on. */
function came(branch: BranchFacts, outcome: Status): void {
  const turn = branch.turns.at(-1)
  if (turn !== undefined) turn.outcome = outcome
  stand(branch, 'running')
}

function barrierOpened(run: RunFacts, event: Of<'barrier.opened'>): void {
  if (event.branch === undefined) {
    run.barriers.set(event.barrier, run.root)
    return
  }
  const owner = branchOf(run, event.branch)
  const barrier = newBarrier(event.kind, owner)
  run.barriers.set(event.barrier, barrier)
  const turn = owner.turns.at(-1)
  if (event.kind !== 'fork' || turn === undefined) return
  turn.fork = barrier
  stand(owner, 'forked')
}

function barrierFired(run: RunFacts, event: Of<'barrier.fired'>): void {
  const barrier = barrierOf(run, event.barrier)
  if (barrier.kind === 'fork') stand(barrier.owner, 'running')
  if (event.decidedBy === undefined) return
  barrier.decidedBy = new Set(event.decidedBy)
  barrier.owner?.choices.push({ at: event.barrier, kind: event.byTimeout === true ? 'timeout' : 'join', decidedBy: event.decidedBy })
}

/** Of a fork, it is among the choices of the branch that waits there. */
function undoPlanned(run: RunFacts, { barrier, entries, unknown = [], decidedBy }: Of<'undo.planned'>): void {
  const choice = decidedBy === undefined ? null : ({ at: barrier, kind: 'undo', decidedBy } as const)
  const owner = barrier === rootBarrier ? null : barrierOf(run, barrier).owner
  run.plans.set(barrier, { barrier, owner, choice, entries: new Set(entries), left: [...unknown], timeouts: [] })
  if (choice !== null) owner?.choices.push(choice)
}

/** An undo that ran out of time is as much a choice as a turn that did. */
function undoFailed(run: RunFacts, { of, attempt, error, final }: Of<'undo.failed'>): void {
  for (const { entries, left, timeouts } of run.plans.values()) {
    if (!entries.has(of)) continue
    if (final) left.push(of)
    if (error.code === 'TIMEOUT') timeouts.push({ at: `${of}/undo`, kind: 'timeout', decidedBy: [attempt] })
  }
}

function branchOpened(run: RunFacts, event: Of<'branch.opened'>): void {
  const scope = barrierOf(run, event.barrier)
  const { branch: id, to, slot: seat } = event
  const branch: BranchFacts = {
    id,
    to,
    scope,
    seat,
    children: [],
    turns: [],
    choices: [],
    standing: 'running',
    survivor: null,
    settled: null,
  }
  run.branches.set(id, branch)
  scope.seats[seat] = branch
  if (event.parent !== null) branchOf(run, event.parent).children.push(branch)
}

type OfTurn = Of<'turn.started' | 'turn.completed' | 'turn.rejected' | 'turn.failed'>

const turnKey = ({ branch, turn }: OfTurn): string => `${branch}/${turn}`

function turnStarted(run: RunFacts, event: Of<'turn.started'>): void {
  const { turns } = branchOf(run, event.branch)
  if (event.attempt > 1) run.attempts[turnKey(event)] = event.attempt
  if (turns.at(-1)?.number === event.turn) return
  turns.push({
    branch: event.branch,
    number: event.turn,
    agent: event.agent,
    at: event.at,
    action: null,
    fork: null,
    outcome: null,
    ms: null,
  })
}

function turnOf(run: RunFacts, event: OfTurn): TurnFacts {
  const turn = branchOf(run, event.branch).turns.at(-1)
  if (turn?.number !== event.turn) throw new Error(`the journal does not say when turn ${event.turn} of branch ${event.branch} started`)
  return turn
}

function turnEnded(run: RunFacts, event: OfTurn): void {
  took(run, turnOf(run, event), event.at)
}

function took(run: RunFacts, turn: TurnFacts, until: number): void {
  if (turn.ms === null) run.timed.push(turn)
  turn.ms = until - turn.at
}

/** Which attempt ran out of time, or met an agent that may not act, is part of that choice: what comes next may depend on it. */
function turnFailed(run: RunFacts, event: Of<'turn.failed'>): void {
  const { timedOut, stopped, attempt } = event
  if (timedOut === true) branchOf(run, event.branch).choices.push({ at: turnKey(event), kind: 'timeout', decidedBy: [attempt] })
  if (stopped !== undefined) branchOf(run, event.branch).choices.push({ at: turnKey(event), kind: 'stop', decidedBy: [attempt, stopped] })
  leftBehind(run, event, false)
  if (event.final) turnEnded(run, event)
}

function leftBehind(run: RunFacts, { notUndone }: { readonly notUndone?: readonly string[] }, givenUp: boolean): void {
  if (notUndone !== undefined) run.left.push({ ids: notUndone, givenUp })
}

// ── what is reported of it ───────────────────────────────────────────────────────────────────────────────

function listsOf({ root, nodes }: RunFacts): Lists {
  const involved = new Set<string>()
  const interactions: Interaction[] = []
  const branches: Report['branches'][number][] = []
  const detached: Report['detached'][number][] = []
  const choices: Choice[] = []
  for (const branch of reportedBranches(root)) {
    branches.push(branchEntry(branch))
    if (statusIn(branch) === 'cancelled') continue
    for (const { agent } of branch.turns) involved.add(agent)
    for (const turn of branch.turns) for (const interaction of interactionsOf(branch, turn)) interactions.push(interaction)
    for (const choice of branch.choices) choices.push(choice)
    if (branch.scope.kind === 'detached' && branch.settled !== null) detached.push(detachedEntry(branch, branch.settled))
  }
  const agents = nodes.filter((node) => involved.has(node))
  return { agents, interactions, branches, steps: [], detached, choices }
}

/**
 * The branches that are reported, in the order of their ids: each before its children, these by their ordinals. One whose slot reads
 * cancelled is the last on its way down. Not recursive, because detached branches may follow each other without end.
 */
function* reportedBranches(root: BarrierFacts): Generator<BranchFacts> {
  const stack = root.seats.filter((seat) => seat !== 'notified').reverse()
  for (let branch = stack.pop(); branch !== undefined; branch = stack.pop()) {
    yield branch
    if (statusIn(branch) === 'cancelled') continue
    for (let i = branch.children.length - 1; i >= 0; i--) {
      const child = branch.children[i]
      if (child !== undefined) stack.push(child)
    }
  }
}

/** The slots of a barrier as they are reported: those that don't count read cancelled, whatever became of them. */
function slotsOf(barrier: BarrierFacts): readonly (Status | null)[] {
  if (barrier.read !== null) return barrier.read
  const read: (Status | null)[] = []
  for (const [index, seat] of barrier.seats.entries()) {
    const counts = barrier.decidedBy === null || barrier.decidedBy.has(index)
    read.push(counts ? settledAs(seat, read) : 'cancelled')
  }
  barrier.read = read
  return read
}

function settledAs(seat: BranchFacts | 'notified', before: readonly (Status | null)[]): Status | null {
  if (seat === 'notified') return 'arrived'
  return seat.survivor === null ? (seat.settled?.status ?? null) : (before[seat.survivor.seat] ?? null)
}

/** How the slot that a branch was opened for is reported. */
function statusIn({ scope, seat }: BranchFacts): Status | null {
  return slotsOf(scope)[seat] ?? null
}

/** Of a slot that reads cancelled no more than that: what its branch had done by then, even a merge, depends on the order. */
function branchEntry(branch: BranchFacts): Report['branches'][number] {
  const status = statusIn(branch)
  if (status === 'cancelled') return { id: branch.id, agents: [], turns: 0, status }
  const error = branch.survivor === null ? branch.settled?.error : undefined
  return {
    id: branch.id,
    agents: wayOf(branch),
    turns: branch.turns.length,
    status: branch.survivor === null ? (status ?? branch.standing) : 'merged',
    ...(error !== undefined && { error: withoutAttempts(error) }),
  }
}

/** The agents that a branch came by, each once for as long as it stayed. */
function wayOf({ turns }: BranchFacts): string[] {
  return turns.map(({ agent }) => agent).filter((agent, index, all) => agent !== all[index - 1])
}

/** A detached branch whose finish came from further in has gone past its own forks: for those who started it, it has arrived. */
function detachedEntry({ id, to }: BranchFacts, { error }: NonNullable<BranchFacts['settled']>): Report['detached'][number] {
  return error === undefined
    ? { branch: id, agent: to, status: 'arrived' }
    : { branch: id, agent: to, status: 'failed', error: withoutAttempts(error) }
}

/** What a person was asked: a question, or whether a tool may be called with this. */
function askedOf({ question, approval }: AskAction): unknown {
  return approval === undefined ? question : { tool: approval.tool, input: approval.input }
}

/** The edges that a turn used, as far as it is known what came of them. */
function interactionsOf(branch: BranchFacts, turn: TurnFacts): Interaction[] {
  const { action } = turn
  const onward = statusIn(branch)
  const used = (to: string | null, request: unknown, outcome: Status | null): Interaction[] => {
    if (to === null || outcome === null) return []
    return [{ branch: branch.id, turn: turn.number, from: turn.agent, to, ...(request !== undefined && { request }), outcome }]
  }
  switch (action?.type) {
    case 'invoke':
      return used(action.to, action.request, turn.outcome ?? onward)
    case 'reply':
      return used(branch.scope.waiting, action.value, onward)
    case 'finish':
      return used('End', action.output, onward)
    case 'ask':
      return used('User', askedOf(action), turn.outcome)
    case 'fork': {
      const slots = turn.fork === null ? [] : slotsOf(turn.fork)
      return action.calls.flatMap(({ to, request }, index) => used(to, request, slots[index] ?? null))
    }
    case 'fail':
    case undefined:
      return []
  }
}
