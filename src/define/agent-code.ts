import type { Failure } from '../kernel/failure.js'
import type { MessageKind } from '../kernel/message.js'
import type { Problem } from '../kernel/problem.js'
import type { AgentShape } from '../kernel/shape.js'
import type { ActFn, AgentSpec, Handlers, Options } from './agent.js'
import { agentKinds } from './agent-kinds.js'
import {
  aBoolean,
  aFunction,
  aFunctionAtOnce,
  aRecord,
  aText,
  atLeastOne,
  type Kind,
  noMsOrMore,
  oneOrMore,
  optionProblems,
  optionsTaken,
  shown,
} from './option-check.js'
import { type Retry, retryShape } from './retry.js'
import type { Schema } from './schema.js'
import { toolDefinitionOf, toolNameProblem } from './tool.js'
import { toolboxDefinitionOf } from './toolbox.js'

/** An agent's code and what the engine needs to execute its turns. */
export interface AgentCode {
  readonly name: string
  /** null: a model. */
  readonly act: ActFn | Handlers | null
  readonly input?: Schema
  readonly output?: Schema
  readonly answer?: Schema
  readonly retryIf?: (failure: Failure) => boolean
  readonly options: Readonly<Options>
}

/** What became of one agent's spec. With problems, the rest is not to be used. */
export interface CheckedAgent {
  readonly code: AgentCode
  readonly shape: AgentShape
  readonly problems: readonly Problem[]
}

const messages: readonly MessageKind[] = ['request', 'merged', 'join', 'answer', 'expired', 'feedback']
const handlerKinds: Readonly<Record<string, Kind>> = Object.fromEntries(messages.map((kind) => [kind, aFunction]))

const retryKinds: Readonly<Record<string, Kind>> = {
  attempts: atLeastOne,
  backoffMs: noMsOrMore,
  factor: oneOrMore,
  maxBackoffMs: noMsOrMore,
  if: aFunctionAtOnce,
}

const breakerKinds: Readonly<Record<string, Kind>> = { failures: atLeastOne, probeMs: noMsOrMore }

/** Checks what was given for one agent and makes its code and its shape. */
export function checkAgent(name: string, spec: AgentSpec): CheckedAgent {
  const where = `agents.${name}`
  const problems = [
    ...optionProblems(spec, agentKinds, where),
    ...retryProblems(spec['retry'], `${where}.retry`),
    ...breakerProblems(spec['breaker'], `${where}.breaker`),
    ...toolProblems(spec['tools'], `${where}.tools`),
    ...guardrailProblems(spec['guardrails'], `${where}.guardrails`),
    ...modelOnlyProblems(spec, where),
    ...handlerProblems(spec['act'], `${where}.act`),
  ]
  const { act, input, output, answer, ...rest } = spec as Options & {
    act?: ActFn | Handlers
    input?: Schema
    output?: Schema
    answer?: Schema
  }
  const retryIf = (rest.retry as Retry | undefined)?.if
  const code: AgentCode = {
    name,
    act: typeof act === 'object' && act !== null ? boundHandlers(act) : (act ?? null),
    ...(input === undefined ? {} : { input }),
    ...(output === undefined ? {} : { output }),
    ...(answer === undefined ? {} : { answer }),
    ...(retryIf === undefined ? {} : { retryIf }),
    options: problems.length === 0 ? frozenOptions(rest) : rest,
  }
  const shape: AgentShape = {
    takes: takesOf(code.act),
    maxRejections: rest.maxRejections ?? 2,
    retry: retryShape(rest.retry),
    timeoutMs: rest.timeoutMs ?? null,
    ...(rest.compensate !== undefined && { compensates: true }),
    ...(Object.values(rest.tools ?? {}).some((tool) => toolDefinitionOf(tool)?.compensate !== undefined) && { toolsCompensate: true }),
    ...remembersOf(code.act, rest.memory),
  }
  return { code: Object.freeze(code), shape, problems }
}

/** What is wrong with the options of a retry. */
export function retryProblems(retry: unknown, where: string): Problem[] {
  return aRecord.is(retry) ? optionProblems(retry as AgentSpec, retryKinds, where) : []
}

function breakerProblems(breaker: unknown, where: string): Problem[] {
  if (!aRecord.is(breaker)) return []
  const given = breaker as AgentSpec
  const missing = Object.keys(breakerKinds).filter((key) => given[key] === undefined)
  return [
    ...optionProblems(given, breakerKinds, where),
    ...missing.map((key) => ({
      code: 'BAD_OPTION',
      where: `${where}.${key}`,
      message: `a breaker needs \`${key}\`: { failures, probeMs }`,
    })),
  ]
}

