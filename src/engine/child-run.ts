import type { Definition } from '../define/definition.js'
import { internalsOf } from '../define/definition.js'
import type { Maybe } from '../define/maybe.js'
import { TuttiError } from '../define/tutti-error.js'
import type { Command } from '../kernel/command.js'
import type { Event, LateWork } from '../kernel/event.js'
import { evolve } from '../kernel/evolve.js'
import type { Failure, FailureCode } from '../kernel/failure.js'
import { entryOf } from '../kernel/fold-undo.js'
import { attemptId } from '../kernel/ids.js'
import type { Attempt, Known, State } from '../kernel/state.js'
import { attemptsOf, isOver, newState, runsChild, shapeOf } from '../kernel/state.js'
import type { RunLimits } from '../kernel/shape.js'
import type { DoneNode } from '../kernel/undo-state.js'
import { plus, type Usage, usedBy } from '../kernel/usage.js'
import { usageIn } from '../inspect/usage-report.js'
import type { Engine } from './engine.js'
import { JournalDamaged } from './codec.js'
import { CodedFailure } from '../define/failure-of.js'
import { thrownText } from '../kernel/thrown-text.js'
import { isOutOfReach, waitFor } from './out-of-reach.js'
import type { RunEntry } from './run-entry.js'
import { startRun } from './start.js'
import type { Store } from './store.js'
import { closedEngine } from './while-open.js'

/** `<run>:<step>` or `<run>:<step>:<item>`, with `@2`, `@3`… when its step is tried again: the same on every execution of an attempt. */
export function childRunId(state: State, { branch, agent, attempt }: Attempt): string {
  const { width, id } = state.run ?? {}
  // The branch may be gone: which item it is of stands in its id.
  const [root, ...ordinals] = branch.split('.')
  const item = ordinals.length > (root !== 'r' || width === 1 ? 0 : 1) ? `:${ordinals.at(-1)}` : ''
  return `${id}:${agent}${item}${attempt > 1 ? `@${attempt}` : ''}`
}

/** The step that a child run of this run belongs to, or the run that undoes it. */
export function stepOfChild(id: string, parent: string): string {
  return /[^:@]*/.exec(id.slice(parent.length + 1))?.[0] ?? ''
}

/** The run that undoes what a child run has done. */
const undoRunId = (child: string): string => `${child}:undo`

/** A run that another waits for; `isWanted`: what it comes to is still used. */
interface Child {
  readonly id: string
  readonly isWanted: boolean
}

/** The runs that a run waits for: those of its steps, and those that undo what they did. Some may not have been started yet. */
export function childrenOf(state: State): Child[] {
  if (state.run?.shape.kind !== 'graph') return []
  const ofStep = (attempts: readonly Attempt[], isWanted: boolean): Child[] =>
    attempts.filter(({ agent }) => runsChild(state, agent)).map((attempt) => ({ id: childRunId(state, attempt), isWanted }))
  const undos = state.undo.running.keys().flatMap((of): Child[] => {
    const { what, key = '' } = entryOf(state, of)
    return what === 'child' ? [{ id: undoRunId(key), isWanted: true }] : []
  })
  return [...ofStep(attemptsOf(state), true), ...ofStep(state.aborting.values(), false), ...undos]
}

/** The branches of those steps of a run whose own run is not there: what comes before it is code like any other, which its process may die of. */
export async function unbegunIn(store: Store, state: State): Promise<string[]> {
  const waiting = attemptsOf(state).filter(({ agent }) => runsChild(state, agent))
  const found = await Promise.all(waiting.map((attempt) => store.load(childRunId(state, attempt), { after: Number.MAX_SAFE_INTEGER })))
  return waiting.flatMap(({ branch }, place) => (found[place] === null ? [branch] : []))
}

/** The runs that a run has waited for, by its journal. */
export function childRunsIn([started, ...journal]: readonly Event[]): string[] {
  if (started?.type !== 'run.started') return []
  let state = evolve(newState, started)
  return journal.flatMap((event) => {
    // Another version may have other steps.
    if (event.type === 'run.claimed') state = evolve(state, event)
    if (event.type !== 'turn.started' || !runsChild(state, event.agent)) return []
    const child = childRunId(state, event)
    return [child, undoRunId(child)]
  })
}

type Resume = Extract<Command, { type: 'run.resume' }>

const pausedBy = (parent: State): string => `the run ${parent.run?.id}`

const cancelling = ({ keepsDone }: State) =>
  ({ type: 'run.cancel', reason: 'the step that it belongs to was cancelled', ...(keepsDone && { compensate: false }) }) as const

