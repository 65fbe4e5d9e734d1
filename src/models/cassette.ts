/// <reference lib="esnext.disposable" preserve="true" />
import { appendFileSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { ReadableStream as Parts } from 'node:stream/web'
import type {
  LanguageModelV3,
  LanguageModelV3CallOptions,
  LanguageModelV3GenerateResult,
  LanguageModelV3StreamPart,
  LanguageModelV3StreamResult,
} from '@ai-sdk/provider'
import type { LanguageModel } from '../define/language-model.js'
import { TuttiError } from '../define/tutti-error.js'
import { AnswerFromStream, type AnyPart, noAnswer, streamParts } from './answer-parts.js'
import {
  type CassetteEntry,
  type CassettePlace,
  cassetteHead,
  cassettePlace,
  compareEntries,
  entriesIn,
  hashOf,
  placeText,
  plain,
  requestOf,
  runOf,
} from './cassette-entry.js'
import { outcomesIn } from './cassette-outcomes.js'
import { firstDifference } from './first-difference.js'
import { makeFolder } from './make-folder.js'
import { brokenBy, endsUnsaid, stoppedInside } from './model-answer.js'
import type { ModelFactory, ModelSource } from './model-factory.js'
import { toldOf } from './model-failure.js'
import { streamOf } from './playing-model.js'
import { resolveModel } from './resolve.js'

/** Gives models that write down what they are asked and what they answer. Closing it puts the file into the order of the run. */
export interface Recording extends AsyncDisposable {
  (...ref: Parameters<ModelSource>): Promise<LanguageModel>
  close(): Promise<void>
}

/**
 * Records every call of every model into a file: one line of JSON per call, with no header and no key of this process in it. The models are
 * those of `models`, or those that agents would have anyhow. A file that is there is written anew.
 */
export function record(file: string, models?: ModelSource): Recording {
  makeFolder(dirname(resolve(file)))
  // What was said may be private: the file is its owner's.
  writeFileSync(file, `${JSON.stringify(cassetteHead)}\n`, { mode: 0o600 })
  const write = (entry: CassetteEntry) => appendFileSync(file, `${JSON.stringify(plain(entry, process.env))}\n`)
  const source = async (...[ref]: Parameters<ModelSource>) =>
    recordingModel(ref.agent, (await resolveModel(ref, { models, env: process.env })) as LanguageModelV3, write)
  const close = async () => sortFile(file)
  return Object.assign(source, { close, [Symbol.asyncDispose]: close })
}

/** Plays what was recorded: each call by its place and by what it asks, so that no order decides. One that is not there fails, and says why. */
export function replay(file: string): ModelFactory {
  const entries = read(file)
  return ({ agent }) => {
    const name = entries.find((entry) => entry.agent === agent)?.model ?? 'tutti/replay'
    const slash = name.indexOf('/')
    const play = (options: LanguageModelV3CallOptions) => played(entries, agent, options, file)
    return {
      specificationVersion: 'v3',
      provider: name.slice(0, slash),
      modelId: name.slice(slash + 1),
      supportedUrls: {},
      doGenerate: async (options) => ({ ...(await play(options)), warnings: [] }) as unknown as LanguageModelV3GenerateResult,
      doStream: async (options) => {
        const { content, ...end } = await play(options)
        const finishReason = ended(end.finishReason)
        return { stream: streamOf(streamParts(content, { ...end, finishReason }) as unknown as LanguageModelV3StreamPart[]) }
      },
    }
  }
}

/** What was recorded was heard to its end, also where the server has not said why it ended. */
const ended = (reason: unknown): unknown => (typeof reason === 'object' ? { raw: 'recorded', ...reason } : { unified: reason, raw: reason })

function read(file: string): readonly CassetteEntry[] {
  const hint = 'record it again'
  let text: string
  try {
    text = readFileSync(file, 'utf8')
  } catch (cause) {
    throw new TuttiError('INVALID_INPUT', `the cassette ${file} can't be read`, { cause, hint })
  }
  const found = entriesIn(text)
  if ('problem' in found) throw new TuttiError('INVALID_INPUT', `${file} is no cassette: ${found.problem}`, { hint })
  return outcomesIn(found.entries).toSorted(compareEntries)
}

function sortFile(file: string): void {
  const lines = [cassetteHead, ...read(file)].map((entry) => JSON.stringify(entry))
  writeFileSync(`${file}.new`, `${lines.join('\n')}\n`, { mode: 0o600 })
  renameSync(`${file}.new`, file)
}

type Answer = { readonly content: unknown; readonly finishReason: unknown; readonly usage: unknown; readonly providerMetadata?: unknown }

/** The same model, of whatever version: only what is asked of it and what it says is looked at. */
function recordingModel(agent: string, inner: LanguageModelV3, write: (entry: CassetteEntry) => void): LanguageModelV3 {
  const { specificationVersion, provider, modelId, supportedUrls } = inner
  const noted = async <T>(
    options: LanguageModelV3CallOptions,
    call: (answered: (answer: Answer) => void, failed: (error: unknown) => void) => PromiseLike<T>,
  ): Promise<T> => {
    const request = requestOf(options, process.env)
    const run = runOf(options)
    const whose = run === undefined ? {} : { run }
    const asked = { ...cassettePlace(agent, options), ...whose, model: `${provider}/${modelId}`, hash: hashOf(request), request }
    let isOver = false
    // What comes first is what came of it: that it was answered, failed, or was given up.
    const note = (answer: CassetteEntry['answer']): void => {
      if (!isOver) write({ ...asked, answer })
      isOver = true
    }
    options.abortSignal?.addEventListener('abort', () => note({ error: { message: 'it was given up', givenUp: true } }), { once: true })
    const failed = (error: unknown): void => note({ error: toldOf(error, inner) })
    try {
      return await call(
        ({ content, finishReason, usage, providerMetadata }) =>
          note({ content, finishReason, usage, providerMetadata } as CassetteEntry['answer']),
        failed,
      )
    } catch (error) {
      failed(error)
      throw error
    }
  }
  const recording: LanguageModelV3 = {
    specificationVersion,
    provider,
    modelId,
    supportedUrls,
    doGenerate: (options) =>
      noted(options, async (answered) => {
        const result = (await inner.doGenerate(options)) as LanguageModelV3GenerateResult | undefined
        if (!Array.isArray(result?.content)) throw noAnswer()
        answered(result)
        return result
      }),
    doStream: (options) =>
      noted(options, async (answered, failed) => {
        const { stream, ...rest } = ((await inner.doStream(options)) ?? {}) as Partial<LanguageModelV3StreamResult>
        if (typeof stream?.getReader !== 'function') throw noAnswer()
        return { ...rest, stream: Parts.from(listening(stream, answered, failed)) as unknown as typeof stream }
      }),
  }
  // What it sends as its key must be known to whoever tells of a failure.
  return Object.defineProperty(recording, 'config', { get: () => (inner as { readonly config?: unknown }).config })
}

/** Hands the parts on as they come, and tells the answer when it is whole, or why there is none. */
async function* listening(
  stream: ReadableStream<LanguageModelV3StreamPart>,
  answered: (answer: Answer) => void,
  failed: (error: unknown) => void,
): AsyncGenerator<LanguageModelV3StreamPart> {
  const heard = new AnswerFromStream()
  try {
    for await (const part of stream) {
      heard.add(part as unknown as AnyPart)
      if (part.type === 'error') failed(brokenBy(part.error))
      yield part
    }
  } catch (error) {
    failed(error)
    throw error
  }
  if (heard.answer !== null && !endsUnsaid(heard.answer.finishReason)) answered(heard.answer)
  else failed(stoppedInside())
}

async function played(entries: readonly CassetteEntry[], agent: string, options: LanguageModelV3CallOptions, file: string) {
  options.abortSignal?.throwIfAborted()
  const place = cassettePlace(agent, options)
  const request = requestOf(options, process.env)
  const hash = hashOf(request)
  const alike = entries.filter((entry) => entry.hash === hash && isAt(entry, place))
  if (alike.length === 0) throw new CassetteMiss(`${file} has no such call of ${placeText(place)}: ${nearest(entries, place, request)}`)
  const own = alike.length === 1 ? alike : alike.filter(({ run }) => run === runOf(options))
  const [found] = own
  if (found === undefined || own.length > 1) throw new CassetteMiss(`${file} ${undecided(alike, place, runOf(options))}`)
  if (!('error' in found.answer)) return found.answer
  if (found.answer.error.givenUp === true) await givenUp(options.abortSignal)
  const { message, status, attempts } = found.answer.error
  // It is how the call ended: what was tried before is not tried again.
  throw Object.assign(new Error(message), {
    isRetryable: false,
    ...(status !== undefined && { statusCode: status }),
    ...(attempts !== undefined && { recordedAttempts: attempts }),
  })
}

/** Who was not answered before nobody waited any more is not answered: a failure in place of that would be first where it was not. */
function givenUp(signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve) => (signal === undefined ? resolve() : signal.addEventListener('abort', () => resolve(), { once: true })))
}

