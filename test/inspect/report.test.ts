import { describe, expect, test } from 'vitest'
import type { Report } from '../../src/inspect/report-data.js'
import { reportMarkdown, reportText } from '../../src/inspect/report-text.js'
import { reportOf } from '../../src/inspect/report.js'
import type { Action, BranchState } from '../../src/kernel/action.js'
import type { Command, Speaker } from '../../src/kernel/command.js'
import { decide } from '../../src/kernel/decide.js'
import type { Event } from '../../src/kernel/event.js'
import type { Failure } from '../../src/kernel/failure.js'
import type { Join } from '../../src/kernel/join.js'
import type { TurnMessage } from '../../src/kernel/message.js'
import type { Halted } from '../../src/kernel/lifecycle.js'
import type { Code, TopologyShape } from '../../src/kernel/shape.js'
import { defaultLimits } from '../../src/kernel/shape.js'
import type { State } from '../../src/kernel/state.js'
import { attemptsOf, branchOf, newState, requestsOf, waitingAgent } from '../../src/kernel/state.js'
import { flows } from '../reference/examples.js'
import type { RefAction, RefTopology } from '../reference/model.js'
import { Random, sample } from '../reference/random.js'

// ── a driver: what may happen next is a list of moves, and an order picks one of them each time ──────────

/** What is owed of an agent, and what it does about it: an action, a throw, or nothing until its time is over. */
interface Owed {
  agent: string
  branch: string
  turn: number
  attempt: number
  message: TurnMessage
}
type Done = Action | { type: 'throw'; error: Failure } | { type: 'late' }

interface Game {
  shape: TopologyShape
  code?: Code
  input?: unknown
  state?: BranchState
  act: (owed: Owed, state: State) => Done
  answer?: (ask: string, kind: 'question' | 'join') => unknown
  /** What people do beside answering. */
  steer?: readonly Command[]
  /** Attempts that may run out of time, although they would have done something. */
  slow?: (owed: Owed) => boolean
  /** Attempts whose agent may not act when they are to begin, and what it may be then. */
  halted?: (owed: Owed) => readonly Halted[]
}

interface Move {
  id: string
  command: Command
  /** Not before. */
  at?: number
}
type Pick = (moves: readonly Move[]) => Move

const failed = (message: string, more: Partial<Failure> = {}): Failure => ({
  code: 'AGENT_FAILED',
  message,
  retryable: false,
  at: {},
  ...more,
})

/** Nothing else of an attempt is shown to agents: when it started depends on the order. */
const speakerOf = ({ branch, agent, turn, attempt }: Speaker): Speaker => ({ branch, agent, turn, attempt })

/** Only the steps of graphs are told anything else. */
const messageOf = (state: State, { branch }: Speaker): TurnMessage => branchOf(state, branch).message as TurnMessage

function movesOf(game: Game, state: State, steered: number): Move[] {
  const moves: Move[] = []
  for (const speaker of attemptsOf(state).map(speakerOf)) {
    const owed = { ...speaker, message: messageOf(state, speaker) }
    const timeout = {
      type: 'turn.fail',
      ...speaker,
      error: failed('too late', { code: 'TIMEOUT' }),
      retryable: true,
      timedOut: true,
    } as const
    const done = game.act(owed, state)
    const id = `${speaker.branch}/${speaker.turn}/${speaker.attempt}`
    if (done.type === 'late' || game.slow?.(owed)) moves.push({ id: `late ${id}`, command: timeout })
    for (const stopped of game.halted?.(owed) ?? []) {
      const error = failed(`the agent is ${stopped}`, { code: 'AGENT_STOPPED' })
      moves.push({ id: `halt ${id} ${stopped}`, command: { type: 'turn.fail', ...speaker, error, retryable: false, stopped } })
    }
    if (done.type === 'throw') moves.push({ id, command: { type: 'turn.fail', ...speaker, error: done.error, retryable: true } })
    else if (done.type !== 'late') moves.push({ id, command: { type: 'turn.complete', ...speaker, action: done } })
  }
  for (const attempt of [...state.aborting.values()].map(speakerOf))
    moves.push({
      id: `settle ${attempt.branch}/${attempt.turn}/${attempt.attempt}`,
      command: { type: 'turn.settle', ...attempt, how: 'ended' },
    })
  for (const ask of state.asks.values())
    if (game.answer && ask.kind !== 'approval')
      moves.push({ id: ask.id, command: { type: 'ask.answer', askId: ask.id, value: game.answer(ask.id, ask.kind) } })
  const isEnding = state.outcome !== null && state.branches.size === 0
  const timers = state.pausedAt === null && !isEnding ? state.timers.values() : []
  for (const { id, due } of timers) moves.push({ id: `time ${id}`, command: { type: 'timer.fire', timer: id }, at: due })
  const next = game.steer?.[steered]
  if (next) moves.push({ id: next.type, command: next })
  return moves
}

/** Plays a run until it is over, or until nothing can happen, or `pick` gives nothing. */
function play(game: Game, pick: (moves: readonly Move[]) => Move | undefined = (moves) => moves[0]): Event[] {
  const events: Event[] = []
  let state = newState
  let steered = 0
  const send = (command: Command, at: number): void => {
    const decision = decide(state, command, at, game.code ?? null)
    if ('refusal' in decision && command === game.steer?.[steered]) return
    if ('refusal' in decision) throw new Error(decision.refusal.message)
    for (const event of decision.events) events.push(event)
    state = decision.state
  }
  const { shape: of, input, state: begin } = game
  const given = { ...(input !== undefined && { input }), ...(begin !== undefined && { state: begin }) }
  send({ type: 'run.start', runId: 'run', nonce: 'n', shape: of, tags: {}, ...given }, 1_000)
  while (state.status === 'running') {
    const moves = movesOf(game, state, steered)
    const move = moves.length === 0 ? undefined : pick(moves)
    if (move === undefined) return events
    send(move.command, Math.max(state.at + 7, (move.at ?? 0) + state.pausedMs))
    if (move.command === game.steer?.[steered]) steered++
  }
  return events
}

