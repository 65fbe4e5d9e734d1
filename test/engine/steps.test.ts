/* oxlint-disable unicorn/no-thenable -- one test is about such objects */
import { type ActivityContext, graph, TuttiError } from 'tutti'
import { expect, test } from 'vitest'
import { codeOf, deferred, journal, journalSoFar, opened, rest, solo, type SoloTurn, timed, typesOf, untilAborted } from './opened.js'

/** Behaves like a promise, as queries of databases do, and is none: its `then` gives nothing back and may call twice. */
const query = (value: unknown): never => {
  const then = (done: (value: never) => void): void =>
    void setImmediate(() => {
      done(value as never)
      done('again' as never)
    })
  return { then } as never
}

test('what only behaves like a promise is waited for, in a step and in a turn', async () => {
  await using tutti = await opened()
  const definition = solo((turn) => query(turn.finish('done')))
  expect(await tutti.execute(definition)).toBe('done')
  const stepping = solo(async (turn) => turn.finish(await turn.step('query', () => query([1, 2]))))
  expect(await tutti.execute(stepping)).toEqual([1, 2])
  const hostile = solo(
    () =>
      ({
        get then(): never {
          throw new Error('not me')
        },
      }) as never,
  )
  const { status } = await (await tutti.start(hostile)).result()
  expect(status).toBe('failed')
})

test('a step gives what its code gives, as frozen JSON, and nothing for nothing', async () => {
  await using tutti = await opened()
  const given: unknown[] = []
  const run = await tutti.start(
    solo(async (turn) => {
      const list = [1, { deep: true }]
      given.push(await turn.step('list', () => list))
      list.push(2)
      given.push(await turn.step('drops', async () => ({ kept: 1, dropped: undefined })))
      given.push(await turn.step('nothing', () => {}))
      given.push(await turn.step('null', () => null))
      return turn.finish()
    }),
  )
  await run.result()
  expect(given).toEqual([[1, { deep: true }], { kept: 1 }, undefined, null])
  expect(Object.keys(given[1] as object)).toEqual(['kept'])
  expect(Object.isFrozen(given[0]) && Object.isFrozen((given[0] as unknown[])[1])).toBe(true)
})

test('a result is in the journal before the body is given it', async () => {
  await using tutti = await opened()
  const recorded: unknown[] = []
  const run = await tutti.start(
    solo(async (turn) => {
      const own = await tutti.run(turn.runId)
      for (const name of ['a', 'b', 'c']) {
        await turn.step(name, () => name)
        recorded.push((await journalSoFar(own)).flatMap((event) => (event.type === 'activity.completed' ? [event.value] : [])))
      }
      return turn.finish()
    }),
  )
  await run.result()
  expect(recorded).toEqual([['a'], ['a', 'b'], ['a', 'b', 'c']])
})

test('results reach the body one per macrotask, in the order of the journal', async () => {
  await using tutti = await opened()
  const gates = Array.from({ length: 6 }, () => deferred())
  const arrivals: { name: unknown; tick: number }[] = []
  let tick = 0
  let counting = true
  const count = (): void => {
    tick++
    if (counting) setImmediate(count)
  }
  const run = await tutti.start(
    solo(async (turn) => {
      await Promise.all(
        gates.map(({ promise }, at) =>
          turn
            .step(`s${at}`, async () => {
              await promise
              return `s${at}`
            })
            .then((name) => arrivals.push({ name, tick })),
        ),
      )
      return turn.finish()
    }),
  )
  await rest()
  count()
  for (const at of [3, 0, 5, 1, 4, 2]) gates[at]?.resolve()
  const events = await journal(run)
  counting = false
  expect(arrivals.map(({ name }) => name)).toEqual(events.flatMap((event) => (event.type === 'activity.completed' ? [event.value] : [])))
  expect(new Set(arrivals.map((arrival) => arrival.tick)).size).toBe(6)
})

