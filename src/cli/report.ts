import { Option } from 'commander'
import { reportOf } from '../inspect/report.js'
import { reportMarkdown, reportText } from '../inspect/report-text.js'
import type { CliCommand } from './cli-command.js'
import { jsonOption, storeOption } from './cli-command.js'
import { exitCode } from './exit-code.js'
import { findRun } from './find-run.js'
import { journalOf } from './journal.js'
import { drawn } from './shown.js'
import { openExisting } from './stores.js'

interface Options {
  readonly store?: string
  readonly markdown?: boolean
  readonly json?: boolean
}

export const command: CliCommand = {
  spec: (command) =>
    command
      .argument('<id>', 'the run')
      .addOption(new Option('--markdown', 'print Markdown').conflicts('json'))
      .option(...storeOption)
      .option(...jsonOption),
  run: async (terminal, [given], { store: where, markdown, json }: Options) => {
    const store = await openExisting(where)
    const { id } = await findRun(store, given as string)
    const report = reportOf(await journalOf(store, id))
    await store.close()
    if (json === true) terminal.json(report)
    else terminal.data(drawn(markdown === true ? reportMarkdown(report) : reportText(report)))
    return exitCode.done
  },
}
