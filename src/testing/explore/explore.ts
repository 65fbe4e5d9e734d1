import { atOnce } from '../../define/at-once.js'
import type { Definition } from '../../define/definition.js'
import { isDefinition } from '../../define/definition.js'
import type { Maybe } from '../../define/maybe.js'
import { shown } from '../../define/option-check.js'
import type { Provided } from '../../define/resource.js'
import { TuttiError } from '../../define/tutti-error.js'
import type { RunResult } from '../../engine/tutti.js'
import type { Ask } from '../../inspect/ask.js'
import type { ModelFactory } from '../../models/model-factory.js'
import type { Allowance, Exploration } from './exploration.js'
import { checkAgents, checkExplore, checkRecorded, checkResources } from './explore-check.js'
import { following } from './following.js'
import type { Recorded } from './recorded.js'
import { runResult } from './run-result.js'
import { scheduleOf } from './schedule.js'
import { Search } from './search.js'
import type { Fault, Setting, Steering } from './setting.js'
import { runId } from './setting.js'
import type { Strategy } from './strategy.js'
import { carriedOut } from './strategy.js'
import { exploration } from './told.js'

/** How a race check is made. */
export interface ExploreOptions<I, O> {
  input?: NoInfer<I>
  /** How many schedules are played at most; 'all': until every order has been. */
  schedules?: number | 'all'
  seed?: number | string
  strategy?: Strategy
  models?: ModelFactory
  /** A list is shared by all schedules; a function makes one for each. */
  resources?: readonly Provided[] | (() => Maybe<readonly Provided[]>)
  answers?: (ask: Ask) => unknown
  faults?: readonly Fault[]
  allow?: readonly Allowance[]
  /** What else belongs to the outcome: what the run left in a database, for example. It is awaited, and must be JSON to be compared. */
  observe?: (outcome: RunResult<O>) => unknown
  /** Resources, and places of the output (`output.items`), in which order is of no matter. */
  bags?: readonly string[]
  /** What somebody asks of the run, one after the other, each at any time. */
  steering?: readonly Steering[]
  /** Whether the store's acknowledgements are events of their own, so that commits overlap with everything else. */
  appends?: boolean
  /** Whether the kernel's invariants are checked after every event; they are unless this says no. */
  invariants?: boolean
  /** For how long something that goes around the scheduler is waited for; a second unless said. */
  patienceMs?: number
  /** Plays this schedule alone. */
  replay?: string
}

const defaultSchedules = 1_000
/** Even 'all' ends somewhere. */
const schedulesMax = 1_000_000
const stepsMax = 20_000
const defaultPatienceMs = 1_000

/** Plays a definition in many orders and tells whether its outcome depends on them. */
export async function explore<I, O>(
  definition: Definition<I, O> | (() => Maybe<Definition<I, O>>),
  options: ExploreOptions<I, O> = {},
): Promise<Exploration<O>> {
  return exploreWith(definition, options, null)
}

/** The same, where activities and answers may be known. */
export async function exploreWith<I, O>(
  definition: Definition<I, O> | (() => Maybe<Definition<I, O>>),
  options: ExploreOptions<I, O>,
  recorded: Recorded | null,
): Promise<Exploration<O>> {
  checkExplore(options)
  const { schedules = defaultSchedules, strategy = 'auto', bags = [], observe } = options
  const budget = schedules === 'all' ? schedulesMax : schedules
  const seed = String(options.seed ?? 1)
  const setting = { ...settingFor(definition, options), ...(recorded !== null && { run: recorded.of.runId }), recorded }
  const observing = {
    bags: new Set(bags),
    observe: observe === undefined ? undefined : (report: Parameters<typeof runResult>[0]) => observe(runResult(report)),
  }
  const search = new Search(setting, Math.min(budget, schedulesMax), observing)
  const made = await setting.definition()
  if (recorded !== null) checkRecorded(made, recorded.of)
  checkAgents(made, options)
  const { name } = made
  if (options.replay !== undefined) {
    await search.play(following(scheduleOf(options.replay)))
    return exploration<O>(search, { name, seed, strategy: 'replay', allow: options.allow ?? [], done: onlyOne })
  }
  const done = await carriedOut(search, strategy, seed, schedules === 'all')
  return exploration<O>(search, { name, seed, strategy, allow: options.allow ?? [], done })
}

const onlyOne = { exhaustive: false, bounds: [], left: ['every other schedule: only one was asked for'] } as const

/** What is the same in all schedules of a race check. */
export function settingFor<I, O>(definition: Definition<I, O> | (() => Maybe<Definition<I, O>>), options: ExploreOptions<I, O>): Setting {
  const { resources = [] } = options
  if (typeof definition !== 'function' && !isDefinition(definition))
    throw new TuttiError('INVALID_INPUT', `explore() takes a definition, or a function that makes one, not ${shown(definition)}`)
  return {
    run: runId,
    definition: (typeof definition === 'function' ? definition : () => definition) as () => Maybe<Definition>,
    resources: typeof resources === 'function' ? async () => checkResources(await resources()) : () => resources,
    input: options.input,
    models: options.models,
    answers: options.answers && atOnce(options.answers, '`answers`'),
    steering: options.steering ?? [],
    faults: options.faults ?? [],
    seed: `seed-${options.seed ?? 1}`,
    appends: options.appends ?? false,
    invariants: options.invariants ?? true,
    stepsMax,
    patienceMs: options.patienceMs ?? defaultPatienceMs,
    vain: new Set(),
    recorded: null,
  }
}
