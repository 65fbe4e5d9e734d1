/** What is said of a run is so of the runs that it waits for: whoever says it, and also if nobody executes them at that moment. */
import type { Clock, Definition, Run, Store, Tutti } from 'tutti'
import { graph, open, resource, topology, TuttiError } from 'tutti'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { systemClock } from '../../src/engine/clock.js'
import { codeOf, deferred, journalSoFar, opened, rest, timed, typesOf, untilAborted } from '../engine/opened.js'
import { Folder } from '../stores/folder.js'
import { lasting } from './lasting.js'

/** A run that waits for a child that waits for a grandchild that waits for a person; `did` has what was done and undone. */
function tree(did: string[], undoing: Promise<void> = Promise.resolve(), input = (): number => 1) {
  const grandchild = graph('grandchild', { input: z.any() })
    .step('pay', { run: () => did.push('pay'), compensate: () => undoing.then(() => void did.push('undo pay')) })
    .ask('sure', { after: ['pay'], question: () => 'sure?', schema: z.any() })
    .step('send', { after: ['sure'], run: () => did.push('send') })
    .output(() => 1)
  const child = graph('child', { input: z.any() })
    .step('part', { input: () => 1, run: grandchild })
    .output(() => 1)
  return graph('tree')
    .step('first', { run: () => did.push('first'), compensate: () => void did.push('undo first') })
    .step('all', { after: ['first'], each: () => [1], input, run: child })
    .output(() => 1)
}

const leaf = 'R:all:0:part'
const ids = ['R', 'R:all:0', leaf]

async function until(holds: () => Promise<boolean>): Promise<void> {
  for (let tries = 0; !(await holds()); tries++) {
    if (tries > 2_000) throw new Error('it never held')
    await new Promise((resolve) => setTimeout(resolve, 2))
  }
}

const statuses = async (tutti: Tutti): Promise<string[]> => Promise.all(ids.map(async (id) => (await tutti.run(id)).status()))
const all = (status: string): string[] => ids.map(() => status)
const untilAll = (tutti: Tutti, status: string): Promise<void> =>
  until(async () => (await statuses(tutti)).every((found) => found === status))

/** A store that takes nothing of some runs. */
function without(store: Store, runs: readonly string[]): Store {
  return new Proxy(store, {
    get: (inner, key) => {
      if (key !== 'commit') return inner[key as keyof Store]
      return (batch: Parameters<Store['commit']>[0]) =>
        batch.some((item) => 'run' in item && runs.includes(item.run))
          ? Promise.reject(new TuttiError('STORE_LOCKED', 'somebody else writes'))
          : inner.commit(batch)
    },
  })
}

/** Says something of a run where nobody can tell its children: it is so of the run, and whoever said it dies while it waits for the rest. */
async function saidAlone(tutti: Tutti, say: (run: Run) => Promise<void>): Promise<void> {
  const run = await tutti.run('R')
  const before = await run.status()
  void say(run)
  await until(async () => (await run.status()) !== before)
}

/** A store that is slow with what it is given of one event of a run, once. */
function slowWith(store: Store, run: string, type: string): { store: Store; begun: Promise<void>; go: () => void } {
  const [asked, answered] = [deferred(), deferred()]
  let isFirst = true
  const slow = new Proxy(store, {
    get: (inner, key) => {
      if (key !== 'commit') return inner[key as keyof Store]
      return async (batch: Parameters<Store['commit']>[0]) => {
        if (isFirst && batch.some((item) => 'run' in item && item.run === run && JSON.stringify(item.rows).includes(type))) {
          isFirst = false
          asked.resolve()
          await answered.promise
        }
        return inner.commit(batch)
      }
    },
  })
  return { store: slow, begun: asked.promise, go: () => answered.resolve() }
}

/** The tree, begun, up to the question; and what opens the same store again. */
async function begun(clock?: Clock) {
  const did: string[] = []
  const store: Store = lasting()
  const again = (executes = true, by?: Clock): Promise<Tutti> =>
    open({ store, invariants: true, ...(executes && { definitions: [tree(did)] }), ...(by !== undefined && { clock: by }), graceMs: 50 })
  const first = await again(true, clock)
  const run = await first.start('tree', { id: 'R' })
  await until(async () => (await first.asks()).length === 1)
  const answer = async (tutti: Tutti): Promise<void> => {
    const [ask] = await tutti.asks()
    await (await tutti.run(leaf)).answer(ask?.id ?? '', 'yes')
  }
  return { did, store, first, run, again, answer }
}

