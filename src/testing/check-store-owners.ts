import { deepStrictEqual as same, ok } from 'node:assert/strict'
import type { Claimed, Store } from '../engine/store.js'
import type { StoreCheck } from './store-check.js'
import { adding, commit, executable, joined, starting } from './store-check.js'

const claim = (store: Store, worker: number, now: number, limit = 100): Promise<Claimed> =>
  store.claim({ worker, definitions: executable, now, limit })
const idsOf = ({ rows }: Claimed): string[] => rows.map(({ id }) => id)
const peerOf = async (store: Store, self: number, worker: number) => (await store.beat(self)).find((peer) => peer.worker === worker)

/** Who may do what to which run, and how those who died lose theirs. */
export const ownerChecks: readonly StoreCheck[] = [
  {
    promise: 'each worker has a number of its own, and none is given again',
    holds: async ({ store }) => {
      const first = await joined(store)
      const second = await joined(store)
      await store.leave(second, 0)
      const third = await joined(store)
      same(new Set([first, second, third]).size, 3)
    },
  },
  {
    promise: 'a claim takes only runs of the given definitions and versions',
    holds: async ({ store }) => {
      const by = await joined(store)
      const of = (definition: string, version: string) => ({ create: { definition, version, tags: {} }, wake: 1 })
      await commit(store, starting('a', by, of('a', '1')), starting('a2', by, of('a', '2')), starting('b', by, of('b', '1')))
      const wanted = async (...definitions: { name: string; versions: string[] }[]) =>
        idsOf(await store.claim({ worker: by, definitions, now: 9, limit: 9 }))
      same(await wanted(), [])
      same(await wanted({ name: 'c', versions: ['1'] }, { name: 'a', versions: [] }, { name: 'b', versions: ['2'] }), [])
      same(await wanted({ name: 'a', versions: ['1'] }), ['a'])
      same((await wanted({ name: 'b', versions: ['1', '2'] }, { name: 'a', versions: ['2', '2'] })).toSorted(), ['a2', 'b'])
    },
  },
  {
    promise: 'a claim takes only what is due, is owned by nobody and has not ended, the earliest first, each under a new epoch',
    holds: async ({ store }) => {
      const by = await joined(store)
      const other = await joined(store)
      await commit(
        store,
        starting('third', by, { wake: 30 }),
        starting('first', by, { wake: 10 }),
        starting('second', by, { wake: 20 }),
        starting('later', by, { wake: 90 }),
        starting('never', by, { wake: null }),
        starting('unsaid', by),
        starting('owned', other, { wake: 1, own: 'take' }),
        starting('ended', by, { wake: 1, ended: true }),
      )
      const two = await claim(store, by, 50, 2)
      same(idsOf(two), ['first', 'second'])
      same(
        two.rows.map(({ worker, epoch }) => [worker, epoch]),
        [
          [by, 1],
          [by, 1],
        ],
      )
      same(two.rows[0], (await store.load('first'))?.row)
      same(idsOf(await claim(store, other, 50)), ['third'])
      same(idsOf(await claim(store, by, 50)), [])
      same(idsOf(await claim(store, by, 90)), ['later'])
      await commit(store, adding('first', by, 1, { owner: { worker: by, epoch: 1 }, own: 'release', wake: 60 }))
      same(
        (await claim(store, by, 90)).rows.map(({ id, epoch }) => [id, epoch]),
        [['first', 2]],
      )
    },
  },
  {
    promise: 'when a run is due is what was said of it last, also that it is not any more',
    holds: async ({ store }) => {
      const by = await joined(store)
      await commit(store, ...['not any more', 'as before', 'later'].map((run) => starting(run, by, { wake: 10 })))
      await commit(store, adding('not any more', by, 1, { wake: null }), adding('as before', by, 1), adding('later', by, 1, { wake: 30 }))
      const first = await claim(store, by, 20)
      same([idsOf(first), first.nextWake], [['as before'], 30])
      const second = await claim(store, by, 40)
      same([idsOf(second), second.nextWake], [['later'], null])
    },
  },
  {
    promise: 'a claim takes the earliest first, whatever their definition',
    holds: async ({ store }) => {
      const by = await joined(store)
      const of = (definition: string, wake: number) => ({ create: { definition, version: '1', tags: {} }, wake })
      await commit(
        store,
        starting('a3', by, of('a', 3)),
        starting('a1', by, of('a', 1)),
        starting('b2', by, of('b', 2)),
        starting('b4', by, of('b', 4)),
      )
      const definitions = ['b', 'a'].map((name) => ({ name, versions: ['1'] }))
      same(idsOf(await store.claim({ worker: by, definitions, now: 9, limit: 3 })), ['a1', 'b2', 'a3'])
    },
  },
  {
    promise: 'a claim says when the earliest of what it left is due',
    holds: async ({ store }) => {
      const by = await joined(store)
      same((await claim(store, by, 10)).nextWake, null)
      await commit(store, starting('a', by, { wake: 5 }), starting('b', by, { wake: 6 }), starting('c', by, { wake: 70 }))
      const one = await claim(store, by, 10, 1)
      same([idsOf(one), one.nextWake], [['a'], 6])
      const all = await claim(store, by, 10)
      same([idsOf(all), all.nextWake], [['b'], 70])
      same((await claim(store, by, 80)).nextWake, null)
      await commit(store, starting('other', by, { create: { definition: 'other', version: '1', tags: {} }, wake: 5 }))
      same((await claim(store, by, 1)).nextWake, null)
    },
  },
  {
    promise: 'a claim leaves out what it is told to, until something has happened to it',
    holds: async ({ store }) => {
      const by = await joined(store)
      await commit(store, starting('a', by, { wake: 1 }), starting('b', by, { wake: 2 }), starting('c', by, { wake: 3 }))
      const heads = new Map((await store.list({ limit: 9 })).map(({ id, head }) => [id, head]))
      const except = ['a', 'b'].map((run) => ({ run, head: heads.get(run) ?? 0 }))
      const wanted = (limit: number) => store.claim({ worker: by, definitions: executable, except, now: 9, limit })
      const one = await wanted(1)
      same([idsOf(one), one.nextWake], [['c'], null])
      await commit(store, adding('b', by, heads.get('b') ?? 0, { wake: 20 }))
      const none = await wanted(9)
      same([idsOf(none), none.nextWake], [[], 20])
      same(idsOf(await store.claim({ worker: by, definitions: executable, except, now: 20, limit: 9 })), ['b'])
      same(idsOf(await claim(store, by, 9)), ['a'])
    },
  },
  {
    promise: 'a run that goes on under another version is one of that version from then on',
    holds: async ({ store }) => {
      const by = await joined(store)
      await commit(store, starting('a', by, { create: { definition: 'a', version: '1', tags: {} }, own: 'take' }))
      const row = (await store.load('a'))?.row
      const owner = { worker: by, epoch: row?.epoch ?? 0 }
      const head = row?.head ?? 0
      await commit(store, adding('a', by, head, { owner, version: '2' }), adding('a', by, head + 1, { owner, own: 'release', wake: 1 }))
      same((await store.load('a'))?.row.version, '2')
      const of = async (version: string) =>
        idsOf(await store.claim({ worker: by, definitions: [{ name: 'a', versions: [version] }], now: 9, limit: 9 }))
      same([await of('1'), await of('2')], [[], ['a']])
    },
  },
  {
    promise: 'what a worker owns is told with its epochs',
    holds: async ({ store }) => {
      const by = await joined(store)
      const other = await joined(store)
      await commit(store, starting('a', by, { own: 'take' }), starting('b', by, { wake: 1 }), starting('c', other, { own: 'take' }))
      await commit(store, adding('a', other, 1, { own: 'take' }), adding('a', by, 2, { own: 'take' }))
      await claim(store, by, 5)
      same(
        (await store.mine(by)).owned,
        new Map([
          ['a', 3],
          ['b', 1],
        ]),
      )
      same((await store.mine(other)).owned, new Map([['c', 1]]))
    },
  },
  {
    promise: 'the owner is rung when somebody else appends, not for itself, and asks once',
    holds: async ({ store }) => {
      const owner = await joined(store)
      const other = await joined(store)
      await commit(store, starting('r', owner, { own: 'take' }), starting('s', owner, { own: 'take' }), starting('free', owner))
      await commit(store, adding('r', owner, 1, { owner: { worker: owner, epoch: 1 } }))
      same((await store.mine(owner)).rung, [])
      await commit(store, adding('r', other, 2), adding('free', other, 1))
      await commit(store, adding('r', other, 3))
      same(await store.commit([adding('s', other, 7)]), [{ ok: false, why: 'head' }])
      same((await store.mine(other)).rung, [])
      const { owned, rung } = await store.mine(owner)
      same(rung, ['r'])
      same(owned.size, 2)
      same((await store.mine(owner)).rung, [])
    },
  },
  {
    promise: 'who loses a run to another is rung for it',
    holds: async ({ store }) => {
      const first = await joined(store)
      const second = await joined(store)
      await commit(store, starting('r', first, { own: 'take' }))
      await commit(store, adding('r', second, 1, { own: 'take' }))
      same(await store.mine(first), { owned: new Map(), rung: ['r'] })
      same(await store.mine(second), { owned: new Map([['r', 2]]), rung: [] })
    },
  },
  {
    promise: 'a worker that leaves gives its runs back, due at once, and is known no more',
    holds: async ({ store }) => {
      const by = await joined(store)
      const other = await joined(store)
      await commit(
        store,
        starting('r', by, { own: 'take' }),
        starting('kept', other, { own: 'take' }),
        starting('done', by, { own: 'take' }),
      )
      await commit(store, adding('done', by, 1, { ended: true }))
      await store.leave(by, 40)
      same(await peerOf(store, other, by), undefined)
      same(await store.commit([adding('r', by, 1, { owner: { worker: by, epoch: 1 } })]), [{ ok: false, why: 'epoch' }])
      same(idsOf(await claim(store, other, 39)), [])
      same(
        (await claim(store, other, 40)).rows.map(({ id, epoch }) => [id, epoch]),
        [['r', 2]],
      )
    },
  },
  {
    promise: 'a beat changes what others see of a worker, and shows it all others',
    holds: async ({ store }) => {
      const by = await joined(store)
      same(await store.beat(by), [])
      const other = await joined(store)
      const before = await peerOf(store, other, by)
      same(before?.gone, false)
      same(await peerOf(store, other, by), before)
      await store.beat(by)
      ok((await peerOf(store, other, by))?.beat !== before?.beat)
    },
  },
  {
    promise: 'what is said of how long a worker may be silent is what it said itself, also after it was fenced',
    holds: async ({ store }) => {
      const said = await store.join({ nonce: 'said', ttlMs: 7_000 })
      const unsaid = await store.join({ nonce: 'unsaid' })
      const other = await joined(store)
      const told = async () => [(await peerOf(store, other, said))?.ttlMs, (await peerOf(store, other, unsaid))?.ttlMs]
      const before = await told()
      // A store need not keep it.
      if (before[0] !== undefined) same(before, [7_000, undefined])
      const seen = await peerOf(store, other, said)
      ok(seen !== undefined)
      await store.fence(seen, 60)
      await store.beat(said)
      same(await told(), before)
    },
  },
  {
    promise: 'a worker whose beat has not changed is fenced: its runs are due, and it can do nothing more as their owner',
    holds: async ({ store }) => {
      const dead = await joined(store)
      const other = await joined(store)
      await commit(store, starting('r', dead, { own: 'take' }), starting('s', dead, { own: 'take' }), starting('t', other, { own: 'take' }))
      const seen = await peerOf(store, other, dead)
      ok(seen !== undefined)
      same(await store.fence(seen, 60), 2)
      same(await store.fence(seen, 60), 0)
      same(await peerOf(store, other, dead), undefined)
      same((await store.mine(dead)).owned, new Map())
      same(await store.commit([adding('r', dead, 1, { owner: { worker: dead, epoch: 1 } })]), [{ ok: false, why: 'epoch' }])
      same((await claim(store, other, 59)).nextWake, 60)
      same(idsOf(await claim(store, other, 60)).toSorted(), ['r', 's'])
    },
  },
  {
    promise: 'a worker whose beat has changed since is not fenced',
    holds: async ({ store }) => {
      const slow = await joined(store)
      const other = await joined(store)
      await commit(store, starting('r', slow, { own: 'take' }))
      const seen = await peerOf(store, other, slow)
      ok(seen !== undefined)
      await store.beat(slow)
      same(await store.fence(seen, 60), 0)
      same((await store.mine(slow)).owned, new Map([['r', 1]]))
      ok((await peerOf(store, other, slow)) !== undefined)
    },
  },
  {
    promise: 'a worker that was fenced is given no run: what it starts or takes is due for the others',
    holds: async ({ store }) => {
      const dead = await joined(store)
      const other = await joined(store)
      await commit(store, starting('known', other))
      const seen = await peerOf(store, other, dead)
      ok(seen !== undefined)
      await store.fence(seen, 60)
      await commit(store, starting('new', dead, { own: 'take', at: 70 }), adding('known', dead, 1, { own: 'take', at: 71 }))
      same(idsOf(await claim(store, dead, 99)), [])
      same((await store.mine(dead)).owned, new Map())
      same(idsOf(await claim(store, other, 99)), ['new', 'known'])
    },
  },
  {
    promise: 'the others are told when a worker joins',
    holds: async ({ store }) => {
      const by = await joined(store)
      store.moved(by)
      let calls = 0
      const stop = store.onMoved(() => calls++)
      await joined(store)
      ok(calls > 0)
      same([store.moved(by), store.moved(by)], [true, false])
      stop()
    },
  },
  {
    promise: 'the others are told when a worker is fenced, and not if it is not',
    holds: async ({ store }) => {
      const dead = await joined(store)
      const other = await joined(store)
      const seen = await peerOf(store, other, dead)
      ok(seen !== undefined)
      store.moved(other)
      let calls = 0
      const stop = store.onMoved(() => calls++)
      await store.fence({ ...seen, beat: seen.beat + 1 }, 60)
      same(store.moved(other), false)
      calls = 0
      await store.fence(seen, 60)
      ok(calls > 0)
      same([store.moved(other), store.moved(other)], [true, false])
      stop()
    },
  },
  {
    promise: 'the others are told when a worker that was fenced joins again, and not of any other beat',
    holds: async ({ store }) => {
      const fenced = await joined(store)
      const other = await joined(store)
      const seen = await peerOf(store, other, fenced)
      ok(seen !== undefined)
      await store.fence(seen, 60)
      store.moved(other)
      let calls = 0
      const stop = store.onMoved(() => calls++)
      same(store.moved(other), false)
      await store.beat(fenced)
      ok(calls > 0)
      same([store.moved(other), store.moved(other)], [true, false])
      const before = calls
      await store.beat(fenced)
      await store.beat(other)
      same([calls, store.moved(other)], [before, false])
      // While it was fenced others have committed.
      same(store.moved(fenced), true)
      stop()
    },
  },
  {
    promise: 'nothing has moved while only the worker itself commits',
    holds: async ({ store }) => {
      const by = await joined(store)
      same(store.moved(by), false)
      await commit(store, starting('r', by, { wake: 1 }))
      await commit(store, adding('r', by, 1), { kind: 'k', key: 'x', expect: 0, body: '' })
      await claim(store, by, 9)
      await store.mine(by)
      await store.load('r')
      same(store.moved(by), false)
    },
  },
  {
    promise: "another worker's commit has moved the store, once, for each that asks",
    holds: async ({ store }) => {
      const by = await joined(store)
      const watching = await joined(store)
      const other = await joined(store)
      for (const worker of [by, watching, other]) store.moved(worker)
      await commit(store, starting('r', other))
      same([store.moved(by), store.moved(by)], [true, false])
      await commit(store, adding('r', by, 1))
      same([store.moved(by), store.moved(other)], [false, true])
      same([store.moved(watching), store.moved(watching)], [true, false])
      await commit(store, adding('r', other, 2))
      await commit(store, adding('r', by, 3))
      same([store.moved(by), store.moved(by)], [true, false])
      await store.leave(other, 0)
      same(store.moved(by), true)
    },
  },
  {
    promise: 'what another worker claims or deletes has moved the store too, if it is anything',
    holds: async ({ store }) => {
      const by = await joined(store)
      const other = await joined(store)
      await commit(store, starting('due', by, { wake: 1 }), starting('old', by, { ended: true, at: 1 }))
      let calls = 0
      const stop = store.onMoved(() => calls++)
      for (const change of [() => claim(store, other, 9), () => store.gc({ endedBefore: 9, limit: 9 })]) {
        store.moved(by)
        calls = 0
        await change()
        ok(calls > 0)
        same([store.moved(by), store.moved(by)], [true, false])
        await change()
        same(store.moved(by), false)
      }
      stop()
    },
  },
  {
    promise: 'a worker that is not known is always told that the store has moved',
    holds: async ({ store }) => {
      const by = await joined(store)
      await store.leave(by, 0)
      same([store.moved(by), store.moved(by)], [true, true])
    },
  },
  {
    promise: 'who listens is called when another worker commits, until it stops',
    holds: async ({ store }) => {
      const by = await joined(store)
      await joined(store)
      let calls = 0
      const stop = store.onMoved(() => calls++)
      await commit(store, starting('r', by))
      ok(calls > 0)
      stop()
      const before = calls
      await commit(store, adding('r', by, 1))
      same(calls, before)
    },
  },
]
