/**
 * A persistent map from strings to values: a 32-way hash trie. An update copies one path and shares the rest, so that a state costs
 * a pointer to keep, and two versions can be compared in the size of their difference.
 *
 * 1. A node is never changed after it was made, except by who made it: updates that name the same `edit` token change the nodes made
 *    under that token in place. Whoever holds a token keeps no older version of what it edits, and lets go of the token when it is done.
 * 2. Equal sets of keys give tries of equal shape, whatever the order of the updates: iteration depends on content alone.
 */
type Leaf<V> = { readonly hash: number; readonly key: string; readonly value: V }
type Twins<V> = { readonly hash: number; readonly twins: readonly Leaf<V>[] }
type Inner<V> = { bits: number; readonly kids: Node<V>[]; readonly edit: Edit | null }
type Node<V> = Leaf<V> | Twins<V> | Inner<V>

/** Stands for one piece of work that nobody else sees: an object of its own, with nothing in it. */
export type Edit = object

function hashOf(key: string): number {
  let hash = 0x811c9dc5
  for (let i = 0; i < key.length; i++) hash = Math.imul(hash ^ key.charCodeAt(i), 0x01000193)
  hash ^= hash >>> 15
  hash = Math.imul(hash, 0x2c1b3c6d)
  return hash ^ (hash >>> 13)
}

function countBits(bits: number): number {
  let n = bits - ((bits >>> 1) & 0x55555555)
  n = (n & 0x33333333) + ((n >>> 2) & 0x33333333)
  return Math.imul((n + (n >>> 4)) & 0x0f0f0f0f, 0x01010101) >>> 24
}

const bitOf = (hash: number, shift: number): number => 1 << ((hash >>> shift) & 31)
const indexOf = (bits: number, bit: number): number => countBits(bits & (bit - 1))

function replaced<T>(list: readonly T[], at: number, value: T): T[] {
  const copy = list.slice()
  copy[at] = value
  return copy
}

function inserted<T>(list: readonly T[], at: number, value: T): T[] {
  const copy = list.slice()
  copy.splice(at, 0, value)
  return copy
}

function without<T>(list: readonly T[], at: number): T[] {
  const copy = list.slice()
  copy.splice(at, 1)
  return copy
}

/** Two nodes of different hashes under one parent, however deep they part. */
function pairOf<V>(shift: number, a: Leaf<V> | Twins<V>, b: Leaf<V> | Twins<V>, edit: Edit | null): Inner<V> {
  const bitA = bitOf(a.hash, shift)
  const bitB = bitOf(b.hash, shift)
  if (bitA === bitB) return { bits: bitA, kids: [pairOf(shift + 5, a, b, edit)], edit }
  return { bits: bitA | bitB, kids: bitA >>> 0 < bitB >>> 0 ? [a, b] : [b, a], edit }
}

/** `size.by` becomes 1 if the key is new. */
function setIn<V>(node: Node<V>, shift: number, leaf: Leaf<V>, size: { by: number }, edit: Edit | null): Node<V> {
  if ('kids' in node) {
    const bit = bitOf(leaf.hash, shift)
    const at = indexOf(node.bits, bit)
    const kid = node.bits & bit ? node.kids[at] : undefined
    const own = edit !== null && node.edit === edit
    if (kid !== undefined) {
      const next = setIn(kid, shift + 5, leaf, size, edit)
      if (!own) return { bits: node.bits, kids: replaced(node.kids, at, next), edit }
      node.kids[at] = next
      return node
    }
    size.by = 1
    if (!own) return { bits: node.bits | bit, kids: inserted(node.kids, at, leaf), edit }
    node.bits |= bit
    node.kids.splice(at, 0, leaf)
    return node
  }
  if ('key' in node && node.key === leaf.key) return leaf
  if (node.hash !== leaf.hash || 'key' in node || node.twins.every((twin) => twin.key !== leaf.key)) size.by = 1
  if (node.hash !== leaf.hash) return pairOf(shift, node, leaf, edit)
  if ('key' in node) return { hash: leaf.hash, twins: sorted([node, leaf]) }
  return { hash: leaf.hash, twins: sorted([...node.twins.filter((twin) => twin.key !== leaf.key), leaf]) }
}

function sorted<V>(twins: Leaf<V>[]): Leaf<V>[] {
  return twins.sort((a, b) => (a.key < b.key ? -1 : 1))
}

function deleteIn<V>(node: Node<V>, shift: number, hash: number, key: string, size: { by: number }, edit: Edit | null): Node<V> | null {
  if ('key' in node) {
    if (node.key !== key) return node
    size.by = -1
    return null
  }
  if ('twins' in node) {
    const twins = node.twins.filter((twin) => twin.key !== key)
    if (twins.length === node.twins.length) return node
    size.by = -1
    return twins.length === 1 ? (twins[0] ?? null) : { hash: node.hash, twins }
  }
  const bit = bitOf(hash, shift)
  const at = indexOf(node.bits, bit)
  const kid = node.bits & bit ? node.kids[at] : undefined
  if (kid === undefined) return node
  const left = deleteIn(kid, shift + 5, hash, key, size, edit)
  if (size.by === 0) return node
  return left === null ? withoutKid(node, at, bit, edit) : withKid(node, at, left, edit)
}

