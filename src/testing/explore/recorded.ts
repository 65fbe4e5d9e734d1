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
      if (event.type === 'activity.completed' || event.type === 'activity.failed') {
        const { timeouts } = event
        const came = event.type === 'activity.completed' ? { value: event.value } : { error: event.error, retryable: false }
        for (const key of keysOf(run, event)) activities.set(key, { ...came, ...(timeouts !== undefined && { timeouts }) })
      }
      if (event.type === 'ask.answered') answers.set(`${run} ${event.askId}`, event.value)
      if (event.type === 'turn.started') messages.set(`${run} ${turnOf(event)}`, JSON.stringify(event.message))
      const choice = choiceOf(event)
      if (choice !== null && choice.how !== unchosen) choices.set(`${run} ${choice.at}`, choice.how)
    }
  /** Both ways: where the record has chosen, going on without is another choice too. */
  const otherwise = (run: string, { at, how }: Choice): boolean => (choices.get(`${run} ${at}`) ?? unchosen) !== how
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
          return choice !== null && otherwise(run, choice)
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

/** What decided at one place of a run, if an order or somebody outside may: `unchosen` where it went on without. */
interface Choice {
  readonly at: string
  readonly how: string
}

const unchosen = 'unchosen'

function choiceOf(event: Event): Choice | null {
  switch (event.type) {
    case 'barrier.fired':
      return { at: event.barrier, how: event.decidedBy === undefined ? unchosen : JSON.stringify([event.decidedBy, event.byTimeout]) }
    case 'gate.opened':
      return event.decidedBy === undefined ? null : { at: event.branch, how: JSON.stringify(event.decidedBy) }
    case 'ask.expired':
      return { at: event.askId, how: 'expired' }
    case 'activity.completed':
    case 'activity.failed':
      return { at: `${turnOf(event)}/${event.key}`, how: event.timeouts === undefined ? unchosen : JSON.stringify(event.timeouts) }
    case 'turn.failed':
      return { at: turnOf(event), how: endedFromOutside(event) ?? unchosen }
    case 'turn.completed':
    case 'turn.rejected':
      return { at: turnOf(event), how: unchosen }
    case 'run.closing':
      return { at: 'run', how: event.cause === 'limit' ? event.error.code : event.cause }
    default:
      return null
  }
}

/** By the clock, or by whoever has stopped the agent: there is no order in which its code does that. */
function endedFromOutside({ timedOut, error }: Extract<Event, { readonly type: 'turn.failed' }>): string | null {
  if (timedOut === true) return 'timed out'
  return error.code === 'AGENT_STOPPED' ? 'stopped' : null
}
