/**
 * The race check on Tutti itself: whatever the topology, orders, crashes and timeouts decide nothing but what is labelled as a choice.
 * `TUTTI_EXPLORE=seed,topologies,schedules` plays other and more of them.
 */
import { explore } from 'tutti/testing'
import { expect, test, vi } from 'vitest'
import { examples } from '../reference/examples.js'
import { sample } from '../reference/random.js'
import { definitionOf } from './sampled.js'

// Many schedules are a few seconds, and more on a machine that is busy.
vi.setConfig({ testTimeout: process.env['TUTTI_EXPLORE'] === undefined ? 90_000 : 3_600_000 })

const [seed = 1, topologies = 8, schedules = 16] = (process.env['TUTTI_EXPLORE'] ?? '').split(',').filter(Boolean).map(Number)

test('the examples of the rule book come out the same in every order that is played', async () => {
  let exhaustive = 0
  for (const { name, topology, agents } of examples) {
    const definition = definitionOf(topology, (owed) => agents[owed.agent]?.(owed) ?? { type: 'fail', error: 'nobody' })
    if (definition === null) continue
    const checked = await explore(definition, { schedules, seed })
    expect(checked.independent, `${name}: ${checked.text()}`).toBe(true)
    if (checked.exhaustive) exhaustive++
  }
  expect(exhaustive).toBeGreaterThan(1)
})

test(`property: random topologies from seed ${seed} come out the same for equal choices, under crashes, duplicates and timeouts`, async () => {
  let played = 0
  for (let at = seed; at < seed + topologies; at++) {
    const { topology, input, act, answer } = sample(at)
    const definition = definitionOf(topology, act)
    if (definition === null) continue
    const checked = await explore(definition, {
      input,
      seed: at,
      schedules,
      strategy: at % 2 === 0 ? 'auto' : 'random',
      answers: ({ id, kind }) => answer({ id, kind: kind === 'join' ? 'join' : 'question' }),
      faults: (['crash', 'timeout', 'duplicate', 'lost-ack'] as const).filter((_, index) => ((at >> index) & 1) === 0),
    })
    expect(checked.independent, `TUTTI_EXPLORE=${at},1,${schedules}\n${checked.text()}`).toBe(true)
    played += checked.schedules
  }
  expect(played).toBeGreaterThan(topologies)
})
