import { retryProblems } from '../define/agent-code.js'
import { aBoolean, anything, aRecord, type Kind, optionProblems, shown, someMs } from '../define/option-check.js'
import type { StepOptions } from '../define/work.js'

const kinds: Readonly<Record<keyof StepOptions, Kind>> = {
  // It is looked at where it is used, with the name.
  key: anything,
  idempotent: aBoolean,
  retry: aRecord,
  timeoutMs: someMs,
}

/** Refuses a step that could not be executed as it says. Turns may have thousands: one with nothing but a key is only looked at. */
export function checkStep(name: unknown, run: unknown, options: unknown): void {
  if (typeof run !== 'function') throw new TypeError(missing(name, run))
  if (options === undefined) return
  if (!aRecord.is(options)) throw new TypeError(`${called(name)} takes an object of options, not ${shown(options)}`)
  for (const option in options as object) if (option !== 'key') return checkOthers(name, options as Readonly<Record<string, unknown>>)
}

function checkOthers(name: unknown, options: Readonly<Record<string, unknown>>): void {
  const problems = [...optionProblems(options, kinds, ''), ...retryProblems(options['retry'], 'retry')]
  if (problems.length === 0) return
  throw new TypeError(`${called(name)}: ${problems.map(({ where, message }) => `${where}: ${message}`).join('; ')}`)
}

const missing = (name: unknown, run: unknown): string =>
  typeof name === 'function'
    ? "a step needs a name before its function: step('charge', () => …)"
    : `${called(name)} needs a function, not ${shown(run)}`

const called = (name: unknown): string => `the step ${shown(name)}`
