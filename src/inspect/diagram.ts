import { type Definition, type GraphInternals, internalsOf, type StepCode, type TopologyInternals } from '../define/definition.js'
import { needOf } from '../kernel/join.js'
import type { AgentShape, StepShape } from '../kernel/shape.js'
import { joinedBy } from '../kernel/validate.js'
import { durationText } from './duration-text.js'

/** A place in a definition. */
export interface DiagramNode {
  readonly id: string
  readonly kind: 'start' | 'end' | 'user' | 'agent' | 'step' | 'ask' | 'child'
  /** Why branches, or the steps before it, meet here; null: they don't. */
  readonly meets: string | null
  /** What else it does that is not seen from its edges. */
  readonly notes: readonly string[]
}

/** Who may call whom, or what comes after what. `both`: the other way as well. */
export interface DiagramEdge {
  readonly from: string
  readonly to: string
  readonly notify: boolean
  readonly both: boolean
}

/** A definition as it can be drawn. */
export interface Diagram {
  readonly kind: 'topology' | 'graph'
  readonly name: string
  readonly version: string
  /** In declared order; `Start` first, `User` and `End` last. */
  readonly nodes: readonly DiagramNode[]
  readonly edges: readonly DiagramEdge[]
  /** What is worth knowing about it. */
  readonly hints: readonly string[]
}

/** Makes the diagram of a topology or a graph. */
export function diagramOf(definition: Definition): Diagram {
  const internals = internalsOf(definition)
  const drawn = internals.kind === 'topology' ? ofTopology(internals) : ofGraph(internals)
  const hints = definition.hints.map(({ where, message }) => `${where}: ${message}`)
  return { kind: internals.kind, name: definition.name, version: definition.version, ...drawn, hints }
}

type Drawn = Pick<Diagram, 'nodes' | 'edges'>

function ofTopology(internals: TopologyInternals): Drawn {
  const { shape } = internals
  const used = new Set(shape.edges.flatMap(({ from, to }) => [from, to]))
  const place = (id: string, kind: DiagramNode['kind']): DiagramNode[] => (used.has(id) ? [{ id, kind, meets: null, notes: [] }] : [])
  return {
    nodes: [
      ...place('Start', 'start'),
      ...shape.nodes.map((id) => agentNode(id, internals)),
      ...place('User', 'user'),
      ...place('End', 'end'),
    ],
    edges: paired(shape.edges),
  }
}

function agentNode(id: string, { shape, joins, agents }: TopologyInternals): DiagramNode {
  const reasons = joins.filter(({ node }) => node === id).map(({ where }) => reasonOf(where, joinedBy(shape.edges, id)))
  const treated = shape.agents[id]
  const isModel = agents[id]?.act === null
  const tools = Object.keys(agents[id]?.options.tools ?? {})
  const notes = [
    ...(isModel ? ['a language model'] : []),
    ...(tools.length === 0 ? [] : [`tools: ${listed(tools)}`]),
    // Calls of models are repeated by themselves; only code says how often it may be.
    ...(isModel ? [] : attemptsOf(treated)),
    ...timeOf(treated),
    ...(treated?.compensates === true || treated?.toolsCompensate === true ? ['can be undone'] : []),
  ]
  const meets = reasons.length === 0 ? null : `branches meet here: ${[...new Set(reasons)].join('; ')}`
  return { id, kind: 'agent', meets, notes }
}

const attemptsOf = (treated: AgentShape | undefined): string[] =>
  treated === undefined || treated.retry.attempts <= 1 ? [] : [`up to ${treated.retry.attempts} attempts`]

/** How long an attempt may take. */
const timeOf = (treated: AgentShape | undefined): string[] =>
  treated === undefined || treated.timeoutMs === null ? [] : [`at most ${durationText(treated.timeoutMs)}`]

function reasonOf(where: string, from: readonly string[]): string {
  if (where === "joins: 'auto'") return `${listed(from)} lead to it (joins: 'auto')`
  return where === 'joins' ? 'it is named in `joins`' : `the rule ${where}`
}

/** Two edges that lead to and fro are one with two ends. */
function paired(edges: TopologyInternals['shape']['edges']): DiagramEdge[] {
  const key = (from: string, to: string): string => JSON.stringify([from, to])
  const calls = new Set(edges.filter(({ notify }) => notify !== true).map(({ from, to }) => key(from, to)))
  const done = new Set<string>()
  return edges.flatMap(({ from, to, notify = false }): DiagramEdge[] => {
    const both = !notify && from !== to && calls.has(key(to, from))
    if (both && done.has(key(to, from))) return []
    done.add(key(from, to))
    return [{ from, to, notify, both }]
  })
}

function ofGraph({ shape, steps }: GraphInternals): Drawn {
  return {
    nodes: shape.steps.map((step) => stepNode(step, steps[step.id], shape.agents[step.id])),
    edges: shape.steps.flatMap(({ id, after }) => after.map((from) => ({ from, to: id, notify: false, both: false }))),
  }
}

function stepNode(step: StepShape, code: StepCode | undefined, treated: AgentShape | undefined): DiagramNode {
  const { onError } = step
  const notes = [
    ...(step.kind === 'ask' ? [`asks a person${step.expiresMs === null ? '' : `, for ${durationText(step.expiresMs)}`}`] : []),
    ...(code?.kind === 'child' ? [`runs ${code.child.name}`] : []),
    ...(step.hasEach ? [`for each item${step.concurrency === null ? '' : `, ${step.concurrency} at once`}`] : []),
    ...(step.hasWhen ? ['only when its condition holds'] : []),
    ...attemptsOf(treated),
    ...timeOf(treated),
    ...(onError === 'fail' ? [] : [typeof onError === 'object' ? 'on error: a fallback' : `on error: ${onError}`]),
    ...(step.compensates ? ['can be undone'] : []),
  ]
  const kind = step.kind === 'run' ? 'step' : step.kind
  return { id: step.id, kind, meets: gateReason(step), notes }
}

/** What a step waits for, if that is more than one. */
function gateReason({ after, join }: StepShape): string | null {
  if (after.length < 2) return null
  if (join.policy === 'settled') return `starts when ${listed(after)} have settled, well or not`
  const need = needOf(join.policy, after.length)
  return need === after.length ? `starts after ${listed(after)}` : `starts after ${need} of ${listed(after)}`
}

function listed(names: readonly string[]): string {
  if (names.length > 4) return `${names.slice(0, 3).join(', ')} and ${names.length - 3} others`
  return names.length < 2 ? names.join() : `${names.slice(0, -1).join(', ')} and ${names.at(-1)}`
}
