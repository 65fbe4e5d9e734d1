import { expect, test } from 'vitest'
import { idle, loosely } from './problems-of.js'

// The topologies that the rules of a run are explained with: all of them are valid, and the hint is given exactly where a merge is missing.
test.each([
  [['Start -> O -> End', 'O -> A | B | C', 'C -> D', 'A | B | D -> O'], [], []],
  [['Start -> H', 'H -> A | B', 'A | B -> C', 'C -> End'], ['C'], []],
  [['Start -> H', 'H -> A | B', 'A | B -> C', 'C -> End'], [], ['C']],
  [['Start -> H -> End', 'H -> A | B', 'A -> C', 'B -> D', 'D -> C', 'C -> H'], ['C', 'D'], []],
  [['Start -> H -> End', 'H -> A | B', 'A -> C', 'B <-> X', 'B -> C', 'C -> H'], ['C'], []],
  [['Start -> H -> End', 'H -> A | B | E', 'A -> D', 'E -> D | H', 'B -> C', 'D -> C', 'C -> H'], ['C', 'D'], []],
  [['Start -> H -> End', 'H -> A | B', 'A -> C', 'B -> D', 'C <-> D', 'C -> H', 'D -> H'], ['C', 'D'], []],
  [['Start -> H -> End', 'H <-> A | B'], [], []],
  [['Start -> H -> End', 'H <-> A | B', 'B <-> X', 'X -> End'], [], []],
  [['Start -> H -> End', 'H <-> M', 'M <-> W', 'W -> H'], [], []],
  [['Start -> H -> End', 'H <-> C'], ['C'], []],
  [['Start -> H -> End', 'H -> A | B | D', 'A | B -> C', 'C | D -> H'], ['C'], []],
  [['Start -> H -> End', 'H ~> N', 'N -> End'], [], []],
])('%j with joins %j is valid, and hints at %j', (flows, joins, hinted) => {
  const names = new Set(flows.flatMap((flow) => flow.match(/\w+/g) ?? []).filter((name) => !['Start', 'End', 'User'].includes(name)))
  const made = loosely({ name: 't', flows, joins, agents: idle(...names) })
  expect(made.hints.map(({ where }) => where)).toEqual(hinted)
})
