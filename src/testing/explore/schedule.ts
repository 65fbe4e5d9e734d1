import { TuttiError } from '../../define/tutti-error.js'

/**
 * One deviation from first-come order, at the step where it happens.
 *
 * - `take`: another option than the first is let go; option 0 is what first-come order would do.
 * - `hold`: the event at this place of the queue waits until nothing else can happen.
 * - `fault`: something goes wrong with what is let go here.
 */
export interface Deviation {
  readonly at: number
  readonly kind: 'take' | 'hold' | 'fault'
  readonly which: number
}

/** An order of everything that happens: how it deviates from first-come. Every list is one; what does not fit a run changes nothing. */
export type Schedule = readonly Deviation[]

const letters = { take: 't', hold: 'h', fault: 'f' } as const
const kinds = { t: 'take', h: 'hold', f: 'fault' } as const
const firstCome = 'first'

/** A schedule as a short text that replays it. */
export function tokenOf(schedule: Schedule): string {
  if (schedule.length === 0) return firstCome
  return schedule.map(({ at, kind, which }) => `${at.toString(36)}${letters[kind].toUpperCase()}${which.toString(36)}`).join('.')
}

/** The schedule that a token stands for. */
export function scheduleOf(token: string): Schedule {
  if (token === firstCome || token === '') return []
  return token.split('.').map((part) => {
    const found = /^([0-9a-z]{1,7})([THF])([0-9a-z]{1,7})$/.exec(part)
    const [, at, letter, which] = found ?? []
    if (at === undefined || letter === undefined || which === undefined)
      throw new TuttiError('INVALID_INPUT', `'${token.slice(0, 80)}' is no schedule: '${part.slice(0, 20)}' is no deviation`, {
        hint: 'take the token from what the race check printed',
      })
    return { at: Number.parseInt(at, 36), kind: kinds[letter.toLowerCase() as keyof typeof kinds], which: Number.parseInt(which, 36) }
  })
}
