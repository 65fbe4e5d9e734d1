import { graph, type LogEntry, open, resource, type Store, TuttiError } from 'tutti'
import { expect, test } from 'vitest'
import { memoryStore } from '../../src/stores/memory.js'
import { codeOf, deferred, forksEach, hub, opened, rest, solo, timed, untilAborted } from './opened.js'

interface Counter {
  count: number
}
const counter = resource<Counter>('counter')
const boom = (): never => {
  throw new Error('boom')
}

test('a resource of the process is one and the same for all, in turns and in steps, and is not disposed', async () => {
  let disposed = 0
  const live = { count: 0, [Symbol.dispose]: () => void disposed++ }
  const tutti = await opened({ resources: [counter.of(live)] })
  const counts = hub(forksEach([1, 2]), async (turn) => {
    turn.use(counter).count++
    return turn.reply(await turn.step('count', ({ use }) => ++use(counter).count))
  })
  await Promise.all([tutti.execute(counts), tutti.execute(counts)])
  await tutti.close()
  expect(live.count).toBe(8)
  expect(disposed).toBe(0)
})

test('a resource per run is made once for each run, knows whose it is, and is disposed when the run has ended', async () => {
  const made: unknown[] = []
  const disposed: string[] = []
  const perRun = counter.perRun(async (run) => {
    made.push(run)
    await rest(2)
    return { count: 0, [Symbol.asyncDispose]: async () => void disposed.push(run.id) }
  })
  await using tutti = await opened({ resources: [perRun] })
  const counts = hub(forksEach([1, 2, 3]), (turn) => {
    expect(disposed).toEqual([])
    return turn.reply(++turn.use(counter).count)
  })
  const runs = await Promise.all(['a', 'b'].map((id) => tutti.start(counts, { id, session: `s-${id}`, tags: { of: id } })))
  for (const run of runs) expect((await run.output()) as number[]).toEqual(expect.arrayContaining([1, 2, 3]))
  await rest()
  expect(made).toHaveLength(2)
  expect(made).toContainEqual({ id: 'a', definition: 'hub', tags: { of: 'a' }, session: 's-a' })
  expect(disposed.sort()).toEqual(['a', 'b'])
})

test('a resource per run is disposed however its run ends, and by either way of disposing', async () => {
  for (const how of ['succeeds', 'fails', 'is cancelled', 'is fenced off']) {
    const disposed: string[] = []
    const sync = resource<object>('sync').perRun(() => ({ [Symbol.dispose]: () => void disposed.push('sync') }))
    const async = resource<object>('async').perRun(() => ({ [Symbol.asyncDispose]: async () => void disposed.push('async') }))
    await using at = await timed({ resources: [sync, async], graceMs: 1_000 })
    const run = await at.tutti.start(
      solo(async (turn) => {
        if (how === 'fails') throw new Error('it fails')
        if (how === 'is cancelled') await untilAborted(turn.signal)
        if (how === 'is fenced off') await new Promise(() => {})
        return turn.finish()
      }),
    )
    await rest()
    if (how.startsWith('is')) await run.cancel()
    await at.clock.advance(1_000)
    await run.result()
    await rest()
    expect(disposed.sort(), how).toEqual(['async', 'sync'])
  }
})

test('a resource that nobody gave fails the agent that takes it, and says what to do', async () => {
  await using tutti = await opened()
  let attempts = 0
  const run = await tutti.start(
    solo({
      retry: { attempts: 3 },
      act: (turn: { use(r: typeof counter): unknown; finish(): never }) => {
        attempts++
        turn.use(counter)
        return turn.finish()
      },
    }),
  )
  expect(await run.result()).toMatchObject({
    status: 'failed',
    error: { code: 'RESOURCE_MISSING', message: expect.stringContaining("'counter'") },
  })
  expect(attempts).toBe(1)
})

test('making a resource is tried three times; if it fails for good, so does the run, and no turn has begun', async () => {
  for (const failures of [1, 2, 3]) {
    let tries = 0
    let acted = 0
    const flaky = counter.perRun(() => {
      if (++tries <= failures) throw new Error(`try ${tries} failed`)
      return { count: tries }
    })
    await using tutti = await opened({ resources: [flaky] })
    const run = await tutti.start(
      solo((turn) => {
        acted++
        return turn.finish(turn.use(counter).count)
      }),
    )
    if (failures < 3) expect(await run.output()).toBe(failures + 1)
    else
      expect(await run.result()).toMatchObject({
        status: 'failed',
        error: { code: 'RESOURCE_MISSING', message: expect.stringMatching(/counter.*try 3 failed/) },
      })
    expect(tries).toBe(Math.min(3, failures + 1))
    expect(acted).toBe(failures < 3 ? 1 : 0)
  }
})

test('a resource that could not be made is made anew when the run that it paused is resumed', async () => {
  let isDown = true
  const pool = resource<{ name: string }>('pool')
  const make = (): { name: string } => {
    if (isDown) throw new Error('the database is down')
    return { name: 'pool' }
  }
  await using tutti = await opened({ resources: [pool.perRun(make)] })
  const definition = graph('paused')
    .step('a', { run: ({ use }) => use(pool).name, onError: 'pause' })
    .output(({ steps }) => steps.a)
  const run = await tutti.start(definition)
  await rest()
  expect(await run.status()).toBe('paused')
  await run.resume()
  await rest()
  expect(await run.status()).toBe('paused')
  isDown = false
  await run.resume()
  expect(await run.output()).toBe('pool')
})

