import type { Code } from '../define/tutti-error.js'
import { TuttiError } from '../define/tutti-error.js'
import type { Refusal, RefusalCode } from '../kernel/command.js'

const hints: Partial<Record<RefusalCode, string>> = {
  RUN_EXISTS: 'give another id; who has the `key` that it was started with has it again by that',
  RUN_NOT_PAUSED: 'somebody else may have resumed it: look at run.status()',
  RUN_ENDED: 'look at run.result()',
  ASK_ALREADY_ANSWERED: 'the first answer stands',
  ASK_NOT_FOUND: 'run.asks() lists what is open',
  NEEDS_CODE: 'do it from a process that has the definition of the run: open({ definitions: [ … ] })',
}

/** The code that each is thrown with; the others are the engine's own. */
const thrown: Partial<Record<RefusalCode, Code>> = {
  RUN_EXISTS: 'RUN_EXISTS',
  RUN_NOT_FOUND: 'RUN_NOT_FOUND',
  RUN_NOT_PAUSED: 'RUN_NOT_PAUSED',
  RUN_ENDED: 'RUN_ENDED',
  ASK_NOT_FOUND: 'ASK_NOT_FOUND',
  ASK_ALREADY_ANSWERED: 'ASK_ALREADY_ANSWERED',
  ASK_INVALID_ANSWER: 'ASK_INVALID_ANSWER',
  NEEDS_CODE: 'DEFINITION_NOT_FOUND',
}

/** A refusal as public calls throw it. */
export function refused({ code, message }: Refusal): Error {
  const known = thrown[code]
  return known === undefined ? new Error(`${code}: ${message}`) : new TuttiError(known, message, { hint: hints[code] })
}
