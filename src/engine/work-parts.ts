import type { Work } from '../define/work.js'

/** What every turn and step is given, before it is put together; signal and key are made only when they are asked for. */
export interface WorkParts extends Omit<Work, 'signal' | 'idempotencyKey'> {
  readonly idempotencyKeyOf: () => string
  readonly signalOf: () => AbortSignal
}
