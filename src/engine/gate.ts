import type { Body } from './bodies.js'

interface Waiting {
  readonly ticket: number
  /** Null: it does not wait any more. */
  body: Body | null
}

/** The bodies that share the room that there is for one name. */
export interface Lane {
  readonly queue: Waiting[]
  head: number
  running: number
  /** How many may run at once. */
  limit: number
}

/**
 * Lets bodies start while there is room: so many at once in this process, so many at once of one agent. First come, first served among
 * those that may start; a wait that is taken back costs nothing.
 */
export class Gate {
  readonly #total: number
  readonly #limitOf: (lane: string) => number
  /** Told of a body when it has room. */
  readonly #entered: (body: Body) => void
  /** Told when one has to wait. */
  readonly #crowded: () => void
  readonly #lanes = new Map<string, Lane>()
  readonly #waiting = new Map<Body, Waiting>()
  #count = 0
  #tickets = 0

  constructor(total: number, limitOf: (lane: string) => number, entered: (body: Body) => void, crowded: () => void) {
    this.#total = total
    this.#limitOf = limitOf
    this.#entered = entered
    this.#crowded = crowded
  }

  lane(name: string): Lane {
    const known = this.#lanes.get(name)
    if (known !== undefined) return known
    const lane: Lane = { queue: [], head: 0, running: 0, limit: this.#limitOf(name) }
    this.#lanes.set(name, lane)
    return lane
  }

  /** Lets it enter now, or when there is room. */
  enter(body: Body): void {
    const { lane } = body.actor
    if (lane === null) return this.#entered(body)
    // While there is room in all, whoever waits waits for room in its own lane.
    if (this.#count < this.#total && lane.running < lane.limit && (this.#waiting.size === 0 || headOf(lane) === undefined)) {
      lane.running++
      this.#count++
      return this.#entered(body)
    }
    const waiting: Waiting = { ticket: this.#tickets++, body }
    this.#waiting.set(body, waiting)
    lane.queue.push(waiting)
    this.#crowded()
  }

  /** Whether somebody waits for room that one of this lane has. */
  isWanted(lane: Lane): boolean {
    if (this.#waiting.size === 0) return false
    if (headOf(lane) !== undefined) return true
    if (this.#count < this.#total) return false
    for (const other of this.#lanes.values()) if (other.running < other.limit && headOf(other) !== undefined) return true
    return false
  }

  /** It has run, or does not need its room any more, or its place in the queue. */
  leave(body: Body): void {
    const { lane } = body.actor
    if (lane === null) return
    const waiting = this.#waiting.size === 0 ? undefined : this.#waiting.get(body)
    if (waiting !== undefined) {
      waiting.body = null
      this.#waiting.delete(body)
      return
    }
    lane.running--
    this.#count--
    if (this.#waiting.size > 0) this.#letNext()
  }

  /** What limits there are has changed. */
  lookAgain(): void {
    for (const [agent, lane] of this.#lanes) lane.limit = this.#limitOf(agent)
    this.#letNext()
  }

  #letNext(): void {
    while (this.#waiting.size > 0 && this.#count < this.#total) {
      let first: { readonly lane: Lane; readonly body: Body; readonly ticket: number } | null = null
      for (const lane of this.#lanes.values()) {
        const waiting = lane.running < lane.limit ? headOf(lane) : undefined
        if (waiting === undefined || waiting.body === null || (first !== null && waiting.ticket > first.ticket)) continue
        first = { lane, body: waiting.body, ticket: waiting.ticket }
      }
      if (first === null) return
      first.lane.head++
      this.#waiting.delete(first.body)
      first.lane.running++
      this.#count++
      this.#entered(first.body)
    }
  }
}

function headOf(lane: Lane): Waiting | undefined {
  while (lane.queue[lane.head]?.body === null) lane.head++
  if (lane.head > 1_000 && lane.head * 2 > lane.queue.length) {
    lane.queue.splice(0, lane.head)
    lane.head = 0
  }
  return lane.queue[lane.head]
}
