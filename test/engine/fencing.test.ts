/** What a process may still say of a run that another one has taken over: nothing. And what it is told of one that it takes over: once. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Store } from 'tutti'
import { graph, open, TuttiError } from 'tutti'
import { expect, test } from 'vitest'
import { virtualClock } from 'tutti/testing'
import { memoryStore } from '../../src/stores/memory.js'
import { loadDriver, openDatabase } from '../../src/stores/sqlite-driver.js'
import { lasting } from '../graph/lasting.js'
import { codeOf, deferred, rest, solo, type SoloTurn } from './opened.js'

/** A store of which a process hears nothing that it does not ask for. */
function deaf(store: Store): Store {
  return new Proxy(store, {
    get: (inner, key) => {
      if (key === 'moved') return () => false
      if (key === 'onMoved') return () => () => {}
      return inner[key as keyof Store]
    },
  })
}

async function until(holds: () => boolean): Promise<void> {
  for (let tries = 0; !holds(); tries++) {
    if (tries > 2_000) throw new Error('it never held')
    await new Promise((resolve) => setTimeout(resolve, 2))
  }
}

test('what a body of the last owner comes to is recorded by nobody, although that owner has not heard of the next', async () => {
  const store = lasting()
  const bodies: string[] = []
  const gates = { first: deferred(), second: deferred() }
  const definition = (who: 'first' | 'second') =>
    solo(async (turn) => {
      bodies.push(who)
      await gates[who].promise
      return turn.finish(who)
    })
  await using first = await open({ store: deaf(store), invariants: true })
  const { id } = await first.start(definition('first'))
  await until(() => bodies.includes('first'))
  await using second = await open({ store, definitions: [definition('second')], invariants: true })
  const [peer] = (await store.beat(2)).filter(({ worker }) => worker === 1)
  expect(await store.fence({ worker: 1, beat: peer?.beat ?? 0 }, Date.now())).toBe(1)
  await until(() => bodies.includes('second'))
  gates.first.resolve()
  await rest(20)
  const run = await second.run(id)
  expect(await run.status()).toBe('running')
  gates.second.resolve()
  expect(await run.output()).toBe('second')
})

test('a turn that waits for room gives none back when its run is lost to somebody else', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'tutti-fencing-'))
  const path = join(folder, 'x.db')
  const driver = await loadDriver()
  const gate = deferred()
  let running = 0
  let most = 0
  const definition = solo({
    concurrency: 1,
    act: async (turn: SoloTurn) => {
      most = Math.max(most, ++running)
      await gate.promise
      running--
      return turn.finish('done')
    },
  })
  const tutti = await open({ store: path })
  try {
    const first = await tutti.start(definition)
    const lost = await Promise.all([tutti.start(definition), tutti.start(definition)])
    const last = await tutti.start(definition)
    await until(() => running === 1)
    const other = openDatabase(driver, path, 'write')
    for (const { id } of lost) other.exec(`update run set worker = 99, epoch = epoch + 1 where id = '${id}'`)
    other.close()
    // The process hears of it when it looks.
    for (const { id } of lost) await (await tutti.run(id)).pause().catch(() => {})
    await rest(20)
    expect(most).toBe(1)
    gate.resolve()
    expect(await first.output()).toBe('done')
    expect(await last.output()).toBe('done')
    expect(most).toBe(1)
  } finally {
    await tutti.close()
    rmSync(folder, { recursive: true, force: true })
  }
})

test('a step does not start once somebody else has the run, unless its owner has only just recorded something', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'tutti-fencing-'))
  const path = join(folder, 'x.db')
  const driver = await loadDriver()
  const ran: string[] = []
  const definition = solo(async (turn) => {
    await turn.step('one', () => ran.push('one'))
    // All in one go: the process hears of nothing that it does not ask for.
    const other = openDatabase(driver, path, 'write')
    other.exec('update run set worker = 99, epoch = epoch + 1')
    other.close()
    // For so long that what was recorded shows nothing any more (decision 24).
    for (const until = performance.now() + 2; performance.now() < until; );
    await turn.step('two', () => ran.push('two'))
    return turn.finish('done')
  })
  const tutti = await open({ store: path })
  try {
    await tutti.start(definition)
    await until(() => ran.length > 0)
    await rest(20)
    expect(ran).toEqual(['one'])
  } finally {
    await tutti.close()
    rmSync(folder, { recursive: true, force: true })
  }
})

