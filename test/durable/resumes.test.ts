import * as tutti from 'tutti'
import { afterAll, expect, test } from 'vitest'
import { codeOf } from '../engine/opened.js'
import { counted } from './children/counted.js'
import { Child, patience, Place, times, until } from './processes.js'

type Said = { readonly done?: unknown; readonly code?: string }

/** An engine on a store of its own that executes, and processes that only call. */
async function stage(callers: number, executes = false) {
  const place = new Place()
  const definition = counted(tutti, (line) => place.write(line))
  const engine = await tutti.open({ store: place.store, definitions: executes ? [] : [definition], invariants: true })
  const children = Array.from({ length: callers }, () => new Child('caller', place, { executes }))
  for (const child of children) await child.line()
  /** Tells all of them, to be done at one moment. */
  const all = async (order: (caller: number) => object): Promise<Said[]> => {
    const at = Date.now() + 8
    for (const [caller, child] of children.entries()) child.tell(JSON.stringify({ ...order(caller), at }))
    return Promise.all(children.map((child) => child.said<Said>()))
  }
  const dispose = async (): Promise<void> => {
    await Promise.all(children.map((child) => child.kill()))
    await engine.close()
    place[Symbol.dispose]()
  }
  return { place, definition, engine, all, [Symbol.asyncDispose]: dispose }
}

/** A run that waits for its answer. */
async function asking(engine: tutti.Tutti, definition: tutti.Topology<unknown, unknown>): Promise<{ run: tutti.Run; ask: string }> {
  const run = await engine.start(definition)
  let ask: string | undefined
  await until('it asks', async () => (ask = (await run.asks())[0]?.id))
  return { run, ask: ask ?? '' }
}

/** A run that is paused, and would go on if it were not. */
async function paused(engine: tutti.Tutti, definition: tutti.Topology<unknown, unknown>): Promise<tutti.Run> {
  const { run, ask } = await asking(engine, definition)
  await run.pause()
  await run.answer(ask, 'answered')
  return run
}

const afterOf = (place: Place, run: tutti.Run): number => place.lines('after').filter((line) => line.includes(`/${run.id}/`)).length
const wins = (said: readonly Said[]): number => said.filter(({ code }) => code === undefined).length
const codes = (said: readonly Said[]): unknown[] => said.flatMap(({ code }) => code ?? [])

test.each(['memory', 'sqlite'])(
  'D1 I2 of 2 to 64 callers in one process one resume wins and one answer counts (%s)',
  patience,
  async (kind) => {
    using place = new Place()
    const definition = counted(tutti, (line) => place.write(line))
    await using engine = await tutti.open({ store: kind === 'memory' ? 'memory:' : place.store, definitions: [definition] })
    const said = async (call: () => Promise<unknown>): Promise<Said> => {
      const code = await codeOf(call())
      return typeof code === 'string' ? { code } : { done: null }
    }
    for (const callers of [2, 3, 5, 8, 16, 33, 64].flatMap((n) => Array.from({ length: times(1, 20) }, () => n))) {
      const run = await paused(engine, definition)
      const resumes = await Promise.all(Array.from({ length: callers }, () => said(() => run.resume())))
      expect(wins(resumes)).toBe(1)
      expect(codes(resumes)).toEqual(Array.from({ length: callers - 1 }, () => 'RUN_NOT_PAUSED'))
      expect(await run.output()).toBe('answered')
      expect(afterOf(place, run)).toBe(1)

      const other = await asking(engine, definition)
      const answers = await Promise.all(Array.from({ length: callers }, (_, n) => said(() => other.run.answer(other.ask, n))))
      expect(wins(answers)).toBe(1)
      expect(codes(answers)).toEqual(Array.from({ length: callers - 1 }, () => 'ASK_ALREADY_ANSWERED'))
      expect(await other.run.output()).toBe(answers.findIndex(({ code }) => code === undefined))
      expect(afterOf(place, other.run)).toBe(1)
    }
  },
)

// Started once: what costs most is starting processes.
const eight = stage(8)
afterAll(async () => (await eight)[Symbol.asyncDispose]())

test('D1 of eight processes on one file one resume wins, in every round, and what follows happens once', patience, async () => {
  const at = await eight
  for (let round = 0; round < times(20, 200); round++) {
    const run = await paused(at.engine, at.definition)
    const said = await at.all((caller) => ({ act: 'resume', run: run.id, by: `caller ${caller}` }))
    expect(wins(said), `round ${round}`).toBe(1)
    expect(codes(said)).toEqual(Array.from({ length: 7 }, () => 'RUN_NOT_PAUSED'))
    expect(await run.output()).toBe('answered')
    expect(afterOf(at.place, run)).toBe(1)
  }
})

test('D2 of eight processes on one file one answer counts, in every round, and what follows happens once', patience, async () => {
  const at = await eight
  for (let round = 0; round < times(20, 200); round++) {
    const { run, ask } = await asking(at.engine, at.definition)
    const said = await at.all((caller) => ({ act: 'answer', run: run.id, ask, value: caller }))
    expect(wins(said), `round ${round}`).toBe(1)
    expect(codes(said)).toEqual(Array.from({ length: 7 }, () => 'ASK_ALREADY_ANSWERED'))
    expect(await run.output()).toBe(said.findIndex(({ code }) => code === undefined))
    expect(afterOf(at.place, run)).toBe(1)
  }
})

test('a key given by all of eight processes has one outcome, which is that of all of them, now and later', patience, async () => {
  const at = await eight
  for (let round = 0; round < times(5, 50); round++) {
    const run = await paused(at.engine, at.definition)
    const key = `resume ${round}`
    expect(wins(await at.all(() => ({ act: 'resume', run: run.id, key })))).toBe(8)
    expect(await run.output()).toBe('answered')
    expect(afterOf(at.place, run)).toBe(1)
    await run.resume({ key })
    expect(await codeOf(run.resume({ key: `another ${round}` }))).toBe('RUN_NOT_PAUSED')
    expect(await codeOf(run.pause({ key }))).toBe('KEY_REUSED')

    const other = await asking(at.engine, at.definition)
    const answer = { act: 'answer', run: other.run.id, ask: other.ask, value: 'once', key: `answer ${round}` }
    expect(wins(await at.all(() => answer))).toBe(8)
    expect(await other.run.output()).toBe('once')
    expect(await codeOf(other.run.answer(other.ask, 'twice', { key: `answer ${round}` }))).toBe('KEY_REUSED')
  }
})

test('D7 one key started from eight processes starts one run, and all of them have it', patience, async () => {
  await using at = await stage(8, true)
  for (let round = 0; round < times(5, 50); round++) {
    const said = await at.all(() => ({ act: 'start', key: `start ${round}`, input: round }))
    const ids = new Set(said.map(({ done }) => done))
    expect([...ids]).toEqual([expect.any(String)])
    const run = await at.engine.run(String(said[0]?.done))
    await until('it asks', async () => (await run.asks()).length > 0)
    expect(at.place.lines('before').filter((line) => line.includes(`/${run.id}/`))).toHaveLength(1)
    expect((await at.engine.runs()).runs).toHaveLength(round + 1)
    const reused = await at.all(() => ({ act: 'start', key: `start ${round}`, input: 'another' }))
    expect(codes(reused)).toEqual(Array.from({ length: 8 }, () => 'KEY_REUSED'))
  }
})
