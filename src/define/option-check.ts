import type { Problem } from '../kernel/problem.js'
import { likely } from '../kernel/validate.js'
import { isStorable } from './storable.js'

/** What an option must be: a test, and the words for it. */
export interface Kind {
  readonly is: (value: unknown) => boolean
  readonly words: string
  /** What such a value is that it is not of this kind, where that takes more than to name it. */
  readonly instead?: (value: unknown) => string | undefined
}

const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
const isNumber = (value: unknown): value is number => typeof value === 'number' && Number.isFinite(value)
const isText = (value: unknown): boolean => typeof value === 'string' && value !== ''
const isAsync = (value: unknown): boolean => Object.prototype.toString.call(value) === '[object AsyncFunction]'
const isWhole = (value: unknown, least: number): boolean => Number.isSafeInteger(value) && (value as number) >= least

export const aFunction: Kind = { is: (value) => typeof value === 'function', words: 'a function' }
/** What is called where nothing can wait; only one that says so itself is known to give nothing at once. */
export const aFunctionAtOnce: Kind = { is: (value) => aFunction.is(value) && !isAsync(value), words: 'a function that is not async' }
export const aRecord: Kind = { is: isRecord, words: 'an object' }
export const aBoolean: Kind = { is: (value) => typeof value === 'boolean', words: 'true or false' }
export const aText: Kind = { is: isText, words: 'a string that is not empty' }
/** What stores find things by. */
export const aName: Kind = {
  is: (value) => isText(value) && isStorable(value as string),
  words: 'a string that is not empty and has no control characters',
}
export const aString: Kind = { is: (value) => typeof value === 'string', words: 'a string' }
export const aList: Kind = { is: Array.isArray, words: 'a list' }
export const anything: Kind = { is: () => true, words: 'anything' }
export const aNumber: Kind = { is: isNumber, words: 'a number' }
export const texts: Kind = listOf(aText, 'strings')
export const names: Kind = listOf(aName, 'strings with no control characters')
export const atLeastOne: Kind = { is: (value) => isWhole(value, 1), words: 'a whole number of at least 1' }
export const atLeastZero: Kind = { is: (value) => isWhole(value, 0), words: 'a whole number of at least 0' }
export const someMs: Kind = { is: (value) => isNumber(value) && value > 0, words: 'a number of milliseconds above 0' }
export const noMsOrMore: Kind = { is: (value) => isNumber(value) && value >= 0, words: 'a number of milliseconds of at least 0' }
export const oneOrMore: Kind = { is: (value) => isNumber(value) && value >= 1, words: 'a number of at least 1' }
export const tagRecord: Kind = {
  is: (value) =>
    isRecord(value) &&
    Object.entries(value)
      .flat()
      .every((text) => typeof text === 'string' && isStorable(text)),
  words: 'a record of texts with no control characters: { tenant: "acme" }',
  instead: (value) => (isRecord(value) ? wrongTag(value) : undefined),
}

function wrongTag(tags: Readonly<Record<string, unknown>>): string | undefined {
  for (const [key, tag] of Object.entries(tags)) {
    if (!isStorable(key)) return `one with the name ${JSON.stringify(key)}`
    if (typeof tag !== 'string') return `one in which ${key} is ${shown(tag)}`
    if (!isStorable(tag)) return `one in which ${key} is ${JSON.stringify(tag.slice(0, 40))}`
  }
  return undefined
}

/** Not only one of this realm: what listens to it asks for nothing more. */
export const aSignal: Kind = {
  is: (value) =>
    isRecord(value) &&
    typeof value['aborted'] === 'boolean' &&
    aFunction.is(value['addEventListener']) &&
    aFunction.is(value['removeEventListener']),
  words: 'an AbortSignal',
}
/** Some libraries' schemas are functions, so only the Standard Schema mark counts. */
export const aSchema: Kind = {
  is: (value) => (isRecord(value) || typeof value === 'function') && isRecord((value as { '~standard'?: unknown })['~standard']),
  words: 'a Standard Schema (zod, valibot, arktype…)',
}

export const aSchemaAtOnce: Kind = {
  is: (value) => aSchema.is(value) && aFunctionAtOnce.is((value as { '~standard': { validate: unknown } })['~standard'].validate),
  words: `${aSchema.words} that answers at once`,
}

/** One of these values. */
export function oneOf(...values: readonly string[]): Kind {
  return { is: (value) => values.includes(value as string), words: values.map((value) => `'${value}'`).join(' or ') }
}

/** A list of nothing else. */
export function listOf({ is }: Pick<Kind, 'is'>, words: string): Kind {
  return { is: (value) => Array.isArray(value) && value.every((item) => is(item)), words: `a list of ${words}` }
}

/** Any of these kinds. */
export function either(...kinds: readonly Kind[]): Kind {
  return { is: (value) => kinds.some((kind) => kind.is(value)), words: kinds.map((kind) => kind.words).join(' or ') }
}

/**
 * Checks the options of one object: each that is given is of its kind, and there is no other. One that is not known is a problem, because
 * what is accepted is enforced, and a misspelt one would be neither.
 */
export function optionProblems(given: Readonly<Record<string, unknown>>, kinds: Readonly<Record<string, Kind>>, where: string): Problem[] {
  const problems: Problem[] = []
  // One that is inherited, such as a getter of a class, is taken like any other; beside those that there are, only own ones are meant.
  for (const key of new Set([...Object.keys(given), ...Object.keys(kinds)])) {
    const value = given[key]
    if (value === undefined) continue
    const at = where === '' ? key : `${where}.${key}`
    const kind = Object.hasOwn(kinds, key) ? kinds[key] : undefined
    if (kind === undefined)
      problems.push({
        code: 'UNKNOWN_OPTION',
        where: at,
        message: `there is no option '${key}' here${likely(key, Object.keys(kinds))}; there are ${Object.keys(kinds).join(', ')}`,
      })
    else if (!kind.is(value))
      problems.push({ code: 'BAD_OPTION', where: at, message: `${key} is ${kind.words}, not ${other(value, kind)}` })
  }
  return problems
}

/**
 * The options as they are now, those that are inherited too: what was looked at is what holds, and who gave them may go on with its own. A
 * method of a class still finds what it calls `this`.
 */
export function optionsTaken<T extends object>(given: T, known: readonly string[]): T {
  const taken = { ...given }
  for (const key of known) {
    if (Object.hasOwn(taken, key)) continue
    const value: unknown = Reflect.get(given, key)
    if (value !== undefined) Reflect.set(taken, key, typeof value === 'function' && !aSchema.is(value) ? value.bind(given) : value)
  }
  return taken
}

/** A list that is none of those that were meant is not told that it is not a list. */
function other(value: unknown, { words, instead }: Kind): string {
  const said = instead?.(value) ?? shown(value)
  return words.startsWith(said) ? 'this one' : said
}

/** A value in a message: short, and never a throw. */
export function shown(value: unknown): string {
  if (typeof value === 'string') return `'${value.length > 40 ? `${value.slice(0, 40)}…` : value}'`
  if (value === null) return 'null'
  if (Array.isArray(value)) return 'a list'
  if (typeof value === 'object') return 'an object'
  if (typeof value === 'function') return isAsync(value) ? 'an async function' : 'a function'
  return typeof value === 'symbol' ? 'a symbol' : `${value as number | bigint | boolean | undefined}`
}
