import { graph, open, type Run } from 'tutti'
import { describe, expect, test } from 'vitest'
import { everyOrder, nothingLeft, scenario, Stage } from '../scenarios/adapter.js'

const boom = (message: string) => (): never => {
  throw new Error(message)
}

/** What the journal says became of each step. */
async function settledOf(run: Run<any>): Promise<Record<string, string>> {
  const settled: Record<string, string> = {}
  const nameOf = new Map<string, string>()
  for await (const event of run.events()) {
    if (event.type === 'branch.opened') nameOf.set(event.branch ?? '', event.to)
    if (event.type === 'step.completed' && event.item === undefined) settled[event.step] = 'succeeded'
    if (event.type === 'step.skipped') settled[event.step] = `skipped: ${event.cause}`
    if (event.type === 'branch.settled') settled[nameOf.get(event.branch ?? '') ?? '?'] = event.status
  }
  return settled
}

describe('a diamond', () => {
  test('feeds both of its sides from one step, which runs once', async () => {
    await using tutti = await open({ store: 'memory:', invariants: true })
    let runs = 0
    const diamond = graph('diamond', {})
      .step('top', { run: () => ++runs })
      .step('left', { after: ['top'], run: ({ steps }) => `left of ${steps.top}` })
      .step('right', { after: ['top'], run: ({ steps }) => `right of ${steps.top}` })
      .step('bottom', { after: ['left', 'right'], run: ({ steps }) => [steps.left, steps.right] })
      .output()
    expect(await tutti.execute(diamond)).toEqual({
      top: 1,
      left: 'left of 1',
      right: 'right of 1',
      bottom: ['left of 1', 'right of 1'],
    })
    expect(runs).toBe(1)
  })

  test('with a failing side ends its other side, skips its bottom, and fails with the failure itself', async () => {
    await using tutti = await open({ store: 'memory:', invariants: true })
    const ran: string[] = []
    const diamond = graph('diamond')
      .step('top', { run: () => 1 })
      .step('left', { after: ['top'], run: boom('left broke') })
      .step('right', { after: ['top'], run: () => ran.push('right') })
      .step('bottom', { after: ['left', 'right'], run: () => ran.push('bottom') })
      .output()
    const run = await tutti.start(diamond)
    const result = await run.result()
    expect(result).toMatchObject({
      status: 'failed',
      error: { code: 'STEP_FAILED', message: 'left broke', at: { step: 'left' } },
      rollback: 'none',
    })
    expect((result as { error: object }).error).not.toHaveProperty('others')
    expect(ran).toEqual(['right'])
    expect(await settledOf(run)).toEqual({ top: 'succeeded', left: 'failed', right: 'succeeded', bottom: 'skipped: left' })
  })

  test('with a skipped side skips its bottom with that cause, and succeeds without it', async () => {
    await using tutti = await open({ store: 'memory:', invariants: true })
    const diamond = graph('diamond')
      .step('top', { run: () => 1 })
      .step('left', { after: ['top'], when: ({ steps }) => steps.top > 1, run: () => 'left' })
      .step('right', { after: ['top'], run: () => 'right' })
      .step('bottom', { after: ['left', 'right'], run: () => 'bottom' })
      .output()
    const run = await tutti.start(diamond)
    expect(await run.output()).toEqual({ top: 1, right: 'right' })
    expect(await settledOf(run)).toEqual({ top: 'succeeded', left: 'skipped: when', right: 'succeeded', bottom: 'skipped: left' })
  })

  test('with a fallback on one side gives it to its bottom as if it had succeeded', async () => {
    await using tutti = await open({ store: 'memory:', invariants: true })
    const diamond = graph('diamond')
      .step('top', { run: () => 1 })
      .step('left', { after: ['top'], onError: { fallback: 'instead' }, run: boom('left broke') as () => string })
      .step('right', { after: ['top'], run: () => 'right' })
      .step('bottom', { after: ['left', 'right'], run: ({ steps }) => [steps.left, steps.right] })
      .output(({ steps }) => steps.bottom)
    expect(await tutti.execute(diamond)).toEqual(['instead', 'right'])
  })

  test('with a side that is skipped for its failure says so, and skips its bottom', async () => {
    await using tutti = await open({ store: 'memory:', invariants: true })
    const diamond = graph('diamond')
      .step('top', { run: () => 1 })
      .step('left', { after: ['top'], onError: 'skip', run: boom('left broke') })
      .step('right', { after: ['top'], run: () => 'right' })
      .step('bottom', { after: ['left', 'right'], run: () => 'bottom' })
      .output()
    const run = await tutti.start(diamond)
    expect(await run.output()).toEqual({ top: 1, right: 'right' })
    expect(await settledOf(run)).toMatchObject({ left: 'skipped: left broke', bottom: 'skipped: left' })
  })

  scenario('is the same in every order of its sides, failing or not', async (raise) => {
    const seen = new Set<string>()
    await everyOrder(4, async (schedule) => {
      await using stage = await raise()
      const diamond = graph('diamond')
        .step('top', { run: (ctx) => stage.held('top', ctx, 1) })
        .step('left', { after: ['top'], run: (ctx) => stage.held('left', ctx) })
        .step('right', { after: ['top'], run: (ctx) => stage.held('right', ctx) })
        .step('both', { after: ['left', 'right'], join: 'settled', run: ({ steps }) => Object.keys(steps) })
        .step('bottom', { after: ['left', 'right'], run: () => 'never' })
        .step('last', { after: ['right', 'both'], join: 'settled', run: (ctx) => stage.held('last', ctx, 'last') })
        .output()
      const run = await stage.tutti.start(diamond, { id: 'D' })
      const outcome = ({ name }: { name: string }) =>
        name === 'left' || name === 'right' ? { throw: new Error(`${name} broke`) } : undefined
      await stage.drain(schedule, { outcome })
      const { status, ...rest } = await run.result()
      const { measured: _, ...report } = rest.report
      seen.add(
        JSON.stringify([
          status,
          'error' in rest ? rest.error : null,
          report,
          Object.entries(await settledOf(run))
            .map(String)
            .toSorted(),
        ]),
      )
    })
    expect(seen.size).toBe(1)
    expect([...seen][0]).toContain('right broke')
  })
})

