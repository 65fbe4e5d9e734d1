import { toJson } from '../kernel/json.js'
import { type Join, joinProblem, joinSpec, type Policy } from '../kernel/join.js'
import type { Problem } from '../kernel/problem.js'
import type { AgentShape, Code, GraphShape, OnError, StepShape } from '../kernel/shape.js'
import { nameProblem } from '../kernel/validate.js'
import { type Agent, agentSpecOf } from './agent.js'
import { retryProblems } from './agent-code.js'
import { type Definition, type Graph, type GraphInternals, isDefinition, type StepCode, withInternals } from './definition.js'
import { atOnce } from './at-once.js'
import { byName } from './by-name.js'
import { notValid } from './check-schema.js'
import { digestOf } from './digest.js'
import { frozenJson } from './frozen-json.js'
import { invalidDefinition } from './invalid-definition.js'
import { type Limits, limitsGiven, limitsTaken, runLimits } from './limits.js'
import type { Maybe } from './maybe.js'
import {
  aFunction,
  aFunctionAtOnce,
  aName,
  aRecord,
  aSchema,
  aSchemaAtOnce,
  atLeastOne,
  type Kind,
  names,
  oneOf,
  optionProblems,
  shown,
  someMs,
  texts,
} from './option-check.js'
import { type Retry, retryShape } from './retry.js'
import type { Schema } from './schema.js'
import { topology } from './topology.js'
import { TuttiError } from './tutti-error.js'
import type { Done, Work } from './work.js'

/** What the types know of a step: its output, and whether it can be skipped. Public, so that a builder can be exported. */
export interface StepNode<T = any, M extends boolean = boolean> {
  out: T
  maybe: M
}
type Deps<S, D extends PropertyKey, J> = {
  readonly [K in D & keyof S]: S[K] extends StepNode<infer T, any> ? (J extends 'all' ? T : T | undefined) : never
}
type Settled<S> = { readonly [K in keyof S]: S[K] extends StepNode<infer T, infer M> ? (true extends M ? T | undefined : T) : never }
type Falls<X> = X extends { fallback: infer V } ? V : X extends 'skip' ? undefined : never
type OutOf<T, It, X> = [It] extends [never] ? T | (X extends { fallback: infer V } ? V : never) : readonly (T | Falls<X>)[]
type CanSkip<S, D, W, X, It, J> = [W] extends [never]
  ? X extends 'skip'
    ? [It] extends [never]
      ? true
      : Upstream<S, D, J>
    : Upstream<S, D, J>
  : true
/** A step is skipped if too few of those before it succeed: with `any` only if every one of them may be skipped, with `settled` never. */
type Upstream<S, D, J> = [D] extends [never]
  ? false
  : J extends { policy: infer P }
    ? Upstream<S, D, P>
    : J extends 'settled'
      ? false
      : J extends 'any'
        ? 'sure' extends Certainty<S, D>
          ? false
          : true
        : 'maybe' extends Certainty<S, D>
          ? true
          : false
type Certainty<S, D> = D extends keyof S ? (S[D] extends StepNode<any, infer M> ? (true extends M ? 'maybe' : 'sure') : never) : never
type Fresh<Id, S> = string extends keyof S ? unknown : Id extends keyof S ? `there is a step ${Id & string} already` : unknown
/** With an `output` schema the output is what that gives, else what was made. */
type Checked<Out, T> = [Out] extends [never] ? T : Out
type NeedsInput<CI> = [CI] extends [never] ? {} : undefined extends CI ? {} : { input: unknown }

/** What a step's functions are given. */
export type StepContext<In, Steps, It = never> = Work & { readonly input: In; readonly steps: Steps } & ([It] extends [never]
    ? {}
    : { readonly item: It; readonly index: number })

interface StepBase<Ctx, D extends string, J, W, X, It> {
  after?: readonly D[]
  join?: J
  when?: (ctx: Ctx) => Maybe<W>
  each?: (ctx: Ctx) => Maybe<readonly It[]>
  concurrency?: number
  onError?: X
  retry?: Retry
  timeoutMs?: number
}

