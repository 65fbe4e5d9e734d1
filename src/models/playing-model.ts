import type {
  LanguageModelV3,
  LanguageModelV3CallOptions,
  LanguageModelV3Content,
  LanguageModelV3FinishReason,
  LanguageModelV3StreamPart,
  LanguageModelV3Usage,
} from '@ai-sdk/provider'
import { streamParts } from './answer-parts.js'

/** What a model that is played by code says to one call. */
export interface Said {
  readonly text?: string
  readonly calls?: readonly { readonly name: string; readonly input: unknown }[]
}

/** Nothing was bought, so nothing is counted. */
const usage: LanguageModelV3Usage = {
  inputTokens: { total: 0, noCache: 0, cacheRead: 0, cacheWrite: 0 },
  outputTokens: { total: 0, text: 0, reasoning: 0 },
}

/** A language model whose answers code gives, at once or as a stream. `play` may throw, as a provider does. */
export function playingModel(provider: string, modelId: string, play: (options: LanguageModelV3CallOptions) => Said): LanguageModelV3 {
  const answer = (options: LanguageModelV3CallOptions) => {
    options.abortSignal?.throwIfAborted()
    return contentOf(play(options), callsIn(options))
  }
  return {
    specificationVersion: 'v3',
    provider,
    modelId,
    supportedUrls: {},
    doGenerate: async (options) => {
      const content = answer(options)
      return { content, finishReason: finishOf(content), usage, warnings: [] }
    },
    doStream: async (options) => {
      const content = answer(options)
      return { stream: streamOf(streamParts(content, { finishReason: finishOf(content), usage }) as LanguageModelV3StreamPart[]) }
    },
  }
}

/** A stream of parts that are all there. */
export function streamOf<T>(parts: readonly T[]): ReadableStream<T> {
  return new ReadableStream<T>({
    start(controller) {
      for (const part of parts) controller.enqueue(part)
      controller.close()
    },
  })
}

/** How many calls the transcript has, so that the ids of the next ones are new in it, and the same whenever it is asked again. */
function callsIn({ prompt }: LanguageModelV3CallOptions): number {
  return prompt.flatMap(({ content }) => (typeof content === 'string' ? [] : content.filter((part) => part.type === 'tool-call'))).length
}

function contentOf({ text, calls = [] }: Said, before: number): LanguageModelV3Content[] {
  return [
    ...(text === undefined ? [] : [{ type: 'text' as const, text }]),
    ...calls.map(({ name, input }, index) => ({
      type: 'tool-call' as const,
      toolCallId: `call_${before + index}`,
      toolName: name,
      input: JSON.stringify(input),
    })),
  ]
}

function finishOf(content: readonly LanguageModelV3Content[]): LanguageModelV3FinishReason {
  const unified = content.some((part) => part.type === 'tool-call') ? 'tool-calls' : 'stop'
  return { unified, raw: unified }
}