/** What happened to a run happens to the runs that it waits for, down to the last: whoever said it, and whoever has them. */
export async function alignChildren(engine: Engine, state: State): Promise<void> {
  await Promise.all(childrenOf(state).map((child) => align(engine, state, child).catch((error: unknown) => passOver(engine, child, error))))
}

/** One that can't be read is gone on with by nobody: whoever waits until the others are told need not wait for it. */
function passOver({ options }: Engine, { id }: Child, error: unknown): void {
  if (!(error instanceof JournalDamaged)) throw error
  options.onLog({ level: 'error', message: `it could not be told what happens above it: ${error.message}`, runId: id })
}

async function align(engine: Engine, parent: State, child: Child): Promise<void> {
  let above = parent
  // The parent may have been steered from elsewhere meanwhile, by somebody who saw its child as it was before: it is looked at again.
  while (await brought(engine, above, child)) {
    const now = (await engine.current(parent.run?.id ?? ''))?.state
    if (now === undefined || (now.pausedAt === null) === (above.pausedAt === null)) return
    above = now
  }
}

/** Whether a child run was told to pause, with those that it waits for, or to go on. */
async function brought(engine: Engine, parent: State, { id, isWanted }: Child): Promise<boolean> {
  // One that is being undone is not cancelled any more: if this run had paused it, it must still go on.
  if (!isWanted) await engine.submit(id, cancelling(parent))
  const child = (await engine.current(id))?.state
  if (child === undefined || isOver(child)) return false
  const by = pausedBy(parent)
  const pauses = isHeldBy(parent, child)
  // One that was paused for itself stays so.
  const resumes = parent.pausedAt === null && child.pausedAt !== null && (await lastPausedBy(engine, id)) === by
  if (pauses) await engine.submit(id, { type: 'run.pause', by })
  if (resumes) await engine.submit(id, { type: 'run.resume', by, ...known(parent) })
  return pauses || resumes
}

async function lastPausedBy(engine: Engine, run: string): Promise<string | undefined> {
  const pauses = (await engine.journal(run)).flatMap((event) => (event.type === 'run.paused' ? [event.by] : []))
  return pauses.at(-1)
}

/**
 * Whether a run holds one that it waits for, also one that is being undone: it is paused, and since then nobody has resumed that one for itself.
 * That is so if whoever resumed it knew of the pause: they are in two journals, and clocks may stand still or differ.
 */
function isHeldBy({ run, pausedAt, pausedSeq }: State, { resumed }: State): boolean {
  if (pausedAt === null) return false
  return resumed === null || resumed.run !== run?.id || resumed.seq < pausedSeq
}

const known = ({ run, seq }: State): { above?: Known } => (run === null ? {} : { above: { run: run.id, seq } })

/** A resume says what was known then of the run that waits for this one: what that run says later is not overruled by it. */
export function knowingAbove(engine: Engine, state: State, resume: Resume): Maybe<Resume> {
  if (resume.above !== undefined || state.run === null || state.run.parent === null) return resume
  return waitingFor(engine, state).then((above) => (above === null ? resume : { ...resume, ...known(above.state) }))
}

/** What a run that is taken over has missed of what happened to the one that waits for it: nothing of it is performed before it is said. */
export async function missedBy(engine: Engine, state: State): Promise<Command | null> {
  const above = await waitingFor(engine, state)
  return above === null ? null : missed(above.state, state)
}

/**
 * What happened to the runs above one has reached it when this resolves: nothing of it begins before. Whoever said it may have looked for
 * that run before it was there, or be on the way down to it.
 */
export function alignWithAbove(engine: Engine, entry: RunEntry): Promise<void> {
  return patiently(engine, () => broughtDown(engine, entry))
}

/** From the first of them down: what one has missed the next has missed too. */
async function broughtDown(engine: Engine, entry: RunEntry): Promise<void> {
  const above = await waitingFor(engine, entry.state)
  if (above === null) return
  await broughtDown(engine, above)
  const command = missed(above.state, entry.state)
  if (command !== null) await align(engine, above.state, { id: entry.id, isWanted: command.type !== 'run.cancel' })
}

/** The run that waits for one. What is undone of a run that is over is waited for by the run that undoes it. */
async function waitingFor(engine: Engine, { run }: State): Promise<RunEntry | null> {
  if (run === null || run.parent === null) return null
  const parent = await engine.current(run.parent.run)
  return run.undoOf !== null && parent !== null && isOver(parent.state) ? engine.current(undoRunId(parent.id)) : parent
}

