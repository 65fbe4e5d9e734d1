/** The search itself: what it prunes changes nothing, a token replays, everything it can find is found. */
import { graph, open, resource, topology } from 'tutti'
import type { Definition } from 'tutti'
import { explore, freshModule, winnerOf } from 'tutti/testing'
import { describe, expect, test, vi } from 'vitest'
import { z } from 'zod'
import { internalsOf as insidesOf } from '../../src/define/definition.js'
import type { TopologyInternals } from '../../src/define/definition.js'
import { reportOf } from '../../src/inspect/report.js'
import type { Action } from '../../src/kernel/action.js'
import type { Command } from '../../src/kernel/command.js'
import { decide } from '../../src/kernel/decide.js'
import type { Attempt, State } from '../../src/kernel/state.js'
import { newState } from '../../src/kernel/state.js'
import { commutingIn } from '../../src/testing/explore/commuting.js'
import { exhaustive } from '../../src/testing/explore/exhaustive.js'
import { settingFor } from '../../src/testing/explore/explore.js'
import { journalOf, searchKernel } from '../../src/testing/explore/kernel-search.js'
import { scheduleOf, tokenOf } from '../../src/testing/explore/schedule.js'
import { Search } from '../../src/testing/explore/search.js'
import type { Setting } from '../../src/testing/explore/setting.js'

// Many schedules are a few seconds, and more on a machine that is busy.
vi.setConfig({ testTimeout: 90_000 })

const internalsOf = (make: () => Definition<any>): TopologyInternals => insidesOf(make() as Definition) as TopologyInternals

const settingOf = (definition: () => Definition<any>): Setting => settingFor(definition, { answers: () => true, patienceMs: 5 })

const hub = (join: any, calls: readonly string[]) => ({
  act: {
    request: (turn: any) => turn.fork(calls, { join }),
    join: (turn: any, { slots }: any) => turn.finish(slots.map((slot: any) => slot.value ?? slot.status)),
  },
})

/** Lets nobody go on before so many have come. */
function meeting(count: number): () => Promise<void> {
  let waiting = 0
  let open = (): void => {}
  const all = new Promise<void>((resolve) => {
    open = resolve
  })
  return () => {
    if (++waiting === count) open()
    return all
  }
}

async function hops(count: number): Promise<void> {
  for (let hop = 0; hop < count; hop++) await Promise.resolve()
}

/** Small ones in which orders decide something, or seem to. */
const small: Readonly<Record<string, () => Definition<any>>> = {
  'a join of all': () =>
    topology({
      name: 'all',
      flows: ['Start -> H -> End', 'H <-> A | B'],
      agents: { H: hub('all', ['A', 'B', 'A']), A: { act: (turn) => turn.reply('a') }, B: { act: (turn) => turn.reply('b') } },
    }),
  'a join of any': () =>
    topology({
      name: 'any',
      flows: ['Start -> H -> End', 'H <-> A | B'],
      agents: { H: hub('any', ['A', 'B']), A: { act: (turn) => turn.reply('a') }, B: { act: (turn) => turn.reply('b') } },
    }),
  'a join that fails fast': () =>
    topology({
      name: 'fast',
      flows: ['Start -> H -> End', 'H <-> A | B'],
      agents: {
        H: hub({ policy: 'all', stragglers: 'cancel', insufficient: 'resume' }, ['A', 'B']),
        A: { act: (turn) => turn.fail('a') },
        B: { act: (turn) => turn.reply('b') },
      },
    }),
  'a meeting': () =>
    topology({
      name: 'meeting',
      flows: ['Start -> H', 'H -> A | B', 'A | B -> C', 'C -> End'],
      joins: ['C'],
      agents: {
        H: { act: (turn) => turn.fork(['A', 'B']) },
        A: { act: (turn) => turn.invoke('C', 'a') },
        B: { act: (turn) => turn.invoke('C', 'b') },
        C: { act: (turn) => turn.finish(turn.requests.map(({ value }) => value)) },
      },
    }),
  // Only the order of their ends, which the kernel alone decides, says who wins.
  'a join of any, of two that wait for each other': () => {
    const both = meeting(2)
    const act = async (turn: any) => {
      await both()
      // A always comes to its end first, whoever was begun first.
      if (turn.agent === 'B') await hops(20)
      return turn.reply(turn.agent)
    }
    return topology({
      name: 'each other',
      flows: ['Start -> H -> End', 'H <-> A | B'],
      agents: { H: hub('any', ['A', 'B']), A: { act }, B: { act } },
    })
  },
  // Whether the loser's code went on before the winner stopped it can be seen, and only by what comes first of what both wait for.
  'a join of any, of which the loser may have written': () => {
    let written = false
    const both = meeting(2)
    return topology({
      name: 'loser',
      flows: ['Start -> H -> End', 'H <-> A | B'],
      agents: {
        H: {
          act: {
            request: (turn) => turn.fork(['A', 'B'], { join: 'any' }),
            join: (turn, { slots }) => turn.finish([written, slots[0]?.status ?? '']),
          },
        },
        A: {
          act: async (turn) => {
            await both()
            return turn.reply('a')
          },
        },
        B: {
          act: async (turn) => {
            await both()
            await hops(20)
            await turn.step('think', () => null)
            written = true
            return turn.reply('b')
          },
        },
      },
    })
  },
  'two turns each': () =>
    topology({
      name: 'two',
      flows: ['Start -> H -> End', 'H -> A', 'A -> B', 'B -> H'],
      agents: {
        H: { act: { request: (turn) => turn.fork(['A', 'A']), join: (turn, join) => turn.finish(join.values) } },
        A: { act: (turn) => turn.invoke('B', turn.branchId) },
        B: { act: (turn) => turn.reply(turn.request) },
      },
    }),
  'a shared variable': () => {
    let last = ''
    const act = async (turn: any) => {
      last = turn.agent
      await turn.step('wait', () => null)
      return turn.reply(last)
    }
    return topology({
      name: 'shared',
      flows: ['Start -> H -> End', 'H <-> A | B'],
      agents: { H: hub('all', ['A', 'B']), A: { act }, B: { act } },
    })
  },
  'a model with guardrails': () =>
    besideModel((begin, end) => ({ guardrails: [{ name: 'looks', before: begin, after: () => (end() ? null : 'no') }] })),
  'a model whose instructions take a step': () =>
    besideModel((begin, end) => ({
      instructions: async (turn: any) => {
        begin()
        await turn.step('read', () => null)
        return end() ? 'Answer.' : ''
      },
    })),
}

