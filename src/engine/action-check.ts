import type { TopologyInternals } from '../define/definition.js'
import type { Schema } from '../define/schema.js'
import { deepFreeze } from '../kernel/deep-freeze.js'
import type { Action, BranchState, Fork } from '../kernel/action.js'
import type { Failure } from '../kernel/failure.js'
import type { Join } from '../kernel/join.js'
import { jsonSize, toJson } from '../kernel/json.js'
import type { Branch, State } from '../kernel/state.js'
import { likely } from '../kernel/validate.js'
import { bytesOver } from '../define/bytes-over.js'
import type { Checked } from '../define/check-schema.js'
import { asJson, checkedJson } from '../define/check-schema.js'
import { failureOf, tooLarge } from '../define/failure-of.js'
import type { Maybe } from '../define/maybe.js'
import { andThen } from '../define/maybe.js'
import { aSchema } from '../define/option-check.js'
import { jsonSchemaOf } from '../define/json-schema.js'
import { invokeForm } from './invoke-form.js'
import { takenSize } from './taken-action.js'

/** A returned action that is data and passes the schemas, with the live schema of an ask; or why it is sent back. */
export type Verified = { readonly action: Action; readonly askSchema?: Schema } | { readonly problem: string }

const howTo = 'return one of turn.invoke, turn.reply, turn.fork, turn.finish, turn.ask or turn.fail'

/**
 * Checks what a turn returned before the kernel decides: that it is an action, that its values are JSON, and what the schemas say of them.
 * The values are taken before it returns, whatever the schemas wait for.
 */
export function verifyAction(
  definition: TopologyInternals,
  state: State,
  branch: Branch,
  waiting: string | null,
  returned: unknown,
  maxValue: number,
): Maybe<Verified> {
  if (typeof returned !== 'object' || returned === null || !('type' in returned))
    return { problem: `${branch.agent} (branch ${branch.id}) returned ${described(returned)}: ${howTo}` }
  const given = returned as Given
  const taken = takenSize(given)
  // Of what most turns return nobody has anything to say.
  if (taken !== null && isFree(definition, branch, waiting, given))
    return fitting(branch, { action: given as unknown as Action }, taken, maxValue)
  const verifying = verify(definition, state, branch, waiting, given, taken !== null)
  const sized = (verified: Verified): Verified => {
    if ('problem' in verified) return verified
    return fitting(branch, verified, takenSize(verified.action) ?? jsonSize(verified.action), maxValue)
  }
  return verifying instanceof Promise ? verifying.then(sized) : sized(verifying)
}

/** Throws if the store does not take it. */
function fitting({ agent }: Branch, verified: Extract<Verified, { action: Action }>, size: number, maxValue: number): Verified {
  const over = bytesOver(maxValue, size, verified.action)
  if (over !== null) throw tooLarge(`what ${agent} returned`, over, maxValue)
  return verified
}

/** What may be said of an action beside its values. */
export const actionOptions: Readonly<Record<OptionedAction, readonly string[]>> = {
  invoke: ['state'],
  reply: ['state'],
  fork: ['request', 'join', 'compensate', 'state'],
  ask: ['timeoutMs', 'schema', 'state'],
}

export type OptionedAction = 'invoke' | 'reply' | 'fork' | 'ask'

const actionValues: Readonly<Record<string, readonly string[]>> = {
  invoke: ['to', 'request'],
  reply: ['value'],
  fork: ['calls'],
  finish: ['output'],
  ask: ['question'],
  fail: ['error'],
}

/** What an action has and would not be looked at. Options that are none are handed on by turn.fork and the others, as `options`. */
function unknownProblem(type: string, action: Readonly<Record<string, unknown>>): string | null {
  const values = Object.hasOwn(actionValues, type) ? actionValues[type] : undefined
  if (values === undefined) return null
  const options = Object.hasOwn(actionOptions, type) ? actionOptions[type as OptionedAction] : []
  if (action['options'] !== undefined) return optionsProblem(type, options, action['options'])
  for (const key in action)
    if (key !== 'type' && action[key] !== undefined && !values.includes(key) && !options.includes(key)) return noOption(type, key, options)
  return null
}

