import { expect, test } from 'vitest'
import { deferred, forksEach, hub, journal, opened, rest, solo, type SoloTurn, timed, untilAborted, type WorkerTurn } from './opened.js'

test('a sleep lasts as long as it says, on the clock of the run', async () => {
  await using at = await timed()
  const run = await at.tutti.start(
    solo(async (turn) => {
      await turn.sleep(60_000)
      return turn.finish('awake')
    }),
  )
  await rest()
  expect(await run.summary()).toMatchObject({ status: 'running', waitsFor: ['timer'] })
  await at.clock.advance(59_999)
  expect(await run.status()).toBe('running')
  await at.clock.advance(1)
  expect(await run.output()).toBe('awake')
})

test('a sleep stands still while its run is paused, and goes on with what it had left', async () => {
  await using at = await timed()
  const run = await at.tutti.start(
    solo(async (turn) => {
      await turn.sleep(10_000)
      return turn.finish(at.clock.now())
    }),
  )
  for (const _ of [1, 2]) {
    await at.clock.advance(4_000)
    await run.pause()
    await at.clock.advance(100_000)
    expect(await run.status()).toBe('paused')
    await run.resume()
  }
  await at.clock.advance(1_999)
  expect(await run.status()).toBe('running')
  await at.clock.advance(1)
  expect(await run.output()).toBe(210_000)
})

test('sleeps longer than a timer of the machine can count are slept', async () => {
  await using at = await timed()
  const year = 365 * 24 * 3_600_000
  const run = await at.tutti.start(
    solo(async (turn) => {
      await turn.sleep(year)
      return turn.finish()
    }),
  )
  await at.clock.advance(year - 1)
  expect(await run.status()).toBe('running')
  await at.clock.advance(1)
  expect(await run.status()).toBe('succeeded')
})

test('sleeps beside each other and beside steps wake in their order', async () => {
  await using at = await timed()
  const woke: unknown[] = []
  const run = await at.tutti.start(
    solo(async (turn) => {
      const note = (what: unknown) => () => void woke.push([what, at.clock.now()])
      await Promise.all([
        turn.sleep(300).then(note('c')),
        turn.sleep(100).then(note('a')),
        turn.step('s', () => at.clock.sleep(200)).then(note('b')),
      ])
      return turn.finish()
    }),
  )
  await at.clock.advance(300)
  await run.result()
  expect(woke).toEqual([
    ['a', 100],
    ['b', 200],
    ['c', 300],
  ])
})

test('a step that is called sleep is a step', async () => {
  await using at = await timed()
  const held = deferred()
  const run = await at.tutti.start(
    solo({
      timeoutMs: 1_000,
      act: async (turn: SoloTurn) => {
        const slept = turn.sleep(50_000)
        await turn.step('sleep', () => 'not a sleep')
        await slept
        await held.promise
        return turn.finish('done')
      },
    }),
  )
  await at.clock.advance(50_000)
  held.resolve()
  expect(await run.result()).toMatchObject({ status: 'succeeded', output: 'done' })
})

test.each([
  ['that lost its race', (turn: SoloTurn) => Promise.race([turn.step('quick', () => 1), turn.sleep(3_600_000)])],
  ['that is slept beside it', (turn: SoloTurn) => void turn.sleep(3_600_000).catch(() => {})],
])('the time of an attempt counts while a step is at work, also beside a sleep %s', async (_, sleeps) => {
  await using at = await timed()
  const run = await at.tutti.start(
    solo({
      timeoutMs: 1_000,
      act: async (turn: SoloTurn) => {
        await sleeps(turn)
        await turn.step('work', ({ signal }) => untilAborted(signal))
        return turn.finish()
      },
    }),
  )
  await at.clock.advance(999)
  expect(await run.status()).toBe('running')
  await at.clock.advance(1)
  expect(await run.result()).toMatchObject({ status: 'failed', error: { code: 'TIMEOUT' } })
})

test('it stands still while nothing but sleeps is left, and counts on when a step begins beside them', async () => {
  await using at = await timed()
  const run = await at.tutti.start(
    solo({
      timeoutMs: 1_000,
      act: async (turn: SoloTurn) => {
        const work = (ms: number) => turn.step('work', () => at.clock.sleep(ms))
        const long = turn.sleep(100_000)
        await work(400)
        await turn.sleep(10_000)
        await work(400)
        await long
        await turn.step('rest', ({ signal }) => untilAborted(signal))
        return turn.finish()
      },
    }),
  )
  await at.clock.advance(100_199)
  expect(await run.status()).toBe('running')
  await at.clock.advance(1)
  expect(await run.result()).toMatchObject({ status: 'failed', error: { code: 'TIMEOUT' } })
})

test('a sleep that is none is refused', async () => {
  await using tutti = await opened()
  for (const ms of [-1, Number.NaN, Number.POSITIVE_INFINITY, '5' as never]) {
    const run = await tutti.start(
      solo(async (turn) => {
        await turn.sleep(ms)
        return turn.finish()
      }),
    )
    expect(await run.result()).toMatchObject({
      status: 'failed',
      error: { code: 'AGENT_FAILED', message: expect.stringContaining('milliseconds') },
    })
  }
})

