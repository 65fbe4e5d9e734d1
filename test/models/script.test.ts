import { APICallError } from '@ai-sdk/provider'
import { type Topology, topology } from 'tutti'
import { type ScriptedReply, script } from 'tutti/testing'
import { expect, test } from 'vitest'
import { opened } from '../engine/opened.js'
import { callWith, partsOf, saidBy, streamedBy } from './call.js'

const modelOf = (...replies: ScriptedReply[]) => script({ Writer: replies })({ agent: 'Writer' })

test.each<[ScriptedReply, object]>([
  ['hello', { text: 'hello', calls: [] }],
  [{ text: 'hello' }, { text: 'hello', calls: [] }],
  [{ finish: { a: 1 } }, { calls: [{ name: 'finish', input: { output: { a: 1 } } }] }],
  [{ ask: 'really?' }, { calls: [{ name: 'ask_user', input: { question: 'really?' } }] }],
  [{ reply: 'done' }, { text: 'done', calls: [] }],
  [{ reply: { a: 1 } }, { calls: [{ name: 'invoke_agent', input: { invocations: [{ agent_name: 'Hub', request: { a: 1 } }] } }] }],
  [{ invoke: 'Critic', request: 7 }, { calls: [{ name: 'invoke_agent', input: { invocations: [{ agent_name: 'Critic', request: 7 }] } }] }],
  [
    { fork: [{ to: 'A', request: 1 }, { to: 'B' }] },
    { calls: [{ name: 'invoke_agent', input: { fork: true, invocations: [{ agent_name: 'A', request: 1 }, { agent_name: 'B' }] } }] },
  ],
  [{ tool: 'look', input: { at: 'x' } }, { calls: [{ name: 'look', input: { at: 'x' } }] }],
])('a scripted reply is said exactly, at once and as a stream: %j', async (reply, said) => {
  const call = callWith({ waiting: 'Hub' })
  expect(await saidBy(modelOf(reply), call)).toMatchObject(said)
  expect(await streamedBy(modelOf(reply), call)).toEqual(await saidBy(modelOf(reply), call))
})

test('a reply goes where prose would: with nobody waiting it ends the run, and a value stays what it is', async () => {
  for (const value of [1, { a: 1 }, null])
    expect(await saidBy(modelOf({ reply: value }), callWith({ waiting: null }))).toMatchObject({
      text: '',
      calls: [{ name: 'finish', input: { output: value } }],
    })
  expect(await saidBy(modelOf({ reply: 'done' }), callWith({ waiting: null }))).toMatchObject({ text: 'done', calls: [] })
})

test('a list is played from its start on every branch, whoever calls first', async () => {
  const model = modelOf('first', 'second')
  const said = async (branch: string, index: number) => (await saidBy(model, callWith({ branch, index }))).text
  expect(await Promise.all([said('r.1', 1), said('r.0', 0), said('r.0', 1), said('r.1', 0)])).toEqual([
    'second',
    'first',
    'second',
    'first',
  ])
})

test('a list that is too short says so, and who wanted more', async () => {
  await expect(saidBy(modelOf('only'), callWith({ branch: 'r.3', turn: 2, index: 1 }))).rejects.toThrow(
    'the script of Writer has 1 replies, and its branch r.3 wants another in turn 2',
  )
})

test('a function is told the request and the place, and nothing else', async () => {
  const seen: unknown[] = []
  const model = script({
    Writer: (call) => {
      seen.push(call)
      return `${String(call.request)} on ${call.branch}`
    },
  })({ agent: 'Writer' })
  expect((await saidBy(model, callWith({ request: 'tea', branch: 'r.0', turn: 2, call: 1, index: 9 }))).text).toBe('tea on r.0')
  expect(seen).toEqual([{ request: 'tea', branch: 'r.0', turn: 2, call: 1 }])
  expect(Object.isFrozen(seen[0])).toBe(true)
})

test('a function that gives a promise is told so, and nobody has to handle what becomes of that', async () => {
  const model = script({ Writer: () => Promise.reject(new Error('later')) as never })({ agent: 'Writer' })
  await expect(saidBy(model, callWith({ branch: 'r', turn: 1, index: 0 }))).rejects.toThrow('the script of Writer gave a promise')
})

test('an agent that is not in the script is left to others', () => {
  const models = script({ Writer: ['x'] })
  expect(models({ agent: 'Critic' })).toBeUndefined()
  expect(models({ agent: 'constructor' })).toBeUndefined()
})

