/** Numbers that depend on a seed alone. */
export class Random {
  #at: number

  constructor(seed: string) {
    let hash = 0x811c9dc5
    for (let i = 0; i < seed.length; i++) hash = Math.imul(hash ^ seed.charCodeAt(i), 0x01000193)
    this.#at = hash >>> 0
  }

  /** In [0, 1). */
  next(): number {
    this.#at = (this.#at + 0x9e3779b9) >>> 0
    let mixed = this.#at
    mixed = Math.imul(mixed ^ (mixed >>> 16), 0x21f0aaad)
    mixed = Math.imul(mixed ^ (mixed >>> 15), 0x735a2d97)
    return ((mixed ^ (mixed >>> 15)) >>> 0) / 2 ** 32
  }

  below(count: number): number {
    return Math.floor(this.next() * count)
  }

  pick<T>(items: readonly T[]): T {
    const found = items[this.below(items.length)]
    if (found === undefined) throw new Error('there is nothing to pick from')
    return found
  }
}
