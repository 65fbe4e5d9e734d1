import { checkOptions } from '../define/call-check.js'
import { aNumber, type Kind } from '../define/option-check.js'
import { TuttiError } from '../define/tutti-error.js'
import type { Engine } from './engine.js'
import type { Retention } from './tutti.js'

/** How many runs are deleted in one transaction, so that nobody waits long for the store. */
const atOnce = 50

/** Also one without end: then nothing is deleted, or all that is old. */
const noneOrMore = (what: string): Kind => ({ is: (value) => typeof value === 'number' && value >= 0, words: `${what} of at least 0` })

const kinds: Readonly<Record<keyof Retention, Kind>> = {
  endedBefore: aNumber,
  olderThanMs: noneOrMore('a number of milliseconds'),
  limit: noneOrMore('a number'),
}

/** Deletes runs that have ended, with their journals, idempotency keys and what only they refer to. */
export async function collect(engine: Engine, given: Retention): Promise<number> {
  // What is misspelt here would be deleted.
  checkOptions('gc()', given, kinds)
  const { endedBefore, olderThanMs, limit = Number.POSITIVE_INFINITY } = given
  if ((endedBefore === undefined) === (olderThanMs === undefined))
    throw new TuttiError('INVALID_INPUT', 'gc takes either `endedBefore`, a time, or `olderThanMs`', {
      hint: 'gc({ olderThanMs: 30 * 86_400_000 }) keeps what ended in the last thirty days',
    })
  const before = endedBefore ?? engine.options.clock.now() - (olderThanMs ?? 0)
  let deleted = 0
  for (let left = limit; left > 0; ) {
    const part = Math.min(atOnce, left)
    const gone = await engine.options.store.gc({ endedBefore: before, limit: part })
    deleted += gone
    left -= part
    if (gone < part) break
    // The others may have their turn.
    await new Promise((resolve) => setImmediate(resolve))
  }
  if (deleted > 0) engine.forgetEnded()
  return deleted
}
