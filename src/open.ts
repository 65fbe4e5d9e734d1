import { unheard } from './define/at-once.js'
import { type Definition, isDefinition } from './define/definition.js'
import { isLater } from './define/maybe.js'
import { limitsTaken } from './define/limits.js'
import { noDefinition } from './define/no-definition.js'
import { TuttiError } from './define/tutti-error.js'
import { agentControl } from './engine/agent-control.js'
import { collect } from './engine/collect.js'
import { givenClock, systemClock } from './engine/clock.js'
import { Engine } from './engine/engine.js'
import { withEngine } from './engine/engine-of.js'
import { givenStore } from './engine/given-store.js'
import { type AskFilter, listAsks, listRuns } from './engine/listing.js'
import { openOptions } from './engine/open-check.js'
import { runHandle } from './engine/run-handle.js'
import { runNotFound } from './engine/run-not-found.js'
import type { StartGiven } from './engine/start.js'
import { execute, start } from './engine/start.js'
import type { Store } from './engine/store.js'
import type { LogEntry, OpenOptions, Retention, Run, RunFilter, Tutti } from './engine/tutti.js'
import { whileOpen } from './engine/while-open.js'
import { openStore, storePlace } from './stores/open-store.js'

/** Opens an engine over a store. */
export async function open(given: OpenOptions = {}): Promise<Tutti> {
  const options = takenOptions(openOptions(given))
  const { store, own } = await storeOf(options.store, options.durability ?? 'process')
  const ttlMs = options.workerTtlMs ?? 10_000
  const worker = await store.join({ nonce: crypto.randomUUID(), ttlMs })
  const engine = new Engine({
    store,
    worker,
    clock: options.clock === undefined ? systemClock : givenClock(options.clock),
    ttlMs,
    graceMs: options.graceMs ?? 5_000,
    concurrency: options.concurrency ?? Number.POSITIVE_INFINITY,
    definitions: options.definitions,
    resources: options.resources,
    models: options.models,
    prices: options.prices,
    invariants: options.invariants ?? process.env['TUTTI_INVARIANTS'] === 'on',
    onLog: heard(options.onLog),
  })

  let closing: Promise<void> | null = null
  const closeOnce = async (): Promise<void> => {
    await engine.close()
    if (own) await store.close()
  }
  // Whoever closes it again waits like the first: until then its runs are not given back.
  const close = (): Promise<void> => {
    closing ??= closeOnce()
    return closing
  }
  try {
    await engine.ready()
  } catch (error) {
    await close()
    throw error
  }
  const tutti = {
    start: whileOpen(engine, (of: Definition | string, given: StartGiven = {}) => start(engine, of, given, options.limits)),
    execute: whileOpen(engine, (of: Definition | string, given: StartGiven = {}) => execute(engine, of, given, options.limits)),
    run: whileOpen(engine, (id: string, of?: Definition) => handleOf(engine, id, of)),
    runs: whileOpen(engine, (filter?: RunFilter) => listRuns(engine, filter)),
    agents: agentControl(engine),
    gc: whileOpen(engine, (what: Retention) => collect(engine, what)),
    refusals: () => Object.freeze(Object.fromEntries(engine.refusals)),
    asks: whileOpen(engine, (filter?: AskFilter) => listAsks(engine, filter)),
    close,
    [Symbol.asyncDispose]: close,
  }
  return Object.freeze(withEngine(tutti, engine)) as unknown as Tutti
}

/** With copies of what they hold: who gave them may go on with its own. */
function takenOptions(given: OpenOptions) {
  const { definitions = [], resources = [], limits = {}, prices = {} } = given
  const costs = Object.entries(prices).map(([model, { input, output }]) => [model, { input, output }] as const)
  return {
    ...given,
    definitions: [...definitions],
    resources: [...resources],
    limits: limitsTaken(limits),
    prices: Object.fromEntries(costs),
  }
}

/** Tells a listener. Whether it throws, now or later, is its own affair: what is being told of goes on. */
function heard(listener: OpenOptions['onLog']): (entry: LogEntry) => void {
  return (entry) => {
    try {
      const later: unknown = listener?.(Object.freeze(entry))
      if (isLater(later)) unheard(later)
    } catch {
      // There is nobody else to tell.
    }
  }
}

/** The store that is meant; `own`: it was opened here, and is closed with the engine. */
async function storeOf(store: string | Store | undefined, durability: 'process' | 'power'): Promise<{ store: Store; own: boolean }> {
  if (typeof store === 'object') return { store: givenStore(store), own: false }
  return { store: await openStore(storePlace(store), durability), own: true }
}

async function handleOf(engine: Engine, id: string, of: Definition | undefined): Promise<Run<never>> {
  if (of !== undefined && !isDefinition(of)) throw noDefinition(of)
  if (typeof id !== 'string') throw new TuttiError('INVALID_INPUT', 'the id of a run is a text', { hint: 'tutti.runs() has them' })
  const entry = await engine.current(id)
  const run = entry?.state.run
  if (run === null || run === undefined) throw runNotFound(id)
  if (of !== undefined && of.name !== run.shape.name)
    throw new TuttiError('RUN_OF_OTHER_DEFINITION', `the run ${id} is of '${run.shape.name}', not of '${of.name}'`, {
      hint: 'tutti.run(id) alone takes a run of any definition',
    })
  return runHandle(engine, id, run.shape.name, run.tags)
}
