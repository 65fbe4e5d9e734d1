import type { Event } from '../kernel/event.js'
import { attemptId } from '../kernel/ids.js'
import type { Report } from './report-data.js'

type Choice = Report['choices'][number]

/**
 * That attempts of an activity ran out of time is a choice, as every timeout is: its turn is given something else then. Those of one attempt
 * of a turn go on side by side, and stand in one order, whichever came first.
 */
export function chooseTimeouts(choices: Choice[], event: Extract<Event, { type: 'activity.completed' | 'activity.failed' }>): void {
  const { branch, turn, attempt, key, timeouts } = event
  if (timeouts === undefined) return
  const turnAttempt = `${attemptId(branch, turn, attempt)}/`
  const at = `${turnAttempt}${key}`
  let place = choices.length
  for (let before = choices[place - 1]; before?.at.startsWith(turnAttempt) && before.at > at; before = choices[place - 1]) place--
  choices.splice(place, 0, { at, kind: 'timeout', decidedBy: timeouts })
}
