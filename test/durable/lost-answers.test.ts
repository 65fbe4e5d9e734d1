import { type Definition, graph, open, type Run, tool, topology, type Tutti, TuttiError } from 'tutti'
import { explore, script, virtualClock } from 'tutti/testing'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import type { Store } from '../../src/engine/store.js'
import { memoryStore } from '../../src/stores/memory.js'
import { sqliteStore } from '../../src/stores/sqlite.js'
import { codeOf, deferred, journal, rest, solo, type SoloTurn, untilAborted } from '../engine/opened.js'
import { Folder } from '../stores/folder.js'
import { again, losing, type Lossy, lossy, refusing } from './lossy.js'
import { patience, until } from './processes.js'

/** An engine that keeps to itself what it has to say of its store. */
const quiet = (store: Store, definitions: readonly Definition[] = [], workerTtlMs = 10_000): Promise<Tutti> =>
  open({ store, invariants: true, onLog: () => {}, definitions, workerTtlMs })

const asks = graph('asks')
  .ask('q', { question: () => '?', schema: z.any() })
  .step('s', { after: ['q'], run: ({ steps }) => steps.q })
  .output(({ steps }) => steps.s)

/** Works with whatever acknowledgement is lost, and says who did what, how often. */
function trip(log: string[]) {
  const did = <T>(what: string, value: T): T => {
    log.push(what)
    return value
  }
  const failing = new Set(['flight', 'send'])
  const failsFirst = (what: string): void => {
    if (failing.delete(what)) throw new Error(`${what} fails once`)
  }
  const desk = topology({
    name: 'desk',
    flows: ['Start -> Desk -> End', 'Desk <-> Hotel | Flight'],
    agents: {
      Desk: {
        act: {
          request: (turn) => turn.fork(['Hotel', 'Flight']),
          join: (turn, join) => turn.finish(join.values),
        },
      },
      Hotel: async (turn) => turn.reply(await turn.step('charge', () => did('charge', 1), { idempotent: false })),
      Flight: {
        retry: { attempts: 2, backoffMs: 1 },
        act: async (turn) => {
          await turn.step('seat', () => did('seat', 2))
          await turn.sleep(1)
          failsFirst('flight')
          return turn.reply(await turn.step('pay', () => did('pay', 3), { idempotent: false }))
        },
      },
    },
  })
  return graph('trip')
    .step('plan', {
      each: () => [1, 2],
      run: ({ item }) => did(`plan ${item}`, item),
      compensate: ({ output }) => void did(`undo ${output}`, 0),
    })
    .ask('ok', { after: ['plan'], question: () => 'go?', schema: z.boolean() })
    .step('book', { after: ['ok'], run: desk })
    .step('send', {
      after: ['book'],
      retry: { attempts: 2, backoffMs: 1 },
      run: async ({ step, steps }) => {
        const sent = await step('send', () => did('send', steps.book), { idempotent: false })
        failsFirst('send')
        return sent
      },
    })
    .step('close', {
      after: ['send'],
      run: () => {
        throw new Error('the shop is closed')
      },
    })
    .output()
}

interface Played {
  readonly status: string
  readonly effects: readonly string[]
  readonly events: readonly string[]
}

/** Plays a whole run for somebody who asks again while the store is out of reach. */
async function play({ store }: Lossy): Promise<Played> {
  const log: string[] = []
  const definition = trip(log)
  await using tutti = await quiet(store)
  const run = await again(() => tutti.start(definition, { id: 'R', key: 'start' }))
  const open_ = async (): Promise<string | undefined> => (await again(() => run.asks()))[0]?.id
  await until('it asks', async () => (await open_()) !== undefined)
  const ask = (await open_()) ?? ''
  await again(() => run.answer(ask, true, { key: 'answer' }))
  const { status, rollback } = await again(() => run.result())
  const events = await again(() => eventsOf(tutti))
  return { status: `${status}, ${rollback}`, effects: log.toSorted(), events }
}

