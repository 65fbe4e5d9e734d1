import type { AgentCode } from '../define/agent-code.js'
import type { AskAction, BranchState, Fail, Finish, Fork, Invoke, Reply } from '../kernel/action.js'
import type { Join, JoinData } from '../kernel/join.js'
import { memoryOf } from '../kernel/memory.js'
import type { TurnMessage } from '../kernel/message.js'
import type { Asked, Branch, State } from '../kernel/state.js'
import { requestsOf, targetsOf, waitingAgent } from '../kernel/state.js'
import type { Schema } from '../define/schema.js'
import type { JoinResult, MemoryEntry, Turn } from '../define/turn.js'
import { codeMemory, modelMemory } from '../models/memory-entries.js'
import { actionOptions, type OptionedAction } from './action-check.js'
import { deepFreeze } from '../kernel/deep-freeze.js'
import type { Maybe } from '../define/maybe.js'
import { failureOf } from '../define/failure-of.js'
import { taken } from './taken-action.js'
import { BoundWork, type WorkParts } from './work-parts.js'

/** An ask with its live schema, which no journal can hold. */
export type LiveAsk = Omit<AskAction, 'schema'> & { readonly schema?: Schema }

type Options = { readonly state?: BranchState }

/** The state that goes along, and options that an action does not have: making one does nothing, so what is wrong is said when it is returned. */
function carried(type: OptionedAction, options: Options | undefined): { state?: BranchState; options?: unknown } {
  const given: unknown = options
  if (typeof given !== 'object' || given === null || Array.isArray(given)) return { options }
  const state = options?.state === undefined ? {} : { state: options.state }
  for (const option in given) if (!actionOptions[type].includes(option)) return { ...state, options }
  return state
}

// What makes an action needs nothing of its turn, so all turns share these.
const invoke = (to: string, request?: unknown, options?: Options): Invoke =>
  taken({
    type: 'invoke',
    to,
    ...(request !== undefined && { request }),
    ...(options !== undefined && carried('invoke', options)),
  })
const reply = (value?: unknown, options?: Options): Reply =>
  taken({
    type: 'reply',
    ...(value !== undefined && { value }),
    ...(options !== undefined && carried('reply', options)),
  })
const finish = (output?: unknown): Finish => taken({ type: 'finish', ...(output !== undefined && { output }) })
const ask = (question: unknown, options?: Options & { timeoutMs?: number; schema?: Schema }): LiveAsk =>
  taken({
    type: 'ask',
    question,
    ...(options?.timeoutMs !== undefined && { timeoutMs: options.timeoutMs }),
    ...(options?.schema !== undefined && { schema: options.schema }),
    ...(options !== undefined && carried('ask', options)),
  })
const fail = (error: unknown): Fail => taken({ type: 'fail', error: { ...failureOf(error), retryable: false } })
const noMemory: readonly MemoryEntry[] = Object.freeze([])

/** What the agent of a branch remembers from before this turn. */
function remembered(state: State, { agent, memory }: Branch, isModel: boolean): readonly MemoryEntry[] {
  const remembers = state.run?.shape.agents[agent]?.remembers
  if (remembers === undefined) return noMemory
  const said = remembers === 'session' ? (state.run?.conversation ?? []) : []
  return deepFreeze((isModel ? modelMemory : codeMemory)(said, memoryOf(memory, agent)))
}

/**
 * What a turn's code is given: frozen, with its functions as own, bound properties, because people write `({ step, use }) => …`. What is
 * made only when it is asked for stands on the prototype: a getter of its own would give every turn a shape of its own.
 */
class TurnView extends BoundWork {
  declare readonly attempt: number
  declare readonly runId: string
  declare readonly branchId: string
  declare readonly tags: Turn['tags']
  declare readonly agent: string
  declare readonly turn: number
  declare readonly message: TurnMessage
  declare readonly request: unknown
  declare readonly requests: readonly Asked[]
  declare readonly state: BranchState | undefined
  declare readonly waiting: string | null
  declare readonly invoke: typeof invoke
  declare readonly reply: typeof reply
  declare readonly fork: typeof forkOf
  declare readonly finish: typeof finish
  declare readonly ask: typeof ask
  declare readonly fail: typeof fail
  readonly #state: State
  readonly #branch: Branch
  readonly #work: WorkParts
  readonly #isModel: boolean

