import { CliError } from './cli-error.js'
import { errorLines } from './error-lines.js'
import { exitCode } from './exit-code.js'
import type { Terminal } from './terminal.js'

/** What Node ends with when nothing is left that an `await` could come to its end by. */
const nothingLeft = 13

/** Says so when code that was loaded ends the process under a command, which is then not done, whatever that code says. */
export function tellWhoLeaves(terminal: Terminal): void {
  process.on('exit', (code) => {
    if (terminal.isLeft) return
    terminal.settle()
    const why =
      process.exitCode === nothingLeft
        ? 'what was loaded waits for something that never comes'
        : `code that was loaded has ended the process, with ${code}`
    const error = new CliError(exitCode.failed, `${why}: the command is not done`, 'a run that was under way can be resumed')
    for (const line of errorLines(error).lines) terminal.note(line)
    process.exitCode = exitCode.failed
  })
}
