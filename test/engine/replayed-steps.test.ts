import { readFile } from 'node:fs/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { open, type Store, type Turn, topology } from 'tutti'
import { expect, test } from 'vitest'
import { memoryStore } from '../../src/stores/memory.js'
import { lasting } from '../graph/lasting.js'
import { opened, solo, untilAborted } from './opened.js'

const soon = (ms = 20): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms))

/** A value that comes after a while; under a name, so that what was executed is counted. */
type Later = <T>(name: string, ms: number, value: T) => Promise<T>

/** Bodies that are the same on every execution, with how many steps they record. */
const bodies: Readonly<Record<string, readonly [records: number, body: (turn: Turn, later: Later) => Promise<unknown>]>> = {
  'a race of steps': [
    2,
    (turn, later) => Promise.race([turn.step('a', () => later('a', 1, 'first')), turn.step('b', () => later('b', 5, 'second'))]),
  ],
  'a step that fails beside one that is not waited for': [
    2,
    async (turn, later) => {
      const failing = turn.step('a', async () => {
        await later('a', 1, null)
        throw new Error('no')
      })
      try {
        return await Promise.all([failing, turn.step('b', () => later('b', 5, 'b'))])
      } catch (error) {
        return (error as Error).message
      }
    },
  ],
  'a step that nobody waits for': [
    2,
    async (turn, later) => {
      void turn.step('a', () => later('a', 5, 'a'))
      return turn.step('b', () => later('b', 1, 'b'))
    },
  ],
  'a race that is lost by two steps, and a step after it': [
    4,
    async (turn, later) => {
      const racing = ['a', 'b', 'c'].map((name, place) => turn.step(name, () => later(name, 1 + 4 * place, name)))
      return [await Promise.race(racing), await turn.step('d', () => later('d', 20, 'd'))]
    },
  ],
  'a chain that reads a file between its steps': [
    3,
    async (turn, later) => {
      const chain = async (): Promise<unknown[]> => {
        const one = await turn.step('a1', () => later('a1', 1, 1))
        const { length } = await readFile(new URL(import.meta.url))
        return [one, length > 0, await turn.step('a2', () => later('a2', 1, 2))]
      }
      return Promise.all([chain(), turn.step('b', () => later('b', 60, 'b'))])
    },
  ],
  'a chain that waits between its steps for longer than a moment': [
    3,
    async (turn, later) => {
      const chain = async (): Promise<unknown[]> => {
        const one = await turn.step('a1', () => later('a1', 1, 1))
        await soon(150)
        return [one, await turn.step('a2', () => later('a2', 1, 2))]
      }
      return Promise.all([chain(), turn.step('b', () => later('b', 250, 'b'))])
    },
  ],
}

test.each(Object.keys(bodies))('%s ends when it is executed again as it did the first time, and no step is', async (name) => {
  const [records, body] = bodies[name] ?? [0, async () => null]
  const store = memoryStore()
  const executed: string[] = []
  const ended: unknown[] = []
  const definition = (isSecond: boolean) =>
    topology({
      name: 'again',
      flows: ['Start -> A -> End'],
      agents: {
        A: async (turn) => {
          const given = await body(turn as unknown as Turn, async (step, ms, value) => {
            executed.push(step)
            await soon(ms)
            return value
          })
          ended.push(given)
          // The first execution stays until its process is gone.
          if (!isSecond) await new Promise((_, reject) => turn.signal.addEventListener('abort', () => reject(turn.signal.reason)))
          return turn.finish(given)
        },
      },
    })
  const first = await open({ store, definitions: [definition(false)] })
  const run = await first.start('again', { id: 'run' })
  let recorded = 0
  for await (const { type } of run.events()) if (type.startsWith('activity.') && ++recorded === records) break
  await expect.poll(() => ended).toHaveLength(1)
  await first.close()
  const before = [...executed].sort()
  await using second = await open({ store, definitions: [definition(true)] })
  const result = await (await second.run('run')).result()
  expect(result).toMatchObject({ status: 'succeeded', output: ended[0] })
  expect(ended[1]).toEqual(ended[0])
  expect([...executed].sort()).toEqual(before)
})

test('a body that asks for something else is told what it asked for first, whatever it asks for besides', async () => {
  const store = lasting()
  const asking = (names: readonly string[], isSecond: boolean) =>
    solo(async (turn) => {
      const given = await Promise.all(names.map((name) => turn.step(name, async () => name)))
      if (!isSecond) await untilAborted(turn.signal)
      return turn.finish(given)
    })
  const first = await opened({ store, definitions: [asking(['z', 'a'], false)] })
  const run = await first.start('solo', { id: 'run' })
  let recorded = 0
  for await (const { type } of run.events()) if (type === 'activity.completed' && ++recorded === 2) break
  await first.close()
  await using second = await opened({ store, definitions: [asking(['q', 'a'], true)] })
  const result = await (await second.run('run')).result()
  expect(result).toMatchObject({ status: 'failed', error: { code: 'NONDETERMINISTIC_TURN' } })
  expect('error' in result && result.error.message).toContain("'z#0' is recorded and was not called for; instead, 'q#0' was called")
})

