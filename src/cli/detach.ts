import { fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { CliError } from './cli-error.js'
import { exitCode, type ExitCode } from './exit-code.js'
import { leftBy } from './leaving.js'
import type { Work } from './work.js'

/** What the process that goes on says to the one that started it, before they part. */
export type Parting =
  | { readonly started: string }
  | { readonly refused: string; readonly more?: readonly string[]; readonly exit: ExitCode }

/** Lets a process of its own do the work; gives the id of the run once what was asked is durable. */
export async function detach(work: Work): Promise<string> {
  const child = fork(fileURLToPath(new URL('./detached.js', import.meta.url)), [], {
    detached: true,
    stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
    execArgv: [],
  })
  const parting = await new Promise<Parting>((resolve, reject) => {
    child.on('message', (message) => resolve(message as Parting))
    child.on('error', (error) => resolve({ refused: error.message, exit: exitCode.failed }))
    child.on('exit', (code) => reject(leftBy(code)))
    child.send(work)
  })
  if (child.connected) child.disconnect()
  child.unref()
  if ('started' in parting) return parting.started
  throw new CliError(parting.exit, parting.refused, undefined, parting.more)
}
