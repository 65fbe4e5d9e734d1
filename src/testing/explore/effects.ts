import type { Borrower } from '../../engine/seam.js'

/** A call that may change something outside of the run. */
export interface Effect {
  readonly resource: string
  /** What was called and with what. */
  readonly call: string
  /**
   * The method and what it was about, where its first argument says so, or the property that was written: calls about one thing have an
   * order. Null: they have none.
   */
  readonly about: string | null
  readonly agent: string
  readonly branch: string
  readonly run: string
  /** Its turn had been told to stop, or was over. */
  readonly late: boolean
}

const longest = 200
/** What only looks changes nothing: what it saw shows in what its turn does with it. */
const reads = /^(get|load|read|find|list|has|is|query|select|count|fetch|peek|exists|search|look)(?![a-z])/

/** Watches what turns do with their resources. Values that are no objects, and what calls give back, are handed on as they are. */
export class Effects {
  readonly log: Effect[] = []
  readonly #lent = new Map<string, unknown>()

  lend(name: string, value: unknown, to: Borrower, isLate: () => boolean): unknown {
    if (typeof value === 'function') return this.#watched(name, '', value as Callable, undefined, to, isLate)
    if (typeof value !== 'object' || value === null) return value
    const key = `${name} ${to.run} ${to.id}`
    const known = this.#lent.get(key)
    if (known !== undefined) return known
    const made = new Proxy(value, {
      get: (target, property) => {
        const found: unknown = Reflect.get(target, property, target)
        if (typeof found !== 'function' || typeof property === 'symbol' || property === 'constructor') return found
        return this.#watched(name, property, found as Callable, target, to, isLate)
      },
      set: (target, property, next) => {
        const about = `${String(property)} =`
        this.#note({ resource: name, call: `${about} ${shown(next)}`, about }, to, isLate())
        return Reflect.set(target, property, next, target)
      },
    })
    this.#lent.set(key, made)
    return made
  }

  #watched(name: string, method: string, found: Callable, self: unknown, of: Borrower, isLate: () => boolean): Callable {
    return (...args) => {
      const late = isLate()
      if (late || !reads.test(method)) this.#note({ resource: name, call: callOf(method, args), about: aboutOf(method, args) }, of, late)
      return Reflect.apply(found, self, args)
    }
  }

  #note(what: Pick<Effect, 'resource' | 'call' | 'about'>, { agent, branch, run }: Borrower, late: boolean): void {
    this.log.push({ ...what, agent, branch, run, late })
  }
}

type Callable = (...args: readonly unknown[]) => unknown

const callOf = (method: string, args: readonly unknown[]): string => `${method}(${args.map(shown).join(', ')})`

function aboutOf(method: string, [first]: readonly unknown[]): string | null {
  return typeof first === 'string' || typeof first === 'number' ? `${method} ${String(first).slice(0, longest)}` : null
}

function shown(value: unknown): string {
  try {
    return (JSON.stringify(value) ?? String(value)).slice(0, longest)
  } catch {
    return '…'
  }
}
