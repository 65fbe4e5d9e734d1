import type { MessageKind } from './message.js'
import type { Problem } from './problem.js'
import { defaultLimits, type Edge, reserved } from './shape.js'

/** An edge and the place where it was written: the flow string it came from. */
export interface PlacedEdge extends Edge {
  readonly where: string
}

/** A topology as it was written, before anything about it is believed. */
export interface RawTopology {
  /** The agents' names as listed, duplicates included. */
  readonly agents: readonly { readonly name: string; readonly takes: readonly MessageKind[] }[]
  readonly edges: readonly PlacedEdge[]
  readonly joins: readonly { readonly node: string; readonly where: string }[]
  /** null: there is no state. Keys are null when they are only known once there is an input. */
  readonly state: { readonly keys: readonly string[] | null } | null
  readonly mergeKeys: readonly string[]
}

/** What is wrong with a topology, all of it at once, and what is only worth knowing. */
export interface Verdict {
  readonly problems: readonly Problem[]
  readonly hints: readonly Problem[]
}

/** Checks everything about a topology that its data can tell. */
export function validate(raw: RawTopology): Verdict {
  const view = viewOf(raw)
  return {
    problems: [
      ...nameProblems(view),
      ...edgeProblems(view),
      ...memberProblems(view),
      ...reachProblems(view),
      ...joinProblems(view),
      ...stateProblems(raw),
    ],
    hints: [...meetingHints(view), ...handlerHints(view)],
  }
}

/** The nodes at which `joins: 'auto'` merges: more than one incoming edge that is neither a notify edge nor half of a pair. */
export function autoJoins(edges: readonly Edge[]): string[] {
  const count = new Map<string, number>()
  for (const edge of oneWay(edges)) count.set(edge.to, (count.get(edge.to) ?? 0) + 1)
  return [...count].filter(([node, incoming]) => incoming > 1 && !reserved.includes(node)).map(([node]) => node)
}

/** The nodes whose edges make `joins: 'auto'` merge at this one. */
export function joinedBy(edges: readonly Edge[], node: string): string[] {
  return oneWay(edges)
    .filter(({ to }) => to === node)
    .map(({ from }) => from)
}

const longestName = 64
const forbidden: readonly string[] = ['__proto__', 'constructor', 'prototype']

/** Why this can't be the name of an agent, a step or a state key, or null if it can. */
export function nameProblem(name: unknown): string | null {
  if (typeof name !== 'string') return `a name is a string, not ${name === null ? 'null' : typeof name}`
  if (name === '') return 'a name has at least one letter'
  if (name.length > longestName) return `a name has at most ${longestName} characters`
  if (forbidden.includes(name)) return `'${name}' means something to JavaScript itself; choose another name`
  // JavaScript moves keys that look like numbers to the front of a record, which would change the declared order.
  if (/^\p{N}+$/u.test(name)) return `'${name}' is only digits; put a letter in it`
  if (!/^[\p{L}\p{N}_][\p{L}\p{N}\p{M}_-]*$/u.test(name)) return `'${name}' is no identifier; use letters, digits, _ and -`
  return null
}

const wholeLimits: readonly string[] = ['maxTurns', 'maxTurnsPerBranch', 'maxBranches', 'maxDepth', 'maxFanOut', 'concurrency', 'tokens']
const amountLimits: readonly string[] = ['timeoutMs', 'costUsd']

/** All limits that there are. */
export const limitNames: readonly string[] = [...wholeLimits, ...amountLimits]

/** What is wrong with limits, wherever they were given: a limit that is accepted is enforced, so one that can't be is refused. */
export function limitProblems(limits: Readonly<Record<string, unknown>>, where = 'limits'): Problem[] {
  const problems: Problem[] = []
  // One that is inherited holds like any other; beside those that there are, only own ones are meant.
  for (const key of new Set([...Object.keys(limits), ...limitNames])) {
    const value = limits[key]
    if (value === undefined) continue
    const at = `${where}.${key}`
    if (wholeLimits.includes(key)) {
      if (!(Number.isSafeInteger(value) && (value as number) >= 1))
        problems.push({
          code: 'BAD_LIMIT',
          where: at,
          message: `${key} is a whole number of at least 1, not ${shown(value)}; ${withoutIt(key)}`,
        })
    } else if (amountLimits.includes(key)) {
      if (!(typeof value === 'number' && Number.isFinite(value) && value > 0))
        problems.push({
          code: 'BAD_LIMIT',
          where: at,
          message: `${key} is a number above 0, not ${shown(value)}; ${withoutIt(key)}`,
        })
    } else {
      const message = `there is no limit ${shown(key)}${likely(key, limitNames)}; there are ${limitNames.join(', ')}`
      problems.push({ code: 'UNKNOWN_LIMIT', where: at, message })
    }
  }
  return problems
}

