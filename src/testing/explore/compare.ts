import type { Class, Outcome } from './outcome.js'
import { eventsOf } from './outcome.js'

/** In what two outcomes differ: the worst of it, or null. Effects are not compared with those of a run that crashed. */
export function differenceOf(a: Outcome, b: Outcome): Class | null {
  if (a.effects !== null && b.effects !== null) {
    if (a.effects.bag !== b.effects.bag) return 'effect-count'
    if (a.effects.order !== b.effects.order) return 'effect-order'
  }
  if (a.status !== b.status) return 'status'
  if (a.told !== b.told) return 'output'
  if (a.shown !== b.shown) return 'prompt'
  return eventsOf(a) === eventsOf(b) ? null : 'order'
}

/** Whether a difference is more than another order of the same events. */
export const matters = (difference: Class | null): boolean => difference !== null && difference !== 'order'