test('a run is claimed once for each owner that it has had', async () => {
  const store = lasting()
  const definition = solo(async (turn) => {
    await new Promise((_, reject) => turn.signal.addEventListener('abort', () => reject(turn.signal.reason)))
  })
  const first = await open({ store, definitions: [definition] })
  const { id } = await first.start(definition)
  await rest(5)
  await first.close()
  for (let owner = 2; owner <= 4; owner++) {
    const next = await open({ store, definitions: [definition], invariants: true })
    await rest(20)
    await next.close()
  }
  await using last = await open({ store })
  const epochs: number[] = []
  for await (const event of (await last.run(id)).events({ signal: AbortSignal.timeout(200) }))
    if (event.type === 'run.claimed') epochs.push(event.epoch)
  expect(epochs).toEqual([2, 3, 4])
})

test('a cancel of a run that its owner has let go ends it at once, whoever says it', async () => {
  const store = lasting()
  let begun = 0
  const definition = solo(async (turn) => {
    begun++
    await new Promise((_, reject) => turn.signal.addEventListener('abort', () => reject(turn.signal.reason)))
  })
  const first = await open({ store, definitions: [definition] })
  const { id } = await first.start(definition)
  await rest(5)
  await first.close()
  await using other = await open({ store, invariants: true })
  const run = await other.run(id)
  await run.cancel()
  expect(await run.status()).toBe('cancelled')
  expect(await codeOf(run.output())).toBe('RUN_CANCELLED')
  expect(begun).toBe(1)
})

test('a run that is there is found also while somebody here tries to start one of its id', async () => {
  const store = lasting()
  const definition = solo((turn) => turn.ask('?'))
  const first = await open({ store, definitions: [definition] })
  await first.start(definition, { id: 'X' })
  await rest(5)
  await first.close()
  const gate = deferred()
  const slow = new Proxy(store, {
    get: (inner, key) => {
      if (key !== 'commit') return inner[key as keyof Store]
      return async (batch: Parameters<Store['commit']>[0]) => {
        if (batch.some((item) => 'create' in item && item.create !== undefined)) await gate.promise
        return inner.commit(batch)
      }
    },
  })
  await using second = await open({ store: slow })
  const starting = codeOf(second.start(definition, { id: 'X' }))
  await rest(5)
  const looking = second.run('X').then(({ id }) => id)
  await rest(5)
  gate.resolve()
  expect(await looking).toBe('X')
  expect(await starting).toBe('RUN_EXISTS')
})

/** Two engines over one store, each on a clock of its own, and who of them has executed what. */
function twoClocks(of: (who: 'one' | 'two') => { store: Store; gate: Promise<void>; ttlMs?: number }) {
  const ran: string[] = []
  const joining = async (who: 'one' | 'two') => {
    const { store, gate, ttlMs: workerTtlMs = 1_000 } = of(who)
    const definition = solo(async (turn) => {
      ran.push(who)
      await gate
      return turn.finish(who)
    })
    const clock = virtualClock(who === 'one' ? 0 : 1_000_000)
    return { clock, tutti: await open({ store, clock, workerTtlMs, graceMs: 100, definitions: [definition], invariants: true }) }
  }
  return { ran, join: joining }
}

test('a process that was fenced and comes back takes nothing from the one that has its runs now, also where nobody else was watched', async () => {
  const store = memoryStore()
  const gates = { one: deferred(), two: deferred() }
  const { ran, join } = twoClocks((who) => ({ store, gate: gates[who].promise }))
  const one = await join('one')
  const { id } = await one.tutti.start('solo')
  await until(() => ran.length === 1)
  const two = await join('two')
  for (let tries = 0; tries < 30 && !ran.includes('two'); tries++) await two.clock.advance(200)
  for (let ticks = 0; ticks < 20; ticks++) {
    await one.clock.advance(100)
    await two.clock.advance(100)
  }
  gates.one.resolve()
  gates.two.resolve()
  expect(await (await two.tutti.run(id)).output()).toBe('two')
  expect(ran).toEqual(['one', 'two'])
  await Promise.all([one.tutti.close(), two.tutti.close()])
})

test('a process is dead after its own time to live, however short that of another is', async () => {
  const store = memoryStore()
  const gates = { one: deferred(), two: deferred() }
  const { ran, join } = twoClocks((who) => ({ store, gate: gates[who].promise, ttlMs: who === 'one' ? 10_000 : 400 }))
  const one = await join('one')
  const { id } = await one.tutti.start('solo')
  await until(() => ran.length === 1)
  const two = await join('two')
  for (let ticks = 0; ticks < 80; ticks++) {
    await one.clock.advance(100)
    await two.clock.advance(100)
  }
  expect(ran).toEqual(['one'])
  // From here on it says nothing any more.
  await two.clock.advance(7_400)
  expect(ran).toEqual(['one'])
  for (let ticks = 0; ticks < 50 && ran.length === 1; ticks++) await two.clock.advance(100)
  gates.two.resolve()
  expect(await (await two.tutti.run(id)).output()).toBe('two')
  gates.one.resolve()
  await Promise.all([one.tutti.close(), two.tutti.close()])
})

