import { readFile } from 'node:fs/promises'
import { open, type Turn, topology } from 'tutti'
import { expect, test } from 'vitest'
import { memoryStore } from '../../src/stores/memory.js'

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
