import { CfWorkerJsonSchemaValidator } from '@modelcontextprotocol/client/validators/cf-worker'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { z } from 'zod'
import { seededUnit } from '../../src/kernel/retry.js'
import { type JsonSchema, sampleJson } from '../../src/models/sample-json.js'

const filled = (schema: unknown, seed: string, words = '[simulated] some words') => {
  let draws = 0
  return sampleJson(schema as JsonSchema, { chance: () => seededUnit(`${seed}/${draws++}`), words })
}
const seeds = Array.from({ length: 25 }, (_, index) => `seed ${index}`)

interface Tree {
  name: string
  children: Tree[]
  parent: Tree | null
}
const tree: z.ZodType<Tree> = z.lazy(() => z.object({ name: z.string(), children: z.array(tree), parent: z.union([tree, z.null()]) }))

test.each<[string, z.ZodType]>([
  ['an object', z.object({ a: z.string(), b: z.number(), c: z.boolean(), d: z.null(), e: z.string().optional() })],
  ['an enum', z.enum(['red', 'green'])],
  ['a constant', z.literal(7)],
  ['a list', z.array(z.int()).min(3).max(4)],
  ['a tuple', z.tuple([z.string(), z.number()])],
  ['a set', z.object({ all: z.array(z.number()).min(1) })],
  [
    'bounds',
    z.object({ a: z.int().min(7).max(9), b: z.number().gt(0).lt(0.01), c: z.number().multipleOf(0.5).min(3), d: z.int().negative() }),
  ],
  ['lengths', z.object({ a: z.string().min(100).max(120), b: z.string().max(3), c: z.string().length(7) })],
  [
    'formats',
    z.object({ a: z.iso.date(), b: z.email(), c: z.url(), d: z.uuid(), e: z.iso.datetime(), f: z.ipv4(), g: z.ipv6(), h: z.iso.time() }),
  ],
  ['patterns', z.object({ a: z.string().regex(/^[A-Z]{3}$/), b: z.string().regex(/^\d+$/), c: z.string().regex(/^\d+\.\d+\.\d+$/) })],
  [
    'patterns that nobody has thought of',
    z.object({
      a: z.string().regex(/^[A-Z]{2}\d{2}-(?:x|yy)?[^a-z\s]\u0041\.$/),
      b: z.string().startsWith('ORD-').min(30),
      c: z.string().endsWith('.md'),
      d: z.templateLiteral(['v', z.int(), z.enum(['a', 'b'])]),
    }),
  ],
  [
    'ids and addresses',
    z.object({ a: z.ulid(), b: z.nanoid(), c: z.uuidv7(), d: z.cidrv4(), e: z.cuid(), f: z.iso.datetime({ precision: 3 }) }),
  ],
  ['a union', z.union([z.object({ kind: z.literal('a'), n: z.number() }), z.object({ kind: z.literal('b'), s: z.string() })])],
  [
    'a discriminated union',
    z.discriminatedUnion('kind', [z.object({ kind: z.literal('a') }), z.object({ kind: z.literal('b'), s: z.string() })]),
  ],
  ['an intersection', z.intersection(z.object({ a: z.string() }), z.object({ b: z.number() }))],
  ['a nullable value', z.object({ a: z.string().nullable() })],
  ['a record', z.record(z.string(), z.number())],
  ['a schema that contains itself', tree],
  ['anything', z.object({ a: z.unknown(), b: z.any() })],
])('a value is made that the schema takes: %s', (_, schema) => {
  const json = z.toJSONSchema(schema)
  for (const seed of seeds) expect(schema.safeParse(filled(json, seed))).toMatchObject({ success: true })
})

