import { graph, type OpenOptions, resource } from 'tutti'
import { virtualClock } from 'tutti/testing'
import { expect, test } from 'vitest'
import { z } from 'zod'
import { memoryStore } from '../../src/stores/memory.js'
import { deferred, forksEach, hub, opened, rest, solo, untilAborted } from './opened.js'

const bench = resource<string>('bench')

/** Workers of which only one has room at a time. */
const narrow = [
  { of: "its agent's concurrency", agent: { concurrency: 1 }, engine: {} },
  { of: "the engine's concurrency", agent: {}, engine: { concurrency: 1 } },
]

for (const { of, agent, engine } of narrow)
  test(`a turn that waits for room does not begin while its run is paused, and begins when it is resumed: ${of}`, async () => {
    await using tutti = await opened(engine)
    const held = deferred()
    const begun: unknown[] = []
    const work = async (turn: { request: unknown; reply(value: unknown): unknown }) => {
      begun.push(turn.request)
      await held.promise
      return turn.reply(turn.request)
    }
    const run = await tutti.start(hub(forksEach([1, 2, 3]), { ...agent, act: work }))
    await rest()
    await run.pause()
    held.resolve()
    await rest()
    expect(begun).toEqual([1])
    expect(await run.status()).toBe('paused')
    await run.resume()
    expect(await run.output()).toEqual([1, 2, 3])
    expect(begun).toEqual([1, 2, 3])
  })

/** A definition whose run `first` is held up, and the runs that have begun. */
function holding() {
  const held = deferred()
  const begun: string[] = []
  const definition = solo(async (turn) => {
    begun.push(turn.runId)
    if (turn.runId === 'first') await held.promise
    return turn.finish(turn.runId)
  })
  return { held, begun, definition }
}

test('a run that is paused before it has room gives its room to others, and does not begin before it is resumed', async () => {
  await using tutti = await opened({ concurrency: 1 })
  const { held, begun, definition } = holding()
  await tutti.start(definition, { id: 'first' })
  const second = await tutti.start(definition, { id: 'second' })
  const third = await tutti.start(definition, { id: 'third' })
  await rest()
  await second.pause()
  held.resolve()
  expect(await third.output()).toBe('third')
  await rest()
  expect(begun).toEqual(['first', 'third'])
  await second.resume()
  expect(await second.output()).toBe('second')
})

test('a turn that has room and has not begun yet is taken back: of a wide fork none begins after the pause is acknowledged', async () => {
  await using tutti = await opened({ invariants: false })
  const requests = Array.from({ length: 3_000 }, (_, at) => at)
  let begun = 0
  const pausing = deferred<Promise<void>>()
  const run = await tutti.start(
    hub(forksEach(requests), (turn) => {
      if (begun++ === 0) pausing.resolve(run.pause())
      return turn.reply(turn.request)
    }),
  )
  await pausing.promise
  const before = begun
  expect(before).toBeLessThan(requests.length)
  await rest()
  expect(begun).toBe(before)
  await run.resume()
  expect(await run.output()).toEqual(requests)
  expect(begun).toBe(requests.length)
})

test('what a resume lets begin, and what it starts, begins in the order in which it was started', async () => {
  for (const isForked of [false, true]) {
    await using tutti = await opened({ concurrency: 1 })
    const gate = deferred()
    const begun = deferred()
    const order: unknown[] = []
    const requests = Array.from({ length: 30 }, (_, at) => at)
    const fork = forksEach(requests)
    const run = await tutti.start(
      hub(
        async (turn) => {
          if (!isForked) begun.resolve()
          if (!isForked) await gate.promise
          return fork(turn)
        },
        async (turn) => {
          order.push(turn.request)
          if (isForked) begun.resolve()
          await gate.promise
          return turn.reply(turn.request)
        },
      ),
    )
    await begun.promise
    await run.pause()
    gate.resolve()
    await rest()
    await run.resume()
    expect(await run.output()).toEqual(requests)
    expect(order).toEqual(requests)
  }
})

test('what a resume starts of an agent that has been terminated fails once', async () => {
  await using tutti = await opened()
  const gate = deferred()
  const begun = deferred()
  const fork = forksEach([1, 2, 3], 'settled')
  const waiting = hub(
    async (turn) => {
      begun.resolve()
      await gate.promise
      return fork(turn)
    },
    (turn) => turn.reply(turn.request),
  )
  const run = await tutti.start(waiting)
  await begun.promise
  await run.pause()
  await tutti.agents.terminate('W')
  gate.resolve()
  await rest()
  await run.resume()
  expect(await run.result()).toMatchObject({ status: 'succeeded', output: [] })
  expect(tutti.refusals()).toEqual({})
})

test('a turn whose resources are being made does not begin if its run is paused meanwhile', async () => {
  const made = deferred<string>()
  await using tutti = await opened({ resources: [bench.perRun(() => made.promise)] })
  const begun: string[] = []
  const run = await tutti.start(
    solo((turn) => {
      begun.push(turn.use(bench))
      return turn.finish(begun)
    }),
  )
  await rest()
  await run.pause()
  made.resolve('oak')
  await rest()
  expect(begun).toEqual([])
  await run.resume()
  expect(await run.output()).toEqual(['oak'])
})

test('a turn that another engine has paused before it begins does not begin, however soon after that it has room', async () => {
  const store = memoryStore()
  await using owner = await opened({ store, concurrency: 1 })
  await using other = await opened({ store })
  const { held, begun, definition } = holding()
  await owner.start(definition, { id: 'first' })
  const second = await owner.start(definition, { id: 'second' })
  await rest()
  await (await other.run('second')).pause()
  held.resolve()
  await rest()
  expect(begun).toEqual(['first'])
  await (await other.run('second')).resume()
  expect(await second.output()).toBe('second')
})

