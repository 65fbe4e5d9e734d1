import type { Definition } from 'tutti'
import { graph, open, topology } from 'tutti'
import { exploreRun } from 'tutti/testing'
import { expect, test } from 'vitest'

/** Two readers ask something outside of the run, and the hub puts their answers together. */
function readers(fetch: (agent: string) => string, together: (turn: any, values: readonly unknown[]) => unknown) {
  const act = async (turn: any) => turn.reply(await turn.step('fetch', () => fetch(turn.agent)))
  return topology({
    name: 'readers',
    flows: ['Start -> Hub -> End', 'Hub <-> A | B', 'Hub -> Judge', 'Judge -> End'],
    agents: {
      Hub: { act: { request: (turn) => turn.fork(['A', 'B']), join: (turn, join) => together(turn, join.values) as never } },
      A: { act },
      B: { act },
      Judge: { act: async (turn) => turn.finish(await turn.step('judge', () => `judged ${JSON.stringify(turn.request)}`)) },
    },
  })
}

test('a recorded run is played in every order, and nothing that it had done is done again', async () => {
  let fetched = 0
  const definition = readers(
    (agent) => `${agent} ${++fetched}`,
    (turn, values) => turn.invoke('Judge', values),
  )
  await using tutti = await open({ store: 'memory:', definitions: [definition] })
  const run = await tutti.start(definition, { id: 'first' })
  const result = await run.result()
  const before = fetched
  const checked = await exploreRun(tutti, 'first', { schedules: 'all' })
  expect(checked, checked.text()).toMatchObject({ independent: true, exhaustive: true, distinct: 1 })
  expect(checked.outcomes[0]?.result).toMatchObject({ status: 'succeeded', output: result.status === 'succeeded' ? result.output : null })
  expect(fetched).toBe(before)
})

test('an order in which an agent is shown something else is a finding, and the path stops there', async () => {
  const noting = () => {
    const order: string[] = []
    const act = async (turn: any) => {
      const value = await turn.step('fetch', () => turn.agent)
      order.push(value)
      return turn.reply(value)
    }
    return topology({
      name: 'readers',
      flows: ['Start -> Hub -> End', 'Hub <-> A | B', 'Hub -> Judge', 'Judge -> End'],
      agents: {
        Hub: { act: { request: (turn) => turn.fork(['A', 'B']), join: (turn) => turn.invoke('Judge', order) } },
        A: { act },
        B: { act },
        Judge: { act: async (turn) => turn.finish(await turn.step('judge', () => `judged ${JSON.stringify(turn.request)}`)) },
      },
    })
  }
  await using tutti = await open({ store: 'memory:', definitions: [noting()] })
  await (await tutti.start('readers', { id: 'first' })).result()
  const found = await exploreRun(tutti, 'first', { definition: noting })
  expect(found.violations).toMatchObject([{ invariant: 'prompt' }])
  expect(found.violations[0]?.explain).toContain('Judge on r is shown something else than in the recorded run')
})

test('a run that is not there, or whose code is not, is refused', async () => {
  await using tutti = await open({ store: 'memory:' })
  await expect(exploreRun(tutti, 'nobody')).rejects.toMatchObject({ code: 'RUN_NOT_FOUND' })
})

test('another definition than that of the run is refused, instead of being found to differ from it', async () => {
  const one = graph('one')
    .step('a', { run: () => 1 })
    .output()
  const other = graph('other')
    .step('b', { run: () => 2 })
    .output()
  await using tutti = await open({ store: 'memory:' })
  await (await tutti.start(one, { id: 'first' })).result()
  for (const definition of [other, () => other, async () => other])
    await expect(exploreRun(tutti, 'first', { definition })).rejects.toMatchObject({ code: 'RUN_OF_OTHER_DEFINITION' })
})

