import type { CliCommand } from './cli-command.js'
import { fileOption, jsonOption, storeOption } from './cli-command.js'
import { goOn, type GoOnOptions } from './go-on.js'
import { jsonArgument } from './json-argument.js'

interface Options extends GoOnOptions {
  readonly file?: string
  readonly replay?: string
}

export const command: CliCommand = {
  spec: (command) =>
    command
      .argument('<id>', 'the run')
      .argument('<ask>', 'the question, as tutti asks names it, or who asks it')
      .argument('<json>', 'the answer: JSON, @file, or - for standard input')
      .option(...storeOption)
      .option(...fileOption)
      .option('--detach', 'let a process of its own go on with it')
      .option('--replay <file>', 'play from there what models say, instead of asking them')
      .option(...jsonOption),
  run: async (terminal, [id, ask, json], options: Options) =>
    goOn(
      terminal,
      {
        type: 'answer',
        run: id as string,
        ask: ask as string,
        value: await jsonArgument(json as string, 'the answer'),
        ...(options.file !== undefined && { file: options.file }),
        ...(options.store !== undefined && { store: options.store }),
        ...(options.replay !== undefined && { replay: options.replay }),
      },
      options,
    ),
}
