import { pbkdf2 } from 'node:crypto'
import type { Definition } from 'tutti'
import { graph, topology } from 'tutti'
import { explore } from 'tutti/testing'
import { describe, expect, test } from 'vitest'
import { settingFor } from '../../src/testing/explore/explore.js'
import { following } from '../../src/testing/explore/following.js'
import { play } from '../../src/testing/explore/stage.js'

/** Work that goes around the scheduler and comes to its end. */
const real = () => new Promise<string>((resolve) => setImmediate(() => resolve('done')))
const never = () => new Promise<string>(() => {})
const timeoutMs = 60_000

const ofAgent = (work: () => Promise<string>) => () =>
  topology({
    name: 'agent',
    flows: ['Start -> A -> End'],
    agents: { A: { timeoutMs, act: async (turn) => turn.finish(await work()) } },
  })

const ofTurnStep = (work: () => Promise<string>) => () =>
  topology({
    name: 'turn-step',
    flows: ['Start -> A -> End'],
    agents: { A: async (turn) => turn.finish(await turn.step('x', work, { timeoutMs })) },
  })

const ofGraphStep = (work: () => Promise<string>) => () => graph('graph').step('a', { timeoutMs, run: work }).output()

/** Two that are slow, and a join that does not wait for ever. */
const ofJoin = (work: () => Promise<string>) => () =>
  topology({
    name: 'join',
    flows: ['Start -> H -> End', 'H <-> A | B'],
    agents: {
      H: {
        act: {
          request: (turn) => turn.fork(['A', 'B'], { join: { policy: { quorum: 2 }, timeoutMs, insufficient: 'fail' } }),
          join: (turn, { values }) => turn.finish(values[0]),
        },
      },
      A: { timeoutMs: timeoutMs / 2, act: async (turn) => turn.reply(await work()) },
      B: async (turn) => turn.reply(await work()),
    },
  })

const ofSleepBeside = (work: () => Promise<string>) => () =>
  topology({
    name: 'beside',
    flows: ['Start -> A -> End'],
    agents: {
      A: async (turn) => turn.finish(await Promise.race([turn.step('x', work), turn.sleep(timeoutMs).then(() => 'late')])),
    },
  })

const kinds: readonly (readonly [string, (work: () => Promise<string>) => () => Definition<any>])[] = [
  ['an attempt of an agent', ofAgent],
  ['a step of a turn', ofTurnStep],
  ['a step of a graph', ofGraphStep],
  ['a join', ofJoin],
  ['a sleep beside a step', ofSleepBeside],
]

describe('what is at work is waited for before its time is over', () => {
  for (const [name, make] of kinds)
    test(name, async () => {
      const checked = await explore(make(real), { schedules: 20 })
      expect(checked, checked.text()).toMatchObject({ independent: true, exhaustive: false, violations: [] })
      for (const { result } of checked.outcomes) expect(result.status).toBe('succeeded')
      expect(JSON.stringify(checked.outcomes.map(({ result }) => result))).not.toMatch(/TIMEOUT|late/)
      expect(checked.choices.filter(({ kind }) => kind === 'timeout')).toEqual([])
      expect(checked.notes.join()).toContain('waited for something that goes around the scheduler')
    })
})

test('in which order work from outside comes back does not make a schedule another one', async () => {
  let played = 0
  const definition = () => {
    // Who is first changes from one schedule to the next.
    const isTurned = played++ % 2 === 1
    const waiting: (() => void)[] = []
    const together = () =>
      new Promise<void>((resolve) => {
        waiting.push(resolve)
        if (waiting.length === 2) setImmediate(() => (isTurned ? waiting.reverse() : waiting).forEach((go) => go()))
      })
    const act = async (turn: any) => {
      await together()
      return turn.reply(turn.agent)
    }
    return topology({
      name: 'chance',
      flows: ['Start -> H -> End', 'H <-> A | B'],
      agents: {
        H: { act: { request: (turn) => turn.fork(['A', 'B']), join: (turn, { values }) => turn.finish(values) } },
        A: { act },
        B: { act },
      },
    })
  }
  const checked = await explore(definition, { schedules: 2 })
  expect(checked, checked.text()).toMatchObject({ independent: true, violations: [] })
})

