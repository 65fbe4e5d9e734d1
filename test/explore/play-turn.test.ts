import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { graph, resource, topology } from 'tutti'
import { playTurn, script } from 'tutti/testing'
import { expect, test } from 'vitest'
import { z } from 'zod'

const greeting = resource<string>('greeting')

const desk = topology({
  name: 'desk',
  flows: ['Start -> Hub -> End', 'Hub <-> Clerk | Poet'],
  state: () => ({ seen: 0 }),
  merge: { seen: 'mine' },
  agents: {
    Hub: {
      act: {
        request: (turn) => turn.fork(['Clerk', 'Poet']),
        join: (turn, join) => turn.finish(join.from('Clerk')),
      },
    },
    Clerk: {
      act: async (turn) => {
        const { seen } = turn.state
        const said = await turn.step('greet', () => `${turn.use(greeting)} ${String(turn.request)}`)
        return turn.reply(said, { state: { seen: seen + 1 } })
      },
    },
    Poet: { instructions: 'Rhyme.' },
  },
})

test('one turn of code gives its action, with its steps, its resources and its state', async () => {
  const action = await playTurn(desk, 'Clerk', { request: 'Ada', state: { seen: 4 }, resources: [greeting.of('hello')] })
  expect(action).toEqual({ type: 'reply', value: 'hello Ada', state: { seen: 5 } })
})

test('only a turn of an agent of a topology is played', async () => {
  const refused = async (of: unknown, agent: string): Promise<unknown> =>
    playTurn(of as typeof desk, agent as 'Hub', {}).catch((error) => error)
  const one = graph('one')
    .step('a', { run: () => 1 })
    .output()
  expect(await refused(desk, 'clerk')).toMatchObject({
    code: 'INVALID_INPUT',
    message: "'desk' has no agent clerk (did you mean Clerk?); there are Hub, Clerk, Poet",
  })
  expect(await refused(one, 'a')).toMatchObject({ code: 'INVALID_INPUT', message: "playTurn() takes a topology, and 'one' is a graph" })
  expect(await refused({}, 'a')).toMatchObject({ code: 'INVALID_INPUT', message: 'a definition is needed, not an object' })
})

test('one turn takes the message that it is given', async () => {
  const slots = [{ index: 0, status: 'arrived' as const, to: 'Clerk', request: undefined, by: 'Clerk', value: 'hi' }]
  const action = await playTurn(desk, 'Hub', { message: { kind: 'join', join: { ok: true, slots, extra: [], values: ['hi'] } } })
  expect(action).toEqual({ type: 'finish', output: ['hi'] })
})

test('a join is given as an agent has it, or as journals do', async () => {
  const slots = [
    { index: 0, to: 'Clerk', request: undefined, status: 'arrived', by: 'Clerk', value: 'hi' },
    { index: 1, to: 'Poet', request: undefined, status: 'arrived', by: 'Poet', value: undefined },
  ] as const
  const join = { ok: true, slots, values: ['hi', undefined], extra: [] }
  const played = (given: typeof join): Promise<unknown> => playTurn(desk, 'Hub', { message: { kind: 'join', join: given } })
  expect(await played(join)).toEqual({ type: 'finish', output: ['hi'] })
  const from = (to: string): unknown[] => slots.flatMap((slot) => (slot.to === to ? [slot.value] : []))
  expect(await played({ ...join, from } as typeof join)).toEqual({ type: 'finish', output: ['hi'] })
  await expect(played({ ...join, values: ['hi', 'rhymes'] })).rejects.toMatchObject({
    code: 'INVALID_INPUT',
    message: expect.stringContaining('message.join.values: values is a list of what the slots that arrived have'),
  })
})

test('one turn of a model says what its script says', async () => {
  const models = script<typeof desk>({ Poet: [{ reply: 'roses are red' }] })
  expect(await playTurn(desk, 'Poet', { request: 'a poem', models })).toMatchObject({ type: 'reply', value: 'roses are red' })
})

test('a turn that sleeps is not waited for, and what it does meanwhile is', async () => {
  const day = 86_400_000
  const sleeping = topology({
    name: 'sleeping',
    flows: ['Start -> A -> End'],
    agents: {
      A: {
        timeoutMs: 5_000,
        act: async (turn) => {
          const began = turn.now()
          await turn.sleep(day)
          const worked = turn.step('work', () => new Promise((resolve) => setTimeout(resolve, 20, 'worked')))
          const first = await Promise.race([worked, turn.sleep(day).then(() => 'slept')])
          await Promise.all([turn.step('more', () => 1), turn.sleep(30 * day)])
          return turn.finish([first, turn.now() - began >= 31 * day])
        },
      },
    },
  })
  expect(await playTurn(sleeping, 'A', {})).toEqual({ type: 'finish', output: ['worked', true] })
})

