import { differenceOf, matters } from './compare.js'
import { deviationsFrom, widthsOf } from './deviating.js'
import { following } from './following.js'
import type { Deviation, Schedule } from './schedule.js'
import type { Divergence, Search, Seen, Violation } from './search.js'

/** How many schedules are tried to find one that deviates only once. */
const singlesMax = 300

/** The same divergence with as few deviations as can be found: of what is ordered first, of what goes wrong then. */
export async function shrinkDivergence(search: Search, { a, b }: Divergence): Promise<Divergence> {
  const smaller = (await shrunkAgainst(search, a, b)) ?? b
  if (a.played.schedule.length === 0) return between(a, smaller)
  const other = (await shrunkAgainst(search, smaller, a)) ?? a
  // It is near the one that is small now, if not near the one that was not.
  return between(other, (await shrunkAgainst(search, other, smaller)) ?? smaller)
}

const between = (a: Seen, b: Seen): Divergence => ({ kind: differenceOf(a.outcome, b.outcome) ?? 'order', a, b })

/** The same violation with as few deviations as can be found. */
export async function shrinkViolation(search: Search, violation: Violation): Promise<Violation & { readonly seen: Seen | null }> {
  const { invariant, schedule } = violation
  if (invariant === 'not-repeatable') return { ...violation, seen: null }
  const shows = async (tried: Schedule): Promise<Seen | null> => {
    const seen = await search.look(following(tried))
    return seen?.played.broken.some((broken) => broken.invariant === invariant) ? seen : null
  }
  const seen = await smallest(search, schedule, shows)
  if (seen === null) return { ...violation, seen: null }
  const explain = seen.played.broken.find((broken) => broken.invariant === invariant)?.explain ?? violation.explain
  return { invariant, schedule: seen.played.schedule, explain, seen }
}

/** What deviates least and still differs from `fixed` for the same choices. */
async function shrunkAgainst(search: Search, fixed: Seen, seen: Seen): Promise<Seen | null> {
  const differs = async (schedule: Schedule): Promise<Seen | null> => {
    const tried = await search.look(following(schedule))
    if (tried === null || tried.outcome.choices !== fixed.outcome.choices) return null
    return matters(differenceOf(fixed.outcome, tried.outcome)) ? tried : null
  }
  const least = await smallest(search, seen.played.schedule, differs)
  // Where what is held fixed deviates itself, because its choice does, what differs from it may be near it and far from first-come.
  const base = fixed.played.schedule
  if (base.length === 0 || (least ?? seen).played.schedule.length <= base.length + 1) return least
  return (await singleShowing(search, differs, base)) ?? least
}

/** The least schedule that still shows what `shows` looks for. */
export async function smallest(
  search: Search,
  schedule: Schedule,
  shows: (schedule: Schedule) => Promise<Seen | null>,
): Promise<Seen | null> {
  const orders = schedule.filter(({ kind }) => kind !== 'fault')
  const faults = schedule.filter(({ kind }) => kind === 'fault')
  const fewer = await ddmin(orders, (some) => shows(merged(some, faults)))
  const fewest = await ddmin(faults, (some) => shows(merged(fewer, some)))
  const least = merged(fewer, fewest)
  if (least.length > 1) {
    const single = await singleShowing(search, shows, [])
    if (single !== null) return single
  }
  return shows(least)
}

const merged = (a: Schedule, b: Schedule): Schedule => [...a, ...b].sort((x, y) => x.at - y.at)

/** One that deviates once more than `base`, and shows it. */
async function singleShowing(search: Search, shows: (schedule: Schedule) => Promise<Seen | null>, base: Schedule): Promise<Seen | null> {
  let tried = 0
  for (const deviation of deviationsFrom(await widthsOf(search, base), -1, search.setting.faults)) {
    if (++tried > singlesMax) return null
    const seen = await shows(merged(base, [deviation]))
    if (seen !== null) return seen
  }
  return null
}

/** Delta debugging: leaves out halves, quarters and so on, as long as it still shows. */
async function ddmin(
  all: readonly Deviation[],
  shows: (some: readonly Deviation[]) => Promise<Seen | null>,
): Promise<readonly Deviation[]> {
  let kept = all
  if (kept.length > 0 && (await shows([])) !== null) return []
  for (let parts = 2; kept.length > 1 && parts <= kept.length; ) {
    const size = Math.ceil(kept.length / parts)
    let found: readonly Deviation[] | null = null
    for (let from = 0; from < kept.length && found === null; from += size) {
      const without = [...kept.slice(0, from), ...kept.slice(from + size)]
      if ((await shows(without)) !== null) found = without
    }
    if (found === null) parts *= 2
    else {
      kept = found
      parts = Math.max(2, parts - 1)
    }
  }
  return kept
}
