import { Command } from 'commander'
import type { CliCommand } from './cli-command.js'
import type { Listed } from './commands.js'
import type { Terminal } from './terminal.js'

/** How a command is called, for calling it, for its help and for completion. */
export function specOf(listed: Listed, command: CliCommand, terminal: Terminal): Command {
  const base = new Command(`tutti ${listed.name}`)
    .description(listed.summary)
    .helpOption('-h, --help', 'show this')
    .exitOverride()
    .configureOutput({ writeOut: (text) => terminal.raw(text), writeErr: () => {} })
  return command.spec(base)
}
