/** Anything that JSON can be. */
type Json = unknown
type Schema = Readonly<Record<string, unknown>>

const isRecord = (value: unknown): value is Schema => typeof value === 'object' && value !== null && !Array.isArray(value)

/**
 * What is wrong with a value by a JSON Schema; null if nothing that this can tell. It knows what forms are made of (types, fields, items, bounds,
 * choices) and holds back on everything else: what it does not know it does not refuse. It evaluates no pattern and follows no reference.
 */
export function jsonSchemaProblem(schema: unknown, value: Json, at = 'it'): string | null {
  if (schema === false) return `${at} must not be there`
  if (!isRecord(schema)) return null
  return (
    typeProblem(schema, value, at) ??
    choiceProblem(schema, value, at) ??
    boundsProblem(schema, value, at) ??
    fieldsProblem(schema, value, at) ??
    itemsProblem(schema, value, at)
  )
}

function typeOf(value: Json): string {
  if (value === null) return 'null'
  if (Array.isArray(value)) return 'array'
  return typeof value
}

function typeProblem({ type }: Schema, value: Json, at: string): string | null {
  const types = Array.isArray(type) ? type : [type]
  if (type === undefined || !types.every((one) => typeof one === 'string')) return null
  const is = typeOf(value)
  const fits = types.some((one) => one === is || (one === 'integer' && Number.isInteger(value)))
  return fits ? null : `${at} must be ${types.join(' or ')}, not ${is}`
}

function choiceProblem(schema: Schema, value: Json, at: string): string | null {
  const same = (other: unknown): boolean => canonical(other) === canonical(value)
  if (Object.hasOwn(schema, 'const') && !same(schema['const'])) return `${at} must be ${JSON.stringify(schema['const'])}`
  const { enum: choices, anyOf, oneOf, allOf } = schema
  if (Array.isArray(choices) && !choices.some(same)) return `${at} must be one of ${choices.map((one) => JSON.stringify(one)).join(', ')}`
  for (const some of [anyOf, oneOf]) {
    const problems = Array.isArray(some) ? some.map((one) => jsonSchemaProblem(one, value, at)) : []
    if (problems.length > 0 && problems.every((problem) => problem !== null)) return problems.join('; or ')
  }
  for (const one of Array.isArray(allOf) ? allOf : []) {
    const problem = jsonSchemaProblem(one, value, at)
    if (problem !== null) return problem
  }
  return null
}

/** The same text for the same JSON, whatever the order of its fields. */
function canonical(value: Json): string {
  return JSON.stringify(value, (_, part: unknown) => (isRecord(part) ? Object.fromEntries(Object.entries(part).sort(byKey)) : part))
}

const byKey = ([a]: readonly [string, unknown], [b]: readonly [string, unknown]): number => (a < b ? -1 : 1)

/** A character beyond the first 65,536 counts as one. */
const pairs = /[\ud800-\udbff][\udc00-\udfff]/g

function boundsProblem(schema: Schema, value: Json, at: string): string | null {
  const bound = (name: string): number | null => (typeof schema[name] === 'number' ? schema[name] : null)
  const outside = (size: number, least: string, most: string, what: string): string | null => {
    const [low, high] = [bound(least), bound(most)]
    if (low !== null && size < low) return `${at} must have at least ${low} ${what}`
    return high !== null && size > high ? `${at} must have at most ${high} ${what}` : null
  }
  if (typeof value === 'string') return outside(value.replace(pairs, '_').length, 'minLength', 'maxLength', 'characters')
  if (Array.isArray(value)) return outside(value.length, 'minItems', 'maxItems', 'items')
  if (typeof value !== 'number') return null
  const [low, high, above, below] = [bound('minimum'), bound('maximum'), bound('exclusiveMinimum'), bound('exclusiveMaximum')]
  if (low !== null && value < low) return `${at} must be at least ${low}`
  if (high !== null && value > high) return `${at} must be at most ${high}`
  if (above !== null && value <= above) return `${at} must be more than ${above}`
  return below !== null && value >= below ? `${at} must be less than ${below}` : null
}

function fieldsProblem({ properties, required, additionalProperties }: Schema, value: Json, at: string): string | null {
  if (!isRecord(value)) return null
  const missing = Array.isArray(required) ? required.find((key) => typeof key === 'string' && !Object.hasOwn(value, key)) : undefined
  if (missing !== undefined) return `${at} must have '${String(missing)}'`
  const known = isRecord(properties) ? properties : {}
  for (const [key, part] of Object.entries(value)) {
    const schema = Object.hasOwn(known, key) ? known[key] : additionalProperties
    if (schema === false) return `${at} must not have '${key}'`
    const problem = jsonSchemaProblem(schema, part, `${at}.${key}`)
    if (problem !== null) return problem
  }
  return null
}

function itemsProblem({ items, prefixItems }: Schema, value: Json, at: string): string | null {
  if (!Array.isArray(value)) return null
  const first: readonly unknown[] = Array.isArray(prefixItems) ? prefixItems : []
  for (const [index, item] of value.entries()) {
    const problem = jsonSchemaProblem(index < first.length ? first[index] : items, item, `${at}[${index}]`)
    if (problem !== null) return problem
  }
  return null
}
