import { checkOptions } from '../define/call-check.js'
import { checked } from '../define/check-schema.js'
import type { Definition, Topology, TopologyInternals } from '../define/definition.js'
import { internalsOf } from '../define/definition.js'
import { aBoolean, aFunction, aList, anything, aRecord, aString, aText, type Kind, listOf, oneOf, shown } from '../define/option-check.js'
import { runLimits } from '../define/limits.js'
import type { Provided } from '../define/resource.js'
import type { Schema } from '../define/schema.js'
import type { Message } from '../define/turn.js'
import { TuttiError } from '../define/tutti-error.js'
import { encodeEvents, encodeSnapshot } from '../engine/codec.js'
import { Engine } from '../engine/engine.js'
import { sleepsUntil } from '../engine/run-view.js'
import type { Held } from '../engine/seam.js'
import type { Action, BranchState } from '../kernel/action.js'
import type { Command } from '../kernel/command.js'
import { decide } from '../kernel/decide.js'
import type { Event } from '../kernel/event.js'
import type { Failure } from '../kernel/failure.js'
import type { JoinData } from '../kernel/join.js'
import { sameJson, toJson } from '../kernel/json.js'
import type { TurnMessage } from '../kernel/message.js'
import type { Problem } from '../kernel/problem.js'
import { valuesOf } from '../kernel/reported.js'
import type { State } from '../kernel/state.js'
import { likely } from '../kernel/validate.js'
import { thrownText } from '../kernel/thrown-text.js'
import { attemptOf, branchOf, newState, requestsOf } from '../kernel/state.js'
import type { ModelFactory } from '../models/model-factory.js'
import { simModel } from '../models/sim.js'
import { memoryStore } from '../stores/memory.js'
import { providedList } from './explore/explore-check.js'
import { LeapingClock } from './leaping-clock.js'

/** What the turn is given. */
export interface GivenTurn {
  request?: unknown
  /** Of a join, `from` may be left out: it is made of the slots. */
  message?: Message | { kind: 'join'; join: JoinData }
  state?: unknown
  models?: ModelFactory
  resources?: readonly Provided[]
}

const runId = 'turn'

const aKind = oneOf('request', 'merged', 'join', 'answer', 'expired', 'feedback')
const aMessage: Kind = {
  is: (value) => aRecord.is(value) && aKind.is((value as { kind?: unknown }).kind),
  words: `an object whose kind is ${aKind.words}`,
}
const aRequest: Kind = { is: (value) => aRecord.is(value) && aText.is((value as { from?: unknown }).from), words: '{ from, value }' }
const requests = listOf(aRequest, aRequest.words)
const joinParts: Readonly<Record<string, Kind>> = { ok: aBoolean, slots: listOf(aRecord, 'objects'), values: aList, extra: aList }
const aJoin: Kind = {
  is: (value) => aRecord.is(value) && Object.entries(joinParts).every(([part, kind]) => kind.is((value as Record<string, unknown>)[part])),
  words: 'an object with ok, slots, values and extra',
}

/** What a message of each kind must have: no agent ever gets one without it. */
const parts: Readonly<Record<Message['kind'], Readonly<Record<string, Kind>>>> = {
  request: { from: aText },
  merged: { requests },
  join: { join: aJoin },
  answer: { askId: aText },
  expired: { askId: aText },
  feedback: { problem: aString },
}

function messageProblems({ message }: GivenTurn): Problem[] {
  if (!aMessage.is(message)) return []
  const { kind, ...given } = message as Message & Record<string, unknown>
  const problems = Object.entries(parts[kind]).flatMap(([part, { is, words }]) =>
    is(given[part]) ? [] : [{ code: 'BAD_OPTION', where: `message.${part}`, message: `${part} is ${words}, not ${shown(given[part])}` }],
  )
  return problems.length > 0 || message?.kind !== 'join' ? problems : valueProblems(message.join)
}

/** The values of a join are said twice: an agent would be given those of its slots, whatever else was meant. */
function valueProblems({ slots, values }: JoinData): Problem[] {
  if (sameJson(values, valuesOf(slots))) return []
  return [
    { code: 'BAD_OPTION', where: 'message.join.values', message: 'values is a list of what the slots that arrived have, in their order' },
  ]
}