/** Every order there is. */
function everyOrder(game: Game): Event[][] {
  const played: Event[][] = []
  const stack: number[][] = [[]]
  for (let prefix = stack.pop(); prefix !== undefined; prefix = stack.pop()) {
    const taken = prefix
    let step = 0
    const pick: Pick = (moves) => {
      const at = step++
      if (at < taken.length) return moves[taken[at] as number] as Move
      const before = [...taken, ...Array<number>(at - taken.length).fill(0)]
      for (let other = 1; other < moves.length; other++) stack.push([...before, other])
      return moves[0] as Move
    }
    played.push(play(game, pick))
    if (played.length > 50_000) throw new Error('too many orders')
  }
  return played
}

/** All of a report that must not depend on the order, as text. */
function bytes(events: readonly Event[]): string {
  const { measured: _, ...rest } = reportOf(events)
  return JSON.stringify(rest)
}

/** What is fixed when reports are compared: the choices, and whether the run was cancelled or crossed a limit, and which. */
function keyOf(events: readonly Event[]): string {
  const closing = events.find((event) => event.type === 'run.closing')
  return JSON.stringify([closing?.cause, closing?.cause === 'limit' && closing.error, reportOf(events).choices])
}

/** Plays every order, sees to it that equal choices give equal reports, and gives one report for each set of choices. */
function reports(game: Game): Report[] {
  const found = new Map<string, { text: string; report: Report }>()
  for (const events of everyOrder(game)) {
    const key = keyOf(events)
    const text = bytes(events)
    const first = found.get(key)
    if (first === undefined) found.set(key, { text, report: reportOf(events) })
    else expect(text).toBe(first.text)
  }
  return [...found.values()].map(({ report }) => report)
}

function shape(texts: readonly string[], more: Partial<TopologyShape> = {}): TopologyShape {
  const { nodes, edges } = flows(...texts)
  const takes = ['request', 'merged', 'join', 'answer', 'expired', 'feedback'] as const
  const retry = { attempts: 1, backoffMs: 0, factor: 1, maxBackoffMs: 0 }
  const agents = Object.fromEntries(nodes.map((node) => [node, { takes, maxRejections: 2, retry, timeoutMs: null }]))
  const fixed = { kind: 'topology', name: 'test', version: '1', digest: 'd' } as const
  return { ...fixed, nodes, edges, joins: [], agents, limits: defaultLimits, merge: {}, result: 'one', ...more }
}

function withRetries(of: TopologyShape, attempts: number): TopologyShape {
  const agents = Object.entries(of.agents).map(([name, agent]) => [name, { ...agent, retry: { ...agent.retry, attempts } }] as const)
  return { ...of, agents: Object.fromEntries(agents) }
}

type Agents = Record<string, (owed: Owed) => Done>
const by =
  (agents: Agents): Game['act'] =>
  (owed) =>
    (agents[owed.agent] as Agents[string])(owed)
const reply = ({ agent }: Owed): Done => ({ type: 'reply', value: agent.toLowerCase() })
const fail = ({ agent }: Owed): Done => ({ type: 'fail', error: failed(`${agent} gives up`) })
const finish = ({ agent }: Owed): Done => ({ type: 'finish', output: agent.toLowerCase() })
const invoke =
  (to: string) =>
  ({ agent }: Owed): Done => ({ type: 'invoke', to, request: agent.toLowerCase() })
const forkThen =
  (to: readonly string[], then: (owed: Owed) => Done, join?: Join) =>
  (owed: Owed): Done =>
    owed.message.kind === 'join'
      ? then(owed)
      : { type: 'fork', calls: to.map((name) => ({ to: name })), ...(join !== undefined && { join }) }

const empty = { agents: [], interactions: [], branches: [], steps: [], detached: [], choices: [] }
const branchesOf = ({ branches }: Report): string[] =>
  branches.map(({ id, agents, turns, status }) => `${id} ${agents.join('>')} ${turns} ${status}`)
const edgesOf = ({ interactions }: Report): string[] =>
  interactions.map(({ branch, turn, from, to, outcome }) => `${branch}/${turn} ${from}>${to} ${outcome}`)
const decidedBy = (all: readonly Report[], slots: readonly number[], kind = 'join'): Report => {
  const found = all.find(({ choices }) => choices.some((choice) => choice.kind === kind && `${choice.decidedBy}` === `${slots}`))
  if (found === undefined) throw new Error(`no order is decided by ${slots}`)
  return found
}

// ── the promises ─────────────────────────────────────────────────────────────────────────────────────────

const secretWord: Game = {
  shape: shape([
    'Start -> Orchestrator',
    'Orchestrator -> AgentA | AgentB | AgentC',
    'AgentA -> Orchestrator',
    'AgentB -> Orchestrator',
    'AgentC -> AgentD',
    'AgentD -> Orchestrator',
    'Orchestrator -> End',
  ]),
  act: by({
    Orchestrator: ({ message }) =>
      message.kind === 'join'
        ? { type: 'finish', output: `The secret word is: ${message.join.values.join('')}` }
        : { type: 'fork', calls: ['AgentA', 'AgentB', 'AgentC'].map((to) => ({ to })) },
    AgentA: () => ({ type: 'invoke', to: 'Orchestrator', request: 'M' }),
    AgentB: () => ({ type: 'invoke', to: 'Orchestrator', request: 'A' }),
    AgentC: () => ({ type: 'invoke', to: 'AgentD', request: 'R' }),
    AgentD: ({ message }) => ({
      type: 'invoke',
      to: 'Orchestrator',
      request: message.kind === 'request' ? `${String(message.value)}S` : '',
    }),
  }),
}

