import type { CliCommand } from './cli-command.js'
import { jsonOption, storeOption } from './cli-command.js'
import { exitCode } from './exit-code.js'
import { findRun } from './find-run.js'
import { Session } from './session.js'
import { shown } from './shown.js'
import { openExisting } from './stores.js'
import { commandOf } from './told.js'

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
  run: async (terminal, [given], { store, json }: Options) => {
    await using session = await Session.open(terminal, await openExisting(store), null)
    const { id } = await findRun(session.store, given as string)
    await (await session.tutti.run(id)).pause({ by: 'tutti pause' })
    if (json === true) terminal.json({ id, status: 'paused' })
    terminal.note(shown`paused ${id}; go on with: ${commandOf('resume', { id, store })}`)
    return exitCode.done
  },
}
