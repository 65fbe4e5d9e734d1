import type { Ask } from '../inspect/ask.js'

/** A form that is longer is of no help in one line: `tutti asks --json` has the schema. */
const lengthMax = 120

/** What an answer has to look like, as JSON with choices and optional fields; `json` if that is not known, or too long. */
export function answerForm(ask: Ask): string {
  const form = ask.kind === 'join' ? formOf({ type: 'boolean' }) : formOf(ask.schema)
  return form === null || form.length > lengthMax ? 'json' : form
}

/** The form of what a JSON Schema takes; null if it takes more than can be said so. */
function formOf(schema: unknown): string | null {
  if (!isRecord(schema)) return null
  if ('const' in schema) return JSON.stringify(schema['const'])
  if (Array.isArray(schema['enum'])) return anyOf(schema['enum'].map((value) => JSON.stringify(value)))
  const choices = schema['anyOf'] ?? schema['oneOf']
  if (Array.isArray(choices)) return anyOf(choices.map(formOf))
  const { type } = schema
  if (Array.isArray(type)) return anyOf(type.map((one) => formOf({ ...schema, type: one })))
  switch (type) {
    case 'boolean':
      return 'true | false'
    case 'string':
      return '"…"'
    case 'number':
    case 'integer':
      return type
    case 'null':
      return 'null'
    case 'array':
      return inBrackets(formOf(schema['items']))
    case 'object':
      return objectForm(schema)
    default:
      return null
  }
}

function objectForm({ properties, required }: Readonly<Record<string, unknown>>): string | null {
  if (!isRecord(properties)) return null
  const needed = Array.isArray(required) ? required : []
  const fields = Object.entries(properties).map(([name, of]) => {
    const form = formOf(of) ?? 'json'
    return `${JSON.stringify(name)}${needed.includes(name) ? '' : '?'}: ${form}`
  })
  return `{${fields.join(', ')}}`
}

const inBrackets = (form: string | null): string => `[${form ?? 'json'}, …]`

function anyOf(forms: readonly (string | null)[]): string | null {
  const known = forms.filter((form) => form !== null)
  return known.length === forms.length ? [...new Set(known)].join(' | ') : null
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
