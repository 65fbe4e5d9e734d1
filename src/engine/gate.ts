interface Waiting {
  readonly ticket: number
  readonly start: () => void
  gone: boolean
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
  readonly #limitOf: (agent: string) => number
  readonly #lanes = new Map<string, Lane>()
  #count = 0
  #tickets = 0
  #waiting = 0

  constructor(total: number, limitOf: (agent: string) => number) {
    this.#total = total
    this.#limitOf = limitOf
  }

  /** Calls `start` now, or later: then gives a function that takes the wait back. */
  enter(agent: string, start: () => void): (() => void) | null {
    const lane = this.#laneOf(agent)
    // While there is room in all, whoever waits waits for room in its own lane.
    if (this.#count < this.#total && lane.running < lane.limit && headOf(lane) === undefined) {
      this.#start(lane, start)
      return null
    }
    const waiting: Waiting = { ticket: this.#tickets++, start, gone: false }
    lane.queue.push(waiting)
    this.#waiting++
    return () => {
      if (!waiting.gone) this.#waiting--
      waiting.gone = true
    }
  }

  leave(agent: string): void {
    this.#laneOf(agent).running--
    this.#count--
    if (this.#waiting > 0) this.#startNext()
  }

  /** What limits there are has changed. */
  lookAgain(): void {
    for (const [agent, lane] of this.#lanes) lane.limit = this.#limitOf(agent)
    if (this.#waiting > 0) this.#startNext()
  }

  #laneOf(agent: string): Lane {
    const known = this.#lanes.get(agent)
    if (known !== undefined) return known
    const lane: Lane = { queue: [], head: 0, running: 0, limit: this.#limitOf(agent) }
    this.#lanes.set(agent, lane)
    return lane
  }

  #start(lane: Lane, start: () => void): void {
    lane.running++
    this.#count++
    start()
  }

  #startNext(): void {
    while (this.#count < this.#total) {
      let first: { readonly lane: Lane; readonly waiting: Waiting } | null = null
      for (const lane of this.#lanes.values()) {
        const waiting = lane.running < lane.limit ? headOf(lane) : undefined
        if (waiting !== undefined && (first === null || waiting.ticket < first.waiting.ticket)) first = { lane, waiting }
      }
      if (first === null) return
      first.lane.head++
      first.waiting.gone = true
      this.#waiting--
      this.#start(first.lane, first.waiting.start)
    }
  }
}

function headOf(lane: Lane): Waiting | undefined {
  while (lane.queue[lane.head]?.gone) lane.head++
  if (lane.head > 1_000 && lane.head * 2 > lane.queue.length) {
    lane.queue.splice(0, lane.head)
    lane.head = 0
  }
  return lane.queue[lane.head]
}