/** Collects steps; each call gives a new builder, so that one can be gone on with in several ways. */
// A step is added as a Record, whose node is known at once: a mapped type written here would hold on to all steps before it, and TypeScript 5.7
// and 5.8 would work these out anew at each, until they give up at twenty.
export interface GraphBuilder<In = unknown, S = {}, Raw = In, Out = never> {
  /** `run` is code, an agent or a whole definition; the latter two take their request from `input`. */
  step<
    const Id extends string,
    T,
    D extends keyof S & string = never,
    It = never,
    CI = never,
    const J extends Join = 'all',
    W extends boolean = never,
    const X extends OnError = 'fail',
  >(
    id: Id & Fresh<Id, S>,
    def: NeedsInput<CI> &
      StepBase<StepContext<In, Deps<S, D, J>>, D, J, W, X, It> & {
        input?: (ctx: StepContext<In, Deps<S, D, J>, It>) => Maybe<CI>
        run: ((ctx: StepContext<In, Deps<S, D, J>, It>) => Maybe<T>) | Definition<CI, T> | Agent<string, any, T, any, CI>
        compensate?: (done: Done<T> & ([It] extends [never] ? {} : { readonly item: It })) => unknown
      },
  ): GraphBuilder<In, S & Record<Id, StepNode<OutOf<T, It, X>, CanSkip<S, D, W, X, It, J>>>, Raw, Out>
  /** Waits, durably, for a person. */
  ask<const Id extends string, T, D extends keyof S & string = never>(
    id: Id & Fresh<Id, S>,
    def: {
      after?: readonly D[]
      question: (ctx: StepContext<In, Deps<S, D, 'all'>>) => unknown
      schema: Schema<any, T>
      timeoutMs?: number
    },
  ): GraphBuilder<In, S & Record<Id, StepNode<T, Upstream<S, D, 'all'>>>, Raw, Out>
  /** Makes the definition, or throws INVALID_GRAPH with everything that is wrong with it. */
  output(): Graph<Raw, Checked<Out, Settled<S>>, keyof S & string>
  output<O>(result: (ctx: { readonly input: In; readonly steps: Settled<S> }) => O): Graph<Raw, Checked<Out, O>, keyof S & string>
}

/** What holds for a whole graph. */
export interface GraphOptions<Raw = any, In = any, Out = unknown> {
  input?: Schema<Raw, In>
  output?: Schema<any, Out> | Schema<any, unknown>
  limits?: Limits
  concurrency?: number
  stragglers?: 'wait' | 'cancel'
  /** Steps that must not be skipped. */
  required?: readonly string[]
  version?: string
  continues?: readonly string[]
}

/** Begins a graph: steps with what they depend on. */
export function graph<Raw = unknown, In = Raw, Out = never>(
  name: string,
  options: GraphOptions<Raw, In, Out> = {},
): GraphBuilder<In, {}, Raw, Out> {
  return builder({ name, options }, null) as unknown as GraphBuilder<In, {}, Raw, Out>
}

interface Head {
  readonly name: unknown
  readonly options: GraphOptions
}

/** The steps of a builder: a chain to the first one, so that adding a step costs the same however many there are. */
interface Link {
  readonly before: Link | null
  readonly kind: 'step' | 'ask'
  readonly id: unknown
  readonly def: unknown
}

interface AnyBuilder {
  step(id: unknown, def: unknown): AnyBuilder
  ask(id: unknown, def: unknown): AnyBuilder
  output(result?: unknown): Graph
}

function builder(head: Head, last: Link | null): AnyBuilder {
  return Object.freeze({
    step: (id: unknown, def: unknown) => builder(head, { before: last, kind: 'step', id, def }),
    ask: (id: unknown, def: unknown) => builder(head, { before: last, kind: 'ask', id, def }),
    output: (result?: unknown) => build(head, chain(last), result),
  })
}