describe('what comes after a failed step', () => {
  test('never starts; gates that do with less open, and everything else runs to its end', async () => {
    await using tutti = await open({ store: 'memory:', invariants: true })
    const ran: string[] = []
    const mark = (name: string) => () => {
      ran.push(name)
      return name
    }
    const definition = graph('rest')
      .step('bad', { run: boom('bad') })
      .step('good', { run: mark('good') })
      .step('afterBad', { after: ['bad'], run: mark('afterBad') })
      .step('further', { after: ['afterBad', 'good'], run: mark('further') })
      .step('settled', { after: ['bad', 'good'], join: 'settled', run: ({ steps }) => (ran.push('settled'), steps) })
      .step('any', { after: ['bad', 'good'], join: 'any', run: ({ steps }) => (ran.push('any'), steps) })
      .step('two', { after: ['bad', 'good'], join: { quorum: 2 }, run: mark('two') })
      .step('afterSettled', { after: ['settled'], run: mark('afterSettled') })
      .step('elsewhere', { after: ['good'], run: mark('elsewhere') })
      .output()
    const run = await tutti.start(definition)
    expect(await run.result()).toMatchObject({ status: 'failed', error: { message: 'bad', at: { step: 'bad' } } })
    expect(ran.toSorted()).toEqual(['afterSettled', 'any', 'elsewhere', 'good', 'settled'])
    expect(await settledOf(run)).toEqual({
      bad: 'failed',
      good: 'succeeded',
      afterBad: 'skipped: bad',
      further: 'skipped: afterBad',
      settled: 'succeeded',
      any: 'succeeded',
      two: 'skipped: bad',
      afterSettled: 'succeeded',
      elsewhere: 'succeeded',
    })
  })

  test('is shown what succeeded, and undefined for the rest', async () => {
    await using tutti = await open({ store: 'memory:', invariants: true })
    const definition = graph('seen')
      .step('bad', { onError: 'skip', run: boom('bad') as () => number })
      .step('good', { run: () => 2 })
      .step('sum', { after: ['bad', 'good'], join: 'settled', run: ({ steps }) => [steps.bad === undefined, steps.good] })
      .output(({ steps }) => steps.sum)
    expect(await tutti.execute(definition)).toEqual([true, 2])
  })

  test("two failures at once are one failed run, with both: the first in declared order, and beside it the other's", async () => {
    for (const first of ['one', 'two']) {
      await using stage = await Stage.open()
      const definition = graph('two')
        .step('ok', { run: () => 1 })
        .step('one', { run: (ctx) => stage.held('one', ctx) })
        .step('two', { run: (ctx) => stage.held('two', ctx) })
        .step('after', { after: ['one', 'two'], run: () => 'never' })
        .output()
      const run = await stage.tutti.start(definition)
      await stage.quiesce()
      for (const name of first === 'one' ? ['one', 'two'] : ['two', 'one']) stage.release(name, { throw: new Error(`${name} broke`) })
      const result = await run.result()
      expect(result).toMatchObject({
        status: 'failed',
        error: { message: 'one broke', at: { step: 'one' }, others: [{ message: 'two broke', at: { step: 'two' } }] },
      })
      let ends = 0
      for await (const event of run.events()) if (event.type === 'run.failed') ends += 1
      expect(ends).toBe(1)
      expect(await settledOf(run)).toMatchObject({ after: 'skipped: one' })
      expect(await stage.quiesce()).toEqual(nothingLeft)
    }
  })

  test('does not let an `any` gate save the run from its failed dependency; skipping that one does', async () => {
    await using tutti = await open({ store: 'memory:', invariants: true })
    const of = (onError: 'fail' | 'skip') =>
      graph('saved')
        .step('bad', { onError, run: boom('bad') })
        .step('good', { run: () => 1 })
        .step('either', { after: ['bad', 'good'], join: 'any', run: () => 'went on' })
        .output(({ steps }) => steps.either)
    expect(await (await tutti.start(of('fail'))).result()).toMatchObject({ status: 'failed', error: { message: 'bad' } })
    expect(await tutti.execute(of('skip'))).toBe('went on')
  })
})

