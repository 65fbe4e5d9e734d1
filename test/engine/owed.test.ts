/** Of a wide fork only so many turns are made ready at a time: what happens to the others before their time comes. */
import type { Store } from 'tutti'
import { topology } from 'tutti'
import { expect, test } from 'vitest'
import { virtualClock } from 'tutti/testing'
import { memoryStore } from '../../src/stores/memory.js'
import { lasting } from '../graph/lasting.js'
import { deferred, forksEach, hub, opened, rest, solo, type WorkerTurn } from './opened.js'

const width = 3_000
const requests = Array.from({ length: width }, (_, index) => index)

/** Workers that answer, and how often each has begun; `first` is called in the first of them. */
function counting(first: (turn: WorkerTurn) => unknown = () => {}) {
  const begun: number[] = []
  const work = async (turn: WorkerTurn): Promise<unknown> => {
    begun.push(turn.request as number)
    if (begun.length === 1) first(turn)
    await rest(1)
    return turn.reply(turn.request)
  }
  return { begun, work }
}

const inOrder = (begun: readonly number[]): number[] => begun.toSorted((a, b) => a - b)

test('they begin in the order of the fork, and not all of them before others have their turn', async () => {
  await using tutti = await opened({ invariants: false })
  const other = deferred<Promise<unknown>>()
  let before = -1
  const small = solo((turn) => {
    before = begun.length
    return turn.finish('small')
  })
  const { begun, work } = counting(() => other.resolve(tutti.execute(small)))
  const run = await tutti.start(hub(forksEach(requests), work))
  await other.promise
  expect(before).toBeGreaterThan(0)
  expect(before).toBeLessThan(width)
  expect(await run.output()).toEqual(requests)
  expect(begun).toEqual(requests)
})

test('paused and resumed again and again, each begins once', async () => {
  await using tutti = await opened({ invariants: false })
  const steered = deferred<Promise<void>>()
  const { begun, work } = counting(() => steered.resolve(steer()))
  const run = await tutti.start(hub(forksEach(requests), work))
  async function steer(): Promise<void> {
    for (let times = 0; times < 4; times++) {
      await run.pause()
      await run.resume()
    }
  }
  await steered.promise
  expect(await run.output()).toEqual(requests)
  expect(inOrder(begun)).toEqual(requests)
})

test('none begins after its run was cancelled, which ends', async () => {
  await using tutti = await opened({ invariants: false })
  const cancelled = deferred<Promise<number>>()
  const { begun, work } = counting(() => cancelled.resolve(run.cancel().then(() => begun.length)))
  const run = await tutti.start(hub(forksEach(requests), work))
  const before = await cancelled.promise
  expect((await run.result()).status).toBe('cancelled')
  await rest()
  expect(begun.length).toBe(before)
  expect(before).toBeLessThan(width)
})

test('those that a join no longer waits for do not begin', async () => {
  await using tutti = await opened({ invariants: false })
  const { begun, work } = counting()
  const first = (turn: WorkerTurn): unknown => (turn.request === 0 ? (begun.push(0), turn.reply('first')) : work(turn))
  expect(await tutti.execute(hub(forksEach(requests, 'any'), first))).toEqual(['first'])
  await rest()
  expect(begun.length).toBeLessThan(width)
})

test('while their agent is stopped they wait, and each begins once when it works again', async () => {
  await using tutti = await opened({ invariants: false })
  const stopping = deferred<Promise<unknown>>()
  const { begun, work } = counting(() => stopping.resolve(tutti.agents.pause('W')))
  const run = await tutti.start(hub(forksEach(requests), work))
  await stopping.promise
  await rest()
  const before = begun.length
  expect(before).toBeLessThan(width)
  await rest()
  expect(begun.length).toBe(before)
  await tutti.agents.resume('W')
  expect(await run.output()).toEqual(requests)
  expect(inOrder(begun)).toEqual(requests)
})

test("those of an agent that is held up and let go at once don't begin twice, although their branches go on", async () => {
  await using tutti = await opened({ invariants: false })
  const many = Array.from({ length: 6_000 }, (_, index) => index)
  const begun: unknown[] = []
  const steered = deferred<Promise<unknown>>()
  const work = {
    act: {
      request: (turn: WorkerTurn) => {
        if (begun.push(turn.request) === 1) steered.resolve(holdUp())
        return turn.ask(turn.request)
      },
      answer: (turn: WorkerTurn) => turn.reply(turn.request),
    },
  }
  const holdUp = async (): Promise<void> => {
    await tutti.agents.pause('W')
    // Some find their agent paused, others have yet to look.
    await rest(3)
    await tutti.agents.resume('W')
  }
  const run = await tutti.start(hub(forksEach(many), work))
  await steered.promise
  while ((await run.asks()).length < many.length) await rest()
  await rest()
  expect(begun).toHaveLength(many.length)
  await run.cancel()
})

