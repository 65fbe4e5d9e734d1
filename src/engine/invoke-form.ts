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
export function schemaOfSent({ agents }: TopologyInternals, state: State, branch: Branch, to: string | null): Schema | undefined {
  return to === null || isAnswer(state, branch, to) ? agents[branch.agent]?.output : agents[to]?.input
}

export function invokeForm(definition: TopologyInternals, state: State, branch: Branch, to: string | null): InvokeForm {
  const what = to === null || isAnswer(state, branch, to) ? `the reply of ${branch.agent}` : `the request to ${to}`
  return { schema: schemaOfSent(definition, state, branch, to), what }
}
