import type { ActivityOutcome } from '../../engine/seam.js'
import type { ActivitySpeaker } from '../../kernel/command.js'
import type { Event } from '../../kernel/event.js'

/** The journals of a run and its child runs, each by what its id adds to that of the run: nothing for the run itself. */
export type Journals = ReadonlyMap<string, readonly Event[]>

/** How a run was started. */
type Started = Extract<Event, { readonly type: 'run.started' }>

/** What the journals of a run have to give back when it is played in other orders. `run`: which of them, by what its id adds. */
export interface Recorded {
  readonly of: Started
  /** What happens where an order leaves the record: the path stops there, or goes on and performs what it needs. */
  readonly beyond: 'stop' | 'perform'
  /** What its keys and random numbers derive from; null if there is no such run in the record. */
  nonce(run: string): string | null
  activity(run: string, of: ActivitySpeaker): ActivityOutcome | null
  answer(run: string, askId: string): unknown
  /** Whether a turn was shown something else in the record; false also if it has no such turn. */
  differs(run: string, event: Event): boolean
  /** Whether an order has made another choice than the record, in the run or in a child of it. */
  chose(journals: Journals): boolean
}

/** Reads journals. */
export function recordedIn(of: Started, journals: Journals, beyond: 'stop' | 'perform'): Recorded {
  const nonces = new Map<string, string>()
  const activities = new Map<string, ActivityOutcome>()
  const answers = new Map<string, unknown>()
  const messages = new Map<string, string>()
  const choices = new Map<string, string>()
  for (const [run, journal] of journals)
    for (const event of journal) {
      if (event.type === 'run.started') nonces.set(run, event.nonce)
      if (event.type === 'activity.completed') for (const key of keysOf(run, event)) activities.set(key, { value: event.value })
      if (event.type === 'activity.failed')
        for (const key of keysOf(run, event)) activities.set(key, { error: event.error, retryable: false })
      if (event.type === 'ask.answered') answers.set(`${run} ${event.askId}`, event.value)
      if (event.type === 'turn.started') messages.set(`${run} ${turnOf(event)}`, JSON.stringify(event.message))
      const choice = choiceOf(event)
      if (choice !== null) choices.set(`${run} ${choice.at}`, choice.how)
    }
  return {
    of,
    beyond,
    nonce: (run) => nonces.get(run) ?? null,
    activity: (run, speaker) => keysOf(run, speaker).flatMap((key) => activities.get(key) ?? [])[0] ?? null,
    answer: (run, askId) => answers.get(`${run} ${askId}`),
    differs: (run, event) => {
      if (event.type !== 'turn.started') return false
      const known = messages.get(`${run} ${turnOf(event)}`)
      return known !== undefined && known !== JSON.stringify(event.message)
    },
    chose: (played) =>
      [...played].some(([run, journal]) =>
        journal.some((event) => {
          const choice = choiceOf(event)
          return choice !== null && choices.get(`${run} ${choice.at}`) !== choice.how
        }),
      ),
  }
}

/** An attempt of its own first, then any attempt of its turn: what was done once is not done again. */
function keysOf(run: string, { branch, turn, attempt, key }: Pick<ActivitySpeaker, 'branch' | 'turn' | 'attempt' | 'key'>): string[] {
  return [`${run} ${branch}/${turn}/${attempt} ${key}`, `${run} ${branch}/${turn} ${key}`]
}

const turnOf = ({ branch, turn, attempt }: { readonly branch: string; readonly turn: number; readonly attempt: number }): string =>
  `${branch}/${turn}/${attempt}`

function choiceOf(event: Event): { readonly at: string; readonly how: string } | null {
  switch (event.type) {
    case 'barrier.fired':
      return event.decidedBy === undefined ? null : { at: event.barrier, how: JSON.stringify([event.decidedBy, event.byTimeout]) }
    case 'gate.opened':
      return event.decidedBy === undefined ? null : { at: event.branch, how: JSON.stringify(event.decidedBy) }
    case 'ask.expired':
      return { at: event.askId, how: 'expired' }
    case 'turn.failed':
      return event.timedOut === true ? { at: turnOf(event), how: 'timed out' } : null
    case 'run.closing':
      return { at: 'run', how: event.cause === 'limit' ? event.error.code : event.cause }
    default:
      return null
  }
}