test('each step has a key of its own, by its name and how often that occurred, or as it says itself', async () => {
  await using tutti = await opened()
  const keys: string[] = []
  const note = ({ idempotencyKey }: ActivityContext): void => void keys.push(idempotencyKey)
  const definition = solo(async (turn) => {
    keys.push(turn.idempotencyKey)
    await turn.step('fetch', note)
    await turn.step('fetch', note)
    await turn.step('store', note)
    await turn.step('fetch', note, { key: 'mine' })
    return turn.finish()
  })
  await tutti.execute(definition, { id: 'R' })
  const nonce = keys[0]?.split('/')[0] ?? ''
  expect(nonce).not.toBe('')
  expect(keys).toEqual(['R/r/1', 'R/r/1/fetch#0', 'R/r/1/fetch#1', 'R/r/1/store#0', 'R/r/1/mine'].map((key) => `${nonce}/${key}`))
  keys.length = 0
  await tutti.execute(definition)
  expect(keys[0]?.split('/')[0]).not.toBe(nonce)
})

test('a key that is used twice in a turn is refused, and runs nothing', async () => {
  await using tutti = await opened()
  const ran: string[] = []
  const attempts: ((turn: SoloTurn) => Promise<unknown>)[] = [
    async (turn) => {
      await turn.step('a', () => ran.push('first'), { key: 'k' })
      await turn.step('b', () => ran.push('second'), { key: 'k' })
      return turn.finish()
    },
    async (turn) => {
      await turn.step('x', () => ran.push('first'), { key: 'a#0' })
      await turn.step('a', () => ran.push('second'))
      return turn.finish()
    },
    async (turn) => {
      await turn.step('a', () => ran.push('first'))
      await turn.step('x', () => ran.push('second'), { key: 'a#0' })
      return turn.finish()
    },
  ]
  for (const attempt of attempts) {
    ran.length = 0
    const run = await tutti.start(solo(attempt))
    expect(await Promise.race([run.result(), rest(100).then(() => 'it hangs')])).toMatchObject({
      status: 'failed',
      error: { code: 'AGENT_FAILED', data: { code: 'DUPLICATE_STEP_KEY' } },
    })
    expect(ran).toEqual(['first'])
  }
})

test('a step inside a step is refused, however deep, and one beside it is not', async () => {
  await using tutti = await opened()
  const caught: unknown[] = []
  let inner = 0
  const run = await tutti.start(
    solo(async (turn) => {
      await turn
        .step('outer', async () => {
          await rest(1)
          await turn.step('inner', () => inner++).catch((error: unknown) => caught.push(error))
        })
        .catch((error: unknown) => caught.push(error))
      await Promise.all([turn.step('beside', () => 1), turn.step('it', () => 2)])
      return turn.finish('done')
    }),
  )
  expect(await run.output()).toBe('done')
  expect(caught).toHaveLength(1)
  expect(TuttiError.is(caught[0], 'NESTED_STEP') || (caught[0] as { code?: string }).code === 'NESTED_STEP').toBe(true)
  expect(inner).toBe(0)
})

test('a sleep inside a step is refused, when it is called, and nothing of it is recorded', async () => {
  await using tutti = await opened()
  const run = await tutti.start(
    solo(async (turn) => {
      const caught = await turn.step('outer', async () => {
        await rest(1)
        // Not a rejection that nobody might wait for: it is thrown.
        return codeOf((async () => turn.sleep(0))())
      })
      await turn.sleep(0)
      return turn.finish(caught)
    }),
  )
  expect(await run.output()).toBe('NESTED_STEP')
  expect(typesOf(await journal(run)).filter((type) => type.startsWith('sleep.') || type.startsWith('activity.'))).toEqual([
    'activity.completed',
    'sleep.started',
    'activity.completed',
  ])
})

