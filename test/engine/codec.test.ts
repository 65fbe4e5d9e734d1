import { expect, test } from 'vitest'
import { decodeEvents, encodeEvents } from '../../src/engine/codec.js'
import type { Event } from '../../src/kernel/event.js'

const large = 'x'.repeat(70_000)
const small = Array.from({ length: 10_000 }, (_, index) => ({ to: 'W', request: index }))
const lookalike = { '$tutti.blob': 'no hash', deep: { '$tutti.plain': { '$tutti.blob': 'x' } } }

const eventsOf = (values: readonly unknown[]): Event[] =>
  values.map((value, index) => ({ seq: 7 + index, at: 1, type: 'run.succeeded', output: value })) as unknown as Event[]

/** What comes back, what was stored apart, and how often each of that was read. */
async function thereAndBack(events: readonly Event[]) {
  const { rows, blobs } = encodeEvents(events)
  const stored = new Map(blobs.map(({ hash, body }) => [hash, body]))
  const read: string[] = []
  const decoded = await decodeEvents(rows, 0, async (hash) => {
    read.push(hash)
    return stored.get(hash) ?? null
  })
  return { rows, blobs, read, decoded }
}

test.each<[string, unknown, number]>([
  ['nothing large', { a: [1, null, 'b'] }, 0],
  ['a large text', large, 1],
  ['many small values that are large together', small, 1],
  ['a large value among many small ones', { list: [...small.slice(0, 500), { large }, ...small.slice(500, 1_000)] }, 1],
  ['the same large value in two places', { one: { large }, two: [{ large }] }, 1],
  ['large values in one that is still large without them', [...small, { large }, { other: `${large}y` }], 3],
  ['what only looks like a reference', lookalike, 0],
  ['what only looks like a reference, in what is stored apart', [...small, lookalike], 1],
  ['a text that is about references', ['"$tutti.blob"', '{"$tutti.blob":"x"}', '$tutti.'], 0],
  ['a text that is longer as JSON', '\u0001'.repeat(20_000), 1],
  ['the name of a prototype', JSON.parse('{"__proto__":{"$tutti.blob":"x"},"a":{"__proto__":1}}'), 0],
])('%s comes back as it was', async (_, value, apart) => {
  const events = eventsOf([value, 'between', value])
  const { rows, blobs, read, decoded } = await thereAndBack(events)
  expect(decoded).toEqual(events)
  expect(blobs).toHaveLength(apart)
  expect(read).toHaveLength(apart)
  for (const { body } of rows) expect(body.length).toBeLessThan(64 * 1024)
  expect(Object.isFrozen(decoded[0])).toBe(true)
})

test('events are packed, and those of a row that come too early are left out', async () => {
  const events = eventsOf(Array.from({ length: 600 }, (_, index) => index))
  const { rows } = encodeEvents(events)
  expect(rows.map(({ seq, n }) => [seq, n])).toEqual([
    [7, 256],
    [263, 256],
    [519, 88],
  ])
  expect(await decodeEvents(rows, 300, async () => null)).toEqual(events.slice(294))
})

test('a value that is missing is said to be', async () => {
  const { rows } = encodeEvents(eventsOf([large]))
  await expect(decodeEvents(rows, 0, async () => null)).rejects.toThrow(/is missing from the store/)
})
