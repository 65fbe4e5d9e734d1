/**
 * A persistent map from strings or whole numbers to values. An update copies one path and shares the rest, so that a state costs a
 * pointer to keep, and two versions can be compared in the size of their difference.
 *
 * 1. It branches eight ways on the highest bits in which its hashes differ, and skips those in which they agree. Hashes of ids that
 *    differ in their last number only differ as those numbers do: siblings lie side by side, and are read and let go together.
 * 2. A node is never changed after it was made, except by who made it: updates that name the same `edit` token change the nodes made
 *    under that token in place. Whoever holds a token keeps no older version of what it edits, and lets go of the token when it is done.
 * 3. Equal sets of keys give tries of equal shape, whatever the order of the updates: iteration depends on content alone.
 */
type Key = string | number

/** Stands for one piece of work that nobody else sees: a number that no earlier piece on the same tries has had. */
export type Edit = number

/** What belongs to nobody is never changed in place. */
const nobody: Edit = -1
/** A trie that is made from nothing. */
const maker: Edit = -2

// Nodes are plain objects, and only an inner one has a shift: a path is walked while the code is still cold, and there a constructor or
// an `instanceof` costs more than what it does.

interface Leaf<V> {
  readonly shift?: undefined
  readonly all?: undefined
  readonly key: Key
  value: V
  readonly edit: Edit
}

/** Keys of one hash, in their order. */
interface Twins<V> {
  readonly shift?: undefined
  readonly hash: number
  readonly all: readonly Leaf<V>[]
}

/** Its kids stand in fields and not in a list, because that is one object for each node of a path instead of three. */
interface Inner<V> {
  /** The hash of anything below it: they are all equal above `shift + 3`. */
  readonly hash: number
  readonly shift: number
  readonly edit: Edit
  a: Node<V> | null
  b: Node<V> | null
  c: Node<V> | null
  d: Node<V> | null
  e: Node<V> | null
  f: Node<V> | null
  g: Node<V> | null
  h: Node<V> | null
}

type Node<V> = Leaf<V> | Twins<V> | Inner<V>

/** The number at its end is added to a hash of what stands before it. */
function hashOf(key: Key): number {
  if (typeof key === 'number') return key | 0
  let end = key.length
  let number = 0
  for (let unit = 1; end > 0 && unit < 1_000_000_000; unit *= 10) {
    const digit = key.charCodeAt(end - 1) - 48
    if (digit < 0 || digit > 9) break
    number += digit * unit
    end--
  }
  let hash = 0x811c9dc5
  for (let i = 0; i < end; i++) hash = Math.imul(hash ^ key.charCodeAt(i), 0x01000193)
  hash ^= hash >>> 15
  hash = Math.imul(hash, 0x2c1b3c6d)
  return hash ^ (hash >>> 13) ^ number
}

/** Whether a hash agrees with those below a node, above the bits on which it branches. */
const isUnder = (hash: number, node: { hash: number; shift: number }): boolean => (hash ^ node.hash) >>> node.shift < 8

/** Where two different hashes part: the shift of the highest three bits that differ. */
function partingOf(a: number, b: number): number {
  const highest = 31 - Math.clz32(a ^ b)
  return highest - (highest % 3)
}

function kidOf<V>(node: Inner<V>, place: number): Node<V> | null {
  switch (place) {
    case 0:
      return node.a
    case 1:
      return node.b
    case 2:
      return node.c
    case 3:
      return node.d
    case 4:
      return node.e
    case 5:
      return node.f
    case 6:
      return node.g
    default:
      return node.h
  }
}

function putKid<V>(node: Inner<V>, place: number, kid: Node<V> | null): void {
  switch (place) {
    case 0:
      node.a = kid
      return
    case 1:
      node.b = kid
      return
    case 2:
      node.c = kid
      return
    case 3:
      node.d = kid
      return
    case 4:
      node.e = kid
      return
    case 5:
      node.f = kid
      return
    case 6:
      node.g = kid
      return
    default:
      node.h = kid
  }
}

/** The node, to be changed: itself, if it belongs to this edit. */
function owned<V>(node: Inner<V>, edit: Edit): Inner<V> {
  if (edit !== nobody && node.edit === edit) return node
  const { hash, shift, a, b, c, d, e, f, g, h } = node
  return { hash, shift, edit, a, b, c, d, e, f, g, h }
}

/** A leaf does not keep its hash: there are many of them, and it is seldom asked for. */
function hashBelow<V>(node: Node<V>): number {
  return node.shift === undefined && node.all === undefined ? hashOf(node.key) : node.hash
}

/** A node and a leaf that part somewhere, under a new one. */
function pairOf<V>(node: Node<V>, leaf: Leaf<V>, hash: number, edit: Edit): Inner<V> {
  const other = hashBelow(node)
  const shift = partingOf(hash, other)
  const pair: Inner<V> = { hash, shift, edit, a: null, b: null, c: null, d: null, e: null, f: null, g: null, h: null }
  putKid(pair, (other >>> shift) & 7, node)
  putKid(pair, (hash >>> shift) & 7, leaf)
  return pair
}

