import { checkOptions } from '../../define/call-check.js'
import { type Definition, internalsOf } from '../../define/definition.js'
import {
  aBoolean,
  aFunction,
  aNumber,
  anything,
  aString,
  aText,
  atLeastOne,
  either,
  type Kind,
  listOf,
  oneOf,
  shown,
  someMs,
  texts,
} from '../../define/option-check.js'
import { isProvided, type Provided } from '../../define/resource.js'
import { TuttiError } from '../../define/tutti-error.js'
import { likely } from '../../kernel/validate.js'
import type { ExploreOptions } from './explore.js'
import type { Recorded } from './recorded.js'
import type { Fault, Steering } from './setting.js'
import type { Strategy } from './strategy.js'

const strategies: Readonly<Record<Strategy, true>> = {
  auto: true,
  exhaustive: true,
  deviations: true,
  pct: true,
  coverage: true,
  random: true,
}
const faults: Readonly<Record<Extract<Fault, string>, true>> = { crash: true, 'lost-ack': true, duplicate: true, timeout: true }
const steering: Readonly<Record<Steering, true>> = { pause: true, resume: true, cancel: true }

const record = (value: unknown): Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null ? (value as Readonly<Record<string, unknown>>) : {}
const aFault = oneOf(...Object.keys(faults))
const isAgentFault = (value: unknown): boolean =>
  aText.is(record(value)['agent']) && aString.is(record(value)['error']) && Object.keys(record(value)).length === 2
const isAllowance = (value: unknown): boolean => record(value)['kind'] === 'winner' && aText.is(record(value)['of'])

/** Resources with their values. */
export const providedList: Kind = listOf({ is: isProvided }, "what resource('db').of(value) or .perRun(make) has made")

/** What a function has made for one schedule, if that is a list of resources. */
export function checkResources(made: unknown): readonly Provided[] {
  if (providedList.is(made)) return made as readonly Provided[]
  throw new TuttiError('INVALID_INPUT', `explore(): the function given as resources makes ${providedList.words}, not ${shown(made)}`)
}

const kinds: Readonly<Record<keyof ExploreOptions<unknown, unknown>, Kind>> = {
  input: anything,
  schedules: either(atLeastOne, oneOf('all')),
  seed: either(aNumber, aString),
  strategy: oneOf(...Object.keys(strategies)),
  models: aFunction,
  resources: either(providedList, aFunction),
  answers: aFunction,
  faults: listOf({ is: (value) => aFault.is(value) || isAgentFault(value) }, `${aFault.words} or { agent, error }`),
  allow: listOf({ is: isAllowance }, "what winnerOf('Agent') has made"),
  observe: aFunction,
  bags: texts,
  steering: listOf(oneOf(...Object.keys(steering)), oneOf(...Object.keys(steering)).words),
  appends: aBoolean,
  invariants: aBoolean,
  patienceMs: someMs,
  replay: aString,
}

/** Refuses a race check that would check something else than was asked for: a misspelt fault must not give a green result. */
export function checkExplore(options: unknown): void {
  checkOptions('explore()', options, kinds)
}

/** The same for a recorded run: what that has is not given again. */
export function checkExploreRun(options: unknown): void {
  const others = Object.entries(kinds).filter(([name]) => !['input', 'models', 'answers'].includes(name))
  checkOptions('exploreRun()', options, { ...Object.fromEntries(others), definition: anything, beyond: oneOf('stop', 'perform') })
}

/** Refuses faults and allowances of agents that there are not, for the same reason. */
export function checkAgents(definition: Definition, options: Pick<ExploreOptions<never, never>, 'faults' | 'allow'>): void {
  const names = [...namesIn(definition)]
  const named = [
    ...(options.faults ?? []).flatMap((fault, index) => (typeof fault === 'string' ? [] : [[`faults[${index}]`, fault.agent] as const])),
    ...(options.allow ?? []).map(({ of }, index) => [`allow[${index}]`, of] as const),
  ]
  const problems = named
    .filter(([, name]) => !names.includes(name))
    .map(([where, name]) => ({
      code: 'UNKNOWN_AGENT',
      where,
      message: `there is no agent '${name}'${likely(name, names)}; there are ${names.join(', ')}`,
    }))
  if (problems.length === 0) return
  const lines = problems.map(({ where, message }) => `${where}: ${message}`)
  throw new TuttiError('INVALID_INPUT', `explore(): ${lines.join('\n')}`, { problems })
}

/** Refuses another definition than the one that was recorded: of what it does instead, nothing could be said. */
export function checkRecorded({ name }: Definition, { runId: id, definition }: Recorded['of']): void {
  if (name === definition) return
  throw new TuttiError('RUN_OF_OTHER_DEFINITION', `the run ${id} is of '${definition}', not of '${name}'`, {
    hint: `play it with a definition that has the name '${definition}'`,
  })
}

/** Its agents; the steps of a graph, and what the definitions that are its steps have. */
function namesIn(definition: Definition): ReadonlySet<string> {
  const internals = internalsOf(definition)
  if (internals.kind === 'topology') return new Set(Object.keys(internals.agents))
  const steps = Object.values(internals.steps)
  return new Set(steps.flatMap((step) => [step.id, ...(step.kind === 'child' ? namesIn(step.child) : [])]))
}