/** Somebody's step is over while a model is asked that was asked before it began, or is not. */
function besideModel(model: (begin: () => null, end: () => true) => any): Definition<any> {
  let asked = false
  const begin = (): null => {
    asked = true
    return null
  }
  const end = (): true => {
    asked = false
    return true
  }
  return topology({
    name: 'beside',
    flows: ['Start -> H -> End', 'H <-> A', 'H -> M -> B -> H'],
    agents: {
      H: hub('all', ['A', 'M']),
      A: model(begin, end),
      M: (turn: any) => turn.invoke('B'),
      B: async (turn: any) => {
        const wasAsked = asked
        await turn.step('wait', () => null)
        return turn.reply(wasAsked && asked)
      },
    },
  })
}

/** Every outcome of every order, and how many were played; a divergence is no reason to stop. */
async function everyOutcome(definition: () => Definition<any>, prune: boolean): Promise<{ digests: string[]; schedules: number }> {
  const search = new Search(settingOf(definition), 100_000, { bags: new Set(), observe: undefined })
  search.stopsAtFindings = false
  expect(await exhaustive(search, prune ? commutingIn : null)).toBe(true)
  return { digests: search.outcomes.map(({ digest }) => digest).sort(), schedules: search.schedules }
}

describe('what is pruned changes nothing', () => {
  for (const [name, definition] of Object.entries(small))
    test(name, async () => {
      const pruned = await everyOutcome(definition, true)
      const all = await everyOutcome(definition, false)
      expect(pruned.digests).toEqual(all.digests)
      expect(pruned.schedules).toBeLessThanOrEqual(all.schedules)
    })
})

test('what goes on together is tried beside what else may happen, and pruned for none of it', async () => {
  const definition = (): Definition<any> => {
    let count = 0
    const add = async (turn: any) => {
      await turn.step('think', () => null)
      const seen = count
      await Promise.resolve()
      count = seen + 1
      return turn.reply(null)
    }
    return topology({
      name: 'look',
      flows: ['Start -> H -> End', 'H -> A | B | C', 'C -> D', 'A | B | D -> H'],
      agents: {
        H: { act: { request: (turn) => turn.fork(['A', 'B', 'C']), join: (turn, { values }) => turn.finish(`${values[2]} ${count}`) } },
        A: { act: add },
        B: { act: add },
        C: {
          act: async (turn) => {
            await turn.step('think', () => null)
            const seen = count
            await hops(20)
            return turn.invoke('D', `${seen} ${count}`)
          },
        },
        D: { act: (turn) => turn.reply(`${turn.request} ${count}`) },
      },
    })
  }
  const search = new Search(settingFor(definition, { invariants: false }), 100_000, { bags: new Set(), observe: undefined })
  search.stopsAtFindings = false
  expect(await exhaustive(search, commutingIn)).toBe(true)
  // C has looked and not yet said so, the two go on together, and only then D is called.
  expect(search.outcomes.map(({ first }) => reportOf(first.outcome.journal).output)).toContain('0 0 1 1')
})

