import type { LanguageModelV3, LanguageModelV3CallOptions, LanguageModelV3Prompt, LanguageModelV3StreamPart } from '@ai-sdk/provider'
import type { LanguageModel } from 'tutti'
import { type CallPlace, placeOptions } from '../../src/models/call-place.js'

const nowhere: CallPlace = { run: 'run', agent: 'Writer', branch: 'r', turn: 1, call: 0, index: 0, waiting: null }

/** The options of a call as the turn loop makes them: a request, and where in a run it is. */
export function callWith(place: Partial<CallPlace>, more: Partial<LanguageModelV3CallOptions> = {}): LanguageModelV3CallOptions {
  const prompt: LanguageModelV3Prompt = [
    {
      role: 'user',
      content: [{ type: 'text', text: typeof place.request === 'string' ? place.request : JSON.stringify(place.request ?? 'hi') }],
    },
  ]
  return { prompt, providerOptions: placeOptions({ ...nowhere, ...place }) as never, ...more }
}

/** What a model says to a call: its text and its calls, with the input parsed. */
export async function saidBy(model: LanguageModel | undefined, options: LanguageModelV3CallOptions): Promise<Heard> {
  const { content } = await (model as LanguageModelV3).doGenerate(options)
  return heard(content)
}

/** The same, of a stream. */
export async function streamedBy(model: LanguageModel | undefined, options: LanguageModelV3CallOptions): Promise<Heard> {
  return heard(await partsOf(model, options))
}

export async function partsOf(model: LanguageModel | undefined, options: LanguageModelV3CallOptions): Promise<LanguageModelV3StreamPart[]> {
  const { stream } = await (model as LanguageModelV3).doStream(options)
  const parts: LanguageModelV3StreamPart[] = []
  for await (const part of stream as ReadableStream<LanguageModelV3StreamPart> & AsyncIterable<LanguageModelV3StreamPart>) parts.push(part)
  return parts
}

interface Heard {
  readonly text: string
  readonly calls: readonly { readonly name: string; readonly input: any; readonly id: string }[]
}

function heard(parts: readonly { type: string }[]): Heard {
  const each = parts as readonly { type: string; text?: string; delta?: string; toolName: string; input: string; toolCallId: string }[]
  return {
    text: each.flatMap(({ type, text, delta }) => (type === 'text' ? [text] : type === 'text-delta' ? [delta] : [])).join(''),
    calls: each.flatMap(({ type, toolName, input, toolCallId }) =>
      type === 'tool-call' ? [{ name: toolName, input: JSON.parse(input) as unknown, id: toolCallId }] : [],
    ),
  }
}