test('an error is one of the AI SDK, with how long to wait', async () => {
  const error: unknown = await saidBy(modelOf({ error: { status: 429, retryAfterMs: 1_500 } }), callWith({})).catch(
    (thrown: unknown) => thrown,
  )
  expect(APICallError.isInstance(error)).toBe(true)
  expect(error).toMatchObject({ statusCode: 429, isRetryable: true, responseHeaders: { 'retry-after-ms': '1500' } })
  await expect(partsOf(modelOf({ error: { status: 400 } }), callWith({}))).rejects.toMatchObject({ statusCode: 400, isRetryable: false })
})

test('a call that was aborted is not answered', async () => {
  await expect(saidBy(modelOf('late'), callWith({}, { abortSignal: AbortSignal.abort() }))).rejects.toThrow()
})

test('every call of a transcript has an id of its own', async () => {
  const first = await saidBy(modelOf({ tool: 'look', input: {} }), callWith({}))
  const { prompt } = callWith({})
  const call = { type: 'tool-call' as const, toolCallId: first.calls[0]?.id ?? '', toolName: 'look', input: {} }
  const result = {
    type: 'tool-result' as const,
    toolCallId: call.toolCallId,
    toolName: 'look',
    output: { type: 'text' as const, value: 'x' },
  }
  const next = callWith({ index: 0 }, { prompt: [...prompt, { role: 'assistant', content: [call] }, { role: 'tool', content: [result] }] })
  expect((await saidBy(modelOf({ tool: 'look', input: {} }), next)).calls[0]?.id).not.toBe(call.toolCallId)
})

test('the names are those of the topology', () => {
  const team = topology({ name: 'team', flows: ['Start -> Writer -> End'], agents: { Writer: (turn) => turn.finish('x') } })
  script<typeof team>({ Writer: ['x'] })
  // @ts-expect-error there is no such agent
  script<typeof team>({ Reader: ['x'] })
  script<Topology>({ Anybody: ['x'] })
})

test.each<[unknown, RegExp]>([
  [undefined, /script\(\) takes the replies of each agent/],
  [{ Writer: null }, /the script of Writer is a list of replies or a function that gives one, not null/],
  [{ Writer: 'hello' }, /the script of Writer is a list/],
  [{ Writer: ['hello', 5] }, /the script of Writer, reply 1: .*not 5/],
  [{ Writer: [{ say: 'hello' }] }, /reply 0: .*not \{ say \}/],
  [{ Writer: [{ finish: 1, ask: 2 }] }, /reply 0: .*not \{ finish, ask \}/],
  [{ Writer: [{ reply: 1, request: 2 }] }, /reply 0: .*not \{ reply, request \}/],
])('a script with a mistake in it is refused where it is written: %j', (replies, says) => {
  expect(() => script(replies as never)).toThrow(says)
})

test.each<[string, unknown, RegExp]>([
  ['NaN', { Writer: [{ finish: { n: Number.NaN } }] }, /the script of Writer, reply 0: it is no JSON at finish\.n: NaN/],
  ['a Date', { Writer: ['hello', { reply: new Date(0) }] }, /reply 1: it is no JSON at reply: an instance of Date/],
  ['a Map', { Writer: [{ fork: [{ to: 'A' }, { to: 'B', request: new Map() }] }] }, /at fork\[1\]\.request: an instance of Map/],
  ['a BigInt', { Writer: [{ tool: 'look', input: { at: 1n } }] }, /at input\.at: a bigint/],
])('a script says nothing that is no JSON, and where it would: %s', (_, replies, says) => {
  expect(() => script(replies as never)).toThrow(says)
})

test('a reply that a function gives is looked at when it is given', async () => {
  const model = script({ Writer: () => ({ finsh: 1 }) as never })({ agent: 'Writer' })
  await expect(saidBy(model, callWith({}))).rejects.toThrow(/the script of Writer: .*not \{ finsh \}/)
  const later = script({ Writer: () => ({ finish: { at: new Date(0) } }) })({ agent: 'Writer' })
  await expect(saidBy(later, callWith({}))).rejects.toThrow(/the script of Writer: it is no JSON at finish\.at: an instance of Date/)
})

test('a value goes where prose would also if who waits is out of reach: to the end of the run', async () => {
  const apart = topology({
    name: 'apart',
    flows: ['Start -> Hub -> End', 'Hub -> A | B', 'A -> End', 'B -> Hub'],
    result: 'list',
    agents: { Hub: { act: { request: (turn) => turn.fork(['A', 'B']), join: (turn) => turn.finish('hub') } }, A: {}, B: {} },
  })
  for (const reply of ['text', { v: 1 }]) {
    await using tutti = await opened({ models: script({ A: [{ reply }], B: [{ reply: 'b' }] }) })
    expect(await tutti.execute(apart)).toEqual(['hub', reply])
  }
})