/** What comes to stand where a path ends: the leaf, in the place of the one with its key or beside what is there. */
function joined<V>(node: Node<V>, leaf: Leaf<V>, hash: number, edit: Edit): Node<V> {
  if (node.shift !== undefined) return pairOf(node, leaf, hash, edit)
  if (node.all === undefined && node.key === leaf.key) return leaf
  if (hashBelow(node) !== hash) return pairOf(node, leaf, hash, edit)
  const others = node.all === undefined ? [node] : node.all.filter((twin) => twin.key !== leaf.key)
  return { hash, all: [...others, leaf].sort((a, b) => (a.key < b.key ? -1 : 1)) }
}

/** What is left of where a path ends without a key that is there. */
function without<V>(node: Leaf<V> | Twins<V>, key: Key): Node<V> | null {
  if (node.all === undefined) return null
  const all = node.all.filter((twin) => twin.key !== key)
  return all.length === 1 ? (all[0] ?? null) : { hash: node.hash, all }
}

/** The one kid that is left beside the one at this place, if it is one: it takes the node's place. */
function onlyKidBut<V>(node: Inner<V>, place: number): Node<V> | null {
  let only: Node<V> | null = null
  for (let other = 0; other < 8; other++) {
    const kid = other === place ? null : kidOf(node, other)
    if (kid === null) continue
    if (only !== null) return null
    only = kid
  }
  return only
}

const isLeaf = <V>(node: Node<V>): node is Leaf<V> => node.shift === undefined && node.all === undefined

function leafIn<V>(root: Node<V>, hash: number, key: Key): Leaf<V> | null {
  let node: Node<V> | null = root
  while (node !== null && node.shift !== undefined) node = kidOf(node, (hash >>> node.shift) & 7)
  if (node === null) return null
  if (node.all === undefined) return node.key === key ? node : null
  return node.all.find((twin) => twin.key === key) ?? null
}

function leavesOf<V>(node: Node<V> | null, found: Leaf<V>[] = []): Leaf<V>[] {
  if (node === null) return found
  if (node.shift !== undefined) for (let place = 0; place < 8; place++) leavesOf(kidOf(node, place), found)
  else if (node.all === undefined) found.push(node)
  else found.push(...node.all)
  return found
}

/** Whether a node is one under which the other would stand. */
function isAbove<V>(node: Node<V> | null, other: Node<V>): node is Inner<V> {
  if (node === null || node.shift === undefined) return false
  return isUnder(hashBelow(other), node) && !(other.shift !== undefined && other.shift >= node.shift)
}

/** Hands over the leaves that stand in one of the two nodes only; shared parts are skipped without a look. */
function compare<V>(a: Node<V> | null, b: Node<V> | null, before: (leaf: Leaf<V>) => void, after: (leaf: Leaf<V>) => void): void {
  if (a === b) return
  if (a !== null && b !== null && a.shift !== undefined && b.shift !== undefined && a.shift === b.shift && isUnder(a.hash, b)) {
    for (let place = 0; place < 8; place++) compare(kidOf(a, place), kidOf(b, place), before, after)
  } else if (b !== null && isAbove(a, b)) {
    const home = (hashBelow(b) >>> a.shift) & 7
    for (let place = 0; place < 8; place++) compare(kidOf(a, place), place === home ? b : null, before, after)
  } else if (a !== null && isAbove(b, a)) {
    const home = (hashBelow(a) >>> b.shift) & 7
    for (let place = 0; place < 8; place++) compare(place === home ? a : null, kidOf(b, place), before, after)
  } else {
    for (const leaf of leavesOf(a)) before(leaf)
    for (const leaf of leavesOf(b)) after(leaf)
  }
}

/** Most of what is compared has not changed. */
const unchanged: { readonly set: readonly never[]; readonly gone: readonly never[] } = Object.freeze({
  set: Object.freeze([]),
  gone: Object.freeze([]),
})

export class Trie<V, K extends Key = string> {
  /** Changed by updates under its own edit alone, as its nodes are. */
  #root: Node<V> | null
  /** How many there are. It changes as the root does, and is written here alone. */
  size: number
  readonly #edit: Edit
  /** What was last looked for, and its hash: one decision asks for the same few again and again. */
  #last: Leaf<V> | null = null
  #hash = 0

  private constructor(root: Node<V> | null, size: number, edit: Edit) {
    this.#root = root
    this.size = size
    this.#edit = edit
  }

  static empty<V, K extends Key = string>(): Trie<V, K> {
    return new Trie<V, K>(null, 0, nobody)
  }

  static from<V, K extends Key = string>(entries: Iterable<readonly [K, V]>): Trie<V, K> {
    let trie = Trie.empty<V, K>()
    for (const [key, value] of entries) trie = trie.set(key, value, maker)
    return trie
  }

  // Most have nothing in them, or what was last looked for: that is asked here, and not in one more call.

