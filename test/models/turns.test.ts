import type { ModelFactory, Run, Topology, Turn } from 'tutti'
import { tool, topology } from 'tutti'
import { script, virtualClock } from 'tutti/testing'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { playingModel, type Said } from '../../src/models/playing-model.js'
import { placeOf } from '../../src/models/call-place.js'
import { journal, opened, timed } from '../engine/opened.js'
import { called, type Heard, lastResults, offeredIn, saying, spied } from './spied.js'

const flows = ['Start -> Hub -> End', 'Hub <-> A | B', 'Hub -> User'] as const
const add = tool({ description: 'Adds.', input: z.object({ a: z.number(), b: z.number() }), run: ({ a, b }) => a + b })
const team = topology({ name: 'team', flows, agents: { Hub: { instructions: 'Ask both.', tools: { add } }, A: {}, B: {} } })

/** One agent that is a model. */
const solo = (options: object): Topology<unknown> =>
  topology({ name: 'solo', flows: ['Start -> A -> End'], agents: { A: options } } as never) as never

/** Plays the team with these models and tells what they heard. */
async function play(models: ModelFactory, of: Topology<never> = team, input: unknown = 'go', drive?: (run: Run) => Promise<void>) {
  const { heard, models: spying } = spied(models)
  await using tutti = await opened({ models: spying })
  const run = await tutti.start(of as Topology<unknown>, { input })
  await drive?.(run)
  const result = await run.result()
  return { result, heard, events: await journal(run), by: (agent: string) => heard.filter((call) => call.agent === agent) }
}

/** A model of the Hub that gives several calls at once; the others reply with their name. */
const hub =
  (...answers: readonly Said[]): ModelFactory =>
  ({ agent }) =>
    playingModel('tutti', 'test', (options) => {
      if (agent !== 'Hub') return { text: `${agent}!` }
      const place = (options.providerOptions as unknown as { tutti: { index: number } }).tutti
      return answers[place.index] ?? { text: 'at a loss' }
    })
const invoke = (...names: string[]) => ({
  name: 'invoke_agent',
  input: { invocations: names.map((name) => ({ agent_name: name, request: `to ${name}` })) },
})
const finish = (output: unknown) => ({ name: 'finish', input: { output } })
const sum = (a: number, b: number) => ({ name: 'add', input: { a, b } })
const rejections = (events: readonly { type: string }[]) => events.filter(({ type }) => type === 'turn.rejected')