function chain(last: Link | null): Link[] {
  const links: Link[] = []
  for (let link = last; link !== null; link = link.before) links.push(link)
  return links.reverse()
}

type Given = Readonly<Record<string, unknown>>

const optionKinds: Readonly<Record<string, Kind>> = {
  input: aSchema,
  output: aSchemaAtOnce,
  limits: aRecord,
  concurrency: atLeastOne,
  stragglers: oneOf('wait', 'cancel'),
  required: texts,
  version: aName,
  continues: names,
}

const aJoin: Kind = {
  is: (value) =>
    aRecord.is(value) ? isPolicy('policy' in (value as object) ? (value as { policy: unknown }).policy : value) : isPolicy(value),
  words: "'all', 'any', 'majority', 'settled', { quorum }, { ratio } or { policy }",
}
const anOnError: Kind = {
  is: (value) =>
    ['fail', 'skip', 'pause'].includes(value as string) || (aRecord.is(value) && Object.keys(value as object).join() === 'fallback'),
  words: "'fail', 'skip', 'pause' or { fallback }",
}
const aRun: Kind = {
  is: (value) => typeof value === 'function' || isDefinition(value) || agentSpecOf(value) !== undefined,
  words: 'a function, a definition or an agent made by agent({ … })',
}

const stepKinds: Readonly<Record<string, Kind>> = {
  after: texts,
  join: aJoin,
  when: aFunction,
  each: aFunction,
  concurrency: atLeastOne,
  onError: anOnError,
  retry: aRecord,
  timeoutMs: someMs,
  input: aFunction,
  run: aRun,
  compensate: aFunction,
}
const askKinds: Readonly<Record<string, Kind>> = { after: texts, question: aFunction, schema: aSchema, timeoutMs: someMs }

function isPolicy(value: unknown): value is Policy {
  if (!aRecord.is(value)) return ['all', 'any', 'majority', 'settled'].includes(value as string)
  const keys = Object.keys(value as object)
  return keys.length === 1 && (keys[0] === 'quorum' || keys[0] === 'ratio')
}

function build({ name, options }: Head, links: readonly Link[], result: unknown): Graph {
  const given = (aRecord.is(options) ? options : {}) as Given
  const steps = links.map(readStep)
  const problems = [
    ...(aName.is(name)
      ? []
      : [{ code: 'BAD_OPTION', where: 'name', message: `a graph needs a name: graph('release'), ${aName.words}, not ${shown(name)}` }]),
    ...(aRecord.is(options)
      ? []
      : [{ code: 'BAD_OPTION', where: 'options', message: `graph() takes an object of options after the name, not ${shown(options)}` }]),
    ...optionProblems(given, optionKinds, ''),
    ...limitsGiven(given['limits']),
    ...(result === undefined || aFunctionAtOnce.is(result)
      ? []
      : [
          {
            code: 'BAD_OPTION',
            where: 'output',
            message: `output takes a function of { input, steps } that is not async, not ${shown(result)}`,
          },
        ]),
    ...(links.length > 0 ? [] : [{ code: 'NO_STEPS', where: 'steps', message: 'a graph needs a step: graph(…).step(…).output()' }]),
    ...steps.flatMap((step) => step.problems),
    ...orderProblems(steps.map((step) => step.shape)),
    ...requiredProblems(given['required'], steps),
  ]
  if (problems.length > 0) throw invalidDefinition('graph', name, problems)

  const output = outputOf(result as Code['output'], options.output)
  const data: Omit<GraphShape, 'digest'> = {
    kind: 'graph',
    name: name as string,
    version: options.version ?? '1',
    limits: runLimits(limitsOf(options)),
    nodes: steps.map(({ shape }) => shape.id),
    edges: [],
    joins: [],
    merge: {},
    agents: Object.fromEntries(steps.map(({ shape, attempts }) => [shape.id, attempts])),
    result: output === undefined ? 'steps' : 'function',
    stragglers: options.stragglers ?? 'wait',
    required: options.required ?? [],
    steps: steps.map((step) => step.shape),
  }
  const shape = frozenJson<GraphShape>({ ...data, digest: digestOf(data) })
  const internals: GraphInternals = {
    kind: 'graph',
    shape,
    steps: byName(steps.map((step) => [step.shape.id, step.code])),
    ...(options.input === undefined ? {} : { input: options.input }),
    ...(options.output === undefined ? {} : { output: options.output }),
    code: Object.freeze({ merge: {}, ...(output === undefined ? {} : { output }) }),
    limits: Object.freeze(limitsOf(options)),
    continues: Object.freeze([...(options.continues ?? [])]),
  }
  return withInternals(
    {
      kind: 'graph' as const,
      name: shape.name,
      version: shape.version,
      digest: shape.digest,
      hints: Object.freeze([]),
      steps: Object.freeze(shape.steps.map((step) => step.id)),
    },
    internals,
  )
}