describe('the secret word', () => {
  test('has the same report in every order, byte for byte', () => {
    const texts = everyOrder(secretWord).map(bytes)
    expect(texts.length).toBe(12)
    expect(new Set(texts).size).toBe(1)
  })

  test('is reported as what each agent did and what came of it', () => {
    const { measured: _, ...report } = reportOf(play(secretWord))
    expect(report).toEqual({
      runId: 'run',
      definition: 'test',
      version: '1',
      status: 'succeeded',
      output: 'The secret word is: MARS',
      rollback: 'none',
      notUndone: [],
      agents: ['Orchestrator', 'AgentA', 'AgentB', 'AgentC', 'AgentD'],
      interactions: [
        { branch: 'r', turn: 1, from: 'Orchestrator', to: 'AgentA', outcome: 'arrived' },
        { branch: 'r', turn: 1, from: 'Orchestrator', to: 'AgentB', outcome: 'arrived' },
        { branch: 'r', turn: 1, from: 'Orchestrator', to: 'AgentC', outcome: 'arrived' },
        { branch: 'r', turn: 2, from: 'Orchestrator', to: 'End', request: 'The secret word is: MARS', outcome: 'arrived' },
        { branch: 'r.0', turn: 1, from: 'AgentA', to: 'Orchestrator', request: 'M', outcome: 'arrived' },
        { branch: 'r.1', turn: 1, from: 'AgentB', to: 'Orchestrator', request: 'A', outcome: 'arrived' },
        { branch: 'r.2', turn: 1, from: 'AgentC', to: 'AgentD', request: 'R', outcome: 'arrived' },
        { branch: 'r.2', turn: 2, from: 'AgentD', to: 'Orchestrator', request: 'RS', outcome: 'arrived' },
      ],
      branches: [
        { id: 'r', agents: ['Orchestrator'], turns: 2, status: 'arrived' },
        { id: 'r.0', agents: ['AgentA'], turns: 1, status: 'arrived' },
        { id: 'r.1', agents: ['AgentB'], turns: 1, status: 'arrived' },
        { id: 'r.2', agents: ['AgentC', 'AgentD'], turns: 2, status: 'arrived' },
      ],
      steps: [],
      detached: [],
      choices: [],
    })
  })
})

