// worker.ts: any number of these; each claims what it can execute, and takes over from the dead
import { open, TuttiError } from 'tutti'
import { release, shop } from './4-release.js'
import { desk, trip } from './3-trip.js'

declare const live: Parameters<typeof desk.of>[0]
declare const tools: Parameters<typeof shop.of>[0]

export async function worker(store: string): Promise<void> {
  const tutti = await open({
    store,
    definitions: [trip, release],
    resources: [desk.of(live), shop.of(tools)],
    concurrency: 64,
    workerTtlMs: 10_000,
  })
  process.once('SIGTERM', () => void tutti.close()) // lets go cleanly; unfinished runs stay recoverable
}

export async function report(store: string, id: string): Promise<string> {
  await using tutti = await open({ store })
  const result = await (await tutti.run(id, trip)).result() // also of a run another process owns
  switch (result.status) {
    case 'succeeded':
      return result.output.receipt
    case 'failed':
      return `${result.error.message}; rollback ${result.rollback}`
    case 'cancelled':
      return result.reason ?? 'cancelled'
  }
}

// control.ts: another process on the same store; it has no definitions, so it executes nothing
export async function hold(store: string, id: string): Promise<'resumed' | 'somebody else did'> {
  await using tutti = await open({ store })
  const run = await tutti.run(id, trip) // typed by the definition; refused if the run is of another
  await run.pause({ by: 'ops' })
  for (const { id, waitsFor } of (await tutti.runs({ status: 'paused', tags: { tenant: 'acme' } })).runs) console.log(id, waitsFor)
  await tutti.agents.pause('Security', { ifRevision: (await tutti.agents.get('Security')).revision })
  try {
    await run.resume({ by: 'ops', key: crypto.randomUUID() })
    return 'resumed'
  } catch (error) {
    if (TuttiError.is(error, 'RUN_NOT_PAUSED')) return 'somebody else did'
    throw error
  }
}