test('a step that is at work is waited for, whatever of its turn has come already', async () => {
  let played = 0
  const definition = () => {
    const isTurned = played++ % 2 === 1
    const soon = real
    const later = async () => {
      for (let times = 0; times < 20; times++) await real()
      return 'done'
    }
    return topology({
      name: 'both',
      flows: ['Start -> A -> End'],
      agents: {
        A: async (turn) => {
          await Promise.all([turn.step('x', isTurned ? soon : later), turn.step('y', isTurned ? later : soon)])
          return turn.finish('done')
        },
      },
    })
  }
  const checked = await explore(definition, { schedules: 2 })
  expect(checked, checked.text()).toMatchObject({ independent: true, violations: [] })
})

test('what a turn has said stays in its order while something else is waited for: a step begins before it ends', async () => {
  const definition = () =>
    topology({
      name: 'said',
      flows: ['Start -> H -> End', 'H <-> A | B'],
      agents: {
        H: { act: { request: (turn) => turn.fork(['A', 'B']), join: (turn, { values }) => turn.finish(values) } },
        A: async (turn) => turn.reply(await Promise.race([turn.step('x', async () => 'done'), turn.sleep(timeoutMs)])),
        B: async (turn) => turn.reply(await real()),
      },
    })
  const { taken, away } = await play(settingFor(definition, {}), following([]))
  const ofStep = taken
    .flatMap(({ option }) => option)
    .flatMap(({ command }) => (command?.type.startsWith('activity') ? [command.type] : []))
  expect({ away, ofStep }).toEqual({ away: ['B'], ofStep: ['activity.start', 'activity.complete'] })
})

describe('what is under way is not given up', () => {
  const inTime = (work: () => Promise<void>) => () =>
    topology({
      name: 'under-way',
      flows: ['Start -> A -> End'],
      agents: { A: { timeoutMs, act: async (turn) => turn.finish(await work()) } },
    })
  const after = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms))

  test('because code of its own has taken long', async () => {
    const busy = async () => {
      await real()
      for (const until = performance.now() + 40; performance.now() < until; );
      await real()
    }
    const checked = await explore(inTime(busy), { schedules: 2 })
    expect(checked.outcomes, checked.text()).toMatchObject([{ result: { status: 'succeeded' } }])
  })

  test('because nobody can see it', async () => {
    const hidden = () => new Promise<void>((resolve) => pbkdf2('a', 'b', 100_000, 64, 'sha512', () => resolve()))
    const checked = await explore(inTime(hidden), { schedules: 2 })
    expect(checked, checked.text()).toMatchObject({ independent: true, outcomes: [{ result: { status: 'succeeded' } }] })
  })

  test('because something that an earlier schedule has left behind has come to its end', async () => {
    const leaving = async () => {
      await after(60)
      await Promise.race([after(1), after(40)])
    }
    const checked = await explore(inTime(leaving), { schedules: 2 })
    expect(checked, checked.text()).toMatchObject({ independent: true, outcomes: [{ result: { status: 'succeeded' } }] })
  })
})

describe('what never ends is ended by its deadline', () => {
  for (const [name, make] of kinds)
    test(name, async () => {
      const checked = await explore(make(never), { schedules: 2, patienceMs: 5 })
      expect(checked.outcomes.length, checked.text()).toBeGreaterThan(0)
      expect(JSON.stringify(checked.outcomes.map(({ result }) => result))).toMatch(/TIMEOUT|JOIN_INSUFFICIENT|late/)
    })
})

test('a step that waits to be tried again sleeps, and is not waited for', async () => {
  const flaky = () => {
    let tries = 0
    return topology({
      name: 'flaky',
      flows: ['Start -> A -> End'],
      agents: {
        A: async (turn) =>
          turn.finish(
            await turn.step(
              'x',
              () => {
                if (++tries < 3) throw new Error('not yet')
                return 'done'
              },
              { timeoutMs, retry: { attempts: 3, backoffMs: 1_000 } },
            ),
          ),
      },
    })
  }
  const checked = await explore(flaky, { schedules: 'all' })
  expect(checked, checked.text()).toMatchObject({ independent: true, exhaustive: true, notes: [] })
})

test("that it could take too long is shown by the fault 'timeout'", async () => {
  const definition = () =>
    topology({
      name: 'slow',
      flows: ['Start -> A -> End'],
      agents: { A: { timeoutMs, act: async (turn) => turn.finish(await turn.step('x', real)) } },
    })
  const checked = await explore(definition, { faults: ['timeout'], schedules: 50 })
  const seen = checked.outcomes.map(({ result }) => result.status).sort()
  expect(seen, checked.text()).toEqual(['failed', 'succeeded'])
})