/** What there is where a limit is not given. */
function withoutIt(key: string): string {
  const usual: unknown = Object.entries(defaultLimits).find(([name]) => name === key)?.[1]
  return typeof usual === 'number' ? `left out, it is ${usual}` : 'leave it out for no limit'
}

/** The raw topology with what every check needs to look up. */
interface View extends RawTopology {
  readonly names: ReadonlySet<string>
  readonly out: ReadonlyMap<string, readonly PlacedEdge[]>
  readonly into: ReadonlyMap<string, readonly PlacedEdge[]>
}

function viewOf(raw: RawTopology): View {
  const out = new Map<string, PlacedEdge[]>()
  const into = new Map<string, PlacedEdge[]>()
  for (const edge of raw.edges) {
    push(out, edge.from, edge)
    push(into, edge.to, edge)
  }
  return { ...raw, names: new Set(raw.agents.map((agent) => agent.name)), out, into }
}

function nameProblems(view: View): Problem[] {
  const problems: Problem[] = []
  for (const name of view.names) {
    const why = nameProblem(name)
    if (why !== null) problems.push({ code: 'BAD_NAME', where: `agents.${name}`, message: why })
    else if (reserved.includes(name))
      problems.push({
        code: 'RESERVED_NAME',
        where: `agents.${name}`,
        message: `${name} is no agent but a place in every topology; rename the agent`,
      })
  }
  const counted = new Map<string, number>()
  for (const { name } of view.agents) counted.set(name, (counted.get(name) ?? 0) + 1)
  for (const [name, times] of counted)
    if (times > 1)
      problems.push({
        code: 'DUPLICATE_NAME',
        where: `agents.${name}`,
        message: `${times} agents are called ${name}; give each a name of its own`,
      })
  return problems
}

function edgeProblems(view: View): Problem[] {
  const problems: Problem[] = []
  if (!view.out.has('Start'))
    problems.push({ code: 'NO_START', where: 'flows', message: "no edge leaves Start, so nothing would ever run; add 'Start -> <agent>'" })
  const first = new Map<string, PlacedEdge>()
  for (const edge of view.edges) {
    problems.push(...reservedProblems(edge))
    const key = JSON.stringify([edge.from, edge.to])
    const before = first.get(key)
    if (before === undefined) first.set(key, edge)
    else problems.push(duplicateProblem(before, edge))
  }
  return problems
}

function reservedProblems({ from, to, notify, where }: PlacedEdge): Problem[] {
  const problems: Problem[] = []
  if (to === 'Start')
    problems.push({ code: 'EDGE_INTO_START', where, message: `${from} can't lead to Start: a run starts once; lead to an agent instead` })
  if (from === 'End')
    problems.push({ code: 'EDGE_OUT_OF_END', where, message: `End leads nowhere; turn the edge round (${to} -> End) or drop it` })
  if (from === 'User')
    problems.push({
      code: 'EDGE_OUT_OF_USER',
      where,
      message: `a person's answer goes back to the agent that asked; drop the edge User -> ${to}`,
    })
  if (from === 'Start' && to === 'End')
    problems.push({ code: 'START_TO_END', where, message: 'a run needs an agent between Start and End' })
  if (from === 'Start' && to === 'User')
    problems.push({ code: 'START_TO_USER', where, message: 'only an agent can ask a person; put one between Start and User' })
  if (from === 'Start' && notify === true)
    problems.push({ code: 'START_NOTIFIES', where, message: `Start can't notify; write 'Start -> ${to}'` })
  if (from !== 'Start' && notify === true && (to === 'End' || to === 'User'))
    problems.push({ code: 'NOTIFY_RESERVED', where, message: `only agents can be notified; write '${from} -> ${to}'` })
  return problems
}

function duplicateProblem(before: PlacedEdge, edge: PlacedEdge): Problem {
  const written = before.where === edge.where ? '' : ` (it is in '${before.where}' too)`
  const mixed = (before.notify === true) !== (edge.notify === true)
  const message = mixed
    ? `${edge.from} leads to ${edge.to} both with -> and with ~>${written}; keep one, an edge either waits or notifies`
    : `the edge ${arrow(edge)} is there twice${written}; drop one`
  return { code: 'DUPLICATE_EDGE', where: edge.where, message }
}

