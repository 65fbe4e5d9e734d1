/** Which turns meet an agent that may not act is a matter of order: a choice, and for equal choices everything is the same. */
import type { Run, Tutti } from 'tutti'
import { graph, topology } from 'tutti'
import { explore } from 'tutti/testing'
import { describe, expect, test, vi } from 'vitest'
import { opened, rest } from '../engine/opened.js'
import { Random } from '../reference/random.js'
import { Folder } from '../stores/folder.js'

// Many schedules are a few seconds, and more on a machine that is busy.
vi.setConfig({ testTimeout: 90_000 })

const hub = (count: number, join: unknown) => ({
  act: {
    request: (turn: any) =>
      turn.fork(
        Array.from({ length: count }, (_, at) => ({ to: 'W', request: at })),
        { join },
      ),
    join: (turn: any, { slots }: any) => turn.finish(slots.map(({ status, error, value }: any) => error?.message ?? value ?? status)),
  },
})

/** A hub whose workers fail, each in its own words, and the rest of whom their breaker stops; the last of four is well. */
const broken =
  (count: number, options: Readonly<Record<string, unknown>> = {}, join: unknown = 'settled') =>
  () =>
    topology({
      name: 'broken',
      flows: ['Start -> H -> End', 'H <-> W'],
      agents: {
        H: hub(count, join),
        W: {
          breaker: { failures: 2, probeMs: 60_000 },
          act: async (turn: any) => {
            const asked = await turn.step('look', () => turn.request)
            if (asked === 3) return turn.reply('well')
            throw new Error(`${asked} fails`)
          },
          ...options,
        },
      },
    } as never)

const within = () =>
  graph('around')
    .step('k', { input: () => 1, run: broken(3)() })
    .output()

describe('turns that a breaker stops are a choice, and no race', () => {
  test.each([
    ['in one run', broken(3), 'r.0/1'],
    ['with retries, which it stops as well', broken(2, { retry: { attempts: 3 } }), 'r.0/1'],
    ['under a join that fails', broken(3, {}, 'all'), 'r.0/1'],
    ['under a join that does not wait', broken(4, {}, { policy: 'any', insufficient: 'resume' }), 'r.3/1'],
    ['in a child run', within, 'k r.0/1'],
  ])('%s', async (_, definition, at) => {
    const checked = await explore(definition, { schedules: 50 })
    expect(checked.independent, checked.text()).toBe(true)
    expect(checked.distinct).toBeGreaterThan(1)
    expect(checked.choices).toContainEqual(expect.objectContaining({ at, kind: 'stop', agent: 'W' }))
    expect(checked.text()).toMatch(/the stop of W at (k )?r\.\d\/1, by attempt [12] and failed \(\d+\)/)
  })

  test('and where its turns wait, none is: it is nothing but a delay', async () => {
    const checked = await explore(broken(3, { whenStopped: 'wait', breaker: { failures: 2, probeMs: 10 } }), { schedules: 50 })
    expect(checked, checked.text()).toMatchObject({ independent: true, distinct: 1, choices: [] })
  })
})

/** Workers go on as `order` says; in between, somebody stops their agent, terminates it or starts it again. */
async function played(tutti: Tutti, id: string, order: Random): Promise<Run> {
  const waiting: (() => void)[] = []
  const passed = (): Promise<void> => new Promise((go) => waiting.push(go))
  const definition = topology({
    name: 'people',
    flows: ['Start -> H -> End', 'H <-> W', 'W -> X -> H'],
    agents: {
      H: hub(3, 'settled'),
      W: async (turn: any) => {
        await passed()
        return turn.invoke('X', turn.request)
      },
      X: async (turn: any) => {
        await passed()
        return turn.reply(`x ${turn.request}`)
      },
    },
  } as never)
  const run = await tutti.start(definition, { id })
  const calls = [() => tutti.agents.stop('X'), () => tutti.agents.terminate('X')]
  for (let ended = false; !ended; ended = (await run.summary()).status !== 'running') {
    await rest(15)
    const call = order.chance(0.3) ? calls.shift() : undefined
    if (call !== undefined) await call()
    else waiting.splice(order.below(waiting.length), 1)[0]?.()
    await rest(15)
  }
  return run
}

/** As many runs, each on a store of its own: the report of each set of choices, and how many there were to be compared with another. */
async function reportsOf(runs: number, store: () => string): Promise<{ choices: number; compared: number }> {
  const first = new Map<string, string>()
  for (let seed = 0; seed < runs; seed++) {
    await using tutti = await opened({ store: store() })
    const { measured: _, ...report } = await (await played(tutti, 'same', new Random(`people ${seed}`))).report()
    const choices = JSON.stringify(report.choices)
    const text = JSON.stringify(report)
    first.set(choices, first.get(choices) ?? text)
    expect(text).toBe(first.get(choices))
  }
  return { choices: first.size, compared: runs - first.size }
}

describe('property: whenever people stop an agent, for equal choices a report is the same bytes', () => {
  test('in memory', async () => {
    const { choices, compared } = await reportsOf(80, () => 'memory:')
    expect(choices).toBeGreaterThan(5)
    expect(compared).toBeGreaterThan(20)
  })

  test('on SQLite', async () => {
    using folder = new Folder()
    const { compared } = await reportsOf(20, () => folder.file())
    expect(compared).toBeGreaterThan(3)
  })
})