test('a step that needs no name, or a bad one, is refused', async () => {
  await using tutti = await opened()
  for (const call of [(turn: SoloTurn) => turn.step('', () => 1), (turn: SoloTurn) => turn.step('a', () => 1, { key: '' })]) {
    const run = await tutti.start(
      solo(async (turn) => {
        await call(turn)
        return turn.finish()
      }),
    )
    expect(await run.result()).toMatchObject({ status: 'failed', error: { code: 'AGENT_FAILED' } })
  }
})

test('a step is retried inside itself, under one key, with backoff, and only if it says so', async () => {
  await using at = await timed()
  const seen: { attempt: number; key: string; now: number }[] = []
  const flaky = (ctx: ActivityContext): string => {
    seen.push({ attempt: ctx.attempt, key: ctx.idempotencyKey, now: at.clock.now() })
    if (seen.length < 3) throw Object.assign(new Error('busy'), { code: seen.length })
    return 'done'
  }
  const run = await at.tutti.start(
    solo(async (turn) => turn.finish(await turn.step('flaky', flaky, { retry: { attempts: 5, backoffMs: 1_000, factor: 3 } }))),
  )
  await at.clock.advance(10_000)
  expect(await run.output()).toBe('done')
  expect(seen.map(({ attempt }) => attempt)).toEqual([1, 2, 3])
  expect(new Set(seen.map(({ key }) => key)).size).toBe(1)
  const waits = [(seen[1]?.now ?? 0) - (seen[0]?.now ?? 0), (seen[2]?.now ?? 0) - (seen[1]?.now ?? 0)]
  for (const [index, full] of [1_000, 3_000].entries()) {
    expect(waits[index]).toBeGreaterThanOrEqual(full / 2)
    expect(waits[index]).toBeLessThanOrEqual(full)
  }
  expect(typesOf(await journal(run)).filter((type) => type.startsWith('activity'))).toEqual(['activity.completed'])
  seen.length = 0
  const never = await at.tutti.start(
    solo(async (turn) =>
      turn.finish(await turn.step('flaky', flaky, { retry: { attempts: 5, if: ({ data }) => (data as { code: number }).code > 1 } })),
    ),
  )
  expect(await never.result()).toMatchObject({ status: 'failed', error: { message: 'busy', data: { code: 1 } } })
  expect(seen).toHaveLength(1)
})

test('a step that takes too long is told so by its signal, fails, and can be tried again', async () => {
  await using at = await timed()
  let attempts = 0
  const reasons: unknown[] = []
  const slow = async ({ signal }: ActivityContext): Promise<string> => {
    if (++attempts === 2) return 'second'
    await untilAborted(signal).catch((reason: unknown) => reasons.push(reason))
    return 'too late'
  }
  const run = await at.tutti.start(
    solo(async (turn) => {
      const first = await turn.step('slow', slow, { timeoutMs: 1_000 }).catch((error: Error) => error.message)
      return turn.finish([first, await turn.step('again', slow, { timeoutMs: 1_000, retry: { attempts: 2 } })])
    }),
  )
  await at.clock.advance(1_000)
  expect(await run.output()).toEqual([expect.stringContaining('1000 ms'), 'second'])
  expect(reasons).toHaveLength(1)
  expect((await journal(run)).find(({ type }) => type === 'activity.failed')).toMatchObject({ name: 'slow', error: { code: 'TIMEOUT' } })
})

test('the failure of a step is recorded, is caught with its message and fields, and fails a turn that does not catch it', async () => {
  await using tutti = await opened()
  const fails = (): never => {
    throw Object.assign(new Error('no such file'), { code: 'ENOENT', path: '/x', socket: () => 1 })
  }
  const caught = await tutti.start(
    solo(async (turn) => {
      try {
        return turn.finish(await turn.step('read', fails))
      } catch (error) {
        const { message, code, path } = error as Error & { code: string; path: string }
        return turn.finish({ isError: error instanceof Error, message, code, path })
      }
    }),
  )
  expect(await caught.output()).toEqual({ isError: true, message: 'no such file', code: 'ENOENT', path: '/x' })
  expect((await journal(caught)).find(({ type }) => type === 'activity.failed')).toMatchObject({
    name: 'read',
    error: { message: 'no such file', data: { code: 'ENOENT', path: '/x' } },
  })
  const uncaught = await tutti.start(solo(async (turn) => turn.finish(await turn.step('read', fails))))
  expect(await uncaught.result()).toMatchObject({ error: { code: 'AGENT_FAILED', message: 'no such file', data: { code: 'ENOENT' } } })
})

