/**
 * Random graphs that go on under an edited version from wherever they stand, and under another one after that. A version that can't go on
 * with a run is refused and leaves it as it is; under one that can, the run comes to its end with every step of that version.
 */
import { expect, test } from 'vitest'
import type { GraphInternals } from '../../src/define/definition.js'
import { reportOf } from '../../src/inspect/report.js'
import type { Command } from '../../src/kernel/command.js'
import { decide } from '../../src/kernel/decide.js'
import type { Event } from '../../src/kernel/event.js'
import { evolve } from '../../src/kernel/evolve.js'
import type { Failure } from '../../src/kernel/failure.js'
import { checkStep } from '../../src/kernel/invariants.js'
import { loadState, saveState } from '../../src/kernel/snapshot.js'
import type { Attempt, State } from '../../src/kernel/state.js'
import { attemptsOf, branchOf, isOver, newState, stepShape } from '../../src/kernel/state.js'
import { dump } from '../kernel/dump.js'
import { Random } from '../reference/random.js'
import { shuffled, undoGraph } from './random.js'
import type { RefGraph, RefStep } from './reference.js'
import { definitionOf } from './side-by-side.js'

/** A run on the bare kernel, with the definition that it goes on under. */
interface Game {
  readonly internals: GraphInternals
  readonly journal: readonly Event[]
  readonly state: State
  readonly at: number
}

/** What becomes of it; the code of a refusal if there is one. */
function told({ internals, journal, state, at }: Game, command: Command): Game | string {
  const decision = decide(state, command, at + 1, internals.code)
  if ('refusal' in decision) return decision.refusal.code
  const violations = checkStep(state, decision.events, evolve)
  if (violations.length > 0) throw new Error(`${command.type}: ${violations.map(({ explain }) => explain).join('; ')}`)
  return { internals, journal: [...journal, ...decision.events], state: decision.state, at: at + 1 }
}

function said(game: Game, command: Command): Game {
  const next = told(game, command)
  if (typeof next === 'string') throw new Error(`the kernel refuses ${command.type}: ${next}`)
  return next
}

function started(internals: GraphInternals): Game {
  const { shape } = internals
  return said({ internals, journal: [], state: newState, at: 1_000 }, { type: 'run.start', runId: 'run', nonce: 'nonce', shape, tags: {} })
}

const broken: Failure = { code: 'STEP_FAILED', message: 'it broke', retryable: true, at: {} }

function played({ state }: Game, attempt: Attempt, random: Random): Command {
  const step = stepShape(state, attempt.agent)
  const { message } = branchOf(state, attempt.branch)
  const isItem = message.kind === 'step' && message.item !== undefined
  if (step?.hasWhen === true && !isItem && random.chance(0.2)) return { type: 'step.skip', ...attempt }
  if (random.chance(0.1)) return { type: 'turn.fail', ...attempt, error: broken, retryable: true }
  if (step?.kind === 'ask') return { type: 'turn.complete', ...attempt, action: { type: 'ask', question: 'what?' } }
  if (step?.hasEach === true && !isItem) return { type: 'step.each', ...attempt, items: [1, 2, 3].slice(random.below(4)) }
  return { type: 'step.complete', ...attempt, output: attempt.agent }
}

/** What can happen next in a run that a worker has. */
function moves(game: Game, random: Random): Command[] {
  const { state } = game
  if (state.pausedAt !== null) return [{ type: 'run.resume' }]
  const undos = [...state.undo.running.values()].map(
    ({ of, attempt, revision }): Command =>
      random.chance(0.2)
        ? { type: 'undo.fail', of, attempt, revision, error: broken, retryable: random.chance(0.5) }
        : { type: 'undo.complete', of, attempt, revision },
  )
  return [
    ...attemptsOf(state).map((attempt) => played(game, attempt, random)),
    ...[...state.aborting.values()].map((attempt): Command => ({ type: 'turn.settle', ...attempt, how: random.pick(['ended', 'fenced']) })),
    ...[...state.asks.keys()].map((askId): Command => ({ type: 'ask.answer', askId, value: 'said' })),
    ...undos,
  ]
}

