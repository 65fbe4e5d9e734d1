import { expect, test } from 'vitest'
import { engineMutants } from './engine-mutants.js'
import { graphMutants, topologyMutants, undoMutants } from './kernel-mutants.js'
import { problemOf } from './mutant.js'
import { userMutants } from './user-mutants.js'

const all = [...topologyMutants, ...undoMutants, ...graphMutants, ...engineMutants]

test('there are at least forty mutants', () => {
  expect(all.length + userMutants.length).toBeGreaterThanOrEqual(40)
})

test('every mutant can still be planted, each under a name of its own', () => {
  expect(all.flatMap((mutant) => problemOf(mutant) ?? [])).toEqual([])
  expect(new Set(all.map(({ name }) => name)).size).toBe(all.length)
})
