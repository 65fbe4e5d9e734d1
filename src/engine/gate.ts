/** Something that needs room to run in. */
export interface Entrant {
  /** Whose room it takes. */
  readonly lane: string
  /** Called when it has room. */
  enter(): void
}

interface Waiting {
  readonly ticket: number
  /** Null: it does not wait any more. */
  entrant: Entrant | null
}

interface Lane {
  readonly queue: Waiting[]
  head: number
  running: number
  /** How many may run at once. */
  limit: number
}

/**
 * Lets turns start while there is room: so many at once in this process, so many at once of one agent. First come, first served among
 * those that may start; a wait that is taken back costs nothing.
 */
export class Gate {
  readonly #total: number
  readonly #limitOf: (lane: string) => number
  readonly #lanes = new Map<string, Lane>()
  readonly #waiting = new Map<Entrant, Waiting>()
  #count = 0
  #tickets = 0

  constructor(total: number, limitOf: (lane: string) => number) {
    this.#total = total
    this.#limitOf = limitOf
  }

  /** Lets it enter now, or when there is room. */
  enter(entrant: Entrant): void {
    const lane = this.#laneOf(entrant.lane)
    // While there is room in all, whoever waits waits for room in its own lane.
    if (this.#count < this.#total && lane.running < lane.limit && headOf(lane) === undefined) return this.#let(lane, entrant)
    const waiting: Waiting = { ticket: this.#tickets++, entrant }
    this.#waiting.set(entrant, waiting)
    lane.queue.push(waiting)
  }

  /** It has run, or does not need its room any more, or its place in the queue. */
  leave(entrant: Entrant): void {
    const waiting = this.#waiting.get(entrant)
    if (waiting !== undefined) {
      waiting.entrant = null
      this.#waiting.delete(entrant)
      return
    }
    this.#laneOf(entrant.lane).running--
    this.#count--
    this.#letNext()
  }

  /** What limits there are has changed. */
  lookAgain(): void {
    for (const [agent, lane] of this.#lanes) lane.limit = this.#limitOf(agent)
    this.#letNext()
  }

  #laneOf(name: string): Lane {
    const known = this.#lanes.get(name)
    if (known !== undefined) return known
    const lane: Lane = { queue: [], head: 0, running: 0, limit: this.#limitOf(name) }
    this.#lanes.set(name, lane)
    return lane
  }

  #let(lane: Lane, entrant: Entrant): void {
    lane.running++
    this.#count++
    entrant.enter()
  }

  #letNext(): void {
    while (this.#waiting.size > 0 && this.#count < this.#total) {
      let first: { readonly lane: Lane; readonly entrant: Entrant; readonly ticket: number } | null = null
      for (const lane of this.#lanes.values()) {
        const waiting = lane.running < lane.limit ? headOf(lane) : undefined
        if (waiting === undefined || waiting.entrant === null || (first !== null && waiting.ticket > first.ticket)) continue
        first = { lane, entrant: waiting.entrant, ticket: waiting.ticket }
      }
      if (first === null) return
      first.lane.head++
      this.#waiting.delete(first.entrant)
      this.#let(first.lane, first.entrant)
    }
  }
}

function headOf(lane: Lane): Waiting | undefined {
  while (lane.queue[lane.head]?.entrant === null) lane.head++
  if (lane.head > 1_000 && lane.head * 2 > lane.queue.length) {
    lane.queue.splice(0, lane.head)
    lane.head = 0
  }
  return lane.queue[lane.head]
}
