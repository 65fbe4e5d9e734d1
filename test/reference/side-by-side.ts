/**
 * Plays the same moves on the reference and on the kernel, and compares after each what is owed, aborting, asked and armed, and in the
 * end what came out. Wording is left out: codes, places and causes must agree, texts need not.
 */
import type { Action } from '../../src/kernel/action.js'
import type { Command } from '../../src/kernel/command.js'
import { decide } from '../../src/kernel/decide.js'
import type { Event } from '../../src/kernel/event.js'
import { evolve } from '../../src/kernel/evolve.js'
import { attemptId } from '../../src/kernel/ids.js'
import { checkStep } from '../../src/kernel/invariants.js'
import type { Code, TopologyShape } from '../../src/kernel/shape.js'
import { defaultLimits } from '../../src/kernel/shape.js'
import type { State } from '../../src/kernel/state.js'
import { branchOf, newState, waitingAgent } from '../../src/kernel/state.js'
import type { Owed, RefAction, RefTopology } from './model.js'
import { canonical, Reference } from './model.js'
import { Random, sample } from './random.js'
import type { Game, Strategy } from './search.js'
import { movesOf, steeringOf, strategyOf } from './search.js'

export function shapeOf(topology: RefTopology): { shape: TopologyShape; code: Code } {
  const merge = topology.merge ?? {}
  const agents = topology.nodes.map((name) => {
    const { maxRejections = 2, attempts = 1 } = topology.agents?.[name] ?? {}
    const retry = { attempts, backoffMs: 0, factor: 2, maxBackoffMs: 30_000 }
    return [
      name,
      { takes: ['request', 'merged', 'join', 'answer', 'expired', 'feedback'] as const, maxRejections, retry, timeoutMs: null },
    ] as const
  })
  return {
    shape: {
      kind: 'topology',
      name: 'random',
      version: '1',
      digest: '',
      nodes: topology.nodes,
      edges: topology.edges,
      joins: topology.joins,
      agents: Object.fromEntries(agents),
      limits: { ...defaultLimits, ...topology.limits },
      merge: Object.fromEntries(Object.entries(merge).map(([key, how]) => [key, typeof how === 'function' ? 'function' : how])),
      result: topology.result,
    },
    code: { merge: Object.fromEntries(Object.entries(merge).filter(([, how]) => typeof how === 'function')) as Code['merge'] },
  }
}

export type Decide = typeof decide

/** The kernel, or a copy of it with a fault planted, driven by the moves of the reference. */
class Kernel {
  state: State = newState
  journal: Event[] = []
  readonly #code: Code
  readonly #decide: Decide
  #at = 0

  constructor(topology: RefTopology, input: unknown, decides: Decide) {
    this.#decide = decides
    const { shape, code } = shapeOf(topology)
    this.#code = code
    const state = topology.state === undefined ? {} : { state: topology.state }
    this.do({ type: 'run.start', runId: 'run', nonce: 'n', shape, input, tags: {}, ...state })
  }

  do(command: Command): void {
    const decision = this.#decide(this.state, command, this.#at, this.#code)
    if ('refusal' in decision) throw new Error(`${command.type} is refused: ${decision.refusal.code}: ${decision.refusal.message}`)
    const violations = this.#decide === decide ? checkStep(this.state, decision.events, evolve) : []
    if (violations.length > 0) throw new Error(`after ${command.type}: ${JSON.stringify(violations)}`)
    this.state = decision.state
    this.journal.push(...decision.events)
  }

  act(branch: string, action: RefAction): void {
    const speaker = this.state.turns.get(branch)
    if (speaker === undefined) throw new Error(`no turn of ${branch} is owed`)
    const error = { code: 'AGENT_FAILED', message: 'error' in action ? action.error : '', retryable: false, at: {} } as const
    if (action.type === 'throw') this.do({ type: 'turn.fail', ...speaker, error, retryable: true })
    else this.do({ type: 'turn.complete', ...speaker, action: action.type === 'fail' ? { type: 'fail', error } : (action as Action) })
  }

  /** A run that is being closed refuses it; the reference does nothing then. */
  cancel(): void {
    if (!this.state.closing) this.do({ type: 'run.cancel' })
  }

  /** A run that is being closed refuses it; the reference has nothing left to start then. */
  pause(): void {
    if (!this.state.closing) this.do({ type: 'run.pause' })
  }

  resume(): void {
    if (this.state.pausedAt !== null) this.do({ type: 'run.resume' })
  }

  fire(id: string): void {
    this.#at = Math.max(this.#at, this.state.timers.get(id)?.due ?? 0)
    this.do({ type: 'timer.fire', timer: id })
  }

