import { agentKind } from '../engine/agent-record.js'
import type { Store } from '../engine/store.js'
import type { RunSummary } from '../engine/tutti.js'
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
import { drawn, escaped, type Shown, shown, value } from './shown.js'
import { openExisting } from './stores.js'
import { summaryWithChildren } from '../engine/summary-with-children.js'
import { askLine, commandOf } from './told.js'

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
    const summary = await summaryWithChildren(store, row, true)
    await store.close()
    const report = reportOf(events)
    const reason = reasonIn(events)
    if (json === true) terminal.json({ ...summary, ...(reason !== undefined && { reason }), asks, report })
    else {
      const timeline = timelineOf(publicEvents(events, row), Date.now())
      const picture = drawn(timelineText(timeline, { width: terminal.width, colour: terminal.isColoured }))
      for (const line of linesOf(summary, reason, { asks, held }, report, picture, where)) terminal.data(line)
    }
    return exitCode.done
  },
}

/** The agents that a run and its child runs wait for. */
async function heldAgents(store: Store, of: string): Promise<readonly string[]> {
  const marks = await store.marks({ kind: agentKind })
  return [...new Set(marks.filter(({ run }) => run === of || run.startsWith(`${of}:`)).map(({ key }) => key))].sort()
}

/** Why the run was cancelled, if it was and somebody has said so. */
function reasonIn(events: readonly Event[]): string | undefined {
  const last = events.at(-1)
  return last?.type === 'run.cancelled' ? last.reason : undefined
}

function linesOf(
  summary: RunSummary,
  reason: string | undefined,
  { asks, held }: { readonly asks: readonly Ask[]; readonly held: readonly string[] },
  report: Report,
  picture: Shown,
  store: string | undefined,
): readonly Shown[] {
  const { id, version, status, startedAt, tags } = summary
  const origin = originOf(tags)
  const from = origin === null ? '' : `, from ${origin.file}`
  return [
    picture,
    [],
    escaped(`run ${id}, version ${version}, started ${timeText(startedAt)}${from}`, 'dim'),
    ...(report.output === undefined ? [] : [shown`output ${value(report.output, 1_000)}`]),
    ...(reason === undefined ? [] : [shown`cancelled: ${reason}`]),
    ...(report.error === undefined ? [] : [failure(report.error)]),
    ...(report.notUndone.length === 0 ? [] : [leftText(report.notUndone)]),
    ...asks.map((ask) => askLine(ask, store)),
    ...(held.length === 0 ? [] : [shown`waits for ${held.join(', ')}, who may not act now; see ${commandOf('agents', { store })}`]),
    ...(status === 'paused' ? [shown`go on with: ${commandOf('resume', { id, store })}`] : []),
  ]
}
