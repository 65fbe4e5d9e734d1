import { checkStore } from 'tutti/testing'
import type { Append, Put, Store } from 'tutti/store'
import { isAppend } from 'tutti/store'
import { expect, test } from 'vitest'
import { memoryStore } from '../../src/stores/memory.js'

/** The promises that a store does not hold, by their words. */
async function brokenBy(make: () => Store): Promise<string[]> {
  const checks: [promise: string, holds: () => unknown][] = []
  checkStore('wrong', async () => make(), { describe: (_, body) => body(), test: (promise, holds) => checks.push([promise, holds]) })
  const broken: string[] = []
  for (const [promise, holds] of checks) {
    // These take their time, and none of the stores below is wrong there.
    if (/ten thousand|five megabytes/.test(promise)) continue
    try {
      await holds()
    } catch {
      broken.push(promise)
    }
  }
  return broken
}

/** A store whose listeners hear nothing while one of its calls goes on. */
function silentDuring(call: 'join' | 'claim' | 'gc' | 'fence'): Store {
  const inner = memoryStore()
  let isSilent = false
  const silently = async (...given: never[]): Promise<never> => {
    isSilent = true
    try {
      return await (inner[call] as (...given: never[]) => Promise<never>)(...given)
    } finally {
      isSilent = false
    }
  }
  return { ...inner, [call]: silently, onMoved: (wake) => inner.onMoved(() => void (isSilent || wake())) }
}

function changing(change: (item: Append) => Append): Store {
  const inner = memoryStore()
  return { ...inner, commit: (batch) => inner.commit(batch.map((item: Append | Put) => (isAppend(item) ? change(item) : item))) }
}

function endless(): Store {
  const inner = memoryStore()
  const again = new Set<string>()
  return {
    ...inner,
    commit: async (batch) => {
      for (const item of batch) if (isAppend(item) && item.create === undefined && item.ended !== true) again.add(item.run)
      return inner.commit(batch)
    },
    load: async (run, options) => {
      const loaded = await inner.load(run, options)
      return loaded === null || !again.has(run) ? loaded : { ...loaded, row: { ...loaded.row, endedAt: null } }
    },
  }
}

/** Counts every time that a run refers to a blob, and so never comes to none. */
function hoarding(): Store {
  const inner = memoryStore()
  const seen = new Set<string>()
  const kept = new Map<string, string>()
  return {
    ...inner,
    commit: async (batch) => {
      for (const item of batch)
        for (const { hash, body } of isAppend(item) ? (item.blobs ?? []) : []) {
          const reference = JSON.stringify([(item as Append).run, hash])
          if (seen.has(reference)) kept.set(hash, body)
          seen.add(reference)
        }
      return inner.commit(batch)
    },
    blob: async (hash) => (await inner.blob(hash)) ?? kept.get(hash) ?? null,
  }
}

/** Tells who joins again that nothing has happened meanwhile. */
function forgetful(): Store {
  const inner = memoryStore()
  const fenced = new Set<number>()
  return {
    ...inner,
    fence: async (peer, at) => {
      fenced.add(peer.worker)
      return inner.fence(peer, at)
    },
    beat: async (worker) => {
      const peers = await inner.beat(worker)
      if (fenced.delete(worker)) inner.moved(worker)
      return peers
    },
  }
}

function listing(list: (inner: Store) => Store['list']): Store {
  const inner = memoryStore()
  return { ...inner, list: list(inner) }
}

test('a right store breaks no promise', async () => {
  expect(await brokenBy(memoryStore)).toEqual([])
})

test.each<[string, () => Store, RegExp]>([
  ['forgets the status', () => changing((item) => ({ ...item, status: item.status ?? 'running' })), /leaves what it does not mention/],
  ['forgets that a run has ended', endless, /has ended says when/],
  ['counts a blob of a run twice', hoarding, /goes with the last run/],
  ['tells nobody who has joined', () => silentDuring('join'), /when a worker joins/],
  ['tells nobody what was claimed', () => silentDuring('claim'), /claims or deletes/],
  ['tells nobody what was deleted', () => silentDuring('gc'), /claims or deletes/],
  ['tells nobody who was fenced', () => silentDuring('fence'), /when a worker is fenced/],
  [
    'leaves due what is not any more',
    () => changing(({ wake, ...item }) => ({ ...item, ...(typeof wake === 'number' && { wake }) })),
    /when a run is due/,
  ],
  ['lets who joins again believe that nothing has happened', forgetful, /joins again/],
  [
    'finds a prefix anywhere',
    () =>
      listing(({ list }) => async ({ prefix = '', limit, ...filter }) => {
        const rows = await list({ ...filter, limit: 1_000 })
        return rows.filter(({ id }) => id.includes(prefix)).slice(0, limit)
      }),
    /obeys all of its filters/,
  ],
  [
    'begins a page with the last run of the one before',
    () =>
      listing(
        ({ list }) =>
          ({ before, ...filter }) =>
            list({ ...filter, ...(before !== undefined && { before: before + 1 }) }),
      ),
    /the cursor to the next/,
  ],
])('a store that %s does not pass', async (_, make, promise) => {
  expect(await brokenBy(make)).toContainEqual(expect.stringMatching(promise))
})
