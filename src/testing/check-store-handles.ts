import { deepStrictEqual as same, ok } from 'node:assert/strict'
import type { Store } from '../engine/store.js'
import type { StoreCheck, TwoHandles } from './store-check.js'
import { adding, commit, executable, joined, starting, within } from './store-check.js'

/** What holds between two handles on the same data, as between two processes. */
export const handleChecks: readonly StoreCheck<TwoHandles>[] = [
  {
    promise: 'what one handle has committed the other sees at once',
    holds: async ({ store, again }) => {
      const other = await again()
      const by = await joined(store)
      ok((await joined(other)) !== by)
      await commit(
        store,
        starting('r', by, { marks: [{ kind: 'm', key: 'k', body: '1' }], puts: [{ kind: 'p', key: 'k', expect: 0, body: '2' }] }),
      )
      same(await other.load('r'), await store.load('r'))
      same(await other.marks({ kind: 'm' }), await store.marks({ kind: 'm' }))
      same(await other.record('p', 'k'), { revision: 1, body: '2' })
    },
  },
  {
    promise: 'two handles that append to one run at the same time lose nothing',
    holds: async ({ store, again }) => {
      const other = await again()
      await commit(store, starting('r', await joined(store)), { kind: 'k', key: 'sum', expect: 0, body: '0' })
      const increase = async (handle: Store, name: string): Promise<void> => {
        const by = await joined(handle)
        for (let done = 0; done < 50; ) {
          const head = (await handle.load('r'))?.row.head ?? 0
          const sum = await handle.record('k', 'sum')
          const put = { kind: 'k', key: 'sum', expect: sum?.revision ?? 0, body: String(Number(sum?.body) + 1) }
          const rows = [{ seq: head + 1, n: 1, body: `"${name} ${done}"` }]
          const [verdict] = await handle.commit([adding('r', by, head, { rows, puts: [put] })])
          if (verdict?.ok) done++
          // Lets the other one in between reading and writing.
          if (done % 3 === 0) await new Promise((resolve) => setImmediate(resolve))
        }
      }
      await Promise.all([increase(store, 'one'), increase(other, 'other')])
      const { row, rows = [] } = (await store.load('r')) ?? {}
      same([row?.head, rows.length], [101, 101])
      same(await other.record('k', 'sum'), { revision: 101, body: '100' })
      for (const name of ['one', 'other']) {
        const mine = rows.map(({ body }) => body).filter((body) => body.startsWith(`"${name} `))
        same(
          mine,
          Array.from({ length: 50 }, (_, index) => `"${name} ${index}"`),
        )
      }
    },
  },
  {
    promise: 'of two handles that put one key at the same time one wins, and the other is given what it found',
    holds: async ({ store, again }) => {
      const other = await again()
      const put = (body: string) => ({ kind: 'k', key: 'x', expect: 0, body })
      const [[one], [two]] = await Promise.all([store.commit([put('one')]), other.commit([put('two')])])
      ok(one?.ok !== two?.ok)
      const winner = one?.ok ? 'one' : 'two'
      same(one?.ok ? two : one, { ok: false, why: 'record', found: { revision: 1, body: winner } })
    },
  },
  {
    promise: 'two handles that claim at the same time get different runs',
    holds: async ({ store, again }) => {
      const other = await again()
      const first = await joined(store)
      const second = await joined(other)
      await commit(store, ...Array.from({ length: 40 }, (_, index) => starting(`r${index}`, first, { wake: index })))
      const rounds = Array.from({ length: 8 }, (_, index) => ({ handle: index % 2 ? store : other, worker: index % 2 ? first : second }))
      const claimed = await Promise.all(
        rounds.map(({ handle, worker }) => handle.claim({ worker, definitions: executable, now: 99, limit: 5 })),
      )
      const ids = claimed.flatMap(({ rows }) => rows.map(({ id }) => id))
      same([ids.length, new Set(ids).size], [40, 40])
      same((await store.mine(first)).owned.size + (await store.mine(second)).owned.size, 40)
    },
  },
  {
    promise: "another handle's commit has moved the store, and one's own has not",
    holds: async ({ store, again }) => {
      const other = await again()
      const by = await joined(store)
      const peer = await joined(other)
      store.moved(by)
      other.moved(peer)
      await commit(store, starting('r', by))
      same([store.moved(by), other.moved(peer), other.moved(peer)], [false, true, false])
      await commit(other, adding('r', peer, 1))
      await commit(store, adding('r', by, 2))
      same([store.moved(by), store.moved(by)], [true, false])
      same(other.moved(peer), true)
    },
  },
  {
    promise: 'the owner is rung through its own handle',
    holds: async ({ store, again }) => {
      const other = await again()
      const owner = await joined(store)
      await commit(store, starting('r', owner, { own: 'take' }))
      await commit(other, adding('r', await joined(other), 1))
      same(await store.mine(owner), { owned: new Map([['r', 1]]), rung: ['r'] })
    },
  },
  {
    promise: "who listens is woken by another handle's commit, as often as there is one",
    holds: async ({ store, again }) => {
      const other = await again()
      const by = await joined(store)
      const peer = await joined(other)
      let wake: () => void = () => {}
      const stop = store.onMoved(() => {
        if (store.moved(by)) wake()
      })
      store.moved(by)
      await commit(other, starting('r', peer))
      for (let round = 1; round <= 5; round++) {
        const woken = new Promise<void>((resolve) => {
          wake = resolve
        })
        await commit(other, adding('r', peer, round))
        await within(5_000, 'being woken', woken)
      }
      stop()
    },
  },
  {
    promise: 'a worker that one handle has fenced can do nothing more through the other',
    holds: async ({ store, again }) => {
      const other = await again()
      const dead = await joined(store)
      await commit(store, starting('r', dead, { own: 'take' }))
      const by = await joined(other)
      const seen = (await other.beat(by)).find(({ worker }) => worker === dead)
      ok(seen !== undefined)
      same(seen.gone, false)
      same(await other.fence(seen, 5), 1)
      same(store.moved(dead), true)
      same((await store.mine(dead)).owned, new Map())
      same(await store.commit([adding('r', dead, 1, { owner: { worker: dead, epoch: 1 } })]), [{ ok: false, why: 'epoch' }])
    },
  },
  {
    promise: 'marks come to the other in the order in which they were set',
    holds: async ({ store, again }) => {
      const other = await again()
      const by = await joined(store)
      const mark = (key: string, body: string | null) => ({ marks: [{ kind: 'said', key, body }] })
      await commit(store, starting('b', by), starting('a', by))
      await commit(store, adding('b', by, 1, mark('z', '1')))
      await commit(other, adding('a', await joined(other), 1, mark('k', '2')))
      await commit(store, adding('b', by, 2, mark('a', '3')), adding('a', by, 2, mark('k', null)))
      await commit(store, adding('a', by, 3, mark('k', '4')))
      for (const handle of [store, other])
        same(
          (await handle.marks({ kind: 'said' })).map(({ body }) => body),
          ['1', '3', '4'],
        )
    },
  },
  {
    promise: 'one handle may be closed while the other goes on, and what was committed stays',
    holds: async ({ store, again }) => {
      const other = await again()
      const by = await joined(other)
      await commit(store, starting('r', await joined(store)))
      await store.close()
      await commit(other, adding('r', by, 1))
      same((await other.load('r'))?.row.head, 2)
      await other.close()
      same((await (await again()).load('r'))?.rows.length, 2)
    },
  },
]
