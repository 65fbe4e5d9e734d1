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
/** Comments may stand before it, and tables that are made for it. There is one way to read each comment: a row of dashes would have millions. */
const writes =
  /^(?:\s|--[^\n]*\n|\/\*(?:[^*]|\*(?!\/))*\*\/)*(?:(?:insert|update|delete|merge|replace|truncate|create|alter|drop)\b|with\b[^]*\b(?:insert\s+into|update\s+\S+\s+set|delete\s+from|merge\s+into)\b)/i
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
  if (queries.test(method) && writes.test(saidBy(method, first) ?? '')) return false
  if (fetches.test(method) && sends.test(String(fieldOf(second, 'method') ?? fieldOf(first, 'method')))) return false
  return reads.test(method)
}

const callOf = (method: string, args: readonly unknown[]): string => `${method}(${args.map(shown).join(', ')})`

function aboutOf(method: string, [first]: readonly unknown[]): string | null {
  const said = saidBy(method, first)
  return said === null ? null : `${method} ${said}`
}

/** What the first argument says: by itself, as an address, or as what a query or a fetch is given in one object. */
function saidBy(method: string, first: unknown): string | null {
  if (typeof first === 'string' || typeof first === 'number' || typeof first === 'bigint') return String(first)
  if (kindOf(first) === 'URL') return String(first)
  const said = queries.test(method)
    ? (fieldOf(first, 'text') ?? fieldOf(first, 'sql'))
    : fetches.test(method)
      ? fieldOf(first, 'url')
      : null
  return typeof said === 'string' ? said : null
}

const fieldOf = (value: unknown, field: string): unknown => (Object(value) as Readonly<Record<string, unknown>>)[field]

function shown(value: unknown): string {
  try {
    return JSON.stringify(value, telling()) ?? String(value)
  } catch {
    return '…'
  }
}

/** What JSON has no form for would read the same whatever is in it. Who came into a collection first is of no matter. */
function telling(around: readonly object[] = []): (this: unknown, key: string, value: unknown) => unknown {
  const above: { readonly value: object; readonly told: object }[] = []
  return function (_, value) {
    if (typeof value === 'bigint') return `${value}n`
    if (typeof value === 'number') return Number.isFinite(value) ? value : String(value)
    if (typeof value !== 'object' || value === null) return value
    while (above.length > 0 && above.at(-1)?.told !== this) above.pop()
    const within = [...around, ...above.map((one) => one.value)]
    if (within.includes(value)) return '…'
    const told = toldOf(value, within)
    above.push({ value, told })
    return told
  }
}

function toldOf(value: object, within: readonly object[]): object {
  switch (kindOf(value)) {
    case 'Map':
    case 'Set':
    case 'Headers':
    case 'URLSearchParams':
    case 'FormData':
      return Array.from(value as Iterable<unknown>, (item) => JSON.stringify(item, telling([...within, value]))).sort()
    case 'Error':
    case 'DOMException': {
      const { name, message, cause } = value as Error
      return Object.assign({}, value, { name, message, cause })
    }
    case 'Request': {
      const { method, url, headers } = value as Request
      return { method, url, headers }
    }
    case 'ArrayBuffer':
      return new Uint8Array(value as ArrayBuffer)
    default:
      return value
  }
}

/** By its name: where tests are run, some of these are of another realm, or there are none. */
const kindOf = (value: unknown): string => Object.prototype.toString.call(value).slice(8, -1)