test('when their agent is terminated each fails once, also those that had found it paused before', async () => {
  await using tutti = await opened({ invariants: false })
  const ending = deferred<Promise<unknown>>()
  const { begun, work } = counting(() => ending.resolve(end()))
  const end = async (): Promise<void> => {
    await tutti.agents.pause('W')
    // Some find their agent paused, others have yet to look.
    await rest(3)
    await tutti.agents.terminate('W')
  }
  const many = Array.from({ length: 6_000 }, (_, index) => index)
  const run = await tutti.start(hub(forksEach(many, 'settled'), { act: work, whenStopped: 'wait' }))
  await ending.promise
  expect((await run.result()).status).toBe('succeeded')
  expect(begun.length).toBeLessThan(many.length)
  expect(tutti.refusals()).toEqual({})
})

test('thousands that wait for their agent look at it again in one go: nobody else waits long for it', async () => {
  await using tutti = await opened({ invariants: false })
  const many = Array.from({ length: 6_000 }, (_, index) => index)
  const worker = { act: (turn: WorkerTurn) => turn.reply(turn.request), whenStopped: 'wait' }
  await tutti.execute(hub(forksEach([0]), worker))
  await tutti.agents.pause('W')
  const run = await tutti.start(hub(forksEach(many), worker))
  while (!(await run.summary()).waitsFor.includes('agent')) await rest()
  const since = performance.now()
  await tutti.agents.stop('W')
  await rest()
  expect(performance.now() - since).toBeLessThan(2_000)
  await tutti.agents.start('W')
  expect(await run.output()).toEqual(many)
})

test('a run whose turns all wait for their agent is let go from memory where many wait, and goes on once it works', async () => {
  const store = memoryStore()
  const definition = hub(forksEach(requests.slice(0, 300)), (turn: WorkerTurn) => turn.reply(turn.request))
  const asking = solo((turn) => (turn.message.kind === 'answer' ? turn.finish(0) : turn.ask('?')))
  await using tutti = await opened({ store, definitions: [definition, asking], invariants: false })
  await tutti.agents.pause('W')
  const run = await tutti.start(definition, { id: 'wide' })
  while (!(await run.summary()).waitsFor.includes('agent')) await rest()
  await Promise.all(Array.from({ length: 300 }, () => tutti.start(asking)))
  await rest()
  expect((await store.list({ limit: 1_000 })).find(({ id }) => id === 'wide')?.worker).toBe(null)
  await tutti.agents.resume('W')
  expect(await run.output()).toHaveLength(300)
})

test("those of a run come in their turn, although another one's branches go on again and again", async () => {
  await using tutti = await opened({ invariants: false })
  let asked = 0
  const talk = (turn: WorkerTurn): unknown => (turn.turn > 8 ? turn.reply(0) : (asked++, turn.ask('?', { timeoutMs: 0 })))
  const talking = await tutti.start(hub(forksEach(requests), talk))
  await rest(3)
  expect(await tutti.execute(hub(forksEach(requests), (turn: WorkerTurn) => turn.reply(asked)))).toHaveLength(width)
  const before = asked
  await talking.output()
  expect(before).toBeLessThan(asked / 2)
})

test('they come in their turn, although so many small runs go on again and again that these fill every macrotask', async () => {
  await using tutti = await opened({ invariants: false })
  let enough = false
  let tired = 0
  const talk = topology({
    name: 'talk',
    flows: ['Start -> A -> B -> A', 'A -> End'],
    agents: {
      A: (turn) => {
        if (!enough && turn.turn < 100) return turn.invoke('B')
        if (!enough) tired++
        return turn.finish(null)
      },
      B: (turn) => turn.invoke('A'),
    },
  })
  const talking = await Promise.all(Array.from({ length: 600 }, () => tutti.start(talk)))
  expect(await tutti.execute(hub(forksEach(requests.slice(0, 300)), (turn: WorkerTurn) => turn.reply(0)))).toHaveLength(300)
  enough = true
  await Promise.all(talking.map((run) => run.output()))
  expect(tired).toBe(0)
})

