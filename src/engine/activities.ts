import { AsyncLocalStorage } from 'node:async_hooks'
import type { Maybe } from '../define/maybe.js'
import { isLater, settle } from '../define/maybe.js'
import { retryShape, wantsRetry } from '../define/retry.js'
import type { Resource } from '../define/resource.js'
import { TuttiError } from '../define/tutti-error.js'
import type { ActivityContext } from '../define/work.js'
import type { ActivitySpeaker, Command, Refusal } from '../kernel/command.js'
import type { Event } from '../kernel/event.js'
import type { Failure } from '../kernel/failure.js'
import { backoffMs } from '../kernel/retry.js'
import type { ActivityRecord, Attempt, TurnWork } from '../kernel/state.js'
import type { Reserve } from '../kernel/usage.js'
import type { ActivityOptions } from '../models/activity-port.js'
import { Context, type ContextOwner } from './activity-context.js'
import { CalledStep, noOptions, type Run } from './called-step.js'
import { CodedFailure } from '../define/failure-of.js'
import { thrownText } from '../kernel/thrown-text.js'
import {
  errorOf,
  type FailedOutcome,
  failedWith,
  givenBack,
  mayBeDone,
  nondeterministic,
  outcomeOf,
  resultOf,
  unknownOutcome,
} from './activity-outcome.js'
import type { ExecutionPort } from './run-port.js'
import type { ActivityOutcome } from './seam.js'
import { turnOver } from './turn-over.js'

/** What the activities of a turn need of its run. */
export type ActivityPort = Pick<
  ExecutionPort,
  'clock' | 'clockOf' | 'maxValue' | 'graceMs' | 'later' | 'mayGoOn' | 'isWithinAbove' | 'isPlayed' | 'known' | 'returnedLate'
>

/** Whose activities they are: one execution of a turn. */
export interface ActivityOwner {
  readonly attempt: Attempt
  use<T>(resource: Resource<T>): T
  emit(data: unknown): void
  /** `nonce/run/branch/turn`, and the number of rejections after one: the same on every attempt. */
  idempotencyKey(): string
  /** Says something; `settled` is told, once, whether it was refused. */
  say(command: Command, settled: (outcome: { readonly refusal?: Refusal | undefined }) => void): void
  /** Whether all that its body waits for are durable sleeps has changed: they don't count against the attempt's timeout. */
  onSleeping(sleeping: boolean): void
  /** The body has asked for something else than the journal says: the attempt is over. */
  onBroken(error: Error): void
  /** It was told to stop, and is fenced off when its grace is over. */
  readonly isAborted: boolean
}

const nothing = (): void => {}

/** The result of an activity, as it was recorded. */
export type Recorded = Extract<Event, { type: 'activity.completed' | 'activity.failed' }>

/** So often a record whose turn has come is looked for in macrotasks that follow each other, and then every few milliseconds. */
const looksAtOnce = 3
const lookMs = 10
/** For how long, at least and at most. */
const patienceMs = 1_000
const patienceMaxMs = 60_000

// Which step this code runs inside of: what happens there does not happen again once the step is recorded.
const insideStep = new AsyncLocalStorage<Context>()

/**
 * The activities of one execution of a turn (ENGINE §2).
 *
 * 1. Results reach the body one per macrotask, in journal order, live as on replay.
 * 2. A call that has no record starts only after all recorded results are delivered.
 * 3. A result is delivered only after it is durable.
 * 4. After an abort nothing more is delivered: every open and later call rejects with the reason.
 *
 * A short process runs this a few thousand times, before it is compiled well, and many turns at once are many of these: so each step is
 * one object in one map, and what most turns don't need is not made for them.
 */
