import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createAnthropic } from '@ai-sdk/anthropic'
import type { LanguageModelV3StreamPart } from '@ai-sdk/provider'
import type { RunResult } from 'tutti'
import { topology } from 'tutti'
import { describe, expect, test } from 'vitest'
import { streamParts } from '../../src/models/answer-parts.js'
import { answerOf } from '../../src/models/model-answer.js'
import { journal, opened } from '../engine/opened.js'
import { saying } from './spied.js'

type Parts = readonly object[]

const text = (delta: string): Parts => [
  { type: 'text-start', id: '1' },
  { type: 'text-delta', id: '1', delta },
]
const finish = (finishReason: unknown): object => ({ type: 'finish', finishReason, usage: { inputTokens: {}, outputTokens: {} } })
const whole: Parts = [...text('all of it'), { type: 'text-end', id: '1' }, finish({ unified: 'stop', raw: 'stop' })]

/** A run of one agent that somebody listens to, whose model streams each of these in turn, and the last again and again; nothing is a stream that waits to be given up. */
async function streamed(answers: readonly Parts[], more: object = {}): Promise<{ result: RunResult; calls: number; deltas: string[] }> {
  let calls = 0
  const model = {
    ...saying(() => [{ type: 'text', text: 'nobody listens' }]),
    doStream: async ({ abortSignal }: { abortSignal?: AbortSignal }) => {
      const parts = answers[Math.min(calls++, answers.length - 1)] as LanguageModelV3StreamPart[]
      if (parts.length === 0) await new Promise((resolve) => abortSignal?.addEventListener('abort', resolve))
      return { stream: new ReadableStream({ start: (to) => (parts.forEach((part) => to.enqueue(part)), to.close()) }) }
    },
  }
  const solo = topology({ name: 'solo', flows: ['Start -> A -> End'], agents: { A: { retry: { backoffMs: 1 }, ...more } } })
  await using tutti = await opened({ models: () => model })
  const run = await tutti.start(solo)
  const deltas: string[] = []
  for await (const event of run.events({ deltas: true })) if (event.type === 'text.delta') deltas.push(`${event.attempt} ${event.text}`)
  return { result: await run.result(), calls, deltas }
}

describe('an answer that breaks off in its stream', () => {
  test.each<[string, Parts]>([
    ['with the words of the server', [...text('half'), { type: 'error', error: { type: 'overloaded_error', message: 'Overloaded' } }]],
    ['with a text', [...text('half'), { type: 'error', error: 'the server had an error' }]],
    ['with what is no JSON', [...text('half'), { type: 'error', error: new SyntaxError('Unexpected end of JSON input') }]],
    ['with no end', text('half')],
    ['with an end that nobody has said', [...text('half'), finish({ unified: 'other', raw: undefined })]],
    ['with an end that nobody has said, in version 2', [...text('half'), finish('unknown')]],
    ['with an error as its end', [...text('half'), finish({ unified: 'other', raw: 'error' })]],
  ])('%s is asked for again', async (_, broken) => {
    const { result, calls } = await streamed([broken, whole])
    expect(result).toMatchObject({ status: 'succeeded', output: 'all of it' })
    expect(calls).toBe(2)
  })

  test('leaves no connection open, whatever the provider makes of it and however long the server goes on', async () => {
    const said = JSON.stringify({ type: 'error', error: { type: 'overloaded_error', message: 'Overloaded' } })
    const gone: Promise<void>[] = []
    const server = createServer((request, response) => {
      request.resume()
      gone.push(new Promise((resolve) => response.once('close', resolve)))
      response.writeHead(200, { 'content-type': 'text/event-stream' }).write(`event: error\ndata: ${said}\n\n`)
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    const baseURL = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`
    const model = createAnthropic({ baseURL, apiKey: 'none' })('claude')
    const solo = topology({ name: 'solo', flows: ['Start -> A -> End'], agents: { A: { model, retry: { attempts: 2, backoffMs: 1 } } } })
    await using tutti = await opened()
    const run = await tutti.start(solo)
    for await (const _ of run.events({ deltas: true }));
    expect(await run.result()).toMatchObject({ status: 'failed', error: { code: 'MODEL_FAILED', data: { attempts: 2 } } })
    expect(gone).toHaveLength(2)
    await Promise.all(gone)
    server.close()
  })

  test('has told what it said, and those who follow can tell it from what is said when it is asked again', async () => {
    const { deltas } = await streamed([text('half'), text('half'), whole])
    expect(deltas).toEqual(['1 half', '2 half', '3 all of it'])
  })

  test('each time fails with what was said', async () => {
    const { result, calls } = await streamed([[{ type: 'error', error: { message: 'Overloaded' } }]])
    expect(result).toMatchObject({ status: 'failed', error: { code: 'MODEL_FAILED', message: 'test/saying: Overloaded' } })
    expect(calls).toBe(3)
  })

  test('with an error as its first word is asked for again, as with one in its middle', async () => {
    const answers = [
      [{ type: 'error', error: { type: 'api_error', message: 'Internal server error' } }],
      [
        { type: 'message_start', message: { id: 'm', model: 'm', usage: { input_tokens: 1, output_tokens: 1 } } },
        { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } },
        { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'all of it' } },
        { type: 'content_block_stop', index: 0 },
        { type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage: { output_tokens: 1 } },
        { type: 'message_stop' },
      ],
    ]
    let calls = 0
    const fetch = async (): Promise<Response> => {
      const body = answers[calls++]?.map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`).join('')
      return new Response(body, { headers: { 'content-type': 'text/event-stream' } })
    }
    const model = createAnthropic({ apiKey: 'none', fetch })('claude')
    const solo = topology({ name: 'solo', flows: ['Start -> A -> End'], agents: { A: { model, retry: { backoffMs: 1 } } } })
    await using tutti = await opened()
    const run = await tutti.start(solo)
    for await (const _ of run.events({ deltas: true }));
    expect(await run.result()).toMatchObject({ status: 'succeeded', output: 'all of it' })
    expect(calls).toBe(2)
  })

  test('with an error that does not pass is not asked for again', async () => {
    const error = Object.assign(new Error('no such model'), { statusCode: 404 })
    const { result, calls } = await streamed([[{ type: 'error', error }]])
    expect(result).toMatchObject({ status: 'failed', error: { code: 'MODEL_FAILED', data: { status: 404 } } })
    expect(calls).toBe(1)
  })

  test('because it is far too long is not listened to, nor asked for again', async () => {
    let sent = 0
    const long = { type: 'text-delta', id: '1', delta: 'x'.repeat(1_000_000) }
    const endless = {
      ...saying(() => []),
      doStream: async () => ({
        stream: new ReadableStream({ pull: (to) => (++sent > 100 ? to.close() : to.enqueue(long as LanguageModelV3StreamPart)) }),
      }),
    }
    const { broken } = await answerOf(endless, {}, () => {})
    expect(String(broken)).toMatch('the answer has more than 20000000 characters')
    expect(sent).toBeLessThan(30)
  })

  test('because a guardrail has stopped it is not asked for again', async () => {
    const guardrails = [{ name: 'no', parallel: true, before: () => 'not this' }]
    const { result, calls } = await streamed([[]], { guardrails })
    expect(result).toMatchObject({ status: 'failed', error: { message: 'the guardrail no stopped the turn: not this' } })
    expect(calls).toBe(1)
  })
})

