/**
 * A persistent row of a fixed width: get and set by index, 32 to a node. The slots of a barrier, where one of ten thousand is settled
 * at a time and the others are shared.
 */
type Node<T> = readonly (Node<T> | T | undefined)[]

export class Row<T> {
  readonly width: number
  readonly #depth: number
  readonly #root: Node<T>

  private constructor(width: number, depth: number, root: Node<T>) {
    this.width = width
    this.#depth = depth
    this.#root = root
  }

  static of<T>(width: number): Row<T> {
    let depth = 0
    for (let room = 32; room < width; room *= 32) depth++
    return new Row<T>(width, depth, [])
  }

  get(index: number): T | undefined {
    let node: Node<T> = this.#root
    for (let shift = this.#depth * 5; shift > 0; shift -= 5) {
      const next = node[(index >>> shift) & 31]
      if (next === undefined) return undefined
      node = next as Node<T>
    }
    return node[index & 31] as T | undefined
  }

  set(index: number, value: T): Row<T> {
    return new Row(this.width, this.#depth, put(this.#root, this.#depth * 5, index, value))
  }

  *entries(): Generator<[number, T]> {
    for (let index = 0; index < this.width; index++) {
      const value = this.get(index)
      if (value !== undefined) yield [index, value]
    }
  }
}

function put<T>(node: Node<T>, shift: number, index: number, value: T): Node<T> {
  const copy = node.slice()
  const at = (index >>> shift) & 31
  copy[at] = shift === 0 ? value : put((node[at] as Node<T> | undefined) ?? [], shift - 5, index, value)
  return copy
}
