import { AsyncLocalStorage } from 'node:async_hooks'
import type { Maybe } from '../define/maybe.js'
import { TuttiError } from '../define/tutti-error.js'
import type { ActivityContext } from '../define/work.js'
import type { ActivitySpeaker, Command, Refusal, Speaker } from '../kernel/command.js'
import type { Failure } from '../kernel/failure.js'
import { toJson } from '../kernel/json.js'
import { backoffMs } from '../kernel/retry.js'
import type { ActivityRecord, TurnWork } from '../kernel/state.js'
import type { ActivityOptions } from '../models/activity-port.js'
import { CodedFailure, failureOf, tooLarge } from '../define/failure-of.js'
import type { ActivityOutcome, Seam } from './seam.js'
import type { Clock } from './tutti.js'

/** What an execution needs of the engine. */
export interface ActivityPort {
  readonly clock: Clock
  readonly speaker: Speaker
  /** `nonce/run/branch/turn`, and the number of rejections after one: the same on every attempt. */
  readonly keyPrefix: string
  readonly maxValue: number
  readonly later: Seam['later']
  submit(command: Command): Promise<{ readonly refusal?: Refusal | undefined }>
  /** Whether this process still owns the run. */
  mayStart(): boolean | Promise<boolean>
  /** What it comes to, if a harness knows that: then it is not performed. */
  known(speaker: ActivitySpeaker): Promise<ActivityOutcome> | null
  context(idempotencyKey: string, attempt: number, signal: () => AbortSignal): ActivityContext
  /** Durable sleeps don't count against the attempt's timeout. */
  onSleeping(sleeping: boolean): void
  /** The body has asked for something else than the journal says: the attempt is over. */
  onBroken(error: Error): void
}

interface Call {
  readonly key: string
  readonly name: string
  /** How many results the body had been given when it called. */
  readonly delivered: number
  readonly resolve: (value: unknown) => void
  readonly reject: (error: unknown) => void
  readonly start: (call: Call) => void
}

type Run = (ctx: ActivityContext) => Maybe<unknown>

const once = Object.freeze({ attempts: 1, backoffMs: 0, factor: 2, maxBackoffMs: 30_000 })

// Which execution's step this code runs inside of, to refuse a step inside a step.
const insideStep = new AsyncLocalStorage<Activities>()

/**
 * The activities of one execution of a turn (ENGINE §2).
 *
 * 1. Results reach the body one per macrotask, in journal order, live as on replay.
 * 2. A call that has no record starts only after all recorded results are delivered.
 * 3. A result is delivered only after it is durable.
 * 4. After an abort nothing more is delivered: every open and later call rejects with the reason.
 */
export class Activities {
  readonly #port: ActivityPort
  /** Results in journal order, those of an earlier execution first. */
  readonly #results: ActivityRecord[]
  readonly #replayed: number
  /** What the journal knows of this attempt and earlier ones that threw, by key. */
  readonly #known: Map<string, ActivityRecord>
  readonly #earlier: ReadonlyMap<string, ActivityRecord>
  readonly #calls = new Map<string, Call>()
  readonly #waiting: Call[] = []
  readonly #occurrences = new Map<string, number>()
  readonly #used = new Set<string>()
  /** The keys of the sleeps that are slept now. */
  readonly #sleeps = new Set<string>()
  #running = 0
  /** Who waits for the last of them. */
  readonly #quiet: (() => void)[] = []
  /** Of the steps that have asked for their signal. */
  readonly #controllers = new Set<AbortController>()
  #aborted: { readonly reason: unknown } | null = null
  #delivered = 0
  #sleeping = 0
  #pumping = false
  #idle = 0
  #lastAt: number

  constructor(port: ActivityPort, work: TurnWork | undefined, startedAt: number) {
    this.#port = port
    const records = [...(work?.records.values() ?? [])]
    this.#results = records.filter(({ status }) => status === 'completed' || status === 'failed').sort((a, b) => a.order - b.order)
    this.#replayed = this.#results.length
    this.#known = new Map(records.map((record) => [record.key, record]))
    this.#earlier = new Map(work?.earlier.entries() ?? [])
    this.#lastAt = startedAt
  }

  /** The time of the last delivered event. */
  get now(): number {
    return this.#lastAt
  }

