import type { MemoryEntry } from '../define/turn.js'
import type { AgentMemory } from '../kernel/memory.js'
import type { TurnMessage } from '../kernel/message.js'
import type { Said } from '../kernel/state.js'
import { transcriptOf } from './transcript.js'

/** What a model remembers from before this turn, as it is told to it. */
export function modelMemory(said: readonly Said[], memory: AgentMemory): readonly MemoryEntry[] {
  return transcriptOf(said, memory.turns).messages
}

/** What code remembers: what it was told in each of its turns, and what it did. */
export function codeMemory(said: readonly Said[], { turns }: AgentMemory): readonly MemoryEntry[] {
  const before = said.flatMap(({ input, output }): MemoryEntry[] => [
    { role: 'user', content: input ?? null },
    { role: 'assistant', content: output ?? null },
  ])
  const since = turns.flatMap(({ message, action }): MemoryEntry[] => [
    { role: 'user', content: toldOf(message) },
    ...(action === undefined ? [] : [{ role: 'assistant' as const, content: action }]),
  ])
  return [...before, ...since]
}

function toldOf(message: TurnMessage): unknown {
  switch (message.kind) {
    case 'request':
      return message.value ?? null
    case 'merged':
      return message.requests
    case 'join':
      return message.join.slots
    case 'answer':
      return message.value
    case 'expired':
      return { question: message.question, expired: true }
    case 'feedback':
      return { problem: message.problem }
  }
}