test('what is no JSON fails the step with the path to it, and is not retried', async () => {
  await using tutti = await opened()
  class Money {
    amount = 1
  }
  const cyclic: { self?: unknown } = {}
  cyclic.self = cyclic
  let ran = 0
  for (const bad of [
    () => 1,
    1n,
    Number.NaN,
    Number.POSITIVE_INFINITY,
    new Date(),
    new Map(),
    new Money(),
    cyclic,
    Symbol('x'),
    [undefined],
    JSON.parse('{"__proto__":1}'),
  ]) {
    ran = 0
    const run = await tutti.start(
      solo(async (turn) =>
        turn.finish(
          await turn.step(
            'bad',
            () => {
              ran++
              return { deep: [bad] }
            },
            { retry: { attempts: 3 } },
          ),
        ),
      ),
    )
    expect(await run.result(), String(typeof bad)).toMatchObject({
      status: 'failed',
      error: { code: 'AGENT_FAILED', message: expect.stringMatching(/'bad'.*deep(\[0\]|\.0)/) },
    })
    expect(ran).toBe(1)
  }
})

test('what is no JSON is not tried again by its turn either, nor by the step of a graph', async () => {
  await using tutti = await opened()
  let ran = 0
  const bad = ({ step }: Pick<SoloTurn, 'step'>) => step('bad', () => (ran++, { at: new Date(0) }))
  const retry = { attempts: 3 }
  const error = { message: expect.stringContaining("'bad' is no JSON at at") as string, retryable: false }
  const turns = await tutti.start(solo({ retry, act: bad }))
  expect(await turns.result()).toMatchObject({ status: 'failed', error: { code: 'AGENT_FAILED', ...error } })
  const steps = await tutti.start(graph('steps').step('a', { retry, run: bad }).output())
  expect(await steps.result()).toMatchObject({ status: 'failed', error: { code: 'STEP_FAILED', ...error } })
  expect(ran).toBe(2)
})

test('a retry of the turn is given its earlier successes back, by key or by a name that occurred once, and repeats the rest', async () => {
  await using tutti = await opened()
  const ran: string[] = []
  const keys = new Map<string, Set<string>>()
  const effect =
    (name: string) =>
    ({ idempotencyKey }: ActivityContext): string => {
      ran.push(name)
      keys.set(name, (keys.get(name) ?? new Set()).add(idempotencyKey))
      return `${name} ${ran.length}`
    }
  const given: unknown[] = []
  const run = await tutti.start(
    solo({
      retry: { attempts: 3 },
      act: async (turn: SoloTurn) => {
        const once = await turn.step('once', effect('once'))
        const keyed = await turn.step('many', effect('keyed'), { key: 'keyed' })
        const first = await turn.step('twice', effect('twice a'))
        const second = await turn.step('twice', effect('twice b'))
        const caught = await turn
          .step('fails', () => {
            ran.push('fails')
            if (turn.attempt === 1) throw new Error('the first time')
            return 'not the second'
          })
          .catch((error: Error) => error.message)
        given.push([once, keyed, caught])
        if (turn.attempt < 3) throw new Error('again')
        return turn.finish([first, second])
      },
    }),
  )
  await run.result()
  expect(given).toEqual([
    ['once 1', 'keyed 2', 'the first time'],
    ['once 1', 'keyed 2', 'not the second'],
    ['once 1', 'keyed 2', 'not the second'],
  ])
  const count = (name: string): number => ran.filter((one) => one === name).length
  expect([count('once'), count('keyed'), count('twice a'), count('twice b'), count('fails')]).toEqual([1, 1, 3, 3, 2])
  for (const [name, used] of keys) expect(used.size, name).toBe(1)
})