/** One thing happens, in the order of chance: null if nothing can. */
function stepped(game: Game, random: Random): Game | null {
  const able = moves(game, random)
  if (able.length > 0) return said(game, random.pick(able))
  const [timer] = [...game.state.timers.values()].sort((a, b) => a.due - b.due)
  if (timer === undefined) return null
  return said({ ...game, at: Math.max(game.at, timer.due + game.state.pausedMs) }, { type: 'timer.fire', timer: timer.id })
}

function ended(game: Game, random: Random): Game {
  let at = game
  for (let count = 0; !isOver(at.state); count++) {
    const next = stepped(at, random)
    if (next === null || count > 2_000) throw new Error('the run can go no further, and has not ended')
    at = next
  }
  return at
}

// ── editing ──────────────────────────────────────────────────────────────────────────────────────────────

/** A step with items as one without, which has no `concurrency`, or the other way round. */
function ofOtherKind({ concurrency, ...step }: RefStep): RefStep {
  if (step.kind === 'each') return { ...step, kind: 'run' }
  return { ...step, kind: 'each', ...(concurrency === undefined ? {} : { concurrency }) }
}

/** Another version: steps are gone, renamed, new, declared elsewhere, after others, of another kind, or can't be undone any more. */
function edited(graph: RefGraph, random: Random): RefGraph {
  let steps = [...graph.steps]
  for (let edits = 1 + random.below(3); edits > 0; edits--) {
    const edit = random.pick(['remove', 'rename', 'add', 'reorder', 'rewire', 'kind', 'undo'] as const)
    const one = random.pick(steps)
    const change = (by: Partial<RefStep>): RefStep[] => steps.map((step) => (step === one ? { ...step, ...by } : step))
    if (edit === 'remove' && steps.length > 1) steps = steps.filter((step) => step !== one)
    if (edit === 'rename') steps = change({ id: `${one?.id}x` })
    if (edit === 'add') {
      const id = random.pick(
        ['n0', 'n1', 's0', 's1'].filter((name) => steps.every((step) => step.id !== name)).concat(`n${steps.length}${random.below(99)}`),
      )
      const added: RefStep = { id, after: [], join: 'all', kind: 'run', attempts: 1, onError: 'fail', compensates: random.chance(0.5) }
      steps = steps.toSpliced(random.below(steps.length + 1), 0, added)
    }
    if (edit === 'reorder') steps = shuffled(random, steps)
    if (edit === 'rewire') steps = rewired(steps, random)
    if (edit === 'kind' && one?.kind !== 'ask') steps = steps.map((step) => (step === one ? ofOtherKind(step) : step))
    if (edit === 'undo') steps = change({ compensates: false })
  }
  const ids = new Set(steps.map(({ id }) => id))
  const whole = steps.map((step) => {
    const after = step.after.filter((id) => ids.has(id))
    return after.length === step.after.length ? step : { ...step, after, join: 'all' as const }
  })
  return {
    steps: whole,
    stragglers: random.chance(0.2) ? 'cancel' : graph.stragglers,
    required: graph.required.filter((id) => ids.has(id)),
  }
}

/** Each after some of those that come before it in an order of its own, so that none comes after itself. */
function rewired(steps: readonly RefStep[], random: Random): RefStep[] {
  const order = shuffled(random, steps).map(({ id }) => id)
  return steps.map((step) => ({ ...step, join: 'all', after: order.slice(0, order.indexOf(step.id)).filter(() => random.chance(0.4)) }))
}

const versionOf = (graph: RefGraph, version: string): GraphInternals => {
  const internals = definitionOf(graph, new Set())
  return { ...internals, shape: { ...internals.shape, version } }
}

// ── the test ─────────────────────────────────────────────────────────────────────────────────────────────

/** The journal and the snapshot give the same state, as they are written down. */
function expectSame({ journal, state }: Game): void {
  const written = <T>(value: T): T => JSON.parse(JSON.stringify(value)) as T
  const now = dump(state)
  expect(dump(written(journal).reduce(evolve, newState))).toBe(now)
  expect(dump(loadState(written(saveState(state))))).toBe(now)
}

