import type { JoinData } from './join.js'

/** Why a turn happens. */
export type TurnMessage =
  | { readonly kind: 'request'; readonly from: string; readonly value?: unknown }
  | { readonly kind: 'merged'; readonly requests: readonly { readonly from: string; readonly value?: unknown }[] }
  | { readonly kind: 'join'; readonly join: JoinData }
  | { readonly kind: 'answer'; readonly askId: string; readonly question: unknown; readonly value: unknown }
  | { readonly kind: 'expired'; readonly askId: string; readonly question: unknown }
  | { readonly kind: 'feedback'; readonly problem: string }

export type MessageKind = TurnMessage['kind']
