import { bytesOver } from '../define/bytes-over.js'
import { asJson } from '../define/check-schema.js'
import { isLater, type Maybe } from '../define/maybe.js'
import { aBoolean, aString } from '../define/option-check.js'
import { TuttiError } from '../define/tutti-error.js'
import { oldestFirst } from '../inspect/oldest-first.js'
import { reportOf } from '../inspect/report.js'
import type { Report } from '../inspect/report-data.js'
import type { Command as KernelCommand } from '../kernel/command.js'
import { deepFreeze } from '../kernel/deep-freeze.js'
import type { Event } from '../kernel/event.js'
import { jsonSize } from '../kernel/json.js'
import type { Outcome } from '../kernel/state.js'
import { isOver } from '../kernel/state.js'
import { checkAnswer } from './check-answer.js'
import type { Engine } from './engine.js'
import { follow } from './follow.js'
import { checkCommand, onceUnder } from './keyed.js'
import { refused } from './refused.js'
import type { RunEntry } from './run-entry.js'
import { runHistory } from './run-history.js'
import { runNotFound } from './run-not-found.js'
import { askView, statusOf } from './run-view.js'
import { summaryWithChildren } from './summary-with-children.js'
import type { Command, Run, RunResult } from './tutti.js'
import { whileOpen } from './while-open.js'

/** A run as its user holds it. It has no state of its own: every call asks the engine. */
export function runHandle(engine: Engine, id: string, definition: string, tags: Readonly<Record<string, string>>): Run<never> {
  const current = (): Maybe<RunEntry> => currentEntry(engine, id)

  const send = async (command: KernelCommand, o: Command | undefined, detail: unknown): Promise<void> => {
    const request = JSON.stringify([command.type, id, detail ?? null])
    const { outcome } = await onceUnder(engine, o?.key, { request, run: id }, (put) => engine.submit(id, command, put))
    if (outcome === null) await engine.alignAgain(id)
    else if (outcome.refusal !== undefined) throw refused(outcome.refusal)
  }

  const by = (o: Command | undefined): { by?: string } => (o?.by === undefined ? {} : { by: o.by })

  const journal = async (): Promise<readonly Event[]> => {
    const events = await engine.journal(id)
    if (events.length === 0) throw runNotFound(id)
    return events
  }

  const report = async (): Promise<Report> => {
    const entry = await engine.entry(id)
    return deepFreeze(reportOf(await journal(), { refusals: Object.fromEntries(entry?.refusals ?? []) }))
  }

  const result = async (): Promise<RunResult> => {
    const { state } = await untilOver(engine, id)
    const events = await journal()
    const [first, last] = [events[0], events.at(-1)]
    // It may have been deleted meanwhile, and its id be another's.
    if (first?.type !== 'run.started' || first.nonce !== state.run?.nonce) throw runNotFound(id)
    const entry = await engine.entry(id)
    return resultOf(id, last, deepFreeze(reportOf(events, { refusals: Object.fromEntries(entry?.refusals ?? []) })))
  }

  const run: Run = {
    id,
    definition,
    tags,
    result,
    output: async () => outputOf(id, (await untilOver(engine, id)).state.outcome),
    events: ((options = {}) => follow(engine, { id, tags }, options)) as Run['events'],
    status: async () => statusOf((await current()).state),
    summary: async () => {
      await current()
      const loaded = await engine.options.store.load(id, { after: Number.MAX_SAFE_INTEGER })
      if (loaded === null) throw runNotFound(id)
      return summaryWithChildren(engine.options.store, loaded.row, engine.executes(loaded.row))
    },
    report,
    pause: async (o) => {
      checkCommand('run.pause()', o)
      await send({ type: 'run.pause', ...by(o) }, o, null)
    },
    resume: async (o) => {
      checkCommand('run.resume()', o)
      await send({ type: 'run.resume', ...by(o) }, o, null)
    },
    cancel: async (o) => {
      checkCommand('run.cancel()', o, { reason: aString, compensate: aBoolean })
      const { reason, compensate } = o ?? {}
      const { maxValue } = engine.options.store.promises
      const size = bytesOver(maxValue, jsonSize(reason), reason)
      if (size !== null)
        throw new TuttiError('VALUE_TOO_LARGE', `the reason has about ${size} bytes; the store takes ${maxValue}`, {
          hint: 'say it in fewer words; the run was not cancelled',
        })
      const given = { ...by(o), ...(reason !== undefined && { reason }), ...(compensate === false && { compensate }) }
      // What is left out is the same request as what it then is.
      await send({ type: 'run.cancel', ...given }, o, [reason, given.compensate])
    },
    history: async () => {
      await current()
      return runHistory(await journal())
    },
    asks: async () => {
      const { state } = await current()
      return deepFreeze([...state.asks.values()].map((ask) => askView(state, ask)).sort(oldestFirst))
    },
    answer: async (askId, value, o) => {
      if (typeof askId !== 'string') throw new TuttiError('INVALID_INPUT', 'the id of an ask is a text', { hint: 'run.asks() has them' })
      checkCommand('run.answer()', o)
      // As they are now: whoever answers may go on with them while it waits.
      const given = asJson(value, 'the answer')
      const command: Command = { key: o?.key, by: o?.by }
      const answer = await checkAnswer(await current(), askId, given)
      if ('problem' in answer)
        throw new TuttiError('ASK_INVALID_ANSWER', answer.problem, { hint: 'the ask is still open: answer it again' })
      const { maxValue } = engine.options.store.promises
      const size = bytesOver(maxValue, jsonSize(answer.value), answer.value)
      if (size !== null)
        throw new TuttiError('VALUE_TOO_LARGE', `the answer has about ${size} bytes; the store takes ${maxValue}`, {
          hint: 'keep it elsewhere and answer with a reference; the ask is still open',
        })
      // As it was given, not as its schema made it: once answered, the ask is gone, and its schema with it.
      const detail = [askId, 'value' in given ? (given.value ?? null) : null]
      await send({ type: 'ask.answer', askId, value: answer.value, ...by(command) }, command, detail)
    },
  }
  return Object.freeze(openOnly(engine, run)) as Run<never>
}

