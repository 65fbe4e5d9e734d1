import type { Report } from '../../inspect/report-data.js'
import type { Event } from '../../kernel/event.js'
import type { CountedRun } from './counted-runs.js'
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
    for (const counted of first.outcome.runs)
      for (const { at, kind, decidedBy } of counted.report.choices) {
        const key = `${within(counted.run)}${at} ${kind}`
        const known = found.get(key) ?? { ...waitingAt(counted, at), kind, by: new Map() }
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

/** Of a barrier these are slots; of a turn or a step that ran out of time, attempts. */
const numbered = (at: string, number: number, slots: readonly string[]): string =>
  isBarrier(at) ? (slots[number] ?? `slot ${number}`) : `attempt ${number}`

/** The key of a step may have that sign too, behind that of its turn. */
const isBarrier = (at: string): boolean => at.includes('#') && !at.includes('/')
const branchOf = (at: string): string => at.split(/[#/?~]/)[0] ?? at

/** Who waits at a choice, and for whom. */
interface Waiting {
  readonly agent: string
  readonly slots: readonly string[]
}

function waitingAt({ journal }: CountedRun, at: string): Waiting {
  return isBarrier(at) ? barrierAt(journal, at) : { agent: agentAt(journal, at), slots: [] }
}

/** Whose choice it is that is no join: that of the whole run, of an ask, of a turn, of an undo of one, or of a step whose gate has its name. */
function agentAt(journal: readonly Event[], at: string): string {
  if (at === 'run') return definitionOf(journal) ?? at
  const branch = branchOf(at)
  let last = at
  for (const event of journal) {
    if (event.type === 'ask.opened' && event.ask.id === at) return event.ask.agent
    if (event.type === 'turn.started' && `${event.branch}/${event.turn}` === at) return event.agent
    if (event.type === 'turn.started' && event.branch === branch) last = event.agent
  }
  return last
}

function definitionOf([started]: readonly Event[]): string | null {
  return started?.type === 'run.started' ? started.definition : null
}

/** Who has opened a barrier, and with which calls: the run itself with its first branches, a fork with those of the turn before it. */
function barrierAt(journal: readonly Event[], at: string): Waiting {
  const opened = journal.findIndex((event) => event.type === 'barrier.opened' && event.barrier === at)
  const branch = branchOf(at)
  const turn = journal.findLast((event, index) => event.type === 'turn.completed' && event.branch === branch && index < opened)
  if (turn?.type === 'turn.completed' && turn.action.type === 'fork')
    return { agent: turn.agent, slots: numberedAlike(turn.action.calls.map(({ to }) => to)) }
  const first = journal.flatMap((event) => (event.type === 'branch.opened' && event.barrier === at ? [event.to] : []))
  return { agent: definitionOf(journal) ?? at, slots: numberedAlike(first) }
}

/** Slots by the agents that were called; those called more than once with their number. */
const numberedAlike = (calls: readonly string[]): string[] =>
  calls.map((to, index) => (calls.filter((other) => other === to).length > 1 ? `${to} (slot ${index})` : to))
