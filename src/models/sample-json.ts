import { type Filling, sampleText } from './sample-text.js'

/** A JSON Schema, as far as one can be trusted to be one: it comes from users' schemas and from MCP servers. */
export type JsonSchema = Readonly<Record<string, unknown>> | boolean

/** Where in a schema the walk is: the whole of it, for references, and how deep. */
interface Walk extends Filling {
  readonly root: JsonSchema
  readonly depth: number
  readonly spent: { steps: number }
}

/** Deeper than this, only what is demanded ends a schema that contains itself. */
const depthMax = 16
/** Choices within choices can be more than anybody waits for. */
const stepsMax = 10_000

/** No value is known for this part; whoever has a choice takes another one. */
class Unknown extends Error {}

/**
 * A value that the schema takes: only what it demands, as short as it may be, chosen by `chance`. undefined if it is too contradictory or
 * too clever for that. References are looked up in `root`, the document that it is a part of.
 */
export function sampleJson(schema: JsonSchema, filling: Filling, root: JsonSchema = schema): unknown {
  try {
    return valueOf(schema, { ...filling, root, depth: 0, spent: { steps: 0 } })
  } catch (error) {
    if (error instanceof Unknown) return undefined
    throw error
  }
}

function valueOf(given: unknown, walk: Walk): unknown {
  if (walk.depth > depthMax || walk.spent.steps++ > stepsMax) throw new Unknown()
  if (given === undefined || given === true) return walk.words
  if (!isRecord(given)) throw new Unknown()
  const schema = whole(given, walk)
  if ('const' in schema) return schema['const']
  if (isList(schema['enum'])) return pick(schema['enum'], walk)
  const choices = [schema['oneOf'], schema['anyOf']].find((list) => isList(list) && list.length > 0) as readonly unknown[] | undefined
  if (choices !== undefined) return firstOf(schema, choices, walk)
  return ofType(typeOf(schema), schema, { ...walk, depth: walk.depth + 1 })
}

/** The choices are tried in turn, from one that chance picks: some lead nowhere, or deeper and deeper. */
function firstOf(schema: Readonly<Record<string, unknown>>, choices: readonly unknown[], walk: Walk): unknown {
  const { oneOf: _, anyOf: __, ...rest } = schema
  const from = walk.depth > depthMax / 2 ? 0 : Math.floor(walk.chance() * choices.length)
  for (const index of choices.keys()) {
    const choice = choices[(from + index) % choices.length]
    try {
      return valueOf(isRecord(choice) ? merged(rest, choice) : choice, { ...walk, depth: walk.depth + 1 })
    } catch (error) {
      if (!(error instanceof Unknown)) throw error
    }
  }
  throw new Unknown()
}

function ofType(type: string, schema: Readonly<Record<string, unknown>>, walk: Walk): unknown {
  switch (type) {
    case 'object':
      return objectOf(schema, walk)
    case 'array':
      return listOf(schema, walk)
    case 'string':
      return sampleText(schema, walk)
    case 'integer':
      return numberOf(schema, walk, 1)
    case 'number':
      return numberOf(schema, walk, 0)
    case 'boolean':
      return walk.chance() < 0.5
    case 'null':
      return null
    default:
      throw new Unknown()
  }
}

/** The schema with its references followed and its `allOf` put together. */
function whole(schema: Readonly<Record<string, unknown>>, walk: Walk, hops = 0): Readonly<Record<string, unknown>> {
  if (hops > depthMax) throw new Unknown()
  const { $ref, allOf, ...rest } = schema
  if (typeof $ref === 'string') {
    const target = referred($ref, walk.root)
    if (!isRecord(target)) throw new Unknown()
    return whole(merged(target, { ...rest, ...(allOf === undefined ? {} : { allOf }) }), walk, hops + 1)
  }
  if (!isList(allOf)) return schema
  const parts = allOf.filter(isRecord).map((part) => whole(part, walk, hops + 1))
  return parts.reduce((all, part) => merged(all, part), rest)
}

/** Both at once: what both say about their members is put together, else the second wins. */
function merged(a: Readonly<Record<string, unknown>>, b: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  const required = [...new Set([...listIn(a, 'required'), ...listIn(b, 'required')])]
  const properties = { ...recordIn(a, 'properties'), ...recordIn(b, 'properties') }
  return {
    ...a,
    ...b,
    ...(required.length > 0 ? { required } : {}),
    ...(Object.keys(properties).length > 0 ? { properties } : {}),
  }
}

/** What a pointer into the same document points to. */
function referred(ref: string, root: JsonSchema): unknown {
  if (ref !== '#' && !ref.startsWith('#/')) throw new Unknown()
  const names = ref.slice(2).split('/').filter(Boolean)
  let at: unknown = root
  for (const name of names) {
    const key = name.replaceAll('~1', '/').replaceAll('~0', '~')
    if (typeof at !== 'object' || at === null || !Object.hasOwn(at, key)) throw new Unknown()
    at = (at as Record<string, unknown>)[key]
  }
  return at
}

