import { afterAll, describe, expect, test } from 'vitest'
import type { Append, Store } from '../../src/engine/store.js'
import { memoryStore } from '../../src/stores/memory.js'
import { sqliteStore } from '../../src/stores/sqlite.js'
import { openConnection } from '../../src/stores/sqlite-open.js'
import { migrations } from '../../src/stores/sqlite-schema.js'
import { Folder } from './folder.js'

const folder = new Folder()
afterAll(() => folder[Symbol.dispose]())

const process_ = { durability: 'process' } as const
const create = { definition: 'd', version: '1', tags: {} }
const last = 150

const started = (run: string, by: number): Append => ({
  run,
  create,
  expect: 0,
  head: 1,
  own: 'take',
  by,
  at: 1,
  rows: [{ seq: 1, n: 1, body: `${run} 1` }],
})

/** The append of one row of `n` events, by somebody who does not own the run. */
const commanded = (run: string, by: number, expect: number, n = 1): Append => ({
  run,
  expect,
  head: expect + n,
  by,
  at: 2,
  rows: [{ seq: expect + 1, n, body: `${run} ${expect + 1}` }],
})

/** The same by its owner. */
const adding = (run: string, worker: number, expect: number, n = 1): Append => ({
  ...commanded(run, worker, expect, n),
  owner: { worker, epoch: 1 },
})

/** Three runs that go on side by side: their rows alone and in batches in turn, and those of `b` packed. */
async function threeRuns(store: Store): Promise<number> {
  const by = await store.join({ nonce: 'n' })
  await store.commit(['a', 'b', 'c'].map((run) => started(run, by)))
  for (let at = 1; at < last; at++) {
    const ends = at === last - 1 ? { ended: true } : {}
    if (at % 3 === 0) for (const run of ['a', 'c']) await store.commit([{ ...adding(run, by, at), ...ends }])
    else await store.commit(['a', 'c'].map((run) => ({ ...adding(run, by, at), ...ends })))
  }
  for (let at = 1; at < last; at += 7) {
    const other = started(`b${at}`, by)
    await store.commit(at % 2 === 0 ? [adding('b', by, at, 7)] : [other, adding('b', by, at, 7)])
  }
  return by
}

async function opened(
  path: string,
  work: (connection: Awaited<ReturnType<typeof openConnection>>) => void,
  steps = migrations,
): Promise<void> {
  const connection = await openConnection(path, process_, steps)
  try {
    work(connection)
  } finally {
    connection.close()
  }
}

describe('a journal', () => {
  test('is found again from each of its events on, as where runs are kept in memory', async () => {
    const stores = [await sqliteStore(folder.file(), process_), memoryStore()] as const
    for (const store of stores) await threeRuns(store)
    const [kept, expected] = stores
    const options = [...Array(last + 9).keys()].map((after) => ({ after }))
    for (const run of ['a', 'b', 'c']) {
      for (const each of [{}, ...options, { limit: 5 }, { limit: 100 }, { limit: 100, after: 20 }, { limit: 0 }])
        expect([each, await kept.load(run, each)]).toEqual([each, await expected.load(run, each)])
    }
    expect(await kept.list({ limit: 9 })).toEqual(await expected.list({ limit: 9 }))
    for (const store of stores) await store.close()
  })

  test.each(['alone', 'with another'])('is not gone on with twice at the same event, by its owner %s', async (how) => {
    const path = folder.file()
    const store = await sqliteStore(path, process_)
    const by = await store.join({ nonce: 'n' })
    await store.commit([started('r', by), started('s', by)])
    let others = 0
    const said = async (append: Append) => (await store.commit(how === 'alone' ? [append] : [append, started(`r${++others}`, by)]))[0]
    const other = await sqliteStore(path, process_)
    for (let at = 1; at < 20; at += 4) {
      expect(await said(adding('r', by, at))).toEqual({ ok: true })
      expect(await other.commit([commanded('r', by, at + 1)])).toEqual([{ ok: true }])
      expect(await said(adding('r', by, at + 1))).toEqual({ ok: false, why: 'head' })
      expect(await said(adding('r', by, at + 2))).toEqual({ ok: true })
      // The other one knows then where the run stands, and writes in one statement too.
      expect(await other.commit([{ ...adding('r', by, at + 3, 0), rows: [] }])).toEqual([{ ok: true }])
      expect(await other.commit([adding('r', by, at + 3)])).toEqual([{ ok: true }])
      expect(await said(adding('r', by, at + 3))).toEqual({ ok: false, why: 'head' })
      expect((await store.load('r'))?.row.head).toBe(at + 4)
    }
    expect((await store.load('r'))?.rows.map(({ seq }) => seq)).toEqual([...Array(21).keys()].map((index) => index + 1))
    await store.close()
    await other.close()
  })

  test('goes with all of its events, and none of those beside it', async () => {
    const path = folder.file()
    const store = await sqliteStore(path, process_)
    await threeRuns(store)
    const before = await store.load('b')
    expect(await store.gc({ endedBefore: 9, limit: 9 })).toBe(2)
    expect(await store.load('b')).toEqual(before)
    await store.close()
    await opened(path, (connection) => {
      const rows = 'select rid from batched where rid in (1, 3) union all select id from alone where id >> 32 in (1, 3)'
      expect(connection.all(rows)).toEqual([])
    })
  })
})

