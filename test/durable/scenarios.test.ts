/**
 * Races that really happened, over a store that survives its processes. Those that need many processes stand where these are: D1, D2, D7
 * and I2 in `resumes`, D9 and E4 in `owners`, E6 in `steps`, G1 in `kill`.
 */
import * as tutti from 'tutti'
import { expect, test } from 'vitest'
import type { Store } from '../../src/engine/store.js'
import { memoryStore } from '../../src/stores/memory.js'
import { sqliteStore } from '../../src/stores/sqlite.js'
import { codeOf, deferred, forksEach, hub, solo, type SoloTurn, type WorkerTurn } from '../engine/opened.js'
import { randomOf } from '../scenarios/adapter.js'
import { counted } from './children/counted.js'
import { orphan, trio } from './children/plays.js'
import { Child, patience, Place, saying, seed, times, until } from './processes.js'

/** A store, and engines on it one after the other. */
class House implements AsyncDisposable {
  readonly place = new Place()
  readonly #definitions: readonly tutti.Definition[]
  #engine: tutti.Tutti | null = null

  constructor(...definitions: readonly tutti.Definition[]) {
    this.#definitions = definitions
  }

  get engine(): tutti.Tutti {
    if (this.#engine === null) throw new Error('it is not open')
    return this.#engine
  }

  async open(options: tutti.OpenOptions = {}): Promise<tutti.Tutti> {
    this.#engine = await tutti.open({ store: this.place.store, definitions: this.#definitions, invariants: true, ...options })
    return this.#engine
  }

  async restart(): Promise<tutti.Tutti> {
    await this.engine.close()
    return this.open()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#engine?.close()
    this.place[Symbol.dispose]()
  }
}

async function journalOf(run: tutti.Run): Promise<tutti.JournalEvent[]> {
  const events: tutti.JournalEvent[] = []
  for await (const event of run.events()) events.push(event)
  return events
}

const ofType = (journal: readonly tutti.JournalEvent[], type: string): number => journal.filter((event) => event.type === type).length
const pass = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms))

/** Every order of some things. */
function orders<T>(things: readonly T[]): T[][] {
  if (things.length <= 1) return [[...things]]
  return things.flatMap((first, at) => orders(things.filter((_, other) => other !== at)).map((rest) => [first, ...rest]))
}

/** A hub whose workers each ask once and reply with their request and the answer. */
const asking = (requests: readonly unknown[]) =>
  hub(forksEach(requests), (turn: WorkerTurn) =>
    turn.message.kind === 'answer' ? turn.reply(`${turn.request}: ${turn.message.value}`) : turn.ask(turn.request),
  )

test(
  'C1 branches that wait for people are answered in every order, with a restart after each: none goes back, the join fires once',
  patience,
  async () => {
    for (const order of orders(['a', 'b', 'c'])) {
      await using house = new House(asking(['a', 'b', 'c']))
      await house.open()
      const { id } = await house.engine.start('hub')
      await until('all ask', async () => (await house.engine.asks()).length === 3)
      for (const [at, who] of order.entries()) {
        const asks = await house.engine.asks()
        expect(new Set(asks.map((ask) => ask.kind === 'question' && ask.question))).toEqual(new Set(order.slice(at)))
        const ask = asks.find((one) => one.kind === 'question' && one.question === who)
        await (await house.engine.run(id)).answer(ask?.id ?? '', 'yes')
        await house.restart()
      }
      const run = await house.engine.run(id)
      expect(await run.output()).toEqual(['a: yes', 'b: yes', 'c: yes'])
      const journal = await journalOf(run)
      expect(ofType(journal, 'barrier.fired')).toBe(2)
      expect(journal.filter((event) => event.type === 'branch.settled' && event.branch !== 'r')).toHaveLength(3)
    }
  },
)

