// Five agents, one secret. Nobody knows the whole word, and it is the same word whoever answers first.
import { topology } from 'tutti'
import { isMain, play } from './play.js'

const secretWord = topology({
  name: 'secret-word',
  rules: ['timeout(180)'],
  flows: [
    'Start -> Orchestrator -> End',
    'Orchestrator -> AgentA | AgentB | AgentC',
    'AgentC -> AgentD',
    'AgentA | AgentB | AgentD -> Orchestrator',
  ],
  agents: {
    Orchestrator: {
      act: {
        request: (turn) => turn.fork(['AgentA', 'AgentB', 'AgentC'], { request: 'Provide your letter.' }),
        join: (turn, letters) => turn.finish(`The secret word is: ${letters.values.join('')}`),
      },
    },
    // Each thinks for another while, so the letters come in an order of their own.
    AgentA: async (turn) => {
      await turn.sleep(140)
      return turn.reply('M')
    },
    AgentB: async (turn) => {
      await turn.sleep(40)
      return turn.reply('A')
    },
    // Has no edge back to the Orchestrator: AgentD answers for it.
    AgentC: async (turn) => {
      await turn.sleep(70)
      return turn.invoke('AgentD', 'R')
    },
    AgentD: async (turn) => {
      await turn.sleep(50)
      return turn.reply(`${turn.request}S`)
    },
  },
})

export default secretWord

if (isMain(import.meta.url)) await play(secretWord, { input: 'Collect the letters.' })
