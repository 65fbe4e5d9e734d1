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

/** What only looks changes nothing: what it saw shows in what its turn does with it. */
const reads = /^(get|load|read|find|list|has|is|query|select|count|fetch|peek|exists|search|look)(?![a-z])/
/** What databases call a query may write as well, and what is fetched may be sent: the text says so, or the method. */
const queries = /^query(?![a-z])/
const writes = /^\s*(insert|update|delete|merge|replace|truncate|create|alter|drop)\b/i
const fetches = /^fetch(?![a-z])/
const sends = /^(post|put|patch|delete)$/i

/** Watches what turns do with their resources. Values that are no objects, and what calls give back, are handed on as they are. */
export class Effects {
  readonly log: Effect[] = []
  readonly #lent = new Map<string, unknown>()

  lend(name: string, value: unknown, to: Borrower, isLate: () => boolean): unknown {
    if ((typeof value !== 'object' && typeof value !== 'function') || value === null) return value
    const key = `${name} ${to.run} ${to.id}`
    const known = this.#lent.get(key)
    if (known !== undefined) return known
    // What it stands for is asked for everything: a private field or a Map knows itself, and not what is shown of it.
    const made = new Proxy(isFixed(value) ? standIn(value) : value, {
      ...(isFixed(value) && asItIs(value)),
      apply: (_, self, args) => this.#watched(name, '', value as Callable, self, to, isLate)(...(args as readonly unknown[])),
      get: (_, property) => {
        const found: unknown = Reflect.get(value, property, value)
        if (typeof found !== 'function' || property === 'constructor') return found
        if (typeof property === 'symbol') return found.bind(value)
        return this.#watched(name, property, found as Callable, value, to, isLate)
      },
      set: (_, property, next) => {
        const about = `${String(property)} =`
        this.#note({ resource: name, call: `${about} ${shown(next)}`, about }, to, isLate())
        return Reflect.set(value, property, next, value)
      },
      deleteProperty: (_, property) => {
        const about = `${String(property)} =`
        this.#note({ resource: name, call: `${about} nothing`, about }, to, isLate())
        return Reflect.deleteProperty(value, property)
      },
    })
    this.#lent.set(key, made)
    return made
  }

  #watched(name: string, method: string, found: Callable, self: unknown, of: Borrower, isLate: () => boolean): Callable {
    return (...args) => {
      const late = isLate()
      if (late || !looks(method, args)) this.#note({ resource: name, call: callOf(method, args), about: aboutOf(method, args) }, of, late)
      return Reflect.apply(found, self, args)
    }
  }

  #note(what: Pick<Effect, 'resource' | 'call' | 'about'>, { agent, branch, run }: Borrower, late: boolean): void {
    this.log.push({ ...what, agent, branch, run, late })
  }
}

/** Whether it has methods that nobody can change: a proxy of it would have to give them as they are, and nobody would see a call. */
function isFixed(value: object): boolean {
  return Object.values(Object.getOwnPropertyDescriptors(value)).some(
    ({ value: held, configurable, writable }) => typeof held === 'function' && configurable === false && writable === false,
  )
}

/** Something of the same kind with nothing in it that could not be changed. */
const standIn = (value: object): object =>
  typeof value === 'function'
    ? Object.setPrototypeOf(() => {}, Reflect.getPrototypeOf(value))
    : Object.create(Reflect.getPrototypeOf(value))

/** A stand-in has what it stands for has. */
const asItIs = (value: object): ProxyHandler<object> => ({
  has: (_, property) => Reflect.has(value, property),
  ownKeys: () => Reflect.ownKeys(value),
  getOwnPropertyDescriptor: (_, property) => {
    const found = Reflect.getOwnPropertyDescriptor(value, property)
    return found && { ...found, configurable: true }
  },
})

type Callable = (...args: readonly unknown[]) => unknown

function looks(method: string, [first, second]: readonly unknown[]): boolean {
  if (queries.test(method) && typeof first === 'string' && writes.test(first)) return false
  if (fetches.test(method) && sends.test(String((second as { readonly method?: unknown } | null | undefined)?.method))) return false
  return reads.test(method)
}

const callOf = (method: string, args: readonly unknown[]): string => `${method}(${args.map(shown).join(', ')})`

function aboutOf(method: string, [first]: readonly unknown[]): string | null {
  return typeof first === 'string' || typeof first === 'number' ? `${method} ${String(first)}` : null
}

function shown(value: unknown): string {
  try {
    return JSON.stringify(value, told) ?? String(value)
  } catch {
    return '…'
  }
}

/** What JSON has no form for would read the same whatever is in it. Who came into a collection first is of no matter. */
function told(_: string, value: unknown): unknown {
  if (value instanceof Map || value instanceof Set) return Array.from(value, (item: unknown) => JSON.stringify(item, told)).sort()
  return typeof value === 'bigint' ? `${value}n` : value
}
