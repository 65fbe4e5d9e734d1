import { type Failure, graph, TuttiError } from 'tutti'
import { expect, test } from 'vitest'
import { z } from 'zod'
import { deferred, forksEach, hub, journal, opened, rest, solo, type SoloTurn, timed, untilAborted, type WorkerTurn } from './opened.js'

test('code is tried once if nothing is said', async () => {
  await using tutti = await opened()
  let attempts = 0
  const run = await tutti.start(
    solo(() => {
      attempts++
      throw new Error('once')
    }),
  )
  expect(await run.result()).toMatchObject({ status: 'failed', error: { code: 'AGENT_FAILED', message: 'once' } })
  expect(attempts).toBe(1)
})

test('an attempt that threw is repeated, in the same turn, up to the number of attempts', async () => {
  await using tutti = await opened()
  for (const { needed, given } of [
    { needed: 1, given: 3 },
    { needed: 3, given: 3 },
    { needed: 4, given: 3 },
  ]) {
    const seen: unknown[] = []
    const run = await tutti.start(
      solo({
        retry: { attempts: given },
        act: (turn: SoloTurn) => {
          seen.push([turn.turn, turn.attempt, turn.message.kind])
          if (turn.attempt < needed) throw new Error(`attempt ${turn.attempt}`)
          return turn.finish(turn.attempt)
        },
      }),
    )
    const result = await run.result()
    expect(seen).toEqual(Array.from({ length: Math.min(needed, given) }, (_, at) => [1, at + 1, 'request']))
    expect(result).toMatchObject(needed <= given ? { output: needed } : { status: 'failed', error: { message: 'attempt 3' } })
    expect(result.report.measured.attempts).toBeDefined()
  }
})

test('attempts back off exponentially, within half of it, up to the most, and the clock of the run is waited for', async () => {
  await using at = await timed()
  const times: number[] = []
  const run = await at.tutti.start(
    solo({
      retry: { attempts: 6, backoffMs: 1_000, factor: 2, maxBackoffMs: 5_000 },
      act: () => {
        times.push(at.clock.now())
        throw new Error('again')
      },
    }),
  )
  await at.clock.advance(60_000)
  expect(await run.result()).toMatchObject({ status: 'failed' })
  const waits = times.slice(1).map((time, index) => time - (times[index] ?? 0))
  expect(waits).toHaveLength(5)
  for (const [index, full] of [1_000, 2_000, 4_000, 5_000, 5_000].entries()) {
    expect(waits[index]).toBeGreaterThanOrEqual(full / 2)
    expect(waits[index]).toBeLessThanOrEqual(full)
  }
})

test('a backoff stands still while the run is paused, and a paused run starts no retry', async () => {
  await using at = await timed()
  let attempts = 0
  const run = await at.tutti.start(
    solo({
      retry: { attempts: 2, backoffMs: 1_000, factor: 1 },
      act: (turn: SoloTurn) => {
        if (++attempts === 1) throw new Error('again')
        return turn.finish(at.clock.now())
      },
    }),
  )
  await at.clock.advance(100)
  await run.pause()
  await at.clock.advance(100_000)
  expect(attempts).toBe(1)
  expect(await run.summary()).toMatchObject({ status: 'paused' })
  await run.resume()
  await at.clock.advance(1_000)
  const finished = (await run.output()) as number
  expect(finished).toBeGreaterThanOrEqual(100_500)
  expect(finished).toBeLessThanOrEqual(101_000)
})

const judges: readonly { judge: (failure: Failure) => boolean; attempts: number }[] = [
  { judge: ({ data }) => (data as { code?: string } | undefined)?.code === 'E_BUSY', attempts: 3 },
  { judge: () => false, attempts: 1 },
  {
    judge: () => {
      throw new Error('the judge broke')
    },
    attempts: 1,
  },
  { judge: () => Promise.resolve(true) as never, attempts: 1 },
  { judge: () => Promise.reject(new Error('the judge broke later')) as never, attempts: 1 },
]

test('who says which failures are worth it is asked, and one who throws or does not say at once is taken for no', async () => {
  await using tutti = await opened()
  for (const { judge, attempts } of judges) {
    let tried = 0
    const run = await tutti.start(
      solo({
        retry: { attempts: 3, if: judge },
        act: () => {
          tried++
          throw Object.assign(new Error('busy'), { code: 'E_BUSY' })
        },
      }),
    )
    expect(await run.result()).toMatchObject({ status: 'failed', error: { message: 'busy', data: { code: 'E_BUSY' } } })
    expect(tried).toBe(attempts)
  }
})

test('of a step too: what it failed of is what its turn is told, whatever became of who was asked', async () => {
  await using tutti = await opened()
  for (const { judge, attempts } of judges) {
    let tried = 0
    const busy = (): never => {
      tried++
      throw Object.assign(new Error('busy'), { code: 'E_BUSY' })
    }
    const definition = solo(async (turn) => {
      const caught: unknown = await turn.step('call', busy, { retry: { attempts: 3, if: judge } }).catch((error: unknown) => error)
      return turn.finish((caught as Error).message)
    })
    expect(await tutti.execute(definition)).toBe('busy')
    expect(tried).toBe(attempts)
  }
})

