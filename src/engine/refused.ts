import type { Code } from '../define/tutti-error.js'
import { TuttiError } from '../define/tutti-error.js'
import type { Refusal, RefusalCode } from '../kernel/command.js'

const hints: Partial<Record<RefusalCode, string>> = {
  RUN_NOT_PAUSED: 'somebody else may have resumed it: look at run.status()',
  RUN_ENDED: 'look at run.result()',
  ASK_ALREADY_ANSWERED: 'the first answer stands',
  ASK_NOT_FOUND: 'run.asks() lists what is open',
}

const thrown: readonly string[] = [
  'RUN_EXISTS',
  'RUN_NOT_FOUND',
  'RUN_NOT_PAUSED',
  'RUN_ENDED',
  'ASK_NOT_FOUND',
  'ASK_ALREADY_ANSWERED',
  'ASK_INVALID_ANSWER',
]

/** A refusal as public calls throw it. */
export function refused({ code, message }: Refusal): Error {
  if (!thrown.includes(code)) return new Error(`${code}: ${message}`)
  return new TuttiError(code as Code, message, { hint: hints[code] })
}
