import type { Internals } from '../define/definition.js'
import type { Command } from '../kernel/command.js'
import type { Failure } from '../kernel/failure.js'
import { illegal } from '../kernel/legal.js'
import type { Halted } from '../kernel/lifecycle.js'
import type { Attempt, State } from '../kernel/state.js'

/** The agents of a definition. The steps of a graph are none, except that a step may run a definition of its own. */
export function agentsOf(internals: Internals): readonly string[] {
  return internals.kind === 'topology' ? Object.keys(internals.agents) : []
}

/** Whether an attempt has failed, by what it says; null if it says nothing of the kind. */
export function failedBy(command: Command): boolean | null {
  switch (command.type) {
    case 'turn.fail':
      return true
    case 'turn.complete':
      return command.action.type === 'fail'
    case 'turn.reject':
      return false
    default:
      return null
  }
}

/** Whether an attempt is sent back, or will be by the kernel. */
export function rejectedBy(command: Command, state: State): boolean {
  if (command.type !== 'turn.complete') return command.type === 'turn.reject'
  const branch = state.branches.get(command.branch)
  return branch !== undefined && illegal(state, branch, command.action) !== null
}

const halted: Readonly<Record<Halted, string>> = {
  stopped: 'is stopped',
  failed: 'has failed too often in a row: its breaker lets no turn through now',
  terminated: 'is terminated',
}

/** What becomes of a turn whose agent may not act: that it met it so is a choice of its run. */
export function stopped(attempt: Attempt, is: Halted): Command {
  const error: Failure = { code: 'AGENT_STOPPED', message: `the agent ${attempt.agent} ${halted[is]}`, retryable: false, at: {} }
  return { type: 'turn.fail', ...attempt, error, retryable: false, stopped: is }
}
