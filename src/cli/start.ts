import { type Command, CommanderError } from 'commander'
import { CliError, wrongUse } from './cli-error.js'
import { commands, type Listed } from './commands.js'
import { errorLines } from './error-lines.js'
import { exitCode, type ExitCode } from './exit-code.js'
import { tellWhoLeaves } from './leaving.js'
import { specOf } from './spec-of.js'
import { Terminal } from './terminal.js'

/** Does what the arguments say, and ends the process so. */
export async function start(args: readonly string[], version: () => string): Promise<void> {
  // Kept, because what is loaded later finds another standard output.
  const { stdout, stderr } = process
  const terminal = new Terminal(stdout, stderr, process.env)
  const end = (code: ExitCode): void => void stderr.write('', () => terminal.leave(code))
  let code: ExitCode | null = null
  const over = (): void => {
    if (code !== null) end(code)
  }
  stdout.on('error', (error: NodeJS.ErrnoException) => {
    // Whoever reads may go before all is said: that is no failure of ours. What the command does and ends with stays the same.
    if (error.code === 'EPIPE') {
      terminal.nobodyReads()
      return over()
    }
    terminal.note(errorLines(new CliError(exitCode.failed, `standard output could not be written: ${error.message}`)).lines[0])
    end(exitCode.failed)
  })
  // A run goes on to its end, whether somebody looks on or not.
  stderr.on('error', () => {})
  tellWhoLeaves(terminal)
  code = await perform(terminal, args, version)
  // A file that was loaded may have left something open: what was written is flushed, and that is all. What could not be is told above.
  stdout.write('', (error) => {
    if (error === null || error === undefined) over()
  })
}

/** Does what the arguments say; how the process is to end. */
export async function perform(terminal: Terminal, args: readonly string[], version: () => string): Promise<ExitCode> {
  try {
    return await called(terminal, args, version)
  } catch (error) {
    const { lines, exit } = errorLines(error)
    for (const line of lines) terminal.note(line)
    return exit
  }
}

async function called(terminal: Terminal, args: readonly string[], version: () => string): Promise<ExitCode> {
  const [name, ...rest] = args
  if (name === undefined || name === '--help' || name === '-h') return help(terminal, version())
  if (name === 'help') return rest[0] === undefined ? help(terminal, version()) : called(terminal, [rest[0], '--help'], version)
  const listed = commands.find((command) => command.name === name)
  if (listed === undefined) throw unknown(name)
  return execute(terminal, listed, rest)
}

async function execute(terminal: Terminal, listed: Listed, args: readonly string[]): Promise<ExitCode> {
  const { command } = await listed.load()
  let code: ExitCode = exitCode.done
  const spec = specOf(listed, command, terminal).action(async (...given: unknown[]) => {
    const called = given.at(-1) as Command
    code = await command.run(terminal, called.processedArgs, called.opts())
  })
  try {
    await spec.parseAsync([...args], { from: 'user' })
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error
    // Help was asked for, and given.
    if (error.exitCode === 0) return exitCode.done
    throw wrongUse(`${listed.name}: ${oneLine(error.message)}`, `see tutti ${listed.name} --help`)
  }
  return code
}

/** What commander says, without its prefix and on one line. */
function oneLine(message: string): string {
  return message
    .replace(/^error: /, '')
    .replaceAll(/\s*\n\s*/g, ' ')
    .trim()
}

function help(terminal: Terminal, version: string): ExitCode {
  const width = Math.max(...commands.map(({ name }) => name.length))
  const lines = commands.map(({ name, summary }) => `  ${name.padEnd(width)}  ${summary}`)
  terminal.raw(
    [
      `tutti ${version}: multi-agent work in which no result ever depends on a race`,
      '',
      'usage: tutti <command> [options]     tutti <command> --help     tutti --version',
      '',
      ...lines,
      '',
      'A run is named by its id, the beginning of it, or @last.',
      'Exit codes: 0 done, 1 failed or cancelled, 2 wrong use, 3 not found, 4 waits for a person or is paused,',
      '            5 a race or a broken invariant was found, 130 interrupted.',
      '',
    ].join('\n'),
  )
  return exitCode.done
}

function unknown(name: string): CliError {
  const kind = name.startsWith('-') ? 'option' : 'command'
  const near = commands.filter((command) => kind === 'command' && isNear(command.name, name)).map((command) => command.name)
  return wrongUse(`there is no ${kind} ${name}`, near.length === 0 ? 'see tutti --help' : `did you mean ${near.join(' or ')}?`)
}

/** One letter more, less or other, or the beginning of it. */
function isNear(name: string, given: string): boolean {
  if (given.length > 1 && name.startsWith(given)) return true
  if (Math.abs(name.length - given.length) > 1) return false
  let same = 0
  while (same < name.length && name[same] === given[same]) same++
  return [
    [name.slice(same + 1), given.slice(same + 1)],
    [name.slice(same + 1), given.slice(same)],
    [name.slice(same), given.slice(same + 1)],
  ].some(([a, b]) => a === b)
}