describe('with stragglers cancelled', () => {
  test('the first failure ends the run: what runs is aborted and awaited, what had not settled reads cancelled', async () => {
    await using stage = await Stage.open()
    let aborted = false
    const definition = graph('fast', { stragglers: 'cancel' })
      .step('slow', {
        run: async (ctx) => {
          await stage.held('slow', ctx, 1).catch((error: unknown) => {
            aborted = ctx.signal.aborted
            throw error
          })
        },
      })
      .step('done', { run: (ctx) => stage.held('done', ctx, 'done') })
      .step('bad', { run: (ctx) => stage.held('bad', ctx) })
      .step('settledAfter', { after: ['bad'], join: 'settled', run: () => 'never' })
      .output()
    const run = await stage.tutti.start(definition)
    await stage.quiesce()
    stage.release('done')
    await stage.quiesce()
    stage.release('bad', { throw: new Error('bad') })
    expect(await run.result()).toMatchObject({ status: 'failed', error: { message: 'bad', at: { step: 'bad' } } })
    expect(aborted).toBe(true)
    expect(await settledOf(run)).toEqual({ done: 'succeeded', bad: 'failed', slow: 'cancelled', settledAfter: 'cancelled' })
    const fired = []
    for await (const event of run.events()) if (event.type === 'barrier.fired' && event.barrier === '#') fired.push(event.decidedBy)
    expect(fired).toEqual([[1, 2]])
    expect(await stage.quiesce()).toEqual(nothingLeft)
  })

  test('a success, a skipped step and a fallback cancel nothing', async () => {
    await using tutti = await open({ store: 'memory:', invariants: true })
    const definition = graph('calm', { stragglers: 'cancel' })
      .step('skipped', { onError: 'skip', run: boom('a') })
      .step('instead', { onError: { fallback: 'b' }, run: boom('b') as () => string })
      .step('unwanted', { when: () => false, run: () => 1 })
      .step('last', { after: ['instead'], run: ({ steps }) => steps.instead })
      .output()
    expect(await tutti.execute(definition)).toEqual({ instead: 'b', last: 'b' })
  })
})

