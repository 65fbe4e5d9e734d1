import type { Action } from '../kernel/action.js'
import type { Ask } from '../inspect/ask.js'
import type { AskData, Event, RolledBack } from '../kernel/event.js'
import type { Failure } from '../kernel/failure.js'
import { escaped, pieces, type Shown, shown, value } from './shown.js'

/** What an event says, in one line: its place in the journal, when it was, its type, where, and what. */
export function eventLine(event: Event, startedAt: number, run?: string): Shown {
  const seconds = ((event.at - startedAt) / 1000).toFixed(3)
  const of = run === undefined ? shown`` : shown`${escaped(run, 'dim')} `
  const parts = [...whereOf(event), whatOf(event)].filter((part) => pieces(part).some(({ text }) => text !== ''))
  return shown`${of}${escaped(`${String(event.seq).padStart(4)} +${seconds}s`, 'dim')} ${escaped(event.type)}${parts.map((part) => shown` ${part}`)}`
}

function whereOf(event: Event): Shown[] {
  const branch = 'branch' in event && typeof event.branch === 'string' ? [escaped(event.branch)] : []
  return 'agent' in event ? [...branch, escaped(event.agent, 'turn')] : branch
}

function whatOf(event: Event): Shown {
  switch (event.type) {
    case 'run.started':
      return shown`${event.definition} ${value(event.input)}`
    case 'run.succeeded':
      return shown`${value(event.output)}${notUndone(event)}`
    case 'run.failed':
      return shown`${failure(event.error)}${notUndone(event)}`
    case 'run.cancelled':
      return shown`${event.reason ?? ''}${notUndone(event)}`
    case 'run.paused':
    case 'run.resumed':
      return event.by === undefined ? shown`` : shown`by ${event.by}`
    case 'run.closing':
      return event.cause === 'limit' ? failure(event.error) : shown`${event.cause}${cancelledBy(event)}`
    case 'run.decided':
      return event.status === 'failed' ? failure(event.error) : shown`${event.status}`
    case 'timer.fired':
      return shown`${event.timer}`
    case 'turn.aborted':
      return shown`${event.how}`
    case 'branch.opened':
    case 'branch.moved':
    case 'branch.notified':
      return shown`→ ${event.to}`
    case 'branch.held':
      return shown`at ${event.node}`
    case 'branch.settled':
      return shown`${event.status}`
    case 'barrier.opened':
      return shown`${event.barrier} 0/${event.width}`
    case 'barrier.arrived':
      return shown`${event.barrier} slot ${event.slot} by ${event.by}`
    case 'barrier.fired':
      return shown`${event.barrier} ${event.arrived}/${event.width}`
    case 'rendezvous.fired':
      return shown`at ${event.node}: ${event.merged.join(', ')}`
    case 'step.completed':
      return shown`${event.step} ${value(event.output)}`
    case 'step.skipped':
      return shown`${event.step}: ${event.cause}`
    case 'turn.completed':
      return actionText(event.action)
    case 'turn.rejected':
      return escaped(event.problem, 'retry')
    case 'turn.failed':
      return failure(event.error)
    case 'activity.completed':
      return shown`${event.name} ${value(event.value)}`
    case 'activity.failed':
      return shown`${event.name} ${failure(event.error)}`
    case 'activity.started':
      return shown`${event.name}`
    case 'sleep.started':
      return shown`${event.ms} ms`
    case 'ask.opened':
      return shown`${event.ask.id} ${questionOf(event.ask)}`
    case 'ask.answered':
      return shown`${event.askId} ${value(event.value)}`
    case 'ask.expired':
      return shown`${event.askId}`
    case 'run.compensating':
      return failure(event.cause)
    case 'undo.planned':
      return shown`${event.barrier}: ${counted(event.entries)}`
    case 'undo.started':
    case 'undo.completed':
      return shown`${event.of}`
    case 'undo.failed':
      return shown`${event.of} ${failure(event.error)}`
    default:
      return shown``
  }
}

function cancelledBy({ by, reason }: { readonly by?: string; readonly reason?: string }): Shown {
  return shown`${by === undefined ? '' : ` by ${by}`}${reason === undefined ? '' : `: ${reason}`}`
}

/** What a person is asked, in words; whole, or cut when it is long. */
export function questionOf(ask: AskData | Ask, lengthMax?: number): Shown {
  switch (ask.kind) {
    case 'question':
      return value(ask.question, lengthMax)
    case 'approval':
      return shown`to use ${ask.tool} with ${value(ask.input, lengthMax)}`
    case 'join':
      return shown`whether to go on with ${ask.join.values.length} of ${ask.join.slots.length} answers`
  }
}

/** What a turn did, in words. */
export function actionText(action: Action): Shown {
  switch (action.type) {
    case 'fork':
      return shown`asks ${counted(action.calls.map(({ to }) => to))}`
    case 'invoke':
      return shown`invokes ${escaped(action.to, 'turn')} ${value(action.request, 60)}`
    case 'reply':
      return shown`replies ${value(action.value, 60)}`
    case 'finish':
      return shown`finishes ${value(action.output, 60)}`
    case 'ask':
      return action.approval === undefined
        ? shown`asks a person ${value(action.question, 60)}`
        : shown`asks a person to use ${action.approval.tool} with ${value(action.approval.input, 60)}`
    case 'fail':
      return failure(action.error)
  }
}

const namesMax = 8

/** Names, each once, with how often it occurs. */
function counted(names: readonly string[]): string {
  const counts = new Map<string, number>()
  for (const name of names) counts.set(name, (counts.get(name) ?? 0) + 1)
  const parts = [...counts].map(([name, count]) => (count === 1 ? name : `${name} ×${count}`))
  return parts.length <= namesMax ? parts.join(', ') : `${parts.slice(0, namesMax).join(', ')} and ${parts.length - namesMax} others`
}

/** What could not be undone, if there is such: it is never left out where the end of a run is told. */
export function notUndone({ notUndone: left }: Partial<RolledBack>): Shown {
  return left === undefined ? shown`` : shown`; ${leftText(left)}`
}

export const leftText = (left: readonly string[]): Shown => escaped(`not undone: ${counted(left)}`, 'bad')

/** A failure with where it began. */
export function failure(error: Failure): Shown {
  const root = error.cause === undefined ? shown`` : shown` ← ${failure(error.cause)}`
  const { agent, step, branch } = error.at
  const place = [agent ?? step, branch].filter((part) => part !== undefined).join(' at ')
  return shown`${escaped(error.code, 'bad')} ${error.message}${place === '' ? '' : ` (${place})`}${root}`
}
