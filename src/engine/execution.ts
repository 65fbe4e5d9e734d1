import type { AgentCode } from '../define/agent-code.js'
import type { GraphInternals, TopologyInternals } from '../define/definition.js'
import type { Maybe } from '../define/maybe.js'
import { andThen } from '../define/maybe.js'
import { wantsRetry } from '../define/retry.js'
import type { Resource } from '../define/resource.js'
import type { Turn } from '../define/turn.js'
import type { ActivityContext, StepOptions } from '../define/work.js'
import type { Command, Refusal } from '../kernel/command.js'
import type { Failure } from '../kernel/failure.js'
import { toJson } from '../kernel/json.js'
import type { LateWork } from '../kernel/event.js'
import { sent } from '../kernel/fold-undo.js'
import { seededUnit } from '../kernel/retry.js'
import type { Attempt, Branch, State } from '../kernel/state.js'
import type { Usage } from '../kernel/usage.js'
import { branchOf, runsChild } from '../kernel/state.js'
import type { ModelOutcome } from '../models/model-turn.js'
import { keyBeside } from '../models/turn-keys.js'
import type { Verified } from './action-check.js'
import { verifyAction } from './action-check.js'
import type { ActivityOwner, Recorded } from './activities.js'
import { Activities } from './activities.js'
import { failureOf, storableFailure } from '../define/failure-of.js'
import { leftBy } from './child-run.js'
import { useOf } from './run-resources.js'
import type { Body } from './bodies.js'
import type { ExecutionPort, Actor } from './run-port.js'
import type { Held } from './seam.js'
import { playModel } from './model-body.js'
import { besideWhen, stepCommand } from './step-body.js'
import { checkStep } from './step-check.js'
import { turnOver } from './turn-over.js'
import { act, turnView } from './turn-view.js'
import type { WorkParts } from './work-parts.js'

const nothing = (): void => {}

/** What comes of saying something to an engine that is closed. */
const unheard = Object.freeze({ refusal: Object.freeze({ code: 'STALE_ATTEMPT', message: 'the engine is closed' } as const) })
const noResources: ReadonlyMap<string, unknown> = new Map<string, unknown>([])

/**
 * One execution of a turn's body.
 *
 * 1. It speaks once: with what its body came to, or, once aborted, only that it has ended.
 * 2. Nothing of it outlives its end but a body that ignores its signal, and that is fenced off after its grace.
 */
export class Execution implements Body, ActivityOwner, WorkParts {
  readonly attempt: Attempt
  /** Of its attempt. */
  readonly id: string
  readonly actor: Actor
  stage: Body['stage'] = 'waiting'
  /** It has not begun, because its agent may not act now or its run is paused. */
  heldBack = false
  readonly #port: ExecutionPort
  readonly #state: State
  /** As it is in that state: looked up when the body begins, so that thousands that wait for their turn don't each keep one. */
  #found: Branch | null = null
  #used: Activities | null = null
  /** The body has returned or thrown: what it kept of its turn does nothing any more. */
  #over = false
  #resources: ReadonlyMap<string, unknown> = noResources
  #controller: AbortController | null = null
  #status: 'running' | 'aborting' | 'ended' = 'running'
  #reason: Error | null = null
  /** Whether its body runs, and who waits for that to end. */
  #isBodyOver = true
  #onBodyOver: (() => void) | null = null
  /** The engine is closed, and listens no more: what a step still has to say is not waited for. */
  #isLeft = false
  /** It is known what it came to: what its body did, or that nobody waits for that any more. */
  #isDecided = false
  #isConcluded = false
  /** What is left of it is to wait for another run. */
  #waitsForRun = false
  #cancelGrace: (() => void) | null = null
  #cancelTimer: () => void = nothing
  #spentMs = 0
  #runningSince: number | null = null
  /** How many random numbers its body has drawn, and its `when`. */
  #drawn = 0
  #drawnInWhen = 0

