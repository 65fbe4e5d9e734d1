import type { Problem } from '../kernel/problem.js'
import { shown } from './option-check.js'
import { TuttiError } from './tutti-error.js'

/** The error for a definition with problems: its message lists them all, for those who only see the message. */
export function invalidDefinition(kind: 'topology' | 'graph', name: unknown, problems: readonly Problem[]): TuttiError {
  const lines = problems.map(({ code, where, message }) => `  ${code} at ${where}: ${message}`)
  const count = problems.length === 1 ? 'a problem' : `${problems.length} problems`
  return new TuttiError(
    kind === 'topology' ? 'INVALID_TOPOLOGY' : 'INVALID_GRAPH',
    `the ${kind} ${shown(name)} has ${count}:\n${lines.join('\n')}`,
    {
      problems,
      hint: 'each problem says where it is and what to do; nothing runs until all are solved',
    },
  )
}
