import { expect, test } from 'vitest'
import { z } from 'zod'
import { digestOf } from '../../src/define/digest.js'
import { provisionOf, resource } from '../../src/define/resource.js'
import { tool, toolDefinitionOf } from '../../src/define/tool.js'
import { TuttiError } from '../../src/define/tutti-error.js'

test('a resource is provided once for the process or once for each run, and its value is out of sight', () => {
  const db = resource<{ url: string }>('db')
  const one = db.of({ url: 'x' })
  const make = (): { url: string } => ({ url: 'y' })
  expect(JSON.stringify(one)).toBe('{"name":"db"}')
  expect(provisionOf(one)).toEqual({ kind: 'value', value: { url: 'x' } })
  expect(provisionOf(db.perRun(make))).toEqual({ kind: 'perRun', make })
  expect(Object.isFrozen(db) && Object.isFrozen(one)).toBe(true)
})

test('a resource without a name, and a value that is none, are refused', () => {
  expect(() => resource('')).toThrow(TypeError)
  expect(() => resource('db').perRun(5 as never)).toThrow(TypeError)
  expect(() => provisionOf({ name: 'db' })).toThrow(/resource\('db'\)/)
})

test('a tool shows what a model needs and keeps the rest', () => {
  const run = (): number => 1
  const made = tool({ description: 'Counts.', input: z.string(), run, idempotent: true })
  expect(Object.keys(made)).toEqual(['description', 'input'])
  expect(toolDefinitionOf(made)).toMatchObject({ run, idempotent: true })
  expect(Object.isFrozen(made)).toBe(true)
  expect(toolDefinitionOf({ description: 'x' })).toBeUndefined()
  expect(() => tool({ description: 'x', input: z.string() } as never)).toThrow(TypeError)
})

test.each([
  [undefined, /tool\(\) takes an object: .*, not undefined/],
  [{ run: undefined }, /a tool needs `run`/],
  [{ input: undefined }, /a tool needs `input`/],
  [{ description: undefined }, /a tool needs `description`/],
  [{ description: 5 }, /description is a string, not 5/],
  [{ input: {} }, /input is a Standard Schema .*, not an object/],
  [{ run: 5 }, /run is a function, not 5/],
  [{ execute: () => 1 }, /there is no option 'execute' here; there are description, input, run/],
  [{ needApproval: true }, /there is no option 'needApproval' here \(did you mean needsApproval\?\)/],
  [{ idempotent: 'no' }, /idempotent is true or false, not 'no'/],
  [{ needsApproval: 'yes' }, /needsApproval is true or false or a function, not 'yes'/],
  [{ compensate: 5 }, /compensate is a function, not 5/],
  [{ timeoutMs: 0 }, /timeoutMs is a number of milliseconds above 0, not 0/],
])('no tool is made of %j', (wrong, message) => {
  const given = wrong === undefined ? undefined : { description: 'Counts.', input: z.string(), run: () => 1, ...wrong }
  expect(() => tool(given as never)).toThrow(TypeError)
  expect(() => tool(given as never)).toThrow(message)
})

test('an error is matched by its code', () => {
  const error = new TuttiError('RUN_NOT_FOUND', 'no such run', { hint: 'look', cause: 5 })
  expect(TuttiError.is(error)).toBe(true)
  expect(TuttiError.is(error, 'RUN_NOT_FOUND')).toBe(true)
  expect(TuttiError.is(error, 'CLOSED')).toBe(false)
  expect(TuttiError.is(new Error('x'))).toBe(false)
  expect(TuttiError.is(null)).toBe(false)
  expect(error).toMatchObject({ name: 'TuttiError', code: 'RUN_NOT_FOUND', message: 'no such run', hint: 'look', cause: 5 })
  expect(Object.hasOwn(error, 'failure')).toBe(false)
})

test('a digest is of the data, not of the order of its keys', () => {
  expect(digestOf({ a: 1, b: [1, { c: 'é' }] })).toBe(digestOf({ b: [1, { c: 'é' }], a: 1 }))
  expect(digestOf([1, 2])).not.toBe(digestOf([2, 1]))
  expect(digestOf('')).toMatch(/^[0-9a-f]{16}$/)
})
