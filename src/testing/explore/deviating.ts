import { following } from './following.js'
import type { Deviation, Schedule } from './schedule.js'
import type { Chooser } from './scheduler.js'
import type { Search } from './search.js'
import type { Fault } from './setting.js'
import { faultNumbers } from './setting.js'

/** All schedules with one deviation from this one after its last, then, with `depth` 2, with two. False if the budget ran out before. */
export async function deviating(search: Search, base: Schedule, depth: number, until: number): Promise<boolean> {
  const level: Schedule[] = [base]
  for (let left = depth; left > 0; left--) {
    const next: Schedule[] = []
    for (const schedule of level) {
      const widths = await widthsOf(search, schedule)
      for (const deviation of deviationsFrom(widths, schedule.at(-1)?.at ?? -1, [])) {
        if (!search.goesOn || search.schedules >= until) return false
        const made = [...schedule, deviation]
        await search.play(following(made))
        next.push(made)
      }
    }
    level.splice(0, level.length, ...next)
  }
  return search.goesOn
}

/** How many options each step of a schedule had. */
export async function widthsOf(search: Search, schedule: Schedule): Promise<readonly number[]> {
  const widths: number[] = []
  await search.look(counting(following(schedule), widths))
  return widths
}

function counting(choose: Chooser, options: number[]): Chooser {
  return (point) => {
    options.push(point.count)
    return choose(point)
  }
}

/** Faults first, then, step by step, what is taken out of turn and what is held back: of a wide fork not all steps may be tried. */
export function* deviationsFrom(options: readonly number[], after: number, allowed: readonly Fault[]): Generator<Deviation> {
  const faults = faultNumbers(allowed)
  for (let at = after + 1; at < options.length; at++) for (const which of faults) yield { at, kind: 'fault', which }
  for (let at = after + 1; at < options.length; at++) {
    const count = options[at] ?? 1
    for (let which = 1; which < count; which++) yield { at, kind: 'take', which }
    for (let which = 0; which < count && count > 1; which++) yield { at, kind: 'hold', which }
  }
}
