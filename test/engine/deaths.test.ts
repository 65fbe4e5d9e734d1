/** Whose work a process is taken to have died of: what was at work, not what only waited. */
import type { Definition } from 'tutti'
import { graph, topology } from 'tutti'
import { expect, test } from 'vitest'
import { memoryStore } from '../../src/stores/memory.js'
import { deferred, journalSoFar, opened, rest, solo, type SoloTurn } from './opened.js'

/** How a run stands after so many of its owners have died with it in their hands, each with nothing left to do but what hangs. */
async function after(deaths: number, definition: Definition<unknown>): Promise<{ status: string; error?: { code: string } }> {
  const store = memoryStore()
  const first = await opened({ store, definitions: [definition] })
  await first.start(definition, { id: 'r' })
  await rest()
  for (let death = 1; ; death++) {
    for (const peer of await store.beat(999)) await store.fence(peer, 0)
    const next = await opened({ store, definitions: [definition] })
    await rest()
    const run = await next.run('r')
    if (death < deaths) continue
    const status = await run.status()
    return status === 'failed' ? ((await run.result()) as { status: 'failed'; error: { code: string } }) : { status }
  }
}

const hour = 3_600_000
const forEver = () => new Promise<never>(() => {})
const crashed = { status: 'failed', error: { code: 'TURN_CRASHED' } }
const goesOn = { status: 'running' }

test.each<[string, (turn: SoloTurn) => Promise<unknown>, object]>([
  ['that sleeps', (turn) => turn.sleep(hour), goesOn],
  ['that has done something and sleeps', (turn) => turn.step('quick', () => 1).then(() => turn.sleep(hour)), goesOn],
  ['that sleeps for what is done beside it', (turn) => Promise.all([turn.step('quick', () => 1), turn.sleep(hour)]), goesOn],
  ['that sleeps twice at once', (turn) => Promise.all([turn.sleep(hour), turn.sleep(2 * hour)]), goesOn],
  ['with a sleep and then a step beside it', (turn) => Promise.race([turn.sleep(hour), turn.step('work', forEver)]), crashed],
  ['with a step and then a sleep beside it', (turn) => Promise.race([turn.step('work', forEver), turn.sleep(hour)]), crashed],
  [
    'with a step after a sleep that lost its race',
    async (turn) => {
      await Promise.race([turn.sleep(hour), turn.step('quick', () => 1)])
      await turn.step('work', forEver)
    },
    crashed,
  ],
])('after six deaths a turn %s is given up if anything of it was at work', async (_, body, stands) => {
  const definition = solo(async (turn) => turn.finish(await body(turn)))
  expect(await after(6, definition)).toMatchObject(stands)
})

const asleep = topology({
  name: 'asleep',
  flows: ['Start -> A -> End'],
  agents: { A: async (turn) => turn.finish(await turn.sleep(hour)) },
})
/** Its input is never checked to the end. */
const endless = { '~standard': { version: 1 as const, vendor: 'test', validate: forEver } }
const picky = topology({ name: 'picky', flows: ['Start -> A -> End'], input: endless, agents: { A: (turn) => turn.finish() } })

test.each<[string, Definition<unknown>, object]>([
  [
    'waits for it',
    graph('p')
      .step('s', { input: () => 1, run: asleep })
      .output(),
    goesOn,
  ],
  [
    'waits for it',
    graph('p')
      .step('s', { each: () => [1, 2], input: () => 1, run: asleep })
      .output(),
    goesOn,
  ],
  [
    'is about its `when`',
    graph('p')
      .step('s', { when: forEver, input: () => 1, run: asleep })
      .output(),
    crashed,
  ],
  [
    'is about its `each`',
    graph('p')
      .step('s', { each: forEver, input: () => 1, run: asleep })
      .output(),
    crashed,
  ],
  ['is about its `input`', graph('p').step('s', { input: forEver, run: asleep }).output(), crashed],
  [
    'is about the `input` of an item',
    graph('p')
      .step('s', { each: () => [1], input: forEver, run: asleep })
      .output(),
    crashed,
  ],
  [
    'is about the schema of that run',
    graph('p')
      .step('s', { input: () => 1 as never, run: picky })
      .output(),
    crashed,
  ],
])('after six deaths a step with a run of its own that %s is given up if there is no such run', async (_, definition, stands) => {
  expect(await after(6, definition)).toMatchObject(stands)
})

test('what had not come so far is told by how the run stands, also by one who has looked at it before', async () => {
  const held = deferred()
  const definition = graph('p')
    .step('before', { run: () => held.promise })
    .step('s', { after: ['before'], input: forEver, run: asleep })
    .output()
  const store = memoryStore()
  let isDead = false
  const dying = { ...store, claim: (...of: Parameters<typeof store.claim>) => (isDead ? forEver() : store.claim(...of)) }
  const first = await opened({ store: dying, definitions: [definition] })
  await first.start(definition, { id: 'r' })
  await rest()
  const next = await opened({ store, definitions: [definition] })
  const run = await next.run('r')
  expect(await run.status()).toBe('running')
  held.resolve()
  await rest()
  isDead = true
  for (const peer of await store.beat(999)) if (peer.worker === 1) await store.fence(peer, 0)
  await rest()
  expect((await journalSoFar(run)).find(({ type }) => type === 'run.claimed')).toMatchObject({ unbegun: ['r.1'] })
})
