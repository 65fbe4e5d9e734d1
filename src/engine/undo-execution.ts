import type { Internals } from '../define/definition.js'
import type { Maybe } from '../define/maybe.js'
import type { Resource } from '../define/resource.js'
import { toolDefinitionOf } from '../define/tool.js'
import type { Done } from '../define/work.js'
import type { Command, Refusal } from '../kernel/command.js'
import type { Failure } from '../kernel/failure.js'
import { entryOf } from '../kernel/fold-undo.js'
import { toJson } from '../kernel/json.js'
import type { State } from '../kernel/state.js'
import { shapeOf } from '../kernel/state.js'
import type { Entry, UndoAttempt } from '../kernel/undo-state.js'
import { CodedFailure, failureOf, storableFailure } from '../define/failure-of.js'
import type { Alarms } from './alarms.js'
import { deepFreeze } from '../kernel/deep-freeze.js'
import { useOf } from './run-resources.js'
import type { Body } from './bodies.js'
import type { Held } from './seam.js'
import { turnOver } from './turn-over.js'
import type { Clock } from './tutti.js'

/** What an undo needs of the run it belongs to. */
export interface UndoPort {
  readonly clock: Clock
  readonly alarms: Alarms
  readonly graceMs: number
  readonly maxValue: number
  readonly definition: Internals
  /** Nothing of it runs any more, or its time and its grace are over. */
  ended(): void
  submit(command: Command): Promise<{ readonly refusal?: Refusal | undefined }>
  mayStart(): Maybe<boolean>
  /** Whether it may begin now: its run is not paused. */
  isAdmitted(): boolean
  resources(): Maybe<ReadonlyMap<string, unknown>>
  /** A resource as this undo is given it. */
  lend(name: string, value: unknown): unknown
  emit(data: unknown): void
  /** Undoes what a child run has done, in a run of its own. */
  undoChild(run: string, signal: AbortSignal): Promise<void>
}

/**
 * One attempt at an undo. What it returns is used for nothing: it has happened, or it has not. It is never aborted but by the end of
 * this process or the loss of its run, and then says nothing: whoever has the run then tries it again, under the same key.
 */
export class UndoExecution implements Body {
  readonly #port: UndoPort
  readonly #state: State
  readonly #undo: UndoAttempt
  readonly #entry: Entry
  readonly #controller = new AbortController()
  #cancelTimer: () => void = () => {}
  #cancelGrace: () => void = () => {}
  #said = false
  /** Nobody waits for it any more. */
  #over = false
  /** Resolves when nothing of it runs any more. */
  #ended: Promise<unknown> = Promise.resolve()
  readonly actor: Body['actor']
  stage: Body['stage'] = 'waiting'
  /** It has not begun, because its run is paused. */
  heldBack = false

  constructor(port: UndoPort, state: State, undo: UndoAttempt, actor: Body['actor']) {
    this.actor = actor
    this.#port = port
    this.#state = state
    this.#undo = undo
    this.#entry = entryOf(state, undo.of)
  }

  /** It only waits for a run of its own, and takes no room while it does. */
  get waits(): boolean {
    return this.#entry.what === 'child'
  }

