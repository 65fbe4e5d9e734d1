/**
 * Random graphs, and steps that behave at random, all of it from one seed.
 *
 * What a step does is a pure function of what it is shown and of how often it was tried, so that nothing but the rules of graphs can
 * make two orders differ. Steps are declared in a random order of their own: a dependency may come after its dependent, which is where
 * "the lowest in declared order" and "the first to settle" part.
 */
import { Random } from '../reference/random.js'
import type { RefActivity, RefGraph, RefOnError, RefOutcome, RefOwed, RefPolicy, RefStep } from './reference.js'

export interface GraphSample {
  readonly seed: number
  readonly graph: RefGraph
  /** Steps with a `when`, which may be false. */
  readonly conditional: ReadonlySet<string>
  behave(owed: RefOwed): RefOutcome
  /** What a person says; whether anybody does in time is up to the schedule. */
  answer(step: string): unknown
  /** What an attempt does before it comes to its outcome; nothing, unless given. */
  does?(owed: RefOwed): readonly RefActivity[]
  /** How often undoing that fails before it succeeds; never, unless given. */
  undoFails?(entry: string): number
}

/** The same with much to undo. What an undo comes to depends on nothing but the id of its entry. */
export function undoGraph(seed: number): GraphSample {
  const { graph, ...rest } = sampleGraph(seed)
  const random = new Random(`undo graph ${seed}`)
  const share = random.pick([0.3, 0.6, 1])
  const [activities, unknown, failing] = [random.pick([0, 0.3, 0.6]), random.pick([0, 0, 0.1]), random.pick([0, 0, 0.1, 0.3])]
  const steps = graph.steps.map((step) => ({ ...step, compensates: step.kind !== 'ask' && random.chance(share) }))
  return {
    ...rest,
    graph: { ...graph, steps, stragglers: random.chance(0.4) ? 'cancel' : 'wait' },
    does(owed) {
      const step = steps.find(({ id }) => id === owed.step) as RefStep
      const own = new Random(`${seed} does ${owed.step} ${owed.item ?? ''}`)
      if (step.kind === 'ask' || (step.kind === 'each' && owed.item === undefined) || !own.chance(activities)) return []
      return Array.from({ length: 1 + own.below(3) }, (_, index) => ({
        key: `k${index}`,
        compensates: own.chance(0.7),
        outcome: own.chance(unknown) ? 'unknown' : 'done',
      }))
    },
    undoFails(entry) {
      const own = new Random(`${seed} undoes ${entry}`)
      return own.chance(failing) ? own.pick([1, 2, 5, 5]) : 0
    },
  }
}

export function sampleGraph(seed: number): GraphSample {
  const random = new Random(`graph ${seed}`)
  const size = 2 + random.below(7)
  const density = random.pick([0.25, 0.5, 0.8])
  const trouble = random.pick([0, 0.15, 0.4])
  const ids = Array.from({ length: size }, (_, at) => `s${at}`)
  const conditional = new Set<string>()
  const steps = ids.map((id, at): RefStep => {
    const after = shuffled(
      random,
      ids.slice(0, at).filter(() => random.chance(density)),
    )
    if (random.chance(0.08)) return { id, after, join: 'all', kind: 'ask', attempts: 1, onError: 'fail' }
    if (random.chance(0.2)) conditional.add(id)
    const each = random.chance(0.3)
    return {
      id,
      after,
      join: policyOf(random, after.length),
      kind: each ? 'each' : 'run',
      ...(each && random.chance(0.5) ? { concurrency: 1 + random.below(3) } : {}),
      attempts: random.weighted([
        [5, 1],
        [2, 2],
        [1, 3],
      ]),
      onError: random.weighted<RefOnError>([
        [5, 'fail'],
        [2, 'skip'],
        [2, { fallback: `instead of ${id}` }],
        [1, 'pause'],
      ]),
    }
  })
  const graph: RefGraph = {
    steps: random.chance(0.3) ? shuffled(random, steps) : steps,
    stragglers: random.chance(0.25) ? 'cancel' : 'wait',
    required: random.chance(0.4) ? ids.filter(() => random.chance(0.3)) : [],
  }
  const stepOf = (id: string): RefStep => graph.steps.find((step) => step.id === id) as RefStep

  /** How many attempts fail before one goes well. */
  const failuresOf = (draw: Random, step: RefStep, isItem: boolean): number => {
    if (!draw.chance(trouble)) return 0
    // What `skip` and `fallback` mean for a list that was never made, the rules of graphs don't say.
    if (step.kind === 'each' && !isItem && step.onError !== 'fail' && step.onError !== 'pause') return 0
    const some = 1 + draw.below(3)
    // Under 'pause' everything goes well in the end: a run that is paused for ever has no outcome to compare.
    return step.onError === 'pause' || draw.chance(0.5) ? some : Number.POSITIVE_INFINITY
  }

  return {
    seed,
    graph,
    conditional,
    behave(owed) {
      const step = stepOf(owed.step)
      const shown = JSON.stringify([seed, owed.step, owed.item ?? null, owed.value ?? null, inOrder(owed.sees)])
      const draw = new Random(shown)
      if (owed.item === undefined && conditional.has(owed.step) && draw.chance(0.4)) return { type: 'skip' }
      const mark = draw.below(1000)
      if (owed.attempt <= failuresOf(draw, step, owed.item !== undefined))
        return { type: 'failure', message: `${owed.step}/${owed.item ?? '-'} broke on ${mark}` }
      if (step.kind === 'ask') return { type: 'question' }
      if (owed.item === undefined && step.kind === 'each')
        return { type: 'items', items: Array.from({ length: draw.below(5) }, (_, at) => `${mark}.${at}`) }
      return { type: 'value', value: `${owed.step}/${owed.item ?? '-'}:${mark}` }
    },
    answer: (step) => `${step} says ${new Random(JSON.stringify([seed, step])).below(1000)}`,
  }
}

export function shuffled<T>(random: Random, list: readonly T[]): T[] {
  const left = [...list]
  const taken: T[] = []
  while (left.length > 0) taken.push(left.splice(random.below(left.length), 1)[0] as T)
  return taken
}

function policyOf(random: Random, width: number): RefPolicy {
  if (width === 0) return random.pick(['all', 'settled'])
  return random.weighted<RefPolicy>([
    [5, 'all'],
    [2, 'settled'],
    [2, 'any'],
    [1, 'majority'],
    [1, { quorum: 1 + random.below(width) }],
    [1, { ratio: (1 + random.below(width * 2)) / (width * 2) }],
  ])
}

/** The same for equal outputs, in whatever order their keys were written. */
function inOrder(record: Readonly<Record<string, unknown>>): unknown {
  return Object.keys(record)
    .toSorted()
    .map((key) => [key, record[key]])
}
