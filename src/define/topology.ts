import type { Problem } from '../kernel/problem.js'
import type { Code, Edge } from '../kernel/shape.js'
import { autoJoins, nameProblem, validate } from '../kernel/validate.js'
import { type ActFn, type Agent, type AgentSpec, agentFrom, agentSpecOf, type Spec } from './agent.js'
import { type CheckedAgent, checkAgent } from './agent-code.js'
import { type Topology, type TopologyInternals, withInternals } from './definition.js'
import { atOnce, unheard } from './at-once.js'
import { byName } from './by-name.js'
import { digestOf } from './digest.js'
import type { Edges, Names, Pattern, Targets } from './edges.js'
import { readFlows } from './flows.js'
import { frozenJson } from './frozen-json.js'
import { invalidDefinition } from './invalid-definition.js'
import { isLater } from './maybe.js'
import { type Limits, runLimits } from './limits.js'
import {
  aFunction,
  aFunctionAtOnce,
  aList,
  aName,
  aRecord,
  aSchema,
  either,
  type Kind,
  names,
  oneOf,
  optionProblems,
  shown,
  texts,
} from './option-check.js'
import { type Rule, readRules } from './rules.js'
import type { Schema } from './schema.js'
import type { Role } from './turn.js'

/** What becomes of one key of `turn.state` where branches join: the waiting branch's own value stays; the last slot that changed it wins; or a pure function. */
export type Merge<T> = 'mine' | 'last' | ((base: T, changed: readonly T[]) => T)

type At<M, K> = K extends keyof M ? M[K] : unknown
type Team<E, I, J, O, A, S, R> = {
  [K in keyof I]:
    | Spec<Role<K & string, Targets<E, K>, I[K], At<O, K>, At<A, K>, S, R, J, O>, I[K]>
    | ActFn<Role<K & string, Targets<E, K>, unknown, At<O, K>, At<A, K>, S, R, J, O>>
} & { [K in keyof J]: { readonly name?: string; input?: Schema<J[K], any> } } & {
  [K in keyof O]: { readonly name?: string; output?: Schema<any, O[K]> }
} & { [K in keyof A]: { readonly name?: string; answer?: Schema<any, A[K]> } } & { [K in Names<E>]: unknown }
type EndOutput<E, O> = { [K in keyof O]: 'End' extends Targets<E, K> ? O[K] : never }[keyof O]
/** With `result: 'list'` the output has what each finish said. */
type Finishes<L, T> = 'list' extends L ? readonly T[] : T
type PerAgent<F> = { [K in Names<Edges<F>>]: unknown }

/** Makes a topology, or throws INVALID_TOPOLOGY with everything that is wrong with it. */
export function topology<
  const F extends readonly (string | Edge)[] | Pattern<any>,
  I extends PerAgent<F>,
  J extends PerAgent<F>,
  O extends PerAgent<F>,
  A extends PerAgent<F>,
  In = unknown,
  Val = In,
  Out = never,
  Res = never,
  S = undefined,
  L extends 'list' | undefined = undefined,
>(def: {
  name: string
  flows: F
  input?: Schema<In, Val>
  output?: Schema<any, Out>
  /** What each branch carries; a record of JSON values. Called once with `undefined` when the definition is made, to find a key with no merge early. */
  state?: (input: NoInfer<Val>) => S
  /** For every key of the state: what a join does; demanded with `state`. */
  merge?: { readonly [K in keyof NoInfer<S>]-?: Merge<NoInfer<S>[K]> }
  agents: Team<Edges<F>, I, J, O, A, S, Out> | readonly Agent[]
  rules?: readonly Rule<Names<Edges<F>>>[]
  limits?: Limits
  /** Nodes where branches of one fork meet and become one. */
  joins?: 'auto' | readonly Names<Edges<F>>[]
  /** Absent: exactly one finish. */
  result?: L | ((finishes: readonly { by: string; branch: string; output: [Out] extends [never] ? unknown : Out }[]) => Res)
  version?: string
  /** Versions whose runs may go on under this one. */
  continues?: readonly string[]
}): Topology<In, [Res] extends [never] ? Finishes<L, [Out] extends [never] ? EndOutput<Edges<F>, O> : Out> : Res, Names<Edges<F>>> {
  if (typeof def !== 'object' || def === null) throw new TypeError('topology() takes an object: topology({ name, flows, agents })')
  return build(def as unknown as Given) as never
}

