import type { Done, Tutti } from 'tutti'
import { graph } from 'tutti'
import { expect, test } from 'vitest'
import { deferred, journal, opened, rest, timed } from '../engine/opened.js'

/** What was done and undone, in the order in which it happened. */
class Desk {
  readonly log: string[] = []
  readonly keys = new Map<string, Set<string>>()

  readonly book = (what: string) => ({
    run: ({ idempotencyKey }: { idempotencyKey: string }): string => {
      this.note(what, idempotencyKey)
      return `${what}-1`
    },
    compensate: ({ output, idempotencyKey }: Done<string>): void => this.note(`undo ${output}`, idempotencyKey),
  })

  note(what: string, key: string): void {
    this.log.push(what)
    this.keys.set(what, (this.keys.get(what) ?? new Set()).add(key))
  }

  get undone(): string[] {
    return this.log.filter((line) => line.startsWith('undo '))
  }
}

const boom = (): never => {
  throw new Error('no money')
}

test('a graph that fails undoes what it has done, against its order, and says so', async () => {
  const desk = new Desk()
  const trip = graph('trip')
    .step('flight', desk.book('flight'))
    .step('hotel', { after: ['flight'], ...desk.book('hotel') })
    .step('pay', { after: ['hotel'], run: boom })
    .output()
  await using tutti = await opened()
  const run = await tutti.start(trip)
  const result = await run.result()
  expect(result).toMatchObject({ status: 'failed', rollback: 'complete', error: { code: 'STEP_FAILED', message: 'no money' } })
  expect(result.report).toMatchObject({ rollback: 'complete', notUndone: [], choices: [] })
  expect(desk.undone).toEqual(['undo hotel-1', 'undo flight-1'])
  const [flight] = desk.keys.get('flight') ?? []
  expect([...(desk.keys.get('undo flight-1') ?? [])]).toEqual([`${flight}/undo`])
  const types = (await journal(run)).map(({ type }) => type)
  expect(types.filter((type) => type === 'run.compensating')).toHaveLength(1)
  expect(types.filter((type) => type === 'undo.completed')).toHaveLength(2)
})

test('what is independent is undone in parallel, and what came because of something before it', async () => {
  const started: string[] = []
  const hold = { a: deferred(), b: deferred(), c: deferred() }
  const step = (name: 'a' | 'b' | 'c') => ({
    run: () => name,
    compensate: async () => {
      started.push(name)
      await hold[name].promise
    },
  })
  const built = graph('built')
    .step('a', step('a'))
    .step('b', step('b'))
    .step('plain', { after: ['a'], run: () => null })
    .step('c', { after: ['plain'], ...step('c') })
    .step('end', { after: ['b', 'c'], run: boom })
    .output()
  await using tutti = await opened()
  const run = await tutti.start(built)
  const result = run.result()
  await rest()
  expect(started.sort()).toEqual(['b', 'c'])
  hold.b.resolve()
  await rest()
  expect(started).toHaveLength(2)
  hold.c.resolve()
  await rest()
  expect(started).toEqual(['b', 'c', 'a'])
  hold.a.resolve()
  expect(await result).toMatchObject({ rollback: 'complete' })
})

test('with nothing to undo there is no rollback; a run that succeeds undoes nothing', async () => {
  const desk = new Desk()
  await using tutti = await opened()
  const fails = graph('fails').step('pay', { run: boom }).output()
  expect(await (await tutti.start(fails)).result()).toMatchObject({ status: 'failed', rollback: 'none' })
  const works = graph('works').step('flight', desk.book('flight')).output()
  expect(await (await tutti.start(works)).result()).toMatchObject({ status: 'succeeded', rollback: 'none' })
  expect(desk.undone).toEqual([])
})

test('what a fallback stood in for is not undone, what a skipped step had done before it is', async () => {
  const desk = new Desk()
  const mixed = graph('mixed')
    .step('flight', desk.book('flight'))
    .step('car', { run: boom, compensate: () => desk.note('undo car', ''), onError: { fallback: 'walk' } })
    .step('hotel', { run: boom, compensate: () => desk.note('undo hotel', ''), onError: 'skip' })
    .step('pay', { after: ['flight', 'car'], run: boom })
    .output()
  await using tutti = await opened()
  expect(await (await tutti.start(mixed)).result()).toMatchObject({ status: 'failed', rollback: 'complete' })
  expect(desk.undone).toEqual(['undo flight-1'])
})

