/** The state of branches and how it is merged (KERNEL §8), each in every order. */
import { describe, expect, test } from 'vitest'
import type { BranchState } from '../../src/kernel/action.js'
import type { Act } from './acts.js'
import { fork, forks, invoke, passes, replies, reply, finish, failing } from './acts.js'
import { eventsOf, rootCauseOf } from './outcome.js'
import type { TopologyOptions } from './play.js'
import { everyOrder, playOf, toEnd } from './play.js'

/** Finishes with the state it has. */
const shows: Act = ({ state }) => finish(state)
const sum = (base: number, changed: readonly number[]): number => changed.reduce((total, value) => total + value - base, base)

const flows = ['Start->H->End', 'H<->A|B|C']
/** H forks to A, B and C, and finishes with the state that the join left it. */
const joined = (
  state: BranchState,
  merge: TopologyOptions['merge'],
  acts: Readonly<Record<'A' | 'B' | 'C', Act>>,
  join: Parameters<typeof fork>[1] = 'all',
) =>
  playOf(
    flows,
    { H: forks(['A', 'B', 'C'], join, (_, { state: left }) => finish(left)), ...acts },
    { state: () => state, merge: merge ?? {} },
  )

const gives =
  (state: BranchState): Act =>
  ({ agent }) =>
    reply(agent, state)

describe('a branch', () => {
  test('starts with what the definition makes of the input, and keeps what its actions give', () => {
    const play = playOf(
      ['Start->A->B->End'],
      { A: ({ state }) => invoke('B', null, { n: (state?.['n'] as number) + 1 }), B: shows },
      { state: (input) => ({ n: (input as number | undefined) ?? 0 }), merge: { n: 'mine' }, input: 41 },
    )
    everyOrder(play, (result) => expect(result.output).toEqual({ n: 42 }))
  })

  test('that is forked or detached starts with the state of its parent, as the action left it', () => {
    const play = playOf(
      ['Start->H->End', 'H<->A', 'H~>N', 'N->End'],
      {
        H: ({ message, turn, state }) => {
          if (turn === 1) return fork(['A', 'N'], 'all', { n: 5 })
          return finish({ mine: state, got: message.kind === 'join' ? message.join.values[0] : null })
        },
        A: ({ state }) => reply(state),
        N: ({ state }) => (state?.['n'] === 5 ? finish(state) : failing('n has another state')),
      },
      { state: () => ({ n: 0 }), merge: { n: 'mine' } },
    )
    everyOrder(play, (result) => {
      expect(result.output).toEqual({ mine: { n: 5 }, got: { n: 5 } })
      expect(eventsOf(result.journal, 'turn.completed').find((event) => event.agent === 'N')?.action).toEqual({
        type: 'finish',
        output: { n: 5 },
      })
    })
  })

  test('keeps its state through asks, rejections and retries', () => {
    const play = playOf(
      ['Start->A->End', 'A->User'],
      {
        A: {
          act: ({ message, attempt, state }) => {
            if (message.kind === 'request') return { type: 'ask', question: 1, state: { n: 7 } }
            if (attempt === 1) return { throw: 'no' }
            return attempt === 2 ? invoke('Nobody', null, { n: 9 }) : finish(state)
          },
          retry: { attempts: 2 },
        },
      },
      { state: () => ({ n: 0 }), merge: { n: 'mine' }, answers: () => ['yes'] },
    )
    everyOrder(play, (result) => expect(result.output).toEqual({ n: 7 }))
  })

  test('has none where none is declared', () => {
    const play = playOf(flows, {
      H: forks(['A', 'B', 'C'], 'all', (_, { state }) => finish(state === undefined)),
      A: replies(),
      B: replies(),
      C: replies(),
    })
    everyOrder(play, (result) => expect(result.output).toBe(true))
  })
})

