import { Random } from '../reference/random.js'
import type { Move, Strategy } from '../reference/search.js'

/** How orders are chosen on the bare kernel: what plays the nth order of a topology. */
export type Orders = (random: Random, nth: number) => Strategy

const calm = (moves: readonly Move[]): readonly Move[] => {
  const others = moves.filter(({ kind }) => kind !== 'fire')
  return others.length === 0 ? moves : others
}

/** First come, first served, but for some moves that are put off: all that this finds is found with that few deviations. */
const deviations: Orders = (random, nth) => {
  const at = new Map<number, number>()
  for (let left = Math.min(nth, 1 + (nth % 2)); left > 0; left--) at.set(random.below(16), 1 + random.below(4))
  return (moves, step) => {
    const able = calm(moves)
    return able[Math.min(at.get(step) ?? 0, able.length - 1)] as Move
  }
}

/** Each branch has a priority, and at a few moments the first of all becomes the last. */
const pct =
  (depth: number): Orders =>
  (random) => {
    const salt = random.below(1e9)
    const changes = new Set(Array.from({ length: depth - 1 }, () => random.below(24)))
    const put = new Map<string, number>()
    const laneOf = ({ id }: Move): string => id.split('/')[0] ?? id
    const priority = (move: Move): number => put.get(laneOf(move)) ?? new Random(`${salt} ${laneOf(move)}`).next()
    return (moves, step) => {
      const first = calm(moves).reduce((a, b) => (priority(a) >= priority(b) ? a : b))
      if (changes.has(step)) put.set(laneOf(first), -step)
      return first
    }
  }

const walk: Orders = (random) => (moves) => random.pick(random.chance(0.05) ? moves : calm(moves))

export const strategies: Readonly<Record<'deviations' | 'pct 2' | 'pct 3' | 'random walk', Orders>> = {
  deviations,
  'pct 2': pct(2),
  'pct 3': pct(3),
  'random walk': walk,
}