describe('a pause', () => {
  test('has reached all of them when it is acknowledged, and a resume too', async () => {
    const { first, run, answer, did } = await begun()
    await run.pause()
    expect(await statuses(first)).toEqual(all('paused'))
    await answer(first)
    await rest(20)
    expect(did).not.toContain('send')
    await run.resume()
    expect(await statuses(first)).not.toContain('paused')
    expect(await run.output()).toBe(1)
    expect(did).toEqual(['first', 'pay', 'send'])
    await first.close()
  })

  test('ends for all of them with a resume after a restart', async () => {
    const { first, run, again, answer, did } = await begun()
    await run.pause()
    await first.close()
    await using second = await again()
    expect(await statuses(second)).toEqual(all('paused'))
    const found = await second.run('R')
    await found.resume()
    await answer(second)
    expect(await found.output()).toBe(1)
    expect(did).toEqual(['first', 'pay', 'send'])
  })

  test('of a run that nobody executes holds its children when somebody takes those over', async () => {
    const { first, again, answer, did } = await begun()
    await first.close()
    await using other = await again(false)
    await (await other.run('R')).pause()
    await using second = await again()
    await answer(second)
    await untilAll(second, 'paused')
    expect(did).toEqual(['first', 'pay'])
  })

  test('holds them also if who said it died before it had told them', async () => {
    const { first, again, store, did } = await begun()
    await first.close()
    await using other = await open({ store: without(store, [ids[1] ?? '', leaf]), onLog: () => {} })
    await saidAlone(other, (run) => run.pause())
    expect(await statuses(other)).toEqual(['paused', 'running', 'running'])
    await using second = await again()
    await untilAll(second, 'paused')
    expect(did).toEqual(['first', 'pay'])
    // Said before the claim: whoever takes it is given it paused, and does not die of what it does.
    const child = await second.run('R:all:0')
    expect(typesOf(await journalSoFar(child)).slice(-2)).toEqual(['run.paused', 'run.claimed'])
  })

  test('reaches them if it is sent again under its key, as does a cancel, also if who sent it first died before it had told them', async () => {
    const { first, again, store, did } = await begun()
    await first.close()
    await using other = await open({ store: without(store, ids.slice(1)), onLog: () => {} })
    await saidAlone(other, (run) => run.pause({ key: 'k' }))
    expect(await statuses(other)).toEqual(['paused', 'running', 'running'])
    await using later = await again(false)
    const run = await later.run('R')
    await run.pause({ key: 'k' })
    expect(await statuses(later)).toEqual(all('paused'))
    await saidAlone(other, (run) => run.cancel({ key: 'c' }))
    expect(await (await later.run(leaf)).status()).toBe('paused')
    await run.cancel({ key: 'c' })
    expect(await (await later.run(leaf)).status()).toBe('compensating')
    await using second = await again()
    expect(await (await second.run('R')).result()).toMatchObject({ status: 'cancelled', rollback: 'complete' })
    expect(did).toEqual(['first', 'pay', 'undo pay', 'undo first'])
  })

  test('reaches them when the run that waits for them is taken over, also if that has missed nothing', async () => {
    const child = graph('child', { input: z.any() })
      .ask('sure', { question: () => 'sure?', schema: z.any() })
      .output(() => 1)
    const parent = graph('parent')
      .step('part', { input: () => 1, run: child })
      .output(() => 1)
    const store = lasting()
    const first = await open({ store, definitions: [parent], graceMs: 50 })
    await first.start(parent, { id: 'R' })
    await until(async () => (await first.asks()).length === 1)
    await first.close()
    // Its owner dies, and who pauses it has told nobody else.
    const dead = await store.join({ nonce: 'dead' })
    const { rows } = await store.claim({ worker: dead, definitions: [{ name: 'parent', versions: ['1'] }], now: Date.now() + 1, limit: 1 })
    expect(rows).toMatchObject([{ id: 'R' }])
    await using other = await open({ store: without(store, ['R:part']), onLog: () => {} })
    await saidAlone(other, (run) => run.pause())
    const part = await other.run('R:part')
    expect(await part.status()).toBe('running')
    await store.leave(dead, Date.now())
    await using second = await open({ store, definitions: [parent], invariants: true, graceMs: 50 })
    await until(async () => (await (await second.run('R:part')).status()) === 'paused')
  })

  test('of one of them for itself outlasts a resume of the run that waits for it', async () => {
    const { first, run } = await begun()
    await (await first.run(leaf)).pause({ by: 'ann' })
    await run.pause()
    await run.resume()
    expect(await statuses(first)).toEqual(['running', 'running', 'paused'])
    await first.close()
  })

  test('of a run leaves those alone that are resumed for themselves', async () => {
    const { first, run, answer, did } = await begun()
    await run.pause()
    await (await first.run(leaf)).resume({ by: 'ann' })
    await answer(first)
    await (await first.run(leaf)).result()
    expect(did).toEqual(['first', 'pay', 'send'])
    expect(await statuses(first)).toEqual(['paused', 'paused', 'succeeded'])
    await first.close()
  })

  test.each([
    ['that stands still', 0],
    ['that is ahead', 60_000],
    ['that is behind', -60_000],
  ])('comes before or after a resume of one of them for itself, whatever is said by a clock %s', async (_, ms) => {
    const at = (now: number): Clock => ({ ...systemClock, now: () => now })
    const { first, run, again } = await begun(at(100_000))
    await using other = await again(false, at(100_000 + ms))
    const one = await other.run(leaf)
    await one.pause()
    await one.resume()
    await run.pause()
    expect(await statuses(first)).toEqual(all('paused'))
    await one.resume()
    await run.pause()
    expect(await statuses(first)).toEqual(['paused', 'paused', 'running'])
    await first.close()
  })

  test('of a run leaves them alone also when it is sent again under its key, and after a restart', async () => {
    const { first, run, again, answer, did } = await begun()
    await run.pause({ key: 'once' })
    await (await first.run(leaf)).resume({ by: 'ann' })
    await run.pause({ key: 'once' })
    expect(await statuses(first)).toEqual(['paused', 'paused', 'running'])
    await first.close()
    await using second = await again()
    await answer(second)
    await (await second.run(leaf)).result()
    expect(did).toEqual(['first', 'pay', 'send'])
    expect(await statuses(second)).toEqual(['paused', 'paused', 'succeeded'])
  })

  test('holds them also if who said it died before it had told them, though they had been paused and resumed with it before', async () => {
    const { first, run, store, answer, did } = await begun()
    await run.pause()
    await run.resume()
    await using other = await open({ store: without(store, ['R:all:0', leaf]) })
    // It was acknowledged to nobody: neither of those below has heard of it.
    const { promise: dead } = deferred()
    await Promise.race([(await other.run('R')).pause(), dead, until(async () => (await run.status()) === 'paused')])
    await answer(first)
    await rest(200)
    expect(did).toEqual(['first', 'pay'])
    await first.close()
  })

  test('that reaches one of them only after a resume from elsewhere does not hold it', async () => {
    const { first, run, store, answer } = await begun()
    const slow = slowWith(store, 'R:all:0', 'run.paused')
    await using other = await open({ store: slow.store })
    const pausing = (await other.run('R')).pause()
    await slow.begun
    await run.resume()
    slow.go()
    await pausing
    expect(await statuses(first)).toEqual(all('running'))
    await answer(first)
    expect(await run.output()).toBe(1)
    await first.close()
  })

  test('holds them all, also if they are resumed only after it, by who resumed before it', async () => {
    const { first, run, store } = await begun()
    await run.pause()
    const slow = slowWith(store, 'R:all:0', 'run.resumed')
    await using other = await open({ store: slow.store })
    const resuming = (await other.run('R')).resume()
    await slow.begun
    await run.pause()
    slow.go()
    await resuming
    expect(await statuses(first)).toEqual(all('paused'))
    await first.close()
  })
})

