/** What a model is told beside what was said is compared, too. */
import { agent, graph } from 'tutti'
import { explore } from 'tutti/testing'
import { expect, test } from 'vitest'
import { type Prompt, watchedModel } from '../../src/testing/explore/watched-model.js'
import { saying } from '../models/spied.js'

const model = saying(() => [{ type: 'text', text: 'done' }], { inputTokens: { total: 2_000 }, outputTokens: {} } as never)

test('what it may call and how long its answer may be belong to what a model was shown', async () => {
  const shown: Prompt[] = []
  const watched = watchedModel(model, 'run', 'A', (prompt) => shown.push(prompt)) as typeof model
  const prompt = [{ role: 'user', content: [{ type: 'text', text: 'x' }] }] as const
  const tools = [{ type: 'function', name: 'buy', inputSchema: {} }] as const
  for (const more of [{}, { tools }, { maxOutputTokens: 3_000 }, { maxOutputTokens: 2_000 }, { tools }])
    await watched.doGenerate({ prompt, ...more } as never)
  expect(new Set(shown.map(({ line }) => line)).size).toBe(4)
})

test('how long the models of child runs may answer is the same in every order', async () => {
  const one = (name: string) => agent({ name, instructions: 'work' })
  const parent = () =>
    graph('parent', { limits: { tokens: 12_000 } })
      .step('a', { run: one('Ada'), input: () => 'x' })
      .step('w', { run: () => 1 })
      .step('b', { after: ['w'], run: one('Bob'), input: () => 'x' })
      .output()
  const checked = await explore(parent, { models: () => model, schedules: 60 })
  expect(checked.independent, checked.text()).toBe(true)
})
