/** What a worker may have done that is gone is not passed over, whatever its turn comes to under the next one: nobody knows, and that is said. */
import { graph, resource, tool, topology } from 'tutti'
import { script } from 'tutti/testing'
import { expect, test } from 'vitest'
import { z } from 'zod'
import { internalsOf } from '../../src/define/definition.js'
import { journalOf } from '../../src/engine/journal.js'
import { replay } from '../../src/engine/replay.js'
import type { Event } from '../../src/kernel/event.js'
import { memoryStore } from '../../src/stores/memory.js'
import { opened, rest } from '../engine/opened.js'

const never = () => new Promise<never>(() => {})

/** A shop whose only agent books with a tool that can be undone; the tool never comes to an end, or is gone. */
const shop = (
  options: object = {},
  tools: object = { book: tool({ description: 'Books.', input: z.object({}), run: never, compensate: () => {} }) },
) =>
  topology({
    name: 'shop',
    version: '1',
    flows: ['Start -> A -> End'],
    agents: { A: { instructions: 'book it', tools, ...options } },
  } as never)

const models = script({ A: [{ tool: 'book', input: {} }, { finish: 'done' }] })

/** Begins a run, and is gone in the middle of its turn. */
async function left(store: ReturnType<typeof memoryStore>, definition: any, options: object = {}): Promise<void> {
  const first = await opened({ store, models, definitions: [definition], graceMs: 0, ...options } as never)
  await first.start(definition, { id: 'left' })
  await rest()
  await first.close()
}

test('by a turn that is stopped', async () => {
  const store = memoryStore()
  await left(store, shop())
  const other = await opened({ store })
  await other.agents.stop('A')
  await using next = await opened({ store, models, definitions: [shop()] })
  const result = await (await next.run('left')).result()
  expect(result).toMatchObject({ status: 'failed', error: { code: 'AGENT_STOPPED' }, rollback: 'partial' })
  expect(result.report.notUndone).toEqual(['r/1/tool/0/0'])
  expect(result.report.choices).toEqual([
    { at: 'r/1', kind: 'stop', decidedBy: [1, 'stopped'] },
    { at: '#', kind: 'undo', decidedBy: ['r/1/tool/0/0?'] },
  ])
  await other.close()
})

test('by a turn whose agent can undo it, and is stopped', async () => {
  const store = memoryStore()
  const books = () =>
    topology({ name: 'books', flows: ['Start -> A -> End'], agents: { A: { act: never, compensate: () => {} } } } as never)
  await left(store, books())
  const other = await opened({ store })
  await other.agents.terminate('A')
  await using next = await opened({ store, definitions: [books()] })
  const result = await (await next.run('left')).result()
  expect(result).toMatchObject({ status: 'failed', rollback: 'partial', report: { notUndone: ['r/1'] } })
  await other.close()
})

test('by a turn that does not ask for it again', async () => {
  const store = memoryStore()
  await left(store, shop())
  await using next = await opened({ store, models, definitions: [shop({}, {})] })
  const result = await (await next.run('left')).result()
  expect(result).toMatchObject({ status: 'failed', rollback: 'partial', report: { notUndone: ['r/1/tool/0/0'] } })
})

test('by a step that is not given what it uses', async () => {
  const store = memoryStore()
  const desk = resource<number>('desk')
  const steps = () =>
    graph('steps')
      .step('book', { run: never, compensate: () => {} })
      .output()
  const makes = (make: () => number) => ({ resources: [desk.perRun(make)] })
  await left(
    store,
    steps(),
    makes(() => 1),
  )
  await using next = await opened({
    store,
    definitions: [steps()],
    ...makes(() => {
      throw new Error('no desk')
    }),
  } as never)
  const result = await (await next.run('left')).result()
  expect(result).toMatchObject({
    status: 'failed',
    error: { code: 'RESOURCE_MISSING' },
    rollback: 'partial',
    report: { notUndone: ['book'] },
  })
})

/** The journal of a turn that did not ask again for what it had begun, as it was written before anything was said of that. */
function ofBefore(events: readonly Event[]): Event[] {
  const kept = events.filter(({ type }) => type !== 'turn.aborted' && type !== 'run.compensating' && type !== 'undo.planned')
  return kept.map((event, place): Event => {
    const seq = place + 1
    if (event.type === 'turn.failed') {
      const { unsettled: _, ...before } = event
      return { ...before, seq }
    }
    if (event.type === 'run.failed') {
      const { notUndone: _, ...before } = event
      return { ...before, rollback: 'none', seq }
    }
    return { ...event, seq }
  })
}

test('and its journal is executed again as it is recorded, also one from before that was said', async () => {
  const store = memoryStore()
  await left(store, shop())
  await using next = await opened({ store, models, definitions: [shop({}, {})] })
  await (await next.run('left')).result()
  const events = await journalOf(store, 'left')
  const child = () => Promise.reject(new Error('there is none'))
  const given = { definition: internalsOf(shop({}, {})), resources: [], models, maxValue: store.promises.maxValue, child }
  expect(events.filter((event) => 'unsettled' in event)).toHaveLength(1)
  for (const journal of [events, ofBefore(events)])
    expect(await replay({ ...given, events: journal })).toEqual({ attempts: 1, different: [], skipped: [] })
})

/** Books, and then sleeps for long. */
const sleeper = () =>
  graph('sleeper')
    .step('book', { run: () => 'booked', compensate: () => {} })
    .step('wait', {
      after: ['book'],
      run: async (step) => {
        await step.step('tell', () => 'told')
        await step.sleep(3_600_000)
        return 'waited'
      },
      compensate: () => {},
    })
    .output()

const undoneOnlyBook = { rollback: 'complete', report: { notUndone: [] } }

test('not by one that slept when its run was given back, whoever cancels that', async () => {
  const store = memoryStore()
  await left(store, sleeper())
  // Nobody has the run yet, and then somebody has executed it as far as it had come.
  const looks = await opened({ store })
  const run = await looks.run('left')
  await run.cancel()
  await using next = await opened({ store, definitions: [sleeper()] })
  expect(await (await next.run('left')).result()).toMatchObject({ status: 'cancelled', ...undoneOnlyBook })
  await looks.close()

  const other = memoryStore()
  await left(other, sleeper())
  await using taken = await opened({ store: other, definitions: [sleeper()] })
  await rest()
  const again = await taken.run('left')
  await again.cancel()
  expect(await again.result()).toMatchObject({ status: 'cancelled', ...undoneOnlyBook })
})

test('not by one whose run was let go in its sleep, because there were many', async () => {
  const store = memoryStore()
  await using tutti = await opened({ store, definitions: [sleeper()] })
  const runs = await Promise.all(Array.from({ length: 300 }, () => tutti.start(sleeper())))
  await rest(200)
  const [row] = (await store.list({ limit: 1_000 })).filter(({ worker }) => worker === null)
  const run = runs.find(({ id }) => id === row?.id)
  await run?.cancel()
  expect(await run?.result()).toMatchObject({ status: 'cancelled', ...undoneOnlyBook })
})
