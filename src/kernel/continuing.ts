import { crossLimit } from './closing.js'
import { isInFlight, notThere } from './continued.js'
import type { Draft } from './draft.js'
import { emit } from './draft.js'
import { byId, rootBarrier, rootBranch } from './ids.js'
import { own } from './own.js'
import type { GraphShape, Shape, StepShape } from './shape.js'
import type { Branch, State } from './state.js'
import { liveIn, shapeOf, stepShape } from './state.js'

/**
 * Why a version of the definition can't go on with a run; null if it can. What is in flight must find its agent there, or its step, and
 * that as a step of the same kind. What is over or has not begun need not.
 */
export function cannotContinue(state: State, shape: Shape): string | null {
  const from = shapeOf(state)
  const version = `version ${shape.version} of ${shape.name}`
  if (from.kind !== shape.kind) return `the run is one of a ${from.kind}, and ${version} is a ${shape.kind}`
  const fine = new Set<string>()
  for (const branch of state.branches.values()) {
    if (fine.has(branch.agent)) continue
    const problem = shape.kind === 'graph' ? stepProblem(state, shape, branch) : agentProblem(shape, branch)
    if (problem !== null) return `${problem} (branch ${branch.id}), and ${version} has no such one`
    if (shape.kind === 'topology' || isInFlight(branch)) fine.add(branch.agent)
  }
  return null
}

function agentProblem(shape: Shape, { agent }: Branch): string | null {
  return Object.hasOwn(shape.agents, agent) ? null : `the agent ${agent} has a turn to take or an answer to get`
}

function stepProblem(state: State, shape: GraphShape, branch: Branch): string | null {
  if (!isInFlight(branch)) return null
  const was = stepShape(state, branch.agent)
  const is = shape.steps.find(({ id }) => id === branch.agent)
  if (was !== null && is !== undefined && kindOf(was) === kindOf(is)) return null
  return `the step ${branch.agent}${was === null ? '' : `, ${kindOf(was)},`} is in flight`
}

function kindOf({ kind, hasEach }: StepShape): string {
  const what = kind === 'run' ? 'a function' : kind === 'ask' ? 'an ask' : 'a child run'
  return hasEach ? `${what} for each of its items` : what
}

/** What follows from the new version of the definition that a run goes on under: said once the journal has it. */
export function rearrange(draft: Draft): void {
  const shape = shapeOf(draft.state)
  letGoOn(draft, shape)
  if (shape.joins.length > 0) draft.scopes = [...draft.state.barriers.keys()]
  const root = draft.state.barriers.get(rootBarrier)
  if (shape.kind !== 'graph' || root === undefined) return
  for (const { id, agent } of liveIn(draft.state, root))
    if (!shape.nodes.includes(agent)) emit(draft, { type: 'step.skipped', branch: id, step: agent, cause: notThere(shape.version) })
  if (!openSteps(draft, shape, root.calls.length)) return
  draft.slots = [rootBarrier]
  draft.gates = [...shape.nodes]
}

/** Those that are held where there is no rendezvous any more wait for nobody. */
function letGoOn(draft: Draft, { joins }: Shape): void {
  const held = draft.state.branches.values().filter(({ standing, agent }) => standing.status === 'held' && !joins.includes(agent))
  for (const { id, scope, agent } of byId(held, (branch) => branch.id))
    emit(draft, { type: 'rendezvous.fired', barrier: scope, node: agent, branch: id, merged: [] })
}

/** The steps that are new have slots after all others. False if they are too many. */
function openSteps(draft: Draft, { steps, limits }: GraphShape, from: number): boolean {
  const { slots = {}, width = 0 } = draft.state.run ?? {}
  const fresh = steps.filter(({ id }) => own(slots, id) === undefined)
  if (draft.state.branchesUsed + fresh.length > limits.maxBranches) {
    crossLimit(draft, 'LIMIT_BRANCHES', `the run needs more than the ${limits.maxBranches} branches it may have (maxBranches)`)
    return false
  }
  fresh.forEach(({ id }, place) => {
    const slot = from + place
    emit(draft, { type: 'branch.opened', branch: rootBranch(slot, width), parent: null, to: id, barrier: rootBarrier, slot, gated: true })
  })
  return true
}
