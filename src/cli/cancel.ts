import type { RunRow } from '../engine/store.js'
import type { CliCommand } from './cli-command.js'
import { fileOption, jsonOption, storeOption } from './cli-command.js'
import { notUndone } from './event-line.js'
import { exitCode } from './exit-code.js'
import { findRun } from './find-run.js'
import type { Loaded } from './load-file.js'
import { Session } from './session.js'
import { shown } from './shown.js'
import { openExisting } from './stores.js'
import type { Terminal } from './terminal.js'
import { loadedFor } from './work.js'

interface Options {
  readonly store?: string
  readonly file?: string
  readonly reason?: string
  readonly json?: boolean
}

export const command: CliCommand = {
  spec: (command) =>
    command
      .argument('<id>', 'the run')
      .option('--reason <text>', 'why')
      .option(...storeOption)
      .option(...fileOption)
      .option(...jsonOption),
  run: async (terminal, [given], { store: where, file, reason, json }: Options) => {
    const store = await openExisting(where)
    const row = await findRun(store, given as string)
    await using session = await Session.open(terminal, store, await codeOf(terminal, row, file))
    const run = await session.tutti.run(row.id)
    await run.cancel({ by: 'tutti cancel', ...(reason !== undefined && { reason }) })
    session.about(run)
    const stop = await session.settled(run)
    const end = stop?.kind === 'ended' ? stop : null
    const status = end?.outcome.status ?? 'running'
    if (json === true) terminal.json({ id: row.id, status, ...end?.rolled })
    terminal.note(
      end !== null
        ? shown`${row.id} is ${status}${notUndone(end.rolled)}`
        : shown`${row.id} is being cancelled: a process that has its code must let go of what is in flight`,
    )
    return exitCode.done
  },
}

/** A run can be cancelled without its code; with it, what was in flight when its process died is let go of here. */
async function codeOf(terminal: Terminal, row: RunRow, file: string | undefined): Promise<Loaded | null> {
  try {
    return await loadedFor(row, file)
  } catch (error) {
    if (file !== undefined) throw error
    terminal.note(shown`${error instanceof Error ? error.message : String(error)}`)
    return null
  }
}
