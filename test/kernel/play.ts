/**
 * Plays runs on the bare kernel, with no clock and no promise: what is owed is completed in an order that the test chooses.
 *
 * 1. After every step the invariants hold, and the journal, read back from JSON and folded from its start, gives the same state.
 * 2. The same command decided on that folded state gives the same events: a process that recovers decides as the first one did.
 * 3. A completion that was decided is refused the second time, and so is one of an attempt that was aborted.
 * 4. For equal choices every order reports the same (KERNEL §12).
 */
import type { TopologyInternals } from '../../src/define/definition.js'
import { internalsOf } from '../../src/define/definition.js'
import { readFlows } from '../../src/define/flows.js'
import type { Limits } from '../../src/define/limits.js'
import type { Retry } from '../../src/define/retry.js'
import { topology } from '../../src/define/topology.js'
import type { BranchState } from '../../src/kernel/action.js'
import type { Command, RefusalCode, Speaker } from '../../src/kernel/command.js'
import type { Decision } from '../../src/kernel/decide.js'
import { loadState, saveState } from '../../src/kernel/snapshot.js'
import { decide } from '../../src/kernel/decide.js'
import type { Event } from '../../src/kernel/event.js'
import { evolve } from '../../src/kernel/evolve.js'
import { attemptId, compareIds } from '../../src/kernel/ids.js'
import { checkStep, InvariantError } from '../../src/kernel/invariants.js'
import type { MessageKind } from '../../src/kernel/message.js'
import type { Code, TopologyShape } from '../../src/kernel/shape.js'
import { reserved } from '../../src/kernel/shape.js'
import type { Attempt, OpenAsk, State, Timer } from '../../src/kernel/state.js'
import { attemptsOf, branchOf, isOver, newState, requestsOf, shapeOf, waitingAgent } from '../../src/kernel/state.js'
import type { Act, Made, TestTurn } from './acts.js'
import { digest, dump, dumpTimeless, situationOf } from './dump.js'
import type { Result } from './outcome.js'
import { reportedOf, resultOf } from './outcome.js'

/** An agent with what its topology says of it. `takes`: it has handlers for these only. */
export interface TestAgent {
  readonly act: Act
  readonly takes?: readonly MessageKind[]
  readonly retry?: Retry
  readonly maxRejections?: number
}

export interface TopologyOptions {
  readonly joins?: 'auto' | readonly string[]
  readonly limits?: Limits
  readonly rules?: readonly string[]
  readonly state?: (input: unknown) => BranchState
  readonly merge?: Readonly<Record<string, 'mine' | 'last' | ((base: never, changed: readonly never[]) => unknown)>>
  readonly result?: 'list' | ((finishes: readonly { by: string; branch: string; output: unknown }[]) => unknown)
  readonly agents?: Readonly<Record<string, Omit<TestAgent, 'act'>>>
}

export interface TestTopology {
  readonly shape: TopologyShape
  readonly code: Code
  readonly state?: (input: unknown) => unknown
}

/** The kernel's data of a topology, made as a user makes it. Agents are those that the flows name, in that order. */
export function topologyOf(flows: readonly string[], options: TopologyOptions = {}): TestTopology {
  const { agents = {}, ...rest } = options
  const { edges } = readFlows(flows)
  const names = new Set(edges.flatMap(({ from, to }) => [from, to]).filter((name) => !reserved.includes(name)))
  const idle = (): never => {
    throw new Error('agents of these tests are called by the test')
  }
  const team = [...names].map((name) => {
    const { takes, ...spec } = agents[name] ?? {}
    const act = takes === undefined ? idle : Object.fromEntries(takes.map((kind) => [kind, idle]))
    return [name, { ...spec, act }]
  })
  const made = topology({ name: 'play', flows, ...rest, agents: Object.fromEntries(team) } as never)
  const { shape, code, state } = internalsOf(made) as TopologyInternals
  return { shape, code, ...(state === undefined ? {} : { state }) }
}

/** A topology, what its agents do, and what else may happen to a run of it. */
export interface Play extends TestTopology {
  readonly acts: Readonly<Record<string, Act>>
  readonly input?: unknown
  readonly nonce?: string
  /** What a person might answer: each is tried. None: the ask stays open. */
  readonly answers?: (ask: OpenAsk) => readonly unknown[]
  /** Which timers may fire; all but the run's own, if not said. */
  readonly timers?: (timer: Timer) => boolean
  /** What else may be asked of the run here. */
  readonly steering?: (at: Node) => readonly Command[]
  /** The kernel; a test may put a broken one in its place. */
  readonly decide?: typeof decide
}

