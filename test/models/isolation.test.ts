import type { ModelFactory } from 'tutti'
import { resource, tool, topology } from 'tutti'
import { script } from 'tutti/testing'
import { expect, test } from 'vitest'
import { z } from 'zod'
import { playingModel } from '../../src/models/playing-model.js'
import { deferred, opened, rest } from '../engine/opened.js'
import { type Heard, spied } from './spied.js'

const flows = ['Start -> Hub -> End', 'Hub <-> W'] as const

test('1,000 interleaved runs of one definition: no prompt has the canary of another run', { timeout: 120_000 }, async () => {
  const look = tool({ description: 'Looks.', input: z.object({ at: z.string() }), run: async ({ at }) => `seen ${at}` })
  const team = topology({
    name: 'team',
    flows,
    agents: { Hub: { tools: { look }, memory: 'run' }, W: { instructions: (turn) => `Help with ${String(turn.request)}` } },
  })
  const canary = (n: number): string => `canary-${n}-x`
  const { models, heard } = spied(
    script({
      Hub: ({ request, turn, call }) =>
        turn === 1 && call === 0
          ? { tool: 'look', input: { at: request } }
          : turn === 1
            ? {
                fork: [
                  { to: 'W', request: `${String(request)} a` },
                  { to: 'W', request: `${String(request)} b` },
                ],
              }
            : { finish: request },
      W: ({ request }) => `help for ${String(request)}`,
    }),
  )
  await using tutti = await opened({ models, invariants: false })
  const runs = await Promise.all(Array.from({ length: 1_000 }, (_, n) => tutti.start(team, { id: `run-${n}`, input: canary(n) })))
  const outputs = await Promise.all(runs.map((run) => run.output()))
  expect(outputs).toEqual(runs.map((_, n) => canary(n)))
  expect(heard).toHaveLength(5_000)
  const strangers = heard.filter(({ place, text }) => {
    const found = new Set(text.match(/canary-\d+-x/g))
    return found.size !== 1 || !found.has(canary(Number(place.run.slice(4))))
  })
  expect(strangers).toEqual([])
})

/** Models that wait for the test before each answer; `release` lets the n-th waiting one go on. */
function held(models: ModelFactory): { models: ModelFactory; waiting: { agent: string; run: string; go: () => void }[] } {
  const waiting: { agent: string; run: string; go: () => void }[] = []
  return {
    waiting,
    models: (ref) => {
      const model = models(ref) as ReturnType<typeof playingModel>
      const held: typeof model = {
        ...model,
        doGenerate: async (options) => {
          const gate = deferred()
          const { run } = (options.providerOptions as unknown as { tutti: { run: string } }).tutti
          waiting.push({ agent: ref.agent, run, go: () => gate.resolve() })
          await gate.promise
          return model.doGenerate(options)
        },
      }
      return held
    },
  }
}

test.each([[0], [1]])(
  'A1 a memory tool writes under the session of the run that called it, whoever started last (%i first)',
  async (first) => {
    const memories = resource<{ session: string; write: (note: string) => void }>('memories')
    const written: string[] = []
    const note = tool({
      description: 'Notes.',
      input: z.object({ note: z.string() }),
      run: (input, { use }) => use(memories).write(input.note),
    })
    const keeper = topology({ name: 'keeper', flows: ['Start -> A -> End'], agents: { A: { tools: { note } } } })
    const { models, waiting } = held(
      script({ A: ({ request, call }) => (call === 0 ? { tool: 'note', input: { note: String(request) } } : { finish: 1 }) }),
    )
    const provided = memories.perRun(({ session = '' }) => ({ session, write: (text) => void written.push(`${session}: ${text}`) }))
    await using tutti = await opened({ models, resources: [provided] })
    const runs = [
      await tutti.start(keeper, { input: 'of one', session: 'one' }),
      await tutti.start(keeper, { input: 'of two', session: 'two' }),
    ]
    await rest()
    const order = first === 0 ? waiting.splice(0) : waiting.splice(0).reverse()
    for (const call of order) {
      call.go()
      await rest()
    }
    for (const call of waiting.splice(0)) call.go()
    await Promise.all(runs.map((run) => run.output()))
    expect(written.sort()).toEqual(['one: of one', 'two: of two'])
  },
)

