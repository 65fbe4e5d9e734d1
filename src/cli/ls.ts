import type { ListFilter, RunRow, Store } from '../engine/store.js'
import type { RunSummary } from '../engine/tutti.js'
import { durationText } from '../inspect/duration-text.js'
import type { Colour } from '../inspect/theme.js'
import { timeText } from '../inspect/time-text.js'
import type { CliCommand } from './cli-command.js'
import { jsonOption, storeOption } from './cli-command.js'
import { wrongUse } from './cli-error.js'
import { exitCode } from './exit-code.js'
import { isTop } from './find-run.js'
import { escaped, type Shown, shown, table } from './shown.js'
import { type Standing, standingsOf } from './standing.js'
import { openIfThere } from './stores.js'

interface Options {
  readonly store?: string
  readonly status?: string
  readonly definition?: string
  readonly limit: string
  readonly all?: boolean
  readonly json?: boolean
}

const statuses = ['running', 'paused', 'compensating', 'succeeded', 'failed', 'cancelled']

export const command: CliCommand = {
  spec: (command) =>
    command
      .option('--status <status>', `only ${statuses.join(', ')}`)
      .option('--definition <name>', 'only those of this definition')
      .option('-n, --limit <n>', 'at most so many, the newest first', '50')
      .option('--all', 'child runs too')
      .option(...storeOption)
      .option(...jsonOption),
  run: async (terminal, _, options: Options) => {
    if (options.status !== undefined && !statuses.includes(options.status))
      throw wrongUse(`there is no status ${options.status}`, `it is one of ${statuses.join(', ')}`)
    const limit = Number(options.limit)
    if (!Number.isInteger(limit) || limit < 1) throw wrongUse(`--limit is a whole number from 1 on, not ${options.limit}`)
    const store = await openIfThere(options.store)
    const filter = {
      ...(options.status !== undefined && { status: [options.status] }),
      ...(options.definition !== undefined && { definition: options.definition }),
    }
    const runs = store === null ? [] : await runsOf(store, filter, limit, options.all === true)
    await store?.close()
    if (options.json === true) terminal.json(runs)
    else if (runs.length > 0) for (const line of table([heads, ...runs.map(cellsOf)])) terminal.data(line)
    if (runs.length === 0) terminal.note(shown`there are no such runs; tutti demo and tutti run make some`)
    return exitCode.done
  },
}

async function runsOf(store: Store, filter: Partial<ListFilter>, limit: number, all: boolean): Promise<Standing[]> {
  return standingsOf(store, await rowsOf(store, filter, limit, all), { alone: all })
}

async function rowsOf(store: Store, filter: Partial<ListFilter>, limit: number, all: boolean): Promise<RunRow[]> {
  const found: RunRow[] = []
  let before: number | undefined
  for (;;) {
    const rows = await store.list({ ...filter, limit, ...(before !== undefined && { before }) })
    found.push(...(all ? rows : rows.filter(isTop)))
    before = rows.at(-1)?.order
    if (rows.length < limit || found.length >= limit) return found.slice(0, limit)
  }
}

const heads: readonly Shown[] = ['ID', 'DEFINITION', 'STATUS', 'STARTED', 'TOOK', 'WAITS FOR'].map((head) => escaped(head, 'dim'))

const colours: Readonly<Record<RunSummary['status'], Colour>> = {
  running: 'turn',
  paused: 'retry',
  compensating: 'undo',
  succeeded: 'good',
  failed: 'bad',
  cancelled: 'dim',
}

function cellsOf({ id, definition, status, startedAt, endedAt, waitsFor, cancelling }: Standing): readonly Shown[] {
  const took = endedAt === undefined ? '' : durationText(endedAt - startedAt)
  return [
    escaped(id),
    escaped(definition),
    escaped(cancelling === undefined ? status : 'cancelling', colours[status]),
    escaped(timeText(startedAt)),
    escaped(took),
    escaped(waitsFor.join(', '), 'person'),
  ]
}
