import { CodedFailure, failureOf } from '../define/failure-of.js'
import { retryShape } from '../define/retry.js'
import type { ActivityContext } from '../define/work.js'
import { deepFreeze } from '../kernel/deep-freeze.js'
import { type Budget, budgetOf } from './budget.js'
import { type CallPlace, placeOptions } from './call-place.js'
import { isTooLong, summaryPrompt } from './compaction.js'
import { type GuardedCall, guarded } from './guarded-call.js'
import { answerOf, type HeardAnswer, type ModelAnswer, nameOfModel } from './model-answer.js'
import { type Called, modelFailure, retryAfterOf, wasTaken } from './model-failure.js'
import type { ModelTurnPort } from './model-turn-port.js'
import type { Offers } from './offers.js'
import type { PromptMessage, Transcript } from './transcript.js'
import { keys } from './turn-keys.js'
import { reserveOf, type Used, usageOf } from './usage-of.js'

/** How a call of a model is repeated if its error is of a kind that passes. */
const retryDefaults = { attempts: 3, backoffMs: 500, factor: 2, maxBackoffMs: 30_000 }
/** Of an answer that could not be read. */
const nothingHeard = { parts: [], inputTokens: undefined, outputTokens: undefined }
/** A server that says nothing for so long will not answer. */
const timeoutMs = 600_000

type Listener = ModelTurnPort['listener']
/** What an agent sums up for itself it says to nobody: what its tools gave stands in it. */
const toNobody: Listener = () => null

/**
 * The calls of a model in one attempt at a turn.
 *
 * 1. Each is an activity: one that is recorded is not made again.
 * 2. Where in the run a call stands follows from what was recorded before it.
 */
export class ModelCalls {
  readonly #port: ModelTurnPort
  readonly #offers: Offers
  readonly #system: PromptMessage
  readonly #budget: Budget
  /** How many answers this turn had before, in attempts that were sent back. */
  readonly #before: number
  #made = 0
  #attempts = 0

  constructor(port: ModelTurnPort, offers: Offers, system: string) {
    this.#port = port
    this.#offers = offers
    this.#system = { role: 'system', content: system }
    this.#budget = budgetOf(port.limits, port.priceOf)
    const { branchId, turn } = port.turn
    const here = port.memory.turns.filter((past) => past.branch === branchId && past.turn === turn)
    this.#before = here.flatMap(({ records }) => records.filter(({ usage }) => usage !== undefined)).length
  }

  /** Asks the model with all that was said; what no longer fits is summed up first. */
  async next(transcript: Transcript): Promise<ModelAnswer> {
    if (isTooLong(transcript)) {
      const summary = await this.#call(keys.compact(this.#made), summaryPrompt(transcript.messages), {}, toNobody)
      transcript.sumUp(summary)
    }
    return this.#call(keys.model(this.#made), [this.#system, ...transcript.messages], this.#acting(), this.#port.listener)
  }

