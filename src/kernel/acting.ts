import type { Action, AskAction, Fork, Invoke } from './action.js'
import { crossLimit } from './closing.js'
import type { Draft } from './draft.js'
import { emit, emitFolded } from './draft.js'
import type { AskData } from './event.js'
import type { Failure } from './failure.js'
import { openAll } from './fold-branches.js'
import { failStep, stepOf } from './gate.js'
import { askOf, childBranch, forkBarrier } from './ids.js'
import { joinSpec } from './join.js'
import type { Branch } from './state.js'
import { barrierOf, branchOf, shapeOf, targetsOf, waitingAgent } from './state.js'

/** Does what a legal action says (KERNEL §3). */
export function perform(draft: Draft, branch: Branch, action: Action): void {
  switch (action.type) {
    case 'invoke':
      return isNotify(draft, branch, action.to) ? notify(draft, branch, action) : go(draft, branch, action.to)
    case 'reply':
      return go(draft, branch, waitingAgent(draft.state, branch) ?? '')
    case 'fork':
      return fork(draft, branch, action)
    case 'finish':
      return finish(draft, branch)
    case 'ask':
      return emit(draft, { type: 'ask.opened', branch: branch.id, ask: askData(draft, branch, action) })
    case 'fail':
      return fail(draft, branch, action.error)
  }
}

function askData(draft: Draft, branch: Branch, { question, timeoutMs, schema, approval }: AskAction): AskData {
  const common = { id: askOf(branch.id, branch.asks + 1), branch: branch.id, agent: branch.agent, openedAt: draft.at }
  if (approval !== undefined) return { ...common, kind: 'approval', ...approval }
  return {
    ...common,
    kind: 'question',
    question,
    ...(timeoutMs !== undefined && { timeoutMs }),
    ...(schema !== undefined && { schema }),
  }
}

/** The branch fails here and now: the failure says where it began, and never in which attempt. */
export function fail(draft: Draft, branch: Branch, error: Failure): void {
  const step = stepOf(draft, branch)
  if (step !== null) return failStep(draft, branch.id, step, error)
  const at = { branch: branch.id, agent: branch.agent, turn: branch.turn }
  emit(draft, { type: 'branch.settled', branch: branch.id, status: 'failed', error: { ...error, at } })
}

function isNotify(draft: Draft, branch: Branch, to: string): boolean {
  return targetsOf(draft.state, branch.agent).get(to) === true
}

/** Over an edge that is no notify edge: a reply, an escape, a rendezvous, or a move, the first that fits. */
function go(draft: Draft, branch: Branch, to: string): void {
  for (let barrier = barrierOf(draft.state, branch.scope); barrier.waiting !== null; ) {
    if (barrier.waitingAgent === to) return barrier.id === branch.scope ? arrive(draft, branch) : escape(draft, branch, barrier.id)
    barrier = barrierOf(draft.state, branchOf(draft.state, barrier.waiting).scope)
  }
  if (shapeOf(draft.state).joins.includes(to)) return emit(draft, { seq: 0, at: 0, type: 'branch.held', branch: branch.id, node: to })
  emit(draft, { type: 'branch.moved', branch: branch.id, to })
}

function arrive(draft: Draft, branch: Branch): void {
  const { id, agent, scope, slot, slots } = branch
  for (let place = 0; place < (slots?.length ?? 1); place++)
    emit(draft, { seq: 0, at: 0, type: 'barrier.arrived', barrier: scope, slot: slots?.[place] ?? slot, by: agent, branch: id })
  emit(draft, { seq: 0, at: 0, type: 'branch.settled', branch: id, status: 'arrived' })
}

function escape(draft: Draft, branch: Branch, to: string): void {
  emit(draft, { type: 'branch.settled', branch: branch.id, status: 'escaped', to })
}

/** At the root or in a detached scope its slots arrive; inside forks it escapes to the outermost. */
function finish(draft: Draft, branch: Branch): void {
  let outermost = barrierOf(draft.state, branch.scope)
  while (outermost.waiting !== null) outermost = barrierOf(draft.state, branchOf(draft.state, outermost.waiting).scope)
  if (outermost.id === branch.scope) arrive(draft, branch)
  else escape(draft, branch, outermost.id)
}

