import { deepFreeze } from './deep-freeze.js'
import type { Event, EventBody } from './event.js'
import { fold } from './evolve.js'
import type { Folding } from './folding.js'
import type { Code } from './shape.js'
import { branchOf, shapeOf } from './state.js'

/**
 * A decision in the making. It lives inside one call of `decide` and is seen by nobody else.
 *
 * 1. The state belongs to whoever decides; it changes by `emit` alone, through the same `fold` that reads a journal.
 * 2. `slots` are the barriers whose slots changed, `scopes` those whose branches moved: what must be looked at again.
 *    A list may name one twice; whoever takes it looks at each once.
 * 3. `turned` are the branches that were given another turn in this step; `gates` the steps whose gates must be looked at.
 */
export interface Draft {
  readonly state: Folding
  readonly at: number
  readonly code: Code | null
  readonly events: Event[]
  slots: readonly string[]
  scopes: readonly string[]
  gates: readonly string[]
  turned: readonly string[]
}

export function draftOf(state: Folding, at: number, code: Code | null): Draft {
  return {
    state,
    at: Math.max(at, state.at),
    code,
    events: [],
    slots: none,
    scopes: none,
    gates: none,
    turned: none,
  }
}

/**
 * What has happened next. Events that come by the thousand name `seq` and `at` themselves, with anything: an object that has all its
 * fields from the start is smaller than one that gets two more.
 */
export function emit(draft: Draft, body: EventBody & { readonly seq?: 0; readonly at?: 0 }): void {
  touch(draft, body)
  // The body is made for this one event: it becomes the event, and is not copied.
  const event = body as EventBody as Event & { seq: number; at: number }
  event.seq = draft.state.seq + 1
  event.at = draft.at
  // Agents, people and reports are shown the failure that the state has: nobody may change it.
  if ('error' in body) deepFreeze(body.error)
  draft.events.push(event)
  fold(draft.state, event)
}

/** What has happened next, so many times, and stands in the state already: of a kind that touches nothing. */
export function emitFolded(draft: Draft, count: number, made: (place: number, seq: number, at: number) => Event): void {
  const { state, at, events } = draft
  for (let place = 0; place < count; place++) events.push(made(place, state.seq + 1 + place, at))
  state.seq += count
  state.at = at
}

/** Most steps touch nothing of a kind, or one thing, and that again at once. */
export const none: readonly string[] = Object.freeze([])

function added(list: readonly string[], id: string): readonly string[] {
  if (list.length === 0) return [id]
  // Only the draft has it, since it was made here.
  if (list[list.length - 1] !== id) (list as string[]).push(id)
  return list
}

/** Branches of a scope have moved, which matters to its rendezvous, if there are any. */
function changed(draft: Draft, scope: string): void {
  if (shapeOf(draft.state).joins.length > 0) draft.scopes = added(draft.scopes, scope)
}

function touch(draft: Draft, body: EventBody): void {
  switch (body.type) {
    // These come by the thousand, and touch nothing: a branch may always take its first turn.
    case 'activity.completed':
    case 'branch.opened':
    case 'turn.started':
    case 'turn.completed':
      return
    case 'barrier.opened':
    case 'barrier.arrived':
      draft.slots = added(draft.slots, body.barrier)
      return
    case 'branch.settled':
    case 'step.completed':
    case 'step.skipped': {
      const { scope, agent } = branchOf(draft.state, body.branch)
      draft.slots = added(draft.slots, scope)
      changed(draft, scope)
      const dependents = draft.state.run?.dependents[agent]
      if (dependents !== undefined) for (const step of dependents) draft.gates = added(draft.gates, step)
      return
    }
    case 'branch.held':
      changed(draft, branchOf(draft.state, body.branch).scope)
      return
    case 'branch.moved':
      changed(draft, branchOf(draft.state, body.branch).scope)
      draft.turned = added(draft.turned, body.branch)
      return
    case 'rendezvous.fired':
      changed(draft, body.barrier)
      draft.turned = added(draft.turned, body.branch)
      return
    case 'gate.opened':
    case 'branch.notified':
    case 'ask.answered':
    case 'ask.expired':
      draft.turned = added(draft.turned, body.branch)
      return
    case 'barrier.fired':
    case 'barrier.released': {
      const waiting = draft.state.barriers.get(body.barrier)?.waiting
      if (waiting !== null && waiting !== undefined) draft.turned = added(draft.turned, waiting)
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
