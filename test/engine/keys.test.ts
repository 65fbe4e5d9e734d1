import { lasting } from '../graph/lasting.js'
import { type Definition, topology } from 'tutti'
import { expect, test } from 'vitest'
import { z } from 'zod'
import { memoryStore } from '../../src/stores/memory.js'
import { codeOf, deferred, journal, opened, rest, solo, type SoloTurn, typesOf, untilAborted } from './opened.js'

/** Counts its executions, and waits. */
function counting() {
  const held = deferred()
  const seen = { executions: 0 }
  const definition = solo(async (turn) => {
    seen.executions++
    await held.promise
    return turn.finish(turn.request)
  })
  return { held, seen, definition }
}

test('the same key starts one run, however often and however parallel, and all handles are of that run', async () => {
  for (const id of [undefined, 'R']) {
    await using tutti = await opened()
    const { held, seen, definition } = counting()
    const starts = await Promise.all(Array.from({ length: 8 }, () => tutti.start(definition, { key: 'k', id, input: { a: 1, b: [2] } })))
    const later = await tutti.start(definition, { key: 'k', id, input: { a: 1, b: [2] } })
    const ids = new Set([...starts, later].map((run) => run.id))
    expect(ids.size).toBe(1)
    await rest()
    expect(seen.executions).toBe(1)
    held.resolve()
    for (const run of starts) expect(await run.output()).toEqual({ a: 1, b: [2] })
    const after = await tutti.start(definition, { key: 'k', id, input: { a: 1, b: [2] } })
    expect(await after.output()).toEqual({ a: 1, b: [2] })
    expect(seen.executions).toBe(1)
    expect((await tutti.runs()).runs).toHaveLength(1)
  }
})

test('a run that was started several times at once under one key can be steered by every handle', async () => {
  await using tutti = await opened()
  const definition = solo(async (turn) => {
    await untilAborted(turn.signal)
    return turn.finish()
  })
  const runs = await Promise.all(Array.from({ length: 3 }, () => tutti.start(definition, { key: 'k', id: 'R' })))
  await rest()
  await runs[1]?.pause()
  expect(await Promise.all(runs.map((run) => run.status()))).toEqual(['paused', 'paused', 'paused'])
  await runs[2]?.resume()
  await (await tutti.run('R')).cancel()
  for (const run of runs) expect(await run.result()).toMatchObject({ status: 'cancelled' })
})

test('the same key through two engines on one store starts one run', async () => {
  const store = memoryStore()
  await using first = await opened({ store })
  await using second = await opened({ store })
  const { held, seen, definition } = counting()
  const runs = await Promise.all([first, second, first, second].map((tutti) => tutti.start(definition, { key: 'k', input: 1 })))
  expect(new Set(runs.map((run) => run.id)).size).toBe(1)
  await rest()
  held.resolve()
  for (const run of runs) expect(await run.output()).toBe(1)
  expect(seen.executions).toBe(1)
})

test('no input is another request than null, and the same one again is the same; a definition is meant by its name', async () => {
  await using tutti = await opened()
  const one = solo((turn) => turn.finish(1))
  const none = await tutti.start(one, { key: 'none' })
  expect(await codeOf(tutti.start(one, { key: 'none', input: null }))).toBe('KEY_REUSED')
  expect((await tutti.start(one, { key: 'none' })).id).toBe(none.id)
  const nothing = await tutti.start(one, { key: 'null', input: null })
  expect(await codeOf(tutti.start(one, { key: 'null' }))).toBe('KEY_REUSED')
  const next = solo((turn) => turn.finish(2), { name: one.name, version: '2' })
  expect((await tutti.start(next, { key: 'null', input: null })).id).toBe(nothing.id)
})

test('a key that was used for another input, another definition or another command is refused, and changes nothing', async () => {
  await using tutti = await opened()
  const { held, seen, definition } = counting()
  const run = await tutti.start(definition, { key: 'k', input: 1 })
  expect(await codeOf(tutti.start(definition, { key: 'k', input: 2 }))).toBe('KEY_REUSED')
  expect(await codeOf(tutti.start(definition, { key: 'k' }))).toBe('KEY_REUSED')
  expect(
    await codeOf(
      tutti.start(
        solo((turn) => turn.finish(), { name: 'other' }),
        { key: 'k', input: 1 },
      ),
    ),
  ).toBe('KEY_REUSED')
  expect(await codeOf(run.pause({ key: 'k' }))).toBe('KEY_REUSED')
  expect(await run.status()).toBe('running')
  await rest()
  expect(seen.executions).toBe(1)
  expect((await tutti.runs()).runs).toHaveLength(1)
  held.resolve()
})

