import { type AgentBody, changedBy } from './agent-record.js'

/** That many failures in a row, and the agent is given a rest; after `probeMs`, one turn may try. */
export interface Breaker {
  readonly failures: number
  readonly probeMs: number
}

/** One attempt of an agent has ended; `probes`: it was the one that was let through to see whether it works again. */
export interface AttemptEnd {
  readonly failed: boolean
  /** Rejected: no failure, and no sign that the failures are over. */
  readonly rejected: boolean
  readonly probes: boolean
  readonly at: number
}

/** What the end of an attempt makes of its agent; null if nothing. Failures are counted in the record, so over all runs and processes. */
export function afterAttempt(
  body: AgentBody,
  breaker: Breaker | undefined,
  { failed, rejected, probes, at }: AttemptEnd,
): AgentBody | null {
  if (rejected && !probes) return null
  if (!failed) return afterSuccess(body, probes, at)
  if (breaker === undefined) return null
  const counted = { ...body, failures: body.failures + 1 }
  // While another turn probes, a failure of one that began before is only counted.
  const trips = probes || (counted.failures >= breaker.failures && body.runtime === 'running')
  const tripped = trips ? changedBy(counted, { call: 'trip', at }) : null
  return tripped === null || tripped === 'same' ? counted : { ...tripped, probeAt: at + breaker.probeMs }
}

function afterSuccess(body: AgentBody, probes: boolean, at: number): AgentBody | null {
  const recovered = probes ? changedBy(body, { call: 'recover', at }) : null
  if (recovered !== null && recovered !== 'same') return recovered
  return body.failures === 0 ? null : { ...body, failures: 0 }
}

/** One turn may try whether a failed agent works again; null if it is too early, or another one does. */
export function probing(body: AgentBody, probe: { readonly worker: number; readonly of: string }, at: number): AgentBody | null {
  if (body.status !== 'failed' || body.probeAt === null || body.probeAt > at) return null
  const starting = changedBy(body, { call: 'probe', at })
  return starting === null || starting === 'same' ? null : { ...starting, probe }
}

/** The turn that was to try never came to an end: another one may, at once. */
export function unprobed(body: AgentBody, at: number): AgentBody | null {
  if (body.runtime !== 'starting' || body.probe === null) return null
  const failed = changedBy(body, { call: 'trip', at })
  return failed === null || failed === 'same' ? null : { ...failed, probeAt: at }
}
