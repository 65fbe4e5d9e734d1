import { exitCode, type ExitCode } from './exit-code.js'

/** Ends a command: one clear sentence, what to do about it, and how the process ends. */
export class CliError extends Error {
  readonly exit: ExitCode
  readonly hint: string | undefined
  /** Lines that follow. */
  readonly more: readonly string[]

  constructor(exit: ExitCode, message: string, hint?: string, more: readonly string[] = []) {
    super(message)
    this.exit = exit
    this.hint = hint
    this.more = more
  }
}

/** The command was called in a wrong way. */
export const wrongUse = (message: string, hint?: string): CliError => new CliError(exitCode.usage, message, hint)

/** What was named is not there. */
export const notFound = (message: string, hint?: string): CliError => new CliError(exitCode.notFound, message, hint)
