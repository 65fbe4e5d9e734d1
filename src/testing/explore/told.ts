import type { RunResult } from '../../engine/tutti.js'
import { TuttiError } from '../../define/tutti-error.js'
import { reportOf } from '../../inspect/report.js'
import { painted, unpainted } from '../../inspect/theme.js'
import { deepFreeze } from '../../kernel/deep-freeze.js'
import { choicesOf } from './choices.js'
import type { Explained } from './explain.js'
import { explained } from './explain.js'
import type { Allowance, Exploration, ExplorationData } from './exploration.js'
import { explorationHtml } from './exploration-html.js'
import { explorationJunit } from './exploration-junit.js'
import { explorationSvg } from './exploration-svg.js'
import { explorationText } from './exploration-text.js'
import { following } from './following.js'
import { pictureOf } from './picture.js'
import { runResult } from './run-result.js'
import { tokenOf } from './schedule.js'
import { schedulesText } from './schedules-text.js'
import type { Search, Violation } from './search.js'
import { shrinkDivergence, shrinkViolation } from './shrink.js'
import type { Done } from './strategy.js'
import { swapOf } from './swap.js'

export interface About {
  readonly name: string
  readonly seed: string
  readonly strategy: string
  readonly allow: readonly Allowance[]
  readonly done: Done
}

/** What a search found: made small, explained, and in every form that somebody may want to look at. */
export async function exploration<O>(search: Search, about: About): Promise<Exploration<O>> {
  const divergence = await divergenceOf(search)
  const violations = await violationsOf(search, [...search.violations, ...departuresOf(search, about)])
  if (search.asks !== null && search.outcomes.length === 0 && violations.length === 0) throw unanswered(search.asks)
  // Where every schedule left the record there is nothing to compare, and nothing is shown.
  const independent = divergence === null && violations.length === 0 && search.outcomes.length > 0
  const choices = choicesOf(search.outcomes)
  const away = [...search.away].sort()
  const exhaustive = about.done.exhaustive && independent && away.length === 0 && search.left.size === 0
  const data: ExplorationData = {
    definition: about.name,
    independent,
    exhaustive,
    schedules: search.schedules,
    redundant: search.givenUp,
    distinct: search.outcomes.length,
    strategy: about.strategy,
    seed: about.seed,
    outcomes: search.outcomes.map(({ digest, count, first }) => ({
      digest,
      count,
      schedule: tokenOf(first.played.schedule),
      status: first.outcome.status,
      choices: first.outcome.choices,
    })),
    divergence,
    violations,
    replayed: about.strategy === 'replay' ? replayedIn(search) : null,
    choices,
    allowed: about.allow.map(({ of }) => of),
    bounds: about.done.bounds,
    notExplored: notExplored(search, about.done, independent, away),
    notes: [...failingIn(search), ...notesOf(away, search.crashes)],
  }
  return result<O>(search, deepFreeze(data))
}

/** A run that waits for somebody comes to its end in no order: that is for whoever asks for the check to mend, and nothing was found. */
const unanswered = (agent: string): TuttiError =>
  new TuttiError('INVALID_INPUT', `${agent} asks a person, and in the recorded run nobody has answered yet: nothing could be compared`, {
    hint: 'play it again once it is answered, or its definition with answers of your own: explore({ answers: (ask) => … }), or for tutti check <file>: export const check = { answers: (ask) => … }',
  })

function result<O>(search: Search, data: ExplorationData): Exploration<O> {
  const { divergence } = data
  const outcomes = search.outcomes.map(({ digest, count, first }) => ({
    digest,
    count,
    schedule: tokenOf(first.played.schedule),
    choices: first.outcome.choices,
    result: runResult(reportOf(first.outcome.journal)) as RunResult<O>,
  }))
  const told = {
    independent: data.independent,
    exhaustive: data.exhaustive,
    schedules: data.schedules,
    distinct: data.distinct,
    seed: data.seed,
    outcomes,
    ...(divergence !== null && { divergence: publicOf(divergence) }),
    violations: data.violations.map(({ invariant, schedule, explain }) => ({ invariant, schedule, explain })),
    choices: data.choices,
    notExplored: data.notExplored,
    notes: data.notes,
    data: () => data,
    text: (options?: { readonly color?: boolean }) => explorationText(data, options?.color === true ? painted : unpainted),
    svg: () => explorationSvg(data),
    html: () => explorationHtml(data),
    junit: () => explorationJunit(data),
  }
  return deepFreeze(told)
}

