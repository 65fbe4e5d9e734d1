import type { Tags } from '../define/tags.js'
import type { JoinData } from '../kernel/join.js'

/** Something a person is asked, by an agent, by a tool that needs approval, or by a join that got too little. */
export type Ask = {
  readonly id: string
  readonly runId: string
  readonly branch: string
  /** The agent, or the step's id. */
  readonly agent: string
  readonly openedAt: number
  /** Not while its run is paused: what it has left begins to count at the resume. */
  readonly expiresAt?: number
  readonly schema?: object
  readonly tags: Tags
} & (
  | { readonly kind: 'question'; readonly question: unknown }
  | { readonly kind: 'approval'; readonly tool: string; readonly input: unknown }
  | { readonly kind: 'join'; readonly join: JoinData }
)
