import type { Command } from 'commander'
import type { ExitCode } from './exit-code.js'
import type { Terminal } from './terminal.js'

/** One command: how it is called, and what it does. Its arguments and options are those that `spec` declares. */
export interface CliCommand {
  spec(command: Command): Command
  run(terminal: Terminal, args: readonly any[], options: any): Promise<ExitCode>
}

/** The option of every command that works on a store. */
export const storeOption = ['--store <store>', 'where runs are kept (default ./.tutti/tutti.db)'] as const

/** The option of every command that prints data. */
export const jsonOption = ['--json', 'print JSON'] as const

/** The option of every command that goes on with a run. */
export const fileOption = ['--file <file>', 'the file that has its definition now, if not the one it was started from'] as const

/** What every command says that executes the code of a recorded run again. */
export const againHelp =
  'What a recorded run did in `step`, and what its models and people said, is given back. All other code is executed, also the `run` of a graph step: what has effects belongs in `step`.'

/** The option of every command that makes a file. */
export const outputOption = ['-o, --output <file>', 'write it there instead of printing it'] as const
