import { Argument } from 'commander'
import type { CliCommand } from './cli-command.js'
import { commands } from './commands.js'
import { exitCode } from './exit-code.js'
import { specOf } from './spec-of.js'
import type { Terminal } from './terminal.js'

const shells = ['bash', 'zsh', 'fish'] as const

/** What can be completed: the commands, and the options of each. */
interface Completed {
  readonly name: string
  readonly summary: string
  readonly options: readonly { readonly long: string; readonly description: string }[]
}

export const command: CliCommand = {
  spec: (command) => command.addArgument(new Argument('<shell>', 'which shell').choices(shells)),
  run: async (terminal, [shell]) => {
    const all = await completed(terminal)
    const scripts = { bash, zsh, fish }
    terminal.raw(scripts[shell as (typeof shells)[number]](all))
    return exitCode.done
  },
}

async function completed(terminal: Terminal): Promise<readonly Completed[]> {
  return Promise.all(
    commands.map(async (listed) => {
      const { command } = await listed.load()
      const options = specOf(listed, command, terminal).options.flatMap(({ long, description }) => (long ? [{ long, description }] : []))
      return { name: listed.name, summary: listed.summary, options: [...options, { long: '--help', description: 'show this' }] }
    }),
  )
}

const names = (all: readonly Completed[]): string => all.map(({ name }) => name).join(' ')
const longs = ({ options }: Completed): string => options.map(({ long }) => long).join(' ')
/** Inside single quotes, in every shell. */
const quoted = (text: string): string => text.replaceAll("'", "'\\''")

function bash(all: readonly Completed[]): string {
  return `# eval "$(tutti completion bash)"
_tutti() {
  local word="\${COMP_WORDS[COMP_CWORD]}"
  if [ "$COMP_CWORD" -eq 1 ]; then COMPREPLY=($(compgen -W '${names(all)} --help --version' -- "$word")); return; fi
  case "\${COMP_WORDS[1]}" in
${all.map((one) => `    ${one.name}) COMPREPLY=($(compgen -W '${longs(one)} @last' -- "$word") $(compgen -f -- "$word")) ;;`).join('\n')}
  esac
}
complete -F _tutti tutti
`
}

function zsh(all: readonly Completed[]): string {
  const described = all.map(({ name, summary }) => `    '${quoted(`${name}:${summary.replaceAll(':', '\\:')}`)}'`)
  const cases = all.map(
    ({ name, options }) =>
      `    ${name}) _arguments ${options.map(({ long, description }) => `'${quoted(`${long}[${description.replaceAll(/[[\]:]/g, '\\$&')}]`)}'`).join(' ')} '*:file:_files' ;;`,
  )
  return `#compdef tutti
# eval "$(tutti completion zsh)"
_tutti() {
  local -a commands=(
${described.join('\n')}
  )
  if (( CURRENT == 2 )); then _describe 'command' commands; return; fi
  case "\${words[2]}" in
${cases.join('\n')}
  esac
}
compdef _tutti tutti
`
}

function fish(all: readonly Completed[]): string {
  const lines = all.flatMap(({ name, summary, options }) => [
    `complete -c tutti -n __fish_use_subcommand -f -a ${name} -d '${quoted(summary)}'`,
    ...options.map(
      ({ long, description }) =>
        `complete -c tutti -n '__fish_seen_subcommand_from ${name}' -l ${long.slice(2)} -d '${quoted(description)}'`,
    ),
  ])
  return `# tutti completion fish | source\n${lines.join('\n')}\n`
}