describe('what was said before a child was there, and is acknowledged,', () => {
  /** A body in so many graphs, one around the other; `log` has when it began, and its effect. */
  function nested(depth: number, log: string[]): Definition<unknown, unknown> {
    let inner: Definition<unknown, unknown> = topology({
      name: 'innermost',
      flows: ['Start -> A -> End'],
      agents: {
        A: async (turn) => {
          log.push('body')
          await turn.step('effect', () => log.push('effect'))
          return turn.finish(1)
        },
      },
    })
    for (let level = 0; level < depth; level++) inner = graph(`level${level}`).step('in', { run: inner }).output()
    return inner
  }

  for (const command of ['cancel', 'pause'] as const) {
    test(`begins nothing in it: a ${command}, whenever it comes from elsewhere`, { timeout: 60_000 }, async () => {
      using folder = new Folder()
      for (const depth of [1, 3]) {
        const log: string[] = []
        const store = folder.file()
        const definition = nested(depth, log)
        await using owner = await open({ store, definitions: [definition] })
        await using other = await open({ store })
        let accepted = 0
        for (let at = 0; at < 16 * depth; at++) {
          log.length = 0
          const run = await owner.start(definition)
          const seen = await other.run(run.id)
          await rest(at >> 1)
          const code = await codeOf(seen[command]())
          const before = [...log]
          if (code === 'RUN_ENDED') continue
          accepted++
          await rest(60)
          // One that had begun goes on to its end.
          expect(log.filter((what) => what === 'body')).toEqual(before.filter((what) => what === 'body'))
          // What was in flight may have been the last of it.
          if (command === 'pause') await codeOf(seen.resume())
          expect((await run.result()).status).toBe(command === 'pause' ? 'succeeded' : 'cancelled')
        }
        expect(accepted).toBeGreaterThan(4 * depth)
      }
    })

    test(`begins nothing in it, also where its parent has more to say at that moment: a ${command}`, async () => {
      const log: string[] = []
      const said = deferred()
      const store = lasting()
      const definition = graph('parent')
        .step('in', { run: nested(0, log) })
        .step('beside', { run: () => said.promise })
        .output(() => 1)
      const slow = slowWith(store, 'R:in', 'run.started')
      // Whoever does not ask it is not told, and who asks waits.
      const silent = new Proxy(slow.store, {
        get: (inner, key) => {
          if (key === 'onMoved') return () => () => {}
          if (key !== 'mine') return inner[key as keyof Store]
          return (worker: number) => rest(3).then(() => inner.mine(worker))
        },
      })
      await using owner = await open({ store: silent, invariants: true, definitions: [definition] })
      await using other = await open({ store })
      const run = await owner.start(definition, { id: 'R' })
      await slow.begun
      const seen = await other.run('R')
      await seen[command]()
      said.resolve()
      await rest(5)
      slow.go()
      await rest()
      expect(log).toEqual([])
      if (command === 'pause') await seen.resume()
      expect((await run.result()).status).toBe(command === 'pause' ? 'succeeded' : 'cancelled')
      expect(log).toEqual(command === 'pause' ? ['body', 'effect'] : [])
    })

    test(`begins nothing on the way down to it: a ${command} of the first of five`, async () => {
      for (let at = 0; at < 30; at++) {
        const log: string[] = []
        await using tutti = await opened()
        const run = await tutti.start(nested(5, log))
        const said = command === 'cancel' ? 'run.closing' : 'run.paused'
        const following = (async () => {
          for await (const { type } of run.events()) if (type === said || type === 'run.resumed') log.push(type)
        })()
        await rest(at)
        await codeOf(run[command]())
        await rest(60)
        if (command === 'pause') await codeOf(run.resume())
        await run.result()
        await following
        const body = log.indexOf('body')
        const [from, to] = [log.indexOf(said), log.includes('run.resumed') ? log.indexOf('run.resumed') : log.length]
        expect(from !== -1 && from < body && body < to, `at ${at}: ${log.join(' ')}`).toBe(false)
      }
    })
  }

  test('begins nothing of what undoes it: a pause', async () => {
    for (const depth of [1, 2]) {
      const log: string[] = []
      const store = lasting()
      let inner: Definition<unknown, unknown> = graph('innermost')
        .step('pay', { run: () => log.push('pay'), compensate: () => void log.push('undo pay') })
        .output(() => 1)
      for (let level = 1; level < depth; level++) inner = graph(`level${level}`).step('in', { run: inner }).output()
      const definition = graph('parent')
        .step('in', { run: inner })
        .step('fails', {
          after: ['in'],
          run: () => {
            throw new Error('no')
          },
        })
        .output(() => 1)
      const slow = slowWith(store, `R${':in'.repeat(depth)}:undo`, 'run.started')
      await using owner = await open({ store: slow.store, invariants: true, definitions: [definition] })
      await using other = await open({ store })
      const run = await owner.start(definition, { id: 'R' })
      await slow.begun
      const seen = await other.run('R')
      await seen.pause()
      slow.go()
      await rest()
      expect(log).toEqual(['pay'])
      await seen.resume()
      expect(await run.result()).toMatchObject({ status: 'failed', rollback: 'complete' })
      expect(log).toEqual(['pay', 'undo pay'])
      // Nothing is said to a run that is over.
      expect(owner.refusals()).not.toHaveProperty('RUN_ENDED')
    }
  })
})

