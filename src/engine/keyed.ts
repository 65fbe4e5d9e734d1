import { TuttiError } from '../define/tutti-error.js'
import type { Engine } from './engine.js'
import type { Outcome } from './run-entry.js'
import type { Put } from './store.js'

/** What an idempotency key remembers: which request it was used for, and on which run. */
interface Remembered {
  readonly request: string
  readonly run: string
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
  checkKey(key)
  const before = await remembered(engine, key, of)
  if (before !== null) return { run: before, outcome: null }
  const outcome = await act({ kind, key, expect: 0, body: JSON.stringify(of) })
  if (outcome.refusal === undefined) return { run: of.run, outcome }
  const meanwhile = await remembered(engine, key, of)
  return meanwhile === null ? { run: of.run, outcome } : { run: meanwhile, outcome: null }
}

function checkKey(key: string): void {
  // A store may cut text at NUL, so control characters are refused here.
  const bad = typeof key !== 'string' || key.length === 0 || key.length > 256 || hasControl(key)
  if (bad) throw new TuttiError('INVALID_INPUT', 'an idempotency key is a text of 1 to 256 characters with no control characters')
}

function hasControl(text: string): boolean {
  for (let i = 0; i < text.length; i++) if (text.charCodeAt(i) < 32) return true
  return false
}

async function remembered(engine: Engine, key: string, of: Remembered): Promise<string | null> {
  const record = await engine.options.store.record(kind, key)
  if (record === null) return null
  const before = JSON.parse(record.body) as Remembered
  if (before.request !== of.request)
    throw new TuttiError('KEY_REUSED', `the key '${key}' was used for another request`, { hint: 'use a key of its own for each request' })
  return before.run
}
