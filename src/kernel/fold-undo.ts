import type { Action } from './action.js'
import type { Failure } from './failure.js'
import { arm } from './fold-timers.js'
import type { Folding, Of } from './folding.js'
import { rootBarrier, undoTimer } from './ids.js'
import { changed } from './lifecycle.js'
import type { ActivityRecord, Attempt, Barrier, Branch, State } from './state.js'
import { barrierOf, branchOf, clockAt, isAsleep, requestsOf, shapeOf, stepShape } from './state.js'
import { Trie } from './trie.js'
import type { AbortedWork, DoneNode, Entry, Path, Plan, Seat, Undo } from './undo-state.js'
import { cleared, undoOrder } from './undo-order.js'

function change(state: Folding, by: Partial<Undo>): void {
  state.undo = { ...state.undo, ...by }
}

/** Whether what is done must be remembered: something of this run can be undone, or a fork waits for what it aborts. */
export function remembers(state: State): boolean {
  return state.run?.undoes === true || state.undo.forks.size + state.undo.plans.size > 0
}

/** The seats of a branch, from its own scope outwards. */
export function pathOf(state: State, branch: Branch): Path {
  const seats: Seat[] = []
  for (let at = branch; ; ) {
    const barrier = barrierOf(state, at.scope)
    seats.push({ barrier: barrier.id, slot: at.slot })
    if (barrier.waiting === null) return { seats }
    at = branchOf(state, barrier.waiting)
  }
}

/** Whether a turn of this agent, or this step, can be undone as such. */
export function compensates(state: State, agent: string): boolean {
  const shape = shapeOf(state)
  if (shape.kind === 'topology') return shape.agents[agent]?.compensates === true
  return stepShape(state, agent)?.compensates === true
}

// ── what was done ────────────────────────────────────────────────────────────────────────────────────────

type Fresh = Omit<Entry, 'status' | 'plan' | 'attempt' | 'failures' | 'revision'>

/** What is better known stands: all attempts have one key, so that whatever one of them did is undone with it. */
const certainty = { unknown: 0, late: 1, returned: 2 } as const

/** Adds an entry, in the place of one of another attempt if more is known of this. */
function add(state: Folding, fresh: Fresh, after: readonly string[]): void {
  const before = state.undo.nodes.get(fresh.id)
  if (before !== undefined && before.entry !== null && !replaces(fresh, before.entry)) return
  const entry: Entry = Object.freeze({ ...fresh, status: 'done', plan: null, attempt: 0, failures: 0, revision: 0 })
  const node: DoneNode = { id: fresh.id, after: before === undefined ? after : [...new Set([...before.after, ...after])], entry }
  addNode(state, node, fresh.path)
}

function addNode(state: Folding, node: DoneNode, { seats }: Path): void {
  let { forks } = state.undo
  if (forks.size > 0)
    for (const { barrier } of seats) {
      const under = forks.get(barrier)
      if (under !== undefined) forks = forks.set(barrier, under.set(node.id, true))
    }
  change(state, { nodes: state.undo.nodes.set(node.id, node), forks })
}

function replaces({ known }: Fresh, { status, known: before }: Entry): boolean {
  return status === 'done' && (known === 'returned' || certainty[known] > certainty[before])
}

/** Adds an activity, at the end of its branch's line. One that is there already, of an earlier attempt, keeps its place. */
function addActivity(state: Folding, fresh: Fresh): void {
  const isThere = state.undo.nodes.has(fresh.id)
  add(state, fresh, isThere ? [] : frontierOf(state, fresh.branch))
  if (!isThere) move(state, fresh.branch, fresh.id)
}

function frontierOf(state: State, branch: string): readonly string[] {
  const at = state.undo.frontier.get(branch)
  return at === undefined ? [] : [at]
}

/** What the branch does next comes because of this. */
function move(state: Folding, branch: string, to: string): void {
  change(state, { frontier: state.undo.frontier.set(branch, to) })
}

const given = <K extends string>(key: K, value: unknown): { readonly [P in K]?: unknown } =>
  (value === undefined ? {} : { [key]: value }) as { readonly [P in K]?: unknown }