/** What happened in all runs, whatever the order. */
async function eventsOf(tutti: Tutti): Promise<string[]> {
  const { runs } = await tutti.runs()
  const of = async ({ id }: { readonly id: string }): Promise<string[]> =>
    (await journal(await tutti.run(id))).map((event) => `${id} ${event.type} ${'branch' in event ? event.branch : ''}`)
  return (await Promise.all(runs.map(of))).flat().toSorted()
}

interface Place extends Disposable {
  make(): Promise<Store>
}

const inMemory = (): Place => ({ make: async () => memoryStore(), [Symbol.dispose]: () => {} })

function inFiles(): Place {
  const folder = new Folder()
  return { make: () => sqliteStore(folder.file(), { durability: 'process' }), [Symbol.dispose]: () => folder[Symbol.dispose]() }
}

const never = (): boolean => false

describe.each([
  ['in memory', inMemory],
  ['in a file', inFiles],
])('a store %s that does a commit and does not say so', (_, placed) => {
  test.each([
    ['changes nothing, at whichever commit', 0],
    ['and can not be read for a while changes nothing, at whichever commit', 2],
  ])('%s', { timeout: patience.timeout * 2 }, async (__, blind) => {
    using place = placed()
    const whole = async (loses: (number: number) => boolean): Promise<Played & { readonly made: Lossy }> => {
      const inner = await place.make()
      const made = lossy(inner, (___, number) => loses(number), blind)
      const played = await play(made)
      await inner.close()
      return { ...played, made }
    }
    const plain = await whole(never)
    expect(plain.status).toBe('failed, complete')
    expect(plain.effects).toEqual(['charge', 'pay', 'plan 1', 'plan 2', 'seat', 'send', 'undo 1', 'undo 2'])
    expect(plain.made.commits()).toBeGreaterThan(20)
    for (let at = 0; ; at++) {
      const { made, ...played } = await whole((number) => number === at)
      // What is done in one commit or in two is a matter of chance: there may be a few more or fewer.
      if (made.commits() <= at) break
      expect(played, `at commit ${at}`).toEqual({ status: plain.status, effects: plain.effects, events: plain.events })
    }
  })
})