test.each(['before its answer', 'while its turn runs', 'after it'])(
  'C3 a branch that ends %s loses nothing of the iteration of its sibling',
  patience,
  async (when) => {
    const long = deferred()
    const turning = deferred()
    const begun = { long: deferred(), turn: deferred() }
    const definition = hub(forksEach(['long', 'loop']), async (turn: WorkerTurn) => {
      if (turn.request === 'long') {
        await turn.step('long', async () => {
          begun.long.resolve()
          await long.promise
        })
        return turn.reply('long')
      }
      if (turn.message.kind !== 'answer') return turn.ask('1')
      if (turn.message.question === '1') return turn.ask('2')
      await turn.step('second', async () => {
        house.place.write('second iteration')
        begun.turn.resolve()
        await turning.promise
      })
      return turn.reply('looped')
    })
    await using house = new House(definition)
    await house.open()
    const run = await house.engine.start('hub')
    const answer = async (question: string): Promise<void> => {
      const found = async () => (await run.asks()).find((ask) => ask.kind === 'question' && ask.question === question)
      await until(`it asks ${question}`, found)
      await run.answer((await found())?.id ?? '', 'on')
    }
    await begun.long.promise
    await answer('1')
    if (when === 'before its answer') long.resolve()
    await answer('2')
    await begun.turn.promise
    if (when === 'while its turn runs') long.resolve()
    await pass(10)
    turning.resolve()
    await pass(10)
    long.resolve()
    expect(await run.output()).toEqual(['long', 'looped'])
    expect(house.place.lines('second')).toHaveLength(1)
    expect(ofType(await journalOf(run), 'ask.answered')).toBe(2)
  },
)

test('C6 what a barrier has before a person is waited for is there after a restart', patience, async () => {
  const definition = hub(forksEach(['quick', 'asks']), (turn: WorkerTurn) => {
    if (turn.request === 'quick') return turn.reply('quick')
    return turn.message.kind === 'answer' ? turn.reply(turn.message.value) : turn.ask('?')
  })
  await using house = new House(definition)
  await house.open()
  const { id } = await house.engine.start('hub')
  await until('it asks', async () => (await house.engine.asks()).length === 1)
  await house.restart()
  const run = await house.engine.run(id)
  await run.pause()
  await house.restart()
  const [ask] = await house.engine.asks()
  const later = await house.engine.run(id)
  await later.answer(ask?.id ?? '', 'answered')
  await later.resume()
  expect(await later.output()).toEqual(['quick', 'answered'])
})

test('C7 after a crash a barrier gets one message from each source, and fires once', patience, async () => {
  await using house = new House(trio(tutti, (line) => house.place.write(line), {}))
  await using child = new Child('player', house.place, { play: 'trio', options: { hangs: true }, ids: ['run'] })
  await until('the last one hangs', () => house.place.lines('hangs').length === 1)
  await child.kill()
  await house.open()
  const run = await house.engine.run('run')
  expect(await run.output()).toEqual(['a', 'b', 'c'])
  expect(house.place.lines('body')).toEqual(['a', 'b', 'c', 'c'])
  const arrived = (await journalOf(run)).flatMap((event) => (event.type === 'barrier.arrived' && event.barrier !== 'b' ? [event.slot] : []))
  expect(new Set(arrived.slice(0, 3)).size).toBe(3)
  expect(ofType(await journalOf(run), 'barrier.fired')).toBe(2)
})

test('a run that nobody has goes on at once when it is answered or resumed', patience, async () => {
  await using house = new House(counted(tutti, (line) => house.place.write(line)))
  await house.open()
  const { id } = await house.engine.start('counted')
  await until('it asks', async () => (await house.engine.asks()).length === 1)
  await house.restart()
  const run = await house.engine.run(id)
  const since = performance.now()
  await run.pause()
  await run.answer((await run.asks())[0]?.id ?? '', 'now')
  await run.resume()
  expect(await run.output()).toBe('now')
  // Long before the next beat of its worker.
  expect(performance.now() - since).toBeLessThan(1_500)
})

