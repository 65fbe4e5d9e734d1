import type { ActivityContext } from '../define/work.js'

/** Whose activities are given it. */
export interface ContextOwner extends Pick<ActivityContext, 'use' | 'emit'> {
  idempotencyKey(key: string): string
  /** A controller that is aborted with the turn, until it is released. */
  controller(): AbortController
  release(controller: AbortController): void
}

/** What an activity is given. Its signal and its key are made only when they are asked for. */
export class Context implements ActivityContext {
  readonly attempt: number
  readonly use: ActivityContext['use']
  readonly emit: ActivityContext['emit']
  readonly #of: ContextOwner
  readonly #key: string
  #controller: AbortController | null = null
  #drawn = 0

  constructor(of: ContextOwner, key: string, attempt: number) {
    this.attempt = attempt
    this.use = of.use
    this.emit = of.emit
    this.#of = of
    this.#key = key
    Object.freeze(this)
  }

  get idempotencyKey(): string {
    return this.#of.idempotencyKey(this.#key)
  }

  get signal(): AbortSignal {
    return Context.signalled(this).signal
  }

  static isOf(ctx: Context, owner: ContextOwner): boolean {
    return ctx.#of === owner
  }

  /** Which random number it draws next: one of its own, whatever goes on beside it or was given back before it. */
  static nextDrawn(ctx: Context): string {
    return `${ctx.idempotencyKey}/${ctx.attempt}/${ctx.#drawn++}`
  }

  static signalled(ctx: Context): AbortController {
    return (ctx.#controller ??= ctx.#of.controller())
  }

  /** What has asked for its signal needs it no more. */
  static letGo(ctx: Context): void {
    if (ctx.#controller !== null) ctx.#of.release(ctx.#controller)
  }
}
