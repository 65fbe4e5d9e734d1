import { AsyncLocalStorage } from 'node:async_hooks'
import type { Maybe } from '../define/maybe.js'
import { andThen, settle } from '../define/maybe.js'
import { wantsRetry } from '../define/retry.js'
import type { Resource } from '../define/resource.js'
import { TuttiError } from '../define/tutti-error.js'
import type { ActivityContext } from '../define/work.js'
import type { ActivitySpeaker, Command, Refusal } from '../kernel/command.js'
import type { Event } from '../kernel/event.js'
import type { Failure } from '../kernel/failure.js'
import { backoffMs } from '../kernel/retry.js'
import type { ActivityRecord, Attempt, TurnWork } from '../kernel/state.js'
import type { ActivityOptions } from '../models/activity-port.js'
import { CodedFailure } from '../define/failure-of.js'
import { thrownText } from '../kernel/thrown-text.js'
import { errorOf, failedWith, givenBack, mayBeDone, nondeterministic, outcomeOf, resultOf, unknownOutcome } from './activity-outcome.js'
import type { ExecutionPort } from './execution.js'
import type { ActivityOutcome } from './seam.js'

/** What the activities of a turn need of its run. */
export type ActivityPort = Pick<ExecutionPort, 'clockOf' | 'maxValue' | 'graceMs' | 'later' | 'mayGoOn' | 'known'>

/** Whose activities they are: one execution of a turn. */
export interface ActivityOwner {
  readonly attempt: Attempt
  use<T>(resource: Resource<T>): T
  emit(data: unknown): void
  /** `nonce/run/branch/turn`, and the number of rejections after one: the same on every attempt. */
  idempotencyKey(): string
  /** Says something; `settled` is told, once, whether it was refused. */
  say(command: Command, settled: (outcome: { readonly refusal?: Refusal | undefined }) => void): void
  /** Durable sleeps don't count against the attempt's timeout. */
  onSleeping(sleeping: boolean): void
  /** The body has asked for something else than the journal says: the attempt is over. */
  onBroken(error: Error): void
  /** It was told to stop, and is fenced off when its grace is over. */
  readonly isAborted: boolean
}

const nothing = (): void => {}

/** A body has asked for the result of an activity. */
class Call {
  readonly key: string
  readonly name: string
  /** How many results the body had been given when it called. */
  readonly delivered: number
  readonly start: (call: Call) => void
  readonly promise: Promise<unknown>
  give: (value: unknown) => void = nothing
  #reject: (error: unknown) => void = nothing

  constructor(key: string, name: string, delivered: number, start: (call: Call) => void) {
    this.key = key
    this.name = name
    this.delivered = delivered
    this.start = start
    this.promise = new Promise((resolve, reject) => {
      this.give = resolve
      this.#reject = reject
    })
  }

  fail(error: unknown): void {
    // A body that is aborted may never look at this one: it must not count as unhandled.
    this.promise.catch(nothing)
    this.#reject(error)
  }
}

/** What an activity is given. Its signal is made only when it is asked for. */
class Context implements ActivityContext {
  readonly idempotencyKey: string
  readonly attempt: number
  readonly use: ActivityContext['use']
  readonly emit: ActivityContext['emit']
  readonly #signalled: () => AbortController

  constructor(key: string, attempt: number, use: ActivityContext['use'], emit: ActivityContext['emit'], signalled: () => AbortController) {
    this.idempotencyKey = key
    this.attempt = attempt
    this.use = use
    this.emit = emit
    this.#signalled = signalled
    Object.freeze(this)
  }

  get signal(): AbortSignal {
    return this.#signalled().signal
  }
}

type Run = (ctx: ActivityContext) => Maybe<unknown>

/** The result of an activity, as it was recorded. */
export type Recorded = Extract<Event, { type: 'activity.completed' | 'activity.failed' }>

/** An activity that is to be executed. */
interface Task {
  readonly speaker: ActivitySpeaker
  readonly run: Run
  readonly options: ActivityOptions
}

/** So often a record whose turn has come is looked for in macrotasks that follow each other, and then every few milliseconds. */
const looksAtOnce = 3
const lookMs = 10
/** For how long, at least and at most. */
const patienceMs = 1_000
const patienceMaxMs = 60_000

