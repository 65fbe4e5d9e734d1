import type { RunStatus } from '../inspect/report-data.js'
import { deepFreeze } from '../kernel/deep-freeze.js'
import type { Event } from '../kernel/event.js'
import type { OpenAsk, State } from '../kernel/state.js'
import { attemptsOf, barrierOf, isOver } from '../kernel/state.js'
import { contributions, joinData, reportedSlots, valuesOf } from '../kernel/reported.js'
import { Trie } from '../kernel/trie.js'
import type { Ask } from '../inspect/ask.js'
import type { JournalEvent } from '../inspect/events.js'
import { saidMarks } from './conversation.js'
import { dueNow, type Mark, type RunRow } from './store.js'
import type { RunSummary } from './tutti.js'

/** The status that people see: a pause is a flag beside the run's own. */
export function statusOf(state: State): RunStatus {
  if (state.status === 'new') return 'running'
  return state.pausedAt !== null && !isOver(state) ? 'paused' : state.status
}

/** What a run waits for, for those who list it; `held`: the agents that turns of it wait for. */
export function waitsOf(state: State, held: ReadonlyMap<string, unknown> = new Map()): ('person' | 'timer' | 'agent')[] {
  if (state.status !== 'running') return []
  if (state.timers.size + state.asks.size + held.size === 0) return []
  const timer = state.running === 0 && state.backoffs > 0
  return [
    ...(state.asks.size > 0 ? (['person'] as const) : []),
    ...(timer || state.sleeps > 0 ? (['timer'] as const) : []),
    ...(held.size > 0 ? (['agent'] as const) : []),
  ]
}

/**
 * When a worker has to look at a run that nobody owns; null: not until something happens to it. `held`: the agents that turns of it wait for;
 * `asleep`: all of its turns sleep.
 */
export function dueAt(state: State, held: ReadonlyMap<string, number | null> = new Map(), asleep = false): number | null {
  if (isOver(state)) return null
  if (state.aborting.size > 0) return dueNow
  if (state.pausedAt !== null) return null
  if (!(asleep || isHeldBack(state, held)) || state.undo.running.size > 0) return dueNow
  let due: number | null = null
  for (const until of held.values()) if (until !== null) due = Math.min(due ?? Number.POSITIVE_INFINITY, until)
  for (const timer of state.timers.values()) due = Math.min(due ?? Number.POSITIVE_INFINITY, timer.due + state.pausedMs)
  return due
}

/** A sleep that is longer than this may be slept outside of memory. */
export const longSleepMs = 5_000

/** When the first sleep of a run is over, on the wall's clock; null if nothing of it sleeps. */
export function sleepsUntil(state: State): number | null {
  let until: number | null = null
  for (const { kind, due } of state.timers.values())
    if (kind === 'sleep') until = Math.min(until ?? Number.POSITIVE_INFINITY, due + state.pausedMs)
  return until
}

/** Whether no turn of a run can go on: it has none, or all of them wait for their agents. */
export function isHeldBack(state: State, held: ReadonlyMap<string, unknown>): boolean {
  if (state.running === 0) return true
  if (held.size === 0) return false
  for (const { agent } of attemptsOf(state)) if (!held.has(agent)) return false
  return true
}

/** What a run can be found by: its open asks, and what it has said in its session. */
export function marksOf(before: State, after: State): Mark[] {
  const said = saidMarks(before, after)
  if (before.asks === after.asks && before.pausedAt === after.pausedAt) return said
  const { set, gone } = Trie.changes(before.asks, after.asks)
  const shown = before.pausedAt === after.pausedAt ? set : [...new Map([...expiring(after), ...set])]
  return [
    ...shown.map(([key, ask]) => ({ kind: 'ask', key, body: JSON.stringify(askView(after, ask)) })),
    ...gone.map((key) => ({ kind: 'ask', key, body: null })),
    ...said,
  ]
}

/** The open asks that a pause or a resume says something else of. */
function expiring({ asks, timers }: State): [string, OpenAsk][] {
  return [...asks.entries()].filter(([id]) => timers.has(id))
}

