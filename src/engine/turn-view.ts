import type { AgentCode } from '../define/agent-code.js'
import type { AskAction, BranchState, Fail, Finish, Fork, Invoke, Reply } from '../kernel/action.js'
import type { Join, JoinData } from '../kernel/join.js'
import { memoryOf } from '../kernel/memory.js'
import type { TurnMessage } from '../kernel/message.js'
import type { Branch, State } from '../kernel/state.js'
import { targetsOf, waitingAgent } from '../kernel/state.js'
import type { Schema } from '../define/schema.js'
import type { JoinResult, MemoryEntry, Turn } from '../define/turn.js'
import { codeMemory, modelMemory } from '../models/memory-entries.js'
import { deepFreeze } from './deep-freeze.js'
import { failureOf } from '../define/failure-of.js'
import type { WorkParts } from './work-parts.js'

/** An ask with its live schema, which no journal can hold. */
export type LiveAsk = Omit<AskAction, 'schema'> & { readonly schema?: Schema }

type Options = { readonly state?: BranchState }

const carried = (options: Options | undefined): { state?: BranchState } => (options?.state === undefined ? {} : { state: options.state })

// What makes an action needs nothing of its turn, so all turns share these.
const invoke = (to: string, request?: unknown, options?: Options): Invoke => ({
  type: 'invoke',
  to,
  ...(request !== undefined && { request }),
  ...carried(options),
})
const reply = (value?: unknown, options?: Options): Reply => ({ type: 'reply', ...(value !== undefined && { value }), ...carried(options) })
const finish = (output?: unknown): Finish => ({ type: 'finish', ...(output !== undefined && { output }) })
const ask = (question: unknown, options?: Options & { timeoutMs?: number; schema?: Schema }): LiveAsk => ({
  type: 'ask',
  question,
  ...(options?.timeoutMs !== undefined && { timeoutMs: options.timeoutMs }),
  ...(options?.schema !== undefined && { schema: options.schema }),
  ...carried(options),
})
const fail = (error: unknown): Fail => ({ type: 'fail', error: failureOf(error) })
const noMemory: readonly MemoryEntry[] = Object.freeze([])

/** What the agent of a branch remembers from before this turn. */
function remembered(state: State, { agent, memory }: Branch, isModel: boolean): readonly MemoryEntry[] {
  const remembers = state.run?.shape.agents[agent]?.remembers
  if (remembers === undefined) return noMemory
  const said = remembers === 'session' ? (state.run?.conversation ?? []) : []
  return deepFreeze((isModel ? modelMemory : codeMemory)(said, memoryOf(memory, agent)))
}

/** What a turn's code is given: frozen, with its functions as own, bound properties, because people write `({ step, use }) => …`. */
export function turnView(state: State, branch: Branch, work: WorkParts, isModel: boolean): Turn {
  if (branch.message.kind === 'step') throw new Error('a step has no turn of an agent')
  const view = {
    // Made only when it is asked for.
    get signal(): AbortSignal {
      return work.signalOf()
    },
    idempotencyKey: work.idempotencyKey,
    attempt: work.attempt,
    use: work.use,
    emit: work.emit,
    runId: work.runId,
    branchId: work.branchId,
    tags: work.tags,
    step: work.step,
    sleep: work.sleep,
    now: work.now,
    random: work.random,
    agent: branch.agent,
    turn: branch.turn,
    message: deepFreeze(shown(branch.message)),
    request: branch.requests[0]?.value,
    requests: deepFreeze(branch.requests),
    state: branch.state,
    waiting: waitingAgent(state, branch),
    get memory(): readonly MemoryEntry[] {
      return remembered(state, branch, isModel)
    },
    targets: Object.freeze([...targetsOf(state, branch.agent).keys()]),
    invoke,
    reply,
    fork: forkOf,
    finish,
    ask,
    fail,
  }
  return Object.freeze(view) as unknown as Turn
}

type ForkOptions = Options & { request?: unknown; join?: Join; compensate?: boolean }

function forkOf(calls: readonly (string | { to: string; request?: unknown })[], options?: ForkOptions): Fork {
  return {
    type: 'fork',
    calls: calls.map((call) => {
      const { to, request = options?.request } = typeof call === 'string' ? { to: call } : call
      return { to, ...(request !== undefined && { request }) }
    }),
    ...(options?.join !== undefined && { join: options.join }),
    ...(options?.compensate !== undefined && { compensate: options.compensate }),
    ...carried(options),
  }
}

/** A message as an agent sees it: a join can tell what calls to one agent gave. */
function shown(message: TurnMessage): TurnMessage {
  return message.kind === 'join' ? { kind: 'join', join: joinResult(message.join) } : message
}

function joinResult(join: JoinData): JoinResult {
  const from = (to: string): unknown[] => join.slots.flatMap((slot) => (slot.status === 'arrived' && slot.to === to ? [slot.value] : []))
  return { ...join, from } as JoinResult
}

/** Calls the code that takes this turn's message. */
export async function act(agent: AgentCode, turn: Turn): Promise<unknown> {
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
