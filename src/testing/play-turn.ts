import { checkOptions } from '../define/call-check.js'
import { checked } from '../define/check-schema.js'
import type { Definition, Topology, TopologyInternals } from '../define/definition.js'
import { internalsOf } from '../define/definition.js'
import { aFunction, aList, anything, aRecord, type Kind, oneOf } from '../define/option-check.js'
import type { Provided } from '../define/resource.js'
import type { Schema } from '../define/schema.js'
import type { Message } from '../define/turn.js'
import { TuttiError } from '../define/tutti-error.js'
import { systemClock } from '../engine/clock.js'
import { encodeEvents, encodeSnapshot } from '../engine/codec.js'
import { Engine } from '../engine/engine.js'
import type { Held } from '../engine/seam.js'
import type { Action, BranchState } from '../kernel/action.js'
import type { Command } from '../kernel/command.js'
import { decide } from '../kernel/decide.js'
import type { Event } from '../kernel/event.js'
import type { Failure } from '../kernel/failure.js'
import { toJson } from '../kernel/json.js'
import type { TurnMessage } from '../kernel/message.js'
import type { State } from '../kernel/state.js'
import { attemptOf, branchOf, newState } from '../kernel/state.js'
import type { ModelFactory } from '../models/model-factory.js'
import { simModel } from '../models/sim.js'
import { memoryStore } from '../stores/memory.js'

/** What the turn is given. */
export interface GivenTurn {
  request?: unknown
  message?: Message
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
const kinds: Readonly<Record<keyof GivenTurn, Kind>> = {
  request: anything,
  message: aMessage,
  state: anything,
  models: aFunction,
  resources: aList,
}

/** Plays one turn of one agent and gives the action it chose, as data. Without `models`, models are simulated. */
export async function playTurn<N extends string>(
  topology: Topology<never, unknown, N>,
  agent: NoInfer<N>,
  given: GivenTurn,
): Promise<Action> {
  const internals = internalsOf(topology)
  if (internals.kind !== 'topology') throw new TypeError('playTurn takes a topology')
  const code = internals.agents[agent]
  if (code === undefined) throw new TypeError(`'${topology.name}' has no agent ${agent}`)
  checkOptions('playTurn()', given, kinds)
  const command = await spoken(topology, owedTurn(internals, agent, { ...given, ...(await taken(code.input, given)) }), given)
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

/** The request as its schema makes it: no agent is ever asked with another. */
async function taken(input: Schema | undefined, { request }: GivenTurn): Promise<{ request?: unknown }> {
  if (request === undefined) return {}
  const made = await checked(input, request, 'the request')
  if ('problem' in made) throw new TuttiError('INVALID_INPUT', made.problem)
  return { request: made.value }
}

/** A run in which a turn is owed, and how it came there. */
interface Owed {
  readonly journal: readonly Event[]
  readonly state: State
}

/** A run in which this turn is owed: asked by somebody who waits for it, where the topology has one. */
function owedTurn(
  { shape, code, state: first }: TopologyInternals,
  agent: string,
  { request, message, state = first?.(request) }: GivenTurn,
): Owed {
  const callers = shape.edges.flatMap(({ from, to, notify }) =>
    to === agent && from !== 'Start' && from !== agent && notify !== true ? [from] : [],
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
  go({ type: 'run.start', runId, nonce: 'turn', shape: { ...shape, edges }, tags: {}, ...input, ...own })
  if (caller !== null) {
    const turn = attemptOf(now, 'r')
    if (turn === undefined) throw new Error(`${caller} has no turn`)
    go({ type: 'turn.complete', ...turn, action: { type: 'fork', calls: [{ to: agent, ...asked }], ...own } })
  }
  if (message === undefined) return { journal, state: now }
  const branch = branchOf(now, caller === null ? 'r' : 'r.0')
  const told = { ...branch, message: jsonOf(JSON.parse(JSON.stringify(message)), 'message') as TurnMessage }
  return { journal, state: { ...now, branches: now.branches.set(branch.id, told) } }
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
  return new Promise((resolve) => {
    const hold = (what: Held, go: () => void): void => {
      const said = what.type === 'command' && what.command.type.startsWith('turn.')
      if (said) resolve(what.command)
      else go()
    }
    const engine = new Engine({
      store,
      worker,
      clock: systemClock,
      ttlMs: 10_000,
      graceMs: 0,
      concurrency: Number.POSITIVE_INFINITY,
      definitions: [definition],
      resources: given.resources ?? [],
      models: (ref) => given.models?.(ref) ?? simModel(ref.agent),
      invariants: false,
      onLog: () => {},
      seam: { hold, later: (task) => setImmediate(task), nonce: () => 'turn', lend: (_, value) => value, committed: () => {} },
    })
    void engine
  })
}
