import { differenceOf, matters } from './compare.js'
import { following } from './following.js'
import type { Class, Observing, Outcome } from './outcome.js'
import { digestOf, outcomeOf, textOf } from './outcome.js'
import type { DrawnIds } from './random-ids.js'
import type { Schedule } from './schedule.js'
import { tokenOf } from './schedule.js'
import type { Chooser } from './scheduler.js'
import type { Setting } from './setting.js'
import type { Played } from './stage.js'
import { play } from './stage.js'

/** A schedule that was played, and what came of it. */
export interface Seen {
  readonly played: Played
  readonly outcome: Outcome
}

/** Two schedules with equal choices and different outcomes. */
export interface Divergence {
  readonly kind: Class
  readonly a: Seen
  readonly b: Seen
}

export interface Violation {
  readonly invariant: Class
  readonly schedule: Schedule
  readonly explain: string
}

/** One outcome that was seen, how often, and the first schedule that had it. */
export interface Counted {
  readonly first: Seen
  readonly digest: string
  count: number
}

/** Nobody looks at a run that was not followed to its end. */
const unobserved: Observing = { bags: new Set(), observe: undefined }
/** Every so many schedules one is played a second time. */
const repeatEvery = 64
/** So many schedules with another order of the same events are told of. */
const foundMax = 20
/** So many schedules are kept to be played again with faults. */
const exploredMax = 10_000

/**
 * Plays schedules and keeps what came of them.
 *
 * 1. Outcomes are compared with the first that had the same choices; order of events alone is no difference.
 * 2. It goes on until something is found, or the budget is spent.
 */
export class Search {
  readonly setting: Setting
  readonly budget: number
  readonly #observing: Observing
  /** By all that is compared. */
  readonly #outcomes = new Map<string, Counted>()
  readonly #byChoices = new Map<string, Seen>()
  /** The ids that came again. */
  readonly #given = new Set<string>()
  readonly violations: Violation[] = []
  /** Orders in which an agent is shown something else than in the record. */
  readonly departures: Violation[] = []
  /** Whether there is an order in which none is: only then it depends on the order. */
  agrees = false
  readonly away: Set<string> = new Set()
  divergence: Divergence | null = null
  /** Whether what was found ends the search. */
  stopsAtFindings = true
  /** How many schedules were played to their end; those that were given up as redundant are not among them. */
  schedules = 0
  givenUp = 0
  crashes = 0
  longest = 0
  /** Whether there was a schedule in which time could have passed before other things still more often. */
  isHurried = false
  /** Where schedules left what was recorded, and how many did. */
  readonly left: Map<string, number> = new Map()
  /** Who asked a person there. */
  asks: string | null = null
  /** The schedules that were played, as far as they are kept. */
  readonly explored: Schedule[] = []

  constructor(setting: Setting, budget: number, observing: Observing) {
    this.setting = setting
    this.budget = budget
    this.#observing = observing
  }

  get goesOn(): boolean {
    const found = this.divergence !== null || this.violations.length > 0 || (this.agrees && this.departures.length > 0)
    return this.schedules < this.budget && !(found && this.stopsAtFindings)
  }

