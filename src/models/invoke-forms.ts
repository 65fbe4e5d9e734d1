import type { LanguageModelV3CallOptions, LanguageModelV3FunctionTool } from '@ai-sdk/provider'
import { coordination } from './coordination.js'

/** One form of an invocation: a schema, and the agents it is for. */
export interface InvokeForm {
  readonly names: readonly string[]
  readonly schema: Record<string, any>
}

/** The forms that the `invoke_agent` of a call takes; none, if it is not offered. */
export function invokeForms(tools: LanguageModelV3CallOptions['tools']): InvokeForm[] {
  const tool = tools?.find((one): one is LanguageModelV3FunctionTool => one.type === 'function' && one.name === coordination.invoke)
  const items = (tool?.inputSchema as Record<string, any> | undefined)?.['properties']?.invocations?.items as
    | Record<string, any>
    | undefined
  const forms = (items?.['anyOf'] ?? items?.['oneOf'] ?? (items === undefined ? [] : [items])) as Record<string, any>[]
  return forms.map((schema) => {
    const name = schema['properties']?.agent_name as { const?: string; enum?: string[] } | undefined
    return { names: name?.enum ?? (name?.const === undefined ? [] : [name.const]), schema }
  })
}