/** When an ask expires, on the wall's clock. While its run is paused there is no such time: what it has left begins to count at the resume. */
function expiryOf({ timers, pausedAt, pausedMs }: State, ask: OpenAsk): { expiresAt?: number } {
  const timer = pausedAt === null ? timers.get(ask.id) : undefined
  return timer === undefined ? {} : { expiresAt: timer.due + pausedMs }
}

/** An open ask as the public sees it. */
export function askView(state: State, ask: OpenAsk): Ask {
  const common = {
    id: ask.id,
    runId: state.run?.id ?? '',
    branch: ask.branch,
    agent: ask.agent,
    openedAt: ask.openedAt,
    tags: state.run?.tags ?? {},
  }
  if (ask.kind === 'join') {
    const barrier = barrierOf(state, ask.barrier)
    const deciding = barrier.fired?.deciding ?? null
    return deepFreeze({
      ...common,
      kind: 'join',
      join: joinData(false, reportedSlots(barrier, deciding), contributions(barrier, deciding).here),
    })
  }
  if (ask.kind === 'approval') return deepFreeze({ ...common, kind: 'approval', tool: ask.tool, input: ask.input, schema: verdictSchema })
  return deepFreeze({
    ...common,
    kind: 'question',
    question: ask.question,
    ...expiryOf(state, ask),
    ...(ask.schema !== undefined && { schema: ask.schema }),
  })
}

/** What a person may say of a call that waits for approval, for whoever shows a form. */
const verdictSchema: object = deepFreeze({
  anyOf: [
    { type: 'boolean' },
    { type: 'object', properties: { approved: { type: 'boolean' }, reason: { type: 'string' } }, required: ['approved'] },
  ],
})

/** A run at a glance, from what the store lists. */
export function summaryOf(row: RunRow, hasDefinition: boolean): RunSummary {
  const over = row.endedAt !== null
  const waits = row.waits as RunSummary['waitsFor']
  return deepFreeze({
    id: row.id,
    definition: row.definition,
    version: row.version,
    status: row.status as RunStatus,
    paused: row.status === 'paused',
    // The store's own stay the store's.
    tags: { ...row.tags },
    startedAt: row.startedAt,
    ...(row.endedAt !== null && { endedAt: row.endedAt }),
    waitsFor: over ? [] : hasDefinition || row.worker !== null ? [...waits] : [...waits, 'definition'],
  })
}

/** An event as the public sees it. */
export function eventView(event: Event, of: { readonly runId: string; readonly tags: Readonly<Record<string, string>> }): JournalEvent {
  switch (event.type) {
    case 'ask.opened': {
      const {
        barrier: _,
        call: __,
        timeoutMs,
        ...ask
      } = event.ask as typeof event.ask & {
        barrier?: string
        call?: number
        timeoutMs?: number
      }
      const expires = timeoutMs === undefined ? {} : { expiresAt: ask.openedAt + timeoutMs }
      const schema = ask.kind === 'approval' ? { schema: verdictSchema } : {}
      return Object.freeze({ ...event, ask: Object.freeze({ ...ask, ...schema, ...expires, ...of }) }) as unknown as JournalEvent
    }
    case 'barrier.opened': {
      const { timeoutMs, ...join } = event.join
      return Object.freeze({
        ...event,
        join: Object.freeze({ ...join, ...(timeoutMs !== null && { timeoutMs }) }),
      }) as unknown as JournalEvent
    }
    case 'turn.started': {
      if (event.message.kind !== 'join') return event as unknown as JournalEvent
      const { join } = event.message
      return Object.freeze({
        ...event,
        message: Object.freeze({ kind: 'join', join: Object.freeze({ ...join, values: Object.freeze(valuesOf(join.slots)) }) }),
      }) as unknown as JournalEvent
    }
    default:
      return event as unknown as JournalEvent
  }
}

export const isTerminal = (event: Event): boolean =>
  event.type === 'run.succeeded' || event.type === 'run.failed' || event.type === 'run.cancelled'