export class Activities implements ContextOwner {
  readonly use: ActivityContext['use']
  readonly emit: ActivityContext['emit']
  readonly #port: ActivityPort
  readonly #owner: ActivityOwner
  readonly #keyPrefix: string
  readonly #steps = new Map<string, CalledStep>()
  /** Those with a result, in journal order: those of an earlier execution first. */
  readonly #results: CalledStep[] = []
  readonly #replayed: number
  /** How many records of this attempt each name has; null if there were none to begin with: then each comes after its call, and is not compared with it. */
  readonly #recordsOf: Map<string, number> | null
  readonly #earlier: TurnWork['earlier'] | undefined
  readonly #waiting: CalledStep[] = []
  #occurrences: Map<string, number> | null = null
  #calls = 0
  /** How many steps the body waits for, and how many of them it only sleeps. */
  #open = 0
  #sleeping = 0
  /** Its owner was told that there are only sleeps. */
  #toldSleeping = false
  #running = 0
  /** Who waits for the last of them. */
  readonly #quiet: (() => void)[] = []
  /** Those at work of which the journal does not say so. */
  #untold: Set<CalledStep> | null = null
  /** Of the steps that have asked for their signal. */
  #controllers: Set<AbortController> | null = null
  /** It is over: gives the reason for whoever still asks for something. */
  #aborted: (() => unknown) | null = null
  #delivered = 0
  #pumping = false
  #idle = 0
  #lastAt: number

  constructor(port: ActivityPort, owner: ActivityOwner, work: TurnWork | undefined) {
    this.#port = port
    this.#owner = owner
    this.use = (resource) => owner.use(resource)
    this.emit = (data) => owner.emit(data)
    this.#keyPrefix = owner.idempotencyKey()
    const records = work?.records.values() ?? []
    for (const record of records) this.#steps.set(record.key, new CalledStep(record.key, record.name, record))
    const settled = records.filter(({ status }) => status === 'completed' || status === 'failed').sort((a, b) => a.order - b.order)
    for (const { key } of settled) this.#results.push(this.#steps.get(key) as CalledStep)
    this.#replayed = settled.length
    this.#recordsOf = records.length === 0 ? null : countNames(records)
    this.#earlier = work?.earlier
    this.#lastAt = owner.attempt.at
  }

  /** The time of the last delivered event. */
  get now(): number {
    return this.#lastAt
  }

