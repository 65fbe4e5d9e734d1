/** The examples of the rule book (KERNEL §10), row by row, each in every order. */
import { describe, expect, test } from 'vitest'
import type { Join } from '../../src/kernel/join.js'
import type { Act } from './acts.js'
import { failing, finish, finishes, fork, forks, invoke, passes, replies, reply, seen } from './acts.js'
import type { Result } from './outcome.js'
import { codesOf, joinsOf, requestsOf, rootCauseOf, turnsOf } from './outcome.js'
import type { Explored } from './play.js'
import { everyOrder, playOf } from './play.js'

/** Everything that each branch was shown is in `messages`: what an agent saw is asked of it. */
function inEveryOrder(play: Parameters<typeof everyOrder>[0], visit: (result: Result) => void): Explored {
  const explored = everyOrder(play, visit)
  expect(explored.orders).toBeGreaterThan(1)
  return explored
}

const deciders = (result: Result): (readonly number[])[] => result.choices.flatMap((choice) => ('join' in choice ? [choice.decidedBy] : []))

describe('the secret word', () => {
  test('the fork is answered [M, A, RS] by A, B and D, and the Orchestrator takes two turns', () => {
    const flows = [
      'Start -> Orchestrator',
      'Orchestrator -> AgentA | AgentB | AgentC',
      'AgentA | AgentB | AgentD -> Orchestrator',
      'AgentC -> AgentD',
      'Orchestrator -> End',
    ]
    const play = playOf(flows, {
      Orchestrator: forks(['AgentA', 'AgentB', 'AgentC']),
      AgentA: passes('Orchestrator', 'M'),
      AgentB: passes('Orchestrator', 'A'),
      AgentC: passes('AgentD', 'R'),
      AgentD: ({ request }) => reply(`${request as string}S`),
    })
    const explored = inEveryOrder(play, (result) => {
      expect(result.output).toEqual(['M', 'A', 'RS'])
      expect(joinsOf(result, 'Orchestrator').map((join) => join.slots.map((slot) => slot.by))).toEqual([['AgentA', 'AgentB', 'AgentD']])
      expect(turnsOf(result, 'Orchestrator')).toHaveLength(2)
    })
    expect(explored).toMatchObject({ orders: 12, ends: 1 })
  })
})

describe('branches that come to one agent', () => {
  const flows = ['Start->H', 'H->A|B', 'A|B->C', 'C->End']
  const agents = {
    H: forks(['A', 'B']),
    A: passes('C'),
    B: passes('C'),
    C: ({ requests }: Parameters<Act>[0]) => finish(requests.map((request) => request.value)),
  }

  test('meet there if it is a rendezvous: C has one turn with [a, b], H no second one, and the output is that of C', () => {
    const explored = inEveryOrder(playOf(flows, agents, { joins: ['C'] }), (result) => {
      expect(result).toMatchObject({ status: 'succeeded', output: ['a', 'b'] })
      expect(turnsOf(result, 'C')).toMatchObject([
        {
          message: {
            kind: 'merged',
            requests: [
              { from: 'A', value: 'a' },
              { from: 'B', value: 'b' },
            ],
          },
        },
      ])
      expect(turnsOf(result, 'H')).toHaveLength(1)
    })
    expect(explored).toMatchObject({ orders: 2, ends: 1 })
  })

  test('have a turn each if it is none: the run fails with SEVERAL_FINISHES and hints at joins', () => {
    const explored = inEveryOrder(playOf(flows, agents), (result) => {
      expect(requestsOf(result, 'C')).toEqual([['a'], ['b']])
      expect(turnsOf(result, 'H')).toHaveLength(1)
      expect(result.status).toBe('failed')
      expect(result.error).toMatchObject({ code: 'SEVERAL_FINISHES', data: { branches: ['r.0', 'r.1'] } })
      expect(result.error?.message).toContain("joins: ['C']")
    })
    expect(explored).toMatchObject({ orders: 6, ends: 1 })
  })
})

