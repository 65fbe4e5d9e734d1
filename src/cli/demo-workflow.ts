import { topology } from '../define/topology.js'
import type { Topology } from '../define/definition.js'

/**
 * The secret word. Nobody knows the whole of it, and AgentC may not answer the Orchestrator: AgentD does so in its place. What they say is
 * fixed; each takes its time, so that one can watch, and they come in another order than they were asked in.
 */
const secretWord: Topology<string, string> = topology({
  name: 'secret-word',
  version: 'demo-1',
  rules: ['timeout(180)'],
  flows: [
    'Start -> Orchestrator -> End',
    'Orchestrator -> AgentA | AgentB | AgentC | User',
    'AgentC -> AgentD',
    'AgentA | AgentB | AgentD -> Orchestrator',
  ],
  agents: {
    Orchestrator: {
      act: {
        request: (turn) => turn.fork(['AgentA', 'AgentB', 'AgentC'], { request: 'Provide your letter.' }),
        join: (turn, letters) => turn.ask({ word: letters.values.join(''), question: 'Shall I tell everybody?' }),
        answer: (turn, yes, ask) =>
          turn.finish(yes === false ? 'The secret word stays a secret.' : `The secret word is: ${(ask.question as { word: string }).word}`),
      },
    },
    AgentA: async (turn) => {
      await turn.sleep(1_100)
      return turn.reply('M')
    },
    AgentB: async (turn) => {
      await turn.sleep(350)
      return turn.reply('A')
    },
    AgentC: async (turn) => {
      await turn.sleep(500)
      return turn.invoke('AgentD', 'R')
    },
    AgentD: async (turn) => {
      await turn.sleep(250)
      return turn.reply(`${turn.request as string}S`)
    },
  },
})

export default secretWord
