import { graph, open, type Store, type Topology, topology, TuttiError } from 'tutti'
import { expect, test } from 'vitest'
import { memoryStore } from '../../src/stores/memory.js'
import { opened, solo } from './opened.js'

/** A store that stands still when it is told to, and the way on. */
function stalling(): { readonly store: Store; readonly stall: () => void; readonly goOn: () => void } {
  const inner = memoryStore()
  let stalled: Promise<void> | null = null
  let goOn = (): void => {}
  const store: Store = {
    ...inner,
    commit: async (batch) => {
      if (stalled !== null) await stalled
      return inner.commit(batch)
    },
  }
  const stall = (): void => {
    stalled = new Promise((resolve) => {
      goOn = () => {
        stalled = null
        resolve()
      }
    })
  }
  return { store, stall, goOn: () => goOn() }
}

/** A number that does not change any more. */
async function rested(count: () => number): Promise<number> {
  for (let before = -1; ; ) {
    if (count() === before) return before
    before = count()
    await new Promise((resolve) => setTimeout(resolve, 200))
  }
}

type Work = (step: (name: string, run: () => string) => Promise<string>) => Promise<number>

const wide = {
  'the branches of a fork': (width: number, work: Work) =>
    topology({
      name: 'wide',
      flows: ['Start -> H -> End', 'H <-> W'],
      agents: {
        H: {
          act: {
            request: (turn) => turn.fork(Array.from({ length: width }, () => 'W')),
            join: (turn, join) => turn.finish(join.values.length),
          },
        },
        W: async (turn) => turn.reply(await work(turn.step)),
      },
    }),
  'the items of a step': (width: number, work: Work) =>
    graph('wide')
      .step('each', { each: () => Array.from({ length: width }, (_, item) => item), run: ({ step }) => work(step) })
      .output(({ steps }) => steps.each.length),
  'the steps of a turn': (width: number, work: Work) =>
    topology({
      name: 'wide',
      flows: ['Start -> A -> End'],
      agents: {
        A: async (turn) => {
          const all = Array.from({ length: width }, (_, item) => work((name, run) => turn.step(name, run, { key: `${item}` })))
          return turn.finish((await Promise.all(all)).length)
        },
      },
    }),
}

test.each([
  ['the branches of a fork', 6_000, 10, 4_000],
  ['the items of a step', 6_000, 10, 4_000],
  ['the steps of a turn', 6_000, 10, 4_000],
  ['the branches of a fork', 2_000, 30_000, 560],
  ['the steps of a turn', 2_000, 30_000, 560],
] as const)(
  '%s, %i of them with results of %i characters, begin only while what they come to has room',
  async (what, width, length, most) => {
    const { store, stall, goOn } = stalling()
    let performed = 0
    const definition = wide[what](width, async (step) => {
      await step('s', () => {
        if (++performed === 50) stall()
        return 'x'.repeat(length)
      })
      return 1
    })
    await using tutti = await open({ store, invariants: false })
    const run = await tutti.start(definition as Topology<unknown, unknown>)
    await expect.poll(() => performed, { timeout: 20_000 }).toBeGreaterThanOrEqual(50)
    // Those that have begun by then come to an end: what is let go at once, no more.
    expect(await rested(() => performed)).toBeLessThan(most + 600)
    goOn()
    expect(await run.output()).toBe(width)
    expect(performed).toBe(width)
  },
  60_000,
)

test('runs that are started at once wait for room, each gets it, and none is lost', async () => {
  const { store, stall, goOn } = stalling()
  const definition = topology({
    name: 'given',
    flows: ['Start -> A -> End'],
    agents: { A: async (turn) => turn.finish((turn.request as string).length) },
  })
  let most = 0
  const weighed: Store = {
    ...store,
    commit: (batch) => {
      most = Math.max(most, JSON.stringify(batch).length)
      return store.commit(batch)
    },
  }
  await using tutti = await open({ store: weighed, definitions: [definition], invariants: false })
  stall()
  const runs = Array.from({ length: 120 }, async (_, n) => {
    const run = await tutti.start('given', { input: `${n}`.padEnd(500_000, 'x') })
    return run.output()
  })
  await new Promise((resolve) => setTimeout(resolve, 100))
  goOn()
  expect(await Promise.all(runs)).toEqual(runs.map(() => 500_000))
  // All of it together has 60 MB.
  expect(most).toBeGreaterThan(10_000_000)
  expect(most).toBeLessThan(20_000_000)
}, 60_000)

