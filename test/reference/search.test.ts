import { describe, expect, test } from 'vitest'
import { examples, otherChoice } from './examples.js'
import { playEvery, search } from './search.js'

describe('the examples of the rule book, on the reference, in every order', () => {
  for (const { name, topology, agents, expect: judge } of examples) {
    test(name, () => {
      const act = (owed: Parameters<(typeof agents)[string]>[0]) => (agents[owed.agent] as (typeof agents)[string])(owed)
      const played = playEvery({ topology, input: 'go', act, answer: () => true })
      expect(played.length).toBeGreaterThan(0)
      expect(played.flatMap((one) => one.violations)).toEqual([])
      const verdicts = played.map((one) => judge(one.run))
      expect(verdicts.filter((verdict) => verdict !== null && verdict !== otherChoice)).toEqual([])
      expect(verdicts).toContain(null)
      for (const one of played) {
        const equals = played.filter((other) => other.key === one.key)
        expect(new Set(equals.map((other) => other.report)).size).toBe(1)
      }
    })
  }
})

test('property: for equal choices, nothing that is reported depends on the order', { timeout: 120_000 }, () => {
  const found = search({ from: 1_000_000, topologies: 250, orders: 12 })
  expect(found.divergences).toEqual([])
  expect(found.compared).toBeGreaterThan(found.orders / 2)
})