function memberProblems(view: View): Problem[] {
  const problems: Problem[] = []
  const told = new Set<string>()
  for (const { from, to, where } of view.edges) {
    for (const node of [from, to]) {
      if (reserved.includes(node) || view.names.has(node) || told.has(node)) continue
      told.add(node)
      const why = nameProblem(node)
      if (why === null)
        problems.push({
          code: 'UNKNOWN_NODE',
          where,
          message: `there is no agent ${node}; add it to \`agents\`${likely(node, [...view.names, ...reserved])}`,
        })
      else problems.push({ code: 'BAD_NAME', where, message: why })
    }
  }
  for (const name of view.names)
    if (!reserved.includes(name) && !view.out.has(name) && !view.into.has(name))
      problems.push({
        code: 'AGENT_IN_NO_FLOW',
        where: `agents.${name}`,
        message: `no flow names ${name}; add an edge to it or drop the agent`,
      })
  return problems
}

function reachProblems(view: View): Problem[] {
  const problems: Problem[] = []
  const members = [...view.names].filter((name) => !reserved.includes(name) && (view.out.has(name) || view.into.has(name)))
  const started = walk(view.out, 'Start', (edge) => edge.to)
  if (view.out.has('Start'))
    for (const name of members)
      if (!started.has(name))
        problems.push({ code: 'UNREACHABLE', where: name, message: `no path leads from Start to ${name}; add an edge to it or drop it` })

  // A branch that notified goes on itself, so a notify edge is nobody's way out.
  const waits = (edge: Edge): boolean => edge.notify !== true
  const leaving = new Set([...walk(view.into, 'End', (edge) => edge.from, waits), ...walk(view.into, 'User', (edge) => edge.from, waits)])
  const told = new Set<string>()
  for (const name of members) {
    if (leaving.has(name) || told.has(name)) continue
    const cycle = cycleThrough(view, name)
    if (cycle === null) {
      problems.push({ code: 'NO_WAY_OUT', where: name, message: noWayOut(view, name) })
      continue
    }
    // Whoever waits for one of these is one of these: replies go round, and the outermost can never finish.
    const ring = walk(view.out, name, (edge) => edge.to, waits)
    for (const node of ring) if (walk(view.out, node, (edge) => edge.to, waits).has(name)) told.add(node)
    problems.push({
      code: 'CYCLE_WITHOUT_EXIT',
      where: cycle.join(' -> '),
      message: `these agents can only call each other, so a run among them never ends; add '${name} -> End' or another way out`,
    })
  }
  return problems
}

function noWayOut(view: View, name: string): string {
  const callers = (view.into.get(name) ?? [])
    .filter((edge) => edge.notify !== true && !reserved.includes(edge.from))
    .map((edge) => edge.from)
  const back = callers[0] === undefined ? '' : `, or '${name} -> ${callers[0]}' to answer its caller`
  return `from ${name} no path leads to End, to User or back to an agent that waits for it; add '${name} -> End'${back}`
}

/** The shortest way from a node back to itself over edges that wait, both ends included, or null. */
function cycleThrough(view: View, start: string): string[] | null {
  const cameFrom = new Map<string, string>()
  const todo = [start]
  for (let i = 0; i < todo.length; i++) {
    const node = todo[i] as string
    for (const edge of view.out.get(node) ?? []) {
      if (edge.notify === true) continue
      if (edge.to === start) {
        const path = [start]
        for (let at: string | undefined = node; at !== undefined && at !== start; at = cameFrom.get(at)) path.unshift(at)
        return [start, ...path]
      }
      if (cameFrom.has(edge.to)) continue
      cameFrom.set(edge.to, node)
      todo.push(edge.to)
    }
  }
  return null
}

function joinProblems(view: View): Problem[] {
  const problems: Problem[] = []
  const takes = new Map(view.agents.map((agent) => [agent.name, agent.takes]))
  const told = new Set<string>()
  for (const { node, where } of view.joins) {
    if (reserved.includes(node)) problems.push({ code: 'UNKNOWN_JOIN', where, message: `branches meet at agents, not at ${node}; drop it` })
    else if (!view.names.has(node))
      problems.push({
        code: 'UNKNOWN_JOIN',
        where,
        message: `branches can't meet at ${node}: there is no such agent${likely(node, view.names)}`,
      })
    else if (!told.has(node) && takes.get(node)?.includes('merged') === false)
      problems.push({
        code: 'MERGED_MISSING',
        where: `agents.${node}.act`,
        message: `branches meet at ${node} (${where}), so its handlers need a \`merged\`: it gets the requests of all that met`,
      })
    told.add(node)
  }
  return problems
}

function stateProblems({ state, mergeKeys }: RawTopology): Problem[] {
  if (state === null)
    return mergeKeys.length === 0
      ? []
      : [{ code: 'MERGE_WITHOUT_STATE', where: 'merge', message: 'there is a merge but no state to merge; add `state` or drop `merge`' }]
  if (state.keys === null)
    return mergeKeys.length > 0
      ? []
      : [
          {
            code: 'STATE_WITHOUT_MERGE',
            where: 'merge',
            message: "state needs a `merge` for each of its keys: 'mine', 'last' or a function",
          },
        ]
  return state.keys
    .filter((key) => !mergeKeys.includes(key))
    .map((key) => ({
      code: 'STATE_WITHOUT_MERGE',
      where: `merge.${key}`,
      message: `say what a join does with the state's ${shown(key)}: 'mine', 'last' or a function`,
    }))
}