describe('whoever asked is told what came of it, or asks again', () => {
  const once = solo((turn: SoloTurn) => turn.finish('done'))

  test('a start is acknowledged if it is found in the store, and the run is executed', async () => {
    await using tutti = await quiet(losing(memoryStore(), 'run.started').store)
    const run = await tutti.start(once, { id: 'R' })
    expect(await run.output()).toBe('done')
    expect(await codeOf(tutti.start(once, { id: 'R' }))).toBe('RUN_EXISTS')
  })

  test('D7 a start that nobody could look for is refused, and once it is sent again it is one run, which is executed', async () => {
    await using tutti = await quiet(losing(memoryStore(), 'run.started', 1).store)
    const start = (): Promise<Run> => tutti.start(once, { key: 'start' })
    expect(await codeOf(start())).toBe('STORE_UNAVAILABLE')
    const [second, third] = await Promise.all([start(), start()])
    expect(second.id).toBe(third.id)
    expect(await second.output()).toBe('done')
    expect((await tutti.runs()).runs).toHaveLength(1)
  })

  test('a run whose start nobody could look for is found by its id, and is executed', async () => {
    await using tutti = await quiet(losing(memoryStore(), 'run.started', 1).store)
    expect(await codeOf(tutti.start(once, { id: 'R' }))).toBe('STORE_UNAVAILABLE')
    const run = await tutti.run('R')
    expect(await run.output()).toBe('done')
    expect((await journal(run)).filter(({ type }) => (type as string) === 'run.claimed')).toEqual([])
  })

  test('a start that failed and was not done leaves nothing behind that hides a run of the same id', async () => {
    const inner = memoryStore()
    let isDown = true
    const store: Store = {
      ...inner,
      commit: (batch) => (isDown ? Promise.reject(new TuttiError('STORE_UNAVAILABLE', 'down')) : inner.commit(batch)),
    }
    await using other = await quiet(inner)
    isDown = false
    await using tutti = await quiet(store, [asks])
    isDown = true
    expect(await codeOf(tutti.start(asks, { id: 'R' }))).toBe('STORE_UNAVAILABLE')
    expect(await codeOf(tutti.run('R'))).toBe('RUN_NOT_FOUND')
    await other.start(asks, { id: 'R' })
    isDown = false
    const run = await tutti.run('R')
    await run.pause()
    expect(await run.status()).toBe('paused')
  })

  test.each([0, 1])('an answer reaches its run, also if %i reads after it fail', async (blind) => {
    await using tutti = await quiet(losing(memoryStore(), 'ask.answered', blind).store)
    const run = await tutti.start(asks)
    await until('it asks', async () => (await run.asks()).length === 1)
    const [ask] = await run.asks()
    const answer = (): Promise<void> => run.answer(ask?.id ?? '', 'yes', { key: 'answer' })
    const first = await codeOf(answer())
    expect(first).toEqual(blind === 0 ? { accepted: undefined } : 'STORE_UNAVAILABLE')
    await answer()
    expect(await run.output()).toBe('yes')
  })

  test.each([0, 1])('a pause is seen by whoever looks, also if %i reads after it fail', async (blind) => {
    await using tutti = await quiet(losing(memoryStore(), 'run.paused', blind).store)
    const run = await tutti.start(asks)
    await until('it asks', async () => (await run.asks()).length === 1)
    await again(() => run.pause({ key: 'pause' }))
    expect(await run.status()).toBe('paused')
    expect(await run.summary()).toMatchObject({ status: 'paused' })
    await run.resume()
    expect(await run.status()).toBe('running')
  })

  test('what another process says of a run that was let go reaches the one that takes it', async () => {
    const inner = memoryStore()
    const first = await quiet(inner, [asks])
    const { id } = await first.start(asks)
    await until('it asks', async () => (await first.asks()).length === 1)
    const [ask] = await first.asks()
    await first.close()
    // It does not look for what is due by itself for a long time.
    await using second = await quiet(losing(inner, 'ask.answered', 1).store, [asks], 3_600_000)
    const run = await second.run(id)
    expect(await codeOf(run.answer(ask?.id ?? '', 'yes', { key: 'answer' }))).toBe('STORE_UNAVAILABLE')
    expect(await run.output()).toBe('yes')
  })
})

describe('what is said of a run has reached its child run when it returns, also if the store was out of reach on the way', () => {
  const asking = graph('asking')
    .ask('q', { question: () => '?', schema: z.any() })
    .output(({ steps }) => steps.q)
  const parent = graph('parent')
    .step('child', { run: asking, input: () => null })
    .output(({ steps }) => steps.child)

  const steer = {
    'run.paused': (run: Run) => run.pause(),
    'run.resumed': (run: Run) => run.resume(),
    'run.cancelled': (run: Run) => run.cancel(),
  } as const

  test.each([
    ['a pause', 'run.paused', 'paused'],
    ['a resume', 'run.resumed', 'running'],
    ['a cancel', 'run.cancelled', 'cancelled'],
  ] as const)('%s', async (_, type, status) => {
    const { store, refused } = refusing(memoryStore(), 'R:child', type, 4)
    await using tutti = await quiet(store)
    const run = await tutti.start(parent, { id: 'R' })
    await until('it asks', async () => (await tutti.asks()).length === 1)
    const child = await tutti.run('R:child')
    if (type === 'run.resumed') await run.pause()
    expect(refused()).toBe(0)
    await steer[type](run)
    expect(await child.status()).toBe(status)
    expect(refused()).toBe(4)
  })
})

test('what a child run has done is undone also if the store was out of reach more often than an undo is tried', async () => {
  const undone: unknown[] = []
  const booking = graph('booking')
    .step('book', { run: () => 'seat', compensate: ({ output }) => void undone.push(output) })
    .output()
  const failing = graph('failing')
    .step('child', { run: booking })
    .step('pay', { after: ['child'], run: () => Promise.reject(new Error('no')) })
    .output()
  const { store, refused } = refusing(memoryStore(), 'R:child:undo', 'run.started', 6)
  await using tutti = await quiet(store)
  const run = await tutti.start(failing, { id: 'R' })
  expect(await run.result()).toMatchObject({ status: 'failed', rollback: 'complete' })
  expect(undone).toEqual(['seat'])
  expect(refused()).toBe(6)
})

