import { open, type Run } from 'tutti'
import { expect, test } from 'vitest'
import { strandedAmong } from '../../src/cli/is-stranded.js'
import { RunTree } from '../../src/cli/run-tree.js'
import type { Store } from '../../src/engine/store.js'
import { memoryStore } from '../../src/stores/memory.js'
import { solo, untilAborted } from '../engine/opened.js'

test('a run that is taken while somebody looks whether it has anybody is not stranded, whoever had it before', async () => {
  const inner = memoryStore()
  const store: Store = { ...inner, close: async () => {} }
  const definition = solo(async (turn) => {
    await turn.step('first', async () => 1)
    return turn.finish(await untilAborted(turn.signal))
  })
  // Its first owner has gone, and whoever looks has read its row by then.
  const first = await open({ store })
  const dead = await inner.join({ nonce: 'dead' })
  const orphan: Run = await first.start(definition, { id: 'run' })
  for await (const { type } of orphan.events()) if (type === 'activity.completed') break
  await first.close()
  await inner.claim({ worker: dead, definitions: [{ name: 'solo', versions: ['1'] }], now: Date.now() + 1, limit: 1 })
  let second: Awaited<ReturnType<typeof open>> | null = null
  const looking: Store = {
    ...store,
    load: async (run, options) => {
      const loaded = await store.load(run, options)
      // Somebody takes it right after its journal, or its row, was first read.
      if (second === null) {
        await inner.leave(dead, Date.now())
        second = await open({ store, definitions: [definition], graceMs: 10 })
        await expect.poll(async () => (await inner.load('run'))?.row.worker ?? dead).not.toBe(dead)
      }
      return loaded
    },
  }
  const tree = new RunTree(looking, 'run')
  await tree.catchUp()
  expect(await strandedAmong(looking, [tree])).toEqual(new Set())
  await (second as Awaited<ReturnType<typeof open>> | null)?.close()
})
