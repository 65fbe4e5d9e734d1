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
 * changes what is written, takes a copy. Who made a version under an `edit` token may change it in place, as with a trie.
 */
export class SlotMap<V> {
  #log: Log<V>
  #count: number
  #size: number
  readonly #edit: Edit | null

  private constructor(log: Log<V>, count: number, size: number, edit: Edit | null) {
    this.#log = log
    this.#count = count
    this.#size = size
    this.#edit = edit
  }

  static from<V>(entries: Iterable<readonly [number, V]>, edit: Edit | null = null): SlotMap<V> {
    const log: Log<V> = { values: [], places: [], length: 0, edit }
    for (const [index, value] of entries) write(log, index, value)
    return new SlotMap(log, log.length, log.length, edit)
  }

  get size(): number {
    return this.#size
  }

  get(index: number): V | undefined {
    const place = this.#log.places[index]
    return place !== undefined && place < this.#count ? this.#log.values[index] : undefined
  }

  set(index: number, value: V, edit: Edit | null = null): SlotMap<V> {
    const place = this.#log.places[index]
    if (place !== undefined && place < this.#count) return this.delete(index, edit).set(index, value, edit)
    const own = edit !== null && this.#edit === edit ? this : new SlotMap(this.#log, this.#count, this.#size, edit)
    if (own.#log.length !== own.#count) own.#log = SlotMap.from(this.entries(), edit).#log
    write(own.#log, index, value)
    own.#count = own.#log.length
    own.#size++
    return own
  }

  delete(index: number, edit: Edit | null): SlotMap<V> {
    if (this.get(index) === undefined) return this
    const isOwn = edit !== null && this.#log.edit === edit && this.#log.length === this.#count
    const log = isOwn ? this.#log : SlotMap.from(this.entries(), edit).#log
    log.values[index] = undefined
    log.places[index] = never
    return new SlotMap(log, log.length, this.#size - 1, edit)
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
