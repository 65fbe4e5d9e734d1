import { depthMax } from './json.js'
import { own } from './own.js'
import type { Barrier, State } from './state.js'

/** The outputs of the given steps that have succeeded, frozen; the others are not there. A skipped item reads undefined in its list. */
export function stepOutputs(state: State, root: Barrier, sees: readonly string[]): Readonly<Record<string, unknown>> {
  const outputs: Record<string, unknown> = {}
  for (const id of sees) {
    const slot = root.slots.get(own(state.run?.slots ?? {}, id) ?? -1)
    if (slot?.status === 'arrived') outputs[id] = slot.holes === undefined ? slot.value : withHoles(slot.value, slot.holes)
  }
  return Object.freeze(outputs)
}

function withHoles(value: unknown, holes: readonly number[]): unknown {
  const list = [...(value as readonly unknown[])]
  for (const hole of holes) list[hole] = undefined
  return Object.freeze(list)
}

/** What a graph gives: in JSON a skipped item is null. What is no JSON stays as it is, to be refused with the path to it. */
export function withoutHoles(value: unknown, around: readonly object[] = []): unknown {
  if (typeof value !== 'object' || value === null || around.includes(value) || around.length > depthMax) return value
  if (Object.getOwnPropertySymbols(value).length > 0) return value
  const inside = [...around, value]
  if (Array.isArray(value)) {
    // A list with a property of its own, as that of a match, would be without it as a copy, and nobody would be told.
    if (Object.keys(value).length > value.length) return value
    return value.map((item: unknown) => (item === undefined ? null : withoutHoles(item, inside)))
  }
  const prototype: unknown = Object.getPrototypeOf(value)
  if (prototype !== Object.prototype && prototype !== null) return value
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, withoutHoles(item, inside)]))
}