function optionsProblem(type: string, known: readonly string[], options: unknown): string | null {
  if (typeof options !== 'object' || options === null || Array.isArray(options))
    return `the options of ${type} are an object, not ${described(options)}`
  const other = Object.entries(options).find(([option, value]) => value !== undefined && !known.includes(option))
  return other === undefined ? null : noOption(type, other[0], known)
}

function noOption(type: string, option: string, known: readonly string[]): string {
  return `${type} has no option '${option}'${likely(option, known)}; it has ${known.length === 0 ? 'none' : known.join(', ')}`
}

type Given = Readonly<Record<string, unknown>> & { readonly type: unknown }

function verify(
  definition: TopologyInternals,
  state: State,
  branch: Branch,
  waiting: string | null,
  given: Given,
  isTaken: boolean,
): Maybe<Verified> {
  const unknown = typeof given.type === 'string' ? unknownProblem(given.type, given) : null
  if (unknown !== null) return { problem: unknown }
  const check = new Checker(definition, state, branch, waiting, isTaken ? (given as unknown as Action) : null)
  const carry = check.state(given['state'])
  if ('problem' in carry) return carry
  switch (given.type) {
    case 'invoke':
      return check.invoke(given['to'], given['request'], carry)
    case 'reply':
      return check.reply(given['value'], carry)
    case 'fork':
      return check.fork(given, carry)
    case 'finish':
      return check.finish(given['output'])
    case 'ask':
      return check.ask(given, carry)
    case 'fail':
      return check.fail(given['error'])
    default:
      return { problem: `${branch.agent} (branch ${branch.id}) returned an object of type ${described(given.type)}: ${howTo}` }
  }
}

/** Whether an action that its turn has made sends a value and nothing else, and no schema asks for more of that. */
function isFree({ agents, output }: TopologyInternals, { agent }: Branch, waiting: string | null, given: Given): boolean {
  if (given['options'] !== undefined || given['state'] !== undefined) return false
  if (agents[agent]?.output !== undefined) return false
  if (given.type === 'reply') return waiting === null || agents[waiting]?.input === undefined
  return given.type === 'finish' && output === undefined
}

/** What an action that was made by hand fails with: as if it had been thrown, so that a code of its own is data. Who fails on purpose is not tried again. */
function failureGiven(error: unknown): Failure {
  const json = toJson(error)
  const { code, message, data } = 'value' in json ? ((json.value ?? {}) as Partial<Failure>) : {}
  if (code !== 'AGENT_FAILED' || typeof message !== 'string') return Object.freeze({ ...failureOf(error), retryable: false })
  return deepFreeze({ code, message, retryable: false, at: {}, ...(data !== undefined && { data }) })
}

function described(value: unknown): string {
  if (value === undefined) return 'nothing'
  const json = toJson(value)
  if ('problem' in json) return `something that is no action (${json.problem})`
  const text = JSON.stringify(json.value) ?? 'nothing'
  return text.length > 80 ? `${text.slice(0, 80)}…` : text
}

type Carry = { readonly state?: BranchState }

const given = <K extends string>(key: K, value: unknown): { readonly [P in K]?: unknown } =>
  (value === undefined ? {} : { [key]: value }) as { readonly [P in K]?: unknown }

type Call = Fork['calls'][number]

class Checker {
  readonly #definition: TopologyInternals
  readonly #state: State
  readonly #branch: Branch
  readonly #waiting: string | null
  /** The action itself, if its values were taken when it was made: what no schema changes is left as it is. */
  readonly #taken: Action | null

  constructor(definition: TopologyInternals, state: State, branch: Branch, waiting: string | null, taken: Action | null) {
    this.#definition = definition
    this.#state = state
    this.#branch = branch
    this.#waiting = waiting
    this.#taken = taken
  }