test('who comes while a process asks who is there is not overlooked by it', async () => {
  const inner = memoryStore()
  const answered = deferred()
  const asked = deferred()
  // The first answer of the store is on its way for a while.
  const slow: Store = {
    ...inner,
    beat: async (worker) => {
      const peers = await inner.beat(worker)
      asked.resolve()
      await answered.promise
      return peers
    },
  }
  const gate = deferred()
  const { ran, join } = twoClocks((who) => ({ store: who === 'one' ? slow : inner, gate: gate.promise }))
  const one = await join('one')
  const { id } = await one.tutti.start('solo')
  await until(() => ran.length === 1)
  await asked.promise
  const two = await join('two')
  answered.resolve()
  for (let ticks = 0; ticks < 20; ticks++) {
    await one.clock.advance(250)
    await two.clock.advance(250)
  }
  gate.resolve()
  expect(await (await two.tutti.run(id)).output()).toBe('one')
  expect(ran).toEqual(['one'])
  await Promise.all([one.tutti.close(), two.tutti.close()])
})

test('a store that can not be looked at freezes nobody who waits, and is looked at again when it can', async () => {
  const real = memoryStore()
  let isOut = false
  let asked = 0
  const cut =
    <A extends readonly unknown[], R>(work: (...args: A) => Promise<R>) =>
    async (...args: A): Promise<R> => {
      if (!isOut) return work(...args)
      // Without this nothing else would ever have a turn.
      if (++asked > 5_000) throw new Error('it was asked again and again')
      throw new TuttiError('STORE_UNAVAILABLE', 'out of reach')
    }
  const store: Store = { ...real, mine: cut(real.mine), load: cut(real.load), commit: cut(real.commit), records: cut(real.records) }
  const go = deferred()
  const slow = graph('slow')
    .step('s', { run: () => go.promise })
    .output(() => 'done')
  await using tutti = await open({ store, onLog: () => {} })
  await using other = await open({ store: real, onLog: () => {} })
  const run = await tutti.start(slow)
  isOut = true
  await other.execute(
    graph('other')
      .step('x', { run: () => 1 })
      .output(),
  )
  const result = run.result()
  await new Promise((resolve) => setTimeout(resolve, 150))
  expect(asked).toBeLessThan(200)
  isOut = false
  go.resolve()
  expect(await result).toMatchObject({ status: 'succeeded', output: 'done' })
})

test('that one run is taken over, or several, is said in words that fit both', async () => {
  const logs: string[] = []
  const store: Store = { ...memoryStore(), beat: async () => [{ worker: 7, beat: 1, gone: true }], fence: async () => 1 }
  await using tutti = await open({ store, workerTtlMs: 20, onLog: ({ message }) => logs.push(message) })
  await until(() => logs.length > 0)
  expect(logs[0]).toBe('runs of workers that died are free to be taken over: 1')
  expect(await tutti.runs()).toEqual({ runs: [] })
})

test('a process that was fenced does not ask again and again for what it is not given: the next has the run', async () => {
  const base = memoryStore()
  let claims = 0
  const bodies: string[] = []
  const never = new Promise<never>(() => {})
  const store: Store = { ...base, claim: (asked) => (++claims > 500 ? never : base.claim(asked)) }
  const definition = (who: string) =>
    graph('held')
      .step('one', { run: () => (bodies.push(who), never) })
      .output()
  const first = await open({ store, definitions: [definition('first')], graceMs: 10 })
  await first.start('held', { id: 'r' })
  await until(() => bodies.length === 1)
  const second = await open({ store, definitions: [definition('second')], graceMs: 10 })
  await (await second.run('r')).status()
  const [owner] = (await base.beat(999)).filter(({ worker }) => worker === 1)
  if (owner === undefined) throw new Error('there is no first worker')
  await base.fence(owner, 0)
  await until(() => bodies.length === 2 || claims > 500)
  expect({ bodies, often: claims > 500 }).toEqual({ bodies: ['first', 'second'], often: false })
  await Promise.all([first.close(), second.close()])
})
