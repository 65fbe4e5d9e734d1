import type { ModelFactory } from 'tutti'
import { tool, topology } from 'tutti'
import { script, virtualClock } from 'tutti/testing'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { placeOf } from '../../src/models/call-place.js'
import { deferred, opened, rest } from '../engine/opened.js'
import { called, type Heard, saying, spied } from './spied.js'

/** What a model was told, without the system: who, and what. */
const told = ({ options }: Heard): string[] =>
  options.prompt.flatMap(({ role, content }) =>
    typeof content === 'string' ? [] : content.map((part) => `${role}: ${part.type === 'text' ? part.text : part.type}`),
  )

describe('an agent that remembers', () => {
  const line = (memory: 'turn' | 'run') =>
    topology({ name: 'line', flows: ['Start -> A -> End', 'A <-> B'], agents: { A: { memory }, B: (turn) => turn.invoke('A', 'second') } })
  const replies = script({ A: [{ invoke: 'B', request: 'help' }, { finish: 'ok' }] })

  test.each([
    ['turn', ['user: second']],
    ['run', ['user: first', 'assistant: tool-call', 'tool: tool-result', 'user: second']],
  ] as const)("'%s' is told at its next request what it remembers", async (memory, expected) => {
    const { models, heard } = spied(replies)
    await using tutti = await opened({ models })
    expect(await (await tutti.start(line(memory), { input: 'first' })).output()).toBe('ok')
    expect(told(heard[1] as Heard)).toEqual(expected)
  })

  test("'run' begins in every branch of a fork with what it was at the fork, and is told nothing of its siblings", async () => {
    const flows = ['Start -> W', 'W -> Hub', 'Hub -> W | End'] as const
    const team = topology({
      name: 'team',
      flows,
      agents: {
        W: { memory: 'run' },
        Hub: (turn) =>
          turn.message.kind === 'join'
            ? turn.finish(turn.message.join.values)
            : turn.fork([
                { to: 'W', request: 'left' },
                { to: 'W', request: 'right' },
              ]),
      },
    })
    const { models, heard } = spied(
      script({ W: ({ request, branch }) => (branch === 'r' ? { invoke: 'Hub', request: 'go on' } : `did ${String(request)}`) }),
    )
    await using tutti = await opened({ models })
    expect(await (await tutti.start(team, { input: 'root' })).output()).toEqual(['did left', 'did right'])
    const before = ['user: root', 'assistant: tool-call', 'tool: tool-result']
    const of = (branch: string) => told(heard.find(({ place }) => place.branch === branch) as Heard)
    expect(of('r.0')).toEqual([...before, 'user: left'])
    expect(of('r.1')).toEqual([...before, 'user: right'])
  })

  test("'session' is told what runs that have ended said, as it was when its own run started", async () => {
    const chat = topology({ name: 'chat', flows: ['Start -> A -> End'], agents: { A: { memory: 'session' } } })
    const gate = deferred()
    const slow = spied(script({ A: ({ request }) => `re: ${String(request)}` }))
    const models: ModelFactory = (ref) => {
      const model = slow.models(ref) as unknown as { doGenerate: (options: { prompt: unknown }) => Promise<unknown> }
      return {
        ...model,
        doGenerate: async (options: { prompt: unknown }) => {
          if (JSON.stringify(options.prompt).includes('slow')) await gate.promise
          return model.doGenerate(options)
        },
      } as never
    }
    await using tutti = await opened({ models })
    const start = (input: string, session = 's') => tutti.start(chat, { input, session })
    await (await start('one')).output()
    const slowly = await start('slow two')
    await rest()
    await (await start('three')).output()
    gate.resolve()
    await slowly.output()
    await (await start('four')).output()
    await (await start('elsewhere', 'other')).output()
    const of = (text: string) => told(slow.heard.find((call) => told(call).at(-1) === `user: ${text}`) as Heard)
    expect(of('slow two')).toEqual(['user: one', 'assistant: re: one', 'user: slow two'])
    expect(of('three')).toEqual(['user: one', 'assistant: re: one', 'user: three'])
    expect(of('four')).toEqual([
      'user: one',
      'assistant: re: one',
      'user: three',
      'assistant: re: three',
      'user: slow two',
      'assistant: re: slow two',
      'user: four',
    ])
    expect(of('elsewhere')).toEqual(['user: elsewhere'])
  })

  test.each([
    ['stands still', () => 0],
    ['goes backwards', () => -1_000],
  ])("'session' is told what was said in its order on a clock that %s", async (_, step) => {
    const chat = topology({ name: 'chat', flows: ['Start -> A -> End'], agents: { A: { memory: 'session' } } })
    const { models, heard } = spied(script({ A: () => 'ok' }))
    const { sleep } = virtualClock()
    let now = 1_000_000
    await using tutti = await opened({ models, clock: { now: () => now, sleep } })
    const said = ['0', '1', '2', '3', '4', '5', '6', '7']
    for (const input of said) {
      await tutti.execute(chat, { input, session: 's' })
      now += step()
    }
    expect(told(heard.at(-1) as Heard).filter((line) => line.startsWith('user'))).toEqual(said.map((text) => `user: ${text}`))
  })

  test('of a run with no output, or an empty one, is told as such: no provider takes an empty text', async () => {
    const flows = ['Start -> A -> End'] as const
    const code = topology({ name: 'code', flows, agents: { A: (turn) => turn.finish(turn.request === 'empty' ? '' : undefined) } })
    const chat = topology({ name: 'chat', flows, agents: { A: { memory: 'session' } } })
    const { models, heard } = spied(script({ A: ['hello'] }))
    await using tutti = await opened({ models })
    for (const input of ['nothing', 'empty']) await tutti.execute(code, { input, session: 's' })
    expect(await tutti.execute(chat, { input: 'go', session: 's' })).toBe('hello')
    expect(told(heard[0] as Heard)).toEqual(['user: nothing', 'assistant: (nothing)', 'user: empty', 'assistant: (nothing)', 'user: go'])
  })

  test('shows it to its instructions, and code sees what it was told and did', async () => {
    const seen: unknown[] = []
    const team = topology({
      name: 'team',
      flows: ['Start -> A -> End', 'A <-> B'],
      agents: {
        A: { memory: 'run', instructions: (turn) => `You know ${turn.memory.length} things.` },
        B: { memory: 'run', act: (turn) => (seen.push(turn.memory), turn.invoke('A', `answer ${turn.turn}`)) },
      },
    })
    const { models, heard } = spied(script({ A: [{ invoke: 'B', request: 1 }, { invoke: 'B', request: 2 }, { finish: 'ok' }] }))
    await using tutti = await opened({ models })
    await (await tutti.start(team, { input: 'go' })).output()
    expect(heard.map(({ options }) => options.prompt[0]?.content)).toMatchObject(
      [/0 things/, /3 things/, /6 things/].map((text) => expect.stringMatching(text)),
    )
    expect(seen).toMatchObject([
      [],
      [
        { role: 'user', content: 1 },
        { role: 'assistant', content: { type: 'invoke', to: 'A' } },
      ],
    ])
  })
})