  state(state: unknown): Carry | { readonly problem: string } {
    if (state === undefined) return {}
    const json = this.#json(state, 'the state')
    if ('problem' in json) return json
    if (typeof json.value !== 'object' || json.value === null || Array.isArray(json.value)) return { problem: 'the state must be a record' }
    return { state: json.value as BranchState }
  }

  invoke(to: unknown, request: unknown, carry: Carry): Maybe<Verified> {
    if (typeof to !== 'string') return { problem: `invoke needs the name of an agent, not ${described(to)}` }
    return andThen(this.#sent(to, request), (value) => {
      if ('problem' in value) return value
      if (this.#taken !== null && value.value === request) return { action: this.#taken }
      return { action: Object.freeze({ type: 'invoke', to, ...given('request', value.value), ...carry }) }
    })
  }

  reply(returned: unknown, carry: Carry): Maybe<Verified> {
    return andThen(this.#sent(this.#waiting, returned), (value) => {
      if ('problem' in value) return value
      if (this.#taken !== null && value.value === returned) return { action: this.#taken }
      return { action: Object.freeze({ type: 'reply', ...given('value', value.value), ...carry }) }
    })
  }

  fork(fork: Readonly<Record<string, unknown>>, carry: Carry): Maybe<Verified> {
    if (!Array.isArray(fork['calls'])) return { problem: 'fork needs a list of calls' }
    const join = this.#json(fork['join'], 'the join')
    if ('problem' in join) return join
    const unknown = joinShapeProblem(join.value)
    if (unknown !== null) return { problem: unknown }
    const { compensate } = fork
    if (compensate !== undefined && typeof compensate !== 'boolean') return { problem: 'the compensate of a fork is true or false' }
    const listed = fork['calls'] as readonly unknown[]
    // What was taken when it was made needs no list of its own.
    const calls: Call[] = this.#taken !== null ? (listed as Call[]) : []
    const { agents } = this.#definition
    let isFree = true
    for (let index = 0; index < listed.length; index++) {
      const call = listed[index]
      const to = typeof call === 'object' && call !== null ? (call as { to?: unknown }).to : undefined
      if (typeof to !== 'string') return { problem: `call ${index} of the fork names no agent` }
      const other = otherThanCall(call as object)
      if (other !== null) return { problem: `call ${index} of the fork has no option '${other}': a call is { to, request }` }
      if (agents[to]?.input !== undefined) isFree = false
      if (this.#taken === null) {
        const request = asJson((call as { request?: unknown }).request, `the request to ${to}`)
        if ('problem' in request) return { problem: `call ${index} of the fork: ${request.problem}` }
        calls.push(Object.freeze({ to, ...given('request', request.value) }))
      }
    }
    if (this.#taken !== null && isFree && compensate !== false) return { action: this.#taken }
    // No schema is asked before all calls are taken, because one may take its time.
    return andThen(isFree ? calls : this.#asReceived(calls), (received) => {
      if ('problem' in received) return received
      const made = {
        type: 'fork' as const,
        calls: Object.freeze(received),
        ...(join.value !== undefined && { join: join.value as Join }),
        ...(compensate === true && { compensate }),
        ...carry,
      }
      return { action: Object.freeze(made) }
    })
  }

  /** The calls as those who are called take them. */
  async #asReceived(calls: readonly Call[]): Promise<Call[] | { readonly problem: string }> {
    const received: Call[] = []
    for (const [index, { to, request }] of calls.entries()) {
      const checking = checkedJson(this.#definition.agents[to]?.input, request, `the request to ${to}`)
      const value = checking instanceof Promise ? await checking : checking
      if ('problem' in value) return { problem: `call ${index} of the fork: ${value.problem}` }
      received.push(Object.freeze({ to, ...given('request', value.value) }))
    }
    return received
  }

