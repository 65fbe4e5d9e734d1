/** The random topologies of the reference, and the examples of the rule book, as definitions with agents of code. */
import type { Definition } from 'tutti'
import { topology, TuttiError } from 'tutti'
import type { Owed, RefAction, RefTopology } from '../reference/model.js'

/** A definition whose agents do what they are told to do for what they are shown; null if validation refuses it. */
export function definitionOf(of: RefTopology, act: (owed: Owed) => RefAction): Definition<any> | null {
  const { nodes, edges, joins, limits, state, merge, result, agents = {} } = of
  const team = nodes.map((name) => {
    const { maxRejections = 2, attempts = 1 } = agents[name] ?? {}
    return [name, { maxRejections, retry: { attempts, backoffMs: 0 }, act: (turn: any) => acted(act(owedBy(turn)), turn) }]
  })
  try {
    return topology({
      name: 'sampled',
      flows: edges,
      joins,
      ...(limits !== undefined && { limits }),
      ...(state !== undefined && { state: () => state }),
      ...(merge !== undefined && { merge }),
      ...(result === 'list' && { result }),
      agents: Object.fromEntries(team),
    } as never)
  } catch (error) {
    if (TuttiError.is(error, 'INVALID_TOPOLOGY')) return null
    throw error
  }
}

/** What a turn is shown, as the reference has it: plain data. */
function owedBy({ branchId, agent, turn, attempt, message, waiting, state, requests }: any): Owed {
  const shown = message.kind === 'join' ? { kind: 'join', join: { ...message.join, values: undefined } } : message
  return JSON.parse(JSON.stringify({ branch: branchId, agent, turn, attempt, message: shown, waiting, state, requests })) as Owed
}

function acted(action: RefAction, turn: any): unknown {
  if (action.type === 'throw') throw new Error(action.error)
  return action.type === 'fail' ? turn.fail(action.error) : action
}
