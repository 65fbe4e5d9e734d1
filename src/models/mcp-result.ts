import { toJson } from '../kernel/json.js'

/** How many characters of a result a model is given: more would fill its context with one call. */
const resultMax = 100_000
const errorMax = 2_000

/** The result of a tool of an MCP server, as far as it is looked at. */
export interface McpResult {
  readonly content?: readonly McpContent[]
  readonly structuredContent?: unknown
  readonly isError?: boolean
}

interface McpContent {
  readonly type: string
  readonly text?: string
  readonly data?: string
  readonly mimeType?: string
  readonly uri?: string
  readonly name?: string
  readonly resource?: { readonly uri?: string; readonly text?: string; readonly blob?: string }
}

/** What a model is told of a result: plain JSON of a bounded size. An error of the tool is thrown. */
export function mcpResult(result: McpResult): unknown {
  const parts = (result.content ?? []).map(partOf)
  if (result.isError === true) throw new Error(cut(textOf(parts), errorMax) || 'the tool failed and did not say why')
  const structured = result.structuredContent === undefined ? undefined : withoutData(result.structuredContent, result.content ?? [])
  const json = toJson(structured ?? (parts.every((part) => typeof part === 'string') ? parts.join('\n') : parts))
  if ('problem' in json) throw new Error(`the result is no plain JSON at ${cut(json.path, 200)}: ${json.problem}`)
  if (typeof json.value === 'string') return cut(json.value, resultMax)
  return json.size <= resultMax ? json.value : cut(JSON.stringify(json.value), resultMax)
}

/** Texts as they are; of pictures and files only what they are, because nothing that is not text is of use in a transcript. */
function partOf(part: McpContent): unknown {
  switch (part.type) {
    case 'text':
      return part.text ?? ''
    case 'resource':
      return part.resource?.text === undefined
        ? { type: 'file', uri: part.resource?.uri, bytes: bytesOf(part.resource?.blob) }
        : { type: 'text', uri: part.resource.uri, text: part.resource.text }
    case 'resource_link':
      return { type: 'link', uri: part.uri, name: part.name }
    default:
      return { type: part.type, mediaType: part.mimeType, bytes: bytesOf(part.data) }
  }
}

/** A structured result may repeat what the pictures and files beside it hold: there too it is only said what they are. */
function withoutData(structured: unknown, content: readonly McpContent[]): unknown {
  const held = new Map(content.flatMap((part) => heldBy(part)))
  if (held.size === 0) return structured
  const shown = (value: unknown): unknown => {
    if (typeof value === 'string') return held.get(value) ?? value
    if (Array.isArray(value)) return value.map(shown)
    if (typeof value !== 'object' || value === null) return value
    return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, shown(inner)]))
  }
  return shown(structured)
}

function heldBy(part: McpContent): (readonly [string, unknown])[] {
  const data = part.type === 'resource' ? part.resource?.blob : part.data
  return data === undefined || data === '' ? [] : [[data, partOf(part)]]
}

const bytesOf = (base64: string | undefined): number => Math.floor(((base64 ?? '').length * 3) / 4)
const textOf = (parts: readonly unknown[]): string =>
  parts.map((part) => (typeof part === 'string' ? part : JSON.stringify(part))).join('\n')
const cut = (text: string, most: number): string =>
  text.length <= most ? text : `${text.slice(0, most)}… [cut: ${most} of ${text.length} characters]`