describe('what is recorded before it is done', () => {
  test.each([0, 2])('is done once, also if %i reads after it fail', async (blind) => {
    let done = 0
    const definition = solo(async (turn: SoloTurn) => turn.finish(await turn.step('pay', () => ++done, { idempotent: false })))
    await using tutti = await quiet(losing(memoryStore(), 'activity.started', blind).store)
    expect(await (await tutti.start(definition)).output()).toBe(1)
    expect(done).toBe(1)
  })

  test('is done once if it can be undone, or uses what is limited', async () => {
    const log: string[] = []
    const buy = tool({
      description: 'buys something',
      input: z.object({ what: z.string() }),
      run: ({ what }) => void log.push(what),
      compensate: () => {},
    })
    const definition = topology({
      name: 'shopping',
      flows: ['Start -> Buyer -> End'],
      agents: { Buyer: { instructions: 'buy it', tools: { buy } } },
    })
    for (let at = 0; at < 3; at++) {
      let starts = 0
      const models = script({ Buyer: [{ tool: 'buy', input: { what: 'milk' } }, { finish: 'bought' }] })
      const { store, lost } = lossy(memoryStore(), (batch) => JSON.stringify(batch).includes('activity.started') && starts++ === at)
      await using tutti = await open({ store, invariants: true, onLog: () => {}, models })
      const run = await tutti.start(definition, { input: 'milk', limits: { tokens: 1_000_000 } })
      expect(await run.result()).toMatchObject({ status: 'succeeded' })
      expect(lost()).toBe(1)
    }
    expect(log).toEqual(['milk', 'milk', 'milk'])
  })
})

describe('a worker that is not told what it was given', () => {
  test.each(['the claim of the store', 'the claim in the journal', 'the reading of the run'])('takes it all the same: %s', async (lost) => {
    const inner = memoryStore()
    let begun = 0
    const definition = solo(async (turn: SoloTurn) => {
      if (++begun === 1) await untilAborted(turn.signal)
      return turn.finish(begun)
    })
    const first = await quiet(inner, [definition], 40)
    const { id } = await first.start(definition)
    await until('it has begun', () => begun === 1)
    const { store } = losing(inner, lost === 'the claim in the journal' ? 'run.claimed' : 'nothing')
    let claims = 0
    const claim: Store['claim'] = async (wanted) => {
      const claimed = await inner.claim(wanted)
      if (claimed.rows.length > 0 && claims++ === 0 && lost === 'the claim of the store') throw new TuttiError('STORE_UNAVAILABLE', 'lost')
      return claimed
    }
    let reads = 0
    const load: Store['load'] = async (...of) => {
      if (claims > 0 && reads++ === 0 && lost === 'the reading of the run') throw new TuttiError('STORE_UNAVAILABLE', 'lost')
      return store.load(...of)
    }
    await using second = await quiet({ ...store, claim, load }, [definition], 40)
    await first.close()
    const run = await second.run(id)
    expect(await run.output()).toBe(2)
    expect((await journal(run)).filter(({ type }) => (type as string) === 'run.claimed')).toHaveLength(1)
  })
})

test('a pause of an agent holds back its turns in the process that was not told of it', async () => {
  const inner = memoryStore()
  // Nobody else commits, so that nothing else tells this process to look.
  const { store } = losing({ ...inner, moved: () => false, onMoved: () => () => {} }, 'paused')
  const definition = solo((turn: SoloTurn) => turn.finish('done'))
  await using tutti = await quiet(store, [definition])
  expect(await codeOf(tutti.agents.pause('A'))).toBe('STORE_UNAVAILABLE')
  const run = await tutti.start(definition)
  await rest()
  expect(await run.status()).toBe('running')
  expect((await run.summary()).waitsFor).toEqual(['agent'])
  await tutti.agents.resume('A')
  expect(await run.output()).toBe('done')
})