const kinds: Readonly<Record<keyof GivenTurn, Kind>> = {
  request: anything,
  message: aMessage,
  state: aRecord,
  models: aFunction,
  resources: providedList,
}

/** Plays one turn of one agent and gives the action it chose, as data. Without `models`, models are simulated. */
export async function playTurn<N extends string>(
  topology: Topology<never, unknown, N>,
  agent: NoInfer<N>,
  given: GivenTurn,
): Promise<Action> {
  const internals = internalsOf(topology)
  if (internals.kind !== 'topology') throw new TuttiError('INVALID_INPUT', `playTurn() takes a topology, and '${topology.name}' is a graph`)
  const code = Object.hasOwn(internals.agents, agent) ? internals.agents[agent] : undefined
  if (code === undefined) {
    const names = Object.keys(internals.agents)
    const message = `'${topology.name}' has no agent ${String(agent)}${likely(String(agent), names)}; there are ${names.join(', ')}`
    throw new TuttiError('INVALID_INPUT', message)
  }
  checkOptions('playTurn()', given, kinds, messageProblems)
  const { kind = 'request' } = given.message ?? {}
  if (internals.shape.agents[agent]?.takes.includes(kind) === false)
    throw new TuttiError('INVALID_INPUT', `${agent} has no handler '${kind}': it is never given such a message`)
  const command = await spoken(topology, owedTurn(internals, agent, await taken(code.input, given)), given)
  switch (command.type) {
    case 'turn.complete':
      return command.action
    case 'turn.reject':
      throw failed(agent, { code: 'REJECTED', message: command.problem, retryable: false, at: { agent } })
    case 'turn.fail':
      throw failed(agent, command.error)
    default:
      throw new Error(`${agent} says ${command.type}`)
  }
}

const failed = (agent: string, failure: Failure): TuttiError =>
  new TuttiError('RUN_FAILED', `the turn of ${agent} failed: ${failure.message}`, { failure })

/** Every request as its schema makes it: no agent is ever asked with another. */
async function taken(input: Schema | undefined, given: GivenTurn): Promise<GivenTurn> {
  const made = async (request: unknown): Promise<unknown> => {
    const value = await checked(input, request, 'the request')
    if ('problem' in value) throw new TuttiError('INVALID_INPUT', value.problem)
    return value.value
  }
  const { request, message } = given
  return {
    ...given,
    ...(request !== undefined && { request: await made(request) }),
    ...(message?.kind === 'request' && { message: { ...message, value: await made(message.value) } }),
    ...(message?.kind === 'merged' && {
      message: {
        ...message,
        requests: await Promise.all(message.requests.map(async (asked) => ({ ...asked, value: await made(asked.value) }))),
      },
    }),
  }
}

/** A run in which a turn is owed, and how it came there. */
interface Owed {
  readonly journal: readonly Event[]
  readonly state: State
}

/**
 * A run in which this turn is owed: asked by somebody who waits for it, where the topology has one that can. It is no run of the user's: the
 * limits of those say nothing of it.
 */
function owedTurn(
  definition: TopologyInternals,
  agent: string,
  { request, message, state = firstState(definition, request) }: GivenTurn,
): Owed {
  const { shape, code } = definition
  const callers = shape.edges.flatMap(({ from, to, notify }) =>
    to === agent && from !== 'Start' && from !== agent && notify !== true && shape.agents[from]?.takes.includes('join') ? [from] : [],
  )
  const caller = callers.find((from) => shape.edges.some((edge) => edge.from === agent && edge.to === from)) ?? null
  const asking = caller ?? agent
  const edges = [{ from: 'Start', to: asking }, ...shape.edges.filter(({ from }) => from !== 'Start')]
  const journal: Event[] = []
  const own = state === undefined ? {} : { state: jsonOf(state, 'state') as BranchState }
  const asked = request === undefined ? {} : { request: jsonOf(request, 'request') }
  let now: State = newState
  const go = (command: Command): void => {
    const decision = decide(now, command, 0, code)
    if ('refusal' in decision) throw new Error(decision.refusal.message)
    journal.push(...decision.events)
    now = decision.state
  }
  const input = caller === null && request !== undefined ? { input: asked.request } : {}
  go({ type: 'run.start', runId, nonce: 'turn', shape: { ...shape, edges, limits: runLimits({}) }, tags: {}, ...input, ...own })
  if (caller !== null) {
    const turn = attemptOf(now, 'r')
    if (turn === undefined) throw new Error(`${caller} has no turn`)
    go({ type: 'turn.complete', ...turn, action: { type: 'fork', calls: [{ to: agent, ...asked }], ...own } })
  }
  const rejected = journal.find((event) => event.type === 'turn.rejected')
  if (rejected !== undefined) throw new TuttiError('INVALID_INPUT', `the turn can not be given this: ${rejected.problem}`)
  if (message === undefined) return { journal, state: now }
  const branch = branchOf(now, caller === null ? 'r' : 'r.0')
  // What it was last asked stays the same in the turns that follow.
  const told = journaled(message)
  const requests = told.kind === 'request' ? null : told.kind === 'merged' ? told.requests : requestsOf(branch)
  const telling = { ...branch, message: told, requests }
  return { journal, state: { ...now, branches: now.branches.set(branch.id, telling) } }
}

