import type { ActivityContext } from '../define/work.js'

/** Whose activities are given it. */
export interface ContextOwner extends Pick<ActivityContext, 'use' | 'emit'> {
  idempotencyKey(key: string): string
  /** A controller that is aborted with the turn, until it is released. */
  controller(): AbortController
  release(controller: AbortController): void
}

/** What an activity is given. Its signal is made only when it is asked for; its key is its own, so that whoever spreads it still pays once. */
export class Context implements ActivityContext {
  readonly idempotencyKey: string
  readonly attempt: number
  readonly use: ActivityContext['use']
  readonly emit: ActivityContext['emit']
  readonly #of: ContextOwner
  #controller: AbortController | null = null
  #drawn = 0

  constructor(of: ContextOwner, key: string, attempt: number) {
    this.idempotencyKey = of.idempotencyKey(key)
    this.attempt = attempt
    this.use = of.use
    this.emit = of.emit
    this.#of = of
    Object.freeze(this)
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
