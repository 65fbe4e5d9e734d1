/**
 * Plays random graphs on the reference alone, in many orders: for equal choices nothing may differ in the end, and everything is undone
 * once, and after all that came because of it.
 */
import { Random } from '../reference/random.js'
import type { RefEntry } from '../reference/undoing.js'
import type { GraphSample } from './random.js'
import { undoGraph } from './random.js'
import type { RefGraph, RefOwed } from './reference.js'
import { Reference } from './reference.js'

export interface Move {
  readonly id: string
  readonly weight: number
  readonly make: () => void
}

const placeOf = ({ step, item }: { step: string; item?: number }): string => (item === undefined ? step : `${step}:${item}`)

/** Everything that may happen next, but for what people do of their own accord. */
export function movesOf(run: Reference, sample: GraphSample, slow: ReadonlySet<string>): Move[] {
  const weight = (kind: string): number => (slow.has(kind) ? 0.05 : 1)
  const moves: Move[] = []
  for (const owed of run.owed()) moves.push(...attemptMoves(run, sample, owed, weight('act')))
  for (const { step, item } of run.aborting()) moves.push(...abortMoves(run, sample, step, item, weight('settle')))
  for (const step of run.asks()) {
    moves.push({ id: `answer ${step}`, weight: weight('act'), make: () => run.answer(step, sample.answer(step)) })
    if (!run.paused) moves.push({ id: `expire ${step}`, weight: 0.3, make: () => run.expire(step) })
  }
  for (const { of, attempt } of run.undos()) {
    const how = attempt > (sample.undoFails?.(of) ?? 0) ? 'compensated' : 'failed'
    moves.push({ id: `undo ${of} ${attempt} ${how}`, weight: weight('undo'), make: () => run.undo(of, how) })
  }
  return moves
}

function attemptMoves(run: Reference, sample: GraphSample, owed: RefOwed, weight: number): Move[] {
  const { step, item } = owed
  const { recorded, inFlight } = run.work(step, item)
  const left = (sample.does?.(owed) ?? []).filter(({ key }) => !recorded.has(key))
  const complete = (): void => {
    for (const activity of left) run.record(step, item, activity)
    run.complete(step, item, sample.behave(owed))
  }
  const moves: Move[] = [{ id: `act ${placeOf(owed)} ${owed.attempt}`, weight, make: complete }]
  const [next] = left
  if (next === undefined) return moves
  const starts = next.compensates && inFlight === null
  const make = (): void => (starts ? run.startActivity(step, item, next.key) : run.record(step, item, next))
  return [...moves, { id: `step ${placeOf(owed)} ${next.key}`, weight, make }]
}

function abortMoves(run: Reference, sample: GraphSample, step: string, item: number | undefined, weight: number): Move[] {
  const aborted = run.aborted(step, item)
  const { inFlight } = run.work(step, item)
  const settle = (how: 'ended' | 'late' | 'fenced'): Move => ({
    id: `settle ${placeOf(aborted)} ${how}`,
    weight,
    make: () => run.settle(step, item, how),
  })
  const activity = sample.does?.(aborted).find(({ key }) => key === inFlight)
  if (activity !== undefined)
    return [
      settle('ended'),
      settle('fenced'),
      { id: `step ${placeOf(aborted)} ${activity.key}`, weight, make: () => run.record(step, item, activity) },
    ]
  const returns = sample.behave(aborted).type === 'value'
  return [settle('ended'), settle('fenced'), ...(returns ? [settle('late')] : [])]
}

interface Played {
  readonly key: string
  readonly facts: string
  readonly order: readonly string[]
  readonly run: Reference
}

function play(sample: GraphSample, random: Random): Played {
  const run = new Reference(sample.graph)
  const order: string[] = []
  const slow = new Set(['act', 'settle', 'undo'].filter(() => random.chance(0.3)))
  const [pauses, cancels] = [random.chance(0.2) ? 0.3 : 0, random.chance(0.05) ? 0.2 : 0]
  const compensate = random.chance(0.7)
  const watch = new Watch(sample.graph)
  for (let left = 600; run.end() === null; left--) {
    const moves = movesOf(run, sample, slow)
    if (run.paused) moves.push({ id: 'resume', weight: moves.length === 0 ? 1 : 0.5, make: () => run.resume() })
    else if (pauses > 0) moves.push({ id: 'pause', weight: pauses, make: () => run.pause() })
    if (cancels > 0) moves.push({ id: 'cancel', weight: cancels, make: () => run.cancel(compensate) })
    if (moves.length === 0 || left === 0) throw new Error(`the run does not end: ${order.join(', ')}`)
    const move = random.weighted(moves.map((one) => [one.weight, one] as const))
    order.push(move.id)
    move.make()
    watch.look(run)
  }
  const end = run.end()
  const cancelled = end?.status === 'cancelled'
  // Of a run that was cancelled only its status remains, and what became of the plan that its choice names.
  const facts = cancelled ? end : [end, ...reported(run)]
  const choices = run.choices().filter(({ kind }) => !cancelled || kind === 'undo')
  const key = JSON.stringify([
    cancelled && compensate ? 'cancelled' : cancelled ? 'abandoned' : '',
    choices.map((one) => JSON.stringify(one)).toSorted(),
  ])
  return { key, facts: written(facts), order, run }
}

