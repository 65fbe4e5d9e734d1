import type { LanguageModelV3FunctionTool, LanguageModelV3Message } from '@ai-sdk/provider'
import { expect, test } from 'vitest'
import { z } from 'zod'
import { simModel } from '../../src/models/sim.js'
import { callWith, saidBy, streamedBy } from './call.js'

const fn = (name: string, schema: z.ZodType): LanguageModelV3FunctionTool => ({
  type: 'function',
  name,
  inputSchema: z.toJSONSchema(schema) as LanguageModelV3FunctionTool['inputSchema'],
})
const invoke = (...names: [string, ...string[]]) =>
  fn('invoke_agent', z.object({ invocations: z.array(z.object({ agent_name: z.enum(names), request: z.unknown() })).min(1) }))
const finish = (output: z.ZodType = z.unknown()) => fn('finish', z.object({ output }))
const ask = fn('ask_user', z.object({ question: z.string() }))
const sim = (agent = 'Hub') => simModel(agent)

/** A call and its result, as the transcript goes on. */
const came = (name: string, value: string, type: 'text' | 'error-text' = 'text'): LanguageModelV3Message[] => [
  { role: 'assistant', content: [{ type: 'tool-call', toolCallId: 'c', toolName: name, input: {} }] },
  { role: 'tool', content: [{ type: 'tool-result', toolCallId: 'c', toolName: name, output: { type, value } }] },
]
const after = (...messages: LanguageModelV3Message[]) => [...callWith({ request: 'tea' }).prompt, ...messages]

test('everything that it says is marked as simulated', async () => {
  const { text } = await saidBy(sim('Writer'), callWith({ request: 'a poem' }))
  expect(text).toBe('[simulated] Writer has thought about: a poem')
})

test('the same call gives the same answer, at once and as a stream', async () => {
  const call = callWith({ request: 'x' }, { tools: [fn('look', z.object({ n: z.number(), kind: z.enum(['a', 'b', 'c', 'd']) }))] })
  const said = await saidBy(sim(), call)
  expect(await saidBy(sim(), call)).toEqual(said)
  expect(await streamedBy(sim(), call)).toEqual(said)
  expect(await saidBy(sim('Other'), call)).not.toEqual(said)
})

test('it asks everybody who can answer at once, and finishes with what came of it', async () => {
  const tools = [invoke('A', 'B'), finish()]
  const first = await saidBy(sim(), callWith({ request: 'tea', answering: ['A', 'B'] }, { tools }))
  expect(first.calls).toMatchObject([{ name: 'invoke_agent', input: { invocations: [{ agent_name: 'A' }, { agent_name: 'B' }] } }])
  const then = await saidBy(
    sim(),
    callWith({ request: 'tea', answering: ['A', 'B'] }, { tools, prompt: after(...came('invoke_agent', 'a and b')) }),
  )
  expect(then.calls).toMatchObject([{ name: 'finish', input: { output: '[simulated] Hub has put together: a and b' } }])
})

test('it replies in prose to who waits, and does not ask those who were asked before', async () => {
  const { calls } = await saidBy(sim(), callWith({ request: 'tea' }, { tools: [invoke('A', 'B')] }))
  const request: unknown = calls[0]?.input.invocations[0].request
  const said = await saidBy(sim('A'), callWith({ agent: 'A', request, waiting: 'Hub' }, { tools: [invoke('Hub', 'B'), finish()] }))
  expect(said).toEqual({ text: '[simulated] A has thought about: tea', calls: [] })
})

test('it hands over to one of those that do not answer', async () => {
  const said = await saidBy(sim(), callWith({ request: 'tea', answering: [] }, { tools: [invoke('A', 'B'), finish()] }))
  expect(said.calls[0]?.input.invocations).toHaveLength(1)
})

