// Five agents, one secret. Nobody knows the whole word, and it is the same word whoever answers first.
import { open, topology } from 'tutti'

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
    AgentA: (turn) => turn.reply('M'),
    AgentB: (turn) => turn.reply('A'),
    AgentC: (turn) => turn.invoke('AgentD', 'R'), // has no edge back to the Orchestrator: AgentD answers for it
    AgentD: (turn) => turn.reply(`${turn.request}S`),
  },
})

const tutti = await open({ store: 'memory:' })
try {
  const run = await tutti.start(secretWord, { input: 'Collect the letters.' })
  for await (const event of run.events()) {
    if (event.type === 'turn.completed') console.log(`${event.agent.padEnd(12)} ${told(event.action)}`)
    if (event.type === 'turn.rejected') console.log(`${event.agent.padEnd(12)} is refused: ${event.problem}`)
  }
  console.log(await run.output())
} finally {
  await tutti.close()
}

/** @param {import('tutti').Action} action */
function told(action) {
  switch (action.type) {
    case 'fork':
      return `asks ${action.calls.map((call) => call.to).join(', ')}`
    case 'invoke':
      return `passes ${JSON.stringify(action.request)} on to ${action.to}`
    case 'reply':
      return `replies ${JSON.stringify(action.value)}`
    case 'finish':
      return 'finishes'
    case 'ask':
      return `asks a person: ${JSON.stringify(action.question)}`
    case 'fail':
      return `fails: ${action.error.message}`
  }
}