describe('a rendezvous waits for everyone who can still come', () => {
  test('C waits for the one that goes over another rendezvous, and has one turn with [a, d]', () => {
    const play = playOf(
      ['Start->H->End', 'H->A|B', 'A->C', 'B->D', 'D->C', 'C->H'],
      { H: forks(['A', 'B']), A: passes('C'), B: passes('D'), D: passes('C'), C: replies() },
      { joins: ['C', 'D'] },
    )
    inEveryOrder(play, (result) => {
      expect(requestsOf(result, 'C')).toEqual([['a', 'd']])
      expect(requestsOf(result, 'D')).toEqual([['b']])
      expect(result.output).toEqual(['c', 'c'])
    })
  })

  test('C waits although B waits at its own fork: [a, b]', () => {
    const play = playOf(
      ['Start->H->End', 'H->A|B', 'A->C', 'B<->X', 'B->C', 'C->H'],
      { H: forks(['A', 'B']), A: passes('C'), B: forks(['X'], 'all', () => invoke('C', 'b')), X: replies(), C: replies() },
      { joins: ['C'] },
    )
    inEveryOrder(play, (result) => {
      expect(requestsOf(result, 'C')).toEqual([['a', 'b']])
      expect(result.output).toEqual(['c', 'c'])
    })
  })

  test('C waits for the group at D, which waits for E: [d(a), b]', () => {
    const play = playOf(
      ['Start->H->End', 'H->A|B|E', 'A->D', 'E->D|H', 'B->C', 'D->C', 'C->H'],
      {
        H: forks(['A', 'B', 'E']),
        A: passes('D'),
        B: passes('C'),
        E: passes('H'),
        D: ({ request }) => invoke('C', `d(${request as string})`),
        C: replies(),
      },
      { joins: ['C', 'D'] },
    )
    inEveryOrder(play, (result) => {
      expect(requestsOf(result, 'D')).toEqual([['a']])
      expect(requestsOf(result, 'C')).toEqual([['d(a)', 'b']])
      expect(result.output).toEqual(['c', 'c', 'e'])
    })
  })

  test('two that lead to each other do not wait for each other: two single turns, no deadlock', () => {
    const play = playOf(
      ['Start->H->End', 'H->A|B', 'A->C', 'B->D', 'C<->D', 'C->H', 'D->H'],
      { H: forks(['A', 'B']), A: passes('C'), B: passes('D'), C: replies(), D: replies() },
      { joins: ['C', 'D'] },
    )
    inEveryOrder(play, (result) => {
      expect(requestsOf(result, 'C')).toEqual([['a']])
      expect(requestsOf(result, 'D')).toEqual([['b']])
      expect(result.output).toEqual(['c', 'd'])
    })
  })

  test('a fork starts at its targets even if these are rendezvous: two turns of C, two answers', () => {
    const play = playOf(['Start->H->End', 'H<->C'], { H: forks(['C', 'C']), C: ({ branch }) => reply(branch) }, { joins: ['C'] })
    const explored = inEveryOrder(play, (result) => {
      expect(turnsOf(result, 'C')).toHaveLength(2)
      expect(result.output).toEqual(['r.0', 'r.1'])
    })
    expect(explored).toMatchObject({ orders: 2, ends: 1 })
  })
})