test('it replies with a value where the reply must have a form', async () => {
  const form = z.object({ agent_name: z.literal('Hub'), request: z.object({ stars: z.int().min(1).max(5) }) })
  const tools = [fn('invoke_agent', z.object({ invocations: z.array(form) }))]
  const { calls } = await saidBy(sim('A'), callWith({ request: 'tea', waiting: 'Hub' }, { tools }))
  expect(form.safeParse(calls[0]?.input.invocations[0]).success).toBe(true)
})

test('who was notified is not notified again', async () => {
  const input = { invocations: [{ agent_name: 'A', request: 'x' }] }
  const call = { type: 'tool-call' as const, toolCallId: 'c', toolName: 'invoke_agent', input }
  const prompt = after({ role: 'assistant', content: [call] }, ...came('invoke_agent', 'sent').slice(1))
  const said = await saidBy(sim(), callWith({ request: 'tea', answering: [] }, { tools: [invoke('A'), finish()], prompt }))
  expect(said.calls).toMatchObject([{ name: 'finish' }])
})

test('it asks a person only where nothing else is left', async () => {
  expect((await saidBy(sim(), callWith({ request: 'tea' }, { tools: [ask, finish()] }))).calls).toMatchObject([{ name: 'finish' }])
  expect((await saidBy(sim(), callWith({ request: 'tea' }, { tools: [ask] }))).calls).toMatchObject([{ name: 'ask_user' }])
  expect((await saidBy(sim(), callWith({ request: 'tea' }, { tools: [ask], prompt: after(...came('ask_user', 'yes')) }))).calls).toEqual([])
})

test('it calls each tool once, with arguments that the tool takes', async () => {
  const schema = z.object({ when: z.iso.date(), who: z.email(), how: z.enum(['fast', 'slow']), many: z.int().min(2).max(4) })
  const tools = [fn('book', schema), fn('look', z.object({})), finish()]
  const { calls } = await saidBy(sim(), callWith({ request: 'tea' }, { tools }))
  expect(calls.map(({ name }) => name)).toEqual(['book', 'look'])
  expect(schema.safeParse(calls[0]?.input).success).toBe(true)
  const prompt = after(...came('book', 'booked'), ...came('look', 'no', 'error-text'))
  expect((await saidBy(sim(), callWith({ request: 'tea' }, { tools, prompt }))).calls).toMatchObject([{ name: 'finish' }])
})

test('it says what a schema demands: in what it finishes with, in JSON that it replies, in what it asks of others', async () => {
  const schema = z.object({ title: z.string(), stars: z.int().min(1).max(5) })
  const { calls } = await saidBy(sim(), callWith({ request: 'tea' }, { tools: [finish(schema)] }))
  expect(schema.parse(calls[0]?.input.output).title).toContain('[simulated]')
  const responseFormat = { type: 'json' as const, schema: z.toJSONSchema(schema) as LanguageModelV3FunctionTool['inputSchema'] }
  const { text } = await saidBy(sim(), callWith({ request: 'tea', waiting: 'X' }, { tools: [invoke('X')], responseFormat }))
  expect(schema.safeParse(JSON.parse(text)).success).toBe(true)
  const forms = z.union([
    z.object({ agent_name: z.literal('A'), request: schema }),
    z.object({ agent_name: z.literal('B'), request: z.object({ topic: z.string() }) }),
  ])
  const asked = await saidBy(
    sim(),
    callWith({ request: 'tea' }, { tools: [fn('invoke_agent', z.object({ invocations: z.array(forms) }))] }),
  )
  expect(asked.calls[0]?.input.invocations).toHaveLength(2)
  expect(z.array(forms).safeParse(asked.calls[0]?.input.invocations).success).toBe(true)
})

test('when it is sent back, it tries something else', async () => {
  const tools = [invoke('A', 'B'), finish()]
  const prompt = after(...came('invoke_agent', 'not allowed', 'error-text'))
  expect((await saidBy(sim(), callWith({ request: 'tea' }, { tools, prompt }))).calls).not.toMatchObject([{ name: 'invoke_agent' }])
  expect((await saidBy(sim(), callWith({ request: 'tea', call: 1 }, { tools }))).calls).toMatchObject([{ name: 'finish' }])
})
