import { expect, test } from 'vitest'
import { decodeEvents, encodeEvents } from '../../src/engine/codec.js'
import type { EventRow } from '../../src/engine/store.js'
import type { Event } from '../../src/kernel/event.js'
import { soaking } from '../stores/child.js'

const large = 'x'.repeat(70_000)
const small = Array.from({ length: 10_000 }, (_, index) => ({ to: 'W', request: index }))
const lookalike = { '$tutti.blob': 'no hash', deep: { '$tutti.plain': { '$tutti.blob': 'x' } } }

const eventsOf = (values: readonly unknown[]): Event[] =>
  values.map((value, index) => ({ seq: 1 + index, at: 1, type: 'run.succeeded', output: value })) as unknown as Event[]

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
    [1, 256],
    [257, 256],
    [513, 88],
  ])
  expect(await decodeEvents(rows, 300, async () => null)).toEqual(events.slice(300))
})

test('only the first event of a row says its number and its time, while they are written and not a moment longer', async () => {
  const events = eventsOf(['a', 'b', 'c'])
  const before = JSON.stringify(events)
  const { rows } = encodeEvents(events)
  expect(rows.map(({ body }) => JSON.parse(body))).toEqual([
    [
      { seq: 1, at: 1, type: 'run.succeeded', output: 'a' },
      { seq: 0, at: 0, type: 'run.succeeded', output: 'b' },
      { seq: 0, at: 0, type: 'run.succeeded', output: 'c' },
    ],
  ])
  expect(JSON.stringify(events)).toBe(before)
  expect(await decodeEvents(rows, 0, async () => null)).toEqual(events)
})

test.each<[string, (events: Event[]) => readonly Event[]]>([
  ['of several times', (events) => events.map((event, index) => ({ ...event, at: index }))],
  ['that somebody else may have', (events) => events.map((event) => Object.freeze(event))],
])('events %s are written as they are', async (_, made) => {
  const events = made(eventsOf(['a', 'b', 'c']))
  const { rows } = encodeEvents(events)
  expect(rows.map(({ body }) => body)).toEqual([JSON.stringify(events)])
  expect(await decodeEvents(rows, 0, async () => null)).toEqual(events)
})

// It takes ten seconds and a gigabyte: the long version of the tests has it.
test.runIf(soaking)('values that together are longer than any text can be come back as they were', async () => {
  const largest = 'x'.repeat(16_000_000)
  const events = eventsOf(Array.from({ length: 34 }, () => largest))
  const { blobs, decoded } = await thereAndBack(events)
  expect(blobs).toHaveLength(1)
  expect(decoded.map((event) => (event as { readonly output?: unknown }).output === largest)).toEqual(events.map(() => true))
})

test('a value that is missing is said to be', async () => {
  const { rows } = encodeEvents(eventsOf([large]))
  await expect(decodeEvents(rows, 0, async () => null)).rejects.toThrow(/the value [0-9a-f]+ is not there/)
})

test.each<[string, (rows: EventRow[]) => EventRow[], string]>([
  ['that has lost a row', (rows) => rows.filter(({ seq }) => seq !== 257), 'event 257 is not there'],
  ['that has lost its first row', (rows) => rows.slice(1), 'event 1 is not there'],
  [
    'with a row that has lost an event',
    (rows) => rows.map((row) => ({ ...row, body: JSON.stringify((JSON.parse(row.body) as unknown[]).slice(0, -1)) })),
    '255 of 256 events from 1 on are there',
  ],
  ['with a row that is cut off', (rows) => rows.map((row) => ({ ...row, body: row.body.slice(0, -9) })), "event 1 on can't be read"],
])('a journal %s is not read as if it were whole', async (_, damage, told) => {
  const events = Array.from({ length: 600 }, (__, index) => ({ seq: index + 1, at: 1, type: 'run.released' }) as Event)
  const { rows } = encodeEvents(events)
  const reading = decodeEvents(damage([...rows]), 0, async () => null)
  await expect(reading).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE', message: expect.stringContaining(told) })
})
