/** What a worker is given that asks for one run and those below it: the command line does. */
import { afterAll, expect, test } from 'vitest'
import type { Store } from '../../src/engine/store.js'
import { memoryStore } from '../../src/stores/memory.js'
import { sqliteStore } from '../../src/stores/sqlite.js'
import { commit, executable, starting } from '../../src/testing/store-check.js'
import { Folder } from './folder.js'

const folder = new Folder()
afterAll(() => folder[Symbol.dispose]())

const stores: readonly (readonly [string, () => Store | Promise<Store>])[] = [
  ['memory', memoryStore],
  ['SQLite', () => sqliteStore(folder.file(), { durability: 'process' })],
]

test.each(stores)('only it and what is due below it, and when the next of those is due: %s', async (_, make) => {
  const store = await make()
  const by = await store.join({ nonce: 'n' })
  const ids = ['a', 'a:step', 'a:step:0', 'a:late', 'a-b', 'a0', 'ab', 'a:ended', 'a:other', 'b', 'b:a']
  const other = { create: { definition: 'other', version: '1', tags: {} } }
  await commit(
    store,
    ...ids.map((id) =>
      starting(id, by, { wake: id === 'a:late' ? 50 : 1, ...(id === 'a:ended' && { ended: true }), ...(id === 'a:other' && other) }),
    ),
  )
  const asked = { worker: by, definitions: executable, now: 9, limit: 9 }
  const { rows, nextWake } = await store.claim({ ...asked, only: 'a' })
  expect(rows.map(({ id }) => id).toSorted()).toEqual(['a', 'a:step', 'a:step:0'])
  expect(nextWake).toBe(50)
  expect(await store.claim({ ...asked, only: 'a' })).toEqual({ rows: [], nextWake: 50 })
  expect(await store.claim({ ...asked, only: 'none' })).toEqual({ rows: [], nextWake: null })
  const left = await store.claim(asked)
  expect(left.rows.map(({ id }) => id).toSorted()).toEqual(['a-b', 'a0', 'ab', 'b', 'b:a'])
  await store.close()
})