  /**
   * What is offered, and whether the model must take it. No form of a text is demanded: OpenAI refuses most schemas there, Gemini and others
   * refuse any beside tools. The tools have the schema, the prompt tells it, and what does not fit is sent back.
   */
  #acting(): object {
    const { tools, prose } = this.#offers
    return tools.length > 0 ? { tools, toolChoice: { type: prose === null ? 'required' : 'auto' } } : {}
  }

  async #call(key: string, said: readonly PromptMessage[], acting: object, listener: Listener): Promise<ModelAnswer> {
    const place = this.#place()
    // Guardrails and models are shown it, and the calls that follow are made of the same messages.
    const prompt = deepFreeze(said)
    const options = { ...acting, ...this.#budget.options }
    const reserve = await this.#budget.reserve(prompt, acting, () => this.#modelName())
    const { retry } = this.#offers.seat.agent.options
    const broken: Used[] = []
    let told = 0
    const usedByLast = () => {
      const last = broken[told]
      if (last === undefined) return undefined
      told++
      return reserveOf(last)
    }
    const call: GuardedCall = (stop) =>
      this.#port.activity('model', (ctx) => this.#ask(ctx, stop, { ...options, prompt }, place, broken, listener(ctx.attempt)), {
        key,
        timeoutMs,
        retry: { ...retry, ...retryShape(retry, retryDefaults) },
        waitMs: retryAfterOf,
        usage: (result) => usageOf(result, broken),
        ...(reserve !== null && { reserve, usedByLast }),
        ...(stop !== null && { stop }),
      }) as Promise<ModelAnswer>
    const answer = await guarded(this.#port, this.#made, prompt, call).catch((error: unknown) => this.#failed(error))
    this.#made++
    this.#attempts += answer.attempts
    return answer
  }

  /** What it is called, where that must be known before the call. */
  async #modelName(): Promise<string> {
    const model = await this.#port
      .model()
      .catch((error: unknown) =>
        this.#failed(modelFailure(error, { name: this.#offers.seat.agent.name, model: null }, 1, this.#port.now())),
      )
    return nameOfModel(model)
  }

  #place(): CallPlace {
    const { turn, seat, memory, answering } = this.#port
    return {
      run: turn.runId,
      agent: seat.agent.name,
      branch: turn.branchId,
      turn: turn.turn,
      call: this.#before + this.#made,
      index: memory.calls + this.#attempts,
      ...(turn.request !== undefined && { request: turn.request }),
      waiting: seat.waiting,
      answering,
    }
  }

  /** `broken` is given what an attempt has used that was begun and is of no use: it is bought all the same. */
  async #ask(
    ctx: ActivityContext,
    stop: AbortSignal | null,
    options: object,
    place: CallPlace,
    broken: Used[],
    listener: ReturnType<Listener>,
  ): Promise<ModelAnswer> {
    const { agent } = this.#offers.seat
    let called: Called = { name: agent.name, model: null }
    let used: Used | undefined
    const over = new AbortController()
    try {
      const model = await this.#port.model()
      called = { name: nameOfModel(model), model }
      stop?.throwIfAborted()
      const abortSignal = AbortSignal.any([ctx.signal, over.signal, ...(stop === null ? [] : [stop])])
      const providerOptions = placeOptions({ ...place, index: place.index + ctx.attempt - 1 })
      const { broken: why, ...answer } = await answerOf(model, { ...options, abortSignal, providerOptions }, listener)
      used = this.#used(answer, options)
      if (why !== undefined) throw why
      return { ...answer, ...used, attempts: ctx.attempt }
    } catch (error) {
      // Not every provider lets go of an answer that it could not read: its connection would be open for as long as the server likes.
      over.abort(error)
      if (wasTaken(error)) used ??= this.#used({ ...nothingHeard, model: called.name }, options)
      if (used !== undefined) broken.push(used)
      // What a call says that was given up on purpose is no reason to try again.
      throw modelFailure(stop?.aborted === true ? stop.reason : error, called, ctx.attempt, this.#port.now())
    }
  }

  #used({ model, parts, costUsd, ...told }: Omit<HeardAnswer, 'finish'>, options: object): Used {
    const inputTokens = this.#budget.counted(told.inputTokens, options)
    const outputTokens = this.#budget.counted(told.outputTokens, parts)
    // What the provider says that it cost stands; else its price says it.
    const price = this.#port.priceOf(model)
    const cost = costUsd ?? (price === undefined ? undefined : inputTokens * price.input + outputTokens * price.output)
    return { inputTokens, outputTokens, ...(cost !== undefined && { costUsd: cost }) }
  }

  /** The last attempt failed, or a guardrail has stopped the turn: the turn is not tried again for it. */
  #failed(error: unknown): never {
    if (this.#port.turn.signal.aborted || !(error instanceof CodedFailure)) throw error
    const { failure } = error
    if (failure.code === 'MODEL_FAILED' || failure.code === 'TIMEOUT')
      throw new CodedFailure({ ...failureOf(error), code: 'MODEL_FAILED', retryable: false })
    throw error
  }
}
