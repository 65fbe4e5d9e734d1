import { topology } from 'tutti'
import { expect, test } from 'vitest'
import { deferred, opened, rest } from './opened.js'

test('of a branch that lost against an early decision the report says that it was cancelled, and nothing of how far it had come', async () => {
  const first = deferred()
  const race = topology({
    name: 'race',
    flows: ['Start -> H -> End', 'H <-> A', 'H -> B -> C', 'C -> H'],
    agents: {
      H: (turn) => (turn.message.kind === 'join' ? turn.finish(turn.message.join.values) : turn.fork(['A', 'B'], { join: 'any' })),
      A: async (turn) => {
        await first.promise
        return turn.reply('a')
      },
      B: (turn) => turn.invoke('C'),
      C: (turn) => new Promise((_, reject) => turn.signal.addEventListener('abort', () => reject(new Error('aborted')))),
    },
  })
  await using tutti = await opened()
  const run = await tutti.start(race)
  await rest()
  first.resolve()
  expect(await run.output()).toEqual(['a'])
  const { branches, agents } = await run.report()
  expect(branches.find(({ id }) => id === 'r.1')).toEqual({ id: 'r.1', agents: [], turns: 0, status: 'cancelled' })
  expect(agents).toEqual(['H', 'A'])
})
