import { randomUUID } from 'node:crypto'
import { atOnce } from '../define/at-once.js'
import { bytesOver } from '../define/bytes-over.js'
import { checkOptions } from '../define/call-check.js'
import type { Definition, Internals, TopologyInternals } from '../define/definition.js'
import { isDefinition } from '../define/definition.js'
import { noDefinition } from '../define/no-definition.js'
import type { Limits } from '../define/limits.js'
import { limitsGiven, limitsTaken } from '../define/limits.js'
import { anything, aRecord, aSignal, type Kind, tagRecord } from '../define/option-check.js'
import { TuttiError } from '../define/tutti-error.js'
import type { BranchState } from '../kernel/action.js'
import type { Command } from '../kernel/command.js'
import { runIdPattern } from '../kernel/ids.js'
import { jsonSize, toJson } from '../kernel/json.js'
import type { RunLimits } from '../kernel/shape.js'
import type { Parent, Said } from '../kernel/state.js'
import { asJson, checkedJson } from '../define/check-schema.js'
import { andThen, isLater, type Maybe } from '../define/maybe.js'
import { thrownText } from '../kernel/thrown-text.js'
import { checkSession, conversationOf } from './conversation.js'
import type { Engine } from './engine.js'
import { keyReused, onceUnder, rememberedUnder } from './keyed.js'
import { refused } from './refused.js'
import { outputOf, runHandle, untilOver } from './run-handle.js'
import type { Run, StartOptions } from './tutti.js'
import { closedEngine } from './while-open.js'

export type StartGiven = StartOptions & { readonly input?: unknown }

const startKinds: Readonly<Record<keyof StartGiven, Kind>> = {
  id: { is: (value) => typeof value === 'string' && runIdPattern.test(value), words: 'a text of 1 to 64 letters, digits, _ and -' },
  input: anything,
  tags: tagRecord,
  limits: aRecord,
  signal: aSignal,
  // What these must be is said where they are used, before anything is recorded.
  key: anything,
  session: anything,
}

/** Starts a run for its user. */
export async function start(engine: Engine, of: Definition | string, given: StartGiven, defaults: Limits): Promise<Run<never>> {
  const { id, definition, tags } = await started(engine, of, given, defaults)
  return runHandle(engine, id, definition, tags)
}

/** The same for who wants nothing of it but its output. */
export async function execute(engine: Engine, of: Definition | string, given: StartGiven, defaults: Limits): Promise<unknown> {
  const { id } = await started(engine, of, given, defaults)
  if (engine.closed) throw closedEngine()
  const { state } = await untilOver(engine, id)
  return outputOf(id, state.outcome)
}

function started(engine: Engine, of: Definition | string, given: StartGiven, defaults: Limits): Promise<Started> {
  checkOptions('start()', given, startKinds, ({ limits }) => limitsGiven(limits))
  const id = given.id ?? newId()
  const named = given.id !== undefined
  const { input, key, tags, session, signal } = given
  const limits = limitsTaken(given.limits ?? {})
  const starting = startRun(engine, of, { id, named, input, key, tags, session, limits, defaults, signal })
  if (signal === undefined) return starting
  return starting.then((run) => {
    cancelWith(signal, runHandle(engine, run.id, run.definition, run.tags))
    return run
  })
}

interface Started {
  readonly id: string
  readonly definition: string
  readonly tags: Readonly<Record<string, string>>
}

export interface Starting {
  readonly id: string
  /** Whether somebody chose the id: then an idempotency key must not stand for a run of another one. */
  readonly named?: boolean
  readonly input?: unknown
  readonly key?: string | undefined
  readonly tags?: Readonly<Record<string, string>> | undefined
  readonly session?: string | undefined
  /** Of a child run: what its parent was given. */
  readonly conversation?: readonly Said[]
  readonly limits: Limits
  /** Of a child run: the limits of the run above. */
  readonly above?: RunLimits
  readonly defaults?: Limits
  readonly signal?: AbortSignal | undefined
  readonly parent?: Parent
}

/**
 * Starts a run: everything that can be wrong with it is found before anything is recorded. All that is given is taken before anything is
 * waited for: whoever starts it may go on with that meanwhile.
 */
