import type { Draft } from './draft.js'
import { emit, none } from './draft.js'
import { byId } from './ids.js'
import { mergedAtRendezvous } from './merging.js'
import { barrierOf, branchOf, shapeOf } from './state.js'

interface Group {
  readonly barrier: string
  readonly node: string
  /** By their lowest slots. */
  readonly branches: readonly string[]
}

/**
 * Lets every group that can fire do so, all of them together (KERNEL §6): a group waits for whoever of its scope can still come, and
 * for groups that lead to it one way. True if any did.
 */
export function meet(draft: Draft): boolean {
  const scopes = draft.scopes.length === 1 ? draft.scopes : byId(new Set(draft.scopes), (id) => id)
  draft.scopes = none
  let groups: Group[] | null = null
  for (let place = 0; place < scopes.length; place++) groups = withThoseThatFire(draft, scopes[place] ?? '', groups)
  if (groups === null) return false
  for (const group of groups) merge(draft, group)
  return true
}

/** Looked at whenever a branch has moved, and nearly always in vain. */
function withThoseThatFire(draft: Draft, id: string, groups: Group[] | null): Group[] | null {
  const barrier = draft.state.barriers.get(id)
  if (barrier === undefined) return groups
  let found = groups
  const { joins } = shapeOf(draft.state)
  for (let index = 0; index < joins.length; index++) {
    const group = barrier.groups[index]
    if (group === null || group === undefined || (barrier.approaching[index] ?? 0) > 0) continue
    const upstream = draft.state.reaches.get(barrier.reach)?.upstream[index] ?? []
    if (upstream.some((other) => barrier.groups[other] !== null)) continue
    found ??= []
    found.push({ barrier: id, node: joins[index] ?? '', branches: group.values() })
  }
  return found
}

/** The branches of a group become one: the one with the lowest slot survives and answers for all. */
function merge(draft: Draft, { barrier, node, branches }: Group): void {
  const survivor = branchOf(draft.state, branches[0] ?? '')
  const merged = mergedAtRendezvous(draft, barrierOf(draft.state, barrier), branches)
  const state = 'state' in merged ? merged.state : undefined
  const at = { branch: survivor.id, agent: node, turn: survivor.turn + 1 }
  emit(draft, {
    type: 'rendezvous.fired',
    barrier,
    node,
    branch: survivor.id,
    merged: branches.slice(1),
    ...(state !== undefined && { state }),
  })
  if (!('problem' in merged)) return
  emit(draft, {
    type: 'branch.settled',
    branch: survivor.id,
    status: 'failed',
    error: { code: 'MERGE_FAILED', message: merged.problem, retryable: false, at },
  })
}