test('who is to say so may not be async: that is found when it is defined', async () => {
  const retry = { attempts: 3, if: async () => true }
  expect(() => solo({ retry, act: (turn: SoloTurn) => turn.finish() })).toThrow(/retry.if: if is a function that is not async/)
  expect(() =>
    graph('steps')
      .step('a', { retry: retry as never, run: () => 1 })
      .output(),
  ).toThrow(/retry.if: if is a function that is not async/)
})

test('neither fail nor a rejection is retried, and rejections have a budget of their own', async () => {
  await using tutti = await opened()
  let attempts = 0
  const fails = solo({
    retry: { attempts: 5 },
    act: (turn: SoloTurn) => {
      attempts++
      return turn.fail('on purpose')
    },
  })
  expect(await (await tutti.start(fails)).result()).toMatchObject({ error: { code: 'AGENT_FAILED', message: 'on purpose' } })
  expect(attempts).toBe(1)
  const seen: unknown[] = []
  const mixed = solo({
    retry: { attempts: 3 },
    maxRejections: 2,
    act: (turn: SoloTurn) => {
      seen.push([turn.attempt, turn.message.kind])
      if (turn.attempt % 2 === 1 && turn.attempt < 5) throw new Error('thrown')
      return turn.attempt < 5 ? undefined : turn.finish('fifth')
    },
  })
  expect(await tutti.execute(mixed)).toBe('fifth')
  expect(seen).toEqual([
    [1, 'request'],
    [2, 'request'],
    [3, 'feedback'],
    [4, 'feedback'],
    [5, 'feedback'],
  ])
})

test('a failure that is never tried again says so, however it was made', async () => {
  await using tutti = await opened()
  const byHand = { type: 'fail', error: { code: 'AGENT_FAILED', message: 'no', retryable: true } }
  for (const act of [(turn: SoloTurn) => turn.fail('no'), () => byHand, () => ({ type: 'fail', error: 'no' })]) {
    const result = await (await tutti.start(solo({ retry: { attempts: 3 }, act }))).result()
    expect(result).toMatchObject({ status: 'failed', error: { message: 'no', retryable: false } })
  }
})

const nests = ({ step }: Pick<SoloTurn, 'step'>) => step('outer', () => step('inner', () => 1))
const repeats = async ({ step }: Pick<SoloTurn, 'step'>) => {
  await step('a', () => 1, { key: 'k' })
  await step('b', () => 1, { key: 'k' })
}

test.each([
  ['NESTED_STEP', nests],
  ['DUPLICATE_STEP_KEY', repeats],
] as const)('what the code does wrong is not tried again, in a turn or in a step of a graph: %s', async (code, act) => {
  await using tutti = await opened()
  const attempts = { turn: 0, step: 0 }
  const retry = { attempts: 3 }
  const turns = solo({ retry, act: (turn: SoloTurn) => (attempts.turn++, act(turn)) })
  const steps = graph('steps')
    .step('a', { retry, run: (ctx) => (attempts.step++, act(ctx)) as Promise<unknown> })
    .output()
  const failed = { retryable: false, data: { code } }
  expect(await (await tutti.start(turns)).result()).toMatchObject({ status: 'failed', error: { code: 'AGENT_FAILED', ...failed } })
  expect(await (await tutti.start(steps)).result()).toMatchObject({ status: 'failed', error: { code: 'STEP_FAILED', ...failed } })
  expect(attempts).toEqual({ turn: 1, step: 1 })
})

test('a child run whose input is refused is not tried again', async () => {
  await using tutti = await opened()
  let attempts = 0
  const parent = graph('parent')
    .step('child', {
      retry: { attempts: 3 },
      run: solo((turn) => turn.finish(), { input: z.object({ n: z.number() }) }),
      input: () => ({ n: `${attempts++}` }),
    })
    .output()
  const error = { code: 'STEP_FAILED', retryable: false, data: { code: 'INVALID_INPUT' } }
  expect(await (await tutti.start(parent)).result()).toMatchObject({ status: 'failed', error })
  expect(attempts).toBe(1)
})

test('what passes is tried again, also if it is thrown by us, and whoever catches an error of ours knows it', async () => {
  await using tutti = await opened()
  const caught: unknown[] = []
  const run = await tutti.start(
    solo({
      retry: { attempts: 2 },
      act: async (turn: SoloTurn) => {
        await nests(turn).catch((error: unknown) => caught.push(TuttiError.is(error, 'NESTED_STEP')))
        if (turn.attempt === 1) throw new TuttiError('STORE_LOCKED', 'somebody else has it')
        return turn.finish(turn.attempt)
      },
    }),
  )
  expect(await run.output()).toBe(2)
  expect(caught).toEqual([true, true])
})