test('what was recorded in child runs is given back too, so that a race among them is found', async () => {
  let looked = 0
  const made = () => {
    let order = 0
    const child = graph('child')
      .step('c', {
        run: async ({ step }) => {
          await step('look', () => ++looked)
          return ++order
        },
      })
      .output()
    return graph('parent')
      .step('all', { each: () => [1, 2, 3], input: () => null, run: child })
      .output()
  }
  await using tutti = await open({ store: 'memory:', definitions: [made()] })
  await (await tutti.start('parent', { id: 'R' })).output()
  const checked = await exploreRun(tutti, 'R', { definition: made, schedules: 60 })
  expect(checked.divergence?.kind, checked.text()).toBe('output')
  expect(looked).toBe(3)
})

test('after another choice in a child run, something else may be shown', async () => {
  const made = () => {
    const child = topology({
      name: 'child',
      flows: ['Start -> H -> End', 'H <-> A | B'],
      agents: {
        H: {
          act: {
            request: (turn) => turn.fork(['A', 'B'], { join: 'any' }),
            join: (turn, { values }) => (values[0] === 'a' ? turn.finish('a') : turn.fail('b')),
          },
        },
        A: (turn) => turn.reply('a'),
        B: (turn) => turn.reply('b'),
      },
    })
    return graph('parent')
      .step('k', { input: () => null, onError: 'skip', run: child })
      .step('last', { after: ['k'], join: 'settled', run: ({ steps }) => steps.k ?? 'nothing' })
      .output(({ steps }) => steps.last)
  }
  await using tutti = await open({ store: 'memory:', definitions: [made()] })
  await (await tutti.start('parent', { id: 'R' })).output()
  const checked = await exploreRun(tutti, 'R', { definition: made, schedules: 'all' })
  expect(checked, checked.text()).toMatchObject({ independent: true, violations: [] })
  expect(checked.notExplored.join()).toContain('after another choice, H on k r is shown something else')
})

test('what ran out of time in the record and does not in an order is another choice, and no finding', async () => {
  let slow = true
  const waits = (turn: any) => (slow ? turn.sleep(1000) : undefined)
  const late = topology({
    name: 'late',
    flows: ['Start -> H -> End', 'H <-> W | V', 'H -> Judge', 'Judge -> End'],
    agents: {
      H: {
        act: {
          request: (turn) => turn.fork(['W', 'V'], { join: { policy: 'all', timeoutMs: 500, insufficient: 'resume' } }),
          join: (turn, { values }) => turn.invoke('Judge', values),
        },
      },
      W: async (turn) => {
        await waits(turn)
        return turn.reply('w')
      },
      V: (turn) => turn.reply('v'),
      Judge: (turn) => turn.finish(turn.request),
    },
  })
  const timed = topology({
    name: 'timed',
    flows: ['Start -> H -> End', 'H <-> W'],
    agents: {
      H: { act: { request: (turn) => turn.fork(['W'], { join: 'settled' }), join: (turn, { values }) => turn.finish(values) } },
      W: {
        timeoutMs: 20,
        act: async (turn) => {
          if (slow) await new Promise((_, reject) => turn.signal.addEventListener('abort', reject))
          return turn.reply('w')
        },
      },
    },
  })
  await using tutti = await open({ store: 'memory:', definitions: [late, timed] })
  expect(await tutti.execute(late, { id: 'late' })).toEqual(['v'])
  expect(await tutti.execute(timed, { id: 'timed' })).toEqual([])
  slow = false
  for (const id of ['late', 'timed']) {
    const checked = await exploreRun(tutti, id, { schedules: 5 })
    expect(checked.violations, checked.text()).toEqual([])
    expect(checked.notExplored.join(), id).toContain('after another choice, H on r is shown something else')
  }
})