test('a run that nobody has goes on at once when another process resumes it, however much is asked meanwhile', patience, async () => {
  await using house = new House(counted(tutti, (line) => house.place.write(line)))
  await house.open()
  const ids: string[] = []
  for (let n = 0; n < 10; n++) ids.push((await house.engine.start('counted')).id)
  await until('all ask', async () => (await house.engine.asks()).length === ids.length)
  for (const ask of await house.engine.asks()) {
    const run = await house.engine.run(ask.runId)
    await run.pause()
    await run.answer(ask.id, 'on')
  }
  await house.restart()
  await using other = await tutti.open({ store: house.place.store })
  for (const id of ids) {
    const run = await house.engine.run(id)
    const since = performance.now()
    const resumed = other.run(id).then((there) => there.resume())
    while ((await run.status()) !== 'succeeded') await new Promise((resolve) => setImmediate(resolve))
    await resumed
    // Long before the next beat of its worker.
    expect(performance.now() - since).toBeLessThan(1_500)
  }
})

test('C9 a loop stopped in the middle goes on as if it had not been', patience, async () => {
  const rounds = 4
  const definition = tutti.topology({
    name: 'loop',
    flows: ['Start -> A -> End', 'A <-> B', 'A -> User'],
    state: () => ({ seen: [] }),
    merge: { seen: 'mine' },
    agents: {
      A: (turn: tutti.Turn<any>) => {
        const { seen } = turn.state as { seen: unknown[] }
        if (turn.message.kind === 'answer') return turn.invoke('B', seen.length)
        return seen.length === rounds ? turn.finish(seen) : turn.ask(seen.length)
      },
      B: (turn: tutti.Turn<any>) => {
        const { seen } = turn.state as { seen: unknown[] }
        return turn.invoke('A', null, { state: { seen: [...seen, turn.request] } })
      },
    },
  } as never) as tutti.Definition
  const play = async (restarts: boolean): Promise<unknown[]> => {
    await using house = new House(definition)
    await house.open()
    const { id } = await house.engine.start('loop')
    for (let round = 0; round < rounds; round++) {
      await until('it asks', async () => (await house.engine.asks()).length === 1)
      if (restarts) await house.restart()
      await (await house.engine.run(id)).answer((await house.engine.asks())[0]?.id ?? '', 'on')
    }
    const run = await house.engine.run(id)
    const output = await run.output()
    const told = (await journalOf(run)).filter(({ type }) => type !== 'run.claimed' && type !== 'run.released')
    return [output, told.map((event) => JSON.stringify(event, (key, value) => (/^(seq|at|nonce|runId)$|At$/.test(key) ? 0 : value)))]
  }
  expect(await play(true)).toEqual(await play(false))
})

/** A store whose commits can be held up. */
function slowed(inner: Store, before: () => Promise<unknown>): Store {
  return { ...inner, commit: async (batch) => before().then(() => inner.commit(batch)) }
}

test('B5 what is recorded is what was returned, whatever its maker does to it while a slow disk writes', patience, async () => {
  for (const make of [async () => memoryStore(), async () => sqliteStore(new Place().store, { durability: 'process' })]) {
    const store = slowed(await make(), () => pass(10))
    const made: Record<string, unknown>[] = []
    const definition = solo(async (turn: SoloTurn) => {
      const object = await turn.step('make', () => {
        const value = { n: 1, list: [1] }
        made.push(value)
        setTimeout(() => Object.assign(value, { n: 2 }).list.push(2), 1)
        return value
      })
      expect(Object.isFrozen(object)).toBe(true)
      return turn.finish(object)
    })
    const engine = await tutti.open({ store, definitions: [definition] })
    const run = await engine.start(definition)
    expect(await run.output()).toEqual({ n: 1, list: [1] })
    expect(made).toEqual([{ n: 2, list: [1, 2] }])
    const journal = await journalOf(run)
    expect(journal.find(({ type }) => type === 'activity.completed')).toMatchObject({ value: { n: 1, list: [1] } })
    await engine.close()
    await store.close()
  }
})

