import type { Action } from './action.js'
import type { TurnMessage } from './message.js'
import type { ActivityRecord } from './state.js'

/** One turn that an agent remembers: why it happened, what was recorded of it, in order, and what it did unless it was sent back. */
export interface PastTurn {
  readonly branch: string
  readonly turn: number
  readonly message: TurnMessage
  readonly records: readonly ActivityRecord[]
  readonly action?: Action
}

/** What one agent remembers on one branch. `calls`: how often it called a model on this branch, whatever it remembers of that. */
export interface AgentMemory {
  readonly calls: number
  readonly turns: readonly PastTurn[]
}

/** What the agents of a branch remember, by name. A child begins with what its parent's had at the fork, as it was. */
export type BranchMemory = Readonly<Record<string, AgentMemory>>

const none: AgentMemory = Object.freeze({ calls: 0, turns: Object.freeze([]) })

export function memoryOf(memory: BranchMemory | null, agent: string): AgentMemory {
  return memory !== null && Object.hasOwn(memory, agent) ? (memory[agent] ?? none) : none
}

/** A turn is over, or is sent back: it becomes part of what its agent remembers. */
export function remembering(memory: BranchMemory | null, agent: string, turn: PastTurn): BranchMemory {
  const { calls, turns } = memoryOf(memory, agent)
  const more = turn.records.reduce((sum, { usage }) => sum + (usage?.calls ?? 0), 0)
  return { ...memory, [agent]: { calls: calls + more, turns: [...turns, turn] } }
}

/** A request begins anew for an agent that remembers no more than what it is asked. */
export function forgetting(memory: BranchMemory | null, agent: string): BranchMemory | null {
  const { calls, turns } = memoryOf(memory, agent)
  return turns.length === 0 ? memory : { ...memory, [agent]: { calls, turns: none.turns } }
}

/** What a child begins with: what is remembered, and none of the calls. */
export function inherited(memory: BranchMemory | null): BranchMemory | null {
  if (memory === null) return null
  return Object.fromEntries(Object.entries(memory).map(([agent, { turns }]) => [agent, { calls: 0, turns }]))
}
