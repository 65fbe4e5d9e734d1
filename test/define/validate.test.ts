import { describe, expect, test } from 'vitest'
import { TuttiError } from '../../src/define/tutti-error.js'
import { autoJoins, nameProblem, validate } from '../../src/kernel/validate.js'
import { readFlows } from '../../src/define/flows.js'
import { codesOf, idle, loosely, problemsOf } from './problems-of.js'

const codes = (flows: readonly string[], agents: Record<string, unknown>, more: Record<string, unknown> = {}): string[] =>
  codesOf(() => loosely({ name: 't', flows, agents, ...more }))

describe('a topology is refused', () => {
  test('with no edge out of Start', () => expect(codes(['A -> End'], idle('A'))).toEqual(['NO_START flows']))
  test('with a place written small, and it is said how that is written', () => {
    const problems = problemsOf(() => loosely({ name: 't', flows: ['start -> A -> end'], agents: idle('A') }))
    expect(problems.filter(({ code }) => code === 'UNKNOWN_NODE').map(({ message }) => message)).toEqual([
      'there is no agent start; add it to `agents` (did you mean Start?)',
      'there is no agent end; add it to `agents` (did you mean End?)',
    ])
  })
  test('with an edge into Start', () => {
    expect(codes(['Start -> A -> End', 'A -> Start'], idle('A'))).toEqual(['EDGE_INTO_START A -> Start'])
  })
  test('with an edge out of End', () => {
    expect(codes(['Start -> A -> End', 'End -> A'], idle('A'))).toEqual(['EDGE_OUT_OF_END End -> A'])
  })
  test('with an edge out of User', () => {
    expect(codes(['Start -> A -> End', 'A <-> User'], idle('A'))).toEqual(['EDGE_OUT_OF_USER A <-> User'])
  })
  test('when Start leads to End or User, or notifies', () => {
    expect(codes(['Start -> A -> End', 'Start -> End', 'Start -> User', 'Start ~> B', 'B -> End'], idle('A', 'B'))).toEqual([
      'START_TO_END Start -> End',
      'START_TO_USER Start -> User',
      'START_NOTIFIES Start ~> B',
    ])
  })
  test('when End or User is notified', () => {
    expect(codes(['Start -> A -> End', 'B ~> End', 'A ~> User', 'A -> B', 'B -> A'], idle('A', 'B'))).toEqual([
      'NOTIFY_RESERVED B ~> End',
      'NOTIFY_RESERVED A ~> User',
    ])
  })
  test('when an edge names a node that is no agent, once, with a guess', () => {
    const problems = problemsOf(() => loosely({ name: 't', flows: ['Start -> A -> End', 'A <-> Writr'], agents: idle('A', 'Writer') }))
    expect(problems.map(({ code, where }) => `${code} ${where}`)).toEqual(['UNKNOWN_NODE A <-> Writr', 'AGENT_IN_NO_FLOW agents.Writer'])
    expect(problems[0]?.message).toContain('did you mean Writer?')
  })
  test('when the same edge is there twice, or once with -> and once with ~>', () => {
    expect(codes(['Start -> A -> End', 'A <-> B', 'B -> A'], idle('A', 'B'))).toEqual(['DUPLICATE_EDGE B -> A'])
    expect(codes(['Start -> A -> End', 'A <-> B', 'A ~> B'], idle('A', 'B'))).toEqual(['DUPLICATE_EDGE A ~> B'])
    expect(codes(['Start -> A -> End', 'A <-> B | B'], idle('A', 'B'))).toEqual([
      'DUPLICATE_EDGE A <-> B | B',
      'DUPLICATE_EDGE A <-> B | B',
    ])
  })
  test('when no path leads from Start to an agent', () => {
    expect(codes(['Start -> A -> End', 'B -> A', 'C -> B'], idle('A', 'B', 'C'))).toEqual(['UNREACHABLE B', 'UNREACHABLE C'])
  })
  test('when an agent can neither finish nor ask nor answer', () => {
    const [problem] = problemsOf(() => loosely({ name: 't', flows: ['Start -> H -> End', 'H -> A'], agents: idle('H', 'A') }))
    expect(problem).toMatchObject({ code: 'NO_WAY_OUT', where: 'A' })
    expect(problem?.message).toContain("add 'A -> End', or 'A -> H' to answer its caller")
  })
  test('when all that an agent can do is notify', () => {
    expect(codes(['Start -> A', 'A ~> Log', 'Log -> End'], idle('A', 'Log'))).toEqual(['NO_WAY_OUT A'])
  })
  test('when agents can only call each other, named once with the way round', () => {
    expect(codes(['Start -> A -> B -> C -> A'], idle('A', 'B', 'C'))).toEqual(['CYCLE_WITHOUT_EXIT A -> B -> C -> A'])
    expect(codes(['Start -> A', 'A -> A'], idle('A'))).toEqual(['CYCLE_WITHOUT_EXIT A -> A'])
    expect(codes(['Start -> X -> A', 'A <-> B'], idle('X', 'A', 'B'))).toEqual(['NO_WAY_OUT X', 'CYCLE_WITHOUT_EXIT A -> B -> A'])
  })
  test('with joins at what is no agent', () => {
    expect(codes(['Start -> A -> End'], idle('A'), { joins: ['X', 'End'], rules: ['join(Y)'] })).toEqual([
      'UNKNOWN_JOIN joins',
      'UNKNOWN_JOIN joins',
      'UNKNOWN_JOIN join(Y)',
    ])
  })
  test('when handlers at a rendezvous have no merged', () => {
    const flows = ['Start -> H -> A | B -> C -> End', 'H -> End']
    const C = { act: { request: () => null } }
    expect(codes(flows, { ...idle('H', 'A', 'B'), C }, { joins: ['C'] })).toEqual(['MERGED_MISSING agents.C.act'])
    expect(codes(flows, { ...idle('H', 'A', 'B'), C }, { joins: 'auto' })).toEqual(['MERGED_MISSING agents.C.act'])
    expect(codes(flows, { ...idle('H', 'A', 'B'), C }, { joins: ['C'], rules: ['join(C)'] })).toEqual(['MERGED_MISSING agents.C.act'])
    expect(codes(flows, { ...idle('H', 'A', 'B'), C })).toEqual([])
  })
  test('with all problems at once, each with its place, and the message lists them', () => {
    const define = () =>
      loosely({
        name: 'much',
        flows: ['Start -> A', 'A -> Start', 'A -> ', 'End -> A', 'A -> B', 'A -> B', 'C -> A', 'A -> Ghost', 'A -> End'],
        agents: { A: { act: {}, retry: { attempts: 0 } }, B: () => null, C: 5, 'no name': () => null },
        rules: ['timeout(x)', 'fly(3)'],
        limits: { maxTurns: -1 },
        joins: ['Nobody'],
        state: () => ({ seen: [] }),
        colour: 'blue',
      })
    const found = codesOf(define)
    expect(found.sort()).toEqual(
      [
        'AGENT_IN_NO_FLOW agents.no name',
        'BAD_AGENT agents.C',
        'BAD_FLOW A -> ',
        'BAD_LIMIT limits.maxTurns',
        'BAD_NAME agents.no name',
        'BAD_OPTION agents.A.retry.attempts',
        'BAD_RULE timeout(x)',
        'DUPLICATE_EDGE A -> B',
        'EDGE_INTO_START A -> Start',
        'EDGE_OUT_OF_END End -> A',
        'NO_WAY_OUT B',
        'REQUEST_MISSING agents.A.act.request',
        'STATE_WITHOUT_MERGE merge.seen',
        'UNKNOWN_JOIN joins',
        'UNKNOWN_NODE A -> Ghost',
        'UNKNOWN_OPTION colour',
        'UNKNOWN_RULE fly(3)',
        'UNREACHABLE C',
      ].sort(),
    )
    try {
      define()
      expect.unreachable()
    } catch (error) {
      expect(TuttiError.is(error, 'INVALID_TOPOLOGY')).toBe(true)
      for (const { code, where, message } of (error as TuttiError).problems ?? [])
        expect((error as Error).message).toContain(`${code} at ${where}: ${message}`)
    }
  })
})