function missed(above: State, state: State): Command | null {
  const { run, status, closing, pausedAt } = state
  const isWanted = run === null || run.parent === null || run.undoOf !== null || isWaitedFor(above, run.parent.branch)
  // One that undoes what it has done is not cancelled any more.
  if (!isWanted && !closing && status !== 'compensating') return cancelling(above)
  return pausedAt === null && isHeldBy(above, state) ? { type: 'run.pause', by: pausedBy(above) } : null
}

function isWaitedFor(parent: State, attempt: string): boolean {
  const branch = parent.branches.get(attempt.slice(0, attempt.indexOf('/')))
  return branch !== undefined && branch.startSeq !== 0 && attemptId(branch.id, branch.turn, branch.attempt) === attempt
}

/** What is out of reach only for a moment nobody needs to be told: so many tries take longer than a second. */
const triesUntold = 6

/** Does something with the store, again and again while that is out of reach: a run that is waited for goes on meanwhile, or will. */
export async function patiently<T>(engine: Engine, work: () => Maybe<T>): Promise<T> {
  for (let failures = 0; ; failures++) {
    try {
      return await work()
    } catch (error) {
      if (engine.closed || !isOutOfReach(error)) throw error
      const isDamaged = error instanceof JournalDamaged
      if (failures === (isDamaged ? 0 : triesUntold)) {
        const what = isDamaged ? 'another run waits for this one' : 'a run waits for another one, and the store is out of reach'
        engine.options.onLog({ level: 'error', message: `${what}: ${thrownText(error)}` })
      }
      await engine.options.clock.sleep(waitFor(failures))
    }
  }
}

/**
 * Runs a definition as a child of a step and gives its output. It has a journal of its own: whoever executes the step again finds it
 * there. An abort cancels it and waits for its end, unless it is this process that stops, or can't go on: then whoever takes the run over goes
 * on with it.
 */
export async function childRun(
  engine: Engine,
  state: State,
  attempt: Attempt,
  definition: Definition,
  input: unknown,
  signal: AbortSignal,
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
  const inherited = {
    ...counts,
    ...budgetLeft(state),
    ...(timeoutMs !== null && { timeoutMs }),
    ...(concurrency !== null && { concurrency }),
  }
  let isDamaged = false
  await patiently(engine, async () => {
    // What is not wanted any more is not begun.
    if (signal.aborted && (await engine.entry(id)) === null) throw signal.reason
    // One that is there and can't be read says so again, as long as that is so.
    if (isDamaged) await engine.entry(id)
    try {
      await startRun(engine, definition, {
        id,
        input,
        tags: run.tags,
        ...(run.session !== null && { session: run.session }),
        conversation: run.conversation,
        limits: inherited,
        above: limits,
        parent: { run: run.id, branch: attemptId(attempt.branch, attempt.turn, attempt.attempt), depth },
      })
    } catch (error) {
      isDamaged = error instanceof JournalDamaged
      if (TuttiError.is(error, 'RUN_EXISTS')) return
      // What one that is there was given was taken when it was made, also if the schema is another by now, or says otherwise of it.
      if (!isOutOfReach(error) && (await engine.entry(id)) !== null) return
      // It is the step that gave what the store does not take, as with its output.
      if (TuttiError.is(error, 'VALUE_TOO_LARGE'))
        throw new CodedFailure({ code: 'VALUE_TOO_LARGE', message: error.message, retryable: false, at: {} })
      throw error
    }
  })
  const over = await ended(engine, run.id, id, signal)
  return childDone(id, over, await usageOf(engine, over), definition, limits)
}

/** What a child run came to that has ended and is wanted. Throws if it failed; `above` are the limits of its parent. */
export function childDone(id: string, over: State, usage: Usage | undefined, definition: Definition, above: RunLimits): ChildDone {
  const crossed = crossedBy(over, definition, above)
  if (crossed !== null) throw new ChildFailed(crossed, over, usage)
  return { ...childOutput(id, over, usage), ...(usage !== undefined && { usage }) }
}

/** What is left of what a run may use: its child runs may use no more than that. */
function budgetLeft(state: State): { tokens?: number; costUsd?: number } {
  const { tokens, costUsd } = shapeOf(state).limits
  const { spent } = state
  return {
    ...(tokens !== undefined && { tokens: Math.max(0, tokens - spent.tokens - spent.reserved.tokens) }),
    ...(costUsd !== undefined && { costUsd: Math.max(0, costUsd - spent.costUsd - spent.reserved.costUsd) }),
  }
}

/**
 * What the models of a run have used, and what counts as used because nobody learned it. Most have called none, and their journals need not be read
 * for it.
 */
