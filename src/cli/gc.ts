import type { CliCommand } from './cli-command.js'
import { jsonOption, storeOption } from './cli-command.js'
import { wrongUse } from './cli-error.js'
import { exitCode } from './exit-code.js'
import { shown } from './shown.js'
import { openIfThere } from './stores.js'

interface Options {
  readonly store?: string
  readonly olderThan: string
  readonly json?: boolean
}

const units = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const

/** How many runs are deleted in one write: others wait while it lasts. */
const atOnce = 200

export const command: CliCommand = {
  spec: (command) =>
    command
      .option('--older-than <age>', 'only runs that ended longer ago than this: 30d, 12h, 15m, 0s', '30d')
      .option(...storeOption)
      .option(...jsonOption),
  run: async (terminal, _, { store: where, olderThan, json }: Options) => {
    const endedBefore = Date.now() - ageOf(olderThan)
    const store = await openIfThere(where)
    let deleted = 0
    for (let part = atOnce; store !== null && part === atOnce; deleted += part) part = await store.gc({ endedBefore, limit: atOnce })
    await store?.close()
    if (json === true) terminal.json({ deleted })
    else terminal.data(shown`deleted ${deleted} ${deleted === 1 ? 'run' : 'runs'}`)
    return exitCode.done
  },
}

function ageOf(text: string): number {
  const [, count, unit] = /^(\d+)([smhd])$/.exec(text) ?? []
  if (count === undefined || unit === undefined) throw wrongUse(`--older-than is a time like 30d, 12h, 15m or 0s, not ${text}`)
  return Number(count) * units[unit as keyof typeof units]
}