export async function startRun(engine: Engine, of: Definition | string, given: Starting): Promise<Started> {
  const { id } = given
  const definition = resolved(engine, of)
  const tags = checkTags(given.tags ?? {}, engine.options.store.promises.maxValue)
  const limits = inAll(tightest(definition.shape.limits, [given.defaults ?? {}, given.limits]), definition, given.above)
  const request = given.key === undefined ? null : requestOf(definition, given.input)
  let input: unknown
  let state: BranchState | undefined
  try {
    // It waits only for what there is to wait for: many runs may be started at once.
    const checking = checkInput(definition, given.input, engine.options.store.promises.maxValue)
    input = isLater(checking) ? await checking : checking
    state = firstState(definition, input, engine.options.store.promises.maxValue)
  } catch (error) {
    // What is sent again was taken when it was sent first, also if the schema is another by now, or says otherwise of it.
    const before = given.key === undefined || request === null ? null : await rememberedUnder(engine, given.key, request)
    if (before === null) throw error
    return startedBefore(engine, definition, given, before.run)
  }
  const conversation = given.conversation ?? (given.session === undefined ? [] : await conversationBefore(engine, given.session))
  const command: Command = {
    type: 'run.start',
    runId: id,
    nonce: engine.options.seam?.nonce(id) ?? newId(),
    shape: limits === definition.shape.limits ? definition.shape : Object.freeze({ ...definition.shape, limits }),
    ...(input !== undefined && { input }),
    tags,
    ...(given.session !== undefined && { session: given.session }),
    ...(conversation.length > 0 && { conversation }),
    ...(given.parent !== undefined && { parent: given.parent }),
    ...(state !== undefined && { state }),
  }
  const announcing = engine.announce()
  if (announcing !== null) await announcing
  // Whoever has given it up meanwhile wants nothing to begin; from here on it is a run, and cancelled.
  if (given.signal?.aborted === true) throw given.signal.reason
  const { run, outcome } =
    given.key === undefined
      ? { run: id, outcome: await engine.create(id, definition, command) }
      : await onceUnder(engine, given.key, { request: request ?? '', run: id }, (put) => engine.create(id, definition, command, put))
  if (outcome?.refusal !== undefined) throw refused(outcome.refusal)
  return outcome === null ? startedBefore(engine, definition, given, run) : { id: run, definition: definition.shape.name, tags }
}

/** Of a run that was started before, the tags are its own. */
async function startedBefore(engine: Engine, { shape }: Internals, { id, named, key, tags = {} }: Starting, run: string): Promise<Started> {
  // Who gives no id takes the run that is there; who wants another one wants another run.
  if (key !== undefined && named && run !== id) throw keyReused(key)
  const before = await engine.entry(run)
  return { id: run, definition: shape.name, tags: before?.state.run?.tags ?? tags }
}

async function conversationBefore(engine: Engine, session: string): Promise<readonly Said[]> {
  checkSession(session)
  return conversationOf(engine.options.store, session)
}

/** A start as its key remembers it: no input is another one than null. What is no JSON is no request. */
function requestOf({ shape }: Internals, input: unknown): string | null {
  const json = toJson(input)
  if ('problem' in json) return null
  return JSON.stringify(json.value === undefined ? ['start', shape.name] : ['start', shape.name, json.value])
}

/** Twenty hexadecimal digits: those of a UUID that say nothing but chance, of which the system keeps some at hand. */
function newId(): string {
  const uuid = randomUUID()
  return uuid.slice(0, 8) + uuid.slice(24)
}

function resolved(engine: Engine, of: Definition | string): Internals {
  const internals = typeof of === 'string' ? engine.definition(of) : definitionOf(engine, of)
  if (internals === null)
    throw new TuttiError('DEFINITION_NOT_FOUND', `there is no definition '${typeof of === 'string' ? of : of.name}' in this process`, {
      hint: 'give it with open({ definitions: [ … ] })',
    })
  return internals
}

function definitionOf(engine: Engine, of: Definition): Internals {
  if (!isDefinition(of)) throw noDefinition(of)
  return engine.register(of)
}

function checkSize(what: string, estimate: number, value: unknown, maxValue: number): void {
  const size = bytesOver(maxValue, estimate, value)
  if (size !== null)
    throw new TuttiError('VALUE_TOO_LARGE', `${what} about ${size} bytes; the store takes ${maxValue}`, {
      hint: 'keep it elsewhere and pass a reference',
    })
}

/** A copy of the tags that nobody can change. */
function checkTags(tags: Readonly<Record<string, string>>, maxValue: number): Readonly<Record<string, string>> {
  const json = toJson(tags)
  if ('problem' in json) throw new TuttiError('INVALID_INPUT', `the tags can't be kept, at ${json.path}: ${json.problem}`)
  checkSize('the tags have', json.size, json.value, maxValue)
  return json.value as Readonly<Record<string, string>>
}

