import { graph } from 'tutti'
import { expect, test } from 'vitest'
import { everyOrder, nothingLeft, scenario } from '../scenarios/adapter.js'
import { playWide } from './wide.js'

const orders = process.env['TUTTI_SOAK'] === 'on' ? 1_000 : 4

test('of a hundred parallel steps none is missing, in whatever order they end, and the report is the same bytes', {
  timeout: 20_000 + 100 * orders,
}, async () => {
  const { reports, played } = await playWide({ width: 100, orders })
  expect(played).toBe(orders)
  expect(reports.size).toBe(1)
})

scenario('B1 what parallel steps write under keys of their own is all there, with the same values in every order', async (raise) => {
  const reports = new Set<string>()
  const orders = await everyOrder(4, async (schedule) => {
    await using stage = await raise()
    const definition = graph('keys')
      .step('a', { run: (ctx) => stage.held('a', ctx, { a: 1 }) })
      .step('b', { run: (ctx) => stage.held('b', ctx, { b: 2 }) })
      .step('c', { run: (ctx) => stage.held('c', ctx, { c: 3 }) })
      .step('d', { run: (ctx) => stage.held('d', ctx, { d: 4 }) })
      .step('merged', { after: ['a', 'b', 'c', 'd'], run: ({ steps }) => ({ ...steps.a, ...steps.b, ...steps.c, ...steps.d }) })
      .output(({ steps }) => steps.merged)
    const run = await stage.tutti.start(definition, { id: 'R' })
    await stage.drain(schedule)
    expect(await run.output()).toEqual({ a: 1, b: 2, c: 3, d: 4 })
    const { measured: _, ...report } = await run.report()
    reports.add(JSON.stringify(report))
    expect(await stage.quiesce()).toEqual(nothingLeft)
  })
  expect(orders).toBe(24)
  expect(reports.size).toBe(1)
})

scenario('B2 what ran in sequence and what ran beside it are all there, in declared order, whoever ended first', async (raise) => {
  const outputs = new Set<string>()
  // s1 alone, then a1, a2 and s2 in every order: s2 does not wait for the two.
  const orders = await everyOrder(4, async (schedule) => {
    await using stage = await raise()
    const definition = graph('mixed')
      .step('s1', { run: (ctx) => stage.held('s1', ctx, 's1') })
      .step('a1', { after: ['s1'], run: (ctx) => stage.held('a1', ctx, 'a1') })
      .step('a2', { after: ['s1'], run: (ctx) => stage.held('a2', ctx, 'a2') })
      .step('s2', { after: ['s1'], run: (ctx) => stage.held('s2', ctx, 's2') })
      .step('all', { after: ['s1', 'a1', 'a2', 's2'], run: ({ steps }) => Object.entries(steps) })
      .output()
    const run = await stage.tutti.start(definition)
    await stage.drain(schedule)
    outputs.add(JSON.stringify(await run.output()))
  })
  expect(orders).toBe(6)
  const all = { s1: 's1', a1: 'a1', a2: 'a2', s2: 's2' }
  expect([...outputs]).toEqual([JSON.stringify({ ...all, all: Object.entries(all) })])
})