  settle(id: string): void {
    const attempt = this.state.aborting.get(id)
    if (attempt === undefined) throw new Error(`${id} is not aborting`)
    this.do({ type: 'turn.settle', ...attempt, how: 'ended' })
  }

  owed(): unknown[] {
    return [...this.state.turns.values()]
      .map(({ branch: id, agent, turn, attempt }) => {
        const branch = branchOf(this.state, id)
        const { message, state, requests } = branch
        return { branch: id, agent, turn, attempt, message, waiting: waitingAgent(this.state, branch), state, requests }
      })
      .sort((a, b) => (a.branch < b.branch ? -1 : 1))
  }

  outcome(): unknown {
    const last = this.journal.at(-1)
    if (last?.type === 'run.succeeded') return { status: 'succeeded', output: last.output }
    if (last?.type === 'run.failed') return { status: 'failed', error: last.error }
    return last?.type === 'run.cancelled' ? { status: 'cancelled' } : null
  }
}

/** Without the wording, and without what only one of the two writes down. */
function bare(value: unknown): unknown {
  if (Array.isArray(value)) return value.map((item) => bare(item) ?? null)
  if (typeof value !== 'object' || value === null) return value
  const record = value as Record<string, unknown>
  const isFailure = 'code' in record && 'at' in record
  return Object.fromEntries(
    Object.entries(record)
      .filter(
        ([key, item]) =>
          item !== undefined && item !== null && !(isFailure && ['message', 'data', 'branch', 'agent'].includes(key)) && key !== 'problem',
      )
      .map(([key, item]) => [key, bare(item)]),
  )
}

function outcomeOf(run: Reference): unknown {
  const outcome = run.outcome()
  return outcome === null ? null : { status: outcome.status, output: outcome.output, error: outcome.error }
}

const same = (a: unknown, b: unknown): boolean => canonical(bare(a)) === canonical(bare(b))

function compared(run: Reference, kernel: Kernel): string | null {
  const owed = run.owed().sort((a: Owed, b: Owed) => (a.branch < b.branch ? -1 : 1))
  const pairs: readonly (readonly [string, unknown, unknown])[] = [
    ['owed', owed, kernel.owed()],
    ['aborting', run.aborting().sort(), [...kernel.state.aborting.values()].map((a) => attemptId(a.branch, a.turn, a.attempt)).sort()],
    [
      'asks',
      run
        .asks()
        .map(({ id }) => id)
        .sort(),
      [...kernel.state.asks.keys()].sort(),
    ],
    [
      'timers',
      run
        .timers()
        .map(({ id }) => id)
        .sort(),
      [...kernel.state.timers.keys()].sort(),
    ],
    ['outcome', outcomeOf(run), kernel.outcome()],
  ]
  const different = pairs.find(([, expected, got]) => !same(expected, got))
  return different === undefined
    ? null
    : `${different[0]}\nreference: ${canonical(bare(different[1]))}\nkernel:    ${canonical(bare(different[2]))}`
}

/** Plays one order on both; what differs first, or null. */
export function playBoth(game: Game, choose: Strategy, decides: Decide = decide): string | null {
  const run = new Reference(game.topology, game.input)
  const kernel = new Kernel(game.topology, game.input, decides)
  const order: string[] = []
  const steering = steeringOf(run)
  for (let step = 0; step < 1_500; step++) {
    const difference = compared(run, kernel)
    if (difference !== null) return `after ${order.join(', ')}\n${difference}`
    if (run.outcome() !== null) return null
    const moves = movesOf(run, game)
    const move = choose(moves, step, steering)
    order.push(move.id)
    const [, id = ''] = move.id.split(' ')
    const owed = run.owed().find(({ branch, turn, attempt }) => `${branch}/${turn}/${attempt}` === id)
    const action = move.kind === 'act' && owed !== undefined ? game.act(owed) : null
    const ask = run.asks().find((open) => open.id === id)
    move.make()
    if (action !== null && owed !== undefined) kernel.act(owed.branch, action)
    else if (move.kind === 'fire') kernel.fire(id)
    else if (move.kind === 'settle') kernel.settle(id)
    else if (move.kind === 'cancel') kernel.cancel()
    else if (move.kind === 'pause') kernel.pause()
    else if (move.kind === 'resume') kernel.resume()
    else if (ask !== undefined) kernel.do({ type: 'ask.answer', askId: id, value: game.answer(ask) ?? null })
  }
  return 'the run does not end'
}

/** One random topology in some random orders on both; what differs first, or null. */
export function difference(seed: number, orders: number, decides?: Decide): string | null {
  const game = sample(seed)
  const random = new Random(seed * 7 + 1)
  for (let order = 0; order < orders; order++) {
    const found = playBoth(game, strategyOf(random, order, []), decides)
    if (found !== null) return `order ${order}: ${found}`
  }
  return null
}