describe('a name', () => {
  test.each(['A', 'agentB2', '_x', 'two-words', 'Ägypten', '代理', '2nd', 'toString'])('%s is fine', (name) =>
    expect(nameProblem(name)).toBeNull(),
  )
  test.each(['', '42', '٣', 'a b', 'a.b', '-a', 'a|b', 'a>b', '__proto__', 'constructor', 'prototype', 'x'.repeat(65), null, 7])(
    '%j is refused',
    (name) => expect(nameProblem(name)).toBeTypeOf('string'),
  )
  test('that is reserved is refused for an agent', () => {
    expect(codes(['Start -> A -> End'], idle('A', 'User'))).toEqual(['RESERVED_NAME agents.User'])
  })
  test('that is refused for an agent is refused in a flow, once for each place', () => {
    expect(codes(['Start -> 42 -> End'], idle('42'))).toEqual(['BAD_NAME agents.42'])
    expect(codes(['Start -> A -> End', 'A -> x y', 'x y -> End'], idle('A'))).toEqual(['BAD_NAME A -> x y'])
  })
})

describe('a way out is', () => {
  test('a path to End', () => expect(codes(['Start -> A -> B -> C -> End'], idle('A', 'B', 'C'))).toEqual([]))
  test('a path to User', () => expect(codes(['Start -> A -> B -> User'], idle('A', 'B'))).toEqual([]))
  test('a path back to an agent that waits and has one itself', () => {
    expect(codes(['Start -> H -> End', 'H -> A -> B -> H'], idle('H', 'A', 'B'))).toEqual([])
  })
})