function withoutKid<V>(node: Inner<V>, at: number, bit: number, edit: Edit | null): Node<V> | null {
  if (node.kids.length === 1) return null
  const [first, second] = node.kids
  const only = node.kids.length === 2 ? (at === 0 ? second : first) : undefined
  if (only !== undefined && !('kids' in only)) return only
  if (edit === null || node.edit !== edit) return { bits: node.bits & ~bit, kids: without(node.kids, at), edit }
  node.bits &= ~bit
  node.kids.splice(at, 1)
  return node
}

function withKid<V>(node: Inner<V>, at: number, kid: Node<V>, edit: Edit | null): Node<V> {
  if (node.kids.length === 1 && !('kids' in kid)) return kid
  if (edit === null || node.edit !== edit) return { bits: node.bits, kids: replaced(node.kids, at, kid), edit }
  node.kids[at] = kid
  return node
}

function getIn<V>(root: Node<V> | null, key: string): V | undefined {
  const hash = hashOf(key)
  let node = root
  for (let shift = 0; node !== null; shift += 5) {
    if ('key' in node) return node.key === key ? node.value : undefined
    if ('twins' in node) return node.twins.find((twin) => twin.key === key)?.value
    const bit = bitOf(hash, shift)
    if (!(node.bits & bit)) return undefined
    node = node.kids[indexOf(node.bits, bit)] ?? null
  }
  return undefined
}

function* leavesOf<V>(node: Node<V> | null): Generator<Leaf<V>> {
  if (node === null) return
  if ('key' in node) yield node
  else if ('twins' in node) yield* node.twins
  else for (const kid of node.kids) yield* leavesOf(kid)
}

/** The leaves that stand in one of the two nodes only; shared parts are skipped without a look. */
function* differing<V>(a: Node<V> | null, b: Node<V> | null): Generator<{ side: 'before' | 'after'; leaf: Leaf<V> }> {
  if (a === b) return
  if (a !== null && b !== null && 'kids' in a && 'kids' in b) {
    for (let all = a.bits | b.bits; all !== 0; all &= all - 1) {
      const bit = all & -all
      const inA = a.bits & bit ? (a.kids[indexOf(a.bits, bit)] ?? null) : null
      const inB = b.bits & bit ? (b.kids[indexOf(b.bits, bit)] ?? null) : null
      yield* differing(inA, inB)
    }
    return
  }
  const same = new Set<Leaf<V>>()
  const before = [...leavesOf(a)]
  for (const leaf of leavesOf(b)) {
    if (before.includes(leaf)) same.add(leaf)
    else yield { side: 'after', leaf }
  }
  for (const leaf of before) if (!same.has(leaf)) yield { side: 'before', leaf }
}

export class Trie<V> {
  readonly size: number
  readonly #root: Node<V> | null

  private constructor(root: Node<V> | null, size: number) {
    this.#root = root
    this.size = size
  }

  static empty<V>(): Trie<V> {
    return new Trie<V>(null, 0)
  }

  static from<V>(entries: Iterable<readonly [string, V]>): Trie<V> {
    const edit: Edit = {}
    let trie = Trie.empty<V>()
    for (const [key, value] of entries) trie = trie.set(key, value, edit)
    return trie
  }

  get(key: string): V | undefined {
    return getIn(this.#root, key)
  }

  has(key: string): boolean {
    return getIn(this.#root, key) !== undefined
  }

  set(key: string, value: V, edit: Edit | null = null): Trie<V> {
    const leaf: Leaf<V> = { hash: hashOf(key), key, value }
    if (this.#root === null) return new Trie(leaf, 1)
    const size = { by: 0 }
    const root = setIn(this.#root, 0, leaf, size, edit)
    return new Trie(root, this.size + size.by)
  }

  delete(key: string, edit: Edit | null = null): Trie<V> {
    if (this.#root === null) return this
    const size = { by: 0 }
    const root = deleteIn(this.#root, 0, hashOf(key), key, size, edit)
    return size.by === 0 ? this : new Trie(root, this.size - 1)
  }

  *keys(): Generator<string> {
    for (const leaf of leavesOf(this.#root)) yield leaf.key
  }

  *values(): Generator<V> {
    for (const leaf of leavesOf(this.#root)) yield leaf.value
  }

  *entries(): Generator<[string, V]> {
    for (const leaf of leavesOf(this.#root)) yield [leaf.key, leaf.value]
  }

  /** What became of `before`: entries that are new or changed, and keys that are gone. Costs as much as the difference. */
  static changes<V>(before: Trie<V>, after: Trie<V>): { set: [string, V][]; gone: string[] } {
    const set: [string, V][] = []
    const gone: string[] = []
    if (before === after) return { set, gone }
    for (const { side, leaf } of differing(before.#root, after.#root)) {
      if (side === 'after') {
        if (before.get(leaf.key) !== leaf.value) set.push([leaf.key, leaf.value])
      } else if (!after.has(leaf.key)) gone.push(leaf.key)
    }
    return { set, gone }
  }
}
