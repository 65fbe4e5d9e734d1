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
 *    A list may name one twice; whoever takes it looks at each once.
 * 3. `turned` are the branches that were given a new turn in this step; `gates` the steps whose gates must be looked at.
 */
export interface Draft {
  readonly state: Folding
  readonly at: number
  readonly code: Code | null
  readonly events: Event[]
  slots: string[]
  scopes: string[]
  gates: string[]
  readonly turned: string[]
}

export function draftOf(state: State, at: number, code: Code | null): Draft {
  const own = copyState(state)
  own.edit = {}
  return {
    state: own,
    at: Math.max(at, state.at),
    code,
    events: [],
    slots: [],
    scopes: [],
    gates: [],
    turned: [],
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

/** Most of what is touched is touched again at once. */
function add(list: string[], id: string): void {
  if (list[list.length - 1] !== id) list.push(id)
}

function touch(draft: Draft, body: EventBody): void {
  switch (body.type) {
    case 'barrier.opened':
    case 'barrier.arrived':
      add(draft.slots, body.barrier)
      return
    case 'branch.settled':
    case 'step.completed':
    case 'step.skipped': {
      const { scope, agent } = branchOf(draft.state, body.branch)
      add(draft.slots, scope)
      add(draft.scopes, scope)
      for (const step of draft.state.run?.dependents[agent] ?? []) draft.gates.push(step)
      return
    }
    case 'branch.moved':
    case 'branch.held':
      add(draft.scopes, branchOf(draft.state, body.branch).scope)
      draft.turned.push(body.branch)
      return
    case 'rendezvous.fired':
      add(draft.scopes, body.barrier)
      draft.turned.push(body.branch)
      return
    case 'branch.opened':
    case 'gate.opened':
    case 'branch.notified':
    case 'ask.answered':
    case 'ask.expired':
      draft.turned.push(body.branch)
      return
    case 'barrier.fired':
    case 'barrier.released': {
      const waiting = draft.state.barriers.get(body.barrier)?.waiting
      if (waiting !== null && waiting !== undefined) draft.turned.push(waiting)
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