test('a run that is out of time is another choice than one that crosses another limit', async () => {
  const definition = (): Definition<any> =>
    topology({
      name: 'limits',
      flows: ['Start -> H -> End', 'H <-> A'],
      agents: { H: hub('all', ['A', 'A', 'A']), A: { act: (turn) => turn.reply('a') } },
      limits: { timeoutMs: 1_000, maxBranches: 2 },
    })
  const found = await explore(definition, { faults: ['timeout'] })
  expect(found.independent, found.text()).toBe(true)
})

test('on the kernel alone every order is played from the state before it, and all report the same', () => {
  const { shape, code } = internalsOf(small['two turns each'] as () => Definition<any>)
  const begun = decide(newState, { type: 'run.start', runId: 'run', nonce: 'n', shape, tags: {} }, 1, code)
  if ('refusal' in begun) throw new Error(begun.refusal.message)
  const action = (agent: string, isJoin: boolean): Action => {
    if (agent === 'A') return { type: 'invoke', to: 'B', request: 1 }
    if (agent === 'B') return { type: 'reply', value: 'b' }
    return isJoin ? { type: 'finish', output: 'done' } : { type: 'fork', calls: [{ to: 'A' }, { to: 'A' }, { to: 'A' }] }
  }
  const complete = (state: State, { branch, agent, turn, attempt }: Attempt): Command => {
    const isJoin = state.branches.get(branch)?.message.kind === 'join'
    return { type: 'turn.complete', branch, agent, turn, attempt, action: action(agent, isJoin) }
  }
  const reports = new Set<string>()
  const searched = searchKernel({ code, complete }, begun.state, ({ path }) => {
    const { measured: _, ...report } = reportOf([...begun.events, ...journalOf(path)])
    reports.add(JSON.stringify(report))
  })
  // Six completions, two of each of three branches in their order: 6! / 2!^3.
  expect(searched).toMatchObject({ schedules: 90, exhaustive: true })
  expect(searched.decisions).toBeLessThan(90 * 7)
  expect(reports.size).toBe(1)
})

test('a module that keeps something is evaluated anew for each schedule', async () => {
  const url = new URL('../planted/leaking.js', import.meta.url)
  const { default: leaking } = (await import(url.href)) as { default: Definition<any> }
  expect((await explore(leaking)).violations).toMatchObject([{ invariant: 'not-repeatable' }])
  expect(await explore(freshModule(url), { schedules: 'all' })).toMatchObject({ independent: true, exhaustive: true })
})

test('all code at once is the last of the options: a token from before it was one takes what it took', async () => {
  const definition = (): Definition<any> =>
    graph('places')
      .step('a', { timeoutMs: 1_000, run: (step) => step.step('think', () => 1) })
      .step('b', { run: () => 2 })
      .output()
  const search = new Search(settingFor(definition, { faults: ['timeout'] }), 10, { bags: new Set(), observe: undefined })
  const points: string[][] = []
  await search.look((point) => {
    points.push(Array.from({ length: point.count }, (_, which) => point.option(which).map(({ kind }) => kind)).map(String))
    // At first a is begun alone: what it waits for then, and that b begins, come from two commits.
    return { take: point.step === 0 ? 1 : 0 }
  })
  expect(points[0]).toEqual(['start,start', 'start', 'start'])
  expect(points[1]).toEqual(['start', 'activity', 'clock', 'start,activity'])
})

test('every list of deviations is a schedule, and a token stands for it', async () => {
  const schedule = [
    { at: 2, kind: 'hold', which: 40 },
    { at: 3, kind: 'take', which: 17 },
    { at: 400, kind: 'take', which: 1 },
  ] as const
  expect(scheduleOf(tokenOf(schedule))).toEqual(schedule)
  const played = await explore(small['a join of all'] as () => Definition<any>, { replay: tokenOf(schedule) })
  expect(played.outcomes).toMatchObject([{ count: 1, result: { status: 'succeeded', output: ['a', 'b', 'a'] } }])
  expect(() => scheduleOf('2T1.x')).toThrow(/no schedule/)
})

