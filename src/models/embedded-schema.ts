/** What stands under these is data, whatever it looks like. */
const data = new Set(['const', 'enum', 'default', 'examples'])
/** What stands under these has names of its own, which may be words of a schema. */
const named = new Set(['properties', 'patternProperties', 'dependentSchemas', '$defs', 'definitions'])

/**
 * A JSON Schema as a part of another one, at this place in it. Its references are counted from the root of the document that they stand in: left
 * as they are, those of a schema that contains itself, or names its parts, would point into the other one, or nowhere.
 */
export function embedded(schema: object, at: string): object {
  const { $schema: _, ...rest } = schema as { readonly $schema?: unknown }
  return moved(rest, at) as object
}

function moved(part: unknown, at: string, hasNames = false): unknown {
  if (Array.isArray(part)) return part.map((item: unknown) => moved(item, at))
  if (typeof part !== 'object' || part === null) return part
  return Object.fromEntries(
    Object.entries(part).map(([key, value]): [string, unknown] => {
      if (hasNames) return [key, moved(value, at)]
      if (key === '$ref' && typeof value === 'string' && /^#(?:\/|$)/.test(value)) return [key, `${at}${value.slice(1)}`]
      return [key, data.has(key) ? value : moved(value, at, named.has(key))]
    }),
  )
}
