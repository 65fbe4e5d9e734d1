import type { Edge } from './shape.js'

/**
 * Which rendezvous each node reaches in a scope: by a path of at least one edge that enters none of the agents waiting at an enclosing
 * fork, nor End, nor User, nor goes over a notify edge. It goes through other rendezvous (KERNEL §6).
 */
export interface Reach {
  /** For each node, the indexes (into the joins) of the rendezvous that it reaches, ascending. */
  readonly from: Readonly<Record<string, readonly number[]>>
  /** For each rendezvous, the indexes of those that lead to it one way: a group there holds it back. */
  readonly upstream: readonly (readonly number[])[]
}

export function reachOf(nodes: readonly string[], edges: readonly Edge[], joins: readonly string[], waiting: ReadonlySet<string>): Reach {
  const next = new Map<string, string[]>(nodes.map((node) => [node, []]))
  for (const { from, to, notify } of edges) {
    if (notify || to === 'End' || to === 'User' || waiting.has(to)) continue
    next.get(from)?.push(to)
  }
  const from: Record<string, readonly number[]> = Object.create(null)
  for (const node of nodes) {
    const seen = new Set<string>()
    const stack = [...(next.get(node) ?? [])]
    for (let at = stack.pop(); at !== undefined; at = stack.pop()) {
      if (seen.has(at)) continue
      seen.add(at)
      stack.push(...(next.get(at) ?? []))
    }
    from[node] = joins.flatMap((join, index) => (seen.has(join) ? [index] : []))
  }
  const reaches = (a: number, b: number): boolean => (from[joins[a] ?? ''] ?? []).includes(b)
  const upstream = joins.map((_, c) => joins.flatMap((__, d) => (d !== c && reaches(d, c) && !reaches(c, d) ? [d] : [])))
  return { from, upstream }
}

/** The name under which a reach is kept: it depends on the waiting agents alone. */
export const reachKey = (waiting: ReadonlySet<string>): string => [...waiting].sort().join('|')
