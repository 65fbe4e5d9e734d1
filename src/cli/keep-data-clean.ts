import { Console } from 'node:console'
import { syncBuiltinESMExports } from 'node:module'

/**
 * What a user's code prints is no data of ours: it goes where progress goes, however it is printed. Whoever writes data has the real
 * standard output by now.
 */
export function keepDataClean(): void {
  const { stderr } = process
  Object.defineProperty(process, 'stdout', { configurable: true, enumerable: true, get: () => stderr })
  globalThis.console = new Console(stderr)
  syncBuiltinESMExports()
}
