import type { Definition, GraphInternals, Internals, TopologyInternals } from '../define/definition.js'
import type { Resource } from '../define/resource.js'
import type { Schema } from '../define/schema.js'
import type { ActivityContext, Work } from '../define/work.js'
import type { Command, Refusal } from '../kernel/command.js'
import type { Failure } from '../kernel/failure.js'
import { toJson } from '../kernel/json.js'
import { seededUnit } from '../kernel/retry.js'
import type { ActivityRecord, Attempt, Branch, State } from '../kernel/state.js'
import { branchOf, shapeOf } from '../kernel/state.js'
import { verifyAction } from './action-check.js'
import { Activities } from './activities.js'
import type { Alarms } from './alarms.js'
import { CodedFailure, failureOf } from './failure-of.js'
import { stepCommand } from './step-body.js'
import { act, turnView } from './turn-view.js'
import type { Clock } from './tutti.js'

/** What an execution needs of the run it belongs to. */
export interface ExecutionPort {
  readonly clock: Clock
  readonly alarms: Alarms
  readonly graceMs: number
  readonly maxValue: number
  readonly definition: Internals
  submit(command: Command): Promise<{ readonly refusal?: Refusal | undefined }>
  /** Whether this process still owns the run: asked before the turn and each of its steps. */
  mayStart(): Promise<boolean>
  /** The run's resources, made before its first turn. */
  resources(): Promise<ReadonlyMap<string, unknown>>
  emit(branch: string, agent: string, data: unknown): void
  /** What an answer to this branch must be; undefined: nothing of its own. */
  keepAskSchema(branch: string, schema: Schema | undefined): void
  /** Runs a definition as a child of this attempt. */
  child(attempt: Attempt, definition: Definition, input: unknown, signal: AbortSignal): Promise<unknown>
}

/**
 * One execution of a turn's body.
 *
 * 1. It speaks once: with what its body came to, or, once aborted, only that it has ended.
 * 2. Nothing of it outlives its end but a body that ignores its signal, and that is fenced off after its grace.
 */
export class Execution {
  readonly attempt: Attempt
  /** Takes it out of the queue at the gate. */
  unwait: () => void = () => {}
  started = false
  readonly #port: ExecutionPort
  readonly #state: State
  readonly #branch: Branch
  readonly #activities: Activities
  readonly #keyPrefix: string
  #resources: ReadonlyMap<string, unknown> = new Map()
  #controller: AbortController | null = null
  #status: 'running' | 'aborting' | 'ended' = 'running'
  #reason: Error | null = null
  #broken: Error | null = null
  #breakOff: ((error: Error) => void) | null = null
  /** Resolves when the body no longer runs; already so before it has started. */
  #ended: Promise<unknown> = Promise.resolve()
  /** Resolves when the body is fenced off: nobody waits for it any more. */
  readonly #fenced: Promise<null>
  #letGo: () => void = () => {}
  #cancelGrace: () => void = () => {}
  #cancelTimer: () => void = () => {}
  #spentMs = 0
  #runningSince: number | null = null

