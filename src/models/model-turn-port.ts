import type { LanguageModel } from '../define/language-model.js'
import type { Turn } from '../define/turn.js'
import type { AgentMemory } from '../kernel/memory.js'
import type { TurnMessage } from '../kernel/message.js'
import type { RunLimits } from '../kernel/shape.js'
import type { Said } from '../kernel/state.js'
import type { RunActivity } from './activity-port.js'
import type { PriceOf } from './budget.js'
import type { ModelSeat } from './offers.js'
import type { OwnTools } from './toolboxes.js'

/** What the turn of a model agent needs of the engine. */
export interface ModelTurnPort {
  readonly turn: Turn
  readonly seat: ModelSeat
  readonly message: TurnMessage
  /** What the agent remembers on this branch, from before this attempt. */
  readonly memory: AgentMemory
  /** What was said in the session before; empty for an agent that does not remember it. */
  readonly said: readonly Said[]
  readonly limits: RunLimits
  /** Those of its targets that can answer: they have an edge back. */
  readonly answering: readonly string[]
  readonly activity: RunActivity
  /** Whether the journal has what came of the activity of this key: then it is asked for again, whatever has become of what it called. */
  readonly recorded: (key: string) => boolean
  readonly model: () => Promise<LanguageModel>
  /** All tools of the agent, those in its toolboxes among them. */
  readonly tools: () => Promise<OwnTools>
  readonly priceOf: PriceOf
  readonly now: () => number
  /** Whom the text of an attempt at a call is told to as it comes; null if nobody listens. */
  readonly listener: (attempt: number) => ((text: string) => void) | null
}