async function usageOf(engine: Engine, { run, spent }: State): Promise<Usage | undefined> {
  if (run === null || spent.tokens + spent.costUsd === 0) return undefined
  const told = await patiently(engine, async () => usageIn(await engine.journal(run.id)))
  const unheard = plus(spent, usedBy(told), -1)
  // Sums of fractions are not exact.
  if (unheard.tokens === 0 && unheard.costUsd < 1e-9) return told
  return { ...(told ?? { calls: 0, inputTokens: 0, outputTokens: 0 }), unheard }
}

/** A child run has crossed a limit that was not its own: then it is its parent that has. */
function crossedBy({ run, outcome }: State, definition: Definition, above: RunLimits): Failure | null {
  const code = outcome?.status === 'failed' ? outcome.error.code : null
  if (code !== 'LIMIT_TOKENS' && code !== 'LIMIT_COST') return null
  const limit = code === 'LIMIT_TOKENS' ? 'tokens' : 'costUsd'
  const own = internalsOf(definition).shape.limits[limit] ?? Number.POSITIVE_INFINITY
  if ((run?.shape.limits[limit] ?? own) >= own) return null
  const { wholeTokens = above.tokens, wholeCostUsd = above.costUsd } = above
  const words = code === 'LIMIT_TOKENS' ? `${wholeTokens} tokens it may use` : `${wholeCostUsd} USD it may cost`
  return { code, message: `the run needs more than the ${words} (${limit})`, retryable: false, at: {} }
}

/** The state of a child run that is over. An abort cancels it. */
async function ended(engine: Engine, parent: string, id: string, signal: AbortSignal): Promise<State> {
  let letGo: (reason: unknown) => void = () => {}
  const left = new Promise<never>((_, reject) => {
    letGo = reject
  })
  left.catch(() => {})
  const aborted = async (): Promise<void> => {
    const entry = engine.closed ? null : await engine.entry(parent)
    if (entry === null || entry.owner === null || entry.broken !== null) return letGo(signal.reason)
    await patiently(engine, () => align(engine, entry.state, { id, isWanted: false }))
  }
  const stop = (): void => void aborted().catch(letGo)
  signal.addEventListener('abort', stop, { once: true })
  if (signal.aborted) stop()
  try {
    // It may have been paused, or resumed, while it was being started, or while nobody had it.
    const above = await patiently(engine, () => engine.current(parent))
    if (above !== null && !signal.aborted) await patiently(engine, () => align(engine, above.state, { id, isWanted: true }))
    return await over(engine, id, left)
  } finally {
    signal.removeEventListener('abort', stop)
  }
}

/** The state of a run, once it is over, unless nobody waits for it any more. */
async function over(engine: Engine, id: string, left?: Promise<never>): Promise<State> {
  for (;;) {
    const changed = engine.listeners.waitFor(id, 'end')
    try {
      const state = (await patiently(engine, () => engine.current(id)))?.state
      if (state === undefined) throw new Error(`the child run ${id} is gone`)
      if (isOver(state)) return state
      // One that is stopped by a fault is waited for too: whoever takes both over may go on with it.
      if (engine.closed) throw closedEngine()
      await (left === undefined ? changed.wait : Promise.race([changed.wait, left]))
    } finally {
      changed.stop()
    }
  }
}

/** Ends the child run of an attempt that is not wanted, and that nobody here executes: what it came to all the same. */
export async function endChildRun(
  engine: Engine,
  state: State,
  attempt: Attempt,
): Promise<{ done?: LateWork; notUndone?: readonly string[]; usage?: Usage }> {
  // It is this process that stops, or can't go on: whoever takes the run over goes on with the other one, or ends it.
  const stopped = engine.closed ? closedEngine() : engine.stoppedBy(state.run?.id ?? '')
  if (stopped !== null) throw stopped
  const id = childRunId(state, attempt)
  if ((await patiently(engine, () => engine.entry(id))) === null) return {}
  await patiently(engine, () => align(engine, state, { id, isWanted: false }))
  const child = await over(engine, id)
  const usage = await usageOf(engine, child)
  const used = usage === undefined ? {} : { usage }
  if (state.run?.undoes !== true) return used
  try {
    const { notUndone, ...done } = childOutput(id, child)
    return { done, ...(notUndone !== undefined && { notUndone }), ...used }
  } catch (error) {
    return { ...leftBy(error), ...used }
  }
}

/** What a child run came to; `child` is its id, if it has done something that can be undone, and `notUndone` what it could not undo itself. */
export interface ChildDone {
  readonly output: unknown
  readonly child?: string
  readonly notUndone?: readonly string[]
  readonly usage?: Usage
}