/** Nothing below a step that reads cancelled, but for what the choice of the plan names. */
function reported(run: Reference): unknown[] {
  const settled = run.settled()
  const cancelled = new Set(settled.filter(({ end }) => end?.status === 'cancelled').map(({ id }) => id))
  const entries = run.entries().map(({ id, status }) => `${id} ${status}`)
  return [
    settled.map(({ id, end, items }) => (cancelled.has(id) ? id : { id, end, items })),
    Object.entries(run.saw()).filter(([id]) => !cancelled.has(id)),
    entries.toSorted(),
  ]
}

const written = (value: unknown): string =>
  JSON.stringify(value, (_, inner: unknown) =>
    typeof inner === 'object' && inner !== null && !Array.isArray(inner)
      ? Object.fromEntries(Object.entries(inner).toSorted(([a], [b]) => (a < b ? -1 : 1)))
      : inner,
  )

/** Sees to it that undos start when they may, and not before. */
class Watch {
  readonly #graph: RefGraph
  readonly #before = new Map<string, string>()

  constructor(graph: RefGraph) {
    this.#graph = graph
  }

  look(run: Reference): void {
    const planned = run.entries().filter(({ plan }) => plan !== null)
    for (const entry of planned) {
      const first = planned.filter((other) => this.#mustGoFirst(other, entry) && !isSettled(other))
      const starts = entry.status === 'compensating' && this.#before.get(entry.id) !== 'compensating'
      if (starts && first.length > 0) throw new Error(`the undo of ${entry.id} starts before that of ${first[0]?.id} has settled`)
      if (entry.status === 'pending' && first.length === 0 && !run.paused)
        throw new Error(`${entry.id} is not undone, and nothing holds it back`)
      if (this.#before.get(entry.id) === 'compensated' && entry.status !== 'compensated') throw new Error(`${entry.id} is undone twice`)
      if (run.aborting().length > 0) throw new Error(`a plan begins while ${run.aborting()[0]?.step} is being aborted`)
      this.#before.set(entry.id, entry.status)
    }
  }

  #mustGoFirst(later: RefEntry, earlier: RefEntry): boolean {
    if (later === earlier) return false
    if (later.node === earlier.node) return later.kind === 'node' || (earlier.kind === 'activity' && later.place > earlier.place)
    return this.#isAfter(later.node.split(':')[0] as string, earlier.node.split(':')[0] as string)
  }

  #isAfter(step: string, other: string): boolean {
    const { after } = this.#graph.steps.find(({ id }) => id === step) as { after: readonly string[] }
    return after.some((one) => one === other || this.#isAfter(one, other))
  }
}

const isSettled = ({ status }: RefEntry): boolean => status === 'compensated' || status === 'failed' || status === 'unknown'

export interface Found {
  games: number
  compared: number
  readonly rollbacks: Record<string, number>
  readonly divergences: string[]
}

export function search(options: { from: number; graphs: number; orders: number }): Found {
  const found: Found = { games: 0, compared: 0, rollbacks: {}, divergences: [] }
  for (let seed = options.from; seed < options.from + options.graphs && found.divergences.length < 5; seed++) {
    const sample = undoGraph(seed)
    const firsts = new Map<string, Played>()
    for (let order = 0; order < options.orders; order++) {
      try {
        const played = play(sample, new Random(`alone ${seed} ${order}`))
        const rollback = played.run.end()?.rollback ?? ''
        found.games++
        found.rollbacks[rollback] = (found.rollbacks[rollback] ?? 0) + 1
        const first = firsts.get(played.key)
        if (first === undefined) firsts.set(played.key, played)
        else found.compared++
        if (first === undefined || first.facts === played.facts) continue
        const orders = `${first.order.join(', ')}\n${played.order.join(', ')}`
        found.divergences.push(`seed ${seed}: for the choices ${played.key}\n${first.facts}\n${played.facts}\n${orders}`)
      } catch (error) {
        found.divergences.push(`seed ${seed}, order ${order}: ${String(error)}`)
      }
      break
    }
  }
  return found
}
