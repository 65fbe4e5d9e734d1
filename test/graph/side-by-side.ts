/**
 * Plays one random graph on the reference and on the kernel, side by side, in an order that a seed chooses.
 *
 * 1. After every move both owe the same attempts, show them the same, wait for the same and ask the same.
 * 2. The kernel's invariants hold after every move, and what was decided once is refused the second time.
 * 3. Now and then the kernel's state is thrown away and folded anew from its journal, or loaded from a snapshot, read back from JSON:
 *    what follows is decided on that one.
 * 4. At the end both say the same of the outcome, of every step and item, of what each was shown, and of the choices; and so does the
 *    report.
 */
import { type GraphInternals, internalsOf } from '../../src/define/definition.js'
import { graph } from '../../src/define/graph.js'
import type { Command } from '../../src/kernel/command.js'
import { decide } from '../../src/kernel/decide.js'
import type { Event } from '../../src/kernel/event.js'
import { evolve } from '../../src/kernel/evolve.js'
import type { Failure } from '../../src/kernel/failure.js'
import { attemptId, childBranch, rootBarrier, rootBranch } from '../../src/kernel/ids.js'
import { checkStep } from '../../src/kernel/invariants.js'
import { loadState, saveState } from '../../src/kernel/snapshot.js'
import type { Attempt, State } from '../../src/kernel/state.js'
import { attemptOf, attemptsOf, barrierOf, branchOf, isOver, newState, shapeOf } from '../../src/kernel/state.js'
import { reportOf } from '../../src/inspect/report.js'
import { stepOutputs } from '../../src/kernel/step-outputs.js'
import { dump } from '../kernel/dump.js'
import { Random } from '../reference/random.js'
import type { GraphSample } from './random.js'
import type { RefFailure, RefGraph, RefOutcome, RefSettled } from './reference.js'
import { Reference } from './reference.js'

/** How long every question of these graphs stays open. */
const expiresMs = 1_000

/** The definition of a random graph, made as a user makes it; its code is played by the test. */
export function definitionOf({ steps, stragglers, required }: RefGraph, conditional: ReadonlySet<string>): GraphInternals {
  const idle = (): never => {
    throw new Error('the steps of these graphs are played by the test')
  }
  const schema = { '~standard': { version: 1, vendor: 'test', validate: (value: unknown) => ({ value }) } }
  let made = graph('random', { stragglers, required }) as unknown as Loose
  for (const { id, after, join, kind, concurrency, attempts, onError, compensates } of steps) {
    if (kind === 'ask') made = made.ask(id, { after, question: idle, schema, timeoutMs: expiresMs })
    else
      made = made.step(id, {
        after,
        join,
        run: idle,
        onError,
        retry: { attempts },
        ...(kind === 'each' ? { each: idle } : {}),
        ...(concurrency === undefined ? {} : { concurrency }),
        ...(conditional.has(id) ? { when: idle } : {}),
        ...(compensates === true ? { compensate: idle } : {}),
      })
  }
  return internalsOf(made.output() as never) as GraphInternals
}

interface Loose {
  step(id: string, def: unknown): Loose
  ask(id: string, def: unknown): Loose
  output(): unknown
}

/** What was found wrong with one game. */
export class Departure extends Error {
  override readonly name = 'Departure'
}

export interface Played {
  /** The choices that were made: games with equal choices have equal facts. */
  readonly choices: string
  readonly facts: string
  readonly moves: readonly string[]
  readonly status: string
  readonly rollback: string
}

interface Move {
  readonly label: string
  readonly weight: number
  readonly command: () => Command
  readonly mirror: () => void
}

/** What is played against the reference: as it is, or with a fault planted. */
export interface Parts {
  readonly decides: typeof decide
  readonly reports: typeof reportOf
}

const parts: Parts = { decides: decide, reports: reportOf }

/** Plays `sample` in the order that `order` chooses. Throws a Departure that names the moves it takes to see it. */
export function playBoth(sample: GraphSample, internals: GraphInternals, order: number, of: Parts = parts): Played {
  const game = new Game(sample, internals, new Random(`order ${sample.seed} ${order}`), of)
  try {
    return game.play()
  } catch (error) {
    const graphText = sample.graph.steps.map((step) => JSON.stringify(step)).join('\n  ')
    const options = JSON.stringify({ stragglers: sample.graph.stragglers, required: sample.graph.required })
    const why = error instanceof Error ? error.message : String(error)
    throw new Departure(
      `${why}\n  seed ${sample.seed}, order ${order} (to see it again: playBoth(sampleGraph(${sample.seed}), …, ${order}))\n  ${graphText}\n  ${options}\n  ${game.moves.join('\n  ')}`,
      { cause: error },
    )
  }
}