test('D6 a run that is started again while it is being recovered is executed once', patience, async () => {
  await using house = new House(orphan(tutti, (line) => house.place.write(line), {}))
  const child = new Child('worker', house.place, { play: 'orphan', options: { hangs: true } })
  await child.line()
  child.tell(JSON.stringify({ start: ['run'] }))
  await child.line()
  await until('it has begun', () => house.place.lines('effect').length === 1)
  await child.kill()
  await house.open()
  const again = await Promise.allSettled(Array.from({ length: 3 }, () => house.engine.start('orphan', { id: 'run' })))
  expect(again.map((one) => one.status === 'rejected' && (one.reason as tutti.TuttiError).code)).toEqual(Array(3).fill('RUN_EXISTS'))
  expect(await (await house.engine.run('run')).output()).toBe(3)
  // One was in flight when its process died.
  expect(house.place.lines('effect')).toHaveLength(1 + 3)
})

test('D10 a question that is answered while it expires is closed once, and its journal is whole', patience, async () => {
  const definition = solo((turn: SoloTurn) => {
    if (turn.message.kind === 'request') return turn.ask('?', { timeoutMs: 15 })
    return turn.finish(turn.message.kind)
  })
  await using house = new House(definition)
  await house.open()
  const random = randomOf(seed)
  await saying(`TUTTI_SEED=${seed}`, async () => {
    for (let round = 0; round < times(12, 200); round++) {
      const run = await house.engine.start('solo')
      await until('it asks', async () => (await run.asks()).length === 1 || (await run.status()) === 'succeeded')
      const [ask] = await run.asks()
      await pass(8 + random() * 10)
      const codes = await Promise.all([1, 2].map((n) => codeOf(run.answer(ask?.id ?? 'gone', n))))
      const output = await run.output()
      const journal = await journalOf(run)
      expect(ofType(journal, 'ask.answered') + ofType(journal, 'ask.expired')).toBe(1)
      expect(output).toBe(ofType(journal, 'ask.answered') === 1 ? 'answer' : 'expired')
      expect(codes.filter((code) => typeof code !== 'string')).toHaveLength(ofType(journal, 'ask.answered'))
      expect((await run.report()).output).toBe(output)
    }
  })
})

test('E3 a monitor that acts on what it read long ago changes nothing of a run that has ended since', patience, async () => {
  await using house = new House(counted(tutti, (line) => house.place.write(line)))
  await house.open()
  const run = await house.engine.start('counted')
  await until('it asks', async () => (await run.asks()).length === 1)
  const ended = deferred()
  const inner = await sqliteStore(house.place.store, { durability: 'process' })
  const monitor = await tutti.open({ store: slowed(inner, () => ended.promise) })
  const stale = codeOf((await monitor.run(run.id)).cancel({ reason: 'it looks stuck' }))
  await pass(20)
  await run.answer((await run.asks())[0]?.id ?? '', 'fine')
  expect(await run.output()).toBe('fine')
  ended.resolve()
  expect(await stale).toBe('RUN_ENDED')
  expect(await run.result()).toMatchObject({ status: 'succeeded' })
  await monitor.close()
  await inner.close()
})

test('F10 a run that is cancelled while a worker takes it either was begun before, or never is', patience, async () => {
  const random = randomOf(seed)
  await using house = new House(orphan(tutti, (line) => house.place.write(line), { ms: 0 }))
  await house.open()
  await using other = await tutti.open({ store: house.place.store })
  await saying(`TUTTI_SEED=${seed}`, async () => {
    for (let round = 0; round < times(15, 200); round++) {
      const { id } = await house.engine.start('orphan')
      await house.engine.close()
      const run = await other.run(id)
      const opening = house.open()
      await pass(random() * 6)
      const code = await codeOf(run.cancel())
      const atAck = house.place.lines('effect').filter((line) => line.includes(`/${id}/`)).length
      await opening
      const result = await run.result()
      await pass(5)
      const now = house.place.lines('effect').filter((line) => line.includes(`/${id}/`)).length
      if (code === 'RUN_ENDED') expect(result.status).toBe('succeeded')
      else {
        expect(result.status).toBe('cancelled')
        // Between its last look and the acknowledgement elsewhere an owner may have begun one effect, and no more.
        expect(now - atAck).toBeLessThanOrEqual(1)
      }
    }
  })
})

