import { CliError } from './cli-error.js'
import { errorLines } from './error-lines.js'
import { exitCode } from './exit-code.js'
import type { Terminal } from './terminal.js'

/** What Node ends with when nothing is left that an `await` could come to its end by. */
export const nothingLeft = 13

/** What a command is told of a process that code which was loaded has ended. */
export function leftBy(code: number | null): CliError {
  const why =
    code === nothingLeft
      ? 'what was loaded waits for something that never comes'
      : `code that was loaded has ended the process, with ${code}`
  return new CliError(exitCode.failed, `${why}: the command is not done`, 'a run that was under way can be resumed')
}

/** Says so when code that was loaded ends the process under a command, which is then not done, whatever that code says. */
export function tellWhoLeaves(terminal: Terminal): void {
  process.on('exit', (code) => {
    if (terminal.isLeft) return
    terminal.settle()
    for (const line of errorLines(leftBy(process.exitCode === nothingLeft ? nothingLeft : code)).lines) terminal.note(line)
    process.exitCode = exitCode.failed
  })
}
