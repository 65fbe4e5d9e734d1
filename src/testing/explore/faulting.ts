import { widthsOf } from './deviating.js'
import { following } from './following.js'
import { schedulesText } from './schedules-text.js'
import type { Search } from './search.js'
import { faultNumbers } from './setting.js'

/** One fault at each step of each schedule that was played; what was left out. Crashes are compared with the outcome without one. */
export async function faulting(search: Search): Promise<string[]> {
  const faults = faultNumbers(search.setting.faults)
  if (faults.length === 0) return []
  const bases = [...search.explored]
  let played = 0
  for (const base of bases) {
    const steps = (await widthsOf(search, base)).length
    for (let at = 0; at < steps; at++)
      for (const which of faults) {
        if (!search.goesOn) return [leftOf(played, bases.length), several]
        await search.play(following([...base, { at, kind: 'fault' as const, which }].sort((a, b) => a.at - b.at)))
      }
    played++
  }
  return [several]
}

const several = 'more than one fault in a run, but for what chance brought'
const leftOf = (played: number, of: number): string => `faults in ${of - played} of ${schedulesText(of)}: the budget was spent`