test('what others say of a run is heard by its owner, although the answer in which the store tells of it once was lost', async () => {
  const inner = memoryStore()
  let lost = 0
  const mine: Store['mine'] = async (worker) => {
    const said = await inner.mine(worker)
    if (said.rung.length > 0 && lost++ === 0) throw new TuttiError('STORE_UNAVAILABLE', 'the answer was lost')
    return said
  }
  await using owner = await quiet({ ...inner, mine }, [asks])
  await using other = await quiet(inner)
  const { id } = await owner.start(asks)
  await until('it asks', async () => (await other.asks()).length === 1)
  const [ask] = await other.asks()
  const run = await other.run(id)
  await run.answer(ask?.id ?? '', 'yes')
  await until('it has ended', async () => (await run.status()) === 'succeeded', 5_000)
  expect(lost).toBe(1)
})

test('what a run waits for is what the store says, whichever commit was not acknowledged', async () => {
  const definition = solo((turn: SoloTurn) => turn.finish('done'))
  for (let at = 0; ; at++) {
    const { store, commits } = lossy(memoryStore(), (_, number) => number === at)
    const tutti = await again(() => quiet(store, [definition]))
    await again(() => tutti.agents.pause('A', { key: 'pause' }))
    const run = await again(() => tutti.start(definition, { key: 'start' }))
    await until('it waits', async () => (await run.summary()).waitsFor.includes('agent'))
    await again(() => tutti.agents.resume('A', { key: 'resume' }))
    expect(await run.output(), `at commit ${at}`).toBe('done')
    expect(await store.marks({ kind: 'agent' })).toEqual([])
    await tutti.close()
    if (commits() <= at) return
  }
})

test('that a run waits no more is said also if nobody knows whether it was said that it waits', async () => {
  const { store, lost } = losing(memoryStore(), '"marks":[{"kind":"agent"')
  const definition = solo((turn: SoloTurn) => turn.finish('done'))
  await using tutti = await quiet(store, [definition])
  await tutti.agents.pause('A')
  const run = await tutti.start(definition)
  while (lost() === 0) await rest(1)
  await tutti.agents.resume('A')
  expect(await run.output()).toBe('done')
  expect(await store.marks({ kind: 'agent' })).toEqual([])
})

test('an engine whose store is gone can be closed, whatever may be there of it', async () => {
  const inner = memoryStore()
  let isGone = false
  const gone = (): Promise<never> => Promise.reject(new TuttiError('STORE_UNAVAILABLE', 'gone'))
  const store: Store = {
    ...inner,
    commit: (batch) => (isGone ? gone() : inner.commit(batch)),
    load: (...of) => (isGone ? gone() : inner.load(...of)),
    leave: (...of) => (isGone ? gone() : inner.leave(...of)),
  }
  const tutti = await quiet(store, [asks])
  isGone = true
  expect(await codeOf(tutti.start(asks, { id: 'R' }))).toBe('STORE_UNAVAILABLE')
  await tutti.close()
})

test('an engine whose store is gone can be closed while somebody waits to see how a run stands', async () => {
  const inner = memoryStore()
  let isGone = false
  const gone = (): Promise<never> => Promise.reject(new TuttiError('STORE_UNAVAILABLE', 'gone'))
  const store: Store = {
    ...inner,
    commit: (batch) => (isGone ? gone() : inner.commit(batch)),
    load: (...of) => (isGone ? gone() : inner.load(...of)),
  }
  const works = solo(async (turn: SoloTurn) => {
    await rest(5)
    return turn.finish()
  })
  let said = 0
  const tutti = await open({ store, onLog: () => void said++, definitions: [works], graceMs: 20 })
  const run = await tutti.start(works)
  isGone = true
  while (said === 0) await rest(1)
  const seen = codeOf(run.status())
  await tutti.close()
  await seen
  expect(said).toBeLessThan(20)
})

