import type { Failure } from '../kernel/failure.js'
import type { Problem } from '../kernel/problem.js'
import type { Code, Edge, GraphShape, TopologyShape } from '../kernel/shape.js'
import type { Agent } from './agent.js'
import type { AgentCode } from './agent-code.js'
import type { Limits } from './limits.js'
import type { Maybe } from './maybe.js'
import { noDefinition } from './no-definition.js'
import type { Schema } from './schema.js'
import type { Done, Work } from './work.js'

/** A topology or a graph: plain data plus the code of its agents or steps, with a name and a digest. */
export interface Definition<in I = never, out O = unknown> {
  readonly name: string
  readonly version: string
  readonly digest: string
  readonly hints: readonly Problem[]
  readonly '~types'?: (input: I) => O
}

/** Agents and who of them may call whom. */
export interface Topology<in I = never, out O = unknown, out N extends string = string> extends Definition<I, O> {
  readonly kind: 'topology'
  readonly agents: readonly Agent<N>[]
  readonly edges: readonly Edge[]
}

/** Steps and what they depend on. */
export interface Graph<in I = never, out O = unknown, out N extends string = string> extends Definition<I, O> {
  readonly kind: 'graph'
  readonly steps: readonly N[]
}

interface Insides {
  readonly input?: Schema
  readonly output?: Schema
  /** As given, with what rules said: the shape has those that the kernel counts. */
  readonly limits: Readonly<Limits>
  /** The versions whose runs this definition goes on with. */
  readonly continues: readonly string[]
}

/** What the engine needs of a topology. */
export interface TopologyInternals extends Insides {
  readonly kind: 'topology'
  readonly shape: TopologyShape
  readonly code: Code
  readonly state?: (input: unknown) => unknown
  readonly agents: Readonly<Record<string, AgentCode>>
  /** Where branches meet, and what says so; a node may be named more than once. */
  readonly joins: readonly { readonly node: string; readonly where: string }[]
}

/** What a step's functions are given: their work, the run's input, the outputs they depend on and, inside `each`, the item. */
export type AnyStepContext = Work & {
  readonly input: unknown
  readonly steps: Readonly<Record<string, unknown>>
  readonly item?: unknown
  readonly index?: number
}

type StepFn = (ctx: AnyStepContext) => Maybe<unknown>

/** The code of one step, by its kind. */
export type StepCode = {
  readonly id: string
  readonly when?: (ctx: AnyStepContext) => Maybe<boolean>
  readonly each?: (ctx: AnyStepContext) => Maybe<readonly unknown[]>
  readonly compensate?: (done: Done<any>) => unknown
  readonly retryIf?: (failure: Failure) => boolean
} & (
  | { readonly kind: 'run'; readonly run: StepFn }
  | { readonly kind: 'child'; readonly child: Definition; readonly input?: StepFn }
  | { readonly kind: 'ask'; readonly question: (ctx: AnyStepContext) => unknown; readonly schema: Schema }
)

/** What the engine needs of a graph. */
export interface GraphInternals extends Insides {
  readonly kind: 'graph'
  readonly shape: GraphShape
  readonly steps: Readonly<Record<string, StepCode>>
  /** With `output`, which makes the output from all steps; without it, the output is the record of them. */
  readonly code: Code
}

export type Internals = TopologyInternals | GraphInternals

// Registered, so that a definition is known even when two copies of this package are loaded.
const key: unique symbol = Symbol.for('tutti.definition')

/** Puts the insides where `internalsOf` finds them and nobody stumbles over them. */
export function withInternals<D extends object>(definition: D, internals: Internals): Readonly<D> {
  return Object.freeze(Object.defineProperty(definition, key, { value: Object.freeze(internals) }))
}

/** The insides of a definition. */
export function internalsOf(definition: Definition): Internals {
  const internals = insidesOf(definition)
  if (internals === undefined) throw noDefinition(definition)
  return internals
}

/** Whether this was made by `topology` or `graph`. */
export function isDefinition(value: unknown): value is Definition {
  return insidesOf(value) !== undefined
}

function insidesOf(value: unknown): Internals | undefined {
  if (typeof value !== 'object' || value === null) return undefined
  return (value as { readonly [key]?: Internals })[key]
}