const isAt = (entry: CassettePlace, place: CassettePlace): boolean => placeText(entry) === placeText(place)

/** A call that was not recorded, or of which nobody can tell which one it is. */
class CassetteMiss extends Error {
  override readonly name: string = 'CassetteMiss'
}

function undecided(alike: readonly CassetteEntry[], place: CassettePlace, run = ''): string {
  const runs = alike.map((entry) => entry.run ?? 'none').join(', ')
  const what = `has ${alike.length} different answers to the same call of ${placeText(place)}, of the runs ${runs}, and can't tell which is that of the run ${run}`
  return `${what}: start each run with the id that it is recorded under, or record each into a file of its own`
}

/** What is nearest to a call that was not recorded, and where it differs. */
function nearest(entries: readonly CassetteEntry[], place: CassettePlace, request: unknown): string {
  const own = entries.filter(({ agent }) => agent === place.agent)
  if (own.length === 0) return `nothing of ${place.agent} was recorded`
  const here = own.find((entry) => isAt(entry, place))
  if (here !== undefined) return `another was recorded there; it differs at ${firstDifference(here.request, request)}`
  const hash = hashOf(request)
  const elsewhere = own.find((entry) => entry.hash === hash)
  if (elsewhere !== undefined) return `the same was recorded at ${placeText(elsewhere)}`
  const [first, ...others] = entries.filter(({ child, branch }) => child === place.child && branch === place.branch)
  if (first !== undefined && [first, ...others].every((entry) => isLater(entry, place)))
    return `nothing was recorded of its branch before ${placeText(first)}: what was asked in another process is on another tape, and each recording writes its file anew`
  const text = JSON.stringify(request)
  const alike = own.reduce((best, entry) => (shared(entry, text) > shared(best, text) ? entry : best))
  return `the nearest is ${placeText(alike)}; it differs at ${firstDifference(alike.request, request)}`
}

const isLater = (entry: CassettePlace, { turn, call }: CassettePlace): boolean =>
  entry.turn > turn || (entry.turn === turn && entry.call > call)

/** How far two requests are the same. */
function shared({ request }: CassetteEntry, text: string): number {
  const other = JSON.stringify(request)
  let same = 0
  while (same < other.length && other[same] === text[same]) same++
  return same
}
