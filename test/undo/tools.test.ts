import type { Done, Topology } from 'tutti'
import { tool, topology } from 'tutti'
import { script, virtualClock } from 'tutti/testing'
import { expect, test } from 'vitest'
import { z } from 'zod'
import { deferred, journal, opened, rest, untilAborted } from '../engine/opened.js'
import { Folder } from '../stores/folder.js'

interface Shop {
  readonly log: string[]
  readonly keys: string[]
  readonly buy: ReturnType<typeof tool>
}

/** A tool that buys something and can give it back; `wait`: until then it has not been bought. */
function shop(wait: Promise<unknown> = Promise.resolve()): Shop {
  const log: string[] = []
  const keys: string[] = []
  const buy = tool({
    description: 'buys something',
    input: z.object({ what: z.string() }),
    run: async ({ what }, { idempotencyKey }) => {
      await wait
      log.push(`bought ${what}`)
      keys.push(idempotencyKey)
      return { receipt: what }
    },
    compensate: ({ output, input, idempotencyKey }: Done<{ receipt: string }> & { input: { what: string } }) => {
      log.push(`gave back ${output.receipt} for ${input.what}`)
      keys.push(idempotencyKey)
    },
  })
  return { log, keys, buy: buy as never }
}

const withBuyer = (buy: Shop['buy'], last: (turn: any) => unknown): Topology<unknown, unknown> =>
  topology({
    name: 'shopping',
    flows: ['Start -> Buyer -> Clerk -> End'],
    agents: { Buyer: { instructions: 'buy it', tools: { buy } }, Clerk: last },
  } as never) as never

test('what the tools of a model did is undone when the run fails, the last first, each under its own key', async () => {
  const { log, keys, buy } = shop()
  const models = script({
    Buyer: [
      { tool: 'buy', input: { what: 'tea' } },
      { tool: 'buy', input: { what: 'milk' } },
      { invoke: 'Clerk', request: 'both' },
    ],
  })
  await using tutti = await opened({ models })
  const run = await tutti.start(withBuyer(buy, (turn) => turn.fail('closed')))
  expect(await run.result()).toMatchObject({ status: 'failed', rollback: 'complete', report: { choices: [], notUndone: [] } })
  expect(log).toEqual(['bought tea', 'bought milk', 'gave back milk for milk', 'gave back tea for tea'])
  expect(keys.slice(2)).toEqual([`${keys[1]}/undo`, `${keys[0]}/undo`])
})

test('a tool that completes after its turn was aborted is undone, and its result is used for nothing else', async () => {
  const held = deferred()
  const { log, buy } = shop(held.promise)
  const models = script({ Buyer: [{ tool: 'buy', input: { what: 'tea' } }, { invoke: 'Clerk' }] })
  await using tutti = await opened({ models })
  const run = await tutti.start(withBuyer(buy, () => expect.unreachable()))
  await rest()
  await run.cancel()
  expect(log).toEqual([])
  held.resolve()
  expect(await run.result()).toMatchObject({ status: 'cancelled', rollback: 'complete' })
  expect(log).toEqual(['bought tea', 'gave back tea for tea'])
  const types = (await journal(run)).map(({ type }) => type)
  expect(types.filter((type) => type === 'undo.completed')).toHaveLength(1)
})

test('a tool that goes on when the grace of its turn is over is listed as not undone, also if timers are early', async () => {
  const held = deferred()
  const { log, buy } = shop(held.promise)
  const models = script({ Buyer: [{ tool: 'buy', input: { what: 'tea' } }, { invoke: 'Clerk' }] })
  const { advance, now, sleep } = virtualClock()
  const clock = { now, sleep: (ms: number, signal?: AbortSignal) => sleep(ms === 100 ? 99 : ms, signal) }
  await using tutti = await opened({ models, clock, graceMs: 100 })
  const run = await tutti.start(withBuyer(buy, () => expect.unreachable()))
  await rest()
  await run.cancel()
  await advance(100)
  expect(await run.result()).toMatchObject({ status: 'cancelled', rollback: 'partial', report: { notUndone: ['r/1/tool/0/0'] } })
  held.resolve()
  await rest()
  expect(log).toEqual(['bought tea'])
})

test('an engine that is closed waits for a tool that can be undone as long as it runs, not for all of its grace', async () => {
  const keys: string[] = []
  const book = tool({
    description: 'Books.',
    input: z.object({}),
    run: async (_, { idempotencyKey, signal }) => {
      keys.push(idempotencyKey)
      if (keys.length === 1) await untilAborted(signal).catch(() => {})
      return 'booked'
    },
    compensate: () => {},
  })
  const shop = topology({ name: 'shop', flows: ['Start -> A -> End'], agents: { A: { tools: { book } } } })
  const models = script({ A: [{ tool: 'book', input: {} }, { finish: 'done' }] })
  using folder = new Folder()
  const at = { store: folder.file(), models, definitions: [shop] }
  const first = await opened({ ...at, graceMs: 600_000 })
  const { id } = await first.start(shop)
  while (keys.length === 0) await rest()
  await first.close()
  // Nobody was there any more to whom it could have said that it was done: it is done again, under its key.
  await using second = await opened(at)
  expect(await (await second.run(id)).output()).toBe('done')
  expect(keys).toEqual([keys[0], keys[0]])
})
