import * as tutti from 'tutti'
import { afterAll, expect, test } from 'vitest'
import { codeOf, deferred, untilAborted } from '../engine/opened.js'
import { counted } from './children/counted.js'
import { Child, patience, Place, until } from './processes.js'

const place = new Place()
const caller = new Child('caller', place)
const opened = caller.line()
afterAll(async () => {
  await caller.kill()
  place[Symbol.dispose]()
})

/** Has another process do something; gives what came of it. */
async function elsewhere(order: object): Promise<{ done?: unknown; code?: string }> {
  await opened
  caller.tell(JSON.stringify(order))
  return caller.said()
}

/** What a run is in the middle of when it is steered. */
const situations = ['while a turn is in flight', 'while it waits for a person', 'while a timer runs', 'inside a fork'] as const
type Situation = (typeof situations)[number]

const sleepMs = 150
let gate = deferred()

/** Goes into the situation that its input names; what follows it is an effect in a turn of its own, or after the sleep. */
const steered = tutti.topology({
  name: 'steered',
  flows: ['Start -> A -> B -> End', 'A <-> W', 'A -> User'],
  agents: {
    A: async (turn: tutti.Turn<any>): Promise<tutti.Action> => {
      if (turn.message.kind !== 'request') return turn.invoke('B')
      switch (turn.request as Situation) {
        case 'while a turn is in flight':
          await turn.step('held', held)
          break
        case 'while it waits for a person':
          return turn.ask('go on?')
        case 'while a timer runs':
          await turn.sleep(sleepMs)
          break
        case 'inside a fork':
          return turn.fork(['W', 'W'])
      }
      return turn.invoke('B')
    },
    W: async (turn: tutti.Turn<any>) => turn.reply(await turn.step('held', held)),
    B: async (turn: tutti.Turn<any>) => {
      await turn.step('after', () => place.write(`after ${turn.runId}`))
      return turn.finish('done')
    },
  },
} as never) as tutti.Topology<unknown, unknown>

const held = async ({ idempotencyKey, signal }: tutti.ActivityContext): Promise<string> => {
  place.write(`held ${idempotencyKey}`)
  await Promise.race([gate.promise, untilAborted(signal)])
  return 'held'
}

const open = (): Promise<tutti.Tutti> => tutti.open({ store: place.store, definitions: [steered, other], invariants: true, graceMs: 1_000 })
const other = counted(tutti, (line) => place.write(line))
const heldOf = (run: tutti.Run): number => place.lines('held').filter((line) => line.includes(`/${run.id}/`)).length
const afterOf = (run: tutti.Run): number => place.lines('after').filter((line) => line === run.id).length
const pass = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms))

/** A run in the middle of a situation. */
async function inside(engine: tutti.Tutti, situation: Situation): Promise<tutti.Run> {
  gate = deferred()
  const run = await engine.start(steered, { input: situation })
  const waits = async (): Promise<readonly string[]> => (await run.summary()).waitsFor
  await until(situation, async () => {
    if (situation === 'while it waits for a person') return (await run.asks()).length === 1
    if (situation === 'while a timer runs') return (await waits()).includes('timer')
    return heldOf(run) === (situation === 'inside a fork' ? 2 : 1)
  })
  return run
}

/** Lets the situation be over, as far as it depends on others than the run. */
async function passes(run: tutti.Run, situation: Situation): Promise<void> {
  gate.resolve()
  if (situation === 'while it waits for a person') await run.answer((await run.asks())[0]?.id ?? '', 'yes')
  if (situation === 'while a timer runs') await pass(sleepMs)
  await pass(30)
}

test.each(situations)(
  'a run paused %s stands still, also after a restart, until another process resumes it',
  patience,
  async (situation) => {
    const first = await open()
    const { id } = await inside(first, situation).then(async (run) => {
      expect(await elsewhere({ act: 'pause', run: run.id })).toEqual({ done: null })
      expect(await run.status()).toBe('paused')
      await passes(run, situation)
      expect(await run.status()).toBe('paused')
      expect(afterOf(run)).toBe(0)
      return run
    })
    await first.close()
    await using second = await open()
    const run = await second.run(id)
    await pass(30)
    expect(await run.status()).toBe('paused')
    expect(afterOf(run)).toBe(0)
    expect((await second.runs({ status: 'paused' })).runs.map((summary) => summary.id)).toEqual([id])
    expect(await elsewhere({ act: 'resume', run: id })).toEqual({ done: null })
    expect(await run.output()).toBe('done')
    expect(afterOf(run)).toBe(1)
    expect(heldOf(run)).toBe({ 'inside a fork': 2, 'while a turn is in flight': 1 }[situation as string] ?? 0)
    expect(await codeOf(run.resume())).toBe('RUN_NOT_PAUSED')
  },
)

test('a turn that waits for room does not begin while another process has its run paused', patience, async () => {
  gate = deferred()
  const begun: string[] = []
  const queued = tutti.topology({
    name: 'queued',
    flows: ['Start -> A -> End'],
    agents: {
      A: async (turn: tutti.Turn<any>) => {
        begun.push(turn.runId)
        if (turn.runId === 'ahead') await gate.promise
        return turn.finish('done')
      },
    },
  } as never) as tutti.Topology<unknown, unknown>
  await using engine = await tutti.open({ store: place.store, definitions: [queued], invariants: true, concurrency: 1 })
  const ahead = await engine.start(queued, { id: 'ahead' })
  const behind = await engine.start(queued, { id: 'behind' })
  await until('the first has room', () => begun.length === 1)
  expect(await elsewhere({ act: 'pause', run: 'behind' })).toEqual({ done: null })
  gate.resolve()
  expect(await ahead.output()).toBe('done')
  await pass(30)
  expect(begun).toEqual(['ahead'])
  expect(await elsewhere({ act: 'resume', run: 'behind' })).toEqual({ done: null })
  expect(await behind.output()).toBe('done')
})