test('H4 an answer reaches the branch that asked, and no other, in every order', patience, async () => {
  for (const order of orders(['x', 'y', 'z'])) {
    await using house = new House(asking(['x', 'y', 'z']))
    await house.open()
    const run = await house.engine.start('hub')
    await until('all ask', async () => (await run.asks()).length === 3)
    const asks = await run.asks()
    for (const who of order) {
      const ask = asks.find((one) => one.kind === 'question' && one.question === who)
      await run.answer(ask?.id ?? '', `for ${who}`)
      expect(await codeOf(run.answer(ask?.id ?? '', 'again'))).toMatch(/^(ASK_ALREADY_ANSWERED|RUN_ENDED)$/)
    }
    expect(await run.output()).toEqual(['x: for x', 'y: for y', 'z: for z'])
  }
})

test('H6 who finds a run by its key before the first to start it was told has the same run and the same end', patience, async () => {
  await using house = new House(orphan(tutti, (line) => house.place.write(line), { ms: 0 }))
  const inner = await sqliteStore(house.place.store, { durability: 'process' })
  const definition = orphan(tutti, (line) => house.place.write(line), { ms: 0 })
  const late: Store = { ...inner, commit: async (batch) => inner.commit(batch).then((verdicts) => pass(30).then(() => verdicts)) }
  await house.open()
  const first = await tutti.open({ store: late, definitions: [definition] })
  const started = first.start(definition, { key: 'child' })
  await until('it is written', async () => (await house.engine.runs()).runs.length === 1)
  const second = await house.engine.start('orphan', { key: 'child' })
  const outputs = await Promise.all([second.output(), started.then((run) => run.output())])
  expect(outputs).toEqual([3, 3])
  expect((await started).id).toBe(second.id)
  expect(house.place.lines('effect')).toHaveLength(3)
  await first.close()
  await inner.close()
})

test('I3 the place that a dead process held under a limit is free for the next', patience, async () => {
  await using house = new House(orphan(tutti, (line) => house.place.write(line), { concurrency: 1 }))
  const child = new Child('worker', house.place, { play: 'orphan', options: { hangs: true, concurrency: 1 } })
  await child.line()
  child.tell(JSON.stringify({ start: ['a', 'b', 'c'] }))
  await child.line()
  await until('one has begun', () => house.place.lines('effect').length === 1)
  await pass(30)
  expect(house.place.lines('effect')).toHaveLength(1)
  await child.kill()
  await house.open()
  for (const id of ['a', 'b', 'c']) expect(await (await house.engine.run(id)).output()).toBe(3)
  expect(house.place.lines('effect')).toHaveLength(1 + 9)
})

test(
  'I6 on a disk much slower than its steps nothing runs ahead of what is recorded, and an end is durable before it is told',
  patience,
  async () => {
    await using house = new House()
    const inner = await sqliteStore(house.place.store, { durability: 'process' })
    let [atOnce, most, largest] = [0, 0, 0]
    const store: Store = {
      ...inner,
      commit: async (batch) => {
        most = Math.max(most, ++atOnce)
        largest = Math.max(largest, batch.length)
        await pass(15)
        try {
          return await inner.commit(batch)
        } finally {
          atOnce--
        }
      },
    }
    const begun = new Map<string, number>()
    let ahead = 0
    const definition = solo(async (turn: SoloTurn) => {
      for (let n = 0; n < 4; n++) {
        await turn.step(`s${n}`, async () => {
          const recorded =
            (await inner.load(turn.runId))?.rows
              .map(({ body }) => body)
              .join()
              .split('activity.completed').length ?? 1
          begun.set(turn.runId, n + 1)
          ahead = Math.max(ahead, n + 1 - (recorded - 1))
        })
      }
      return turn.finish('done')
    })
    const engine = await tutti.open({ store, definitions: [definition] })
    const runs = await Promise.all(Array.from({ length: 700 }, () => engine.start(definition)))
    for (const run of runs) {
      expect(await run.output()).toBe('done')
      expect((await inner.load(run.id))?.row.endedAt).not.toBeNull()
    }
    expect(begun.size).toBe(700)
    expect(ahead).toBe(1)
    expect(most).toBe(1)
    expect(largest).toBeLessThanOrEqual(512)
    await engine.close()
    await inner.close()
  },
)
