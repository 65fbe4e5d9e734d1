import { resource, topology } from 'tutti'
import { explore } from 'tutti/testing'
import { expect, test, vi } from 'vitest'

// Many schedules are a few seconds, and more on a machine that is busy.
vi.setConfig({ testTimeout: 90_000 })

const ledger = resource<{ book(what: string, key: string): void; count(): number }>('ledger')

/** Books by the key it is given, as an outside system does that can tell a repetition from a second order. */
function byKey() {
  const booked = new Map<string, string>()
  return [ledger.of({ book: (what, key) => void booked.set(key, what), count: () => booked.size })]
}

/** Books whatever it is told. */
function everything() {
  const booked: string[] = []
  return [ledger.of({ book: (what) => void booked.push(what), count: () => booked.length })]
}

const trip = () =>
  topology({
    name: 'trip',
    flows: ['Start -> Desk -> End', 'Desk <-> Hotel | Flight'],
    agents: {
      Desk: {
        act: {
          request: (turn) => turn.fork(['Hotel', 'Flight']),
          join: async (turn, join) => {
            const books = turn.use(ledger)
            const count = await turn.step('count', () => books.count())
            return turn.finish({ booked: join.slots.map((slot) => slot.status), count })
          },
        },
      },
      Hotel: { act: booking },
      Flight: { act: booking },
    },
  })

async function booking(turn: any) {
  const books = turn.use(ledger)
  await turn.step('book', ({ idempotencyKey }: { idempotencyKey: string }) => books.book(turn.agent, idempotencyKey))
  return turn.reply('booked')
}

test('a crash at any append of any schedule changes nothing, if what is outside knows its keys', async () => {
  const checked = await explore(trip, { resources: byKey, faults: ['crash'], schedules: 90 })
  expect(checked.independent, checked.text()).toBe(true)
  expect(checked.distinct).toBe(1)
  expect(checked.notes.join()).toMatch(/\d+ crashes/)
})

test('what is done twice after a crash is found, made small and explained', async () => {
  const found = await explore(trip, { resources: everything, faults: ['crash'], schedules: 90 })
  expect(found.independent).toBe(false)
  expect(found.divergence).toMatchObject({ kind: 'output', a: 'first' })
  expect(found.divergence?.b).toMatch(/^\w+F[01]$/)
  expect(found.divergence?.explain).toMatch(/output\.count: 2 {2}\| {2}[34]/)
  expect(found.divergence?.explain).toContain('crashes')
})

test('acknowledgements that are lost, and completions that come twice, change nothing', async () => {
  const checked = await explore(trip, { resources: byKey, faults: ['lost-ack', 'duplicate'], schedules: 60 })
  expect(checked.independent, checked.text()).toBe(true)
  expect(checked.distinct).toBe(1)
})

test('appends that are acknowledged late change nothing', async () => {
  const checked = await explore(trip, { resources: byKey, appends: true, strategy: 'random', schedules: 50 })
  expect(checked.independent, checked.text()).toBe(true)
})

test('an agent that fails is a fault like any other: for the same fault, the same outcome', async () => {
  const checked = await explore(trip, { resources: byKey, faults: [{ agent: 'Hotel', error: 'no room' }], schedules: 60 })
  expect(checked.independent, checked.text()).toBe(true)
  const failed = checked.outcomes.filter(({ result }) => result.status === 'failed')
  expect(failed).toHaveLength(1)
  expect(failed[0]?.result).toMatchObject({ error: { code: 'JOIN_FAILED', cause: { message: 'no room' } } })
})

test('a pause and a resume at any time change nothing', async () => {
  const checked = await explore(trip, { resources: byKey, steering: ['pause', 'resume'], schedules: 60 })
  expect(checked.independent, checked.text()).toBe(true)
  expect(checked.distinct).toBe(1)
})

test('somebody whose pause or resume a crash has cut off asks again', async () => {
  const checked = await explore(trip, { resources: byKey, steering: ['pause', 'resume'], faults: ['crash'], schedules: 60 })
  expect(checked.independent, checked.text()).toBe(true)
  expect(checked.distinct).toBe(1)
})

test('timeouts that may come at any time are choices, and each has one outcome', async () => {
  const definition = () =>
    topology({
      name: 'timed',
      flows: ['Start -> H -> End', 'H <-> A | B'],
      agents: {
        H: {
          act: {
            request: (turn) => turn.fork(['A', 'B'], { join: { policy: 'all', timeoutMs: 1_000, insufficient: 'resume' } }),
            join: (turn, { slots }) => turn.finish(slots.map(({ status }) => status)),
          },
        },
        A: { act: (turn) => turn.reply('a') },
        B: { act: (turn) => turn.reply('b') },
      },
    })
  const calm = await explore(definition, { schedules: 'all' })
  expect(calm, calm.text()).toMatchObject({ independent: true, exhaustive: true, distinct: 1 })
  const checked = await explore(definition, { schedules: 120, faults: ['timeout'] })
  expect(checked.independent, checked.text()).toBe(true)
  expect(new Set(checked.outcomes.map(({ result }) => result.status === 'succeeded' && String(result.output)))).toEqual(
    new Set(['arrived,arrived', 'arrived,cancelled', 'cancelled,arrived', 'cancelled,cancelled']),
  )
})