describe('of several who ask for the same at the same moment one wins, also if the answer to another is lost', () => {
  const asking = solo((turn: SoloTurn) => (turn.message.kind === 'answer' ? turn.finish(turn.message.value) : turn.ask('?')))
  const places = { 'in memory': inMemory, 'in a file': inFiles }
  type Call = (run: Run, ask: string, key?: string) => Promise<unknown>
  const answer: Call = (run, ask, key) => run.answer(ask, 'yes', { key })
  const resume: Call = (run, _, key) => run.resume({ key })

  test.each([
    ['D1 resumes', 'in memory', 'run.resumed', resume, 'RUN_NOT_PAUSED'],
    ['D2 answers', 'in memory', 'ask.answered', answer, 'ASK_ALREADY_ANSWERED'],
    ['D1 resumes', 'in a file', 'run.resumed', resume, 'RUN_NOT_PAUSED'],
    ['D2 answers', 'in a file', 'ask.answered', answer, 'ASK_ALREADY_ANSWERED'],
  ] as const)('%s, %s', async (_, where, text, call, code) => {
    for (const owner of ['first', 'second'])
      for (const keys of [[], ['a', 'b']]) {
        using place = places[where]()
        const inner = await place.make()
        const won = deferred()
        // The second is slower, finds that it was, and is not told.
        const slow: Store = {
          ...inner,
          commit: async (batch) => {
            if (!JSON.stringify(batch).includes(text)) return inner.commit(batch)
            await won.promise
            await inner.commit(batch)
            throw new TuttiError('STORE_UNAVAILABLE', 'the acknowledgement was lost')
          },
        }
        const clock = virtualClock()
        const of = (store: Store, who: string) => open({ store, clock, onLog: () => {}, definitions: who === owner ? [asking] : [] })
        const [first, second] = [await of(inner, 'first'), await of(slow, 'second')]
        const { id } = await (owner === 'first' ? first : second).start(asking)
        const [one, other] = [await first.run(id), await second.run(id)]
        await until('it asks', async () => (await one.asks()).length === 1)
        const [ask] = await one.asks()
        if (text === 'run.resumed') await one.pause()
        await other.status()
        const late = codeOf(call(other, ask?.id ?? '', keys[1]))
        await rest()
        await call(one, ask?.id ?? '', keys[0])
        won.resolve()
        // What is not known to be done is not said to be; who asks again is told.
        expect(await late, `the ${owner} owns it, keys ${keys}`).toBe('STORE_UNAVAILABLE')
        expect(await codeOf(call(other, ask?.id ?? '', keys[1]))).toBe(code)
        await Promise.all([first.close(), second.close()])
        await inner.close()
      }
  })
})

describe('the explorer finds nothing where acknowledgements are lost', () => {
  test('between the start and the end of what must not be repeated', patience, async () => {
    const definition = () =>
      topology({
        name: 'paid',
        flows: ['Start -> Desk -> End', 'Desk <-> Hotel | Flight'],
        agents: {
          Desk: { act: { request: (turn) => turn.fork(['Hotel', 'Flight']), join: (turn, { values }) => turn.finish(values) } },
          Hotel: async (turn) => turn.reply(await turn.step('pay', () => 1, { idempotent: false })),
          Flight: async (turn) => turn.reply(await turn.step('pay', () => 2, { idempotent: false })),
        },
      })
    const checked = await explore(definition, { faults: ['lost-ack'], schedules: 80 })
    expect(checked.independent, checked.text()).toBe(true)
    expect(checked.distinct).toBe(1)
  })

  test('in runs of steps', patience, async () => {
    const definition = () => {
      const child = graph('child')
        .step('pay', { run: ({ step }) => step('pay', () => 1, { idempotent: false }) })
        .output(({ steps }) => steps.pay)
      return graph('parent')
        .step('a', { run: child })
        .step('b', { run: child })
        .step('c', { after: ['a', 'b'], run: ({ steps }) => [steps.a, steps.b] })
        .output(({ steps }) => steps.c)
    }
    const checked = await explore(definition, { faults: ['lost-ack'], schedules: 80 })
    expect(checked.independent, checked.text()).toBe(true)
    expect(checked.distinct).toBe(1)
  })
})
