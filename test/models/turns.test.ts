import { open, topology, tool } from 'tutti'
import { script } from 'tutti/testing'
import { expect, test } from 'vitest'
import { z } from 'zod'

test('a model agent forks, joins and finishes', async () => {
  const add = tool({ description: 'adds', input: z.object({ a: z.number(), b: z.number() }), run: ({ a, b }) => a + b })
  const team = topology({
    name: 'team',
    flows: ['Start -> Hub -> End', 'Hub <-> A | B'],
    agents: { Hub: { instructions: 'Ask both.', tools: { add } }, A: {}, B: {} },
  })
  const models = script<typeof team>({
    Hub: [
      { tool: 'add', input: { a: 1, b: 2 } },
      {
        fork: [
          { to: 'A', request: 'x' },
          { to: 'B', request: 'y' },
        ],
      },
      { finish: 'all' },
    ],
    A: ['a!'],
    B: [{ error: { status: 429, retryAfterMs: 1 } }, { reply: { b: 1 } }],
  })
  await using tutti = await open({ store: 'memory:', models, invariants: true })
  const run = await tutti.start(team, { input: 'go' })
  const result = await run.result()
  expect(result).toMatchObject({ status: 'succeeded', output: 'all' })
})