const publicOf = ({ kind, a, b, swap, explain }: Explained): NonNullable<Exploration['divergence']> => ({ kind, a, b, swap, explain })

async function divergenceOf(search: Search): Promise<ExplorationData['divergence']> {
  if (search.divergence === null) return null
  const small = await shrinkDivergence(search, search.divergence)
  const swap = await swapOf(search, small)
  const red = swap === null ? [] : [swap.first.id, swap.second.id]
  return { ...explained(small, swap), pictures: [pictureOf(small.a, red), pictureOf(small.b, red)] }
}

/** What differs from the record in every order that was played depends on none of them. Of one that was asked for alone, nothing is known of others. */
function departuresOf({ departures, agrees }: Search, { strategy }: About): readonly Violation[] {
  if (agrees || strategy === 'replay') return departures
  return departures.slice(0, 1).map(({ schedule, explain }) => ({
    invariant: 'not-repeatable',
    schedule,
    explain: `in every order that was played, ${explain}; the code has changed since, or uses what was not recorded, such as the time: take that in a step, which is given back`,
  }))
}

async function violationsOf(search: Search, found: readonly Violation[]): Promise<ExplorationData['violations']> {
  const told: ExplorationData['violations'][number][] = []
  for (const violation of found) {
    const { invariant } = violation
    if (told.some((known) => known.invariant === invariant)) continue
    const { schedule, explain, seen } = await shrinkViolation(search, violation)
    const shown = seen ?? (await search.look(following(schedule)))
    if (shown !== null) told.push({ invariant, schedule: tokenOf(schedule), explain, picture: pictureOf(shown, []) })
  }
  return told
}

function notExplored(search: Search, done: Done, independent: boolean, away: readonly string[]): string[] {
  return [
    ...(independent || search.outcomes.length === 0 ? done.left : ['what comes after the first finding: the search stopped there']),
    ...(search.setting.faults.includes('timeout') ? [] : ["timeouts while something else can happen: add the fault 'timeout'"]),
    ...(search.setting.faults.includes('crash') ? [] : ["crashes: add the fault 'crash'"]),
    ...[...search.left].map(([where, count]) => `what follows in ${schedulesText(count)} that left the record: ${where}`),
    ...unansweredIn(search).map((agent) => `what follows an answer to ${agent}, which nobody gave: add \`answers\``),
    ...(away.length > 0 ? [`what ${away.join(', ')} waited for outside of the run: its timing was left to chance`] : []),
  ]
}

/** Who asked a person in a check that has no answers: what comes of it when nobody does, such as the limit of its time, is all that was played. */
function unansweredIn({ setting, outcomes }: Search): string[] {
  if (setting.answers !== undefined || setting.recorded !== null) return []
  const events = outcomes.flatMap(({ first }) => first.outcome.runs.flatMap(({ journal }) => journal))
  return [...new Set(events.flatMap((event) => (event.type === 'ask.opened' ? [event.ask.agent] : [])))].sort()
}

function replayedIn({ outcomes }: Search): ExplorationData['replayed'] {
  const [only] = outcomes
  if (only === undefined) return null
  const { played, outcome } = only.first
  const report = outcome.runs[0]?.report
  const came = report?.error?.message ?? report?.output ?? null
  return { schedule: tokenOf(played.schedule), status: outcome.status, came, picture: pictureOf(only.first, []) }
}

/** Where no order comes to its end, that all are equal says little: most often something was not given to the check. */
function failingIn({ outcomes }: Search): string[] {
  const errors = outcomes.map(({ first }) => first.outcome.runs[0]?.report.error)
  if (errors.length === 0 || errors.includes(undefined)) return []
  const told = new Set(errors.flatMap((error) => (error === undefined ? [] : [`${error.code} ${error.message}`])))
  return [`the run fails in every order that was played: ${[...told].join('; or ')}`]
}

function notesOf(away: readonly string[], crashes: number): string[] {
  const survived = crashes === 0 ? [] : [`${crashes} crashes were played, each followed by a recovery on the same store`]
  if (away.length === 0) return survived
  return [
    ...survived,
    `${away.join(', ')} waited for something that goes around the scheduler (a timer, a file, a socket): use turn.sleep, or give it as a resource of the test`,
  ]
}
