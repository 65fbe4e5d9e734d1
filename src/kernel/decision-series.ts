import { answerOn } from './answering.js'
import type { Command, Refusal } from './command.js'
import { decideOn, recordOn } from './decide.js'
import type { Event } from './event.js'
import { fold } from './evolve.js'
import { editable, type Folding } from './folding.js'
import type { Code } from './shape.js'
import type { State } from './state.js'

const none: readonly Event[] = Object.freeze([])

interface Made {
  readonly state: State
  readonly events: readonly Event[]
  /** They do nothing but end what is under way, and nothing follows from that: nobody owes anything new for it. */
  readonly isQuiet: boolean
}

/**
 * Decides commands one after the other, each on what the one before it leaves: the same events as with `decide`. The states in between
 * are seen by nobody, so that all of them are one, which is changed in place. The state that it began from stays as it was.
 */
export class DecisionSeries {
  readonly #origin: State
  readonly #at: number
  readonly #code: Code | null
  #state: Folding
  #events: readonly Event[] = none
  /** The events of several commands; while there is one, they are its own. */
  #gathered: Event[] | null = null
  #isQuiet = true

  constructor(origin: State, at: number, code: Code | null) {
    this.#origin = origin
    this.#at = at
    this.#code = code
    this.#state = editable(origin)
  }

  decide(command: Command): { readonly events: readonly Event[] } | { readonly refusal: Refusal } {
    if (this.#state.edit === null) this.#state = editable(this.#state)
    const state = this.#state
    // What comes by the thousand and moves nobody has a short way.
    let events: readonly Event[] | null = null
    if (command.type === 'activity.complete') events = recordOn(state, command, this.#at)
    else if (command.type === 'turn.complete') events = answerOn(state, command, this.#at)
    if (events === null) {
      const { seq } = state
      const decided = decideOn(state, command, this.#at, this.#code)
      if ('refusal' in decided) {
        // It had begun and could not go on: what it changed is taken back.
        if (state.seq !== seq) this.#again()
        return decided
      }
      events = decided.events
      if (events.length > 0) this.#isQuiet = false
    }
    if (this.#events.length === 0) this.#events = events
    else if (events.length > 0) this.#gather(events)
    return { events }
  }

  #gather(events: readonly Event[]): void {
    this.#gathered ??= [...this.#events]
    for (let place = 0; place < events.length; place++) this.#gathered.push(events[place] as Event)
    this.#events = this.#gathered
  }

  #again(): void {
    this.#state = editable(this.#origin)
    for (const event of this.#events) fold(this.#state, event)
  }

  /** What they have come to. What is decided after this leaves the state as it is. */
  made(): Made {
    if (this.#events.length === 0) return { state: this.#origin, events: none, isQuiet: this.#isQuiet }
    this.#state.edit = null
    return { state: this.#state, events: this.#events, isQuiet: this.#isQuiet }
  }
}
