import { toJson } from '../kernel/json.js'

/** What a model gave to a tool, read; or why it can't be. */
export type ToolInput = { readonly value: unknown } | { readonly problem: string }

/** How many characters the arguments of one call may have. */
const inputMax = 1_000_000

/** Reads the arguments of a call. They come from a model: nothing in them is believed, and what is no plain JSON goes no further. */
export function toolInput(text: string): ToolInput {
  if (text.length > inputMax) return { problem: `the arguments have ${text.length} characters; at most ${inputMax} are taken` }
  let parsed: unknown
  try {
    parsed = text.trim() === '' ? {} : JSON.parse(text)
  } catch (error) {
    return { problem: `the arguments are no JSON: ${error instanceof Error ? error.message.slice(0, 200) : 'they cannot be read'}` }
  }
  const json = toJson(parsed)
  return 'problem' in json
    ? { problem: `the arguments can't be taken at ${json.path.slice(0, 200)}: ${json.problem}` }
    : { value: json.value }
}