test('of a run whose journal is found damaged no more of them begin', async () => {
  const store = lasting()
  const stopped = deferred()
  let isDamaged = false
  const damaged = new Proxy(store, {
    get: (_, key) => {
      if (key !== 'load') return store[key as keyof Store]
      return async (...of: Parameters<Store['load']>) => {
        const loaded = await store.load(...of)
        return isDamaged && loaded !== null ? { ...loaded, rows: [{ seq: 1, n: 1, body: '' }] } : loaded
      }
    },
  })
  await using other = await opened({ store, invariants: false })
  await using tutti = await opened({ store: damaged, invariants: false, graceMs: 10, onLog: () => stopped.resolve() })
  const paused = deferred<Promise<void>>()
  const pause = async (): Promise<void> => {
    isDamaged = true
    await (await other.run(run.id)).pause()
  }
  const { begun, work } = counting(() => paused.resolve(pause()))
  const run = await tutti.start(hub(forksEach(requests), work))
  await paused.promise
  await stopped.promise
  const before = begun.length
  expect(before).toBeLessThan(width)
  await rest()
  expect(begun.length).toBe(before)
})

test('an engine that is closed begins no more of them; the next begins those that have not answered', async () => {
  const store = lasting()
  const closing = deferred<Promise<number>>()
  const { begun, work } = counting(() => closing.resolve(first.close().then(() => begun.length)))
  const definition = hub(forksEach(requests), work)
  const first = await opened({ store, invariants: false })
  const { id } = await first.start(definition)
  const before = await closing.promise
  await rest()
  expect(begun.length).toBe(before)
  expect(before).toBeLessThan(width)
  await using second = await opened({ store, definitions: [definition], invariants: false })
  expect(await (await second.run(id)).output()).toEqual(requests)
  expect([...new Set(inOrder(begun))]).toEqual(requests)
})

test('of a run that somebody else has taken over no more of them begin', async () => {
  const store = lasting()
  const clock = virtualClock()
  const fencing = deferred<Promise<number>>()
  const fence = async (): Promise<number> => {
    const [peer] = (await store.beat(2)).filter(({ worker }) => worker === 1)
    return store.fence({ worker: 1, beat: peer?.beat ?? 0 }, Date.now())
  }
  const old = counting(() => fencing.resolve(fence()))
  await using first = await opened({ store, clock, invariants: false })
  const { id } = await first.start(hub(forksEach(requests), old.work))
  const next = counting()
  await using second = await opened({ store, definitions: [hub(forksEach(requests), next.work)], invariants: false })
  expect(await fencing.promise).toBe(1)
  expect(await (await second.run(id)).output()).toEqual(requests)
  expect(old.begun.length).toBeLessThan(width)
  const twice = old.begun.filter((request) => next.begun.includes(request))
  // What had begun and not answered is begun again; nothing else is.
  expect(twice.length).toBeLessThan(width / 2)
  expect(inOrder([...new Set([...old.begun, ...next.begun])])).toEqual(requests)
})

test('of many that begin at once none does once its run is lost, if the process stood still in between', async () => {
  // It tells nobody by itself, as no other process can.
  const store = { ...memoryStore(), onMoved: () => () => {} }
  const clock = virtualClock()
  const work = (turn: WorkerTurn): unknown => {
    if (begun.push(turn.request) === 10) {
      // In the middle of a macrotask, as a frozen process has it.
      for (let beat = 0; beat < 100; beat++) void store.fence({ worker: 1, beat }, 0)
      const since = performance.now()
      while (performance.now() < since + 5);
      setImmediate(() => then.resolve(begun.length))
    }
    return turn.reply(turn.request)
  }
  const begun: unknown[] = []
  const then = deferred<number>()
  await using first = await opened({ store, clock, invariants: false })
  await first.start(hub(forksEach(requests), work))
  expect(await then.promise).toBe(10)
})

test('of a run that is stopped because its journal can not be read no more of them begin', async () => {
  const inner = memoryStore()
  let isCut = false
  const load: typeof inner.load = async (id, options) => {
    const loaded = await inner.load(id, options)
    return loaded === null || !isCut ? loaded : { ...loaded, rows: loaded.rows.map((row) => ({ ...row, body: row.body.slice(0, 5) })) }
  }
  const stopped = deferred<number>()
  const { begun, work } = counting(() => {
    isCut = true
    // The owner reads what another has said.
    void other.run('r').then((run) => run.pause())
  })
  await using other = await opened({ store: inner })
  const onLog = ({ message }: { message: string }): void => {
    if (message.startsWith('the run is stopped')) stopped.resolve(begun.length)
  }
  await using tutti = await opened({ store: { ...inner, load }, onLog, invariants: false })
  await tutti.start(hub(forksEach(requests), work), { id: 'r' })
  const before = await stopped.promise
  await rest()
  expect(begun.length).toBe(before)
  expect(before).toBeLessThan(width)
})
