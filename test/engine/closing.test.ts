import { expect, test } from 'vitest'
import { codeOf, deferred, forksEach, hub, opened, rest, solo, timed, untilAborted } from './opened.js'

test('closing aborts what is in flight, awaits it, and says nothing of it to the journal', async () => {
  const tutti = await opened()
  let ended = 0
  let late = 0
  const run = await tutti.start(
    hub(forksEach([1, 2, 3]), async (turn) => {
      await untilAborted(turn.signal).catch(() => {})
      await rest(3)
      ended++
      await turn.step('late', () => late++).catch(() => {})
      return turn.reply('late')
    }),
  )
  await rest()
  const waiting = codeOf(run.result())
  await tutti.close()
  expect(ended).toBe(3)
  expect(late).toBe(0)
  expect(await waiting).toBe('CLOSED')
})

test('a run that is cancelled while the engine closes ends, and nothing follows its end', async () => {
  // With invariants on, an event after the end is an error that nobody catches.
  const at = await timed()
  const run = await at.tutti.start(
    hub(forksEach([1, 2, 3]), async (turn) => {
      await turn.sleep(1_000)
      return turn.reply('late')
    }),
  )
  await rest()
  const broken: unknown[] = []
  const note = (error: unknown): void => void broken.push(error)
  process.on('unhandledRejection', note)
  await run.cancel()
  const closed = at.tutti.close()
  await at.clock.advance(60_000)
  await closed
  process.off('unhandledRejection', note)
  expect(broken).toEqual([])
})

test('closing waits for a body that ignores its signal no longer than its grace', async () => {
  const at = await timed({ graceMs: 2_000 })
  await at.tutti.start(solo(() => new Promise(() => {})))
  await rest()
  let closed = false
  const closing = at.tutti.close().then(() => {
    closed = true
  })
  await at.clock.advance(1_999)
  expect(closed).toBe(false)
  await at.clock.advance(1)
  await closing
  expect(closed).toBe(true)
})

test('what is asked of a closed engine is refused, and closing it again does nothing', async () => {
  const tutti = await opened()
  const definition = solo((turn) => turn.ask('?'))
  const run = await tutti.start(definition)
  await rest()
  await Promise.all([tutti.close(), tutti.close()])
  await tutti.close()
  for (const call of [
    () => tutti.start(definition),
    () => tutti.execute(definition),
    () => run.pause(),
    () => run.cancel(),
    () => run.result(),
  ])
    expect(await codeOf(call())).toBe('CLOSED')
})

test('commands that are on their way when an engine is closed are done or refused, and none is lost', async () => {
  const tutti = await opened()
  const run = await tutti.start(solo((turn) => turn.ask('?')))
  await rest()
  const pausing = codeOf(run.pause())
  const closing = tutti.close()
  expect(await pausing).toBeOneOf(['CLOSED', expect.objectContaining({ accepted: undefined })])
  await closing
})

test('whoever closes an engine that is being closed waits until it is', async () => {
  const at = await timed({ graceMs: 2_000 })
  await at.tutti.start(solo(() => new Promise(() => {})))
  await rest()
  const closed: string[] = []
  const closing = at.tutti.close().then(() => closed.push('first'))
  await rest()
  const again = at.tutti.close().then(() => closed.push('second'))
  await rest()
  expect(closed).toEqual([])
  await at.clock.advance(2_000)
  await Promise.all([closing, again])
  expect(closed).toHaveLength(2)
})

test('an engine in a scope is closed at its end', async () => {
  let tutti: Awaited<ReturnType<typeof opened>>
  {
    await using scoped = await opened()
    tutti = scoped
    expect(await scoped.execute(solo((turn) => turn.finish(1)))).toBe(1)
  }
  expect(await codeOf(tutti.start(solo((turn) => turn.finish(1))))).toBe('CLOSED')
})

test('runs that are over can be read to the last, by handles from before, until the engine is closed', async () => {
  const tutti = await opened()
  const held = deferred()
  const run = await tutti.start(
    solo(async (turn) => {
      await held.promise
      return turn.finish('kept')
    }),
  )
  held.resolve()
  expect(await run.output()).toBe('kept')
  await rest()
  expect(await run.status()).toBe('succeeded')
  expect((await run.report()).status).toBe('succeeded')
  await tutti.close()
})
