import { checkOptions } from '../define/call-check.js'
import { isDefinition } from '../define/definition.js'
import { limitsGiven } from '../define/limits.js'
import {
  aBoolean,
  aFunction,
  aRecord,
  atLeastOne,
  type Kind,
  listOf,
  noMsOrMore,
  oneOf,
  optionsTaken,
  someMs,
} from '../define/option-check.js'
import { isProvided } from '../define/resource.js'
import type { Problem } from '../kernel/problem.js'
import { pricesProblem } from '../models/price.js'
import type { OpenOptions } from './tutti.js'

/** An object that has these functions, its own or those of its class. */
const having =
  (...names: readonly string[]) =>
  (value: unknown): boolean =>
    aRecord.is(value) && names.every((name) => typeof (value as Readonly<Record<string, unknown>>)[name] === 'function')

const kinds: Readonly<Record<keyof OpenOptions, Kind>> = {
  store: {
    is: (value) => typeof value === 'string' || having('join', 'commit', 'load')(value),
    words: "the path of a file, 'memory:' or a store",
  },
  definitions: listOf({ is: isDefinition }, 'what topology({ … }) or graph(…).step(…).output() has made'),
  resources: listOf({ is: isProvided }, "what resource('db').of(value) or .perRun(make) has made"),
  models: aFunction,
  prices: aRecord,
  // Without end is what it is when nobody says anything.
  concurrency: { is: (value) => value === Number.POSITIVE_INFINITY || atLeastOne.is(value), words: atLeastOne.words },
  limits: aRecord,
  clock: { is: having('now', 'sleep'), words: 'an object with now() and sleep(ms)' },
  workerTtlMs: someMs,
  graceMs: noMsOrMore,
  durability: oneOf('process', 'power'),
  onLog: aFunction,
  invariants: aBoolean,
}

/** The options as they are now, which is what was looked at: an engine holds to them for as long as it is open. */
export function openOptions(given: OpenOptions): OpenOptions {
  checkOpen(given)
  return optionsTaken(given, Object.keys(kinds))
}

/** Refuses what an engine can't be opened with, before anything is opened. */
function checkOpen(options: OpenOptions): void {
  checkOptions('open()', options, kinds, (given) => [
    ...limitsGiven(given['limits']),
    ...(aRecord.is(given['prices']) ? priceProblems(given['prices']) : []),
    ...twice(given, 'definitions'),
    ...twice(given, 'resources'),
  ])
}

function priceProblems(prices: unknown): Problem[] {
  const message = pricesProblem(prices)
  return message === undefined ? [] : [{ code: 'BAD_OPTION', where: 'prices', message }]
}

/** Of two different things of one name, one would be ignored. */
function twice(given: Readonly<Record<string, unknown>>, option: 'definitions' | 'resources'): Problem[] {
  if (!kinds[option].is(given[option])) return []
  const named = new Map<string, unknown>()
  return (given[option] as readonly { readonly name: string }[]).flatMap((item) => {
    const before = named.get(item.name) ?? item
    named.set(item.name, before)
    if (before === item) return []
    return [{ code: 'BAD_OPTION', where: option, message: `there are two of the name '${item.name}': give one, or another name` }]
  })
}
