import { type Definition, graph, open, type Run, type Tutti } from 'tutti'
import { virtualClock } from 'tutti/testing'
import { expect, test } from 'vitest'
import { type GraphSample, sampleGraph } from './random.js'
import { Reference, type RefGraph } from './reference.js'

/** Of a random graph what no order can decide: every gate waits for all of its steps, and a failure stops nothing. */
function withoutChoices({ graph: { steps, required } }: GraphSample): RefGraph {
  return {
    steps: steps.map((step) => (step.join === 'settled' ? step : { ...step, join: 'all' })),
    stragglers: 'wait',
    required,
  }
}

/** The end by the rules, whatever comes next being done next. */
function byTheRules(plan: RefGraph, { behave, answer }: GraphSample): Reference {
  const reference = new Reference(plan)
  while (reference.end() === null) {
    const [owed] = reference.owed()
    const [ask] = reference.asks()
    if (owed !== undefined) reference.complete(owed.step, owed.item, behave(owed))
    else if (ask !== undefined) reference.answer(ask, answer(ask))
    else reference.resume()
  }
  return reference
}

interface Context {
  readonly steps: Readonly<Record<string, unknown>>
  readonly attempt: number
  readonly item?: unknown
  readonly index?: number
}

/** The same graph with the same behaviour, as code. */
function definitionOf(plan: RefGraph, { behave, conditional }: GraphSample, shown: Map<string, string>): Definition {
  const schema = { '~standard': { version: 1, vendor: 'test', validate: (value: unknown) => ({ value }) } }
  const outcome = (id: string, { steps, attempt, index, item }: Context) => {
    if (index === undefined) shown.set(id, JSON.stringify(steps))
    return behave({ step: id, attempt, sees: steps, ...(index === undefined ? {} : { item: index, value: item }) })
  }
  const perform = (id: string) => (ctx: Context) => {
    const did = outcome(id, ctx)
    if (did.type === 'failure') throw new Error(did.message)
    return did.type === 'items' ? did.items : did.type === 'value' ? did.value : null
  }
  let made = graph('random', { required: plan.required }) as any
  for (const { id, after, join, kind, concurrency, attempts, onError } of plan.steps) {
    const common = { after, join, onError, retry: { attempts }, run: perform(id) }
    if (kind === 'ask') made = made.ask(id, { after, question: perform(id), schema })
    else
      made = made.step(id, {
        ...common,
        ...(kind === 'each' ? { each: perform(id) } : {}),
        ...(concurrency === undefined ? {} : { concurrency }),
        ...(conditional.has(id) ? { when: (ctx: Context) => outcome(id, ctx).type !== 'skip' } : {}),
      })
  }
  return made.output()
}

/** Answers what is asked and resumes what has paused, until the run is over. */
async function attend(tutti: Tutti, definition: Definition, answer: (step: string) => unknown): Promise<Run> {
  const run = (await (tutti.start as (of: Definition) => Promise<unknown>)(definition)) as Run
  for await (const event of run.events()) {
    if (event.type === 'ask.opened') await run.answer(event.ask.id, answer(event.ask.agent))
    if (event.type === 'run.paused') await run.resume()
  }
  return run
}

test('property: the engine ends a random graph as the rule book does, and shows its steps the same', async () => {
  await using tutti = await open({ store: 'memory:', invariants: true })
  const ends: Record<string, number> = {}
  for (let seed = 1; seed <= 250; seed++) {
    const sample = sampleGraph(seed)
    const plan = withoutChoices(sample)
    const reference = byTheRules(plan, sample)
    const expected = reference.end()
    const shown = new Map<string, string>()
    const run = await attend(tutti, definitionOf(plan, sample, shown), sample.answer)
    const result = await run.result()
    const place = `seed ${seed}`
    expect(result.status, place).toBe(expected?.status)
    if (result.status === 'succeeded') expect(result.output, place).toEqual(JSON.parse(JSON.stringify(expected?.output)))
    if (result.status === 'failed' && expected?.error !== undefined) {
      const { error } = result
      if ('requiredSkipped' in expected.error) expect(error.code, place).toBe('REQUIRED_SKIPPED')
      else
        expect(
          [error, ...(error.others ?? [])].map(({ message, at }) => ({ message, step: at.step })),
          place,
        ).toEqual([expected.error, ...(expected.others ?? [])].map(({ message, step }) => ({ message, step })))
    }
    const seen = Object.entries(reference.saw()).map(([id, sees]) => [id, JSON.stringify(sees)])
    expect(Object.fromEntries(shown), place).toEqual(Object.fromEntries(seen))
    ends[result.status] = (ends[result.status] ?? 0) + 1
  }
  expect(Object.keys(ends).toSorted()).toEqual(['failed', 'succeeded'])
  expect(Math.min(...Object.values(ends))).toBeGreaterThan(50)
}, 60_000)

test('an attempt at a step that ran out of time is a choice, and the report says so', async () => {
  const clock = virtualClock()
  await using tutti = await open({ store: 'memory:', clock, invariants: true })
  const slow = graph('slow')
    .step('a', {
      timeoutMs: 100,
      retry: { attempts: 2 },
      run: ({ attempt, signal }) =>
        attempt === 1 ? new Promise((_, reject) => signal.addEventListener('abort', () => reject(new Error('aborted')))) : 'in time',
    })
    .output()
  const run = await tutti.start(slow)
  await clock.advance(100)
  expect(await run.output()).toEqual({ a: 'in time' })
  expect((await run.report()).choices).toEqual([{ at: 'r/1', kind: 'timeout', decidedBy: [1] }])
})
