import type { State } from './state.js'
import type { DoneNode, Waiting } from './undo-state.js'
import { Trie } from './trie.js'

/** What stands behind each thing that was done: the things it came because of. */
type Causes = Map<string, readonly string[]>

/**
 * In which order the chosen entries are undone: against causality, not against the clock (KERNEL §13). An entry waits until all that
 * came because of it is cleared; what is not chosen is passed through. `nodes`: at least the chosen and all that leads from one of them to
 * another; what lies beyond is no matter. Gives what waits, and what need not.
 */
export function undoOrder(
  state: State,
  nodes: readonly DoneNode[],
  chosen: ReadonlySet<string>,
): { readonly waits: Trie<Waiting>; readonly ready: readonly string[] } {
  const causes = state.run?.shape.kind === 'graph' ? causesInGraph(state, nodes) : causesInTopology(nodes)
  const on = new Map<string, number>()
  for (const after of causes.values()) for (const id of after) if (causes.has(id)) on.set(id, (on.get(id) ?? 0) + 1)
  const ready: string[] = []
  const cleared = new Set<string>()
  const free = [...causes.keys()].filter((id) => (on.get(id) ?? 0) === 0)
  for (let id = free.pop(); id !== undefined; id = free.pop()) {
    if (chosen.has(id)) {
      ready.push(id)
      continue
    }
    cleared.add(id)
    for (const before of causes.get(id) ?? []) if (release(on, before)) free.push(before)
  }
  const waits: [string, Waiting][] = []
  for (const [id, after] of causes) if (!cleared.has(id)) waits.push([id, { after, on: on.get(id) ?? 0, entry: chosen.has(id) }])
  return { waits: Trie.from(waits), ready }
}

function release(on: Map<string, number>, id: string): boolean {
  const left = (on.get(id) ?? 0) - 1
  on.set(id, left)
  return left === 0
}

function causesInTopology(nodes: readonly DoneNode[]): Causes {
  return new Map(nodes.map(({ id, after }) => [id, after]))
}

/**
 * Before a step come all of its `after`, and through those that left no entry, theirs: whatever became of them. One that began under an
 * earlier version of the definition came because of what that one said.
 */
function causesInGraph(state: State, nodes: readonly DoneNode[]): Causes {
  const causes: Causes = new Map()
  if (state.run?.shape.kind !== 'graph') return causes
  const ends = new Map<string, string[]>()
  for (const { id, after, entry } of nodes) {
    if (entry === null) continue
    causes.set(id, after.length === 0 ? [begin(entry.agent)] : after)
    const items = ends.get(entry.agent)
    if (items === undefined) ends.set(entry.agent, [id])
    else items.push(id)
  }
  const { shape, earlier } = state.run
  for (const { id, after } of [...shape.steps, ...earlier]) {
    causes.set(begin(id), after.map(end))
    causes.set(end(id), ends.get(id) ?? [begin(id)])
  }
  return causes
}

// No step can be called like these.
const begin = (step: string): string => `<${step}`
const end = (step: string): string => `>${step}`

/** An entry is settled, or something with no entry is passed: what need not wait any more. */
export function cleared(waits: Trie<Waiting>, of: string): { readonly waits: Trie<Waiting>; readonly ready: readonly string[] } {
  const ready: string[] = []
  const free = [of]
  for (let id = free.pop(); id !== undefined; id = free.pop()) {
    const { after } = waits.get(id) ?? { after: [] }
    waits = waits.delete(id)
    for (const before of after) {
      const waiting = waits.get(before)
      if (waiting === undefined) continue
      const next = { ...waiting, on: waiting.on - 1 }
      waits = waits.set(before, next)
      if (next.on > 0) continue
      if (next.entry) ready.push(before)
      else free.push(before)
    }
  }
  return { waits, ready }
}
