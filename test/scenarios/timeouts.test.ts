import { agent, graph, type Run, tool, topology } from 'tutti'
import { script } from 'tutti/testing'
import { expect } from 'vitest'
import { z } from 'zod'
import { type AnyTurn, everyOrder, nothingLeft, scenario, type Schedule, type Stage } from './adapter.js'

/** What a held effect gives, and what is made of it if it runs out of time. */
const inTime = (stage: Stage, turn: AnyTurn, name: string): Promise<unknown> =>
  turn
    .step(name, (ctx) => stage.held(name, ctx, name), { timeoutMs: 10 })
    .catch((error: unknown) => `no ${name}: ${(error as { code?: string }).code}`)

const both = (stage: Stage, turn: AnyTurn, who: unknown): Promise<unknown[]> =>
  Promise.all([inTime(stage, turn, `x${who}`), inTime(stage, turn, `y${who}`)])

const shapes = {
  fork: (stage: Stage) =>
    topology({
      name: 'fork',
      flows: ['Start -> H -> End', 'H <-> W'],
      agents: [
        agent({
          name: 'H',
          act: {
            request: (turn) => turn.fork([1, 2].map((request) => ({ to: 'W', request }))),
            join: (turn, join) => turn.finish(join.values),
          },
        }),
        agent({ name: 'W', act: async (turn) => turn.reply(await both(stage, turn as AnyTurn, turn.request)) }),
      ],
    }),
  each: (stage: Stage) =>
    graph('each')
      .step('w', { each: () => [1, 2], run: (context) => both(stage, context as never, context.item) })
      .output(),
}

/** Where the steps of each are. */
const branches: Readonly<Record<string, readonly string[]>> = { fork: ['r.0', 'r.1'], each: ['r.0', 'r.1'] }

async function unmeasured(run: Run): Promise<{ text: string; choices: unknown }> {
  const { measured: _, ...report } = await run.report()
  return { text: JSON.stringify(report), choices: report.choices }
}

/** Releases some of what is held, in the order of the schedule, and lets the time of the others pass; gives which these were. */
async function play(stage: Stage, schedule: Schedule, count: number): Promise<string[]> {
  await stage.quiesce()
  for (let done = 0; done < count; done++) {
    stage.release(schedule.pick(stage.waiting(), ({ id }) => id))
    await stage.quiesce()
  }
  const late = stage.waiting().map(({ name }) => name)
  await stage.advance(10)
  return late
}

for (const [shape, make] of Object.entries(shapes))
  scenario(
    `E6 which steps of a ${shape} ran out of time is on record as choices, and for these the report is the same in every order`,
    async (raise) => {
      const reports = new Map<string, string>()
      for (let count = 0; count <= 4; count++)
        await everyOrder(count, async (schedule) => {
          await using stage = await raise()
          const run = await stage.tutti.start(make(stage), { id: 'R' })
          const late = await play(stage, schedule, count)
          const { text, choices } = await unmeasured(run)
          const at = (name: string): string => `${branches[shape]?.[Number(name[1]) - 1]}/1/1/${name}#0`
          expect(choices).toEqual(late.map((name) => ({ at: at(name), kind: 'timeout', decidedBy: [1] })))
          const key = JSON.stringify(choices)
          expect(text).toBe(reports.get(key) ?? text)
          reports.set(key, text)
          expect(await stage.quiesce()).toEqual(nothingLeft)
        })
      expect(new Set(reports.values()).size).toBe(16)
    },
  )

scenario(
  'E6 a step that is tried again says which of its attempts ran out of time, also if it succeeds, and in which attempt of its turn',
  async (raise) => {
    const found: unknown[] = []
    for (const lates of [0, 1, 2, 3, 4]) {
      await using stage = await raise()
      const definition = topology({
        name: 'retried',
        flows: ['Start -> A -> End'],
        agents: {
          A: {
            retry: { attempts: 2, backoffMs: 0 },
            act: async (turn) => {
              const options = { timeoutMs: 10, retry: { attempts: 2, backoffMs: 0 } }
              return turn.finish(await turn.step('s', (ctx) => stage.held('s', ctx, `in attempt ${ctx.attempt}`), options))
            },
          },
        },
      })
      const run = await stage.tutti.start(definition)
      await stage.quiesce()
      for (let late = 0; late < lates; late++) await stage.advance(10)
      for (const effect of stage.waiting()) stage.release(effect)
      await stage.quiesce()
      const { status, output, choices } = await run.report()
      found.push([status, output, choices.map(({ at, decidedBy }) => [at, ...decidedBy])])
    }
    expect(found).toEqual([
      ['succeeded', 'in attempt 1', []],
      ['succeeded', 'in attempt 2', [['r/1/1/s#0', 1]]],
      ['succeeded', 'in attempt 1', [['r/1/1/s#0', 1, 2]]],
      [
        'succeeded',
        'in attempt 2',
        [
          ['r/1/1/s#0', 1, 2],
          ['r/1/2/s#0', 1],
        ],
      ],
      [
        'failed',
        undefined,
        [
          ['r/1/1/s#0', 1, 2],
          ['r/1/2/s#0', 1, 2],
        ],
      ],
    ])
  },
)

scenario('E6 a tool that ran out of time is a choice, and one that can be undone and succeeded within its grace is none', async (raise) => {
  for (const canBeUndone of [false, true])
    for (const when of ['in time', 'late', 'never']) {
      const models = script({ A: ({ call }) => (call === 0 ? { tool: 'pay', input: {} } : { finish: 'done' }) })
      await using stage = await raise({ models, graceMs: 100 })
      const pay = tool({
        description: 'Pays.',
        input: z.object({}),
        timeoutMs: 10,
        run: (_, ctx) => stage.held('pay', ctx, 'paid', { deaf: true }),
        ...(canBeUndone && { compensate: () => {} }),
      })
      const run = await stage.tutti.start(topology({ name: 'shop', flows: ['Start -> A -> End'], agents: { A: { tools: { pay } } } }))
      await stage.quiesce()
      if (when !== 'in time') await stage.advance(10)
      if (when !== 'never') stage.release('pay')
      await stage.advance(200)
      const { status, choices } = await run.report()
      expect(status).toBe('succeeded')
      const isIn = when === 'in time' || (when === 'late' && canBeUndone)
      expect(choices).toEqual(isIn ? [] : [{ at: 'r/1/1/tool/0/0', kind: 'timeout', decidedBy: [1] }])
    }
})
