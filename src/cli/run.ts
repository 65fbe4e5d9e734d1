import { Option } from 'commander'
import type { CliCommand } from './cli-command.js'
import { jsonOption, storeOption } from './cli-command.js'
import { goOn, type GoOnOptions } from './go-on.js'
import { jsonArgument } from './json-argument.js'

interface Options extends GoOnOptions {
  readonly input?: string
  readonly id?: string
  readonly record?: string
  readonly replay?: string
}

export const command: CliCommand = {
  spec: (command) =>
    command
      .argument('<file>', 'a TypeScript or JavaScript file that exports a topology or a graph as its default')
      .option('-i, --input <json>', 'the input: JSON, @file, or - for standard input')
      .option(...storeOption)
      .option('--id <id>', 'the id of the run')
      .option('--detach', 'let a process of its own execute it, and print the id')
      .addOption(new Option('--record <file>', 'write down there what models are asked and what they say').conflicts('replay'))
      .option('--replay <file>', 'play from there what models say, instead of asking them')
      .option(...jsonOption),
  run: async (terminal, [file], options: Options) =>
    goOn(
      terminal,
      {
        type: 'run',
        file: file as string,
        ...(options.input !== undefined && { input: await jsonArgument(options.input, 'the input') }),
        ...(options.id !== undefined && { id: options.id }),
        ...(options.store !== undefined && { store: options.store }),
        ...(options.record !== undefined && { record: options.record }),
        ...(options.replay !== undefined && { replay: options.replay }),
      },
      options,
    ),
}
