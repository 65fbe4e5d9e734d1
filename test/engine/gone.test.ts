import { afterEach, expect, test } from 'vitest'
import type { Run, Tutti } from 'tutti'
import { TuttiError } from 'tutti'
import type { Store } from '../../src/engine/store.js'
import { memoryStore } from '../../src/stores/memory.js'
import { sqliteStore } from '../../src/stores/sqlite.js'
import { Place } from '../durable/processes.js'
import { codeOf, deferred, journal, opened, rest, solo } from './opened.js'

// Asks once, and finishes with the answer, or at once with what it was given.
const definition = solo((turn) =>
  turn.message.kind === 'answer'
    ? turn.finish(turn.message.value)
    : turn.request === 'ask' || turn.request === 'ask again'
      ? turn.ask(turn.request)
      : turn.finish(turn.request),
)

const cleaning: (() => unknown)[] = []
afterEach(async () => {
  for (const clean of cleaning.splice(0).reverse()) await clean()
})

/** Two engines on one store: what one deletes the other may still hold. */
async function two(kind: string): Promise<{ one: Tutti; other: Tutti; store: Store }> {
  const place = new Place()
  cleaning.push(() => place[Symbol.dispose]())
  const store = kind === 'memory' ? memoryStore() : await sqliteStore(place.store, { durability: 'process' })
  cleaning.push(() => store.close())
  const one = await opened({ store, definitions: [definition] })
  const other = await opened({ store })
  cleaning.push(
    () => one.close(),
    () => other.close(),
  )
  return { one, other, store }
}

async function deleted(by: Tutti): Promise<void> {
  await new Promise((resolve) => setTimeout(resolve, 2))
  expect(await by.gc({ olderThanMs: 0 })).toBeGreaterThan(0)
}

const calls: readonly (readonly [string, (run: Run) => Promise<unknown>])[] = [
  ['result', (run) => run.result()],
  ['output', (run) => run.output()],
  ['status', (run) => run.status()],
  ['summary', (run) => run.summary()],
  ['report', (run) => run.report()],
  ['history', (run) => run.history()],
  ['asks', (run) => run.asks()],
  ['events', (run) => journal(run)],
  ['pause', (run) => run.pause()],
  ['resume', (run) => run.resume()],
  ['cancel', (run) => run.cancel()],
  ['answer', (run) => run.answer('r~1', 1)],
]

test.each(['memory', 'sqlite'])(
  'a run that another engine has deleted is gone for all who know it, whatever they ask (%s)',
  async (kind) => {
    const { one, other } = await two(kind)
    // One that ended here, and one that was last seen as it waited.
    const here = await one.start(definition, { id: 'here', input: 1 })
    await here.result()
    const there = await one.start(definition, { id: 'there', input: 'ask' })
    await rest()
    const seen = await other.run('there')
    expect(await seen.status()).toBe('running')
    await there.answer('r~1', 'yes')
    await there.result()
    await deleted(other)
    for (const [name, call] of calls) expect(await codeOf(call(here)), `${name} of here`).toBe('RUN_NOT_FOUND')
    for (const [name, call] of calls) expect(await codeOf(call(seen)), `${name} of seen`).toBe('RUN_NOT_FOUND')
    expect(await codeOf(one.run('here'))).toBe('RUN_NOT_FOUND')
    expect(await codeOf(other.run('there'))).toBe('RUN_NOT_FOUND')
  },
)

test.each(['memory', 'sqlite'])('its id and its key are free in every engine, and mean the next run there (%s)', async (kind) => {
  const { one, other } = await two(kind)
  const first = await one.start(definition, { id: 'run', key: 'key', input: 1 })
  await first.result()
  await deleted(other)
  const second = await one.start(definition, { id: 'run', key: 'key', input: 2 })
  expect(await second.output()).toBe(2)
  expect(await (await other.run('run')).output()).toBe(2)
  expect(await first.output()).toBe(2)
  expect(await codeOf(one.start(definition, { id: 'run', input: 3 }))).toBe('RUN_EXISTS')
})

/** A store that an engine can be kept from looking at: it is as if its process stood still. */
function frozen(store: Store): { store: Store; freeze: () => void; thaw: () => void } {
  let held = deferred()
  held.resolve()
  const load: Store['load'] = async (...given) => {
    await held.promise
    return store.load(...given)
  }
  return {
    store: { ...store, load },
    freeze: () => {
      held = deferred()
    },
    thaw: () => held.resolve(),
  }
}

