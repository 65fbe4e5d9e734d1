/**
 * Random topologies and random agents, all of them from one seed.
 *
 * An agent is a pure function of what its turn is shown, so that nothing but the rules can make two orders differ. Requests carry fuel
 * that only shrinks, so that every run ends: with none left an agent replies, finishes or gives up.
 */
import { canonical } from './model.js'
import type { Owed, RefAction, RefActivity, RefJoin, RefMerge, RefPolicy, RefState, RefTopology } from './model.js'

export interface Sample {
  seed: number
  topology: RefTopology
  input: unknown
  act: (owed: Owed) => RefAction
  answer: (ask: { id: string; kind: 'question' | 'join' }) => unknown
  does?: (owed: Owed) => readonly RefActivity[]
  undoFails?: (entry: string) => number
}

/** A seeded source of numbers (mulberry32). */
export class Random {
  #state: number

  constructor(seed: number | string) {
    this.#state = typeof seed === 'number' ? seed >>> 0 : hash(seed)
    this.next()
  }

  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0
    let t = this.#state
    t = Math.imul(t ^ (t >>> 15), t | 1)
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61)
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296
  }

  /** A whole number from 0 to `below` - 1. */
  below(below: number): number {
    return Math.floor(this.next() * below)
  }

  chance(probability: number): boolean {
    return this.next() < probability
  }

  pick<T>(list: readonly T[]): T {
    return list[this.below(list.length)] as T
  }

  /** One of the options, by weight; weights of zero or less are never taken. */
  weighted<T>(options: readonly (readonly [number, T])[]): T {
    const able = options.filter(([weight]) => weight > 0)
    let left = this.next() * able.reduce((sum, [weight]) => sum + weight, 0)
    for (const [weight, option] of able) {
      left -= weight
      if (left < 0) return option
    }
    return (able.at(-1) as readonly [number, T])[1]
  }
}

function hash(text: string): number {
  let a = 0xdeadbeef
  let b = 0x41c6ce57
  for (let i = 0; i < text.length; i++) {
    a = Math.imul(a ^ text.charCodeAt(i), 2654435761)
    b = Math.imul(b ^ text.charCodeAt(i), 1597334677)
  }
  a = Math.imul(a ^ (a >>> 16), 2246822507) ^ Math.imul(b ^ (b >>> 13), 3266489909)
  return a >>> 0
}

interface Edge {
  from: string
  to: string
  notify?: boolean
}

/** The topology, the agents and the people of one seed. */
export function sample(seed: number, more: Partial<Temper> = {}): Sample {
  const random = new Random(`sample ${seed}`)
  const topology = randomTopology(random)
  const temper = { ...randomTemper(random), ...more }
  const input = { v: seed % 1000, fuel: 4 + random.below(4) }
  return {
    seed,
    topology,
    input,
    act: (owed) => randomAction(new Random(`${seed} ${canonical({ ...owed, branch: undefined })}`), topology, temper, owed),
    answer: ({ id, kind }) => {
      const own = new Random(`${seed} answers ${id}`)
      return kind === 'join' ? own.chance(0.6) : own.below(10)
    },
  }
}

/**
 * The same with much to undo. What an undo comes to depends on nothing but the id of its entry: what lies under slots that read
 * cancelled may have been done differently in another order, and an undo that can tell would make of it what no choice says.
 */
export function undoSample(seed: number): Sample {
  const random = new Random(`undo ${seed}`)
  const { topology, act, ...rest } = sample(seed, randomTrouble(random))
  const agents = random.pick([0.2, 0.5, 0.9])
  const compensating = topology.nodes.map((node) => [node, { ...topology.agents?.[node], compensates: random.chance(agents) }] as const)
  const forks = random.pick([0.2, 0.6, 1])
  const activities = random.pick([0, 0.3, 0.6])
  const unknown = random.pick([0, 0, 0.1])
  const failing = random.pick([0, 0, 0.1, 0.3])
  return {
    ...rest,
    topology: { ...topology, agents: Object.fromEntries(compensating) },
    act: (owed) => {
      const action = act(owed)
      return action.type === 'fork' ? { ...action, compensate: new Random(`${seed} ${canonical(action)}`).chance(forks) } : action
    },
    does: ({ branch, turn }) => {
      const own = new Random(`${seed} does ${branch}/${turn}`)
      const count = own.chance(activities) ? 1 + own.below(3) : 0
      return Array.from({ length: count }, (_, index) => ({
        key: `k${index}`,
        compensates: own.chance(0.7),
        outcome: own.chance(unknown) ? ('unknown' as const) : ('done' as const),
      }))
    },
    undoFails: (entry) => {
      const own = new Random(`${seed} undoes ${entry}`)
      return own.chance(failing) ? own.pick([1, 2, 5, 5]) : 0
    },
  }
}

