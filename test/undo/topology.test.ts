import type { Done, Topology } from 'tutti'
import { timelineOf, topology } from 'tutti'
import { expect, test } from 'vitest'
import type { Event } from '../../src/kernel/event.js'
import { evolve } from '../../src/kernel/evolve.js'
import { saveState } from '../../src/kernel/snapshot.js'
import { newState } from '../../src/kernel/state.js'
import { deferred, journal, journalSoFar, opened, rest, timed } from '../engine/opened.js'
import { handedOut } from '../kernel/handed.js'

type Act = (turn: any) => unknown
type Deferred = ReturnType<typeof deferred<unknown>>

interface Team {
  readonly log: string[]
  readonly agent: (act: Act, undo?: (done: Done) => unknown) => object
}

/** Agents whose turns can be undone, and what was undone, as it happened. */
function team(): Team {
  const log: string[] = []
  return {
    log,
    agent: (act, undo) => ({ act, compensate: undo ?? (({ output }: Done) => void log.push(`undo ${JSON.stringify(output)}`)) }),
  }
}

const replies: Act = (turn) => turn.reply(turn.request)
const fails: Act = (turn) => turn.fail('broken')

function hub(h: Act | object, agents: Readonly<Record<string, Act | object>>): Topology<unknown, unknown> {
  const names = Object.keys(agents)
  return made({
    name: 'hub',
    flows: ['Start -> H -> End', `H <-> ${names.join(' | ')}`],
    agents: { H: h, ...agents },
  })
}

const made = (definition: object): Topology<unknown, unknown> => topology(definition as never) as never

/** Forks one of each name, and does with the join what it is told. */
const forks =
  (names: readonly string[], options: object, then: Act = (turn) => turn.finish(turn.message.join.values)): Act =>
  (turn) =>
    turn.message.kind === 'join'
      ? then(turn)
      : turn.fork(
          names.map((to) => ({ to, request: to })),
          options,
        )

