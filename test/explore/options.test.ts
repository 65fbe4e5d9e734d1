import { graph, topology } from 'tutti'
import { explore, winnerOf } from 'tutti/testing'
import { expect, test } from 'vitest'

const hub = topology({
  name: 'hub',
  flows: ['Start -> H -> End', 'H <-> A | B'],
  agents: {
    H: (turn) => (turn.message.kind === 'join' ? turn.finish(turn.message.join.values) : turn.fork(['A', 'B'], { join: 'any' })),
    A: (turn) => turn.reply('a'),
    B: (turn) => turn.reply('b'),
  },
})

test.each([
  [5, /explore\(\) takes an object of options, not 5/],
  [{ fault: ['crash'] }, /there is no option 'fault' here \(did you mean faults\?\)/],
  [{ faults: ['crsh'] }, /faults is a list of 'crash' or 'lost-ack' or 'duplicate' or 'timeout' or \{ agent, error \}, not this one/],
  [{ faults: 'crash' }, /faults is a list of .*, not 'crash'/],
  [{ faults: [{ agent: 'A' }] }, /faults is a list/],
  [{ faults: [{ agent: 'Z', error: 'x' }] }, /faults\[0\]: there is no agent 'Z'; there are H, A, B/],
  [{ faults: ['crash', { agent: 'h', error: 'x' }] }, /faults\[1\]: there is no agent 'h' \(did you mean H\?\)/],
  [{ allow: [winnerOf('Z')] }, /allow\[0\]: there is no agent 'Z'; there are H, A, B/],
  [{ allow: [5] }, /allow is a list of what winnerOf\('Agent'\) has made, not this one/],
  [{ answers: 5 }, /answers is a function, not 5/],
  [{ strategy: 'x' }, /strategy is 'auto' or 'exhaustive' or .*, not 'x'/],
  [{ schedules: 0 }, /schedules is a whole number of at least 1 or 'all', not 0/],
  [{ seed: {} }, /seed is a number or a string, not an object/],
  [{ models: 5 }, /models is a function, not 5/],
  [{ resources: [5] }, /resources is a list/],
  [{ observe: true }, /observe is a function/],
  [{ steering: ['stop'] }, /steering is a list of 'pause' or 'resume' or 'cancel', not this one/],
])('no race check is made with %j', async (options, message) => {
  await expect(explore(hub, options as never)).rejects.toMatchObject({ code: 'INVALID_INPUT', message: expect.stringMatching(message) })
})

test('no race check is made of what is no definition', async () => {
  await expect(explore({} as never)).rejects.toMatchObject({
    code: 'INVALID_INPUT',
    message: 'explore() takes a definition, or a function that makes one, not an object',
  })
})

test('agents are those of the definition and of what its steps run, and its steps', async () => {
  const outer = graph('outer')
    .step('child', { run: hub })
    .step('after', { after: ['child'], run: () => 1 })
    .output()
  const faults = ['A', 'child', 'after'].map((agent) => ({ agent, error: 'x' }))
  expect((await explore(outer, { faults, allow: [winnerOf('H')], schedules: 2 })).schedules).toBe(2)
  expect((await explore(() => hub, { faults: [{ agent: 'A', error: '' }], strategy: 'coverage', seed: 'x', schedules: 2 })).schedules).toBe(
    2,
  )
})
