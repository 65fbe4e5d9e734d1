import { deepStrictEqual as same } from 'node:assert/strict'
import type { StoreCheck } from './store-check.js'
import { adding, commit, executable, joined, starting } from './store-check.js'

const put = (key: string, expect: number, body: string) => ({ kind: 'agent', key, expect, body })

/** Records changed by compare-and-set, and marks that runs are found by. */
export const recordChecks: readonly StoreCheck[] = [
  {
    promise: 'a record is made once, changed only by who knows its revision, and shown to who does not',
    holds: async ({ store }) => {
      same(await store.record('agent', 'ada'), null)
      same(await store.commit([put('ada', 0, 'one')]), [{ ok: true }])
      same(await store.commit([put('ada', 0, 'two')]), [{ ok: false, why: 'record', found: { revision: 1, body: 'one' } }])
      same(await store.commit([put('ada', 1, 'two')]), [{ ok: true }])
      same(await store.commit([put('ada', 1, 'three')]), [{ ok: false, why: 'record', found: { revision: 2, body: 'two' } }])
      same(await store.commit([put('bob', 1, 'one')]), [{ ok: false, why: 'record', found: null }])
      same(await store.record('agent', 'ada'), { revision: 2, body: 'two' })
      same(await store.record('agent', 'bob'), null)
      same(await store.record('other', 'ada'), null)
    },
  },
  {
    promise: 'of two that put one key in a batch the first wins',
    holds: async ({ store }) => {
      const verdicts = await store.commit([put('ada', 0, 'one'), put('ada', 0, 'two')])
      same(verdicts, [{ ok: true }, { ok: false, why: 'record', found: { revision: 1, body: 'one' } }])
    },
  },
  {
    promise: 'records that are put together are all put, or none is',
    holds: async ({ store }) => {
      await commit(store, put('taken', 0, 'first'))
      const refused = [{ ok: false, why: 'record', found: { revision: 1, body: 'first' } }]
      same(await store.commit([{ ...put('ada', 0, 'x'), puts: [put('bob', 0, 'y'), put('taken', 0, 'second')] }]), refused)
      same(await store.commit([{ ...put('taken', 0, 'second'), puts: [put('bob', 0, 'y')] }]), refused)
      same(
        (await store.records('agent')).map(({ key }) => key),
        ['taken'],
      )
      same(await store.commit([{ ...put('taken', 1, 'second'), puts: [put('bob', 0, 'y')] }]), [{ ok: true }])
      same(await store.record('agent', 'taken'), { revision: 2, body: 'second' })
      same(await store.record('agent', 'bob'), { revision: 1, body: 'y' })
    },
  },
  {
    promise: 'the records of a kind are given by key',
    holds: async ({ store }) => {
      const keys = ['b', 'a', 'B', '\u{1f600}', '\uff5e', 'aa']
      await commit(store, ...keys.map((key) => put(key, 0, `of ${key}`)), { ...put('x', 0, ''), kind: 'other' })
      same(
        await store.records('agent'),
        keys.toSorted((a, b) => (a < b ? -1 : 1)).map((key) => ({ key, revision: 1, body: `of ${key}` })),
      )
      same(await store.records('none'), [])
    },
  },
  {
    promise: 'an append whose key is taken is refused whole, with what was found under it',
    holds: async ({ store }) => {
      const by = await joined(store)
      await commit(store, starting('r', by), put('taken', 0, 'first'))
      const puts = [put('free', 0, 'x'), put('taken', 0, 'second')]
      const refused = [{ ok: false, why: 'record', found: { revision: 1, body: 'first' } }]
      same(await store.commit([adding('r', by, 1, { puts, marks: [{ kind: 'm', key: 'k', body: '1' }] })]), refused)
      same(await store.commit([starting('s', by, { puts })]), refused)
      same(await store.record('agent', 'free'), null)
      same((await store.load('r'))?.rows.length, 1)
      same(await store.load('s'), null)
      same(await store.marks({ kind: 'm' }), [])
    },
  },
  {
    promise: 'an append that is refused puts nothing',
    holds: async ({ store }) => {
      const by = await joined(store)
      await commit(store, starting('r', by))
      same(await store.commit([adding('r', by, 3, { puts: [put('free', 0, 'x')] })]), [{ ok: false, why: 'head' }])
      same(await store.record('agent', 'free'), null)
      await commit(store, adding('r', by, 1, { puts: [put('free', 0, 'x'), put('too', 0, 'y')] }))
      same(await store.record('agent', 'free'), { revision: 1, body: 'x' })
      same(await store.record('agent', 'too'), { revision: 1, body: 'y' })
    },
  },
  {
    promise: 'that a key is taken is said before that the run exists, and after that its head is another',
    holds: async ({ store }) => {
      const by = await joined(store)
      await commit(store, starting('r', by, { puts: [put('key', 0, 'start r')] }))
      const found = { revision: 1, body: 'start r' }
      same(await store.commit([starting('r', by, { puts: [put('key', 0, 'start r')] })]), [{ ok: false, why: 'record', found }])
      same(await store.commit([adding('r', by, 4, { puts: [put('key', 0, 'x')] })]), [{ ok: false, why: 'head' }])
      same(await store.commit([adding('gone', by, 4, { puts: [put('key', 0, 'x')] })]), [{ ok: false, why: 'gone' }])
    },
  },
  {
    promise: 'marks are set, changed, taken away, and listed by kind and by run',
    holds: async ({ store }) => {
      const by = await joined(store)
      const mark = (key: string, body: string | null, kind = 'ask') => ({ kind, key, body })
      await commit(store, starting('a', by, { marks: [mark('1', 'one'), mark('2', 'two'), mark('1', 'x', 'blocked')] }), starting('b', by))
      await commit(store, adding('b', by, 1, { marks: [mark('1', 'of b')] }))
      same(await store.marks({ kind: 'ask' }), [
        { run: 'a', kind: 'ask', key: '1', body: 'one' },
        { run: 'a', kind: 'ask', key: '2', body: 'two' },
        { run: 'b', kind: 'ask', key: '1', body: 'of b' },
      ])
      await commit(store, adding('a', by, 1, { marks: [mark('1', null), mark('2', 'changed'), mark('none', null)] }))
      same(await store.marks({ kind: 'ask', run: 'a' }), [{ run: 'a', kind: 'ask', key: '2', body: 'changed' }])
      same(await store.marks({ kind: 'blocked' }), [{ run: 'a', kind: 'blocked', key: '1', body: 'x' }])
      same(await store.marks({ kind: 'ask', run: 'none' }), [])
      same(await store.marks({ kind: 'none' }), [])
    },
  },
  {
    promise: 'marks come in the order in which they were set, of all runs together, and one that is changed keeps its place',
    holds: async ({ store }) => {
      const by = await joined(store)
      const mark = (key: string, body: string | null) => ({ marks: [{ kind: 'said', key, body }] })
      await commit(store, starting('c', by), starting('a', by), starting('b', by))
      await commit(store, adding('b', by, 1, mark('k', '1')))
      await commit(store, adding('c', by, 1, mark('k', '2')))
      await commit(store, adding('a', by, 1, mark('z', '3')), adding('c', by, 2, mark('a', '4')))
      const said = async (run?: string) => (await store.marks({ kind: 'said', ...(run !== undefined && { run }) })).map(({ body }) => body)
      same(await said(), ['1', '2', '3', '4'])
      same(await said('c'), ['2', '4'])
      await commit(store, adding('b', by, 2, mark('k', '1 again')), adding('c', by, 3, mark('k', null)))
      await commit(store, adding('c', by, 4, mark('k', '5')))
      same(await said(), ['1 again', '3', '4', '5'])
      same(await said('c'), ['4', '5'])
      // Also when the last of them is gone.
      await commit(store, adding('c', by, 5, mark('k', null)))
      await commit(store, adding('a', by, 2, mark('a', '6')), adding('b', by, 3, mark('a', '7')))
      same(await said(), ['1 again', '3', '4', '6', '7'])
    },
  },
  {
    promise: 'a put can wake the runs with a mark, and ring for those who own one',
    holds: async ({ store }) => {
      const by = await joined(store)
      const owner = await joined(store)
      const marks = [{ kind: 'blocked', key: 'ada', body: '' }]
      await commit(
        store,
        starting('free', by, { marks }),
        starting('owned', owner, { marks, own: 'take' }),
        starting('other', by, { marks: [{ kind: 'blocked', key: 'bob', body: '' }] }),
        starting('also owned', owner, { own: 'take' }),
      )
      const wakeMarked = { kind: 'blocked', key: 'ada', at: 50 }
      same(await store.commit([{ ...put('ada', 5, 'resumed'), wakeMarked }]), [{ ok: false, why: 'record', found: null }])
      same((await store.claim({ worker: by, definitions: executable, now: 99, limit: 9 })).rows, [])
      same((await store.mine(owner)).rung, [])
      await commit(store, { ...put('ada', 0, 'resumed'), wakeMarked })
      same((await store.claim({ worker: by, definitions: executable, now: 49, limit: 9 })).nextWake, 50)
      const { rows } = await store.claim({ worker: by, definitions: executable, now: 50, limit: 9 })
      same(
        rows.map(({ id }) => id),
        ['free'],
      )
      same((await store.mine(owner)).rung, ['owned'])
    },
  },
  {
    promise: 'an append with no events changes what is said of a run, and a release that says nothing of when it is due leaves that',
    holds: async ({ store }) => {
      const by = await joined(store)
      const marks = [{ kind: 'blocked', key: 'ada', body: '' }]
      await commit(store, starting('r', by, { own: 'take' }))
      const owner = { worker: by, epoch: 1 }
      await commit(store, { run: 'r', expect: 1, head: 1, by, owner, rows: [], at: 2, waits: ['agent'], wake: null, marks })
      same((await store.load('r'))?.row.waits, ['agent'])
      const wakeMarked = { kind: 'blocked', key: 'ada', at: 50 }
      await commit(store, { ...put('ada', 0, 'resumed'), wakeMarked })
      await commit(store, adding('r', by, 1, { owner, own: 'release' }))
      same((await store.claim({ worker: by, definitions: executable, now: 49, limit: 9 })).nextWake, 50)
    },
  },
]