/** Forks within forks whose branches meet, are overtaken, or fail: a plan has something to undo then, and something to hold up. */
function randomTrouble(random: Random): Partial<Temper> {
  const early = random.pick([0.15, 0.6, 0.9])
  const fail = 0.6 * random.next()
  if (random.chance(0.3)) return {}
  if (random.chance(0.4)) return { early, fail, meet: 25 * random.next() }
  return { early, fail, fork: 10 * random.next() + 3, meet: 20 * random.next() + 3, invoke: 1, reply: 1 + random.next(), finish: 0.2 }
}

// Topologies

function randomTopology(random: Random): RefTopology {
  const nodes = ['A', 'B', 'C', 'D', 'E', 'F', 'G'].slice(0, 2 + random.below(6))
  const style = random.weighted([
    [3, 'hub'],
    [5, 'layers'],
    [3, 'any'],
  ] as const)
  const edges: Edge[] = []
  const add = (from: string, to: string, notify = false): void => {
    if (!edges.some((edge) => edge.from === from && edge.to === to)) edges.push(notify ? { from, to, notify } : { from, to })
  }
  add('Start', nodes[0] as string)
  while (random.chance(0.12)) add('Start', random.pick(nodes))
  if (style === 'hub') drawHub(random, nodes, add)
  if (style === 'layers') drawLayers(random, nodes, add)
  const density = style === 'any' ? 0.15 + random.next() * 0.35 : random.next() * 0.2
  for (const from of nodes) for (const to of nodes) if (random.chance(from === to ? 0.04 : density)) add(from, to)
  if (random.chance(0.35)) add(random.pick(nodes), random.pick(nodes), true)
  if (random.chance(0.15)) add(random.pick(nodes), random.pick(nodes), true)
  const ends = random.next() * 0.5
  for (const node of nodes) if (random.chance(ends)) add(node, 'End')
  if (random.chance(0.4)) for (const node of nodes) if (random.chance(0.4)) add(node, 'User')
  mend(random, nodes, edges, add)
  const joins = random.chance(0.15) ? [] : nodes.filter(() => random.chance(0.5))
  const shuffled = random.chance(0.3) ? [...edges].sort((a, b) => (`${a.to}${a.from}` < `${b.to}${b.from}` ? -1 : 1)) : edges
  return { nodes, edges: shuffled, joins, result: random.chance(0.7) ? 'list' : 'one', ...randomExtras(random, nodes) }
}

function drawHub(random: Random, nodes: readonly string[], add: (from: string, to: string) => void): void {
  const hub = nodes[0] as string
  add(hub, 'End')
  for (const node of nodes.slice(1)) {
    if (random.chance(0.8)) add(hub, node)
    if (random.chance(0.7)) add(node, hub)
  }
}

function drawLayers(random: Random, nodes: readonly string[], add: (from: string, to: string) => void): void {
  const layer = new Map(nodes.map((node, index) => [node, index === 0 ? 0 : 1 + random.below(3)]))
  for (const from of nodes) {
    for (const to of nodes) {
      const step = (layer.get(to) as number) - (layer.get(from) as number)
      if (step === 1 ? random.chance(0.8) : step > 1 && random.chance(0.3)) add(from, to)
      if (step < 0 && to === nodes[0] && random.chance(0.6)) add(from, to)
    }
  }
  add(nodes[0] as string, 'End')
}

/** Makes what validation would refuse legal: every node can be reached from Start, and leads to End. */
function mend(random: Random, nodes: readonly string[], edges: readonly Edge[], add: (from: string, to: string) => void): void {
  const closure = (start: string, along: (edge: Edge) => readonly [string, string], over: (edge: Edge) => boolean): Set<string> => {
    const seen = new Set([start])
    for (let size = 0; size !== seen.size; ) {
      size = seen.size
      for (const edge of edges.filter(over)) if (seen.has(along(edge)[0])) seen.add(along(edge)[1])
    }
    return seen
  }
  for (const node of nodes) {
    const reached = closure(
      'Start',
      (edge) => [edge.from, edge.to],
      () => true,
    )
    if (!reached.has(node)) add(random.pick(nodes.filter((candidate) => reached.has(candidate))), node)
  }
  for (const node of nodes) {
    const ending = closure(
      'End',
      (edge) => [edge.to, edge.from],
      (edge) => edge.notify !== true,
    )
    if (!ending.has(node)) add(node, random.pick([...nodes.filter((candidate) => ending.has(candidate)), 'End']))
  }
}

