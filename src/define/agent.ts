import type { Action } from '../kernel/action.js'
import { agentKinds } from './agent-kinds.js'
import type { Edges, Targets } from './edges.js'
import type { Guardrail } from './guardrail.js'
import type { LanguageModel } from './language-model.js'
import type { Maybe } from './maybe.js'
import { optionsTaken } from './option-check.js'
import type { Retry } from './retry.js'
import type { Schema } from './schema.js'
import type { Tool } from './tool.js'
import type { Toolbox } from './toolbox.js'
import type { JoinResult, Role, Seat, Turn } from './turn.js'
import type { Done } from './work.js'

/** An agent's code as one function: it looks at `turn.message` itself. */
export type ActFn<P extends Seat = Seat> = (turn: Turn<P>) => Maybe<Action>

/** An agent's code by what its turn is about. */
export interface Handlers<P extends Seat = Seat> {
  request(turn: Turn<P>, value: P['input']): Maybe<Action>
  /** Must be there at a node of `joins`. */
  merged?(turn: Turn<P>, requests: readonly { from: string; value: P['input'] }[]): Maybe<Action>
  join?(turn: Turn<P>, join: JoinResult<P['replies']>): Maybe<Action>
  answer?(turn: Turn<P>, value: P['answer'], ask: { id: string; question: unknown }): Maybe<Action>
  /** Without it, the branch fails. */
  expired?(turn: Turn<P>, ask: { id: string; question: unknown }): Maybe<Action>
  /** Without it, the branch fails with the rejection. */
  feedback?(turn: Turn<P>, problem: string): Maybe<Action>
}

interface Says {
  input: any
  output: any
  answer: any
  state: any
}
/** What is not said of an agent may be anything. */
type Said<T, K extends keyof Says> = K extends keyof T ? T[K] : any

/** One agent's code, typed by the flows it lives in; for agents in files of their own. */
export type Act<F, N extends string, T extends Partial<Says> = Says> = ActFn<
  Role<N, Targets<Edges<F>, N>, Said<T, 'input'>, Said<T, 'output'>, Said<T, 'answer'>, Said<T, 'state'>, any, any, any>
>

/** How an agent's turns are executed. */
export interface Options {
  /** Absent with no `act`: what the environment has a key for, else 'sim'. */
  model?: LanguageModel | string
  instructions?: string | ((turn: Turn) => Maybe<string>)
  tools?: Record<string, Tool<any, any> | Toolbox>
  /** Look at what goes to the model and at what comes back, in this order. */
  guardrails?: readonly Guardrail[]
  /** With every request anew, as long as the branch goes on, or with what was said in the session before too. */
  memory?: 'turn' | 'run' | 'session'
  retry?: Retry
  /** Per attempt. */
  timeoutMs?: number
  /** How many of its turns run at once in one process, in all runs together: another process on the same store has as many. */
  concurrency?: number
  maxRejections?: number
  whenStopped?: 'fail' | 'wait'
  breaker?: { failures: number; probeMs: number }
  compensate?: (done: Done) => unknown
}

/** An agent as a record of `agents` holds it. */
export interface Spec<P extends Seat, I> extends Options {
  input?: Schema<any, I>
  output?: Schema<any, P['output']>
  answer?: Schema<any, P['answer']>
  act?: ActFn<P> | Handlers<P>
}

/** An agent made by `agent`, for use in any number of topologies. `Raw` is what may be sent to it, `I` what arrives. */
export interface Agent<N extends string = string, I = any, O = any, A = any, in Raw = I> {
  readonly name: N
  readonly input?: Schema<any, I>
  readonly output?: Schema<any, O>
  readonly answer?: Schema<any, A>
  readonly '~takes'?: (request: Raw) => void
}

type Loose<N, I, O, A> = {
  name: N & string
  to: string
  input: I
  output: O
  answer: A
  state: any
  result: any
  peers: Record<string, unknown>
  replies: Record<string, any>
}

/** What an agent object was made of, unchecked: `topology` reports what is wrong with it, together with everything else. */
export type AgentSpec = Readonly<Record<string, unknown>>

const key: unique symbol = Symbol.for('tutti.agent')

/** Makes an agent: code or a model, with its schemas and options. */
export function agent<const N extends string, I = unknown, O = unknown, A = unknown, Raw = I>(
  def: Options & {
    name: N
    input?: Schema<Raw, I>
    output?: Schema<any, O>
    answer?: Schema<any, A>
    act?: ActFn<Loose<N, I, O, A>> | Handlers<Loose<N, I, O, A>>
  },
): Agent<N, I, O, A, Raw> {
  if (typeof def !== 'object' || def === null) throw new TypeError("agent() takes an object: agent({ name: 'Writer', act: (turn) => … })")
  const { name, ...spec } = optionsTaken(def, ['name', ...Object.keys(agentKinds)])
  return agentFrom(name, spec as AgentSpec) as Agent<N, I, O, A, Raw>
}

/** The agent object of a name and a spec. */
export function agentFrom(name: string, spec: AgentSpec): Agent {
  const made: Record<string, unknown> = { name }
  const taken = optionsTaken(spec, Object.keys(agentKinds))
  for (const schema of ['input', 'output', 'answer']) if (taken[schema] !== undefined) made[schema] = taken[schema]
  Object.defineProperty(made, key, { value: Object.freeze(taken) })
  return Object.freeze(made) as unknown as Agent
}

/** What an agent object was made of, or undefined if this is none. */
export function agentSpecOf(value: unknown): AgentSpec | undefined {
  if (typeof value !== 'object' || value === null) return undefined
  return (value as { readonly [key]?: AgentSpec })[key]
}