/** Under this version from here on, by a worker that found it as it was left; null if it can't. */
function continued(game: Game, internals: GraphInternals, released: boolean): Game | null {
  const given = released && game.state.held ? said(game, { type: 'run.release' }) : game
  // With its release it may have ended, as what was aborted has: then nobody claims it.
  const left = isOver(given.state) ? game : given
  const next = told({ ...left, internals }, { type: 'run.claim', epoch: 2, shape: internals.shape })
  if (typeof next !== 'string') return next
  expect(next).toBe('CANNOT_CONTINUE')
  return null
}

function expectWhole(before: Game, after: Game): void {
  const { state, internals, journal } = after
  reportOf(journal)
  const done = new Map(
    journal.flatMap((event) => (event.type === 'step.completed' && event.item === undefined ? [[event.step, event.output]] : [])),
  )
  const settled = new Set(journal.flatMap((event) => ('step' in event && !('item' in event) ? [event.step] : [])))
  const decidedAt = journal.find(({ type }) => type === 'run.decided')?.seq ?? journal.length
  const claimedAt = journal.findLast(({ type }) => type === 'run.claimed')?.seq ?? 0
  if (state.outcome?.status !== 'succeeded' || decidedAt < claimedAt) return
  // Each step of the version that it ended under has settled, and those that succeeded are its output: also those from before.
  for (const { id } of internals.shape.steps) expect(settled).toContain(id)
  const output = Object.fromEntries(internals.shape.steps.flatMap(({ id }) => (done.has(id) ? [[id, done.get(id)]] : [])))
  expect(JSON.stringify(state.outcome.output)).toBe(JSON.stringify(output))
  // What was done is not done again.
  const once = (journalOf: readonly Event[]) =>
    journalOf.flatMap((event) => (event.type === 'step.completed' ? [`${event.step}:${event.item}`] : []))
  expect(new Set(once(journal)).size).toBe(once(journal).length)
  expect(once(journal).slice(0, once(before.journal).length)).toEqual(once(before.journal))
}

/** What can be undone is, or is said not to be. */
function expectAccounted({ state, journal }: Game): void {
  if (state.outcome?.status === 'succeeded' || state.keepsDone) return
  for (const { entry } of state.undo.nodes.values()) if (entry !== null) expect(['compensated', 'failed']).toContain(entry.status)
  const last = journal.at(-1)
  if (last?.type === 'run.failed' || last?.type === 'run.cancelled') expect(last.rollback === 'partial').toBe(state.undo.left.size > 0)
}

const seeds = 30

test('a graph that was interrupted anywhere goes on under an edited version to its end, or is left as it is and can be cancelled', () => {
  const count = { ended: 0, refused: 0 }
  for (let seed = 0; seed < seeds; seed++) {
    const random = new Random(`continues ${seed}`)
    const { graph } = undoGraph(seed)
    let here: Game | null = started(versionOf(graph, '1'))
    for (; here !== null && !isOver(here.state); here = stepped(here, random)) {
      const second = edited(graph, random)
      const after = continued(here, versionOf(second, '2'), random.chance(0.5))
      if (after === null) {
        count.refused++
        const cancelled = said(said(here, { type: 'run.claim', epoch: 2 }), { type: 'run.cancel' })
        expectAccounted(ended(cancelled, random))
        continue
      }
      expectSame(after)
      let on: Game = after
      for (let more = random.below(6); more > 0 && !isOver(on.state); more--) on = stepped(on, random) ?? on
      const third = isOver(on.state)
        ? null
        : continued(on, versionOf(random.chance(0.5) ? graph : edited(second, random), '3'), random.chance(0.5))
      const end = ended(third ?? on, random)
      expectSame(end)
      expectWhole(here, end)
      expectAccounted(end)
      count.ended++
    }
  }
  expect(count.ended).toBeGreaterThan(5 * seeds)
  expect(count.refused).toBeGreaterThan(seeds)
})