describe('choices', () => {
  const race = (join: Join, agents: Agents): Report[] =>
    reports({
      shape: shape(['Start -> H -> End', 'H <-> A | B', 'B <-> X', 'B ~> N', 'N -> End']),
      act: by({ H: forkThen(['A', 'B'], finish, join), X: fail, N: fail, ...agents }),
    })

  test('an early join is one, and only the slots that decided it are reported', () => {
    const all = race('any', { A: reply, B: reply })
    expect(all.map(({ choices }) => choices)).toEqual(
      expect.arrayContaining([[{ at: 'r#1', kind: 'join', decidedBy: [0] }], [{ at: 'r#1', kind: 'join', decidedBy: [1] }]]),
    )
    const report = decidedBy(all, [1])
    expect(branchesOf(report)).toEqual(['r H 2 arrived', 'r.0  0 cancelled', 'r.1 B 1 arrived'])
    expect(edgesOf(report)).toEqual(['r/1 H>A cancelled', 'r/1 H>B arrived', 'r/2 H>End arrived', 'r.1/1 B>H arrived'])
    expect(report.agents).toEqual(['H', 'B'])
  })

  test('a slot that does not count reads cancelled even if its branch had failed before', () => {
    const [report, ...others] = race('any', { A: reply, B: fail })
    expect(others).toEqual([])
    expect(branchesOf(report as Report)).toEqual(['r H 2 arrived', 'r.0 A 1 arrived', 'r.1  0 cancelled'])
  })

  test('under a cancelled slot no branch, turn, agent, choice or detached branch is reported, however far it had come', () => {
    const B = ({ message, turn }: Owed): Done => {
      if (message.kind === 'request') return { type: 'invoke', to: 'N' }
      return turn === 2
        ? { type: 'fork', calls: [{ to: 'X' }, { to: 'X' }], join: { policy: 'any', insufficient: 'resume' } }
        : reply({ agent: 'B' } as Owed)
    }
    const all = race('any', { A: reply, B })
    const cancelled = decidedBy(all, [0])
    expect(branchesOf(cancelled)).toEqual(['r H 2 arrived', 'r.0 A 1 arrived', 'r.1  0 cancelled'])
    expect(cancelled.agents).toEqual(['H', 'A'])
    expect(cancelled.detached).toEqual([])
    expect(cancelled.choices).toEqual([{ at: 'r#1', kind: 'join', decidedBy: [0] }])
    const counted = decidedBy(all, [1])
    expect(branchesOf(counted)).toEqual([
      'r H 2 arrived',
      'r.0  0 cancelled',
      'r.1 B 3 arrived',
      'r.1.0 N 1 failed',
      'r.1.1 X 1 failed',
      'r.1.2 X 1 failed',
    ])
    expect(counted.choices).toEqual([
      { at: 'r#1', kind: 'join', decidedBy: [1] },
      { at: 'r.1#2', kind: 'join', decidedBy: [0, 1] },
    ])
    expect(counted.detached.map(({ branch, status }) => `${branch} ${status}`)).toEqual(['r.1.0 failed'])
  })

  test('a join that runs out of time is one, with all that had settled', () => {
    const all = race({ policy: { ratio: 1 }, timeoutMs: 500, insufficient: 'resume' }, { A: reply, B: fail })
    const report = decidedBy(all, [0], 'timeout')
    expect(branchesOf(report)).toEqual(['r H 2 arrived', 'r.0 A 1 arrived', 'r.1  0 cancelled'])
    expect(decidedBy(all, [], 'timeout').agents).toEqual(['H'])
  })

  test('each attempt that ran out of time is one, and which it was', () => {
    const all = reports({
      shape: withRetries(shape(['Start -> H -> End', 'H <-> A | B']), 3),
      act: by({
        H: forkThen(['A', 'B'], finish, 'settled'),
        A: reply,
        B: ({ attempt }) => (attempt === 1 ? { type: 'throw', error: failed('once') } : reply({ agent: 'B' } as Owed)),
      }),
      slow: ({ agent }) => agent === 'B',
    })
    const choices = all.map((report) => report.choices.map(({ at, kind, decidedBy: attempt }) => `${kind} ${at} ${attempt}`).join())
    const late = (...attempts: number[]): string => attempts.map((attempt) => `timeout r.1/1 ${attempt}`).join()
    // The first attempt throws if it is in time, a third one is the last.
    expect(choices.sort()).toEqual([late(), late(1), late(2), late(1, 2), late(2, 3), late(1, 2, 3)].sort())
  })

  test('each attempt that met an agent which may not act is one, which it was, and what the agent was', () => {
    const all = reports({
      shape: withRetries(shape(['Start -> H -> End', 'H <-> A | B']), 2),
      act: by({ H: forkThen(['A', 'B'], finish, 'settled'), A: reply, B: () => ({ type: 'throw', error: failed('again') }) }),
      halted: ({ agent }) => (agent === 'B' ? ['failed', 'terminated'] : []),
    })
    const told = all.map(({ choices, branches }) => [choices, branches.map(({ error }) => error?.message ?? null)])
    const stop = (attempt: number, is: Halted) => [{ at: 'r.1/1', kind: 'stop', decidedBy: [attempt, is] }]
    const why = (message: string) => [null, null, message]
    expect(told).toHaveLength(5)
    expect(told).toEqual(
      expect.arrayContaining([
        [[], why('again')],
        ...[1, 2].flatMap((attempt) => [
          [stop(attempt, 'failed'), why('the agent is failed')],
          [stop(attempt, 'terminated'), why('the agent is terminated')],
        ]),
      ]),
    )
  })

  test('an ask that expires is one, and its edge to User has failed', () => {
    const all = reports({
      shape: shape(['Start -> H -> End', 'H -> User']),
      act: by({
        H: ({ message }) =>
          message.kind === 'request' ? { type: 'ask', question: 'which?', timeoutMs: 500 } : { type: 'finish', output: message.kind },
      }),
      answer: () => 'this',
    })
    expect(all.map(({ choices, interactions }) => [choices, interactions[0]?.outcome])).toEqual(
      expect.arrayContaining([
        [[], 'arrived'],
        [[{ at: 'r~1', kind: 'timeout', decidedBy: [] }], 'failed'],
      ]),
    )
    expect(all.map((report) => report.interactions[0])).toEqual(
      all.map((report) => ({
        branch: 'r',
        turn: 1,
        from: 'H',
        to: 'User',
        request: 'which?',
        outcome: report.choices.length === 0 ? 'arrived' : 'failed',
      })),
    )
  })

  test('those of one branch come as it came to them, those of others by their ids', () => {
    const all = reports({
      shape: shape(['Start -> H -> End', 'H <-> A | B', 'A <-> X', 'A | B -> User']),
      act: by({
        H: forkThen(['A', 'B'], finish, 'settled'),
        A: ({ message }) =>
          message.kind === 'request'
            ? { type: 'ask', question: 1, timeoutMs: 5 }
            : message.kind === 'join'
              ? reply({ agent: 'A' } as Owed)
              : { type: 'fork', calls: [{ to: 'X' }], join: 'any' },
        B: ({ message }) => (message.kind === 'request' ? { type: 'ask', question: 2, timeoutMs: 5 } : reply({ agent: 'B' } as Owed)),
        X: reply,
      }),
    })
    expect(all.map(({ choices }) => choices.map(({ at }) => at))).toEqual([['r.0~1', 'r.0#1', 'r.1~1']])
  })
})

