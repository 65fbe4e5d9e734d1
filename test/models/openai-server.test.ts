import type { LanguageModelV3, LanguageModelV3CallOptions } from '@ai-sdk/provider'
import { APICallError } from '@ai-sdk/provider'
import { createOpenAICompatible } from '@ai-sdk/openai-compatible'
import { describe, expect, test } from 'vitest'
import { partsOf } from './call.js'
import { type Answer, OpenAiServer, type Received } from './openai-server.js'
import { transcriptProblem, type WireMessage } from './openai-transcript.js'

const modelOf = (server: OpenAiServer): LanguageModelV3 =>
  createOpenAICompatible({ name: 'local', baseURL: server.url, includeUsage: true })('tiny')
const said = (text: string): LanguageModelV3CallOptions => ({ prompt: [{ role: 'user', content: [{ type: 'text', text }] }] })

const serving = (answer: Answer | ((request: Received) => Answer)) =>
  OpenAiServer.start(typeof answer === 'function' ? answer : () => answer)

const rich: Answer = {
  text: 'grüße 👋 aus Zürich',
  calls: [
    { name: 'look', input: { at: 'the “moon” 🌕', deep: [1, { two: 2 }] } },
    { name: 'finish', input: { output: 42 } },
  ],
  usage: { input: 12, output: 34, cost: 0.5 },
}
const calls = [
  { toolCallId: 'call_0_0', toolName: 'look', input: JSON.stringify({ at: 'the “moon” 🌕', deep: [1, { two: 2 }] }) },
  { toolCallId: 'call_0_1', toolName: 'finish', input: '{"output":42}' },
]

describe('the server that speaks the wire format of OpenAI', () => {
  test('answers at once with text, calls and usage', async () => {
    await using server = await serving(rich)
    const { content, usage, finishReason } = await modelOf(server).doGenerate(said('hi'))
    expect(content).toEqual([{ type: 'text', text: 'grüße 👋 aus Zürich' }, ...calls.map((call) => ({ type: 'tool-call', ...call }))])
    expect(usage).toMatchObject({ inputTokens: { total: 12 }, outputTokens: { total: 34 }, raw: { cost: 0.5 } })
    expect(finishReason.unified).toBe('tool-calls')
    expect(server.requests[0]?.body).toMatchObject({ model: 'tiny', messages: [{ role: 'user', content: 'hi' }] })
  })

  test('streams text and calls in pieces that split events and characters, with the usage at the end', async () => {
    await using server = await serving(rich)
    const parts = await partsOf(modelOf(server), said('hi'))
    const deltas = parts.flatMap((part) => (part.type === 'text-delta' ? [part.delta] : []))
    expect(deltas.length).toBeGreaterThan(2)
    expect(deltas.join('')).toBe('grüße 👋 aus Zürich')
    expect(parts.filter((part) => part.type === 'tool-input-delta').length).toBeGreaterThan(4)
    expect(parts.filter((part) => part.type === 'tool-call')).toMatchObject(calls)
    expect(parts.at(-1)).toMatchObject({ type: 'finish', usage: { inputTokens: { total: 12 } }, finishReason: { unified: 'tool-calls' } })
  })

  test('lets the test say in which order held answers are complete', async () => {
    await using server = await serving(({ body }) => `echo ${String(body.messages[0]?.content)}`)
    server.hold()
    const order: string[] = []
    const asked = ['a', 'b', 'c'].map(async (text) => {
      const { content } = await modelOf(server).doGenerate(said(text))
      order.push((content[0] as { text: string }).text)
    })
    const held = await server.held(3)
    for (const [before, text] of ['c', 'a', 'b'].entries()) {
      held.find(({ body }) => body.messages[0]?.content === text)?.release(text === 'a' ? 'another' : undefined)
      await asked[['a', 'b', 'c'].indexOf(text)]
      expect(order.length).toBe(before + 1)
    }
    await Promise.all(asked)
    expect(order).toEqual(['echo c', 'another', 'echo b'])
  })

  test.each([
    [429, true],
    [500, true],
    [401, false],
  ])('refuses with %i, and the provider says whether that passes', async (status, isRetryable) => {
    await using server = await serving({ status, message: 'not now', retryAfterMs: 1_500 })
    const error: unknown = await partsOf(modelOf(server), said('hi')).catch((thrown: unknown) => thrown)
    expect(APICallError.isInstance(error)).toBe(true)
    expect(error).toMatchObject({ statusCode: status, isRetryable, message: 'not now' })
    expect((error as APICallError).responseHeaders).toMatchObject({ 'retry-after': '2', 'retry-after-ms': '1500' })
  })

  test.each(['before', 'middle'] as const)('cuts the connection %s the answer', async (cut) => {
    await using server = await serving(cut === 'before' ? { cut } : { cut, text: 'only half of this is ever seen by anybody' })
    await expect(modelOf(server).doGenerate(said('hi'))).rejects.toThrow()
    await expect(partsOf(modelOf(server), said('hi'))).rejects.toThrow()
    expect(server.answered).toEqual([])
  })

  test.each(['before', 'middle'] as const)('hangs %s the answer until the client goes away', async (hang) => {
    await using server = await serving(hang === 'before' ? { hang } : { hang, text: 'only half of this is ever seen by anybody' })
    const abort = new AbortController()
    const parts = partsOf(modelOf(server), { ...said('hi'), abortSignal: abort.signal })
    await expect.poll(() => server.requests.length).toBe(1)
    abort.abort()
    await expect(parts).rejects.toThrow()
    await server.requests[0]?.aborted
  })

  test('refuses what OpenAI refuses: a call without its result', async () => {
    await using server = await serving('fine')
    const call = { type: 'tool-call' as const, toolCallId: 'x', toolName: 'look', input: {} }
    await expect(modelOf(server).doGenerate({ prompt: [...said('hi').prompt, { role: 'assistant', content: [call] }] })).rejects.toThrow(
      'the calls x have no result',
    )
  })
})

test('a transcript is right when each call has exactly one result, right after it', () => {
  const call = (...ids: string[]): WireMessage => ({
    role: 'assistant',
    tool_calls: ids.map((id) => ({ id, type: 'function', function: { name: 'f', arguments: '{}' } })),
  })
  const result = (id: string): WireMessage => ({ role: 'tool', tool_call_id: id, content: '' })
  const user: WireMessage = { role: 'user', content: 'x' }
  const problem = (...messages: WireMessage[]) => transcriptProblem({ model: 'm', messages })
  expect(problem(user, call('a', 'b'), result('b'), result('a'), user)).toBeUndefined()
  expect(problem()).toBe('messages is empty')
  expect(problem(user, call('a'), user)).toBe('messages[2] comes before the results of a')
  expect(problem(user, call('a'), result('a'), result('a'))).toBe('messages[3] is the result of a call that is not open: a')
  expect(problem(user, call('a', 'a'))).toBe('messages[1] has two calls of one id')
  expect(problem(user, call('a', 'b'), result('a'))).toBe('the calls b have no result')
})
