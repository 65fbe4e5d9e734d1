import type { Definition } from '../define/definition.js'
import { TuttiError } from '../define/tutti-error.js'
import { attemptId } from '../kernel/ids.js'
import type { Failure } from '../kernel/failure.js'
import type { Attempt, State } from '../kernel/state.js'
import type { DoneNode } from '../kernel/undo-state.js'
import { barrierOf, branchOf, isOver, shapeOf } from '../kernel/state.js'
import type { Engine } from './engine.js'
import { CodedFailure } from '../define/failure-of.js'
import { startRun } from './start.js'

/** `<run>:<step>` or `<run>:<step>:<item>`, with `@2`, `@3`… when its step is tried again: the same on every execution of an attempt. */
export function childRunId(state: State, attempt: Attempt): string {
  const branch = branchOf(state, attempt.branch)
  const item = barrierOf(state, branch.scope).each === null ? '' : `:${branch.slot}`
  return `${state.run?.id}:${branch.agent}${item}${attempt.attempt > 1 ? `@${attempt.attempt}` : ''}`
}

/**
 * Runs a definition as a child of a step and gives its output. It has a journal of its own: whoever executes the step again finds it
 * there. An abort cancels it and waits for its end, unless it is this process that stops: then whoever takes the run over goes on with it.
 */
export async function childRun(
  engine: Engine,
  state: State,
  attempt: Attempt,
  definition: Definition,
  input: unknown,
  signal: AbortSignal,
  isPaused: () => boolean,
): Promise<ChildDone> {
  const { run } = state
  if (run === null) throw new Error('the run has not started')
  const id = childRunId(state, attempt)
  const depth = (run.parent?.depth ?? 0) + 1
  const { limits } = shapeOf(state)
  if (depth > limits.maxDepth)
    throw new CodedFailure({
      code: 'LIMIT_DEPTH',
      message: `child runs nest deeper than the ${limits.maxDepth} levels they may (maxDepth)`,
      retryable: false,
      at: {},
    })
  const { timeoutMs, concurrency, ...counts } = limits
  const inherited = { ...counts, ...(timeoutMs !== null && { timeoutMs }), ...(concurrency !== null && { concurrency }) }
  try {
    await startRun(engine, definition, {
      id,
      input,
      tags: run.tags,
      ...(run.session !== null && { session: run.session }),
      conversation: run.conversation,
      limits: inherited,
      parent: { run: run.id, branch: attemptId(attempt.branch, attempt.turn, attempt.attempt), depth },
    })
  } catch (error) {
    if (!TuttiError.is(error, 'RUN_EXISTS')) throw error
  }
  // It was paused while its child was being started.
  if (isPaused()) await engine.submit(id, { type: 'run.pause', by: `the run ${run.id}` })
  return childOutput(id, await ended(engine, run.id, id, signal))
}

/** The state of a child run that is over. An abort cancels it. */
async function ended(engine: Engine, parent: string, id: string, signal: AbortSignal): Promise<State> {
  let letGo: (reason: unknown) => void = () => {}
  const left = new Promise<never>((_, reject) => {
    letGo = reject
  })
  left.catch(() => {})
  const aborted = async (): Promise<void> => {
    if (engine.closed || (await engine.entry(parent))?.owner === null) return letGo(signal.reason)
    await engine.submit(id, { type: 'run.cancel', reason: 'the step that it belongs to was cancelled' })
  }
  const stop = (): void => void aborted().catch(letGo)
  signal.addEventListener('abort', stop, { once: true })
  if (signal.aborted) stop()
  try {
    for (;;) {
      const changed = engine.listeners.waitFor(id, 'end')
      try {
        const state = (await engine.current(id))?.state
        if (state === undefined) throw new Error(`the child run ${id} is gone`)
        if (isOver(state)) return state
        const stopped = engine.stoppedBy(id)
        if (stopped !== null) throw stopped
        await Promise.race([changed.wait, left])
      } finally {
        changed.stop()
      }
    }
  } finally {
    signal.removeEventListener('abort', stop)
  }
}

/** What a child run came to; `child` is its id, if it has done something that can be undone. */
export interface ChildDone {
  readonly output: unknown
  readonly child?: string
}

/** A child run has failed and could not undo all that it had done. */
class NotUndone extends CodedFailure {
  readonly notUndone: readonly string[]
  constructor(failure: Failure, notUndone: readonly string[]) {
    super(failure)
    this.notUndone = notUndone
  }
}

/** What a child run left undone, if this is thrown by one. */
export function notUndoneBy(thrown: unknown): { notUndone?: readonly string[] } {
  try {
    return thrown instanceof NotUndone ? { notUndone: thrown.notUndone } : {}
  } catch {
    // A proxy that was revoked can't even be asked what it is.
    return {}
  }
}

export function childOutput(id: string, state: State): ChildDone {
  const { outcome, undo } = state
  if (outcome?.status === 'succeeded') return { output: outcome.output, ...(toUndo(state).length > 0 && { child: id }) }
  const cause =
    outcome?.status === 'failed'
      ? outcome.error
      : { code: 'CANCELLED' as const, message: outcome?.reason ?? 'it was cancelled', retryable: false, at: {} }
  const failure: Failure = {
    code: 'CHILD_FAILED',
    message: `the child run ${id} ${outcome?.status ?? 'failed'}: ${cause.message}`,
    retryable: cause.retryable,
    at: {},
    cause,
  }
  if (undo.left.size === 0) throw new CodedFailure(failure)
  throw new NotUndone(
    failure,
    [...undo.left.keys()].map((entry) => `${id}/${entry}`),
  )
}

/** What a run has done and nobody has undone yet, with what joins it. */
function toUndo({ undo }: State): readonly DoneNode[] {
  const nodes = [...undo.nodes.values()].filter(({ entry }) => entry === null || entry.status === 'done')
  return nodes.some(({ entry }) => entry !== null) ? nodes : []
}

/** Undoes what a child run has done: a run of its own, from the child's journal, which whoever tries this again finds there. */
export async function undoChildRun(engine: Engine, parent: State, child: string, signal: AbortSignal): Promise<void> {
  const id = `${child}:undo`
  const state = (await engine.current(child))?.state
  const run = state?.run ?? null
  const definition = run === null ? null : engine.definition(run.shape.name)
  if (state === undefined || run === null || parent.run === null || definition === null)
    throw new CodedFailure({
      code: 'CHILD_FAILED',
      message: `the child run ${child} is gone, or its definition is`,
      retryable: false,
      at: {},
    })
  const { nonce, shape, tags, undoOf, parent: above } = run
  const undoes = { run: undoOf?.run ?? child, nonce: undoOf?.nonce ?? nonce, nodes: toUndo(state) }
  const command = {
    type: 'run.start',
    runId: id,
    nonce: `${nonce}-undo`,
    shape,
    tags,
    undoes,
    ...(above !== null && { parent: above }),
  } as const
  const { refusal } = await engine.create(id, definition, command)
  if (refusal !== undefined && refusal.code !== 'RUN_EXISTS') throw new Error(refusal.message)
  const over = await ended(engine, parent.run.id, id, signal)
  if (over.undo.left.size === 0) return
  const left = [...over.undo.left.keys()].join(', ')
  throw new CodedFailure({ code: 'CHILD_FAILED', message: `${id} could not undo ${left}`, retryable: false, at: {} })
}