const once = Object.freeze({ attempts: 1, backoffMs: 0, factor: 2, maxBackoffMs: 30_000 })

// Which execution's step this code runs inside of: what happens there does not happen again once the step is recorded.
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
  readonly #owner: ActivityOwner
  readonly #keyPrefix: string
  readonly #use: ActivityContext['use'] = (resource) => this.#owner.use(resource)
  readonly #emit: ActivityContext['emit'] = (data) => this.#owner.emit(data)
  /** Results in journal order, those of an earlier execution first. */
  readonly #results: ActivityRecord[]
  readonly #replayed: number
  /** What the journal knows of this attempt and earlier ones that threw, by key. */
  readonly #known: Map<string, ActivityRecord>
  /** How many records of this attempt each name has. */
  readonly #recordsOf: Map<string, number>
  readonly #earlier: TurnWork['earlier'] | undefined
  #earlierOf: ReadonlyMap<string, number> | null = null
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

  constructor(port: ActivityPort, owner: ActivityOwner, work: TurnWork | undefined) {
    this.#port = port
    this.#owner = owner
    this.#keyPrefix = owner.idempotencyKey()
    const records = [...(work?.records.values() ?? [])]
    this.#results = records.filter(({ status }) => status === 'completed' || status === 'failed').sort((a, b) => a.order - b.order)
    this.#replayed = this.#results.length
    this.#known = new Map(records.map((record) => [record.key, record]))
    this.#recordsOf = countNames(records)
    this.#earlier = work?.earlier
    this.#lastAt = owner.attempt.at
  }

  /** The time of the last delivered event. */
  get now(): number {
    return this.#lastAt
  }

  /** Whether a step of this name will be given back before any other: it was the first of this attempt, or an earlier attempt has it. */
  beginsWith(name: string): boolean {
    if (this.#replayed > 0) return this.#results[0]?.name === name
    return this.#earlier?.get(`${name}#0`)?.status === 'completed'
  }

  get delivered(): number {
    return this.#delivered
  }

  /** Whether the journal has what came of the step of this key. */
  has(key: string): boolean {
    const status = this.#known.get(key)?.status
    return status === 'completed' || status === 'failed'
  }

  step(name: string, run: (ctx: ActivityContext) => Maybe<unknown>, options: ActivityOptions = {}): Promise<unknown> {
    this.#checkOutside(`the step '${name}'`)
    const key = this.#keyOf(name, options.key)
    return this.#call(key, name, (call) => this.#execute({ speaker: this.#speakerOf(call), run, options }))
  }

  sleep(ms: number): Promise<void> {
    this.#checkOutside('a sleep')
    if (!(Number.isFinite(ms) && ms >= 0)) throw new TypeError(`sleep takes a number of milliseconds, not ${String(ms)}`)
    const key = this.#keyOf('sleep', undefined)
    return this.#call(key, 'sleep', (call) => {
      this.#sleeps.add(key)
      this.#setSleeping(1)
      if (this.#known.get(key)?.status === 'sleeping') return
      this.#owner.say({ type: 'sleep.start', ...this.#speakerOf(call), ms }, nothing)
    }) as Promise<void>
  }

  /** What is recorded inside of a step would not be asked for again once the step itself is recorded. */
  #checkOutside(what: string): void {
    if (this.isInside)
      throw new TuttiError('NESTED_STEP', `${what} is called inside another step`, {
        hint: 'call it from the turn itself, before or after the other',
      })
  }

  /** Whether whoever asks runs inside of a step of this turn. */
  get isInside(): boolean {
    return insideStep.getStore() === this
  }

  /** Whether the body waits for nothing but durable sleeps, as far as can be known of it. */
  get isAsleep(): boolean {
    const quiet = !this.#pumping && this.#running === 0 && this.#delivered === this.#results.length
    return quiet && this.#sleeps.size > 0 && this.#calls.size === this.#sleeps.size
  }

  /** A result is durable: it is delivered when its turn comes. */
  recorded(event: Recorded): void {
    const { key, name, delivered, at } = event
    const record: ActivityRecord =
      event.type === 'activity.failed'
        ? { status: 'failed', key, name, order: 0, delivered, at, error: event.error }
        : { status: 'completed', key, name, order: 0, delivered, at, value: event.value }
    if (!this.#known.has(key)) this.#recordsOf.set(name, (this.#recordsOf.get(name) ?? 0) + 1)
    this.#known.set(key, record)
    this.#results.push(record)
    this.#pump()
  }

  abort(reason: unknown): void {
    if (this.#aborted !== null) return
    this.#aborted = { reason }
    for (const controller of this.#controllers) controller.abort(reason)
    for (const call of this.#calls.values()) call.fail(reason)
    this.#calls.clear()
    this.#waiting.length = 0
  }

  /** The body has ended: what it started and did not wait for is aborted, and awaited for its grace. Throws if it left records unasked for. */
  end(): Maybe<void> {
    const unasked = this.#aborted === null ? this.#leftUnasked() : null
    // Whoever keeps the turn beyond its end can start nothing more with it.
    this.abort(new Error('the turn has ended'))
    return andThen(this.#running === 0 ? undefined : this.#quieted(), () => {
      if (unasked !== null) throw nondeterministic(unasked)
    })
  }

  /** Nothing that was started runs any more, or it ignores its signal: what that comes to is used for nothing. */
  async #quieted(): Promise<void> {
    const grace = new AbortController()
    const quiet = new Promise<void>((resolve) => this.#quiet.push(resolve))
    await Promise.race([quiet, this.#sleep(this.#port.graceMs, grace.signal)])
    grace.abort()
    // Nobody knows what this has done, and that its attempt has ended would say that it was nothing.
    if (this.#owner.isAborted) await quiet
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
    const call = new Call(key, name, this.#delivered, start)
    if (this.#aborted !== null) call.fail(this.#aborted.reason)
    else {
      const known = this.#known.get(key)
      const problem = known === undefined ? null : this.#differs(call, known)
      if (problem !== null) this.#break(problem, call)
      else {
        this.#calls.set(key, call)
        const starts = known === undefined || known.status === 'started' || known.status === 'sleeping'
        // Mostly there is nothing to wait for.
        if (starts && !this.#pumping && this.#delivered === this.#results.length) call.start(call)
        else {
          if (starts) this.#waiting.push(call)
          this.#pump()
        }
      }
    }
    return call.promise
  }

  /** Why a call is not the one that the journal has under its key; null if it is. */
  #differs(call: Call, known: ActivityRecord): string | null {
    if (known.name !== call.name) return `the step '${call.key}' was recorded as '${known.name}' and is now called '${call.name}'`
    const repeated = (this.#occurrences.get(call.name) ?? 0) > 1 || (this.#recordsOf.get(call.name) ?? 0) > 1
    if (repeated && known.delivered !== call.delivered)
      return `the step '${call.key}' was called after ${known.delivered} results and is now called after ${call.delivered}`
    return null
  }

  #break(problem: string, call?: Call): void {
    const error = nondeterministic(problem)
    call?.fail(error)
    this.abort(error)
    this.#owner.onBroken(error)
  }

  /** What is wrong with a body that has ended, if something is. What it asked for and did not wait for is not: it lost a race, or nobody needs it. */
  #leftUnasked(): string | null {
    for (let place = this.#delivered; place < this.#replayed; place++) {
      const record = this.#results[place]
      if (record !== undefined && !this.#calls.has(record.key)) return unasked(record, 'the turn ended')
    }
    return null
  }

  /**
   * For how many looks a record waits to be called for while something else waits for it. A body may be about something that is no step: it
   * is given what it took the first time, and more, because nobody can know whether it will ever call.
   */
  #patience({ at }: ActivityRecord): number {
    return looksAtOnce + Math.min(patienceMaxMs, patienceMs + 2 * Math.max(0, at - this.#lastAt)) / lookMs
  }

  /** Sees to it that what can go on does: the next result in the next macrotask, what has no record when there is none to wait for. */
  #pump(): void {
    if (this.#pumping || this.#aborted !== null) return
    const next = this.#results[this.#delivered]
    const isDue = next !== undefined && this.#calls.has(next.key)
    if (!isDue && this.#delivered >= this.#replayed) return this.#startWaiting()
    // Either a result is due, or a record's turn has come, nobody has called for it, and somebody waits for what comes after it.
    if (!isDue && this.#calls.size === 0) return
    this.#pumping = true
    this.#port.later(this.#tick, isDue || this.#idle < looksAtOnce ? undefined : lookMs)
  }

  readonly #tick = (): void => {
    this.#pumping = false
    if (this.#aborted === null) {
      const next = this.#results[this.#delivered]
      const call = next === undefined ? undefined : this.#calls.get(next.key)
      if (next !== undefined && call !== undefined) this.#deliver(next, call)
      else if (next !== undefined && ++this.#idle > this.#patience(next))
        this.#break(unasked(next, `'${[...this.#calls.keys()][0]}' was called`))
    }
    this.#pump()
  }

  #deliver(record: ActivityRecord, call: Call): void {
    this.#calls.delete(record.key)
    this.#delivered++
    this.#idle = 0
    this.#lastAt = record.at
    if (this.#sleeps.delete(record.key)) this.#setSleeping(-1)
    if (record.status === 'failed') call.fail(errorOf(record.error))
    else if (record.status === 'completed') call.give(record.value)
  }

  #startWaiting(): void {
    if (this.#waiting.length > 0) for (const call of this.#waiting.splice(0)) call.start(call)
  }

  #setSleeping(by: 1 | -1): void {
    const before = this.#sleeping
    this.#sleeping = Math.max(0, before + by)
    if (before > 0 !== this.#sleeping > 0) this.#owner.onSleeping(this.#sleeping > 0)
  }

  #speakerOf({ key, name, delivered }: Call): ActivitySpeaker {
    const { branch, agent, turn, attempt } = this.#owner.attempt
    return { branch, agent, turn, attempt, key, name, delivered }
  }

  /** The activity is over, in whatever way: whoever waits for the last of them goes on. */
  #leave(): void {
    if (--this.#running === 0) for (const go of this.#quiet.splice(0)) go()
  }

  /** What is wrong with the code around an activity ends the attempt. */
  #spoil(thrown: unknown): void {
    this.#owner.onBroken(thrown instanceof Error ? thrown : new Error(thrownText(thrown)))
    this.#leave()
  }

  #execute(task: Task): void {
    this.#running++
    const { speaker, options } = task
    const earlier = this.#reusable(speaker, options)
    if (earlier?.status === 'completed') return this.#record(givenBack(speaker, earlier))
    settle(
      () => this.#port.mayGoOn(),
      (may) => (may ? this.#start(task) : this.#leave()),
      (thrown) => this.#spoil(thrown),
    )
  }

  /** Records the start of what must not be repeated, can be undone, or uses what is limited. */
  #start(task: Task): void {
    const { speaker, options } = task
    const { idempotent, undo, reserve } = options
    const here = this.#known.get(speaker.key)?.status === 'started'
    // What an earlier attempt has left and could not be given back may be this one, and done.
    const left = this.#earlier?.get(speaker.key)
    if (idempotent === false && (here || left !== undefined))
      return this.#record({ type: 'activity.fail', ...speaker, error: unknownOutcome(speaker, left) })
    if (here || (idempotent !== false && undo === undefined && reserve === undefined)) return this.#try(task, 1)
    const marks = { ...(undo !== undefined && { undo }), ...(reserve !== undefined && { reserve }) }
    this.#owner.say({ type: 'activity.start', ...speaker, ...marks }, ({ refusal }) => {
      if (refusal !== undefined) return this.#leave()
      // Not at once: whoever says so has others to tell before anything of a user runs.
      queueMicrotask(() => this.#try(task, 1))
    })
  }

  #try(task: Task, attempt: number): void {
    // It may have been aborted while its start was recorded, or while it waited for its next attempt.
    if (this.#aborted !== null) return this.#leave()
    const known = this.#port.known(task.speaker)
    if (known === null) return this.#attempt(task, attempt)
    settle(
      () => known,
      (result) => this.#tried(task, attempt, result),
      (thrown) => this.#spoil(thrown),
    )
  }

  /** Runs the activity once. */
  #attempt(task: Task, attempt: number): void {
    const { speaker, run, options } = task
    let own: AbortController | null = null
    const signalled = (): AbortController => (own ??= this.#controller())
    const timer = options.timeoutMs === undefined ? null : new AbortController()
    const ended = (result: ActivityOutcome): void => {
      // A reason spares the making of an error that nobody looks at.
      timer?.abort('it has ended')
      if (own !== null) this.#controllers.delete(own)
      this.#tried(task, attempt, result)
    }
    settle(
      () => {
        const ctx = new Context(`${this.#keyPrefix}/${speaker.key}`, attempt, this.#use, this.#emit, signalled)
        const body = andThen(insideStep.run(this, run, ctx), (value) => resultOf(speaker.name, value, options, this.#port.maxValue))
        if (timer === null) return body
        return Promise.race([body, this.#timeout(speaker.name, options, signalled(), timer.signal)])
      },
      ended,
      (thrown) => ended(failedWith(thrown, this.#port.maxValue)),
    )
  }

  /** Retries happen inside of the activity; what is recorded is what it came to in the end. */
  #tried(task: Task, attempt: number, result: ActivityOutcome): void {
    const { speaker, options } = task
    try {
      if ('error' in result && this.#mayRetry(options, attempt, result)) return this.#again(task, attempt, result.error)
      const command = outcomeOf(speaker, result, options)
      // What was done after the abort is used for nothing, but if it can be undone, it must be known.
      const counts = this.#aborted === null || (options.undo !== undefined && command.type === 'activity.complete')
      return counts ? this.#record(command) : this.#leave()
    } catch (thrown) {
      this.#spoil(thrown)
    }
  }

  #record(command: Command): void {
    this.#owner.say(command, () => this.#leave())
  }

  #mayRetry({ retry }: ActivityOptions, attempt: number, { error, retryable }: Extract<ActivityOutcome, { error: Failure }>): boolean {
    return (
      retryable &&
      retry !== undefined &&
      attempt < (retry.attempts ?? once.attempts) &&
      this.#aborted === null &&
      wantsRetry(retry.if, error)
    )
  }

  #again(task: Task, attempt: number, error: Failure): void {
    const { speaker, options } = task
    const controller = this.#controller()
    const signal = options.stop === undefined ? controller.signal : AbortSignal.any([controller.signal, options.stop])
    const backoff = backoffMs({ ...once, ...options.retry }, attempt, `${this.#keyPrefix}/${speaker.key}/${attempt}`)
    settle(
      () => this.#sleep(options.waitMs?.(error) ?? backoff, signal),
      () => {
        this.#controllers.delete(controller)
        this.#try(task, attempt + 1)
      },
      (thrown) => this.#spoil(thrown),
    )
  }

  /** After a throw, a retry is given an earlier success back if its key is explicit or its name occurred once. */
  #reusable(speaker: ActivitySpeaker, options: ActivityOptions): ActivityRecord | undefined {
    const found = this.#earlier?.get(speaker.key)
    if (found === undefined || found.name !== speaker.name) return undefined
    if (options.key !== undefined) return found
    this.#earlierOf ??= countNames(this.#earlier?.values() ?? [])
    return this.#earlierOf.get(speaker.name) === 1 ? found : undefined
  }

  #sleep(ms: number, signal: AbortSignal): Promise<void> {
    return this.#port.clockOf(this.#owner.attempt).sleep(ms, signal)
  }

  /** A controller that is aborted with the turn. */
  #controller(): AbortController {
    const made = new AbortController()
    if (this.#aborted === null) this.#controllers.add(made)
    else made.abort(this.#aborted.reason)
    return made
  }

  async #timeout(name: string, options: ActivityOptions, own: AbortController, signal: AbortSignal): Promise<never> {
    const ms = options.timeoutMs ?? 0
    await this.#sleep(ms, signal)
    if (signal.aborted) return new Promise(() => {})
    const failure: Failure = { code: 'TIMEOUT', message: `the step '${name}' took longer than ${ms} ms`, retryable: true, at: {} }
    const error = mayBeDone(new CodedFailure(failure), options)
    own.abort(error)
    throw error
  }
}

function countNames(records: readonly ActivityRecord[]): Map<string, number> {
  const counts = new Map<string, number>()
  for (const { name } of records) counts.set(name, (counts.get(name) ?? 0) + 1)
  return counts
}

const unasked = ({ key }: ActivityRecord, instead: string): string =>
  `the step '${key}' is recorded and was not called for; instead, ${instead}`
