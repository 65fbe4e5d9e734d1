import { describe, expect, test } from 'vitest'
import { flows } from './examples.js'
import type { Owed, RefAction, RefActivity, RefJoin, RefTopology, Reference } from './model.js'
import { Random, undoSample } from './random.js'
import type { Game, Played } from './search.js'
import { play, playEvery, search } from './search.js'

const reply = ({ agent }: Owed): RefAction => ({ type: 'reply', value: agent.toLowerCase() })
const finish = ({ agent }: Owed): RefAction => ({ type: 'finish', output: agent.toLowerCase() })
const fail = ({ agent }: Owed): RefAction => ({ type: 'fail', error: agent.toLowerCase() })
const invoke = (to: string) => (): RefAction => ({ type: 'invoke', to })
const fork = (to: readonly string[], join?: RefJoin, compensate = true): RefAction => ({
  type: 'fork',
  calls: to.map((name) => ({ to: name })),
  compensate,
  ...(join === undefined ? {} : { join }),
})
/** Forks on its first turn, then does the other thing. */
const forkThen =
  (forks: RefAction, then: (owed: Owed) => RefAction) =>
  (owed: Owed): RefAction =>
    owed.turn === 1 ? forks : then(owed)

interface Story {
  flow: readonly string[]
  joins?: readonly string[]
  agents: Record<string, (owed: Owed) => RefAction>
  /** Who can be undone; everybody, unless given. */
  compensating?: readonly string[]
  does?: (owed: Owed) => readonly RefActivity[]
  undoFails?: (entry: string) => number
  merge?: RefTopology['merge']
  answer?: boolean
}

function gameOf({ flow, joins = [], agents, compensating, merge, answer = true, does = () => [], undoFails = () => 0 }: Story): Game {
  const drawn = flows(...flow)
  const able = drawn.nodes.map((node) => [node, { compensates: compensating?.includes(node) ?? true }] as const)
  const state = merge === undefined ? {} : { merge, state: { x: 0 } }
  return {
    topology: { ...drawn, joins, result: 'one', agents: Object.fromEntries(able), ...state },
    input: 'go',
    act: (owed) => (agents[owed.agent] as (owed: Owed) => RefAction)(owed),
    answer: () => answer,
    does,
    undoFails,
  }
}

/** Every order there is; all that have the same choices say the same. */
function played(story: Story): Played[] {
  const all = playEvery(gameOf(story), 60_000)
  expect(all.flatMap(({ violations }) => violations)).toEqual([])
  const reports = new Map(all.map(({ key, report }) => [key, report]))
  expect(all.filter(({ key, report }) => reports.get(key) !== report)).toEqual([])
  return all
}

interface Line {
  type: string
  of: string
  status?: string
}
const linesOf = (run: Reference): Line[] => run.log as Line[]
/** What was undone, in the order in which it was. */
const undone = (run: Reference): string[] =>
  linesOf(run).flatMap(({ type, of, status }) => (type === 'undo' && status === 'compensated' ? [of] : []))
const ends = (all: readonly Played[]): string[] =>
  [
    ...new Set(all.map(({ run }) => `${run.outcome()?.status} ${run.outcome()?.rollback} ${run.outcome()?.notUndone.join(' ')}`.trim())),
  ].sort()
const undoChoices = (all: readonly Played[]): string[] =>
  [
    ...new Set(
      all.map(({ run }) => JSON.stringify(run.choices().flatMap((one) => (one.kind === 'undo' ? [[one.at, ...one.decidedBy]] : [])))),
    ),
  ].sort()
const before = (run: Reference, first: string, second: string): void => {
  const order = undone(run)
  expect(
    [order.indexOf(first) >= 0, order.indexOf(first) < order.indexOf(second)],
    `${first} before ${second} in ${order.join(' ')}`,
  ).toEqual([true, true])
}

