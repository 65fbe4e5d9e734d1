import { deepStrictEqual as same, rejects } from 'node:assert/strict'
import { TuttiError } from '../define/tutti-error.js'
import type { StoreCheck } from './store-check.js'
import { adding, commit, joined, starting } from './store-check.js'

/** What a commit does, and what it refuses. */
export const appendChecks: readonly StoreCheck[] = [
  {
    promise: 'a new run is kept with all that was said of it',
    holds: async ({ store }) => {
      const by = await joined(store)
      const create = { definition: 'trip', version: '7', tags: { team: 'red', 'an odd key': '"\'; --' } }
      const rows = [{ seq: 1, n: 2, body: '["a","b"]' }]
      const verdicts = await store.commit([starting('r', by, { create, head: 2, rows, status: 'asking', waits: ['ask:1'], at: 5 })])
      same(verdicts, [{ ok: true, epoch: 0 }])
      const loaded = await store.load('r')
      same(loaded, {
        row: {
          order: loaded?.row.order,
          id: 'r',
          definition: 'trip',
          version: '7',
          tags: create.tags,
          status: 'asking',
          waits: ['ask:1'],
          head: 2,
          epoch: 0,
          worker: null,
          startedAt: 5,
          endedAt: null,
        },
        rows,
        snapshot: null,
      })
    },
  },
  {
    promise: 'an append adds its rows, moves the head and leaves what it does not mention',
    holds: async ({ store }) => {
      const by = await joined(store)
      await commit(store, starting('r', by, { status: 'asking', waits: ['a'] }))
      same(await store.commit([adding('r', by, 1)]), [{ ok: true }])
      same((await store.load('r'))?.row.status, 'asking')
      await commit(store, adding('r', by, 2, { status: 'running' }))
      const loaded = await store.load('r')
      same(loaded?.row.head, 3)
      same(loaded.row.status, 'running')
      same(loaded.row.waits, ['a'])
      same(
        loaded.rows.map(({ body }) => body),
        ['["started"]', '["event 2"]', '["event 3"]'],
      )
    },
  },
  {
    promise: 'an append that expects another head is refused, and nothing of it is kept',
    holds: async ({ store }) => {
      const by = await joined(store)
      await commit(store, starting('r', by))
      const before = await store.load('r', { snapshot: true })
      const more = { status: 'ended', ended: true, marks: [{ kind: 'k', key: 'm', body: '1' }], blobs: [{ hash: 'h', body: 'b' }] }
      const snapshot = { seq: 1, version: '1', body: '{}' }
      for (const expect of [0, 2]) same(await store.commit([adding('r', by, expect, { ...more, snapshot })]), [{ ok: false, why: 'head' }])
      same(await store.load('r', { snapshot: true }), before)
      same(await store.marks({ kind: 'k' }), [])
      same(await store.blob('h'), null)
    },
  },
  {
    promise: 'an append to a run that is not there says that it is gone',
    holds: async ({ store }) => {
      const by = await joined(store)
      same(await store.commit([adding('r', by, 0)]), [{ ok: false, why: 'gone' }])
      same(await store.load('r'), null)
    },
  },
  {
    promise: 'an id is given once, and the first run stays as it is',
    holds: async ({ store }) => {
      const by = await joined(store)
      await commit(store, starting('r', by, { status: 'first' }))
      same(await store.commit([starting('r', by, { status: 'second' })]), [{ ok: false, why: 'exists' }])
      same((await store.load('r'))?.row.status, 'first')
    },
  },
  {
    promise: "an owner's append holds only for the worker and the epoch that own the run, whatever the head",
    holds: async ({ store }) => {
      const by = await joined(store)
      const other = await joined(store)
      same(await store.commit([starting('r', by, { own: 'take' })]), [{ ok: true, epoch: 1 }])
      const refused = [{ ok: false, why: 'epoch' }]
      same(await store.commit([adding('r', by, 1, { owner: { worker: by, epoch: 2 } })]), refused)
      same(await store.commit([adding('r', by, 1, { owner: { worker: other, epoch: 1 } })]), refused)
      same(await store.commit([adding('r', by, 9, { owner: { worker: other, epoch: 1 } })]), refused)
      same(await store.commit([adding('r', by, 1, { owner: { worker: by, epoch: 1 } })]), [{ ok: true }])
    },
  },
  {
    promise: 'an owner that does not know of a command from elsewhere is refused, alone and among others, and nothing of it is kept',
    holds: async ({ store }) => {
      const by = await joined(store)
      const elsewhere = await joined(store)
      const owner = { worker: by, epoch: 1 }
      await commit(store, starting('r', by, { own: 'take' }), starting('s', by, { own: 'take' }))
      await commit(store, adding('r', by, 1, { owner }))
      await commit(store, adding('r', elsewhere, 2))
      const refused = { ok: false, why: 'head' }
      const packed = [
        { seq: 3, n: 2, body: '["3", "4"]' },
        { seq: 5, n: 1, body: '["5"]' },
      ]
      // As it was before the command; before all; and ahead of what there is.
      for (const expect of [2, 1, 3 + 1]) same(await store.commit([adding('r', by, expect, { owner })]), [refused])
      const batch = [adding('s', by, 1, { owner }), adding('r', by, 2, { owner, head: 5, rows: packed })]
      same(await store.commit(batch), [{ ok: true }, refused])
      same(await store.commit([adding('r', by, 3, { owner, rows: [{ seq: 4, n: 2, body: '["4", "5"]' }], head: 5 })]), [{ ok: true }])
      same(await store.commit([adding('r', by, 4, { owner })]), [refused])
      same(await store.commit([adding('r', by, 5, { owner })]), [{ ok: true }])
      const loaded = await store.load('r')
      same(
        [loaded?.row.head, loaded?.rows.map(({ seq, n }) => [seq, n])],
        [
          6,
          [
            [1, 1],
            [2, 1],
            [3, 1],
            [4, 2],
            [6, 1],
          ],
        ],
      )
      same((await store.load('s'))?.row.head, 2)
      same(
        (await store.list({ limit: 9 })).map(({ id, head }) => [id, head]),
        [
          ['s', 2],
          ['r', 6],
        ],
      )
    },
  },
  {
    promise: 'who takes a run owns it under a new epoch, and who releases it owns it no more',
    holds: async ({ store }) => {
      const first = await joined(store)
      const second = await joined(store)
      await commit(store, starting('r', first, { own: 'take' }))
      same(await store.commit([adding('r', second, 1, { own: 'take' })]), [{ ok: true, epoch: 2 }])
      same((await store.load('r'))?.row.worker, second)
      same(await store.commit([adding('r', first, 2, { owner: { worker: first, epoch: 1 } })]), [{ ok: false, why: 'epoch' }])
      await commit(store, adding('r', second, 2, { owner: { worker: second, epoch: 2 }, own: 'release' }))
      const row = (await store.load('r'))?.row
      same([row?.worker, row?.epoch], [null, 2])
      for (const epoch of [3, 4]) same(await store.commit([adding('r', second, epoch, { own: 'take' })]), [{ ok: true, epoch }])
    },
  },
  {
    promise: 'a run that has ended says when, and nobody owns it',
    holds: async ({ store }) => {
      const by = await joined(store)
      await commit(store, starting('r', by, { own: 'take' }), starting('at once', by, { own: 'take', ended: true, at: 3 }))
      await commit(store, adding('r', by, 1, { status: 'completed', ended: true, at: 7_000 }))
      const row = (await store.load('r'))?.row
      same([row?.worker, row?.endedAt, row?.startedAt, row?.status], [null, 7_000, 1_000, 'completed'])
      same((await store.load('at once'))?.row.endedAt, 3)
      same((await store.mine(by)).owned, new Map())
      await commit(store, adding('r', by, 2, { at: 8_000 }))
      same((await store.load('r'))?.row.endedAt, 7_000)
    },
  },
  {
    promise: 'of a batch only the item in conflict is refused, and the verdicts are in its order',
    holds: async ({ store }) => {
      const by = await joined(store)
      await commit(store, starting('a', by), starting('b', by))
      const verdicts = await store.commit([
        adding('a', by, 1),
        adding('b', by, 5),
        adding('c', by, 1),
        starting('a', by),
        starting('d', by),
        { kind: 'k', key: 'x', expect: 3, body: '1' },
        { kind: 'k', key: 'y', expect: 0, body: '1' },
      ])
      same(verdicts, [
        { ok: true },
        { ok: false, why: 'head' },
        { ok: false, why: 'gone' },
        { ok: false, why: 'exists' },
        { ok: true, epoch: 0 },
        { ok: false, why: 'record', found: null },
        { ok: true },
      ])
      same((await store.load('a'))?.row.head, 2)
      same((await store.load('b'))?.row.head, 1)
      same((await store.load('d'))?.row.head, 1)
      same(await store.record('k', 'x'), null)
      same(await store.record('k', 'y'), { revision: 1, body: '1' })
    },
  },
  {
    promise: 'the items of a batch see those before them',
    holds: async ({ store }) => {
      const by = await joined(store)
      const verdicts = await store.commit([starting('r', by), adding('r', by, 1), adding('r', by, 1), adding('r', by, 2)])
      same(verdicts, [{ ok: true, epoch: 0 }, { ok: true }, { ok: false, why: 'head' }, { ok: true }])
      same((await store.load('r'))?.row.head, 3)
      same(await store.commit([]), [])
    },
  },
  {
    promise: 'ten thousand appends are read in the order in which they were made',
    holds: async ({ store }) => {
      const by = await joined(store)
      await commit(store, starting('r', by), starting('other', by))
      for (let from = 1; from < 10_000; from += 500) {
        const batch = Array.from({ length: 500 }, (_, index) => adding('r', by, from + index))
        await commit(store, ...batch, adding('other', by, 1 + (from - 1) / 500))
      }
      const rows = (await store.load('r'))?.rows ?? []
      same(rows.length, 10_001)
      same(
        rows.findIndex(({ seq }, index) => seq !== index + 1),
        -1,
      )
      same(rows.at(-1), { seq: 10_001, n: 1, body: '["event 10001"]' })
      same((await store.load('other'))?.rows.length, 21)
    },
  },
  {
    promise: 'a body of five megabytes comes back as it was',
    holds: async ({ store }) => {
      const by = await joined(store)
      const body = JSON.stringify('ab€'.repeat(5 * 2 ** 20).slice(0, 5 * 2 ** 20))
      await commit(store, starting('r', by, { rows: [{ seq: 1, n: 1, body }], blobs: [{ hash: 'h', body }] }))
      same((await store.load('r'))?.rows[0]?.body === body, true)
      same((await store.blob('h')) === body, true)
    },
  },
  {
    promise: 'every character comes back in every body: NUL, quotes, line ends, and those beyond sixteen bits',
    holds: async ({ store }) => {
      const by = await joined(store)
      const bodies = [JSON.stringify('a\0b'), 'a\0b', '\0', '', '\'"`;--\\ %_?', '\r\n\t\u2028', 'e\u0301 \ud83d\ude00 \ufffd \uffff 汉字']
      for (const [index, body] of bodies.entries()) {
        const attached = {
          marks: [{ kind: 'm', key: 'k', body }],
          blobs: [{ hash: `h${index}`, body }],
          snapshot: { seq: 1, version: '1', body },
        }
        await commit(
          store,
          starting(`r${index}`, by, {
            rows: [{ seq: 1, n: 1, body }],
            puts: [{ kind: 'p', key: `k${index}`, expect: 0, body }],
            ...attached,
          }),
        )
        const loaded = await store.load(`r${index}`, { snapshot: true })
        same(loaded?.snapshot?.body, body)
        same((await store.load(`r${index}`))?.rows[0]?.body, body)
        same((await store.marks({ kind: 'm', run: `r${index}` }))[0]?.body, body)
        same((await store.record('p', `k${index}`))?.body, body)
        same(await store.blob(`h${index}`), body)
      }
      same(
        (await store.records('p')).map(({ body }) => body),
        bodies,
      )
    },
  },
  {
    promise: 'ids, keys and tags may contain anything that is no control character, and are never taken for anything else',
    holds: async ({ store }) => {
      const by = await joined(store)
      const names = ["'; drop table run; --", '%', '_', '"quoted"', 'ümläut', '\u{1f600}', ' ', '*', '../../x', 'R', 'r']
      for (const name of names) {
        const create = { definition: name, version: name, tags: { [name]: name } }
        const marks = [{ kind: name, key: name, body: '1' }]
        await commit(store, starting(name, by, { create, marks, puts: [{ kind: name, key: name, expect: 0, body: '1' }], status: name }))
      }
      for (const name of names) {
        const found = [
          await store.list({ tags: { [name]: name }, limit: 9 }),
          await store.list({ status: [name], limit: 9 }),
          await store.list({ definition: name, limit: 9 }),
        ]
        for (const rows of found) {
          same(
            rows.map(({ id, tags }) => [id, tags]),
            [[name, { [name]: name }]],
          )
        }
        same(await store.marks({ kind: name }), [{ run: name, kind: name, key: name, body: '1' }])
        same((await store.record(name, name))?.revision, 1)
      }
    },
  },
  {
    promise: 'an id, a key, a tag or a version with a control character is refused, and nothing of its batch is written',
    holds: async ({ store }) => {
      const by = await joined(store)
      const refused = (error: unknown): boolean => TuttiError.is(error, 'INVALID_INPUT') && error.hint !== undefined
      for (const name of ['a\0b', '\n', 'a\u007f', '\u0085', '\ud800']) {
        const put = { kind: 'k', key: name, expect: 0, body: '1' }
        const create = { definition: 'trip', version: '1', tags: { [name]: 'x' } }
        await rejects(store.commit([starting('r', by), starting(name, by)]), refused)
        await rejects(store.commit([starting('r', by), put]), refused)
        await rejects(store.commit([starting('r', by), starting('s', by, { puts: [put] })]), refused)
        await rejects(store.commit([starting('r', by), starting('s', by, { create })]), refused)
        await rejects(store.commit([starting('r', by), starting('s', by, { create: { ...create, tags: { x: name } } })]), refused)
        await rejects(store.commit([starting('r', by), starting('s', by, { create: { ...create, version: name, tags: {} } })]), refused)
        await rejects(store.commit([starting('r', by), starting('s', by, { version: name })]), refused)
        await rejects(store.commit([starting('r', by), starting('s', by, { marks: [{ kind: 'm', key: name, body: '1' }] })]), refused)
      }
      same(await store.load('r'), null)
    },
  },
  {
    promise: 'nothing is found by a name with a control character, though there is something by a part of it',
    holds: async ({ store }) => {
      const by = await joined(store)
      const marks = [{ kind: 'k', key: 'm', body: '1' }]
      const create = { definition: 'r', version: '1', tags: { r: 'r' } }
      await commit(store, starting('r', by, { create, marks, puts: [{ kind: 'k', key: 'r', expect: 0, body: '1' }] }))
      for (const name of ['r\0', 'r\0s', 'r\n', 'r\ud800']) {
        same(await store.load(name), null)
        same(await store.list({ definition: name, limit: 9 }), [])
        same(await store.list({ prefix: name, limit: 9 }), [])
        same(await store.list({ tags: { r: name }, limit: 9 }), [])
        same(await store.list({ tags: { r: 'r', [name]: 'r' }, limit: 9 }), [])
        same(await store.marks({ kind: 'k', run: name }), [])
        same(await store.record('k', name), null)
      }
    },
  },
]