test.each(situations)('a run cancelled %s by another process is over, and nothing of it goes on', patience, async (situation) => {
  await using engine = await open()
  const run = await inside(engine, situation)
  expect(await elsewhere({ act: 'cancel', run: run.id })).toEqual({ done: null })
  expect(await run.result()).toMatchObject({ status: 'cancelled', reason: 'told to' })
  gate.resolve()
  await pass(situation === 'while a timer runs' ? sleepMs : 30)
  expect(afterOf(run)).toBe(0)
  expect(await engine.asks({ runId: run.id })).toEqual([])
  expect(await codeOf(run.pause())).toBe('RUN_ENDED')
})

test.each(situations)(
  'a run whose process has gone and that is cancelled meanwhile (%s) does not go on at the next open',
  patience,
  async (situation) => {
    const first = await open()
    const { id } = await inside(first, situation)
    await first.close()
    const before = place.lines().length
    expect(await elsewhere({ act: 'cancel', run: id })).toEqual({ done: null })
    await using second = await open()
    const run = await second.run(id)
    expect(await run.result()).toMatchObject({ status: 'cancelled' })
    gate.resolve()
    await pass(30)
    expect(place.lines()).toHaveLength(before)
  },
)

test('a cancelled run that was paused ends, and a paused run that is cancelled from elsewhere too', patience, async () => {
  await using engine = await open()
  for (const situation of situations) {
    const run = await inside(engine, situation)
    await run.pause()
    expect(await elsewhere({ act: 'cancel', run: run.id })).toEqual({ done: null })
    expect(await run.result()).toMatchObject({ status: 'cancelled' })
    expect(afterOf(run)).toBe(0)
  }
})

test('the events of a run that another process owns come live, with no gap, from any place on, and end with it', patience, async () => {
  using alone = new Place()
  await using owner = new Child('worker', alone, { play: 'orphan', options: { steps: 12, ms: 10 } })
  await owner.line()
  owner.tell(JSON.stringify({ start: ['run'] }))
  await owner.line()
  await using engine = await tutti.open({ store: alone.store })
  const run = await engine.run('run')
  const follow = async (after: number): Promise<tutti.JournalEvent[]> => {
    const events: tutti.JournalEvent[] = []
    for await (const event of run.events({ after })) events.push(event)
    return events
  }
  const [whole, part] = await Promise.all([follow(0), follow(7)])
  expect(whole.map(({ seq }) => seq)).toEqual(whole.map((_, at) => at + 1))
  expect(whole.at(-1)?.type).toBe('run.succeeded')
  expect(part).toEqual(whole.slice(7))
  // It came while it happened: the first of them were read before the last had been written.
  expect(whole.filter(({ type }) => type === 'activity.completed')).toHaveLength(12)
  expect(await follow(whole.length - 1)).toEqual(whole.slice(-1))
})

test('runs are found by status, definition, tags and time, page by page; asks by run, agent and tags', patience, async () => {
  await using engine = await tutti.open({ store: 'memory:', definitions: [steered, other] })
  using alone = new Place()
  await using onDisk = await tutti.open({ store: alone.store, definitions: [steered, other] })
  for (const at of [engine, onDisk]) {
    const since = Date.now()
    const ids: string[] = []
    for (let n = 0; n < 7; n++) ids.push((await at.start(other, { tags: { n: String(n % 2), all: 'yes' } })).id)
    const slow = await inside(at, 'while it waits for a person')
    await until('all ask', async () => (await at.asks()).length === 8)
    const found = async (filter: Parameters<tutti.Tutti['runs']>[0]): Promise<string[]> => (await at.runs(filter)).runs.map(({ id }) => id)
    expect(await found({})).toEqual([slow.id, ...ids.toReversed()])
    expect(await found({ definition: 'counted', tags: { n: '1', all: 'yes' } })).toEqual([ids[5], ids[3], ids[1]])
    expect(await found({ tags: { n: 'none' } })).toEqual([])
    expect(await found({ since: since + 3_600_000 })).toEqual([])
    expect((await at.runs({ since })).runs).toHaveLength(8)
    const pages: string[][] = []
    for (let cursor: string | undefined, more = true; more; ) {
      const page = await at.runs({ definition: 'counted', limit: 3, ...(cursor !== undefined && { cursor }) })
      pages.push(page.runs.map(({ id }) => id))
      cursor = page.cursor
      more = cursor !== undefined
    }
    expect(pages.flat()).toEqual(ids.toReversed())
    expect(pages.map(({ length }) => length)).toEqual([3, 3, 1])
    const one = await at.run(ids[0] ?? '')
    await one.pause()
    expect(await found({ status: 'paused' })).toEqual([ids[0]])
    expect(await found({ status: ['paused', 'running'], tags: { n: '0' } })).toEqual([ids[6], ids[4], ids[2], ids[0]])
    expect(await at.asks({ tags: { n: '1' } })).toHaveLength(3)
    expect(await at.asks({ runId: ids[0] ?? '' })).toMatchObject([{ agent: 'A', runId: ids[0], question: 'go?' }])
    expect(await at.asks({ agent: 'nobody' })).toEqual([])
    await one.cancel()
    expect(await at.asks({ runId: ids[0] ?? '' })).toEqual([])
    expect(await found({ status: 'cancelled' })).toEqual([ids[0]])
  }
})