test('an attempt that takes too long is aborted and counts as a failure, and is retried like a throw', async () => {
  await using at = await timed({ graceMs: 500 })
  const reasons: unknown[] = []
  const run = await at.tutti.start(
    solo({
      timeoutMs: 1_000,
      retry: { attempts: 2 },
      act: async (turn: SoloTurn) => {
        if (turn.attempt === 2) return turn.finish('second')
        await untilAborted(turn.signal).catch((reason: unknown) => reasons.push(reason))
        return turn.finish('too late')
      },
    }),
  )
  await at.clock.advance(999)
  expect(reasons).toEqual([])
  await at.clock.advance(1)
  expect(await run.output()).toBe('second')
  expect(reasons).toMatchObject([{ message: expect.stringContaining('1000 ms') }])
  expect((await journal(run)).find(({ type }) => type === 'turn.failed')).toMatchObject({ error: { code: 'TIMEOUT' }, at: 1_000 })
})

test('one that never returns fails its run when its time and its grace are over', async () => {
  for (const options of [{}, { concurrency: 1 }]) {
    await using at = await timed({ graceMs: 500, ...options })
    let attempts = 0
    const run = await at.tutti.start(
      solo({
        timeoutMs: 1_000,
        retry: { attempts: 2 },
        act: () => {
          attempts++
          return new Promise(() => {})
        },
      }),
    )
    await at.clock.advance(5_000)
    expect(await Promise.race([run.result(), rest().then(() => 'it still runs')])).toMatchObject({
      status: 'failed',
      error: { code: 'TIMEOUT', message: expect.stringContaining('A'), at: { agent: 'A' } },
    })
    expect(attempts).toBe(2)
  }
})

test('durable sleeps do not count against the time of an attempt, and everything else does', async () => {
  await using at = await timed()
  const run = await at.tutti.start(
    solo({
      timeoutMs: 1_000,
      act: async (turn: SoloTurn) => {
        await turn.step('work', () => at.clock.sleep(600))
        await turn.sleep(3_600_000)
        await turn.step('more', () => at.clock.sleep(399))
        return turn.finish('in time')
      },
    }),
  )
  await at.clock.advance(4_000_000)
  expect(await run.output()).toBe('in time')
  const late = await at.tutti.start(
    solo({
      timeoutMs: 1_000,
      act: async (turn: SoloTurn) => {
        await turn.step('work', () => at.clock.sleep(600))
        await turn.sleep(3_600_000)
        await turn.step('more', () => at.clock.sleep(401))
        return turn.finish()
      },
    }),
  )
  await at.clock.advance(4_000_000)
  expect(await late.result()).toMatchObject({ error: { code: 'TIMEOUT' } })
})

test('the time of an attempt goes on while the run is paused', async () => {
  await using at = await timed({ graceMs: 0 })
  const run = await at.tutti.start(solo({ timeoutMs: 1_000, act: () => new Promise(() => {}) }))
  await at.clock.advance(100)
  await run.pause()
  await at.clock.advance(899)
  expect(await run.status()).toBe('paused')
  await at.clock.advance(1)
  expect(await run.result()).toMatchObject({ error: { code: 'TIMEOUT' } })
})

test('a run that takes too long fails as a whole, whoever it waits for, and its clock stands still in a pause', async () => {
  await using at = await timed({ graceMs: 0 })
  const limits = { timeoutMs: 10_000 }
  const asks = await at.tutti.start(
    solo((turn) => turn.ask('?')),
    { limits },
  )
  const sleeps = await at.tutti.start(
    solo(async (turn) => {
      await turn.sleep(60_000)
      return turn.finish()
    }),
    { limits },
  )
  const hangs = await at.tutti.start(
    hub(forksEach([1, 2]), () => new Promise(() => {})),
    { limits },
  )
  const paused = await at.tutti.start(
    solo((turn) => turn.ask('?')),
    { limits },
  )
  await at.clock.advance(4_000)
  await paused.pause()
  await at.clock.advance(5_999)
  for (const run of [asks, sleeps, hangs]) expect(await run.status()).toBe('running')
  await at.clock.advance(1)
  for (const run of [asks, sleeps, hangs])
    expect(await run.result()).toMatchObject({ status: 'failed', error: { code: 'LIMIT_TIME', message: expect.stringContaining('10000') } })
  await paused.resume()
  await at.clock.advance(5_999)
  expect(await paused.status()).toBe('running')
  await at.clock.advance(1)
  expect(await paused.result()).toMatchObject({ error: { code: 'LIMIT_TIME' } })
})

test('a join waits no longer than it says, and goes on with what had come', async () => {
  await using at = await timed()
  const held = deferred()
  const join = { policy: 'all', timeoutMs: 1_000, insufficient: 'resume' }
  const definition = hub(forksEach(['fast', 'slow'], join), async (turn: WorkerTurn) => {
    if (turn.request === 'slow') await Promise.race([held.promise, untilAborted(turn.signal).catch(() => {})])
    return turn.reply(turn.request)
  })
  const run = await at.tutti.start(definition)
  await at.clock.advance(1_000)
  expect(await run.output()).toEqual(['fast'])
  expect((await run.report()).choices).toMatchObject([{ kind: expect.stringMatching(/join|timeout/), decidedBy: [0] }])
})