test('starts that wait for room hear of an outage like all others', async () => {
  const inner = memoryStore()
  let isOut = false
  const store: Store = {
    ...inner,
    commit: async (batch) => {
      if (isOut) throw new TuttiError('STORE_UNAVAILABLE', 'out of reach')
      return inner.commit(batch)
    },
    load: async (...asked) => {
      if (isOut) throw new TuttiError('STORE_UNAVAILABLE', 'out of reach')
      return inner.load(...asked)
    },
  }
  const definition = topology({ name: 'given', flows: ['Start -> A -> End'], agents: { A: async (turn) => turn.finish(1) } })
  await using tutti = await open({ store, definitions: [definition], onLog: () => {} })
  await tutti.execute(definition)
  isOut = true
  const starts = Array.from({ length: 30 }, (_, n) => tutti.start('given', { input: `${n}`.padEnd(900_000, 'x') }))
  const waited = new Promise<never>((_, reject) => setTimeout(() => reject(new Error('some hear nothing')), 5_000))
  const outcomes = await Promise.race([Promise.allSettled(starts), waited]).finally(() => {
    isOut = false
  })
  expect(outcomes.map((outcome) => outcome.status === 'rejected' && TuttiError.is(outcome.reason, 'STORE_UNAVAILABLE'))).toEqual(
    starts.map(() => true),
  )
}, 30_000)

test('who asks while the lock of the store is waited for is refused with those who came first, and does not wait as long again', async () => {
  const inner = memoryStore()
  let isLocked = false
  let refuseFirst = (): void => {}
  let refuseRest = (): void => {}
  const first = new Promise<void>((resolve) => (refuseFirst = resolve))
  const rest = new Promise<void>((resolve) => (refuseRest = resolve))
  let commits = 0
  const store: Store = {
    ...inner,
    commit: async (batch) => {
      if (!isLocked) return inner.commit(batch)
      await (commits++ === 0 ? first : rest)
      throw new TuttiError('STORE_LOCKED', 'somebody has the lock')
    },
  }
  const asking = topology({ name: 'asking', flows: ['Start -> A -> End', 'A -> User'], agents: { A: (turn) => turn.ask('?') } })
  await using tutti = await open({ store, graceMs: 100 })
  const run = await tutti.start(asking)
  while ((await run.asks()).length === 0) await new Promise((resolve) => setTimeout(resolve, 1))
  isLocked = true
  const codeOf = (call: Promise<unknown>): Promise<unknown> => call.catch((error: TuttiError) => error.code)
  const starting = codeOf(tutti.start(asking))
  while (commits === 0) await new Promise((resolve) => setTimeout(resolve, 1))
  const pausing = codeOf(run.pause())
  await new Promise((resolve) => setTimeout(resolve, 5))
  refuseFirst()
  const late = new Promise((resolve) => setTimeout(resolve, 2_000, 'still waits'))
  expect(await Promise.race([Promise.all([starting, pausing]), late])).toEqual(['STORE_LOCKED', 'STORE_LOCKED'])
  expect(commits).toBe(1)
  isLocked = false
  refuseRest()
  await run.pause()
  expect(await run.status()).toBe('paused')
})

test('where many runs are started at once, those under way go on before all of them have begun', async () => {
  await using tutti = await opened()
  const order: string[] = []
  const short = solo(async (turn) => {
    order.push('begun')
    for (let index = 0; index < 3; index++) await turn.step('s', () => index, { key: `s${index}` })
    order.push('ended')
    return turn.finish()
  })
  await Promise.all(Array.from({ length: 1_000 }, () => tutti.execute(short)))
  expect(order.filter((what) => what === 'ended')).toHaveLength(1_000)
  expect(order.slice(0, order.indexOf('ended')).length).toBeLessThan(500)
})

test('runs that never rest keep no other from being started', async () => {
  await using tutti = await opened()
  let isOver = false
  const restless = solo(async (turn) => {
    for (let index = 0; !isOver; index++) await turn.step('s', () => index, { key: `s${index}` })
    return turn.finish()
  })
  const many = await Promise.all(Array.from({ length: 300 }, () => tutti.start(restless)))
  expect(await tutti.execute(solo((turn) => turn.finish('at last'), { name: 'late' }))).toBe('at last')
  isOver = true
  for (const run of many) expect(await run.result()).toMatchObject({ status: 'succeeded' })
})
