import { createHash } from 'node:crypto'
import { TuttiError } from '../../define/tutti-error.js'
import { reportOf } from '../../inspect/report.js'
import type { Report } from '../../inspect/report-data.js'
import type { Event } from '../../kernel/event.js'
import { toJson } from '../../kernel/json.js'
import type { CountedRun } from './counted-runs.js'
import { countedRuns } from './counted-runs.js'
import type { Effect } from './effects.js'
import { canonical, type DrawnIds, idsIn, nameless } from './random-ids.js'
import { faultOf, within } from './setting.js'
import type { Setting } from './setting.js'
import type { Played } from './stage.js'

/** The ways in which two outcomes can differ, worst first; the last is for information only. */
export const classes = [
  'not-repeatable',
  'ghost',
  'deadlock',
  'invariant',
  'endless',
  'effect-count',
  'effect-order',
  'status',
  'output',
  'prompt',
  'order',
] as const
export type Class = (typeof classes)[number]

/** What came of one schedule, in the form in which it is compared: clock, usage and attempts are not part of it. */
export interface Outcome {
  /**
   * What an order may decide: early joins, timeouts, limits, turns whose agent may not act, also those of child runs, and the faults that
   * were played. Outcomes are compared for equal ones.
   */
  readonly choices: string
  readonly status: string
  /** Output, error and the rest of the report; and what the user's own observer saw. */
  readonly told: string
  /** What each turn was shown, and each person who was asked. */
  readonly shown: string
  /** What was done outside of the run, as a bag, and in which order to each thing, which is named first in its line; null after a crash: a body may be executed again. */
  readonly effects: { readonly bag: string; readonly order: string } | null
  readonly journal: readonly Event[]
  /** The run itself, and the child runs that count. */
  readonly runs: readonly CountedRun[]
}

/** All that is compared: the same text for outcomes that are the same. */
export function textOf({ choices, status, told, shown, effects }: Outcome): string {
  return `${choices}\n${status}\n${told}\n${shown}\n${effects?.bag ?? ''}\n${effects?.order ?? ''}`
}

/** A name for what has this text. */
export const digestOf = (text: string): string => createHash('sha256').update(text).digest('hex').slice(0, 12)

export interface Observing {
  readonly bags: ReadonlySet<string>
  readonly observe: ((report: Report) => unknown) | undefined
}

/** What came of a schedule. `drawn`: which of the ids in it were drawn at random. */
export async function outcomeOf(played: Played, setting: Setting, observing: Observing, drawn: DrawnIds): Promise<Outcome> {
  const { journal } = played
  const [own, ...children] = countedRuns(played.journals)
  if (own === undefined) throw new Error('nothing was played')
  const { report } = own
  const runs = [own, ...children]
  const counts = countedIn(setting.run, runs)
  const observed = comparableAs(await observing.observe?.(reportOf(journal)))
  const told = {
    ...comparable(own),
    ...(children.length > 0 && { runs: Object.fromEntries(children.map((of) => [of.run.slice(1), comparable(of)])) }),
  }
  const shown = shownOf(played, runs, counts)
  const effects = played.crashes > 0 ? [] : played.effects.filter(counts)
  const texts = [JSON.stringify([told, observed]), shown, ...effects.map(({ call }) => call)]
  const random = await drawn(new Set(texts.flatMap(idsIn)))
  const bagged = { ...told, ...unordered(report, observing.bags, random) }
  return {
    choices: JSON.stringify([report.choices, isCancelled(journal), faultsOf(played, setting), ...runs.flatMap(chosenIn)]),
    status: report.error === undefined ? report.status : `${report.status} ${report.error.code}`,
    told: canonical(JSON.stringify([bagged, observed]), random),
    shown: canonical(shown, random),
    effects: played.crashes > 0 ? null : effectsOf(effects, observing.bags, random),
    journal,
    runs,
  }
}

/** What the user's own observer saw. What is not JSON would read the same whatever is in it, and every order would seem equal. */
function comparableAs(observed: unknown): unknown {
  if (observed === undefined) return null
  const json = toJson(observed)
  if ('problem' in json) throw new TuttiError('INVALID_INPUT', `what observe gives is no JSON at ${json.path}: ${json.problem}`)
  return json.value
}

/** What is undefined is not written. */
const comparable = ({ report }: CountedRun) => ({ ...report, runId: undefined, choices: undefined })

/** What an order has decided in a child run, or of what was left of one, if it did. */
function chosenIn({ run, report, journal, left }: CountedRun): unknown[] {
  // Of the run itself, the rest has been said.
  const chosen = run === '' ? [] : [...report.choices, ...(isCancelled(journal) ? ['cancel'] : [])]
  return chosen.length + left.length > 0 ? [[run, chosen, left]] : []
}

