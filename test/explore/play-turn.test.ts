import { resource, topology } from 'tutti'
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

test('one turn takes the message that it is given', async () => {
  const slots = [{ status: 'arrived' as const, to: 'Clerk', by: 'Clerk', value: 'hi' }]
  const action = await playTurn(desk, 'Hub', { message: { kind: 'join', join: { ok: true, slots, extra: [], values: ['hi'] } as never } })
  expect(action).toEqual({ type: 'finish', output: ['hi'] })
})

test('one turn of a model says what its script says', async () => {
  const models = script<typeof desk>({ Poet: [{ reply: 'roses are red' }] })
  expect(await playTurn(desk, 'Poet', { request: 'a poem', models })).toMatchObject({ type: 'reply', value: 'roses are red' })
})

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
  await expect(refused({ request: 'Ada', resources: greeting.of('hello') })).rejects.toThrow(/resources is a list, not an object/)
  await expect(refused({ message: { kind: 'jion' } })).rejects.toThrow(/message is an object whose kind is 'request' or/)
  await expect(refused(undefined)).rejects.toThrow(/takes an object of options, not undefined/)
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
})