/** The argument of `topology`, of which nothing is believed yet. */
interface Given {
  readonly name?: unknown
  readonly flows?: unknown
  readonly input?: Schema
  readonly output?: Schema
  readonly state?: (input: unknown) => unknown
  readonly merge?: Readonly<Record<string, Merge<unknown>>>
  readonly agents?: unknown
  readonly rules?: unknown
  readonly limits?: unknown
  readonly joins?: 'auto' | readonly string[]
  readonly result?: 'list' | Code['result']
  readonly version?: string
  readonly continues?: readonly string[]
}

const kinds: Readonly<Record<string, Kind>> = {
  name: aName,
  flows: either(aList, aRecord),
  agents: either(aRecord, aList),
  input: aSchema,
  output: aSchema,
  state: aFunction,
  merge: aRecord,
  rules: aList,
  limits: aRecord,
  joins: either(oneOf('auto'), texts),
  result: either(oneOf('list'), aFunctionAtOnce),
  version: aName,
  continues: names,
}
/** These report what they can't read themselves, with more to say about it. */
const readElsewhere: readonly string[] = ['flows', 'agents', 'rules', 'limits']

function build(given: Given): Topology {
  const flows = readFlows(given.flows)
  const rules = readRules(given.rules, given.limits)
  const team = readTeam(given.agents)
  const state = readState(given.state)
  const merge = aRecord.is(given.merge) ? (given.merge as Readonly<Record<string, Merge<unknown>>>) : {}
  const joins = [...readJoins(given.joins, flows.edges), ...rules.joins]
  const verdict = validate({
    agents: team.agents.map(({ code, shape }) => ({ name: code.name, takes: shape.takes })),
    edges: flows.edges,
    joins,
    state: state.known,
    mergeKeys: Object.keys(merge),
  })
  const problems = [
    ...optionProblems(given as Readonly<Record<string, unknown>>, kinds, '').filter(({ where }) => !readElsewhere.includes(where)),
    ...(given.name === undefined
      ? [{ code: 'BAD_OPTION', where: 'name', message: "a topology needs a name: topology({ name: 'research', … })" }]
      : []),
    ...flows.problems,
    ...rules.problems,
    ...team.problems,
    ...state.problems,
    ...mergeProblems(merge),
    ...verdict.problems,
  ]
  if (problems.length > 0) throw invalidDefinition('topology', given.name, problems)

  const data = {
    kind: 'topology' as const,
    name: given.name as string,
    version: given.version ?? '1',
    nodes: team.agents.map(({ code }) => code.name),
    edges: flows.edges.map(({ from, to, notify }): Edge => (notify === true ? { from, to, notify } : { from, to })),
    joins: [...new Set(joins.map(({ node }) => node))],
    agents: Object.fromEntries(team.agents.map(({ code, shape }) => [code.name, shape])),
    limits: runLimits(rules.limits),
    merge: Object.fromEntries(Object.entries(merge).map(([key, how]) => [key, typeof how === 'function' ? ('function' as const) : how])),
    result: typeof given.result === 'function' ? ('function' as const) : (given.result ?? ('one' as const)),
  }
  const shape = frozenJson({ ...data, digest: digestOf(data) })
  const internals: TopologyInternals = {
    kind: 'topology',
    shape,
    code: codeOf(merge, given.result),
    ...(given.input === undefined ? {} : { input: given.input }),
    ...(given.output === undefined ? {} : { output: given.output }),
    ...(given.state === undefined ? {} : { state: given.state }),
    agents: byName(team.agents.map(({ code }) => [code.name, code])),
    joins: frozenJson(joins),
    limits: Object.freeze(rules.limits),
    continues: Object.freeze([...(given.continues ?? [])]),
  }
  const { name, version, digest, edges } = shape
  const hints = frozenJson(verdict.hints)
  return withInternals({ kind: 'topology' as const, name, version, digest, hints, agents: Object.freeze(team.objects), edges }, internals)
}

interface ReadTeam {
  readonly agents: readonly CheckedAgent[]
  readonly objects: readonly Agent[]
  readonly problems: readonly Problem[]
}

