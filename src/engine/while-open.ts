import { TuttiError } from '../define/tutti-error.js'
import type { Engine } from './engine.js'

export function closedEngine(): TuttiError {
  return new TuttiError('CLOSED', 'this engine is closed', { hint: 'open another one' })
}

/** A call that is refused once its engine is closed, whatever that still knows: others may have gone on with its runs. */
export function whileOpen<Given extends unknown[], T>(
  engine: Engine,
  call: (...given: Given) => Promise<T>,
): (...given: Given) => Promise<T> {
  return (...given) => (engine.closed ? Promise.reject(closedEngine()) : call(...given))
}