describe('at a join', () => {
  test("'mine' keeps what the waiting branch had, whatever came", () => {
    const play = joined({ n: 1 }, { n: 'mine' }, { A: gives({ n: 2 }), B: gives({ n: 3 }), C: replies() })
    everyOrder(play, (result) => expect(result.output).toEqual({ n: 1 }))
  })

  test("'last' takes the highest slot that changed it, not the one that came last", () => {
    const play = joined({ n: 1 }, { n: 'last' }, { A: gives({ n: 2 }), B: gives({ n: 3 }), C: gives({ n: 1 }) })
    const explored = everyOrder(play, (result) => expect(result.output).toEqual({ n: 3 }))
    expect(explored).toMatchObject({ orders: 6, ends: 1 })
  })

  test('a function gets the base and the whole values that differ from it, in slot order', () => {
    const calls: unknown[] = []
    const merge = (base: unknown, changed: readonly unknown[]): unknown => {
      calls.push([base, changed])
      return changed
    }
    const play = joined(
      { list: ['x'] },
      { list: merge },
      { A: gives({ list: ['x', 'a'] }), B: gives({ list: ['x'] }), C: gives({ list: ['c'] }) },
    )
    everyOrder(play, (result) => expect(result.output).toEqual({ list: [['x', 'a'], ['c']] }))
    for (const call of calls) expect(call).toEqual([['x'], [['x', 'a'], ['c']]])
  })

  test('a function is not called for what nobody changed as JSON', () => {
    const never = (): never => {
      throw new Error('called')
    }
    const play = joined({ o: { a: 1, b: [2] } }, { o: never }, { A: gives({ o: { b: [2], a: 1 } }), B: replies(), C: replies() })
    everyOrder(play, (result) => expect(result.output).toEqual({ o: { a: 1, b: [2] } }))
  })

  test('each key is merged by its own rule', () => {
    const play = joined(
      { mine: 0, last: 0, sum: 10 },
      { mine: 'mine', last: 'last', sum },
      { A: gives({ mine: 1, last: 1, sum: 11 }), B: gives({ mine: 2, last: 0, sum: 12 }), C: gives({ mine: 3, last: 0, sum: 10 }) },
    )
    everyOrder(play, (result) => expect(result.output).toEqual({ mine: 0, last: 1, sum: 13 }))
  })

  test('a key that is taken away or comes anew has changed', () => {
    const play = joined({ a: 1 }, { a: 'last', b: 'last' }, { A: gives({}), B: gives({ a: 1, b: 2 }), C: replies() })
    everyOrder(play, (result) => expect(result.output).toEqual({ b: 2 }))
  })

  test('the base is what the waiting branch has when it forks, at every level', () => {
    const play = playOf(
      ['Start->H->End', 'H<->M', 'M<->A|B'],
      {
        H: ({ message, state }) => (message.kind === 'join' ? finish(state) : fork(['M', 'M'], 'all', { n: 100 })),
        M: ({ message, state }) => (message.kind === 'join' ? reply('m') : fork(['A', 'B'], 'all', { n: (state?.['n'] as number) + 10 })),
        A: ({ state }) => reply('a', { n: (state?.['n'] as number) + 1 }),
        B: ({ state }) => reply('b', { n: (state?.['n'] as number) + 2 }),
      },
      { state: () => ({ n: 0 }), merge: { n: sum } },
    )
    const explored = everyOrder(play, (result) => expect(result.output).toEqual({ n: 126 }))
    expect(explored.ends).toBe(1)
  })

  test('the states of branches that escaped, failed or were cancelled are dropped', () => {
    const escapes = playOf(
      ['Start->H->End', 'H<->M', 'M<->A|B', 'A->H'],
      {
        H: forks(['M'], 'all', (_, { state }) => finish(state)),
        M: forks(['A', 'B'], 'all', () => reply('m')),
        A: () => invoke('H', 'a', { n: 1_000 }),
        B: gives({ n: 2 }),
      },
      { state: () => ({ n: 0 }), merge: { n: sum } },
    )
    everyOrder(escapes, (result) => expect(result.output).toEqual({ n: 2 }))

    const stateful = ['Start->H->End', 'H<->A|B|C', 'A->C']
    const failed = playOf(
      stateful,
      {
        H: forks(['A', 'B'], 'settled', (_, { state }) => finish(state)),
        A: () => invoke('C', null, { n: 1_000 }),
        B: gives({ n: 2 }),
        C: () => failing('c broke'),
      },
      { state: () => ({ n: 0 }), merge: { n: sum } },
    )
    everyOrder(failed, (result) => expect(result.output).toEqual({ n: 2 }))

    const cancelled = joined({ n: 0 }, { n: sum }, { A: gives({ n: 1 }), B: gives({ n: 20 }), C: gives({ n: 300 }) }, 'any')
    const outputs = new Set<number>()
    everyOrder(cancelled, (result) => outputs.add((result.output as { n: number }).n))
    expect(outputs).toEqual(new Set([1, 20, 300]))
  })

  test('with a choice, only the states of the slots that decided it count, whoever had settled', () => {
    const play = joined({ n: 0 }, { n: sum }, { A: gives({ n: 1 }), B: () => failing('b broke'), C: gives({ n: 300 }) }, { quorum: 2 })
    everyOrder(play, (result) => expect(result.output).toEqual({ n: 301 }))
  })

  test('a merged branch counts once', () => {
    const play = playOf(
      ['Start->H->End', 'H->A|B|D', 'A|B->C', 'C|D->H'],
      {
        H: forks(['A', 'B', 'D'], 'all', (_, { state }) => finish(state)),
        A: passes('C'),
        B: passes('C'),
        C: ({ state }) => reply('c', { n: (state?.['n'] as number) + 5 }),
        D: gives({ n: 1 }),
      },
      { state: () => ({ n: 0 }), merge: { n: sum }, joins: ['C'] },
    )
    everyOrder(play, (result) => expect(result.output).toEqual({ n: 6 }))
  })

  test('what was merged is recorded: folding the journal calls no function', () => {
    let calls = 0
    const counting = (base: number, changed: readonly number[]): number => {
      calls++
      return sum(base, changed)
    }
    const play = joined({ n: 0 }, { n: counting }, { A: gives({ n: 1 }), B: replies(), C: replies() })
    const result = toEnd(play)
    expect(eventsOf(result.journal, 'barrier.fired').find((event) => event.barrier === 'r#1')).toMatchObject({ state: { n: 1 } })
    // Once when it was decided, once when it was decided again on the folded state and once on a snapshot; the foldings themselves add nothing.
    expect(calls).toBe(3)
  })
})