describe('hints', () => {
  const hints = (flows: readonly string[], agents: Record<string, unknown>, more: Record<string, unknown> = {}): string[] =>
    loosely({ name: 't', flows, agents, ...more }).hints.map(({ code, where }) => `${code} ${where}`)

  test('name a node where branches of a fork could meet, until it is in joins', () => {
    const flows = ['Start -> H -> A | B -> C -> End']
    expect(hints(flows, idle('H', 'A', 'B', 'C'))).toEqual(['COULD_MEET C'])
    expect(hints(flows, idle('H', 'A', 'B', 'C'), { joins: ['C'] })).toEqual([])
    expect(hints(flows, idle('H', 'A', 'B', 'C'), { rules: ['join(C)'] })).toEqual([])
    expect(hints(flows, idle('H', 'A', 'B', 'C'), { joins: 'auto' })).toEqual([])
  })
  test('see branches of several starts', () => {
    expect(hints(['Start -> A | B -> C -> End'], idle('A', 'B', 'C'))).toEqual(['COULD_MEET C'])
  })
  test('see a meeting several edges away', () => {
    expect(hints(['Start -> H -> A | B', 'A -> X -> C', 'B -> Y -> C', 'C -> End'], idle('H', 'A', 'B', 'C', 'X', 'Y'))).toEqual([
      'COULD_MEET C',
    ])
  })
  test('say nothing of a helper that two agents call, of replies, or of ways that never met', () => {
    expect(hints(['Start -> H -> End', 'H <-> A | B', 'A | B <-> Helper'], idle('H', 'A', 'B', 'Helper'))).toEqual([])
    expect(hints(['Start -> O -> End', 'O -> A | B | C', 'C -> D', 'A | B | D -> O'], idle('O', 'A', 'B', 'C', 'D'))).toEqual([])
    expect(hints(['Start -> A -> B -> End', 'B -> A'], idle('A', 'B'))).toEqual([])
  })
  test('name handlers whose asks or notifications would be rejected', () => {
    const A = { act: { request: () => null } }
    expect(hints(['Start -> A -> End | User', 'A ~> Log', 'Log -> End'], { A, ...idle('Log') })).toEqual([
      'ASK_WITHOUT_ANSWER agents.A.act',
      'NOTIFY_WITHOUT_JOIN agents.A.act',
    ])
  })
})

test("joins: 'auto' takes nodes with several ways in, not counting pairs and notify edges", () => {
  const auto = (...flows: readonly string[]): string[] => autoJoins(readFlows(flows).edges)
  expect(auto('Start -> H -> A | B -> C -> End')).toEqual(['C'])
  expect(auto('Start -> H', 'H <-> A | B', 'A | B -> End')).toEqual([])
  expect(auto('Start -> A -> C -> End', 'A ~> B', 'B -> End', 'B ~> C')).toEqual([])
  expect(auto('Start -> H -> A | B', 'A -> D | C', 'B -> D | C', 'D -> C', 'C -> End')).toEqual(['D', 'C'])
})

test('validation is pure: the same data gives the same verdict', () => {
  const raw = {
    agents: [{ name: 'A', takes: ['request'] as const }],
    edges: readFlows(['Start -> A', 'A -> B']).edges,
    joins: [],
    state: null,
    mergeKeys: [],
  }
  expect(validate(raw)).toEqual(validate(raw))
})
