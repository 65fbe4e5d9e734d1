import type { Schema } from './schema.js'
import { toJson } from '../kernel/json.js'

/** A value as a schema gives it, or what it has against it. */
export type Checked = { readonly value: unknown } | { readonly problem: string }

/** Checks a value that comes from outside: it must be JSON, the schema must take it, and what the schema makes of it must be JSON again. */
export async function checked(schema: Schema | undefined, value: unknown, what: string): Promise<Checked> {
  const json = asJson(value, what)
  if ('problem' in json || schema === undefined) return json
  const result = await schema['~standard'].validate(json.value)
  if (result.issues === undefined) return asJson(result.value, `what the schema makes of ${what}`)
  const issues = result.issues.map(({ path, message }) => {
    const at = (path ?? []).map((part) => String(typeof part === 'object' ? part.key : part)).join('.')
    return at === '' ? message : `${at}: ${message}`
  })
  return { problem: `${what} is not valid: ${issues.join('; ')}` }
}

function asJson(value: unknown, what: string): Checked {
  const json = toJson(value)
  return 'problem' in json ? { problem: `${what} is no JSON at ${json.path}: ${json.problem}` } : json
}
