import type { Edit } from './trie.js'

/** What several versions write to: each value with its place in the order in which they were written. */
interface Log<V> {
  readonly values: (V | undefined)[]
  readonly places: number[]
  length: number
  /** Who made it, and may change what is written. */
  readonly edit: Edit | null
}

/** The place of what is not there. */
const never = 2 ** 30

/**
 * What stands at the slots of a barrier. Persistent, as a trie is, but a slot is nearly always written once and in one order: so all
 * versions share one log, and each sees as much of it as was there when it was made. A version that is not the latest of its log, or that
 * changes what is written, takes a copy.
 */
export class SlotMap<V> {
  readonly #log: Log<V>
  readonly #count: number
  readonly size: number

  private constructor(log: Log<V>, size: number) {
    this.#log = log
    this.#count = log.length
    this.size = size
  }

  static from<V>(entries: Iterable<readonly [number, V]>, edit: Edit | null = null): SlotMap<V> {
    const log: Log<V> = { values: [], places: [], length: 0, edit }
    for (const [index, value] of entries) write(log, index, value)
    return new SlotMap(log, log.length)
  }

  get(index: number): V | undefined {
    const place = this.#log.places[index]
    return place !== undefined && place < this.#count ? this.#log.values[index] : undefined
  }

  set(index: number, value: V): SlotMap<V> {
    if (this.get(index) !== undefined) return this.delete(index, null).set(index, value)
    const log = this.#log.length === this.#count ? this.#log : SlotMap.from(this.entries()).#log
    write(log, index, value)
    return new SlotMap(log, this.size + 1)
  }

  delete(index: number, edit: Edit | null): SlotMap<V> {
    if (this.get(index) === undefined) return this
    const isOwn = edit !== null && this.#log.edit === edit && this.#log.length === this.#count
    const log = isOwn ? this.#log : SlotMap.from(this.entries(), edit).#log
    log.values[index] = undefined
    log.places[index] = never
    return new SlotMap(log, this.size - 1)
  }

  /** In the order of the slots, whatever the order in which they were written. */
  values(): V[] {
    const values: V[] = []
    for (let index = 0; index < this.#log.places.length; index++) {
      const value = this.get(index)
      if (value !== undefined) values.push(value)
    }
    return values
  }

  entries(): [number, V][] {
    const entries: [number, V][] = []
    for (let index = 0; index < this.#log.places.length; index++) {
      const value = this.get(index)
      if (value !== undefined) entries.push([index, value])
    }
    return entries
  }
}

function write<V>(log: Log<V>, index: number, value: V): void {
  // Without holes, which would make a list that begins far out a slow one.
  while (log.values.length < index) {
    log.values.push(undefined)
    log.places.push(never)
  }
  log.values[index] = value
  log.places[index] = log.length++
}
