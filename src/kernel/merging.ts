import type { BranchState } from './action.js'
import type { Draft } from './draft.js'
import { NeedsCode } from './draft.js'
import { sameJson, toJson } from './json.js'
import { own } from './own.js'
import type { Barrier, Branch } from './state.js'
import { branchOf, shapeOf } from './state.js'
import { thrownText } from './thrown-text.js'

export type Merged = { readonly state: BranchState | undefined } | { readonly problem: string }

/**
 * Merges states key by key (KERNEL §8): `changed` are the whole values that differ from the base, in the order given. `mine` is what
 * the branch that goes on has.
 */
function merged(draft: Draft, base: BranchState, mine: BranchState, states: readonly BranchState[]): Merged {
  const made: Record<string, unknown> = {}
  for (const [key, how] of Object.entries(shapeOf(draft.state).merge)) {
    const before = own(base, key)
    const changed = states.map((state) => own(state, key)).filter((value) => !sameJson(value, before))
    if (how === 'mine') made[key] = own(mine, key)
    else if (changed.length === 0) made[key] = before
    else if (how === 'last') made[key] = changed.at(-1)
    else {
      const result = called(draft, key, before, changed)
      if ('problem' in result) return result
      made[key] = result.value
    }
    if (made[key] === undefined) delete made[key]
  }
  return { state: Object.freeze(made) }
}

function called(draft: Draft, key: string, base: unknown, changed: readonly unknown[]): { value: unknown } | { problem: string } {
  const merge = draft.code?.merge[key]
  if (merge === undefined) throw new NeedsCode(`the merge of '${key}'`)
  try {
    const json = toJson(merge(base, Object.freeze(changed)))
    return 'problem' in json ? { problem: `the merge of '${key}' gave what is no JSON at ${json.path}: ${json.problem}` } : json
  } catch (error) {
    return { problem: `the merge of '${key}' threw: ${thrownText(error)}` }
  }
}

/** The waiting branch's state after a join: the states of the branches that arrived and count, once each, in slot order. */
export function mergedAtJoin(draft: Draft, barrier: Barrier, waiting: Branch, deciding: readonly number[] | null): Merged {
  const base = waiting.state
  if (base === undefined) return { state: undefined }
  const counted = deciding === null ? null : new Set(deciding)
  const states: BranchState[] = []
  for (const [index, slot] of barrier.slots.entries()) {
    if (slot.status !== 'arrived' || !slot.first || slot.state === undefined) continue
    // As JSON: what was loaded from a snapshot is equal, and not the same.
    if ((counted === null || counted.has(index)) && slot.state !== base && !sameJson(slot.state, base)) states.push(slot.state)
  }
  return states.length === 0 ? { state: undefined } : merged(draft, base, base, states)
}

/** The state of the branch that survives a rendezvous, the first of the group; a group of one keeps its own. */
export function mergedAtRendezvous(draft: Draft, { base }: Barrier, group: readonly string[]): Merged {
  if (base === undefined || group.length === 1) return { state: undefined }
  const states = group.map((id) => branchOf(draft.state, id).state)
  const [mine] = states
  return mine === undefined
    ? { state: undefined }
    : merged(
        draft,
        base,
        mine,
        states.filter((state) => state !== undefined),
      )
}
