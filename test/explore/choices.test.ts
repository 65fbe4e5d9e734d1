import { graph, open, topology } from 'tutti'
import { explore, script } from 'tutti/testing'
import { expect, test } from 'vitest'
import { z } from 'zod'

test('which of two limits is crossed is a choice, and both are told', async () => {
  const definition = () =>
    topology({
      name: 'two-limits',
      flows: ['Start -> A | B', 'A | B -> End', 'A <-> X', 'B <-> Y'],
      limits: { maxFanOut: 3, maxDepth: 1 },
      result: 'list',
      agents: {
        A: (turn) => turn.fork([1, 2, 3, 4].map(() => ({ to: 'X' as const }))),
        B: (turn) => turn.fork([{ to: 'Y' }]),
        X: (turn) => turn.reply(1),
        Y: (turn) => turn.fork([{ to: 'B' }]),
      },
    })
  const checked = await explore(definition)
  expect(checked, checked.text()).toMatchObject({ independent: true, distinct: 2 })
  expect(checked.choices).toMatchObject([{ at: 'run', agent: 'two-limits', kind: 'limit' }])
  expect(checked.choices[0]?.decidedBy.map(({ who }) => who).sort()).toEqual(['LIMIT_DEPTH', 'LIMIT_FANOUT'])
  expect(checked.notes.join()).toMatch(/fails in every order.*LIMIT_FANOUT.*LIMIT_DEPTH|fails in every order.*LIMIT_DEPTH.*LIMIT_FANOUT/)
})

test('a limit that some orders cross and others do not is listed among the choices', async () => {
  const definition = () =>
    topology({
      name: 'tight',
      flows: ['Start -> H -> End', 'H <-> W'],
      limits: { tokens: 8_500 },
      agents: {
        H: { act: { request: (turn) => turn.fork(['W', 'W', 'W', 'W']), join: (turn) => turn.finish('done') } },
        W: { model: 'openai/gpt-5.4-mini', instructions: 'work' },
      },
    })
  const checked = await explore(definition, { models: script({ W: ['x'] }), schedules: 20 })
  expect(checked.outcomes.map(({ result }) => result.status).sort(), checked.text()).toEqual(['failed', 'succeeded'])
  expect(checked.choices).toMatchObject([{ at: 'run', agent: 'tight', kind: 'limit', decidedBy: [{ who: 'LIMIT_TOKENS' }] }])
  expect(checked.text()).toContain('for the same choices')
  expect(checked.text()).toContain('the limit of tight at run, by LIMIT_TOKENS')
})

test('the limit that a child run crosses is a choice of the child', async () => {
  const child = topology({
    name: 'child',
    flows: ['Start -> A -> End', 'A <-> X'],
    limits: { maxFanOut: 1 },
    agents: { A: (turn) => turn.fork(['X', 'X']), X: (turn) => turn.reply(1) },
  })
  const checked = await explore(
    graph('parent')
      .step('k', { input: () => 1, run: child })
      .output(),
  )
  expect(checked.choices, checked.text()).toMatchObject([{ at: 'k run', agent: 'child', kind: 'limit' }])
})

test('a report has the limit that its run crossed as its only choice', async () => {
  await using tutti = await open({ store: 'memory:' })
  const wide = topology({
    name: 'wide',
    flows: ['Start -> A -> End', 'A <-> X'],
    limits: { maxFanOut: 1 },
    agents: { A: (turn) => turn.fork(['X', 'X']), X: (turn) => turn.reply(1) },
  })
  const run = await tutti.start(wide)
  await run.result()
  expect((await run.report()).choices).toEqual([{ at: 'run', kind: 'limit', decidedBy: ['LIMIT_FANOUT'] }])
  const late = graph('late', { limits: { timeoutMs: 1 } })
    .step('a', { run: ({ signal }) => new Promise((_, stop) => signal.addEventListener('abort', () => stop(signal.reason))) })
    .output()
  const [outcome] = (await explore(late)).outcomes
  expect(outcome?.result.report.choices).toEqual([{ at: 'run', kind: 'timeout', decidedBy: ['LIMIT_TIME'] }])
})

test('a choice of a graph is told by the step that it is of', async () => {
  const never = () => new Promise(() => {})
  const definition = () =>
    graph('steps')
      .step('pre', { run: () => 1 })
      .step('fetch', { after: ['pre'], timeoutMs: 60_000, onError: 'skip', run: never })
      .step('alone', { timeoutMs: 60_000, onError: 'skip', run: never })
      .ask('sure', { after: ['pre'], question: () => 'sure?', schema: z.boolean(), timeoutMs: 1_000 })
      .output()
  const checked = await explore(definition, { patienceMs: 5, schedules: 2 })
  expect(checked.choices.map(({ at, agent }) => [at, agent])).toEqual([
    ['r.1/1', 'fetch'],
    ['r.2/1', 'alone'],
    ['r.3~1', 'sure'],
  ])
})