  constructor(port: ExecutionPort, actor: Actor, state: State, attempt: Attempt, id: string) {
    this.attempt = attempt
    this.id = id
    this.actor = actor
    this.#port = port
    this.#state = state
    // Whoever has records is held to them, whether or not it asks for any.
    if (state.work.has(attempt.branch)) this.#activities()
  }

  get #branch(): Branch {
    this.#found ??= branchOf(this.#state, this.attempt.branch)
    return this.#found
  }

  held(): Held {
    return { type: 'start', run: this.#port.runId, attempt: this.attempt }
  }

  /** `nonce/run/branch/turn`, and the number of rejections after one: the same on every attempt. */
  idempotencyKey(): string {
    const { run } = this.#state
    const { rejections } = this.#branch
    const { branch, turn } = this.attempt
    return `${run?.nonce}/${run?.id}/${branch}/${turn}${rejections > 0 ? `!${rejections}` : ''}`
  }

  /** Made when the body first asks for one: most turns have none. */
  #activities(): Activities {
    if (this.#used !== null) return this.#used
    this.#used = new Activities(this.#port, this, this.#state.work.get(this.attempt.branch))
    if (this.#reason !== null || this.#over) this.#used.abort(this.#reason ?? turnOver(new Error('the turn has ended')))
    return this.#used
  }

  /** Executes the body and says what came of it. */
  run(): void {
    this.#isBodyOver = false
    let command: Maybe<Command>
    try {
      const may = this.#port.begin(this)
      command = may instanceof Promise ? may.then((now) => this.#started(now)) : this.#started(may)
    } catch (thrown) {
      return this.#threw(thrown)
    }
    if (command instanceof Promise)
      command.then(
        (came) => this.#bodyOver(came),
        (thrown) => this.#threw(thrown),
      )
    else this.#bodyOver(command)
  }

  #threw(thrown: unknown): void {
    this.#failed(thrown).then((command) => this.#bodyOver(command), nothing)
  }

  #bodyOver(command: Command): void {
    this.#isBodyOver = true
    this.#onBodyOver?.()
    if (this.#reason !== null && command.type !== 'turn.fail') this.#port.returnedLate()
    if (!this.#isDecided) this.#conclude(command)
  }

  say(command: Command, settled: (outcome: { readonly refusal?: Refusal | undefined }) => void): void {
    if (this.#isLeft) settled(unheard)
    else this.#port.submit(this, command, settled)
  }

  onBroken(error: Error): void {
    if (this.#isDecided) return
    this.#isDecided = true
    this.#failed(error).then((command) => this.#conclude(command), nothing)
  }

  get isAborted(): boolean {
    return this.#status !== 'running'
  }

  /** Once. Null: it is fenced off; what is still awaited then may never come. */
  #conclude(command: Command | null): void {
    if (this.#isConcluded) return
    this.#isDecided = true
    this.#isConcluded = true
    if (this.#runningSince !== null) this.#stopTimer()
    this.#cancelGrace?.()
    const aborted = this.#status !== 'running'
    const fenced = this.#status === 'ended'
    this.#status = 'ended'
    if (fenced || command === null) return this.#port.ended(this)
    if (aborted) return this.#settle(command)
    this.#port.submit(this, command, ({ refusal }) => (refusal === undefined ? this.#port.ended(this) : this.#settle(command)))
  }

  /** Its work is a run of its own, which an execution before this one may have started. */
  get #hasRun(): boolean {
    return runsChild(this.#state, this.attempt.agent)
  }

  #settle(command: Command): void {
    // Its body never came to wait for that run: it is not over before that is.
    if (this.#hasRun && !this.#waitsForRun) return void this.#port.endChild(this.attempt).then(() => this.#port.ended(this))
    const { branch, agent, turn, attempt } = this.attempt
    const settled = {
      type: 'turn.settle',
      branch,
      agent,
      turn,
      attempt,
      how: 'ended',
      ...this.#lateWork(command),
      ...usageOf(command),
    } as const
    this.#port.submit(this, settled, () => this.#port.ended(this))
  }

  /** What the body came to is used for nothing, but if it can be undone, it is. */
  #lateWork(command: Command): { done?: LateWork; notUndone?: readonly string[] } {
    if (this.#state.run?.undoes !== true) return {}
    switch (command.type) {
      case 'turn.complete':
        return command.action.type === 'fail' ? {} : { done: { output: sent(command.action) } }
      case 'step.complete': {
        const { output, child, notUndone } = command
        return { done: { output, ...(child !== undefined && { child }) }, ...(notUndone !== undefined && { notUndone }) }
      }
      case 'turn.fail':
        return command.notUndone === undefined ? {} : { notUndone: command.notUndone }
      default:
        return {}
    }
  }

  /** Whether its body waits for nothing but durable sleeps. */
  get isAsleep(): boolean {
    return this.#status === 'running' && this.#used?.isAsleep === true
  }

  /** A record of this turn is durable. */
  recorded(event: Recorded): void {
    this.#used?.recorded(event)
  }

  /** Tells the body to stop; what it comes to is used for nothing. After its grace it is fenced off. */
  abort(why: string): void {
    if (this.#status !== 'running') return
    this.#status = 'aborting'
    this.#reason = turnOver(Object.assign(new Error(why), { name: 'AbortError' }))
    this.#controller?.abort(this.#reason)
    this.#used?.abort(this.#reason)
    // A run of ours ends by itself when it is cancelled, and what it does until then is not left behind.
    if (this.#waitsForRun) return
    this.#cancelGrace = this.#port.alarms.at(this.#port.clock.now() + this.#port.graceMs, () => {
      if (this.#status !== 'aborting') return
      this.#status = 'ended'
      this.#conclude(null)
      if (this.#hasRun) void this.#port.endChild(this.attempt)
      else this.#port.submit(this, { type: 'turn.settle', ...this.attempt, how: 'fenced' }, nothing)
    })
  }

  /** The engine is closed: the body is aborted and awaited for its grace, and says nothing more. */
  async leave(why: string): Promise<void> {
    this.#isLeft = true
    const grace = new AbortController()
    const ended = new Promise<void>((resolve) => {
      this.#onBodyOver = resolve
      if (this.#isBodyOver) resolve()
    })
    this.abort(why)
    await Promise.race([ended, this.#port.clock.sleep(this.#port.graceMs, grace.signal)])
    grace.abort()
  }

  /** Somebody else owns the run: the body is aborted and says nothing more. */
  fence(why: string): void {
    this.abort(why)
    this.#cancelGrace?.()
    this.#stopTimer()
    this.#status = 'ended'
    this.#conclude(null)
  }

  #started(may: boolean): Maybe<Command> {
    if (!may) this.fence('another worker owns the run')
    this.#admitted()
    // What the store takes to say so is no time of the attempt's.
    this.#startTimer()
    const resources = this.#port.resources()
    if (!(resources instanceof Promise)) return this.#body(resources)
    return resources.then((made) => {
      this.#admitted()
      return this.#body(made)
    })
  }

  /** Throws if the body is not to begin; asked again after whatever may have taken time. */
  #admitted(): void {
    if (this.#status === 'running' && !this.#port.isAdmitted(this)) {
      this.heldBack = true
      this.fence('it may not begin now')
    }
    if (this.#status !== 'running') throw this.#reason ?? new Error('aborted')
  }

  #body(resources: ReadonlyMap<string, unknown>): Maybe<Command> {
    const { definition } = this.#port
    this.#resources = resources
    if (definition.kind === 'graph') return this.#step(definition)
    const { agent } = this.actor
    if (agent === null) throw new Error(`there is no agent ${this.attempt.agent}`)
    const branch = branchOf(this.#state, this.attempt.branch)
    this.#found = branch
    const view = turnView(this.#state, branch, this, agent.act === null)
    if (agent.act !== null) return andThen(act(agent, view), (action) => this.#returned(definition, branch, view, action))
    return this.#model(agent, definition, view).then((outcome) => {
      if ('action' in outcome) return this.#returned(definition, branch, view, outcome.action)
      return andThen(this.#end(), () => this.#unanswered(outcome))
    })
  }

  async #failed(thrown: unknown): Promise<Command> {
    this.#over = true
    // Before anything is waited for: what was thrown is what it is now.
    const code = this.#port.definition.kind === 'topology' ? 'AGENT_FAILED' : 'STEP_FAILED'
    const error = storableFailure(failureOf(thrown, code), this.#port.maxValue)
    try {
      await this.#end()
    } catch {
      // That it left records unasked for says less than what it threw.
    }
    // It failed before it came to wait for the run that an execution before this one has started: that is not left behind.
    const left = this.#hasRun && !this.#waitsForRun && this.#status === 'running' ? await this.#port.giveUp(this.attempt) : leftBy(thrown)
    return { type: 'turn.fail', ...this.attempt, error, retryable: this.#mayRetry(error), ...this.#repeated(), ...left }
  }

  #repeated(): { repeated?: readonly string[] } {
    const repeated = this.#used?.repeated ?? []
    return repeated.length === 0 ? {} : { repeated }
  }

  #mayRetry(error: Failure): boolean {
    const { definition } = this.#port
    const { retryIf } = (definition.kind === 'topology' ? definition.agents : definition.steps)[this.attempt.agent] ?? {}
    return error.retryable && wantsRetry(retryIf, error)
  }

  /** The body has returned: nothing of what it has started goes on. What that takes to stop is no time of the attempt's. */
  #end(): Maybe<void> {
    this.#over = true
    const ending = this.#used?.end()
    if (!(ending instanceof Promise)) return
    this.#stopTimer()
    return ending.finally(() => {
      if (this.#status === 'running') this.#startTimer()
    })
  }

  #unanswered(outcome: Exclude<ModelOutcome, { action: unknown }>): Command {
    const { branch, agent, turn, attempt } = this.attempt
    if ('problem' in outcome) return { type: 'turn.reject', branch, agent, turn, attempt, problem: outcome.problem }
    const action = Object.freeze({ type: 'ask', question: null, approval: outcome.approval } as const)
    return { type: 'turn.complete', branch, agent, turn, attempt, action }
  }

  #returned(definition: TopologyInternals, branch: Branch, { waiting, message }: Turn, returned: unknown): Maybe<Command> {
    // It is taken before what the body has started and not waited for is: that may still change it.
    const verifying = verifyAction(definition, this.#state, branch, waiting, returned, this.#port.maxValue)
    if (verifying instanceof Promise) verifying.catch(nothing)
    const ending = this.#end()
    if (!(ending instanceof Promise) && !(verifying instanceof Promise)) return this.#verified(message.kind, verifying)
    return andThen(ending, () => andThen(verifying, (verified) => this.#verified(message.kind, verified)))
  }

  #verified(why: Turn['message']['kind'], verified: Verified): Command {
    const { branch, agent, turn, attempt } = this.attempt
    if ('problem' in verified) return { type: 'turn.reject', branch, agent, turn, attempt, problem: verified.problem }
    // It asks somebody, or had asked.
    if (verified.action.type === 'ask' || why !== 'request') this.#port.keepAskSchema(branch, verified.askSchema)
    return { type: 'turn.complete', branch, agent, turn, attempt, action: verified.action }
  }

  #model(agent: AgentCode, definition: TopologyInternals, turn: Turn): Promise<ModelOutcome> {
    const { name, options } = agent
    return playModel({
      agent,
      definition,
      state: this.#state,
      branch: this.#branch,
      turn,
      activity: (activity, run, how) => this.#activities().step(activity, run, how),
      recorded: (key) => this.#activities().has(key),
      model: () => this.#port.model({ agent: name, model: options.model }),
      tools: () => this.#port.toolboxes.toolsOf(options.tools),
      priceOf: this.#port.priceOf,
      now: () => this.#port.clock.now(),
      listener: (attempt) => {
        const tell = this.#port.listener(this.attempt.branch, name, attempt)
        return tell === null ? null : (text) => (this.#status === 'running' ? tell(text) : undefined)
      },
    })
  }

  async #step(definition: GraphInternals): Promise<Command> {
    const command = await stepCommand({
      definition,
      state: this.#state,
      branch: this.#branch,
      attempt: this.attempt,
      activities: this.#activities(),
      work: this,
      maxValue: this.#port.maxValue,
      child: (code, input) => {
        this.#waitsForRun = true
        this.#cancelGrace?.()
        this.pausedOrResumed()
        return this.#port.child(this.attempt, code.child, input, this.signal())
      },
    })
    await this.#end()
    return command
  }

  signal(): AbortSignal {
    if (this.#controller === null) {
      this.#controller = new AbortController()
      if (this.#reason !== null) this.#controller.abort(this.#reason)
    }
    return this.#controller.signal
  }

  emit(data: unknown): void {
    const json = toJson(data)
    if ('problem' in json) throw new TypeError(`emit takes JSON; at ${json.path}: ${json.problem}`)
    if (this.#status === 'running') this.#port.emit(this.attempt.branch, this.attempt.agent, json.value)
  }

  use<T>(resource: Resource<T>): T {
    const value = useOf(this.#resources, resource)
    return this.#port.lend(this.attempt, resource.name, value) as T
  }

  step<T>(name: string, body: (ctx: ActivityContext) => Maybe<T>, options?: StepOptions): Promise<T> {
    checkStep(name, body, options)
    return this.#activities().step(this.#nameBeside(name), body, this.#keyBeside(options)) as Promise<T>
  }

  /** What the steps of a graph and the turns of models record by themselves is kept apart from what code gives them to do. */
  #nameBeside(name: string): string {
    return typeof name === 'string' && name.startsWith('~') && this.#port.definition.kind === 'graph' ? besideWhen(name) : name
  }

  #keyBeside(options: StepOptions | undefined): StepOptions | undefined {
    if (typeof options?.key !== 'string') return options
    const { definition } = this.#port
    if (definition.kind === 'graph') return options.key.startsWith('~') ? { ...options, key: besideWhen(options.key) } : options
    return definition.agents[this.attempt.agent]?.act === null ? { ...options, key: keyBeside(options.key) } : options
  }

  sleep(ms: number): Promise<void> {
    return this.#activities().sleep(ms)
  }

  now(): number {
    return this.#used?.now ?? this.attempt.at
  }

  random(of?: 'when'): number {
    const { branch, turn } = this.attempt
    const nth = this.#nextDrawn(of)
    return seededUnit(`${this.#state.run?.nonce}/${branch}/${turn}/${nth}`)
  }

  /** A step that is given back draws nothing, nor does a `when` that is not asked again: what the body draws after it must not depend on that. */
  #nextDrawn(of: 'when' | undefined): string | number {
    const inside = this.#used?.nextDrawnInside() ?? null
    if (inside !== null) return `step/${inside}`
    return of === undefined ? this.#drawn++ : `${of}/${this.#drawnInWhen++}`
  }

  // ── the attempt's timeout, which durable sleeps don't count against, nor a pause that holds what it waits for ──

  onSleeping(sleeping: boolean): void {
    if (sleeping) this.#stopTimer()
    else this.#startTimer()
  }

  /** The pause of its run holds the run that it waits for: its time stands still with that. */
  pausedOrResumed(): void {
    if (!this.#waitsForRun || this.#status !== 'running') return
    if (this.#port.isPaused) this.#stopTimer()
    else this.#startTimer()
  }

  #startTimer(): void {
    const timeoutMs = this.#state.run?.shape.agents[this.attempt.agent]?.timeoutMs ?? null
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
    const failed = {
      type: 'turn.fail',
      ...this.attempt,
      error,
      retryable: this.#mayRetry(error),
      timedOut: true,
      ...this.#repeated(),
    } as const
    this.abort(error.message)
    this.#port.submit(this, failed, nothing)
  }
}

/** What the models of a child run have used counts, whatever is made of what it came to. */
function usageOf(command: Command): { usage?: Usage } {
  const usage = command.type === 'step.complete' || command.type === 'turn.fail' ? command.usage : undefined
  return usage === undefined ? {} : { usage }
}
