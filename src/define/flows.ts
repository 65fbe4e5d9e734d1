import type { Problem } from '../kernel/problem.js'
import type { Edge } from '../kernel/shape.js'
import type { PlacedEdge } from '../kernel/validate.js'
import { shown } from './option-check.js'

/** What flows say: edges with their places, and what could not be read. */
export interface Flows {
  readonly edges: readonly PlacedEdge[]
  readonly problems: readonly Problem[]
}

/** Reads flows in any of their forms; all of them give the same data. `edges.ts` reads the same strings as types. */
export function readFlows(flows: unknown): Flows {
  const list = Array.isArray(flows) ? flows : patternEdges(flows)
  if (list === null) {
    const message = `flows is a list of strings like 'A -> B' or of { from, to }, or one of \`patterns\`, not ${shown(flows)}`
    return { edges: [], problems: [{ code: 'BAD_FLOW', where: 'flows', message }] }
  }
  const edges: PlacedEdge[] = []
  const problems: Problem[] = []
  list.forEach((flow: unknown, index) => {
    const read = typeof flow === 'string' ? readFlow(flow) : readEdge(flow, `flows[${index}]`)
    edges.push(...read.edges)
    problems.push(...read.problems)
  })
  return { edges, problems }
}

function patternEdges(flows: unknown): readonly unknown[] | null {
  if (typeof flows !== 'object' || flows === null) return null
  const { edges } = flows as { edges?: unknown }
  return Array.isArray(edges) ? edges : null
}

/** Reads one string: nodes separated by `|`, groups joined by `->` or `<->`, or two groups joined by `~>`. */
function readFlow(where: string): Flows {
  const parts = where.split(/(<->|->|~>)/)
  const groups = parts.filter((_, index) => index % 2 === 0).map((part) => part.split('|').map((node) => node.trim()))
  const arrows = parts.filter((_, index) => index % 2 === 1)
  const problem = (message: string): Flows => ({ edges: [], problems: [{ code: 'BAD_FLOW', where, message }] })

  if (arrows.length === 0) return problem("this flow has no arrow; write 'A -> B', 'A <-> B' or 'A ~> B'")
  if (groups.some((group) => group.includes('')))
    return problem("a node is missing here; every arrow and every | has a name on both sides, as in 'A | B -> C'")
  if (arrows.includes('~>') && arrows.length > 1)
    return problem('a ~> stands alone in its string; write the other edges in strings of their own')
  const odd = groups.flat().find((node) => /[<>=~→]/.test(node))
  if (odd !== undefined) return problem(`'${odd}' is no name; the arrows are ->, <-> and ~>`)

  const edges: PlacedEdge[] = []
  arrows.forEach((arrow, index) => {
    const [left, right] = [groups[index] ?? [], groups[index + 1] ?? []]
    edges.push(...cross(left, right, arrow === '~>', where))
    if (arrow === '<->') edges.push(...cross(right, left, false, where))
  })
  return { edges, problems: [] }
}

function cross(left: readonly string[], right: readonly string[], notify: boolean, where: string): PlacedEdge[] {
  return left.flatMap((from) => right.map((to) => (notify ? { from, to, notify, where } : { from, to, where })))
}

function readEdge(flow: unknown, at: string): Flows {
  const { from, to, notify, ...rest } = (typeof flow === 'object' && flow !== null ? flow : {}) as Record<string, unknown>
  if (
    typeof from !== 'string' ||
    typeof to !== 'string' ||
    (notify !== undefined && typeof notify !== 'boolean') ||
    Object.keys(rest).length > 0
  ) {
    const message = "this is no flow; write 'A -> B' or { from: 'A', to: 'B' }, with notify: true if nobody waits for the answer"
    return { edges: [], problems: [{ code: 'BAD_FLOW', where: at, message }] }
  }
  const edge: Edge = notify === true ? { from, to, notify } : { from, to }
  return { edges: [{ ...edge, where: `${from} ${notify === true ? '~>' : '->'} ${to}` }], problems: [] }
}