  constructor(state: State, branch: Branch, work: WorkParts, isModel: boolean) {
    super(work)
    if (branch.message.kind === 'step') throw new Error('a step has no turn of an agent')
    const { run } = state
    this.attempt = work.attempt.attempt
    this.runId = run?.id ?? ''
    this.branchId = branch.id
    this.tags = run?.tags ?? {}
    this.agent = branch.agent
    this.turn = branch.turn
    // Values are frozen where they enter: what is around them is left. Most messages are requests.
    this.message = branch.message.kind === 'request' ? Object.freeze(branch.message) : deepFreeze(shown(branch.message))
    const requests = requestsOf(branch)
    this.request = requests[0]?.value
    for (let place = 0; place < requests.length; place++) Object.freeze(requests[place])
    this.requests = Object.freeze(requests)
    this.state = branch.state
    this.waiting = waitingAgent(state, branch)
    this.invoke = invoke
    this.reply = reply
    this.fork = forkOf
    this.finish = finish
    this.ask = ask
    this.fail = fail
    this.#state = state
    this.#branch = branch
    this.#work = work
    this.#isModel = isModel
    Object.freeze(this)
  }

  get signal(): AbortSignal {
    return this.#work.signal()
  }

  get idempotencyKey(): string {
    return this.#work.idempotencyKey()
  }

  get memory(): readonly MemoryEntry[] {
    return remembered(this.#state, this.#branch, this.#isModel)
  }

  get targets(): readonly string[] {
    return Object.freeze([...targetsOf(this.#state, this.#branch.agent).keys()])
  }
}

export function turnView(state: State, branch: Branch, work: WorkParts, isModel: boolean): Turn {
  return new TurnView(state, branch, work, isModel) as unknown as Turn
}

type Call = Fork['calls'][number]
type ForkOptions = Options & { request?: unknown; join?: Join; compensate?: boolean }

function forkOf(calls: readonly (string | Call)[], options?: ForkOptions): Fork {
  const shared = options?.request === undefined ? undefined : { request: options.request }
  return taken({
    type: 'fork',
    // What a call has beside these goes along too, and is refused when the fork is returned.
    calls: Array.isArray(calls) ? callsOf(calls, shared) : (calls as never),
    ...(options?.join !== undefined && { join: options.join }),
    ...(options?.compensate !== undefined && { compensate: options.compensate }),
    ...(options !== undefined && carried('fork', options)),
  })
}

/** What is handed on as it was given is copied when the fork is taken. */
function callsOf(calls: readonly (string | Call)[], shared: { request: unknown } | undefined): Call[] {
  const all: Call[] = []
  for (let place = 0; place < calls.length; place++) {
    const call = calls[place] as string | Call
    if (typeof call === 'string') all.push({ to: call, ...shared })
    else all.push(shared !== undefined && call?.request === undefined ? { ...call, ...shared } : call)
  }
  return all
}

/** A message as an agent sees it: a join can tell what calls to one agent gave. */
function shown(message: TurnMessage): TurnMessage {
  return message.kind === 'join' ? { kind: 'join', join: joinResult(message.join) } : message
}

function joinResult(join: JoinData): JoinResult {
  const from = (to: string): unknown[] => join.slots.flatMap((slot) => (slot.status === 'arrived' && slot.to === to ? [slot.value] : []))
  // Not among what is enumerated: a join can be handed on as the JSON that it is.
  return Object.defineProperty({ ...join }, 'from', { value: from }) as JoinResult
}

/** Calls the code that takes this turn's message. */
export function act(agent: AgentCode, turn: Turn): Maybe<unknown> {
  const { act: code } = agent
  if (code === null) throw new Error(`${agent.name} has no code`)
  if (typeof code === 'function') return code(turn as never)
  const handlers = code as Handling
  const { message } = turn
  switch (message.kind) {
    case 'request':
      return handlers.request(turn, message.value)
    case 'merged':
      return handlers.merged?.(turn, message.requests)
    case 'join':
      return handlers.join?.(turn, message.join)
    case 'answer':
      return handlers.answer?.(turn, message.value, Object.freeze({ id: message.askId, question: message.question }))
    case 'expired':
      return handlers.expired?.(turn, Object.freeze({ id: message.askId, question: message.question }))
    case 'feedback':
      return handlers.feedback?.(turn, message.problem)
  }
}

interface Handling {
  request(turn: Turn, value: unknown): unknown
  merged?(turn: Turn, requests: unknown): unknown
  join?(turn: Turn, join: unknown): unknown
  answer?(turn: Turn, value: unknown, ask: unknown): unknown
  expired?(turn: Turn, ask: unknown): unknown
  feedback?(turn: Turn, problem: string): unknown
}