test('a run that is paused while its turn waits for room can be cancelled, and its turn never begins', async () => {
  await using tutti = await opened({ concurrency: 1 })
  const held = deferred()
  const begun: string[] = []
  const definition = solo(async (turn) => {
    begun.push(turn.runId)
    await held.promise
    return turn.finish(turn.runId)
  })
  const first = await tutti.start(definition, { id: 'first' })
  const second = await tutti.start(definition, { id: 'second' })
  await rest()
  await second.pause()
  await second.cancel()
  expect(await second.result()).toMatchObject({ status: 'cancelled' })
  held.resolve()
  await first.output()
  await rest()
  expect(begun).toEqual(['first'])
})

/** Undoes three steps, the first of them when it is let. */
function undoing(undone: string[], held: Promise<void>) {
  const undo = (step: string) => async (): Promise<void> => {
    undone.push(step)
    if (undone.length === 1) await held
  }
  return graph('undoing')
    .step('a', { run: () => 1, compensate: undo('a') })
    .step('b', { run: () => 1, compensate: undo('b') })
    .step('c', { run: () => 1, compensate: undo('c') })
    .step('bad', {
      after: ['a', 'b', 'c'],
      run: () => {
        throw new Error('bad')
      },
    })
    .output()
}

test('an undo that waits for room does not begin while its run is paused', async () => {
  await using tutti = await opened({ concurrency: 1 })
  const held = deferred()
  const undone: string[] = []
  const run = await tutti.start(undoing(undone, held.promise))
  await rest()
  expect(undone).toHaveLength(1)
  await run.pause()
  held.resolve()
  await rest()
  expect(undone).toHaveLength(1)
  await run.resume()
  expect(await run.result()).toMatchObject({ status: 'failed', rollback: 'complete' })
  expect(undone.toSorted()).toEqual(['a', 'b', 'c'])
})

/** A run whose engine was closed in its first undo, and what its undos were given. */
async function leftUndoing(options: { timeoutMs?: number } = {}, clock: OpenOptions = {}) {
  const store = memoryStore()
  const undone: string[] = []
  const definition = graph('undoing')
    .step('a', {
      run: () => 1,
      ...options,
      compensate: async ({ use, signal }) => {
        undone.push(use(bench))
        if (undone.length === 1) await untilAborted(signal)
      },
    })
    .step('bad', {
      after: ['a'],
      run: () => {
        throw new Error('bad')
      },
    })
    .output()
  const first = await opened({ store, ...clock, resources: [bench.of('oak')] })
  await first.start(definition, { id: 'R' })
  await rest()
  await first.close()
  expect(undone).toEqual(['oak'])
  return { store, definition, undone }
}

test('an undo whose resources are being made does not begin if its run is paused meanwhile', async () => {
  const { store, definition, undone } = await leftUndoing()
  const made = deferred<string>()
  await using second = await opened({ store, definitions: [definition], resources: [bench.perRun(() => made.promise)] })
  await rest()
  const run = await second.run('R')
  await run.pause()
  made.resolve('beech')
  await rest()
  expect(undone).toEqual(['oak'])
  await run.resume()
  expect(await run.result()).toMatchObject({ status: 'failed', rollback: 'complete' })
  expect(undone).toEqual(['oak', 'beech'])
})

test('an undo whose resources are being made does not begin once its engine is closed', async () => {
  const { store, definition, undone } = await leftUndoing()
  const made = deferred<string>()
  const second = await opened({ store, definitions: [definition], resources: [bench.perRun(() => made.promise)] })
  await rest()
  await second.close()
  made.resolve('beech')
  await rest()
  expect(undone).toEqual(['oak'])
  await using third = await opened({ store, definitions: [definition], resources: [bench.of('elm')] })
  expect(await (await third.run('R')).result()).toMatchObject({ status: 'failed', rollback: 'complete' })
  expect(undone).toEqual(['oak', 'elm'])
})

test('an undo whose resources are made when its time is over does not begin: the next attempt does', async () => {
  const clock = virtualClock()
  const { store, definition, undone } = await leftUndoing({ timeoutMs: 1_000 }, { clock })
  const made = deferred<string>()
  const second = await opened({ store, clock, definitions: [definition], resources: [bench.perRun(() => made.promise)] })
  const run = await second.run('R')
  await rest()
  for (let tries = 0; tries < 3; tries++) await clock.advance(1_500)
  made.resolve('beech')
  const ended = run.result()
  for (let tries = 0; tries < 3; tries++) await clock.advance(1_500)
  expect(await ended).toMatchObject({ status: 'failed', rollback: 'complete' })
  expect(undone).toEqual(['oak', 'beech'])
  await second.close()
})

test('what a child run has waiting for room does not begin while the run that it belongs to is paused', async () => {
  await using tutti = await opened({ concurrency: 1 })
  const held = deferred()
  const begun: number[] = []
  const child = graph('child', { input: z.number() })
    .step('only', {
      run: async ({ input }) => {
        begun.push(input)
        await held.promise
        return input
      },
    })
    .output(({ steps }) => steps.only)
  const run = await tutti.start(
    graph('parent')
      .step('each', { each: () => [1, 2, 3], input: ({ item }) => item, run: child })
      .output(({ steps }) => steps.each),
  )
  await rest()
  expect(begun).toHaveLength(1)
  await run.pause()
  await rest()
  held.resolve()
  await rest()
  expect(begun).toHaveLength(1)
  expect(await run.status()).toBe('paused')
  await run.resume()
  expect(await run.output()).toEqual([1, 2, 3])
})