  held(): Held {
    const { branch, agent } = this.#entry
    return { type: 'undo', run: this.#state.run?.id ?? '', undo: this.#undo, branch, agent }
  }

  run(): void {
    void this.#run().finally(() => this.#end())
  }

  /** Nothing of it runs any more, or nobody waits for that. */
  #end(): void {
    if (this.#over) return
    this.#over = true
    this.#cancelGrace()
    this.#port.ended()
  }

  async #run(): Promise<void> {
    const { timeoutMs = null } = shapeOf(this.#state).agents[this.#entry.agent] ?? {}
    try {
      if (!(await this.#port.mayStart())) return
      if (timeoutMs !== null && !this.waits)
        this.#cancelTimer = this.#port.alarms.at(this.#port.clock.now() + timeoutMs, () => this.#timeOut(timeoutMs))
      const resources = await this.#port.resources()
      // Making them may have taken longer than it has time, or than this process has its run.
      if (this.#said) return
      this.heldBack = !this.#port.isAdmitted()
      if (this.heldBack) return
      const performed = this.#perform(resources)
      this.#ended = performed.catch(() => {})
      await performed
      await this.#say({ type: 'undo.complete' })
    } catch (thrown) {
      const code = this.#port.definition.kind === 'topology' ? 'AGENT_FAILED' : 'STEP_FAILED'
      const error = storableFailure(failureOf(thrown, code), this.#port.maxValue)
      await this.#say({ type: 'undo.fail', error, retryable: error.retryable })
    } finally {
      this.#cancelTimer()
    }
  }

  /** This process stops, or has lost the run. */
  fence(why: string): void {
    this.#said = true
    this.#controller.abort(turnOver(Object.assign(new Error(why), { name: 'AbortError' })))
  }

  /** The engine is closed: the body is told so and awaited for its grace. */
  async leave(why: string): Promise<void> {
    const grace = new AbortController()
    const ended = this.#ended
    this.fence(why)
    await Promise.race([ended, this.#port.clock.sleep(this.#port.graceMs, grace.signal)])
    grace.abort()
  }

  async #perform(resources: ReadonlyMap<string, unknown>): Promise<void> {
    const { what, key = '' } = this.#entry
    if (what === 'child') return this.#port.undoChild(key, this.#controller.signal)
    const undo = compensateOf(this.#port.definition, this.#entry)
    if (undo === undefined)
      throw new CodedFailure({
        code: 'STEP_FAILED',
        message: `there is no \`compensate\` for ${this.#entry.id} of ${this.#entry.agent} any more`,
        retryable: false,
        at: {},
      })
    await undo(this.#done(resources))
  }

  #done(resources: ReadonlyMap<string, unknown>): Done {
    const { output, input, item, activities = {}, key } = this.#entry
    const { run } = this.#state
    const { signal } = this.#controller
    const { run: id, nonce } = run?.undoOf ?? { run: run?.id, nonce: run?.nonce }
    return Object.freeze({
      output: deepFreeze(output),
      input: deepFreeze(input),
      ...(item !== undefined && { item: deepFreeze(item) }),
      activities: deepFreeze(activities),
      signal,
      idempotencyKey: `${nonce}/${id}/${key}/undo`,
      attempt: this.#undo.attempt,
      use: <T>(resource: Resource<T>): T => {
        const value = useOf(resources, resource)
        return this.#port.lend(resource.name, value) as T
      },
      emit: (data: unknown): void => {
        const json = toJson(data)
        if ('problem' in json) throw new TypeError(`emit takes JSON; at ${json.path}: ${json.problem}`)
        if (!this.#said) this.#port.emit(json.value)
      },
    })
  }

  #timeOut(timeoutMs: number): void {
    const message = `undoing ${this.#undo.of} took longer than the ${timeoutMs} ms of one attempt`
    const error: Failure = { code: 'TIMEOUT', message, retryable: true, at: {} }
    void this.#say({ type: 'undo.fail', error, retryable: true })
    this.#controller.abort(new CodedFailure(error))
    // The next attempt does not begin beside this one, unless it ignores its signal.
    this.#cancelGrace = this.#port.alarms.at(this.#port.clock.now() + this.#port.graceMs, () => this.#end())
  }

  /** It speaks once. */
  async #say(what: { type: 'undo.complete' } | { type: 'undo.fail'; error: Failure; retryable: boolean }): Promise<void> {
    if (this.#said) return
    this.#said = true
    const { of, attempt, revision } = this.#undo
    await this.#port.submit({ ...what, of, attempt, revision })
  }
}

function compensateOf(definition: Internals, { agent, tool }: Entry): ((done: Done) => unknown) | undefined {
  if (definition.kind === 'graph') return definition.steps[agent]?.compensate
  const options = definition.agents[agent]?.options
  if (tool === undefined) return options?.compensate
  return toolDefinitionOf(options?.tools?.[tool])?.compensate as ((done: Done) => unknown) | undefined
}
