import { graph, TuttiError } from 'tutti'
import { exploreRun } from 'tutti/testing'
import { expect, test } from 'vitest'
import type { Store } from '../../src/engine/store.js'
import { memoryStore } from '../../src/stores/memory.js'
import { Folder } from '../stores/folder.js'
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

test('closing after a cancel does not wait for the end of a run of a step, which nobody here would hear of', async () => {
  const slow = solo(async (turn) => {
    await untilAborted(turn.signal).catch(() => {})
    await rest(5)
    return turn.finish(1)
  })
  const above = graph('above')
    .step('slow', { input: () => null, run: slow })
    .output()
  const store = memoryStore()
  const first = await opened({ store, graceMs: 600_000 })
  const { id, cancel } = await first.start(above)
  await rest()
  await cancel()
  await first.close()
  await using second = await opened({ store, definitions: [above] })
  expect(await (await second.run(id)).result()).toMatchObject({ status: 'cancelled' })
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

test.each(['memory:', 'a store that is given', 'a file'])(
  'what is asked of a closed engine is refused, and closing it again does nothing: %s',
  async (where) => {
    using folder = new Folder()
    const store = { 'memory:': 'memory:', 'a file': folder.file() }[where] ?? memoryStore()
    const tutti = await opened({ store })
    const definition = solo((turn) => turn.ask('?'))
    const run = await tutti.start(definition)
    const ended = await tutti.start(solo((turn) => turn.finish(1)))
    await ended.result()
    await rest()
    await Promise.all([tutti.close(), tutti.close()])
    await tutti.close()
    const next = (of: typeof run) => of.events()[Symbol.asyncIterator]().next()
    const ofRun = (of: typeof run) => [
      () => of.result(),
      () => of.output(),
      () => next(of),
      () => of.status(),
      () => of.summary(),
      () => of.report(),
      () => of.history(),
      () => of.asks(),
      () => of.pause(),
      () => of.resume(),
      () => of.cancel(),
      () => of.answer('r~1', 1),
    ]
    const calls: readonly (() => Promise<unknown>)[] = [
      () => tutti.start(definition),
      () => tutti.execute(definition),
      () => tutti.run(run.id),
      () => tutti.runs(),
      () => tutti.asks(),
      () => tutti.gc({ olderThanMs: 0 }),
      () => tutti.agents.list(),
      () => tutti.agents.get('A'),
      () => tutti.agents.history('A'),
      () => tutti.agents.pause('A'),
      () => exploreRun(tutti, ended.id, { definition: solo((turn) => turn.finish(1)) }),
      ...ofRun(run),
      ...ofRun(ended),
    ]
    expect(await Promise.all(calls.map(async (call) => [String(call), await codeOf(call())]))).toEqual(
      calls.map((call) => [String(call), 'CLOSED']),
    )
    expect(tutti.refusals()).toMatchObject({})
  },
)

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

/** A store that is out of reach while it is said to be. */
function away(): { store: Store; leave: () => void; comeBack: () => void } {
  const inner = memoryStore()
  let isAway = false
  const unless =
    <Given extends readonly unknown[], Result>(call: (...given: Given) => Promise<Result>) =>
    (...given: Given): Promise<Result> =>
      isAway ? Promise.reject(new TuttiError('STORE_UNAVAILABLE', 'it is away')) : call(...given)
  const { commit, load, leave, claim, beat, mine } = inner
  const calls = {
    commit: unless(commit),
    load: unless(load),
    leave: unless(leave),
    claim: unless(claim),
    beat: unless(beat),
    mine: unless(mine),
  }
  return {
    store: { ...inner, ...calls },
    leave: () => {
      isAway = true
    },
    comeBack: () => {
      isAway = false
    },
  }
}

const inFlight = {
  'a question': solo((turn) => turn.ask('?')),
  'a sleep': solo(async (turn) => {
    await turn.sleep(1_000)
    return turn.finish()
  }),
  'a step that ends meanwhile': solo(async (turn) => turn.finish(await turn.step('step', () => new Promise((end) => setTimeout(end, 20))))),
  'a body that ignores its signal': solo(() => new Promise(() => {})),
}

test.each(Object.entries(inFlight))('a store that is out of reach is waited for no longer than a body: with %s', async (_, definition) => {
  const { store, leave } = away()
  const tutti = await opened({ store, graceMs: 100 })
  const run = await tutti.start(definition)
  await rest()
  const waiting = codeOf(run.result())
  leave()
  await new Promise((end) => setTimeout(end, 50))
  const asked = codeOf(run.pause())
  await tutti.close()
  expect(await asked).toBe('STORE_UNAVAILABLE')
  expect(['CLOSED', 'STORE_UNAVAILABLE']).toContain(await waiting)
})

test.each(['commit', 'claim', 'leave'] as const)('a store that never answers %s is given up when an engine is closed', async (call) => {
  const inner = memoryStore()
  let isSilent = false
  const silent = { [call]: (given: never, at: never) => (isSilent ? new Promise(() => {}) : inner[call](given, at)) }
  const tutti = await opened({ store: { ...inner, ...silent }, graceMs: 100, workerTtlMs: 40 })
  await tutti.start(inFlight['a step that ends meanwhile'])
  await rest()
  isSilent = true
  await new Promise((end) => setTimeout(end, 50))
  const since = performance.now()
  await tutti.close()
  expect(performance.now() - since).toBeLessThan(2_000)
})

test('what a step has come to is recorded by an engine that is closed if the store comes back in time', async () => {
  const { store, leave, comeBack } = away()
  const tutti = await opened({ store, graceMs: 5_000 })
  const ended = deferred()
  let steps = 0
  const definition = solo(async (turn) => {
    const value = await turn.step('step', async () => {
      await ended.promise
      return ++steps
    })
    return turn.finish(value)
  })
  const run = await tutti.start(definition)
  await rest()
  leave()
  ended.resolve()
  await rest()
  const closing = tutti.close()
  await new Promise((end) => setTimeout(end, 50))
  comeBack()
  await closing
  await using next = await opened({ store, definitions: [definition] })
  expect(await (await next.run(run.id)).output()).toBe(1)
  expect(steps).toBe(1)
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

test.each(['stops', 'goes on'])('closing while a step has not come to its run again leaves that run be, where its code %s', async (how) => {
  const store = memoryStore()
  let finding: (signal: AbortSignal) => Promise<void> = () => Promise.resolve()
  const asks = solo((turn) => (turn.message.kind === 'request' ? turn.ask('?') : turn.finish('answered')))
  const above = graph('above')
    .step('asks', { input: ({ signal }) => finding(signal), run: asks })
    .output(({ steps }) => steps.asks)
  const first = await opened({ store })
  const { id } = await first.start(above)
  await rest()
  await first.close()

  finding = (signal) => (how === 'stops' ? untilAborted(signal) : new Promise(() => {}))
  const second = await opened({ store, definitions: [above], graceMs: 20 })
  await rest()
  await second.close()

  finding = () => Promise.resolve()
  await using third = await opened({ store, definitions: [above] })
  await rest()
  const child = await third.run(`${id}:asks`)
  for (const ask of await child.asks()) await child.answer(ask.id, 'yes')
  expect(await (await third.run(id)).result()).toMatchObject({ status: 'succeeded', output: 'answered' })
})