/** A turn has returned an action. Called before its activities are dropped. */
export function turnDone(state: Folding, branch: Branch, action: Action): void {
  if (state.run?.undoes !== true || action.type === 'fail') return
  if (shapeOf(state).kind !== 'topology' || !compensates(state, branch.agent)) return
  const id = `${branch.id}/${branch.turn}`
  const common = { branch: branch.id, agent: branch.agent, turn: branch.turn, path: pathOf(state, branch), known: 'returned' } as const
  add(
    state,
    {
      id,
      what: 'turn',
      ...common,
      key: turnKey(branch),
      ...given('input', requestsOf(branch)[0]?.value),
      ...given('output', sent(action)),
      ...activitiesOf(state, branch.id),
    },
    frontierOf(state, branch.id),
  )
  move(state, branch.id, id)
}

/** What an action gives to somebody else. */
export function sent(action: Action): unknown {
  switch (action.type) {
    case 'invoke':
      return action.request
    case 'reply':
      return action.value
    case 'finish':
      return action.output
    case 'ask':
      return action.question
    case 'fork':
      return action.calls
    case 'fail':
      return undefined
  }
}

function activitiesOf(state: State, branch: string): { activities?: Readonly<Record<string, unknown>> } {
  const work = state.work.get(branch)
  if (work === undefined) return {}
  const activities: Record<string, unknown> = Object.create(null)
  for (const record of work.records.values()) if (record.status === 'completed') activities[record.key] = record.value
  return { activities: Object.freeze(activities) }
}

/** The activity of a tool that can be undone has completed, or nobody knows. */
export function activityDone(
  state: Folding,
  event: Of<'activity.completed' | 'activity.failed'>,
  record: ActivityRecord | undefined,
): void {
  if (state.run?.undoes !== true) return
  const branch = state.branches.get(event.branch)
  if (branch === undefined || record?.status !== 'started' || record.undo === undefined) return
  const known = event.type === 'activity.completed' ? 'returned' : 'unknown'
  if (known === 'unknown' && (event as Of<'activity.failed'>).error.code !== 'ACTIVITY_OUTCOME_UNKNOWN') return
  const id = activityId(branch, event.key)
  const { tool, input } = record.undo
  const common = { branch: branch.id, agent: branch.agent, turn: branch.turn, path: pathOf(state, branch), known } as const
  const output = event.type === 'activity.completed' ? given('output', event.value) : {}
  addActivity(state, { id, what: 'activity', ...common, tool, key: id, input, ...output })
}

/** After a rejection the keys of a turn are others. */
const turnKey = ({ id, turn, rejections }: Branch): string => `${id}/${turn}${rejections > 0 ? `!${rejections}` : ''}`
const activityId = (branch: Branch, key: string): string => `${turnKey(branch)}/${key}`

/** A step, or one item of it, has returned. Called before its branch is removed. */
export function stepDone(state: Folding, branch: Branch, event: Of<'step.completed'>): void {
  if (state.run?.undoes !== true || event.fallback === true) return
  if (event.notUndone !== undefined) childLeft(state, branch.id, event.notUndone)
  const { item } = itemOf(state, branch)
  const ofList = shapeOf(state).kind === 'graph' && barrierOf(state, branch.scope).each === null && branch.action?.type === 'fork'
  if (ofList) return
  const common = { branch: branch.id, agent: branch.agent, turn: branch.turn, path: pathOf(state, branch), known: 'returned' } as const
  const facts = { ...given('input', state.run.input), ...given('item', item), ...given('output', event.output) }
  if (event.child !== undefined) add(state, { id: event.child, what: 'child', ...common, key: event.child }, [])
  if (compensates(state, branch.agent))
    add(
      state,
      { id: stepId(event), what: 'step', ...common, key: turnKey(branch), ...facts, ...activitiesOf(state, branch.id) },
      afterChild(event.child),
    )
}

const stepId = ({ step, item }: { readonly step: string; readonly item?: number }): string =>
  item === undefined ? step : `${step}:${item}`
const afterChild = (child: string | undefined): readonly string[] => (child === undefined ? [] : [child])

function itemOf(state: State, branch: Branch): { readonly item?: unknown } {
  const barrier = barrierOf(state, branch.scope)
  return barrier.each === null ? {} : { item: barrier.calls[branch.slot]?.request }
}

// ── what aborted attempts may have done ──────────────────────────────────────────────────────────────────