test('now is the time of the last event that the body was given, and does not move in between', async () => {
  await using at = await timed()
  await at.clock.advance(1_000)
  const times: unknown[] = []
  const run = await at.tutti.start(
    solo(async (turn) => {
      times.push(turn.now())
      await at.clock.sleep(500)
      times.push(turn.now())
      await turn.step('s', () => at.clock.sleep(500))
      times.push(turn.now())
      await turn.sleep(2_000)
      times.push(turn.now())
      return turn.finish()
    }),
  )
  await at.clock.advance(10_000)
  expect(await run.status()).toBe('succeeded')
  expect(times).toEqual([1_000, 1_000, 2_000, 4_000])
})

test('what a step draws, and does not draw when it is given back, changes nothing of what the turn draws after it', async () => {
  await using tutti = await opened()
  const drawn: number[] = []
  const inside: number[] = []
  const definition = solo({
    retry: { attempts: 2 },
    act: async (turn: SoloTurn) => {
      await turn.step('draws', () => void inside.push(turn.random(), turn.random()))
      drawn.push(turn.random())
      if (turn.attempt === 1) throw new Error('again')
      return turn.finish()
    },
  })
  await tutti.execute(definition)
  expect(drawn).toEqual([drawn[0], drawn[0]])
  expect(new Set([...inside, ...drawn]).size).toBe(3)
})

test('what a step draws is its own: the same when it is executed again, whatever goes on beside it and was given back before it', async () => {
  await using tutti = await opened()
  const drawn = { given: [] as number[], one: [] as number[], other: [] as number[] }
  const definition = solo({
    retry: { attempts: 2 },
    act: async (turn: SoloTurn) => {
      const draws = (name: keyof typeof drawn, waits: number) =>
        turn.step(name, async () => {
          await rest(waits)
          drawn[name].push(turn.random())
          if (turn.attempt === 1 && name !== 'given') throw new Error('again')
        })
      await draws('given', 0)
      await Promise.allSettled([draws('one', turn.attempt === 1 ? 0 : 20), draws('other', 10)])
      if (turn.attempt === 1) throw new Error('again')
      return turn.finish()
    },
  })
  await tutti.execute(definition)
  expect(drawn.given).toHaveLength(1)
  for (const numbers of [drawn.one, drawn.other]) expect(numbers).toEqual([numbers[0], numbers[0]])
  expect(new Set(Object.values(drawn).flat()).size).toBe(3)
})

test('random numbers are the same on every attempt of a turn, and others on every branch, turn and run', async () => {
  await using tutti = await opened()
  const drawn = new Map<string, number[][]>()
  const draw = (turn: { runId: string; branchId: string; turn: number; random(): number }): number[] => {
    const numbers = Array.from({ length: 5 }, () => turn.random())
    const key = `${turn.runId}/${turn.branchId}/${turn.turn}`
    drawn.set(key, [...(drawn.get(key) ?? []), numbers])
    return numbers
  }
  const definition = hub(forksEach([1, 2]), {
    retry: { attempts: 3 },
    act: (turn: WorkerTurn) => {
      const numbers = draw(turn)
      if (turn.attempt < 3) throw new Error('again')
      return turn.reply(numbers)
    },
  })
  await Promise.all([tutti.execute(definition), tutti.execute(definition)])
  const firsts = new Set<number>()
  for (const attempts of drawn.values()) {
    expect(attempts).toHaveLength(3)
    for (const numbers of attempts) expect(numbers).toEqual(attempts[0])
    for (const number of attempts[0] ?? []) {
      expect(number).toBeGreaterThanOrEqual(0)
      expect(number).toBeLessThan(1)
      firsts.add(number)
    }
  }
  expect(drawn.size).toBe(4)
  expect(firsts.size).toBe(20)
})

test('a sleep that is over is not slept again by a retry of its turn, unless it was one of several', async () => {
  await using at = await timed()
  const trying = (sleeps: number) =>
    solo({
      retry: { attempts: 3 },
      act: async (turn: SoloTurn) => {
        for (let slept = 0; slept < sleeps; slept++) await turn.sleep(10_000)
        await turn.step('send', () => {
          if (turn.attempt < 3) throw new Error('nobody listens')
        })
        return turn.finish(at.clock.now())
      },
    })
  const began = at.clock.now()
  const once = await at.tutti.start(trying(1))
  await at.clock.advance(10_000)
  expect(await once.output()).toBe(began + 10_000)
  const twice = await at.tutti.start(trying(2))
  await at.clock.advance(60_000)
  expect(await twice.output()).toBe(began + 70_000)
})

test('a turn that ends while it sleeps leaves no timer behind', async () => {
  await using at = await timed()
  const run = await at.tutti.start(
    solo(async (turn) => {
      void turn.sleep(5_000)
      await turn.step('s', () => 1)
      return turn.message.kind === 'answer' ? turn.finish() : turn.ask('?')
    }),
  )
  await rest()
  expect((await run.summary()).waitsFor).toEqual(['person'])
  await at.clock.advance(10_000)
  const [ask] = await run.asks()
  await run.answer(ask?.id ?? '', 1)
  await run.result()
  expect((await journal(run)).filter(({ type }) => type === 'activity.completed')).toHaveLength(2)
})

test('a sleep that is over leaves no timer behind, and is over once', async () => {
  await using at = await timed()
  const held = deferred()
  const run = await at.tutti.start(
    solo(async (turn) => {
      await turn.sleep(1_000)
      await held.promise
      return turn.finish('awake')
    }),
  )
  await rest()
  await at.clock.advance(1_000)
  await run.pause()
  await run.resume()
  await rest()
  expect((await run.summary()).waitsFor).toEqual([])
  held.resolve()
  expect(await run.output()).toBe('awake')
  expect((await journal(run)).filter(({ type }) => type === 'activity.completed')).toHaveLength(1)
})