test('a replayed token gives the outcome that it was found with', async () => {
  const definition = small['a shared variable'] as () => Definition<any>
  const found = await explore(definition)
  const [a, b] = [found.divergence?.a ?? '', found.divergence?.b ?? '']
  const again = await explore(definition, { replay: b })
  expect(again.outcomes[0]?.digest).toBe(found.outcomes[1]?.digest)
  expect((await explore(definition, { replay: a })).outcomes[0]?.digest).toBe(found.outcomes[0]?.digest)
})

test('all strategies find a shared variable, and tell what they left out', async () => {
  const definition = small['a shared variable'] as () => Definition<any>
  for (const strategy of ['auto', 'exhaustive', 'deviations', 'pct', 'coverage', 'random'] as const) {
    const found = await explore(definition, { strategy, schedules: 200 })
    expect(found.independent, `${strategy}: ${found.text()}`).toBe(false)
    expect(found.notExplored).not.toEqual([])
  }
})

test('in a wide fork, that one of many is held back is tried before all that others could do first, and told as that alone', async () => {
  const names = Array.from({ length: 16 }, (_, index) => `A${index}`)
  const definition = (): Definition<any> => {
    let count = 0
    const act = async (turn: any) => {
      const seen = count
      await turn.step('wait', () => null)
      count = seen + 1
      return turn.reply(null)
    }
    return topology({
      name: 'wide',
      flows: ['Start -> H -> End', `H <-> ${names.join(' | ')}` as string],
      agents: {
        H: { act: { request: (turn: any) => turn.fork(names), join: (turn: any) => turn.finish(count) } },
        ...Object.fromEntries(names.map((name) => [name, { act }])),
      },
    })
  }
  const found = await explore(definition, { schedules: 200 })
  expect(found.independent, found.text()).toBe(false)
  expect(scheduleOf(found.divergence?.b ?? '')).toHaveLength(1)
})

test('a budget that is too small for every order says so, and prints the bounds of its walks', async () => {
  const checked = await explore(small['a join of all'] as () => Definition<any>, { schedules: 12, strategy: 'pct' })
  expect(checked).toMatchObject({ independent: true, exhaustive: false, schedules: 12 })
  expect(checked.text()).toMatch(/PCT of depth 3.*at least 1 \/ \(\d+ × \d+\^2\)/)
  expect(checked.notExplored.join()).toContain('every order')
})

describe('choices', () => {
  test('are labelled: one outcome for each winner, and each can win', async () => {
    const checked = await explore(small['a join of any'] as () => Definition<any>, { schedules: 'all' })
    expect(checked, checked.text()).toMatchObject({ independent: true, exhaustive: true, distinct: 2 })
    const [choice] = checked.choices
    expect(choice).toMatchObject({ at: 'r#1', agent: 'H', kind: 'join', never: [] })
    expect(choice?.decidedBy.map(({ who }) => who).sort()).toEqual(['A', 'B'])
    expect(checked.text()).toContain('Orders decide, and may')
  })

  test('are told with those who were called there, whatever was called before', async () => {
    const definition = () =>
      topology({
        name: 'forks',
        flows: ['Start -> H -> End', 'H <-> A | B | C | D'],
        agents: {
          H: {
            act: {
              request: (turn) => turn.fork(['A'], { join: 'any' }),
              join: (turn, { values }) => {
                if (turn.turn === 2) return turn.fork(['A', 'B'], { join: 'any' })
                return turn.turn === 3 ? turn.fork(['C', 'D', 'C'], { join: 'any' }) : turn.finish(values)
              },
            },
          },
          A: (turn) => turn.reply('a'),
          B: (turn) => turn.reply('b'),
          C: (turn) => turn.reply('c'),
          D: (turn) => turn.reply('d'),
        },
      })
    const { choices } = await explore(definition, { schedules: 60 })
    const named = choices.map(({ at, agent, decidedBy, never }) => [at, agent, [...decidedBy.map(({ who }) => who), ...never].sort()])
    expect(named).toEqual([
      ['r#1', 'H', ['A']],
      ['r#2', 'H', ['A', 'B']],
      ['r#3', 'H', ['C (slot 0)', 'C (slot 2)', 'D']],
    ])
  })

  test('of a graph that fails fast are told with its steps', async () => {
    const definition = () =>
      graph('fast', { stragglers: 'cancel' })
        .step('a', { run: throws })
        .step('b', { run: () => 2 })
        .output()
    const { choices } = await explore(definition, { schedules: 'all' })
    expect(choices).toMatchObject([{ at: '#', agent: 'fast', decidedBy: [{ who: 'a' }, { who: 'a and b' }] }])
  })

  test('that are allowed are not told again', async () => {
    const definition = small['a join of any'] as () => Definition<any>
    const checked = await explore(definition, { schedules: 'all', allow: [winnerOf('H')] })
    expect(checked.text()).not.toContain('Orders decide')
    expect(checked.choices).toHaveLength(1)
  })

  const anyGate = () =>
    graph('gate')
      .step('a', { run: () => 'a' })
      .step('b', { run: () => 'b' })
      .step('c', { after: ['a', 'b'], join: 'any', run: ({ steps }) => steps.a ?? steps.b })
      .output(({ steps }) => steps.c)
  test('that are allowed of a step are not told again', async () => {
    const checked = await explore(anyGate, { schedules: 'all', allow: [winnerOf('c')] })
    expect(checked.text()).not.toContain('Orders decide')
    expect(checked.choices).toMatchObject([{ at: 'c', agent: 'c', kind: 'gate' }])
  })

  const within = (child: Definition<any, any>) =>
    graph('parent')
      .step('k', { input: () => 1, run: child })
      .output(({ steps }) => steps.k)

  for (const [name, child, at] of [
    ['a join', small['a join of any'] as () => Definition<any, any>, 'r#1'],
    ['a gate', anyGate, 'c'],
  ] as const)
    test(`of child runs are choices too: ${name}`, async () => {
      const checked = await explore(() => within(child()), { schedules: 'all' })
      expect(checked, checked.text()).toMatchObject({ independent: true, distinct: 2, choices: [{ at: `k ${at}` }] })
      const nested = await explore(() => within(within(child())), { schedules: 60 })
      expect(nested, nested.text()).toMatchObject({ independent: true, distinct: 2, choices: [{ at: `k:k ${at}` }] })
    })

  test('of child runs that nobody used are none', async () => {
    const definition = () =>
      graph('parent', { stragglers: 'cancel' })
        .step('k', { input: () => 1, run: small['a join of any']?.() as Definition<any> })
        .step('bad', { run: throws })
        .output()
    const checked = await explore(definition, { schedules: 250 })
    expect(checked.independent, checked.text()).toBe(true)
    // The child had not ended; or it had, with one of two winners.
    expect(checked.distinct).toBe(3)
  })
})