test('a step that ran out of time in the record has done so in every order: that choice is told, with whose it was', async () => {
  const definition = topology({
    name: 'slow',
    flows: ['Start -> H -> End', 'H <-> W'],
    agents: {
      H: { act: { request: (turn) => turn.fork(['W', 'W']), join: (turn, { values }) => turn.finish(values) } },
      W: async (turn) =>
        turn.reply(
          await turn
            .step('fetch', ({ signal }) => new Promise((_, reject) => signal.addEventListener('abort', reject)), { timeoutMs: 10 })
            .catch(() => 'too late'),
        ),
    },
  })
  await using tutti = await open({ store: 'memory:', definitions: [definition] })
  expect(await tutti.execute(definition, { id: 'slow' })).toEqual(['too late', 'too late'])
  const checked = await exploreRun(tutti, 'slow', { schedules: 5 })
  expect(checked, checked.text()).toMatchObject({ independent: true, distinct: 1, notes: [] })
  const choice = { agent: 'W', kind: 'timeout', decidedBy: [{ who: 'attempt 1', schedules: checked.schedules }] }
  expect(checked.choices).toMatchObject([
    { at: 'r.0/1/1/fetch#0', ...choice },
    { at: 'r.1/1/1/fetch#0', ...choice },
  ])
  expect(checked.notExplored.join()).not.toContain('another choice')
})

test('a turn of an agent that was stopped when the run was recorded is another choice when it is played', async () => {
  const definition = topology({
    name: 'stopping',
    flows: ['Start -> H -> End', 'H <-> W'],
    agents: {
      H: { act: { request: (turn) => turn.fork(['W'], { join: 'settled' }), join: (turn, { values }) => turn.finish(values) } },
      W: (turn) => turn.reply('w'),
    },
  })
  await using tutti = await open({ store: 'memory:', definitions: [definition] })
  await tutti.execute(definition)
  await tutti.agents.stop('W')
  expect(await tutti.execute(definition, { id: 'R' })).toEqual([])
  const checked = await exploreRun(tutti, 'R', { schedules: 5 })
  expect(checked, checked.text()).toMatchObject({ distinct: 0, violations: [] })
  expect(checked.text()).toContain('Nothing could be compared')
})

test('an agent of a child run that is shown something else is a finding', async () => {
  const made = () => {
    const order: string[] = []
    const act = async (turn: any) => {
      order.push(await turn.step('fetch', () => turn.agent))
      return turn.reply(1)
    }
    const child = topology({
      name: 'child',
      flows: ['Start -> H', 'H <-> A | B', 'H -> Judge', 'Judge -> End'],
      agents: {
        H: { act: { request: (turn) => turn.fork(['A', 'B']), join: (turn) => turn.invoke('Judge', order) } },
        A: { act },
        B: { act },
        Judge: (turn) => turn.finish(1),
      },
    })
    return graph('parent')
      .step('k', { input: () => null, run: child })
      .output(() => 1)
  }
  await using tutti = await open({ store: 'memory:', definitions: [made()] })
  await (await tutti.start('parent', { id: 'R' })).output()
  const found = await exploreRun(tutti, 'R', { definition: made })
  expect(found.violations).toMatchObject([{ invariant: 'prompt' }])
  expect(found.violations[0]?.explain).toContain('Judge on k r is shown something else than in the recorded run')
})

test('a check in which every schedule leaves the record shows nothing, and says so', async () => {
  let calls = ['a']
  const definition = topology({
    name: 'changing',
    flows: ['Start -> A -> End'],
    agents: {
      A: async (turn) => {
        for (const name of calls) await turn.step(name, () => 1)
        return turn.finish(1)
      },
    },
  })
  await using tutti = await open({ store: 'memory:', definitions: [definition] })
  await (await tutti.start(definition, { id: 'R' })).output()
  calls = ['b']
  const checked = await exploreRun(tutti, 'R', { schedules: 5 })
  expect(checked).toMatchObject({ independent: false, exhaustive: false, distinct: 0 })
  expect(checked.text()).toContain('Nothing could be compared')
})

test('a run that waits for a person comes to its end in no order: that is refused with what to do, as without answers', async () => {
  const asking = topology({
    name: 'asking',
    flows: ['Start -> Clerk -> End', 'Clerk -> User'],
    agents: { Clerk: { act: { request: (turn) => turn.ask('sure?'), answer: (turn, yes) => turn.finish(yes) } } },
  })
  await using tutti = await open({ store: 'memory:', definitions: [asking] })
  const run = await tutti.start(asking, { id: 'R' })
  for await (const event of run.events()) if (event.type === 'ask.opened') break
  await expect(exploreRun(tutti, 'R')).rejects.toMatchObject({
    code: 'INVALID_INPUT',
    message: expect.stringContaining('Clerk asks a person'),
    hint: expect.stringContaining('answers'),
  })
  await run.answer('r~1', 'yes')
  await run.result()
  expect(await exploreRun(tutti, 'R')).toMatchObject({ independent: true })
})

