import { summaryOf } from '../engine/run-view.js'
import type { RunSummary } from '../engine/tutti.js'
import type { Ask } from '../inspect/ask.js'
import { reportOf } from '../inspect/report.js'
import type { Report } from '../inspect/report-data.js'
import { openAsks } from './asks.js'
import type { CliCommand } from './cli-command.js'
import { jsonOption, storeOption } from './cli-command.js'
import { failure } from './event-line.js'
import { exitCode } from './exit-code.js'
import { findRun } from './find-run.js'
import { journalOf } from './journal.js'
import { durationText, timeText } from './ls.js'
import { originOf } from './origin.js'
import { escaped, type Shown, shown, value } from './shown.js'
import { openExisting } from './stores.js'
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
    await store.close()
    const report = reportOf(events)
    const summary = summaryOf(row, true)
    if (json === true) terminal.json({ ...summary, asks, report })
    else for (const line of linesOf(summary, asks, report, where)) terminal.data(line)
    return exitCode.done
  },
}

function linesOf(summary: RunSummary, asks: readonly Ask[], report: Report, store: string | undefined): readonly Shown[] {
  const { id, definition, version, status, startedAt, endedAt, tags } = summary
  const took = endedAt === undefined ? shown`` : shown`, took ${durationText(endedAt - startedAt)}`
  const origin = originOf(tags)
  return [
    shown`${escaped(id, 'path')} ${definition} ${escaped(version, 'dim')}`,
    shown`${status}, started ${timeText(startedAt)}${took}`,
    ...(origin === null ? [] : [shown`from ${origin.file}`]),
    ...(report.output === undefined ? [] : [shown`output ${value(report.output, 1_000)}`]),
    ...(report.error === undefined ? [] : [failure(report.error)]),
    ...asks.map((ask) => askLine(ask, store)),
    ...(status === 'paused' ? [shown`go on with: ${commandOf('resume', { id, store })}`] : []),
  ]
}
