import type { Draft } from './draft.js'
import { emit } from './draft.js'
import type { Failure } from './failure.js'
import { childBranch, rootBarrier, rootBranch } from './ids.js'
import { needOf } from './join.js'
import { own } from './own.js'
import type { GraphShape, StepShape } from './shape.js'
import type { Barrier, Branch } from './state.js'
import { barrierOf, branchOf, shapeOf, stepShape } from './state.js'

/** Decides the gates that were touched (KERNEL §11), in declared order, and those that follow from it. True if any was. */
export function decideGates(draft: Draft): boolean {
  const shape = shapeOf(draft.state)
  if (shape.kind !== 'graph') return false
  const places = draft.state.run?.places ?? {}
  const touched = [...new Set(draft.gates)].flatMap((id) => places[id] ?? []).sort((a, b) => a - b)
  draft.gates = []
  return touched.filter((index) => decideGate(draft, shape, index)).length > 0
}

function decideGate(draft: Draft, shape: GraphShape, index: number): boolean {
  const step = shape.steps[index]
  if (step === undefined) return false
  const { slots = {}, width = 0 } = draft.state.run ?? {}
  const branch = rootBranch(own(slots, step.id) ?? index, width)
  const gate = draft.state.gates.get(step.id)
  if (gate === undefined || draft.state.branches.get(branch)?.standing.status !== 'gated') return false
  const need = needOf(step.join.policy, step.after.length)
  const choice = step.join.policy !== 'all' && step.join.policy !== 'settled'
  if (choice ? gate.succeeded >= need : gate.pending === 0 && gate.succeeded >= need) {
    const sees = settledAs(draft, step, 'succeeded')
    emit(draft, { type: 'gate.opened', branch, sees, ...(choice && { decidedBy: sees }) })
    return true
  }
  if (gate.pending > 0) return false
  emit(draft, { type: 'step.skipped', branch, step: step.id, cause: settledAs(draft, step, 'not')[0] ?? '' })
  return true
}

/** Of the steps before this one, those that have succeeded, or that have settled otherwise: in declared order. */
function settledAs(draft: Draft, step: StepShape, how: 'succeeded' | 'not'): string[] {
  const root = barrierOf(draft.state, rootBarrier)
  const { places = {}, slots = {} } = draft.state.run ?? {}
  const after = [...new Set(step.after)].sort((a, b) => (places[a] ?? 0) - (places[b] ?? 0))
  return after.filter((id) => {
    const slot = root.slots.get(own(slots, id) ?? -1)
    return slot !== undefined && (slot.status === 'arrived') === (how === 'succeeded')
  })
}

/** Lets as many items of an `each` through as may run at once. */
export function letThrough(draft: Draft, barrier: string): void {
  for (;;) {
    const open = barrierOf(draft.state, barrier)
    if (open.each === null || open.waiting === null) return
    const { concurrency, opened } = open.each
    const running = opened - (open.calls.length - open.pending)
    if (opened >= open.calls.length || (concurrency !== null && running >= concurrency)) return
    emit(draft, { type: 'gate.opened', branch: childBranch(open.waiting, opened) })
  }
}

/** All items have settled: the step has its list, in item order, or the failure of the lowest. */
export function completeEach(draft: Draft, barrier: Barrier, step: Branch): void {
  const output: unknown[] = []
  const holes: number[] = []
  for (const [index, slot] of barrier.slots.entries()) {
    if (slot.status === 'failed') return emit(draft, { type: 'branch.settled', branch: step.id, status: 'failed', error: slot.error })
    if (slot.status === 'skipped') holes.push(index)
    output.push(slot.status === 'arrived' ? (slot.value ?? null) : null)
  }
  emit(draft, {
    type: 'step.completed',
    branch: step.id,
    step: step.agent,
    output: Object.freeze(output),
    ...(holes.length > 0 && { holes }),
  })
}

export function stepOf(draft: Draft, branch: Branch): StepShape | null {
  return stepShape(draft.state, branch.agent)
}

/** Which item of an `each` a branch is. */
export function itemOf(draft: Draft, branch: Branch): { item?: number } {
  return barrierOf(draft.state, branch.scope).each === null ? {} : { item: branch.slot }
}

function placed(branch: Branch, step: StepShape, failure: Failure): Failure {
  return { ...failure, at: { branch: branch.id, step: step.id, ...(branch.turn > 0 && { turn: branch.turn }) } }
}

/** A step whose child run is only partly undone fails, whatever its `onError` says: that must not be passed over. */
export function failPartly(draft: Draft, branch: Branch, failure: Failure): void {
  const step = stepOf(draft, branch)
  const error = step === null ? failure : placed(branch, step, failure)
  emit(draft, { type: 'branch.settled', branch: branch.id, status: 'failed', error })
}

/** A step, or one item of it, has failed for good: what its `onError` makes of it. */
export function failStep(draft: Draft, id: string, step: StepShape, failure: Failure): void {
  const branch = branchOf(draft.state, id)
  const item = itemOf(draft, branch)
  const error = placed(branch, step, failure)
  // What `onError` offers stands in for an item: a list that could not be made has none.
  const onError = step.hasEach && item.item === undefined ? 'fail' : step.onError
  if (onError === 'skip') return emit(draft, { type: 'step.skipped', branch: id, step: step.id, ...item, cause: error.message, error })
  if (typeof onError === 'object') {
    const { fallback } = onError
    return emit(draft, {
      type: 'step.completed',
      branch: id,
      step: step.id,
      ...item,
      ...(fallback !== undefined && { output: fallback }),
      fallback: true,
    })
  }
  emit(draft, { type: 'branch.settled', branch: id, status: 'failed', error })
}
