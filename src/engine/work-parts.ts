import type { Work } from '../define/work.js'
import type { Attempt } from '../kernel/state.js'

/** What the code of a turn or a step is given of its execution. */
export interface WorkParts extends Pick<Work, 'use' | 'emit' | 'step' | 'sleep' | 'now'> {
  /** The next of the body's numbers, or of those of its `when`. */
  random(of?: 'when'): number
  readonly attempt: Attempt
  signal(): AbortSignal
  idempotencyKey(): string
}

/**
 * Its functions, bound, because people take them off what they are given. They are made when a body begins: of a wide fan-out most wait for
 * that, and the less there is of what waits, the less is copied whenever memory is collected. They are declared and not defined: they would
 * be defined as undefined first, each by itself, before the constructor gives them what they are.
 */
export class BoundWork {
  declare readonly use: Work['use']
  declare readonly emit: Work['emit']
  declare readonly step: Work['step']
  declare readonly sleep: Work['sleep']
  declare readonly now: Work['now']
  declare readonly random: Work['random']

  constructor(work: WorkParts, of?: 'when') {
    this.use = (resource) => work.use(resource)
    this.emit = (data) => work.emit(data)
    this.step = (name, run, options) => work.step(name, run, options)
    this.sleep = (ms) => work.sleep(ms)
    this.now = () => work.now()
    this.random = () => work.random(of)
  }
}