const merges: readonly RefMerge[] = [
  'mine',
  'last',
  (base, changed) => [base, ...changed].map(Number).reduce((sum, value) => (sum * 7 + value) % 1009, 3),
  (_base, changed) => Math.max(...changed.map(Number)),
  (base, changed) => {
    const sum = changed.map(Number).reduce((total, value) => total + value, Number(base))
    if (sum % 5 === 0) throw new Error(`${sum} can't be merged`)
    return sum
  },
]

function randomExtras(random: Random, nodes: readonly string[]): Partial<RefTopology> {
  const extras: Partial<RefTopology> = {}
  if (random.chance(0.45)) {
    const keys = ['x', 'y', 'z'].slice(0, 1 + random.below(3))
    extras.state = Object.fromEntries(keys.map((key) => [key, random.below(5)]))
    extras.merge = Object.fromEntries(keys.map((key) => [key, random.pick(merges)]))
  }
  if (random.chance(0.15)) {
    const limits: NonNullable<RefTopology['limits']> = {}
    if (random.chance(0.3)) limits.maxTurns = 3 + random.below(20)
    if (random.chance(0.25)) limits.maxTurnsPerBranch = 2 + random.below(4)
    if (random.chance(0.3)) limits.maxBranches = 2 + random.below(10)
    if (random.chance(0.25)) limits.maxDepth = 1 + random.below(2)
    if (random.chance(0.25)) limits.maxFanOut = 1 + random.below(3)
    if (random.chance(0.2)) limits.timeoutMs = 1000
    extras.limits = limits
  }
  if (random.chance(0.3)) {
    extras.agents = Object.fromEntries(
      nodes.filter(() => random.chance(0.5)).map((node) => [node, { maxRejections: random.below(4), attempts: 1 + random.below(3) }]),
    )
  }
  return extras
}

// Agents

interface Temper {
  invoke: number
  meet: number
  fork: number
  reply: number
  finish: number
  ask: number
  fail: number
  throw: number
  illegal: number
  timed: number
  early: number
  width: number
}

function randomTemper(random: Random): Temper {
  const often = (usual: number): number => (random.chance(0.2) ? 0 : usual * (0.3 + random.next() * 1.7))
  return {
    invoke: often(3) + 0.5,
    meet: often(25),
    fork: often(2.5) + 0.3,
    reply: often(3) + 0.5,
    finish: often(1) + 0.1,
    ask: often(0.8),
    fail: random.chance(0.4) ? 0 : often(0.3),
    throw: random.chance(0.4) ? 0 : often(0.2),
    illegal: often(0.3),
    timed: random.chance(0.5) ? 0.5 : 0,
    early: random.pick([0, 0.15, 0.6]),
    width: 2 + random.below(3),
  }
}

interface Seen {
  random: Random
  owed: Owed
  targets: readonly { to: string; notify: boolean }[]
  has: (to: string) => boolean
  agents: readonly string[]
  fuel: number
  fresh: boolean
  state: { state?: RefState }
  temper: Temper
}

function randomAction(random: Random, topology: RefTopology, temper: Temper, owed: Owed): RefAction {
  const targets = topology.edges.filter((edge) => edge.from === owed.agent).map(({ to, notify }) => ({ to, notify: notify === true }))
  const fuel = Math.min(...owed.requests.map(({ value }) => fuelOf(value))) - Math.max(0, owed.turn - 1) * 0.5
  const peers = targets.filter(({ to }) => to !== 'End' && to !== 'User')
  const state = topology.state !== undefined && random.chance(0.5) ? { state: change(random, owed.state as RefState) } : {}
  const has = (to: string): boolean => targets.some((target) => target.to === to)
  const canReply = owed.waiting !== null && peers.some(({ to }) => to === owed.waiting)
  const meets = peers.filter(({ to, notify }) => !notify && topology.joins.includes(to) && to !== owed.waiting)
  const tired = fuel <= 0
  const fresh = owed.turn === 1 && owed.waiting === null && owed.message.kind === 'request'
  const seen: Seen = { random, owed, targets: peers, has, agents: topology.nodes, fuel, fresh, state, temper }
  const back = owed.message.kind === 'join' ? 3 : 1
  const onward = tired || peers.length === 0 ? 0 : 1
  const replies = targets.some(({ to, notify }) => to === owed.waiting && notify) && tired ? 0 : 1
  const kind = random.weighted<string>([
    [temper.illegal, 'illegal'],
    [owed.waiting === null && !tired ? 0.02 : temper.fail, 'fail'],
    [owed.waiting === null ? 0.02 : temper.throw, 'throw'],
    [canReply ? temper.reply * back * replies : 0, 'reply'],
    [has('End') && !(fresh && onward > 0) ? temper.finish * (owed.waiting === null ? 2 * back : 1) : 0, 'finish'],
    [meets.length > 0 && !tired ? temper.meet * (owed.waiting === null ? 0.02 : 1) : 0, 'meet'],
    [has('User') && !tired ? temper.ask : 0, 'ask'],
    [temper.invoke * onward, 'invoke'],
    [((fresh ? 20 : temper.fork) / back) * onward, 'fork'],
    [tired ? 0.2 : 0.001, 'fail'],
  ])
  if (kind === 'reply') return { type: 'reply', value: { v: random.below(100) }, ...state }
  if (kind === 'finish') return { type: 'finish', output: { v: random.below(100) } }
  if (kind === 'ask')
    return { type: 'ask', question: random.below(100), ...(random.chance(temper.timed) ? { timeoutMs: 1000 } : {}), ...state }
  if (kind === 'invoke') return { type: 'invoke', to: random.pick(peers).to, request: request(seen), ...state }
  if (kind === 'meet') return { type: 'invoke', to: meeting(random, meets), request: request(seen), ...state }
  if (kind === 'fork') return randomFork(seen)
  if (kind === 'illegal') return randomIllegal(seen)
  return { type: kind === 'throw' ? 'throw' : 'fail', error: `${owed.agent} says ${random.below(100)}` }
}

