import { ActivityLog } from '../../src/kernel/activity-log.js'
import type { State } from '../../src/kernel/state.js'
import { SlotMap } from '../../src/kernel/slot-map.js'
import { Trie } from '../../src/kernel/trie.js'
import { TurnQueue } from '../../src/kernel/turn-queue.js'

/**
 * Writes values down so that equal ones read equal: keys sorted, what is `undefined` left out, tries as their content. Values
 * that were written once are remembered by identity, which is sound because nothing in a state or an event ever changes.
 */
export class Writer {
  readonly #known = new WeakMap<object, string>()
  readonly #leaveOut: (key: string, value: unknown) => boolean

  constructor(leaveOut: (key: string, value: unknown) => boolean = () => false) {
    this.#leaveOut = leaveOut
  }

  write(value: unknown): string {
    if (typeof value !== 'object' || value === null) return value === undefined ? 'undefined' : JSON.stringify(value)
    const known = this.#known.get(value)
    if (known !== undefined) return known
    const made = this.#writeObject(value)
    this.#known.set(value, made)
    return made
  }

  #writeObject(value: object): string {
    if (value instanceof TurnQueue) return `queue${value.tail}${this.#content(value)}`
    if (value instanceof ActivityLog) return `log${this.#fields(value.values().map((record) => [record.key, record]))}`
    if (value instanceof Trie || value instanceof SlotMap) return `trie${this.#content(value)}`
    if (Array.isArray(value)) return `[${value.map((item) => this.write(item)).join()}]`
    return this.#fields(Object.entries(value))
  }

  #content(map: { entries(): (readonly [string | number, unknown])[] }): string {
    return this.#fields(map.entries().map(([key, item]) => [`${key}`, item]))
  }

  #fields(entries: readonly (readonly [string, unknown])[]): string {
    const kept = entries.filter(([key, value]) => value !== undefined && !this.#leaveOut(key, value))
    kept.sort(([a], [b]) => (a < b ? -1 : 1))
    return `{${kept.map(([key, value]) => `${JSON.stringify(key)}:${this.write(value)}`).join()}}`
  }
}

const everything = new Writer()

/** All of a state (or of anything else in it), in a form that is equal exactly if the states are. */
export const dump = (value: unknown): string => everything.write(value)

const measured = new Set(['seq', 'at', 'ticket', 'due', 'retryAt', 'openedAt', 'expiresAt', 'startedAt', 'pausedMs'])
const timeless = new Writer((key, value) => typeof value === 'number' && measured.has(key))

/** As `dump`, without what depends on the clock or on the place in the journal. */
export const dumpTimeless = (value: unknown): string => timeless.write(value)

/** Where a run stands, as far as it decides what can happen next: two runs that stand alike go on alike. */
export function situationOf(state: State): string {
  const { queue, reaches: _, pausedAt, run: __, ...rest } = state
  const waiting = queue.values()
  // Who starts first matters only where not all can start.
  if (state.run?.shape.limits.concurrency === null) waiting.sort()
  return `${waiting.join()}|${pausedAt !== null}|${Object.entries(rest)
    .map(([key, value]) => (measured.has(key) ? '' : `${key}=${timeless.write(value)}`))
    .join(';')}`
}

/** A short name for a long text. */
export function digest(text: string): string {
  let a = 0xdeadbeef
  let b = 0x41c6ce57
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i)
    a = Math.imul(a ^ unit, 2654435761)
    b = Math.imul(b ^ unit, 1597334677)
  }
  a = Math.imul(a ^ (a >>> 16), 2246822507) ^ Math.imul(b ^ (b >>> 13), 3266489909)
  b = Math.imul(b ^ (b >>> 16), 2246822507) ^ Math.imul(a ^ (a >>> 13), 3266489909)
  return `${(a >>> 0).toString(36)}.${(b >>> 0).toString(36)}`
}
