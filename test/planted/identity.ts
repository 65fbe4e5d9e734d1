/** Identity cross-talk: a runtime that everybody shares keeps "the agent that runs now" in a field, across an await. */
import { topology } from 'tutti'

/** What each may do: with `equal`, siblings have the same edges, and nothing but who it was judged as shows the mistake. */
const edgesOf = (equal: boolean): Record<string, readonly string[]> => ({ Poet: ['Hub'], Critic: equal ? ['Hub'] : ['Hub', 'End'] })

/** Judges an answer by the edges of whoever runs; the answer says what it would like to do next. */
function judged(agent: string, wants: string, equal: boolean): { as: string; allowed: boolean } {
  return { as: agent, allowed: (edgesOf(equal)[agent] ?? []).includes(wants) }
}

const hub = {
  act: {
    request: (turn: any) => turn.fork(['Poet', 'Critic']),
    join: (turn: any, join: any) => turn.finish(join.slots.map((slot: any) => slot.value)),
  },
}

export function planted({ equal }: { equal: boolean }) {
  const runtime = { agent: '' }
  const act = async (turn: any) => {
    runtime.agent = turn.agent
    const wants = await turn.step('think', () => (turn.agent === 'Critic' && !equal ? 'End' : 'Hub'))
    return turn.reply(judged(runtime.agent, wants, equal))
  }
  return topology({
    name: 'identity',
    flows: ['Start -> Hub -> End', 'Hub <-> Poet | Critic'],
    agents: { Hub: hub, Poet: { act }, Critic: { act } },
  })
}

export function corrected({ equal }: { equal: boolean }) {
  const act = async (turn: any) => {
    const wants = await turn.step('think', () => (turn.agent === 'Critic' && !equal ? 'End' : 'Hub'))
    return turn.reply(judged(turn.agent, wants, equal))
  }
  return topology({
    name: 'identity',
    flows: ['Start -> Hub -> End', 'Hub <-> Poet | Critic'],
    agents: { Hub: hub, Poet: { act }, Critic: { act } },
  })
}
