import * as tutti from 'tutti'
import { expect, test } from 'vitest'
import { counted } from './children/counted.js'
import { orphan } from './children/plays.js'
import { Child, patience, Place, times, until } from './processes.js'

/** The effects that were begun: by which process, under which key. */
const effectsOf = (place: Place): { pid: number; key: string; run: string }[] =>
  place.lines('effect').map((line) => {
    const [pid = '', key = ''] = line.split(' ')
    return { pid: Number(pid), key, run: key.split('/')[1] ?? '' }
  })

async function journalOf(run: tutti.Run): Promise<tutti.JournalEvent[]> {
  const events: tutti.JournalEvent[] = []
  for await (const event of run.events()) events.push(event)
  return events
}

const epochsOf = (journal: readonly tutti.JournalEvent[]): number[] =>
  journal.flatMap((event) => (event.type === 'run.claimed' ? [event.epoch] : []))

test(
  'D9 four recoverers started at once share the runs of a dead process: each has one owner, no effect happens twice',
  patience,
  async () => {
    using place = new Place()
    const ids = Array.from({ length: times(20, 200) }, (_, n) => `orphan-${n}`)
    const dead = new Child('worker', place, { play: 'orphan', options: { hangs: true } })
    await dead.line()
    dead.tell(JSON.stringify({ start: ids }))
    await dead.line()
    await until('each has begun', () => effectsOf(place).length === ids.length)
    await dead.kill()
    const before = effectsOf(place).length
    const recoverers = Array.from({ length: 4 }, () => new Child('worker', place, { play: 'orphan' }))
    await using engine = await tutti.open({ store: place.store })
    const runs = await Promise.all(ids.map((id) => engine.run(id)))
    for (const run of runs) expect(await run.output()).toBe(3)
    await Promise.all(recoverers.map((child) => child.kill()))
    const since = effectsOf(place).slice(before)
    expect(since).toHaveLength(ids.length * 3)
    expect(new Set(since.map(({ key }) => key)).size).toBe(ids.length * 3)
    for (const run of runs) {
      expect(new Set(since.filter((effect) => effect.run === run.id).map(({ pid }) => pid)).size, `${run.id} has one owner`).toBe(1)
      expect(epochsOf(await journalOf(run))).toEqual([2])
    }
  },
)

test('E4 a process that was frozen past its time to live records nothing more and starts no further effect', patience, async () => {
  using place = new Place()
  await using frozen = new Child('worker', place, { play: 'orphan', options: { steps: 60, ms: 15 }, ttlMs: 200 })
  await frozen.line()
  frozen.tell(JSON.stringify({ start: ['run'] }))
  await frozen.line()
  await until('it is at work', () => effectsOf(place).length >= 5)
  await frozen.freeze(place)
  const definition = orphan(tutti, (line) => place.write(line), { steps: 60, ms: 15 })
  await using engine = await tutti.open({ store: place.store, definitions: [definition], workerTtlMs: 200 })
  await until('another takes over', () => effectsOf(place).some(({ pid }) => pid === process.pid))
  const [first] = effectsOf(place)
  const mine = effectsOf(place).filter(({ pid }) => pid === first?.pid).length
  frozen.signal('SIGCONT')
  const run = await engine.run('run')
  expect(await run.output()).toBe(60)
  expect(effectsOf(place).filter(({ pid }) => pid === first?.pid)).toHaveLength(mine)
  const journal = await journalOf(run)
  expect(epochsOf(journal)).toEqual([2])
  // Each record names the process that made it: after the take-over all are of the new owner.
  const claimedAt = journal.findIndex(({ type }) => type === 'run.claimed')
  const makers = journal.slice(claimedAt).flatMap((event) => (event.type === 'activity.completed' ? [event.value] : []))
  expect(makers.length).toBeGreaterThan(1)
  expect(new Set(makers)).toEqual(new Set([process.pid]))
  // Of all effects only the one that was in flight when the process froze happened twice, and under the same key.
  const keys = effectsOf(place).map(({ key }) => key)
  expect(keys.length - new Set(keys).size).toBeLessThanOrEqual(1)
})

test('a process that was fenced while it was frozen executes runs again once it goes on', patience, async () => {
  using place = new Place()
  await using frozen = new Child('worker', place, { play: 'orphan', ttlMs: 200 })
  await frozen.line()
  await frozen.freeze(place)
  const other = await tutti.open({ store: place.store, definitions: [], workerTtlMs: 200 })
  // Long enough for the other to fence it.
  await new Promise((resolve) => setTimeout(resolve, 700))
  frozen.signal('SIGCONT')
  frozen.tell(JSON.stringify({ start: ['later'] }))
  await frozen.line()
  try {
    const run = await other.run('later')
    await until('it is over', async () => (await run.status()) === 'succeeded')
    const keys = effectsOf(place).map(({ key }) => key)
    expect(keys).toHaveLength(new Set(keys).size)
  } finally {
    await other.close()
  }
})

