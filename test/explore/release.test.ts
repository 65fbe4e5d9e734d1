/** A whole program: a child run of models, parallel items, a person, and undoing when publishing fails. */
import { explore } from 'tutti/testing'
import { expect, test, vi } from 'vitest'
import { release, type Shop, shop } from '../api/programs/4-release.js'

// Many schedules are a few seconds, and more on a machine that is busy.
vi.setConfig({ testTimeout: 90_000 })

const input = { tag: 'v1', changes: [{ id: '1', diff: '+' }], targets: ['linux' as const, 'mac' as const] }

function shopThat(publishes: boolean) {
  const there = new Set<string>()
  const made: Shop = {
    compile: async (target) => `image of ${target}`,
    upload: async (image) => {
      there.add(image)
      return image
    },
    remove: async (artifact) => void there.delete(artifact),
    publish: async (artifacts) => {
      if (!publishes) throw new Error('the registry is down')
      return artifacts
    },
    post: async () => {},
  }
  return { resources: () => [shop.of(made)], there }
}

test('a release comes out the same in the orders that are played, with a crash at any time', async () => {
  const { resources } = shopThat(true)
  const checked = await explore(release, { input, resources, answers: () => ({ go: true }), schedules: 60, faults: ['crash'] })
  expect(checked.independent, checked.text()).toBe(true)
  expect(checked.outcomes[0]?.result).toMatchObject({
    status: 'succeeded',
    output: { published: ['image of linux', 'image of mac'], announced: true },
  })
})

test('a release that can not be published is undone in every order that is played, and nothing is left', async () => {
  let made = shopThat(false)
  const resources = () => {
    made = shopThat(false)
    return made.resources()
  }
  const observe = () => [...made.there]
  const checked = await explore(release, { input, resources, observe, answers: () => ({ go: true }), schedules: 40 })
  expect(checked.independent, checked.text()).toBe(true)
  expect(checked.outcomes[0]?.result).toMatchObject({ status: 'failed', rollback: 'complete' })
})