test('a run is played as what it was: its id, tags, keys, chance and start are those of the record, in child runs too', async () => {
  const told = async (step: any) => [
    step.runId,
    step.tags,
    step.idempotencyKey,
    step.random(),
    await step.step('key', (own: any) => own.idempotencyKey),
  ]
  const child = topology({
    name: 'child',
    flows: ['Start -> K -> End'],
    agents: { K: async (turn) => turn.finish(await told(turn)) },
  })
  const definition = topology({
    name: 'telling',
    flows: ['Start -> H -> End', 'H <-> A | B', 'H -> J', 'J -> End'],
    agents: {
      H: { act: { request: (turn) => turn.fork(['A', 'B']), join: (turn, { values }) => turn.invoke('J', [values, turn.random()]) } },
      A: async (turn) => turn.reply(await told(turn)),
      B: async (turn) => turn.reply(await told(turn)),
      J: (turn) => turn.finish(turn.request),
    },
  })
  const started = graph('started')
    .step('now', { run: (step) => step.now() })
    .step('kid', { input: () => null, run: child })
    .step('last', { after: ['now', 'kid'], run: ({ steps }) => steps })
    .output()
  await using tutti = await open({ store: 'memory:' })
  for (const [id, of] of [
    ['first', definition],
    ['second', started],
  ] as const) {
    const run = await tutti.start(of as Definition<undefined>, { id, tags: { who: 'me' } })
    const output = await run.output()
    const checked = await exploreRun(tutti, id, { definition: of as never })
    expect(checked, checked.text()).toMatchObject({ independent: true, distinct: 1 })
    expect(checked.outcomes[0]?.result).toMatchObject({ output })
  }
})

test('what differs from the record in every order is not repeatable, and not called a matter of order', async () => {
  let made = 0
  const definition = topology({
    name: 'changing',
    flows: ['Start -> H -> End', 'H <-> A | B'],
    agents: {
      H: { act: { request: (turn) => turn.fork(['A', 'B']), join: (turn, { values }) => turn.finish(values) } },
      A: (turn) => turn.reply(made),
      B: (turn) => turn.reply('b'),
    },
  })
  await using tutti = await open({ store: 'memory:' })
  await (await tutti.start(definition, { id: 'R' })).output()
  made++
  const found = await exploreRun(tutti, 'R', { definition, schedules: 20 })
  expect(found).toMatchObject({ independent: false, violations: [{ invariant: 'not-repeatable' }] })
  expect(found.text()).toContain('H on r is shown something else than in the recorded run')
  expect(found.text()).not.toContain('depends on the order')
})

test('what a real run has mixed up is a matter of order, though the first that is played is in order', async () => {
  const mixing = () => {
    let current = ''
    const act = async (turn: any) => {
      current = turn.agent
      await turn.step('think', () => null)
      return turn.reply(current)
    }
    return topology({
      name: 'mixing',
      flows: ['Start -> H -> End', 'H -> A | B', 'A -> C', 'B -> D', 'C | D -> H'],
      agents: {
        H: { act: { request: (turn) => turn.fork(['A', 'B']), join: (turn, { values }) => turn.finish(values) } },
        A: (turn) => turn.invoke('C'),
        B: (turn) => turn.invoke('D'),
        C: { act },
        D: { act },
      },
    })
  }
  await using tutti = await open({ store: 'memory:' })
  const run = await tutti.start(mixing(), { id: 'R' })
  expect(await run.output()).toEqual(['D', 'D'])
  const found = await exploreRun(tutti, 'R', { definition: mixing })
  expect(found.violations, found.text()).toMatchObject([{ invariant: 'prompt' }])
  const again = await exploreRun(tutti, 'R', { definition: mixing, replay: found.violations[0]?.schedule ?? '' })
  expect(again.violations).toMatchObject([{ invariant: 'prompt' }])
})
