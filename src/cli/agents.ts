import type { AgentControl, AgentRecord } from '../engine/tutti.js'
import type { CliCommand } from './cli-command.js'
import { jsonOption, storeOption } from './cli-command.js'
import { wrongUse } from './cli-error.js'
import { exitCode } from './exit-code.js'
import { Session } from './session.js'
import { escaped, type Shown, shown, table } from './shown.js'
import { openExisting, openIfThere } from './stores.js'
import type { Terminal } from './terminal.js'

interface Options {
  readonly store?: string
  readonly json?: boolean
}

const actions = ['pause', 'resume', 'stop', 'start', 'terminate'] as const
type Action = (typeof actions)[number]

export const command: CliCommand = {
  spec: (command) =>
    command
      .argument('[action]', `${actions.join(', ')}; without one, all agents are listed`)
      .argument('[name]', 'the agent')
      .option(...storeOption)
      .option(...jsonOption),
  run: async (terminal, [action, name], { store, json }: Options) => {
    if (action === undefined) {
      print(terminal, await listed(terminal, store), json)
      return exitCode.done
    }
    if (!isAction(action)) throw wrongUse(`agents: there is no ${String(action)}`, `it is one of ${actions.join(', ')}`)
    if (name === undefined) throw wrongUse(`agents: say which agent to ${action}`)
    await using session = await Session.open(terminal, await openExisting(store), null)
    const record = await session.tutti.agents[action](name as string, { by: `tutti agents ${action}` })
    if (json === true) terminal.json(record)
    else print(terminal, [record], false)
    return exitCode.done
  },
}

function isAction(text: unknown): text is Action & keyof AgentControl {
  return actions.some((action) => action === text)
}

async function listed(terminal: Terminal, where: string | undefined): Promise<readonly AgentRecord[]> {
  const store = await openIfThere(where)
  if (store === null) return []
  await using session = await Session.open(terminal, store, null)
  return await session.tutti.agents.list()
}

function print(terminal: Terminal, records: readonly AgentRecord[], json: boolean | undefined): void {
  if (json === true) return terminal.json(records)
  if (records.length === 0) return terminal.note(shown`no agent has been steered or seen yet`)
  const heads = ['NAME', 'STATUS', 'RUNTIME', 'REVISION', 'ATTEMPT'].map((head) => escaped(head, 'dim'))
  const rows = records.map(({ name, status, runtime, revision, attempt }): Shown[] =>
    [name, status, runtime, String(revision), String(attempt)].map((cell) => escaped(cell)),
  )
  for (const line of table([heads, ...rows])) terminal.data(line)
}
