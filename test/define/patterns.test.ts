import { describe, expect, expectTypeOf, test } from 'vitest'
import type { Pattern } from '../../src/define/edges.js'
import { readFlows } from '../../src/define/flows.js'
import { patterns } from '../../src/define/patterns.js'
import { codesOf, idle, loosely } from './problems-of.js'

/** The same edges, whatever their order, and a topology that is accepted. */
function expectFlows(pattern: Pattern<any>, flows: readonly string[]): void {
  const arrows = (list: readonly { from: string; to: string }[]): string[] => list.map(({ from, to }) => `${from} -> ${to}`).sort()
  expect(arrows(pattern.edges)).toEqual(arrows(readFlows(flows).edges))
  const names = new Set(pattern.edges.flatMap(({ from, to }) => [from, to]).filter((name) => !['Start', 'End', 'User'].includes(name)))
  expect(codesOf(() => loosely({ name: 'p', flows: pattern, agents: idle(...names) }))).toEqual([])
  expect(Object.isFrozen(pattern) && Object.isFrozen(pattern.edges) && pattern.edges.every(Object.isFrozen)).toBe(true)
}

describe('a pattern is its edges', () => {
  test('hubAndSpoke: the hub calls, hears and finishes', () => {
    expectFlows(patterns.hubAndSpoke({ hub: 'H', spokes: ['A', 'B'] }), ['Start -> H -> End', 'H <-> A | B'])
  })
  test('star: spokes may finish too', () => {
    expectFlows(patterns.star({ hub: 'H', spokes: ['A', 'B'] }), ['Start -> H -> End', 'H <-> A | B', 'A | B -> End'])
  })
  test('hierarchy: each speaks with the one above and those below, the top finishes', () => {
    const tree = { Chief: { Left: { L1: {}, L2: {} }, Right: {} } }
    expectFlows(patterns.hierarchy(tree), ['Start -> Chief -> End', 'Chief <-> Left | Right', 'Left <-> L1 | L2'])
  })
  test('hierarchy: there may be several tops, and one agent may serve two of them', () => {
    const tree = { A: { Helper: { Tool: {} } }, B: { Helper: { Tool: {} } } }
    expectFlows(patterns.hierarchy(tree), ['Start -> A | B -> End', 'A | B <-> Helper', 'Helper <-> Tool'])
  })
  test('pipeline: one after the other', () => {
    expectFlows(patterns.pipeline(['A', 'B', 'C']), ['Start -> A -> B -> C -> End'])
  })
  test('mesh: everyone calls everyone and may finish, one is started', () => {
    expectFlows(patterns.mesh({ entry: 'B', members: ['A', 'B', 'C'] }), ['Start -> B', 'A <-> B | C', 'B <-> C', 'A | B | C -> End'])
  })
  test('ring: each hands on to the next and may finish, the first is started', () => {
    expectFlows(patterns.ring(['A', 'B', 'C']), ['Start -> A -> B -> C -> A', 'A | B | C -> End'])
    expectFlows(patterns.ring(['A', 'B']), ['Start -> A <-> B', 'A | B -> End'])
    expectFlows(patterns.ring(['A']), ['Start -> A -> End'])
  })
  test('broadcast: one calls many, each of whom finishes', () => {
    expectFlows(patterns.broadcast({ from: 'H', to: ['A', 'B'] }), ['Start -> H -> A | B -> End', 'H -> End'])
  })
})

test('the names of a tree are known as types, however deep', () => {
  const pattern = patterns.hierarchy({ Chief: { Left: { L1: { Deep: {} }, L2: {} }, Right: {} } })
  type Agents = Exclude<NonNullable<(typeof pattern)['~edges']>[0], 'Start'>
  expectTypeOf<Agents>().toEqualTypeOf<'Chief' | 'Left' | 'Right' | 'L1' | 'L2' | 'Deep'>()
})

test('a pattern of nobody is refused for want of a start', () => {
  expect(codesOf(() => loosely({ name: 'p', flows: patterns.pipeline([]), agents: {} }))).toEqual(['NO_START flows'])
  expect(codesOf(() => loosely({ name: 'p', flows: patterns.ring([]), agents: {} }))).toEqual(['NO_START flows'])
})

test('a member named twice is found by the edges it doubles', () => {
  const codes = codesOf(() => loosely({ name: 'p', flows: patterns.hubAndSpoke({ hub: 'H', spokes: ['A', 'A'] }), agents: idle('H', 'A') }))
  expect(codes).toEqual(['DUPLICATE_EDGE H -> A', 'DUPLICATE_EDGE A -> H'])
})

test.each<[string, () => unknown, RegExp]>([
  ['nothing', () => patterns.hubAndSpoke(undefined as never), /hubAndSpoke takes \{ hub, spokes \}, not undefined/],
  ['something missing', () => patterns.star({ hub: 'H' } as never), /star: it needs `spokes`/],
  ['something that would be passed over', () => patterns.mesh({ entry: 'A', members: ['A'], rounds: 2 } as never), /mesh: .*'rounds'/],
  ['no list', () => patterns.broadcast({ from: 'A', to: 'B' as never }), /broadcast: to is a list of strings, not 'B'/],
  ['a text for a list', () => patterns.pipeline('AB' as never), /pipeline takes a list of strings, the names, not 'AB'/],
  ['names that are none', () => patterns.ring([1 as never]), /ring takes a list of strings/],
  ['a tree with a list in it', () => patterns.hierarchy({ Chief: ['Left'] } as never), /hierarchy takes a tree of names/],
])('a pattern that is given %s says so', (_, make, says) => expect(make).toThrow(says))