describe('a model is offered', () => {
  test('exactly the actions that its edges allow, and its own tools', async () => {
    const { by } = await play(hub({ calls: [invoke('A')] }, { calls: [finish('done')] }))
    const [first] = by('Hub')
    expect(offeredIn(first as Heard)).toEqual(['invoke_agent', 'finish', 'ask_user', 'add'])
    expect(offeredIn(by('A')[0] as Heard)).toEqual(['invoke_agent'])
    const { inputSchema } = (first?.options.tools?.[0] ?? {}) as { inputSchema: { properties: { invocations: { items: object } } } }
    expect(inputSchema.properties.invocations.items).toMatchObject({ properties: { agent_name: { enum: ['A', 'B'] } } })
  })

  test('the schema of what it may send to each agent, and of its output', async () => {
    const typed = topology({
      name: 'typed',
      flows: ['Start -> Hub -> End', 'Hub <-> A'],
      agents: { Hub: { output: z.object({ sum: z.number() }) }, A: { input: z.object({ n: z.number() }) } },
    })
    const { heard } = await play(script({ Hub: [{ finish: { sum: 1 } }] }), typed)
    expect(JSON.stringify(heard[0]?.options.tools)).toMatch(/"request":\{[^}]*"properties":\{"n"/)
    expect(JSON.stringify(heard[0]?.options.tools)).toMatch(/"output":\{[^}]*"properties":\{"sum"/)
  })

  test('its own schema for an answer, to who waits further out too', async () => {
    const nested = topology({
      name: 'nested',
      flows: ['Start -> H -> End', 'H <-> M', 'M <-> W', 'W -> H'],
      agents: {
        H: {
          input: z.object({ n: z.number() }),
          act: (turn) => (turn.message.kind === 'join' ? turn.finish(turn.message.join.extra) : turn.fork(['M'])),
        },
        M: (turn) => turn.fork(['W']),
        W: { output: z.string() },
      },
    })
    const { result, by } = await play(script({ W: [{ invoke: 'H', request: 'past M' }] }), nested, { n: 1 })
    expect(requestsIn(by('W')[0])).toEqual({ M: { type: 'string' }, H: { type: 'string' } })
    expect(result).toMatchObject({ status: 'succeeded', output: [{ by: 'W', value: 'past M' }] })
  })

  test('the schema of a request to who waits over a notify edge, and no reply', async () => {
    const noting = topology({
      name: 'noting',
      flows: ['Start -> H -> End', 'H -> W', 'W ~> H', 'W -> End'],
      result: 'list',
      agents: {
        H: {
          input: z.object({ n: z.number() }),
          act: (turn) => (turn.message.kind === 'join' || turn.branchId !== 'r' ? turn.finish(turn.request) : turn.fork(['W'])),
        },
        W: { output: z.string() },
      },
    })
    const models = script({ W: ['{ "n": 7 }', { invoke: 'H', request: { n: 8 } }, { finish: 'w' }] })
    const { result, by, events } = await play(models, noting, { n: 1 })
    const [first] = by('W')
    expect(requestsIn(first)).toMatchObject({ H: { type: 'object', properties: { n: { type: 'number' } } } })
    expect(JSON.stringify(first?.options.tools)).not.toContain('waits for your reply')
    expect(first?.text).toContain('A text with no call only notifies H.')
    expect(first?.text).toContain('It must then be JSON and nothing else')
    expect(result).toMatchObject({ status: 'succeeded', output: ['w'] })
    expect(rejections(events)).toEqual([])
    expect(events.filter((event) => event.type === 'turn.started' && event.agent === 'H' && event.branch !== 'r')).toMatchObject([
      { message: { value: { n: 7 } } },
      { message: { value: { n: 8 } } },
    ])
  })

  test('schemas that contain themselves or name their parts, and every reference leads to what it meant', async () => {
    interface Tree {
      readonly name: string
      readonly kids: readonly Tree[]
    }
    const tree: z.ZodType<Tree> = z.lazy(() => z.object({ name: z.string(), kids: z.array(tree) }))
    const leaf = z.object({ a: z.string() }).meta({ id: 'Leaf' })
    const typed = topology({
      name: 'typed',
      flows: ['Start -> Hub -> End', 'Hub -> A | B | C', 'A -> Hub', 'B | C -> End'],
      agents: { Hub: { output: tree }, A: { input: tree }, B: { input: z.object({ x: leaf, y: leaf }) }, C: {} },
    })
    const { heard } = await play(script({ Hub: [{ finish: { name: 'x', kids: [] } }] }), typed)
    const tools = heard[0]?.options.tools as unknown as { name: string; inputSchema: object }[]
    const found = tools.flatMap(({ inputSchema }) => references(inputSchema).map((ref) => [ref, at(inputSchema, ref)] as const))
    expect(found).toMatchObject([
      ['#/properties/invocations/items/anyOf/1/properties/request', { properties: { kids: {} } }],
      ['#/properties/invocations/items/anyOf/2/properties/request/$defs/Leaf', { properties: { a: {} } }],
      ['#/properties/invocations/items/anyOf/2/properties/request/$defs/Leaf', { properties: { a: {} } }],
      ['#/properties/output', { properties: { kids: {} } }],
    ])
  })

  test('schemas whose fields are called as words of a schema are', async () => {
    interface Term {
      readonly examples: readonly Term[]
      readonly default: Term | null
    }
    const term: z.ZodType<Term> = z.lazy(() => z.object({ examples: z.array(term), default: term.nullable() }))
    const typed = topology({ name: 'typed', flows: ['Start -> A -> End'], agents: { A: { output: term } } })
    const { heard } = await play(script({ A: [{ finish: { examples: [], default: null } }] }), typed)
    expect(references(heard[0]?.options.tools)).toEqual(['#/properties/output', '#/properties/output'])
  })

  test('a schema for its text in words alone: what a provider is told of it beside tools, many refuse', async () => {
    const typed = topology({
      name: 'typed',
      flows: ['Start -> Hub -> End', 'Hub <-> A | B'],
      agents: { Hub: {}, A: { output: z.object({ n: z.number().optional() }) }, B: { output: z.string() } },
    })
    const { heard, by, result } = await play(hub({ calls: [invoke('A', 'B')] }, { calls: [finish('done')] }), typed)
    expect(result).toMatchObject({ status: 'failed' })
    expect(heard.filter(({ options }) => options.responseFormat !== undefined)).toEqual([])
    expect(by('A')[0]?.text).toContain('It must then be JSON and nothing else, by this schema')
    // In JSON it would have quotes around it, and they would be taken for a part of it.
    expect(by('B')[0]?.text).toContain('It must then be a text and nothing else, by this schema')
  })
})

test.each([
  [z.string().nullable(), 'null', null],
  [z.string().nullable(), '"hello"', 'hello'],
  [z.string().nullable(), 'hello', 'hello'],
  [z.union([z.string(), z.number()]), '42', 42],
  [z.union([z.string(), z.object({ k: z.number() })]), '```json\n{"k":1}\n```', { k: 1 }],
  [z.string(), '42', '42'],
  [z.string(), '"hello"', '"hello"'],
  [z.object({ k: z.number() }), '{"k":1}', { k: 1 }],
])('text is taken in the form that the model is told (%#)', async (output, said, value) => {
  const typed = topology({ name: 'typed', flows: ['Start -> A -> End'], agents: { A: { output } } })
  await using tutti = await opened({ models: () => saying(() => [{ type: 'text', text: said }]) })
  expect(await tutti.execute(typed)).toEqual(value)
})

test.each([
  [{}, 3],
  [{ attempts: undefined }, 3],
  [{ attempts: 4, backoffMs: undefined, factor: undefined, maxBackoffMs: undefined }, 4],
])('what is not given of how a call is tried again is as if nothing was given: %j', async (retry, calls) => {
  let made = 0
  const clock = virtualClock()
  const times: number[] = []
  const failing = solo({
    retry,
    model: {
      ...saying(() => []),
      doGenerate: async () => {
        made++
        times.push(clock.now())
        throw Object.assign(new Error('busy'), { statusCode: 503 })
      },
    },
  })
  await using tutti = await opened({ clock })
  const run = await tutti.start(failing)
  let isOver = false
  const result = run.result().finally(() => (isOver = true))
  while (!isOver) await clock.advance(1_000)
  expect(await result).toMatchObject({ status: 'failed', error: { code: 'MODEL_FAILED', data: { attempts: calls } } })
  expect(made).toBe(calls)
  expect(new Set(times).size).toBe(calls)
})

test('a call whose own time is over is tried again', async () => {
  const models = () => ({
    ...saying(() => []),
    doGenerate: async (options: { readonly providerOptions?: unknown }) => {
      if (placeOf(options)?.index === 0) throw new DOMException('The operation was aborted due to timeout', 'TimeoutError')
      return saying(() => [called('finish', { output: 'ok' })]).doGenerate(options as never)
    },
  })
  await using tutti = await opened({ models })
  expect(await tutti.execute(solo({ retry: { backoffMs: 1 } }))).toBe('ok')
})

test('a call whose answer the next attempt at its turn is given back is counted once', async () => {
  let started = 0
  const work = tool({ description: 'Hangs once.', input: z.object({}), run: () => (++started === 1 ? new Promise(() => {}) : 'done') })
  const { models, heard } = spied(script({ A: [{ tool: 'work', input: {} }, { finish: 'ok' }] }))
  await using play = await timed({ models, graceMs: 1 })
  const run = await play.tutti.start(solo({ tools: { work }, timeoutMs: 1_000, retry: { attempts: 2, backoffMs: 1 } }))
  await expect.poll(() => started).toBe(1)
  await play.clock.advance(2_000)
  const result = await run.result()
  expect(result).toMatchObject({ status: 'succeeded', output: 'ok' })
  expect([started, heard.length]).toEqual([2, 2])
  expect(result.report.measured.usageBy?.agents['A']?.calls).toBe(2)
})

test('a failure of a model that was sent back too often names it and its branch, as that of code does', async () => {
  const hub = topology({
    name: 'hub',
    flows: ['Start -> H -> End', 'H <-> A'],
    agents: {
      H: { act: { request: (turn) => turn.fork(['A'], { join: 'settled' }), join: (turn, { slots }) => turn.finish(slots) } },
      A: {},
    },
  })
  await using tutti = await opened({ models: () => saying(() => [called('invoke_agent', { invocations: [{ agent_name: 'Z' }] })]) })
  expect(await tutti.execute(hub)).toMatchObject([
    { error: { code: 'REJECTED', message: expect.stringMatching(/^A \(branch r\.0\) was sent back too often: there is no edge to "Z"/) } },
  ])
})

/** Every reference in a schema, in the order of the document. */
function references(part: unknown): string[] {
  if (typeof part !== 'object' || part === null) return []
  return Object.entries(part).flatMap(([key, value]) => (key === '$ref' ? [String(value)] : references(value)))
}

/** What a model is told that a request to each agent must be. */
function requestsIn(call: Heard | undefined): Record<string, unknown> {
  const { inputSchema } = (call?.options.tools?.[0] ?? {}) as { inputSchema: { properties: { invocations: { items: any } } } }
  const { items } = inputSchema.properties.invocations
  const forms = (items.anyOf ?? [items]) as { properties: { agent_name: { enum: string[] }; request: unknown } }[]
  return Object.fromEntries(forms.flatMap(({ properties }) => properties.agent_name.enum.map((name) => [name, properties.request])))
}

/** What a reference leads to. */
const at = (schema: object, ref: string): unknown =>
  ref
    .split('/')
    .slice(1)
    .reduce<unknown>((part, key) => (part as Record<string, unknown> | undefined)?.[key], schema)

describe('an answer of a model', () => {
  test('with several invoke_agent calls is one fork, in the order of the calls, and each call has its own results', async () => {
    const { result, by, events } = await play(hub({ calls: [invoke('B'), invoke('A', 'B')] }, { calls: [finish('done')] }))
    expect(result).toMatchObject({ status: 'succeeded', output: 'done' })
    expect(events.find(({ type }) => type === 'turn.completed')).toMatchObject({
      action: { type: 'fork', calls: [{ to: 'B' }, { to: 'A' }, { to: 'B' }] },
    })
    expect(lastResults(by('Hub')[1] as Heard)).toMatchObject([
      { results: [{ agent_name: 'B', status: 'arrived', value: 'B!' }] },
      {
        results: [
          { agent_name: 'A', value: 'A!' },
          { agent_name: 'B', value: 'B!' },
        ],
      },
    ])
  })

  test.each([
    ['finish beside invoke_agent', [finish('x'), invoke('A')]],
    ['ask_user beside invoke_agent', [invoke('A'), { name: 'ask_user', input: { question: '?' } }]],
    ['two finishes', [finish('x'), finish('y')]],
  ])('with %s does none of it, and each call is told', async (_, calls) => {
    const { result, by, events } = await play(hub({ calls }, { calls: [finish('at last')] }))
    expect(result).toMatchObject({ status: 'succeeded', output: 'at last' })
    expect(rejections(events)).toHaveLength(1)
    const results = lastResults(by('Hub')[1] as Heard)
    expect(results).toHaveLength(2)
    for (const told of results) expect(told).toMatch(/none was.*Allowed are: invoke_agent with A, B; finish; ask_user; add/s)
  })

  test('with own tools beside coordination has the tools called, and is asked again', async () => {
    const { result, by, events } = await play(hub({ calls: [sum(1, 2), finish('early')] }, { calls: [finish('late')] }))
    expect(result).toMatchObject({ output: 'late' })
    expect(lastResults(by('Hub')[1] as Heard)).toEqual([3, 'not done: decide again with these results'])
    expect(rejections(events)).toHaveLength(0)
  })

  test('in prose is a reply where somebody waits, and the end where nobody does', async () => {
    const { result, by } = await play(hub({ calls: [invoke('A', 'B')] }, { text: 'all is well' }))
    expect(result).toMatchObject({ status: 'succeeded', output: 'all is well' })
    expect(lastResults(by('Hub')[1] as Heard)).toMatchObject([{ results: [{ value: 'A!' }, { value: 'B!' }] }])
  })

  test('of blanks says nothing, alone or beside a call: it is sent back, and in no prompt', async () => {
    const { result, by, events } = await play(hub({ text: ' \n' }, { text: '\n\n', calls: [sum(1, 2)] }, { calls: [finish('done')] }))
    expect(result).toMatchObject({ status: 'succeeded', output: 'done' })
    expect(rejections(events)).toMatchObject([{ problem: expect.stringMatching(/the answer is empty/) }])
    expect(by('Hub')[2]?.options.prompt.filter(({ role }) => role === 'assistant')).toMatchObject([{ content: [{ type: 'tool-call' }] }])
  })

  test('in prose is sent back where it would do nothing', async () => {
    const line = topology({ name: 'line', flows: ['Start -> A -> B -> End'], agents: { A: {}, B: {} } })
    const { result, by, events } = await play(script({ A: ['hm', { invoke: 'B', request: 1 }], B: [{ finish: 2 }] }), line)
    expect(result).toMatchObject({ status: 'succeeded', output: 2 })
    expect(rejections(events)).toMatchObject([{ problem: expect.stringMatching(/text alone does nothing here.*invoke_agent with B/) }])
    expect(by('A')[1]?.text).toMatch(/That was not accepted: text alone/)
    expect(by('A')[0]?.options.toolChoice).toEqual({ type: 'required' })
  })

  test.each([
    ['arguments that are no JSON', '{"invocations": [', /no JSON/],
    ['arguments of another shape', '{"agents": ["A"]}', /invoke_agent takes/],
    ['an agent that does not exist', '{"invocations":[{"agent_name":"Nobody"}]}', /there is no edge to "Nobody"/],
    ['an agent with no edge to it', '{"invocations":[{"agent_name":"Hub"}]}', /there is no edge to "Hub"/],
    ['no invocation at all', '{"invocations":[]}', /at least one/],
    ['a request under another name', '{"invocations":[{"agent_name":"A","message":"hi"}]}', /each invocation is { agent_name, request }/],
  ])('with %s is sent back, and told what is allowed', async (_, input, problem) => {
    const models: ModelFactory = () =>
      saying(({ index }) => [index > 0 ? called('finish', { output: 'ok' }) : called('invoke_agent', input)])
    const { result, by } = await play(models)
    expect(result).toMatchObject({ status: 'succeeded', output: 'ok' })
    const [told] = lastResults(by('Hub')[1] as Heard)
    expect(told).toMatch(problem)
    expect(told).toMatch(/Allowed are/)
  })

  test('whose output stands under another name is sent back, and not the end of the run with nothing', async () => {
    const { result, by } = await play(hub({ calls: [{ name: 'finish', input: { answer: 42 } }] }, { calls: [finish(42)] }))
    expect(result).toMatchObject({ status: 'succeeded', output: 42 })
    expect(lastResults(by('Hub')[1] as Heard)[0]).toMatch(/finish takes { output }.*Allowed are/)
  })

  test('whose output fails the schema is sent back with what is wrong with it', async () => {
    const strict = topology({ name: 'strict', flows: ['Start -> A -> End'], agents: { A: { output: z.object({ n: z.number() }) } } })
    const { result, by } = await play(script({ A: [{ finish: { n: 'x' } }, '```json\n{ "n": 7 }\n```'] }), strict)
    expect(result).toMatchObject({ status: 'succeeded', output: { n: 7 } })
    expect(lastResults(by('A')[1] as Heard)[0]).toMatch(/the output is not valid: n: /)
  })

  test('that is sent back too often fails the branch with the rejection', async () => {
    const { result, by } = await play(hub({ calls: [invoke('C')] }, { calls: [invoke('C')] }, { calls: [invoke('C')] }))
    expect(result).toMatchObject({ status: 'failed', error: { code: 'REJECTED', message: expect.stringMatching(/no edge to "C"/) } })
    expect(by('Hub')).toHaveLength(3)
  })

  test('that asks a person goes on with the answer as the result of its call', async () => {
    const asking = script({ Hub: [{ ask: 'Which one?' }, { finish: 'ok' }] })
    const { result, by } = await play(asking, team, 'go', async (run) => {
      for await (const event of run.events()) if (event.type === 'ask.opened') await run.answer(event.ask.id, 'the red one')
    })
    expect(result).toMatchObject({ status: 'succeeded' })
    expect(lastResults(by('Hub')[1] as Heard)).toEqual(['the red one'])
  })

  test('over a notify edge goes on at once, and finishes with no answer', async () => {
    const noting = topology({ name: 'noting', flows: ['Start -> A -> End', 'A ~> Log', 'Log -> End'], agents: { A: {}, Log: {} } })
    const { result, by } = await play(script({ A: [{ invoke: 'Log', request: 'x' }, { finish: 1 }], Log: [{ finish: 0 }] }), noting)
    expect(result).toMatchObject({ status: 'succeeded', output: 1 })
    expect(lastResults(by('A')[1] as Heard)).toMatchObject([{ results: [{ agent_name: 'Log', status: 'arrived' }] }])
  })
})

test('agents of code and of models work in one topology', async () => {
  const mixed = topology({
    name: 'mixed',
    flows: ['Start -> Hub -> End', 'Hub <-> A | B'],
    agents: { Hub: {}, A: (turn) => turn.reply(`code says ${turn.request}`), B: {} },
  })
  const replies = script({
    Hub: [
      {
        fork: [
          { to: 'A', request: 1 },
          { to: 'B', request: 2 },
        ],
      },
      { finish: 'both' },
    ],
    B: ['model says 2'],
  })
  const { result, by } = await play(replies, mixed)
  expect(result).toMatchObject({ status: 'succeeded', output: 'both' })
  expect(lastResults(by('Hub')[1] as Heard)).toMatchObject([{ results: [{ value: 'code says 1' }, { value: 'model says 2' }] }])
})

test.each<[readonly { to: string; request: unknown }[], readonly object[]]>([
  [[], []],
  [[{ to: 'A', request: 1 }], [{ agent_name: 'A', status: 'arrived', value: 'A says 1' }]],
])('a scripted fork is one however few it calls: %j', async (fork, results) => {
  const { result, by, events } = await play(script({ Hub: [{ fork }, { finish: 'joined' }], A: ['A says 1'] }))
  expect(result).toMatchObject({ status: 'succeeded', output: 'joined' })
  expect(events.find(({ type }) => type === 'turn.completed')).toMatchObject({ action: { type: 'fork', calls: fork } })
  expect(lastResults(by('Hub')[1] as Heard)).toMatchObject([{ results }])
})

describe('the instructions of a model', () => {
  const asking = ['Start -> A -> End', 'A -> User'] as const
  const steered = (instructions: object, tools: object = {}) =>
    topology({ name: 'steered', flows: asking, agents: { A: { instructions, tools } } } as never) as unknown as Topology<unknown>

  test.each([
    { key: 'model/0' },
    { key: 'tool/0/0' },
    { key: 'tool/held/0' },
    { key: 'tool/config/0' },
    { key: 'compact/0' },
    { key: 'guard/before/0/0' },
    { key: '~model/0' },
    { key: 'model' },
    {},
  ])('may have a step of any key (%j): what it gives is theirs, and what the model did stays as it was', async (options) => {
    const pay = tool({ description: 'Pays.', input: z.object({}), run: () => 'PAID' })
    const of = steered(({ step }: Turn) => step('model/config', () => 'CONFIG', options), { pay })
    const models = script({ A: [{ tool: 'pay', input: {} }, { ask: 'Well?' }, { finish: 'ok' }] })
    const { result, heard } = await play(models, of, 'go', async (run) => {
      for await (const event of run.events()) if (event.type === 'ask.opened') return run.answer(event.ask.id, 'yes')
    })
    expect(result).toMatchObject({ status: 'succeeded', output: 'ok' })
    const last = heard.at(-1)?.options.prompt ?? []
    expect(last[0]?.content).toContain('CONFIG')
    const results = last.flatMap(({ role, content }) => (role === 'tool' ? content : []))
    expect(results).toMatchObject([
      { toolName: 'pay', output: { value: 'PAID' } },
      { toolName: 'ask_user', output: { value: 'yes' } },
    ])
  })

  test('may have two steps whose keys differ only by what keeps them apart from those of the model', async () => {
    const of = steered(
      async ({ step }: Turn) => `${await step('a', () => 'one', { key: 'model/0' })} ${await step('b', () => 'two', { key: '~model/0' })}`,
    )
    const { heard } = await play(script({ A: [{ finish: 'ok' }] }), of)
    expect(heard[0]?.options.prompt[0]?.content).toContain('one two')
  })

  test.each([
    [{ tone: 'kind' }, 'an object'],
    [['a'], 'a list'],
    [null, 'null'],
    [7, '7'],
  ])('that are no text (%j) fail it, and the model is not asked', async (given, words) => {
    const { result, heard } = await play(
      script({ A: ['hello'] }),
      steered(() => given),
    )
    const message = `the instructions of A must be a text, and its function gave ${words}`
    expect(result).toMatchObject({ status: 'failed', error: { code: 'AGENT_FAILED', message } })
    expect(heard).toEqual([])
  })
})