  get outcomes(): readonly Counted[] {
    return [...this.#outcomes.values()]
  }

  /** Plays a schedule as a part of the search. */
  async play(choose: Chooser): Promise<Played> {
    const seen = await this.look(choose)
    if (seen === null) {
      this.givenUp++
      return this.#lastPlayed as Played
    }
    const isNew = this.divergence === null
    this.#keep(seen)
    if (isNew && this.divergence !== null) await this.#confirm(this.divergence)
    if (this.schedules % repeatEvery === 1 && this.goesOn) await this.#repeat(seen)
    return seen.played
  }

  #lastPlayed: Played | null = null

  /** Plays a schedule and tells what came of it; null if it was given up. Nothing is kept. */
  async look(choose: Chooser): Promise<Seen | null> {
    const played = await play(this.setting, choose)
    this.#lastPlayed = played
    this.isHurried ||= played.isHurried
    if (played.givenUp) return null
    return { played, outcome: await this.#outcomeOf(played, (ids) => this.#drawnOf(ids, played.schedule)) }
  }

  #outcomeOf(played: Played, drawn: DrawnIds): Promise<Outcome> {
    return outcomeOf(played, this.setting, played.left === null ? this.#observing : unobserved, drawn)
  }

  /** An id that is there again when the same schedule is played again was not drawn at random. */
  async #drawnOf(ids: ReadonlySet<string>, schedule: Schedule): Promise<ReadonlySet<string>> {
    const unknown = (): Set<string> => new Set([...ids].filter((id) => !this.#given.has(id)))
    if (unknown().size === 0) return unknown()
    await this.#outcomeOf(await play(this.setting, following(schedule)), async (again) => {
      for (const id of ids) if (again.has(id)) this.#given.add(id)
      return again
    })
    return unknown()
  }

  #keep(seen: Seen): void {
    const { played, outcome } = seen
    this.schedules++
    this.crashes += played.crashes
    this.longest = Math.max(this.longest, played.taken.length)
    for (const agent of played.away) this.away.add(agent)
    for (const { invariant, explain } of played.broken) {
      const found = invariant === 'prompt' ? this.departures : this.violations
      if (found.length < foundMax) found.push({ invariant, schedule: played.schedule, explain })
    }
    if (played.left === null && !played.broken.some(({ invariant }) => invariant === 'prompt')) this.agrees = true
    if (played.left !== null) {
      this.asks ??= played.asks
      this.left.set(played.left, (this.left.get(played.left) ?? 0) + 1)
      return
    }
    if (this.explored.length < exploredMax && played.crashes === 0) this.explored.push(played.schedule)
    const text = textOf(this.#comparable(outcome))
    const known = this.#outcomes.get(text)
    if (known !== undefined) {
      known.count++
      return
    }
    this.#outcomes.set(text, { first: seen, digest: digestOf(text), count: 1 })
    this.#compare(seen)
  }

  /** After a crash effects are not compared: if all else is the same, so is the outcome. */
  #comparable(outcome: Outcome): Outcome {
    const first = outcome.effects === null ? this.#byChoices.get(outcome.choices) : undefined
    return first === undefined || matters(differenceOf(first.outcome, outcome)) ? outcome : first.outcome
  }

  #compare(seen: Seen): void {
    const { choices } = seen.outcome
    const first = this.#byChoices.get(choices)
    if (first === undefined) {
      this.#byChoices.set(choices, seen)
      return
    }
    // Of a run that did not crash, more can be compared: it is the better one to compare with.
    if (first.outcome.effects === null && seen.outcome.effects !== null) this.#byChoices.set(choices, seen)
    const kind = differenceOf(first.outcome, seen.outcome)
    if (kind !== null && matters(kind)) this.divergence ??= { kind, a: first, b: seen }
  }

  /** Only what comes out as it did when it is played again depends on the order. */
  async #confirm({ a, b }: Divergence): Promise<void> {
    for (const seen of [a, b]) {
      const difference = await this.#differs(seen, matters)
      if (difference === null) continue
      this.divergence = null
      return this.#notRepeatable(seen, difference)
    }
  }

  /** A workflow that differs from itself proves nothing about orders: that is told instead. */
  async #repeat(seen: Seen): Promise<void> {
    const difference = await this.#differs(seen, (found, again) => found !== null || !sameOrder(seen.played, again))
    if (difference !== null) this.#notRepeatable(seen, difference)
  }

  /** Plays it again: in what it then differs, if that counts. */
  async #differs(seen: Seen, counts: (difference: Class | null, again: Played) => boolean): Promise<Class | null> {
    const again = await this.look(following(seen.played.schedule))
    if (again === null) return null
    const difference = again.outcome.choices === seen.outcome.choices ? differenceOf(seen.outcome, again.outcome) : 'status'
    return counts(difference, again.played) ? (difference ?? 'order') : null
  }

  #notRepeatable({ played: { schedule } }: Seen, difference: Class): void {
    this.violations.push({
      invariant: 'not-repeatable',
      schedule,
      explain: `the schedule ${tokenOf(schedule)} was played twice and came out differently (${difference === 'order' ? 'what happened had another order' : difference}): something outlives a schedule, or is drawn by chance. Give explore a function that makes the definition, with all that its code shares, and take time and chance from \`turn\`.`,
    })
  }
}

function sameOrder(a: Played, b: Played): boolean {
  if (a.taken.length !== b.taken.length) return false
  return a.taken.every(({ option }, index) => option.every(({ id }, at) => b.taken[index]?.option[at]?.id === id))
}
