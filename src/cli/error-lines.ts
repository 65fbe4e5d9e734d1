import { TuttiError } from '../define/tutti-error.js'
import { CliError } from './cli-error.js'
import { exitCode, type ExitCode } from './exit-code.js'
import { escaped, type Shown, shown } from './shown.js'

/** What went wrong, for a person: one line, and one more for each problem. */
export function errorLines(error: unknown): { readonly lines: readonly Shown[]; readonly exit: ExitCode } {
  if (error instanceof CliError)
    return { lines: [line(error.message, undefined, error.hint), ...error.more.map((text) => escaped(text))], exit: error.exit }
  if (TuttiError.is(error)) {
    const { code, problems } = error
    const hint = hints[code] ?? error.hint
    const exit = exitOf(code)
    if (problems === undefined || problems.length === 0) return { lines: [line(error.message, code, hint)], exit }
    const first = line(
      `${problems.length === 1 ? 'there is a problem' : `there are ${problems.length} problems`} with ${subjects[code] ?? 'what was given'}`,
      code,
      hint,
    )
    return { lines: [first, ...problems.map(({ where, message }) => shown`  ${where}: ${message}`)], exit }
  }
  return { lines: [line(error instanceof Error ? error.message : String(error), undefined, undefined)], exit: exitCode.failed }
}

/** What problems are problems of. */
const subjects: Readonly<Record<string, string>> = { INVALID_TOPOLOGY: 'the definition', INVALID_GRAPH: 'the definition' }

/** What to do about it where one types, instead of calling functions. */
const hints: Readonly<Record<string, string>> = {
  RUN_EXISTS: 'give another --id',
  RUN_NOT_FOUND: 'tutti ls lists the runs',
  RUN_NOT_PAUSED: 'tutti show tells how it stands',
  RUN_ENDED: 'tutti show tells what became of it',
  AGENT_NOT_FOUND: 'tutti agents lists them',
  AGENT_NOT_PAUSED: 'tutti agents says what it is',
  ASK_NOT_FOUND: 'tutti asks lists what is open',
}

function line(message: string, code: string | undefined, hint: string | undefined): Shown {
  const tail = hint === undefined ? shown`` : shown`; ${hint}`
  return shown`${escaped('tutti:', 'bad')} ${code === undefined ? '' : `${code}: `}${message}${tail}`
}

/** What was typed is the mistake. */
const notTaken: readonly string[] = ['INVALID_INPUT', 'ASK_INVALID_ANSWER', 'VALUE_TOO_LARGE']

function exitOf(code: string): ExitCode {
  if (code.endsWith('_NOT_FOUND')) return exitCode.notFound
  return notTaken.includes(code) ? exitCode.usage : exitCode.failed
}