test('a pause holds also one of them that is not wanted any more: nothing of it is undone meanwhile', async () => {
  const did: string[] = []
  const undoing = deferred()
  const going = deferred()
  const child = graph('child')
    .step('a', { run: () => 1, compensate: () => void did.push('undo a') })
    .step('b', {
      after: ['a'],
      run: () => 1,
      compensate: async () => {
        did.push('undo b')
        undoing.resolve()
        await going.promise
      },
    })
    .step('long', { after: ['b'], run: ({ signal }) => untilAborted(signal) })
    .output(() => 1)
  const parent = graph('parent', { stragglers: 'cancel' })
    .step('part', { run: child })
    .step('fails', {
      run: async ({ step }) => {
        await step('later', () => new Promise((resolve) => setTimeout(resolve, 40)))
        throw new Error('no')
      },
    })
    .output(() => 1)
  await using tutti = await opened()
  const run = await tutti.start(parent, { id: 'R' })
  await undoing.promise
  await run.pause()
  going.resolve()
  await rest(200)
  expect(did).toEqual(['undo b'])
  expect(await (await tutti.run('R:part')).status()).toBe('paused')
  await run.resume()
  expect(await run.result()).toMatchObject({ status: 'failed' })
  expect(did).toEqual(['undo b', 'undo a'])
})