describe('what is no text in a stream', () => {
  const strange = (part: unknown): Parts => [part as object, ...whole]

  test.each([
    { type: 'text-delta', id: '1' },
    { type: 'text-delta', id: '1', delta: null },
    { type: 'text-delta', id: '1', delta: 7 },
  ])('is no word of it: %o', async (part) => {
    const { result, deltas } = await streamed([strange(part)])
    expect(result).toMatchObject({ status: 'succeeded', output: 'all of it' })
    expect(deltas.join('')).not.toMatch(/undefined|null|7/)
  })

  test.each([null, undefined, 'text'])(
    'nor a part at all (%o): that it is no answer is said, and it is not asked for again',
    async (part) => {
      const { result, calls } = await streamed([strange(part)])
      expect(result).toMatchObject({
        status: 'failed',
        error: { message: expect.stringMatching(/no answer of a model of the AI SDK/) as string },
      })
      expect(calls).toBe(1)
    },
  )

  test('nor a part at all, and what was used for it counts whether somebody listens or not', async () => {
    const content = [null, { type: 'text', text: 'x' }]
    const parts = [{ type: 'text-delta', id: '1', delta: 'x' }, null]
    const model = {
      ...saying(() => []),
      doGenerate: async () => ({ content, finishReason: 'stop', usage: { inputTokens: 3, outputTokens: 4 }, warnings: [] }),
      doStream: async () => ({ stream: new ReadableStream({ start: (to) => (parts.forEach((part) => to.enqueue(part)), to.close()) }) }),
    } as never
    const solo = topology({ name: 'solo', flows: ['Start -> A -> End'], agents: { A: {} }, limits: { tokens: 100_000 } })
    for (const deltas of [true, false]) {
      await using tutti = await opened({ models: () => model })
      const run = await tutti.start(solo)
      for await (const { type } of deltas ? run.events({ deltas }) : run.events()) if (type === 'run.failed') break
      const failed = (await journal(run)).find(({ type }) => type === 'activity.failed')
      expect(failed).toMatchObject({ usage: { calls: 1, ...(deltas ? {} : { inputTokens: 3, outputTokens: 4 }) } })
      expect(failed).not.toMatchObject({ usage: { inputTokens: 0 } })
    }
  })

  test('is played from a cassette as it was heard', () => {
    const content = [{ type: 'text' }, { type: 'text', text: 'all' }]
    const deltas = streamParts(content, { finishReason: 'stop', usage: {} }).flatMap(({ delta }) => (delta === undefined ? [] : [delta]))
    expect(deltas).toEqual(['all'])
  })
})