  fail(error: unknown): Verified {
    return { action: this.#taken ?? Object.freeze({ type: 'fail', error: failureGiven(error) }) }
  }

  finish(output: unknown): Maybe<Verified> {
    const schema = this.#definition.output ?? this.#definition.agents[this.#branch.agent]?.output
    return andThen(this.#checked(schema, output, 'the output'), (value) => {
      if ('problem' in value) return value
      if (this.#taken !== null && value.value === output) return { action: this.#taken }
      return { action: Object.freeze({ type: 'finish', ...given('output', value.value) }) }
    })
  }

  ask(ask: Readonly<Record<string, unknown>>, carry: Carry): Verified {
    const question = this.#json(ask['question'], 'the question')
    if ('problem' in question) return question
    if (ask['schema'] !== undefined && !aSchema.is(ask['schema']))
      return { problem: `the schema of an ask is ${aSchema.words}, not ${described(ask['schema'])}` }
    const live = ask['schema'] as Schema | undefined
    const schema = jsonSchemaOf(live ?? this.#definition.agents[this.#branch.agent]?.answer)
    const timeoutMs = ask['timeoutMs']
    if (timeoutMs !== undefined && typeof timeoutMs !== 'number') return { problem: 'the timeoutMs of an ask must be a number' }
    const made = {
      type: 'ask' as const,
      question: question.value ?? null,
      ...(timeoutMs !== undefined && { timeoutMs }),
      ...(schema !== undefined && { schema }),
      ...carry,
    }
    return { action: Object.freeze(made), ...(live !== undefined && { askSchema: live }) }
  }

  /** What is sent arrives as what its schema makes of it. */
  #sent(to: string | null, value: unknown): Maybe<Checked> {
    const { schema, what } = invokeForm(this.#definition, this.#state, this.#branch, to)
    return this.#checked(schema, value, what)
  }

  #checked(schema: Schema | undefined, value: unknown, what: string): Maybe<Checked> {
    const json = this.#json(value, what)
    return 'problem' in json ? json : checkedJson(schema, json.value, what)
  }

  #json(value: unknown, what: string): Checked {
    return this.#taken !== null ? { value } : asJson(value, what)
  }
}

/** A fork may have thousands of calls: nothing is made to look at one. */
function otherThanCall(call: object): string | null {
  for (const key in call) if (key !== 'to' && key !== 'request') return key
  return null
}

const policies: readonly unknown[] = ['all', 'any', 'majority', 'settled']

/** A join that is no join at all; whether it can be met is the kernel's to say. */
function joinShapeProblem(join: unknown): string | null {
  if (join === undefined) return null
  const whole =
    typeof join === 'object' && join !== null && 'policy' in join ? (join as Readonly<Record<string, unknown>>) : { policy: join }
  const { policy, stragglers, insufficient, timeoutMs } = whole as Readonly<Record<string, unknown>>
  const numbered =
    typeof policy === 'object' &&
    policy !== null &&
    Object.entries(policy).every(([key, value]) => (key === 'quorum' || key === 'ratio') && typeof value === 'number') &&
    Object.keys(policy).length === 1
  if (!policies.includes(policy) && !numbered)
    return `${described(policy)} is no join: use 'all', 'any', 'majority', 'settled', { quorum } or { ratio }`
  if (stragglers !== undefined && stragglers !== 'cancel' && stragglers !== 'wait') return "the stragglers of a join are 'cancel' or 'wait'"
  if (insufficient !== undefined && insufficient !== 'fail' && insufficient !== 'resume' && insufficient !== 'ask')
    return "the insufficient of a join is 'fail', 'resume' or 'ask'"
  if (timeoutMs !== undefined && typeof timeoutMs !== 'number') return 'the timeoutMs of a join must be a number'
  const other = Object.keys(whole).find((key) => !['policy', 'stragglers', 'insufficient', 'timeoutMs'].includes(key))
  return other === undefined ? null : `a join has no option '${other}'`
}
