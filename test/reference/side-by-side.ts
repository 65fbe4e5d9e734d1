/**
 * Plays the same moves on the reference and on the kernel, and compares after each what is owed, aborting, asked and armed, and in the
 * end what came out. Wording is left out: codes, places and causes must agree, texts need not.
 */
import { reportOf } from '../../src/inspect/report.js'
import type { Action } from '../../src/kernel/action.js'
import type { ActivitySpeaker, Command, Speaker } from '../../src/kernel/command.js'
import { decide } from '../../src/kernel/decide.js'
import type { Event } from '../../src/kernel/event.js'
import { evolve } from '../../src/kernel/evolve.js'
import { attemptId } from '../../src/kernel/ids.js'
import { checkStep } from '../../src/kernel/invariants.js'
import { loadState, saveState } from '../../src/kernel/snapshot.js'
import type { Code, TopologyShape } from '../../src/kernel/shape.js'
import { defaultLimits } from '../../src/kernel/shape.js'
import type { State } from '../../src/kernel/state.js'
import { attemptOf, attemptsOf, branchOf, newState, requestsOf, waitingAgent } from '../../src/kernel/state.js'
import { dump } from '../kernel/dump.js'
import type { Owed, RefAction, RefActivity, RefTopology } from './model.js'
import { canonical, Reference } from './model.js'
import type { Sample } from './random.js'
import { Random, sample } from './random.js'
import type { Game, Move, Strategy } from './search.js'
import { leftToDo, movesOf, steeringOf, stepsMax, strategyOf } from './search.js'

