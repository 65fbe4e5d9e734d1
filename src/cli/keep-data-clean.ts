import { Console } from 'node:console'

/** What the code of a run prints is no data of ours: it goes where progress goes. */
export function keepDataClean(): void {
  globalThis.console = new Console(process.stderr)
}
