import { TuttiError } from '../define/tutti-error.js'

/** There is no run of this id on the store. */
export function runNotFound(id: string): TuttiError {
  return new TuttiError('RUN_NOT_FOUND', `there is no run ${id}`, { hint: 'tutti.runs() lists those of this store' })
}