/** What a run begins with that is started with this request. */
function firstState({ state }: TopologyInternals, request: unknown): unknown {
  try {
    return state?.(request)
  } catch (cause) {
    const hint = 'give the turn its state: playTurn(topology, agent, { state })'
    throw new TuttiError('INVALID_INPUT', `\`state\` threw for this request: ${thrownText(cause)}`, { hint, cause })
  }
}

/** As journals hold it: what a join has beside its slots is made of them. */
function journaled(message: NonNullable<GivenTurn['message']>): TurnMessage {
  if (message.kind !== 'join') return jsonOf(message, 'message') as TurnMessage
  const { ok, slots, extra } = message.join
  const { join } = jsonOf({ join: { ok, slots, extra } }, 'message') as { readonly join: JoinData }
  return { kind: 'join', join: { ...join, values: valuesOf(join.slots) as JoinData['values'] } }
}

function jsonOf(value: unknown, what: string): unknown {
  const json = toJson(value)
  if ('problem' in json) throw new TuttiError('INVALID_INPUT', `the ${what} is no JSON at ${json.path}: ${json.problem}`)
  return json.value
}

/** Lets an engine find that run, and gives what the turn has to say. */
async function spoken(definition: Definition, { journal, state }: Owed, given: GivenTurn): Promise<Command> {
  const store = memoryStore()
  const worker = await store.join({ nonce: 'turn' })
  const { rows, blobs } = encodeEvents(journal)
  const snapshot = encodeSnapshot(state)
  const create = { definition: definition.name, version: definition.version, tags: {} }
  await store.commit([
    {
      run: runId,
      create,
      expect: 0,
      head: journal.length,
      by: worker,
      rows,
      blobs,
      at: 0,
      status: 'running',
      wake: 0,
      marks: [],
      puts: [],
      ...(snapshot !== null && { snapshot }),
    },
  ])
  const clock = new LeapingClock()
  return new Promise((resolve) => {
    const hold = (what: Held, go: () => void): void => {
      if (what.type !== 'command' || !what.command.type.startsWith('turn.')) return go()
      resolve(what.command)
      // What it has left behind, as a sleep that lost its race, keeps nobody alive.
      setImmediate(() => void engine.close())
    }
    // Each of its tasks may be the one after which nothing but a sleep is waited for.
    const later = (task: () => void): void => {
      setImmediate(() => {
        task()
        setImmediate(() => void leapOver(engine, clock))
      })
    }
    const engine = new Engine({
      store,
      worker,
      clock,
      ttlMs: 10_000,
      graceMs: 0,
      concurrency: Number.POSITIVE_INFINITY,
      definitions: [definition],
      resources: given.resources ?? [],
      models: (ref) => given.models?.(ref) ?? simModel(ref.agent),
      invariants: false,
      onLog: () => {},
      seam: { hold, later, nonce: () => 'turn', lend: (_, value) => value, committed: () => later(() => {}) },
    })
  })
}

/** A turn that only sleeps is not waited for: its time comes at once. */
async function leapOver(engine: Engine, clock: LeapingClock): Promise<void> {
  const entry = engine.closed ? null : await engine.entry(runId)
  if (entry === null) return
  const until = sleepsUntil(entry.state)
  if (until !== null && [...entry.executions.values()].every(({ isAsleep }) => isAsleep)) clock.leapTo(until)
}
