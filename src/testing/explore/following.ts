import { idOf } from './happening.js'
import type { Deviation, Schedule } from './schedule.js'
import type { Chooser } from './scheduler.js'

/** Goes first-come, with these deviations. */
export function following(schedule: Schedule): Chooser {
  if (schedule.length === 0) return () => firstCome
  const at = new Map<number, Deviation[]>()
  for (const deviation of schedule) {
    const same = at.get(deviation.at)
    if (same === undefined) at.set(deviation.at, [deviation])
    else same.push(deviation)
  }
  return ({ step }) => {
    const here = at.get(step)
    if (here === undefined) return firstCome
    const hold = here.flatMap(({ kind, which }) => (kind === 'hold' ? [which] : []))
    const fault = here.find(({ kind }) => kind === 'fault')?.which
    const take = here.find(({ kind }) => kind === 'take')?.which ?? 0
    return { take, ...(hold.length > 0 && { hold }), ...(fault !== undefined && { fault }) }
  }
}

const firstCome = Object.freeze({ take: 0 })

/** Goes by a list of what happened: of what can be let go, what stands first in it; then first-come. */
export function inOrder(ids: readonly string[]): Chooser {
  const place = new Map(ids.map((id, index) => [id, index]))
  return (point) => {
    let take = 0
    let least = Number.POSITIVE_INFINITY
    for (let which = 0; which < point.count; which++) {
      const at = place.get(idOf(point.option(which))) ?? Number.POSITIVE_INFINITY
      if (at < least) {
        least = at
        take = which
      }
    }
    return { take }
  }
}
