import { expect, test } from 'vitest'
import { z } from 'zod'
import { memoryStore } from '../../src/stores/memory.js'
import { codeOf, deferred, forksEach, hub, journal, opened, rest, solo, timed, typesOf, untilAborted } from './opened.js'

/** A hub whose workers wait for the test, and what they did. */
function waiting(workers: number) {
  const held = deferred()
  const started: unknown[] = []
  const definition = hub(forksEach(Array.from({ length: workers }, (_, at) => at)), async (turn) => {
    started.push(turn.request)
    await held.promise
    return turn.reply(turn.request)
  })
  return { held, started, definition }
}

test('a pause lets what is in flight finish and starts nothing else, and a resume goes on from there', async () => {
  await using tutti = await opened()
  const { held, definition } = waiting(2)
  const run = await tutti.start(definition)
  await rest()
  await run.pause({ by: 'ann' })
  expect(await run.status()).toBe('paused')
  held.resolve()
  await rest()
  expect((await run.report()).branches).toMatchObject([{ id: 'r', turns: 1 }, { status: 'arrived' }, { status: 'arrived' }])
  expect(await run.status()).toBe('paused')
  await run.resume({ by: 'bob' })
  expect(await run.output()).toEqual([0, 1])
  const events = await journal(run)
  expect(events.find(({ type }) => type === 'run.paused')).toMatchObject({ by: 'ann' })
  expect(events.find(({ type }) => type === 'run.resumed')).toMatchObject({ by: 'bob' })
})

test('pausing what is paused changes nothing, resuming what is not is refused, and what has ended can be neither', async () => {
  await using tutti = await opened()
  const { held, definition } = waiting(1)
  const run = await tutti.start(definition)
  expect(await codeOf(run.resume())).toBe('RUN_NOT_PAUSED')
  await run.pause()
  await run.pause()
  await run.resume()
  expect(await codeOf(run.resume())).toBe('RUN_NOT_PAUSED')
  held.resolve()
  const events = await journal(run)
  expect(typesOf(events).filter((type) => type === 'run.paused')).toHaveLength(1)
  expect(await codeOf(run.pause())).toBe('RUN_ENDED')
  expect(await codeOf(run.cancel())).toBe('RUN_ENDED')
  expect(await codeOf(run.resume())).toBeOneOf(['RUN_NOT_PAUSED', 'RUN_ENDED'])
  expect(await journal(run)).toHaveLength(events.length)
})

for (const callers of [2, 5, 64])
  test(`of ${callers} racing resumes exactly one wins, the others are refused, and what follows happens once`, async () => {
    await using tutti = await opened()
    let after = 0
    const held = deferred()
    const run = await tutti.start(
      solo(async (turn) => {
        if (turn.message.kind === 'answer') {
          after++
          return turn.finish(after)
        }
        await held.promise
        return turn.ask('go on?')
      }),
    )
    for (let round = 0; round < 3; round++) {
      await run.pause()
      const codes = await Promise.all(Array.from({ length: callers }, () => codeOf(run.resume())))
      expect(codes.filter((code) => code === 'RUN_NOT_PAUSED')).toHaveLength(callers - 1)
    }
    const { measured } = await run.report()
    expect(measured.refusals).toEqual({ RUN_NOT_PAUSED: 3 * (callers - 1) })
    held.resolve()
    await rest()
    const [ask] = await run.asks()
    const answers = await Promise.all(Array.from({ length: callers }, (_, at) => codeOf(run.answer(ask?.id ?? '', at))))
    expect(answers.filter((code) => code === 'ASK_ALREADY_ANSWERED')).toHaveLength(callers - 1)
    expect(await run.output()).toBe(1)
    expect(typesOf(await journal(run)).filter((type) => type === 'run.resumed')).toHaveLength(3)
    expect(typesOf(await journal(run)).filter((type) => type === 'ask.answered')).toHaveLength(1)
  })

test('one of many resumes wins although they come through several engines on one store', async () => {
  const store = memoryStore()
  const { held, started, definition } = waiting(1)
  await using first = await opened({ store })
  await using second = await opened({ store })
  await using third = await opened({ store })
  const run = await first.start(definition, { id: 'R' })
  await rest()
  for (let round = 0; round < 5; round++) {
    await run.pause()
    const handles = await Promise.all([first, second, third, second, third].map((tutti) => tutti.run('R')))
    const codes = await Promise.all([...handles, ...handles].map((handle) => codeOf(handle.resume())))
    expect(codes.filter((code) => code === 'RUN_NOT_PAUSED')).toHaveLength(codes.length - 1)
  }
  held.resolve()
  expect(await run.output()).toEqual([0])
  expect(started).toEqual([0])
})