export function shapeOf(topology: RefTopology): { shape: TopologyShape; code: Code } {
  const merge = topology.merge ?? {}
  const agents = topology.nodes.map((name) => {
    const { maxRejections = 2, attempts = 1, compensates } = topology.agents?.[name] ?? {}
    const retry = { attempts, backoffMs: 0, factor: 2, maxBackoffMs: 30_000 }
    return [
      name,
      {
        takes: ['request', 'merged', 'join', 'answer', 'expired', 'feedback'] as const,
        maxRejections,
        retry,
        timeoutMs: null,
        ...(compensates === true && { compensates }),
        ...(compensates !== undefined && { toolsCompensate: true as const }),
      },
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

  /** Goes on as another process would: from the journal, or from a snapshot, as they are written down. */
  recover(from: 'journal' | 'snapshot'): void {
    // Nothing but the kernel itself is in question: a copy of it with a fault has a fold of its own.
    if (this.#decide !== decide) return
    const written = JSON.parse(JSON.stringify(from === 'journal' ? this.journal : saveState(this.state))) as object
    const recovered =
      from === 'journal' ? (written as Event[]).reduce(evolve, newState) : loadState(written as ReturnType<typeof saveState>)
    // Which sets of waiting agents had their reach computed is not a part of what is known of a run.
    const [now, then] = [this.state, recovered].map((state) => dump({ ...state, reaches: newState.reaches })) as [string, string]
    if (now !== then) throw new Error(`the ${from} gives another state:\n${then}\n${now}`)
    this.state = recovered
  }

  act(branch: string, action: RefAction): void {
    const speaker = attemptOf(this.state, branch)
    if (speaker === undefined) throw new Error(`no turn of ${branch} is owed`)
    const error = { code: 'AGENT_FAILED', message: 'error' in action ? action.error : '', retryable: false, at: {} } as const
    // What an earlier attempt says late is not taken for what is owed now.
    const late = { type: 'turn.fail', ...speaker, attempt: speaker.attempt - 1, error, retryable: true } as const
    if (speaker.attempt > 1) this.#expectRefusal(late, 'STALE_ATTEMPT')
    if (action.type === 'throw') this.do({ type: 'turn.fail', ...speaker, error, retryable: true })
    else this.do({ type: 'turn.complete', ...speaker, action: action.type === 'fail' ? { type: 'fail', error } : (action as Action) })
  }

  /** A run that is being closed, or undoes what it did, refuses it; the reference does nothing then. */
  cancel(compensate: boolean): void {
    if (!this.state.closing && this.state.status === 'running') this.do({ type: 'run.cancel', compensate })
  }

  /** A run that is being closed with nothing to undo refuses it. */
  pause(): boolean {
    if (!this.#refused({ type: 'run.pause' })) this.do({ type: 'run.pause' })
    return this.state.pausedAt !== null
  }

  resume(): void {
    this.do({ type: 'run.resume' })
    this.#retryUndos()
  }

  fire(id: string): void {
    this.#at = Math.max(this.#at, this.state.timers.get(id)?.due ?? 0)
    this.do({ type: 'timer.fire', timer: id })
  }

  startActivity(attempt: string, key: string): void {
    this.do({ type: 'activity.start', ...this.#activity(attempt, key), undo: { tool: key, input: null } })
  }

  endActivity(attempt: string, { key, outcome }: RefActivity): void {
    const error = { code: 'ACTIVITY_OUTCOME_UNKNOWN', message: 'who knows', retryable: false, at: {} } as const
    if (outcome === 'done') this.do({ type: 'activity.complete', ...this.#activity(attempt, key), value: key })
    else this.do({ type: 'activity.fail', ...this.#activity(attempt, key), error })
  }

  settle(id: string, how: string): void {
    const done = how === 'late' ? { done: { output: 'late' } } : {}
    this.do({ type: 'turn.settle', ...this.#speaker(id), how: how === 'fenced' ? 'fenced' : 'ended', ...done })
  }

  /** Once, and only by the attempt that is owed, at the revision it was started at. */
  undo(of: string, how: 'compensated' | 'failed'): void {
    const running = this.state.undo.running.get(of)
    if (running === undefined) throw new Error(`no undo of ${of} is owed`)
    const { attempt, revision } = running
    const error = { code: 'AGENT_FAILED', message: 'it can not be undone', retryable: true, at: {} } as const
    const end = { compensated: { type: 'undo.complete' }, failed: { type: 'undo.fail', error, retryable: true } } as const
    const command = { ...end[how], of, attempt, revision } as Command
    this.#expectRefusal({ ...command, revision: revision - 1 } as Command, 'STALE_REVISION')
    this.#expectRefusal({ ...command, attempt: attempt + 1 } as Command, 'STALE_ATTEMPT')
    this.do(command)
    this.#expectRefusal(command, how === 'compensated' ? 'ALREADY_COMPENSATED' : 'STALE_ATTEMPT')
    if (this.state.pausedAt === null) this.#retryUndos()
  }

  /** The reference knows no waiting in between. */
  #retryUndos(): void {
    for (const { id, kind } of this.state.timers.values()) if (kind === 'undo') this.fire(id)
  }

  #refused(command: Command): string | null {
    const decision = this.#decide(this.state, command, this.#at, this.#code)
    return 'refusal' in decision ? decision.refusal.code : null
  }

  #expectRefusal(command: Command, code: string): void {
    const refused = this.#refused(command)
    if (refused !== code) throw new Error(`${command.type} is refused with ${refused} instead of ${code}`)
  }

  #speaker(id: string): Speaker {
    const [name = ''] = id.split('/')
    const found = this.state.aborting.get(id) ?? attemptOf(this.state, name)
    if (found === undefined) throw new Error(`${id} neither runs nor is aborting`)
    const { branch, agent, turn, attempt } = found
    return { branch, agent, turn, attempt }
  }

  #activity(attempt: string, key: string): ActivitySpeaker {
    return { ...this.#speaker(attempt), key, name: key, delivered: 0 }
  }

  undos(): { of: string; attempt: number }[] {
    return [...this.state.undo.running.values()].map(({ of, attempt }) => ({ of, attempt }))
  }

  plans(): unknown[] {
    return this.journal.flatMap((event) => {
      if (event.type !== 'undo.planned' || event.entries.length + (event.unknown?.length ?? 0) === 0) return []
      const { barrier, entries, unknown = [], decidedBy = [] } = event
      return [{ at: barrier, entries, unknown, decidedBy }]
    })
  }

  owed(): unknown[] {
    return attemptsOf(this.state)
      .map(({ branch: id, agent, turn, attempt }) => {
        const branch = branchOf(this.state, id)
        const { message, state } = branch
        const waiting = waitingAgent(this.state, branch)
        return { branch: id, agent, turn, attempt, message, waiting, state, requests: requestsOf(branch) }
      })
      .sort((a, b) => (a.branch < b.branch ? -1 : 1))
  }

  outcome(): unknown {
    const last = this.journal.at(-1)
    if (last?.type !== 'run.succeeded' && last?.type !== 'run.failed' && last?.type !== 'run.cancelled') return null
    const { rollback = 'none', notUndone = [] } = last
    const status = last.type.slice('run.'.length)
    const [output, error] = [last.type === 'run.succeeded' ? last.output : undefined, last.type === 'run.failed' ? last.error : undefined]
    return { status, output, error, rollback, notUndone }
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

const byOf = (a: { of: string }, b: { of: string }): number => (a.of < b.of ? -1 : 1)

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
      [...kernel.state.timers.values()]
        .filter(({ kind }) => kind !== 'undo')
        .map(({ id }) => id)
        .sort(),
    ],
    ['undos', run.undos().sort(byOf), kernel.undos().sort(byOf)],
    ['plans', run.plans(), kernel.plans()],
    ['compensating', run.compensating(), kernel.state.status === 'compensating'],
    ['paused', run.outcome() === null && run.paused(), kernel.state.pausedAt !== null],
    ['outcome', run.outcome(), kernel.outcome()],
  ]
  const different = pairs.find(([, expected, got]) => !same(expected, got))
  return different === undefined
    ? null
    : `${different[0]}\nreference: ${canonical(bare(different[1]))}\nkernel:    ${canonical(bare(different[2]))}`
}

/** What the report says of undoing is what the reference says; and all of it is what it was in earlier orders with the same choices. */
function reported(run: Reference, kernel: Kernel, order: readonly string[], reports: Map<string, string>): string | null {
  const { measured: _, ...report } = reportOf(kernel.journal)
  const { status, rollback, notUndone, choices } = report
  const chosen = (all: readonly { at: string; kind: string; decidedBy: readonly (string | number)[] }[]): string[] =>
    all.flatMap(({ at, kind, decidedBy }) => (kind === 'undo' ? [`${at} ${decidedBy.map(String).sort().join(' ')}`] : []))
  const outcome = run.outcome()
  const expected = { rollback: outcome?.rollback, notUndone: outcome?.notUndone, choices: chosen(run.choices()).sort() }
  const got = { rollback, notUndone, choices: chosen(choices).sort() }
  if (!same(expected, got)) return `the report says\nreference: ${canonical(expected)}\nkernel:    ${canonical(got)}`
  const key = canonical([status === 'cancelled' && order.includes('abandon'), status === 'cancelled', run.choices()])
  const earlier = reports.get(key)
  reports.set(key, JSON.stringify(report))
  if (earlier === undefined || earlier === JSON.stringify(report)) return null
  return `the reports of two orders\nwith the choices ${key}\n${earlier}\n${JSON.stringify(report)}`
}

/** The same move on the kernel, as it has to be made of what stands before it is made on the reference. */
function mirrorOf(kernel: Kernel, run: Reference, game: Game, { id: move, kind }: Move): () => void {
  const [, id = '', key = '', what = ''] = move.split(' ')
  const speaks = ({ branch, turn, attempt }: Owed): boolean => attemptId(branch, turn, attempt) === id
  const owed = [...run.owed(), ...run.aborted()].find(speaks)
  const todo = owed === undefined ? [] : leftToDo(run, game, owed)
  switch (kind) {
    case 'act': {
      const action = game.act(owed as Owed)
      const { inFlight } = run.work((owed as Owed).branch)
      return () => {
        for (const activity of todo) {
          if (activity.compensates && activity.key !== inFlight) kernel.startActivity(id, activity.key)
          kernel.endActivity(id, activity)
        }
        kernel.act((owed as Owed).branch, action)
      }
    }
    case 'step': {
      const activity = todo.find((one) => one.key === key) as RefActivity
      return () => (what === 'starts' ? kernel.startActivity(id, key) : kernel.endActivity(id, activity))
    }
    case 'settle':
      return () => kernel.settle(id, key)
    case 'undo': {
      const how = Number(key) > (game.undoFails?.(id) ?? 0) ? 'compensated' : 'failed'
      return () => kernel.undo(id, how)
    }
    case 'answer': {
      const ask = run.asks().find((open) => open.id === id)
      const value = ask === undefined ? null : game.answer(ask)
      return () => kernel.do({ type: 'ask.answer', askId: id, value: value ?? null })
    }
    case 'fire':
      return () => kernel.fire(id)
    case 'cancel':
      return () => kernel.cancel(move === 'cancel')
    case 'pause':
      return () => {}
    case 'resume':
      return () => kernel.resume()
  }
}

/**
 * Plays one order on both; what differs first, or null. Where things are undone, `reports` has the kernel's reports of earlier orders by
 * their choices: the bytes of this one must be the same; and now and then the kernel goes on from what is written down.
 */
export function playBoth(
  game: Game,
  choose: Strategy,
  decides: Decide = decide,
  reports: Map<string, string> | null = game.undoFails === undefined ? null : new Map(),
): string | null {
  const run = new Reference(game.topology, game.input)
  const kernel = new Kernel(game.topology, game.input, decides)
  const order: string[] = []
  const steering = steeringOf(run)
  for (let step = 0; step < stepsMax; step++) {
    const ended = run.outcome() !== null
    const difference = compared(run, kernel) ?? (ended && reports !== null ? reported(run, kernel, order, reports) : null)
    if (difference !== null) return `after ${order.join(', ')}\n${difference}`
    if (ended) return null
    if (reports !== null && step % 31 === 11) kernel.recover(step % 2 === 0 ? 'journal' : 'snapshot')
    const moves = movesOf(run, game)
    const move = choose(moves, step, steering)
    order.push(move.id)
    const mirror = mirrorOf(kernel, run, game, move)
    if (move.kind === 'pause' && !kernel.pause()) continue
    move.make()
    mirror()
  }
  return 'the run does not end'
}

/** One random topology in some random orders on both; what differs first, or null. */
export function difference(seed: number, orders: number, decides?: Decide, sampler: (seed: number) => Sample = sample): string | null {
  const game = sampler(seed)
  const random = new Random(seed * 7 + 1)
  const reports = game.undoFails === undefined ? null : new Map<string, string>()
  for (let order = 0; order < orders; order++) {
    const found = playBoth(game, strategyOf(random, order, []), decides, reports)
    if (found !== null) return `order ${order}: ${found}`
  }
  return null
}
