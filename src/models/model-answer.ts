import { failureOf } from '../define/failure-of.js'
import type { LanguageModel } from '../define/language-model.js'
import { toJson } from '../kernel/json.js'
import { type AnswerEnd, AnswerFromStream, type AnyPart, isPart, noAnswer, wordsOf } from './answer-parts.js'
import { reportedCost } from './price.js'

/** What a provider wants to see again with a part, unchanged. */
type Meta = Readonly<Record<string, unknown>>

/** One part of what a model said. The input of a call is its text: nothing in it is believed yet. */
export type AnswerPart =
  | { readonly type: 'text'; readonly text: string; readonly meta?: Meta }
  | { readonly type: 'reasoning'; readonly text: string; readonly meta?: Meta }
  | { readonly type: 'call'; readonly id: string; readonly tool: string; readonly input: string; readonly meta?: Meta }

/** What a model answered to one call, as it is journaled. */
export interface ModelAnswer {
  readonly parts: readonly AnswerPart[]
  /** Why it ended: 'stop', 'tool-calls', 'length'… */
  readonly finish: string
  readonly model: string
  /** How often the model was called for it. */
  readonly attempts: number
  readonly inputTokens: number
  readonly outputTokens: number
  /** What the provider says, or what its price makes of it; absent where nobody knows. */
  readonly costUsd?: number
}

/** What the model said, in words. */
export function textOf({ parts }: ModelAnswer): string {
  return parts.flatMap((part) => (part.type === 'text' ? [part.text] : [])).join('')
}

/** What all versions of the specification have in common, as far as it is looked at. */
interface AnyModel {
  doGenerate(options: object): PromiseLike<AnyAnswer | undefined>
  doStream(options: object): PromiseLike<{ readonly stream?: ReadableStream<AnyPart> } | undefined>
}

/** The name by which a model is known. */
export const nameOfModel = ({ provider, modelId }: LanguageModel): string => `${provider}/${modelId}`

/** An answer as it came: what the provider does not tell is not there. */
export type HeardAnswer = Omit<ModelAnswer, 'attempts' | 'inputTokens' | 'outputTokens'> & {
  readonly inputTokens: number | undefined
  readonly outputTokens: number | undefined
  /** Why it is of no use: it was begun, and used what it used, but it broke off. */
  readonly broken?: unknown
}

interface AnyAnswer extends AnswerEnd {
  readonly content: readonly AnyPart[]
  readonly broken?: unknown
}

/** Calls a model. With somebody who listens it is streamed, and what it says is told on as it comes. */
export async function answerOf(model: LanguageModel, options: object, listener: ((text: string) => void) | null): Promise<HeardAnswer> {
  const any = model as unknown as AnyModel
  const result = listener === null ? await any.doGenerate(options) : await streamed((await any.doStream(options))?.stream, listener)
  if (!Array.isArray(result?.content)) throw noAnswer()
  const { content, finishReason, usage } = result
  const costUsd = reportedCost(result)
  const finish = reasonOf(finishReason)
  const broken =
    result.broken ??
    (!content.every(isPart) ? noAnswer() : isBrokenOff(finishReason) ? new CutShort('the model broke off with an error') : undefined)
  return {
    ...(costUsd !== undefined && { costUsd }),
    ...(broken !== undefined && { broken }),
    parts: content.filter(isPart).flatMap(partOf),
    finish,
    model: nameOfModel(model),
    inputTokens: tokensOf(usage, 'inputTokens'),
    outputTokens: tokensOf(usage, 'outputTokens'),
  }
}

/** Of an answer that broke off: the call was taken, and its stream ended before it was finished, or with an error. */
export class CutShort extends Error {
  override readonly name: string = 'CutShort'
}

/** More than any store takes: who goes on for longer has lost itself, and is not listened to until the memory is full. */
const lettersMax = 20_000_000

