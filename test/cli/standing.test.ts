import { graph, open, TuttiError } from 'tutti'
import { expect, test, vi } from 'vitest'
import { standingOf, standingsOf } from '../../src/cli/standing.js'
import type { RunRow, Store } from '../../src/engine/store.js'
import { memoryStore } from '../../src/stores/memory.js'
import { deferred, solo } from '../engine/opened.js'

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

test('whoever looks at runs is shown them also where the store can not be written', async () => {
  const inner = memoryStore()
  const held = deferred()
  const work = graph('work')
    .step('held', { run: () => held.promise })
    .output()
  await using tutti = await open({ store: { ...inner, close: async () => {} } })
  await tutti.start(work, { id: 'run' })
  const { row } = (await inner.load('run')) as { readonly row: RunRow }
  const locked: Store = { ...inner, join: () => Promise.reject(new TuttiError('STORE_LOCKED', 'the store is locked')) }
  const expected = { id: 'run', status: 'running', waitsFor: [] }
  expect(await standingOf(locked, row)).toMatchObject(expected)
  expect(await standingsOf(locked, [row], { alone: false })).toMatchObject([expected])
  held.resolve()
})

test('a run that nobody has until it is due waits for no process where somebody is there who will take it', async () => {
  const inner = memoryStore()
  const store: Store = { ...inner, close: async () => {} }
  const sleeping = graph('sleeping')
    .step('nap', { run: ({ sleep }) => sleep(3_600_000) })
    .output()
  const failing = graph('failing')
    .step('again', {
      retry: { attempts: 2, backoffMs: 3_600_000, maxBackoffMs: 3_600_000 },
      run: () => {
        throw new Error('not yet')
      },
    })
    .output()
  const unowned = async () => (await inner.list({ limit: 1_000 })).filter(({ worker }) => worker === null)
  const standings = async () => standingsOf(inner, await unowned(), { alone: true })
  const first = await open({ store, definitions: [failing] })
  const run = await first.start(failing, { id: 'failing' })
  for await (const { type } of run.events()) if (type === 'turn.failed') break
  await first.close()
  expect(await standings()).toMatchObject([{ id: 'failing', waitsFor: ['timer', 'process'] }])
  const second = await open({ store, definitions: [failing, sleeping] })
  // More than are kept in memory: the others are let go.
  await Promise.all(Array.from({ length: 330 }, () => second.start(sleeping)))
  await vi.waitFor(async () => expect((await unowned()).length).toBeGreaterThan(50))
  const letGo = await standings()
  expect(letGo.map(({ id }) => id)).toContain('failing')
  expect(letGo.every(({ waitsFor }) => waitsFor.join() === 'timer')).toBe(true)
  await second.close()
  expect((await standings()).every(({ waitsFor }) => waitsFor.join() === 'timer,process')).toBe(true)
})

test('a run whose agent works again waits for a process, also where one is there that leaves it alone', async () => {
  const inner = memoryStore()
  const store: Store = { ...inner, close: async () => {} }
  const waitsFor = async () => (await standingOf(inner, (await inner.load('run'))?.row as RunRow)).waitsFor
  const work = solo((turn) => turn.finish(null))
  await using other = await open({ store })
  const first = await open({ store, definitions: [work] })
  await other.agents.pause('A')
  await first.start(work, { id: 'run' })
  await vi.waitFor(async () => expect((await inner.load('run'))?.row.waits).toEqual(['agent']))
  await first.close()
  expect(await waitsFor()).toEqual(['agent'])
  await other.agents.resume('A')
  expect(await waitsFor()).toEqual(['agent', 'process'])
  await using second = await open({ store, definitions: [work] })
  await (await second.run('run')).result()
  expect(await waitsFor()).toEqual([])
})
