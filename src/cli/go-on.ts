import { storePlace } from '../stores/open-store.js'
import { wrongUse } from './cli-error.js'
import { exitCode, type ExitCode } from './exit-code.js'
import { detach } from './detach.js'
import { type Driven, exitOf } from './session.js'
import { shown } from './shown.js'
import type { Terminal } from './terminal.js'
import { commandOf, tell } from './told.js'
import { begin, type Work } from './work.js'

/** What `run`, `resume` and `answer` have in common. */
export interface GoOnOptions {
  readonly store?: string
  readonly detach?: boolean
  readonly json?: boolean
}

/** Does the work and executes the run on to its next stop, here or in a process of its own. */
export async function goOn(terminal: Terminal, work: Work, options: GoOnOptions): Promise<ExitCode> {
  if (options.detach === true) return detached(terminal, work, options)
  const { session, run, following, executes } = await begin(terminal, work)
  if (!executes) {
    const { status, waitsFor } = await run.summary()
    if (options.json === true) terminal.json({ id: run.id, status, waitsFor })
    terminal.note(shown`done; whoever has the definition of ${run.id} goes on with it (no file is recorded for it: --file names one)`)
    await session[Symbol.asyncDispose]()
    return exitCode.done
  }
  const told = (how: Driven): void => tell(terminal, { id: run.id, store: options.store }, how, options.json === true)
  const driven = await session.drive(run, following, () => told({ kind: 'interrupted' }))
  told(driven)
  if (driven.kind === 'interrupted') await session.letGo()
  else await session[Symbol.asyncDispose]()
  return exitOf(driven)
}

async function detached(terminal: Terminal, work: Work, options: GoOnOptions): Promise<ExitCode> {
  if (storePlace(options.store).kind === 'memory')
    throw wrongUse("what the store 'memory:' holds ends with its process: nobody could find a run that is detached there")
  const id = await detach(work)
  if (options.json === true) terminal.json({ id })
  else terminal.data(shown`${id}`)
  terminal.note(shown`follow it with: ${commandOf('tail', { id, store: options.store })}`)
  return exitCode.done
}
