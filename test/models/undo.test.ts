import { tool, topology } from 'tutti'
import { script } from 'tutti/testing'
import { expect, test } from 'vitest'
import { z } from 'zod'
import type { Event } from '../../src/kernel/event.js'
import { evolve } from '../../src/kernel/evolve.js'
import { loadState, saveState } from '../../src/kernel/snapshot.js'
import { newState } from '../../src/kernel/state.js'
import { journal, opened } from '../engine/opened.js'
import { type Heard, lastResults, spied } from './spied.js'

const done: string[] = []
const book = tool({
  description: 'Books.',
  input: z.object({ item: z.string() }),
  run: ({ item }) => {
    done.push(`book ${item}`)
    return `ticket for ${item}`
  },
  compensate: ({ input, output }) => void done.push(`cancel ${input.item}, ${String(output)}`),
})
const trip = topology({ name: 'trip', flows: ['Start -> A -> End'], agents: { A: { tools: { book }, maxRejections: 0, memory: 'run' } } })
const models = script({ A: [{ tool: 'book', input: { item: 'flight' } }, { tool: 'book', input: { item: 'room' } }, { invoke: 'Nobody' }] })

test('what the tools of a model did is undone, last first, when the run fails', async () => {
  done.length = 0
  await using tutti = await opened({ models })
  const run = await tutti.start(trip)
  expect(await run.result()).toMatchObject({ status: 'failed', error: { code: 'REJECTED' }, rollback: 'complete' })
  expect(done).toEqual(['book flight', 'book room', 'cancel room, ticket for room', 'cancel flight, ticket for flight'])
  const started = (await journal(run)).filter(({ type }) => (type as string) === 'activity.started')
  expect(started).toMatchObject([
    { undo: { tool: 'book', input: { item: 'flight' } } },
    { undo: { tool: 'book', input: { item: 'room' } } },
  ])
})

test.each<[string, () => unknown, RegExp]>([
  ['takes too long', () => new Promise(() => {}), /took longer than 20 ms/],
  ['gives what is no JSON', () => new Date(), /is no JSON/],
])('a tool that can be undone and %s may have been done: it is not undone, and that is said', async (_, run, said) => {
  const pay = tool({ description: 'Pays.', input: z.object({}), timeoutMs: 20, run, compensate: () => void done.push('never') })
  const shop = topology({ name: 'shop', flows: ['Start -> A -> End'], agents: { A: { tools: { pay }, maxRejections: 0 } } })
  done.length = 0
  const { models: spying, heard } = spied(script({ A: [{ tool: 'pay', input: {} }, { invoke: 'Nobody' }] }))
  await using tutti = await opened({ models: spying, graceMs: 20 })
  const result = await (await tutti.start(shop)).result()
  expect(result).toMatchObject({ status: 'failed', error: { code: 'REJECTED' }, rollback: 'partial' })
  expect(result.report.notUndone).toEqual([expect.stringContaining('r/1/tool/0/0')])
  expect(lastResults(heard[1] as Heard)).toEqual([expect.stringMatching(said)])
  expect(done).toEqual([])
})

test('what a model remembers is the same from a snapshot as from the journal, after every event', async () => {
  const team = topology({ name: 'team', flows: ['Start -> H -> End', 'H <-> W'], agents: { H: { memory: 'run' }, W: {} } })
  const replies = script({
    H: [
      '',
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
  await using tutti = await opened({ models: replies })
  const run = await tutti.start(team, { input: 'go', limits: { tokens: 1_000_000 } })
  expect(await run.output()).toBe('ok')
  let state = newState
  for (const event of (await journal(run)) as unknown as Event[]) {
    state = evolve(state, event)
    const loaded = loadState(JSON.parse(JSON.stringify(saveState(state))))
    const memory = (of: typeof state) => JSON.stringify([[...of.branches.values()].map((branch) => branch.memory), of.spent])
    expect(memory(loaded)).toBe(memory(state))
  }
})
