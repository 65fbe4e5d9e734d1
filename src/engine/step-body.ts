import type { AnyStepContext, GraphInternals, StepCode } from '../define/definition.js'
import type { Command } from '../kernel/command.js'
import { rootBarrier } from '../kernel/ids.js'
import { toJson } from '../kernel/json.js'
import type { Attempt, Branch, State } from '../kernel/state.js'
import { barrierOf } from '../kernel/state.js'
import { stepOutputs } from '../kernel/step-outputs.js'
import type { Activities } from './activities.js'
import { bytesOver } from '../define/bytes-over.js'
import { CodedFailure, tooLarge } from '../define/failure-of.js'
import { jsonSchemaOf } from '../define/json-schema.js'
import { andThen } from '../define/maybe.js'
import { shown } from '../define/option-check.js'
import type { ChildDone } from './child-run.js'
import { BoundWork, type WorkParts } from './work-parts.js'

/** What the body of a step needs beside its work. */
export interface StepPort {
  readonly definition: GraphInternals
  readonly state: State
  readonly branch: Branch
  readonly attempt: Attempt
  readonly activities: Activities
  readonly work: WorkParts
  readonly maxValue: number
  /** Runs a definition as a child of this step, or goes on with the one that is there. */
  child(code: Extract<StepCode, { kind: 'child' }>, input: unknown): Promise<ChildDone>
}

/**
 * Executes a step: whether it runs at all, for which items, and then its code, its question or its child run. What its code gives is taken
 * at once, before anything else can change it.
 */
export async function stepCommand(port: StepPort): Promise<Command> {
  const { definition, branch, attempt, activities } = port
  const code = definition.steps[branch.agent]
  if (code === undefined) throw new Error(`there is no step ${branch.agent}`)
  const ctx = contextOf(port)
  const isItem = barrierOf(port.state, branch.scope).each !== null
  const { when, each } = code
  if (!isItem && when !== undefined && !(await decided(activities, async () => Boolean(await when(contextOf(port, 'when'))))))
    return { type: 'step.skip', ...attempt }
  if (!isItem && each !== undefined)
    return { type: 'step.each', ...attempt, items: await andThen(each(ctx), (items) => itemsOf(port, items)) }
  switch (code.kind) {
    case 'ask':
      return ask(port, code, ctx)
    case 'child':
      return childDone(attempt, await port.child(code, await andThen(code.input?.(ctx), childInput)))
    case 'run':
      return {
        type: 'step.complete',
        ...attempt,
        ...given(await andThen(code.run(ctx), (returned) => taken(port, returned, `the output of the step '${branch.agent}'`))),
      }
  }
}

/**
 * What `when` said, recorded, so that a second execution goes the way of the first. It may have steps of its own: then it is asked again,
 * with their results, so that each has its key again, and what it said first stands all the same. Steps that it does not wait for may be
 * recorded after what it said, which therefore has another name: that is chosen once, since it may be quicker when it is asked again.
 */
async function decided(activities: Activities, when: () => Promise<boolean>): Promise<boolean> {
  const said = activities.beginsWith(whenStep) ? undefined : await when()
  const known = [whenStep, whenStepBeside].find((name) => activities.knows(`${name}#0`))
  return (await activities.step(known ?? (activities.awaitsFirst ? whenStepBeside : whenStep), () => said)) === true
}

const whenStep = '~when'
const whenStepBeside = '~when+'

/** The name or the key of a step of somebody's code: never one of those above, and no two become the same. */
export const besideWhen = (text: string): string => (/^~+when\+?(?:#\d+)?$/.test(text) ? `~${text}` : text)

function childDone(attempt: Attempt, { output, ...facts }: ChildDone): Command {
  return { type: 'step.complete', ...attempt, ...given(output), ...facts }
}

const given = (output: unknown): { output?: unknown } => (output === undefined ? {} : { output })

function contextOf({ state, branch, work }: StepPort, of?: 'when'): AnyStepContext {
  const { message } = branch
  const sees = message.kind === 'step' ? message.sees : []
  const steps = stepOutputs(state, barrierOf(state, rootBarrier), sees)
  const item =
    message.kind === 'step' && message.item !== undefined
      ? { item: barrierOf(state, branch.scope).calls[message.item]?.request, index: message.item }
      : {}
  return new StepView(state, work, { input: state.run?.input, steps, ...item }, of) as unknown as AnyStepContext
}

/**
 * What a step's code is given: frozen, with its functions as own properties, as a turn's. Its signal stands on the prototype: the engine
 * of JavaScript keeps an object's own getter among what is old, and with it all of the run's state, until the whole memory is collected.
 */
class StepView extends BoundWork {
  readonly #work: WorkParts

  constructor({ run }: State, work: WorkParts, given: object, of?: 'when') {
    super(work, of)
    this.#work = work
    const { branch: branchId, attempt } = work.attempt
    const parts = { attempt, runId: run?.id ?? '', branchId, tags: run?.tags ?? {}, idempotencyKey: work.idempotencyKey() }
    Object.assign(this, parts, given)
    Object.freeze(this)
  }

  get signal(): AbortSignal {
    return this.#work.signal()
  }
}

function itemsOf(port: StepPort, items: unknown): readonly unknown[] {
  const step = port.branch.agent
  if (!Array.isArray(items)) throw wrong(`\`each\` of the step '${step}' must give a list, not ${shown(items)}`)
  return taken(port, items, `what \`each\` of the step '${step}' gave`) as readonly unknown[]
}

/** What is no JSON is for the run to refuse. */
function childInput(input: unknown): unknown {
  const json = toJson(input)
  return 'problem' in json ? input : json.value
}

function wrong(message: string): CodedFailure {
  return new CodedFailure({ code: 'STEP_FAILED', message, retryable: false, at: {} })
}

/** A copy of what a step's code gave that nobody can change: JSON, and no more of it than the store takes. */
function taken({ maxValue }: StepPort, value: unknown, what: string): unknown {
  const json = toJson(value)
  if ('problem' in json) throw wrong(`${what} is no JSON at ${json.path}: ${json.problem}`)
  const size = bytesOver(maxValue, json.size, json.value)
  if (size !== null) throw tooLarge(what, size, maxValue)
  return json.value
}

async function ask(port: StepPort, code: Extract<StepCode, { kind: 'ask' }>, ctx: AnyStepContext): Promise<Command> {
  const { state, branch, attempt } = port
  const question = await andThen(code.question(ctx), (asked) => taken(port, asked, 'the question'))
  const shape = state.run?.shape
  const expiresMs = shape?.kind === 'graph' ? shape.steps.find(({ id }) => id === branch.agent)?.expiresMs : null
  const schema = jsonSchemaOf(code.schema)
  const timeout = typeof expiresMs === 'number' ? { timeoutMs: expiresMs } : {}
  return {
    type: 'turn.complete',
    ...attempt,
    action: Object.freeze({ type: 'ask', question: question ?? null, ...timeout, ...(schema !== undefined && { schema }) }),
  }
}
