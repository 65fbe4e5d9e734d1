import type { Report } from '../../inspect/report-data.js'
import type { Counted } from './search.js'
import { within } from './setting.js'

/** A choice that orders made: where, for whom, and how it came out. */
export interface ChoiceSeen {
  /** In a child run, the step that it belongs to is said first. */
  readonly at: string
  /** The agent that waits there; its winners are what an allowance names. */
  readonly agent: string
  readonly kind: Report['choices'][number]['kind']
  /** What decided, and in how many schedules. */
  readonly decidedBy: readonly { readonly who: string; readonly schedules: number }[]
  /** Of a join that one decides: the slots that never did. */
  readonly never: readonly string[]
}

/** The choices of all schedules. */
export function choicesOf(outcomes: readonly Counted[]): ChoiceSeen[] {
  const found = new Map<string, { agent: string; kind: ChoiceSeen['kind']; by: Map<string, number>; slots: readonly string[] }>()
  for (const { first, count } of outcomes)
    for (const { run, report } of first.outcome.runs)
      for (const { at, kind, decidedBy } of report.choices) {
        const key = `${within(run)}${at} ${kind}`
        const known = found.get(key) ?? { agent: agentAt(report, at), kind, by: new Map(), slots: slotsAt(report, at) }
        found.set(key, known)
        const who = decidedBy.map((one) => (typeof one === 'number' ? numbered(at, one, known.slots) : one)).join(' and ')
        known.by.set(who, (known.by.get(who) ?? 0) + count)
      }
  return [...found].map(([key, { agent, kind, by, slots }]) => ({
    at: key.slice(0, key.lastIndexOf(' ')),
    agent,
    kind,
    decidedBy: [...by].map(([who, schedules]) => ({ who, schedules })),
    never: kind === 'join' ? slots.filter((slot) => ![...by.keys()].some((who) => who.split(' and ').includes(slot))) : [],
  }))
}

/** Of a barrier these are slots; of a turn that ran out of time, attempts. */
const numbered = (at: string, number: number, slots: readonly string[]): string =>
  isBarrier(at) ? (slots[number] ?? `slot ${number}`) : `attempt ${number}`

const isBarrier = (at: string): boolean => at.includes('#')
const branchOf = (at: string): string => at.split(/[#/?~]/)[0] ?? at

/** Which of a branch's forks a barrier is. */
function forkAt(report: Pick<Report, 'interactions' | 'branches'>, at: string): Report['interactions'] {
  if (!isBarrier(at)) return []
  const branch = branchOf(at)
  const forks = new Map<number, Report['interactions'][number][]>()
  for (const one of report.interactions) {
    if (one.branch !== branch) continue
    const same = forks.get(one.turn) ?? []
    forks.set(one.turn, same)
    same.push(one)
  }
  const wide = [...forks.values()].filter((calls) => calls.length > 1 || calls.some(({ outcome }) => outcome === 'cancelled'))
  return wide[Number(at.split('#')[1] ?? 1) - 1] ?? wide.at(-1) ?? []
}

function agentAt(report: Pick<Report, 'interactions' | 'branches'>, at: string): string {
  const [call] = forkAt(report, at)
  const branch = branchOf(at)
  const ofTurn = report.interactions.find((one) => `${one.branch}/${one.turn}` === at)
  return call?.from ?? ofTurn?.from ?? report.branches.find(({ id }) => id === branch)?.agents.at(-1) ?? at
}

/** The slots of a fork by the agents that were called; those called more than once with their number. */
function slotsAt(report: Pick<Report, 'interactions' | 'branches'>, at: string): string[] {
  const calls = forkAt(report, at)
  return calls.map(({ to }, index) => (calls.filter((call) => call.to === to).length > 1 ? `${to} (slot ${index})` : to))
}
