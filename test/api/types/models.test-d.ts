import { createAnthropic } from '@ai-sdk/anthropic'
import { createOpenAI } from '@ai-sdk/openai'
import { createOpenAICompatible } from '@ai-sdk/openai-compatible'
import type { LanguageModelV2, LanguageModelV3 } from '@ai-sdk/provider'
import { agent, open, type LanguageModel } from 'tutti'
import { expectTypeOf } from 'vitest'

// real models of the AI SDK are models here
expectTypeOf<LanguageModelV2>().toExtend<LanguageModel>()
expectTypeOf<LanguageModelV3>().toExtend<LanguageModel>()
agent({ name: 'A', model: createAnthropic()('claude') })
agent({ name: 'B', model: createOpenAI()('gpt') })
agent({ name: 'C', model: createOpenAICompatible({ name: 'here', baseURL: 'http://localhost' })('any') })
await open({ models: ({ model }) => (typeof model === 'string' ? createOpenAI()(model) : model) })

// and what is known to be of a version goes back to where it came from
declare const model: LanguageModel
if (model.specificationVersion === 'v2') expectTypeOf(model).toExtend<LanguageModelV2>()
if (model.specificationVersion === 'v3') expectTypeOf(model).toExtend<LanguageModelV3>()

// @ts-expect-error: this is no model
agent({ name: 'D', model: 5 })
// @ts-expect-error: nor is one of a version that nobody knows
agent({ name: 'E', model: { ...createOpenAI()('gpt'), specificationVersion: 'v1' } })
