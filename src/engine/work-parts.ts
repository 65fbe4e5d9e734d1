import type { Work } from '../define/work.js'
import type { Attempt } from '../kernel/state.js'

/** What the code of a turn or a step is given of its execution. Its functions are bound; signal and key are made only when they are asked for. */
export interface WorkParts extends Pick<Work, 'use' | 'emit' | 'step' | 'sleep' | 'now' | 'random'> {
  readonly attempt: Attempt
  signal(): AbortSignal
  idempotencyKey(): string
}
