import { reachKey, reachOf } from './reach.js'
import type { Shape } from './shape.js'
import { SlotMap } from './slot-map.js'
import type { Barrier, Gate, Group, SettledSlot, State } from './state.js'
import { enclosingForks, liveIn, shapeOf } from './state.js'
import { Trie } from './trie.js'

/** Whom each agent may invoke, and whether that is a notify edge. */
export function targetsIn(shape: Shape): Readonly<Record<string, ReadonlyMap<string, boolean>>> {
  const targets: Record<string, Map<string, boolean>> = Object.create(null)
  for (const { from, to, notify } of shape.edges) (targets[from] ??= new Map()).set(to, notify === true)
  return targets
}

/** Where each node stands in declared order. */
export function placesIn(shape: Shape): Readonly<Record<string, number>> {
  const places: Record<string, number> = Object.create(null)
  shape.nodes.forEach((node, place) => {
    places[node] = place
  })
  return places
}

/** With how many branches a run of it begins. */
export function widthOf(shape: Shape): number {
  return shape.kind === 'graph' ? shape.steps.length : startsOf(shape).length
}

/** With which agents a run of a topology begins. */
export function startsOf({ edges }: Shape): string[] {
  const starts: string[] = []
  for (const { from, to } of edges) if (from === 'Start') starts.push(to)
  return starts
}

/** The gate of each step; `settled`: how the slot of a step has settled, if it has. */
export function gatesOf(shape: Shape, settled: (step: string) => SettledSlot | undefined = () => undefined): Trie<Gate> {
  if (shape.kind !== 'graph') return Trie.empty()
  return Trie.from(
    shape.steps.map(({ id, after }) => {
      const seen = after.flatMap((before) => settled(before) ?? [])
      return [id, { pending: after.length - seen.length, succeeded: seen.filter(({ status }) => status === 'arrived').length }] as const
    }),
  )
}

/** Which steps of a graph come after which. */
export function dependentsOf(shape: Shape): Readonly<Record<string, readonly string[]>> {
  const dependents: Record<string, string[]> = Object.create(null)
  if (shape.kind === 'graph')
    for (const { id, after } of shape.steps) for (const before of new Set(after)) (dependents[before] ??= []).push(id)
  return dependents
}

/** Whether anything of a definition can be undone; what its child runs do is known to them alone. */
export function undoesIn(shape: Shape): boolean {
  if (shape.kind === 'graph') return shape.steps.some(({ kind, compensates }) => compensates || kind === 'child')
  return Object.values(shape.agents).some(({ compensates, toolsCompensate }) => compensates === true || toolsCompensate === true)
}

/**
 * Counts anew what each scope keeps for its rendezvous: who reaches them and who is held there. It follows from where the branches
 * are, so a snapshot need not hold it, and a new version of the definition may change it.
 */
export function recounted(before: State): State {
  const { nodes, edges, joins } = shapeOf(before)
  let reaches: State['reaches'] = Trie.empty()
  let { barriers } = before
  for (const barrier of before.barriers.values()) {
    const waiting = new Set([...enclosingForks(before, barrier.id)].map(({ agent }) => agent))
    const key = reachKey(waiting)
    const reach = reaches.get(key) ?? reachOf(nodes, edges, joins, waiting)
    reaches = reaches.set(key, reach)
    const approaching = joins.map(() => 0)
    const groups: (Group | null)[] = joins.map(() => null)
    for (const branch of liveIn(before, barrier)) {
      const isHeld = branch.standing.status === 'held'
      const held = isHeld ? joins.indexOf(branch.agent) : -1
      if (held >= 0) groups[held] = (groups[held] ?? SlotMap.from([])).set(branch.slot, branch.id)
      else if (!isHeld) for (const index of reach.from[branch.agent] ?? []) approaching[index] = (approaching[index] ?? 0) + 1
    }
    const counted: Barrier = { ...barrier, reach: joins.length === 0 ? '' : key, approaching, groups }
    barriers = barriers.set(barrier.id, counted)
  }
  const run =
    before.run === null
      ? null
      : {
          ...before.run,
          targets: targetsIn(before.run.shape),
          places: placesIn(before.run.shape),
          // A snapshot from before there were these is of a run that has gone on under no other version.
          slots: before.run.slots ?? (before.run.shape.kind === 'graph' ? placesIn(before.run.shape) : {}),
          width: before.run.width ?? widthOf(before.run.shape),
          earlier: before.run.earlier ?? [],
          dependents: dependentsOf(before.run.shape),
          // What was begun under a version that could undo it is remembered under one that can't.
          undoes: before.run.undoes || undoesIn(before.run.shape),
        }
  return { ...before, run, barriers, reaches: joins.length === 0 ? Trie.empty() : reaches }
}
