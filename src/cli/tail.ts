import type { Event } from '../kernel/event.js'
import type { CliCommand } from './cli-command.js'
import { storeOption } from './cli-command.js'
import { wrongUse } from './cli-error.js'
import { eventLine } from './event-line.js'
import { exitCode, type ExitCode } from './exit-code.js'
import { findRun } from './find-run.js'
import { journalOf, publicEvents } from './journal.js'
import { RunTree } from './run-tree.js'
import { strandedIn } from './standing.js'
import { openExisting } from './stores.js'
import { jsonText } from './terminal.js'
import { nobodyExecutes } from './told.js'
import { WatchedStore } from './watched-store.js'

interface Options {
  readonly store?: string
  readonly after: string
  readonly json?: boolean
}

export const command: CliCommand = {
  spec: (command) =>
    command
      .argument('<id>', 'the run')
      .option('--after <seq>', 'only what comes after this event', '0')
      .option(...storeOption)
      .option('--json', 'print each event as a line of JSON'),
  run: async (terminal, [given], options: Options) => {
    const after = Number(options.after)
    if (!Number.isSafeInteger(after) || after < 0) throw wrongUse(`--after is the number of an event, not ${options.after}`)
    // It would follow for as long as the run goes on.
    terminal.unread.addEventListener('abort', () => terminal.leave(exitCode.done))
    const watched = new WatchedStore(await openExisting(options.store))
    try {
      const row = await findRun(watched.store, given as string)
      const alone = (): void => terminal.note(nobodyExecutes(row, options.store))
      return await follow(watched, row, after, alone, (event) => {
        if (options.json === true)
          terminal.raw(
            publicEvents([event], row)
              .map((view) => `${jsonText(view)}\n`)
              .join(''),
          )
        else terminal.data(eventLine(event, row.startedAt))
      })
    } finally {
      await watched.close()
    }
  },
}

/** How often is looked whether anybody executes a run to which nothing happens: that a process has died is written nowhere. */
const lookMs = 5_000

async function follow(
  watched: WatchedStore,
  { id }: { readonly id: string },
  from: number,
  alone: () => void,
  take: (event: Event) => void,
): Promise<ExitCode> {
  const tree = new RunTree(watched.store, id)
  let after = from
  let looked = Number.NEGATIVE_INFINITY
  let isAlone = false
  for (;;) {
    const { version } = watched
    for (const event of await journalOf(watched.store, id, after)) {
      take(event)
      after = event.seq
      isAlone = false
    }
    const { row } = (await watched.store.load(id, { after: Number.MAX_SAFE_INTEGER })) ?? {}
    if (row === undefined || (row.endedAt !== null && after >= row.head))
      return row?.status === 'succeeded' ? exitCode.done : exitCode.failed
    // An end may have been written between the two looks; then there is more to read.
    if (after < row.head) continue
    if (!isAlone && performance.now() - looked >= lookMs) {
      await tree.catchUp()
      isAlone = (await strandedIn(watched.store, [tree])).has(id)
      if (isAlone) alone()
      looked = performance.now()
    }
    const again = setTimeout(() => watched.moved(), lookMs)
    await watched.movedSince(version)
    clearTimeout(again)
  }
}