const movesMax = 600

class Game {
  readonly moves: string[] = []
  readonly #sample: GraphSample
  readonly #internals: GraphInternals
  readonly #random: Random
  readonly #reference: Reference
  readonly #journal: Event[] = []
  readonly #steers: boolean
  readonly #cancels: boolean
  readonly #compensate: boolean
  readonly #of: Parts
  #state: State = newState
  #at = 1_000
  #pausesLeft = 2

  constructor(sample: GraphSample, internals: GraphInternals, random: Random, of: Parts) {
    this.#of = of
    this.#sample = sample
    this.#internals = internals
    this.#random = random
    this.#reference = new Reference(sample.graph)
    this.#steers = random.chance(0.3)
    this.#cancels = random.chance(0.03)
    this.#compensate = random.chance(0.7)
  }

  play(): Played {
    this.#decide({ type: 'run.start', runId: 'run', nonce: 'nonce', shape: this.#internals.shape, tags: {} })
    this.#compare()
    while (this.#reference.end() === null) {
      if (this.moves.length > movesMax) throw new Error('the run does not end')
      const options = this.#moves()
      if (options.length === 0) throw new Error('the reference can go no further, and has not ended')
      const move = this.#random.weighted(options.map((one) => [one.weight, one] as const))
      this.moves.push(move.label)
      const command = move.command()
      this.#decide(command)
      move.mirror()
      if (this.#random.chance(0.1)) this.#refusesAgain(command)
      this.#retryUndos()
      if (this.#random.chance(0.07)) this.#recover(this.#random.pick(['journal', 'snapshot']))
      this.#compare()
    }
    if (this.#random.chance(0.3)) this.#recover('journal')
    return this.#conclude()
  }

  #moves(): Move[] {
    const { graph: plan, behave, answer } = this.#sample
    const reference = this.#reference
    const moves: Move[] = reference.owed().map((owed) => {
      const outcome = behave(owed)
      return {
        label: `${owed.step}${owed.item === undefined ? '' : `[${owed.item}]`}@${owed.attempt} -> ${JSON.stringify(outcome)}`,
        weight: 1,
        command: () => commandOf(this.#speaker(owed.step, owed.item), outcome),
        mirror: () => reference.complete(owed.step, owed.item, outcome),
      }
    })
    for (const { step, item } of reference.aborting()) moves.push(...this.#abortMoves(step, item))
    for (const { of, attempt } of reference.undos()) moves.push(this.#undoMove(of, attempt))
    for (const step of reference.asks()) {
      moves.push({
        label: `${step} is answered`,
        weight: 1,
        command: () => ({ type: 'ask.answer', askId: this.#askOf(step), value: answer(step) }),
        mirror: () => reference.answer(step, answer(step)),
      })
      if (!reference.paused)
        moves.push({
          label: `${step} expires`,
          weight: 0.3,
          command: () => {
            this.#at += expiresMs
            return { type: 'timer.fire', timer: this.#askOf(step) }
          },
          mirror: () => reference.expire(step),
        })
    }
    if (reference.aborting().length > 0) return moves
    if (reference.paused) {
      const weight = moves.length === 0 ? 1 : 0.5
      moves.push({ label: 'resume', weight, command: () => ({ type: 'run.resume' }), mirror: () => reference.resume() })
    } else if (this.#steers && this.#pausesLeft > 0)
      moves.push({
        label: 'pause',
        weight: 0.3,
        command: () => ({ type: 'run.pause' }),
        mirror: () => {
          this.#pausesLeft -= 1
          reference.pause()
        },
      })
    if (this.#cancels && this.moves.length > 1 && !reference.decided)
      moves.push({
        label: 'cancel',
        weight: 0.3 * plan.steps.length,
        command: () => ({ type: 'run.cancel', compensate: this.#compensate }),
        mirror: () => reference.cancel(this.#compensate),
      })
    return moves
  }

  /** What was aborted ends; where things are undone, it may have returned after all, or run out of its grace. */
  #abortMoves(step: string, item: number | undefined): Move[] {
    const move = (how: 'ended' | 'late' | 'fenced'): Move => ({
      label: `${step}${item === undefined ? '' : `[${item}]`} has ${how}`,
      weight: 1,
      command: () => ({
        type: 'turn.settle',
        ...this.#aborted(step, item),
        how: how === 'fenced' ? 'fenced' : 'ended',
        ...(how === 'late' ? { done: { output: 'late' } } : {}),
      }),
      mirror: () => this.#reference.settle(step, item, how),
    })
    if (this.#sample.undoFails === undefined) return [move('ended')]
    const returns = this.#sample.behave(this.#reference.aborted(step, item)).type === 'value'
    return [move('ended'), move('fenced'), ...(returns ? [move('late')] : [])]
  }

  #undoMove(of: string, attempt: number): Move {
    const how = attempt > (this.#sample.undoFails?.(of) ?? 0) ? 'compensated' : 'failed'
    const error: Failure = { code: 'STEP_FAILED', message: 'it can not be undone', retryable: true, at: {} }
    return {
      label: `the undo of ${of}@${attempt} -> ${how}`,
      weight: 1,
      command: () => {
        const running = this.#state.undo.running.get(of)
        if (running === undefined) throw new Error(`the kernel owes no undo of ${of}`)
        const speaker = { of, attempt: running.attempt, revision: running.revision }
        return how === 'compensated' ? { type: 'undo.complete', ...speaker } : { type: 'undo.fail', ...speaker, error, retryable: true }
      },
      mirror: () => this.#reference.undo(of, how),
    }
  }

  /** The reference knows no waiting between two attempts at an undo. */
  #retryUndos(): void {
    if (this.#state.pausedAt !== null) return
    for (const { id, kind, due } of this.#state.timers.values()) {
      if (kind !== 'undo') continue
      this.#at = Math.max(this.#at, due + this.#state.pausedMs)
      this.#decide({ type: 'timer.fire', timer: id })
    }
  }

  #decide(command: Command): void {
    this.#at += 1
    const decision = this.#of.decides(this.#state, command, this.#at, this.#internals.code)
    if ('refusal' in decision) throw new Error(`the kernel refuses ${command.type}: ${decision.refusal.code} ${decision.refusal.message}`)
    const violations = this.#of === parts ? checkStep(this.#state, decision.events, evolve) : []
    if (violations.length > 0) throw new Error(`a broken invariant: ${violations.map(({ explain }) => explain).join('; ')}`)
    this.#journal.push(...decision.events)
    this.#state = decision.state
  }

  /** A completion counts once, however often it is reported. */
  #refusesAgain(command: Command): void {
    if (command.type === 'run.pause' || command.type === 'run.cancel' || command.type === 'run.resume') return
    const again = this.#of.decides(this.#state, command, this.#at, this.#internals.code)
    if (!('refusal' in again)) throw new Error(`the kernel takes ${command.type} a second time`)
  }

  /** Goes on as another process would: from the journal, or from a snapshot, as they are written down. */
  #recover(from: 'journal' | 'snapshot'): void {
    if (this.#of !== parts) return
    const recovered = from === 'journal' ? this.#folded() : this.#loaded()
    const [now, then] = [dump(this.#state), dump(recovered)]
    if (now !== then) throw new Error(`the ${from} gives another state:\n${then}\n${now}`)
    this.#state = recovered
  }

  #folded(): State {
    // The first event has the whole definition, of which nothing is in question here.
    const [start, ...rest] = this.#journal
    return [start as Event, ...(JSON.parse(JSON.stringify(rest)) as Event[])].reduce(evolve, newState)
  }

  #loaded(): State {
    const { run, ...saved } = saveState(this.#state) as Record<string, unknown>
    return loadState({ ...(JSON.parse(JSON.stringify(saved)) as object), run })
  }

  #branch(step: string, item: number | undefined): string {
    const { steps } = this.#internals.shape
    const whole = rootBranch(
      steps.findIndex(({ id }) => id === step),
      steps.length,
    )
    return item === undefined ? whole : childBranch(whole, item)
  }

  #speaker(step: string, item: number | undefined): Attempt {
    const attempt = attemptOf(this.#state, this.#branch(step, item))
    if (attempt === undefined) throw new Error(`the kernel owes no attempt at ${step} ${item ?? ''}`)
    return attempt
  }

  #aborted(step: string, item: number | undefined): Attempt {
    const branch = this.#branch(step, item)
    const attempt = [...this.#state.aborting.values()].find((one) => attemptId(one.branch, 0, 0) === attemptId(branch, 0, 0))
    if (attempt === undefined) throw new Error(`the kernel aborts nothing at ${step} ${item ?? ''}`)
    return attempt
  }

  #askOf(step: string): string {
    const ask = [...this.#state.asks.values()].find(({ agent }) => agent === step)
    if (ask === undefined) throw new Error(`the kernel asks nothing at ${step}`)
    return ask.id
  }

  /** Both stand at the same place. */
  #compare(): void {
    const reference = this.#reference
    const owed = reference.owed().map((one) => written([one.step, one.item, one.value, one.attempt, one.sees]))
    const turns = attemptsOf(this.#state).map((attempt) => written(this.#shown(attempt.branch, attempt.attempt)))
    same('owed', owed, turns)
    same(
      'waiting',
      reference.waiting().map(({ step, item }) => written([step, item])),
      this.#waiting().map((id) => written(this.#place(id))),
    )
    const aborting = [...this.#state.aborting.values()].map(({ branch, agent }) => {
      const item = branch.split('.').slice(2).map(Number)[0]
      return written([agent, item])
    })
    same(
      'aborting',
      reference.aborting().map(({ step, item }) => written([step, item])),
      aborting,
    )
    same(
      'asks',
      reference.asks(),
      [...this.#state.asks.values()].map(({ agent }) => agent),
    )
    same(
      'undos',
      reference.undos().map(({ of, attempt }) => written([of, attempt])),
      [...this.#state.undo.running.values()].map(({ of, attempt }) => written([of, attempt])),
    )
    const compensating = this.#state.status === 'compensating'
    if (compensating !== reference.compensating) throw new Error(`compensating: expected ${reference.compensating}, got ${compensating}`)
    const over = isOver(this.#state)
    if (over !== (reference.end() !== null)) throw new Error(`the run is ${over ? '' : 'not '}over, the reference is another`)
    if (!over && reference.aborting().length === 0 && (this.#state.pausedAt !== null) !== reference.paused)
      throw new Error(`paused: expected ${reference.paused}, got ${this.#state.pausedAt !== null}`)
  }

  #shown(id: string, attempt: number): unknown[] {
    const branch = branchOf(this.#state, id)
    const { message } = branch
    if (message.kind !== 'step') throw new Error(`a step is shown ${message.kind}`)
    const sees = stepOutputs(this.#state, barrierOf(this.#state, rootBarrier), message.sees)
    const value = message.item === undefined ? undefined : barrierOf(this.#state, branch.scope).calls[message.item]?.request
    return [branch.agent, message.item, value, attempt, sees]
  }

  /** Branches that could go on and have not started: queued, or items that wait for one before them. */
  #waiting(): string[] {
    return [...this.#state.branches.values()]
      .filter(({ standing, scope }) =>
        standing.status === 'ready' ? standing.ticket !== null : standing.status === 'gated' && scope !== rootBarrier,
      )
      .map(({ id }) => id)
  }

  #place(id: string): unknown[] {
    const branch = branchOf(this.#state, id)
    return [branch.agent, branch.scope === rootBarrier ? undefined : branch.slot]
  }

  #conclude(): Played {
    const expected = factsOfReference(this.#reference)
    const got = factsOfJournal(this.#journal, this.#state)
    for (const key of Object.keys(expected) as (keyof Facts)[]) same(key, [written(expected[key])], [written(got[key])])
    const { measured: _, ...report } = this.#of.reports(this.#journal)
    same('the steps of the report', reportedSteps(expected.steps).map(written), report.steps.map(withoutCode).map(written))
    const { choices, ...facts } = got
    return {
      choices: written(choices),
      facts: `${written(facts)}\n${JSON.stringify(report)}`,
      moves: this.moves,
      status: got.status,
      rollback: got.rollback,
    }
  }
}

function commandOf(attempt: Attempt, outcome: RefOutcome): Command {
  switch (outcome.type) {
    case 'value':
      return { type: 'step.complete', ...attempt, output: outcome.value }
    case 'skip':
      return { type: 'step.skip', ...attempt }
    case 'items':
      return { type: 'step.each', ...attempt, items: outcome.items }
    case 'question':
      return { type: 'turn.complete', ...attempt, action: { type: 'ask', question: 'what?', timeoutMs: expiresMs } }
    case 'failure': {
      const error: Failure = { code: 'STEP_FAILED', message: outcome.message, retryable: true, at: {} }
      return { type: 'turn.fail', ...attempt, error, retryable: true }
    }
  }
}

// ── what both say in the end ─────────────────────────────────────────────────────────────────────────────

type Ended = { status: string; output?: unknown; cause?: unknown; error?: unknown }

interface Facts {
  readonly status: string
  readonly output: unknown
  readonly error: unknown
  readonly others: unknown
  readonly steps: readonly { id: string; end: Ended; items: readonly Ended[] | null }[]
  readonly saw: Readonly<Record<string, unknown>>
  readonly choices: readonly string[]
  readonly rollback: string
  readonly notUndone: readonly string[]
}

const nothing = { output: null, error: null, others: [], steps: [], saw: {} }

function factsOfReference(reference: Reference): Facts {
  const end = reference.end()
  if (end === null) throw new Error('the reference has not ended')
  const { rollback, notUndone } = end
  if (end.status === 'cancelled') {
    const chosen = reference.choices().filter(({ kind }) => kind === 'undo')
    return { status: 'cancelled', ...nothing, choices: chosen.map(written), rollback, notUndone }
  }
  const cancelled = new Set(reference.settled().flatMap(({ id, end: how }) => (how?.status === 'cancelled' ? [id] : [])))
  return {
    status: end.status,
    // What a run gives is JSON, in which a skipped item is null.
    output: end.output === undefined ? null : (JSON.parse(JSON.stringify(Object.entries(end.output))) as unknown),
    error: end.error === undefined ? null : 'requiredSkipped' in end.error ? { required: end.error.requiredSkipped[0] } : plain(end.error),
    others: (end.others ?? []).map(plain),
    steps: reference.settled().map(({ id, end: how, items }) => ({
      id,
      end: endOf(how),
      items: items === null || cancelled.has(id) ? null : items.map(endOf),
    })),
    saw: Object.fromEntries(Object.entries(reference.saw()).filter(([id]) => !cancelled.has(id))),
    choices: reference.choices().map(written).toSorted(),
    rollback,
    notUndone,
  }
}

const plain = ({ message, step }: RefFailure): unknown => ({ message, step })

function endOf(end: RefSettled | null): Ended {
  switch (end?.status) {
    case 'succeeded':
      return { status: 'succeeded', output: end.output }
    case 'failed':
      return { status: 'failed', error: plain(end.failure) }
    case 'skipped': {
      const { cause } = end
      return { status: 'skipped', cause: cause === 'when' ? 'when' : 'step' in cause ? cause.step : plain(cause.failure) }
    }
    default:
      return { status: 'cancelled' }
  }
}

/** The steps as a report lists them: each followed by its items, in JSON, those that were cancelled with nothing below them. */
function reportedSteps(steps: Facts['steps']): unknown[] {
  const entry = (id: string, { status, output, error, cause }: Ended, item?: number): unknown => ({
    id,
    ...(item === undefined ? {} : { item }),
    ...(status === 'cancelled' ? { status: 'skipped', cause: 'cancelled' } : { status }),
    ...(status === 'succeeded' ? { output: JSON.parse(JSON.stringify(output)) } : {}),
    ...(status === 'skipped' ? { cause: typeof cause === 'object' ? (cause as { message: string }).message : cause } : {}),
    ...(status === 'failed' ? { cause: (error as { message: string }).message } : {}),
  })
  return steps.flatMap(({ id, end, items }) => [entry(id, end), ...(items ?? []).map((item, index) => entry(id, item, index))])
}

/** The same, from the journal alone. */
function factsOfJournal(journal: readonly Event[], state: State): Facts {
  const shape = shapeOf(state)
  if (shape.kind !== 'graph') throw new Error('this is no graph')
  const { steps } = shape
  const plan = journal.find((event) => event.type === 'undo.planned')
  const undone = plan?.type === 'undo.planned' && plan.decidedBy !== undefined ? [written({ kind: 'undo', decidedBy: plan.decidedBy })] : []
  const last = journal.at(-1)
  if (last?.type !== 'run.succeeded' && last?.type !== 'run.failed' && last?.type !== 'run.cancelled') throw new Error('it has not ended')
  const { rollback = 'none', notUndone = [] } = last
  if (state.status === 'cancelled') return { status: 'cancelled', ...nothing, choices: undone, rollback, notUndone }
  const root = journal.find((event) => event.type === 'barrier.fired' && event.barrier === rootBarrier)
  const decidedBy = root?.type === 'barrier.fired' ? root.decidedBy : undefined
  const ends = new Map<string, Ended>()
  const sees = new Map<string, readonly string[]>()
  const widths = new Map<string, number>()
  const choices: { branch: string; choice: unknown }[] = []
  const idOf = (branch: string): string => steps[Number(branch.split('.')[1] ?? 0)]?.id ?? '?'
  for (const event of journal) {
    if (event.type === 'step.completed') ends.set(event.branch, { status: 'succeeded', output: holed(event.output, event.holes) })
    if (event.type === 'step.skipped')
      ends.set(event.branch, { status: 'skipped', cause: event.error === undefined ? event.cause : failed(event.error) })
    if (event.type === 'branch.settled' && event.status === 'failed')
      ends.set(event.branch, { status: 'failed', error: failed(event.error) })
    if (event.type === 'barrier.opened' && event.each !== undefined) widths.set(event.branch ?? '', event.width)
    if (event.type === 'gate.opened' && event.sees !== undefined) {
      sees.set(event.branch, event.sees)
      if (event.decidedBy !== undefined)
        choices.push({ branch: event.branch, choice: { kind: 'gate', at: idOf(event.branch), decidedBy: event.decidedBy } })
    }
    if (event.type === 'ask.expired') choices.push({ branch: event.branch, choice: { kind: 'timeout', at: idOf(event.branch) } })
  }
  const branches = steps.map((_, index) => rootBranch(index, steps.length))
  const counts = branches.map((branch, index) => ends.has(branch) && (decidedBy?.includes(index) ?? true))
  const counted = new Set(branches.filter((_, index) => counts[index]))
  const outputs = new Map(steps.map(({ id }, index) => [id, ends.get(branches[index] as string)?.output]))
  const error = last?.type === 'run.failed' ? last.error : null
  return {
    status: state.status,
    output: last?.type === 'run.succeeded' ? Object.entries(last.output as object) : null,
    error: error === null ? null : error.code === 'REQUIRED_SKIPPED' ? { required: (error.data as { step: string }).step } : failed(error),
    others: (error?.others ?? []).map(failed),
    steps: steps.map(({ id }, index) => {
      const branch = branches[index] as string
      if (!counts[index]) return { id, end: { status: 'cancelled' }, items: null }
      const width = widths.get(branch)
      const items = width === undefined ? null : Array.from({ length: width }, (_, item) => ends.get(childBranch(branch, item)) as Ended)
      return { id, end: ends.get(branch) as Ended, items }
    }),
    saw: Object.fromEntries(
      steps.flatMap(({ id }, index) => {
        const seen = sees.get(branches[index] as string)
        if (seen === undefined || !counts[index]) return []
        return [[id, Object.fromEntries(seen.map((one) => [one, outputs.get(one)]))]]
      }),
    ),
    choices: [
      ...choices.filter(({ branch }) => counted.has(branch)).map(({ choice }) => written(choice)),
      ...(decidedBy === undefined ? [] : [written({ kind: 'join', decidedBy: decidedBy.map((index) => steps[index]?.id) })]),
      ...undone,
    ].toSorted(),
    rollback,
    notUndone,
  }
}

/** The cause of a failed step begins with the code of its failure, which is the kernel's business. */
function withoutCode(step: { status: string; cause?: string }): object {
  if (step.status !== 'failed') return step
  const [code = '', ...said] = (step.cause ?? '').split(': ')
  return { ...step, cause: code === 'ASK_EXPIRED' ? 'expired' : said.join(': ') }
}

const failed = ({ code, message, at }: Failure): unknown => ({ message: code === 'ASK_EXPIRED' ? 'expired' : message, step: at.step })

const holed = (output: unknown, holes: readonly number[] | undefined): unknown =>
  holes === undefined ? output : (output as unknown[]).map((item, index) => (holes.includes(index) ? undefined : item))

/** Written down so that equal values read equal, whatever the order of their keys; an item that was skipped is told from null. */
function written(value: unknown): string {
  return JSON.stringify(value, function (this: unknown, _, inner: unknown) {
    if (inner === undefined && Array.isArray(this)) return 'undefined!'
    if (typeof inner !== 'object' || inner === null || Array.isArray(inner)) return inner
    return Object.fromEntries(Object.entries(inner).toSorted(([a], [b]) => (a < b ? -1 : 1)))
  })
}

function same(what: string, expected: readonly string[], got: readonly string[]): void {
  const [a, b] = [expected.toSorted().join('\n    '), got.toSorted().join('\n    ')]
  if (a !== b) throw new Error(`${what}: the rules say\n    ${a}\n  the kernel says\n    ${b}`)
}