test('who waits for a run, or follows it, hears that it is gone, and is told nothing of the next of its id', async () => {
  const { one, store } = await two('memory')
  const glass = frozen(store)
  const other = await opened({ store: glass.store })
  cleaning.push(() => other.close())
  const run = await one.start(definition, { id: 'run', input: 'ask' })
  await rest()
  const seen = await other.run('run')
  const waiting = codeOf(seen.result())
  const events: string[] = []
  const following = codeOf(
    (async () => {
      for await (const { seq, type } of seen.events()) events.push(`${seq} ${type}`)
    })(),
  )
  await rest()
  const known = [...events]
  glass.freeze()
  await run.answer('r~1', 'yes')
  await run.result()
  await deleted(one)
  const next = await one.start(definition, { id: 'run', input: 'ask again' })
  await rest()
  await next.pause()
  glass.thaw()
  await rest()
  expect(await waiting).toBe('RUN_NOT_FOUND')
  expect(await following).toBe('RUN_NOT_FOUND')
  expect(events).toEqual(known)
  // Nor is anything of the two mixed.
  expect(await seen.asks()).toMatchObject([{ question: 'ask again' }])
  expect(await seen.status()).toBe('paused')
  await seen.resume()
  await seen.answer('r~1', 'again')
  expect(await next.output()).toBe('again')
})

test.each(['asks', 'is over'])(
  'who waits for the result of a run that is deleted before it is read gets nothing of the next, which %s',
  async (next) => {
    const { one, store } = await two('memory')
    let meanwhile = async (): Promise<void> => {}
    // The whole journal is read for the result, when the end of the run is known.
    const load: Store['load'] = async (id, options) => {
      if (options === undefined) await meanwhile()
      return store.load(id, options)
    }
    const other = await opened({ store: { ...store, load } })
    cleaning.push(() => other.close())
    await (await one.start(definition, { id: 'run', input: 1 })).result()
    const seen = await other.run('run')
    expect(await seen.result()).toMatchObject({ output: 1 })
    meanwhile = async () => {
      meanwhile = async () => {}
      await deleted(one)
      await one.start(definition, { id: 'run', input: next === 'asks' ? 'ask' : 2 })
      await rest()
    }
    expect(await codeOf(seen.result())).toBe('RUN_NOT_FOUND')
  },
)

test('a run whose id was used before is taken over as what it is, also by who knew the one before', async () => {
  const { store } = await two('memory')
  const glass = frozen(store)
  const worker = await opened({ store: glass.store })
  cleaning.push(() => worker.close())
  const one = await opened({ store, definitions: [definition] })
  const run = await one.start(definition, { id: 'run', input: 'ask' })
  await rest()
  expect(await (await worker.run('run')).status()).toBe('running')
  glass.freeze()
  await run.answer('r~1', 'yes')
  await run.result()
  await deleted(one)
  await one.start(definition, { id: 'run', input: 'ask again' })
  await rest()
  glass.thaw()
  await rest()
  await one.close()
  // From now on it has the definition, and takes what nobody has.
  await worker.execute(definition, { input: 0 })
  const taken = await worker.run('run')
  await rest()
  expect(await taken.asks()).toMatchObject([{ question: 'ask again' }])
  await taken.answer('r~1', 'again')
  expect(await taken.output()).toBe('again')
})

test('a run that is deleted while its large values are read is gone, not damaged', async () => {
  const { one, store } = await two('memory')
  const run = await one.start(definition, { id: 'run', input: 'x'.repeat(100_000) })
  await run.result()
  const blob: Store['blob'] = async (hash) => {
    await store.gc({ endedBefore: Number.MAX_SAFE_INTEGER, limit: 10 })
    return store.blob(hash)
  }
  const other = await opened({ store: { ...store, blob } })
  cleaning.push(() => other.close())
  expect(await codeOf(other.run('run').then((seen) => seen.report()))).toBe('RUN_NOT_FOUND')
})

test('who knew a run while it went on, and reads on when it is deleted, hears that it is gone, and may start another of its id', async () => {
  const { one, store } = await two('memory')
  const blob: Store['blob'] = async (hash) => {
    await store.gc({ endedBefore: Number.MAX_SAFE_INTEGER, limit: 10 })
    return store.blob(hash)
  }
  const other = await opened({ store: { ...store, blob } })
  cleaning.push(() => other.close())
  const run = await one.start(definition, { id: 'run', input: 'ask' })
  const seen = await other.run('run')
  await rest()
  await run.answer('r~1', 'x'.repeat(100_000))
  await run.result()
  expect(await codeOf(seen.status())).toBe('RUN_NOT_FOUND')
  expect(await (await other.start(definition, { id: 'run', input: 'another' })).output()).toBe('another')
})

test('how a run has ended is said also while the store is out of reach', async () => {
  const { store } = await two('memory')
  let isOut = false
  const load: Store['load'] = async (...given) => {
    if (isOut) throw new TuttiError('STORE_UNAVAILABLE', 'it is out of reach')
    return store.load(...given)
  }
  const one = await opened({ store: { ...store, load, moved: (worker) => isOut || store.moved(worker) } })
  cleaning.push(() => one.close())
  const run = await one.start(definition, { input: 1 })
  expect(await run.output()).toBe(1)
  isOut = true
  expect(await run.output()).toBe(1)
  expect(await run.status()).toBe('succeeded')
  isOut = false
})