  /** Whether a step of this name will be given back before any other: it was the first of this attempt, or an earlier attempt has it. */
  beginsWith(name: string): boolean {
    if (this.#replayed > 0) return this.#results[0]?.name === name
    return this.#earlier.get(`${name}#0`)?.status === 'completed'
  }

  get delivered(): number {
    return this.#delivered
  }

  step(name: string, run: (ctx: ActivityContext) => Maybe<unknown>, options: ActivityOptions = {}): Promise<unknown> {
    if (insideStep.getStore() === this)
      throw new TuttiError('NESTED_STEP', `the step '${name}' is called inside another step`, {
        hint: 'call it from the turn itself, before or after the other',
      })
    const key = this.#keyOf(name, options.key)
    return this.#call(key, name, (call) => void this.#execute(call, run, options))
  }

  sleep(ms: number): Promise<void> {
    if (!(Number.isFinite(ms) && ms >= 0)) throw new TypeError(`sleep takes a number of milliseconds, not ${String(ms)}`)
    const key = this.#keyOf('sleep', undefined)
    return this.#call(key, 'sleep', (call) => {
      this.#sleeps.add(key)
      this.#setSleeping(1)
      if (this.#known.get(key)?.status === 'sleeping') return
      void this.#record({ type: 'sleep.start', ...this.#speakerOf(call), ms })
    }) as Promise<void>
  }

  /** Whether the body waits for nothing but durable sleeps, as far as can be known of it. */
  get isAsleep(): boolean {
    const quiet = !this.#pumping && this.#running === 0 && this.#delivered === this.#results.length
    return quiet && this.#sleeps.size > 0 && this.#calls.size === this.#sleeps.size
  }

  /** A result is durable: it is delivered when its turn comes. */
  recorded(record: ActivityRecord): void {
    if (record.status !== 'completed' && record.status !== 'failed') return
    this.#known.set(record.key, record)
    this.#results.push(record)
    this.#pump()
  }

