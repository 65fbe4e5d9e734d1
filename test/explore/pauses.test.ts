import { type Definition, graph, open, topology } from 'tutti'
import { explore, exploreRun } from 'tutti/testing'
import { expect, test } from 'vitest'
import { z } from 'zod'

/** Two items that fail once, and pause the run for somebody to look at them; beside them a step that goes on. */
const looked = () =>
  graph('looked')
    .step('try', {
      each: () => [1, 2],
      onError: 'pause',
      run: async (work) => {
        await work.step('look', () => 1)
        if (work.attempt === 1) throw new Error('not yet')
        return work.item
      },
    })
    .step('beside', { run: (work) => work.step('go', () => 'on') })
    .output()

const above = () => graph('above').step('child', { run: looked() }).step('own', { run: looked() }).output()

test.each<[string, () => Definition]>([
  ['a run that a step has paused', looked],
  ['a child run that a step has paused', above],
])('%s is resumed by somebody, at any time: it is no deadlock', async (_, make) => {
  const checked = await explore(make, { schedules: 40 })
  expect(checked, checked.text()).toMatchObject({ independent: true, distinct: 1 })
  expect(checked.outcomes[0]?.result.status).toBe('succeeded')
  const crashed = await explore(make, { schedules: 40, faults: ['crash', 'lost-ack'] })
  expect(crashed, crashed.text()).toMatchObject({ independent: true, distinct: 1 })
})

test('a recorded run that was paused by a step and resumed is played in other orders', async () => {
  const definition = looked()
  await using tutti = await open({ store: 'memory:', definitions: [definition] })
  const run = await tutti.start(definition, { id: 'first' })
  for await (const event of run.events()) if (event.type === 'run.paused') await run.resume().catch(() => {})
  const checked = await exploreRun(tutti, 'first', { schedules: 40 })
  expect(checked, checked.text()).toMatchObject({ independent: true, distinct: 1 })
})

test('a step that pauses its run however often it is tried brings it to a stand, and is named', async () => {
  const never = () =>
    graph('never')
      .step('try', { onError: 'pause', run: () => Promise.reject(new Error('no')) })
      .output()
  const found = await explore(() => graph('above').step('child', { run: never() }).output())
  expect(found.violations).toMatchObject([
    { invariant: 'deadlock', explain: expect.stringContaining('try on child r fails and pauses it however often it is tried again') },
  ])
})

test('a child run that asks, with nobody to answer, is refused with a hint', async () => {
  const asking = graph('asking')
    .ask('approve', { question: () => 'may I?', schema: z.boolean() })
    .output()
  await expect(explore(() => graph('above').step('child', { run: asking }).output())).rejects.toMatchObject({
    code: 'INVALID_INPUT',
    message: 'approve asks a person, and there is nobody to answer',
    hint: expect.stringContaining('answers'),
  })
})

test('time that is let pass again and again is no reason to say that a step always fails', async () => {
  const timed = () =>
    graph('timed')
      .step('try', { onError: 'pause', timeoutMs: 100, run: (work) => work.step('look', () => 1) })
      .step('beside', { run: (work) => work.step('go', () => 'on') })
      .output()
  const checked = await explore(timed, { faults: ['timeout'], schedules: 150 })
  expect(checked, checked.text()).toMatchObject({ independent: true })
  expect(checked.outcomes.every(({ result }) => result.status === 'succeeded')).toBe(true)
})

test('who sleeps and looks again until another has done something is not let look for ever where timeouts are explored', async () => {
  const looking = () => {
    let isDone = false
    return topology({
      name: 'looking',
      flows: ['Start -> Desk -> End', 'Desk <-> Clerk | Porter'],
      agents: {
        Desk: { act: { request: (turn) => turn.fork(['Clerk', 'Porter']), join: (turn, { values }) => turn.finish(values) } },
        Clerk: async (turn) => {
          while (!(await turn.step('look', () => isDone))) await turn.sleep(10)
          return turn.reply('seen')
        },
        Porter: async (turn) => {
          await turn.step('open', () => (isDone = true))
          return turn.reply('open')
        },
      },
    })
  }
  const found = await explore(looking, { faults: ['timeout'], strategy: 'pct', schedules: 60 })
  expect(found, found.text()).toMatchObject({ independent: true, distinct: 1, exhaustive: false })
  expect(found.notExplored).toContain('time that passes more than 40 times in a schedule while something else can happen')
})

test('a turn that waits for the breaker of its agent is not taken for one that waits for something outside of the run', async () => {
  const resting = () =>
    topology({
      name: 'resting',
      flows: ['Start -> Desk -> End', 'Desk <-> Clerk'],
      agents: {
        Desk: {
          act: {
            request: (turn) => turn.fork(['Clerk', 'Clerk'], { join: 'settled' }),
            join: (turn, { slots }) => turn.finish(slots.map(({ status }) => status)),
          },
        },
        Clerk: { breaker: { failures: 1, probeMs: 100 }, whenStopped: 'wait', act: (turn) => turn.fail('no') },
      },
    })
  const found = await explore(resting)
  expect(found, found.text()).toMatchObject({ independent: true, exhaustive: true, notes: [] })
})
