/** A message as the wire has it. */
export interface WireMessage {
  role: 'system' | 'user' | 'assistant' | 'tool'
  content?: unknown
  tool_calls?: { id: string; type: 'function'; function: { name: string; arguments: string } }[]
  tool_call_id?: string
  reasoning_content?: string
}

/** What a body of /chat/completions holds, as far as tests look. */
export interface WireRequest {
  model: string
  messages: WireMessage[]
  stream?: boolean
  stream_options?: { include_usage?: boolean }
  tools?: { type: 'function'; function: { name: string; description?: string; parameters: Record<string, any> } }[]
  tool_choice?: unknown
  response_format?: unknown
  [other: string]: unknown
}

const toolName = /^[a-zA-Z0-9_-]{1,64}$/

/**
 * What OpenAI would refuse a request for: each call of an assistant has exactly one result, right after it, and no result is without its call.
 * A server that did not mind would let a transcript pass that no provider takes.
 */
export function transcriptProblem({ messages, tools = [] }: WireRequest): string | undefined {
  if (!Array.isArray(messages) || messages.length === 0) return 'messages is empty'
  const bad = tools.find((tool) => !toolName.test(tool.function.name))
  if (bad !== undefined) return `the tool name '${bad.function.name}' does not match ${toolName.source}`
  const names = tools.map((tool) => tool.function.name)
  if (new Set(names).size < names.length) return `two tools of one name: ${names.join(', ')}`
  let open = new Set<string>()
  for (const [index, message] of messages.entries()) {
    if (message.role === 'tool') {
      if (!open.delete(message.tool_call_id ?? ''))
        return `messages[${index}] is the result of a call that is not open: ${message.tool_call_id}`
      continue
    }
    if (open.size > 0) return `messages[${index}] comes before the results of ${[...open].join(', ')}`
    const calls = message.tool_calls ?? []
    open = new Set(calls.map((call) => call.id))
    if (open.size < calls.length) return `messages[${index}] has two calls of one id`
    const broken = calls.find((call) => !isJsonObject(call.function.arguments))
    if (broken !== undefined) return `messages[${index}] has a call whose arguments are no JSON object: ${broken.function.arguments}`
  }
  return open.size > 0 ? `the calls ${[...open].join(', ')} have no result` : undefined
}

function isJsonObject(text: string): boolean {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null && !Array.isArray(value)
  } catch {
    return false
  }
}