/** What must be known of an attempt that is aborted, to tell what it did once it has ended. Called while its branch is there. */
export function abortedWork(state: State, branch: Branch): { undo?: AbortedWork } {
  if (!remembers(state)) return {}
  const open: { id: string; key: string; tool: string; input: unknown }[] = []
  for (const record of state.work.get(branch.id)?.records.values() ?? [])
    if (record.status === 'started' && record.undo !== undefined)
      open.push({ id: activityId(branch, record.key), key: record.key, tool: record.undo.tool, input: record.undo.input })
  const input = shapeOf(state).kind === 'graph' ? state.run?.input : requestsOf(branch)[0]?.value
  return {
    undo: {
      path: pathOf(state, branch),
      after: state.undo.frontier.get(branch.id) ?? null,
      key: turnKey(branch),
      ...given('input', input),
      ...itemOf(state, branch),
      ...activitiesOf(state, branch.id),
      open,
      ...(!state.held && isAsleep(state.work.get(branch.id)) && { asleep: true as const }),
    },
  }
}

/** An aborted attempt has ended, and its body had returned all the same; or it was fenced off, and nobody knows. */
export function abortedEnded(state: Folding, event: Of<'turn.aborted'>, attempt: Attempt | undefined): void {
  const work = attempt?.undo
  if (attempt === undefined || work === undefined || state.run?.undoes !== true) return
  if (event.notUndone !== undefined) childLeft(state, attempt.branch, event.notUndone)
  const after = work.after === null ? [] : [work.after]
  const common = { branch: attempt.branch, agent: attempt.agent, turn: attempt.turn, path: work.path } as const
  const fenced = event.how === 'fenced'
  if (fenced)
    for (const { id, tool, input } of work.open)
      addAborted(state, attempt, { id, what: 'activity', ...common, known: 'unknown', tool, key: id, input }, after)
  if (event.done === undefined && !fenced) return
  const known = event.done === undefined ? 'unknown' : 'late'
  const { input, item, activities } = work
  const facts = {
    ...given('input', input),
    ...given('item', item),
    ...given('output', event.done?.output),
    ...(activities && { activities }),
  }
  const child = event.done?.child
  if (child !== undefined) add(state, { id: child, what: 'child', ...common, known, key: child }, [])
  if (!compensates(state, attempt.agent)) return
  if (shapeOf(state).kind === 'topology')
    return add(state, { id: `${attempt.branch}/${attempt.turn}`, what: 'turn', ...common, known, key: work.key, ...facts }, after)
  const [seat, around] = work.path.seats
  const slot = around === undefined ? {} : { item: seat?.slot ?? 0 }
  // What makes the items of a step has done nothing that could be undone.
  if (around === undefined && stepShape(state, attempt.agent)?.hasEach === true) return
  add(state, { id: stepId({ step: attempt.agent, ...slot }), what: 'step', ...common, known, key: work.key, ...facts }, afterChild(child))
}

/** Adds an activity of an aborted attempt: to the line of its branch, if that is still at the same turn, else beside it. */
function addAborted(state: Folding, { branch, turn }: Attempt, fresh: Fresh, after: readonly string[]): void {
  if (state.branches.get(branch)?.turn === turn) addActivity(state, fresh)
  else add(state, fresh, after)
}

/** An activity of an aborted attempt has completed after all. */
export function lateActivity(state: Folding, event: Of<'activity.completed'>, attempt: Attempt): Attempt {
  const work = attempt.undo
  const open = work?.open.find(({ key }) => key === event.key)
  if (work === undefined || open === undefined) return attempt
  const { id, tool, input } = open
  const common = { branch: attempt.branch, agent: attempt.agent, turn: attempt.turn, path: work.path, known: 'late' } as const
  addAborted(
    state,
    attempt,
    { id, what: 'activity', ...common, tool, key: id, input, ...given('output', event.value) },
    work.after === null ? [] : [work.after],
  )
  return { ...attempt, undo: { ...work, after: id, open: work.open.filter((other) => other !== open) } }
}

// ── how lines of work part and join ──────────────────────────────────────────────────────────────────────

export function follow(state: Folding, child: string, parent: string): void {
  const at = state.undo.frontier.get(parent)
  if (at !== undefined) move(state, child, at)
}