test('a request is the same whatever the order of the properties in its input or its answer', async () => {
  await using tutti = await opened()
  const definition = solo((turn) => (turn.message.kind === 'answer' ? turn.finish(turn.message.value) : turn.ask('?')))
  const run = await tutti.start(definition, { key: 'k', input: { a: 1, b: { c: 2, d: [3] } } })
  expect((await tutti.start(definition, { key: 'k', input: { b: { d: [3], c: 2 }, a: 1, e: undefined } })).id).toBe(run.id)
  expect(await codeOf(tutti.start(definition, { key: 'k', input: { a: 1, b: { c: 2, d: [4] } } }))).toBe('KEY_REUSED')
  await rest()
  const [ask] = await run.asks()
  await run.answer(ask?.id ?? '', { x: 1, y: 2 }, { key: 'a' })
  await run.answer(ask?.id ?? '', { y: 2, x: 1 }, { key: 'a' })
  expect(await codeOf(run.answer(ask?.id ?? '', { y: 2, x: 2 }, { key: 'a' }))).toBe('KEY_REUSED')
  expect(await run.output()).toEqual({ x: 1, y: 2 })
})

test('under one key a start with no id means the run that is there, one with its id too, and one with another id is refused', async () => {
  await using tutti = await opened()
  const { held, seen, definition } = counting()
  const named = await tutti.start(definition, { key: 'named', id: 'R' })
  expect((await tutti.start(definition, { key: 'named' })).id).toBe('R')
  expect((await tutti.start(definition, { key: 'named', id: 'R' })).id).toBe('R')
  expect(await codeOf(tutti.start(definition, { key: 'named', id: 'S' }))).toBe('KEY_REUSED')
  const { id } = await tutti.start(definition, { key: 'unnamed' })
  expect((await tutti.start(definition, { key: 'unnamed', id })).id).toBe(id)
  expect(await codeOf(tutti.start(definition, { key: 'unnamed', id: 'S' }))).toBe('KEY_REUSED')
  const racing = await Promise.all(['T', 'U', undefined, 'T'].map((one) => codeOf(tutti.start(definition, { key: 'racing', id: one }))))
  expect(racing.filter((code) => code === 'KEY_REUSED').length).toBeGreaterThanOrEqual(1)
  expect((await tutti.runs()).runs).toHaveLength(3)
  held.resolve()
  await named.output()
  await rest()
  expect(seen.executions).toBe(3)
})

test('an id that exists is refused under another key, and without one', async () => {
  await using tutti = await opened()
  const { held, definition } = counting()
  await tutti.start(definition, { id: 'R', key: 'k1' })
  expect(await codeOf(tutti.start(definition, { id: 'R', key: 'k2' }))).toBe('RUN_EXISTS')
  expect(await codeOf(tutti.start(definition, { id: 'R' }))).toBe('RUN_EXISTS')
  expect((await tutti.start(definition, { id: 'R', key: 'k1' })).id).toBe('R')
  held.resolve()
})

test('a start that was refused is not remembered under its key', async () => {
  await using tutti = await opened()
  const strict = solo((turn) => turn.finish(turn.request), { input: z.number() })
  expect(await codeOf(tutti.start(strict, { key: 'k', input: 'x' } as never))).toBe('INVALID_INPUT')
  await tutti.execute(strict, { id: 'R', input: 1 } as never)
  expect(await codeOf(tutti.start(strict, { key: 'k', id: 'R', input: 1 } as never))).toBe('RUN_EXISTS')
  expect(await tutti.execute(strict, { key: 'k', input: 2 } as never)).toBe(2)
})

test('a repeated start has its first outcome again, also when its schema or its state would not take the input any more', async () => {
  await using tutti = await opened()
  const takes = (input: z.ZodType | undefined, state = (): { at: number } => ({ at: 1 })) =>
    topology({
      name: 'takes',
      ...(input !== undefined && { input }),
      flows: ['Start -> A -> End'],
      state,
      merge: { at: 'mine' },
      agents: { A: (turn) => turn.finish(turn.request) },
    }) as Definition<unknown, unknown>
  const throws = (): never => {
    throw new Error('not any more')
  }
  const run = await tutti.start(takes(z.string()), { key: 'k', input: 'x', tags: { from: 'first' } })
  expect(await run.output()).toBe('x')
  const later = [takes(z.number()), takes(z.string().refine(async () => false)), takes(undefined, throws)]
  for (const definition of later) {
    const again = await tutti.start(definition, { key: 'k', input: 'x' })
    expect([again.id, again.tags]).toEqual([run.id, { from: 'first' }])
    expect(await codeOf(tutti.start(definition, { key: 'k', id: 'other', input: 'x' }))).toBe('KEY_REUSED')
    expect(await codeOf(tutti.start(definition, { key: 'k', input: 'y' }))).toBe('KEY_REUSED')
    expect(await codeOf(tutti.start(definition, { key: 'new', input: 'x' }))).toBe('INVALID_INPUT')
    expect(await codeOf(tutti.start(definition, { key: 'k', input: new Map() }))).toBe('INVALID_INPUT')
  }
  expect((await tutti.runs()).runs).toHaveLength(1)
})

test('a repeated start gives the handle of the first, with the tags of its run', async () => {
  await using tutti = await opened()
  const { held, definition } = counting()
  await tutti.start(definition, { key: 'k', tags: { from: 'first' } })
  const again = await tutti.start(definition, { key: 'k', tags: { from: 'second' } })
  expect(again.tags).toEqual({ from: 'first' })
  held.resolve()
})

