import type { LanguageModel } from '../define/language-model.js'
import { shown } from '../define/option-check.js'
import { TuttiError } from '../define/tutti-error.js'
import { defaultModel, type Environment, type ModelChoice, namedModel } from './model-choice.js'
import type { ModelSource } from './model-factory.js'
import { fetchHere } from './fetch-here.js'
import { simModel } from './sim.js'

/**
 * The model of an agent, by the first that gives one: the factory of `open({ models })`, which is told what the agent names; the model that
 * the agent names, an object or a text; a key in the environment; `sim`. Providers are loaded only here, when one is needed.
 */
export async function resolveModel(
  ref: { readonly agent: string; readonly model?: LanguageModel | string | undefined },
  from: { readonly models?: ModelSource | undefined; readonly env: Environment },
): Promise<LanguageModel> {
  const { agent, model } = ref
  const made = await from.models?.(Object.freeze({ agent, ...(model === undefined ? {} : { model }) }))
  if (made !== undefined) return aModel(made, agent, 'what open({ models }) gives for it')
  if (typeof model === 'object') return aModel(model, agent, 'what it names')
  const choice = model === undefined ? defaultModel(from.env) : namedModel(model, from.env)
  return load(choice, agent, from.env)
}

/** What was given by hand is looked at before it is called. */
function aModel(given: LanguageModel, agent: string, whose: string): LanguageModel {
  const { doGenerate, doStream } = (given ?? {}) as { readonly doGenerate?: unknown; readonly doStream?: unknown }
  if (typeof doGenerate === 'function' && typeof doStream === 'function') return given
  const hint = "give an object of the AI SDK, such as openai('gpt-5.4-mini') makes one; a factory that gives undefined leaves the choice"
  throw unavailable(agent, `${whose} is no language model: ${shown(given)}`, hint)
}

/** Which model agents have that name none, and why: for people, with no key in it. */
export function explainModels(env: Environment): { readonly model: string; readonly why: string } {
  const choice = defaultModel(env)
  switch (choice.provider) {
    case 'sim':
      return { model: 'sim', why: `${choice.why}; its answers are simulated` }
    case 'unknown':
      return { model: 'none', why: `${choice.problem}; ${choice.hint}` }
    case 'compatible':
      return { model: `${choice.url}#${choice.id}`, why: choice.why }
    case 'openai':
    case 'anthropic':
    case 'openrouter':
      return { model: `${choice.provider}/${choice.id}`, why: choice.why }
  }
}

async function load(choice: ModelChoice, agent: string, env: Environment): Promise<LanguageModel> {
  switch (choice.provider) {
    case 'sim':
      return simModel(agent)
    case 'unknown':
      throw unavailable(agent, choice.problem, choice.hint)
    case 'openai': {
      const apiKey = keyOf(choice, agent, env)
      const { createOpenAI } = await needed('@ai-sdk/openai', agent, () => import('@ai-sdk/openai'))
      return createOpenAI({ apiKey, fetch: fetchHere })(choice.id)
    }
    case 'anthropic': {
      const apiKey = keyOf(choice, agent, env)
      const { createAnthropic } = await needed('@ai-sdk/anthropic', agent, () => import('@ai-sdk/anthropic'))
      return createAnthropic({ apiKey, fetch: fetchHere })(choice.id)
    }
    case 'openrouter':
      return compatible(agent, choice.id, {
        name: 'openrouter',
        baseURL: 'https://openrouter.ai/api/v1',
        apiKey: keyOf(choice, agent, env),
        // It says what a call cost only if it is asked to.
        transformRequestBody: (body) => ({ ...body, usage: { include: true } }),
      })
    case 'compatible': {
      const apiKey = choice.key === undefined ? undefined : env[choice.key]
      return compatible(agent, choice.id, { name: 'compatible', baseURL: choice.url, ...(apiKey === undefined ? {} : { apiKey }) })
    }
  }
}

interface Compatible {
  readonly name: string
  readonly baseURL: string
  readonly apiKey?: string
  readonly transformRequestBody?: (body: Record<string, unknown>) => Record<string, unknown>
}

async function compatible(agent: string, id: string, settings: Compatible): Promise<LanguageModel> {
  const { createOpenAICompatible } = await needed('@ai-sdk/openai-compatible', agent, () => import('@ai-sdk/openai-compatible'))
  return createOpenAICompatible({ ...settings, includeUsage: true, fetch: fetchHere })(id)
}

function keyOf({ key }: { readonly key: string }, agent: string, env: Environment): string {
  const value = env[key]
  if (value !== undefined && value !== '') return value
  throw unavailable(agent, `${key} is not set`, `set ${key}, or model: 'sim' to go on without one`)
}

async function needed<T>(name: string, agent: string, load: () => Promise<T>): Promise<T> {
  try {
    return await load()
  } catch (error) {
    if ((error as { code?: unknown }).code !== 'ERR_MODULE_NOT_FOUND') throw error
    throw unavailable(agent, `the package ${name} is not installed`, `npm install ${name}`)
  }
}

function unavailable(agent: string, problem: string, hint: string): TuttiError {
  return new TuttiError('MODEL_UNAVAILABLE', `${agent} has no model: ${problem}`, { hint })
}
