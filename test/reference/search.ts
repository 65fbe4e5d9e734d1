/**
 * Plays a run on the reference in many orders, and compares what came out wherever the same choices were made.
 *
 * What an order may decide is which move comes next: an owed turn completes, a timer fires, an aborted attempt ends, a person answers.
 */
import { Reference, canonical } from './model.js'
import type { Owed, RefAction, RefTopology } from './model.js'
import { Random, sample } from './random.js'

export interface Game {
  topology: RefTopology
  input: unknown
  act: (owed: Owed) => RefAction
  answer: (ask: { id: string; kind: 'question' | 'join' }) => unknown
}
export interface Move {
  id: string
  kind: 'act' | 'settle' | 'answer' | 'fire' | 'cancel'
  make: () => void
}
export interface Played {
  run: Reference
  order: string[]
  /** The choices that were made: orders with equal keys must agree in everything that is reported. */
  key: string
  report: string
  violations: string[]
}
/** Chooses the next move; `step` counts from 0. */
export type Strategy = (moves: readonly Move[], step: number, cancel: Move) => Move

const stepsMax = 1_500

/** Everything that may happen next. */
export function movesOf(run: Reference, game: Game): Move[] {
  return [
    ...run.owed().map(
      (owed): Move => ({
        id: `act ${owed.branch}/${owed.turn}/${owed.attempt}`,
        kind: 'act',
        make: () => void run.act(owed.branch, game.act(owed)),
      }),
    ),
    ...run.aborting().map((id): Move => ({ id: `settle ${id}`, kind: 'settle', make: () => run.settle(id) })),
    ...run.asks().map((ask): Move => ({ id: `answer ${ask.id}`, kind: 'answer', make: () => run.answer(ask.id, game.answer(ask)) })),
    ...run.timers().map(({ id }): Move => ({ id: `fire ${id}`, kind: 'fire', make: () => run.fire(id) })),
  ]
}

/** Plays one order to its end. */
export function play(game: Game, strategy: Strategy): Played {
  const run = new Reference(game.topology, game.input)
  const order: string[] = []
  const violations: string[] = []
  const cancel: Move = { id: 'cancel', kind: 'cancel', make: () => run.cancel() }
  for (let step = 0; run.outcome() === null && violations.length === 0; step++) {
    const moves = movesOf(run, game)
    if (moves.length === 0) violations.push('deadlock')
    if (step > stepsMax) violations.push('the run does not end')
    if (violations.length > 0) break
    const move = strategy(moves, step, cancel)
    order.push(move.id)
    move.make()
    violations.push(...run.violations())
  }
  const cancelled = run.outcome()?.status === 'cancelled'
  return { run, order, violations, key: canonical([cancelled, run.choices()]), report: canonical(run.report()) }
}

/** Plays every order there is, up to `max` of them; the moves are those of `movesOf` that `allowed` lets pass. */
export function playEvery(game: Game, max = 20_000, allowed: (move: Move) => boolean = () => true): Played[] {
  const played: Played[] = []
  const stack: number[][] = [[]]
  for (let prefix = stack.pop(); prefix !== undefined; prefix = stack.pop()) {
    if (played.length >= max) throw new Error(`there are more than ${max} orders`)
    const taken = prefix
    played.push(
      play(game, (all, step) => {
        const moves = all.filter(allowed)
        if (step < taken.length) return moves[taken[step] as number] as Move
        const before = [...taken, ...Array<number>(step - taken.length).fill(0)]
        for (let other = 1; other < moves.length; other++) stack.push([...before, other])
        return moves[0] as Move
      }),
    )
  }
  return played
}

/** How one of many orders goes: first come, last come, random, by random priorities, or like an earlier one with some moves shuffled. */
export function strategyOf(random: Random, index: number, earlier: readonly Played[]): Strategy {
  const timers = random.pick([0, 0.02, 0.15])
  const calm = (moves: readonly Move[]): readonly Move[] => {
    const others = moves.filter((move) => move.kind !== 'fire')
    return others.length === 0 || random.chance(timers) ? moves : others
  }
  if (index === 0) return (moves) => moves.find((move) => move.kind !== 'fire') ?? (moves[0] as Move)
  if (index === 1) return (moves) => moves.findLast((move) => move.kind !== 'fire') ?? (moves.at(-1) as Move)
  if (random.chance(0.02)) {
    const at = random.below(12)
    return (moves, step, cancel) => (step === at ? cancel : random.pick(moves))
  }
  const kind = random.weighted([
    [2, 'random'],
    [2, 'priority'],
    [4, 'shuffled'],
  ] as const)
  if (kind === 'random' || earlier.length === 0) return (moves) => random.pick(calm(moves))
  if (kind === 'priority') {
    const salt = random.below(1e9)
    const priority = (move: Move): number => new Random(`${salt} ${move.id.split('/')[0]}`).next()
    return (moves) => (random.chance(0.1) ? random.pick(calm(moves)) : calm(moves).reduce((a, b) => (priority(a) >= priority(b) ? a : b)))
  }
  const left = [...random.pick(earlier).order]
  const shuffle = random.pick([0.05, 0.2, 0.5])
  return (moves) => {
    const able = (id: string): boolean => moves.some((move) => move.id === id)
    const others = left.filter((id) => able(id) && !id.startsWith('fire'))
    const first = left.find(able)
    const id = random.chance(shuffle) && others.length > 0 ? random.pick(others) : first
    if (id === undefined) return random.pick(calm(moves))
    left.splice(left.indexOf(id), 1)
    return moves.find((move) => move.id === id) as Move
  }
}

export interface Divergence {
  seed: number
  why: string
  orders: readonly string[][]
}
export interface Found {
  topologies: number
  orders: number
  /** How many orders had an earlier one with the same choices to be compared with. */
  compared: number
  statuses: Record<string, number>
  divergences: Divergence[]
}

/** Plays `topologies` random topologies, each in `orders` orders; stops at `most` divergences. */
export function search(options: { from: number; topologies: number; orders: number; most?: number }): Found {
  const found: Found = { topologies: 0, orders: 0, compared: 0, statuses: {}, divergences: [] }
  for (let seed = options.from; seed < options.from + options.topologies; seed++) {
    if (found.divergences.length >= (options.most ?? 5)) break
    const divergence = searchOne(seed, options.orders, found)
    found.topologies++
    if (divergence !== null) found.divergences.push(divergence)
  }
  return found
}

function searchOne(seed: number, orders: number, found: Found): Divergence | null {
  const game = sample(seed)
  const random = new Random(`orders ${seed}`)
  const played: Played[] = []
  const firsts = new Map<string, Played>()
  for (let index = 0; index < orders; index++) {
    const one = play(game, strategyOf(random, index, played))
    found.orders++
    const status = one.run.outcome()?.error?.code ?? one.run.outcome()?.status ?? 'stuck'
    found.statuses[status] = (found.statuses[status] ?? 0) + 1
    if (one.violations.length > 0) return { seed, why: one.violations.join('; '), orders: [one.order] }
    const first = firsts.get(one.key)
    if (first === undefined) firsts.set(one.key, one)
    else {
      found.compared++
      if (first.report !== one.report) return { seed, why: difference(first, one), orders: [first.order, one.order] }
    }
    played.push(one)
  }
  return null
}

function difference(a: Played, b: Played): string {
  let at = 0
  while (a.report[at] === b.report[at]) at++
  const part = (text: string): string => text.slice(Math.max(0, at - 200), at + 200)
  return `for the choices ${a.key}:\n  ${part(a.report)}\n  ${part(b.report)}`
}