test('who writes a property of a resource last is a matter of order, as with a method, whatever the property is called', async () => {
  interface Box {
    value: string
    count: number
    set(key: string, value: string): void
  }
  const box = resource<Box>('box')
  const resources = () => [box.of({ value: '', count: 0, set: () => {} })]
  const writing = (write: (box: Box, who: string) => void) => () => {
    const writtenBy = (who: string) => (step: any) => {
      write(step.use(box), who)
      return null
    }
    return graph('writing')
      .step('a', { run: writtenBy('a') })
      .step('b', { run: writtenBy('b') })
      .output(() => null)
  }
  const kindOf = async (write: (box: Box, who: string) => void) =>
    (await explore(writing(write), { schedules: 'all', resources })).divergence?.kind
  expect(await kindOf((made, who) => made.set('value', who))).toBe('effect-order')
  expect(await kindOf((made, who) => (made.value = who))).toBe('effect-order')
  // What begins like something that only looks is written all the same.
  expect(await kindOf((made, who) => (made.count = who === 'a' ? 1 : 2))).toBe('effect-order')
  expect(await kindOf((made) => (made.value = 'one'))).toBeUndefined()
  // So is whether it is there at last.
  expect(await kindOf((made, who) => (who === 'a' ? Reflect.deleteProperty(made, 'value') : (made.value = 'b')))).toBe('effect-order')
})

test('a resource is for the check what it is for the engine: frozen, a function that has methods, a class, a Map', async () => {
  class Clerk {
    static hire() {
      return new Clerk()
    }
    readonly #name = 'Ann'
    name() {
      return this.#name
    }
  }
  type Use = (given: any) => unknown
  const kinds: Record<string, readonly [() => unknown, Use]> = {
    frozen: [
      () => Object.freeze({ write: (key: string) => key, size: 1 }),
      (given) => [given.write('a'), Object.keys(given), 'size' in given, { ...given }.size],
    ],
    fixed: [() => Object.defineProperty({}, 'write', { value: () => 7 }), (given) => given.write('a')],
    function: [
      () => Object.assign((n: number) => n * 2, { thrice: (n: number) => n * 3, base: 5 }),
      (given) => [given(2), given.thrice(2), given.base],
    ],
    'frozen function': [() => Object.freeze(Object.assign(() => 1, { two: () => 2 })), (given) => [given(), given.two()]],
    class: [() => Clerk, (given) => [new given().name(), given.hire().name()]],
    map: [() => new Map([['a', 1]]), (given) => [...given, given.size]],
  }
  const thing = resource<unknown>('thing')
  for (const [kind, [make, use]] of Object.entries(kinds)) {
    const made = () =>
      graph('using')
        .step('a', { run: (step) => use(step.use(thing)) })
        .output()
    const tutti = await open({ store: 'memory:', resources: [thing.of(make())] })
    const output = await tutti.execute(made())
    await tutti.close()
    const found = await explore(made, { resources: () => [thing.of(make())] })
    expect(
      found.outcomes.map(({ result }) => result),
      kind,
    ).toMatchObject([{ status: 'succeeded', output }])
  }
})

