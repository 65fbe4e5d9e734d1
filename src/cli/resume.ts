import type { CliCommand } from './cli-command.js'
import { fileOption, jsonOption, storeOption } from './cli-command.js'
import { goOn, type GoOnOptions } from './go-on.js'

interface Options extends GoOnOptions {
  readonly file?: string
  readonly replay?: string
}

export const command: CliCommand = {
  spec: (command) =>
    command
      .argument('<id>', 'the run')
      .option(...storeOption)
      .option(...fileOption)
      .option('--detach', 'let a process of its own go on with it')
      .option('--replay <file>', 'play from there what models say, instead of asking them')
      .option(...jsonOption),
  run: async (terminal, [id], options: Options) =>
    goOn(
      terminal,
      {
        type: 'resume',
        run: id as string,
        ...(options.file !== undefined && { file: options.file }),
        ...(options.store !== undefined && { store: options.store }),
        ...(options.replay !== undefined && { replay: options.replay }),
      },
      options,
    ),
}