  constructor(port: ExecutionPort, state: State, attempt: Attempt) {
    this.attempt = attempt
    this.#port = port
    this.#state = state
    this.#branch = branchOf(state, attempt.branch)
    const { run } = state
    const rejected = this.#branch.rejections > 0 ? `!${this.#branch.rejections}` : ''
    const keyPrefix = `${run?.nonce}/${run?.id}/${attempt.branch}/${attempt.turn}${rejected}`
    this.#activities = new Activities(
      {
        clock: port.clock,
        speaker: attempt,
        keyPrefix,
        maxValue: port.maxValue,
        submit: (command) => port.submit(command),
        mayStart: () => port.mayStart(),
        context: (idempotencyKey, number, signal) => this.#context(idempotencyKey, number, signal),
        onSleeping: (sleeping) => (sleeping ? this.#stopTimer() : this.#startTimer()),
        onBroken: (error) => {
          this.#broken = error
          this.#breakOff?.(error)
        },
      },
      state.work.get(attempt.branch),
      attempt.at,
    )
    this.#keyPrefix = keyPrefix
    this.#fenced = new Promise((resolve) => {
      this.#letGo = () => resolve(null)
    })
  }

  /** Executes the body and says what came of it; resolves when nothing of it runs any more, or it is fenced off. */
  async run(): Promise<void> {
    this.started = true
    this.#startTimer()
    const outcome = this.#outcome()
    this.#ended = outcome
    const command = await Promise.race([outcome, this.#fenced])
    this.#stopTimer()
    this.#cancelGrace()
    const aborted = this.#status !== 'running'
    const fenced = this.#status === 'ended'
    this.#status = 'ended'
    if (fenced || command === null) return
    if (!aborted) {
      const { refusal } = await this.#port.submit(command)
      if (refusal === undefined) return
    }
    await this.#port.submit({ type: 'turn.settle', ...this.attempt, how: 'ended' })
  }

  /** A record of this turn is durable. */
  recorded(record: ActivityRecord): void {
    this.#activities.recorded(record)
  }

  /** Tells the body to stop; what it comes to is used for nothing. After its grace it is fenced off. */
  abort(why: string): void {
    if (this.#status !== 'running') return
    this.#status = 'aborting'
    this.#reason = Object.assign(new Error(why), { name: 'AbortError' })
    this.#controller?.abort(this.#reason)
    this.#activities.abort(this.#reason)
    this.#cancelGrace = this.#port.alarms.at(this.#port.clock.now() + this.#port.graceMs, () => {
      if (this.#status !== 'aborting') return
      this.#status = 'ended'
      this.#letGo()
      void this.#port.submit({ type: 'turn.settle', ...this.attempt, how: 'fenced' })
    })
  }

  /** The engine is closed: the body is aborted and awaited for its grace, and says nothing more. */
  async leave(why: string): Promise<void> {
    const grace = new AbortController()
    const ended = this.#ended
    this.abort(why)
    await Promise.race([ended, this.#port.clock.sleep(this.#port.graceMs, grace.signal)])
    grace.abort()
  }

  /** Somebody else owns the run: the body is aborted and says nothing more. */
  fence(why: string): void {
    this.abort(why)
    this.#cancelGrace()
    this.#stopTimer()
    this.#status = 'ended'
    this.#letGo()
  }

  async #outcome(): Promise<Command> {
    const { definition } = this.#port
    try {
      if (!(await this.#port.mayStart())) this.fence('another worker owns the run')
      this.#resources = await this.#port.resources()
      if (this.#status !== 'running') throw this.#reason ?? new Error('aborted')
      return await this.#unbroken(definition.kind === 'topology' ? this.#turn(definition) : this.#step(definition))
    } catch (thrown) {
      await this.#activities.end().catch(() => {})
      const error = failureOf(this.#broken ?? thrown, definition.kind === 'topology' ? 'AGENT_FAILED' : 'STEP_FAILED')
      return { type: 'turn.fail', ...this.attempt, error, retryable: this.#mayRetry(error) }
    }
  }

  #mayRetry(error: Failure): boolean {
    const { definition } = this.#port
    const { retryIf } = (definition.kind === 'topology' ? definition.agents : definition.steps)[this.attempt.agent] ?? {}
    try {
      return error.retryable && (retryIf?.(error) ?? true)
    } catch {
      // What it would have said is not known: the failure that it was asked about stands.
      return false
    }
  }

  /** What the body comes to, unless it asked for something else than its journal has. */
  #unbroken<T>(body: Promise<T>): Promise<T> {
    const broken = new Promise<never>((_, reject) => {
      this.#breakOff = reject
    })
    broken.catch(() => {})
    body.catch(() => {})
    return Promise.race([body, broken])
  }

  async #turn(definition: TopologyInternals): Promise<Command> {
    const agent = definition.agents[this.attempt.agent]
    if (agent === undefined) throw new Error(`there is no agent ${this.attempt.agent}`)
    const returned = await act(agent, turnView(this.#state, this.#branch, this.#work()))
    await this.#activities.end()
    const verified = await verifyAction(definition, this.#state, this.#branch, returned, this.#port.maxValue)
    if ('problem' in verified) return { type: 'turn.reject', ...this.attempt, problem: verified.problem }
    this.#port.keepAskSchema(this.attempt.branch, verified.askSchema)
    return { type: 'turn.complete', ...this.attempt, action: verified.action }
  }

  async #step(definition: GraphInternals): Promise<Command> {
    const command = await stepCommand({
      definition,
      state: this.#state,
      branch: this.#branch,
      attempt: this.attempt,
      activities: this.#activities,
      work: this.#work(),
      maxValue: this.#port.maxValue,
      child: (code, input) => this.#port.child(this.attempt, code.child, input, this.#signal()),
    })
    await this.#activities.end()
    return command
  }

  #signal(): AbortSignal {
    if (this.#controller === null) {
      this.#controller = new AbortController()
      if (this.#reason !== null) this.#controller.abort(this.#reason)
    }
    return this.#controller.signal
  }

  #context(idempotencyKey: string, attempt: number, signal: () => AbortSignal): ActivityContext {
    return Object.freeze({
      get signal(): AbortSignal {
        return signal()
      },
      idempotencyKey,
      attempt,
      use: <T>(resource: Resource<T>): T => this.#use(resource),
      emit: (data: unknown): void => {
        const json = toJson(data)
        if ('problem' in json) throw new TypeError(`emit takes JSON; at ${json.path}: ${json.problem}`)
        if (this.#status === 'running') this.#port.emit(this.attempt.branch, this.attempt.agent, json.value)
      },
    })
  }

  #use<T>(resource: Resource<T>): T {
    if (!this.#resources.has(resource.name))
      throw new CodedFailure({
        code: 'RESOURCE_MISSING',
        message: `there is no resource '${resource.name}': give it with open({ resources: [resource.of(…)] })`,
        retryable: false,
        at: {},
      })
    return this.#resources.get(resource.name) as T
  }

  #work(): Work {
    const { run } = this.#state
    const activities = this.#activities
    const seed = `${run?.nonce}/${this.attempt.branch}/${this.attempt.turn}`
    let draws = 0
    const work = {
      runId: run?.id ?? '',
      branchId: this.attempt.branch,
      tags: run?.tags ?? {},
      step: activities.step.bind(activities),
      sleep: activities.sleep.bind(activities),
      now: (): number => activities.now,
      random: (): number => seededUnit(`${seed}/${draws++}`),
    }
    const context = this.#context(this.#keyPrefix, this.attempt.attempt, () => this.#signal())
    return Object.freeze(Object.defineProperties(work, Object.getOwnPropertyDescriptors(context))) as unknown as Work
  }

  // ── the attempt's timeout, which durable sleeps don't count against ────────────────────────────────────

  #startTimer(): void {
    const { timeoutMs } = shapeOf(this.#state).agents[this.attempt.agent] ?? { timeoutMs: null }
    if (timeoutMs === null || this.#runningSince !== null) return
    const since = this.#port.clock.now()
    this.#runningSince = since
    this.#cancelTimer = this.#port.alarms.at(since + timeoutMs - this.#spentMs, () => this.#timeOut(timeoutMs))
  }

  #stopTimer(): void {
    if (this.#runningSince === null) return
    this.#cancelTimer()
    this.#spentMs += this.#port.clock.now() - this.#runningSince
    this.#runningSince = null
  }

  #timeOut(timeoutMs: number): void {
    if (this.#status !== 'running') return
    const { agent } = this.attempt
    const error = {
      code: 'TIMEOUT',
      message: `${agent} took longer than the ${timeoutMs} ms of one attempt`,
      retryable: true,
      at: {},
    } as const
    const retryable = this.#mayRetry(error)
    this.abort(error.message)
    void this.#port.submit({ type: 'turn.fail', ...this.attempt, error, retryable, timedOut: true })
  }
}