  /** Whether a step of this name will be given back before any other: it was the first of this attempt, or of an earlier one. */
  beginsWith(name: string): boolean {
    if (this.#replayed > 0) return this.#results[0]?.name === name
    const earlier = this.#earlier?.get(`${name}#0`)
    return earlier?.status === 'completed' && earlier.order === 0
  }

  /** Whether this attempt or an earlier one has what came of the step of this key. */
  knows(key: string): boolean {
    return this.has(key) || this.#earlier?.get(key) !== undefined
  }

  /** Steps were called, and the body has been given nothing of them yet. */
  get awaitsFirst(): boolean {
    return this.#calls > 0 && this.#delivered === 0
  }

  get delivered(): number {
    return this.#delivered
  }

  /** The names that several steps without a key were called by. */
  get repeated(): readonly string[] {
    return [...(this.#occurrences ?? [])].flatMap(([name, times]) => (times > 1 ? [name] : []))
  }

  /** Whether the journal has what came of the step of this key. */
  has(key: string): boolean {
    const status = this.#steps.get(key)?.record?.status
    return status === 'completed' || status === 'failed'
  }

  idempotencyKey(key: string): string {
    return `${this.#keyPrefix}/${besideUndo(key)}`
  }

  step(name: string, run: Run, options: ActivityOptions = noOptions): Promise<unknown> {
    if (this.#inside !== null) throw nested(`the step '${name}'`)
    return this.#call(name, options.key, run, options, 0)
  }

  sleep(ms: number): Promise<void> {
    if (this.#inside !== null) throw nested('a sleep')
    if (!(Number.isFinite(ms) && ms >= 0)) throw new TypeError(`sleep takes a number of milliseconds, not ${String(ms)}`)
    return this.#call('sleep', undefined, null, noOptions, ms) as Promise<void>
  }

  /** The step of this turn that whoever asks runs inside of; null: none. */
  get #inside(): Context | null {
    const ctx = insideStep.getStore()
    return ctx !== undefined && Context.isOf(ctx, this) ? ctx : null
  }

  /** Which random number whoever asks draws next, if it runs inside of a step of this turn; null if it does not. */
  nextDrawnInside(): string | null {
    const ctx = this.#inside
    return ctx === null ? null : Context.nextDrawn(ctx)
  }

  /** Whether the body waits for nothing but durable sleeps, as far as can be known of it. */
  get isAsleep(): boolean {
    return this.#onlySleeps && !this.#pumping && this.#running === 0 && this.#delivered === this.#results.length
  }

  get #onlySleeps(): boolean {
    return this.#sleeping > 0 && this.#open === this.#sleeping
  }

  /** A result is durable: it is delivered when its turn comes. */
  recorded(event: Recorded): void {
    const { key, name, delivered, at } = event
    let step = this.#steps.get(key)
    if (step === undefined) {
      step = new CalledStep(key, name, null)
      this.#steps.set(key, step)
    }
    if (this.#recordsOf !== null && step.record === null) this.#recordsOf.set(name, (this.#recordsOf.get(name) ?? 0) + 1)
    step.record =
      event.type === 'activity.failed'
        ? { status: 'failed', key, name, order: 0, delivered, at, error: event.error }
        : { status: 'completed', key, name, order: 0, delivered, at, value: event.value }
    this.#results.push(step)
    this.#pump()
  }

  abort(reason: unknown): void {
    this.#stop(() => reason)
  }

  #stop(reasonOf: () => unknown): void {
    if (this.#aborted !== null) return
    this.#aborted = reasonOf
    if (this.#open === 0 && this.#controllers === null) return
    const reason = reasonOf()
    if (this.#controllers !== null) for (const controller of this.#controllers) controller.abort(reason)
    for (const step of this.#opened()) this.#close(step).fail(reason)
    this.#waiting.length = 0
  }

  /** The body has ended: what it started and did not wait for is aborted, and awaited for its grace. Throws if it left records unasked for. */
  end(): Maybe<void> {
    const unasked = this.#aborted === null ? this.#leftUnasked() : null
    // Whoever keeps the turn beyond its end can start nothing more with it.
    this.#stop(turnEnded)
    if (this.#running > 0)
      return this.#quieted().then(() => {
        if (unasked !== null) throw nondeterministic(unasked)
      })
    if (unasked !== null) throw nondeterministic(unasked)
  }

  /** Nothing that was started runs any more, or it ignores its signal: what that comes to is used for nothing. */
  async #quieted(): Promise<void> {
    const grace = new AbortController()
    const quiet = new Promise<void>((resolve) => this.#quiet.push(resolve))
    await Promise.race([quiet, this.#port.clock.sleep(this.#port.graceMs, grace.signal)])
    grace.abort()
    // Nobody knows what this has done, and that its attempt has ended would say that it was nothing.
    if (this.#owner.isAborted) await quiet
  }

  #keyOf(name: string, explicit: string | undefined): string {
    if (typeof name !== 'string' || name === '') throw new TypeError('a step needs a name')
    if (explicit === undefined) return this.#nextOf(name)
    if (typeof explicit !== 'string' || explicit === '') throw new TypeError(`the key of the step '${name}' must be a text`)
    return explicit
  }

  #nextOf(name: string): string {
    this.#occurrences ??= new Map()
    const occurrence = this.#occurrences.get(name) ?? 0
    this.#occurrences.set(name, occurrence + 1)
    return `${name}#${occurrence}`
  }

  #call(name: string, explicit: string | undefined, run: Run | null, options: ActivityOptions, ms: number): Promise<unknown> {
    const key = this.#keyOf(name, explicit)
    let step = this.#steps.get(key)
    if (step === undefined) {
      step = new CalledStep(key, name, null)
      this.#steps.set(key, step)
    } else if (step.call > 0)
      throw new TuttiError('DUPLICATE_STEP_KEY', `the step key '${key}' is used twice in one turn`, {
        hint: 'give each step a key of its own',
      })
    step.call = ++this.#calls
    step.delivered = this.#delivered
    step.run = run
    step.options = options
    step.ms = ms
    const promise = step.called()
    if (this.#aborted === null) this.#await(step, name)
    else step.fail(this.#aborted())
    return promise
  }

  /** The body waits for it: it begins, or comes when its turn does. */
  #await(step: CalledStep, name: string): void {
    const { record } = step
    const problem =
      (record === null ? null : this.#differs(step, name, record)) ?? (this.#recordsOf === null ? null : this.#firstDiffers(name))
    if (problem !== null) return this.#break(problem, step)
    step.isOpen = true
    this.#open++
    if (this.#sleeping > 0) this.#tellSleeping()
    const starts = record === null || record.status === 'started' || record.status === 'sleeping'
    // Mostly there is nothing to wait for.
    if (starts && !this.#pumping && this.#delivered === this.#results.length) return this.#begin(step)
    if (starts) this.#waiting.push(step)
    this.#pump()
  }

  #close(step: CalledStep): CalledStep {
    const before = this.#sleeping
    step.isOpen = false
    this.#open--
    if (step.isSleeping) this.#sleeping--
    step.isSleeping = false
    if (before > 0) this.#tellSleeping()
    return step
  }

  /** A body that is aborted is not timed any more. */
  #tellSleeping(): void {
    const onlySleeps = this.#onlySleeps
    if (onlySleeps === this.#toldSleeping || this.#aborted !== null) return
    this.#toldSleeping = onlySleeps
    this.#owner.onSleeping(onlySleeps)
  }

  /** Why a call is not the one that the journal has under its key; null if it is. */
  #differs(step: CalledStep, name: string, record: ActivityRecord): string | null {
    if (record.name !== name) return `the step '${step.key}' was recorded as '${record.name}' and is now called '${name}'`
    if (record.status === 'sleeping' && step.run !== null) return `'${step.key}' was recorded as a sleep and is now a step`
    if (record.status === 'started' && step.run === null) return `'${step.key}' was recorded as a step and is now a sleep`
    const repeated = (this.#occurrences?.get(name) ?? 0) > 1 || (this.#recordsOf?.get(name) ?? 0) > 1
    if (repeated && record.delivered !== step.delivered)
      return `the step '${step.key}' was called after ${record.delivered} results and is now called after ${step.delivered}`
    return null
  }

  /** A name that is called for the second time was repeated when it was called for the first: what was said of that one is looked at again. */
  #firstDiffers(name: string): string | null {
    if (this.#occurrences?.get(name) !== 2) return null
    const first = this.#steps.get(`${name}#0`)
    return first === undefined || first.record === null ? null : this.#differs(first, name, first.record)
  }

  #break(problem: string, step?: CalledStep): void {
    const error = turnOver(nondeterministic(problem))
    step?.fail(error)
    this.abort(error)
    this.#owner.onBroken(error)
  }

  /** What is wrong with a body that has ended, if something is. What it asked for and did not wait for is not: it lost a race, or nobody needs it. */
  #leftUnasked(): string | null {
    if (this.#recordsOf === null) return null
    for (let place = this.#delivered; place < this.#replayed; place++) {
      const step = this.#results[place]
      if (step !== undefined && !step.isOpen) return unasked(step, 'the turn ended')
    }
    // What was begun and has no result is recorded too.
    for (const step of this.#steps.values()) if (step.call === 0 && step.record !== null) return unasked(step, 'the turn ended')
    return null
  }

  /**
   * For how many looks a record waits to be called for while something else waits for it. A body may be about something that is no step: it
   * is given what it took the first time, and more, because nobody can know whether it will ever call.
   */
  #patience({ record }: CalledStep): number {
    const tookMs = Math.max(0, (record?.at ?? 0) - this.#lastAt)
    return looksAtOnce + Math.min(patienceMaxMs, patienceMs + 2 * tookMs) / lookMs
  }

  /** Sees to it that what can go on does: the next result in the next macrotask, what has no record when there is none to wait for. */
  #pump(): void {
    if (this.#pumping || this.#aborted !== null) return
    const next = this.#results[this.#delivered]
    const isDue = next !== undefined && next.isOpen
    if (next === undefined) {
      if (this.#waiting.length > 0) for (const step of this.#waiting.splice(0)) this.#begin(step)
      return
    }
    // Either a result is due, or a record's turn has come, nobody has called for it, and somebody waits for what comes after it.
    if (!isDue && this.#open === 0) return
    this.#pumping = true
    this.#port.later(this.#tick, isDue || this.#idle < looksAtOnce ? undefined : lookMs)
  }

  readonly #tick = (): void => {
    this.#pumping = false
    const next = this.#results[this.#delivered]
    if (this.#aborted === null && next !== undefined) {
      if (next.isOpen) this.#deliver(next)
      else if (++this.#idle > this.#patience(next)) this.#break(unasked(next, `'${this.#opened()[0]?.key}' was called`))
    }
    if (this.#waiting.length > 0 || this.#delivered < this.#results.length) this.#pump()
  }

  /** Those that the body waits for, in the order in which it has called them. */
  #opened(): CalledStep[] {
    return this.#open === 0 ? [] : [...this.#steps.values()].filter(({ isOpen }) => isOpen).sort((a, b) => a.call - b.call)
  }

  #deliver(step: CalledStep): void {
    const { record } = this.#close(step)
    this.#delivered++
    this.#idle = 0
    if (record === null) return
    this.#lastAt = record.at
    if (record.status === 'completed') step.give(record.value)
    else if (record.status === 'failed') step.fail(errorOf(record.error))
    step.letGo()
  }

  #speakerOf({ key, name, delivered }: CalledStep): ActivitySpeaker {
    const { branch, agent, turn, attempt } = this.#owner.attempt
    return { branch, agent, turn, attempt, key, name, delivered }
  }

  /** The activity is over, in whatever way: whoever waits for the last of them goes on. */
  readonly #leave = (): void => {
    if (--this.#running === 0 && this.#quiet.length > 0) for (const go of this.#quiet.splice(0)) go()
  }

  /** What is wrong with the code around an activity ends the attempt. */
  #spoil(thrown: unknown): void {
    this.#owner.onBroken(thrown instanceof Error ? thrown : new Error(thrownText(thrown)))
    this.#leave()
  }

  #begin(step: CalledStep): void {
    const earlier = this.#earlier === undefined || step.record !== null ? undefined : this.#reusable(step)
    if (earlier?.status === 'completed') {
      this.#running++
      return this.#owner.say(givenBack(this.#speakerOf(step), earlier), this.#leave)
    }
    if (step.run !== null) return this.#execute(step)
    step.isSleeping = true
    this.#sleeping++
    this.#tellSleeping()
    if (this.#untold !== null) for (const other of this.#untold) this.#tellStarted(other)
    if (step.record?.status !== 'sleeping') this.#owner.say({ type: 'sleep.start', ...this.#speakerOf(step), ms: step.ms }, nothing)
  }

  /** It is at work beside a sleep. */
  #tellStarted(step: CalledStep): void {
    this.#untold?.delete(step)
    this.#owner.say({ type: 'activity.start', ...this.#speakerOf(step) }, nothing)
  }

  #execute(step: CalledStep): void {
    this.#running++
    let may: Maybe<boolean>
    try {
      may = this.#port.mayGoOn()
    } catch (thrown) {
      return this.#spoil(thrown)
    }
    if (may === true) this.#start(step)
    else if (may === false) this.#leave()
    else
      may.then(
        (now) => (now ? this.#start(step) : this.#leave()),
        (thrown: unknown) => this.#spoil(thrown),
      )
  }

  /**
   * Records the start of what must not be repeated, can be undone, or uses what is limited; and of what is at work beside a sleep: if the
   * process dies of it, the turn would be taken for one that only slept.
   */
  #start(step: CalledStep): void {
    const { idempotent, undo, reserve } = step.options
    if (idempotent !== false && undo === undefined && reserve === undefined && this.#sleeping === 0) {
      if (step.record === null) (this.#untold ??= new Set()).add(step)
      return this.#try(step, 1)
    }
    const here = step.record?.status === 'started'
    const left = idempotent === false ? this.#leftOf(step) : undefined
    const speaker = this.#speakerOf(step)
    if (idempotent === false && (here || left !== undefined))
      return this.#owner.say({ type: 'activity.fail', ...speaker, error: unknownOutcome(speaker, left) }, this.#leave)
    if (here && reserve === undefined) return this.#try(step, 1)
    this.#sayStarted(step, 1, {})
  }

  /** It is tried when its start is recorded. `used`: what the last try has used. */
  #sayStarted(step: CalledStep, attempt: number, used: { readonly used?: Reserve }): void {
    const { undo, reserve } = step.options
    const marks = { ...(undo !== undefined && { undo }), ...(reserve !== undefined && { reserve }), ...used }
    this.#owner.say({ type: 'activity.start', ...this.#speakerOf(step), ...marks }, ({ refusal }) => {
      if (refusal !== undefined) return this.#leave()
      // Not at once: whoever says so has others to tell before anything of a user runs.
      queueMicrotask(() => this.#admit(step, attempt))
    })
  }

  /** What it may use is set aside. It is not begun if the runs above have no room for it: then they are ending, and this with them. */
  #admit(step: CalledStep, attempt: number): void {
    if (step.options.reserve === undefined || this.#aborted !== null) return this.#try(step, attempt)
    settle(
      () => this.#unlessAborted(this.#port.isWithinAbove()),
      (isWithin) => (isWithin ? this.#try(step, attempt) : this.#leave()),
      (thrown) => this.#spoil(thrown),
    )
  }

  /** What has not begun is over at once when its turn is: what it waits to see may be out of reach for long. */
  #unlessAborted(may: Maybe<boolean>): Maybe<boolean> {
    if (!isLater(may)) return may
    const controller = this.controller()
    const aborted = new Promise<false>((resolve) => {
      controller.signal.addEventListener('abort', () => resolve(false), { once: true })
    })
    return Promise.race([may, aborted]).finally(() => this.release(controller))
  }

  /** Runs the activity once, unless a harness knows what it comes to. */
  #try(step: CalledStep, attempt: number): void {
    // It may have been aborted while its start was recorded, or while it waited for its next attempt.
    if (this.#aborted !== null) return this.#leave()
    const known = this.#port.isPlayed ? this.#port.known(this.#speakerOf(step)) : null
    if (known !== null)
      return void known.then(
        (result) => {
          step.timeouts = result.timeouts ?? step.timeouts
          this.#tried(step, attempt, null, result)
        },
        (thrown: unknown) => this.#spoil(thrown),
      )
    const { run, options } = step
    if (run === null) throw new Error(`${step.key} is a sleep, and not executed`)
    const ctx = new Context(this, step.key, attempt)
    let value: Maybe<unknown>
    let later: Promise<unknown> | null
    try {
      value = insideStep.run(ctx, run, ctx)
      later = isLater(value) ? Promise.resolve(value) : null
    } catch (thrown) {
      return this.#tried(step, attempt, ctx, failedWith(thrown, this.#port.maxValue))
    }
    if (options.timeoutMs !== undefined) this.#inTime(step, attempt, ctx, later ?? Promise.resolve(value))
    else if (later === null) this.#tried(step, attempt, ctx, resultOf(step.name, value, options, this.#port.maxValue))
    else
      later.then(
        (came) => this.#tried(step, attempt, ctx, resultOf(step.name, came, step.options, this.#port.maxValue)),
        (thrown: unknown) => this.#tried(step, attempt, ctx, failedWith(thrown, this.#port.maxValue)),
      )
  }

  /**
   * The same, for as long as it may take. What goes on after that is waited for as long as its grace lasts, by the end of the turn, and where it
   * can be undone by whoever must know whether it was done.
   */
  #inTime(step: CalledStep, attempt: number, ctx: Context, value: Promise<unknown>): void {
    const { name, options } = step
    const timer = new AbortController()
    const own = Context.signalled(ctx)
    let late: ActivityOutcome | null = null
    let isTold = false
    const tell = (result: ActivityOutcome): void => {
      if (isTold) return
      isTold = true
      if (result === late) step.timeouts = [...step.timeouts, attempt]
      // A reason spares the making of an error that nobody looks at.
      timer.abort('it has ended')
      this.#tried(step, attempt, ctx, result)
    }
    const grace = new AbortController()
    const leave = (): void => {
      if (!grace.signal.aborted) this.#leave()
      grace.abort('it has ended')
    }
    const ended = (result: ActivityOutcome): void => {
      tell(late === null || (options.undo !== undefined && 'value' in result) ? result : late)
      if (late !== null) leave()
    }
    const { clock, maxValue, graceMs } = this.#port
    value.then(
      (came) => ended(resultOf(name, came, options, maxValue)),
      (thrown: unknown) => ended(failedWith(thrown, maxValue)),
    )
    void clock.sleep(options.timeoutMs ?? 0, timer.signal).then(() => {
      if (timer.signal.aborted) return
      const error = tookLonger(step)
      const failed = failedWith(error, maxValue)
      late = failed
      this.#running++
      own.abort(error)
      if (options.undo === undefined) tell(failed)
      void clock.sleep(graceMs, grace.signal).then(() => {
        tell(failed)
        leave()
      })
    })
  }

  /** Retries happen inside of the activity; what is recorded is what it came to in the end. */
  #tried(step: CalledStep, attempt: number, ctx: Context | null, result: ActivityOutcome): void {
    const { options } = step
    if (ctx !== null && this.#controllers !== null) Context.letGo(ctx)
    try {
      if ('error' in result && this.#mayRetry(options, attempt, result)) return this.#again(step, attempt, result.error)
      const command = outcomeOf(this.#owner.attempt, step, result)
      // What was done after the abort is used for nothing, but if it can be undone, it must be known.
      const counts = this.#aborted === null || (options.undo !== undefined && command.type === 'activity.complete')
      this.#untold?.delete(step)
      if (counts) return this.#owner.say(command, this.#leave)
      if (command.type === 'activity.complete') this.#port.returnedLate()
      this.#leave()
    } catch (thrown) {
      this.#spoil(thrown)
    }
  }

  #mayRetry({ retry }: ActivityOptions, attempt: number, { error, retryable }: FailedOutcome): boolean {
    return retryable && retry !== undefined && attempt < retryShape(retry).attempts && this.#aborted === null && wantsRetry(retry.if, error)
  }

  #again(step: CalledStep, attempt: number, error: Failure): void {
    const { options, key } = step
    const controller = this.controller()
    const signal = options.stop === undefined ? controller.signal : AbortSignal.any([controller.signal, options.stop])
    const backoff = backoffMs(retryShape(options.retry), attempt, `${this.idempotencyKey(key)}/${attempt}`)
    settle(
      () => this.#port.clockOf(this.#owner.attempt).sleep(options.waitMs?.(error) ?? backoff, signal),
      () => {
        this.release(controller)
        // What a try has used that was begun counts before the next: the two may use more than was set aside for one.
        const used = this.#aborted !== null || options.stop?.aborted === true ? undefined : options.usedByLast?.()
        if (used === undefined) this.#try(step, attempt + 1)
        else this.#sayStarted(step, attempt + 1, { used })
      },
      (thrown) => this.#spoil(thrown),
    )
  }

  /** After a throw, a retry is given an earlier success back if its key is explicit or its name occurred once. */
  #reusable({ key, name, options }: CalledStep): ActivityRecord | undefined {
    const found = this.#earlier?.get(key)
    if (found === undefined || found.name !== name) return undefined
    return options.key !== undefined || found.isOneOfSeveral !== true ? found : undefined
  }

  /** What an earlier attempt has left and could not be given back may be this step, and done: of several of its name, whichever it was. */
  #leftOf({ key, name, options }: CalledStep): ActivityRecord | undefined {
    const found = this.#earlier?.get(key)
    if (found !== undefined || options.key !== undefined) return found
    return this.#earlier?.values().find((record) => record.name === name && record.isOneOfSeveral === true)
  }

  /** A controller that is aborted with the turn, until it is released. */
  controller(): AbortController {
    const made = new AbortController()
    if (this.#aborted !== null) made.abort(this.#aborted())
    else {
      this.#controllers ??= new Set()
      this.#controllers.add(made)
    }
    return made
  }

  release(controller: AbortController): void {
    this.#controllers?.delete(controller)
  }
}

/** Why a turn does nothing more that has ended. Made for whoever asks it for something: mostly nobody does. */
const turnEnded = (): Error => turnOver(new Error('the turn has ended'))

function tookLonger({ name, options }: CalledStep): CodedFailure {
  const message = `the step '${name}' took longer than ${options.timeoutMs} ms`
  return mayBeDone(new CodedFailure({ code: 'TIMEOUT', message, retryable: true, at: {} }), options)
}

function countNames(records: readonly ActivityRecord[]): Map<string, number> {
  const counts = new Map<string, number>()
  for (const { name } of records) counts.set(name, (counts.get(name) ?? 0) + 1)
  return counts
}

const unasked = ({ key }: CalledStep, instead: string): string =>
  `the step '${key}' is recorded and was not called for; instead, ${instead}`

/** Behind the key of a turn, `undo` makes the key of its undo: no step has that, and no two have the same. */
const besideUndo = (key: string): string => (/^~*undo$/.test(key) ? `~${key}` : key)

/** What is recorded inside of a step would not be asked for again once the step itself is recorded. */
const nested = (what: string): TuttiError =>
  new TuttiError('NESTED_STEP', `${what} is called inside another step`, {
    hint: 'call it from the turn itself, before or after the other',
  })
