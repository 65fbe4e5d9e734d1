import type {
  LanguageModelV3,
  LanguageModelV3CallOptions,
  LanguageModelV3Content,
  LanguageModelV3Prompt,
  LanguageModelV3Usage,
} from '@ai-sdk/provider'
import type { ModelFactory } from 'tutti'
import { type CallPlace, placeOf } from '../../src/models/call-place.js'

/** One call of a model, as it was made. */
export interface Heard {
  readonly agent: string
  readonly place: CallPlace
  readonly options: LanguageModelV3CallOptions
  /** The whole prompt as text. */
  readonly text: string
}

/** Models whose calls are kept for the test; a prompt that some provider would refuse fails the call, as it would there. */
export function spied(models: ModelFactory): { readonly models: ModelFactory; readonly heard: Heard[] } {
  const heard: Heard[] = []
  const hear = (agent: string, options: LanguageModelV3CallOptions): void => {
    const problem = promptProblem(options.prompt) ?? toolsProblem(options.tools)
    if (problem !== null) throw new Error(`no provider takes this: ${problem}`)
    const place = placeOf(options)
    if (place === undefined) throw new Error('the call does not say where it is made')
    heard.push({ agent, place, options, text: JSON.stringify(options.prompt) })
  }
  return {
    heard,
    models: (ref) => {
      const model = models(ref) as LanguageModelV3 | undefined
      if (model === undefined) return undefined
      const spying: LanguageModelV3 = {
        ...model,
        doGenerate: (options) => {
          hear(ref.agent, options)
          return model.doGenerate(options)
        },
        doStream: (options) => {
          hear(ref.agent, options)
          return model.doStream(options)
        },
      }
      return spying
    },
  }
}

const nameFit = /^[A-Za-z0-9_-]{1,64}$/

/** What some provider would have against a prompt: every call has exactly one result, right after it, in order; roles alternate. */
export function promptProblem(prompt: LanguageModelV3Prompt): string | null {
  const said = prompt.filter(({ role }) => role !== 'system')
  if (said[0]?.role !== 'user') return 'it does not begin with a user'
  const ids = new Set<string>()
  for (const [index, message] of said.entries()) {
    const next = said[index + 1]
    if (message.role === 'user' && next?.role === 'user') return 'two users in a row'
    if (message.role === 'system') return 'a system in the middle'
    if (message.content.some((part) => part.type === 'text' && part.text.trim() === '')) return 'an empty text'
    if (message.role === 'tool' && said[index - 1]?.role !== 'assistant') return 'results of nothing'
    if (message.role !== 'assistant') continue
    if (message.content.length === 0) return 'an assistant who says nothing'
    if (message.content.at(-1)?.type === 'reasoning') return 'an assistant who ends with a thought'
    const calls = message.content.flatMap((part) => (part.type === 'tool-call' ? [part] : []))
    for (const { toolCallId, toolName, input } of calls) {
      if (ids.has(toolCallId)) return `the call ${toolCallId} twice`
      ids.add(toolCallId)
      if (!nameFit.test(toolName)) return `a tool called ${toolName}`
      if (typeof input !== 'object' || input === null || Array.isArray(input)) return 'arguments that are no object'
    }
    const results = next?.role === 'tool' ? next.content.flatMap((part) => (part.type === 'tool-result' ? [part.toolCallId] : [])) : []
    if (JSON.stringify(results) !== JSON.stringify(calls.map(({ toolCallId }) => toolCallId)))
      return `calls ${calls.map(({ toolCallId }) => toolCallId).join()} with results ${results.join()}`
  }
  return said.at(-1)?.role === 'assistant' ? 'it ends with the assistant' : null
}

/** What some provider would have against what is offered: the arguments of a tool are an object, said as one. */
function toolsProblem(tools: LanguageModelV3CallOptions['tools'] = []): string | null {
  for (const { name, ...tool } of tools) {
    const {
      type,
      anyOf,
      oneOf,
      allOf,
      enum: choices,
      not,
      $ref,
    } = ('inputSchema' in tool ? tool.inputSchema : {}) as Record<string, unknown>
    if (type !== 'object') return `${name} takes ${JSON.stringify(type)}`
    if ([anyOf, oneOf, allOf, choices, not, $ref].some((word) => word !== undefined)) return `${name} takes a choice`
  }
  return null
}

/** What came of the calls of the last answer, in the order of the calls. */
export function lastResults({ options }: Heard): unknown[] {
  const last = options.prompt.findLast(({ role }) => role === 'tool')
  if (last?.role !== 'tool') return []
  return last.content.flatMap((part) => (part.type === 'tool-result' ? [(part.output as { value?: unknown }).value] : []))
}

/** The names of the tools that were offered. */
export const offeredIn = ({ options }: Heard): string[] => (options.tools ?? []).map(({ name }) => name)

const fifteen: LanguageModelV3Usage = {
  inputTokens: { total: 10, noCache: 10, cacheRead: 0, cacheWrite: 0 },
  outputTokens: { total: 5, text: 5, reasoning: 0 },
}

/** A model whose answers are exactly these parts, as a hostile or clumsy one might give them. */
export function saying(answer: (place: CallPlace) => readonly LanguageModelV3Content[], usage = fifteen): LanguageModelV3 {
  return {
    specificationVersion: 'v3',
    provider: 'test',
    modelId: 'saying',
    supportedUrls: {},
    doGenerate: async (options) => {
      const content = [...answer(placeOf(options) as CallPlace)]
      return { content, finishReason: { unified: 'stop', raw: 'stop' }, usage, warnings: [] }
    },
    doStream: () => Promise.reject(new Error('nobody listens')),
  }
}

/** A call as a model makes it: text as input is taken as it is. */
export function called(toolName: string, input: unknown, toolCallId: string = `${toolName}-call`): LanguageModelV3Content {
  return { type: 'tool-call', toolCallId, toolName, input: typeof input === 'string' ? input : JSON.stringify(input) }
}
