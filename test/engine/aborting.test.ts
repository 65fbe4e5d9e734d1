import { spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'

import { graph } from 'tutti'
import { expect, test } from 'vitest'
import {
  codeOf,
  deferred,
  forksEach,
  hub,
  journal,
  opened,
  rest,
  solo,
  type SoloTurn,
  timed,
  typesOf,
  untilAborted,
  type WorkerTurn,
} from './opened.js'

test('the signal of a turn and of its steps is aborted with a reason when the run is cancelled', async () => {
  await using tutti = await opened()
  const reasons: unknown[] = []
  const run = await tutti.start(
    solo(async (turn) => {
      const stepped = turn.step('wait', async ({ signal }) => {
        await untilAborted(signal).catch((reason: unknown) => reasons.push(reason))
        throw signal.reason
      })
      await untilAborted(turn.signal).catch((reason: unknown) => reasons.push(reason))
      await stepped.catch((reason: unknown) => reasons.push(reason))
      return turn.finish()
    }),
  )
  await rest()
  await run.cancel()
  await run.result()
  expect(reasons).toHaveLength(3)
  for (const reason of reasons) expect(reason).toMatchObject({ name: 'AbortError', message: expect.any(String) })
})

test('a signal that is first looked at after the abort is aborted', async () => {
  await using tutti = await opened()
  const held = deferred()
  let aborted: boolean | null = null
  const run = await tutti.start(
    solo(async (turn) => {
      await held.promise
      aborted = turn.signal.aborted
      return turn.finish()
    }),
  )
  await rest()
  await run.cancel()
  held.resolve()
  await run.result()
  expect(aborted).toBe(true)
})

test('the run ends only when an aborted body has ended, within its grace', async () => {
  await using at = await timed({ graceMs: 5_000 })
  const cleaned = deferred()
  const run = await at.tutti.start(
    solo(async (turn) => {
      await untilAborted(turn.signal).catch(() => {})
      await cleaned.promise
      return turn.finish('nobody hears this')
    }),
  )
  await rest()
  await run.cancel()
  await at.clock.advance(4_999)
  expect(await run.status()).toBe('running')
  cleaned.resolve()
  expect(await run.result()).toMatchObject({ status: 'cancelled' })
  expect((await journal(run)).at(-2)).toMatchObject({ type: 'turn.aborted', how: 'ended', at: 4_999 })
})

test('what a body returns after it was aborted or fenced off is counted, and what it throws is not', async () => {
  await using at = await timed({ graceMs: 1_000 })
  const fenced = deferred()
  const bodies = {
    heeds: (turn: WorkerTurn) => untilAborted(turn.signal),
    returns: (turn: WorkerTurn) => untilAborted(turn.signal).catch(() => turn.reply('late')),
    fenced: (turn: WorkerTurn) => fenced.promise.then(() => turn.reply('later')),
  }
  const act = (turn: WorkerTurn) => (turn.request === 'first' ? turn.reply('a') : bodies[turn.request as keyof typeof bodies](turn))
  const run = await at.tutti.start(hub(forksEach(['first', ...Object.keys(bodies)], 'any'), act))
  await rest()
  await at.clock.advance(1_000)
  const { status, report } = await run.result()
  expect({ status, refusals: report.measured.refusals }).toEqual({ status: 'succeeded', refusals: { STALE_ATTEMPT: 1 } })
  const before = await journal(run)
  fenced.resolve()
  await rest()
  expect((await run.report()).measured.refusals).toEqual({ STALE_ATTEMPT: 2 })
  expect(at.tutti.refusals()).toEqual({ STALE_ATTEMPT: 2 })
  expect(await journal(run)).toEqual(before)
})

test('what a step gives after its turn was aborted is counted, and what it throws is not', async () => {
  await using tutti = await opened()
  for (const [late, refusals] of [
    [() => 'late', { STALE_ATTEMPT: 1 }],
    [(error: unknown) => Promise.reject(error), {}],
  ] as const) {
    const run = await tutti.start(
      solo(async (turn) => turn.finish(await turn.step('s', ({ signal }) => untilAborted(signal).catch(late as () => unknown)))),
    )
    await rest()
    await run.cancel()
    expect((await run.result()).report.measured.refusals).toEqual(refusals)
  }
})

test('the output of a step that was cancelled is counted', async () => {
  await using tutti = await opened()
  const run = await tutti.start(
    graph('late')
      .step('a', { run: ({ signal }) => untilAborted(signal).catch(() => 'late') })
      .output(),
  )
  await rest()
  await run.cancel()
  expect((await run.result()).report.measured.refusals).toEqual({ STALE_ATTEMPT: 1 })
})

test('a body that ignores its signal is fenced off after its grace: the run ends, and nothing of it is recorded', async () => {
  await using at = await timed({ graceMs: 5_000 })
  const late = deferred()
  let effects = 0
  const done = deferred()
  const run = await at.tutti.start(
    solo(async (turn) => {
      await late.promise
      await turn.step('late', () => effects++).catch(() => {})
      turn.emit('late')
      done.resolve()
      return turn.finish('late')
    }),
  )
  await rest()
  await run.cancel()
  await at.clock.advance(5_000)
  expect(await run.result()).toMatchObject({ status: 'cancelled' })
  const before = await journal(run)
  expect(before.at(-2)).toMatchObject({ type: 'turn.aborted', how: 'fenced', at: 5_000 })
  late.resolve()
  await done.promise
  await rest()
  expect(effects).toBe(0)
  expect(await journal(run)).toEqual(before)
})

test('a body that was fenced off holds no place that others wait for', async () => {
  for (const options of [{ concurrency: 1 }, {}]) {
    await using at = await timed({ graceMs: 1_000, ...options })
    const act = (turn: SoloTurn) => (turn.request === 'deaf' ? new Promise(() => {}) : turn.finish('done'))
    const definition = solo({ act, concurrency: 1 })
    const deaf = await at.tutti.start(definition, { input: 'deaf' })
    await rest()
    const next = await at.tutti.start(definition, { input: 'next' })
    await rest()
    expect(await next.status()).toBe('running')
    await deaf.cancel()
    await at.clock.advance(1_000)
    expect(await deaf.result()).toMatchObject({ status: 'cancelled' })
    await rest()
    expect(await next.status()).toBe('succeeded')
  }
})

test('a turn that waits for its place and is cancelled never begins', async () => {
  await using tutti = await opened({ concurrency: 1 })
  const held = deferred()
  const began: unknown[] = []
  const definition = solo(async (turn) => {
    began.push(turn.request)
    await held.promise
    return turn.finish()
  })
  const first = await tutti.start(definition, { input: 1 })
  const second = await tutti.start(definition, { input: 2 })
  await rest()
  await second.cancel()
  expect(await second.result()).toMatchObject({ status: 'cancelled' })
  held.resolve()
  await first.result()
  await rest()
  expect(began).toEqual([1])
})

test('no step starts once its run is cancelled: not the next one, not one in its backoff, not one whose start is on its way', async () => {
  await using at = await timed()
  const effects: string[] = []
  const begun = deferred()
  const bodies: ((turn: SoloTurn) => Promise<unknown>)[] = [
    async (turn) => {
      await turn.step('first', async ({ signal }) => {
        effects.push('first')
        await untilAborted(signal).catch(() => {})
      })
      await turn.step('second', () => effects.push('second'))
      return turn.finish()
    },
    async (turn) => {
      const flaky = (): never => {
        effects.push('flaky')
        throw new Error('again')
      }
      await turn.step('flaky', flaky, { retry: { attempts: 9, backoffMs: 10_000 } })
      return turn.finish()
    },
    async (turn) => {
      begun.resolve()
      await turn.step('once', () => effects.push('once'), { idempotent: false })
      return turn.finish()
    },
  ]
  for (const [index, body] of bodies.entries()) {
    const run = await at.tutti.start(solo(body))
    if (index < 2) await rest()
    else await begun.promise
    await run.cancel()
    await at.clock.advance(60_000)
    expect(await run.result()).toMatchObject({ status: 'cancelled' })
  }
  expect(effects).toEqual(['first', 'flaky'])
})

test('what a turn started and did not wait for is aborted and awaited when it ends', async () => {
  await using tutti = await opened()
  let aborted = false
  let ended = false
  const cleaned = deferred()
  const run = await tutti.start(
    solo(async (turn) => {
      const stray = turn.step('stray', async ({ signal }) => {
        await untilAborted(signal).catch(() => {})
        aborted = true
        await cleaned.promise
        ended = true
      })
      void stray.catch(() => {})
      await turn.step('own', () => 1)
      return turn.finish()
    }),
  )
  await rest()
  expect(aborted).toBe(true)
  expect(await run.status()).toBe('running')
  cleaned.resolve()
  await run.result()
  expect(ended).toBe(true)
})

test.each<[string, (turn: SoloTurn) => unknown, object]>([
  ['ends', (turn) => turn.finish('done'), { status: 'succeeded', output: 'done' }],
  [
    'fails',
    () => {
      throw new Error('bad')
    },
    { status: 'failed', error: { message: 'bad' } },
  ],
])(
  'what ignores its signal when its turn %s is awaited for its grace, and what it comes to is used for nothing',
  async (_, ends, outcome) => {
    await using at = await timed({ graceMs: 100 })
    const late = deferred<string>()
    const run = await at.tutti.start(
      solo(async (turn) => {
        const quick = await Promise.race([turn.step('slow', () => late.promise), turn.sleep(50).then(() => 'too slow')])
        expect(quick).toBe('too slow')
        return ends(turn)
      }),
    )
    await rest()
    await at.clock.advance(149)
    expect(await run.status()).toBe('running')
    await at.clock.advance(1)
    expect(await run.result()).toMatchObject(outcome)
    late.resolve('late')
    await rest()
    expect(typesOf(await journal(run)).filter((type) => type === 'activity.completed')).toHaveLength(1)
  },
)

test('a body that has returned in time is not taken for one that took too long because of what ignores its signal', async () => {
  await using at = await timed({ graceMs: 5_000 })
  let executed = 0
  const run = await at.tutti.start(
    solo({
      timeoutMs: 1_000,
      retry: { attempts: 2 },
      act: async (turn: SoloTurn) => {
        executed++
        return turn.finish(await Promise.race([turn.step('slow', () => new Promise(() => {})), turn.sleep(50).then(() => 'too slow')]))
      },
    }),
  )
  await rest()
  await at.clock.advance(50)
  await at.clock.advance(5_000)
  expect(await run.result()).toMatchObject({ status: 'succeeded', output: 'too slow' })
  expect(executed).toBe(1)
})

test('a turn that was kept beyond its end can start no effect, sleep no sleep and emit nothing', async () => {
  await using at = await timed()
  const kept: SoloTurn[] = []
  let effects = 0
  const run = await at.tutti.start(
    solo((turn) => {
      kept.push(turn)
      return turn.message.kind === 'answer' ? turn.finish() : turn.ask('?')
    }),
  )
  await rest()
  const tries = async (): Promise<void> => {
    for (const turn of kept) {
      const stepped = codeOf(turn.step('late', () => effects++))
      const slept = codeOf(turn.sleep(1))
      await at.clock.advance(10)
      await rest()
      for (const outcome of [stepped, slept]) expect(await Promise.race([outcome, rest().then(() => 'hangs')])).toBeInstanceOf(Error)
    }
  }
  await tries()
  const [ask] = await run.asks()
  await run.answer(ask?.id ?? '', 1)
  await run.result()
  const before = await journal(run)
  await tries()
  expect(effects).toBe(0)
  expect(await journal(run)).toEqual(before)
})

test('stragglers of a join that is decided are told to stop, and the run waits for them', async () => {
  await using tutti = await opened()
  const stopped: unknown[] = []
  const cleaned = deferred()
  const definition = hub(forksEach(['fast', 'slow', 'slow'], 'any'), async (turn: WorkerTurn) => {
    if (turn.request === 'fast') return turn.reply('won')
    await untilAborted(turn.signal).catch(() => {})
    await cleaned.promise
    stopped.push(turn.branchId)
    return turn.reply('lost')
  })
  const run = await tutti.start(definition)
  await rest()
  expect(await run.status()).toBe('running')
  expect((await run.report()).branches[0]).toMatchObject({ id: 'r', turns: 2 })
  cleaned.resolve()
  expect(await run.output()).toEqual(['won'])
  expect(stopped).toHaveLength(2)
})

test('when a run is over no timer is left that would wake anything', async () => {
  let sleeping = 0
  const at = await timed()
  await using counted = await opened({
    clock: {
      now: at.clock.now,
      sleep: async (ms, signal) => {
        sleeping++
        await at.clock.sleep(ms, signal)
        sleeping--
      },
    },
  })
  const definition = hub(
    forksEach([1, 2], { policy: 'all', timeoutMs: 50_000 }),
    {
      timeoutMs: 10_000,
      retry: { attempts: 2, backoffMs: 100 },
      act: async (turn: WorkerTurn) => turn.reply(await turn.step('s', () => 1, { timeoutMs: 5_000 })),
    },
    { limits: { timeoutMs: 100_000 } },
  )
  expect(await counted.execute(definition)).toEqual([1, 1])
  await rest()
  expect(sleeping).toBe(0)
  await at.tutti.close()
})

test('a run that failed has ended only when what its siblings do has ended', async () => {
  await using tutti = await opened()
  const held = deferred()
  let ended = false
  const definition = hub(forksEach(['bad', 'good']), async (turn: WorkerTurn) => {
    if (turn.request === 'bad') throw new Error('bad')
    await held.promise
    ended = true
    return turn.reply('good')
  })
  const run = await tutti.start(definition)
  await rest()
  expect(await run.status()).toBe('running')
  held.resolve()
  expect(await run.result()).toMatchObject({ status: 'failed', error: { code: 'JOIN_FAILED', cause: { message: 'bad' } } })
  expect(ended).toBe(true)
  expect(typesOf(await journal(run)).at(-1)).toBe('run.failed')
})

test('an attempt that was broken off leaves its place when it is fenced off, also if what it started goes on for ever', async () => {
  await using at = await timed({ graceMs: 100, concurrency: 1 })
  const breaks = (): boolean => {
    throw new Error('nobody knows whether to try again')
  }
  const run = await at.tutti.start(
    solo(async (turn) => {
      const slow = turn.step('slow', () => new Promise(() => {}))
      await turn.step('bad', () => Promise.reject(new Error('bad')), { retry: { attempts: 2, if: breaks } })
      return turn.finish(await slow)
    }),
  )
  await rest()
  await at.clock.advance(50)
  await run.cancel()
  await at.clock.advance(100)
  expect(await run.status()).toBe('cancelled')
  const next = await at.tutti.start(solo((turn) => turn.finish('next')))
  await rest()
  expect(await next.status()).toBe('succeeded')
})

test.each([
  ['cancelled', 0, 'begun cancelled 0 left', /^$/],
  ['throws', 0, 'begun failed 0 left', /^$/],
  // What is somebody else's is as it is without an engine.
  ['foreign', 1, 'begun', /Error: of somebody else/],
  ['closed', 1, 'begun cancelled 0 left', /Error: of somebody else/],
  ['listens', 0, 'begun heard AbortError: the branch was cancelled heard Error: of somebody else cancelled 1 left', /^$/],
  ['listened once', 0, 'heard Error: of somebody else begun cancelled 0 left', /^$/],
])('what a helper waits for that nobody waits for ends no process when the turn is over (%s)', async (how, code, told, error) => {
  const child = spawn(process.execPath, [fileURLToPath(new URL('children/unawaited.js', import.meta.url)), how])
  let stdout = ''
  let stderr = ''
  child.stdout.on('data', (text) => (stdout += text))
  child.stderr.on('data', (text) => (stderr += text))
  expect(await new Promise((resolve) => child.on('close', resolve))).toBe(code)
  expect(stdout.trim().replaceAll('\n', ' ')).toBe(told)
  expect(stderr).toMatch(error)
})