/** `concurrency` is a limit like the others; where it is given in both places, the tighter one holds. */
function limitsOf({ limits, concurrency }: GraphOptions): Limits {
  const given = limitsTaken(limits ?? {})
  if (concurrency === undefined) return given
  return { ...given, concurrency: Math.min(concurrency, given.concurrency ?? concurrency) }
}

/** What makes the output, checked by the graph's schema. It is called where the run ends, which can't wait: the schema must answer at once. */
function outputOf(result: Code['output'], schema: Schema | undefined): Code['output'] {
  const made = result && atOnce(result, '`output`')
  if (schema === undefined) return made
  const validate = atOnce((value: unknown) => schema['~standard'].validate(value), "the schema of the graph's output")
  return (ctx) => {
    const checked = validate(made === undefined ? ctx.steps : made(ctx))
    if (checked.issues === undefined) return checked.value
    throw new TypeError(notValid('the output', checked.issues))
  }
}

interface ReadStep {
  readonly shape: StepShape
  /** How its attempts are to be treated. */
  readonly attempts: AgentShape
  readonly code: StepCode
  readonly problems: readonly Problem[]
}

/** Checks one step and makes its data and its code; with problems, neither is to be used. */
function readStep({ kind, id, def }: Link): ReadStep {
  const where = `steps.${typeof id === 'string' ? id : '?'}`
  const given = (aRecord.is(def) ? def : {}) as Given
  const child = kind === 'step' ? childOf(given['run'], where) : null
  const after = texts.is(given['after']) ? (given['after'] as readonly string[]) : []
  const spec = joinSpec(aJoin.is(given['join']) ? (given['join'] as Join) : 'all')
  const timeoutMs = (given['timeoutMs'] as number | undefined) ?? null
  const problems: Problem[] = [
    ...[nameProblem(id)].filter((why) => why !== null).map((message) => ({ code: 'BAD_NAME', where, message })),
    ...(aRecord.is(def) ? [] : [{ code: 'BAD_OPTION', where, message: `a step is { run, … }, not ${shown(def)}` }]),
    ...optionProblems(given, kind === 'step' ? stepKinds : askKinds, where),
    ...missingProblems(given, kind === 'step' ? ['run'] : ['question', 'schema'], where),
    ...retryProblems(given['retry'], `${where}.retry`),
    ...[joinProblem(spec, after.length)]
      .filter((why) => why !== null)
      .map((message) => ({ code: 'BAD_JOIN', where: `${where}.join`, message })),
    ...gateProblems(given['join'], `${where}.join`),
    ...fallbackProblems(given['onError'], `${where}.onError`),
    ...(kind === 'step' ? idleProblems(given, where) : []),
    ...(child?.problems ?? []),
    ...(child !== null && id === undoName ? [reservedProblem(where)] : []),
  ]
  const shape: StepShape = {
    id: String(id),
    after,
    join: spec,
    kind: kind === 'ask' ? 'ask' : child === null ? 'run' : 'child',
    hasWhen: given['when'] !== undefined,
    hasEach: given['each'] !== undefined,
    concurrency: (given['concurrency'] as number | undefined) ?? null,
    onError: (given['onError'] as OnError | undefined) ?? 'fail',
    expiresMs: kind === 'ask' ? timeoutMs : null,
    compensates: given['compensate'] !== undefined,
  }
  const attempts: AgentShape = {
    takes: [],
    maxRejections: 0,
    retry: retryShape(given['retry'] as Retry | undefined),
    timeoutMs: kind === 'ask' ? null : timeoutMs,
  }
  return { shape, attempts, code: codeOf(shape, given, child?.definition ?? null), problems }
}