describe('what becomes of branches', () => {
  test('one that goes past its fork has escaped, and so has who waited for it', () => {
    const [report, ...others] = reports({
      shape: shape(['Start -> H -> End', 'H <-> M', 'M <-> W', 'W -> H']),
      act: by({ H: forkThen(['M'], finish), M: forkThen(['W', 'W'], reply), W: invoke('H') }),
    })
    expect(others).toEqual([])
    expect(branchesOf(report as Report)).toEqual(['r H 2 arrived', 'r.0 M 1 escaped', 'r.0.0 W 1 escaped', 'r.0.1 W 1 escaped'])
    expect(edgesOf(report as Report)).toEqual([
      'r/1 H>M escaped',
      'r/2 H>End arrived',
      'r.0/1 M>W escaped',
      'r.0/1 M>W escaped',
      'r.0.0/1 W>H escaped',
      'r.0.1/1 W>H escaped',
    ])
  })

  test('those that meet become one: the others are merged, and come out as the one that goes on', () => {
    const game = (C: Agents[string]): Game => ({
      shape: shape(['Start -> H -> End', 'H -> A | B | E', 'A | B -> C', 'C | E -> H'], { joins: ['C'] }),
      act: by({ H: forkThen(['A', 'B', 'E'], finish, 'settled'), A: invoke('C'), B: invoke('C'), C, E: reply }),
    })
    const [report, ...others] = reports(game(fail))
    expect(others).toEqual([])
    expect(branchesOf(report as Report)).toEqual(['r H 2 arrived', 'r.0 A>C 2 failed', 'r.1 B 1 merged', 'r.2 E 1 arrived'])
    expect(edgesOf(report as Report).slice(0, 6)).toEqual([
      'r/1 H>A failed',
      'r/1 H>B failed',
      'r/1 H>E arrived',
      'r/2 H>End arrived',
      'r.0/1 A>C failed',
      'r.1/1 B>C failed',
    ])
    expect(edgesOf(reports(game(reply))[0] as Report).slice(4, 7)).toEqual(['r.0/1 A>C arrived', 'r.0/2 C>H arrived', 'r.1/1 B>C arrived'])
  })

  test('a merge that was cancelled is not told from branches that never met', () => {
    const all = reports({
      shape: shape(['Start -> H -> End', 'H -> A | B | E', 'A | B -> C', 'C | E -> H'], { joins: ['C'] }),
      act: by({ H: forkThen(['A', 'B', 'E'], finish, 'any'), A: invoke('C'), B: invoke('C'), C: reply, E: reply }),
    })
    expect(branchesOf(decidedBy(all, [2]))).toEqual(['r H 2 arrived', 'r.0  0 cancelled', 'r.1  0 cancelled', 'r.2 E 1 arrived'])
  })

  test('a detached branch that fails is listed with its error and fails nothing; one that arrived is listed, too', () => {
    const [report, ...others] = reports({
      shape: shape(['Start -> H -> End', 'H ~> N | P', 'H <-> A', 'N | P -> End', 'P <-> Q', 'Q -> End']),
      act: by({ H: forkThen(['N', 'A', 'P'], finish), A: reply, N: fail, P: forkThen(['Q'], finish), Q: finish }),
    })
    expect(others).toEqual([])
    expect(report?.status).toBe('succeeded')
    expect(branchesOf(report as Report)).toEqual([
      'r H 2 arrived',
      'r.0 N 1 failed',
      'r.1 A 1 arrived',
      'r.2 P 1 escaped',
      'r.2.0 Q 1 escaped',
    ])
    expect(report?.detached).toEqual([
      { branch: 'r.0', agent: 'N', status: 'failed', error: failed('N gives up', { at: { branch: 'r.0', agent: 'N', turn: 1 } }) },
      { branch: 'r.2', agent: 'P', status: 'arrived' },
    ])
    expect(edgesOf(report as Report).slice(0, 3)).toEqual(['r/1 H>N arrived', 'r/1 H>A arrived', 'r/1 H>P arrived'])
  })

  test('an edge that notifies has arrived, whatever becomes of who was notified or of who went on', () => {
    const [report] = reports({
      shape: shape(['Start -> H -> End', 'H ~> N', 'N -> End']),
      act: by({
        H: ({ message, agent }) => (message.kind === 'join' ? fail({ agent } as Owed) : { type: 'invoke', to: 'N', request: 1 }),
        N: fail,
      }),
    })
    expect(edgesOf(report as Report)).toEqual(['r/1 H>N arrived'])
    expect(branchesOf(report as Report)).toEqual(['r H 2 failed', 'r.0 N 1 failed'])
  })

  test('rejected attempts are no turns and use no edge', () => {
    const [report] = reports({
      shape: shape(['Start -> H -> End', 'H <-> A']),
      act: by({ H: forkThen(['A'], finish), A: (owed) => (owed.attempt === 1 ? { type: 'invoke', to: 'Nobody' } : reply(owed)) }),
    })
    expect(branchesOf(report as Report)).toEqual(['r H 2 arrived', 'r.0 A 1 arrived'])
    expect(edgesOf(report as Report)).toEqual(['r/1 H>A arrived', 'r/2 H>End arrived', 'r.0/1 A>H arrived'])
    expect(report?.measured.attempts).toEqual({ 'r.0/1': 2 })
  })

  test('no failure names an attempt, however deep', () => {
    const deep = failed('child', { at: { attempt: 3, step: 's' }, others: [failed('other', { at: { attempt: 4 } })] })
    const [report] = reports({
      shape: shape(['Start -> H -> End', 'H <-> A', 'H ~> N', 'N -> End']),
      act: by({
        H: forkThen(['A', 'N'], finish),
        A: () => ({ type: 'throw', error: failed('a', { cause: deep }) }),
        N: () => ({ type: 'fail', error: failed('n', { cause: deep }) }),
      }),
    })
    const { measured: _, ...rest } = report as Report
    expect(JSON.stringify(rest)).not.toContain('attempt')
    expect(report?.error?.cause?.cause).toEqual({ ...deep, at: { step: 's' }, others: [failed('other')] })
  })

  test('a run with nobody left to fail it is reported by where the failure began', () => {
    const [report] = reports({
      shape: shape(['Start -> H -> End', 'H <-> A | B']),
      act: by({ H: forkThen(['A', 'B'], finish), A: fail, B: fail }),
    })
    expect([report?.status, report?.error?.code, report?.error?.cause?.at]).toEqual([
      'failed',
      'JOIN_FAILED',
      { branch: 'r.0', agent: 'A', turn: 1 },
    ])
  })
})

describe('a run that was closed', () => {
  const flow = ['Start -> H -> End', 'H <-> A | B', 'A <-> X']
  const agents = { H: forkThen(['A', 'B'], finish, 'any'), A: forkThen(['X'], reply), B: reply, X: reply }

  test('of one that crossed a limit only status and error remain, and that it did is its choice', () => {
    const all = reports({ shape: shape(flow, { limits: { ...defaultLimits, maxTurns: 4 } }), act: by(agents) })
    const { measured: _, ...report } = all.find(({ status }) => status === 'failed') as Report
    const error = { code: 'LIMIT_TURNS', message: expect.any(String) as string, retryable: false, at: {} }
    expect(report).toEqual({
      runId: 'run',
      definition: 'test',
      version: '1',
      status: 'failed',
      error,
      rollback: 'none',
      notUndone: [],
      ...empty,
      choices: [{ at: 'run', kind: 'limit', decidedBy: ['LIMIT_TURNS'] }],
    })
  })

  test('of a cancelled one only the status remains, whenever that came', () => {
    const all = reports({ shape: shape(flow), act: by(agents), steer: [{ type: 'run.cancel', reason: 'enough' }] })
    const cancelled = all.filter(({ status }) => status === 'cancelled')
    expect(cancelled.length).toBe(1)
    const { measured: _, ...report } = cancelled[0] as Report
    expect(report).toEqual({
      runId: 'run',
      definition: 'test',
      version: '1',
      status: 'cancelled',
      rollback: 'none',
      notUndone: [],
      ...empty,
    })
  })
})

