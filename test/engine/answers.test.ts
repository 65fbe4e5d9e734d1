import { open } from 'tutti'
import { virtualClock } from 'tutti/testing'
import { expect, test } from 'vitest'
import { z } from 'zod'
import { jsonSchemaProblem } from '../../src/define/json-schema-check.js'
import { memoryStore } from '../../src/stores/memory.js'
import { until } from '../durable/processes.js'
import { Folder } from '../stores/folder.js'
import { askers, askingAtOnce } from './asking-at-once.js'
import { codeOf, opened, rest, type SoloTurn, solo } from './opened.js'

test('an answer is something: undefined is refused, unless the schema makes a value of it', async () => {
  await using tutti = await opened({})
  const asking = (schema?: z.ZodType) =>
    solo({
      act: (turn: SoloTurn) =>
        turn.message.kind === 'answer'
          ? turn.finish(turn.message.value)
          : turn.ask('how many?', { ...(schema && { schema: schema as never }) }),
    } as never)
  const plain = await tutti.start(asking())
  await rest()
  const [ask] = await plain.asks()
  expect(await codeOf(plain.answer(ask?.id ?? '', undefined))).toBe('ASK_INVALID_ANSWER')
  await plain.answer(ask?.id ?? '', null)
  expect(await plain.output()).toBe(null)
  const usual = await tutti.start(asking(z.number().default(3)))
  await rest()
  await usual.answer((await usual.asks())[0]?.id ?? '', undefined)
  expect(await usual.output()).toBe(3)
})

test('an answer is held to the schema of its ask in every process, and after a restart', async () => {
  const store = memoryStore()
  const definition = solo({
    // What the ask itself says goes before this.
    answer: z.string(),
    act: (turn: SoloTurn) =>
      turn.message.kind === 'answer'
        ? turn.finish(turn.message.value)
        : turn.ask('how many?', { schema: z.object({ count: z.number().int().min(1), why: z.enum(['fun', 'need']).optional() }) as never }),
  } as never)
  const first = await opened({ store, definitions: [definition] })
  await using elsewhere = await opened({ store })
  const run = await first.start(definition, { id: 'r' })
  await rest()
  const [ask] = await run.asks()
  const id = ask?.id ?? ''
  const wrong = [3, 'three', {}, { count: 'three' }, { count: 0 }, { count: 1.5 }, { count: 1, why: 'no' }, null]
  const refusedBy = async (engine: typeof first): Promise<void> => {
    const handle = await engine.run('r')
    for (const value of wrong) expect(await codeOf(handle.answer(id, value)), JSON.stringify(value)).toBe('ASK_INVALID_ANSWER')
  }
  await refusedBy(first)
  await refusedBy(elsewhere)
  await first.close()
  await using second = await opened({ store, definitions: [definition] })
  await refusedBy(second)
  await (await second.run('r')).answer(id, { count: 2, why: 'fun' })
  expect(await (await second.run('r')).output()).toEqual({ count: 2, why: 'fun' })
})

test.each(['memory:', 'a file'])(
  'asks of one moment are listed in the order of their fork, of one run and of all, in %s',
  async (where) => {
    using folder = new Folder()
    await using tutti = await open({ store: where === 'a file' ? folder.file() : where, clock: virtualClock() })
    const run = await tutti.start(askingAtOnce)
    await until('all ask', async () => (await run.asks()).length === askers.length)
    for (const asks of [await run.asks(), await tutti.asks()]) {
      expect(new Set(asks.map(({ openedAt }) => openedAt)).size).toBe(1)
      expect(asks.map(({ agent }) => agent)).toEqual(askers)
    }
  },
)

test('the schema of an agent decides itself wherever the definition is, with all that it can do', async () => {
  const store = memoryStore()
  const definition = solo({
    answer: z.string().refine((text) => text.length % 2 === 0),
    act: (turn: SoloTurn) => (turn.message.kind === 'answer' ? turn.finish(turn.message.value) : turn.ask('even?')),
  } as never)
  const first = await opened({ store, definitions: [definition] })
  await first.start(definition, { id: 'r' })
  await rest()
  await first.close()
  await using second = await opened({ store, definitions: [definition] })
  const run = await second.run('r')
  const [ask] = await run.asks()
  expect(await codeOf(run.answer(ask?.id ?? '', 'odd'))).toBe('ASK_INVALID_ANSWER')
  await run.answer(ask?.id ?? '', 'even')
  expect(await run.output()).toBe('even')
})

test('what a JSON Schema says of a value is held, and what is not understood is not', () => {
  const cases: [schema: unknown, good: unknown[], bad: unknown[]][] = [
    [true, [1, null], []],
    [false, [], [1]],
    [{ type: 'integer' }, [1, -3], [1.5, '1', null]],
    [{ type: ['string', 'null'] }, ['a', null], [1, {}]],
    [{ enum: ['a', { b: 1, c: 2 }] }, ['a', { c: 2, b: 1 }], ['b', { b: 1 }]],
    [{ const: null }, [null], [0, '']],
    [{ type: 'string', minLength: 2, maxLength: 3 }, ['ab', '😀😀😀'], ['a', 'abcd']],
    [{ minimum: 1, exclusiveMaximum: 3 }, [1, 2.9, 'x'], [0, 3]],
    [{ exclusiveMinimum: 1, maximum: 3 }, [3], [1, 4]],
    [{ type: 'array', items: { type: 'number' }, minItems: 1, maxItems: 2 }, [[1]], [[], ['a'], [1, 2, 3]]],
    [{ prefixItems: [{ type: 'string' }], items: false }, [['a']], [[1], ['a', 'b']]],
    [{ type: 'object', properties: { a: { type: 'boolean' } }, required: ['a'] }, [{ a: true, b: 1 }], [{}, { a: 1 }, []]],
    [{ properties: { a: {} }, additionalProperties: false }, [{ a: 1 }, {}], [{ b: 1 }, JSON.parse('{"__proto__":1}')]],
    [{ additionalProperties: { type: 'number' } }, [{ x: 1 }], [{ x: 'a' }]],
    [{ anyOf: [{ type: 'string' }, { type: 'number', minimum: 5 }] }, ['a', 5], [4, null]],
    [{ allOf: [{ minimum: 1 }, { maximum: 2 }] }, [1, 2], [0, 3]],
    [{ $ref: '#/x', pattern: '^(a+)+$', odd: 1, type: 7 }, ['aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab', 1], []],
  ]
  for (const [schema, good, bad] of cases) {
    for (const value of good) expect(jsonSchemaProblem(schema, value), JSON.stringify([schema, value])).toBeNull()
    for (const value of bad) expect(jsonSchemaProblem(schema, value), JSON.stringify([schema, value])).toBeTypeOf('string')
  }
})
