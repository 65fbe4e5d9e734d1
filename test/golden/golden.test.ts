/**
 * Journals as an earlier version has written them, one line for each row of its store: each is loaded and folded as it stands, and never written again. `TUTTI_GOLDEN=record`
 * records those that are not there yet.
 */
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import * as tutti from 'tutti'
import { virtualClock } from 'tutti/testing'
import { expect, test } from 'vitest'
import { z } from 'zod'
import { decodeEvents } from '../../src/engine/codec.js'
import type { EventRow } from '../../src/engine/store.js'
import { reportOf } from '../../src/inspect/report.js'
import { evolve } from '../../src/kernel/evolve.js'
import { outstanding } from '../../src/kernel/outstanding.js'
import { loadState, saveState } from '../../src/kernel/snapshot.js'
import { newState } from '../../src/kernel/state.js'
import { memoryStore } from '../../src/stores/memory.js'
import { house, output } from '../durable/children/house.js'

const release = tutti
  .graph('release', { input: undefined as never })
  .step('list', { run: () => ['one', 'two', 'three'] })
  .step('build', {
    after: ['list'],
    each: ({ steps }: any) => steps.list,
    concurrency: 2,
    run: ({ item }: any) => `built ${item}`,
  } as never)
  .step('flaky', {
    retry: { attempts: 2, backoffMs: 5 },
    run: async ({ step, attempt }: any) => {
      const kept = await step('kept', () => 'kept')
      if (attempt === 1) throw new Error('the first attempt fails')
      return kept
    },
  } as never)
  .step('never', { when: () => false, run: () => 'never' } as never)
  .ask('approve', { after: ['build', 'flaky'], schema: z.string(), question: ({ steps }: any) => ({ publish: steps.build }) } as never)
  .output() as unknown as tutti.Definition<unknown>

const topology = { make: () => house(tutti, () => {}) as tutti.Definition<unknown>, status: 'succeeded', output }
const graph = {
  make: () => release,
  status: 'succeeded',
  output: { list: ['one', 'two', 'three'], build: ['built one', 'built two', 'built three'], flaky: 'kept', approve: 'yes' },
}

/** In the first each event has its number and its time, since the second they stand at the first of a row. */
const golden = { 'topology-1': topology, 'graph-1': graph, 'topology-2': topology, 'graph-2': graph }

const fileOf = (name: string): string => fileURLToPath(new URL(`./${name}.jsonl`, import.meta.url))

/** The rows of a journal, as a store has them. */
function rowsOf(name: string): EventRow[] {
  const lines = readFileSync(fileOf(name), 'utf8').split('\n').filter(Boolean)
  let next = 1
  return lines.map((body) => {
    const { length: n } = JSON.parse(body) as unknown[]
    const seq = next
    next += n
    return { seq, n, body }
  })
}

async function record(name: keyof typeof golden): Promise<void> {
  const definition = golden[name].make()
  const store = memoryStore()
  const clock = virtualClock()
  const engine = await tutti.open({ store, clock, definitions: [definition] })
  const run = await engine.start(definition, { id: 'golden', tags: { of: name } })
  for (let asked = false; !asked; ) {
    await clock.advance(50)
    const [ask] = await run.asks()
    if (ask === undefined) continue
    await run.pause({ by: 'the recorder' })
    await clock.advance(1_000)
    await run.resume()
    await run.answer(ask.id, 'yes', { by: 'the recorder' })
    asked = true
  }
  await run.output()
  const rows = (await store.load('golden'))?.rows ?? []
  writeFileSync(fileOf(name), rows.map(({ body }) => `${body}\n`).join(''))
}

test.each(Object.keys(golden) as (keyof typeof golden)[])(
  'the journal %s of an earlier version is read as it was written',
  async (name) => {
    if (process.env['TUTTI_GOLDEN'] === 'record' && !existsSync(fileOf(name))) await record(name)
    const events = await decodeEvents(rowsOf(name), 0, async () => null)
    expect(events.map(({ seq }) => seq)).toEqual(events.map((_, at) => at + 1))
    let state = newState
    for (const event of events) {
      state = evolve(state, event)
      // At every place of it a snapshot is the same as the fold.
      const loaded = loadState(JSON.parse(JSON.stringify(saveState(state))))
      expect(saveState(loaded)).toEqual(JSON.parse(JSON.stringify(saveState(state))))
      expect(outstanding(loaded)).toEqual(outstanding(state))
    }
    expect(state.outcome).toMatchObject({ status: golden[name].status, output: golden[name].output })
    expect(outstanding(state)).toEqual([])
    expect(reportOf(events, { refusals: {} })).toMatchObject({ status: golden[name].status, output: golden[name].output })
  },
)

test.each(Object.keys(golden) as (keyof typeof golden)[])(
  'a run of the journal %s goes on from every place of it to the same end',
  async (name) => {
    const { make, output: expected } = golden[name]
    const rows = rowsOf(name)
    const definition = make()
    for (let kept = 1; kept < rows.length; kept++) {
      const begun = rows.slice(0, kept)
      const head = begun.reduce((sum, { n }) => sum + n, 0)
      const store = memoryStore()
      const by = await store.join({ nonce: 'earlier' })
      const { version } = definition
      await store.commit([
        {
          run: 'golden',
          create: { definition: definition.name, version, tags: {} },
          expect: 0,
          head,
          by,
          at: 1,
          own: 'take',
          rows: begun,
        },
      ])
      await store.leave(by, 0)
      const clock = virtualClock()
      const engine = await tutti.open({ store, clock, definitions: [definition], invariants: true })
      const run = await engine.run('golden')
      for (let over = false; !over; ) {
        await clock.advance(100_000)
        const status = await run.status()
        if (status === 'paused') await run.resume()
        const [ask] = await run.asks()
        if (ask !== undefined) await run.answer(ask.id, 'yes')
        over = status === 'succeeded' || status === 'failed'
      }
      expect(await run.output(), `from ${head}`).toEqual(expected)
      const closed = engine.close()
      await clock.advance(60_000)
      await closed
    }
  },
)
