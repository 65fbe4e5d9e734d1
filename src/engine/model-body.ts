import type { AgentCode } from '../define/agent-code.js'
import type { TopologyInternals } from '../define/definition.js'
import type { LanguageModel } from '../define/language-model.js'
import type { Turn } from '../define/turn.js'
import { memoryOf } from '../kernel/memory.js'
import type { Branch, State } from '../kernel/state.js'
import { shapeOf, targetsOf, waitingAgent } from '../kernel/state.js'
import type { RunActivity } from '../models/activity-port.js'
import type { PriceOf } from '../models/budget.js'
import { type ModelOutcome, modelTurn } from '../models/model-turn.js'
import type { OwnTools } from '../models/toolboxes.js'
import { invokeForm } from './invoke-form.js'

/** What the turn of a model needs beside what every turn has. */
export interface ModelBody {
  readonly agent: AgentCode
  readonly definition: TopologyInternals
  readonly state: State
  readonly branch: Branch
  readonly turn: Turn
  readonly activity: RunActivity
  readonly recorded: (key: string) => boolean
  readonly model: () => Promise<LanguageModel>
  readonly now: () => number
  readonly tools: () => Promise<OwnTools>
  readonly priceOf: PriceOf
  readonly listener: (attempt: number) => ((text: string) => void) | null
}

/** Plays a turn of an agent that is a model, from what the journal has of it. */
export async function playModel(body: ModelBody): Promise<ModelOutcome> {
  const { agent, definition, state, branch, ...rest } = body
  const { message } = branch
  if (message.kind === 'step') throw new Error('a step has no turn of an agent')
  const { edges, limits, agents } = shapeOf(state)
  const targets = targetsOf(state, agent.name)
  return modelTurn({
    ...rest,
    seat: {
      agent,
      definition,
      targets,
      waiting: waitingAgent(state, branch),
      schemaOf: (to) => invokeForm(definition, state, branch, to).schema,
    },
    message,
    memory: memoryOf(branch.memory, agent.name),
    said: agents[agent.name]?.remembers === 'session' ? (state.run?.conversation ?? []) : [],
    limits,
    answering: edges.filter(({ from, to, notify }) => to === agent.name && notify !== true && targets.has(from)).map(({ from }) => from),
  })
}
