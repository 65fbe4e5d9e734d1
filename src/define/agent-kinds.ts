import {
  aFunction,
  aList,
  aRecord,
  aSchema,
  aString,
  aText,
  atLeastOne,
  atLeastZero,
  either,
  type Kind,
  oneOf,
  someMs,
} from './option-check.js'

/** What each option of an agent must be. */
export const agentKinds: Readonly<Record<string, Kind>> = {
  act: either(aFunction, aRecord),
  input: aSchema,
  output: aSchema,
  answer: aSchema,
  model: either(aText, aRecord),
  instructions: either(aString, aFunction),
  tools: aRecord,
  guardrails: aList,
  memory: oneOf('turn', 'run', 'session'),
  retry: aRecord,
  timeoutMs: someMs,
  concurrency: atLeastOne,
  maxRejections: atLeastZero,
  whenStopped: oneOf('fail', 'wait'),
  breaker: aRecord,
  compensate: aFunction,
}
