import { compareIds } from './ids.js'
import type { Entry } from './undo-state.js'

/** By whom something was done, and when on their way: what orders entries. */
export type Placed = Pick<Entry, 'id' | 'branch' | 'turn'>

export function compareEntries(a: Placed, b: Placed): number {
  return compareIds(a.branch, b.branch) || a.turn - b.turn || (a.id < b.id ? -1 : a.id === b.id ? 0 : 1)
}

/** `reach`: how far it is to the next free place. Nowhere is it farther on the right, so that the way there has a logarithm of steps. */
interface Heap {
  readonly first: Placed
  readonly reach: number
  readonly left: Heap | null
  readonly right: Heap | null
}

/**
 * The entries whose undo may start, the lowest at hand: where there is no room for all, each that ends lets one start, and must not cost as much as
 * all that wait. Persistent, as a trie is.
 */
export class ReadyUndos {
  static readonly none: ReadyUndos = new ReadyUndos(null, 0)

  readonly size: number
  readonly #heap: Heap | null

  private constructor(heap: Heap | null, size: number) {
    this.#heap = heap
    this.size = size
    Object.freeze(this)
  }

  get first(): Placed | null {
    return this.#heap?.first ?? null
  }

  with({ id, branch, turn }: Placed): ReadyUndos {
    return new ReadyUndos(merged(this.#heap, { first: { id, branch, turn }, reach: 1, left: null, right: null }), this.size + 1)
  }

  /** Without one of them; mostly it is the first. */
  without(id: string): ReadyUndos {
    const heap = this.#heap
    if (heap === null) return this
    if (heap.first.id === id) return new ReadyUndos(merged(heap.left, heap.right), this.size - 1)
    return this.all()
      .filter((other) => other.id !== id)
      .reduce((left, other) => left.with(other), ReadyUndos.none)
  }

  /** In their order. */
  all(): readonly Placed[] {
    const found: Placed[] = []
    const open = [this.#heap]
    for (let heap = open.pop(); heap !== undefined; heap = open.pop()) {
      if (heap === null) continue
      found.push(heap.first)
      open.push(heap.left, heap.right)
    }
    return found.sort(compareEntries)
  }
}

function merged(a: Heap | null, b: Heap | null): Heap | null {
  if (a === null) return b
  if (b === null) return a
  const [low, high] = compareEntries(a.first, b.first) <= 0 ? [a, b] : [b, a]
  const other = merged(low.right, high)
  const [left, right] = reachOf(low.left) >= reachOf(other) ? [low.left, other] : [other, low.left]
  return { first: low.first, reach: reachOf(right) + 1, left, right }
}

const reachOf = (heap: Heap | null): number => heap?.reach ?? 0
