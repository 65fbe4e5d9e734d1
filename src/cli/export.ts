import { Option } from 'commander'
import { otlpOf } from '../inspect/otlp.js'
import { timelineOf } from '../inspect/timeline.js'
import { timelineHtml } from '../inspect/timeline-html.js'
import { timelineSvg } from '../inspect/timeline-svg.js'
import type { JournalEvent } from '../inspect/events.js'
import type { CliCommand } from './cli-command.js'
import { outputOption, storeOption } from './cli-command.js'
import { wrongUse } from './cli-error.js'
import { exitCode } from './exit-code.js'
import { findRun } from './find-run.js'
import { journalOf, publicEvents } from './journal.js'
import { openExisting } from './stores.js'
import { jsonText } from './terminal.js'
import { written } from './written.js'

/** In this order: what is JSON already is not made so by `--json`. */
const formats = ['svg', 'html', 'jsonl', 'otlp', 'json'] as const
type Format = (typeof formats)[number]

interface Options extends Readonly<Partial<Record<Format, true>>> {
  readonly store?: string
  readonly output?: string
}

export const command: CliCommand = {
  spec: (command) =>
    command
      .argument('<id>', 'the run')
      .addOption(new Option('--svg', 'its timeline as a picture').conflicts(['html', 'jsonl', 'otlp', 'json']))
      .addOption(new Option('--html', 'its timeline as a page of its own').conflicts(['svg', 'jsonl', 'otlp', 'json']))
      .addOption(new Option('--jsonl', 'its journal, an event per line').conflicts(['svg', 'html', 'otlp']))
      .addOption(new Option('--otlp', 'a trace in the JSON of OpenTelemetry').conflicts(['svg', 'html', 'jsonl']))
      .option('--json', 'its journal, as one list')
      .option(...outputOption)
      .option(...storeOption),
  run: async (terminal, [given], options: Options) => {
    const format = formats.find((name) => options[name] === true)
    if (format === undefined) throw wrongUse('export: say as what', `one of ${formats.map((name) => `--${name}`).join(', ')}`)
    const store = await openExisting(options.store)
    const row = await findRun(store, given as string)
    const events = publicEvents(await journalOf(store, row.id), row)
    await store.close()
    written(terminal, exported(events, Date.now(), format), options.output)
    return exitCode.done
  },
}

/** `now`: where the bars of a run that goes on end; a trace has only what is recorded. */
function exported(events: readonly JournalEvent[], now: number, format: Format): string {
  switch (format) {
    case 'svg':
      return timelineSvg(timelineOf(events, now))
    case 'html':
      return timelineHtml(timelineOf(events, now))
    case 'jsonl':
      return events.map((event) => `${jsonText(event)}\n`).join('')
    case 'json':
      return `${jsonText(events, 2)}\n`
    case 'otlp':
      return `${jsonText(otlpOf(timelineOf(events)), 2)}\n`
  }
}
