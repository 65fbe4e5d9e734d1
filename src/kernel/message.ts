import type { JoinData } from './join.js'

/** Why a turn happens. */
export type TurnMessage =
  | { readonly kind: 'request'; readonly from: string; readonly value?: unknown }
  | { readonly kind: 'merged'; readonly requests: readonly { readonly from: string; readonly value?: unknown }[] }
  | { readonly kind: 'join'; readonly join: JoinData }
  | { readonly kind: 'answer'; readonly askId: string; readonly question: unknown; readonly value: unknown }
  | { readonly kind: 'expired'; readonly askId: string; readonly question: unknown }
  | { readonly kind: 'feedback'; readonly problem: string }

/** Why a step's turn happens: its gate has opened. `sees` are the steps whose outputs it is given; `item` its place in an `each`. */
export interface StepMessage {
  readonly kind: 'step'
  readonly sees: readonly string[]
  readonly item?: number
}

export type MessageKind = TurnMessage['kind']
