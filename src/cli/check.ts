import { pathToFileURL } from 'node:url'
import { Option } from 'commander'
import type { Definition } from '../define/definition.js'
import { simModel } from '../models/sim.js'
import { explore, type ExploreOptions } from '../testing/explore/explore.js'
import type { Exploration } from '../testing/explore/exploration.js'
import { exploreRun } from '../testing/explore/explore-run.js'
import { freshModule } from '../testing/explore/fresh-module.js'
import type { CliCommand } from './cli-command.js'
import { againHelp, jsonOption, storeOption } from './cli-command.js'
import { CliError, wrongUse } from './cli-error.js'
import { definitionOf } from './definition-of.js'
import { exitCode, type ExitCode } from './exit-code.js'
import { findRun } from './find-run.js'
import { jsonArgument } from './json-argument.js'
import { type Loaded, loadFile } from './load-file.js'
import { Session } from './session.js'
import { drawn, shown } from './shown.js'
import { openExisting } from './stores.js'
import type { Terminal } from './terminal.js'
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
      .addOption(new Option('-i, --input <json>', 'the input: JSON, @file, or - for standard input').conflicts('fromRun'))
      .option('--schedules <n>', "how many orders are played at most, or 'all'")
      .option('--seed <seed>', 'what the orders are drawn from')
      .option('--replay <token>', 'play one order alone, as a check has named it')
      .option('--from-run <id>', 'play a recorded run in other orders, with what its steps, its models and people gave')
      .option('--html <file>', 'write what was found as a page')
      .option('--junit <file>', 'write what was found for a CI server')
      .option(...storeOption)
      .option(...jsonOption)
      .addHelpText(
        'after',
        `\nModels are simulated unless the file exports \`models\`; a file that exports \`check\` says there what else explore() takes: answers, resources, allow, faults, observe. All code but that of models is executed in every order, also that of steps, tools and resources.\n\n${againHelp}`,
      ),
  run: async (terminal, [file], options: Options) => {
    const schedules = schedulesOf(options.schedules)
    const said = {
      ...(schedules !== undefined && { schedules }),
      ...(options.seed !== undefined && { seed: options.seed }),
      ...(options.replay !== undefined && { replay: options.replay }),
    }
    const found =
      options.fromRun === undefined
        ? await ofFile(terminal, file as string | undefined, options, said)
        : await ofRun(terminal, options.fromRun, file as string | undefined, options.store, said)
    // First what needs no file: what took long to find is not lost to a folder that is not there.
    if (options.json === true) terminal.json(found.data())
    else terminal.data(drawn(found.text({ color: terminal.isColoured })))
    const exit = exitOf(found)
    const [first, ...others] = [
      ...unwritten(terminal, options.html, () => found.html()),
      ...unwritten(terminal, options.junit, () => found.junit()),
    ]
    if (first !== undefined) throw new CliError(exit === exitCode.done ? exitCode.failed : exit, first, undefined, others)
    return exit
  },
}

/** Where every order left the record nothing was compared: that is no race. */
function exitOf({ independent, distinct, violations }: Exploration): ExitCode {
  if (independent) return exitCode.done
  return distinct === 0 && violations.length === 0 ? exitCode.failed : exitCode.race
}

/** Why a file could not be written, if so: that keeps no other from being written, and does not change what was found. */
function unwritten(terminal: Terminal, file: string | undefined, text: () => string): string[] {
  if (file === undefined) return []
  try {
    written(terminal, text(), file)
    return []
  } catch (error) {
    if (error instanceof CliError) return [error.message]
    throw error
  }
}

type Said = Pick<ExploreOptions<unknown, unknown>, 'schedules' | 'seed' | 'replay'>

async function ofFile(terminal: Terminal, file: string | undefined, { input }: Options, said: Said): Promise<Exploration> {
  if (file === undefined) throw wrongUse('check: say which file, or which run with --from-run')
  const loaded = await loadFile({ file, export: 'default' })
  warnOfResources(terminal, loaded)
  // The file's own exports are what they are: explore says what it can't take.
  const given = {
    // Thousands of orders: nobody wants to pay for them who has not said so.
    models: ({ agent }: { readonly agent: string }) => simModel(agent),
    ...loaded.given,
    ...loaded.check,
    ...(input !== undefined && { input: await jsonArgument(input, 'the input') }),
    ...said,
  }
  return explore(freshOf(loaded), given as ExploreOptions<any, unknown>)
}

/** What a recorded run did in `step`, and what its models and people said, is given back; all other code is executed in every order. */
async function ofRun(
  terminal: Terminal,
  run: string,
  file: string | undefined,
  where: string | undefined,
  said: Said,
): Promise<Exploration> {
  const store = await openExisting(where)
  const row = await findRun(store, run)
  const loaded = await loadedFor(row, file)
  if (loaded === null) throw wrongUse(`check: no file is recorded for ${row.id}`, 'name the file that has its definition')
  warnOfResources(terminal, loaded)
  await using session = await Session.open(terminal, store, null)
  const { resources } = loaded.given
  const fresh = freshOf(loaded)
  return await exploreRun(session.tutti, row.id, {
    ...(resources !== undefined && { resources }),
    ...besides(loaded.check),
    definition: async () => definitionOf(await fresh(), row) as Definition<any>,
    ...said,
  })
}

/** Those of the file are the real ones, and orders are many. */
function warnOfResources(terminal: Terminal, { given, check }: Loaded): void {
  if (given.resources === undefined || 'resources' in check) return
  terminal.note(
    shown`the resources that the file exports are used in every order; for others: export const check = { resources: () => [ … ] }`,
  )
}

/** What a file says of its race check and no record has. */
function besides(check: object): object {
  return Object.fromEntries(Object.entries(check).filter(([name]) => !['input', 'models', 'answers'].includes(name)))
}

/** Evaluated anew for each order, so that what a file keeps in its variables does not leak from one into the next. */
function freshOf({ origin }: Loaded): ReturnType<typeof freshModule> {
  return freshModule(pathToFileURL(origin.file), origin.export)
}

function schedulesOf(text: string | undefined): number | 'all' | undefined {
  if (text === undefined || text === 'all') return text
  const count = Number(text)
  if (!Number.isInteger(count) || count < 1) throw wrongUse(`check: --schedules is a number from 1 on, or all; not ${text}`)
  return count
}
