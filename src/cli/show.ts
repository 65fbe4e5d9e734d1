import { agentKind } from '../engine/agent-record.js'
import type { RunRow, Store } from '../engine/store.js'
import type { Ask } from '../inspect/ask.js'
import { reportOf } from '../inspect/report.js'
import { timeText } from '../inspect/time-text.js'
import { timelineOf } from '../inspect/timeline.js'
import { timelineText } from '../inspect/timeline-text.js'
import type { Report } from '../inspect/report-data.js'
import type { Event } from '../kernel/event.js'
import { openAsks } from './asks.js'
import type { CliCommand } from './cli-command.js'
import { jsonOption, storeOption } from './cli-command.js'
import { failure, leftText } from './event-line.js'
import { exitCode } from './exit-code.js'
import { findRun } from './find-run.js'
import { journalOf, publicEvents } from './journal.js'
import { originOf } from './origin.js'
import { whoMayNotAct } from './run-tree.js'
import { drawn, escaped, type Shown, shown, value } from './shown.js'
import { type Standing, standingOf } from './standing.js'
import { openExisting } from './stores.js'
import { askLine, commandOf, nobodyExecutes, pausedLine } from './told.js'

interface Options {
  readonly store?: string
  readonly json?: boolean
}

export const command: CliCommand = {
  spec: (command) =>
    command
      .argument('<id>', 'the run')
      .option(...storeOption)
      .option(...jsonOption),
  run: async (terminal, [given], { store: where, json }: Options) => {
    const store = await openExisting(where)
    const row = await findRun(store, given as string)
    const events = await journalOf(store, row.id)
    const asks = await openAsks(store, row.id)
    const held = await heldAgents(store, row.id)
    const paused = await pausedBelow(store, row)
    const standing = await standingOf(store, row)
    await store.close()
    const report = reportOf(events)
    const reason = reasonIn(events) ?? standing.reason
    if (json === true) terminal.json({ ...standing, ...(reason !== undefined && { reason }), asks, report })
    else {
      const timeline = timelineOf(publicEvents(events, row), Date.now())
      const picture = drawn(timelineText(timeline, { width: terminal.width, colour: terminal.isColoured }))
      for (const line of linesOf(standing, reason, { asks, held, paused }, report, picture, where)) terminal.data(line)
    }
    return exitCode.done
  },
}

/** The agents that a run and its child runs wait for: who was let go since is no reason any more. */
async function heldAgents(store: Store, of: string): Promise<readonly string[]> {
  const marks = await store.marks({ kind: agentKind })
  return whoMayNotAct(store, [...new Set(marks.filter(({ run }) => run === of || run.startsWith(`${of}:`)).map(({ key }) => key))].sort())
}

/** The child runs of a run that goes on which were paused for themselves, each without those that it has paused. */
async function pausedBelow(store: Store, { id, status }: RunRow): Promise<readonly string[]> {
  if (status === 'paused') return []
  const rows = await store.list({ prefix: `${id}:`, status: ['paused'], limit: Number.POSITIVE_INFINITY })
  const paused = new Set(rows.map((row) => row.id))
  return [...paused].filter((run) => !within(run).some((above) => paused.has(above))).sort()
}

/** The runs that one is below, by their ids. */
function within(id: string): readonly string[] {
  return [...id.matchAll(/:/g)].map(({ index }) => id.slice(0, index))
}

/** Why the run was cancelled, if it was and somebody has said so. */
function reasonIn(events: readonly Event[]): string | undefined {
  const last = events.at(-1)
  return last?.type === 'run.cancelled' ? last.reason : undefined
}

function linesOf(
  standing: Standing,
  reason: string | undefined,
  { asks, held, paused }: { readonly asks: readonly Ask[]; readonly held: readonly string[]; readonly paused: readonly string[] },
  report: Report,
  picture: Shown,
  store: string | undefined,
): readonly Shown[] {
  const { id, version, status, startedAt, tags, cancelling, waitsFor } = standing
  const origin = originOf(tags)
  const from = origin === null ? '' : `, from ${origin.file}`
  return [
    picture,
    [],
    escaped(`run ${id}, version ${version}, started ${timeText(startedAt)}${from}`, 'dim'),
    ...(report.output === undefined ? [] : [shown`output ${value(report.output, 1_000)}`]),
    ...(cancelling === undefined && reason === undefined ? [] : [cancelled(cancelling, reason)]),
    ...(report.error === undefined ? [] : [failure(report.error)]),
    ...(report.notUndone.length === 0 ? [] : [leftText(report.notUndone)]),
    ...asks.map((ask) => askLine(ask, store)),
    ...(held.length === 0 ? [] : [shown`waits for ${held.join(', ')}, who may not act now; see ${commandOf('agents', { store })}`]),
    ...(waitsFor.includes('process') ? [nobodyExecutes(standing, store)] : []),
    ...paused.map((run) => pausedLine({ id: run, store })),
    ...(status === 'paused' ? [shown`go on with: ${commandOf('resume', { id, store })}`] : []),
  ]
}

function cancelled(underWay: true | undefined, reason: string | undefined): Shown {
  const what = underWay === undefined ? 'cancelled' : 'being cancelled'
  return reason === undefined ? escaped(what) : shown`${what}: ${reason}`
}
