import { checkOptions } from '../define/call-check.js'
import { anything, type Kind } from '../define/option-check.js'
import { isStorable } from '../define/storable.js'
import { TuttiError } from '../define/tutti-error.js'
import { sameJson } from '../kernel/json.js'
import type { Engine } from './engine.js'
import type { Outcome } from './run-entry.js'
import type { Put } from './store.js'
import type { AgentRecord, Command } from './tutti.js'

/** What an idempotency key remembers: which request it was used for, and on which run, or what it made of which agent. */
interface Remembered {
  /** As JSON. */
  readonly request: string
  readonly run: string
  readonly agent?: AgentRecord
}

const kind = 'key'

/**
 * Does something once under a key: the same key again has the first outcome, also when both come at once or the first was in another
 * process. Another request under it is refused. Refusals are not remembered.
 */
export async function onceUnder(
  engine: Engine,
  key: string | undefined,
  of: Remembered,
  act: (put: Put | undefined) => Promise<Outcome>,
): Promise<{ readonly run: string; readonly outcome: Outcome | null }> {
  if (key === undefined) return { run: of.run, outcome: await act(undefined) }
  for (;;) {
    const before = await rememberedUnder(engine, key, of.request)
    if (before !== null) return { run: before.run, outcome: null }
    const outcome = await act(keyPut(key, of))
    if (outcome.refusal === undefined) return { run: of.run, outcome }
    const meanwhile = await rememberedUnder(engine, key, of.request)
    if (meanwhile !== null) return { run: meanwhile.run, outcome: null }
    // It was another's key that was taken, of a command that was to be written together with this one.
    if (outcome.refusal.code !== 'KEY_TAKEN') return { run: of.run, outcome }
  }
}

/** Remembers what came of a request; written with it, or not at all. */
export function keyPut(key: string, of: Remembered): Put {
  return { kind, key, expect: 0, body: JSON.stringify(of) }
}

/** Refuses what not every store could keep as it is. */
export function checkName(what: string, name: string): void {
  if (typeof name !== 'string' || name.length === 0 || name.length > 256 || !isStorable(name))
    throw new TuttiError('INVALID_INPUT', `${what} is a text of 1 to 256 characters with no control characters`)
}

/** Refuses a command with options that are none. What its key must be is said where the key is looked up. */
export function checkCommand(call: string, given: Command | undefined, more: Readonly<Record<string, Kind>> = {}): void {
  if (given === undefined) return
  checkOptions(call, given, { key: anything, by: anything, ...more })
  if (given.by !== undefined) checkName('`by`', given.by)
}

/** What a key was used for, if it was; another request under it is refused. */
export async function rememberedUnder(engine: Engine, key: string, request: string): Promise<Remembered | null> {
  checkName('an idempotency key', key)
  const record = await engine.options.store.record(kind, key)
  if (record === null) return null
  const before = JSON.parse(record.body) as Remembered
  if (!isSame(before.request, request)) throw keyReused(key)
  return before
}

/** Whoever sends a request again may have made it anew: the order of an object's keys says nothing. */
function isSame(request: string, other: string): boolean {
  return request === other || sameJson(JSON.parse(request), JSON.parse(other))
}

export function keyReused(key: string): TuttiError {
  return new TuttiError('KEY_REUSED', `the key '${key}' was used for another request`, { hint: 'use a key of its own for each request' })
}