/** Reads agents, from a record or a list, into one form. */
function readTeam(given: unknown): ReadTeam {
  const agents: CheckedAgent[] = []
  const objects: Agent[] = []
  const problems: Problem[] = []
  const take = (name: string, spec: AgentSpec, object: Agent): void => {
    const checked = checkAgent(name, spec)
    agents.push(checked)
    objects.push(object)
    problems.push(...checked.problems)
  }
  if (Array.isArray(given)) {
    given.forEach((value: unknown, index) => {
      const spec = agentSpecOf(value)
      const name = (value as Partial<Agent> | undefined)?.name
      if (spec === undefined) problems.push(noAgent(`agents[${index}]`, value, 'a list takes agents made by agent({ name, … })'))
      else if (typeof name !== 'string')
        problems.push({ code: 'BAD_NAME', where: `agents[${index}]`, message: nameProblem(name) ?? 'a name is a string' })
      else take(name, spec, value as Agent)
    })
  } else if (aRecord.is(given)) {
    for (const [name, value] of Object.entries(given as object) as [string, unknown][]) {
      const made = agentSpecOf(value)
      if (made !== undefined) {
        const own = (value as Agent).name
        if (own !== name)
          problems.push({
            code: 'NAME_MISMATCH',
            where: `agents.${name}`,
            message: `the agent at '${name}' is called ${shown(own)}; let key and name be the same`,
          })
        take(name, made, value as Agent)
      } else if (typeof value === 'function') {
        const spec = { act: value }
        take(name, spec, agentFrom(name, spec))
      } else if (aRecord.is(value)) {
        const object = agentFrom(name, value as AgentSpec)
        take(name, agentSpecOf(object) ?? {}, object)
      } else {
        problems.push(
          noAgent(`agents.${name}`, value, 'an agent is a function, an object with `act` or `instructions`, or made by agent({ … })'),
        )
        // Taken as a model, so that its edges are still checked and not reported as leading nowhere.
        take(name, {}, agentFrom(name, {}))
      }
    }
  } else problems.push(noAgent('agents', given, 'agents is a record by name, or a list of agent({ name, … })'))
  return { agents, objects, problems }
}

function noAgent(where: string, value: unknown, expected: string): Problem {
  return { code: 'BAD_AGENT', where, message: `${expected}; this is ${shown(value)}` }
}

function readJoins(joins: unknown, edges: readonly Edge[]): { node: string; where: string }[] {
  if (joins === 'auto') return autoJoins(edges).map((node) => ({ node, where: "joins: 'auto'" }))
  return texts.is(joins) ? (joins as readonly string[]).map((node) => ({ node, where: 'joins' })) : []
}

/** Tries the state on no input, so that a key with no merge is found now and not at the first start; if that throws, the start finds it. */
function readState(state: unknown): { known: { keys: readonly string[] | null } | null; problems: readonly Problem[] } {
  if (typeof state !== 'function') return { known: state === undefined ? null : { keys: [] }, problems: [] }
  let value: unknown
  try {
    value = (state as (input: unknown) => unknown)(undefined)
  } catch {
    return { known: { keys: null }, problems: [] }
  }
  // Of an input it might give more.
  if ((value === undefined || value === null) && takesInput(state)) return { known: { keys: null }, problems: [] }
  if (isLater(value)) unheard(value)
  else if (aRecord.is(value)) return { known: { keys: Object.keys(value as object) }, problems: [] }
  const message = `state gives a record of JSON values, like { seen: [] }, not ${isLater(value) ? 'a promise' : shown(value)}`
  return { known: { keys: [] }, problems: [{ code: 'BAD_STATE', where: 'state', message }] }
}

/** One with a default, or that is handed on by another function, does not say how many it takes: it is seen by what it does with one. */
function takesInput(state: Function): boolean {
  if (state.length > 0) return true
  let isRead = false
  const get = (): void => {
    isRead = true
  }
  try {
    const value: unknown = state(new Proxy({}, { get }))
    return isRead || (value !== undefined && value !== null)
  } catch {
    return true
  }
}

function mergeProblems(merge: Readonly<Record<string, unknown>>): Problem[] {
  return Object.entries(merge).flatMap(([key, how]) => {
    const where = `merge.${key}`
    if (key === '__proto__') return [{ code: 'BAD_MERGE', where, message: 'no key of a state can be called __proto__' }]
    if (how === 'mine' || how === 'last' || aFunctionAtOnce.is(how)) return []
    return [{ code: 'BAD_MERGE', where, message: `a merge is 'mine', 'last' or a function (base, changed) => value, not ${shown(how)}` }]
  })
}

function codeOf(merge: Readonly<Record<string, Merge<unknown>>>, result: 'list' | Code['result']): Code {
  const functions = Object.entries(merge).flatMap(([key, how]) => (typeof how === 'function' ? [[key, atOnce(how, 'it')] as const] : []))
  const code: Code = {
    merge: byName(functions),
    ...(typeof result === 'function' ? { result: atOnce(result, 'it') } : {}),
  }
  return Object.freeze(code)
}