function meetingHints(view: View): Problem[] {
  const named = new Set(view.joins.map((join) => join.node))
  const waits = (edge: Edge): boolean => edge.notify !== true
  const hints: Problem[] = []
  for (const node of autoJoins(view.edges)) {
    if (named.has(node) || !view.names.has(node)) continue
    for (const [caller, edges] of view.out) {
      if (caller === node || edges.filter(waits).length < 2) continue
      // Whoever forked is answered when it is called, so branches meet only on ways that go past it.
      const before = walk(view.into, node, (edge) => edge.from, waits, caller)
      const over = [...new Set(edges.filter((edge) => waits(edge) && edge.to !== node && before.has(edge.to)).map((edge) => edge.to))]
      if (over.length < 2) continue
      hints.push({
        code: 'COULD_MEET',
        where: node,
        message:
          `branches that ${caller} starts at ${listed(over)} could each come to ${node}, which then has a turn for each of them; ` +
          `name it in \`joins: ['${node}']\` if they should meet there and go on as one`,
      })
      break
    }
  }
  return hints
}

function handlerHints(view: View): Problem[] {
  const hints: Problem[] = []
  for (const { name, takes } of view.agents) {
    const edges = view.out.get(name) ?? []
    if (!takes.includes('answer') && edges.some((edge) => edge.to === 'User'))
      hints.push({
        code: 'ASK_WITHOUT_ANSWER',
        where: `agents.${name}.act`,
        message: `${name} has an edge to User but no \`answer\` handler: each of its asks would be rejected`,
      })
    if (!takes.includes('join') && edges.some((edge) => edge.notify === true))
      hints.push({
        code: 'NOTIFY_WITHOUT_JOIN',
        where: `agents.${name}.act`,
        message: `${name} has a notify edge but no \`join\` handler: each of its notifications would be rejected`,
      })
  }
  return hints
}

function listed(names: readonly string[]): string {
  return names.length <= 3 ? names.join(' and ') : `${names.slice(0, 3).join(', ')} and ${names.length - 3} others`
}

/** Edges that are neither notify edges nor half of a pair; one from a node to itself is its own other half. */
function oneWay(edges: readonly Edge[]): Edge[] {
  const waiting = edges.filter((edge) => edge.notify !== true)
  const there = new Set(waiting.map((edge) => JSON.stringify([edge.from, edge.to])))
  return waiting.filter((edge) => !there.has(JSON.stringify([edge.to, edge.from])))
}

/** The nodes that a path of at least one edge joins to `from`, in the direction of `links`. */
function walk(
  links: ReadonlyMap<string, readonly PlacedEdge[]>,
  from: string,
  end: (edge: Edge) => string,
  takes: (edge: Edge) => boolean = () => true,
  avoid?: string,
): Set<string> {
  const seen = new Set<string>()
  const todo = [from]
  for (let node = todo.pop(); node !== undefined; node = todo.pop()) {
    for (const edge of links.get(node) ?? []) {
      const next = end(edge)
      if (seen.has(next) || next === avoid || !takes(edge)) continue
      seen.add(next)
      todo.push(next)
    }
  }
  return seen
}

/** ` (did you mean X?)` for a name that is close to one that exists. */
export function likely(name: string, names: Iterable<string>): string {
  const plain = (text: string): string => text.toLowerCase().replace(/[_-]/g, '')
  for (const other of names)
    if (plain(other) === plain(name) || distanceIsOne(plain(other), plain(name))) return ` (did you mean ${other}?)`
  return ''
}

function distanceIsOne(a: string, b: string): boolean {
  if (a.length > b.length) return distanceIsOne(b, a)
  if (a.length < 3 || b.length - a.length > 1) return false
  let at = 0
  while (at < a.length && a[at] === b[at]) at++
  return a.slice(a.length === b.length ? at + 1 : at) === b.slice(at + 1)
}

function arrow(edge: Edge): string {
  return `${edge.from} ${edge.notify === true ? '~>' : '->'} ${edge.to}`
}

function shown(value: unknown): string {
  if (typeof value === 'string') return `'${value}'`
  return typeof value === 'object' && value !== null ? 'an object' : String(value)
}

function push<V>(map: Map<string, V[]>, key: string, value: V): void {
  const list = map.get(key)
  if (list === undefined) map.set(key, [value])
  else list.push(value)
}
