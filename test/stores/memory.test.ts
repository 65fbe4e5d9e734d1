import { execFileSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { checkStore } from 'tutti/testing'
import { expect, test } from 'vitest'
import type { Append } from '../../src/engine/store.js'
import { memoryStore } from '../../src/stores/memory.js'

// With a name and a way to make one, it goes to the runner that calls.
checkStore('in memory, made anew', async () => memoryStore())

// One store in memory is shared by handing it around: its second handle is itself.
let store = memoryStore()
checkStore('in memory', async () => (store = memoryStore()), { again: async () => store })

test('a store is checked under node:test as it is here', () => {
  const file = fileURLToPath(new URL('./children/under-node-test.js', import.meta.url))
  const said = execFileSync(process.execPath, ['--test', '--test-reporter=tap', file], { encoding: 'utf8' })
  expect(said).toMatch(/# Subtest: the store in memory\n/)
  expect(said).toMatch(/# pass [1-9]\d+\n# fail 0\n/)
})

test('what lies below one run is found without a look at all others, and is gone with what gc deletes', async () => {
  const store = memoryStore()
  const worker = await store.join({ nonce: 'w' })
  const created = (run: string, ended = false): Append => ({
    run,
    create: { definition: 'd', version: '1', tags: {} },
    expect: 0,
    head: 1,
    by: worker,
    rows: [{ seq: 1, n: 1, body: '[]' }],
    at: 1,
    ended,
  })
  const others = Array.from({ length: 500 }, (_, n) => [created(`r${n}`), created(`r${n}:s`)]).flat()
  await store.commit([...others, created('r7:s:undo'), created('r7:t', true), created('e', true), created('e:s', true)])
  let looks = 0
  const below = async (id: string): Promise<string[]> => {
    const filter = {
      limit: Number.POSITIVE_INFINITY,
      get prefix(): string {
        looks++
        return `${id}:`
      },
    }
    return (await store.list(filter)).map((row) => row.id)
  }
  expect(await below('r7')).toEqual(['r7:t', 'r7:s:undo', 'r7:s'])
  expect(await below('r7:s')).toEqual(['r7:s:undo'])
  expect(await below('none')).toEqual([])
  expect(looks).toBeLessThan(50)
  expect(await below('e')).toEqual(['e:s'])
  expect(await store.gc({ endedBefore: 2, limit: 10 })).toBe(2)
  expect(await below('e')).toEqual([])
  expect(await below('r7')).toEqual(['r7:t', 'r7:s:undo', 'r7:s'])
})