/** The run's input is what the definition's schema makes of it; an agent right after Start must take it too. */
function checkInput(definition: Internals, given: unknown, maxValue: number): Maybe<unknown> {
  const json = asJson(given, 'the input')
  if ('problem' in json)
    throw new TuttiError('INVALID_INPUT', json.problem, {
      hint: 'an input is JSON: texts, numbers, booleans, null, lists and plain objects',
    })
  return andThen(checkedJson(definition.input, json.value, 'the input'), (input) => {
    if ('problem' in input)
      throw new TuttiError('INVALID_INPUT', input.problem, { hint: `look at the input schema of '${definition.shape.name}'` })
    checkSize('the input has', jsonSize(input.value), input.value, maxValue)
    if (definition.kind === 'graph') return input.value
    const firsts = definition.shape.edges.flatMap(({ from, to }) => (from === 'Start' ? [to] : []))
    return firsts.some((to) => definition.agents[to]?.input !== undefined) ? takenBy(definition, firsts, input.value) : input.value
  })
}

/** What the only agent after Start makes of an input; several must each take it as it is. */
async function takenBy({ agents }: TopologyInternals, firsts: readonly string[], input: unknown): Promise<unknown> {
  let value = input
  for (const to of firsts) {
    const taken = await checkedJson(agents[to]?.input, input, `the input, for ${to},`)
    if ('problem' in taken) throw new TuttiError('INVALID_INPUT', taken.problem, { hint: `look at the input schema of the agent ${to}` })
    if (firsts.length === 1) value = taken.value
  }
  return value
}

function firstState(definition: Internals, input: unknown, maxValue: number): BranchState | undefined {
  if (definition.kind === 'graph' || definition.state === undefined) return undefined
  let made: unknown
  try {
    made = atOnce(definition.state, 'it')(input)
  } catch (cause) {
    throw new TuttiError('INVALID_INPUT', `\`state\` threw for this input: ${thrownText(cause)}`, {
      cause,
    })
  }
  const json = toJson(made)
  if ('problem' in json) throw new TuttiError('INVALID_INPUT', `\`state\` gave what is no JSON at ${json.path}: ${json.problem}`)
  if (typeof json.value !== 'object' || json.value === null || Array.isArray(json.value))
    throw new TuttiError('INVALID_INPUT', '`state` must give a record')
  const unmerged = Object.keys(json.value).find((key) => !Object.hasOwn(definition.shape.merge, key))
  if (unmerged !== undefined)
    throw new TuttiError('INVALID_TOPOLOGY', `the state has the key '${unmerged}', for which no merge is declared`, {
      hint: `add it to \`merge\`: { ${unmerged}: 'mine' }`,
    })
  checkSize('what `state` gave has', json.size, json.value, maxValue)
  return json.value as BranchState
}

/** Of the limits of the definition, the engine and the start, the tightest holds. */
function tightest(base: RunLimits, others: readonly Limits[]): RunLimits {
  if (others.every((limits) => Object.keys(limits).length === 0)) return base
  const made: Record<string, number | null> = { ...base }
  for (const limits of others) {
    for (const key of [...Object.keys(base), 'tokens', 'costUsd']) {
      const given = (limits as Readonly<Record<string, number | undefined>>)[key]
      const known = made[key]
      if (given !== undefined) made[key] = known === null || known === undefined ? given : Math.min(known, given)
    }
  }
  return made as unknown as RunLimits
}

/** What a child run may use is what was left above it; what may be used in all is the same in every order. Its definition may have limits of its own. */
function inAll(limits: RunLimits, { shape }: Internals, above: RunLimits | undefined): RunLimits {
  if (above === undefined) return limits
  const { wholeTokens = above.tokens, wholeCostUsd = above.costUsd } = above
  return {
    ...limits,
    ...(wholeTokens !== undefined && { wholeTokens: Math.min(wholeTokens, shape.limits.tokens ?? wholeTokens) }),
    ...(wholeCostUsd !== undefined && { wholeCostUsd: Math.min(wholeCostUsd, shape.limits.costUsd ?? wholeCostUsd) }),
  }
}

function cancelWith(signal: AbortSignal, run: Run): void {
  const cancel = (): void => {
    // It may have ended meanwhile: then there is nothing to cancel.
    run.cancel({ reason: 'the signal given to start was aborted' }).catch(() => {})
  }
  if (signal.aborted) cancel()
  else {
    signal.addEventListener('abort', cancel, { once: true })
    const forget = (): void => signal.removeEventListener('abort', cancel)
    run.result().then(forget, forget)
  }
}