describe('failures and choices', () => {
  const flows = ['Start->H->End', 'H<->A|B']

  test('if A and B fail, both have settled and the cause is the failure of A', () => {
    const play = playOf(flows, { H: forks(['A', 'B']), A: () => failing('a broke'), B: () => failing('b broke') })
    const explored = inEveryOrder(play, (result) => {
      expect(result.status).toBe('failed')
      expect(codesOf(result.error)).toEqual(['JOIN_FAILED', 'AGENT_FAILED'])
      expect(rootCauseOf(result.error)).toMatchObject({ message: 'a broke', at: { agent: 'A', branch: 'r.0', turn: 1 } })
      expect(result.choices).toEqual([])
      const fired = result.journal.find((event) => event.type === 'barrier.fired' && event.barrier === 'r#1')
      expect(fired).toMatchObject({ width: 2, failed: 2, cancelled: 0 })
    })
    expect(explored).toMatchObject({ orders: 2, ends: 1 })
  })

  test('under any, if A decided the join is [a, cancelled], whether or not B had failed by then', () => {
    const play = playOf(flows, { H: forks(['A', 'B'], 'any'), A: replies(), B: () => failing('b broke') })
    const before: boolean[] = []
    inEveryOrder(play, (result) => {
      expect(deciders(result)).toEqual([[0]])
      expect(result.output).toEqual(['a', 'cancelled'])
      before.push(result.journal.some((event) => event.type === 'branch.settled' && event.status === 'failed'))
    })
    expect(new Set(before)).toEqual(new Set([true, false]))
  })

  test('at a timeout all that had settled counts: H goes on with [a, cancelled]', () => {
    const join: Join = { policy: { ratio: 1 }, timeoutMs: 50, insufficient: 'resume' }
    const play = playOf(flows, {
      H: forks(['A', 'B'], join, ({ ok, slots, values, extra }) => finish({ ok, seen: seen({ ok, slots, values, extra }) })),
      A: replies(),
      B: replies(),
    })
    const outcomes = new Map<string, unknown>()
    inEveryOrder(play, (result) => {
      const [choice] = result.choices
      expect(result.choices).toHaveLength(1)
      if (choice === undefined || !('join' in choice)) return
      outcomes.set(`${choice.byTimeout ? 'timeout' : 'in time'} ${choice.decidedBy.join()}`, result.output)
    })
    expect(Object.fromEntries(outcomes)).toEqual({
      'in time 0,1': { ok: true, seen: ['a', 'b'] },
      'timeout 0': { ok: false, seen: ['a', 'cancelled'] },
      'timeout 1': { ok: false, seen: ['cancelled', 'b'] },
      'timeout ': { ok: false, seen: ['cancelled', 'cancelled'] },
    })
  })

  test('under any, if A decided the output is that of H alone, whatever was finished below B', () => {
    const play = playOf(['Start->H->End', 'H<->A|B', 'B<->X', 'X->End'], {
      H: forks(['A', 'B'], 'any'),
      A: replies(),
      B: forks(['X', 'X'], 'all', () => reply('b')),
      X: finishes('x'),
    })
    const finished = new Set<number>()
    inEveryOrder(play, (result) => {
      const [by] = deciders(result)
      if (by?.includes(0) !== true) return
      expect(by).toEqual([0])
      expect(result).toMatchObject({ status: 'succeeded', output: ['a', 'cancelled'] })
      expect(joinsOf(result, 'H').map((join) => join.extra)).toEqual([[]])
      finished.add(result.journal.filter((event) => event.type === 'branch.settled' && event.status === 'escaped').length)
    })
    expect(finished).toEqual(new Set([0, 1]))
  })

  test('the merged answer of C, coming before that of D, decides with slots 0 and 1, and slot 2 is cancelled', () => {
    const play = playOf(
      ['Start->H->End', 'H->A|B|D', 'A|B->C', 'C|D->H'],
      { H: forks(['A', 'B', 'D'], { quorum: 2 }), A: passes('C'), B: passes('C'), C: replies(), D: replies() },
      { joins: ['C'] },
    )
    const outputs = new Map<string, unknown>()
    inEveryOrder(play, (result) => {
      expect(requestsOf(result, 'C')).toEqual([['a', 'b']])
      outputs.set(deciders(result).join(), result.output)
    })
    // If D comes first it is one of two; the answer of C then settles two more at once.
    expect(Object.fromEntries(outputs)).toEqual({ '0,1': ['c', 'c', 'cancelled'], '0,1,2': ['c', 'c', 'd'] })
  })

  test('the turns of a run are limited for the run: it fails with LIMIT_TURNS and no branch is blamed', () => {
    const play = playOf(
      ['Start->H->End', 'H<->A|B', 'A<->X'],
      { H: forks(['A', 'B'], 'settled'), A: forks(['X'], 'all', () => reply('a')), B: replies(), X: replies() },
      { rules: ['max_turns(4)'] },
    )
    inEveryOrder(play, (result) => {
      expect(result.status).toBe('failed')
      expect(result.error).toMatchObject({ code: 'LIMIT_TURNS', at: {} })
      expect(result.error).not.toHaveProperty('cause')
      expect(turnsOf(result, 'H')).toHaveLength(1)
      expect(result.state.turnsUsed).toBeLessThanOrEqual(4)
      expect(result.journal.some((event) => event.type === 'branch.settled' && event.status === 'failed')).toBe(false)
    })
  })
})

describe('escapes and notifications', () => {
  test('all past M: M has no second turn, and the join of H has slot M escaped with [w, w] beside it', () => {
    const play = playOf(['Start->H->End', 'H<->M', 'M<->W', 'W->H'], {
      H: forks(['M'], 'all', (join) => finish({ slots: seen(join), extra: join.extra })),
      M: (turn) => (turn.message.kind === 'join' ? reply('m') : fork(['W', 'W'])),
      W: passes('H', 'w'),
    })
    const explored = inEveryOrder(play, (result) => {
      expect(turnsOf(result, 'M')).toHaveLength(1)
      expect(result.output).toEqual({
        slots: ['escaped'],
        extra: [
          { by: 'W', value: 'w' },
          { by: 'W', value: 'w' },
        ],
      })
    })
    expect(explored).toMatchObject({ orders: 2, ends: 1 })
  })

  test('the run ends after the notified N has, and what N finishes with is no output', () => {
    const play = playOf(['Start->H->End', 'H~>N', 'N->End'], {
      H: ({ message }) => (message.kind === 'join' ? finish('h') : invoke('N', 'news')),
      N: finishes(),
    })
    const explored = inEveryOrder(play, (result) => {
      expect(result).toMatchObject({ status: 'succeeded', output: 'h' })
      expect(turnsOf(result, 'N')).toMatchObject([{ message: { kind: 'request', from: 'H', value: 'news' } }])
      const completed = result.journal.filter((event) => event.type === 'turn.completed').map((event) => event.agent)
      expect(completed).toContain('N')
      expect(joinsOf(result, 'H')).toMatchObject([{ ok: true, slots: [{ status: 'arrived', by: 'N' }], extra: [] }])
    })
    expect(explored.orders).toBe(2)
  })
})
