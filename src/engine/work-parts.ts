import type { Work } from '../define/work.js'

/** What every turn and step is given, before it is put together; the signal is made only when it is asked for. */
export interface WorkParts extends Omit<Work, 'signal'> {
  readonly signalOf: () => AbortSignal
}
