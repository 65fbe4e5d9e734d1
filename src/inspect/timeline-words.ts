import { durationText } from './duration-text.js'
import type { GroupRow, Row } from './fold-lanes.js'
import type { Bar, BarKind, Lane, LaneOutcome, Timeline } from './timeline.js'

/** What a timeline says in words, whatever it is drawn with. Names and texts are as the journal has them. */

/** Every kind of bar, in the order in which a legend has them. */
export const kindWords: Readonly<Record<BarKind, string>> = {
  turn: 'works',
  barrier: 'waits for its branches',
  rendezvous: 'waits for the others',
  person: 'waits for a person',
  failed: 'attempt failed',
  rejected: 'action refused',
  backoff: 'waits to try again',
  aborted: 'told to stop',
  sleep: 'sleeps',
  undo: 'is undone',
  'undo-failed': 'could not be undone',
}

/** How a line is said to have ended: that it was undone afterwards, or could not be, comes before what it had come to. */
export type LaneEnd = LaneOutcome | 'undone' | 'not undone'

export const endMarks: Readonly<Record<LaneEnd, string>> = {
  arrived: '✓',
  failed: '✗',
  escaped: '↗',
  cancelled: '⊘',
  merged: '⇥',
  skipped: '–',
  running: '…',
  waiting: '…',
  undone: '↶',
  'not undone': '✗',
}

export function laneEnd({ bars, outcome }: Lane): LaneEnd {
  if (bars.some(({ kind }) => kind === 'undo-failed')) return 'not undone'
  return bars.some(({ kind, open }) => kind === 'undo' && !open) ? 'undone' : outcome
}

/** What the lines are called; those that would have one name are told apart by their branch. */
export function rowNames(rows: readonly Row[], kind: Timeline['kind']): string[] {
  const names = rows.map((row) => (row.kind === 'lane' ? laneName(row.lane) : groupName(row, kind)))
  const seen = new Set<string>()
  const twice = new Set(names.filter((name) => seen.size === seen.add(name).size))
  return rows.map((row, index) => {
    const name = names[index] ?? ''
    return row.kind === 'lane' && twice.has(name) ? `${name} ${row.lane.id}` : name
  })
}

function groupName({ agent, lanes, below }: GroupRow, kind: Timeline['kind']): string {
  const count = lanes.length.toLocaleString('en')
  const more = below.length === 0 ? '' : ` (+${below.length.toLocaleString('en')} below)`
  return agent === null ? `${count} more ${kind === 'graph' ? 'steps' : 'branches'}${more}` : `${agent} × ${count}${more}`
}

function laneName({ agents, item }: Lane): string {
  return item === null ? agents.join(' → ') : `${agents[0] ?? ''}[${item}]`
}

/** How a line ended. */
export function rowEnd(row: Row): string {
  if (row.kind === 'group')
    return Object.entries(row.outcomes)
      .map(([outcome, count]) => `${endMarks[outcome as LaneOutcome]} ${count.toLocaleString('en')}`)
      .join('  ')
  const { lane } = row
  const end = laneEnd(lane)
  switch (end) {
    case 'undone':
    case 'not undone':
    case 'waiting':
      return `${endMarks[end]} ${end}`
    case 'skipped':
      return `${endMarks[end]} ${end}${lane.cause === null ? '' : `: ${lane.cause}`}`
    default:
      return `${endMarks[end]} ${end === 'arrived' ? '' : `${end} `}${durationText(lane.to.at - lane.from.at)}`
  }
}

/** Whether a line has gone wrong. */
export function isBad(row: Row): boolean {
  if (row.kind === 'group') return row.outcomes.failed !== undefined
  const end = laneEnd(row.lane)
  return end === 'failed' || end === 'not undone'
}

/** What went wrong with a lane for good: why it failed, even if it was undone, and why it was not. */
export function reasonsOf({ bars, outcome, cause }: Lane): string[] {
  const notUndone = bars.filter(({ kind }) => kind === 'undo-failed').map(({ text }) => text)
  return outcome === 'failed' && cause !== null ? [cause, ...notUndone] : notUndone
}