describe('undoing, on the reference, in every order', () => {
  test('a run that fails undoes the answers before the question, the independent ones in any order', () => {
    const all = played({
      flow: ['Start -> H -> End', 'H <-> A | B'],
      agents: { H: forkThen(fork(['A', 'B'], 'all', false), fail), A: reply, B: reply },
    })
    expect(ends(all)).toEqual(['failed complete'])
    expect(new Set(all.map(({ run }) => undone(run).join(' ')))).toEqual(new Set(['r.0/1 r.1/1 r/1', 'r.1/1 r.0/1 r/1']))
    expect(undoChoices(all)).toEqual(['[]'])
  })

  test('within a turn its own entry is undone first, then what it did last', () => {
    const does = ({ agent }: Owed): RefActivity[] =>
      agent === 'A' ? ['x', 'y'].map((key) => ({ key, compensates: true, outcome: 'done' })) : []
    const all = played({ flow: ['Start -> A -> B -> End'], agents: { A: invoke('B'), B: fail }, does })
    expect(new Set(all.map(({ run }) => undone(run).join(' ')))).toEqual(new Set(['r/1 r/1/y r/1/x']))
  })

  test('the activities of a turn that fails are undone, the turn is not', () => {
    const does = (): RefActivity[] => [{ key: 'x', compensates: true, outcome: 'done' }]
    const all = played({ flow: ['Start -> A -> End'], agents: { A: fail }, does })
    expect(new Set(all.map(({ run }) => undone(run).join(' ')))).toEqual(new Set(['r/1/x']))
  })

  test('who was overtaken is undone before the fork goes on, and what of it was done is a choice', () => {
    const agents = { H: forkThen(fork(['A', 'B'], 'any'), finish), A: reply, B: reply }
    const all = played({ flow: ['Start -> H -> End', 'H <-> A | B'], agents })
    expect(ends(all)).toEqual(['succeeded complete', 'succeeded none', 'succeeded partial r.0/1', 'succeeded partial r.1/1'])
    expect(undoChoices(all)).toEqual(['[["r#1","r.0/1"]]', '[["r#1","r.0/1?"]]', '[["r#1","r.1/1"]]', '[["r#1","r.1/1?"]]', '[]'])
  })

  test('a run that succeeds says so if its fork could not undo everything', () => {
    const agents = { H: forkThen(fork(['A', 'B'], 'settled'), finish), A: reply, B: forkThen(fork(['C']), fail), C: reply }
    const all = played({
      flow: ['Start -> H -> End', 'H <-> A | B', 'B <-> C'],
      agents,
      undoFails: (entry) => (entry === 'r.1.0/1' ? 5 : 0),
    })
    expect(ends(all)).toEqual(['succeeded partial r.1.0/1'])
    for (const { run } of all) expect(undone(run)).toEqual(['r.1/1'])
    for (const { run } of all) expect(linesOf(run).filter(({ type, of }) => type === 'undoing' && of === 'r.1.0/1')).toHaveLength(5)
  })

  test('what came past a fork without a turn is a cause all the same', () => {
    const agents = {
      H: forkThen(fork(['M'], 'all', false), invoke('Z')),
      M: forkThen(fork(['W', 'V'], 'all', false), fail),
      W: invoke('H'),
      V: invoke('H'),
      Z: fail,
    }
    const all = played({ flow: ['Start -> H -> Z -> End', 'H <-> M', 'M <-> W | V', 'W | V -> H'], agents })
    expect(ends(all)).toEqual(['failed complete'])
    for (const { run } of all) {
      before(run, 'r/2', 'r.0.0/1')
      before(run, 'r/2', 'r.0.1/1')
      before(run, 'r.0.1/1', 'r.0/1')
      before(run, 'r.0/1', 'r/1')
    }
  })

  test('where branches met, what came of it is undone before any of them', () => {
    const agents = { H: forkThen(fork(['A', 'B'], 'all', false), fail), A: invoke('C'), B: invoke('C'), C: reply }
    const all = played({ flow: ['Start -> H -> End', 'H -> A | B', 'A | B -> C', 'C -> H'], joins: ['C'], agents })
    expect(ends(all)).toEqual(['failed complete'])
    for (const { run } of all) for (const first of ['r.0/1', 'r.1/1']) before(run, 'r.0/2', first)
  })

  test('a branch that is undoing holds back the rendezvous it may come to', () => {
    const agents = {
      H: forkThen(fork(['A', 'B'], 'all', false), finish),
      A: invoke('C'),
      B: forkThen(fork(['X', 'Y'], 'settled'), invoke('C')),
      X: () => fork(['Z']),
      Y: reply,
      Z: fail,
      C: reply,
    }
    const flow = ['Start -> H -> End', 'H -> A | B', 'A -> C', 'B -> C', 'B <-> X | Y', 'X <-> Z', 'C -> H']
    const does = ({ agent }: Owed): RefActivity[] => (agent === 'Z' ? [{ key: 'z', compensates: true, outcome: 'done' }] : [])
    const all = played({ flow, joins: ['C'], agents, does, compensating: [] })
    expect(ends(all)).toEqual(['succeeded complete'])
    for (const { run } of all) expect(run.report().merges).toHaveLength(1)
  })

  test('a fork waits for what was aborted under it, and for the plan of a fork within', () => {
    const agents = {
      H: forkThen(fork(['A', 'B'], 'any'), finish),
      A: reply,
      B: forkThen(fork(['X', 'Y'], 'all'), reply),
      X: reply,
      Y: fail,
    }
    const all = played({ flow: ['Start -> H -> End', 'H <-> A | B', 'B <-> X | Y'], agents, compensating: ['B', 'X'] })
    expect(ends(all)).toContain('succeeded complete')
    for (const { run } of all) {
      const taken = run.log.flatMap((line) =>
        'type' in line && line.type === 'plan' && 'entries' in line ? (line.entries as string[]) : [],
      )
      expect(taken).toHaveLength(new Set(taken).size)
      if (taken.includes('r.1.0/1') && taken.includes('r.1/1') && undone(run).length === taken.length) before(run, 'r.1.0/1', 'r.1/1')
    }
  })

  test('with a question about the join, nothing is undone before the answer, and everything after a no', () => {
    const agents = { H: forkThen(fork(['A', 'B'], { policy: 'all', insufficient: 'ask' }), finish), A: reply, B: fail }
    for (const answer of [true, false]) {
      const all = played({ flow: ['Start -> H -> End', 'H <-> A | B'], agents, answer, compensating: ['A', 'B'] })
      expect(ends(all)).toEqual([answer ? 'succeeded none' : 'failed complete'])
      for (const { run, order } of all) {
        expect(undone(run)).toEqual(answer ? [] : ['r.0/1'])
        if (!answer) expect(order.indexOf('answer r~1')).toBeLessThan(order.indexOf('undo r.0/1 1'))
      }
    }
  })

  test('a merge that throws is a failed join: all of it is undone', () => {
    const merge = {
      x: () => {
        throw new Error('no')
      },
    }
    const changing = (owed: Owed): RefAction => ({ type: 'reply', value: 1, state: { x: owed.agent === 'A' ? 1 : 2 } })
    const agents = { H: forkThen(fork(['A', 'B']), finish), A: changing, B: changing }
    const all = played({ flow: ['Start -> H -> End', 'H <-> A | B'], agents, merge, compensating: ['A', 'B'] })
    expect(new Set(all.map(({ run }) => run.outcome()?.error?.code))).toEqual(new Set(['MERGE_FAILED']))
    for (const { run } of all) expect(undone(run).sort()).toEqual(['r.0/1', 'r.1/1'])
  })

  test('a fork does not reach what its branches have notified; a run that fails does', () => {
    const flow = ['Start -> H -> End', 'H <-> A | B', 'A ~> N', 'N -> End']
    const A = forkThen({ type: 'invoke', to: 'N' }, fail)
    for (const H of [forkThen(fork(['A', 'B'], 'settled'), finish), forkThen(fork(['A', 'B'], 'settled'), fail)]) {
      const all = played({ flow, agents: { H, A, B: reply, N: finish }, compensating: ['A', 'N'] })
      for (const { run } of all) expect(undone(run)).toEqual(run.outcome()?.status === 'failed' ? ['r.0/1', 'r.0.0/1'] : ['r.0/1'])
    }
  })

  test('a run that is cancelled undoes all it did, once what was running has ended; unless it is told not to', () => {
    const game = gameOf({
      flow: ['Start -> H -> End', 'H <-> A | B'],
      agents: { H: forkThen(fork(['A', 'B'], 'all', false), finish), A: reply, B: reply },
    })
    for (const how of ['cancel', 'abandon'] as const)
      for (let seed = 0; seed < 60; seed++) {
        const random = new Random(seed)
        const at = 1 + random.below(4)
        const { run, violations } = play(game, (moves, step, steering) => (step === at ? steering[how] : random.pick(moves)))
        expect(violations).toEqual([])
        const { status, rollback } = run.outcome() as { status: string; rollback: string }
        if (status !== 'cancelled') continue
        if (how === 'abandon') expect([rollback, undone(run)]).toEqual(['none', []])
        else expect(undone(run).at(-1)).toBe('r/1')
      }
  })

  test('while a run is paused no undo starts, and one that runs goes on', () => {
    const game = gameOf({ flow: ['Start -> A -> B -> End'], agents: { A: invoke('B'), B: fail } })
    const { run, order } = play(game, (moves, step, steering) => {
      if (step === 1) return steering.pause
      const undo = moves.find(({ kind }) => kind === 'undo')
      if (step < 3) expect(undo).toBeUndefined()
      return moves[0] as (typeof moves)[number]
    })
    expect(order).toEqual(['act r/1/1', 'pause', 'act r/2/1', 'resume', 'undo r/1 1'].filter((id) => order.includes(id)))
    expect(run.outcome()?.rollback).toBe('complete')
  })
})

const [topologies = 35, orders = 10] = (process.env['TUTTI_UNDO_SEARCH'] ?? '').split(',').filter(Boolean).map(Number)

test('property: for equal choices everything is undone alike, once, and against causality', { timeout: 3_600_000 }, () => {
  const found = search({ from: Number(process.env['TUTTI_SEED'] ?? 1), topologies, orders, sampler: undoSample })
  expect(found.divergences).toEqual([])
  expect(found.compared).toBeGreaterThan(found.orders / 2)
  // A search that has nothing to undo, or never fails to, would find nothing.
  expect(found.statuses['complete']).toBeGreaterThan(found.orders / 6)
  expect(found.statuses['partial']).toBeGreaterThan(found.orders / 20)
})