test('what was made before another could not be made is disposed', async () => {
  const disposed: string[] = []
  const good = resource<object>('good').perRun(() => ({ [Symbol.dispose]: () => void disposed.push('good') }))
  const bad = resource<object>('bad').perRun(() => Promise.reject(new Error('never')))
  await using tutti = await opened({ resources: [good, bad] })
  expect(await (await tutti.start(solo((turn) => turn.finish()))).result()).toMatchObject({ error: { code: 'RESOURCE_MISSING' } })
  await rest()
  expect(disposed).toEqual(['good'])
})

test('a resource whose disposal throws keeps no other from being disposed, and is told to the log', async () => {
  const disposed: string[] = []
  const log: string[] = []
  const bad = resource<object>('bad').perRun(() => ({
    [Symbol.dispose]: () => {
      throw new Error('cannot close')
    },
  }))
  const good = resource<object>('good').perRun(() => ({ [Symbol.dispose]: () => void disposed.push('good') }))
  await using tutti = await opened({ resources: [bad, good], onLog: ({ message }) => log.push(message) })
  await tutti.execute(solo((turn) => turn.finish()))
  await rest()
  expect(disposed).toEqual(['good'])
  expect(log).toContainEqual(expect.stringContaining('cannot close'))
})

test.each([
  [null, 'not null'],
  ['db', "not 'db'"],
])('what is no resource is not used: %j', async (given, message) => {
  await using tutti = await opened()
  const definition = solo((turn) => turn.finish(turn.use(given as never)))
  expect(await (await tutti.start(definition)).result()).toMatchObject({
    error: { code: 'AGENT_FAILED', message: expect.stringMatching(`^use takes a resource.*${message}$`) },
  })
})

test.each([
  ['throws', () => boom()],
  ['is rejected', () => Promise.reject(new Error('no log'))],
])('a log that %s takes nothing with it', async (_, log) => {
  const entries: unknown[] = []
  const bad = resource<object>('bad').perRun(() => ({ [Symbol.dispose]: boom }))
  const inner = memoryStore()
  let isOut = false
  const store: Store = {
    ...inner,
    commit: async (batch) => {
      if (isOut) throw new TuttiError('STORE_UNAVAILABLE', 'out of reach')
      return inner.commit(batch)
    },
  }
  const onLog = (entry: LogEntry): void => {
    entries.push(entry)
    return log() as never
  }
  const tutti = await open({ store, resources: [bad], onLog })
  const definition = solo((turn) => turn.finish('done'))
  expect(await tutti.execute(definition)).toBe('done')
  await rest()
  isOut = true
  const told = await Promise.race([codeOf(tutti.start(definition)), rest(200).then(() => 'nobody is told')])
  isOut = false
  expect(told).toBe('STORE_UNAVAILABLE')
  await expect.poll(() => codeOf(tutti.execute(definition))).toEqual({ accepted: 'done' })
  await tutti.close()
  expect(entries.length).toBeGreaterThan(1)
  expect(entries.every((entry) => Object.isFrozen(entry))).toBe(true)
})

test('closing an engine disposes what was made for the runs that go on elsewhere', async () => {
  let disposed = 0
  const tutti = await opened({ resources: [counter.perRun(() => ({ count: 0, [Symbol.asyncDispose]: async () => void disposed++ }))] })
  const run = await tutti.start(
    solo(async (turn) => {
      await untilAborted(turn.signal)
      return turn.finish()
    }),
  )
  await rest()
  await tutti.close()
  await rest()
  expect(disposed).toBe(1)
  expect(await codeOf(run.result())).toBe('CLOSED')
})

test('an engine is closed when what was made for its runs is disposed, or the grace for that is over', async () => {
  for (const [how, disposes, graceMs] of [
    ['slowly', () => new Promise<void>((resolve) => setTimeout(resolve, 50)), 5_000],
    ['never', () => new Promise<void>(() => {}), 50],
  ] as const) {
    let disposed = 0
    const asyncDispose = async (): Promise<void> => {
      await disposes()
      disposed++
    }
    const tutti = await opened({ graceMs, resources: [counter.perRun(() => ({ count: 0, [Symbol.asyncDispose]: asyncDispose }))] })
    await tutti.start(solo((turn) => turn.ask('?')))
    await rest()
    await tutti.close()
    expect(disposed, how).toBe(how === 'slowly' ? 1 : 0)
  }
})

test('a resource is never journaled, nor shown by what is logged', async () => {
  const provided = counter.of({ count: 123_456 })
  expect(JSON.stringify(provided)).not.toContain('123456')
  expect(Object.isFrozen(provided)).toBe(true)
  await using tutti = await opened({ resources: [provided] })
  const held = deferred()
  const run = await tutti.start(
    solo(async (turn) => {
      await held.promise
      return turn.finish(await turn.step('use', ({ use }) => use(counter).count > 0))
    }),
  )
  held.resolve()
  await run.output()
  const events: unknown[] = []
  for await (const event of run.events()) events.push(event)
  expect(JSON.stringify(events)).not.toContain('123456')
})

test('something that is no resource is refused when the engine is opened or used', async () => {
  expect(() => resource('')).toThrow(TypeError)
  expect(() => counter.perRun({} as never)).toThrow(TypeError)
  expect(await codeOf(opened({ resources: [{ name: 'counter' }] }))).toBe('INVALID_INPUT')
})