test('calls of what nobody can change are seen as well', async () => {
  const book = resource<{ write(key: string, who: string): void }>('book')
  const told = resource<{ (key: string, who: string): void; also(key: string, who: string): void }>('told')
  const written = (use: (step: any, who: string) => void) => async () =>
    graph('writing')
      .step('a', { run: (step) => use(step, 'a') })
      .step('b', { run: (step) => use(step, 'b') })
      .output(() => null)
  const resources = () => [book.of(Object.freeze({ write: () => {} })), told.of(Object.freeze(Object.assign(() => {}, { also: () => {} })))]
  const kindOf = async (use: (step: any, who: string) => void) =>
    (await explore(written(use), { schedules: 'all', resources })).divergence?.kind
  expect(await kindOf((step, who) => step.use(book).write('page', who))).toBe('effect-order')
  expect(await kindOf((step, who) => step.use(told)('page', who))).toBe('effect-order')
  expect(await kindOf((step, who) => step.use(told).also('page', who))).toBe('effect-order')
})

function throws(): never {
  throw new Error('no')
}

describe('child runs', () => {
  const ledger = resource<{ book(what: string): void }>('ledger')
  const resources = () => [ledger.of({ book: () => {} })]
  const within = (act: (turn: any) => unknown) => {
    const child = topology({
      name: 'child',
      flows: ['Start -> H -> End', 'H <-> A | B'],
      agents: {
        H: { act: { request: (turn) => turn.fork(['A', 'B']), join: (turn) => turn.finish('done') } },
        A: { act: act as never },
        B: { act: act as never },
      },
    })
    return graph('parent')
      .step('k', { input: () => 1, run: child })
      .output(({ steps }) => steps.k)
  }

  test('are compared: what they do outside', async () => {
    const counted = () => {
      let calls = 0
      return within((turn) => {
        if (++calls === 1) turn.use(ledger).book(turn.agent)
        return turn.reply(1)
      })
    }
    expect((await explore(counted, { resources })).divergence?.kind).toBe('effect-count')
    const ordered = () =>
      within((turn) => {
        turn.use(ledger).book('a room')
        return turn.reply(1)
      })
    expect((await explore(ordered, { resources })).independent).toBe(true)
  })

  test('are compared: what their agents say and are shown', async () => {
    const found = await explore(() => {
      let last = ''
      return within(async (turn) => {
        last = turn.agent
        await turn.step('wait', () => null)
        return turn.reply(last)
      })
    })
    expect(found.divergence?.kind).toBe('output')
    expect(found.divergence?.explain).toContain('report.runs.k.interactions')
  })
})

describe('what was done under steps that read cancelled is not compared', () => {
  const ledger = resource<{ book(what: string): void }>('ledger')
  const beside = (step: any) => () => graph('g', { stragglers: 'cancel' }).step('a', step).step('bad', { run: throws }).output()
  for (const [name, step] of [
    ['an effect', { run: ({ use }: any) => use(ledger).book('a') }],
    [
      'effects in its steps',
      {
        run: async ({ step, use }: any) => {
          await step('1', () => use(ledger).book('1'))
          await step('2', () => use(ledger).book('2'))
        },
      },
    ],
    ['items', { each: () => [0], run: () => 1 }],
  ] as const)
    test(name, async () => {
      const checked = await explore(beside(step), { schedules: 'all', resources: () => [ledger.of({ book: () => {} })] })
      expect(checked.independent, checked.text()).toBe(true)
    })
})

