import type { Maybe } from './maybe.js'
import {
  aBoolean,
  aFunction,
  aRecord,
  aSchema,
  aString,
  either,
  type Kind,
  optionProblems,
  optionsTaken,
  shown,
  someMs,
} from './option-check.js'
import type { Schema } from './schema.js'
import type { ActivityContext, Done } from './work.js'

/** Something a model may do in a turn; an activity, so its result is recorded once. */
export interface Tool<I = any, O = unknown> {
  readonly description: string
  readonly input: Schema<any, I>
  readonly '~types'?: (i: I) => O
}

/** What a tool is made of. */
export interface ToolDefinition<I, O> {
  description: string
  input: Schema<any, I>
  run: (input: I, ctx: ActivityContext) => Maybe<O>
  idempotent?: boolean
  /** Of one call. */
  timeoutMs?: number
  needsApproval?: boolean | ((input: I) => Maybe<boolean>)
  compensate?: (done: Done<O> & { input: I }) => unknown
}

/** The tools by which a model acts in its topology: no tool of an agent has such a name. */
export const actionTools: Readonly<{ invoke: 'invoke_agent'; finish: 'finish'; ask: 'ask_user' }> = Object.freeze({
  invoke: 'invoke_agent',
  finish: 'finish',
  ask: 'ask_user',
})

/** What all providers take as the name of a tool. */
const toolName = /^[A-Za-z0-9_-]{1,64}$/

/** Why a tool can't be called like this; null if it can. */
export function toolNameProblem(name: string): string | null {
  if (!toolName.test(name)) return `the name of a tool matches ${toolName.source}`
  const taken = Object.values<string>(actionTools)
  return taken.includes(name) ? `${taken.join(', ')} are the tools by which a model acts: call it something else` : null
}

const key: unique symbol = Symbol.for('tutti.tool')

const kinds: Readonly<Record<keyof ToolDefinition<unknown, unknown>, Kind>> = {
  description: aString,
  input: aSchema,
  run: aFunction,
  idempotent: aBoolean,
  timeoutMs: someMs,
  needsApproval: either(aBoolean, aFunction),
  compensate: aFunction,
}

/** What no tool is without, and why. */
const needed: Readonly<Record<string, string>> = {
  description: 'models choose by it',
  input: 'a schema of what models may give it',
  run: 'what it does',
}

/** Makes a tool. */
export function tool<I, O>(def: ToolDefinition<I, O>): Tool<I, O> {
  if (!aRecord.is(def)) throw new TypeError(`tool() takes an object: tool({ description, input, run }), not ${shown(def)}`)
  const taken = optionsTaken(def, Object.keys(kinds))
  const given = taken as unknown as Readonly<Record<string, unknown>>
  const missing = Object.keys(needed).filter((key) => given[key] === undefined)
  const problems = [
    ...missing.map((key) => `a tool needs \`${key}\`, ${needed[key]}: tool({ description, input, run })`),
    ...optionProblems(given, kinds, '').map(({ message }) => message),
  ]
  if (problems.length > 0) throw new TypeError(`tool(): ${problems.join('; ')}`)
  const made = { description: taken.description, input: taken.input }
  return Object.freeze(Object.defineProperty(made, key, { value: Object.freeze(taken) }))
}

/** The definition of a tool, or undefined if this is none. */
export function toolDefinitionOf(value: unknown): Readonly<ToolDefinition<any, unknown>> | undefined {
  if (typeof value !== 'object' || value === null) return undefined
  return (value as { readonly [key]?: Readonly<ToolDefinition<any, unknown>> })[key]
}