describe('a run that goes on', () => {
  const first = (count: number) => (moves: readonly Move[]) => (count-- > 0 ? moves[0] : undefined)

  test('shows what each branch is doing, and only those edges of which something has come', () => {
    const game: Game = {
      shape: shape(['Start -> H -> End', 'H <-> A | B | D', 'D -> User', 'H -> C', 'A -> C', 'B -> C', 'C -> H', 'H ~> N', 'N -> End'], {
        joins: ['C'],
      }),
      act: by({
        H: forkThen(['A', 'B', 'D', 'A', 'N'], finish),
        A: invoke('C'),
        B: reply,
        C: reply,
        D: () => ({ type: 'ask', question: 1 }),
        N: finish,
      }),
    }
    const order = ['r/1/1', 'r.0/1/1', 'r.1/1/1', 'r.2/1/1', 'r.4/1/1']
    const report = reportOf(play(game, (moves) => moves.find(({ id }) => id === order[0] && order.shift())))
    expect(report.status).toBe('running')
    expect(branchesOf(report)).toEqual([
      'r H 1 forked',
      'r.0 A 1 held',
      'r.1 B 1 arrived',
      'r.2 D 1 asking',
      'r.3 A 1 running',
      'r.4 N 1 arrived',
    ])
    expect(edgesOf(report)).toEqual(['r/1 H>B arrived', 'r/1 H>N arrived', 'r.1/1 B>H arrived', 'r.4/1 N>End arrived'])
    expect(report.rollback).toBeUndefined()
    expect(report.measured.endedAt).toBeUndefined()
  })

  test('reads paused from its pause to its resume', () => {
    const steer = [{ type: 'run.pause' }, { type: 'run.resume' }] as const
    const steered = (count: number): string => {
      let left = count
      return reportOf(play({ ...secretWord, steer }, (moves) => (left-- > 0 ? moves.at(-1) : undefined))).status
    }
    expect([steered(0), steered(1), steered(2)]).toEqual(['running', 'paused', 'running'])
    const cancelled = ['run.pause', 'run.cancel']
    const closing = play({ ...secretWord, steer: [{ type: 'run.pause' }, { type: 'run.cancel' }] }, (moves) =>
      moves.find(({ id }) => id === cancelled[0] && cancelled.shift()),
    )
    expect(reportOf(closing).status).toBe('running')
    expect(new Set(everyOrder({ ...secretWord, steer }).map(bytes)).size).toBe(1)
  })

  test('has the version that went on with it, and the agents of all of them', () => {
    const events = play(secretWord)
    const { nodes } = secretWord.shape
    const later = { ...secretWord.shape, version: '2', nodes: ['New', ...nodes.filter((node) => node !== 'AgentA').reverse()] }
    const claimed = { type: 'run.claimed', seq: 0, at: 0, epoch: 2, shape: later } as const
    const report = reportOf(events.toSpliced(-1, 0, claimed))
    expect(report.version).toBe('2')
    expect(report.agents).toEqual(['AgentD', 'AgentC', 'AgentB', 'Orchestrator', 'AgentA'])
  })

  test('every prefix of a journal has a report', () => {
    const events = play(secretWord)
    for (let count = 1; count <= events.length; count++) expect(() => reportOf(events.slice(0, count))).not.toThrow()
    expect(() => reportOf([])).toThrow('empty')
    expect(reportOf(play(secretWord, first(1))).branches.map(({ status }) => status)).toEqual(['forked', 'running', 'running', 'running'])
  })
})

describe('what was measured', () => {
  test('has the time of each turn over all its attempts, how many these were, what was cancelled and what was refused', () => {
    const game: Game = {
      shape: withRetries(shape(['Start -> H -> End', 'H <-> A | B']), 3),
      act: by({
        H: forkThen(['A', 'B'], finish, 'any'),
        A: (owed) => (owed.attempt < 3 ? { type: 'throw', error: failed('no') } : reply(owed)),
        B: reply,
      }),
    }
    const events = play(game, (moves) => moves.find(({ id }) => !id.startsWith('r.1')))
    const { measured } = reportOf(events, { refusals: { STALE_ATTEMPT: 2 } })
    expect(measured).toEqual({
      startedAt: 1_000,
      endedAt: 1_000 + 5 * 7 + 7,
      durations: { 'r/1': 7, 'r.0/1': 21, 'r/2': expect.any(Number) as number },
      attempts: { 'r.0/1': 3 },
      cancelled: 1,
      refusals: { STALE_ATTEMPT: 2 },
      usage: { inputTokens: 0, outputTokens: 0 },
    })
  })

  test('has the time of a turn that failed for good', () => {
    const game: Game = { shape: shape(['Start -> H -> End']), act: by({ H: () => ({ type: 'throw', error: failed('no') }) }) }
    expect(reportOf(play(game)).measured.durations).toEqual({ 'r/1': 7 })
  })
})

