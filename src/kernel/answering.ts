import type { Command } from './command.js'
import type { Event } from './event.js'
import { settleAlike } from './fold-branches.js'
import type { Folding } from './folding.js'

/**
 * What most commands of a wide fan-out are: one of many that began alike answers the fork that waits for it and for others. It ends its
 * own turn and moves nobody else: no barrier fires, no turn begins, nothing is owed that was not. Null: it is something else, or something
 * may follow from it, and it is decided as everything is.
 */
export function answerOn(state: Folding, command: Extract<Command, { type: 'turn.complete' }>, at: number): readonly Event[] | null {
  const { branch, agent, turn, attempt, action } = command
  if (action.type !== 'reply' || action.state !== undefined || turn !== 1 || attempt !== 1) return null
  const { run } = state
  // Somebody may wait for the room that it leaves, and what can be undone is remembered.
  if (run === null || run.undoes || run.shape.kind !== 'topology' || state.running < 2 || state.queue.size > 0) return null
  const place = state.branches.begunAlike(branch)
  const barrier = place === null ? undefined : state.barriers.get(place.siblings.scope)
  if (place === null || barrier === undefined || barrier.pending < 2 || barrier.fired !== null) return null
  // Whom it would meet, whom its answer may stop.
  if (barrier.approaching.length > 0 || barrier.join.stragglers !== 'wait' || barrier.waitingAgent === null) return null
  if (place.siblings.calls[place.slot]?.to !== agent || run.targets[agent]?.get(barrier.waitingAgent) !== false) return null
  if (state.work.get(branch) !== undefined || state.crashes.get(branch) !== undefined) return null
  const seq = state.seq + 1
  const now = Math.max(at, state.at)
  const { id } = barrier
  settleAlike(state, id, place, agent, action.value)
  state.seq = seq + 2
  state.at = now
  return [
    { seq, at: now, type: 'turn.completed', branch, agent, turn, attempt, action },
    { seq: seq + 1, at: now, type: 'barrier.arrived', barrier: id, slot: place.slot, by: agent, branch },
    { seq: seq + 2, at: now, type: 'branch.settled', branch, status: 'arrived' },
  ]
}
