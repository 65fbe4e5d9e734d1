/** The states of every machine. */
export interface States {
  /** A run. That it is paused is a flag beside it: whatever a run does, it can do paused, except begin something. */
  run: 'new' | 'running' | 'compensating' | 'succeeded' | 'failed' | 'cancelled'
  /** What people, or its breaker, have decided about an agent, for every run on the store. */
  agentStatus: 'pending' | 'running' | 'paused' | 'stopped' | 'failed' | 'terminated'
  /** What an agent's turns make of it. */
  agentRuntime: 'stopped' | 'starting' | 'running' | 'paused' | 'stopping' | 'crashed'
  /** One thing that is undone. Another attempt at it stays where it is. */
  undo: 'pending' | 'compensating' | 'compensated' | 'failed'
  ask: 'open' | 'answered' | 'expired' | 'closed'
}

export type Machine = keyof States

/**
 * What may become of what: every machine as data, in one place. From each state, the states it may change to. Staying where one is changes
 * nothing, not even a revision, and therefore stands in no table.
 */
export const lifecycle: { readonly [M in Machine]: { readonly [S in States[M]]: readonly States[M][] } } = Object.freeze({
  run: {
    new: ['running'],
    running: ['compensating', 'succeeded', 'failed', 'cancelled'],
    compensating: ['succeeded', 'failed', 'cancelled'],
    succeeded: [],
    failed: [],
    cancelled: [],
  },
  agentStatus: {
    pending: ['running', 'stopped', 'failed', 'terminated'],
    running: ['paused', 'stopped', 'failed', 'terminated'],
    paused: ['running', 'stopped', 'failed', 'terminated'],
    stopped: ['pending', 'running', 'terminated'],
    failed: ['pending', 'running', 'terminated'],
    terminated: [],
  },
  agentRuntime: {
    stopped: ['starting'],
    starting: ['running', 'crashed'],
    running: ['paused', 'stopping', 'crashed'],
    paused: ['running', 'stopping', 'crashed'],
    stopping: ['stopped', 'crashed'],
    crashed: ['starting'],
  },
  undo: {
    pending: ['compensating'],
    compensating: ['compensated', 'failed'],
    compensated: [],
    failed: [],
  },
  ask: {
    open: ['answered', 'expired', 'closed'],
    answered: [],
    expired: [],
    closed: [],
  },
})

/** The one place where anything changes its state: where it is then, or null if its table has no such arrow. */
export function change<M extends Machine, S extends States[M]>(machine: M, from: States[M], to: S): S | null {
  return from === to || lifecycle[machine][from].includes(to) ? to : null
}

/** `change` where nothing but a bug of ours could ask for what may not be. */
export function changed<M extends Machine, S extends States[M]>(machine: M, from: States[M], to: S): S {
  const next = change(machine, from, to)
  if (next === null) throw new Error(`a ${machine} that is ${from} can't become ${to}`)
  return next
}

/** Both halves of an agent's record: they change in one write, or neither does. */
export interface AgentLife {
  readonly status: States['agentStatus']
  readonly runtime: States['agentRuntime']
}

/** An agent of which no turn begins, and none will for now: what then fails says which of these it was. */
export type Halted = Extract<States['agentStatus'], 'stopped' | 'failed' | 'terminated'>

/** A stop on the way of a call: its status and its runtime state. */
type Step = `${States['agentStatus']}/${States['agentRuntime']}`

/**
 * What a call does to an agent, by way of what: every step of the way must be in both tables. `same` are the statuses in which it asks
 * for what is so already. Where a row names states, it is for these; the first that fits is taken.
 */
interface CallRule {
  readonly same: readonly AgentLife['status'][]
  readonly rows: readonly {
    readonly status?: readonly AgentLife['status'][]
    readonly runtime?: readonly AgentLife['runtime'][]
    readonly via: readonly Step[]
  }[]
}

/** The calls of people, and what the engine says of an agent: that a process has it, that its last turn has ended, how its breaker stands. */
export type AgentCall = 'register' | 'pause' | 'resume' | 'stop' | 'settle' | 'start' | 'trip' | 'probe' | 'recover' | 'terminate'

export const agentCalls: Readonly<Record<AgentCall, CallRule>> = Object.freeze({
  register: { same: [], rows: [{ status: ['pending'], via: ['pending/starting', 'running/running'] }] },
  pause: { same: ['paused'], rows: [{ status: ['running'], via: ['running/running', 'paused/paused'] }] },
  resume: { same: [], rows: [{ status: ['paused'], via: ['running/running'] }] },
  stop: {
    same: ['stopped'],
    rows: [
      { status: ['running'], via: ['running/running', 'stopped/stopping'] },
      { status: ['paused'], via: ['stopped/stopping'] },
    ],
  },
  settle: {
    same: [],
    rows: [
      { status: ['stopped'], runtime: ['stopping'], via: ['stopped/stopped'] },
      { status: ['terminated'], runtime: ['stopping'], via: ['terminated/stopped'] },
    ],
  },
  start: { same: ['running'], rows: [{ status: ['pending', 'stopped', 'failed'], via: ['running/starting', 'running/running'] }] },
  trip: { same: [], rows: [{ status: ['running'], runtime: ['running', 'starting'], via: ['failed/crashed'] }] },
  probe: { same: [], rows: [{ status: ['failed'], via: ['running/starting'] }] },
  recover: { same: [], rows: [{ status: ['running'], runtime: ['starting'], via: ['running/running'] }] },
  terminate: {
    same: ['terminated'],
    rows: [
      { runtime: ['stopped'], via: ['terminated/stopped'] },
      { runtime: ['starting'], via: ['running/running', 'terminated/stopping'] },
      { runtime: ['crashed'], via: ['terminated/starting', 'terminated/running', 'terminated/stopping'] },
      { via: ['terminated/stopping'] },
    ],
  },
})

/** Where an agent is before anybody has heard of it. */
export const newAgent: AgentLife = Object.freeze({ status: 'pending', runtime: 'stopped' })

/** Where a call leaves an agent: `same` if it is there already, null if it may not go there. */
export function agentAfter(call: AgentCall, from: AgentLife): AgentLife | 'same' | null {
  const { same, rows } = agentCalls[call]
  if (same.includes(from.status)) return 'same'
  const row = rows.find((of) => (of.status?.includes(from.status) ?? true) && (of.runtime?.includes(from.runtime) ?? true))
  if (row === undefined) return null
  let { status, runtime } = from
  for (const step of row.via) {
    const next = lifeOf(step)
    if (change('agentStatus', status, next.status) === null || change('agentRuntime', runtime, next.runtime) === null) return null
    status = next.status
    runtime = next.runtime
  }
  return Object.freeze({ status, runtime })
}

function lifeOf(step: Step): AgentLife {
  const [status, runtime] = step.split('/') as [AgentLife['status'], AgentLife['runtime']]
  return { status, runtime }
}
