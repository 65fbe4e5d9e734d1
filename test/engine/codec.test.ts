import fc from 'fast-check'
import { expect, expectTypeOf, test, vi } from 'vitest'
import { decodeEvents, encodeEvents, signed } from '../../src/engine/codec.js'
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

test.each<[string, readonly unknown[]]>([
  ['by itself', [small]],
  ['beside what is small', [small, 'between', 1]],
])('what is large %s is written whole once, to see that it is', (_, values) => {
  const writing = vi.spyOn(JSON, 'stringify')
  encodeEvents(eventsOf(values))
  const written = writing.mock.results.filter(({ value }) => String(value).length >= 64 * 1024)
  writing.mockRestore()
  expect(written).toHaveLength(1)
})

test.each<[string, readonly unknown[]]>([
  ['one', ['x']],
  ['many, in several rows', Array.from({ length: 600 }, (_, index) => index)],
  ['one that is stored apart', [large]],
])('whose rows they are is not shown to who reads the events: %s', async (_, values) => {
  const events = eventsOf(values)
  const { rows, blobs } = encodeEvents(events)
  const [mine, theirs] = [signed(rows, 1), signed(rows, 2)]
  expect(mine[0]?.body).not.toBe(theirs[0]?.body)
  expect(mine.map(({ seq, n }) => [seq, n])).toEqual(rows.map(({ seq, n }) => [seq, n]))
  for (const found of [mine, theirs])
    expect(await decodeEvents(found, 0, async (hash) => blobs.find((blob) => blob.hash === hash)?.body ?? null)).toStrictEqual(events)
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

test('a row of before, in which only the first event says its number and its time, is read as it was meant', async () => {
  const body = JSON.stringify([
    { seq: 4, at: 7, type: 'run.succeeded', output: 'a' },
    { seq: 0, at: 0, type: 'run.succeeded', output: 'b' },
    { seq: 0, at: 0, type: 'run.succeeded', output: 'c' },
  ])
  expect(await decodeEvents([{ seq: 4, n: 3, body }], 3, async () => null)).toEqual(
    ['a', 'b', 'c'].map((output, index) => ({ seq: 4 + index, at: 7, type: 'run.succeeded', output })),
  )
})

/** What a wide fan-out does by the thousand: so many of a kind, of which one may be different in some way. */
const crowd = fc.record({
  kind: fc.constantFrom('opened', 'started', 'replied'),
  count: fc.nat(40),
  first: fc.nat(3),
  value: fc.option(fc.jsonValue({ maxDepth: 1 }), { nil: undefined }),
  odd: fc.nat(60),
  how: fc.constantFrom('parent', 'to', 'slot', 'gated', 'at', 'turn', 'state', 'value', 'by', 'branch', 'status', 'message'),
})
type Crowd = typeof crowd extends fc.Arbitrary<infer C> ? C : never

const spoiled: Record<Crowd['how'], (event: Record<string, unknown>) => object> = {
  parent: () => ({ parent: 'r.9' }),
  to: () => ({ to: 'B', agent: 'B' }),
  slot: ({ slot }) => (slot === undefined ? {} : { slot: (slot as number) + 1 }),
  gated: () => ({ gated: true }),
  at: () => ({ at: 8 }),
  turn: () => ({ turn: 2 }),
  state: ({ action }) => (action === undefined ? {} : { action: { ...action, state: { a: 1 } } }),
  value: ({ action }) => (action === undefined ? {} : { action: { type: 'reply', value: 'another' } }),
  by: () => ({ by: 'C', barrier: 'r#2' }),
  branch: () => ({ branch: 'r.77' }),
  status: ({ type }) => (type === 'branch.settled' ? { status: 'cancelled' } : {}),
  message: ({ message }) => (message === undefined ? {} : { message: { kind: 'feedback', problem: 'no' } }),
}

function eventsOfCrowd({ kind, count, first, value, odd, how }: Crowd): object[] {
  const given = value === undefined ? {} : { value }
  const events = Array.from({ length: count }, (_, index) => {
    const branch = `r.${first + index}`
    const turn = { branch, agent: 'A', turn: 1, attempt: 1 }
    if (kind === 'opened') return [{ type: 'branch.opened', branch, parent: 'r', to: 'A', barrier: 'r#1', slot: first + index }]
    if (kind === 'started') return [{ type: 'turn.started', ...turn, message: { kind: 'request', from: 'H', ...given } }]
    return [
      { type: 'turn.completed', ...turn, action: { type: 'reply', ...given } },
      { type: 'barrier.arrived', barrier: 'r#1', slot: first + index, by: 'A', branch },
      { type: 'branch.settled', branch, status: 'arrived' },
    ]
  }).flat() as Record<string, unknown>[]
  return events.map((event, index) => {
    if (index !== odd) return event
    const isOwn = ([name]: [string, unknown]): boolean => name in event || name === 'at' || (name === 'gated' && kind === 'opened')
    return { ...event, ...Object.fromEntries(Object.entries(spoiled[how](event)).filter(isOwn)) }
  })
}

test('property: what is written as one comes back as it was, whatever is different in it', async () => {
  let packed = 0
  await fc.assert(
    fc.asyncProperty(fc.array(crowd, { maxLength: 6 }), fc.nat(100), async (crowds, after) => {
      const events = crowds.flatMap(eventsOfCrowd).map((event, index) => ({ seq: 1 + index, at: 7, ...event })) as unknown as Event[]
      fc.pre(!JSON.stringify(events).includes('"__proto__"'))
      const { rows, decoded } = await thereAndBack(events)
      // As JSON has it: there is no -0.
      const expected = JSON.parse(JSON.stringify(events)) as Event[]
      expect(decoded).toStrictEqual(expected)
      expect(await decodeEvents(rows, after, async () => null)).toStrictEqual(expected.slice(after))
      for (const { body } of rows) if (body.includes('"pack"')) packed++
    }),
    { numRuns: 300 },
  )
  expect(packed).toBeGreaterThan(50)
})

test('a fan-out is written in a fraction of its events, and with something large in it event by event', async () => {
  const replies = (value: unknown): Event[] =>
    eventsOfCrowd({ kind: 'replied', count: 2_000, first: 0, value: value as never, odd: -1, how: 'at' }).map((event, index) => ({
      seq: 1 + index,
      at: 1_763_428_380_000,
      ...event,
    })) as unknown as Event[]
  const small = await thereAndBack(replies(7))
  expect(small.decoded).toEqual(replies(7))
  const written = (rows: readonly EventRow[]): number => rows.reduce((sum, { body }) => sum + body.length, 0)
  expect(written(small.rows)).toBeLessThan(JSON.stringify(replies(7)).length / 10)
  expect(small.rows.map(({ n }) => n)).toEqual([1_023, 1_023, 1_023, 1_023, 1_023, 885])
  const events = replies('x').map((event, index) =>
    index === 30 ? { ...event, action: { type: 'reply', value: large } } : event,
  ) as Event[]
  const one = await thereAndBack(events)
  expect(one.decoded).toEqual(events)
  expect(one.blobs).toHaveLength(1)
  for (const { body } of one.rows) expect(body.length).toBeLessThan(64 * 1024)
})

test.each([0, 50, 100, 400, 2_000])(
  'replies with texts of %i characters are written as one, in rows that are full and not too full',
  async (length) => {
    const events = eventsOfCrowd({ kind: 'replied', count: 3_000, first: 0, value: 'x'.repeat(length), odd: -1, how: 'at' }).map(
      (event, index) => ({ seq: 1 + index, at: 1, ...event }),
    ) as unknown as Event[]
    const { rows, decoded } = await thereAndBack(events)
    expect(decoded).toEqual(events)
    for (const { body } of rows) expect(JSON.parse(body)).toMatchObject([{ pack: 'replied' }])
    for (const { body, n } of rows.slice(0, -1)) expect(n > 1_000 || body.length > 32 * 1024).toBe(true)
  },
)

test('all that an event has is written where several are written as one', () => {
  type Of<T extends Event['type']> = Extract<Event, { type: T }>
  type Common = 'seq' | 'at' | 'type'
  type OfTurn = Common | 'branch' | 'agent' | 'turn' | 'attempt'
  expectTypeOf<keyof Of<'branch.opened'>>().toEqualTypeOf<Common | 'branch' | 'parent' | 'to' | 'barrier' | 'slot' | 'gated'>()
  expectTypeOf<keyof Of<'turn.started'>>().toEqualTypeOf<OfTurn | 'message'>()
  expectTypeOf<keyof Extract<Of<'turn.started'>['message'], { kind: 'request' }>>().toEqualTypeOf<'kind' | 'from' | 'value'>()
  expectTypeOf<keyof Of<'turn.completed'>>().toEqualTypeOf<OfTurn | 'action'>()
  expectTypeOf<keyof Extract<Of<'turn.completed'>['action'], { type: 'reply' }>>().toEqualTypeOf<'type' | 'value' | 'state'>()
  expectTypeOf<keyof Of<'barrier.arrived'>>().toEqualTypeOf<Common | 'barrier' | 'slot' | 'by' | 'branch'>()
  expectTypeOf<keyof Extract<Of<'branch.settled'>, { status: 'arrived' | 'cancelled' }>>().toEqualTypeOf<Common | 'branch' | 'status'>()
})

test('a fork of very many is a row by itself, and its calls stand elsewhere', async () => {
  const events = [
    { seq: 1, at: 1, type: 'turn.completed', branch: 'r', agent: 'H', turn: 1, attempt: 1, action: { type: 'fork', calls: small } },
    ...eventsOfCrowd({ kind: 'opened', count: 300, first: 0, value: undefined, odd: -1, how: 'at' }).map((event, index) => ({
      seq: 2 + index,
      at: 1,
      ...event,
    })),
  ] as unknown as Event[]
  const { rows, blobs, decoded } = await thereAndBack(events)
  expect(decoded).toEqual(events)
  expect(blobs).toHaveLength(1)
  expect(rows.map(({ seq, n }) => [seq, n])).toEqual([
    [1, 1],
    [2, 300],
  ])
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
