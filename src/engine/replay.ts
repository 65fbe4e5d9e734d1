import type { Internals } from '../define/definition.js'
import type { LanguageModel } from '../define/language-model.js'
import type { Provided } from '../define/resource.js'
import { usageIn } from '../inspect/usage-report.js'
import type { Command } from '../kernel/command.js'
import { decide } from '../kernel/decide.js'
import type { Event } from '../kernel/event.js'
import { evolve } from '../kernel/evolve.js'
import { attemptId } from '../kernel/ids.js'
import type { Attempt, State } from '../kernel/state.js'
import { attemptOf, newState, shapeOf } from '../kernel/state.js'
import type { ModelSource } from '../models/model-factory.js'
import { resolveModel } from '../models/resolve.js'
import { pricesFrom } from '../models/price.js'
import { Toolboxes } from '../models/toolboxes.js'
import { childDone, childRunId } from './child-run.js'
import { systemClock } from './clock.js'
import { Execution } from './execution.js'
import { disposeResources, runResources } from './run-resources.js'
import { laterOf } from './seam.js'

/** What a recorded run is executed again with. */
export interface ReplayGiven {
  readonly events: readonly Event[]
  readonly definition: Internals
  readonly resources: readonly Provided[]
  readonly models: ModelSource | undefined
  readonly maxValue: number
  /** The journal of a child run that has ended. */
  readonly child: (id: string) => Promise<readonly Event[]>
}

/** One attempt that did not do again what is recorded, or could not be executed again. */
export interface Replayed {
  /** `branch/turn/attempt`. */
  readonly at: string
  readonly agent: string
  readonly problem: string
}

export interface Replay {
  /** How many attempts were executed again. */
  readonly attempts: number
  readonly different: readonly Replayed[]
  /** What ended by the clock or from outside, and says nothing when it is executed again. */
  readonly skipped: readonly Replayed[]
}

/**
 * Executes every attempt of a recorded run again, each from the state it had, and compares what the run makes of it with its journal.
 * Recorded activities are given back and no other is started, so that nothing happens outside but what code does outside of steps.
 */
export async function replay(given: ReplayGiven): Promise<Replay> {
  const different: Replayed[] = []
  const skipped: Replayed[] = []
  let attempts = 0
  let state = newState
  const toolboxes = new Toolboxes()
  const made = runResources(given.resources, given.events.slice(0, 1).reduce(evolve, newState))
  for (const [index, event] of given.events.entries()) {
    const attempt = endedBy(event, state)
    if (attempt !== undefined) {
      const at = { at: attemptId(attempt.branch, attempt.turn, attempt.attempt), agent: attempt.agent }
      const why = untold(event)
      if (why !== null) skipped.push({ ...at, problem: why })
      else {
        attempts++
        const problem = await difference(given, { resources: made, toolboxes }, state, attempt, index)
        if (problem !== null) different.push({ ...at, problem })
      }
    }
    state = evolve(state, event)
  }
  await made.then((resources) => disposeResources(given.resources, resources))
  await toolboxes.close()
  return { attempts, different, skipped }
}

/** What all attempts are given, as in the run itself. */
interface Opened {
  readonly resources: Promise<ReadonlyMap<string, unknown>>
  readonly toolboxes: Toolboxes
}

/** The attempt that an event is the end of. */
function endedBy(event: Event, state: State): Attempt | undefined {
  switch (event.type) {
    case 'turn.completed':
    case 'turn.rejected':
    case 'turn.failed':
      return attemptOf(state, event.branch)
    case 'step.completed':
    case 'step.skipped':
    case 'barrier.opened':
      // Those of a step whose turn was in flight: a skip because of another step has none.
      return event.branch === undefined ? undefined : attemptOf(state, event.branch)
    default:
      return undefined
  }
}

function untold(event: Event): string | null {
  if (event.type !== 'turn.failed') return null
  if (event.timedOut === true) return 'it ran out of time'
  switch (event.error.code) {
    case 'TURN_CRASHED':
      return 'its process died'
    case 'AGENT_STOPPED':
      return event.error.message
    case 'RESOURCE_MISSING':
      return `it was not given what it uses: ${event.error.message}`
    default:
      return null
  }
}