describe('a cancel', () => {
  const allUndone = ['first', 'pay', 'undo pay', 'undo first']

  test('reaches all of them after a pause and a restart, and what they did is undone first', async () => {
    const { first, run, again, did } = await begun()
    await run.pause()
    await first.close()
    await using second = await again()
    const found = await second.run('R')
    await found.cancel()
    expect(await found.result()).toMatchObject({ status: 'cancelled', rollback: 'complete' })
    expect(await statuses(second)).toEqual(all('cancelled'))
    expect(did).toEqual(allUndone)
  })

  test('right after a restart reaches those that another process has taken over', async () => {
    const { first, again, did } = await begun()
    await first.close()
    await using other = await again(false)
    await (await other.run('R')).cancel()
    await using second = await again()
    expect(await (await second.run('R')).result()).toMatchObject({ status: 'cancelled', rollback: 'complete' })
    expect(await statuses(second)).toEqual(all('cancelled'))
    expect(did).toEqual(allUndone)
  })

  test('from elsewhere reaches them although its owner closes at once', async () => {
    const { first, again, did } = await begun()
    await using other = await again(false)
    await (await other.run('R')).cancel()
    await first.close()
    await using second = await again()
    expect(await (await second.run('R')).result()).toMatchObject({ status: 'cancelled', rollback: 'complete' })
    expect(await statuses(second)).toEqual(all('cancelled'))
    expect(did).toEqual(allUndone)
  })

  test('lets those go on that are being undone already, and stand still because it was paused', async () => {
    for (const cause of ['it fails', 'it was cancelled', 'it fails, and nobody executes it']) {
      const did: string[] = []
      const [first, second] = [deferred(), deferred()]
      const child = graph('child', { input: z.any() })
        .step('a', { run: () => 'a', compensate: () => void did.push('undo a') })
        .step('b', {
          after: ['a'],
          run: () => 'b',
          compensate: async () => {
            first.resolve()
            await second.promise
            did.push('undo b')
          },
        })
        .ask('sure', { after: ['b'], question: () => 'sure?', schema: z.any() })
        .step('c', {
          after: ['sure'],
          run: () => {
            throw new Error('no')
          },
        })
        .output(() => 1)
      const parent = graph('parent')
        .step('part', { input: () => 1, run: child })
        .output(() => 1)
      const store: Store = lasting()
      const tutti = await open({ store, invariants: true, definitions: [parent], graceMs: 50 })
      const run = await tutti.start(parent, { id: 'P' })
      await until(async () => (await tutti.asks()).length === 1)
      const part = await tutti.run('P:part')
      await (cause === 'it was cancelled' ? part.cancel() : part.answer((await part.asks())[0]?.id ?? '', 1))
      await first.promise
      await run.pause()
      second.resolve()
      await until(async () => did.length === 1)
      const dies = cause.endsWith('executes it')
      if (dies) await tutti.close()
      await using later = await open({ store, invariants: true, definitions: dies ? [parent] : [], graceMs: 50 })
      const found = await later.run('P')
      await found.cancel()
      expect(await found.result()).toMatchObject({ status: 'cancelled' })
      expect(did).toEqual(['undo b', 'undo a'])
      await tutti.close()
    }
  })

  test('waits for them also if its step was begun again by another process and has not found them yet', async () => {
    const { first, store, did } = await begun()
    await first.close()
    const [begins, made, undone] = [deferred(), deferred(), deferred()]
    const slow = resource<string>('slow').perRun(async ({ id }) => {
      if (id !== 'R') return 'ready'
      begins.resolve()
      await made.promise
      return 'ready'
    })
    await using second = await open({ store, invariants: true, definitions: [tree(did, undone.promise)], resources: [slow], graceMs: 50 })
    const run = await second.run('R')
    await begins.promise
    await run.cancel()
    made.resolve()
    await rest(30)
    expect(await statuses(second)).not.toContain('cancelled')
    undone.resolve()
    expect(await run.result()).toMatchObject({ status: 'cancelled', rollback: 'complete' })
    expect(did).toEqual(allUndone)
  })

  test('that keeps what was done keeps what they did', async () => {
    const { first, run, did } = await begun()
    await run.cancel({ compensate: false })
    expect(await run.result()).toMatchObject({ status: 'cancelled', rollback: 'none' })
    expect(await statuses(first)).toEqual(all('cancelled'))
    expect(did).toEqual(['first', 'pay'])
    await first.close()
  })

  test('waits for as long as they undo, whatever the grace of a body, and says what they could not', async () => {
    for (const fails of [false, true]) {
      const did: string[] = []
      await using at = await timed({ graceMs: 5_000 })
      const child = graph('child', { input: z.any() })
        .step('a', {
          run: () => 'a',
          compensate: async () => {
            await at.clock.sleep(6_000)
            if (fails) throw new Error('it can not')
            did.push('undo a')
          },
        })
        .ask('sure', { after: ['a'], question: () => 'sure?', schema: z.any() })
        .output(() => 1)
      const parent = graph('parent')
        .step('first', { run: () => 1, compensate: () => void did.push('undo first') })
        .step('part', { after: ['first'], input: () => 1, run: child })
        .output(() => 1)
      const run = await at.tutti.start(parent, { id: 'P' })
      await rest(40)
      await run.cancel()
      await at.clock.advance(5_500)
      expect(await run.status()).not.toBe('cancelled')
      expect(did).toEqual([])
      await at.clock.advance(600_000)
      const { status, rollback, report } = await run.result()
      expect([status, rollback, report.notUndone.length]).toEqual(['cancelled', fails ? 'partial' : 'complete', fails ? 1 : 0])
      expect(did).toEqual(fails ? ['undo first'] : ['undo a', 'undo first'])
    }
  })
})