test('a repeated pause, resume or cancel under its key has its first outcome again and does nothing more', async () => {
  await using tutti = await opened()
  const { held, definition } = counting()
  const run = await tutti.start(definition)
  await rest()
  await Promise.all([run.pause({ key: 'p' }), run.pause({ key: 'p' })])
  await Promise.all(Array.from({ length: 5 }, () => run.resume({ key: 'r' })))
  expect(await run.status()).toBe('running')
  await run.pause({ key: 'p' })
  expect(await run.status()).toBe('running')
  await run.resume({ key: 'r' })
  expect(await codeOf(run.resume({ key: 'another' }))).toBe('RUN_NOT_PAUSED')
  await run.cancel({ key: 'c', reason: 'why' })
  await run.cancel({ key: 'c', reason: 'why', compensate: true })
  expect(await codeOf(run.cancel({ key: 'c', reason: 'else' }))).toBe('KEY_REUSED')
  expect(await codeOf(run.cancel({ key: 'c', reason: 'why', compensate: false }))).toBe('KEY_REUSED')
  held.resolve()
  await run.result()
  await run.cancel({ key: 'c', reason: 'why' })
  await run.resume({ key: 'r' })
  const types = typesOf(await journal(run))
  expect(types.filter((type) => type === 'run.paused' || type === 'run.resumed')).toEqual(['run.paused', 'run.resumed'])
})

test('a refusal is not remembered: the same key may win later', async () => {
  await using tutti = await opened()
  const { held, definition } = counting()
  const run = await tutti.start(definition)
  expect(await codeOf(run.resume({ key: 'r' }))).toBe('RUN_NOT_PAUSED')
  await run.pause()
  await run.resume({ key: 'r' })
  expect(await run.status()).toBe('running')
  held.resolve()
})

test('a repeated answer under its key has the first outcome again, also when its schema changes what it is given', async () => {
  await using tutti = await opened()
  const schema = z.object({ n: z.coerce.number(), note: z.string().default('none') })
  const run = await tutti.start(
    solo((turn: SoloTurn) => (turn.message.kind === 'answer' ? turn.finish(turn.message.value) : turn.ask('?', { schema }))),
  )
  await rest()
  const [ask] = await run.asks()
  await Promise.all([run.answer(ask?.id ?? '', { n: '1' }, { key: 'a' }), run.answer(ask?.id ?? '', { n: '1' }, { key: 'a' })])
  await run.answer(ask?.id ?? '', { n: '1' }, { key: 'a' })
  expect(await codeOf(run.answer(ask?.id ?? '', { n: '2' }, { key: 'a' }))).toBe('KEY_REUSED')
  expect(await codeOf(run.answer(ask?.id ?? '', { n: '1' }, { key: 'b' }))).toBe('ASK_ALREADY_ANSWERED')
  expect(await run.output()).toEqual({ n: 1, note: 'none' })
})

test('keys of commands that change nothing are remembered too, each, also on a run that is over', async () => {
  await using tutti = await opened()
  const { held, definition } = counting()
  const run = await tutti.start(definition)
  await run.pause()
  await Promise.all([run.pause({ key: 'a' }), run.pause({ key: 'b' }), run.pause({ key: 'c' })])
  await run.resume()
  for (const key of ['a', 'b', 'c']) await run.pause({ key })
  expect(await run.status()).toBe('running')
  held.resolve()
  await run.cancel()
  await run.result()
  const { endedAt } = await run.summary()
  await rest(5)
  await Promise.all([run.cancel({ key: 'd' }), run.cancel({ key: 'e' })])
  expect(await codeOf(tutti.start(definition, { key: 'e' }))).toBe('KEY_REUSED')
  expect((await run.summary()).endedAt).toEqual(endedAt)
})

test('a key that another process took meanwhile is no refusal of what was to be written together with it', async () => {
  const store = lasting()
  let isLate = true
  const late = new Proxy(store, {
    get: (inner, key) => {
      if (key !== 'record') return inner[key as keyof typeof inner]
      // The first look comes just before the other process writes.
      return async (kind: string, name: string) => {
        const found = await inner.record(kind, name)
        if (name !== 'a' || !isLate) return found
        isLate = false
        return null
      }
    },
  })
  await using owner = await opened({ store })
  const run = await owner.start(solo((turn) => turn.ask('?')))
  await rest()
  await run.pause({ key: 'a' })
  await using other = await opened({ store: late })
  const same = await other.run(run.id)
  await Promise.all([same.pause({ key: 'a' }), same.pause({ key: 'b' })])
  expect(isLate).toBe(false)
  await run.resume()
  await same.pause({ key: 'b' })
  expect(await run.status()).toBe('running')
})

test('a key is a text of a sensible length', async () => {
  await using tutti = await opened()
  const { held, definition } = counting()
  for (const key of ['', 'x'.repeat(257), 'a\u0000b', 'a\nb', 7 as never])
    expect(await codeOf(tutti.start(definition, { key }))).toBe('INVALID_INPUT')
  expect((await tutti.runs()).runs).toEqual([])
  held.resolve()
})