function toolProblems(tools: unknown, where: string): Problem[] {
  if (!aRecord.is(tools)) return []
  return Object.entries(tools as AgentSpec).flatMap(([name, tool]) => {
    const isTool = toolDefinitionOf(tool) !== undefined || toolboxDefinitionOf(tool) !== undefined
    const made = isTool ? null : `make it with tool({ description, input, run }) or mcp({ command }); this is ${shown(tool)}`
    const message = made ?? toolNameProblem(name)
    return message === null ? [] : [{ code: 'BAD_OPTION', where: `${where}.${name}`, message }]
  })
}

const guardrailKinds: Readonly<Record<string, Kind>> = { name: aText, before: aFunction, after: aFunction, parallel: aBoolean }

function guardrailProblems(guardrails: unknown, where: string): Problem[] {
  if (!Array.isArray(guardrails)) return []
  return guardrails.flatMap((guardrail: unknown, index) => {
    const at = `${where}[${index}]`
    if (aRecord.is(guardrail) && (guardrail as AgentSpec)['name'] !== undefined)
      return [...optionProblems(guardrail as AgentSpec, guardrailKinds, at), ...idleGuardrailProblems(guardrail as AgentSpec, at)]
    return [{ code: 'BAD_OPTION', where: at, message: `a guardrail is { name, before, after }, not ${shown(guardrail)}` }]
  })
}

/** One that looks at nothing, or says when it looks at a call before which it does not look. */
function idleGuardrailProblems({ before, after, parallel }: AgentSpec, where: string): Problem[] {
  if (before !== undefined) return []
  if (after === undefined) return [{ code: 'BAD_OPTION', where, message: 'a guardrail needs `before` or `after`' }]
  return parallel === undefined ? [] : [{ code: 'BAD_OPTION', where: `${where}.parallel`, message: '`parallel` is about `before`' }]
}

/** What code would ignore is refused. */
function modelOnlyProblems(spec: AgentSpec, where: string): Problem[] {
  if (spec['act'] === undefined) return []
  return ['model', 'instructions', 'tools', 'guardrails']
    .filter((option) => spec[option] !== undefined)
    .map((option) => ({
      code: 'BAD_OPTION',
      where: `${where}.${option}`,
      message: `${option} ${option === 'model' ? 'is' : 'are'} for agents that are models: leave \`act\` out, or use turn.step in the code`,
    }))
}

function handlerProblems(act: unknown, where: string): Problem[] {
  if (!aRecord.is(act)) return []
  const handlers = act as AgentSpec
  // An instance of a class has fields of its own beside its handlers; in a plain object, what is no handler is a misspelt one.
  const prototype: unknown = Object.getPrototypeOf(handlers)
  const plain = prototype === Object.prototype || prototype === null
  const known = Object.fromEntries(messages.map((kind) => [kind, handlers[kind]]))
  const problems = optionProblems(plain ? handlers : known, handlerKinds, where)
  if (handlers['request'] === undefined)
    problems.push({
      code: 'REQUEST_MISSING',
      where: `${where}.request`,
      message: 'handlers need a `request`: the turn that follows when the agent is called',
    })
  return problems
}

/** A function looks at its message itself and a model is told about it, so both take all; handlers take what they have. */
function takesOf(act: ActFn | Handlers | null): readonly MessageKind[] {
  if (typeof act !== 'object' || act === null) return messages
  return messages.filter((kind) => kind === 'request' || act[kind] !== undefined)
}

/** A model always remembers its own turn; code only what it is said to. */
function remembersOf(act: ActFn | Handlers | null, memory: Options['memory']): Pick<AgentShape, 'remembers'> {
  if (memory !== undefined) return { remembers: memory }
  return act === null ? { remembers: 'turn' } : {}
}

/** A copy that later changes don't reach, and whose functions still find what they call `this`. */
function boundHandlers(act: Handlers): Handlers {
  const bound: Record<string, unknown> = {}
  for (const kind of messages) {
    const handler: unknown = act[kind]
    if (typeof handler === 'function') bound[kind] = handler.bind(act)
  }
  return Object.freeze(bound) as unknown as Handlers
}

function frozenOptions(options: Options): Readonly<Options> {
  const copy: Options = { ...options }
  if (copy.retry !== undefined) copy.retry = Object.freeze(optionsTaken(copy.retry, Object.keys(retryKinds)))
  if (copy.tools !== undefined) copy.tools = Object.freeze({ ...copy.tools })
  if (copy.guardrails !== undefined)
    copy.guardrails = Object.freeze(copy.guardrails.map((guardrail) => Object.freeze(optionsTaken(guardrail, Object.keys(guardrailKinds)))))
  if (copy.breaker !== undefined) copy.breaker = Object.freeze(optionsTaken(copy.breaker, Object.keys(breakerKinds)))
  return Object.freeze(copy)
}