test('a process that closes with runs in flight ends by itself, and they go on at the next open at once', patience, async () => {
  using place = new Place()
  await using child = new Child('worker', place, { play: 'orphan', options: { steps: 40, ms: 10 }, ttlMs: 60_000 })
  await child.line()
  const ids = ['a', 'b', 'c']
  child.tell(JSON.stringify({ start: ids }))
  await child.line()
  await until('they are at work', () => effectsOf(place).length >= 9)
  child.tell(JSON.stringify({ close: true }))
  expect(await child.said()).toBe('closed')
  const closedAt = performance.now()
  expect(await child.end()).toBe(0)
  expect(performance.now() - closedAt).toBeLessThan(3_000)
  const before = effectsOf(place).length
  const definition = orphan(tutti, (line) => place.write(line), { steps: 40, ms: 1 })
  await using engine = await tutti.open({ store: place.store, definitions: [definition] })
  for (const id of ids) expect(await (await engine.run(id)).output()).toBe(40)
  // Each was interrupted in at most one step, and what was recorded is not done again.
  expect(effectsOf(place).length - before).toBeLessThanOrEqual(ids.length * 40 - before + ids.length)
  const keys = effectsOf(place).map(({ key }) => key)
  expect(new Set(keys).size).toBe(ids.length * 40)
  expect(keys.length - new Set(keys).size).toBeLessThanOrEqual(ids.length)
})

test('a process with no definition for a run leaves it alone, says so, and steers it all the same', patience, async () => {
  using place = new Place()
  const definition = counted(tutti, (line) => place.write(line))
  const first = await tutti.open({ store: place.store, definitions: [definition] })
  const { id } = await first.start(definition, { tags: { team: 'x' } })
  await until('it asks', async () => (await first.asks()).length === 1)
  await first.close()
  await using second = await tutti.open({ store: place.store })
  const run = await second.run(id)
  expect((await run.summary()).waitsFor).toEqual(['person', 'definition'])
  expect((await second.runs()).runs).toMatchObject([{ id, waitsFor: ['person', 'definition'] }])
  await run.pause()
  expect(await run.status()).toBe('paused')
  await run.resume()
  const [ask] = await run.asks()
  await run.answer(ask?.id ?? '', 'from elsewhere')
  expect((await run.summary()).waitsFor).toEqual(['definition'])
  expect(place.lines('after')).toEqual([])
  await using third = await tutti.open({ store: place.store, definitions: [definition] })
  expect(await (await third.run(id)).output()).toBe('from elsewhere')
  expect(await run.output()).toBe('from elsewhere')
  expect(place.lines('after')).toHaveLength(1)
})

test('a run goes on under another version of its definition only where that one says so', patience, async () => {
  using place = new Place()
  const of = (version: string, word: string, continues: readonly string[] = []) =>
    counted(tutti, (line) => place.write(`${word} ${line}`), { version, continues })
  const first = await tutti.open({ store: place.store, definitions: [of('1', 'v1')] })
  const { id } = await first.start('counted')
  await until('it asks', async () => (await first.asks()).length === 1)
  await first.close()

  const second = await tutti.open({ store: place.store, definitions: [of('2', 'v2')] })
  const waiting = await second.run(id)
  const [ask] = await waiting.asks()
  await waiting.answer(ask?.id ?? '', 'go')
  expect((await waiting.summary()).waitsFor).toEqual(['definition'])
  await new Promise((resolve) => setTimeout(resolve, 50))
  expect(place.lines('v2')).toEqual([])
  await second.close()

  await using third = await tutti.open({ store: place.store, definitions: [of('3', 'v3', ['2', '1'])] })
  const run = await third.run(id)
  expect(await run.output()).toBe('go')
  expect(place.lines('v3')).toEqual([expect.stringMatching(/^after /)])
  expect((await run.summary()).waitsFor).toEqual([])
})

test(
  'a worker that has looked at a run goes on with it when its owner leaves, although it reads of that only while it claims',
  patience,
  async () => {
    using place = new Place()
    const bodies: string[] = []
    const definition = (who: string) =>
      tutti.topology({
        name: 'handed on',
        flows: ['Start -> A -> End'],
        agents: {
          A: async (turn) => {
            bodies.push(who)
            if (who === 'first') await new Promise((_, reject) => turn.signal.addEventListener('abort', () => reject(turn.signal.reason)))
            return turn.finish(who)
          },
        },
      })
    const first = await tutti.open({ store: place.store })
    const { id } = await first.start(definition('first'))
    await until('it is at work', () => bodies.length > 0)
    await using second = await tutti.open({ store: place.store, definitions: [definition('second')] })
    const seen = await second.run(id)
    expect(await seen.status()).toBe('running')
    await first.close()
    await until('the other one goes on', () => bodies.includes('second'))
    expect(await seen.output()).toBe('second')
    expect((await journalOf(seen)).filter(({ type }) => type === 'run.claimed' || type === 'run.released').map(({ type }) => type)).toEqual(
      ['run.released', 'run.claimed'],
    )
  },
)