  abort(reason: unknown): void {
    if (this.#aborted !== null) return
    this.#aborted = { reason }
    for (const controller of this.#controllers) controller.abort(reason)
    for (const call of this.#calls.values()) call.reject(reason)
    this.#calls.clear()
    this.#waiting.length = 0
  }

  /** The body has ended: what it started and did not wait for is aborted and awaited. Throws if it left records unasked for. */
  async end(): Promise<void> {
    const unasked = this.#delivered < this.#replayed && this.#aborted === null
    // Whoever keeps the turn beyond its end can start nothing more with it.
    this.abort(new Error('the turn has ended'))
    if (this.#running > 0) await new Promise<void>((resolve) => this.#quiet.push(resolve))
    if (unasked) throw nondeterministic(this.#unasked('the turn ended'))
  }

  #keyOf(name: string, explicit: string | undefined): string {
    if (typeof name !== 'string' || name === '') throw new TypeError('a step needs a name')
    if (explicit !== undefined && (typeof explicit !== 'string' || explicit === ''))
      throw new TypeError(`the key of the step '${name}' must be a text`)
    const key = explicit ?? this.#nextOf(name)
    if (this.#used.has(key))
      throw new TuttiError('DUPLICATE_STEP_KEY', `the step key '${key}' is used twice in one turn`, {
        hint: 'give each step a key of its own',
      })
    this.#used.add(key)
    return key
  }

  #nextOf(name: string): string {
    const occurrence = this.#occurrences.get(name) ?? 0
    this.#occurrences.set(name, occurrence + 1)
    return `${name}#${occurrence}`
  }

  #call(key: string, name: string, start: Call['start']): Promise<unknown> {
    const promise = new Promise<unknown>((resolve, reject) => {
      if (this.#aborted !== null) return reject(this.#aborted.reason)
      const call: Call = { key, name, delivered: this.#delivered, resolve, reject, start }
      const problem = this.#differs(call)
      if (problem !== null) return this.#break(problem, reject)
      this.#calls.set(key, call)
      const known = this.#known.get(key)
      if (known === undefined || known.status === 'started' || known.status === 'sleeping') this.#waiting.push(call)
      this.#pump()
    })
    // A body that is aborted may never look at this one: it must not count as unhandled.
    promise.catch(() => {})
    return promise
  }

  /** Why a call is not the one that the journal has under its key; null if it is, or is not there. */
  #differs(call: Call): string | null {
    const known = this.#known.get(call.key)
    if (known === undefined) return null
    if (known.name !== call.name) return `the step '${call.key}' was recorded as '${known.name}' and is now called '${call.name}'`
    const repeated =
      (this.#occurrences.get(call.name) ?? 0) > 1 || [...this.#known.values()].filter(({ name }) => name === call.name).length > 1
    if (repeated && known.delivered !== call.delivered)
      return `the step '${call.key}' was called after ${known.delivered} results and is now called after ${call.delivered}`
    return null
  }

  #break(problem: string, reject?: (error: unknown) => void): void {
    const error = nondeterministic(problem)
    reject?.(error)
    this.abort(error)
    this.#port.onBroken(error)
  }

  #unasked(instead: string): string {
    return `the step '${this.#results[this.#delivered]?.key}' is recorded and was not called for; instead, ${instead}`
  }

  #pump(): void {
    if (this.#pumping || this.#aborted !== null) return
    const next = this.#results[this.#delivered]
    if (next !== undefined && this.#calls.has(next.key)) return this.#later(() => this.#deliver(next))
    if (this.#delivered >= this.#replayed) return this.#startWaiting()
    // A record's turn has come, nobody has called for it, and somebody waits for what comes after it.
    const [other] = this.#calls.keys()
    if (other !== undefined) this.#later(() => (++this.#idle > 2 ? this.#break(this.#unasked(`'${other}' was called`)) : undefined))
  }

  #later(what: () => void): void {
    this.#pumping = true
    this.#port.later(() => {
      this.#pumping = false
      if (this.#aborted === null) what()
      this.#pump()
    })
  }

  #deliver(record: ActivityRecord): void {
    const call = this.#calls.get(record.key)
    if (call === undefined) return
    this.#calls.delete(record.key)
    this.#delivered++
    this.#idle = 0
    this.#lastAt = record.at
    if (this.#sleeps.delete(record.key)) this.#setSleeping(-1)
    if (record.status === 'failed') call.reject(errorOf(record.error))
    else if (record.status === 'completed') call.resolve(record.value)
  }

  #startWaiting(): void {
    if (this.#waiting.length > 0) for (const call of this.#waiting.splice(0)) call.start(call)
  }

  #setSleeping(by: 1 | -1): void {
    const before = this.#sleeping
    this.#sleeping = Math.max(0, before + by)
    if (before > 0 !== this.#sleeping > 0) this.#port.onSleeping(this.#sleeping > 0)
  }

  #speakerOf({ key, name, delivered }: Call): ActivitySpeaker {
    const { branch, agent, turn, attempt } = this.#port.speaker
    return { branch, agent, turn, attempt, key, name, delivered }
  }

  async #record(command: Command): Promise<boolean> {
    const { refusal } = await this.#port.submit(command)
    return refusal === undefined
  }

  async #execute(call: Call, run: Run, options: ActivityOptions): Promise<void> {
    this.#running++
    try {
      const command = await this.#outcome(this.#speakerOf(call), run, options)
      // What was done after the abort is used for nothing, but if it can be undone, it must be known.
      const counts = this.#aborted === null || (options.undo !== undefined && command?.type === 'activity.complete')
      if (command !== null && counts) await this.#port.submit(command)
    } catch (error) {
      this.#port.onBroken(error instanceof Error ? error : new Error(String(error)))
    } finally {
      if (--this.#running === 0) for (const go of this.#quiet.splice(0)) go()
    }
  }

  /** Runs the activity, with its retries inside it, and gives what is to be recorded. */
  async #outcome(speaker: ActivitySpeaker, run: Run, options: ActivityOptions): Promise<Command | null> {
    const earlier = this.#reusable(speaker, options)
    if (earlier?.status === 'completed') return givenBack(speaker, earlier)
    if (!(await this.#port.mayStart())) return null
    const start = await this.#start(speaker, options)
    if (start === 'unknown') return { type: 'activity.fail', ...speaker, error: unknownOutcome(speaker.name) }
    if (start === 'refused') return null
    const retry = options.retry === undefined ? once : { ...once, ...options.retry }
    for (let attempt = 1; ; attempt++) {
      // It may have been aborted while its start was recorded, or while it waited for its next attempt.
      if (this.#aborted !== null) return null
      const result = await (this.#port.known(speaker) ?? this.#attempt(speaker, run, options, attempt))
      const failed = 'error' in result
      const again =
        failed && attempt < retry.attempts && this.#aborted === null && result.retryable && (options.retry?.if?.(result.error) ?? true)
      if (!again) return outcomeOf(speaker, result, options)
      const controller = this.#controller()
      const backoff = backoffMs(retry, attempt, `${this.#port.keyPrefix}/${speaker.key}/${attempt}`)
      await this.#port.clock.sleep(options.waitMs?.(result.error) ?? backoff, controller.signal)
      this.#controllers.delete(controller)
    }
  }

  /** Records the start of what must not be repeated, can be undone, or uses what is limited. */
  async #start(speaker: ActivitySpeaker, { idempotent, undo, reserve }: ActivityOptions): Promise<'go' | 'unknown' | 'refused'> {
    const here = this.#known.get(speaker.key)?.status === 'started'
    if (idempotent === false && (here || this.#earlier.get(speaker.key)?.status === 'started')) return 'unknown'
    if (here || (idempotent !== false && undo === undefined && reserve === undefined)) return 'go'
    const marks = { ...(undo !== undefined && { undo }), ...(reserve !== undefined && { reserve }) }
    return (await this.#record({ type: 'activity.start', ...speaker, ...marks })) ? 'go' : 'refused'
  }

  /** After a throw, a retry is given an earlier success back if its key is explicit or its name occurred once. */
  #reusable(speaker: ActivitySpeaker, options: ActivityOptions): ActivityRecord | undefined {
    const found = this.#earlier.get(speaker.key)
    if (found === undefined || found.name !== speaker.name) return undefined
    const occurred = [...this.#earlier.values()].filter(({ name }) => name === speaker.name).length
    return options.key !== undefined || occurred === 1 ? found : undefined
  }

  async #attempt(
    speaker: ActivitySpeaker,
    run: Run,
    options: ActivityOptions,
    attempt: number,
  ): Promise<{ readonly value: unknown } | { readonly error: Failure; readonly retryable: boolean }> {
    const { name } = speaker
    let own: AbortController | null = null
    const signalled = (): AbortController => (own ??= this.#controller())
    const timer = options.timeoutMs === undefined ? null : new AbortController()
    try {
      const ctx = this.#port.context(`${this.#port.keyPrefix}/${speaker.key}`, attempt, () => signalled().signal)
      const body = insideStep.run(this, run, ctx)
      const json = toJson(
        await (timer === null ? body : Promise.race([body, this.#timeout(name, options.timeoutMs ?? 0, signalled(), timer.signal)])),
      )
      if ('size' in json && json.size > this.#port.maxValue)
        throw tooLarge(`the result of the step '${name}'`, json.size, this.#port.maxValue)
      if ('problem' in json)
        throw new CodedFailure({
          code: 'AGENT_FAILED',
          message: `the result of the step '${name}' is no JSON at ${json.path}: ${json.problem}`,
          retryable: false,
          at: {},
        })
      return json
    } catch (thrown) {
      const error = failureOf(thrown)
      return { error, retryable: error.retryable }
    } finally {
      // A reason spares the making of an error that nobody looks at.
      timer?.abort('it has ended')
      if (own !== null) this.#controllers.delete(own)
    }
  }

  /** A controller that is aborted with the turn. */
  #controller(): AbortController {
    const made = new AbortController()
    if (this.#aborted === null) this.#controllers.add(made)
    else made.abort(this.#aborted.reason)
    return made
  }

  async #timeout(name: string, ms: number, own: AbortController, signal: AbortSignal): Promise<never> {
    await this.#port.clock.sleep(ms, signal)
    if (signal.aborted) return new Promise(() => {})
    const failure: Failure = { code: 'TIMEOUT', message: `the step '${name}' took longer than ${ms} ms`, retryable: true, at: {} }
    const error = new CodedFailure(failure)
    own.abort(error)
    throw error
  }
}

type Result = { readonly value: unknown } | { readonly error: Failure }

/** What is to be recorded of an activity that has ended. */
function outcomeOf(speaker: ActivitySpeaker, result: Result, options: ActivityOptions): Command {
  const usage = options.usage?.(result)
  const used = usage === undefined ? {} : { usage }
  if ('error' in result) return { type: 'activity.fail', ...speaker, error: result.error, ...used }
  return { type: 'activity.complete', ...speaker, ...(result.value !== undefined && { value: result.value }), ...used }
}

/** A success of an earlier attempt is recorded again for this one; what it used has been counted. */
function givenBack(speaker: ActivitySpeaker, { value, usage }: ActivityRecord & { readonly status: 'completed' }): Command {
  const used = usage === undefined ? {} : { usage: { calls: usage.calls, inputTokens: 0, outputTokens: 0 } }
  return { type: 'activity.complete', ...speaker, ...(value !== undefined && { value }), ...used }
}

function nondeterministic(message: string): CodedFailure {
  return new CodedFailure({
    code: 'NONDETERMINISTIC_TURN',
    message: `the turn did not ask for what its journal has: ${message}`,
    retryable: false,
    at: {},
  })
}

function unknownOutcome(name: string): Failure {
  return {
    code: 'ACTIVITY_OUTCOME_UNKNOWN',
    message: `the step '${name}' must not be repeated, it was started before, and nobody knows whether it completed`,
    retryable: false,
    at: {},
  }
}

/** A recorded failure as the body catches it: the same on every execution. */
function errorOf(failure: Failure): Error {
  if (failure.code !== 'AGENT_FAILED') return new CodedFailure(failure)
  const error = new Error(failure.message)
  if (typeof failure.data === 'object' && failure.data !== null) Object.assign(error, failure.data)
  return error
}
