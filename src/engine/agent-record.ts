import { type AgentCall, type AgentLife, agentAfter, lifecycle, newAgent } from '../kernel/lifecycle.js'
import type { AgentChange, AgentRecord } from './tutti.js'

/** The kind of record that agents are, and of the mark on runs that wait for one. */
export const agentKind = 'agent'

/** How many changes a record remembers. */
const historyMax = 50

/**
 * What the store keeps of an agent, in one record. `revision` counts the changes that people see; what else is in here may change
 * without it.
 */
export interface AgentBody extends AgentLife {
  readonly revision: number
  /** How often it was started. */
  readonly attempt: number
  /** How many of its attempts have failed in a row, if it has a breaker. */
  readonly failures: number
  /** When one turn may be let through to an agent whose breaker has tripped. */
  readonly probeAt: number | null
  /** Whose turn that is, while it is under way. */
  readonly probe: Probe | null
  /** Which workers have none of its turns in flight, while it is stopping. */
  readonly idle: readonly number[]
  readonly history: readonly AgentChange[]
}

export interface Probe {
  readonly worker: number
  readonly of: string
}

/** Who changes an agent, and when. */
export interface Change {
  readonly call: AgentCall
  readonly at: number
  readonly by?: string | undefined
}

const nobody: AgentBody = Object.freeze({
  ...newAgent,
  revision: 0,
  attempt: 0,
  failures: 0,
  probeAt: null,
  probe: null,
  idle: [],
  history: [],
})

/** An agent that a process has just opened the store with. */
export function registered(at: number): AgentBody {
  const body = changedBy(nobody, { call: 'register', at })
  if (body === null || body === 'same') throw new Error('an agent could not be registered')
  return body
}

/** What a call makes of an agent, both halves at once: `same` if it is so already, null if it may not be. */
export function changedBy(body: AgentBody, { call, at, by }: Change): AgentBody | 'same' | null {
  const life = agentAfter(call, body)
  if (life === null || life === 'same') return life
  const { status, runtime, revision, history } = body
  const change: AgentChange = {
    call,
    at,
    ...(by !== undefined && { by }),
    revision: revision + 1,
    from: { status, runtime },
    to: life,
  }
  const begins = call === 'register' || call === 'start' || call === 'probe'
  return {
    ...body,
    ...life,
    revision: revision + 1,
    attempt: body.attempt + (begins ? 1 : 0),
    failures: call === 'start' || call === 'recover' ? 0 : body.failures,
    probeAt: null,
    probe: null,
    idle: [],
    history: [...history, change].slice(-historyMax),
  }
}

/** An agent as the public sees it. */
export function recordOf(name: string, { status, runtime, revision, attempt }: AgentBody): AgentRecord {
  return Object.freeze({ name, status, runtime, revision, attempt })
}

/** Reads what a store has kept; throws if that is no agent. */
export function decodeAgent(name: string, text: string): AgentBody {
  const body = JSON.parse(text) as Partial<AgentBody>
  const known = Object.hasOwn(lifecycle.agentStatus, body.status ?? '') && Object.hasOwn(lifecycle.agentRuntime, body.runtime ?? '')
  if (!known || typeof body.revision !== 'number') throw new Error(`the record of the agent ${name} can't be read`)
  return { ...nobody, ...body } as AgentBody
}
