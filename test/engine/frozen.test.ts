import { type Definition, graph, topology, type Tutti, TuttiError } from 'tutti'
import { explore } from 'tutti/testing'
import { expect, test } from 'vitest'
import { opened, solo } from './opened.js'

/** The places in a value that somebody could change. */
function open(value: unknown, path = ''): string[] {
  if (typeof value !== 'object' || value === null || value instanceof AbortSignal) return []
  const inside = Object.entries(value).flatMap(([key, item]) => open(item, `${path}.${key}`))
  return Object.isFrozen(value) ? inside : [path, ...inside]
}

const boom = (): never => {
  throw Object.assign(new Error('boom'), { extra: { list: [1] } })
}
const hub = (name: string, join: 'all' | 'settled', seen: (value: unknown) => void): Definition =>
  topology({
    name,
    flows: ['Start -> H -> End', 'H <-> A | B'],
    agents: {
      H: {
        act: {
          request: (turn) => turn.fork(['A', 'B'], { join }),
          join: (turn, joined) => {
            seen(joined)
            return turn.finish(joined.slots.map(({ status }) => status))
          },
        },
      },
      A: { act: boom, retry: { attempts: 2, if: (failure) => (seen(failure), true) } },
      B: (turn) => turn.fail({ message: 'no', why: { deep: [1] } }),
    },
  }) as Definition

/** What it comes to is what both have left where the other sees it. */
const racingOver = (seen: string[]): Definition<unknown> =>
  topology({
    name: 'racing',
    flows: ['Start -> H -> End', 'H <-> A | B'],
    agents: {
      H: { act: { request: (turn) => turn.fork(['A', 'B']), join: (turn) => turn.finish([...seen]) } },
      A: async (turn) => turn.reply(await turn.step('a', () => seen.push('a'))),
      B: async (turn) => turn.reply(await turn.step('b', () => seen.push('b'))),
    },
  })

async function eventsOf(tutti: Tutti, definition: Definition): Promise<unknown[]> {
  const run = await tutti.start(definition as Definition<unknown>)
  const given: unknown[] = []
  for await (const event of run.events()) given.push(event)
  given.push(await run.result(), await run.report(), await run.summary(), await run.history())
  await run.output().catch((error: unknown) => given.push(TuttiError.is(error) ? error.failure : error))
  return given
}

test('a failure is frozen wherever it is shown: in a join, in an event, in a result, to a retry', async () => {
  await using tutti = await opened()
  const given: unknown[] = []
  const seen = (value: unknown): void => void given.push(value)
  const finishing = { H: (turn: any) => turn.fork(['A', 'B']), A: (turn: any) => turn.finish(1), B: (turn: any) => turn.finish(2) }
  const definitions: Definition[] = [
    hub('settled', 'settled', seen),
    hub('all', 'all', seen),
    solo(() => ({ type: 'invoke', to: 'Nobody' }) as never),
    topology({ name: 'long', flows: ['Start -> A -> End', 'A -> A'], rules: ['max_turns(2)'], agents: { A: (turn) => turn.invoke('A') } }),
    topology({ name: 'two', flows: ['Start -> H', 'H -> A | B', 'A | B -> End'], agents: finishing } as never),
    graph('steps').step('a', { run: boom }).step('b', { run: boom }).output(),
    graph('parent')
      .step('child', { run: graph('child').step('a', { run: boom }).output() })
      .output(),
  ]
  for (const definition of definitions) given.push(...(await eventsOf(tutti, definition)))
  expect(given.length).toBeGreaterThan(60)
  expect(given.flatMap((value) => open(value))).toEqual([])
})

test('what a race check shows is frozen too: to its observer, and in what it found', async () => {
  const given: unknown[] = []
  const observe = (outcome: unknown): void => void given.push(outcome)
  given.push(await explore(hub('fine', 'settled', () => {}) as Definition<unknown>, { observe, schedules: 3 }))
  given.push(await explore(hub('failing', 'all', () => {}) as Definition<unknown>, { observe, schedules: 3 }))
  const found = await explore(() => racingOver([]), { observe, schedules: 20 })
  expect(found.divergence).toBeDefined()
  given.push(found, found.data())
  expect(given.length).toBeGreaterThan(6)
  expect(given.flatMap((value) => open(value))).toEqual([])
})

test('what is listed is frozen too: runs, asks and agents', async () => {
  await using tutti = await opened()
  const asking = solo((turn) => (turn.message.kind === 'request' ? turn.ask({ deep: [1] }) : turn.finish()))
  const run = await tutti.start(asking, { tags: { tenant: 'acme' } })
  const lost = topology({
    name: 'lost',
    flows: ['Start -> H -> End', 'H <-> A'],
    agents: {
      H: { act: { request: (turn) => turn.fork(['A'], { join: { policy: 'all', insufficient: 'ask' } }), join: (turn) => turn.finish() } },
      A: boom,
    },
  })
  const joining = await tutti.start(lost)
  await expect.poll(async () => (await tutti.asks()).length).toBe(2)
  const given = [
    tutti.runs(),
    tutti.asks(),
    run.asks(),
    joining.asks(),
    run.summary(),
    tutti.agents.list(),
    tutti.agents.get('A'),
    tutti.agents.history('A'),
  ]
  expect((await Promise.all(given)).flatMap((value) => open(value))).toEqual([])
})