async function streamed(stream: ReadableStream<AnyPart> | undefined, listener: (text: string) => void): Promise<AnyAnswer> {
  if (typeof stream?.getReader !== 'function') throw noAnswer()
  const heard = new AnswerFromStream()
  let letters = 0
  const reader = stream.getReader()
  try {
    for (let next = await reader.read(); !next.done; next = await reader.read()) {
      heard.add(next.value)
      if (next.value.type === 'error') throw brokenBy(next.value['error'])
      const words = wordsOf(next.value['delta'])
      letters += words.length
      if (letters > lettersMax) throw new Error(`the answer has more than ${lettersMax} characters`)
      if (next.value.type === 'text-delta') listener(words)
    }
    if (heard.answer === null || endsUnsaid(heard.answer.finishReason)) throw stoppedInside()
  } catch (thrown) {
    return { ...heard.soFar, broken: thrown ?? new CutShort('the model broke off with an error') }
  } finally {
    // What is left of it is not wanted: the connection is given back.
    reader.cancel().catch(() => {})
  }
  return heard.soFar
}

export const stoppedInside = (): CutShort => new CutShort('the model stopped in the middle of its answer')

/** What a stream says of its end, in the words of its error. One that has a status says more than that it broke off. */
export function brokenBy(error: unknown): unknown {
  const { statusCode } = (error ?? {}) as { readonly statusCode?: unknown }
  return statusCode === undefined ? new CutShort(failureOf(error).message, { cause: error }) : error
}

/** Where the server has said nothing of why it ended, providers say so, at the end of a half answer as of a whole one. */
export function endsUnsaid(reason: unknown): boolean {
  if (typeof reason === 'string') return reason === 'unknown'
  const { unified, raw } = (reason ?? {}) as { readonly unified?: unknown; readonly raw?: unknown }
  return unified === 'other' && raw === undefined
}

function partOf(part: AnyPart): AnswerPart[] {
  const meta = metaOf(part['providerMetadata'])
  switch (part.type) {
    case 'text':
    case 'reasoning': {
      const text = wordsOf(part['text'])
      // A thought that is kept from us has no words: what it is stands in its mark.
      const isWordless = part.type === 'reasoning' && meta.meta !== undefined
      return text === '' && !isWordless ? [] : [{ type: part.type, text, ...meta }]
    }
    case 'tool-call': {
      // What the provider executes itself is no business of ours: only what comes of it is, and that is in the text.
      if (part['providerExecuted'] === true) return []
      const { input } = part
      const text = typeof input === 'string' ? input : (JSON.stringify(input) ?? '')
      return [{ type: 'call', id: String(part['toolCallId']), tool: String(part['toolName']), input: text, ...meta }]
    }
    default:
      return []
  }
}

function metaOf(metadata: unknown): { meta?: Meta } {
  if (typeof metadata !== 'object' || metadata === null) return {}
  const json = toJson(metadata)
  return 'problem' in json ? {} : { meta: json.value as Meta }
}

/** A text until version 3, then an object that has it. */
function reasonOf(reason: unknown): string {
  if (typeof reason === 'string') return reason
  const { unified, raw } = (reason ?? {}) as { readonly unified?: unknown; readonly raw?: unknown }
  // A server behind a server says it so, and not every provider knows the word.
  if (raw === 'error') return 'error'
  return typeof unified === 'string' ? unified : 'unknown'
}

/** Whether an answer has ended with an error: it is asked for again. */
export const isBrokenOff = (reason: unknown): boolean => reasonOf(reason) === 'error'

/** A number until version 3, then an object with a total. */
function tokensOf(usage: unknown, key: 'inputTokens' | 'outputTokens'): number | undefined {
  const found = (usage as Record<string, unknown> | null | undefined)?.[key]
  const total = typeof found === 'object' && found !== null ? (found as { total?: unknown }).total : found
  return typeof total === 'number' && Number.isFinite(total) && total >= 0 ? Math.round(total) : undefined
}
