import { createOpenAICompatible } from '@ai-sdk/openai-compatible'
import type { LanguageModelV3 } from '@ai-sdk/provider'
import { open } from 'tutti'
import { expect, test } from 'vitest'
import { pricesFrom, reportedCost } from '../../src/models/price.js'
import { callWith, partsOf } from './call.js'
import { OpenAiServer } from './openai-server.js'

test('a price is what the user gave for the model, whatever protocol its provider speaks; nobody invents one', () => {
  const priceOf = pricesFrom({ 'openai/gpt-5': { input: 2, output: 8 }, 'compatible/vendor/m.1': { input: 1, output: 1 } })
  expect(priceOf('openai.responses/gpt-5')).toEqual({ input: 2e-6, output: 8e-6 })
  expect(priceOf('openai/gpt-5')).toEqual({ input: 2e-6, output: 8e-6 })
  expect(priceOf('compatible.chat/vendor/m.1')).toEqual({ input: 1e-6, output: 1e-6 })
  expect(priceOf('openai.responses/gpt-5-mini')).toBeUndefined()
  expect(priceOf('constructor')).toBeUndefined()
})

test.each([[[]], [{ a: null }], [{ a: { input: 1 } }], [{ a: { input: -1, output: 1 } }], [{ a: { input: Number.NaN, output: 1 } }]])(
  'what is no price is refused when the engine is opened: %j',
  async (prices) => {
    await expect(open({ store: 'memory:', prices: prices as never })).rejects.toMatchObject({ code: 'INVALID_INPUT' })
  },
)

test('what is simulated or scripted costs nothing', () => {
  expect(pricesFrom({})('tutti/sim')).toEqual({ input: 0, output: 0 })
})

test('what the provider says a call has cost is taken, and nothing else', async () => {
  await using server = await OpenAiServer.start(({ n }) => ({ text: 'x', usage: { input: 1, output: 1, ...(n < 2 && { cost: 0.0125 }) } }))
  const model: LanguageModelV3 = createOpenAICompatible({ name: 'openrouter', baseURL: server.url, includeUsage: true })('m')
  expect(reportedCost(await model.doGenerate(callWith({})))).toBe(0.0125)
  expect(reportedCost((await partsOf(model, callWith({}))).at(-1) ?? {})).toBe(0.0125)
  expect(reportedCost(await model.doGenerate(callWith({})))).toBeUndefined()
  expect(reportedCost({ providerMetadata: { openrouter: { usage: { cost: 0.5 } } } })).toBe(0.5)
  expect(reportedCost({ usage: { raw: { cost: -1 } }, providerMetadata: null })).toBeUndefined()
})
