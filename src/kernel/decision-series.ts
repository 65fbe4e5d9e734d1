import { answerOn } from './answering.js'
import type { Command, Refusal } from './command.js'
import { decideOn, recordOn } from './decide.js'
import type { Event } from './event.js'
import { fold } from './evolve.js'
import { editable, type Folding } from './folding.js'
import type { Code } from './shape.js'
import type { State } from './state.js'

const none: readonly Event[] = Object.freeze([])

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

  /** What the commands so far have come to. */
  get events(): readonly Event[] {
    return this.#events
  }

  /** Whether they do nothing but end what is under way, and nothing follows from that: nobody owes anything new for it. */
  get isQuiet(): boolean {
    return this.#isQuiet
  }

  decide(command: Command): { readonly events: readonly Event[] } | { readonly refusal: Refusal } {
    if (this.#state.edit === null) this.#state = editable(this.#state)
    const short = this.#shortly(command)
    if (short !== null) {
      this.#gather(short)
      return { events: short }
    }
    const { seq } = this.#state
    const decided = decideOn(this.#state, command, this.#at, this.#code)
    if ('refusal' in decided) {
      // It had begun and could not go on: what it changed is taken back.
      if (this.#state.seq !== seq) this.#again()
      return decided
    }
    if (decided.events.length > 0) this.#isQuiet = false
    this.#gather(decided.events)
    return decided
  }

  /** By the short way, of what comes by the thousand and moves nobody; null if there is none. */
  #shortly(command: Command): readonly Event[] | null {
    switch (command.type) {
      case 'activity.complete':
        return recordOn(this.#state, command, this.#at)
      case 'turn.complete':
        return answerOn(this.#state, command, this.#at)
      default:
        return null
    }
  }

  #gather(events: readonly Event[]): void {
    if (this.#events.length === 0) this.#events = events
    else if (events.length > 0) {
      this.#gathered ??= [...this.#events]
      for (let place = 0; place < events.length; place++) this.#gathered.push(events[place] as Event)
      this.#events = this.#gathered
    }
  }

  #again(): void {
    this.#state = editable(this.#origin)
    for (const event of this.#events) fold(this.#state, event)
  }

  /** The state that they have come to. What is decided after this leaves it as it is. */
  state(): State {
    if (this.#events.length === 0) return this.#origin
    this.#state.edit = null
    return this.#state
  }
}