describe('at a rendezvous', () => {
  const meeting = ['Start->H->End', 'H->A|B', 'A|B->C', 'C->H']
  const met = (merge: TopologyOptions['merge'], a: BranchState | undefined, b: BranchState | undefined, from = 10) =>
    playOf(
      meeting,
      {
        H: ({ message, state }) =>
          message.kind === 'join' ? finish({ h: state, c: message.join.values[0] }) : fork(['A', 'B'], 'all', { n: from }),
        A: () => invoke('C', 'a', a),
        B: () => invoke('C', 'b', b),
        C: ({ state }) => reply(state),
      },
      { state: () => ({ n: 0 }), merge: merge ?? {}, joins: ['C'] },
    )

  test("'mine' is the state of the one with the lowest slot", () => {
    everyOrder(met({ n: 'mine' }, { n: 1 }, { n: 2 }), (result) => expect(result.output).toMatchObject({ c: { n: 1 } }))
  })

  test("'last' is that of the highest slot that changed it", () => {
    everyOrder(met({ n: 'last' }, { n: 1 }, { n: 2 }), (result) => expect(result.output).toMatchObject({ c: { n: 2 } }))
    everyOrder(met({ n: 'last' }, { n: 1 }, { n: 10 }), (result) => expect(result.output).toMatchObject({ c: { n: 1 } }))
  })

  test('a function gets the value with which the scope began, and those that differ, in slot order', () => {
    const merge = (base: unknown, changed: readonly unknown[]): unknown => ({ base, changed })
    everyOrder(met({ n: merge }, { n: 12 }, { n: 11 }), (result) =>
      expect(result.output).toMatchObject({ c: { n: { base: 10, changed: [12, 11] } } }),
    )
    everyOrder(met({ n: merge }, { n: 12 }, undefined), (result) =>
      expect(result.output).toMatchObject({ c: { n: { base: 10, changed: [12] } } }),
    )
  })

  test('and the join after it merge once each: what A and B added is there once', () => {
    everyOrder(met({ n: sum }, { n: 11 }, { n: 12 }), (result) => expect(result.output).toEqual({ h: { n: 13 }, c: { n: 13 } }))
  })

  test('the requests that met show the states they came with', () => {
    const play = playOf(
      meeting,
      {
        H: forks(['A', 'B'], 'all', (join) => finish(join.values[0])),
        A: () => invoke('C', 'a', { n: 1 }),
        B: () => invoke('C', 'b', { n: 2 }),
        C: ({ requests }) => reply(requests),
      },
      { state: () => ({ n: 0 }), merge: { n: 'last' }, joins: ['C'] },
    )
    everyOrder(play, (result) =>
      expect(result.output).toEqual([
        { from: 'A', value: 'a', state: { n: 1 } },
        { from: 'B', value: 'b', state: { n: 2 } },
      ]),
    )
  })

  test('one alone keeps its state as it is, and no function is called', () => {
    const never = (): never => {
      throw new Error('called')
    }
    const play = playOf(
      meeting,
      {
        H: forks(['A'], 'all', (join) => finish(join.values[0])),
        A: () => invoke('C', 'a', { n: 3 }),
        B: replies(),
        C: ({ state }) => reply(state, { n: 0 }),
      },
      { state: () => ({ n: 0 }), merge: { n: never }, joins: ['C'] },
    )
    everyOrder(play, (result) => expect(result.output).toEqual({ n: 3 }))
  })
})