function typeOf(schema: Readonly<Record<string, unknown>>): string {
  const type = schema['type']
  if (isList(type)) return type.filter(isText).find((each) => each !== 'null') ?? 'null'
  if (typeof type === 'string') return type
  if ('properties' in schema || 'required' in schema) return 'object'
  if ('items' in schema || 'prefixItems' in schema) return 'array'
  if (['minimum', 'maximum', 'multipleOf'].some((key) => key in schema)) return 'number'
  return 'string'
}

function objectOf(schema: Readonly<Record<string, unknown>>, walk: Walk): Record<string, unknown> {
  const properties = recordIn(schema, 'properties')
  const names = listIn(schema, 'required').filter(isText)
  const least = numberIn(schema, 'minProperties') ?? 0
  const optional = Object.keys(properties).filter((name) => !names.includes(name))
  names.push(...optional.slice(0, Math.max(0, least - names.length)))
  const others = schema['additionalProperties']
  while (names.length < Math.min(least, 100)) names.push(`key${names.length + 1}`)
  return Object.fromEntries(names.map((name) => [name, valueOf(Object.hasOwn(properties, name) ? properties[name] : others, walk)]))
}

function listOf(schema: Readonly<Record<string, unknown>>, walk: Walk): unknown[] {
  const first = listIn(schema, 'prefixItems')
  const items = schema['items']
  const most = numberIn(schema, 'maxItems') ?? Number.POSITIVE_INFINITY
  const least = Math.max(numberIn(schema, 'minItems') ?? 0, Math.min(first.length, most))
  // One item shows more than none, where one is allowed and known.
  const length = Math.min(Math.max(least, items === undefined || items === false || walk.depth > depthMax / 2 ? 0 : 1), most, 100)
  const list = Array.from({ length }, (_, index) => valueOf(first[index] ?? items, walk))
  return schema['uniqueItems'] === true ? distinct(list, first, items, walk) : list
}

/** Values are drawn again until no two are the same; too few values for that are no list. */
function distinct(list: readonly unknown[], first: readonly unknown[], items: unknown, walk: Walk): unknown[] {
  const seen = new Set<string>()
  return list.map((value, index) => {
    let next = value
    for (let tries = 0; seen.has(JSON.stringify(next)); tries++) {
      if (tries > 50) throw new Unknown()
      next = valueOf(first[index] ?? items, { ...walk, words: `${walk.words} ${tries + 2}` })
    }
    seen.add(JSON.stringify(next))
    return next
  })
}

function numberOf(schema: Readonly<Record<string, unknown>>, { chance }: Walk, whole: 0 | 1): number {
  const step = numberIn(schema, 'multipleOf') ?? whole
  const above = numberIn(schema, 'exclusiveMinimum')
  const below = numberIn(schema, 'exclusiveMaximum')
  const nudge = step > 0 ? step : 1e-3
  const least = Math.max(
    numberIn(schema, 'minimum') ?? Number.NEGATIVE_INFINITY,
    above === undefined ? Number.NEGATIVE_INFINITY : above + nudge * 1e-6,
  )
  const most = Math.min(
    numberIn(schema, 'maximum') ?? Number.POSITIVE_INFINITY,
    below === undefined ? Number.POSITIVE_INFINITY : below - nudge * 1e-6,
  )
  if (least > most) throw new Unknown()
  const low = Number.isFinite(least) ? least : Math.min(0, most - 10)
  const high = Number.isFinite(most) ? Math.min(most, low + 10) : low + 10
  const drawn = low + chance() * (high - low)
  if (step === 0) return Math.min(most, Math.max(least, Math.round(drawn * 100) / 100))
  const up = Math.ceil(low / step)
  const down = Math.floor(high / step)
  if (up > down) throw new Unknown()
  return Math.min(down, Math.max(up, Math.round(drawn / step))) * step + 0
}

const isList = (value: unknown): value is readonly unknown[] => Array.isArray(value)
const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !isList(value)
const isText = (value: unknown): value is string => typeof value === 'string'
const pick = (list: readonly unknown[], { chance }: Walk): unknown => list[Math.floor(chance() * list.length)]

function listIn(schema: Readonly<Record<string, unknown>>, key: string): readonly unknown[] {
  const value = schema[key]
  return isList(value) ? value : []
}

function recordIn(schema: Readonly<Record<string, unknown>>, key: string): Readonly<Record<string, unknown>> {
  const value = schema[key]
  return isRecord(value) ? value : {}
}

function numberIn(schema: Readonly<Record<string, unknown>>, key: string): number | undefined {
  const value = schema[key]
  return typeof value === 'number' ? value : undefined
}
