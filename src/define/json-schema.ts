import type { Schema } from './schema.js'
import { toJson } from '../kernel/json.js'

interface WithJsonSchema {
  readonly jsonSchema?: { readonly input?: (options: { target: string }) => unknown }
}

/** A schema as JSON Schema, for whoever shows a form, if the schema can say it (the JSON Schema extension of Standard Schema). */
export function jsonSchemaOf(schema: Schema | undefined): object | undefined {
  const input = (schema?.['~standard'] as WithJsonSchema | undefined)?.jsonSchema?.input
  if (input === undefined) return undefined
  try {
    const json = toJson(input({ target: 'draft-2020-12' }))
    return 'problem' in json || typeof json.value !== 'object' || json.value === null ? undefined : json.value
  } catch {
    // Not everything that can be checked can be said as JSON Schema: then the form shows none.
    return undefined
  }
}