describe('what one schedule can show', () => {
  const alone = (act: (turn: any) => unknown) => () =>
    topology({ name: 'alone', flows: ['Start -> A -> End'], agents: { A: { act: act as never } } })

  test('a workflow that differs from itself is not repeatable, which is no race', async () => {
    let runs = 0
    const leaky = topology({ name: 'leaky', flows: ['Start -> A -> End'], agents: { A: { act: (turn) => turn.finish(++runs) } } })
    const found = await explore(leaky)
    expect(found).toMatchObject({ independent: false, violations: [{ invariant: 'not-repeatable' }] })
    expect(found.divergence).toBeUndefined()
    expect(found.text()).toContain('Give explore a function that makes the definition')
  })

  test('what came out differently once, and not again in the same order, is not repeatable either', async () => {
    let plays = 0
    const chancy = () => {
      const isOdd = ++plays === 5
      return topology({
        name: 'chancy',
        flows: ['Start -> Hub -> End', 'Hub <-> A | B'],
        agents: {
          Hub: { act: { request: (turn) => turn.fork(['A', 'B']), join: (turn, { values }) => turn.finish(values) } },
          A: (turn) => turn.reply(isOdd ? 'odd' : 'a'),
          B: (turn) => turn.reply('b'),
        },
      })
    }
    const found = await explore(chancy)
    expect(found).toMatchObject({ independent: false, distinct: 2, violations: [{ invariant: 'not-repeatable' }] })
    expect(found.divergence).toBeUndefined()
  })

  test('a turn that never returns is a deadlock', async () => {
    const found = await explore(
      alone(() => new Promise(() => {})),
      { schedules: 2, patienceMs: 30 },
    )
    expect(found).toMatchObject({ independent: false, violations: [{ invariant: 'deadlock', schedule: 'first' }] })
    expect(found.text()).toContain('unfinished: A on r')
  })

  test('a loser that goes on after it was told to stop is a ghost', async () => {
    const ledger = resource<{ book(what: string): void }>('ledger')
    const definition = () =>
      topology({
        name: 'ghost',
        flows: ['Start -> H -> End', 'H <-> A | B'],
        agents: {
          H: hub('any', ['A', 'B']),
          A: { act: (turn) => turn.reply('a') },
          B: {
            act: async (turn) => {
              const book = turn.use(ledger)
              await turn.step('think', () => null).catch(() => null)
              book.book('a hotel')
              return turn.reply('b')
            },
          },
        },
      })
    const found = await explore(definition, { resources: () => [ledger.of({ book: () => {} })] })
    expect(found.violations).toMatchObject([{ invariant: 'ghost' }])
    expect(found.violations[0]?.explain).toContain('B on r.1 called ledger.book("a hotel")')
  })

  test('a loser that never looks at its signal is a ghost, whenever time may pass', async () => {
    const definition = () =>
      topology({
        name: 'deaf',
        flows: ['Start -> H -> End', 'H <-> A | B'],
        agents: {
          H: hub('any', ['A', 'B']),
          A: { act: (turn) => turn.reply('a') },
          B: {
            act: async (turn) => {
              await turn.step('think', () => null).catch(() => null)
              return new Promise(() => {})
            },
          },
        },
      })
    for (const faults of [[], ['timeout']] as const) {
      const found = await explore(definition, { faults, patienceMs: 30 })
      expect(found.violations, found.text()).toMatchObject([{ invariant: 'ghost' }])
      expect(found.violations[0]?.explain).toBe('B on r.1 went on after it had been told to stop, and was fenced off')
    }
  })

  test('a loser whose step was held until its grace was over is none', async () => {
    const act = async (turn: any) => {
      await turn.step('think', () => null)
      return turn.reply(turn.agent)
    }
    const definition = () =>
      topology({ name: 'held', flows: ['Start -> H -> End', 'H <-> A'], agents: { H: hub('any', ['A', 'A']), A: { act } } })
    const checked = await explore(definition, { schedules: 'all', faults: ['timeout'] })
    expect(checked, checked.text()).toMatchObject({ independent: true, violations: [], distinct: 2 })
  })

  test('a timer of its own goes around the scheduler: that is told, and nothing is called exhaustive', async () => {
    const checked = await explore(
      alone(async (turn) => {
        await new Promise((resolve) => setTimeout(resolve, 5))
        return turn.finish('late')
      }),
      { schedules: 'all' },
    )
    expect(checked).toMatchObject({ independent: true, exhaustive: false })
    expect(checked.notes.join()).toContain('A waited for something that goes around the scheduler')
  })

  test('a run that asks, with nobody to answer, is refused with a hint', async () => {
    const asking = () =>
      topology({
        name: 'asking',
        flows: ['Start -> A -> End', 'A -> User'],
        agents: { A: { act: { request: (turn) => turn.ask('may I?'), answer: (turn, value) => turn.finish(value) } } },
      })
    await expect(explore(asking)).rejects.toMatchObject({ code: 'INVALID_INPUT', hint: expect.stringContaining('answers') })
    const checked = await explore(asking, { answers: () => 'yes', schedules: 'all' })
    expect(checked.outcomes).toMatchObject([{ result: { output: 'yes' } }])
  })

  test('a run that ends by its time because nobody answers is told of as not explored beyond that, also if it is a child that asks', async () => {
    const asking = topology({
      name: 'asking',
      flows: ['Start -> A -> End', 'A -> User'],
      rules: ['timeout(180)'],
      agents: { A: { act: { request: (turn) => turn.ask('may I?'), answer: (turn, value) => turn.finish(value) } } },
    })
    const above = graph('above').step('child', { run: asking }).output()
    const left = 'what follows an answer to A, which nobody gave: add `answers`'
    for (const definition of [asking, above]) {
      expect((await explore(definition, { schedules: 'all' })).notExplored).toContain(left)
      expect((await explore(definition, { schedules: 'all', answers: () => 'yes' })).notExplored).not.toContain(left)
    }
  })
})