/** What a bar says when it is pointed at. */
export function barWords(bar: Bar): string {
  const which = bar.turn === null ? '' : `, turn ${bar.turn}${(bar.attempt ?? 1) > 1 ? `, attempt ${bar.attempt}` : ''}`
  const steps = bar.activities.length === 0 ? '' : ` [${bar.activities.slice(0, 8).join(', ')}${bar.activities.length > 8 ? ', …' : ''}]`
  const how = bar.open ? 'so far' : 'in all'
  return `${bar.agent}${which}: ${kindWords[bar.kind]}${bar.text === '' ? '' : `: ${bar.text}`}${steps} (${durationText(bar.to.at - bar.from.at)} ${how})`
}

/** The run in one line. */
export function headline({ definition, status, rollback = 'none', from, to }: Timeline): string {
  const over = status === 'succeeded' || status === 'failed' || status === 'cancelled'
  const back = { none: '', complete: ', and all of it undone', partial: ', and not all of it undone' }[rollback]
  return `${definition}: ${status} ${over ? 'after' : 'for'} ${durationText(to.at - from.at)}${back}`
}

/** What there is of it. */
export function countsLine({ lanes, kind }: Timeline): string {
  const bars = lanes.flatMap((lane) => lane.bars)
  const count = (some: number, one: string, more: string): string => `${some.toLocaleString('en')} ${some === 1 ? one : more}`
  const of = (...kinds: readonly BarKind[]): number => bars.filter((bar) => kinds.includes(bar.kind)).length
  const works = bars.some(({ turn }) => turn !== null) || of('undo', 'undo-failed') === 0
  const parts = [
    kind === 'graph' ? count(lanes.filter(({ item }) => item === null).length, 'step', 'steps') : count(lanes.length, 'branch', 'branches'),
    count(new Set(bars.filter(({ turn }) => turn !== null).map(({ agent }) => agent)).size, 'agent', 'agents'),
    count(bars.filter(({ turn }) => turn !== null).length, 'attempt', 'attempts'),
  ]
  if (kind === 'graph') parts.splice(1, 1)
  // A run that only undoes has neither branches nor turns.
  if (!works) parts.length = 0
  if (of('failed') > 0) parts.push(`${of('failed').toLocaleString('en')} failed`)
  if (of('rejected') > 0) parts.push(`${of('rejected').toLocaleString('en')} refused`)
  if (of('person') > 0) parts.push(count(of('person'), 'question to a person', 'questions to a person'))
  if (of('undo', 'undo-failed') > 0) parts.push(`${of('undo').toLocaleString('en')} undone`)
  return parts.join(', ')
}

/** The way that decided when the run ended: who was on it for how long, each once for as long as it stayed. */
export function pathWords({ lanes }: Timeline, max = 12): string {
  const bars = lanes.flatMap((lane) => {
    // It may have thousands of agents, and as many bars.
    const name = laneName(lane)
    return lane.bars.filter(({ critical }) => critical).map((bar) => ({ bar, lane: name }))
  })
  bars.sort((a, b) => a.bar.from.seq - b.bar.from.seq)
  const stations: { name: string; ms: number }[] = []
  for (const { bar, lane } of bars) {
    const name = bar.kind === 'person' ? 'a person' : bar.turn === null && bar.kind !== 'backoff' ? lane : bar.agent
    const ms = bar.to.at - bar.from.at
    const last = stations.at(-1)
    if (last?.name === name) last.ms += ms
    else stations.push({ name, ms })
  }
  const shown = stations.length <= max ? stations : [...stations.slice(0, max / 2), null, ...stations.slice(-max / 2)]
  return shown.map((station) => (station === null ? '…' : `${station.name} ${durationText(station.ms)}`)).join(' → ')
}