  get(key: K): V | undefined {
    const last = this.#last
    if (last !== null && last.key === key) return last.value
    return this.#root === null ? undefined : this.leaf(this.#root, key)?.value
  }

  has(key: K): boolean {
    return this.#root !== null && this.leaf(this.#root, key) !== null
  }

  private leaf(root: Node<V>, key: K): Leaf<V> | null {
    const last = this.#last
    if (last !== null && last.key === key) return last
    // The one key that there is needs no hash to be found.
    const hash = isLeaf(root) ? 0 : hashOf(key)
    const leaf = leafIn(root, hash, key)
    if (leaf !== null) {
      this.#last = leaf
      this.#hash = hash
    }
    return leaf
  }

  /** The value, if it was put here under this edit: whoever has the token made it and may change it. */
  own(key: K, edit: Edit | null): V | undefined {
    const leaf = this.#root === null ? null : this.leaf(this.#root, key)
    return leaf !== null && leaf.edit === edit ? leaf.value : undefined
  }

  /** One walk down: what is on the path is copied, or is this edit's already. */
  set(key: K, value: V, edit: Edit | null = null): Trie<V, K> {
    const by = edit ?? nobody
    const last = this.#last
    if (last !== null && last.key === key && last.edit === by && by !== nobody) {
      last.value = value
      return this
    }
    const leaf: Leaf<V> = { key, value, edit: by }
    let root = this.#root
    if (root === null || (root.shift === undefined && root.all === undefined && root.key === key)) return this.with(leaf, 1, by, leaf, 0)
    const hash = last !== null && last.key === key ? this.#hash : hashOf(key)
    let above: Inner<V> | null = null
    let place = 0
    let node: Node<V> | null = root
    while (node !== null && node.shift !== undefined && isUnder(hash, node)) {
      const own: Inner<V> = owned(node, by)
      if (above === null) root = own
      else if (own !== node) putKid(above, place, own)
      above = own
      place = (hash >>> own.shift) & 7
      node = kidOf(own, place)
    }
    const grows = node === null || node.shift !== undefined || leafIn(node, hash, key) === null
    const end = node === null ? leaf : joined(node, leaf, hash, by)
    if (above === null) root = end
    else putKid(above, place, end)
    return this.with(root, grows ? this.size + 1 : this.size, by, leaf, hash)
  }

  delete(key: K, edit: Edit | null = null): Trie<V, K> {
    const top = this.#root
    if (top === null || this.leaf(top, key) === null) return this
    const by = edit ?? nobody
    const size = this.size - 1
    const hash = this.#hash
    let root: Node<V> | null = top
    let above: Inner<V> | null = null
    let place = 0
    let node: Node<V> | null = top
    while (node !== null && node.shift !== undefined) {
      const next: number = (hash >>> node.shift) & 7
      const kid: Node<V> | null = kidOf(node, next)
      const left: Node<V> | null = kid === null || kid.shift !== undefined ? kid : without(kid, key)
      const only: Node<V> | null = left === null ? onlyKidBut(node, next) : null
      const own: Node<V> = only ?? owned(node, by)
      if (above === null) root = own
      else if (own !== node) putKid(above, place, own)
      if (only !== null || own.shift === undefined) return this.with(root, size, by, null, 0)
      if (left !== kid) {
        putKid(own, next, left)
        return this.with(root, size, by, null, 0)
      }
      above = own
      place = next
      node = kid
    }
    return this.with(node === null ? null : without(node, key), size, by, null, 0)
  }

  /** The trie with another root: itself, if it belongs to this edit. `last` is what was put there, if something was. */
  private with(root: Node<V> | null, size: number, edit: Edit, last: Leaf<V> | null, hash: number): Trie<V, K> {
    const own = edit !== nobody && this.#edit === edit ? this : new Trie<V, K>(root, size, edit)
    own.#root = root
    own.size = size
    own.#last = last
    own.#hash = hash
    return own
  }

  keys(): K[] {
    return leavesOf(this.#root).map((leaf) => leaf.key as K)
  }

  values(): V[] {
    return leavesOf(this.#root).map((leaf) => leaf.value)
  }

  entries(): [K, V][] {
    return leavesOf(this.#root).map((leaf) => [leaf.key as K, leaf.value])
  }

  /** What became of `before`: entries that are new or changed, and keys that are gone. Costs as much as the difference. */
  static changes<V, K extends Key>(
    before: Trie<V, K>,
    after: Trie<V, K>,
  ): { readonly set: readonly [K, V][]; readonly gone: readonly K[] } {
    if (before.#root === after.#root) return unchanged
    const set: [K, V][] = []
    const gone: K[] = []
    compare(
      before.#root,
      after.#root,
      (leaf) => {
        if (!after.has(leaf.key as K)) gone.push(leaf.key as K)
      },
      (leaf) => {
        if (before.get(leaf.key as K) !== leaf.value) set.push([leaf.key as K, leaf.value])
      },
    )
    return { set, gone }
  }
}