describe('many branches', () => {
  const wide = (width: number, join: Join): Game => ({
    shape: shape(['Start -> H -> End', 'H -> A | B', 'A -> C', 'B | C -> H'], { joins: ['C'] }),
    act: by({ H: forkThen([...Array<string>(width - 1).fill('A'), 'B'], finish, join), A: invoke('C'), B: reply, C: reply }),
  })

  /** How often the fields of a journal's events are read. */
  function readsOf(events: readonly Event[]): number {
    let reads = 0
    const counting = events.map(
      (event) =>
        new Proxy(event, {
          get: (target, key) => {
            reads++
            return Reflect.get(target, key) as unknown
          },
        }),
    )
    reportOf(counting)
    return reads
  }

  test('a fork of 10,000 that meet at one agent is reported, in the order of ids', () => {
    const report = reportOf(playWide(wide(10_000, 'settled')))
    expect(report.branches.length).toBe(10_001)
    expect(report.branches.slice(0, 4).map(({ id, status }) => `${id} ${status}`)).toEqual([
      'r arrived',
      'r.0 arrived',
      'r.1 merged',
      'r.2 merged',
    ])
    expect(report.branches.map(({ id }) => Number(id.slice(2))).slice(1)).toEqual(Array.from({ length: 10_000 }, (_, index) => index))
    expect(report.interactions.every(({ outcome }) => outcome === 'arrived')).toBe(true)
    expect(report.interactions.length).toBe(10_000 + 1 + 10_000 + 1)
  })

  test('each event is read a fixed number of times, however many there are', () => {
    const [small, large] = [100, 1_000].map((width) => {
      const events = playWide(wide(width, 'settled'))
      return readsOf(events) / events.length
    }) as [number, number]
    expect(large).toBeLessThan(small * 1.2)
  })
})

/** Plays a wide fork without looking at all that is owed after every step. */
function playWide({ shape: of, act }: Game): Event[] {
  const events: Event[] = []
  let state = newState
  const send = (command: Command): void => {
    const decision = decide(state, command, state.at + 1, null)
    if ('refusal' in decision) throw new Error(decision.refusal.message)
    for (const event of decision.events) events.push(event)
    state = decision.state
  }
  send({ type: 'run.start', runId: 'run', nonce: 'n', shape: of, tags: {} })
  while (state.status === 'running')
    for (const speaker of attemptsOf(state).map(speakerOf)) {
      const done = act({ ...speaker, message: messageOf(state, speaker) }, state)
      send({ type: 'turn.complete', ...speaker, action: done as Action })
    }
  return events
}

// ── random topologies, in random orders ──────────────────────────────────────────────────────────────────

function shapeOfSample(topology: RefTopology): TopologyShape {
  const { nodes, edges, joins, result, merge = {}, limits, agents: given = {} } = topology
  const base = shape([])
  const takes = ['request', 'merged', 'join', 'answer', 'expired', 'feedback'] as const
  const agents = nodes.map((node) => {
    const retry = { attempts: given[node]?.attempts ?? 1, backoffMs: 0, factor: 1, maxBackoffMs: 0 }
    return [node, { takes, maxRejections: given[node]?.maxRejections ?? 2, retry, timeoutMs: null }] as const
  })
  const merges = Object.entries(merge).map(([key, how]) => [key, typeof how === 'function' ? 'function' : how] as const)
  return {
    ...base,
    nodes,
    edges,
    joins,
    result,
    agents: Object.fromEntries(agents),
    limits: { ...defaultLimits, ...limits },
    merge: Object.fromEntries(merges),
  }
}

function gameOf(seed: number): Game {
  const { topology, input, act, answer } = sample(seed)
  const merge = Object.fromEntries(Object.entries(topology.merge ?? {}).filter(([, how]) => typeof how === 'function')) as Code['merge']
  const toDone = (action: RefAction): Done => {
    if (action.type === 'fail' || action.type === 'throw') return { type: action.type, error: failed(action.error) }
    return action as Done
  }
  return {
    shape: shapeOfSample(topology),
    code: { merge },
    input,
    ...(topology.state !== undefined && { state: topology.state }),
    act: (owed, state) => {
      const branch = branchOf(state, owed.branch)
      const requests = requestsOf(branch).map(({ from, value, state: of }) => ({ from, value, state: of }))
      return toDone(act({ ...owed, requests, waiting: waitingAgent(state, branch), state: branch.state } as Parameters<typeof act>[0]))
    },
    answer: (id, kind) => answer({ id, kind }),
    slow: ({ branch, turn }) => new Random(`${seed} slow ${branch}/${turn}`).chance(0.03),
    halted: ({ branch, turn }) => (new Random(`${seed} halted ${branch}/${turn}`).chance(0.03) ? ['stopped', 'terminated'] : []),
    ...(seed % 10 === 0 && { steer: [{ type: 'run.pause' }, { type: 'run.resume' }, { type: 'run.cancel' }] }),
  }
}

/** Calm orders let timers and steering wait for a while, so that many of them come to the same choices. */
function randomOrder(random: Random): Pick {
  const rash = random.pick([0, 0, 0.02, 0.1])
  const isCalm = ({ id }: Move): boolean =>
    !id.startsWith('time') && !id.startsWith('late') && !id.startsWith('halt') && id !== 'run.cancel'
  const salt = random.chance(0.5) ? `${random.below(1e9)}` : null
  const rank = ({ id }: Move): number => new Random(`${salt} ${id.split('/')[0]}`).next()
  return (moves) => {
    const calm = moves.filter(isCalm)
    const able = calm.length === 0 || random.chance(rash) ? moves : calm
    return salt === null ? random.pick(able) : able.reduce((a, b) => (rank(a) >= rank(b) ? a : b))
  }
}