test('a cancel goes down the tree: everyone is told, nothing is retried, and what comes late counts for nothing', async () => {
  await using tutti = await opened()
  const reasons: unknown[] = []
  let attempts = 0
  const run = await tutti.start(
    hub(forksEach([1, 2, 3]), {
      retry: { attempts: 5 },
      act: async (turn: { signal: AbortSignal; reply(v: unknown): never }) => {
        attempts++
        try {
          await untilAborted(turn.signal)
        } catch (reason) {
          reasons.push(reason)
        }
        return turn.reply('too late')
      },
    }),
  )
  await rest()
  await run.cancel({ reason: 'changed my mind', by: 'ann' })
  expect(await run.result()).toMatchObject({ status: 'cancelled', reason: 'changed my mind', rollback: 'none' })
  await expect(run.output()).rejects.toMatchObject({
    code: 'RUN_CANCELLED',
    failure: { code: 'CANCELLED', message: 'changed my mind', retryable: false, at: {} },
  })
  await rest()
  expect(attempts).toBe(3)
  expect(reasons).toHaveLength(3)
  expect(typesOf(await journal(run)).filter((type) => type === 'turn.completed')).toHaveLength(1)
})

test('a second cancel changes nothing, and the first reason stands', async () => {
  await using tutti = await opened()
  const held = deferred()
  const run = await tutti.start(
    solo(async (turn) => {
      await held.promise
      return turn.finish()
    }),
  )
  await rest()
  await run.cancel({ reason: 'one' })
  await run.cancel({ reason: 'two' })
  held.resolve()
  expect(await run.result()).toMatchObject({ status: 'cancelled', reason: 'one' })
})

test('a run that waits for a person, that sleeps, or that is paused can be cancelled', async () => {
  await using at = await timed()
  const asks = await at.tutti.start(solo((turn) => turn.ask('?')))
  const sleeps = await at.tutti.start(
    solo(async (turn) => {
      await turn.sleep(60_000)
      return turn.finish()
    }),
  )
  const paused = await at.tutti.start(solo((turn) => turn.ask('?')))
  await rest()
  await paused.pause()
  for (const run of [asks, sleeps, paused]) {
    await run.cancel()
    expect(await run.result()).toMatchObject({ status: 'cancelled' })
    expect(await run.asks()).toEqual([])
  }
  expect(await at.tutti.asks()).toEqual([])
})

test('a signal given to start cancels the run while it goes on, and never after', async () => {
  await using tutti = await opened()
  const waits = solo(async (turn) => {
    await untilAborted(turn.signal)
    return turn.finish()
  })
  const during = new AbortController()
  const run = await tutti.start(waits, { signal: during.signal })
  await rest()
  expect(await run.status()).toBe('running')
  during.abort()
  expect(await run.result()).toMatchObject({ status: 'cancelled' })
  const reason = 'the signal given to start was aborted'
  await expect(run.output()).rejects.toMatchObject({ code: 'RUN_CANCELLED', failure: { code: 'CANCELLED', message: reason } })
  const after = new AbortController()
  const done = await tutti.start(
    solo((turn) => turn.finish(1)),
    { signal: after.signal },
  )
  await done.result()
  after.abort()
  await rest()
  expect(await done.result()).toMatchObject({ status: 'succeeded', output: 1 })
})

test('with a signal that is aborted before the run begins nothing begins, and start is rejected with its reason', async () => {
  await using tutti = await opened()
  let begun = 0
  const during = new AbortController()
  const input = z.unknown().refine(async () => {
    during.abort('given up')
    return true
  })
  const counts = solo((turn) => turn.finish(++begun))
  const checked = solo((turn) => turn.finish(++begun), { input })
  const signal = AbortSignal.abort('not wanted')
  await expect(tutti.start(counts, { signal })).rejects.toBe('not wanted')
  await expect(tutti.start(counts, { signal, key: 'k' })).rejects.toBe('not wanted')
  await expect(tutti.execute(counts, { signal })).rejects.toBe('not wanted')
  await expect(tutti.start(checked, { signal: during.signal })).rejects.toBe('given up')
  await rest()
  expect(begun).toBe(0)
  expect((await tutti.runs()).runs).toEqual([])
  expect(await tutti.execute(counts, { key: 'k' })).toBe(1)
})

test('what is refused is counted, and is still in the report when the run is over', async () => {
  await using tutti = await opened()
  const { held, definition } = waiting(1)
  const run = await tutti.start(definition)
  await codeOf(run.resume())
  expect((await run.report()).measured.refusals).toEqual({ RUN_NOT_PAUSED: 1 })
  held.resolve()
  expect((await run.result()).report.measured.refusals).toEqual({ RUN_NOT_PAUSED: 1 })
})
