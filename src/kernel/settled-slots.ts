import type { SettledSlot } from './state.js'

/** What several versions write to: each slot with its place in the order in which they settled. */
interface Log {
  readonly slots: (SettledSlot | undefined)[]
  readonly places: number[]
  length: number
}

/**
 * The slots of a barrier that have settled. Persistent, as a trie is, but a slot settles once, and in one order: so all versions share
 * one log, and each sees as much of it as was there when it was made. A version that is not the latest of its log takes a copy.
 */
export class SettledSlots {
  readonly #log: Log
  readonly #count: number

  private constructor(log: Log, count: number) {
    this.#log = log
    this.#count = count
  }

  static from(entries: Iterable<readonly [number, SettledSlot]>): SettledSlots {
    const log: Log = { slots: [], places: [], length: 0 }
    for (const [index, slot] of entries) write(log, index, slot)
    return new SettledSlots(log, log.length)
  }

  get(index: number): SettledSlot | undefined {
    const place = this.#log.places[index]
    return place !== undefined && place < this.#count ? this.#log.slots[index] : undefined
  }

  set(index: number, slot: SettledSlot): SettledSlots {
    const isLatest = this.#log.length === this.#count && this.get(index) === undefined
    const log = isLatest ? this.#log : SettledSlots.from(this.entries().filter(([other]) => other !== index)).#log
    write(log, index, slot)
    return new SettledSlots(log, log.length)
  }

  /** In the order of their places in the barrier, whatever the order in which they settled. */
  entries(): [number, SettledSlot][] {
    const entries: [number, SettledSlot][] = []
    for (let index = 0; index < this.#log.places.length; index++) {
      const slot = this.get(index)
      if (slot !== undefined) entries.push([index, slot])
    }
    return entries
  }
}

/** The place of a slot that has not settled. */
const never = 2 ** 30

function write(log: Log, index: number, slot: SettledSlot): void {
  // Without holes, which would make a list that begins far out a slow one.
  while (log.slots.length < index) {
    log.slots.push(undefined)
    log.places.push(never)
  }
  log.slots[index] = slot
  log.places[index] = log.length++
}
