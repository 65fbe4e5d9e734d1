import { rootBarrier } from './ids.js'
import { joinSpec } from './join.js'
import { own } from './own.js'
import { gatesOf, recounted } from './recount.js'
import type { GraphShape, Shape, StepShape } from './shape.js'
import type { Barrier, Branch, RunFacts, State } from './state.js'
import { liveIn } from './state.js'

/**
 * The state of a run that goes on under another version of its definition. What follows from the shape is made anew from the new one and
 * from what has happened, which is known by names: a step keeps its slot, wherever the new version declares it.
 */
export function continued(before: State, shape: Shape): State {
  const { run } = before
  if (run === null) return before
  const root = before.barriers.get(rootBarrier)
  const slots = root === undefined ? run.slots : slotsLeft(run, root)
  const barriers = root === undefined || shape.kind !== 'graph' ? before.barriers : before.barriers.set(root.id, rootUnder(root, shape))
  const earlier = [...run.earlier, ...begunSteps(before, run, root, shape)]
  const state = recounted({ ...before, barriers, run: { ...run, shape, slots, earlier } })
  return { ...state, gates: gatesOf(shape, (step) => root?.slots.get(own(slots, step) ?? -1)) }
}

/** The root of a graph: that a step has failed which is not there any more does not fail the run, so that it reads skipped. */
function rootUnder(root: Barrier, { nodes, stragglers, version }: GraphShape): Barrier {
  let { slots, failed, skipped } = root
  for (const [slot, settled] of root.slots.entries()) {
    if (settled.status !== 'failed' || nodes.includes(root.calls[slot]?.to ?? '')) continue
    const { branch, first, error } = settled
    slots = slots.set(slot, { branch, first, status: 'skipped', cause: notThere(version), error })
    failed--
    skipped++
  }
  return { ...root, join: joinSpec({ policy: 'all', stragglers }), slots, failed, skipped }
}

/** Why a step is passed over. */
export const notThere = (version: string): string => `version ${version} has no such step`

/** A step that was passed over because a version had none such is a new one in a later version that has it again. */
function slotsLeft({ shape, slots }: RunFacts, root: Barrier): RunFacts['slots'] {
  const isPassedOver = (step: string, slot: number): boolean => !shape.nodes.includes(step) && root.slots.get(slot)?.status === 'skipped'
  return Object.fromEntries(Object.entries(slots).filter(([step, slot]) => !isPassedOver(step, slot)))
}

/**
 * The steps that have begun under the version before, each after those that it can have come because of: what has not begun may come
 * after it by now, and no two steps may come after each other.
 */
function begunSteps(state: State, { shape, slots, earlier }: RunFacts, root: Barrier | undefined, next: Shape): StepShape[] {
  if (shape.kind !== 'graph') return []
  const live = new Map(root === undefined ? [] : [...liveIn(state, root)].map((branch) => [branch.slot, branch]))
  const before = new Set(earlier.map(({ id }) => id))
  const hasBegun = (step: string): boolean => {
    const branch = live.get(own(slots, step) ?? -1)
    if (branch === undefined) return root === undefined || root.slots.get(own(slots, step) ?? -1) !== undefined
    return isInFlight(branch) || (branch.standing.status !== 'gated' && next.nodes.includes(step))
  }
  const begun = new Set(shape.steps.flatMap(({ id }) => (before.has(id) || hasBegun(id) ? [id] : [])))
  return shape.steps.flatMap((step) =>
    before.has(step.id) || !begun.has(step.id) ? [] : [{ ...step, after: step.after.filter((id) => begun.has(id)) }],
  )
}

/** Whether something of a step was tried: not while it waits behind its gate, nor for its first turn. */
export function isInFlight({ standing, turn, attempt }: Branch): boolean {
  if (standing.status === 'gated') return false
  return standing.status !== 'ready' || standing.ticket === null || turn > 1 || attempt > 1
}