test('a transcript that has grown too long is summed up by the model, once, and the request stays', async () => {
  const read = tool({ description: 'Reads.', input: z.object({}), run: () => 'page '.repeat(70_000) })
  const reader = topology({ name: 'reader', flows: ['Start -> A -> End'], agents: { A: { tools: { read } } } })
  const { models, heard } = spied(
    script({ A: [{ tool: 'read', input: {} }, 'It read pages.', { tool: 'read', input: {} }, 'It read more pages.', { finish: 'ok' }] }),
  )
  await using tutti = await opened({ models, invariants: false })
  const run = await tutti.start(reader, { input: 'read the book' })
  expect(await run.output()).toBe('ok')
  expect(heard.map(({ options }) => (options.tools ?? []).length)).toEqual([2, 0, 2, 0, 2])
  expect(heard.at(-1)?.text).toMatch(/summed up:.*It read more pages.*read the book/)
  expect(heard.at(-1)?.text).not.toMatch(/page page/)
  const keys: unknown[] = []
  for await (const event of run.events()) if (event.type === 'activity.completed') keys.push((event as unknown as { key: string }).key)
  expect(keys).toEqual(['model/0', 'tool/0/0', 'compact/1', 'model/2', 'tool/1/0', 'compact/3', 'model/4'])
})

