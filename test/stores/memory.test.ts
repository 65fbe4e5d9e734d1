import { execFileSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { checkStore } from 'tutti/testing'
import { expect, test, vi } from 'vitest'
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

test('a claim, the marks of one run and the deletion of a run look at no run that they are not about', async () => {
  const store = memoryStore()
  const worker = await store.join({ nonce: 'w' })
  const created = (run: string, more: Partial<Append> = {}): Append => ({
    run,
    create: { definition: 'd', version: '1', tags: {} },
    expect: 0,
    head: 1,
    by: worker,
    rows: [{ seq: 1, n: 1, body: '[]' }],
    at: 1,
    marks: [{ kind: 'ask', key: run, body: '{}' }],
    ...more,
  })
  const key = (run: string) => ({ puts: [{ kind: 'start', key: run, expect: 0, body: run }] })
  const waits = Array.from({ length: 500 }, (_, n) => created(`waits${n}`, key(`waits${n}`)))
  const ended = Array.from({ length: 5 }, (_, n) => created(`over${n}`, { ended: true, ...key(`over${n}`) }))
  await store.commit([...waits, ...ended, created('late', { wake: 50 }), created('due', { wake: 1 })])
  /** How many there are in each of the collections that are gone through meanwhile. */
  const sizes: number[] = []
  const { values, [Symbol.iterator]: each } = Map.prototype
  const spies = [
    vi.spyOn(Map.prototype, 'values').mockImplementation(function (this: Map<unknown, unknown>) {
      sizes.push(this.size)
      return values.call(this)
    }),
    vi.spyOn(Map.prototype, Symbol.iterator).mockImplementation(function (this: Map<unknown, unknown>) {
      sizes.push(this.size)
      return each.call(this)
    }),
  ]
  const asked = { worker, definitions: [{ name: 'd', versions: ['1'] }], limit: 9 }
  const first = store.claim({ ...asked, now: 9 })
  const marks = store.marks({ kind: 'ask', run: 'waits7' })
  const gone = sizes.length
  const deleted = store.gc({ endedBefore: 2, limit: 10 })
  for (const spy of spies) spy.mockRestore()
  expect((await first).rows.map(({ id }) => id)).toEqual(['due'])
  expect((await first).nextWake).toBe(50)
  expect((await marks).map(({ run }) => run)).toEqual(['waits7'])
  expect(await deleted).toBe(5)
  expect(sizes.slice(0, gone).filter((size) => size > 100)).toEqual([])
  // To find what has ended all are gone through, once for each time that something was found, and not for each that is deleted.
  expect(sizes.slice(gone).filter((size) => size > 100).length).toBeLessThanOrEqual(2)
  expect(await store.record('start', 'over0')).toBeNull()
  expect(await store.record('start', 'waits0')).toMatchObject({ revision: 1 })
})