test.each<[string, Record<string, unknown>]>([
  [
    'references',
    {
      $ref: '#/$defs/a~1b',
      $defs: { 'a/b': { type: 'object', required: ['x'], properties: { x: { $ref: '#/$defs/n' } } }, n: { type: 'integer', minimum: 5 } },
    },
  ],
  ['types in a list', { type: ['null', 'integer'], minimum: 3 }],
  [
    'allOf',
    {
      allOf: [
        { type: 'object', required: ['a'], properties: { a: { type: 'string' } } },
        { required: ['b'], properties: { b: { const: 1 } } },
      ],
    },
  ],
  [
    'oneOf beside properties',
    {
      type: 'object',
      properties: { k: { type: 'string' } },
      required: ['k'],
      oneOf: [{ properties: { k: { const: 'x' } } }, { properties: { k: { const: 'y' } } }],
    },
  ],
  ['different items', { type: 'array', uniqueItems: true, minItems: 4, items: { type: 'integer', minimum: 1, maximum: 9 } }],
  ['a least number of members', { type: 'object', minProperties: 2, additionalProperties: { type: 'boolean' } }],
  ['no type', { required: ['a'] }],
  ['a choice of which one is impossible', { anyOf: [false, { type: 'integer', minimum: 3, maximum: 1 }, { type: 'string' }] }],
])('a value is made that another validator takes: %s', (_, schema) => {
  const validate = new CfWorkerJsonSchemaValidator().getValidator(schema)
  for (const seed of seeds) expect(validate(filled(schema, seed))).toMatchObject({ valid: true })
})

test('what cannot be met gives no value instead of a wrong one or an endless walk', () => {
  const endless = { $ref: '#/$defs/a', $defs: { a: { type: 'object', required: ['a'], properties: { a: { $ref: '#/$defs/a' } } } } }
  const wide = {
    $ref: '#/$defs/a',
    $defs: { a: { anyOf: Array.from({ length: 5 }, () => ({ required: ['a'], properties: { a: { $ref: '#/$defs/a' } } })) } },
  }
  for (const schema of [
    false,
    endless,
    wide,
    { $ref: '#' },
    { $ref: 'https://example.com/schema' },
    { type: 'integer', minimum: 3, maximum: 2 },
    { type: 'odd' },
  ])
    expect(filled(schema, 'x')).toBeUndefined()
})

test.each([
  '(',
  '[',
  'a{',
  '(?=a)b',
  '\\',
  '\\p{L}',
  '(a)\\1',
  '[^\\s\\S]',
  'a{2000}',
  '((((a{60}){60}){60}){60})',
  `${'('.repeat(500)}${')'.repeat(500)}`,
])('a pattern that is broken, too clever or too long is answered with words, and nothing is thrown: %s', (pattern) => {
  expect(filled({ type: 'string', minLength: 3, pattern }, 'seed')).toEqual(expect.any(String))
})

test('a pattern that takes for ever is not tried on a long text', () => {
  expect(filled({ type: 'string', pattern: '^(a+)+$' }, 'x', `${'a'.repeat(5_000)}b`)).toMatch(/^a+$/)
})

test('property: equal seeds give equal values, whatever the schema holds, and nothing is thrown', () => {
  const keyword = fc.constantFrom(
    'type',
    'enum',
    'const',
    'required',
    'properties',
    'items',
    'anyOf',
    'oneOf',
    'allOf',
    '$ref',
    'minimum',
    'minLength',
    'format',
    'pattern',
    'uniqueItems',
    'minItems',
    'multipleOf',
  )
  const hostile = fc.letrec((tie) => ({
    schema: fc.dictionary(
      keyword,
      fc.oneof(
        { maxDepth: 3 },
        fc.jsonValue(),
        tie('schema'),
        fc.array(tie('schema'), { maxLength: 3 }),
        fc.constantFrom('string', 'object', 'array', 'integer', '#', '('),
      ),
      { maxKeys: 5 },
    ),
  })).schema
  fc.assert(
    fc.property(hostile, fc.string(), (schema, seed) => {
      expect(filled(schema, seed)).toEqual(filled(schema, seed))
    }),
    { numRuns: 300 },
  )
})
