import { simModel } from '../models/sim.js'
import { explore, type ExploreOptions } from '../testing/explore/explore.js'
import type { CliCommand } from './cli-command.js'
import { jsonOption, storeOption } from './cli-command.js'
import { wrongUse } from './cli-error.js'
import { exitCode } from './exit-code.js'
import { findRun } from './find-run.js'
import { jsonArgument } from './json-argument.js'
import { keepDataClean } from './keep-data-clean.js'
import { type Loaded, loadFile } from './load-file.js'
import { type Recorded, recordedOf } from './recorded.js'
import { drawn } from './shown.js'
import { openExisting } from './stores.js'
import { loadedFor } from './work.js'
import { written } from './written.js'

interface Options {
  readonly schedules?: string
  readonly seed?: string
  readonly replay?: string
  readonly html?: string
  readonly junit?: string
  readonly fromRun?: string
  readonly input?: string
  readonly store?: string
  readonly json?: boolean
}

export const command: CliCommand = {
  spec: (command) =>
    command
      .argument(
        '[file]',
        'a file that exports a topology or a graph; with --from-run, the one that the run was started from if none is named',
      )
      .option('-i, --input <json>', 'the input: JSON, @file, or - for standard input')
      .option('--schedules <n>', "how many orders are played at most, or 'all'")
      .option('--seed <seed>', 'what the orders are drawn from')
      .option('--replay <token>', 'play one order alone, as a check has named it')
      .option('--from-run <id>', "take the input, people's answers and what models said from a recorded run")
      .option('--html <file>', 'write what was found as a page')
      .option('--junit <file>', 'write what was found for a CI server')
      .option(...storeOption)
      .option(...jsonOption)
      .addHelpText(
        'after',
        '\nModels are simulated unless the file exports `models`; a file that exports `check` says there what else explore() takes: answers, allow, faults, observe.',
      ),
  run: async (terminal, [file], options: Options) => {
    const schedules = schedulesOf(options.schedules)
    const { loaded, recorded } = await subjectOf(file as string | undefined, options)
    keepDataClean()
    // The file's own exports are what they are: explore says what it can't take.
    const given = {
      // Thousands of orders: nobody wants to pay for them who has not said so.
      models: ({ agent }: { readonly agent: string }) => simModel(agent),
      ...loaded.given,
      ...loaded.check,
      ...recorded,
      ...(options.input !== undefined && { input: jsonArgument(options.input, 'the input') }),
      ...(schedules !== undefined && { schedules }),
      ...(options.seed !== undefined && { seed: options.seed }),
      ...(options.replay !== undefined && { replay: options.replay }),
    }
    const found = await explore(loaded.definition, given as ExploreOptions<never, unknown>)
    if (options.html !== undefined) written(terminal, found.html(), options.html)
    if (options.junit !== undefined) written(terminal, found.junit(), options.junit)
    if (options.json === true) terminal.json(found.data())
    else terminal.data(drawn(found.text({ color: terminal.isColoured })))
    return found.independent ? exitCode.done : exitCode.race
  },
}

function schedulesOf(text: string | undefined): number | 'all' | undefined {
  if (text === undefined || text === 'all') return text
  const count = Number(text)
  if (!Number.isInteger(count) || count < 1) throw wrongUse(`check: --schedules is a number from 1 on, or all; not ${text}`)
  return count
}

/** What is checked: a file, and what a recorded run was given. */
async function subjectOf(
  file: string | undefined,
  { fromRun, store: where }: Options,
): Promise<{ readonly loaded: Loaded; readonly recorded: Recorded | null }> {
  if (fromRun === undefined) {
    if (file === undefined) throw wrongUse('check: say which file, or which run with --from-run')
    return { loaded: await loadFile({ file, export: 'default' }), recorded: null }
  }
  const store = await openExisting(where)
  const row = await findRun(store, fromRun)
  const recorded = await recordedOf(store, row)
  await store.close()
  const loaded = await loadedFor(row, file)
  if (loaded === null) throw wrongUse(`check: no file is recorded for ${row.id}`, 'name the file that has its definition')
  return { loaded, recorded }
}