describe('a key with no merge', () => {
  test('rejects the action that brings it, whichever that is', () => {
    const actions = [invoke('A', 1, { m: 1 }), fork(['A'], 'all', { m: 1 }), { type: 'ask', question: 1, state: { n: 1, m: 1 } } as const]
    for (const made of actions) {
      const play = playOf(
        ['Start->H->End', 'H<->A', 'H->User'],
        { H: () => made, A: replies() },
        { state: () => ({ n: 0 }), merge: { n: 'mine' } },
      )
      const result = toEnd(play)
      expect(result.error).toMatchObject({ code: 'REJECTED', at: { agent: 'H', branch: 'r', turn: 1 } })
      expect(result.error?.message).toContain("'m'")
    }
    const replying = playOf(
      ['Start->H->End', 'H<->A'],
      { H: forks(['A']), A: gives({ m: 1 }) },
      { state: () => ({ n: 0 }), merge: { n: 'mine' } },
    )
    expect(rootCauseOf(toEnd(replying).error)).toMatchObject({ code: 'REJECTED', at: { agent: 'A' } })
  })

  test('is refused in the definition where it is known', () => {
    expect(() => playOf(['Start->A->End'], {}, { state: () => ({ n: 0, m: 0 }), merge: { n: 'mine' } })).toThrow(/'m'|merge/)
  })

  test('that names something of every object rejects too', () => {
    const play = playOf(
      ['Start->A->B->End'],
      { A: () => invoke('B', 1, { toString: 1 }), B: shows },
      { state: () => ({ n: 0 }), merge: { n: 'mine' } },
    )
    expect(toEnd(play).error).toMatchObject({ code: 'REJECTED' })
  })
})