test.each(['timeout(180)', 'max_turns(1)', 'max_branches(1)'] as const)(
  'the limits of runs, as %s, say nothing of one turn',
  async (rule) => {
    const slow = topology({
      name: 'slow',
      rules: [rule],
      limits: { tokens: 1 },
      flows: ['Start -> Desk -> End', 'Desk <-> Clerk | Poet'],
      agents: {
        Desk: (turn) => (turn.message.kind === 'join' ? turn.finish() : turn.fork(['Clerk'])),
        Clerk: async (turn) => {
          await turn.sleep(24 * 3_600_000)
          return turn.reply('a day later')
        },
        Poet: {},
      },
    })
    expect(await playTurn(slow, 'Clerk', {})).toEqual({ type: 'reply', value: 'a day later' })
    const models = script<typeof slow>({ Poet: ['a rhyme'] })
    expect(await playTurn(slow, 'Poet', { models })).toEqual({ type: 'reply', value: 'a rhyme' })
  },
)

test('an agent is asked by one that can wait for it, and where none can, it is handed what it is asked', async () => {
  const relay = topology({
    name: 'relay',
    flows: ['Start -> Ann | Ben', 'Ann <-> Cleo | Dan', 'Ben <-> Cleo', 'Ann | Ben | Dan -> End'],
    agents: {
      Ann: { act: { request: (turn) => turn.invoke('Cleo') } },
      Ben: (turn) => (turn.message.kind === 'join' ? turn.finish() : turn.fork(['Cleo'])),
      Cleo: (turn) => turn.reply(`${turn.waiting} asks ${turn.request}`),
      Dan: (turn) => turn.finish([turn.request, turn.waiting]),
    },
  })
  expect(await playTurn(relay, 'Cleo', { request: 'why' })).toEqual({ type: 'reply', value: 'Ben asks why' })
  expect(await playTurn(relay, 'Dan', { request: 'why' })).toEqual({ type: 'finish', output: ['why', null] })
})

test('a state that can not be made of the request is to be given, and who plays the turn is told so', async () => {
  const counted = topology({
    name: 'counted',
    input: z.object({ names: z.array(z.string()) }),
    flows: ['Start -> Ann -> Ben -> End'],
    state: ({ names }) => ({ count: names.length }),
    merge: { count: 'last' },
    agents: { Ann: (turn) => turn.invoke('Ben', 'why'), Ben: (turn) => turn.finish(turn.state.count) },
  })
  await expect(playTurn(counted, 'Ben', { request: 'why' })).rejects.toMatchObject({
    code: 'INVALID_INPUT',
    message: expect.stringContaining('`state` threw for this request: '),
    hint: 'give the turn its state: playTurn(topology, agent, { state })',
  })
  expect(await playTurn(counted, 'Ben', { request: 'why', state: { count: 3 } })).toEqual({ type: 'finish', output: 3 })
})

test('what a turn leaves behind, as a sleep that lost its race, keeps no process alive', async () => {
  const program = `
    import { topology } from 'tutti'
    import { playTurn } from 'tutti/testing'
    const act = async (turn) => turn.finish(await Promise.race([turn.step('fast', () => 1), turn.sleep(86_400_000)]))
    const hasty = topology({ name: 'hasty', flows: ['Start -> A -> End'], agents: { A: act } })
    console.log(JSON.stringify(await playTurn(hasty, 'A', {})))`
  const ended = promisify(execFile)(process.execPath, ['--input-type=module', '-e', program], { timeout: 25_000 })
  expect((await ended).stdout).toBe('{"type":"finish","output":1}\n')
}, 30_000)

test('a turn that throws tells why', async () => {
  await expect(playTurn(desk, 'Clerk', { request: 'Ada' })).rejects.toMatchObject({
    code: 'RUN_FAILED',
    message: expect.stringContaining('greeting'),
  })
})

test('a turn is not played with what it can not be given', async () => {
  const refused = (given: unknown): Promise<unknown> => playTurn(desk, 'Clerk', given as never)
  await expect(refused({ requst: 'Ada' })).rejects.toThrow(
    /playTurn\(\): requst: there is no option 'requst' here \(did you mean request\?\)/,
  )
  await expect(refused({ request: 'Ada', resources: greeting.of('hello') })).rejects.toThrow(
    /resources is a list of what resource.* has made, not an object/,
  )
  await expect(refused({ request: 'Ada', resources: ['hello'] })).rejects.toMatchObject({ code: 'INVALID_INPUT' })
  await expect(refused({ message: { kind: 'jion' } })).rejects.toThrow(/message is an object whose kind is 'request' or/)
  await expect(refused(undefined)).rejects.toThrow(/takes an object of options, not undefined/)
  await expect(refused({ message: { kind: 'join' } })).rejects.toThrow(/message.join: join is an object with ok, slots, values and extra/)
  await expect(refused({ message: { kind: 'join', join: { ok: true } } })).rejects.toThrow(/message.join/)
  await expect(refused({ message: { kind: 'merged', requests: ['Ada'] } })).rejects.toThrow(/message.requests/)
  await expect(refused({ message: { kind: 'answer', value: 1 } })).rejects.toThrow(/message.askId/)
  await expect(refused({ state: 5 })).rejects.toThrow(/state is an object, not 5/)
  await expect(refused({ state: { unseen: 1 } })).rejects.toMatchObject({
    code: 'INVALID_INPUT',
    message: expect.stringContaining('unseen'),
  })
  await expect(playTurn(desk, 'toString' as never, {})).rejects.toThrow(/has no agent toString/)
})

