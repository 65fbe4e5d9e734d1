import { checkOptions } from '../define/call-check.js'
import { aBoolean, aSignal, atLeastZero, type Kind } from '../define/option-check.js'
import { TuttiError } from '../define/tutti-error.js'
import type { Engine } from './engine.js'
import type { Delta, JournalEvent } from '../inspect/events.js'
import { journalAfter } from './journal.js'
import { runNotFound } from './run-not-found.js'
import { eventView, isTerminal } from './run-view.js'
import { closedEngine } from './while-open.js'

export interface FollowOptions {
  readonly after?: number | undefined
  readonly signal?: AbortSignal | undefined
  readonly deltas?: boolean | undefined
}

const kinds: Readonly<Record<keyof FollowOptions, Kind>> = { after: atLeastZero, signal: aSignal, deltas: aBoolean }

/** How many transient parts wait for a slow reader before the oldest are dropped. */
const deltasMax = 1_000
/** How many rows of the journal are read at once. */
const rowsMax = 64

/** The journal of a run from a place on: in order, with no gap, live, to its end. Transient parts come in between, if asked for. */
export async function* follow(
  engine: Engine,
  run: { readonly id: string; readonly tags: Readonly<Record<string, string>> },
  options: FollowOptions,
): AsyncGenerator<JournalEvent | Delta> {
  checkOptions('events()', options, kinds)
  if (engine.closed) throw closedEngine()
  const deltas: Delta[] = []
  let heard = (): void => {}
  const unhear = options.deltas
    ? engine.listeners.onDelta(run.id, (delta) => {
        if (deltas.push(delta) > deltasMax) deltas.shift()
        heard()
      })
    : () => {}
  const aborted = (): void => heard()
  options.signal?.addEventListener('abort', aborted)
  try {
    let after = options.after ?? 0
    let order: number | null = null
    while (!options.signal?.aborted) {
      const changed = engine.listeners.waitFor(run.id, 'anything')
      const delta = new Promise<void>((resolve) => {
        heard = resolve
      })
      try {
        const part = await journalAfter(engine.options.store, run.id, after, rowsMax)
        // One that was deleted has no more events, though another may have its id.
        if (part === null || part.order !== (order ?? part.order)) throw runNotFound(run.id)
        const { events, isLast } = part
        order = part.order
        for (const event of events) {
          if (options.signal?.aborted) return
          if (event.type === 'run.closing' || isTerminal(event)) deltas.length = 0
          after = event.seq
          yield eventView(event, { runId: run.id, tags: run.tags })
        }
        if (isLast) return
        // One at a time: the journal is looked at again before the next, so that a cancel silences what is still buffered.
        const next = events.length === 0 ? deltas.shift() : undefined
        if (next !== undefined) yield next
        else if (events.length === 0) {
          const stopped = engine.stoppedBy(run.id)
          if (stopped !== null) throw stopped
          if (engine.closed) throw new TuttiError('CLOSED', `the engine was closed while the run ${run.id} goes on`)
          await Promise.race([changed.wait, delta])
        }
      } finally {
        changed.stop()
      }
    }
  } finally {
    unhear()
    options.signal?.removeEventListener('abort', aborted)
  }
}
