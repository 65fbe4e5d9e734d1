import type { Event } from '../kernel/event.js'
import type { RunChange } from './tutti.js'

/** How many changes are given. */
const changesMax = 50

/** Who steered a run, from its journal; nothing of what was worked on or answered. */
export function runHistory(journal: readonly Event[]): readonly RunChange[] {
  const changes = journal.flatMap((event): RunChange[] => {
    const call = callOf(event)
    if (call === null) return []
    const by = 'by' in event && event.by !== undefined ? { by: event.by } : {}
    return [Object.freeze({ call, at: event.at, ...by, revision: event.seq })]
  })
  return Object.freeze(changes.slice(-changesMax))
}

function callOf(event: Event): RunChange['call'] | null {
  switch (event.type) {
    case 'run.paused':
      return 'pause'
    case 'run.resumed':
      return 'resume'
    case 'run.closing':
      return event.cause === 'cancel' ? 'cancel' : null
    case 'ask.answered':
      return 'answer'
    default:
      return null
  }
}
