import type { Definition } from 'tutti'
import { open } from 'tutti'
import type { Exploration } from 'tutti/testing'
import { explore } from 'tutti/testing'
import { describe, expect, test, vi } from 'vitest'
import * as context from '../planted/context.js'
import { counting } from '../planted/counter.js'
import * as identity from '../planted/identity.js'
import * as resumes from '../planted/resumes.js'
import * as starvation from '../planted/starvation.js'
import { together } from '../planted/together.js'

// Many schedules are a few seconds, and more on a machine that is busy.
vi.setConfig({ testTimeout: 90_000 })

/** How many deviations from first-come order a token stands for. */
const deviations = (token: string): number => (token === 'first' ? 0 : token.split('.').length)

function expectExplained(found: Exploration, kind: string): void {
  expect(found.independent, found.text()).toBe(false)
  const { divergence } = found
  expect(divergence?.kind).toBe(kind)
  expect(deviations(divergence?.a ?? '') + deviations(divergence?.b ?? '')).toBeLessThanOrEqual(1)
  for (const label of divergence?.swap ?? []) expect(divergence?.explain).toContain(label)
}

async function expectProven(definition: () => Definition<any>, options: object = {}): Promise<void> {
  const checked = await explore(definition, { schedules: 'all', ...options })
  expect(checked, checked.text()).toMatchObject({ independent: true, exhaustive: true })
}

describe('the three bugs that Tutti exists for, planted in user code', () => {
  test('identity that crosses an await is found, made small and explained', async () => {
    const found = await explore(() => identity.planted({ equal: false }))
    expectExplained(found, 'output')
    expect(found.divergence?.swap.join()).toMatch(/Poet|Critic/)
  })

  test('mixed-up identity is found where siblings have equal edges', async () => {
    const found = await explore(() => identity.planted({ equal: true }))
    expectExplained(found, 'output')
    expect(found.divergence?.explain).toMatch(/as: "(Poet|Critic)"/)
  })

  test('a context that parallel steps share is found, made small and explained', async () => {
    expectExplained(await explore(context.planted), 'output')
  })

  test('resumes that look before they write are found, made small and explained', async () => {
    const found = await explore(resumes.planted, { resources: resumes.resources })
    expectExplained(found, 'effect-count')
    expect(found.divergence?.explain).toContain('registry.run("Writer")')
  })

  test('a context that is shared while somebody may cancel is made as small, next to the order in which nobody does', async () => {
    for (const strategy of ['auto', 'random', 'pct'] as const) {
      const found = await explore(context.planted, { steering: ['cancel'], strategy })
      expect(found.independent, found.text()).toBe(false)
      expect(deviations(found.divergence?.a ?? '') + deviations(found.divergence?.b ?? ''), found.text()).toBeLessThanOrEqual(3)
    }
  })

  test('the corrected copies come out the same in every order', async () => {
    await expectProven(() => identity.corrected({ equal: false }))
    await expectProven(() => identity.corrected({ equal: true }))
    await expectProven(context.corrected)
  })

  test('of corrected resumes one wins in every order', async () => {
    await expectProven(resumes.corrected, { resources: resumes.resources })
  })
})

describe('what is no race is not reported', () => {
  test('three parallel steps that add to a variable at once', async () => {
    await expectProven(() => counting('at once'))
  })

  test('but the same across an await of a plain promise is, and across a step', async () => {
    expectExplained(await explore(() => counting('across an await')), 'output')
    expectExplained(await explore(() => counting('across a step')), 'output')
  })
})

describe('what the engine lets go on together is found where it crosses an await of a plain promise', () => {
  for (const [name, definition] of Object.entries(together))
    test(name, async () => {
      const tutti = await open({ store: 'memory:' })
      const output = await tutti.execute(definition())
      await tutti.close()
      const found = await explore(definition)
      expectExplained(found, 'output')
      expect(found.outcomes.map(({ result }) => result.report.output)).toContainEqual(output)
      expect((await explore(definition, { schedules: 'all' })).independent).toBe(false)
    })
})

test('a slow agent that is starved is found by priorities, where a random walk goes by', async () => {
  const pct = await explore(starvation.planted, {
    strategy: 'pct',
    schedules: 20_000,
    invariants: false,
    resources: starvation.resources,
    bags: ['pages'],
  })
  expect(pct.independent, pct.text()).toBe(false)
  expect(pct.divergence?.explain).toContain('overwrote everything')
  const walks = Number(process.env['TUTTI_WALKS'] ?? 50)
  const random = await explore(starvation.planted, {
    strategy: 'random',
    schedules: walks,
    resources: starvation.resources,
    bags: ['pages'],
  })
  const figure = random.independent ? `not in ${random.schedules}` : `after ${random.schedules}`
  console.log(`starvation: found by PCT after ${pct.schedules} schedules, by a random walk ${figure}`)
})
