import type { Tool } from './tool.js'

/** Tools that are known only when somebody looks: those of an MCP server. It stands among an agent's tools like one of them. */
export interface Toolbox {
  readonly description: string
  readonly '~toolbox': true
}

/** What a toolbox is made of: opened when a turn first needs it, closed with the engine that opened it. */
export interface ToolboxDefinition {
  /** What it is, for messages; no secret is in it. */
  readonly description: string
  open(): OpenToolbox
}

/** A toolbox that one engine has opened. */
export interface OpenToolbox {
  /** The tools by their own names; what they are is asked for once per connection. */
  list(): Promise<Readonly<Record<string, Tool<any, unknown>>>>
  close(): Promise<void>
}

const key: unique symbol = Symbol.for('tutti.toolbox')

/** Makes a toolbox. */
export function toolbox(definition: ToolboxDefinition): Toolbox {
  const made = { description: definition.description, '~toolbox': true as const }
  return Object.freeze(Object.defineProperty(made, key, { value: Object.freeze({ ...definition }) }))
}

/** The definition of a toolbox, or undefined if this is none. */
export function toolboxDefinitionOf(value: unknown): ToolboxDefinition | undefined {
  if (typeof value !== 'object' || value === null) return undefined
  return (value as { readonly [key]?: ToolboxDefinition })[key]
}