/** A child run is undone by the run `<child>:undo`, which must not be that of a step. */
const undoName = 'undo'
const reservedProblem = (where: string): Problem => ({
  code: 'RESERVED_NAME',
  where,
  message: `a run of its own can't be the step '${undoName}': the run that undoes others has that name; rename the step`,
})

/** The definition that a step runs: the one given, or `Start -> X -> End` around an agent. null: the step is code. */
function childOf(run: unknown, where: string): { definition: Definition | null; problems: readonly Problem[] } | null {
  if (isDefinition(run)) return { definition: run, problems: [] }
  if (agentSpecOf(run) === undefined) return null
  const { name } = run as Agent
  try {
    // The agent's schemas are its own: the topology's would be held to what they made of a value.
    return { definition: topology({ name, flows: [`Start -> ${name}`, `${name} -> End`], agents: [run as Agent] }), problems: [] }
  } catch (error) {
    if (!TuttiError.is(error, 'INVALID_TOPOLOGY')) throw error
    return {
      definition: null,
      problems: (error.problems ?? []).map((problem) => ({ ...problem, where: `${where}.run, ${problem.where}` })),
    }
  }
}

function missingProblems(given: Given, needed: readonly string[], where: string): Problem[] {
  return needed
    .filter((key) => given[key] === undefined)
    .map((key) => ({ code: 'BAD_OPTION', where: `${where}.${key}`, message: `this step needs a \`${key}\`` }))
}