type PlayOptions = Omit<TopologyOptions, 'agents'> & Pick<Play, 'input' | 'nonce' | 'answers' | 'timers' | 'steering'>

/** A play of these flows. */
export function playOf(flows: readonly string[], agents: Readonly<Record<string, Act | TestAgent>>, options: PlayOptions = {}): Play {
  const { input, nonce, answers, timers, steering, ...rest } = options
  const specs: Record<string, Omit<TestAgent, 'act'>> = {}
  const acts: Record<string, Act> = {}
  for (const [name, agent] of Object.entries(agents)) {
    const { act, ...spec }: TestAgent = typeof agent === 'function' ? { act: agent } : agent
    acts[name] = act
    specs[name] = spec
  }
  return {
    ...topologyOf(flows, { ...rest, agents: specs }),
    acts,
    ...(input === undefined ? {} : { input }),
    ...(nonce === undefined ? {} : { nonce }),
    ...(answers === undefined ? {} : { answers }),
    ...(timers === undefined ? {} : { timers }),
    ...(steering === undefined ? {} : { steering }),
  }
}

/** A run somewhere on its way: the state as it was decided, the same folded from JSON, and how it came here. */
export interface Node {
  readonly state: State
  readonly folded: State
  readonly journal: readonly Event[]
  readonly schedule: readonly string[]
  readonly facts: readonly string[]
}

/** Something that can happen next. */
export interface Step {
  readonly label: string
  readonly command: Command
  readonly at: number
}

const unstarted: Node = { state: newState, folded: newState, journal: [], schedule: [], facts: [] }

/** A run that has just started. */
export function begin(play: Play): Node {
  const { shape, input, nonce = 'nonce' } = play
  const state = play.state?.(input) as BranchState | undefined
  const command: Command = {
    type: 'run.start',
    runId: 'run',
    nonce,
    shape,
    tags: {},
    ...(input === undefined ? {} : { input }),
    ...(state === undefined ? {} : { state: Object.freeze(state) }),
  }
  return take(play, unstarted, { label: 'start', command, at: 1_000 })
}

/** Decides a command and checks what the decision must keep; a refusal is a failure of the test. */
export function take(play: Play, from: Node, { label, command, at }: Step): Node {
  const schedule = [...from.schedule, label]
  return named(schedule, () => {
    const decision = (play.decide ?? decide)(from.state, command, at, play.code)
    if ('refusal' in decision) throw new Error(`${decision.refusal.code}: ${decision.refusal.message}`)
    const violations = checkStep(from.state, decision.events, evolve)
    if (violations.length > 0) throw new InvariantError(violations)
    const events = JSON.parse(JSON.stringify(decision.events)) as Event[]
    if (play.decide === undefined) {
      sameAgain(decision, decide(from.folded, command, at, play.code))
      if (from.state.run !== null && from.state.branches.size <= 5)
        sameAgain(decision, decide(reloaded(from.state), command, at, play.code))
    }
    const folded = events.reduce(evolve, from.folded)
    if (dump(folded) !== dump(decision.state))
      throw new Error(`the journal folds to another state:\n${dump(folded)}\n${dump(decision.state)}`)
    if (isCompletion(command)) expectRefusal(play, decision.state, command, 'STALE_ATTEMPT', at)
    const facts = decision.events.length === 0 ? from.facts : [...from.facts, ...events.map((event) => digest(dumpTimeless(event)))]
    return { state: decision.state, folded, journal: [...from.journal, ...decision.events], schedule, facts }
  })
}

/** A state as whoever goes on with a run after a snapshot has it. */
const reloaded = (state: State): State => loadState(JSON.parse(JSON.stringify(saveState(state))))

function sameAgain(first: Exclude<Decision, { refusal: unknown }>, second: Decision): void {
  const events = 'refusal' in second ? second.refusal : second.events
  if (JSON.stringify(events) !== JSON.stringify(first.events))
    throw new Error(`decided again on the folded state:\n${JSON.stringify(events)}\ninstead of\n${JSON.stringify(first.events)}`)
}

const isCompletion = ({ type }: Command): boolean =>
  type === 'turn.complete' || type === 'turn.fail' || type === 'turn.reject' || type === 'turn.settle'

/** A refused command gives its code and changes nothing: there are no events. */
export function refusalOf(play: Play, state: State, command: Command, at: number = state.at): RefusalCode | null {
  const decision = decide(state, command, at, play.code)
  return 'refusal' in decision ? decision.refusal.code : null
}

