/**
 * Plays a run on the reference in many orders, and compares what came out wherever the same choices were made.
 *
 * What an order may decide is which move comes next: an owed turn completes, a timer fires, an aborted attempt ends, a person answers.
 */
import { audit } from './audit.js'
import { Reference, canonical } from './model.js'
import type { Owed, RefAction, RefActivity, RefTopology } from './model.js'
import { Random, sample } from './random.js'
import type { Sample } from './random.js'

export interface Game {
  topology: RefTopology
  input: unknown
  act: (owed: Owed) => RefAction
  answer: (ask: { id: string; kind: 'question' | 'join' }) => unknown
  /** What a turn does before it acts; nothing, unless given. */
  does?: (owed: Owed) => readonly RefActivity[]
  /** How often undoing that fails before it succeeds; never, unless given. */
  undoFails?: (entry: string) => number
}
export interface Move {
  id: string
  kind: 'act' | 'step' | 'settle' | 'undo' | 'answer' | 'fire' | 'cancel' | 'pause' | 'resume'
  make: () => void
}
/** What people may do at any time. */
export interface Steering {
  cancel: Move
  /** Cancels, and undoes nothing. */
  abandon: Move
  pause: Move
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
export type Strategy = (moves: readonly Move[], step: number, steering: Steering) => Move

export const stepsMax = 5_000

/** Everything that may happen next. */
export function movesOf(run: Reference, game: Game): Move[] {
  return [
    ...run.owed().flatMap((owed) => turnMoves(run, game, owed)),
    ...run.aborted().flatMap((owed) => abortMoves(run, game, owed)),
    ...run.undos().map(({ of, attempt }): Move => {
      const how = attempt > (game.undoFails?.(of) ?? 0) ? 'compensated' : 'failed'
      return { id: `undo ${of} ${attempt}`, kind: 'undo', make: () => run.undo(of, how) }
    }),
    ...run.asks().map((ask): Move => ({ id: `answer ${ask.id}`, kind: 'answer', make: () => run.answer(ask.id, game.answer(ask)) })),
    ...(run.paused()
      ? [{ id: 'resume', kind: 'resume', make: () => run.resumeRun() } as const]
      : run.timers().map(({ id }): Move => ({ id: `fire ${id}`, kind: 'fire', make: () => run.fire(id) }))),
  ]
}

const attemptOf = ({ branch, turn, attempt }: Owed): string => `${branch}/${turn}/${attempt}`

/** What a turn has still to do before it acts. */
export function leftToDo(run: Reference, game: Game, owed: Owed): readonly RefActivity[] {
  const { recorded } = run.work(owed.branch)
  return (game.does?.(owed) ?? []).filter(({ key }) => !recorded.has(key))
}

function turnMoves(run: Reference, game: Game, owed: Owed): Move[] {
  const left = leftToDo(run, game, owed)
  const act = (): void => {
    for (const activity of left) run.record(owed.branch, activity)
    run.act(owed.branch, game.act(owed))
  }
  const moves: Move[] = [{ id: `act ${attemptOf(owed)}`, kind: 'act', make: act }]
  const [next] = left
  if (next === undefined) return moves
  const starts = next.compensates && run.work(owed.branch).inFlight === null
  const step = (): void => (starts ? run.startActivity(owed.branch, next.key) : run.record(owed.branch, next))
  return [...moves, { id: `step ${attemptOf(owed)} ${next.key} ${starts ? 'starts' : 'ends'}`, kind: 'step', make: step }]
}

/** An aborted attempt may end in time, return after all, or run out of its grace; before that, what it has in flight may complete. */
function abortMoves(run: Reference, game: Game, owed: Owed): Move[] {
  const id = attemptOf(owed)
  const { inFlight } = run.work(owed.branch)
  const settle = (how: 'ended' | 'late' | 'fenced'): Move => ({
    id: `settle ${id} ${how}`,
    kind: 'settle',
    make: () => run.settle(id, how),
  })
  const moves = [settle('ended')]
  if (game.does === undefined) return moves
  const activity = game.does(owed).find(({ key }) => key === inFlight)
  const { type } = game.act(owed)
  if (activity?.outcome === 'done')
    moves.push({ id: `step ${id} ${activity.key} ends`, kind: 'step', make: () => run.record(owed.branch, activity) })
  else if (inFlight === null && type !== 'fail' && type !== 'throw') moves.push(settle('late'))
  return [...moves, settle('fenced')]
}

export function steeringOf(run: Reference): Steering {
  return {
    cancel: { id: 'cancel', kind: 'cancel', make: () => run.cancel() },
    abandon: { id: 'abandon', kind: 'cancel', make: () => run.cancel(false) },
    pause: { id: 'pause', kind: 'pause', make: () => run.pause() },
  }
}

/** Plays one order to its end. */
export function play(game: Game, strategy: Strategy, Model: typeof Reference = Reference): Played {
  const run = new Model(game.topology, game.input)
  const order: string[] = []
  const violations: string[] = []
  const steering = steeringOf(run)
  for (let step = 0; run.outcome() === null && violations.length === 0; step++) {
    const moves = movesOf(run, game)
    if (moves.length === 0) violations.push('deadlock')
    if (step > stepsMax) violations.push('the run does not end')
    if (violations.length > 0) break
    const move = strategy(moves, step, steering)
    order.push(move.id)
    move.make()
    violations.push(...run.violations())
  }
  violations.push(...audit(run.log))
  const cancelled = run.outcome()?.status === 'cancelled' && (order.includes('abandon') ? 'abandoned' : 'cancelled')
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
  const slow = random.pick<readonly Move['kind'][]>([[], [], ['undo'], ['settle'], ['undo', 'settle'], ['act']])
  const calm = (moves: readonly Move[]): readonly Move[] => {
    const others = moves.filter((move) => move.kind !== 'fire')
    if (others.length === 0 || random.chance(timers)) return moves
    const soon = others.filter((move) => !slow.includes(move.kind))
    return soon.length === 0 || random.chance(0.1) ? others : soon
  }
  if (index === 0) return (moves) => moves.find((move) => move.kind !== 'fire') ?? (moves[0] as Move)
  if (index === 1) return (moves) => moves.findLast((move) => move.kind !== 'fire') ?? (moves.at(-1) as Move)
  if (random.chance(0.02)) {
    const at = random.below(12)
    const how = random.pick(['cancel', 'cancel', 'abandon'] as const)
    return (moves, step, steering) => (step === at ? steering[how] : random.pick(moves))
  }
  const strategy = undisturbed(random, calm, earlier)
  if (!random.chance(0.1)) return strategy
  const pauses = random.pick([0.05, 0.3])
  let left = 3
  return (moves, step, steering) => {
    if (left === 0 || moves.some((move) => move.kind === 'resume') || !random.chance(pauses)) return strategy(moves, step, steering)
    left--
    return steering.pause
  }
}

function undisturbed(random: Random, calm: (moves: readonly Move[]) => readonly Move[], earlier: readonly Played[]): Strategy {
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

export interface Search {
  from: number
  topologies: number
  orders: number
  most?: number
  sampler?: (seed: number) => Sample
  Model?: typeof Reference
}

/** Plays `topologies` random topologies, each in `orders` orders; stops at `most` divergences. */
export function search(options: Search): Found {
  const found: Found = { topologies: 0, orders: 0, compared: 0, statuses: {}, divergences: [] }
  for (let seed = options.from; seed < options.from + options.topologies; seed++) {
    if (found.divergences.length >= (options.most ?? 5)) break
    const divergence = searchOne((options.sampler ?? sample)(seed), options, found)
    found.topologies++
    if (divergence !== null) found.divergences.push(divergence)
  }
  return found
}

function searchOne(game: Sample, { orders, Model }: Search, found: Found): Divergence | null {
  const { seed } = game
  const random = new Random(`orders ${seed}`)
  const played: Played[] = []
  const firsts = new Map<string, Played>()
  for (let index = 0; index < orders; index++) {
    const one = play(game, strategyOf(random, index, played), Model)
    found.orders++
    const outcome = one.run.outcome()
    const status = outcome?.error?.code ?? outcome?.status ?? 'stuck'
    found.statuses[status] = (found.statuses[status] ?? 0) + 1
    if (outcome !== null) found.statuses[outcome.rollback] = (found.statuses[outcome.rollback] ?? 0) + 1
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