test('every item of an each is undone, each once, with what it was given', async () => {
  const seen: unknown[] = []
  const items = graph('items', {})
    .step('send', {
      each: () => ['a', 'b', 'c'],
      run: ({ item }) => `sent ${item}`,
      compensate: ({ item, output, input }) => void seen.push({ item, output, input }),
    })
    .step('end', { after: ['send'], run: boom })
    .output()
  await using tutti = await opened()
  const result = await (await tutti.start(items, { input: 'given' })).result()
  expect(result.rollback).toBe('complete')
  expect(seen).toHaveLength(3)
  expect(seen).toEqual(expect.arrayContaining(['a', 'b', 'c'].map((item) => ({ item, output: `sent ${item}`, input: 'given' }))))
})

test('an undo is tried five times; if it fails for good the run is partly rolled back and lists what remains, and the others go on', async () => {
  const desk = new Desk()
  let tries = 0
  const stuck = graph('stuck')
    .step('flight', desk.book('flight'))
    .step('hotel', {
      after: ['flight'],
      run: () => 'hotel-1',
      compensate: () => {
        tries++
        throw new Error('the hotel does not answer')
      },
    })
    .step('pay', { after: ['hotel'], run: boom })
    .output()
  await using at = await timed()
  const run = await at.tutti.start(stuck)
  const result = run.result()
  for (let i = 0; i < 8; i++) {
    await rest()
    await at.clock.advance(60_000)
  }
  expect(await result).toMatchObject({ status: 'failed', rollback: 'partial', report: { notUndone: ['hotel'], rollback: 'partial' } })
  expect(tries).toBe(5)
  expect(desk.undone).toEqual(['undo flight-1'])
  const failures = (await journal(run)).filter(({ type }) => type === 'undo.failed')
  expect(failures).toHaveLength(5)
  expect(failures.at(-1)).toMatchObject({ of: 'hotel', error: { message: 'the hotel does not answer' } })
})

test('an undo that fails once is tried again under the same key', async () => {
  const keys: string[] = []
  const again = graph('again')
    .step('flight', {
      run: () => 'f',
      compensate: ({ idempotencyKey, attempt }) => {
        keys.push(idempotencyKey)
        if (attempt === 1) throw new Error('not now')
      },
    })
    .step('pay', { after: ['flight'], run: boom })
    .output()
  await using at = await timed()
  const result = (await at.tutti.start(again)).result()
  await rest()
  await at.clock.advance(60_000)
  expect(await result).toMatchObject({ rollback: 'complete' })
  expect(keys).toHaveLength(2)
  expect(new Set(keys).size).toBe(1)
})

async function cancelled(tutti: Tutti, desk: Desk, options: { compensate?: boolean }): Promise<unknown> {
  const held = deferred()
  const long = graph('long')
    .step('flight', desk.book('flight'))
    .step('wait', { after: ['flight'], run: () => held.promise })
    .output()
  const run = await tutti.start(long)
  await rest()
  const done = run.cancel(options)
  held.resolve()
  await done
  return run.result()
}

test('a cancelled run undoes what it has done, unless it is asked not to', async () => {
  const desk = new Desk()
  await using tutti = await opened()
  expect(await cancelled(tutti, desk, { compensate: false })).toMatchObject({ status: 'cancelled', rollback: 'none' })
  expect(desk.undone).toEqual([])
  const result = await cancelled(tutti, desk, {})
  expect(result).toMatchObject({ status: 'cancelled', rollback: 'complete' })
  expect(desk.undone).toEqual(['undo flight-1'])
  expect(result).toMatchObject({ report: { choices: [{ at: '#', kind: 'undo', decidedBy: ['flight'] }] } })
})

test('a step that succeeds after the cancel is discarded, and what it did is undone', async () => {
  const undone: unknown[] = []
  const held = deferred<string>()
  const late = graph('late')
    .step('book', { run: () => held.promise, compensate: ({ output }) => void undone.push(output) })
    .output()
  await using tutti = await opened()
  const run = await tutti.start(late)
  await rest()
  await run.cancel()
  held.resolve('booked')
  expect(await run.result()).toMatchObject({ status: 'cancelled', rollback: 'complete', report: { notUndone: [] } })
  expect(undone).toEqual(['booked'])
})

test.each(['cancel', 'timeout'] as const)('the undo of a late success is given what its turn had recorded: after a %s', async (how) => {
  const undone: unknown[] = []
  const held = deferred<string>()
  const late = graph('late')
    .step('book', {
      ...(how === 'timeout' && { timeoutMs: 100 }),
      run: async ({ step }) => {
        await step('reserve', () => 'seat 7')
        return held.promise
      },
      compensate: ({ output, activities }) => void undone.push({ output, activities }),
    })
    .output()
  await using at = await timed()
  const run = await at.tutti.start(late)
  await rest()
  if (how === 'cancel') await run.cancel()
  else await at.clock.advance(100)
  held.resolve('booked')
  expect(await run.result()).toMatchObject({ rollback: 'complete' })
  expect(undone).toEqual([{ output: 'booked', activities: { 'reserve#0': 'seat 7' } }])
})

