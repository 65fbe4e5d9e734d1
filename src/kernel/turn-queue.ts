import type { Edit } from './trie.js'

/**
 * The branches that wait for their turn to start, by ticket. Tickets are given out in order, and nearly always leave in order. Persistent,
 * as a trie is: all versions share one list that only grows, and each sees its part of it. A version that is not the latest of its list,
 * or of which something leaves in the middle, takes a copy.
 */
export class TurnQueue {
  /** From the ticket `#base` on; null has left. */
  #ids: (string | null)[]
  #base: number
  /** The next that leaves, and the ticket that is given out next. */
  #head: number
  #tail: number
  #size: number
  readonly #edit: Edit | null

  private constructor(ids: (string | null)[], base: number, head: number, tail: number, size: number, edit: Edit | null) {
    this.#ids = ids
    this.#base = base
    this.#head = head
    this.#tail = tail
    this.#size = size
    this.#edit = edit
  }

  static from(entries: Iterable<readonly [number, string]>, tail: number): TurnQueue {
    const all = [...entries]
    const head = all[0]?.[0] ?? tail
    const ids: (string | null)[] = Array.from({ length: tail - head }, () => null)
    for (const [ticket, id] of all) ids[ticket - head] = id
    return new TurnQueue(ids, head, head, tail, all.length, null)
  }

  get size(): number {
    return this.#size
  }

  /** The ticket that is given out next. */
  get tail(): number {
    return this.#tail
  }

  /** Who is next. */
  get first(): string | undefined {
    return this.get(this.#head)
  }

  get(ticket: number): string | undefined {
    return ticket < this.#head || ticket >= this.#tail ? undefined : (this.#ids[ticket - this.#base] ?? undefined)
  }

  push(id: string, edit: Edit | null): TurnQueue {
    return this.pushAll([id], edit)
  }

  /** The same for several, one after the other. */
  pushAll(ids: readonly string[], edit: Edit | null): TurnQueue {
    const own = this.own(edit)
    if (own.#ids.length !== own.#tail - own.#base) own.copy()
    for (let place = 0; place < ids.length; place++) own.#ids.push(ids[place] ?? null)
    own.#tail += ids.length
    own.#size += ids.length
    return own
  }

  /** Without the first so many, of which none has left before. */
  dropFirst(count: number, edit: Edit | null): TurnQueue {
    const own = this.own(edit)
    own.#size -= count
    own.#head += count
    own.passOver()
    return own
  }

  delete(ticket: number, edit: Edit | null): TurnQueue {
    if (this.get(ticket) === undefined) return this
    const own = this.own(edit)
    own.#size--
    if (ticket !== own.#head) {
      own.copy()
      own.#ids[ticket - own.#base] = null
      return own
    }
    own.#head++
    own.passOver()
    return own
  }

  entries(): [number, string][] {
    const entries: [number, string][] = []
    for (let ticket = this.#head; ticket < this.#tail; ticket++) {
      const id = this.get(ticket)
      if (id !== undefined) entries.push([ticket, id])
    }
    return entries
  }

  values(): string[] {
    return this.entries().map(([, id]) => id)
  }

  private own(edit: Edit | null): TurnQueue {
    if (edit !== null && this.#edit === edit) return this
    return new TurnQueue(this.#ids, this.#base, this.#head, this.#tail, this.#size, edit)
  }

  /** Those who have left are passed over, and let go once they are the larger part. */
  private passOver(): void {
    while (this.#head < this.#tail && this.#ids[this.#head - this.#base] === null) this.#head++
    if (this.#head - this.#base > 64 && this.#head - this.#base > this.#tail - this.#head) this.copy()
  }

  private copy(): void {
    this.#ids = this.#ids.slice(this.#head - this.#base, this.#tail - this.#base)
    this.#base = this.#head
  }
}
