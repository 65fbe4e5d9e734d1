import { graph } from 'tutti'
import { expect, test } from 'vitest'
import { memoryStore } from '../../src/stores/memory.js'
import { deferred, opened, rest } from '../engine/opened.js'

test('of a run that is stopped because its journal can not be read no undo begins, and one that runs is told so', async () => {
  const inner = memoryStore()
  let isCut = false
  const load: typeof inner.load = async (id, options) => {
    const loaded = await inner.load(id, options)
    return loaded === null || !isCut ? loaded : { ...loaded, rows: loaded.rows.map((row) => ({ ...row, body: row.body.slice(0, 5) })) }
  }
  const begun: unknown[] = []
  const first = deferred()
  const stopped = deferred()
  const told: unknown[] = []
  const go = deferred()
  const undo = async ({ signal, output }: { signal: AbortSignal; output?: unknown }) => {
    begun.push(output)
    signal.addEventListener('abort', () => told.push(signal.reason.message), { once: true })
    first.resolve()
    await go.promise
  }
  const booking = (name: string) => ({ run: () => name, compensate: undo })
  const trip = graph('trip')
    .step('flight', booking('flight'))
    .step('hotel', booking('hotel'))
    .step('car', booking('car'))
    .step('pay', { after: ['flight', 'hotel', 'car'], run: () => Promise.reject(new Error('no money')) })
    .output()
  const onLog = ({ message }: { message: string }): void => {
    if (message.startsWith('the run is stopped')) stopped.resolve()
  }
  await using other = await opened({ store: inner })
  await using tutti = await opened({ store: { ...inner, load }, concurrency: 1, graceMs: 10, onLog })
  await tutti.start(trip, { id: 'r' })
  await first.promise
  isCut = true
  // The owner reads what another has said.
  await (await other.run('r')).pause()
  await stopped.promise
  await rest()
  expect(told).toEqual(['the run is stopped'])
  go.resolve()
  await rest()
  expect(begun).toHaveLength(1)
})
