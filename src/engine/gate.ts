interface Waiting {
  readonly ticket: number
  readonly start: () => void
  gone: boolean
}

interface Lane {
  readonly queue: Waiting[]
  head: number
  running: number
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

  constructor(total: number, limitOf: (agent: string) => number) {
    this.#total = total
    this.#limitOf = limitOf
  }

  /** Calls `start` now or later; gives a function that takes the wait back. */
  enter(agent: string, start: () => void): () => void {
    const waiting: Waiting = { ticket: this.#tickets++, start, gone: false }
    this.#laneOf(agent).queue.push(waiting)
    this.#startNext()
    return () => {
      waiting.gone = true
    }
  }

  leave(agent: string): void {
    this.#laneOf(agent).running--
    this.#count--
    this.#startNext()
  }

  #laneOf(agent: string): Lane {
    const known = this.#lanes.get(agent)
    if (known !== undefined) return known
    const lane: Lane = { queue: [], head: 0, running: 0 }
    this.#lanes.set(agent, lane)
    return lane
  }

  #startNext(): void {
    while (this.#count < this.#total) {
      let first: { readonly lane: Lane; readonly waiting: Waiting } | null = null
      for (const [agent, lane] of this.#lanes) {
        const waiting = lane.running < this.#limitOf(agent) ? headOf(lane) : undefined
        if (waiting !== undefined && (first === null || waiting.ticket < first.waiting.ticket)) first = { lane, waiting }
      }
      if (first === null) return
      first.lane.head++
      first.lane.running++
      this.#count++
      first.waiting.start()
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
