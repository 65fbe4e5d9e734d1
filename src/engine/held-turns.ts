import type { Command } from '../kernel/command.js'
import { attemptId } from '../kernel/ids.js'
import type { Attempt } from '../kernel/state.js'
import { stopped } from './agent-turns.js'
import type { Agents } from './agents.js'
import type { Alarms } from './alarms.js'
import type { RunEntry } from './run-entry.js'
import type { Actor } from './run-port.js'
import type { Clock } from './tutti.js'
import { attemptsOf } from '../kernel/state.js'

export interface HeldTurnsPort {
  readonly agents: Agents
  readonly alarms: Alarms
  readonly clock: Clock
  entries(): Iterable<RunEntry>
  dispatch(entry: RunEntry, attempt: Attempt): void
  /** Those that wait for their time, by their ids. */
  owed(entry: RunEntry): ReadonlySet<string>
  say(entry: RunEntry, command: Command): void
  /** What a run waits for has changed. */
  changed(entry: RunEntry): void
}

/** Which turn this is, among all of a store: how the one that tries a failed agent is known. */
export const turnId = (entry: RunEntry, { branch, turn, attempt }: Attempt): string => `${entry.id}/${attemptId(branch, turn, attempt)}`

/**
 * The turns that are owed and wait, because their agents may not act. That they wait is nothing that a run knows: the kernel has started
 * them, the engine has not, and so a pause of an agent can be nothing but a delay.
 */
export class HeldTurns {
  readonly #port: HeldTurnsPort
  /** For which agents an alarm is set, and for when. */
  readonly #alarms = new Map<string, number>()

  constructor(port: HeldTurnsPort) {
    this.#port = port
  }

  /** Whether a turn may begin as far as its agent is concerned. If not, it waits or fails, as the agent's options say. */
  mayBegin(entry: RunEntry, attempt: Attempt, { agent, here }: Actor): boolean {
    if (agent === null || here === null) return true
    const { agents } = this.#port
    const { name } = agent
    const admission = agents.admission(here, agent.options.whenStopped ?? 'fail', () => turnId(entry, attempt))
    switch (admission) {
      case 'go':
        return true
      case 'probe':
      case 'wait':
        this.#hold(entry, name)
        if (admission === 'probe') void this.#probe(entry, attempt)
        return false
      case 'stopped':
      case 'failed':
      case 'terminated':
        this.#port.say(entry, stopped(attempt, admission))
        return false
    }
  }

  /** Turns of this agent wait, until something about it changes or, if its breaker has tripped, until one may try. */
  #hold(entry: RunEntry, agent: string): void {
    const until = this.#port.agents.known(agent)?.probeAt ?? null
    // Thousands of them may find the same one after the other: what that means for their run is asked once, and when the last of them has looked.
    const isKnown = entry.held.get(agent) === until
    entry.held.set(agent, until)
    if (!isKnown) this.#port.changed(entry)
    if (until === null || until <= this.#port.clock.now() || this.#alarms.get(agent) === until) return
    this.#alarms.set(agent, until)
    this.#port.alarms.at(until, () => this.lookAgain(agent))
  }

  async #probe(entry: RunEntry, attempt: Attempt): Promise<void> {
    const of = turnId(entry, attempt)
    await this.#port.agents.probe(attempt.agent, of)
    // It may have been cancelled or paused meanwhile: then another one may try.
    if (!entry.executions.has(attemptId(attempt.branch, attempt.turn, attempt.attempt))) this.#port.agents.unprobe(attempt.agent, () => of)
  }

  /** Something about an agent has changed, here or elsewhere: those of its turns that wait may go on, fail, or wait on. */
  lookAgain(agent: string): void {
    for (const entry of this.#port.entries()) {
      if (!entry.held.delete(agent)) continue
      // What waits for its time looks at its agent then.
      const owed = this.#port.owed(entry)
      for (const attempt of attemptsOf(entry.state))
        if (attempt.agent === agent && !owed.has(attemptId(attempt.branch, attempt.turn, attempt.attempt))) this.again(entry, attempt)
      this.#port.changed(entry)
    }
  }

  /** A turn that had not begun may begin, if it is still owed. */
  again(entry: RunEntry, attempt: Attempt): void {
    const { aborting, pausedAt } = entry.state
    const id = attemptId(attempt.branch, attempt.turn, attempt.attempt)
    if (entry.state.branches.isLive(attempt)) {
      // What is paused begins when it is resumed.
      if (pausedAt === null) this.#port.dispatch(entry, attempt)
    } else if (aborting.has(id) && !entry.executions.has(id)) this.#port.say(entry, { type: 'turn.settle', ...attempt, how: 'ended' })
  }

  /** Forgets agents of which no turn waits any more. */
  forget({ held, state }: RunEntry): void {
    if (held.size === 0) return
    const agents = new Set(attemptsOf(state).map(({ agent }) => agent))
    for (const agent of held.keys()) if (!agents.has(agent)) held.delete(agent)
  }
}
