import { expect, test } from 'vitest'
import { z } from 'zod'
import { type Shown, pieces } from '../../src/cli/shown.js'
import type { Ask } from '../../src/inspect/ask.js'
import { askLine, commandOf } from '../../src/cli/told.js'

const textOf = (line: Shown): string =>
  pieces(line)
    .map(({ text }) => text)
    .join('')

test('a command to type names its run as a shell takes it', () => {
  expect(textOf(commandOf('show', { id: 'r40', store: undefined }))).toMatch(/tutti show r40$/)
  expect(textOf(commandOf('show', { id: "Ann's run; ls", store: 'a b.db' }))).toMatch(/tutti show 'Ann'\\''s run; ls' --store 'a b\.db'$/)
  expect(textOf(commandOf('agents', { store: 'a b.db' }))).toMatch(/tutti agents --store 'a b\.db'$/)
  expect(textOf(commandOf('answer', { id: '-x', store: 'a b.db' }, 'r~1', "'<json>'"))).toMatch(
    /tutti answer --store 'a b\.db' -- -x r~1 '<json>'$/,
  )
})

test('what a person is asked, or is to approve, is told whole, however long it is', () => {
  const long = `${'word '.repeat(100)}and drop all tables`
  const place = { id: 'r~1', runId: 'r40', agent: 'Clerk', branch: 'r', openedAt: 0, tags: {} }
  const question: Ask = { ...place, kind: 'question', question: { long } }
  const approval: Ask = { ...place, kind: 'approval', tool: 'sql', input: { long } }
  expect(textOf(askLine(question, undefined))).toContain(`? Clerk asks ${JSON.stringify({ long })}\n`)
  expect(textOf(askLine(approval, undefined))).toContain(`? Clerk asks to use sql with ${JSON.stringify({ long })}\n`)
})

test('how to answer is told with what the answer has to look like, as far as its schema says so in a line', () => {
  const place = { id: 'r~1', runId: 'r40', agent: 'Clerk', branch: 'r', openedAt: 0, tags: {} }
  const toldOf = (ask: Ask): string | undefined => /answer r40 r~1 '<(.*)>'$/.exec(textOf(askLine(ask, undefined)))?.[1]
  const formOf = (schema?: object): string | undefined =>
    toldOf({ ...place, kind: 'question', question: 'Well?', ...(schema !== undefined && { schema }) })
  expect(formOf()).toBe('json')
  expect(formOf(z.toJSONSchema(z.boolean()))).toBe('true | false')
  const form = z.object({ pay: z.boolean(), by: z.enum(['card', 'cash']).optional(), seats: z.array(z.int()), note: z.string().nullable() })
  expect(formOf(z.toJSONSchema(form))).toBe('{"pay": true | false, "by"?: "card" | "cash", "seats": [integer, …], "note": "…" | null}')
  expect(formOf({ type: ['string', 'number'] })).toBe('"…" | number')
  expect(formOf({ enum: ["it's", 2] })).toBe(`"it'\\''s" | 2`)
  // What it does not say whole is not guessed.
  for (const open of [{ $ref: '#/x' }, { anyOf: [{ type: 'string' }, { not: {} }] }, { type: 'object' }, { enum: ['x'.repeat(200)] }])
    expect(formOf(open)).toBe('json')
  expect(formOf({ type: 'object', properties: { any: {} }, required: ['any'] })).toBe('{"any": json}')
  const join = { all: false, slots: [], values: [], missing: [] }
  expect(toldOf({ ...place, kind: 'join', join } as never)).toBe('true | false')
})