test('after a rejection nothing is given back, and the keys are new', async () => {
  await using tutti = await opened()
  const keys: string[] = []
  const run = await tutti.start(
    solo(async (turn) => {
      await turn.step('once', ({ idempotencyKey }) => void keys.push(idempotencyKey))
      return turn.attempt < 3 ? undefined : turn.finish()
    }),
  )
  expect(await run.result()).toMatchObject({ status: 'succeeded' })
  expect(keys).toHaveLength(3)
  expect(new Set(keys).size).toBe(3)
})

test('what must not be repeated has its start on record before it runs, and after a timeout is not run again', async () => {
  await using at = await timed({ graceMs: 100 })
  const before: string[][] = []
  let ran = 0
  const run = await at.tutti.start(
    solo({
      timeoutMs: 1_000,
      retry: { attempts: 3 },
      act: async (turn: SoloTurn) => {
        const done = await turn.step('paid', () => 'paid once', { idempotent: false })
        const charge = await turn
          .step(
            'charge',
            async ({ signal }) => {
              ran++
              before.push(typesOf(await journalSoFar(await at.tutti.run(turn.runId))))
              await untilAborted(signal)
            },
            { idempotent: false },
          )
          .catch((error: Error) => ({ name: error.name, message: error.message }))
        return turn.finish({ attempt: turn.attempt, done, charge })
      },
    }),
  )
  await at.clock.advance(1_000)
  await rest()
  expect(await run.output()).toEqual({
    attempt: 2,
    done: 'paid once',
    charge: { name: 'ACTIVITY_OUTCOME_UNKNOWN', message: expect.stringContaining('charge') },
  })
  expect(ran).toBe(1)
  expect(before[0]?.filter((type) => type === 'activity.started')).toHaveLength(2)
})

test.each<[string, () => unknown]>([
  ['took longer than it may', () => new Promise(() => {})],
  ['gave what is no JSON', () => new Date(0)],
  ['gave what is too large', () => 'x'.repeat(17 * 2 ** 20)],
  [
    'gave what throws when it is looked at',
    () => ({
      get receipt(): never {
        throw new Error('gone')
      },
    }),
  ],
])('what must not be repeated and %s may have been done, and is repeated by no retry', async (_, gives) => {
  await using tutti = await opened({ graceMs: 20 })
  let ran = 0
  const errors: string[] = []
  const run = await tutti.start(
    solo({
      retry: { attempts: 3 },
      act: async (turn: SoloTurn) => {
        const charge = (): unknown => {
          ran++
          return gives()
        }
        try {
          await turn.step('charge', charge, { idempotent: false, timeoutMs: 20, retry: { attempts: 3 } })
        } catch (error) {
          errors.push((error as Error).name)
          throw new Error('something is wrong with the charge', { cause: error })
        }
        return turn.finish('charged')
      },
    }),
  )
  expect(await run.result()).toMatchObject({ status: 'failed', error: { message: 'something is wrong with the charge' } })
  expect(errors).toEqual(Array.from({ length: 3 }, () => 'ACTIVITY_OUTCOME_UNKNOWN'))
  expect(ran).toBe(1)
})

