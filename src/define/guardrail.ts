import type { Maybe } from './maybe.js'
import type { MemoryEntry } from './turn.js'
import type { ActivityContext } from './work.js'

/** Why a guardrail stops the turn; nothing: it does not. */
export type Tripped = string | null | undefined | void

/** What a model has answered: its text, and the tools that it wants called. */
export interface GuardedAnswer {
  readonly text: string
  readonly calls: readonly { readonly tool: string; readonly input: unknown }[]
}

/** Looks at what goes to a model and at what comes back. One that gives a reason, or throws, stops the turn before any tool starts. */
export interface Guardrail {
  readonly name: string
  /** Looks at each call of the model before it is made. */
  readonly before?: (call: { readonly messages: readonly MemoryEntry[] }, ctx: ActivityContext) => Maybe<Tripped>
  /** Looks at each answer before anything is done with it. */
  readonly after?: (answer: GuardedAnswer, ctx: ActivityContext) => Maybe<Tripped>
  /** `before` looks while the model is called, instead of in front of it. */
  readonly parallel?: boolean
}