/** Its calls, refused once the engine is closed. One that waits by then is told when there is nothing more to come. */
function openOnly(engine: Engine, run: Run): Run {
  const calls = Object.entries(run).map(([name, one]) => [
    name,
    typeof one === 'function' && name !== 'events' ? whileOpen(engine, one) : one,
  ])
  return Object.fromEntries(calls) as Run
}

function currentEntry(engine: Engine, id: string): Maybe<RunEntry> {
  const current = engine.current(id)
  return isLater(current) ? current.then((entry) => goingOn(id, entry)) : goingOn(id, current)
}

function goingOn(id: string, entry: RunEntry | null): RunEntry {
  if (entry === null) throw runNotFound(id)
  if (entry.broken !== null) throw entry.broken
  return entry
}

export async function untilOver(engine: Engine, id: string): Promise<RunEntry> {
  let nonce: string | undefined
  for (;;) {
    const current = currentEntry(engine, id)
    // Nothing happens between what is known at once and whoever listens from here on.
    const later = isLater(current)
    const waiting = later || !isOver(current.state) ? engine.listeners.waitFor(id, 'end') : null
    try {
      const entry = later ? await current : current
      // What was waited for may be gone, and its id another's.
      nonce ??= entry.state.run?.nonce
      if (entry.state.run?.nonce !== nonce) throw runNotFound(id)
      if (isOver(entry.state)) return entry
      if (engine.closed)
        throw new TuttiError('CLOSED', `the engine was closed while the run ${id} goes on`, { hint: 'open the store again and ask there' })
      await waiting?.wait
    } finally {
      waiting?.stop()
    }
  }
}

function resultOf(id: string, last: Event | undefined, report: Report): RunResult {
  switch (last?.type) {
    case 'run.succeeded':
      return Object.freeze({ status: 'succeeded', output: last.output, rollback: last.rollback ?? 'none', report })
    case 'run.failed':
      return Object.freeze({ status: 'failed', error: last.error, rollback: last.rollback, report })
    case 'run.cancelled':
      return Object.freeze({
        status: 'cancelled',
        ...(last.reason !== undefined && { reason: last.reason }),
        rollback: last.rollback,
        report,
      })
    default:
      throw new Error(`the journal of ${id} has no end`)
  }
}

/** What a run gives in the end. The state says how it ended: no journal is read for it. */
export function outputOf(id: string, outcome: Outcome | null): unknown {
  switch (outcome?.status) {
    case 'succeeded':
      return outcome.output
    case 'failed':
      throw new TuttiError('RUN_FAILED', `the run ${id} failed: ${outcome.error.message}`, {
        failure: outcome.error,
        hint: 'run.result() has the chain of causes',
      })
    case 'cancelled':
      throw new TuttiError('RUN_CANCELLED', `the run ${id} was cancelled${outcome.reason === null ? '' : `: ${outcome.reason}`}`, {
        hint: 'run.history() says who cancelled it',
        failure: deepFreeze({ code: 'CANCELLED', message: outcome.reason ?? 'the run was cancelled', retryable: false, at: {} }),
      })
    case undefined:
      throw new Error(`the run ${id} has no outcome`)
  }
}
