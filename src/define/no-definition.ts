import { shown } from './option-check.js'
import { TuttiError } from './tutti-error.js'

/** The refusal of what should have been a definition. */
export function noDefinition(given: unknown): TuttiError {
  return new TuttiError('INVALID_INPUT', `a definition is needed, not ${shown(given)}`, {
    hint: 'make one with topology({ … }) or with graph(…).step(…).output()',
  })
}
