import type { Problem } from '../kernel/problem.js'
import { aRecord, type Kind, optionProblems, shown } from './option-check.js'
import { TuttiError } from './tutti-error.js'

/** Refuses a call with options that are none, before it does anything. `more`: what is wrong with them that no kind can say. */
export function checkOptions(
  call: string,
  given: unknown,
  kinds: Readonly<Record<string, Kind>>,
  more: (given: Readonly<Record<string, unknown>>) => readonly Problem[] = () => [],
): void {
  if (!aRecord.is(given)) throw new TuttiError('INVALID_INPUT', `${call} takes an object of options, not ${shown(given)}`)
  const options = given as Readonly<Record<string, unknown>>
  const problems = [...optionProblems(options, kinds, ''), ...more(options)]
  if (problems.length === 0) return
  const lines = problems.map(({ where, message }) => `${where}: ${message}`)
  throw new TuttiError('INVALID_INPUT', `${call}: ${lines.join('\n')}`, { problems })
}
