import { deepStrictEqual as same, ok } from 'node:assert/strict'
import type { StoreCheck } from './store-check.js'
import { adding, commit, joined, starting } from './store-check.js'

/** What is kept once, and what is kept no longer. */
export const keepingChecks: readonly StoreCheck[] = [
  {
    promise: 'a blob is found by its hash, and kept once for all that refer to it',
    holds: async ({ store }) => {
      const by = await joined(store)
      same(await store.blob('h'), null)
      const blobs = [
        { hash: 'h', body: 'large' },
        { hash: 'i', body: 'larger' },
      ]
      await commit(store, starting('r', by, { blobs }), starting('s', by, { blobs }))
      await commit(store, adding('r', by, 1, { blobs }))
      same([await store.blob('h'), await store.blob('i'), await store.blob('j')], ['large', 'larger', null])
    },
  },
  {
    promise: 'only runs that ended before a time are deleted, those that ended first first, at most so many at once',
    holds: async ({ store }) => {
      const by = await joined(store)
      await commit(store, starting('running', by), ...[50, 30, 10, 40, 20].map((at) => starting(`r${at}`, by, { ended: true, at })))
      same(await store.gc({ endedBefore: 10, limit: 9 }), 0)
      same(await store.gc({ endedBefore: 50, limit: 3 }), 3)
      const left = async () => (await store.list({ limit: 9 })).map(({ id }) => id)
      same(await left(), ['r40', 'r50', 'running'])
      same(await store.gc({ endedBefore: 50, limit: 3 }), 1)
      same(await store.gc({ endedBefore: 50, limit: 3 }), 0)
      same(await left(), ['r50', 'running'])
    },
  },
  {
    promise: 'what lies below a run that has not ended is not deleted before it has',
    holds: async ({ store }) => {
      const by = await joined(store)
      const ended = (run: string) => starting(run, by, { ended: true })
      await commit(store, starting('r', by), ended('r:a'), ended('r:a:0:undo'), ended('rr'), ended('q:a'), ended('s'), ended('s:a'))
      same(await store.gc({ endedBefore: 9_000, limit: 3 }), 3)
      same(await store.gc({ endedBefore: 9_000, limit: 9 }), 1)
      same((await store.list({ limit: 9 })).map(({ id }) => id).sort(), ['r', 'r:a', 'r:a:0:undo'])
      await commit(store, adding('r', by, 1, { ended: true }))
      same(await store.gc({ endedBefore: 9_000, limit: 9 }), 3)
    },
  },
  {
    promise: 'a run is not deleted before all that lies below it, whenever that has ended',
    holds: async ({ store }) => {
      const by = await joined(store)
      const ended = (run: string, at: number) => starting(run, by, { ended: true, at })
      await commit(store, ended('r', 5), ended('r:a', 5), ended('r:b', 8), ended('rr', 9))
      const left = async () => (await store.list({ limit: 9 })).map(({ id }) => id).sort()
      same(await store.gc({ endedBefore: 6, limit: 1 }), 1)
      same(await left(), ['r', 'r:b', 'rr'])
      // By a clock that was set back meanwhile it ended after it.
      same(await store.gc({ endedBefore: 6, limit: 9 }), 0)
      same(await store.gc({ endedBefore: 9, limit: 9 }), 2)
      same(await left(), ['rr'])
    },
  },
  {
    promise: 'with a run goes all that belongs to it, and nothing else',
    holds: async ({ store }) => {
      const by = await joined(store)
      const all = (run: string, ended: boolean) =>
        starting(run, by, {
          ended,
          create: { definition: 'trip', version: '1', tags: { team: 'red' } },
          marks: [{ kind: 'm', key: 'k', body: run }],
          puts: [{ kind: 'key', key: run, expect: 0, body: run }],
          snapshot: { seq: 1, version: '1', body: run },
        })
      await commit(store, all('old', true), all('new', false), { kind: 'key', key: 'own', expect: 0, body: 'x' })
      same(await store.gc({ endedBefore: 9_000, limit: 9 }), 1)
      same(await store.load('old', { snapshot: true }), null)
      same(await store.commit([adding('old', by, 1)]), [{ ok: false, why: 'gone' }])
      same(
        (await store.list({ tags: { team: 'red' }, limit: 9 })).map(({ id }) => id),
        ['new'],
      )
      same(await store.marks({ kind: 'm' }), [{ run: 'new', kind: 'm', key: 'k', body: 'new' }])
      same(
        (await store.records('key')).map(({ key }) => key),
        ['new', 'own'],
      )
      const kept = await store.load('new', { snapshot: true, after: 0 })
      same([kept?.snapshot?.body, kept?.row.head], ['new', 1])
    },
  },
  {
    promise: 'an id is free again when its run is deleted, with nothing left of it, and comes later in the order',
    holds: async ({ store }) => {
      const by = await joined(store)
      await commit(
        store,
        starting('r', by, { ended: true, marks: [{ kind: 'm', key: 'k', body: '1' }], snapshot: { seq: 1, version: '1', body: '1' } }),
      )
      const first = (await store.load('r'))?.row.order ?? 0
      await store.gc({ endedBefore: 9_000, limit: 9 })
      await commit(store, starting('r', by, { rows: [{ seq: 1, n: 1, body: '"again"' }] }))
      const again = await store.load('r', { snapshot: true })
      same([again?.snapshot, again?.rows], [null, [{ seq: 1, n: 1, body: '"again"' }]])
      ok((again?.row.order ?? 0) > first)
      same(await store.marks({ kind: 'm' }), [])
    },
  },
  {
    promise: 'a record belongs to the run that put it last, and outlives the others',
    holds: async ({ store }) => {
      const by = await joined(store)
      const put = (expect: number) => ({ kind: 'k', key: 'shared', expect, body: String(expect) })
      await commit(store, starting('old', by, { ended: true, puts: [put(0)] }), starting('new', by, { puts: [put(1)] }), put(2))
      await store.gc({ endedBefore: 9_000, limit: 9 })
      same(await store.record('k', 'shared'), { revision: 3, body: '2' })
      await commit(store, adding('new', by, 1, { ended: true }))
      await store.gc({ endedBefore: 9_000, limit: 9 })
      same(await store.record('k', 'shared'), null)
    },
  },
  {
    promise: 'a blob goes with the last run that refers to it',
    holds: async ({ store }) => {
      const by = await joined(store)
      const blob = (hash: string) => ({ hash, body: `body of ${hash}` })
      await commit(
        store,
        starting('a', by, { ended: true, at: 1, blobs: [blob('both'), blob('a')] }),
        starting('b', by, { blobs: [blob('both'), blob('b')] }),
      )
      // Once more of the same is one reference all the same.
      await commit(store, adding('b', by, 1, { ended: true, at: 2, blobs: [blob('b')] }))
      const found = async () => [await store.blob('both'), await store.blob('a'), await store.blob('b')]
      same(await store.gc({ endedBefore: 9, limit: 1 }), 1)
      same(await found(), ['body of both', null, 'body of b'])
      same(await store.gc({ endedBefore: 9, limit: 1 }), 1)
      same(await found(), [null, null, null])
    },
  },
]