/** How what an attempt does now differs from what is recorded; null: not at all. */
async function difference(given: ReplayGiven, opened: Opened, state: State, attempt: Attempt, index: number): Promise<string | null> {
  const said = await executedAgain(given, opened, state, attempt)
  if (typeof said === 'string') return said
  const recorded = given.events.slice(index)
  const decision = decide(decidedOn(state, recorded[0]), said, recorded[0]?.at ?? 0, given.definition.code)
  if ('refusal' in decision) return `the run refuses what it does now: ${decision.refusal.message}`
  for (const [place, event] of decision.events.entries()) {
    const before = recorded[place]
    if (JSON.stringify(event) !== JSON.stringify(before)) return `recorded is ${told(before)}; now it is ${told(event)}`
  }
  return null
}

/** A journal of before did not say what a worker that was gone had left unsettled: there everything was decided as if no other had been. */
const decidedOn = (state: State, first: Event | undefined): State =>
  first?.type === 'turn.failed' && first.unsettled === undefined ? { ...state, claimed: null } : state

const lengthMax = 300

function told(event: Event | undefined): string {
  if (event === undefined) return 'nothing'
  const { seq: _, at: __, ...rest } = event
  return JSON.stringify(rest).slice(0, lengthMax)
}

/** What an attempt says now, or why it says nothing. */
async function executedAgain(
  { definition, models, maxValue, child }: ReplayGiven,
  { resources, toolboxes }: Opened,
  state: State,
  attempt: Attempt,
): Promise<Command | string> {
  let say: (said: Command | string) => void = () => {}
  const said = new Promise<Command | string>((resolve) => {
    say = resolve
  })
  const execution = new Execution(
    {
      clock: systemClock,
      clockOf: () => systemClock,
      // It has all the time it needs.
      alarms: { at: () => () => {} },
      graceMs: 0,
      maxValue,
      definition,
      runId: state.run?.id ?? '',
      ended: () => {},
      returnedLate: () => {},
      later: laterOf(undefined),
      submit: (_, command, settled) => {
        const isStep = command.type === 'sleep.start' || command.type.startsWith('activity.')
        say(isStep ? `it asks for '${'name' in command ? command.name : ''}', which is not recorded` : command)
        if (!isStep) settled({})
      },
      isAdmitted: () => true,
      isPaused: false,
      isPlayed: false,
      known: () => null,
      begin: () => true,
      // A step that asks has no record.
      mayGoOn: () => {
        say('it asks for a step that is not recorded')
        return false
      },
      isWithinAbove: () => true,
      resources: () => resources,
      lend: (_, __, value) => value,
      emit: () => {},
      // Its name may be asked for; whatever it said is recorded.
      model: async (ref) =>
        silent(await resolveModel(ref, { models, env: process.env }), () => say('it asks its model something that is not recorded')),
      toolboxes,
      priceOf: pricesFrom({}),
      listener: () => null,
      keepAskSchema: () => {},
      child: async (of, childDefinition) => {
        const id = childRunId(state, of)
        const journal = await child(id)
        return childDone(id, journal.reduce(evolve, newState), usageIn(journal), childDefinition, shapeOf(state).limits)
      },
      giveUp: async () => ({}),
      endChild: async () => {},
    },
    { agent: definition.kind === 'topology' ? (definition.agents[attempt.agent] ?? null) : null, here: null, lane: null },
    state,
    attempt,
    attemptId(attempt.branch, attempt.turn, attempt.attempt),
  )
  execution.run()
  const result = await said
  execution.fence('it was executed again')
  return result
}

/** A model that can be named and not asked. */
function silent({ specificationVersion, provider, modelId }: LanguageModel, asked: () => void): LanguageModel {
  const ask = (): Promise<never> => {
    asked()
    return new Promise(() => {})
  }
  return { specificationVersion, provider, modelId, supportedUrls: {}, doGenerate: ask, doStream: ask } as LanguageModel
}
