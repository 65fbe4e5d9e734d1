import { jsonSchemaOf } from '../define/json-schema.js'
import type { Schema } from '../define/schema.js'
import { embedded } from './embedded-schema.js'

/** Where an input stands that is no object, or not said to be one. */
const field = 'input'

/** What providers refuse at the root of what a tool takes, even beside `type: 'object'`. */
const refused = ['anyOf', 'oneOf', 'allOf', 'enum', 'not', '$ref']

/**
 * What a model gives to a tool, as a schema that every provider takes: an object. An input that is something else (a text, a list, one of
 * several) stands in one, as its only field.
 */
export function argumentsSchema(input: Schema): object {
  const schema = saidOf(input) ?? { type: 'object' }
  if (isPlain(schema)) return schema
  const properties = { [field]: embedded(schema, `#/properties/${field}`) }
  return { type: 'object', properties, required: [field], additionalProperties: false }
}

/** What the tool is given of that. Who says the input alone, as scripts do, is understood as well. */
export function inputIn(input: Schema, given: unknown): unknown {
  if (!isRecord(given) || Object.keys(given).join() !== field) return given
  const schema = saidOf(input)
  return schema === undefined || isPlain(schema) ? given : given[field]
}

/** The arguments of a call as providers take them back: an object. */
export const asArguments = (given: unknown): Readonly<Record<string, unknown>> => (isRecord(given) ? given : { [field]: given })

/** A schema that has a name is said as a reference to what it is: that stands in its place, so that an object is offered as the one that it is. */
function saidOf(input: Schema): object | undefined {
  const schema = jsonSchemaOf(input)
  const { $ref, ...rest } = (schema ?? {}) as { readonly $ref?: unknown; readonly $defs?: Readonly<Record<string, unknown>> }
  const name = typeof $ref === 'string' && $ref.startsWith('#/$defs/') ? $ref.slice('#/$defs/'.length) : ''
  const named = Object.hasOwn(rest.$defs ?? {}, name) ? rest.$defs?.[name] : undefined
  return isRecord(named) ? { ...named, ...rest } : schema
}

const isPlain = (schema: object): boolean =>
  (schema as { readonly type?: unknown }).type === 'object' && !refused.some((word) => Object.hasOwn(schema, word))

const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
