import type { StandardSchemaV1 } from '@standard-schema/spec'
import type { Schema } from './schema.js'
import { toJson } from '../kernel/json.js'
import { thrownText } from '../kernel/thrown-text.js'

/** A value as a schema gives it, or what it has against it. */
export type Checked = { readonly value: unknown } | { readonly problem: string }

/**
 * Checks a value that comes from outside: it must be JSON, the schema must take it, and what the schema makes of it must be JSON again.
 * At once where there is no schema, because a wide fork has ten thousand of them.
 */
export function checked(schema: Schema | undefined, value: unknown, what: string): Checked | Promise<Checked> {
  const json = asJson(value, what)
  return 'problem' in json ? json : checkedJson(schema, json.value, what)
}

/** The same of a value that is known to be JSON, and that nobody can change. */
export function checkedJson(schema: Schema | undefined, value: unknown, what: string): Checked | Promise<Checked> {
  return schema === undefined ? { value } : bySchema(schema, value, what)
}

async function bySchema(schema: Schema, value: unknown, what: string): Promise<Checked> {
  try {
    const result = await schema['~standard'].validate(value)
    if (result.issues === undefined) return asJson(result.value, `what the schema makes of ${what}`)
    return { problem: notValid(what, result.issues) }
  } catch (thrown) {
    // What can't be checked is not let through, and whose schema it was is said.
    return { problem: `the schema of ${what} threw: ${thrownText(thrown)}` }
  }
}

/** What a schema has against a value, each with the place of it. */
export function notValid(what: string, issues: readonly StandardSchemaV1.Issue[]): string {
  const texts = issues.map(({ path, message }) => {
    // Not by the path's own map: that of arktype is of a class of lists, and puts a 0 into one that is empty.
    const at = Array.from(path ?? [], (part) => String(typeof part === 'object' ? part.key : part)).join('.')
    return at === '' ? message : `${at}: ${message}`
  })
  return `${what} is not valid: ${texts.join('; ')}`
}

/** A copy of a value that nobody can change, or why it is no JSON. */
export function asJson(value: unknown, what: string): Checked {
  const json = toJson(value)
  return 'problem' in json ? { problem: `${what} is no JSON at ${json.path}: ${json.problem}` } : json
}