const never = (turn: Turn): Promise<never> => untilAborted(turn.signal)

test.each<[string, (turn: Turn) => Promise<unknown>, (turn: Turn) => Promise<unknown>, recorded: string, message: string]>([
  [
    'the second of a name comes first',
    async (turn) => [await turn.step('p', () => 1), await turn.step('store', () => 'a'), await never(turn)],
    async (turn) => {
      const early = turn.step('store', () => 'b')
      return [await turn.step('p', () => 1), await early, await turn.step('store', () => 'a')]
    },
    'activity.completed activity.completed',
    "'store#0' was called after 1 results and is now called after 0",
  ],
  [
    'what must not be repeated is not asked for again',
    (turn) => turn.step('pay', () => never(turn), { idempotent: false }),
    async () => 'fine',
    'activity.started',
    "'pay#0' is recorded and was not called for; instead, the turn ended",
  ],
  [
    'a sleep is not asked for again',
    (turn) => turn.sleep(1_000),
    async () => 'fine',
    'sleep.started',
    "'sleep#0' is recorded and was not called for; instead, the turn ended",
  ],
  [
    'a sleep that is over before what is asked for instead has come to anything',
    (turn) => turn.sleep(50),
    (turn) => turn.step('look', () => soon(100)),
    'sleep.started',
    "'sleep#0' is recorded and was not called for; instead, 'look#0' was called",
  ],
  [
    'a step has taken the place of a sleep',
    (turn) => turn.sleep(1_000_000),
    (turn) => turn.step('sleep', () => 1),
    'sleep.started',
    "'sleep#0' was recorded as a sleep and is now a step",
  ],
  [
    'a sleep has taken the place of a step',
    (turn) => turn.step('sleep', () => never(turn), { idempotent: false }),
    (turn) => turn.sleep(1),
    'activity.started',
    "'sleep#0' was recorded as a step and is now a sleep",
  ],
])('a body that does something else is found out: %s', async (_, before, after, recorded, message) => {
  const store = lasting()
  const doing = (body: (turn: Turn) => Promise<unknown>) => solo(async (turn) => turn.finish(await body(turn as unknown as Turn)))
  const first = await opened({ store, definitions: [doing(before)], graceMs: 50 })
  const run = await first.start('solo', { id: 'run' })
  const left = recorded.split(' ')
  for await (const { type } of run.events()) {
    if (type === left[0]) left.shift()
    if (left.length === 0) break
  }
  await first.close()
  await using second = await opened({ store, definitions: [doing(after)] })
  const result = await (await second.run('run')).result()
  expect(result).toMatchObject({ status: 'failed', error: { code: 'NONDETERMINISTIC_TURN' } })
  expect('error' in result && result.error.message).toContain(message)
})

test.each(['a step', 'a step after recorded ones'])(
  'a store that can not say whether others have written fails %s at once, and nothing else',
  async (which) => {
    const inner = lasting()
    let isDown = false
    const store = new Proxy(inner, {
      get: (target, key) =>
        key === 'moved' && isDown
          ? () => {
              isDown = false
              throw new Error('moved is down')
            }
          : target[key as keyof Store],
    })
    const definition = (isSecond: boolean) =>
      solo(async (turn) => {
        if (!isSecond) return turn.finish([await turn.step('a', async () => 1), await untilAborted(turn.signal)])
        // The store is asked once in a macrotask.
        await soon(1)
        isDown = true
        return turn.finish(await Promise.all([turn.step('a', async () => 1), turn.step('b', async () => 2)]))
      })
    if (which !== 'a step') {
      const first = await opened({ store, definitions: [definition(false)] })
      const run = await first.start('solo', { id: 'run' })
      for await (const { type } of run.events()) if (type === 'activity.completed') break
      await first.close()
    }
    // It does not wait for the grace of a step that was never begun.
    await using second = await opened({ store, definitions: [definition(true)], graceMs: 600_000 })
    const run = which === 'a step' ? await second.start('solo', { id: 'run' }) : await second.run('run')
    expect(await run.result()).toMatchObject({ status: 'failed', error: { message: 'moved is down' } })
  },
)

test('what a step was made of is let go of when its result was given, however long its turn goes on', async () => {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  await using tutti = await opened()
  const made: WeakRef<object>[] = []
  const alive = await tutti.execute(
    solo(async (turn) => {
      const once = (index: number): Promise<number> => {
        const large = { bytes: Buffer.alloc(1 << 16), index }
        made.push(new WeakRef(large))
        return turn.step('s', () => large.index)
      }
      for (let index = 0; index < 50; index++) await once(index)
      for (let tries = 0; tries < 5; tries++) {
        await soon(1)
        collect()
      }
      return turn.finish(made.filter((ref) => ref.deref() !== undefined).length)
    }),
  )
  // The last one may still be on its way.
  expect(alive).toBeLessThan(3)
})
