import { deepStrictEqual as same } from 'node:assert/strict'
import type { ListFilter, Store } from '../engine/store.js'
import type { StoreCheck } from './store-check.js'
import { adding, commit, joined, starting } from './store-check.js'

const packed = [
  { seq: 1, n: 3, body: '[1,2,3]' },
  { seq: 4, n: 1, body: '[4]' },
  { seq: 5, n: 256, body: '[5,"…",260]' },
  { seq: 261, n: 2, body: '[261,262]' },
]

const idsOf = async (store: Store, filter: Partial<ListFilter>): Promise<string[]> =>
  (await store.list({ limit: 100, ...filter })).map(({ id }) => id)

/** What is found again, and in which order. */
export const readingChecks: readonly StoreCheck[] = [
  {
    promise: 'a run that is not there is loaded as nothing',
    holds: async ({ store }) => same(await store.load('r'), null),
  },
  {
    promise: 'loading after an event gives the rows that hold later ones, also the row in whose middle it is',
    holds: async ({ store }) => {
      const by = await joined(store)
      await commit(store, starting('before', by), starting('r', by, { head: 262, rows: packed }), starting('after', by))
      const from = async (after: number): Promise<number[]> => (await store.load('r', { after }))?.rows.map(({ seq }) => seq) ?? []
      same((await store.load('r'))?.rows, packed)
      same(await from(0), [1, 4, 5, 261])
      same(await from(1), [1, 4, 5, 261])
      same(await from(2), [1, 4, 5, 261])
      same(await from(3), [4, 5, 261])
      same(await from(4), [5, 261])
      same(await from(259), [5, 261])
      same(await from(260), [261])
      same(await from(261), [261])
      same(await from(262), [])
      same(await from(1_000), [])
    },
  },
  {
    promise: 'loading at most so many rows gives the first of them, and the whole head',
    holds: async ({ store }) => {
      const by = await joined(store)
      await commit(store, starting('r', by, { head: 262, rows: packed }))
      const loaded = await store.load('r', { after: 3, limit: 2 })
      same(loaded?.rows, packed.slice(1, 3))
      same(loaded.row.head, 262)
      same((await store.load('r', { limit: 0 }))?.rows, [])
    },
  },
  {
    promise: 'the newest snapshot is loaded where it is asked for, with only the rows after it',
    holds: async ({ store }) => {
      const by = await joined(store)
      const snapshot = { seq: 4, version: '1', body: '{"at":4}' }
      await commit(store, starting('r', by, { head: 262, rows: packed }))
      same((await store.load('r', { snapshot: true }))?.snapshot, null)
      await commit(store, adding('r', by, 262, { head: 262, rows: [], snapshot: { ...snapshot, seq: 3, body: '{"at":3}' } }))
      await commit(store, adding('r', by, 262, { head: 262, rows: [], snapshot }))
      same(await store.load('r', { snapshot: true }), { ...(await store.load('r')), rows: packed.slice(2), snapshot })
      same((await store.load('r', { snapshot: true, after: 262 }))?.rows, [])
      same((await store.load('r', { snapshot: true, after: 2 }))?.rows, packed.slice(2))
      same((await store.load('r'))?.snapshot, null)
      same((await store.load('r'))?.rows, packed)
    },
  },
  {
    promise: 'runs are listed newest first, and the order of the last is the cursor to the next',
    holds: async ({ store }) => {
      const by = await joined(store)
      for (const id of ['a', 'b', 'c', 'd', 'e']) await commit(store, starting(id, by))
      await commit(store, adding('a', by, 1))
      same(await idsOf(store, {}), ['e', 'd', 'c', 'b', 'a'])
      const pages: string[][] = []
      // A cursor that does not go on would lead round for ever.
      for (let before: number | undefined; pages.length < 9; ) {
        const rows = await store.list({ limit: 2, ...(before !== undefined && { before }) })
        if (rows.length === 0) break
        pages.push(rows.map(({ id }) => id))
        before = rows.at(-1)?.order
      }
      same(pages, [['e', 'd'], ['c', 'b'], ['a']])
      same(await store.list({ limit: 0 }), [])
    },
  },
  {
    promise: 'a listed run is what is loaded',
    holds: async ({ store }) => {
      const by = await joined(store)
      await commit(store, starting('r', by, { own: 'take', create: { definition: 'trip', version: '2', tags: { a: 'b' } }, waits: ['x'] }))
      same(await store.list({ limit: 1 }), [(await store.load('r'))?.row])
    },
  },
  {
    promise: 'a listing obeys all of its filters at once, each with the cursor',
    holds: async ({ store }) => {
      const by = await joined(store)
      const status = (index: number): string => ['running', 'paused', 'completed'][index % 3] ?? ''
      const definition = (index: number): string => (index % 2 === 0 ? 'even' : 'odd')
      const tags = (index: number): Record<string, string> => ({ team: index < 12 ? 'red' : 'blue', rest: String(index % 4) })
      await commit(
        store,
        ...Array.from({ length: 24 }, (_, index) =>
          starting(`r${index}`, by, {
            create: { definition: definition(index), version: '1', tags: tags(index) },
            at: index,
            status: status(index),
          }),
        ),
      )
      const cursor = (await store.list({ limit: 100 }))[3]?.order
      const expected = (fits: (index: number) => boolean): string[] =>
        Array.from({ length: 24 }, (_, index) => index)
          .reverse()
          .filter(fits)
          .map((index) => `r${index}`)
      const cases: readonly (readonly [Partial<ListFilter>, (index: number) => boolean])[] = [
        [{ status: ['paused'] }, (i) => i % 3 === 1],
        [{ status: ['paused', 'completed'] }, (i) => i % 3 !== 0],
        [{ status: ['paused', 'completed', 'paused'] }, (i) => i % 3 !== 0],
        [{ status: [] }, () => false],
        [{ definition: 'odd' }, (i) => i % 2 === 1],
        [{ definition: 'none' }, () => false],
        [{ since: 5 }, (i) => i >= 5],
        [{ prefix: 'r1' }, (i) => i === 1 || (i >= 10 && i < 20)],
        [{ prefix: '' }, () => true],
        [{ prefix: 'r1', tags: { team: 'blue', rest: '2' }, status: ['paused', 'completed'] }, (i) => i === 14],
        [{ prefix: 'R1' }, () => false],
        [{ prefix: '1' }, () => false],
        [{ tags: {} }, () => true],
        [{ tags: { team: 'red' } }, (i) => i < 12],
        [{ tags: { team: 'red', rest: '2' } }, (i) => i < 12 && i % 4 === 2],
        [{ tags: { team: '2' } }, () => false],
        [
          { tags: { team: 'blue' }, status: ['running', 'paused'], definition: 'even', since: 14 },
          (i) => i >= 14 && i % 3 !== 2 && i % 2 === 0,
        ],
        [{ status: ['running'], definition: 'odd' }, (i) => i % 3 === 0 && i % 2 === 1],
      ]
      for (const [filter, fits] of cases) {
        same(await idsOf(store, filter), expected(fits))
        same(
          await idsOf(store, { ...filter, ...(cursor !== undefined && { before: cursor }) }),
          expected((index) => index < 20 && fits(index)),
        )
        same(await idsOf(store, { ...filter, limit: 3 }), expected(fits).slice(0, 3))
      }
    },
  },
  {
    promise: 'a listing follows the status as it changes',
    holds: async ({ store }) => {
      const by = await joined(store)
      await commit(store, starting('r', by, { status: 'running' }))
      await commit(store, adding('r', by, 1, { status: 'paused' }))
      same(await idsOf(store, { status: ['running'] }), [])
      same(await idsOf(store, { status: ['paused'] }), ['r'])
    },
  },
]