/** A gate opens by a policy and cancels nothing, so what a fork's join says beside its policy has no meaning there. */
function gateProblems(join: unknown, where: string): Problem[] {
  if (!aRecord.is(join) || !('policy' in (join as object))) return []
  const beside = Object.keys(join as object).filter((key) => key !== 'policy')
  return beside.map((key) => ({
    code: 'BAD_JOIN',
    where: `${where}.${key}`,
    message: `a step's join has a policy and nothing else${ofForks.includes(key) ? `: \`${key}\` is for forks` : `, no \`${key}\``}`,
  }))
}

const ofForks: readonly string[] = ['timeoutMs', 'stragglers', 'insufficient']

function fallbackProblems(onError: unknown, where: string): Problem[] {
  if (!aRecord.is(onError) || !('fallback' in (onError as object))) return []
  const checked = toJson((onError as { fallback: unknown }).fallback)
  if (!('problem' in checked)) return []
  return [
    {
      code: 'BAD_OPTION',
      where: `${where}.fallback`,
      message: `a fallback is journaled, so it must be JSON: ${checked.path}: ${checked.problem}`,
    },
  ]
}

function codeOf(shape: StepShape, given: Given, child: Definition | null): StepCode {
  const only = (from: string, to: string = from): Given => (given[from] === undefined ? {} : { [to]: given[from] })
  const retryIf = (given['retry'] as Retry | undefined)?.if
  const common = { id: shape.id, ...only('when'), ...only('each'), ...only('compensate'), ...(retryIf === undefined ? {} : { retryIf }) }
  if (shape.kind === 'ask') return Object.freeze({ ...common, kind: 'ask', ...only('question'), ...only('schema') }) as StepCode
  if (shape.kind === 'child') return Object.freeze({ ...common, kind: 'child', child, ...only('input') }) as unknown as StepCode
  return Object.freeze({ ...common, kind: 'run', ...only('run') }) as StepCode
}

/** Options that nothing would come of: `concurrency` counts the items of `each`, and `input` feeds an agent or a definition. */
function idleProblems(given: Given, where: string): Problem[] {
  const problems: Problem[] = []
  if (given['concurrency'] !== undefined && given['each'] === undefined)
    problems.push({
      code: 'CONCURRENCY_WITHOUT_EACH',
      where: `${where}.concurrency`,
      message: 'concurrency counts the items of `each`, and this step has none; how many steps run at once is an option of the graph',
    })
  if (given['input'] !== undefined && typeof given['run'] === 'function')
    problems.push({
      code: 'INPUT_UNUSED',
      where: `${where}.input`,
      message: '`input` feeds an agent or a definition; this step is code and never sees it',
    })
  return problems
}

function requiredProblems(required: unknown, steps: readonly ReadStep[]): Problem[] {
  if (!texts.is(required)) return []
  const ids = new Set(steps.map((step) => step.shape.id))
  return (required as readonly string[])
    .filter((id) => !ids.has(id))
    .map((id) => ({ code: 'UNKNOWN_STEP', where: 'required', message: `there is no step '${id}' that could be required` }))
}

/** Names that occur twice, dependencies that don't exist, and cycles. */
function orderProblems(steps: readonly StepShape[]): Problem[] {
  const problems: Problem[] = []
  const byId = new Map<string, StepShape>()
  for (const step of steps) {
    if (byId.has(step.id))
      problems.push({
        code: 'DUPLICATE_STEP',
        where: `steps.${step.id}`,
        message: `there are two steps '${step.id}'; give each an id of its own`,
      })
    else byId.set(step.id, step)
  }
  for (const { id, after } of steps) {
    for (const [index, dependency] of after.entries()) {
      const where = `steps.${id}.after`
      if (!byId.has(dependency))
        problems.push({ code: 'UNKNOWN_STEP', where, message: `'${id}' comes after '${dependency}', but there is no such step` })
      else if (after.indexOf(dependency) !== index)
        problems.push({ code: 'DUPLICATE_DEPENDENCY', where, message: `'${id}' names '${dependency}' twice; drop one` })
    }
  }
  return [...problems, ...cycleProblems(byId)]
}

/** Takes away what can run, step by step; what remains contains a cycle, which is told and taken away, until nothing remains. */
function cycleProblems(byId: ReadonlyMap<string, StepShape>): Problem[] {
  const problems: Problem[] = []
  const left = new Set(byId.keys())
  const waitsFor = new Map([...byId].map(([id, step]) => [id, new Set(step.after.filter((dependency) => byId.has(dependency)))]))
  const feeds = new Map<string, string[]>()
  for (const id of byId.keys()) feeds.set(id, [])
  for (const [id, dependencies] of waitsFor) for (const dependency of dependencies) feeds.get(dependency)?.push(id)
  const take = (ids: readonly string[]): void => {
    const todo = [...ids]
    for (let id = todo.pop(); id !== undefined; id = todo.pop()) {
      if (!left.delete(id)) continue
      for (const next of feeds.get(id) ?? []) {
        const waits = waitsFor.get(next)
        if (waits?.delete(id) === true && waits.size === 0) todo.push(next)
      }
    }
  }
  take([...left].filter((id) => waitsFor.get(id)?.size === 0))
  for (let [id] = left; id !== undefined; [id] = left) {
    const path: string[] = []
    for (let at: string | undefined = id; at !== undefined && !path.includes(at); [at] = waitsFor.get(at) ?? []) path.unshift(at)
    // The walk went against the arrows and stopped where it met itself again: what came before that is not on the cycle.
    const [again] = waitsFor.get(path[0] as string) ?? []
    const cycle = path.slice(0, path.indexOf(again as string) + 1)
    problems.push({
      code: 'CYCLE',
      where: [...cycle.slice(-1), ...cycle].join(' -> '),
      message:
        'each of these steps comes after the one before it, so none could ever start; take one out of its `after`. ' +
        'What is done over and over is a loop inside of one step, or a topology as a step',
    })
    take(cycle)
  }
  return problems
}