test('a message that is no JSON is refused with its path, as a request is', async () => {
  const asking = topology({
    name: 'asking',
    flows: ['Start -> Clerk -> End', 'Clerk -> User'],
    agents: { Clerk: { act: { request: (turn) => turn.ask('?'), answer: (turn, value) => turn.finish(value) } } },
  })
  const answered = (value: unknown): Promise<unknown> =>
    playTurn(asking, 'Clerk', { message: { kind: 'answer', askId: 'r~1', question: '?', value } })
  for (const [value, problem] of [
    [{ sum: Number.NaN }, 'the message is no JSON at value.sum: NaN is not a JSON number'],
    [[1, undefined], 'the message is no JSON at value[1]: undefined is not JSON'],
    [new Map([[1, 2]]), 'the message is no JSON at value: '],
    [{ when: new Date(0) }, 'the message is no JSON at value.when: '],
  ] as const)
    await expect(answered(value)).rejects.toMatchObject({ code: 'INVALID_INPUT', message: expect.stringContaining(problem) })
  expect(await answered({ sum: 1, unsaid: undefined })).toEqual({ type: 'finish', output: { sum: 1 } })
  expect(await answered(undefined)).toEqual({ type: 'finish' })
})

test('what an agent was asked is there in each of its turns', async () => {
  const pair = topology({
    name: 'pair',
    flows: ['Start -> Hub -> End', 'Hub -> A | B -> Judge -> Hub', 'Judge -> User'],
    joins: ['Judge'],
    agents: {
      Hub: { act: { request: (turn) => turn.fork(['A', 'B']), join: (turn) => turn.finish(turn.request) } },
      A: (turn) => turn.invoke('Judge'),
      B: (turn) => turn.invoke('Judge'),
      Judge: { act: (turn) => turn.reply([turn.request, turn.requests.length]) },
    },
  })
  const join = { ok: true, slots: [], values: [], extra: [] }
  expect(await playTurn(pair, 'Hub', { request: 5, message: { kind: 'join', join } })).toEqual({ type: 'finish', output: 5 })
  const requests = [
    { from: 'A', value: 'a' },
    { from: 'B', value: 'b' },
  ]
  expect(await playTurn(pair, 'Judge', { message: { kind: 'merged', requests } })).toEqual({ type: 'reply', value: ['a', 2] })
  const answer = { kind: 'answer', askId: 'r~1', question: '?', value: 'yes' } as const
  expect(await playTurn(pair, 'Judge', { request: 'c', message: answer })).toEqual({ type: 'reply', value: ['c', 1] })
})

test('a turn is asked with what the schema makes of its request, and never with what that refuses', async () => {
  const Brief = z.object({ topic: z.string(), words: z.number().default(100) })
  const writing = topology({
    name: 'writing',
    flows: ['Start -> Writer -> End'],
    agents: { Writer: { input: Brief, act: (turn) => turn.finish(turn.request.words) } },
  })
  expect(await playTurn(writing, 'Writer', { request: { topic: 'tea' } })).toEqual({ type: 'finish', output: 100 })
  await expect(playTurn(writing, 'Writer', { request: { topic: 5 } })).rejects.toMatchObject({
    code: 'INVALID_INPUT',
    message: expect.stringMatching(/^the request is not valid: topic: /),
  })
  const message = { kind: 'request', from: 'Start', value: { topic: 'tea' } } as const
  expect(await playTurn(writing, 'Writer', { message })).toEqual({ type: 'finish', output: 100 })
})

test.each([
  { kind: 'expired', askId: 'r~1', question: '?' },
  { kind: 'feedback', problem: 'no' },
  { kind: 'merged', requests: [{ from: 'Start', value: 1 }] },
] as const)('handlers are not played with a message that they have no handler for: $kind', async (message) => {
  const asking = topology({
    name: 'asking',
    flows: ['Start -> Clerk -> End', 'Clerk -> User'],
    agents: { Clerk: { act: { request: (turn) => turn.ask('?'), answer: (turn, value) => turn.finish(value) } } },
  })
  await expect(playTurn(asking, 'Clerk', { message })).rejects.toMatchObject({
    code: 'INVALID_INPUT',
    message: `Clerk has no handler '${message.kind}': it is never given such a message`,
  })
  const answer = { kind: 'answer', askId: 'r~1', question: '?', value: 3 } as const
  expect(await playTurn(asking, 'Clerk', { message: answer })).toEqual({ type: 'finish', output: 3 })
})
