import type { Draft } from './draft.js'
import { emit, NeedsCode } from './draft.js'
import type { Failure, FailureCode } from './failure.js'
import { byId } from './ids.js'
import { toJson } from './json.js'
import { compensateRun, rollbackOf } from './compensation.js'
import { own } from './own.js'
import { contributions } from './reported.js'
import type { GraphShape, TopologyShape } from './shape.js'
import type { Barrier, Outcome } from './state.js'
import { stepOutputs, withoutHoles } from './step-outputs.js'
import { shapeOf } from './state.js'
import { thrownText } from './thrown-text.js'

interface FinishOf {
  readonly by: string
  readonly branch: string
  readonly output: unknown
}

/** How the run ends, now that its root has fired: the failure of the lowest failed slot itself, or what was finished with. */
export function decideRun(draft: Draft, root: Barrier): void {
  const shape = shapeOf(draft.state)
  const outcome = shape.kind === 'graph' ? graphOutcome(draft, shape, root) : (failureOf(root) ?? outputOf(draft, shape, finishes(root)))
  const { branches, aborting, run } = draft.state
  if (branches.size === 0 && aborting.size === 0 && run?.undoes !== true) end(draft, outcome)
  else if (outcome.status === 'failed') emit(draft, { type: 'run.decided', status: 'failed', error: outcome.error })
  else if (outcome.status === 'succeeded') emit(draft, { type: 'run.decided', status: 'succeeded', ...given('output', outcome.output) })
}

function given<K extends string>(key: K, value: unknown): { [P in K]?: unknown } {
  return (value === undefined ? {} : { [key]: value }) as { [P in K]?: unknown }
}

function failureOf(root: Barrier): Outcome | null {
  for (const [, slot] of root.slots.entries()) if (slot.status === 'failed') return { status: 'failed', error: slot.error }
  return null
}

/** What arrived at the root and what escaped to it, by branch id; a merged branch finishes once. */
function finishes(root: Barrier): FinishOf[] {
  const arrived: FinishOf[] = []
  for (const [, slot] of root.slots.entries())
    if (slot.status === 'arrived' && slot.first) arrived.push({ by: slot.by, branch: slot.branch ?? '', output: slot.value })
  const escaped = contributions(root, null).here.map(({ by, branch, value }) => ({ by, branch, output: value }))
  return byId([...arrived, ...escaped], (finish) => finish.branch)
}

function failed(code: FailureCode, message: string, data?: unknown): Outcome {
  const error: Failure = { code, message, retryable: false, at: {}, ...(data !== undefined && { data }) }
  return { status: 'failed', error }
}

function outputOf(draft: Draft, shape: TopologyShape, all: readonly FinishOf[]): Outcome {
  const { result } = shape
  if (result === 'function') return computed(draft, all)
  if (result === 'list') return { status: 'succeeded', output: Object.freeze(all.map((finish) => finish.output ?? null)) }
  const [only] = all
  if (only === undefined)
    return failed('NO_RESULT', "the run ended and nobody finished: let an agent with an edge to End call finish, or give `result: 'list'`")
  return all.length === 1 ? { status: 'succeeded', output: only.output } : several(draft, all)
}

function several(draft: Draft, all: readonly FinishOf[]): Outcome {
  const { joins } = shapeOf(draft.state)
  const often = all.map((finish) => finish.by).filter((by, index, list) => list.indexOf(by) !== index)
  const unmerged = [...new Set(often)].filter((by) => !joins.includes(by))
  const meet = unmerged.length > 0 ? `let branches meet with \`joins: [${unmerged.map((by) => `'${by}'`).join(', ')}]\`, or ` : ''
  return failed(
    'SEVERAL_FINISHES',
    `${all.length} branches finished where one was expected (${all.map((finish) => `${finish.by} on ${finish.branch}`).join(', ')}): ${meet}take them all with \`result: 'list'\` or a function`,
    { branches: all.map((finish) => finish.branch) },
  )
}

function computed(draft: Draft, all: readonly FinishOf[]): Outcome {
  const result = draft.code?.result
  if (result === undefined) throw new NeedsCode('the function `result`')
  return made('result', () => result(Object.freeze(all.map((finish) => Object.freeze({ ...finish })))))
}

/** The failure of the first failed step in declared order, with the others beside it; else what the graph makes of its steps. */
function graphOutcome(draft: Draft, { steps, required, result }: GraphShape, root: Barrier): Outcome {
  const slotOf = draft.state.run?.slots ?? {}
  const slots = steps.map(({ id }) => root.slots.get(own(slotOf, id) ?? -1))
  const [first, ...others] = slots.flatMap((slot) => (slot?.status === 'failed' ? [slot.error] : []))
  if (first !== undefined) return { status: 'failed', error: others.length === 0 ? first : { ...first, others } }
  const missing = steps.find(({ id }, index) => required.includes(id) && slots[index]?.status === 'skipped')
  if (missing !== undefined) return failed('REQUIRED_SKIPPED', `the step '${missing.id}' is required and was skipped`, { step: missing.id })
  const outputs = stepOutputs(
    draft.state,
    root,
    steps.map(({ id }) => id),
  )
  const output = draft.code?.output
  if (result === 'steps') return made('output', () => withoutHoles(outputs))
  if (output === undefined) throw new NeedsCode('the function of `.output`')
  return made('output', () => withoutHoles(output(Object.freeze({ input: draft.state.run?.input, steps: outputs }))))
}

/** `by`: what the user calls that which makes the output, in a topology and in a graph. */
function made(by: 'result' | 'output', make: () => unknown): Outcome {
  try {
    const json = toJson(make())
    if ('problem' in json) return failed('RESULT_FAILED', `\`${by}\` gave what is no JSON at ${json.path}: ${json.problem}`)
    return { status: 'succeeded', output: json.value }
  } catch (error) {
    return failed('RESULT_FAILED', `\`${by}\` threw: ${thrownText(error)}`)
  }
}

/** The run's last event, once it is decided and nothing of it is live, aborting or being undone. */
export function endIfOver(draft: Draft): void {
  const { status, outcome, branches, aborting, undo, keepsDone, run } = draft.state
  if (outcome === null || (status !== 'running' && status !== 'compensating')) return
  if (branches.size > 0 || aborting.size > 0 || undo.plans.size > 0) return
  const undoes = (outcome.status !== 'succeeded' || (run?.undoOf ?? null) !== null) && !keepsDone
  if (status === 'running' && undoes && compensateRun(draft, outcome) && draft.state.undo.plans.size > 0) return
  end(draft, outcome)
}

function end(draft: Draft, outcome: Outcome): void {
  const rolled = rollbackOf(draft.state)
  switch (outcome.status) {
    case 'succeeded':
      return emit(draft, { type: 'run.succeeded', ...given('output', outcome.output), ...(rolled.rollback !== 'none' && rolled) })
    case 'failed':
      return emit(draft, { type: 'run.failed', error: outcome.error, ...rolled })
    case 'cancelled':
      return emit(draft, { type: 'run.cancelled', ...(outcome.reason !== null && { reason: outcome.reason }), ...rolled })
  }
}
