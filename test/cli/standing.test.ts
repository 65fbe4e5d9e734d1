import { graph, open } from 'tutti'
import { expect, test } from 'vitest'
import { standingOf } from '../../src/cli/standing.js'
import type { RunRow, Store } from '../../src/engine/store.js'
import { memoryStore } from '../../src/stores/memory.js'
import { deferred } from '../engine/opened.js'

test('a run that was cancelled says so while its code lets go, and while it is undone, but not before and not when it is over', async () => {
  const inner = memoryStore()
  const store: Store = { ...inner, close: async () => {} }
  const standing = async () => {
    const { row } = (await inner.load('run')) as { readonly row: RunRow }
    const { status, cancelling, reason } = await standingOf(inner, row)
    return { status, cancelling, reason }
  }
  const letGo = deferred()
  const undone = deferred()
  const work = graph('work')
    .step('done', { run: () => 1, compensate: () => undone.promise })
    .step('going', { after: ['done'], run: () => letGo.promise })
    .output()
  await using tutti = await open({ store, graceMs: 600_000 })
  const run = await tutti.start(work, { id: 'run' })
  for await (const { type } of run.events()) if (type === 'step.completed') break
  expect(await standing()).toEqual({ status: 'running' })
  await run.cancel({ reason: 'enough' })
  expect(await standing()).toEqual({ status: 'running', cancelling: true, reason: 'enough' })
  letGo.resolve()
  for await (const { type } of run.events()) if (type === 'run.compensating') break
  expect(await standing()).toEqual({ status: 'compensating', cancelling: true, reason: 'enough' })
  undone.resolve()
  await run.result()
  expect(await standing()).toEqual({ status: 'cancelled' })
})