describe('a journal of a file from before', () => {
  const goOn = `
    insert or ignore into event (rid, seq, n, at, body)
    select rid, ?, ?, ?, ? from run where rid = ? and worker = ? and epoch = ?`
  const older = migrations.slice(0, 5)

  async function fileOfBefore(): Promise<string> {
    const path = folder.file()
    await opened(
      path,
      (connection) => {
        connection.exec(`
          insert into run (id, definition, version, tags, status, waits, epoch, worker, started)
          values ('r', 'd', '1', '{}', 'running', '[]', 1, 7, 1)`)
        for (let seq = 1; seq <= last; seq++) connection.run(goOn, seq, 1, 2, `r ${seq}`, 1, 7, 1)
      },
      older,
    )
    return path
  }

  test('is read, gone on with, and deleted', async () => {
    const path = await fileOfBefore()
    const store = await sqliteStore(path, process_)
    const seqs = async (after: number): Promise<number[]> => (await store.load('r', { after }))?.rows.map(({ seq }) => seq) ?? []
    expect((await store.load('r'))?.row.head).toBe(last)
    expect(await store.commit([commanded('r', 9, last - 1)])).toEqual([{ ok: false, why: 'head' }])
    expect(await store.commit([commanded('r', 9, last)])).toEqual([{ ok: true }])
    expect(await store.commit([{ ...commanded('r', 9, last + 1), ended: true }])).toEqual([{ ok: true }])
    expect(await seqs(0)).toEqual([...Array(last + 2).keys()].map((index) => index + 1))
    expect(await seqs(last - 2)).toEqual([last - 1, last, last + 1, last + 2])
    expect(await seqs(last + 1)).toEqual([last + 2])
    expect((await store.list({ limit: 1 }))[0]?.head).toBe(last + 2)
    expect(await store.gc({ endedBefore: 9, limit: 9 })).toBe(1)
    await store.close()
    await opened(path, (connection) => expect(connection.all('select body from batched union all select body from alone')).toEqual([]))
  })

  test('is not written to any more by the program of before, which has it open', async () => {
    const path = await fileOfBefore()
    const before = await openConnection(path, process_, older)
    before.run(goOn, last + 1, 1, 2, 'before', 1, 7, 1)
    const store = await sqliteStore(path, process_)
    expect(() => before.run(goOn, last + 2, 1, 2, 'after', 1, 7, 1)).toThrow('no such table: event')
    expect((await store.load('r'))?.row.head).toBe(last + 1)
    await store.close()
    before.close()
  })
})