/** Mostly the first, so that branches do meet. */
function meeting(random: Random, meets: readonly { to: string }[]): string {
  return (random.chance(0.6) ? (meets[0] as { to: string }) : random.pick(meets)).to
}

function fuelOf(value: unknown): number {
  return value !== null && typeof value === 'object' && 'fuel' in value ? Number(value.fuel) : 0
}

function request({ random, fuel }: Seen, spent = 0): unknown {
  return { v: random.below(100), fuel: fuel - 1 - (random.chance(0.3) ? 1 : 0) - spent }
}

function change(random: Random, state: RefState): RefState {
  const changed = Object.keys(state).map((key) => [key, random.chance(0.6) ? random.below(5) : state[key]])
  return Object.fromEntries(changed) as RefState
}

function randomFork(seen: Seen): RefAction {
  const { random, temper, state, fresh } = seen
  const width = random.chance(0.05) ? 0 : Math.max(1 + random.below(temper.width), fresh ? 2 : 0)
  const calls = Array.from({ length: width }, () => ({ to: random.pick(seen.targets).to, request: request(seen, width / 2.5) }))
  const join = randomJoin(random, temper, width)
  return { type: 'fork', calls, ...(join === undefined ? {} : { join }), ...state }
}

function randomJoin(random: Random, temper: Temper, width: number): RefJoin | undefined {
  if (random.chance(0.3 * (1 - temper.early))) return undefined
  const early: RefPolicy[] =
    width === 0
      ? ['all', 'settled', { ratio: 0.5 }]
      : ['any', 'majority', { quorum: 1 + random.below(width) }, { ratio: (1 + random.below(4)) / 4 }]
  const policy = random.chance(temper.early) ? random.pick(early) : random.pick<RefPolicy>(['all', 'all', 'settled'])
  if (random.chance(0.3)) return policy
  const join: Exclude<RefJoin, RefPolicy> = { policy }
  if (random.chance(temper.timed)) join.timeoutMs = 1000
  if (random.chance(0.3)) join.stragglers = policy === 'settled' ? 'wait' : random.chance(temper.early) ? 'cancel' : 'wait'
  if (random.chance(0.5)) join.insufficient = random.pick(['fail', 'resume', 'resume', 'ask'] as const)
  return join
}

function randomIllegal(seen: Seen): RefAction {
  const { random, targets, agents, owed } = seen
  const strangers = agents.filter((agent) => !targets.some(({ to }) => to === agent))
  const stranger = strangers.length === 0 ? 'Nobody' : random.pick(strangers)
  const calls = targets.length === 0 ? [] : [{ to: random.pick(targets).to, request: request(seen) }]
  return random.pick<RefAction>([
    { type: 'invoke', to: stranger, request: request(seen) },
    { type: 'fork', calls: [...calls, { to: stranger }] },
    { type: 'fork', calls, join: { quorum: 2 } },
    { type: 'fork', calls: [], join: 'any' },
    { type: 'fork', calls: [], join: 'majority' },
    { type: 'fork', calls, join: { policy: 'settled', stragglers: 'cancel' } },
    { type: 'fork', calls, join: { ratio: random.pick([0, 1.5, -1]) } },
    {
      type: 'invoke',
      to: calls[0]?.to ?? stranger,
      request: request(seen),
      state: { ...(owed.state as RefState | undefined), unheardOf: 1 },
    },
    ...(owed.waiting === null || !seen.has(owed.waiting) ? [{ type: 'reply' as const, value: 1 }] : []),
    ...(seen.has('End') ? [] : [{ type: 'finish' as const, output: 1 }]),
    ...(seen.has('User') ? [] : [{ type: 'ask' as const, question: 1 }]),
  ])
}
