import { thrownText } from './thrown-text.js'

/** A value that is no JSON, with the path to what is wrong in it. */
export interface NotJson {
  readonly path: string
  readonly problem: string
}

/** How deep a value may be nested. */
export const depthMax = 500

/**
 * Checks, copies and freezes a value in one walk. What is not JSON is refused with its path and never changed silently; properties that
 * are `undefined` are dropped, as JSON does, and `undefined` itself means "no value". `size` is about how many bytes of JSON it has.
 */
export function toJson(value: unknown): { readonly value: unknown; readonly size: number } | NotJson {
  if (value === undefined || value === null || typeof value === 'boolean') return { value, size: 6 }
  if (typeof value === 'string') return { value, size: value.length + 3 }
  // What is read again from a journal has no -0: it must not be there before either.
  if (typeof value === 'number' && Number.isFinite(value)) return { value: value === 0 ? 0 : value, size: 9 }
  const walk: Walk = { open: [], path: [], size: 0 }
  try {
    const made = copy(value, walk)
    return { value: made, size: walk.size }
  } catch (error) {
    // A proxy or a getter may throw whatever it likes.
    return { path: pathOf(walk), problem: error instanceof Refused ? error.problem : `it can't be read: ${thrownText(error)}` }
  }
}

/** About how many bytes of JSON a value has that is known to be JSON. */
export function jsonSize(value: unknown): number {
  if (typeof value === 'string') return value.length + 3
  if (typeof value !== 'object' || value === null) return 9
  let size = 2
  if (Array.isArray(value)) {
    for (let place = 0; place < value.length; place++) size += jsonSize(value[place])
    return size
  }
  for (const key in value) size += key.length + 4 + jsonSize((value as Record<string, unknown>)[key])
  return size
}

/** Where the walk is: the objects around it, and, once something is wrong, the way there, from its end. */
interface Walk {
  readonly open: object[]
  readonly path: (string | number)[]
  size: number
}

class Refused {
  readonly problem: string
  constructor(problem: string) {
    this.problem = problem
  }
}

function pathOf({ path }: Walk): string {
  if (path.length === 0) return '(the value itself)'
  const way = path.toReversed()
  return way.map((part, index) => (typeof part === 'number' ? `[${part}]` : index === 0 ? part : `.${part}`)).join('')
}

/**
 * All of it in one function that calls itself: functions that call each other are each compiled with the others in them, by a compiler
 * that takes its time from a process that has just begun.
 */
function copy(value: unknown, walk: Walk): unknown {
  switch (typeof value) {
    case 'string':
      walk.size += value.length + 3
      return value
    case 'boolean':
      walk.size += 6
      return value
    case 'number':
      walk.size += 9
      if (!Number.isFinite(value)) throw new Refused(`${value} is not a JSON number`)
      return value === 0 ? 0 : value
    case 'object':
      if (value !== null) break
      walk.size += 6
      return null
    case 'undefined':
      throw new Refused('undefined is not JSON')
    default:
      throw new Refused(`a ${typeof value} is not JSON`)
  }
  if (walk.open.includes(value)) throw new Refused('a value that contains itself is not JSON')
  if (walk.open.length >= depthMax) throw new Refused(`it is nested more than ${depthMax} levels deep`)
  walk.open.push(value)
  walk.size += 2
  const list = Array.isArray(value) ? (value as readonly unknown[]) : null
  if (list === null) checkPrototype(Object.getPrototypeOf(value) as object | null)
  if (Object.getOwnPropertySymbols(value).length > 0) throw new Refused('a property named by a symbol is not JSON')
  const made: unknown[] | Record<string, unknown> = list === null ? {} : []
  const keys = list === null ? Object.keys(value) : noKeys
  let place = 0
  try {
    if (list !== null) for (; place < list.length; place++) (made as unknown[]).push(copy(list[place], walk))
    for (; place < keys.length; place++) {
      const key = keys[place] as string
      const item = (value as Record<string, unknown>)[key]
      if (item === undefined) continue
      if (key === '__proto__') throw new Refused('a property named __proto__ is not allowed')
      walk.size += key.length + 4
      ;(made as Record<string, unknown>)[key] = copy(item, walk)
    }
  } catch (error) {
    walk.path.push(list === null ? (keys[place] as string) : place)
    throw error
  }
  if (list !== null) checkNames(list)
  walk.open.pop()
  return Object.freeze(made)
}

const noKeys: readonly string[] = Object.freeze([])

/** By now each place of it has something in it: what is more than these has a name. */
function checkNames(list: readonly unknown[]): void {
  const keys = Object.keys(list)
  if (keys.length > list.length) throw new Refused(`a list with a property of its own, ${keys[list.length]}, is not JSON`)
}

function checkPrototype(prototype: object | null): void {
  if (prototype !== null && prototype !== Object.prototype && !isPlain(prototype))
    throw new Refused(`an instance of ${nameOf(prototype)} is not JSON`)
}

/** The prototype of the plain objects of another realm. */
function isPlain(prototype: object): boolean {
  return Object.getPrototypeOf(prototype) === null && Object.hasOwn(prototype, 'hasOwnProperty')
}

function nameOf(prototype: object): string {
  const made = (prototype as { constructor?: { name?: unknown } }).constructor?.name
  return typeof made === 'string' && made !== '' ? made : 'a class'
}

/** Equal as JSON: the order of an object's keys does not matter. */
export function sameJson(a: unknown, b: unknown): boolean {
  if (a === b) return true
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) return false
  if (Array.isArray(a) !== Array.isArray(b)) return false
  const left = a as Record<string, unknown>
  const right = b as Record<string, unknown>
  const keys = Object.keys(left)
  if (keys.length !== Object.keys(right).length) return false
  return keys.every((key) => Object.hasOwn(right, key) && sameJson(left[key], right[key]))
}
