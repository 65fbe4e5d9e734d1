import { internalsOf } from '../define/definition.js'
import { type Replay, replay } from '../engine/replay.js'
import type { RunRow, Store } from '../engine/store.js'
import { evolve } from '../kernel/evolve.js'
import { isOver, newState } from '../kernel/state.js'
import type { CliCommand } from './cli-command.js'
import { againHelp, fileOption, jsonOption, storeOption } from './cli-command.js'
import { CliError, notFound } from './cli-error.js'
import { definitionOf } from './definition-of.js'
import { exitCode } from './exit-code.js'
import { findRun } from './find-run.js'
import { journalOf } from './journal.js'
import type { Loaded } from './load-file.js'
import { shown } from './shown.js'
import { openExisting } from './stores.js'
import type { Terminal } from './terminal.js'
import { loadedFor } from './work.js'

interface Options {
  readonly store?: string
  readonly file?: string
  readonly json?: boolean
}

export const command: CliCommand = {
  spec: (command) =>
    command
      .argument('<id>', 'the run')
      .option(...storeOption)
      .option(...fileOption)
      .option(...jsonOption)
      .addHelpText('after', `\n${againHelp}`),
  run: async (terminal, [given], { store: where, file, json }: Options) => {
    const store = await openExisting(where)
    const row = await findRun(store, given as string)
    const loaded = await loadedFor(row, file)
    if (loaded === null)
      throw notFound(
        `no file is recorded for ${row.id}: it was not started by tutti run`,
        'name the file that has its definition with --file',
      )
    const found = await replayed(store, row, loaded)
    await store.close()
    const same = found.different.length === 0
    if (json === true) terminal.json({ id: row.id, status: row.status, same, ...found })
    else tell(terminal, row, found)
    return same ? exitCode.done : exitCode.race
  },
}

async function replayed(store: Store, row: RunRow, { definition: loaded, given }: Loaded): Promise<Replay> {
  const definition = definitionOf(loaded, row)
  const internals = internalsOf(definition)
  if (internals.shape.name !== row.definition || ![internals.shape.version, ...internals.continues].includes(row.version))
    throw new CliError(
      exitCode.failed,
      `${row.id} is of ${row.definition}, version ${row.version}, and can't be executed again with ${definition.name}, version ${definition.version}`,
    )
  return replay({
    events: await journalOf(store, row.id),
    definition: internals,
    resources: given.resources ?? [],
    models: given.models,
    maxValue: store.promises.maxValue,
    child: async (id) => {
      const journal = await journalOf(store, id)
      if (!isOver(journal.reduce(evolve, newState)))
        throw new CliError(exitCode.failed, `the child run ${id} has not ended, or is gone: its step can't be executed again`)
      return journal
    },
  })
}

function tell(terminal: Terminal, row: RunRow, { attempts, different, skipped }: Replay): void {
  const turns = `${attempts} ${attempts === 1 ? 'turn' : 'turns'}`
  if (different.length === 0)
    terminal.data(shown`${turns} of ${row.id} executed again: all do what is recorded, the outcome is the same (${row.status})`)
  else terminal.data(shown`${turns} of ${row.id} executed again: ${different.length} differ`)
  for (const { at, agent, problem } of different) terminal.data(shown`  ${agent} ${at}: ${problem}`)
  for (const { at, agent, problem } of skipped) terminal.note(shown`not executed again: ${agent} ${at}, ${problem}`)
}
