/** A hundred steps side by side, let go in an order that a seed chooses; for a few orders in the tests and for many in a soak. */
import { expect } from 'vitest'
import { type GraphBuilder, graph } from 'tutti'
import { randomOf, type Schedule, Stage } from '../scenarios/adapter.js'

/** Plays `width` parallel steps and one that gathers them in each of the orders; every order must lose nothing and report the same. */
export async function playWide(options: {
  width: number
  orders: number
  from?: number
}): Promise<{ reports: Set<string>; played: number }> {
  const { width, orders, from = 1 } = options
  const reports = new Set<string>()
  for (let seed = from; seed < from + orders; seed++) reports.add(await oneOrder(width, seed))
  return { reports, played: orders }
}

/** Gives the report of one order, without what was measured. */
async function oneOrder(width: number, seed: number): Promise<string> {
  const ids = Array.from({ length: width }, (_, at) => `s${at}`)
  await using stage = await Stage.open()
  let wide = graph('wide') as unknown as GraphBuilder<unknown, any>
  for (const [at, id] of ids.entries()) wide = wide.step(id, { run: (ctx) => stage.held(id, ctx, { of: id, square: at * at }) })
  const definition = wide
    .step('gathered', { after: ids, run: ({ steps }) => Object.entries(steps as Record<string, { square: number }>) })
    .output(({ steps }) => steps as Record<string, unknown>)
  const run = await stage.tutti.start(definition, { id: 'W' })
  const released: string[] = []
  await stage.drain(shuffledBy(seed), {
    outcome: (effect) => {
      released.push(effect.name)
      return undefined
    },
  })
  const expected = Object.fromEntries(ids.map((id, at) => [id, { of: id, square: at * at }]))
  expect(new Set(released)).toEqual(new Set(ids))
  expect(await run.output()).toEqual({ ...expected, gathered: Object.entries(expected) })
  expect(await stage.quiesce()).toEqual({ held: [], overrun: [], sleeping: 0 })
  const { measured: _, ...report } = await run.report()
  expect(report.steps.map(({ id, status }) => `${id} ${status}`)).toEqual([...ids, 'gathered'].map((id) => `${id} succeeded`))
  expect(report.agents).toEqual([...ids, 'gathered'])
  expect(report.interactions.filter(({ to }) => to === 'gathered').map(({ from }) => from)).toEqual(ids)
  return JSON.stringify(report)
}

function shuffledBy(seed: number): Schedule {
  const random = randomOf(seed)
  return { name: `of seed ${seed}`, pick: (options) => options[Math.floor(random() * options.length)] as (typeof options)[number] }
}
