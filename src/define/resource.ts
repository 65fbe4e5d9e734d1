import type { Maybe } from './maybe.js'
import type { Tags } from './tags.js'

/** What a resource is made for. */
export interface ResourceRun {
  id: string
  definition: string
  tags: Tags
  session?: string
}

/** A live thing that agents use and no journal holds: a database pool, a socket, a logger. */
export interface Resource<T> {
  readonly name: string
  /** One for the process. */
  of(value: T): Provided
  /** One for each run, made anew on recovery. */
  perRun(make: (run: ResourceRun) => Maybe<T>): Provided
}

/** A resource with its value, as `open` takes it. */
export interface Provided {
  readonly name: string
}

/** How a provided resource comes to its value. */
export type Provision =
  | { readonly kind: 'value'; readonly value: unknown }
  | { readonly kind: 'perRun'; readonly make: (run: ResourceRun) => unknown }

const key: unique symbol = Symbol.for('tutti.provided')

/** Names a live thing; agents take it with `use(resource)`. */
export function resource<T>(name: string): Resource<T> {
  if (typeof name !== 'string' || name === '') throw new TypeError("a resource needs a name: resource<Pool>('db')")
  return Object.freeze({
    name,
    of: (value: T) => provide(name, { kind: 'value', value }),
    perRun: (make: (run: ResourceRun) => Maybe<T>) => {
      if (typeof make !== 'function') throw new TypeError(`perRun of the resource '${name}' takes a function that makes one`)
      return provide(name, { kind: 'perRun', make })
    },
  })
}

/** Whether this is a resource with its value. */
export function isProvided(value: unknown): value is Provided {
  return provisionIn(value) !== undefined
}

/** How a provided resource comes to its value. */
export function provisionOf(provided: Provided): Provision {
  const provision = provisionIn(provided)
  if (provision === undefined) throw new TypeError("this is no provided resource: give resource('db').of(value) or .perRun(make)")
  return provision
}

function provisionIn(value: unknown): Provision | undefined {
  return typeof value === 'object' && value !== null ? (value as { readonly [key]?: Provision })[key] : undefined
}

function provide(name: string, provision: Provision): Provided {
  // Not enumerable: a live value must not turn up in what is logged or compared.
  return Object.freeze(Object.defineProperty({ name }, key, { value: Object.freeze(provision) }))
}