function expectRefusal(play: Play, state: State, command: Command, code: RefusalCode, at: number): void {
  const got = refusalOf(play, state, command, at)
  if (got !== code) throw new Error(`${command.type} was to be refused with ${code}, not ${got ?? 'accepted'}`)
}

/** Puts the order in which a check failed into its error. */
function named<T>(schedule: readonly string[], body: () => T): T {
  try {
    return body()
  } catch (error) {
    if (error instanceof Error && !error.message.includes('in the order:')) error.message += `\nin the order: ${schedule.join(', ')}`
    throw error
  }
}

/** Everything that can happen next. */
export function stepsOf(play: Play, node: Node): Step[] {
  const { state } = node
  if (isOver(state)) return []
  const steps: Step[] = []
  for (const attempt of inOrder(attemptsOf(state), (item) => item.branch)) {
    const command = completionOf(play, state, attempt)
    if (command !== null) steps.push({ label: labelOf(attempt), command, at: state.at })
  }
  for (const attempt of inOrder(state.aborting.values(), (item) => attemptId(item.branch, item.turn, item.attempt)))
    steps.push(settling(play, node, attempt))
  if (state.pausedAt === null)
    for (const timer of inOrder(state.timers.values(), (item) => item.id))
      if (play.timers?.(timer) ?? timer.kind !== 'run') steps.push(firing(state, timer))
  for (const ask of inOrder(state.asks.values(), (item) => item.id))
    for (const value of play.answers?.(ask) ?? [])
      steps.push({
        label: `answer ${ask.id} ${JSON.stringify(value)}`,
        command: { type: 'ask.answer', askId: ask.id, value },
        at: state.at,
      })
  for (const command of play.steering?.(node) ?? []) steps.push({ label: command.type, command, at: state.at })
  return steps
}

const inOrder = <T>(items: Iterable<T>, id: (item: T) => string): T[] => [...items].sort((a, b) => compareIds(id(a), id(b)))

const labelOf = ({ agent, branch, turn, attempt }: Attempt): string => `${agent} ${branch}/${turn}${attempt > 1 ? `/${attempt}` : ''}`

const speakerOf = ({ branch, agent, turn, attempt }: Attempt): Speaker => ({ branch, agent, turn, attempt })

/** A timer fires when it is due: the clock goes there, and no further. */
export function firing(state: State, { id, due }: Timer): Step {
  return { label: `timer ${id}`, command: { type: 'timer.fire', timer: id }, at: Math.max(state.at, due + state.pausedMs) }
}

function settling(play: Play, node: Node, attempt: Attempt): Step {
  const label = `settle ${labelOf(attempt)}`
  const late: Command = { type: 'turn.complete', ...speakerOf(attempt), action: { type: 'finish', output: 'too late' } }
  named([...node.schedule, label], () => expectRefusal(play, node.state, late, 'STALE_ATTEMPT', node.state.at))
  return { label, command: { type: 'turn.settle', ...speakerOf(attempt), how: 'ended' }, at: node.state.at }
}

/** What an owed turn comes to, or null if it hangs. */
export function completionOf(play: Play, state: State, attempt: Attempt): Command | null {
  const act = play.acts[attempt.agent]
  if (act === undefined) throw new Error(`the play says nothing of ${attempt.agent}`)
  const speaker = speakerOf(attempt)
  const made: Made = act(turnOf(state, attempt))
  if ('type' in made) return { type: 'turn.complete', ...speaker, action: made }
  if ('hangs' in made) return null
  if ('unacceptable' in made) return { type: 'turn.reject', ...speaker, problem: made.unacceptable }
  const timedOut = 'timesOut' in made
  const message = 'timesOut' in made ? made.timesOut : made.throw
  const retryable = 'timesOut' in made ? true : (made.retryable ?? true)
  const error = { code: timedOut ? ('TIMEOUT' as const) : ('AGENT_FAILED' as const), message, retryable, at: {} }
  return { type: 'turn.fail', ...speaker, error, retryable, ...(timedOut && { timedOut }) }
}

function turnOf(state: State, { agent, branch: id, turn, attempt }: Attempt): TestTurn {
  const branch = branchOf(state, id)
  if (branch.message.kind === 'step') throw new Error('this plays topologies')
  return {
    agent,
    branch: id,
    turn,
    attempt,
    message: branch.message,
    request: requestsOf(branch)[0]?.value,
    requests: requestsOf(branch),
    state: branch.state,
    waiting: waitingAgent(state, branch),
    targets: shapeOf(state).edges.flatMap((edge) => (edge.from === agent ? [edge.to] : [])),
  }
}

