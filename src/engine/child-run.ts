import type { Definition } from '../define/definition.js'
import { TuttiError } from '../define/tutti-error.js'
import { attemptId } from '../kernel/ids.js'
import type { Attempt, State } from '../kernel/state.js'
import { barrierOf, branchOf, isOver, shapeOf } from '../kernel/state.js'
import type { Engine } from './engine.js'
import { CodedFailure } from '../define/failure-of.js'
import { startRun } from './start.js'

/** `<run>:<step>` or `<run>:<step>:<item>`, with `@2`, `@3`… when its step is tried again: the same on every execution of an attempt. */
export function childRunId(state: State, attempt: Attempt): string {
  const branch = branchOf(state, attempt.branch)
  const item = barrierOf(state, branch.scope).each === null ? '' : `:${branch.slots[0] ?? 0}`
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
): Promise<unknown> {
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
      limits: inherited,
      parent: { run: run.id, branch: attemptId(attempt.branch, attempt.turn, attempt.attempt), depth },
    })
  } catch (error) {
    if (!TuttiError.is(error, 'RUN_EXISTS')) throw error
  }
  // It was paused while its child was being started.
  if (isPaused()) await engine.submit(id, { type: 'run.pause', by: `the run ${run.id}` })
  return ended(engine, run.id, id, signal)
}

async function ended(engine: Engine, parent: string, id: string, signal: AbortSignal): Promise<unknown> {
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
      const changed = engine.changed(id)
      try {
        const state = (await engine.current(id))?.state
        if (state === undefined) throw new Error(`the child run ${id} is gone`)
        if (isOver(state)) return outputOf(id, state)
        await Promise.race([changed.wait, left])
      } finally {
        changed.stop()
      }
    }
  } finally {
    signal.removeEventListener('abort', stop)
  }
}

function outputOf(id: string, state: State): unknown {
  const { outcome } = state
  if (outcome?.status === 'succeeded') return outcome.output
  const cause =
    outcome?.status === 'failed'
      ? outcome.error
      : { code: 'CANCELLED' as const, message: outcome?.reason ?? 'it was cancelled', retryable: false, at: {} }
  throw new CodedFailure({
    code: 'CHILD_FAILED',
    message: `the child run ${id} ${outcome?.status ?? 'failed'}: ${cause.message}`,
    retryable: cause.retryable,
    at: {},
    cause,
  })
}