describe('required steps', () => {
  test('must not be skipped: the run fails and names the first of them', async () => {
    await using tutti = await open({ store: 'memory:', invariants: true })
    const of = (required: string[]) =>
      graph('needed', { required })
        .step('a', { when: () => false, run: () => 1 })
        .step('b', { after: ['a'], run: () => 2 })
        .step('c', { run: () => 3 })
        .output()
    expect(await (await tutti.start(of(['c', 'b']))).result()).toMatchObject({
      status: 'failed',
      error: { code: 'REQUIRED_SKIPPED', message: expect.stringContaining("'b'") },
    })
    expect(await tutti.execute(of(['c']))).toEqual({ c: 3 })
  })

  test('that fell back have succeeded; a failure comes before a required step that was skipped', async () => {
    await using tutti = await open({ store: 'memory:', invariants: true })
    const fallen = graph('fallen', { required: ['a'] })
      .step('a', { onError: { fallback: 0 }, run: boom('a') as () => number })
      .output()
    expect(await tutti.execute(fallen)).toEqual({ a: 0 })
    const failing = graph('failing', { required: ['a'] })
      .step('a', { when: () => false, run: () => 1 })
      .step('b', { run: boom('b') })
      .output()
    expect(await (await tutti.start(failing)).result()).toMatchObject({ status: 'failed', error: { code: 'STEP_FAILED', message: 'b' } })
  })
})

test('a join waits for all of its live predecessors, however long the way to them is', async () => {
  await using stage = await Stage.open()
  let joined = 0
  const definition = graph('join')
    .step('a', { run: (ctx) => stage.held('a', ctx, 'a') })
    .step('b', { run: (ctx) => stage.held('b', ctx, 'b') })
    .step('b2', { after: ['b'], run: (ctx) => stage.held('b2', ctx, 'b2') })
    .step('b3', { after: ['b2'], run: (ctx) => stage.held('b3', ctx, 'b3') })
    .step('join', { after: ['a', 'b3'], run: ({ steps }) => (joined++, [steps.a, steps.b3]) })
    .output(({ steps }) => steps.join)
  const run = await stage.tutti.start(definition)
  for (const name of ['a', 'b', 'b2']) {
    await stage.quiesce()
    stage.release(name)
    await stage.quiesce()
    expect(joined).toBe(0)
  }
  await stage.quiesce()
  stage.release('b3')
  expect(await run.output()).toEqual(['a', 'b3'])
  expect(joined).toBe(1)
})

test('a slow step delays only what depends on it', async () => {
  await using stage = await Stage.open()
  const ended: string[] = []
  const then = (name: string) => () => {
    ended.push(name)
    return name
  }
  const definition = graph('slow')
    .step('slow', { run: (ctx) => stage.held('slow', ctx, 'slow') })
    .step('quick', { run: then('quick') })
    .step('afterSlow', { after: ['slow'], run: then('afterSlow') })
    .step('afterQuick', { after: ['quick'], run: then('afterQuick') })
    .step('further', { after: ['afterQuick'], run: then('further') })
    .step('either', { after: ['slow', 'quick'], join: 'any', run: then('either') })
    .output()
  const run = await stage.tutti.start(definition)
  await stage.quiesce()
  expect(ended.toSorted()).toEqual(['afterQuick', 'either', 'further', 'quick'])
  stage.release('slow')
  await run.output()
  expect(ended.at(-1)).toBe('afterSlow')
})

test('what a step sees is fixed when its gate opens, not when it starts: while the run is paused, too', async () => {
  await using stage = await Stage.open()
  const definition = graph('fixed')
    .step('a', { run: (ctx) => stage.held('a', ctx, 'a') })
    .step('b', { run: (ctx) => stage.held('b', ctx, 'b') })
    .step('either', { after: ['a', 'b'], join: 'any', run: ({ steps }) => Object.keys(steps) })
    .output(({ steps }) => steps.either)
  const run = await stage.tutti.start(definition)
  await stage.quiesce()
  await run.pause()
  stage.release('b')
  await stage.quiesce()
  stage.release('a')
  await stage.quiesce()
  expect(await run.status()).toBe('paused')
  await run.resume()
  expect(await run.output()).toEqual(['b'])
})
