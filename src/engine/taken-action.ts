import { toJson } from '../kernel/json.js'

class Itself {
  constructor(of: object) {
    return of
  }
}

/** Marks an object so that nobody else can. In a list of them, each of the ten thousand that a fan-out makes would cost more than it does. */
class Taken extends Itself {
  readonly #size: number

  constructor(action: object, size: number) {
    super(action)
    this.#size = size
  }

  /** About how many bytes of JSON an action has whose values were taken when it was made; null if it is no such action. */
  static readonly sizeOf = (action: object): number | null => (#size in action ? action.#size : null)
}

/**
 * An action with its values as they are now, which nobody can change any more: between this and the end of its turn others may run, and
 * whoever made it may go on with what it was made of. If one of them is no JSON, it is left as it is: that is said when it is returned.
 */
export function taken<A extends object>(action: A): A {
  const values = action as Record<string, unknown>
  let bytes = 2
  for (const key in values) {
    const value = values[key]
    // The schema of an ask is no data.
    if (key === 'schema') continue
    bytes += key.length + 4
    if (typeof value === 'string') bytes += value.length + 3
    else {
      const json = toJson(value)
      if ('problem' in json) return action
      values[key] = json.value
      bytes += json.size
    }
  }
  new Taken(action, bytes)
  return Object.freeze(action)
}

export const takenSize: (action: object) => number | null = Taken.sizeOf