/** Plays random topologies in random orders; says where equal choices gave different reports, and how many had one to be compared with. */
function search(from: number, topologies: number, orders: number): { different: string[]; compared: number; orders: number } {
  const found = { different: [] as string[], compared: 0, orders: 0 }
  for (let seed = from; seed < from + topologies; seed++) {
    const game = gameOf(seed)
    const firsts = new Map<string, string>()
    for (let order = 0; order < orders; order++) {
      const events = play({ ...game }, randomOrder(new Random(`order ${seed} ${order}`)))
      const key = keyOf(events)
      const text = bytes(events)
      const first = firsts.get(key)
      found.orders++
      if (first === undefined) firsts.set(key, text)
      else found.compared++
      if (first !== undefined && first !== text) found.different.push(`seed ${seed}, order ${order}, ${key}:\n${first}\n${text}`)
    }
  }
  return found
}

test('property: for equal choices the report of a random topology is the same bytes in every order', () => {
  const { TUTTI_REPORT_SEARCH: given = '1,100,8' } = process.env
  const [from = 1, topologies = 1, orders = 1] = given.split(',').map(Number)
  const found = search(from, topologies, orders)
  expect(found.different.slice(0, 3)).toEqual([])
  expect(found.compared).toBeGreaterThan(found.orders / 2)
}, 600_000)

// ── as text ──────────────────────────────────────────────────────────────────────────────────────────────

describe('a report to be read', () => {
  const nasty = '\u001b[31mred\u001b[0m | `code` <b>bold</b> [link](http://x) *star* \\| \u202Eevil\u009b2J\nnext # line'
  const game = (value: string): Game => ({
    shape: shape(['Start -> H -> End', 'H <-> A | B', 'H ~> N', 'N -> End']),
    act: by({
      H: ({ message }) =>
        message.kind === 'join'
          ? { type: 'finish', output: value }
          : { type: 'fork', calls: [{ to: 'A', request: value }, { to: 'B' }, { to: 'N' }] },
      A: () => ({ type: 'reply', value }),
      B: reply,
      N: () => ({ type: 'fail', error: failed(value) }),
    }),
  })
  const report = reportOf(play(game(nasty)), { refusals: { STALE_ATTEMPT: 1 } })

  test('says in text what it says as data', () => {
    const text = reportText(reportOf(play(secretWord)))
    expect(text).toContain('Status: succeeded')
    expect(text).toContain('Output: "The secret word is: MARS"')
    expect(text).toMatch(/^ {2}r\.2 +AgentC, AgentD +2 +arrived$/m)
    expect(text).toMatch(/^ {2}r\.2 +2 +AgentD +Orchestrator +arrived +"RS"$/m)
  })

  test('says of a branch that failed why, as data and in one line, the same in every order', () => {
    const settled: Game = {
      shape: shape(['Start -> H -> End', 'H <-> A | B']),
      act: by({
        H: ({ message }) =>
          message.kind === 'join'
            ? { type: 'finish', output: 1 }
            : { type: 'fork', calls: [{ to: 'A' }, { to: 'B' }], join: { policy: 'settled' } as never },
        A: () => ({ type: 'fail', error: failed('no bread\nand no butter') }),
        B: reply,
      }),
    }
    const all = everyOrder(settled)
    expect(new Set(all.map(bytes)).size).toBe(1)
    const told = reportOf(play(settled))
    const [, failing, replying] = told.branches
    expect(failing).toMatchObject({ id: 'r.0', status: 'failed', error: { code: 'AGENT_FAILED', message: 'no bread\nand no butter' } })
    expect(replying).not.toHaveProperty('error')
    expect(reportText(told)).toMatch(/^ {2}r\.0 +A +1 +failed +AGENT_FAILED: no bread$/m)
  })

  test('lets nothing through that a terminal would obey, and no line that an agent made', () => {
    for (const text of [reportText(report), reportMarkdown(report)]) {
      expect(text.replaceAll('\n', '')).not.toMatch(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u)
      expect(text).not.toMatch(/^next/m)
    }
    expect(reportText(report)).toContain('\\u{202e}evil\\u{9b}2J')
  })

  test('shows what an agent said as text, never as Markdown', () => {
    const lines = reportMarkdown(report).split('\n')
    // Cells end at a bar with an even number of backslashes before it.
    const bars = lines
      .filter((line) => line.includes('red') && line.startsWith('|'))
      .map((line) => line.match(/(?<!\\)(?:\\\\)*\|/g)?.length)
    expect(bars).toEqual([6, 7, 7, 7, 5])
    for (const line of lines) expect(line.replace(/\\./g, '')).not.toMatch(/`|<|\[link/)
  })

  test('cuts long values and says how much is missing', () => {
    const long = reportOf(play(game(`${'x'.repeat(198)}😀${'y'.repeat(5_000)}`)))
    for (const text of [reportText(long), reportMarkdown(long)]) {
      expect(text).toMatch(/x… \\?\(\d+ characters more\\?\)/)
      expect(text).not.toContain('y'.repeat(50))
      expect(text).not.toMatch(/\\u\{d8/)
    }
  })

  test('has the chain of causes, the choices, the detached and what was measured', () => {
    const failing = reportOf(
      play({ shape: shape(['Start -> H -> End', 'H <-> A']), act: by({ H: forkThen(['A'], finish, 'any'), A: fail }) }),
    )
    const text = reportText(failing)
    expect(text).toMatch(/^Error: JOIN_FAILED: .*\n {2}Cause: AGENT_FAILED: A gives up \(A, branch r\.0, turn 1\)$/m)
    expect(text).toMatch(/^ {2}r#1 +join +0$/m)
    expect(text).toContain('Started: 1970-01-01T00:00:01.000Z')
    expect(reportText(report)).toMatch(/^ {2}r\.2 +N +failed +AGENT_FAILED: /m)
    expect(reportText(report)).toContain('Refused: STALE_ATTEMPT 1')
    expect(reportMarkdown(failing)).toContain('  - **Cause**: AGENT\\_FAILED: A gives up')
  })
})
