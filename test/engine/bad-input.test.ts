import { agent, type Definition, TuttiError, topology, type Tutti, reportText } from 'tutti'
import { expect, test } from 'vitest'
import { z } from 'zod'
import { engineOf } from '../../src/engine/engine-of.js'
import { Place } from '../durable/processes.js'
import {
  codeOf,
  deferred,
  forksEach,
  hub,
  type HubTurn,
  journal,
  journalSoFar,
  opened,
  rest,
  solo,
  type SoloTurn,
  timed,
  type WorkerTurn,
} from './opened.js'

class Money {
  readonly amount = 1
}
const cyclic: { list: unknown[] } = { list: [] }
cyclic.list.push({ back: cyclic })
const trap = {
  get message(): string {
    throw new Error('a trap')
  },
  get other(): string {
    throw new Error('a trap')
  },
}
const revoked = Proxy.revocable({}, {})
revoked.revoke()

/** Values that are no JSON, each with a word that its refusal contains. */
const notJson: readonly (readonly [what: string, value: unknown, word: RegExp])[] = [
  ['a function', () => 1, /function/],
  ['a cycle', cyclic, /contains itself/],
  ['a BigInt', 10n, /bigint/],
  ['NaN', Number.NaN, /NaN/],
  ['infinity', Number.NEGATIVE_INFINITY, /Infinity/],
  ['a Date', new Date(0), /Date/],
  ['a Map', new Map([[1, 2]]), /Map/],
  ['a Set', new Set([1]), /Set/],
  ['a class instance', new Money(), /Money/],
  ['a symbol', Symbol('s'), /symbol/],
  ['an Error', new Error('e'), /Error/],
  ['a promise', Promise.resolve(1), /Promise/],
  ['a typed array', new Uint8Array(2), /Uint8Array/],
  ['undefined in an array', [1, undefined], /undefined/],
  ['a hole in an array', [1, , 2], /undefined/], // eslint-disable-line no-sparse-arrays
  ['a key named __proto__', JSON.parse('{"__proto__":{"admin":true}}'), /__proto__/],
  ['a key that is a symbol', { [Symbol('k')]: 1 }, /symbol/],
  ['a regular expression', /x/, /RegExp/],
  ['a getter that throws', trap, /message: it can't be read: a trap/],
  ['a proxy that was revoked', revoked.proxy, /it can't be read: .*revoked/],
]

const codesOf = (make: () => unknown): string[] | undefined => {
  try {
    make()
    return undefined
  } catch (error) {
    if (!TuttiError.is(error, 'INVALID_TOPOLOGY')) throw error
    return error.problems?.map(({ code }) => code)
  }
}

test('an unknown agent and a name that is there twice are errors of definition, and no run starts', () => {
  const act = (turn: SoloTurn) => turn.finish()
  expect(codesOf(() => topology({ name: 't', flows: ['Start -> A -> End', 'A -> B'], agents: { A: act } } as never))).toHaveLength(1)
  expect(codesOf(() => topology({ name: 't', flows: ['Start -> A -> End'], agents: { A: act, B: act } } as never))).not.toBeUndefined()
  const twice = [agent({ name: 'A', act: act as never }), agent({ name: 'A', act: act as never })]
  expect(codesOf(() => topology({ name: 't', flows: ['Start -> A -> End'], agents: twice }))).not.toBeUndefined()
  expect(codesOf(() => topology({ name: 't', flows: ['Start -> A -> End'], agents: { A: act } } as never))).toBeUndefined()
})

test('an invoke outside the topology rejects that turn alone: it names the agent, what it tried and what it may do', async () => {
  await using tutti = await opened()
  const feedback: string[] = []
  const definition = topology({
    name: 'edges',
    flows: ['Start -> H -> End', 'H -> A | C', 'C -> D', 'A | D -> H'],
    agents: [
      agent({
        name: 'H',
        act: { request: (turn) => turn.fork(['A', 'C']), join: (turn, join) => (turn as unknown as SoloTurn).finish(join.values) },
      }),
      agent({ name: 'A', act: (turn) => turn.reply('a') }),
      agent({
        name: 'C',
        act: (turn) => {
          if (turn.message.kind === 'feedback') feedback.push(turn.message.problem)
          return turn.attempt === 1
            ? turn.invoke('H', 'wrong')
            : turn.attempt === 2
              ? turn.invoke('Nobody', 'wrong')
              : turn.invoke('D', 'c')
        },
      }),
      agent({ name: 'D', act: (turn) => turn.reply(`${String(turn.request)}d`) }),
    ],
  })
  const run = await tutti.start(definition)
  expect(await run.output()).toEqual(['a', 'cd'])
  expect(feedback).toEqual([
    expect.stringMatching(/^C .*may not invoke H.*may invoke D/),
    expect.stringMatching(/^C .*may not invoke Nobody/),
  ])
  const rejected = (await journal(run)).flatMap((event) => (event.type === 'turn.rejected' ? [event.agent] : []))
  expect(rejected).toEqual(['C', 'C'])
})

test('an input that is no JSON is refused with the path to it, and nothing is recorded', async () => {
  await using tutti = await opened()
  for (const [what, value, word] of notJson) {
    const error = await tutti
      .start(
        solo((turn) => turn.finish()),
        { input: { deep: [value] } },
      )
      .catch((thrown: unknown) => thrown)
    expect(error, what).toMatchObject({
      code: 'INVALID_INPUT',
      message: expect.stringMatching(word),
      hint: expect.stringMatching(/^an input is JSON/),
    })
    expect((error as Error).message, what).toMatch(/deep(\[0\]|\.0)/)
  }
  expect((await tutti.runs()).runs).toEqual([])
  expect(({} as { admin?: boolean }).admin).toBeUndefined()
})

test('a key, a tag or a session that no store could keep is refused to whoever gave it, and to nobody who starts beside it', async () => {
  const said: string[] = []
  await using tutti = await opened({ onLog: ({ message }) => said.push(message) })
  const definition = solo((turn) => turn.finish('done'))
  for (const bad of ['a\0b', 'a\nb', 'a\u007f', '\u0085', 'a\ud800']) {
    for (const options of [{ key: bad }, { tags: { tenant: bad } }, { tags: { [bad]: 'x' } }, { session: bad }]) {
      const [before, refused, after] = await Promise.allSettled([
        tutti.execute(definition),
        tutti.execute(definition, options),
        tutti.execute(definition),
      ])
      expect([before, after]).toEqual([expect.objectContaining({ value: 'done' }), expect.objectContaining({ value: 'done' })])
      expect(refused).toMatchObject({ status: 'rejected', reason: { code: 'INVALID_INPUT' } })
    }
  }
  const run = await tutti.start(solo((turn) => turn.ask('?')))
  expect(await codeOf(run.pause({ key: 'a\u007f' }))).toBe('INVALID_INPUT')
  expect(said).toEqual([])
})

test('what is no definition is refused as such, and not with an error of the language', async () => {
  await using tutti = await opened()
  for (const none of [undefined, null, 5, {}, () => 1]) {
    expect(await codeOf(tutti.start(none as never, {} as never))).toBe('INVALID_INPUT')
    expect(await codeOf(tutti.execute(none as never, {} as never))).toBe('INVALID_INPUT')
  }
  const { id } = await tutti.start(solo((turn) => turn.finish()))
  expect(await codeOf(tutti.run(id, {} as never))).toBe('INVALID_INPUT')
})

test('what an agent sends, replies, finishes or asks with must be JSON: else its turn is rejected, and nothing is sent', async () => {
  await using tutti = await opened()
  for (const [what, value, word] of notJson) {
    const bad = { deep: [value] }
    const received: unknown[] = []
    const problems: string[] = []
    const noted = (turn: { message: { kind: string; problem?: string } }): boolean => {
      if (turn.message.kind === 'feedback') problems.push(turn.message.problem ?? '')
      return turn.message.kind === 'feedback'
    }
    const definition = hub(
      (turn: HubTurn) => {
        if (turn.message.kind === 'join') return turn.finish(bad)
        const again = noted(turn)
        if (turn.turn === 2) return turn.finish('good')
        return again
          ? turn.fork([{ to: 'W', request: 'good' }])
          : turn.fork([
              { to: 'W', request: 'good' },
              { to: 'W', request: bad },
            ])
      },
      (turn: WorkerTurn) => {
        received.push(turn.request)
        return turn.reply(noted(turn) ? 'good' : bad)
      },
    )
    expect(await tutti.execute(definition), what).toBe('good')
    expect(new Set(received)).toEqual(new Set(['good']))
    expect(problems, what).toHaveLength(3)
    for (const problem of problems) expect(problem, what).toMatch(word)
    const asks = solo((turn) => (noted(turn) ? turn.finish('asked in vain') : turn.ask(bad)))
    expect(await tutti.execute(asks)).toBe('asked in vain')
  }
  expect(await tutti.asks()).toEqual([])
})

test('an agent that returns nothing, or no action, is told what to return, and fails when it does not learn', async () => {
  await using tutti = await opened()
  const made: unknown[] = [
    undefined,
    null,
    'text',
    7,
    true,
    [],
    {},
    { type: 'dance' },
    { type: 'invoke' },
    { type: 'fork' },
    { type: 'fork', calls: [7] },
    () => 1,
    1n,
  ]
  for (const returned of made) {
    const problems: string[] = []
    const run = await tutti.start(
      solo((turn) => {
        if (turn.message.kind === 'feedback') problems.push(turn.message.problem)
        return returned
      }),
    )
    const result = await run.result()
    expect(result, String(returned)).toMatchObject({ status: 'failed', error: { code: 'REJECTED', at: { agent: 'A', branch: 'r' } } })
    expect(problems).toHaveLength(2)
    for (const problem of problems) expect(problem).toMatch(/turn\.|invoke|fork|call|action/)
  }
})

test('an action that was made by hand is judged like any other', async () => {
  await using tutti = await opened()
  expect(await tutti.execute(solo(() => ({ type: 'finish', output: 1 })))).toBe(1)
  for (const error of [
    undefined,
    null,
    'text',
    {},
    { code: 7 },
    { code: 'AGENT_FAILED', message: 'x', data: 1n },
    { code: 'AGENT_FAILED', message: 'x', data: () => 1 },
    cyclic,
  ]) {
    const run = await tutti.start(solo(() => ({ type: 'fail', error })))
    const result = await Promise.race([run.result(), rest(100).then(() => 'it hangs')])
    expect(result).toMatchObject({
      status: 'failed',
      error: { code: expect.stringMatching(/AGENT_FAILED|REJECTED/), message: expect.stringMatching(/./) },
    })
  }
  expect(await tutti.execute(solo((turn) => turn.finish('others go on')))).toBe('others go on')
})

test('a failure that was made by hand is one of the agent, and the run that fails of it can be looked at', async () => {
  await using tutti = await opened({ graceMs: 20 })
  const odd = { code: 'E_MINE', message: 'mine', retryable: 1, at: 7, cause: 'odd', others: [{ code: 5 }] }
  for (const error of [odd, { ...odd, code: 'LIMIT_TURNS' }, { ...odd, code: 'AGENT_FAILED', data: { code: 'E_MINE' } }]) {
    const run = await tutti.start(solo(() => ({ type: 'fail', error })))
    const expected = { code: 'AGENT_FAILED', message: 'mine', retryable: false, at: { agent: 'A' }, data: { code: expect.any(String) } }
    const { report, ...result } = await run.result()
    expect(result).toMatchObject({ status: 'failed', error: expected })
    expect(report.error).toMatchObject(expected)
    expect(reportText(report)).toContain('mine')
  }
  const timely = solo(async (turn) => {
    const late: unknown = await turn.step('slow', () => new Promise(() => {}), { timeoutMs: 1 }).catch((error: unknown) => error)
    return turn.fail(late)
  })
  expect(await (await tutti.start(timely)).result()).toMatchObject({ error: { code: 'TIMEOUT', retryable: false } })
})

test('an agent that throws what is no Error fails with something that can be read, and so does one that gives it to fail', async () => {
  await using tutti = await opened()
  const odd = Object.assign(new Error('x'), { message: 10n as unknown as string, big: 1n, at: new Date() })
  for (const [thrown, message] of [
    ['a text', /^a text$/],
    [undefined, /undefined/],
    [null, /null/],
    [{ code: 'E_X', message: 'an object' }, /^an object$/],
    [{ only: 'data' }, /data/],
    [404, /404/],
    [1n, /bigint/],
    [Symbol('s'), /symbol/],
    [() => 1, /function/],
    [new Error(''), /Error/],
    [new Date(0), /Date/],
    [cyclic, /itself/],
    [trap, /./],
    [odd, /./],
    [revoked.proxy, /./],
  ] as const) {
    for (const act of [
      () => {
        throw thrown
      },
      () => Promise.reject(thrown),
      (turn: SoloTurn) => turn.fail(thrown),
      (turn: SoloTurn) =>
        turn.step('s', () => {
          throw thrown
        }),
    ]) {
      const run = await tutti.start(solo(act as never))
      const result = await Promise.race([run.result(), rest(100).then(() => 'it hangs')])
      expect(result).toMatchObject({ status: 'failed', error: { code: 'AGENT_FAILED', message: expect.stringMatching(message) } })
    }
  }
  expect(await (await tutti.start(solo((turn) => turn.fail({ code: 'E_X', message: 'm', n: 1, f: () => 1 })))).result()).toMatchObject({
    error: { message: 'm', data: { code: 'E_X', n: 1 } },
  })
})

test('an agent that ignores its signal, or never returns under a timeout, ends nobody but itself', async () => {
  await using at = await timed({ graceMs: 100 })
  const join = { policy: 'settled' }
  const definition = hub(
    (turn: HubTurn) =>
      turn.message.kind === 'join'
        ? turn.finish(turn.message.join.slots.map(({ status }) => status))
        : forksEach(['deaf', 'fine'], join)(turn),
    { timeoutMs: 1_000, act: (turn: WorkerTurn) => (turn.request === 'deaf' ? new Promise(() => {}) : turn.reply('fine')) },
  )
  const run = await at.tutti.start(definition)
  await at.clock.advance(2_000)
  expect(await run.output()).toEqual(['failed', 'arrived'])
})

test('a run that goes wrong in every way disturbs no other run of the engine', async () => {
  await using tutti = await opened()
  const bad: Definition<unknown>[] = [
    solo(() => {
      throw undefined
    }),
    solo(() => ({ type: 'finish', output: 1n })),
    solo((turn) => turn.step('s', () => Promise.reject(cyclic))),
    solo(() => ({ type: 'fork', calls: cyclic })),
    solo((turn) => turn.finish(), {
      result: () => {
        throw new Error('the result function broke')
      },
    }),
    hub(forksEach([1, 2]), (turn) => turn.reply(1, { state: { n: turn.request } }), {
      state: () => ({ n: 0 }),
      merge: {
        n: () => {
          throw new Error('the merge broke')
        },
      },
    }),
    hub(forksEach([1, 2]), (turn) => turn.reply(1, { state: { n: turn.request } }), { state: () => ({ n: 0 }), merge: { n: () => 1n } }),
  ]
  const good = solo(async (turn) => turn.finish(await turn.step('s', () => turn.request)))
  const runs = await Promise.all(Array.from({ length: 20 }, (_, at) => tutti.start(good, { input: at })))
  const results = await Promise.all(bad.map(async (definition) => (await tutti.start(definition)).result()))
  expect(results.map((result) => (result.status === 'failed' ? result.error.code : result.status))).toEqual([
    'AGENT_FAILED',
    'REJECTED',
    'AGENT_FAILED',
    'REJECTED',
    'RESULT_FAILED',
    'MERGE_FAILED',
    'MERGE_FAILED',
  ])
  expect(await Promise.all(runs.map((run) => run.output()))).toEqual(runs.map((_, at) => at))
})

test('tags and options of a start that are none are refused before anything is recorded', async () => {
  await using tutti = await opened()
  const definition = solo((turn) => turn.finish())
  for (const tags of [{ a: 1 }, ['x'], 'x', { a: null }, { a: () => 1 }])
    expect(await codeOf(tutti.start(definition, { tags } as never)), JSON.stringify(tags)).toBe('INVALID_INPUT')
  expect((await tutti.runs()).runs).toEqual([])
})

test.each(['memory:', 'sqlite'])('a run is found by its whole id, and by nothing that is no text (%s)', async (kind) => {
  using place = new Place()
  await using tutti = await opened({ store: kind === 'sqlite' ? place.store : kind })
  await tutti.execute(
    solo((turn) => turn.finish()),
    { id: 'run' },
  )
  for (const id of ['run\0', 'run\0more', 'run\ud800', '']) expect(await codeOf(tutti.run(id)), JSON.stringify(id)).toBe('RUN_NOT_FOUND')
  for (const id of [undefined, null, 5, {}]) expect(await codeOf(tutti.run(id as never)), JSON.stringify(id)).toBe('INVALID_INPUT')
  expect((await tutti.runs({ definition: 'solo\0' })).runs).toEqual([])
  expect(await tutti.asks({ runId: 'run\0' })).toEqual([])
})

/** Everything that can be reached from a value, and is not frozen. */
function thawed(value: unknown, path = '', seen = new Set<unknown>()): string[] {
  if (typeof value !== 'object' || value === null || seen.has(value) || value instanceof AbortSignal) return []
  seen.add(value)
  const inner = Object.entries(value).flatMap(([key, item]) => thawed(item, `${path}.${key}`, seen))
  return Object.isFrozen(value) ? inner : [path === '' ? '(itself)' : path, ...inner]
}

test('everything that is given to user code is frozen, to the last corner', async () => {
  await using tutti = await opened()
  const found = new Map<string, string[]>()
  const look = (name: string, value: unknown): void => {
    found.set(name, thawed(value))
  }
  const definition = hub(
    (turn: HubTurn) => {
      look(`the hub's turn ${turn.turn}`, turn)
      if (turn.message.kind === 'answer') return turn.finish({ deep: [{ a: 1 }] })
      if (turn.message.kind === 'join') {
        look('a join', turn.message.join)
        return turn.ask({ deep: [1] })
      }
      return turn.fork([{ to: 'W', request: { deep: [{ a: 1 }] } }, 'W'], { state: { list: [{ x: 1 }] } })
    },
    async (turn: WorkerTurn) => {
      look('a worker', turn)
      look(
        'a result',
        await turn.step('s', (ctx) => {
          look('a context', ctx)
          return { deep: [{ a: 1 }] }
        }),
      )
      return turn.reply({ deep: [{ a: 1 }] })
    },
    {
      state: (input: unknown) => {
        if (input !== undefined) look('the input of state', input)
        return { list: [] }
      },
      merge: {
        list: (base: unknown, changed: unknown) => {
          look('the base of a merge', base)
          look('the changed of a merge', changed)
          return base
        },
      },
      result: (finishes: unknown) => {
        look('the finishes', finishes)
        return finishes
      },
    },
  )
  const run = await tutti.start(definition, { input: { deep: [{ a: 1 }] }, tags: { a: 'b' } })
  await rest()
  const asks = await run.asks()
  look('the asks', asks[0])
  await run.answer(asks[0]?.id ?? '', { deep: [1] })
  look('the output', await run.output())
  look('the tags', run.tags)
  look('the handle', run)
  for await (const event of run.events()) look(`the event ${event.type}`, event)
  expect([...found].filter(([, paths]) => paths.length > 0)).toEqual([])
  expect(found.size).toBeGreaterThan(15)
})

test('what was given to the engine can be changed afterwards without the engine noticing', async () => {
  await using tutti = await opened()
  const held = deferred()
  const input = { list: [1] }
  const definition = solo(async (turn) => {
    await held.promise
    const output = { seen: turn.request, list: [1] }
    const action = turn.finish(output)
    setImmediate(() => output.list.push(2))
    return action
  })
  const run = await tutti.start(definition, { input })
  input.list.push(2)
  held.resolve()
  expect(await run.output()).toEqual({ seen: { list: [1] }, list: [1] })
})

/** What is no name of anybody, each of which a store would refuse or keep as something else. */
const nobody: readonly unknown[] = [1n, 5, null, {}, { toJSON: () => 'ann' }, () => 'ann', Symbol('ann'), '', 'a\u0000b', 'x'.repeat(257)]

test('whoever commands is named by a text: what is none is refused, nothing is recorded, and the run goes on', async () => {
  await using tutti = await opened()
  const run = await tutti.start(solo((turn) => (turn.message.kind === 'answer' ? turn.finish(turn.message.value) : turn.ask('?'))))
  await rest()
  const before = await journalSoFar(run)
  for (const by of nobody as readonly string[])
    for (const command of [run.pause({ by }), run.resume({ by }), run.cancel({ by }), run.answer('r~1', 1, { by })])
      expect(await codeOf(command)).toBe('INVALID_INPUT')
  for (const reason of [1n, 5, null, {}, Symbol('why')] as unknown as readonly string[])
    expect(await codeOf(run.cancel({ reason }))).toBe('INVALID_INPUT')
  for (const compensate of [1n, 0, null, 'false'] as unknown as readonly boolean[])
    expect(await codeOf(run.cancel({ compensate }))).toBe('INVALID_INPUT')
  expect(await codeOf(run.answer(1n as unknown as string, 1))).toBe('INVALID_INPUT')
  expect(await journalSoFar(run)).toEqual(before)
  await run.answer('r~1', 2, { by: 'ann' })
  expect(await run.output()).toBe(2)
})

test('a command that no journal can hold fails alone: what others say of the run at the same time stands', async () => {
  await using tutti = await opened()
  const done = deferred()
  const run = await tutti.start(solo(async (turn) => turn.finish(await turn.step('s', () => done.promise.then(() => 'done')))))
  await rest()
  const throwing = Object.defineProperty({ type: 'run.pause' }, 'by', {
    enumerable: true,
    get: () => {
      throw new Error('nobody looks at me')
    },
  })
  const engine = engineOf(tutti)
  const commands = [{ type: 'run.pause', by: 1n }, throwing, { type: 'run.pause', by: 'ann' }, { type: 'run.cancel', reason: cyclic }]
  done.resolve()
  const outcomes = commands.map((command) => engine.submit(run.id, command as never))
  expect(await Promise.all([0, 1, 3].map((at) => codeOf(outcomes[at] as Promise<unknown>)))).toEqual(Array(3).fill('INVALID_INPUT'))
  expect(await outcomes[2]).toEqual({})
  expect(await run.history()).toMatchObject([{ call: 'pause', by: 'ann' }])
  expect(await run.output()).toBe('done')
})

test('an engine is opened with sensible options only', async () => {
  for (const options of [{ store: 'redis://x' }, { concurrency: 0 }, { concurrency: Number.NaN }, { graceMs: -1 }]) {
    const outcome = await opened(options as never).then(
      async (tutti: Tutti) => {
        await tutti.close()
        return 'accepted'
      },
      (error: unknown) => error,
    )
    expect(outcome, JSON.stringify(options)).toBeInstanceOf(Error)
  }
})

test.each([[''], ['x'.repeat(257)], ['a\u0000b'], [7]])('a session that not every store can keep is refused: %j', async (session) => {
  await using tutti = await opened()
  const definition = solo((turn: SoloTurn) => turn.finish(1))
  expect(await codeOf(tutti.start(definition, { session: session as string }))).toBe('INVALID_INPUT')
})

const actions: readonly (readonly [what: string, act: (turn: HubTurn) => unknown, problem: RegExp])[] = [
  [
    'an option of fork',
    (turn) => turn.fork(['W'], { foo: 1 } as never),
    /fork has no option 'foo'; it has request, join, compensate, state/,
  ],
  ['a misspelt option of fork', (turn) => turn.fork(['W'], { joins: 'any' } as never), /no option 'joins' \(did you mean join\?\)/],
  ['options that are none', (turn) => turn.fork(['W'], 5 as never), /the options of fork are an object, not 5/],
  ['options that are a list', (turn) => turn.invoke('W', 1, [] as never), /the options of invoke are an object, not \[\]/],
  ['an option of a call', (turn) => turn.fork([{ to: 'W', request: 1, foo: 1 } as never]), /call 0 of the fork has no option 'foo'/],
  ['an option of a later call', (turn) => turn.fork(['W', { to: 'W', state: {} } as never]), /call 1 of the fork has no option 'state'/],
  ['a call that is null', (turn) => turn.fork([null as never]), /call 0 of the fork names no agent/],
  ['calls that are no list', (turn) => turn.fork('W' as never), /fork needs a list of calls/],
  ['an option of invoke', (turn) => turn.invoke('W', 1, { foo: 1 } as never), /invoke has no option 'foo'; it has state/],
  ['a value among the options', (turn) => turn.invoke('W', 1, { to: 'User' } as never), /invoke has no option 'to'/],
  ['an option of reply', (turn) => turn.reply(1, { foo: 1 } as never), /reply has no option 'foo'/],
  ['an option of ask', (turn) => turn.ask('q', { timeout: 1 } as never), /ask has no option 'timeout'; it has timeoutMs, schema, state/],
  ['a schema of ask', (turn) => turn.ask('q', { schema: 5 as never }), /the schema of an ask is a Standard Schema .*, not 5/],
  ['a key of an action that was made by hand', () => ({ type: 'ask', question: 'q', timeout: 1 }), /ask has no option 'timeout'/],
  ['an invoke of End', (turn) => turn.invoke('End' as 'W', 1), /may not invoke End, which is no agent: end the run with turn.finish\./],
  ['a fork to End', (turn) => turn.fork(['W', 'End' as never]), /may not fork to End, which is no agent: end the run with turn.finish\./],
  ['an invoke of User', (turn) => turn.invoke('User' as 'W', 1), /may not invoke User, which is no agent: ask a person with turn.ask\./],
  ['an invoke of Start', (turn) => turn.invoke('Start' as 'W', 1), /may not invoke Start: there is no edge to it\./],
  ['a reply to nobody', (turn) => turn.reply(1), /nobody waits for this branch \(`invoke` hands over, only `fork` waits for replies\)\./],
  ['a state of finish', () => ({ type: 'finish', output: 1, state: {} }), /finish has no option 'state'; it has none/],
]

test.each(actions)('an action that would not be done as it says is sent back: %s', async (_, act, problem) => {
  await using tutti = await opened()
  const definition = hub(
    (turn: HubTurn) => (turn.message.kind === 'feedback' ? turn.finish(turn.message.problem) : act(turn)),
    (turn: WorkerTurn) => turn.reply(1),
  )
  expect(await tutti.execute(definition)).toMatch(problem)
})

test('every option of an action that is declared is taken, also when it is left undefined', async () => {
  await using tutti = await opened()
  const state = { n: 1 }
  const left = { request: undefined, join: undefined, compensate: undefined, state: undefined } as never
  const seen: unknown[] = []
  const definition = hub(
    (turn: HubTurn) => {
      if (turn.message.kind === 'answer') return turn.finish(turn.message.value)
      if (turn.message.kind !== 'join')
        return turn.fork(['W', { to: 'W', request: 'own' }], { request: 'shared', join: 'all', compensate: true, state })
      if (turn.turn < 3) return turn.fork([{ to: 'W', request: undefined }], left)
      return turn.ask('q', { timeoutMs: 60_000, schema: z.number(), state })
    },
    (turn: WorkerTurn) => {
      seen.push(turn.request)
      return turn.reply(1, { state: { n: 2 } })
    },
    { state: () => ({ n: 0 }), merge: { n: 'last' } },
  )
  const run = await tutti.start(definition)
  await rest()
  await run.answer((await run.asks())[0]?.id ?? '', 7)
  expect(await run.output()).toBe(7)
  expect(seen).toEqual(['shared', 'own', undefined])
})

test('a first state that is only promised is refused, and nobody has to handle what becomes of it', async () => {
  await using tutti = await opened()
  const state = (input: unknown): object => (input === undefined ? {} : Promise.reject(new Error('later')))
  const starting = tutti.start(
    solo((turn) => turn.finish(), { state, merge: {} }),
    { input: 1 },
  )
  await expect(starting).rejects.toMatchObject({ code: 'INVALID_INPUT', message: expect.stringMatching(/`state` .* gave a promise/) })
  await rest()
})