/** The branch goes on because of all of these. What forked from it began where it stands, so that its own line is in theirs. */
export function joinLines(state: Folding, branch: string, others: readonly string[], id: string): void {
  if (state.run?.undoes !== true) return
  const own = state.undo.frontier.get(branch)
  const ends = new Set(others.flatMap((other) => frontierOf(state, other)))
  if (own !== undefined && !others.includes(branch)) ends.delete(own)
  const [only] = ends
  if (only === undefined) return
  if (ends.size === 1) return move(state, branch, only)
  addNode(state, { id, after: [...ends], entry: null }, pathOf(state, branchOf(state, branch)))
  move(state, branch, id)
}

/** At a join: the lines of the slots that delivered and count. */
export function joinSlots(state: Folding, barrier: Barrier, deciding: readonly number[] | null): void {
  if (barrier.waiting === null || state.run?.undoes !== true) return
  const counted = deciding === null ? null : new Set(deciding)
  const ends: string[] = []
  for (const [index, slot] of barrier.slots.entries()) {
    const counts = counted === null || counted.has(index)
    if (counts && slot.first && slot.branch !== null && (slot.status === 'arrived' || slot.status === 'escaped')) ends.push(slot.branch)
  }
  joinLines(state, barrier.waiting, ends, barrier.id)
}

/** Which slots count is kept, because what was done under the others depends on when the choice fell. */
export function choseSlots(state: Folding, barrier: string, deciding: readonly number[] | null): void {
  if (deciding !== null && state.run?.undoes === true) change(state, { decided: state.undo.decided.set(barrier, deciding) })
}

// ── plans ────────────────────────────────────────────────────────────────────────────────────────────────

export function forkOpened(state: Folding, event: Of<'barrier.opened'>): void {
  if (event.compensate === true) change(state, { forks: state.undo.forks.set(event.barrier, Trie.empty()) })
  if (event.kind !== 'detached' || event.branch === undefined || state.run?.undoes !== true) return
  change(state, { origins: state.undo.origins.set(event.barrier, pathOf(state, branchOf(state, event.branch)).seats) })
}

/** The barrier is gone. A plan of it that has begun runs to its end, with nobody waiting for it. */
export function forkClosed(state: Folding, barrier: string): void {
  const { forks, plans } = state.undo
  if (!forks.has(barrier)) return
  const plan = plans.get(barrier)
  const kept = plan?.status === 'running' ? plans.set(barrier, { ...plan, onward: null }) : plans.delete(barrier)
  change(state, { forks: forks.delete(barrier), plans: kept })
}

export function barrierUndoing(state: Folding, event: Of<'barrier.undoing'>): void {
  const { waiting } = barrierOf(state, event.barrier)
  if (waiting === null) return
  const branch = branchOf(state, waiting)
  const { goes, all, state: merged, error } = event
  const onward = { goes, all, ...(merged !== undefined && { state: merged }), ...(error !== undefined && { error }) }
  const plan: Plan = { barrier: event.barrier, path: pathOf(state, branch), onward, status: 'waiting' }
  change(state, { plans: state.undo.plans.set(event.barrier, plan) })
  state.branches = state.branches.set(branch.id, { ...branch, standing: { status: 'undoing', barrier: event.barrier } }, state.edit)
}

/** Of the run's own plan. */
const nowhere: Path = { seats: [] }

function put(state: Folding, entry: Entry): void {
  const node = state.undo.nodes.get(entry.id)
  if (node !== undefined) change(state, { nodes: state.undo.nodes.set(entry.id, { ...node, entry: Object.freeze(entry) }) })
}

/** The next status of an entry that a plan has taken. */
function step<S extends 'compensating' | 'compensated' | 'failed'>({ status }: Entry, to: S): S {
  return changed('undo', status === 'done' ? 'pending' : status, to)
}

/** What a plan of this barrier may take, and what leads from one of that to another: of the run's own, all. */
export function nodesUnder({ undo }: State, barrier: string): readonly DoneNode[] {
  const under = undo.forks.get(barrier)
  return under === undefined ? undo.nodes.values() : under.keys().flatMap((id) => undo.nodes.get(id) ?? [])
}

/** An entry that must be there. */
export function entryOf(state: State, id: string): Entry {
  const entry = state.undo.nodes.get(id)?.entry ?? null
  if (entry === null) throw new Error(`there is no entry ${id}`)
  return entry
}