/** Takes the one step whose label begins like this. */
export function go(play: Play, node: Node, ...labels: readonly string[]): Node {
  let at = node
  for (const label of labels) {
    const steps = stepsOf(play, at)
    const found = steps.filter((step) => `${step.label} `.startsWith(`${label} `) || step.label === label)
    const [step] = found
    if (step === undefined || found.length > 1)
      throw new Error(`${found.length} steps are called '${label}' of: ${steps.map((each) => each.label).join(', ')}`)
    at = take(play, at, step)
  }
  return at
}

/** Asks something of a run, at a time if that matters. */
export function submit(play: Play, node: Node, command: Command, at: number = node.state.at): Node {
  return take(play, node, { label: command.type, command, at })
}

/** Takes what is to be done first, in the order of branches, until nothing is. */
export function toEnd(play: Play, node: Node = begin(play)): Result {
  let at = node
  for (let steps = stepsOf(play, at); steps[0] !== undefined; steps = stepsOf(play, at)) at = take(play, at, steps[0])
  return endOf(at)
}

function endOf({ state, journal, schedule }: Node): Result {
  const again = (JSON.parse(JSON.stringify(journal)) as Event[]).reduce(evolve, newState)
  return named(schedule, () => {
    if (dump(again) !== dump(state)) throw new Error('the whole journal folds to another state')
    if (!isOver(state) && state.asks.size === 0 && state.running === 0 && state.pausedAt === null)
      throw new Error('the run is not over, and nothing can happen')
    return resultOf(state, journal, schedule)
  })
}

/** What was explored: how many orders there are, in how many different states they pass, how many different ends they have. */
export interface Explored {
  readonly orders: number
  readonly states: number
  readonly ends: number
}

/** Holds that for equal choices the report is the same. */
class Reports {
  readonly #seen = new Map<string, { outcome: string; schedule: readonly string[] }>()

  add(result: Result): void {
    const { choices, outcome } = reportedOf(result)
    const before = this.#seen.get(choices)
    if (before === undefined) this.#seen.set(choices, { outcome, schedule: result.schedule })
    else if (before.outcome !== outcome)
      throw new Error(`for equal choices\n${outcome}\nbut\n${before.outcome}\nin the order ${before.schedule.join(', ')}`)
  }
}

/**
 * Every order in which what is owed can be completed, depth first. States are branched from, never replayed. An order that comes to
 * where another has been, with the same things done before, goes on as that one did and is not followed again: `visit` gets every
 * different end, once. More states than `limit` is an error, so that "every" is true.
 */
export function everyOrder(
  play: Play,
  visit: (result: Result) => void,
  options: { readonly limit?: number; readonly onStep?: (node: Node) => void } = {},
): Explored {
  const { limit = 20_000, onStep } = options
  const known = new Map<string, number>()
  const reports = new Reports()
  let ends = 0
  const follow = (node: Node): number => {
    const key = `${digest(situationOf(node.state))} ${digest([...node.facts].sort().join())}`
    const before = known.get(key)
    if (before !== undefined) return before
    if (known.size >= limit) throw new Error(`there are more than ${limit} states; this would not be every order`)
    named(node.schedule, () => onStep?.(node))
    const steps = stepsOf(play, node)
    let orders = 0
    for (const step of steps) orders += follow(take(play, node, step))
    if (steps.length === 0) {
      orders = 1
      ends++
      const result = endOf(node)
      named(node.schedule, () => {
        reports.add(result)
        visit(result)
      })
    }
    known.set(key, orders)
    return orders
  }
  const orders = follow(begin(play))
  return { orders, states: known.size, ends }
}

/** Some orders, drawn from a seed; one that fails names it. */
export function someOrders(play: Play, seed: number, count: number, visit: (result: Result) => void = () => {}): void {
  const random = randomOf(seed)
  const reports = new Reports()
  const start = begin(play)
  for (let i = 0; i < count; i++) {
    let node = start
    try {
      for (let steps = stepsOf(play, node); steps.length > 0; steps = stepsOf(play, node)) {
        const step = steps[Math.floor(random() * steps.length)]
        if (step !== undefined) node = take(play, node, step)
      }
      const result = endOf(node)
      named(node.schedule, () => {
        reports.add(result)
        visit(result)
      })
    } catch (error) {
      if (error instanceof Error) error.message += `\nwith the seed ${seed}, order ${i}`
      throw error
    }
  }
}

/** Numbers in [0, 1) that depend on the seed alone. */
export function randomOf(seed: number): () => number {
  let at = seed >>> 0
  return () => {
    at = (at + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(at ^ (at >>> 15), at | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}
