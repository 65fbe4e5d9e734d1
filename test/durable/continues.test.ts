import * as tutti from 'tutti'
import { z } from 'zod'
import { describe, expect, test } from 'vitest'
import { Place, patience } from './processes.js'

type Made = tutti.Definition<any, any>

/** A place at which bodies wait until the test lets them through: those of a process that is gone stay there. */
function gate() {
  let open = false
  let came: () => void = () => {}
  const reached = new Promise<void>((resolve) => {
    came = resolve
  })
  const pass = async (): Promise<void> => {
    came()
    if (!open) await new Promise(() => {})
  }
  return { reached, pass, open: () => void (open = true) }
}

/** A run of the first definition that is left in the middle, at the gate. */
async function leftBehind(place: Place, definition: Made, at: ReturnType<typeof gate>): Promise<void> {
  const first = await tutti.open({ store: place.store, definitions: [definition], graceMs: 10, invariants: true })
  await first.start(definition.name, { id: 'run' })
  await at.reached
  await first.close()
  at.open()
}

async function until(what: () => Promise<boolean>): Promise<void> {
  for (let tries = 0; !(await what()); tries++) {
    if (tries > 500) throw new Error('it did not happen')
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
}

const waitsForDefinition = async (run: tutti.Run): Promise<void> =>
  until(async () => (await run.summary()).waitsFor.join() === 'definition')

const open = (place: Place, definition: Made, logged: string[] = []) =>
  tutti.open({
    store: place.store,
    definitions: [definition],
    invariants: true,
    onLog: ({ level, message }) => void (level !== 'info' && logged.push(message)),
  })

const second = { version: '2', continues: ['1'] } as const

/** Steps that come one after the other; `hold` waits at the gate. */
function line(ids: readonly string[], hold: string, at: ReturnType<typeof gate>, options: object = {}): Made {
  let made = tutti.graph('line', options) as any
  ids.forEach((id, place) => {
    const run = async () => {
      if (id === hold) await at.pass()
      return id
    }
    made = made.step(id, { ...(place > 0 && { after: [ids[place - 1]] }), run })
  })
  return made.output(({ steps }: { steps: unknown }) => steps)
}

/** Under a version that says it goes on, and under one that was edited and has kept its number. */
describe.each([
  ['another version', second],
  ['the same version', {}],
])('%s', (_, options) => {
  test.each<[string, string[], string[]]>([
    ['the last step is gone', ['a', 'b'], ['a']],
    ['a step is renamed', ['a', 'b', 'c'], ['a', 'x', 'c']],
    ['a step is added at the end', ['a', 'b'], ['a', 'b', 'c']],
    ['a step is added at the beginning', ['a', 'b'], ['z', 'a', 'b']],
    ['steps are added to the only one', ['a'], ['z', 'a', 'b']],
    ['steps are declared in another order', ['a', 'b', 'c'], ['a', 'c', 'b']],
  ])('%s: the run ends as one of the new version that had come so far', patience, async (__, before, after) => {
    using place = new Place()
    const at = gate()
    await leftBehind(place, line(before, 'a', at), at)
    await using engine = await open(place, line(after, 'a', at, options))
    const run = await engine.run('run')
    expect(await run.output()).toEqual(Object.fromEntries(after.map((id) => [id, id])))
    const report = await run.report()
    expect(
      report.steps
        .filter(({ status }) => status === 'succeeded')
        .map(({ id }) => id)
        .sort(),
    ).toEqual([...after].sort())
  })

  test('a step that is in flight and gone: it waits, says why, and goes on with the old one', patience, async () => {
    using place = new Place()
    const at = gate()
    await leftBehind(place, line(['a', 'b'], 'a', at), at)
    const logged: string[] = []
    const without = await open(place, line(['b'], 'a', at, options), logged)
    const run = await without.run('run')
    await waitsForDefinition(run)
    expect(await run.status()).toBe('running')
    expect((await without.runs()).runs.map(({ waitsFor }) => waitsFor)).toEqual([['definition']])
    expect(logged).toEqual([expect.stringMatching(/waits for another version .* the step a, a function, is in flight \(branch r\.0\)/)])
    await without.close()
    await using back = await open(place, line(['a', 'b'], 'a', at))
    expect(await (await back.run('run')).output()).toEqual({ a: 'a', b: 'b' })
  })

  test('what it can not go on with can be cancelled, and is undone as far as it can be', patience, async () => {
    using place = new Place()
    const at = gate()
    const undone: string[] = []
    const undo = (id: string) => ({ run: () => id, compensate: () => void undone.push(id) })
    const first = tutti
      .graph('g')
      .step('a', undo('a'))
      .step('b', undo('b'))
      .step('c', { after: ['a', 'b'], run: at.pass })
      .output()
    await leftBehind(place, first, at)
    await using engine = await open(place, tutti.graph('g', options).step('a', undo('a')).output())
    const run = await engine.run('run')
    await waitsForDefinition(run)
    await run.cancel()
    const result = await run.result()
    expect([result.status, result.rollback, undone]).toEqual(['cancelled', 'partial', ['a']])
    expect((await run.report()).notUndone).toEqual(['b'])
  })

  test('an agent that is in flight and gone', patience, async () => {
    using place = new Place()
    const at = gate()
    const made = (name: string, given: object): Made =>
      tutti.topology({
        name: 't',
        ...given,
        flows: [`Start -> A -> ${name}`, `${name} -> End`],
        agents: {
          A: (turn: any) => turn.invoke(name, 1),
          [name]: async (turn: any) => {
            await at.pass()
            return turn.finish(name)
          },
        },
      } as never) as never
    await leftBehind(place, made('B', {}), at)
    await using engine = await open(place, made('C', options))
    const run = await engine.run('run')
    await waitsForDefinition(run)
    expect(await run.status()).toBe('running')
    await run.cancel()
    expect((await run.result()).status).toBe('cancelled')
  })

  test('a step with a child run that is in flight and gone: a cancel ends both', patience, async () => {
    using place = new Place()
    const at = gate()
    const child = tutti.graph('child').step('does', { run: at.pass }).output()
    await leftBehind(
      place,
      tutti
        .graph('g')
        .step('a', { run: child, input: () => null })
        .step('b', { run: () => 1 })
        .output(),
      at,
    )
    await using engine = await tutti.open({
      store: place.store,
      definitions: [
        tutti
          .graph('g', options)
          .step('b', { run: () => 1 })
          .output(),
        child,
      ],
      invariants: true,
    })
    const run = await engine.run('run')
    await waitsForDefinition(run)
    await run.cancel()
    expect((await run.result()).status).toBe('cancelled')
    // It was not paused, so that it may have come to its end meanwhile.
    await until(async () => ['cancelled', 'succeeded'].includes(await (await engine.run('run:a')).status()))
  })
})

test('what was done under a version that could undo it is reported as not undone where the new one can not', patience, async () => {
  using place = new Place()
  const at = gate()
  const made = (options: object, undo: object): Made =>
    tutti
      .graph('g', options)
      .step('a', { run: () => 1, ...undo })
      .step('b', {
        after: ['a'],
        run: async () => {
          await at.pass()
          throw new Error('b')
        },
      })
      .output()
  await leftBehind(place, made({}, { compensate: () => {} }), at)
  await using engine = await open(place, made(second, {}))
  const run = await engine.run('run')
  expect(await run.result()).toMatchObject({ status: 'failed', error: { code: 'STEP_FAILED' }, rollback: 'partial' })
  expect((await run.report()).notUndone).toEqual(['a'])
})

test('what came because of something is undone before it, by the version that it was done under', patience, async () => {
  using place = new Place()
  const at = gate()
  const undone: string[] = []
  const undo = (id: string) => ({
    run: () => id,
    compensate: async () => {
      await new Promise((resolve) => setTimeout(resolve, id === 'b' ? 100 : 0))
      undone.push(id)
    },
  })
  const fails = {
    run: async () => {
      await at.pass()
      throw new Error('no')
    },
  }
  const first = tutti
    .graph('g')
    .step('a', undo('a'))
    .step('b', { after: ['a'], ...undo('b') })
    .step('c', { after: ['b'], ...fails })
  await leftBehind(place, first.output(), at)
  const then = tutti
    .graph('g', second)
    .step('b', undo('b'))
    .step('a', undo('a'))
    .step('c', { after: ['b'], ...fails })
  await using engine = await open(place, then.output())
  expect((await (await engine.run('run')).result()).rollback).toBe('complete')
  expect(undone).toEqual(['b', 'a'])
})

test('branches that were held where there is no rendezvous any more go on alone', patience, async () => {
  using place = new Place()
  const at = gate()
  const made = (options: object, joins: readonly string[]): Made =>
    tutti.topology({
      name: 't',
      ...options,
      flows: ['Start -> H -> End', 'H -> A | B', 'A | B -> C', 'C -> H'],
      joins,
      agents: {
        H: (turn: any) => (turn.message.kind === 'join' ? turn.finish(turn.message.join.values) : turn.fork(['A', 'B'])),
        A: (turn: any) => turn.invoke('C', 'a'),
        B: async (turn: any) => {
          await at.pass()
          return turn.invoke('C', 'b')
        },
        C: (turn: any) => turn.reply(turn.message.kind === 'merged' ? 'both' : turn.request),
      },
    } as never) as never
  await leftBehind(place, made({}, ['C']), at)
  await using engine = await open(place, made(second, []))
  expect(await (await engine.run('run')).output()).toEqual(['a', 'b'])
})

test('a run that went on is of the version that it went on under', patience, async () => {
  using place = new Place()
  const made = (options: object): Made =>
    tutti
      .graph('g', options)
      .ask('one', { question: () => 1, schema: z.unknown() })
      .step('then', { after: ['one'], run: () => options })
      .ask('two', { after: ['then'], question: () => 2, schema: z.unknown() })
      .step('end', { after: ['two'], run: () => options })
      .output(({ steps }) => steps.end)
  const answer = async (engine: tutti.Tutti, question: number) => {
    await until(async () => (await engine.asks()).some((ask) => ask.kind === 'question' && ask.question === question))
    const [ask] = await engine.asks()
    await (await engine.run('run')).answer(ask?.id ?? '', 'yes')
  }
  const first = await open(place, made({}))
  await first.start('g', { id: 'run' })
  await until(async () => (await first.asks()).length === 1)
  await first.close()
  const next = await open(place, made(second))
  await answer(next, 1)
  await until(async () => (await next.asks()).some((ask) => ask.kind === 'question' && ask.question === 2))
  expect((await (await next.run('run')).summary()).version).toBe('2')
  await next.close()
  // It does not go back, unless that is said.
  const old = await open(place, made({}))
  await answer(old, 2)
  await waitsForDefinition(await old.run('run'))
  await old.close()
  const third = { version: '3', continues: ['2'] }
  await using last = await open(place, made(third))
  expect(await (await last.run('run')).output()).toEqual(third)
})

test('several processes that can not go on with a run each look at it once', patience, async () => {
  using place = new Place()
  const at = gate()
  await leftBehind(place, line(['a', 'b'], 'a', at), at)
  const logged: string[] = []
  const engines = [await open(place, line(['b'], '', at, second), logged), await open(place, line(['b'], '', at, second), logged)]
  for (const engine of engines) await waitsForDefinition(await engine.run('run'))
  await new Promise((resolve) => setTimeout(resolve, 300))
  expect(logged).toHaveLength(2)
  for (const engine of engines) await engine.close()
})

test(
  'what a child run of another version has done waits to be undone for who has that version, and is not given up',
  patience,
  async () => {
    using place = new Place()
    const undone: string[] = []
    const made = (version: string): Made => {
      const child = tutti
        .graph('child', { version })
        .step('book', { run: () => 'booked', compensate: () => void undone.push(version) })
        .output()
      return tutti
        .graph('parent')
        .step('part', { run: child, input: () => null })
        .ask('sure', { after: ['part'], question: () => 'sure?', schema: z.any() })
        .output()
    }
    const first = await open(place, made('1'))
    await first.start('parent', { id: 'run' })
    await until(async () => (await first.asks()).length === 1)
    await first.close()
    await using engine = await open(place, made('2'))
    const run = await engine.run('run')
    await run.cancel()
    await until(async () => (await engine.runs()).runs.some(({ id }) => id === 'run:part:undo'))
    const undo = await engine.run('run:part:undo')
    await waitsForDefinition(undo)
    expect(await run.status()).toBe('compensating')
    // Another owner of the parent finds it, and waits for it as well.
    await engine.close()
    await using second = await open(place, made('2'))
    await using old = await open(place, made('1'))
    expect(await (await second.run('run')).result()).toMatchObject({ status: 'cancelled', rollback: 'complete' })
    expect(undone).toEqual(['1'])
    const types: string[] = []
    for await (const { type } of (await old.run('run:part:undo')).events()) types.push(type)
    // Nobody had it before: nobody can have died of it.
    expect(types).toEqual([
      'run.started',
      'run.decided',
      'run.compensating',
      'undo.planned',
      'undo.started',
      'run.released',
      'run.claimed',
      'undo.completed',
      'run.succeeded',
    ])
  },
)
