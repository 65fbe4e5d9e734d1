import type { Maybe } from '../define/maybe.js'
import type { ActivityContext } from '../define/work.js'
import type { ActivityRecord } from '../kernel/state.js'
import type { ActivityOptions } from '../models/activity-port.js'

/** The body of a step. */
export type Run = (ctx: ActivityContext) => Maybe<unknown>

const nothing = (): void => {}

const none: readonly number[] = Object.freeze([])

export const noOptions: ActivityOptions = Object.freeze({})

/**
 * A step of a turn, or a sleep: what its body has asked for under a key, and what the journal has under it. `record` is null while it has
 * nothing; `isOpen` while the body waits for what comes of it.
 */
export class CalledStep {
  readonly key: string
  readonly name: string
  record: ActivityRecord | null
  /** It was the how-manyth that the body called; 0: it was not. */
  call = 0
  isOpen = false
  isSleeping = false
  /** How many results the body had been given when it called. */
  delivered = 0
  /** Null: it is a sleep, of so many milliseconds. */
  run: Run | null = null
  options: ActivityOptions = noOptions
  ms = 0
  /** Which of its own attempts ran out of time, here. */
  timeouts: readonly number[] = none
  give: (value: unknown) => void = nothing
  #reject: (error: unknown) => void = nothing
  #promise: Promise<unknown> | null = null

  constructor(key: string, name: string, record: ActivityRecord | null) {
    this.key = key
    this.name = name
    this.record = record
  }

  /** What its body waits for. */
  called(): Promise<unknown> {
    const promise = new Promise((resolve, reject) => {
      this.give = resolve
      this.#reject = reject
    })
    this.#promise = promise
    return promise
  }

  fail(error: unknown): void {
    // A body that is aborted may never look at this one: it must not count as unhandled.
    this.#promise?.catch(nothing)
    this.#reject(error)
  }

  /** Its body has its result: a turn may have thousands, and keeps of each no more than what the journal has. */
  letGo(): void {
    this.run = null
    this.options = noOptions
    this.give = nothing
    this.#reject = nothing
    this.#promise = null
  }
}
