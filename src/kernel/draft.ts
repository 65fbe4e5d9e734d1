import type { Event, EventBody } from './event.js'
import { fold } from './evolve.js'
import { copyState, type Folding } from './folding.js'
import type { Code } from './shape.js'
import type { State } from './state.js'
import { branchOf } from './state.js'

/**
 * A decision in the making. It lives inside one call of `decide` and is seen by nobody else.
 *
 * 1. The state is the draft's own copy; it changes by `emit` alone, through the same `fold` that reads a journal.
 * 2. `slots` are the barriers whose slots changed, `scopes` those whose branches moved: what must be looked at again.
 * 3. `turned` are the branches that were given a new turn in this step; `gates` the steps whose gates must be looked at.
 */
export interface Draft {
  readonly state: Folding
  readonly at: number
  readonly code: Code | null
  readonly events: Event[]
  readonly slots: Set<string>
  readonly scopes: Set<string>
  readonly turned: Set<string>
  readonly gates: Set<string>
}

export function draftOf(state: State, at: number, code: Code | null): Draft {
  const own = copyState(state)
  own.edit = {}
  return {
    state: own,
    at: Math.max(at, state.at),
    code,
    events: [],
    slots: new Set(),
    scopes: new Set(),
    turned: new Set(),
    gates: new Set(),
  }
}

export function emit(draft: Draft, body: EventBody): void {
  touch(draft, body)
  // The body is made for this one event: it becomes the event, and is not copied.
  const event = body as Event & { seq: number; at: number }
  event.seq = draft.state.seq + 1
  event.at = draft.at
  draft.events.push(event)
  fold(draft.state, event)
}

function touch(draft: Draft, body: EventBody): void {
  switch (body.type) {
    case 'barrier.opened':
    case 'barrier.arrived':
      draft.slots.add(body.barrier)
      return
    case 'branch.settled':
    case 'step.completed':
    case 'step.skipped': {
      const { scope, agent } = branchOf(draft.state, body.branch)
      draft.slots.add(scope)
      draft.scopes.add(scope)
      for (const step of draft.state.run?.dependents[agent] ?? []) draft.gates.add(step)
      return
    }
    case 'branch.moved':
    case 'branch.held':
      draft.scopes.add(branchOf(draft.state, body.branch).scope)
      draft.turned.add(body.branch)
      return
    case 'rendezvous.fired':
      draft.scopes.add(body.barrier)
      draft.turned.add(body.branch)
      return
    case 'branch.opened':
    case 'gate.opened':
    case 'branch.notified':
    case 'ask.answered':
    case 'ask.expired':
      draft.turned.add(body.branch)
      return
    case 'barrier.fired':
    case 'barrier.released': {
      const waiting = draft.state.barriers.get(body.barrier)?.waiting
      if (waiting !== null && waiting !== undefined) draft.turned.add(waiting)
      return
    }
    default:
      return
  }
}

/** Thrown where a decision needs a function of the definition and there is none; `decide` turns it into a refusal. */
export class NeedsCode {
  readonly what: string
  constructor(what: string) {
    this.what = what
  }
}
