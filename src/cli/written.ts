import { writeFileSync } from 'node:fs'
import { CliError } from './cli-error.js'
import { exitCode } from './exit-code.js'
import { shown } from './shown.js'
import type { Terminal } from './terminal.js'

/** Gives a text to whoever reads data, or puts it into a file if one is named. */
export function written(terminal: Terminal, text: string, file: string | undefined): void {
  if (file === undefined) return terminal.raw(text.endsWith('\n') ? text : `${text}\n`)
  try {
    writeFileSync(file, text)
  } catch (error) {
    throw new CliError(exitCode.failed, `${file} could not be written: ${error instanceof Error ? error.message : String(error)}`)
  }
  terminal.note(shown`wrote ${file}`)
}
