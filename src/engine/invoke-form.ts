import type { TopologyInternals } from '../define/definition.js'
import type { Schema } from '../define/schema.js'
import type { Branch, State } from '../kernel/state.js'
import { isAnswer } from '../kernel/state.js'

/** What a value that a branch sends must be, and what it is called. */
export interface InvokeForm {
  readonly schema: Schema | undefined
  readonly what: string
}

/** An answer is what the sender's `output` says, anything else what the `input` of its receiver takes. Null: a reply that nobody waits for. */
export function invokeForm({ agents }: TopologyInternals, state: State, branch: Branch, to: string | null): InvokeForm {
  const answers = to === null || isAnswer(state, branch, to)
  if (answers) return { schema: agents[branch.agent]?.output, what: `the reply of ${branch.agent}` }
  return { schema: agents[to]?.input, what: `the request to ${to}` }
}