test('an undo of a run whose children are undone by runs of their own waits for nothing outside', async () => {
  const leaf = graph('leaf')
    .step('a', { run: () => 1, compensate: () => {} })
    .output()
  const middle = graph('middle')
    .step('l', { input: () => 1, run: leaf })
    .output()
  const top = graph('top')
    .step('m', { input: () => 1, run: middle })
    .step('bad', {
      after: ['m'],
      run: () => {
        throw new Error('no')
      },
    })
    .output()
  const checked = await explore(top, { schedules: 'all' })
  expect(checked, checked.text()).toMatchObject({ independent: true, exhaustive: true })
  expect(checked.text()).not.toContain('goes around the scheduler')
})

test('nothing of a schedule keeps the process alive: neither one that died, nor a run that came to a stand', async () => {
  const timers = (): number => process.getActiveResourcesInfo().filter((kind) => kind === 'Timeout').length
  const parent = (run: () => unknown) => () =>
    graph('parent')
      .step('k', { input: () => 1, run: graph('child').step('c', { run }).output() })
      .output()
  const before = timers()
  await explore(
    parent(() => 1),
    { schedules: 20, faults: ['crash'] },
  )
  const stuck = await explore(
    parent(() => new Promise(() => {})),
    { schedules: 2, patienceMs: 30 },
  )
  expect(stuck.violations).toMatchObject([{ invariant: 'deadlock' }])
  expect(timers()).toBeLessThanOrEqual(before)
})

test('a run that left something undone because nobody used it is a choice, also of a child run', async () => {
  const child = () =>
    graph('child')
      .step('x', {
        run: async ({ step }) => {
          await step('1', () => 1)
          return 1
        },
        compensate: () => {},
      })
      .output()
  const definition = () =>
    graph('parent', { stragglers: 'cancel' })
      .step('k', { input: () => 1, run: child() })
      .step('bad', { run: throws })
      .output()
  const checked = await explore(definition, { schedules: 60, faults: ['timeout', 'crash'] })
  expect(checked.independent, checked.text()).toBe(true)
  expect(checked.outcomes.some(({ result }) => result.report.notUndone.includes('check:k/x'))).toBe(true)
})

test('a crash is one death, also of a run that waits for others and is claimed with them', async () => {
  const leaf = graph('leaf', { input: z.number() })
    .step('a', { run: ({ input }) => input * 2 })
    .step('b', { after: ['a'], run: ({ steps }) => steps.a })
    .output()
  const middle = graph('middle')
    .step('l', { each: () => [0, 1, 2], input: ({ item }) => item, run: leaf })
    .output()
  const top = graph('top')
    .step('m', { input: () => null, run: middle })
    .step('n', { input: () => 5, run: leaf })
    .output(({ steps }) => steps.n)
  const checked = await explore(top, { schedules: 60, faults: ['crash'], seed: 1 })
  expect(checked.independent, checked.text()).toBe(true)
})

test('what must not go on at once is named, whatever else was in another order', async () => {
  const shared = () => {
    let sum = 0
    const adding =
      (...names: string[]) =>
      async (turn: { step(name: string, run: () => number): Promise<number>; reply(value: number): never }) => {
        for (const name of names) await turn.step(name, () => 1)
        const before = sum
        await Promise.resolve()
        sum = before + 1
        return turn.reply(1)
      }
    return topology({
      name: 'shared',
      flows: ['Start -> Hub -> End', 'Hub <-> A | B | C'],
      agents: {
        Hub: { act: { request: (turn) => turn.fork(['A', 'B', 'C']), join: (turn) => turn.finish(sum) } },
        A: adding('s') as never,
        B: adding('s', 'z') as never,
        C: (turn) => turn.reply(1),
      },
    })
  }
  const { divergence } = await explore(shared)
  expect(divergence?.explain).toContain(`"A on r.0 has 's'" has come to rest before "B on r.1 has 'z'", instead of both at once`)
})