test('what a step is given keeps its idempotency key also if it is spread', async () => {
  await using tutti = await opened()
  const keys: unknown[] = []
  const pays = solo(async (turn) => {
    await turn.step('pay', (ctx) => void keys.push(ctx.idempotencyKey, { ...ctx }.idempotencyKey))
    return turn.finish(null)
  })
  await tutti.execute(pays)
  expect(keys).toEqual([expect.stringMatching(/\/r\/1\/pay#0$/), keys[0]])
})

test('what the engine throws into a body has its code, and is the same failure if it is thrown on', async () => {
  await using tutti = await opened({ graceMs: 20 })
  const caught: unknown[] = []
  const gives: (() => unknown)[] = [() => new Promise(() => {}), () => 'x'.repeat(17 * 2 ** 20)]
  const throwing = (thrown: (error: Error) => unknown, idempotent?: false) =>
    solo(async (turn) => {
      for (const give of gives)
        await turn.step('charge', give, { timeoutMs: 20, ...(idempotent === false && { idempotent }) }).catch((error) => {
          caught.push(error.code)
          if (caught.length % 2 === 0) throw thrown(error)
        })
      return turn.finish('charged')
    })
  const thrownOn = await (await tutti.start(throwing((error) => error))).result()
  expect(thrownOn).toMatchObject({ status: 'failed', error: { code: 'VALUE_TOO_LARGE' } })
  expect(thrownOn).not.toHaveProperty('error.data')
  const copied = await (await tutti.start(throwing((error) => Object.assign(new Error(error.message), error), false))).result()
  // Its fields are what they were.
  expect(copied).toMatchObject({ status: 'failed', error: { code: 'AGENT_FAILED', data: { name: 'ACTIVITY_OUTCOME_UNKNOWN' } } })
  expect(copied).not.toHaveProperty('error.data.code')
  expect(caught).toEqual(['TIMEOUT', 'VALUE_TOO_LARGE', 'ACTIVITY_OUTCOME_UNKNOWN', 'ACTIVITY_OUTCOME_UNKNOWN'])
})

test('several of one name that must not be repeated are not by a retry, unless each has a key: then what it gave is given back', async () => {
  await using tutti = await opened()
  const charged: string[] = []
  const charges = (keyed: boolean) =>
    solo({
      retry: { attempts: 2 },
      act: async (turn: SoloTurn) => {
        for (const who of ['ann', 'bob'])
          await turn.step('charge', () => void charged.push(who), { idempotent: false, ...(keyed && { key: who }) })
        if (turn.attempt === 1) throw new Error('the first attempt fails')
        return turn.finish('charged')
      },
    })
  expect(await (await tutti.start(charges(true))).result()).toMatchObject({ status: 'succeeded' })
  expect(await (await tutti.start(charges(false))).result()).toMatchObject({
    status: 'failed',
    error: { code: 'ACTIVITY_OUTCOME_UNKNOWN', message: expect.stringContaining('give each a key of its own') },
  })
  expect(charged).toEqual(['ann', 'bob', 'ann', 'bob'])
})

test('a step whose failure is known may be tried again by a retry of the turn, though it is not idempotent', async () => {
  await using tutti = await opened()
  let ran = 0
  const run = await tutti.start(
    solo({
      retry: { attempts: 2 },
      act: async (turn: SoloTurn) =>
        turn.finish(
          await turn.step(
            'charge',
            () => {
              if (++ran === 1) throw new Error('declined')
              return 'charged'
            },
            { idempotent: false },
          ),
        ),
    }),
  )
  expect(await run.output()).toBe('charged')
})

test('steps of two branches, of two runs and of two turns have nothing to do with each other', async () => {
  await using tutti = await opened()
  const keys = new Set<string>()
  let calls = 0
  const definition = solo(async (turn) => {
    await turn.step('same', ({ idempotencyKey }) => {
      calls++
      keys.add(idempotencyKey)
    })
    return turn.message.kind === 'answer' ? turn.finish() : turn.ask('?')
  })
  for (const id of ['R1', 'R2']) {
    const run = await tutti.start(definition, { id })
    await rest()
    const [ask] = await run.asks()
    await run.answer(ask?.id ?? '', 1)
    await run.result()
  }
  expect(calls).toBe(4)
  expect(keys.size).toBe(4)
})

test('a step that nobody awaits and that fails breaks nothing', async () => {
  await using tutti = await opened()
  const unhandled: unknown[] = []
  const note = (error: unknown): void => void unhandled.push(error)
  process.on('unhandledRejection', note)
  const run = await tutti.start(
    solo(async (turn) => {
      void turn.step('stray', () => Promise.reject(new Error('stray')))
      await turn.step('own', () => rest(5))
      return turn.finish('done')
    }),
  )
  expect(await run.output()).toBe('done')
  await rest()
  process.off('unhandledRejection', note)
  expect(unhandled).toEqual([])
})

test('a step called by its name alone, taken out of the turn, works', async () => {
  await using tutti = await opened()
  const run = await tutti.start(
    solo(async ({ step, sleep, now, random, finish, use, emit, fail, signal }: SoloTurn) => {
      emit({ at: now() })
      await sleep(0)
      expect([typeof use, typeof fail, signal.aborted, random() < 1]).toEqual(['function', 'function', false, true])
      return finish(await step('inner', ({ attempt, emit: tell }) => (tell('x'), attempt)))
    }),
  )
  expect(await run.output()).toBe(1)
  expect(await codeOf(run.output())).toEqual({ accepted: 1 })
})

const stepRefusals: readonly (readonly [options: unknown, message: RegExp])[] = [
  [5, /the step 's' takes an object of options, not 5/],
  [null, /an object of options, not null/],
  [{ foo: 1 }, /there is no option 'foo' here; there are key, idempotent, retry, timeoutMs/],
  [{ key: 'k', timeout: 5 }, /there is no option 'timeout'/],
  [{ idempotent: 'no' }, /idempotent is true or false, not 'no'/],
  [{ timeoutMs: -1 }, /timeoutMs is a number of milliseconds above 0, not -1/],
  [{ timeoutMs: 'x' }, /timeoutMs is a number .*, not 'x'/],
  [{ retry: 5 }, /retry is an object, not 5/],
  [{ retry: { attempts: 0 } }, /retry.attempts: attempts is a whole number of at least 1, not 0/],
  [{ retry: { attempt: 2 } }, /retry.attempt: there is no option 'attempt' here \(did you mean attempts\?\)/],
  [{ retry: { if: true } }, /retry.if: if is a function that is not async, not true/],
]

test.each(stepRefusals)('a step with the options %j is not executed, and the turn can go on', async (options, message) => {
  await using tutti = await opened()
  let executed = 0
  const run = await tutti.start(
    solo(async (turn) => {
      try {
        await turn.step('s', () => ++executed, options as never)
      } catch (error) {
        expect(error).toBeInstanceOf(TypeError)
        return turn.finish([(error as Error).message, await turn.step('s', () => 'another', { key: 'k' })])
      }
      return turn.finish('accepted')
    }),
  )
  expect(await run.output()).toEqual([expect.stringMatching(message), 'another'])
  expect(executed).toBe(0)
})

test('a step needs a name and a function, and every option that it declares is taken', async () => {
  await using tutti = await opened()
  expect(await (await tutti.start(solo((turn) => turn.step((() => 1) as never, undefined as never) as never))).result()).toMatchObject({
    status: 'failed',
    error: { message: "a step needs a name before its function: step('charge', () => …)" },
  })
  expect(await (await tutti.start(solo((turn) => turn.step('s', undefined as never) as never))).result()).toMatchObject({
    status: 'failed',
    error: { message: "the step 's' needs a function, not undefined" },
  })
  const retry = { attempts: 2, backoffMs: 0, factor: 1, maxBackoffMs: 0, if: () => true }
  const all = { key: 'k', idempotent: false, retry, timeoutMs: 1_000 }
  const left = { key: undefined, idempotent: undefined, retry: undefined, timeoutMs: undefined } as never
  const definition = solo(async (turn) => turn.finish([await turn.step('s', () => 1, all), await turn.step('s', () => 2, left)]))
  expect(await tutti.execute(definition)).toEqual([1, 2])
})

test.each([true, false])(
  'a retry gives no step what another of its name has come to, though that one failed, or had not ended (idempotent: %s)',
  async (idempotent) => {
    await using tutti = await opened()
    for (const fate of ['fails', 'has not ended']) {
      const ran: string[] = []
      const swapped = solo({
        retry: { attempts: 2 },
        act: async (turn: SoloTurn) => {
          const isFirst = turn.attempt === 1
          const pay = (who: string): Promise<unknown> =>
            turn.step(
              'pay',
              async ({ signal }) => {
                ran.push(`${who}/${turn.attempt}`)
                if (who === 'b' && isFirst && fate === 'fails') throw new Error('b is down')
                if (who === 'b' && isFirst) await untilAborted(signal)
                return `paid ${who}`
              },
              { idempotent },
            )
          const first = await turn.step('who', () => (isFirst ? 'a' : 'b'), { key: `who/${turn.attempt}` })
          const a = first === 'a' ? pay('a') : turn.step('later', () => 1).then(() => pay('a'))
          const b = first === 'b' ? pay('b') : turn.step('later', () => 1).then(() => pay('b'))
          if (isFirst) await a
          if (isFirst && fate === 'has not ended') await turn.step('and then', () => 1)
          if (isFirst && fate === 'has not ended') throw new Error('enough')
          return turn.finish({ a: await a, b: await b })
        },
      })
      const result = await (await tutti.start(swapped)).result()
      if (idempotent) {
        expect(result).toMatchObject({ status: 'succeeded', output: { a: 'paid a', b: 'paid b' } })
        expect(ran).toEqual(['a/1', 'b/1', 'b/2', 'a/2'])
      } else {
        expect(result).toMatchObject({ status: 'failed', error: { code: 'ACTIVITY_OUTCOME_UNKNOWN' } })
        expect(ran).toEqual(['a/1', 'b/1'])
      }
    }
  },
)

test('a step that outruns its time is waited for by what undoes its turn and by the end of the run, and not by its next attempt', async () => {
  await using at = await timed({ graceMs: 1_000 })
  const log: string[] = []
  const slow = async (what: string): Promise<void> => {
    log.push(`${what} begins`)
    await at.clock.sleep(150, new AbortController().signal)
    log.push(`${what} ends`)
  }
  const booking = graph('booking')
    .step('book', {
      run: async ({ step }) => {
        const tried = step('try', ({ attempt }) => slow(`try ${attempt}`), { timeoutMs: 20, retry: { attempts: 2 } })
        await tried.catch(({ name }: Error) => log.push(`caught ${name}`))
        return 'booked'
      },
      compensate: () => void log.push('unbooked'),
    })
    .step('pay', {
      after: ['book'],
      run: () => {
        throw new Error('no')
      },
    })
    .output()
  const run = await at.tutti.start(booking)
  let isOver = false
  const result = run.result().finally(() => (isOver = true))
  while (!isOver) await at.clock.advance(10)
  expect(await result).toMatchObject({ status: 'failed', rollback: 'complete' })
  expect(log).toEqual(['try 1 begins', 'try 2 begins', 'caught TIMEOUT', 'try 1 ends', 'try 2 ends', 'unbooked'])
})

test('one that ignores its signal has its grace once, from when its time was over', async () => {
  await using at = await timed({ graceMs: 1_000 })
  const run = await at.tutti.start(
    solo(async (turn: SoloTurn) => {
      await turn.step('hangs', () => new Promise(() => {}), { timeoutMs: 100 }).catch(() => {})
      await turn.step('works', ({ signal }) => at.clock.sleep(900, signal))
      return turn.finish(turn.now())
    }),
  )
  for (let ms = 0; ms < 1_000; ms += 50) await at.clock.advance(50)
  await rest()
  expect(await run.status()).toBe('running')
  await at.clock.advance(100)
  expect(await run.result()).toMatchObject({ status: 'succeeded' })
  expect((await journal(run)).at(-1)?.at).toBe(1_100)
})
