import type { Ask } from '../inspect/ask.js'
import { asksIn } from '../engine/asks-in.js'
import { oldestFirst } from '../inspect/oldest-first.js'
import type { CliCommand } from './cli-command.js'
import { jsonOption, storeOption } from './cli-command.js'
import { exitCode } from './exit-code.js'
import { findRun } from './find-run.js'
import { askLine } from './told.js'
import { openExisting, openIfThere } from './stores.js'
import { shown } from './shown.js'
import type { Store } from '../engine/store.js'

interface Options {
  readonly store?: string
  readonly json?: boolean
}

export const command: CliCommand = {
  spec: (command) =>
    command
      .argument('[id]', 'only those of this run and its child runs')
      .option(...storeOption)
      .option(...jsonOption),
  run: async (terminal, [given], { store: where, json }: Options) => {
    const store = await (given === undefined ? openIfThere : openExisting)(where)
    const damaged = (run: string): void =>
      terminal.note(shown`what the run ${run} asks is damaged in the store: the journal has it, see 'tutti tail ${run}'`)
    const asks = store === null ? [] : await openAsks(store, given as string | undefined, damaged)
    await store?.close()
    if (json === true) terminal.json(asks)
    else for (const ask of asks) terminal.data(askLine(ask, where))
    if (asks.length === 0) terminal.note(shown`nobody is asked anything`)
    return exitCode.done
  },
}

/** What people are asked, the oldest first; by one run and its child runs, or by all. */
export async function openAsks(store: Store, given?: string, damaged: (run: string) => void = () => {}): Promise<readonly Ask[]> {
  const of = given === undefined ? null : (await findRun(store, given)).id
  const marks = await store.marks({ kind: 'ask' })
  const those = marks.filter(({ run }) => of === null || run === of || run.startsWith(`${of}:`))
  return asksIn(those, damaged).sort(oldestFirst)
}
