import type { AgentCode } from '../define/agent-code.js'
import type { AskAction, BranchState, Fail, Finish, Fork, Invoke, Reply } from '../kernel/action.js'
import type { Join, JoinData } from '../kernel/join.js'
import type { TurnMessage } from '../kernel/message.js'
import type { Branch, State } from '../kernel/state.js'
import { shapeOf, waitingAgent } from '../kernel/state.js'
import type { Schema } from '../define/schema.js'
import type { JoinResult, Turn } from '../define/turn.js'
import type { Work } from '../define/work.js'
import { failureOf } from './failure-of.js'

/** An ask with its live schema, which no journal can hold. */
export type LiveAsk = Omit<AskAction, 'schema'> & { readonly schema?: Schema }

type Options = { readonly state?: BranchState }

const carried = (options: Options | undefined): { state?: BranchState } => (options?.state === undefined ? {} : { state: options.state })

/** What a turn's code is given: frozen, with its functions as own, bound properties, because people write `({ step, use }) => …`. */
export function turnView(state: State, branch: Branch, work: Work): Turn {
  if (branch.message.kind === 'step') throw new Error('a step has no turn of an agent')
  const message = shown(branch.message)
  const targets = shapeOf(state).edges.flatMap((edge) => (edge.from === branch.agent ? [edge.to] : []))
  const view = {
    agent: branch.agent,
    turn: branch.turn,
    message,
    request: branch.requests[0]?.value,
    requests: branch.requests,
    state: branch.state,
    waiting: waitingAgent(state, branch),
    memory: Object.freeze([]),
    targets: Object.freeze(targets),
    invoke: (to: string, request?: unknown, options?: Options): Invoke => ({
      type: 'invoke',
      to,
      ...(request !== undefined && { request }),
      ...carried(options),
    }),
    reply: (value?: unknown, options?: Options): Reply => ({ type: 'reply', ...(value !== undefined && { value }), ...carried(options) }),
    fork: (calls: readonly (string | { to: string; request?: unknown })[], options?: ForkOptions): Fork => forkOf(calls, options),
    finish: (output?: unknown): Finish => ({ type: 'finish', ...(output !== undefined && { output }) }),
    ask: (question: unknown, options?: Options & { timeoutMs?: number; schema?: Schema }): LiveAsk => ({
      type: 'ask',
      question,
      ...(options?.timeoutMs !== undefined && { timeoutMs: options.timeoutMs }),
      ...(options?.schema !== undefined && { schema: options.schema }),
      ...carried(options),
    }),
    fail: (error: unknown): Fail => ({ type: 'fail', error: failureOf(error) }),
  }
  // Descriptors, not values: the signal is made only when it is asked for.
  return Object.freeze(Object.defineProperties(view, Object.getOwnPropertyDescriptors(work))) as unknown as Turn
}

type ForkOptions = Options & { request?: unknown; join?: Join; compensate?: boolean }

function forkOf(calls: readonly (string | { to: string; request?: unknown })[], options: ForkOptions | undefined): Fork {
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
  return message.kind === 'join' ? Object.freeze({ kind: 'join', join: joinResult(message.join) }) : message
}

function joinResult(join: JoinData): JoinResult {
  const from = (to: string): unknown[] => join.slots.flatMap((slot) => (slot.status === 'arrived' && slot.to === to ? [slot.value] : []))
  return Object.freeze({ ...join, from }) as JoinResult
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