/** A child run has failed. */
class ChildFailed extends CodedFailure {
  /** What it had done and could not undo. */
  readonly notUndone: readonly string[]
  readonly usage: Usage | undefined
  constructor(failure: Failure, state: State, usage: Usage | undefined) {
    super(failure)
    this.notUndone = leftIn(state)
    this.usage = usage
  }
}

/** What a child run has done and could not undo, as its parent calls it. */
const leftIn = ({ run, undo }: State): string[] => [...undo.left.keys()].map((entry) => `${run?.id}/${entry}`)

/** What a child run left undone and what it has used, if this is thrown by one. */
export function leftBy(thrown: unknown): { notUndone?: readonly string[]; usage?: Usage } {
  try {
    if (!(thrown instanceof ChildFailed)) return {}
    const { notUndone, usage } = thrown
    return { ...(notUndone.length > 0 && { notUndone }), ...(usage !== undefined && { usage }) }
  } catch {
    // A proxy that was revoked can't even be asked what it is.
    return {}
  }
}

function childOutput(id: string, state: State, usage?: Usage): ChildDone {
  const { outcome } = state
  if (outcome?.status === 'succeeded') {
    const notUndone = leftIn(state)
    return { output: outcome.output, ...(toUndo(state).length > 0 && { child: id }), ...(notUndone.length > 0 && { notUndone }) }
  }
  const cause =
    outcome?.status === 'failed'
      ? outcome.error
      : { code: 'CANCELLED' as const, message: outcome?.reason ?? 'it was cancelled', retryable: false, at: {} }
  const failure: Failure = {
    code: 'CHILD_FAILED',
    // Without the number of the attempt: a failure is the same in every order.
    message: `the child run ${id.replace(/@\d+/g, '')} ${outcome?.status ?? 'failed'}: ${cause.message}`,
    retryable: mayEndOtherwise(cause),
    at: {},
    cause,
  }
  throw new ChildFailed(failure, state, usage)
}

/** What somebody wanted, what comes out the same each time, and what must not be done twice. */
const final: readonly FailureCode[] = ['CANCELLED', 'AGENT_STOPPED', 'VALUE_TOO_LARGE', 'TURN_CRASHED', 'ACTIVITY_OUTCOME_UNKNOWN']

/**
 * Whether a run that failed so may end otherwise if it is started anew, by where the failure began. That a turn was not to be tried again
 * says nothing about a run in which everything is.
 */
function mayEndOtherwise({ code, cause }: Failure): boolean {
  return cause === undefined ? !code.startsWith('LIMIT_') && !final.includes(code) : mayEndOtherwise(cause)
}

/** What a run has done and nobody has undone yet, with what joins it. */
function toUndo({ undo }: State): readonly DoneNode[] {
  const nodes = [...undo.nodes.values()].filter(({ entry }) => entry === null || entry.status === 'done')
  return nodes.some(({ entry }) => entry !== null) ? nodes : []
}

/** Undoes what a child run has done: a run of its own, from the child's journal, which whoever tries this again finds there. */
export async function undoChildRun(engine: Engine, parent: State, child: string, signal: AbortSignal): Promise<void> {
  const id = undoRunId(child)
  const state = (await patiently(engine, () => engine.current(child)))?.state
  const run = state?.run ?? null
  if (state === undefined || run === null || parent.run === null)
    throw new CodedFailure({
      code: 'CHILD_FAILED',
      message: `the child run ${child} is gone, and nobody knows what to undo of it`,
      retryable: false,
      at: {},
    })
  const { nonce, shape, tags, session, undoOf, parent: above } = run
  const undoes = { run: undoOf?.run ?? child, nonce: undoOf?.nonce ?? nonce, nodes: toUndo(state) }
  const command = {
    type: 'run.start',
    runId: id,
    nonce: `${nonce}-undo`,
    shape,
    tags,
    ...(session !== null && { session }),
    undoes,
    ...(above !== null && { parent: above }),
  } as const
  const { refusal } = await patiently(engine, async () => engine.create(id, await engine.definitionOf(state), command))
  if (refusal !== undefined && refusal.code !== 'RUN_EXISTS') throw new Error(refusal.message)
  const over = await ended(engine, parent.run.id, id, signal)
  if (over.undo.left.size === 0) return
  const left = [...over.undo.left.keys()].join(', ')
  throw new CodedFailure({ code: 'CHILD_FAILED', message: `${id} could not undo ${left}`, retryable: false, at: {} })
}