export function undoPlanned(state: Folding, event: Of<'undo.planned'>): void {
  const { barrier, entries, unknown = [] } = event
  for (const id of entries) put(state, { ...entryOf(state, id), status: 'pending', plan: barrier, revision: 1 })
  for (const id of unknown) {
    const entry = entryOf(state, id)
    put(state, { ...entry, status: 'failed', plan: barrier, revision: 1 })
    leave(state, id, entry.branch, unknownOutcome(id))
  }
  const order = undoOrder(state, nodesUnder(state, barrier), new Set(entries))
  const before = state.undo.plans.get(barrier)
  const { path = nowhere, onward = null } = before ?? {}
  const running = { barrier, path, onward, status: 'running', open: entries.length, waits: order.waits } as const
  change(state, { plans: settledPlan(state.undo.plans, running) })
  makeReady(state, order.ready)
}

/** A plan with nothing left is over; if nobody waits for it, it is gone. */
function settledPlan(plans: Undo['plans'], plan: Extract<Plan, { status: 'running' }>): Undo['plans'] {
  const { barrier, path, onward } = plan
  if (plan.open > 0) return plans.set(barrier, plan)
  return onward === null ? plans.delete(barrier) : plans.set(barrier, { barrier, path, onward, status: 'over' })
}

function makeReady(state: Folding, ids: readonly string[]): void {
  let { ready } = state.undo
  for (const id of ids) ready = ready.with(entryOf(state, id))
  change(state, { ready })
}

function leave(state: Folding, id: string, branch: string, error: Failure): void {
  change(state, { left: state.undo.left.set(id, { branch, error }) })
}

function unknownOutcome(id: string): Failure {
  return {
    code: 'ACTIVITY_OUTCOME_UNKNOWN',
    message: `nobody knows whether ${id} was done, so it was not undone`,
    retryable: false,
    at: {},
  }
}

/** What a child run could not undo is not undone here either. */
export function childLeft(state: Folding, branch: string, left: readonly string[]): void {
  const error: Failure = { code: 'CHILD_FAILED', message: 'a child run could not undo it', retryable: false, at: {} }
  for (const id of left) leave(state, id, branch, error)
}

export function undoStarted(state: Folding, { of, attempt, at, seq }: Of<'undo.started'>): void {
  const entry = entryOf(state, of)
  const revision = entry.revision + 1
  put(state, { ...entry, status: step(entry, 'compensating'), attempt, revision })
  change(state, { ready: state.undo.ready.without(of), running: state.undo.running.set(of, { of, attempt, revision, at, seq }) })
}

export function undoCompleted(state: Folding, { of }: Of<'undo.completed'>): void {
  const entry = entryOf(state, of)
  put(state, { ...entry, status: step(entry, 'compensated'), revision: entry.revision + 1 })
  const barrier = entry.plan ?? rootBarrier
  change(state, { undone: state.undo.undone.set(barrier, state.undo.plans.get(barrier)?.path ?? nowhere) })
  settled(state, entry)
}

export function undoFailed(state: Folding, { of, error, final, retryAt, at }: Of<'undo.failed'>): void {
  const entry = entryOf(state, of)
  const revision = entry.revision + 1
  const failures = entry.failures + 1
  if (final) {
    put(state, { ...entry, status: step(entry, 'failed'), failures, revision })
    leave(state, of, entry.branch, error)
    return settled(state, entry)
  }
  put(state, { ...entry, failures, revision })
  stop(state, of)
  if (retryAt === undefined) return makeReady(state, [of])
  const id = undoTimer(of)
  arm(state, { id, kind: 'undo', due: clockAt(state, at) + retryAt - at })
}

function stop(state: Folding, of: string): void {
  change(state, { running: state.undo.running.delete(of) })
  state.crashes = state.crashes.delete(undoTimer(of), state.edit)
}

function settled(state: Folding, { id, plan: barrier }: Entry): void {
  stop(state, id)
  const plan = state.undo.plans.get(barrier ?? '')
  if (plan?.status !== 'running') return
  const { waits, ready } = cleared(plan.waits, id)
  change(state, { plans: settledPlan(state.undo.plans, { ...plan, waits, open: plan.open - 1 }) })
  makeReady(state, ready)
}

/** The time of a retry has come. */
export function undoDue(state: Folding, timer: string): void {
  makeReady(state, [timer.slice(0, -undoTimer('').length)])
}

/** A run that only undoes what another has done begins with what that one left. */
export function takeOver(state: Folding, nodes: readonly DoneNode[]): void {
  let all = state.undo.nodes
  for (const node of nodes) all = all.set(node.id, node)
  change(state, { nodes: all })
}
