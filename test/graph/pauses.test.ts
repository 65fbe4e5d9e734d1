import { graph, open, type Run } from 'tutti'
import { describe, expect, test } from 'vitest'
import { everyOrder, nothingLeft, scenario, Stage } from '../scenarios/adapter.js'
import { lasting } from './lasting.js'

describe("a step that fails under 'pause'", () => {
  test('pauses the run after its retries; resuming tries it again, with all of its attempts', async () => {
    await using stage = await Stage.open()
    let broken = true
    const attempts: number[] = []
    const definition = graph('stops')
      .step('a', {
        onError: 'pause',
        retry: { attempts: 2 },
        run: ({ attempt }) => {
          attempts.push(attempt)
          if (broken) throw new Error('broken')
          return 'repaired'
        },
      })
      .step('b', { after: ['a'], run: ({ steps }) => steps.a })
      .output()
    const run = await stage.tutti.start(definition)
    await stage.quiesce()
    expect(await run.status()).toBe('paused')
    expect(attempts).toEqual([1, 2])
    await run.resume()
    await stage.quiesce()
    expect(await run.status()).toBe('paused')
    expect(attempts).toEqual([1, 2, 3, 4])
    broken = false
    await run.resume()
    expect(await run.output()).toEqual({ a: 'repaired', b: 'repaired' })
    expect(attempts).toEqual([1, 2, 3, 4, 5])
    expect(await stage.quiesce()).toEqual(nothingLeft)
  })

  test('lets what runs come to its end, and starts nothing else', async () => {
    await using stage = await Stage.open()
    let broken = true
    const definition = graph('others')
      .step('slow', { run: (ctx) => stage.held('slow', ctx, 'slow') })
      .step('bad', {
        onError: 'pause',
        run: () => {
          if (broken) throw new Error('broken')
          return 'good'
        },
      })
      .step('after', { after: ['slow'], run: (ctx) => stage.held('after', ctx, 'after') })
      .output()
    const run = await stage.tutti.start(definition)
    await stage.quiesce()
    expect(await run.status()).toBe('paused')
    stage.release('slow')
    await stage.quiesce()
    expect(stage.waiting()).toEqual([])
    broken = false
    await run.resume()
    await stage.quiesce()
    stage.release('after')
    expect(await run.output()).toEqual({ slow: 'slow', bad: 'good', after: 'after' })
  })

  test('beside another one is tried again by the same resume', async () => {
    await using stage = await Stage.open()
    let broken = true
    const flaky = () => {
      if (broken) throw new Error('broken')
      return 1
    }
    const definition = graph('both').step('a', { onError: 'pause', run: flaky }).step('b', { onError: 'pause', run: flaky }).output()
    const run = await stage.tutti.start(definition)
    await stage.quiesce()
    expect(await run.status()).toBe('paused')
    broken = false
    await run.resume()
    expect(await run.output()).toEqual({ a: 1, b: 1 })
    await expect(run.resume()).rejects.toMatchObject({ code: 'RUN_NOT_PAUSED' })
  })

  test('can be given up: cancelling a paused run ends it', async () => {
    await using stage = await Stage.open()
    const definition = graph('given up')
      .step('a', {
        onError: 'pause',
        run: () => {
          throw new Error('broken')
        },
      })
      .output()
    const run = await stage.tutti.start(definition)
    await stage.quiesce()
    await run.cancel()
    expect((await run.result()).status).toBe('cancelled')
    expect(await stage.quiesce()).toEqual(nothingLeft)
  })
})

scenario('a pause anywhere changes nothing of the outcome', async (raise) => {
  const outcomes = new Set<string>()
  await everyOrder(4, async (schedule) => {
    await using stage = await raise()
    const definition = graph('paused anywhere')
      .step('a', { run: (ctx) => stage.held('a', ctx, 'a') })
      .step('b', { after: ['a'], run: (ctx) => stage.held('b', ctx, 'b') })
      .step('c', { after: ['a'], run: () => 'c' })
      .step('d', { after: ['b', 'c'], run: ({ steps }) => [steps.b, steps.c] })
      .output()
    const run = await stage.tutti.start(definition, { id: 'P' })
    let paused = false
    const pause = async () => {
      if ((await run.status()) !== 'running') return
      await run.pause()
      paused = true
    }
    const resume = async () => {
      if (paused) await run.resume()
    }
    await stage.drain(schedule, { moves: { pause, resume } })
    if ((await run.status()) === 'paused') {
      await run.resume()
      await stage.drain(schedule)
    }
    const { measured: _, ...report } = (await run.result()).report
    outcomes.add(JSON.stringify(report))
  })
  expect(outcomes.size).toBe(1)
})

test('C9 a graph that is stopped after any of its events and taken up by another engine ends as one that was not', async () => {
  const calls = new Map<string, number>()
  const inner = graph('inner')
    .step('x', { run: ({ step }) => step('x', () => count('inner x')) })
    .step('y', { after: ['x'], each: () => [1, 2], run: ({ item }) => item })
    .output()
  const definition = graph('goes on')
    .step('a', { run: ({ step }) => step('a', () => count('a')) })
    .step('list', { after: ['a'], each: () => ['x', 'y', 'z'], concurrency: 2, run: ({ item, step }) => step('i', () => count(item)) })
    .step('skipped', { after: ['a'], when: () => false, run: () => 1 })
    .step('either', { after: ['skipped', 'list'], join: 'any', run: ({ steps }) => steps.list })
    .step('child', { after: ['a'], run: inner })
    .step('all', { after: ['a', 'list', 'either', 'child'], run: ({ steps }) => steps })
    .output()
  const count = (name: string): string => {
    calls.set(name, (calls.get(name) ?? 0) + 1)
    return name
  }
  const plain = await open({ store: 'memory:', invariants: true })
  const undisturbed = await (await plain.start(definition, { id: 'P' })).result()
  let events = 0
  for await (const _ of (await plain.run('P')).events()) events += 1
  await plain.close()
  const { measured: _, ...expected } = undisturbed.report
  expect(events).toBeGreaterThan(20)
  for (let after = 1; after < events; after++) {
    const store = lasting()
    calls.clear()
    const first = await open({ store, invariants: true, definitions: [definition] })
    const run: Run<unknown> = await first.start(definition, { id: 'P' })
    let seen = 0
    for await (const event of run.events()) if (++seen >= after || event.type === 'run.succeeded') break
    await first.close()
    await using second = await open({ store, invariants: true, definitions: [definition], workerTtlMs: 50 })
    const again = await second.run('P')
    const { measured: __, ...report } = (await again.result()).report
    expect(report).toEqual(expected)
    expect(await again.output()).toEqual(undisturbed.status === 'succeeded' ? undisturbed.output : null)
  }
}, 30_000)