/** Whether there is room for more branches under this one; if not, the run has crossed a limit. */
function reserve(draft: Draft, count: number, depth: number): boolean {
  const { maxFanOut, maxBranches, maxDepth } = shapeOf(draft.state).limits
  if (draft.state.branchesUsed + count > maxBranches)
    crossLimit(draft, 'LIMIT_BRANCHES', `the run needs more than the ${maxBranches} branches it may have (maxBranches)`)
  else if (depth > maxDepth) crossLimit(draft, 'LIMIT_DEPTH', `forks nest deeper than the ${maxDepth} levels they may (maxDepth)`)
  else if (count > maxFanOut) crossLimit(draft, 'LIMIT_FANOUT', `a fork has more than the ${maxFanOut} calls it may have (maxFanOut)`)
  else return true
  return false
}

/** A step's `each` gave its items: one child for each, and as many of them at once as it says. */
export function forkItems(draft: Draft, branch: Branch, concurrency: number | null): void {
  const { action } = branchOf(draft.state, branch.id)
  if (action?.type !== 'fork' || !reserve(draft, action.calls.length, action.calls.length === 0 ? 0 : branch.depth + 1)) return
  const barrier = forkBarrier(branch.id, branch.forks + 1)
  const join = joinSpec('settled')
  emit(draft, { type: 'barrier.opened', barrier, kind: 'fork', branch: branch.id, width: action.calls.length, join, each: { concurrency } })
  action.calls.forEach(({ to }, slot) => {
    emit(draft, { type: 'branch.opened', branch: childBranch(branch.id, slot), parent: branch.id, to, barrier, slot, gated: true })
  })
}

/** A detached branch starts, with nobody waiting for it and no fork around it. */
function detach(draft: Draft, parent: string, to: string, call?: number): void {
  const { forks, children } = branchOf(draft.state, parent)
  const barrier = forkBarrier(parent, forks + 1)
  emit(draft, {
    type: 'barrier.opened',
    barrier,
    kind: 'detached',
    branch: parent,
    ...(call !== undefined && { call }),
    width: 1,
    join: joinSpec('all'),
  })
  emit(draft, { type: 'branch.opened', branch: childBranch(parent, children), parent, to, barrier, slot: 0 })
}

function notify(draft: Draft, branch: Branch, action: Invoke): void {
  if (!reserve(draft, 1, 0)) return
  detach(draft, branch.id, action.to)
  emit(draft, { type: 'branch.notified', branch: branch.id, to: action.to })
}

/** Whether a call of a fork is over a notify edge. */
function notifies({ calls }: Fork, targets: ReadonlyMap<string, boolean>): boolean {
  for (let place = 0; place < calls.length; place++) if (targets.get(calls[place]?.to ?? '') === true) return true
  return false
}

function fork(draft: Draft, branch: Branch, action: Fork): void {
  const targets = targetsOf(draft.state, branch.agent)
  // Only a child that somebody waits for is deeper than its parent.
  const deeper = action.calls.some(({ to }) => targets.get(to) !== true)
  if (!reserve(draft, action.calls.length, deeper ? branch.depth + 1 : 0)) return
  const barrier = forkBarrier(branch.id, branch.forks + 1)
  const first = branch.children
  emit(draft, {
    type: 'barrier.opened',
    barrier,
    kind: 'fork',
    branch: branch.id,
    width: action.calls.length,
    join: joinSpec(action.join),
    ...(action.compensate === true && { compensate: true }),
  })
  const all = notifies(action, targets) ? null : openAll(draft.state, barrier, branch.id)
  if (all !== null)
    return emitFolded(draft, all.length, (slot, seq, at) => {
      const to = action.calls[slot]?.to ?? ''
      return { seq, at, type: 'branch.opened', branch: all[slot] ?? '', parent: branch.id, to, barrier, slot }
    })
  action.calls.forEach(({ to }, slot) => {
    if (targets.get(to) === true) {
      detach(draft, branch.id, to, slot)
      emit(draft, { type: 'barrier.arrived', barrier, slot, by: to })
      return
    }
    // Each call opens one branch, a detached one too.
    const child = childBranch(branch.id, first + slot)
    emit(draft, { seq: 0, at: 0, type: 'branch.opened', branch: child, parent: branch.id, to, barrier, slot })
  })
}