test('a store that is out of reach for a while when a child is to be started fails nothing', async () => {
  const store = lasting()
  let faults = 4
  const failing = new Proxy(store, {
    get: (inner, key) => {
      if (key !== 'commit') return inner[key as keyof Store]
      return (batch: Parameters<Store['commit']>[0]) => {
        const isChild = batch.some((item) => 'run' in item && item.run === 'R:part' && item.create !== undefined)
        if (isChild && faults-- > 0) return Promise.reject(new TuttiError('STORE_LOCKED', 'somebody else writes'))
        return inner.commit(batch)
      }
    },
  })
  const child = graph('child', { input: z.any() })
    .step('a', { run: () => 'a' })
    .output(({ steps }) => steps.a)
  const parent = graph('parent')
    .step('part', { input: () => 1, run: child })
    .output(({ steps }) => steps.part)
  await using tutti = await open({ store: failing, invariants: true, onLog: () => {} })
  expect(await (await tutti.start(parent, { id: 'R' })).output()).toBe('a')
  expect(faults).toBeLessThan(0)
})

test('a step that can not be executed again leaves nothing of its child behind', async () => {
  for (const what of ['its input', 'a resource']) {
    const { first, store, did } = await begun()
    await first.close()
    const fails = (): never => {
      throw new Error(`${what} is gone`)
    }
    const gone = resource<string>('gone').perRun(({ id }) => (id === 'R' ? fails() : 'here'))
    const resources = what === 'a resource' ? [gone] : []
    const definitions = [tree(did, undefined, what === 'its input' ? fails : undefined)]
    await using second = await open({ store, invariants: true, definitions, resources, graceMs: 50 })
    expect(await (await second.run('R')).result()).toMatchObject({ status: 'failed' })
    expect(await statuses(second)).toEqual(['failed', 'cancelled', 'cancelled'])
    expect(did.filter((done) => done.endsWith('pay'))).toEqual(['pay', 'undo pay'])
  }
})