test('a run that fails undoes the turns of its agents, the join before what it came from', async () => {
  const { log, agent } = team()
  const h = agent(forks(['A', 'B'], {}, (turn) => turn.invoke('C', 'after the join')))
  const of = made({
    name: 'joined',
    flows: ['Start -> H -> End', 'H <-> A | B', 'H -> C -> End'],
    agents: { H: h, A: agent(replies), B: agent(replies), C: fails },
  })
  await using tutti = await opened()
  const result = await (await tutti.start(of)).result()
  expect(result).toMatchObject({ status: 'failed', rollback: 'complete', report: { choices: [] } })
  expect(log[0]).toBe('undo "after the join"')
  expect(log.slice(1, 3).sort()).toEqual(['undo "A"', 'undo "B"'])
  expect(log[3]).toMatch(/^undo \[/)
  expect(log).toHaveLength(4)
})

test('a fork with compensate undoes what failed before its waiting agent goes on, and keeps what counts', async () => {
  const { log, agent } = team()
  const worker: Act = (turn) =>
    turn.request === 'B' && turn.message.kind !== 'join' ? turn.fork([{ to: 'X', request: 'x' }]) : turn.reply('a')
  const of = made({
    name: 'kept',
    flows: ['Start -> H -> End', 'H <-> A | B', 'B <-> X'],
    agents: {
      H: forks(['A', 'B'], { compensate: true, join: 'settled' }, (turn) => {
        log.push('H goes on')
        return turn.finish(turn.message.join.values)
      }),
      A: agent(replies),
      B: (turn: any) => (turn.message.kind === 'join' ? turn.fail('broken') : worker(turn)),
      X: agent(replies),
    },
  })
  await using tutti = await opened()
  const result = await (await tutti.start(of)).result()
  expect(result).toMatchObject({ status: 'succeeded', output: ['A'], rollback: 'complete' })
  expect(log).toEqual(['undo "x"', 'H goes on'])
})

test('a fork with compensate whose join fails undoes all of it, then fails', async () => {
  const { log, agent } = team()
  await using tutti = await opened()
  const of = hub(forks(['A', 'B'], { compensate: true }), { A: agent(replies), B: fails })
  const result = await (await tutti.start(of)).result()
  expect(result).toMatchObject({ status: 'failed', rollback: 'complete', error: { code: 'JOIN_FAILED' } })
  expect(log).toEqual(['undo "A"'])
})

test('the losers of a choice are undone after they have settled, before the winner is used', async () => {
  const { log, agent } = team()
  const slow: Deferred = deferred<unknown>()
  const loser = agent(async (turn) => {
    await slow.promise
    return turn.reply('late')
  })
  const h = forks(['A', 'B'], { compensate: true, join: 'any' }, (turn) => {
    log.push('H goes on')
    return turn.finish(turn.message.join.values)
  })
  await using tutti = await opened()
  const run = await tutti.start(hub(h, { A: agent(replies), B: loser }))
  await rest()
  expect(log).toEqual([])
  slow.resolve(null)
  const result = await run.result()
  expect(log).toEqual(['undo "late"', 'H goes on'])
  expect(result).toMatchObject({ status: 'succeeded', output: ['A'], rollback: 'complete' })
  expect(result.report.choices).toEqual([
    { at: 'r#1', kind: 'join', decidedBy: [0] },
    { at: 'r#1', kind: 'undo', decidedBy: ['r.1/1'] },
  ])
})

test('k branches that fail at once make one plan, and each completed turn is undone once, in every order', async () => {
  const names = ['A', 'B', 'C', 'D', 'E']
  for (let shift = 0; shift < names.length; shift++) {
    const { log, agent } = team()
    const held = new Map(names.map((name) => [name, deferred<unknown>()]))
    const worker: Act = async (turn) => {
      if (turn.message.kind === 'request') return turn.fork([{ to: 'X', request: turn.agent }])
      await held.get(turn.agent)?.promise
      return turn.fail('broken')
    }
    const of = made({
      name: 'failing',
      flows: ['Start -> H -> End', `H <-> ${names.join(' | ')}`, `${names.join(' | ')} <-> X`],
      agents: { H: forks(names, {}), ...Object.fromEntries(names.map((name) => [name, worker])), X: agent(replies) },
    })
    await using tutti = await opened()
    const run = await tutti.start(of)
    await rest()
    for (let i = 0; i < names.length; i++) held.get(names[(i + shift) % names.length] ?? '')?.resolve(null)
    const result = await run.result()
    expect(result).toMatchObject({ status: 'failed', rollback: 'complete', error: { cause: { at: { agent: 'A' } } } })
    expect([...log].sort()).toEqual(names.map((name) => `undo "${name}"`))
    expect((await journal(run)).filter(({ type }) => type === 'run.compensating')).toHaveLength(1)
  }
})

test('a turn that fails, or is rejected, has done nothing that its agent could undo', async () => {
  const undone: number[] = []
  const of = made({
    name: 'rejected',
    flows: ['Start -> A -> B -> End'],
    agents: {
      A: {
        act: (turn: any) => (turn.message.kind === 'feedback' ? turn.invoke('B', 'right') : turn.finish('wrong')),
        compensate: ({ output }: Done) => void undone.push(output === 'right' ? 1 : 0),
      },
      B: { act: fails, compensate: () => expect.unreachable() },
    },
  })
  await using tutti = await opened()
  expect(await (await tutti.start(of)).result()).toMatchObject({ status: 'failed', rollback: 'complete' })
  expect(undone).toEqual([1])
})

test('what detached branches have done is undone by the run, and by no fork', async () => {
  const { log, agent } = team()
  const of = made({
    name: 'detached',
    flows: ['Start -> H -> End', 'H <-> A', 'A ~> N', 'N -> End'],
    agents: {
      H: forks(['A'], { compensate: true }),
      A: (turn: any) => (turn.message.kind === 'join' ? turn.fail('broken') : turn.invoke('N', 'told')),
      N: agent((turn) => turn.finish('noted')),
    },
  })
  await using tutti = await opened()
  const run = await tutti.start(of)
  expect(await run.result()).toMatchObject({ status: 'failed', rollback: 'complete' })
  expect(log).toEqual(['undo "noted"'])
  const types = (await journal(run)).map(({ type }) => type)
  expect(types.indexOf('run.compensating')).toBeLessThan(types.indexOf('undo.completed'))
})

test('an undo that takes too long is tried again, and gives up in the end', async () => {
  let tries = 0
  const of = made({
    name: 'hanging',
    flows: ['Start -> A -> B -> End'],
    agents: {
      A: {
        act: (turn: any) => turn.invoke('B'),
        timeoutMs: 1_000,
        compensate: ({ signal }: Done) => {
          tries++
          return new Promise((_, reject) => signal.addEventListener('abort', () => reject(new Error('aborted'))))
        },
      },
      B: fails,
    },
  })
  await using at = await timed()
  const result = (await at.tutti.start(of)).result()
  for (let i = 0; i < 14; i++) {
    await rest()
    await at.clock.advance(60_000)
  }
  expect(await result).toMatchObject({ rollback: 'partial', report: { notUndone: ['r/1'] } })
  expect(tries).toBe(5)
})

test.each(['ends late', 'never ends'])('an undo that ignores its signal and %s is tried again', async (how) => {
  const tries: number[] = []
  const over: (() => void)[] = []
  const of = made({
    name: 'ignoring',
    flows: ['Start -> A -> B -> End'],
    agents: {
      A: {
        act: (turn: any) => turn.invoke('B'),
        timeoutMs: 1_000,
        compensate: ({ attempt }: Done) => {
          tries.push(attempt)
          if (attempt < 3) return new Promise<void>((resolve) => over.push(resolve))
        },
      },
      B: fails,
    },
  })
  await using at = await timed({ graceMs: 5_000 })
  const result = (await at.tutti.start(of)).result()
  for (let attempt = 1; attempt < 3; attempt++) {
    await rest()
    expect(tries).toHaveLength(attempt)
    await at.clock.advance(4_000)
    // Its time is over, and the next waits for it as long as for any that is aborted.
    expect(tries).toHaveLength(attempt)
    if (how === 'ends late') over.shift()?.()
    else await at.clock.advance(2_000)
  }
  expect(await result).toMatchObject({ status: 'failed', rollback: 'complete' })
  expect(tries).toEqual([1, 2, 3])
})

test('an undo that ran out of time is a choice in the report, of the run and of a fork: what is left undone depends on it', async () => {
  const slow = { act: (turn: any) => turn.invoke('B'), timeoutMs: 1_000, compensate: () => new Promise(() => {}) }
  const ofRun = made({ name: 'of-run', flows: ['Start -> A -> B -> End'], agents: { A: slow, B: fails } })
  const ofFork = made({
    name: 'of-fork',
    flows: ['Start -> H -> End', 'H -> A -> B -> H'],
    agents: {
      H: (turn: any) =>
        turn.message.kind === 'join'
          ? turn.finish(1)
          : turn.fork(['A'], { join: { policy: 'all', insufficient: 'resume' }, compensate: true }),
      A: slow,
      B: fails,
    },
  })
  for (const [of, entry] of [
    [ofRun, 'r/1'],
    [ofFork, 'r.0/1'],
  ] as const) {
    await using at = await timed()
    const result = (await at.tutti.start(of)).result()
    for (let i = 0; i < 40; i++) {
      await rest()
      await at.clock.advance(6_000)
    }
    const { report } = await result
    expect(report).toMatchObject({ rollback: 'partial', notUndone: [entry] })
    const timeouts = report.choices.filter(({ at: where }) => where === `${entry}/undo`)
    expect(timeouts.map(({ kind, decidedBy }) => [kind, ...decidedBy])).toEqual([1, 2, 3, 4, 5].map((attempt) => ['timeout', attempt]))
  }
})

test('undos of a fork that run out of time side by side are the same choices, whichever was first', async () => {
  const slow = (timeoutMs: number) => ({ act: (turn: any) => turn.invoke('C'), timeoutMs, compensate: () => new Promise(() => {}) })
  const choices: unknown[] = []
  for (const [a, b] of [
    [1_000, 1_001],
    [1_001, 1_000],
  ] as const) {
    const of = made({
      name: 'side-by-side',
      flows: ['Start -> H -> End', 'H -> A -> C -> H', 'H -> B -> C'],
      agents: {
        H: (turn: any) =>
          turn.message.kind === 'join'
            ? turn.finish(1)
            : turn.fork(['A', 'B'], { join: { policy: 'all', insufficient: 'resume' }, compensate: true }),
        A: slow(a),
        B: slow(b),
        C: fails,
      },
    })
    await using at = await timed()
    const result = (await at.tutti.start(of)).result()
    for (let i = 0; i < 40; i++) {
      await rest()
      await at.clock.advance(6_000)
    }
    choices.push((await result).report.choices)
  }
  expect(choices[0]).toHaveLength(10)
  expect(choices[1]).toEqual(choices[0])
})

test('a limit that is crossed in what was in flight leaves a paused run paused: nothing is undone before it is resumed', async () => {
  const { log, agent } = team()
  const held = deferred()
  const limited = made({
    name: 'limited',
    flows: ['Start -> H -> End', 'H <-> A | B', 'B <-> A'],
    limits: { maxFanOut: 2 },
    agents: {
      H: forks(['A', 'B'], {}),
      A: agent((turn) => turn.reply('a')),
      B: async (turn: { fork(to: readonly string[]): unknown }) => {
        await held.promise
        return turn.fork(['A', 'A', 'A'])
      },
    },
  })
  await using tutti = await opened()
  const run = await tutti.start(limited)
  await rest()
  await run.pause()
  held.resolve()
  await rest()
  expect({ status: await run.status(), log }).toEqual({ status: 'paused', log: [] })
  const drawn = async (): Promise<string> => timelineOf(await journalSoFar(run)).status
  expect([(await run.report()).status, await drawn()]).toEqual(['paused', 'paused'])
  await expect(run.cancel()).rejects.toThrow(/is ending: it is paused, and undoes what it has done once it is resumed$/)
  await run.resume()
  expect(await run.result()).toMatchObject({ status: 'failed', error: { code: 'LIMIT_FANOUT' }, rollback: 'complete' })
  expect(log).toEqual(['undo "a"'])
})

test('what a fork undoes is found among what was done under it, however many forks the run has been through', async () => {
  const looked = (rounds: number): Promise<number> =>
    handedOut(async () => {
      const { log, agent } = team()
      let round = 0
      const of = made({
        name: 'rounds',
        flows: ['Start -> H -> End', 'H <-> A | B', 'B <-> A'],
        agents: {
          H: (turn: any) => (round++ < rounds ? turn.fork(['A', 'B'], { compensate: true, join: 'settled' }) : turn.finish(null)),
          A: agent((turn) => turn.reply('a')),
          B: agent((turn) => (turn.message.kind === 'request' ? turn.fork(['A']) : turn.fail('broken'))),
        },
      })
      await using tutti = await opened()
      expect(await (await tutti.start(of)).result()).toMatchObject({ status: 'succeeded', rollback: 'complete' })
      expect(log.length).toBeGreaterThanOrEqual(rounds)
    })
  const few = await looked(20)
  expect(await looked(80)).toBeLessThan(few * 6)
})

test('of a line of detached branches that can be undone a snapshot keeps once where each comes from', async () => {
  const kept = async (length: number): Promise<number> => {
    const { agent } = team()
    let begun = 0
    const of = made({
      name: 'line',
      flows: ['Start -> H -> End', 'H ~> D', 'D ~> D', 'D -> End'],
      limits: { maxTurns: 1_000, maxDepth: 1_000 },
      agents: {
        H: (turn: any) => (turn.message.kind === 'request' ? turn.invoke('D') : turn.finish(null)),
        D: agent((turn: any) => (turn.message.kind === 'request' && ++begun < length ? turn.invoke('D') : turn.finish(null))),
      },
    })
    await using tutti = await opened({ invariants: false })
    const run = await tutti.start(of)
    expect(await run.result()).toMatchObject({ status: 'succeeded' })
    const state = (await journal(run)).reduce((folded, event) => evolve(folded, event as Event), newState)
    expect(state.undo.nodes.size).toBeGreaterThanOrEqual(length)
    return JSON.stringify(saveState(state)).split('"slot":').length
  }
  const few = await kept(10)
  expect(await kept(40)).toBeLessThan(few * 6)
})