test('what nobody knows the outcome of is not undone but listed', async () => {
  const never = graph('never')
    .step('book', { run: () => new Promise(() => {}), compensate: () => expect.unreachable() })
    .output()
  await using at = await timed({ graceMs: 100 })
  const run = await at.tutti.start(never)
  await rest()
  await run.cancel()
  await at.clock.advance(1_000)
  expect(await run.result()).toMatchObject({ status: 'cancelled', rollback: 'partial', report: { notUndone: ['book'] } })
})

test('no undo starts while the run is paused, and a compensating run can not be cancelled', async () => {
  const desk = new Desk()
  const hold = deferred()
  const paused = graph('paused')
    .step('flight', desk.book('flight'))
    .step('hotel', { after: ['flight'], run: () => 'h', compensate: () => hold.promise })
    .step('pay', { after: ['hotel'], run: boom })
    .output()
  await using tutti = await opened()
  const run = await tutti.start(paused)
  await rest()
  expect(await run.status()).toBe('compensating')
  await expect(run.cancel()).rejects.toMatchObject({ code: 'RUN_ENDED' })
  await run.pause()
  hold.resolve()
  await rest()
  expect(desk.undone).toEqual([])
  expect(await run.status()).toBe('paused')
  await run.resume()
  expect(await run.result()).toMatchObject({ status: 'failed', rollback: 'complete' })
  expect(desk.undone).toEqual(['undo flight-1'])
})

test('an attempt that ran out of time and succeeds after all is undone, if no other attempt stands for it', async () => {
  const undone: unknown[] = []
  const held = deferred<string>()
  const late = graph('late')
    .step('book', {
      timeoutMs: 100,
      retry: { attempts: 2 },
      run: ({ attempt }) => (attempt === 1 ? held.promise : boom()),
      compensate: ({ output }) => void undone.push(output),
    })
    .output()
  await using at = await timed()
  const run = await at.tutti.start(late)
  await rest()
  await at.clock.advance(100)
  held.resolve('booked late')
  expect(await run.result()).toMatchObject({
    status: 'failed',
    rollback: 'complete',
    report: { choices: [{ kind: 'timeout' }, { at: '#', kind: 'undo', decidedBy: ['book'] }] },
  })
  expect(undone).toEqual(['booked late'])
})

test('no step has the key of what undoes its turn, whatever key it says itself', async () => {
  await using tutti = await opened()
  const desk = new Desk()
  const keys = ['undo', '~undo', '~~undo', 'pay/undo']
  const definition = graph('keys')
    .step('a', {
      run: async ({ step }) => {
        for (const key of keys) await step('pay', ({ idempotencyKey }) => desk.note(key, idempotencyKey), { key })
        await step('undo', ({ idempotencyKey }) => desk.note('by name', idempotencyKey))
        return 'a'
      },
      compensate: ({ idempotencyKey }) => desk.note('undone', idempotencyKey),
    })
    .step('b', { after: ['a'], run: boom })
    .output()
  expect(await (await tutti.start(definition)).result()).toMatchObject({ status: 'failed', rollback: 'complete' })
  const given = [...desk.keys.values()].flatMap((used) => [...used])
  expect(given).toHaveLength(keys.length + 2)
  expect([...(desk.keys.get('undone') ?? [])][0]).toMatch(/\/r\.0\/1\/undo$/)
  expect(new Set(given).size).toBe(given.length)
})

test('undoing a long list takes no longer for each item under a limit of concurrency', async () => {
  const items = 6_000
  let [running, most, undone] = [0, 0, 0]
  const list = graph('list', { concurrency: 16 })
    .step('load', {
      each: () => Array.from({ length: items }, (_, index) => index),
      run: () => null,
      compensate: async () => {
        most = Math.max(most, ++running)
        await Promise.resolve()
        running--
        undone++
      },
    })
    .step('publish', { after: ['load'], run: boom })
    .output()
  await using tutti = await opened({ invariants: false })
  const run = await tutti.start(list)
  let since = 0
  for await (const { type } of run.events()) if (type === 'run.compensating') since = performance.now()
  expect(await run.result()).toMatchObject({ status: 'failed', rollback: 'complete' })
  expect(performance.now() - since).toBeLessThan(3_000)
  expect({ undone, most }).toEqual({ undone: items, most: 16 })
})
