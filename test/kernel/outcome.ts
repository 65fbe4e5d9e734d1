import type { Event } from '../../src/kernel/event.js'
import type { Failure } from '../../src/kernel/failure.js'
import type { JoinData } from '../../src/kernel/join.js'
import type { TurnMessage } from '../../src/kernel/message.js'
import type { OpenAsk, State } from '../../src/kernel/state.js'
import { dumpTimeless } from './dump.js'

export interface TurnTaken {
  readonly branch: string
  readonly turn: number
  readonly attempt: number
  readonly agent: string
  readonly message: TurnMessage
}

/** One of the things that an order may decide. */
export type Choice =
  | { readonly join: string; readonly ok: boolean; readonly decidedBy: readonly number[]; readonly byTimeout: boolean }
  | { readonly answered: string; readonly value: unknown }
  | { readonly expired: string }
  | { readonly timedOut: string }
  | { readonly closed: 'cancel' | 'limit' }

/** How a run went. */
export interface Result {
  readonly state: State
  readonly journal: readonly Event[]
  /** What was completed, in which order: enough to do it again. */
  readonly schedule: readonly string[]
  readonly status: State['status']
  readonly output: unknown
  readonly error: Failure | null
  readonly turns: readonly TurnTaken[]
  /** What each turn was shown in its attempts, by `branch/turn`. */
  readonly messages: ReadonlyMap<string, readonly TurnMessage[]>
  readonly choices: readonly Choice[]
  /** Asks that nobody has answered. */
  readonly asks: readonly OpenAsk[]
}

export function resultOf(state: State, journal: readonly Event[], schedule: readonly string[]): Result {
  const last = journal.at(-1)
  const turns: TurnTaken[] = []
  const messages = new Map<string, TurnMessage[]>()
  for (const event of journal) {
    if (event.type !== 'turn.started' || event.message.kind === 'step') continue
    const { branch, turn, attempt, agent, message } = event
    turns.push({ branch, turn, attempt, agent, message })
    messages.set(`${branch}/${turn}`, [...(messages.get(`${branch}/${turn}`) ?? []), message])
  }
  return {
    state,
    journal,
    schedule,
    status: state.status,
    output: last?.type === 'run.succeeded' ? last.output : undefined,
    error: last?.type === 'run.failed' ? last.error : null,
    turns,
    messages,
    choices: journal.flatMap((event) => choiceOf(event) ?? []),
    asks: [...state.asks.values()],
  }
}

function choiceOf(event: Event): Choice | null {
  switch (event.type) {
    case 'barrier.fired':
      if (event.decidedBy === undefined) return null
      return { join: event.barrier, ok: event.ok, decidedBy: event.decidedBy, byTimeout: event.byTimeout ?? false }
    case 'ask.answered':
      return { answered: event.askId, value: event.value }
    case 'ask.expired':
      return { expired: event.askId }
    case 'turn.failed':
      return event.timedOut === true ? { timedOut: `${event.branch}/${event.turn}/${event.attempt}` } : null
    case 'run.closing':
      return { closed: event.cause }
    default:
      return null
  }
}

/** The turns of one agent, in the order of their branches and numbers; the first attempts, if not said otherwise. */
export function turnsOf(result: Result, agent: string, attempts: 'first' | 'all' = 'first'): TurnTaken[] {
  const taken = result.turns.filter((turn) => turn.agent === agent && (attempts === 'all' || turn.attempt === 1))
  return taken.sort((a, b) => (a.branch === b.branch ? a.turn - b.turn || a.attempt - b.attempt : a.branch < b.branch ? -1 : 1))
}

/** The joins that one agent was shown. */
export function joinsOf(result: Result, agent: string): JoinData[] {
  return turnsOf(result, agent).flatMap(({ message }) => (message.kind === 'join' ? [message.join] : []))
}

/** The values of the requests that met, for each turn of an agent. */
export function requestsOf(result: Result, agent: string): unknown[][] {
  return turnsOf(result, agent).flatMap(({ message }) => {
    if (message.kind === 'request') return [[message.value]]
    return message.kind === 'merged' ? [message.requests.map((request) => request.value)] : []
  })
}

/** The events of one type. */
export function eventsOf<T extends Event['type']>(journal: readonly Event[], type: T): Extract<Event, { type: T }>[] {
  return journal.filter((event): event is Extract<Event, { type: T }> => event.type === type)
}

/** The codes of a failure and its causes, from the outside in. */
export function codesOf(error: Failure | null | undefined): string[] {
  return error === null || error === undefined ? [] : [error.code, ...codesOf(error.cause)]
}

/** The failure in which a chain of causes began. */
export function rootCauseOf(error: Failure | null): Failure | null {
  return error?.cause === undefined ? error : rootCauseOf(error.cause)
}

/**
 * What is reported of a run (KERNEL §12), and the choices that it depends on: for equal choices, the same in every order. What was done
 * under slots that read cancelled is left out; of a run that was closed early, only how it ended remains.
 */
export function reportedOf(result: Result): { readonly choices: string; readonly outcome: string } {
  const { journal, status, output, error } = result
  const closed = result.choices.filter((choice) => 'closed' in choice)
  const ended = dumpTimeless({ status, output, error })
  if (closed.length > 0) return { choices: dumpTimeless(closed), outcome: ended }
  const isCut = cutOf(journal)
  const told = journal.filter((event) => isTold(event) && !isCut(branchOfEvent(event)))
  const lines = told.map((event) => dumpTimeless('attempt' in event ? { ...event, attempt: null } : event)).sort()
  const choices = told.flatMap((event) => choiceOf(event) ?? [])
  return {
    choices: choices
      .map((choice) => dumpTimeless(choice))
      .sort()
      .join('\n'),
    outcome: [ended, ...lines].join('\n'),
  }
}

const untold: readonly Event['type'][] = ['turn.aborted', 'timer.fired', 'run.paused', 'run.resumed', 'run.decided', 'barrier.closed']
const isTold = (event: Event): boolean => !untold.includes(event.type)

function branchOfEvent(event: Event): string {
  if ('branch' in event && typeof event.branch === 'string') return event.branch
  return 'barrier' in event ? (event.barrier.split('#')[0] ?? '') : ''
}

/** Whether a branch is, or comes from, one whose slot reads cancelled. */
function cutOf(journal: readonly Event[]): (branch: string) => boolean {
  const seats = eventsOf(journal, 'branch.opened')
  const cut = new Set<string>()
  for (const { barrier, decidedBy } of eventsOf(journal, 'barrier.fired')) {
    if (decidedBy === undefined) continue
    for (const seat of seats) if (seat.barrier === barrier && !decidedBy.includes(seat.slot)) cut.add(seat.branch)
  }
  return (branch) => {
    const parts = branch.split('.')
    return parts.some((_, at) => cut.has(parts.slice(0, at + 1).join('.')))
  }
}