test('what an agent sums up for itself is told to nobody who listens', async () => {
  const read = tool({ description: 'Reads.', input: z.object({}), run: () => 'page '.repeat(70_000) })
  const reader = topology({ name: 'reader', flows: ['Start -> A -> End'], agents: { A: { tools: { read } } } })
  await using tutti = await opened({ models: script({ A: [{ tool: 'read', input: {} }, 'It read pages.', 'done'] }), invariants: false })
  const run = await tutti.start(reader, { input: 'read the book' })
  const told: string[] = []
  for await (const event of run.events({ deltas: true })) if (event.type === 'text.delta') told.push(event.text)
  expect(told).toEqual(['done'])
})

test('what was summed up is told again in the turns that follow, as it was told then', async () => {
  const read = tool({ description: 'Reads.', input: z.object({}), run: () => 'page '.repeat(70_000) })
  const reader = topology({ name: 'reader', flows: ['Start -> A -> End'], agents: { A: { tools: { read } } } })
  const nobody = { invoke: 'Nobody', request: 1 }
  const { models, heard } = spied(script({ A: [{ tool: 'read', input: {} }, 'It read pages.', nobody, nobody, { finish: 'ok' }] }))
  await using tutti = await opened({ models, invariants: false })
  expect(await (await tutti.start(reader, { input: 'read the book' })).output()).toBe('ok')
  const summed = 'user: What happened so far, summed up:\nIt read pages.\n\nWhat you were asked:\nread the book'
  const refused = ['assistant: tool-call', 'tool: tool-result']
  expect(heard.slice(2).map(told)).toEqual([[summed], [summed, ...refused], [summed, ...refused, ...refused]])
})

test.each([
  ['a request that is long by itself', 'page '.repeat(70_000), [{ tool: 'read', input: {} }, { finish: 'ok' }], 'short'],
  ['what the model has no summary of', 'read the book', [{ tool: 'read', input: {} }, '', { finish: 'ok' }], 'page '.repeat(70_000)],
])('%s is told as it is', async (_, input, replies, page) => {
  const read = tool({ description: 'Reads.', input: z.object({}), run: () => page })
  const reader = topology({ name: 'reader', flows: ['Start -> A -> End'], agents: { A: { tools: { read } } } })
  const { models, heard } = spied(script({ A: replies as never }))
  await using tutti = await opened({ models, invariants: false })
  expect(await (await tutti.start(reader, { input })).output()).toBe('ok')
  expect(heard).toHaveLength(replies.length)
  const [request, call, result] = told(heard.at(-1) as Heard)
  expect([request, call, result]).toEqual([`user: ${input}`, 'assistant: tool-call', 'tool: tool-result'])
})

test.each([
  ['length', 'user: What happened so far, summed up:\nIt read\n[the summary was cut off here]\n\nWhat you were asked:\nread the book'],
  ['content-filter', 'user: read the book'],
] as const)('a summary that is not all of it (%s) does not stand for everything in silence', async (unified, first) => {
  const read = tool({ description: 'Reads.', input: z.object({}), run: () => 'page '.repeat(70_000) })
  const reader = topology({ name: 'reader', flows: ['Start -> A -> End'], agents: { A: { tools: { read } } } })
  const model = saying(({ index }) => [index === 0 ? called('read', {}) : { type: 'text', text: index === 1 ? 'It read' : 'ok' }])
  const cutting: typeof model = {
    ...model,
    doGenerate: async (options) => {
      const answer = await model.doGenerate(options)
      return placeOf(options)?.index === 1 ? { ...answer, finishReason: { unified, raw: unified } } : answer
    },
  }
  const { models, heard } = spied(() => cutting)
  await using tutti = await opened({ models, invariants: false })
  expect(await (await tutti.start(reader, { input: 'read the book' })).output()).toBe('ok')
  expect(told(heard.at(-1) as Heard)[0]).toBe(first)
})