test.each([[[0, 1, 1, 0]], [[1, 0, 0, 1]], [[0, 0, 1, 1]], [[1, 1, 0, 0]]])(
  'A2 one agent with two tasks at once: each transcript has its own only (%j)',
  async (order) => {
    const work = tool({ description: 'Works.', input: z.object({ on: z.string() }), run: ({ on }) => `worked on ${on}` })
    const team = topology({
      name: 'team',
      flows,
      agents: {
        Hub: (turn) =>
          turn.message.kind === 'join'
            ? turn.finish(turn.message.join.values)
            : turn.fork([
                { to: 'W', request: 'task-1' },
                { to: 'W', request: 'task-2' },
              ]),
        W: { tools: { work } },
      },
    })
    const spy = spied(
      script({ W: ({ request, call }) => (call === 0 ? { tool: 'work', input: { on: request } } : `done: ${String(request)}`) }),
    )
    const { models, waiting } = held(spy.models)
    await using tutti = await opened({ models })
    const run = await tutti.start(team)
    await rest()
    const lanes = [[waiting[0]], [waiting[1]]]
    for (const lane of order) {
      const before = waiting.length
      lanes[lane]?.shift()?.go()
      await rest()
      if (waiting.length > before) lanes[lane]?.push(waiting.at(-1))
    }
    expect(await run.output()).toEqual(['done: task-1', 'done: task-2'])
    for (const { text, place } of spy.heard) expect(new Set(text.match(/task-\d/g))).toEqual(new Set([String(place.request)]))
  },
)

test('A3 cancelling one run never touches the other, wherever the other is', async () => {
  const team = topology({ name: 'team', flows, agents: { Hub: {}, W: {} } })
  const replies = script({
    Hub: [
      {
        fork: [
          { to: 'W', request: 1 },
          { to: 'W', request: 2 },
        ],
      },
      { finish: 'ok' },
    ],
    W: ['w'],
  })
  for (let point = 0; point <= 4; point++) {
    const { models, waiting } = held(replies)
    await using tutti = await opened({ models })
    const one = await tutti.start(team, { id: 'one' })
    const two = await tutti.start(team, { id: 'two' })
    await rest()
    for (let step = 0; step < point; step++) {
      const at = waiting.findIndex(({ run }) => run === 'two')
      if (at >= 0) waiting.splice(at, 1)[0]?.go()
      await rest()
    }
    await one.cancel()
    for (let turns = 0; turns < 6; turns++) {
      for (const { go } of waiting.splice(0)) go()
      await rest()
    }
    expect(await two.result(), `cancelled at ${point}`).toMatchObject({ status: 'succeeded', output: 'ok' })
    expect(await one.result()).toMatchObject({ status: 'cancelled' })
  }
})

test('A4 a conversation is told byte for byte as if it were the only one, however conversations interleave', async () => {
  const chat = topology({ name: 'chat', flows: ['Start -> A -> End'], agents: { A: { memory: 'session' } } })
  const talk = async (together: boolean): Promise<string[]> => {
    const { models, heard } = spied(script({ A: ({ request }) => `heard ${String(request)}` }))
    await using tutti = await opened({ models })
    const conversation = async (name: string): Promise<void> => {
      for (let turn = 0; turn < 4; turn++)
        await (await tutti.start(chat, { id: `${name}-${turn}`, input: `${name} says ${turn}`, session: name })).output()
    }
    const names = ['ada', 'bob', 'cyd']
    if (together) await Promise.all(names.map(conversation))
    else for (const name of names) await conversation(name)
    return heard.map(({ place, text }: Heard) => `${place.run}: ${text}`).sort()
  }
  const alone = await talk(false)
  expect(await talk(true)).toEqual(alone)
  expect(alone.find((line) => line.startsWith('bob-3'))).toMatch(/bob says 0.*heard bob says 0.*bob says 2.*heard bob says 2.*bob says 3/)
})