/** The events of an outcome, in their order. */
export function eventsOf({ journal }: Outcome): string {
  return journal.map((event) => `${event.type} ${'branch' in event ? event.branch : ''}`).join('\n')
}

/** Something was done, or shown to somebody, here. */
interface Place {
  readonly run: string
  readonly branch: string
  readonly agent: string
}

function countedIn(own: string, runs: readonly CountedRun[]): (place: Place) => boolean {
  const byRun = new Map(runs.map(({ run, counts }) => [run, counts]))
  return ({ run, branch, agent }) => byRun.get(run.slice(own.length))?.(branch, agent) ?? false
}

/** Whether somebody has cancelled it: then that is all that an order may not change. */
const isCancelled = (journal: readonly Event[]): boolean =>
  journal.some((event) => event.type === 'run.closing' && event.cause === 'cancel')

/** The agents that were made to fail, and where: for equal faults, outcomes are equal. Crashes and duplicates must change nothing. */
function faultsOf({ taken }: Played, { faults }: Setting): string[] {
  if (faults.length === 0) return []
  const played = taken.flatMap(({ option, fault }) => {
    const found = fault === null ? null : faultOf(fault, faults)
    return found?.kind === 'agent' ? option.flatMap(({ kind, agent, id }) => (kind === 'end' && agent === found.agent ? [id] : [])) : []
  })
  return played.sort()
}

function shownOf({ prompts }: Played, runs: readonly CountedRun[], counts: (place: Place) => boolean): string {
  const lines = prompts.flatMap((prompt) => (counts(prompt) ? [prompt.line] : []))
  for (const { run, journal, counts: countsHere } of runs)
    for (const event of journal) {
      if (event.type === 'turn.started' && countsHere(event.branch, event.agent))
        lines.push(`${within(run)}${JSON.stringify([event.branch, event.turn, event.agent, event.message])}`)
      // What a step of a graph asks is shown to nobody else.
      if (event.type === 'ask.opened' && countsHere(event.branch, event.ask.agent))
        lines.push(`${within(run)}${JSON.stringify([event.branch, 'asks', { ...event.ask, openedAt: undefined }])}`)
    }
  return [...new Set(lines)].sort().join('\n')
}

function effectsOf(
  log: readonly Effect[],
  bags: ReadonlySet<string>,
  random: ReadonlySet<string>,
): { readonly bag: string; readonly order: string } {
  if (log.length === 0) return none
  const lines = log.map(({ resource, call }) => `${resource}.${nameless(call, random)}`)
  const ordered = new Map<string, string[]>()
  log.forEach(({ resource, about }, index) => {
    if (about === null || bags.has(resource)) return
    const key = `${resource} ${about}`
    const same = ordered.get(key) ?? []
    ordered.set(key, same)
    same.push(lines[index] ?? '')
  })
  // Things that were given ids at random are known by what was done to them.
  const order = [...ordered].map(([key, calls]) => JSON.stringify([nameless(key, random), ...calls]))
  return { bag: lines.sort().join('\n'), order: order.sort().join('\n') }
}

const none = Object.freeze({ bag: '', order: '' })

/** What stands in the output is told of who finished with it, or of the step that made it, as well. */
function unordered(report: CountedRun['report'], bags: ReadonlySet<string>, random: ReadonlySet<string>): Partial<CountedRun['report']> {
  const { output, interactions, steps } = report
  if (bags.size === 0 || output === undefined) return {}
  const inOutput = (path: string, value: unknown): unknown => sorted(path, value, bags, random)
  const isIn = (id: string, made: unknown): boolean => made !== undefined && JSON.stringify(Object(output)[id]) === JSON.stringify(made)
  return {
    output: inOutput('output', output),
    interactions: interactions.map((one) => (one.to === 'End' ? { ...one, request: inOutput('output', one.request) } : one)),
    steps: steps.map((step) => (isIn(step.id, step.output) ? { ...step, output: inOutput(`output.${step.id}`, step.output) } : step)),
  }
}

/** Lists whose order was declared to be of no matter are sorted: `output.items`. */
function sorted(path: string, value: unknown, bags: ReadonlySet<string>, random: ReadonlySet<string>): unknown {
  if (typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) {
    const items: unknown[] = value.map((item) => sorted(`${path}.*`, item, bags, random))
    if (!bags.has(path)) return items
    return items
      .map((item) => ({ item, text: nameless(JSON.stringify(item), random) }))
      .sort((a, b) => (a.text < b.text ? -1 : 1))
      .map(({ item }) => item)
  }
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, sorted(`${path}.${key}`, item, bags, random)]))
}
