import { renameSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { TuttiError } from 'tutti'
import { afterAll, describe, expect, test } from 'vitest'
import { sqliteStore, storeOver } from '../../src/stores/sqlite.js'
import { Connection } from '../../src/stores/sqlite-connection.js'
import { loadDriver, openDatabase } from '../../src/stores/sqlite-driver.js'
import { openConnection } from '../../src/stores/sqlite-open.js'
import { Child, soaking } from './child.js'
import { Folder } from './folder.js'

const folder = new Folder()
afterAll(() => folder[Symbol.dispose]())

const create = { definition: 'd', version: '1', tags: {} }
const started = (run: string, by: number, body = '1') => ({ run, create, expect: 0, head: 1, by, at: 1, rows: [{ seq: 1, n: 1, body }] })
const reason = (promise: Promise<unknown>): Promise<unknown> =>
  promise.then(
    () => null,
    (error: unknown) => error,
  )

describe('a file that another process has locked', () => {
  test('is waited for, and what waited is written in the order in which it came', async () => {
    const path = folder.file()
    const store = await sqliteStore(path, { durability: 'process' })
    const by = await store.join({ nonce: 'n' })
    using holder = new Child('hold-write-lock', path)
    expect(await holder.line()).toBe('held')
    const waiting = Array.from({ length: 20 }, (_, index) => store.commit([started(`r${index}`, by)]))
    expect(await store.load('r0')).toBeNull()
    holder.tell('let go')
    for (const verdicts of await Promise.all(waiting)) expect(verdicts).toEqual([{ ok: true, epoch: 0 }])
    const ids = (await store.list({ limit: 100 })).map(({ id }) => id)
    expect(ids).toEqual(Array.from({ length: 20 }, (_, index) => `r${19 - index}`))
    await store.close()
  })

  test('is reported with who holds it when that takes too long, can be read meanwhile, and is written to afterwards', async () => {
    const path = folder.file()
    const store = await sqliteStore(path, { durability: 'process', patience: { writeMs: 300 } })
    const by = await store.join({ nonce: 'n' })
    await store.commit([started('before', by)])
    using holder = new Child('hold-write-lock', path)
    await holder.line()
    const error = await reason(store.commit([started('r', by)]))
    expect(TuttiError.is(error, 'STORE_LOCKED')).toBe(true)
    const { message, hint, cause } = error as TuttiError
    if (process.platform === 'linux') expect(message).toContain(`by process ${holder.pid}`)
    expect(hint).toMatch(/nothing of this was written/)
    expect(cause).toBeInstanceOf(Error)
    expect((await store.load('before'))?.row.head).toBe(1)
    expect(await store.load('r')).toBeNull()
    holder.tell('let go')
    await holder.end()
    expect(await store.commit([started('r', by)])).toEqual([{ ok: true, epoch: 0 }])
    await store.close()
  })

  test('is waited for while it is opened, but not for ever', async () => {
    const path = folder.file()
    const first = await openConnection(path, { durability: 'process' })
    first.close()
    // Makes opening need the lock: one step more than the file has.
    using holder = new Child('hold-write-lock', path)
    await holder.line()
    const { migrations } = await import('../../src/stores/sqlite-schema.js')
    const open = (openMs: number) =>
      openConnection(path, { durability: 'process', patience: { openMs } }, [...migrations, 'create table x (y)'])
    expect(TuttiError.is(await reason(open(200)), 'STORE_LOCKED')).toBe(true)
    const opening = open(10_000)
    holder.tell('let go')
    ;(await opening).close()
  })

  test.skipIf(process.platform === 'win32')('is free again when the process that was frozen inside a transaction is killed', async () => {
    const path = folder.file()
    const store = await sqliteStore(path, { durability: 'process', patience: { writeMs: 200 } })
    const by = await store.join({ nonce: 'n' })
    using holder = new Child('hold-write-lock', path)
    await holder.line()
    holder.signal('SIGSTOP')
    expect(TuttiError.is(await reason(store.commit([started('r', by)])), 'STORE_LOCKED')).toBe(true)
    await holder.kill()
    expect(await store.commit([started('r', by)])).toEqual([{ ok: true, epoch: 0 }])
    await store.close()
  })
})

test('a file that another program keeps for itself is waited for by all who read it, many rows or one', async () => {
  const path = join(folder.path, 'kept.db')
  const driver = await loadDriver()
  const holder = openDatabase(driver, path, 'write')
  holder.exec('create table t (x); insert into t values (1)')
  const connection = new Connection(openDatabase(driver, path, 'write'), path, 200)
  const reads = [() => connection.all('select x from t'), () => connection.get('select x from t')]
  for (const read of reads) {
    // Else it would be found out when the statement is made.
    await connection.read(read)
    holder.exec('begin exclusive')
    expect(TuttiError.is(await reason(connection.read(read)), 'STORE_LOCKED'), String(read)).toBe(true)
    const waiting = connection.read(read)
    holder.exec('commit')
    expect([await waiting].flat()).toEqual([{ x: 1 }])
  }
  connection.close()
  holder.close()
})

describe('a file that is not where it was opened', () => {
  const gone: readonly (readonly [string, (path: string) => void])[] = [
    ['it was removed', (path) => rmSync(path)],
    ['its folder was removed, and there is another store now', (path) => rmSync(dirname(path), { recursive: true })],
    ['its log was removed', (path) => rmSync(`${path}-wal`)],
    ['another was put in its place', (path) => renameSync(`${path}-other`, path)],
  ]

  test.skipIf(process.platform === 'win32').each(gone)('is not written to: %s', async (what, remove) => {
    const path = folder.file()
    const store = await sqliteStore(path, { durability: 'process' })
    const by = await store.join({ nonce: 'n' })
    await store.commit([started('before', by)])
    writeFileSync(`${path}-other`, '')
    remove(path)
    const other = what.includes('another store') ? await sqliteStore(path, { durability: 'process' }) : null
    await new Promise((resolve) => setTimeout(resolve, 150))
    const error = await reason(store.commit([started('r', by)]))
    expect(TuttiError.is(error, 'STORE_UNAVAILABLE')).toBe(true)
    expect(error).toMatchObject({
      message: expect.stringMatching(/removed or replaced/),
      hint: expect.stringMatching(/nothing of this was written/),
    })
    // Also what is one statement by itself, and however soon it is tried again.
    const more = { run: 'before', expect: 1, head: 2, by, at: 2, rows: [{ seq: 2, n: 1, body: '2' }] }
    expect(TuttiError.is(await reason(store.commit([more])), 'STORE_UNAVAILABLE')).toBe(true)
    await store.close()
    await other?.close()
  })

  test('is written to again when it is back', async () => {
    const path = folder.file()
    const store = await sqliteStore(path, { durability: 'process' })
    const by = await store.join({ nonce: 'n' })
    renameSync(path, `${path}-away`)
    await new Promise((resolve) => setTimeout(resolve, 150))
    expect(TuttiError.is(await reason(store.commit([started('r', by)])), 'STORE_UNAVAILABLE')).toBe(true)
    renameSync(`${path}-away`, path)
    expect(await store.commit([started('r', by)])).toEqual([{ ok: true, epoch: 0 }])
    await store.close()
  })
})

describe('a full disk', () => {
  async function small() {
    const connection = await openConnection(folder.file(), { durability: 'process' })
    const store = storeOver(connection, await loadDriver(), { durability: 'process' })
    const by = await store.join({ nonce: 'n' })
    const room = (pages: number) => connection.exec(`pragma max_page_count = ${pages}`)
    room(60)
    return { store, by, room, pages: () => connection.get<{ page_count: number }>('pragma page_count')?.page_count }
  }
  const large = JSON.stringify('x'.repeat(20_000))

  test('refuses a batch whole, says so, and what was acknowledged stays', async () => {
    const { store, by, room } = await small()
    const acknowledged: string[] = []
    let error: unknown = null
    for (let i = 0; error === null; i++) {
      const batch = [started(`a${i}`, by), started(`b${i}`, by, large), started(`c${i}`, by)]
      error = await reason(store.commit(batch))
      if (error === null) acknowledged.push(...batch.map(({ run }) => run))
    }
    expect(TuttiError.is(error, 'STORE_UNAVAILABLE')).toBe(true)
    expect(error).toMatchObject({ message: expect.stringMatching(/disk is full/), cause: { errcode: 13 } })
    expect((await store.list({ limit: 1_000 })).map(({ id }) => id).reverse()).toEqual(acknowledged)
    // Again and again, and what is small enough still fits.
    for (let i = 0; i < 5; i++) expect(TuttiError.is(await reason(store.commit([started('x', by, large)])), 'STORE_UNAVAILABLE')).toBe(true)
    room(10_000)
    expect(await store.commit([started('x', by, large)])).toEqual([{ ok: true, epoch: 0 }])
    expect(await store.list({ limit: 1_000 })).toHaveLength(acknowledged.length + 1)
    await store.close()
  })

  test('is mended by deleting what is old', async () => {
    const { store, by } = await small()
    let runs = 0
    while ((await reason(store.commit([{ ...started(`r${runs}`, by, large), ended: true }]))) === null) runs++
    expect(runs).toBeGreaterThan(2)
    expect(await store.gc({ endedBefore: 9, limit: 2 })).toBe(2)
    expect(await store.commit([started('x', by, large)])).toEqual([{ ok: true, epoch: 0 }])
    await store.close()
  })

  test('lets nobody join by halves', async () => {
    const { store, room, pages } = await small()
    room(pages() ?? 0)
    const by = await store.join({ nonce: 'fits into the page' })
    while ((await reason(store.join({ nonce: 'x'.repeat(2_000) }))) === null);
    room(10_000)
    const next = await store.join({ nonce: 'n' })
    expect(next).toBeGreaterThan(by)
    expect((await store.beat(next)).every(({ gone }) => !gone)).toBe(true)
    await store.close()
  })
})

describe('several processes', () => {
  test('append to one run at the same time and lose nothing', { timeout: 60_000 }, async () => {
    const path = folder.file()
    const store = await sqliteStore(path, { durability: 'process' })
    await store.commit([started('shared', await store.join({ nonce: 'n' }))])
    const [count, times] = [4, soaking ? 1_000 : 100]
    const children = Array.from({ length: count }, (_, index) => new Child('append-often', path, `c${index}`, times))
    await Promise.all(children.map((child) => child.end()))
    const { row, rows = [] } = (await store.load('shared')) ?? {}
    expect(row?.head).toBe(1 + count * times)
    expect(rows.map(({ seq }) => seq)).toEqual(Array.from({ length: 1 + count * times }, (_, index) => index + 1))
    for (let index = 0; index < count; index++) {
      const own = rows.map(({ body }) => body).filter((body) => body.startsWith(`"c${index} `))
      expect(own).toEqual(Array.from({ length: times }, (_, done) => `"c${index} ${done}"`))
    }
    await store.close()
  })
})

describe('what is deleted', () => {
  test('leaves nothing behind in any table', async () => {
    const connection = await openConnection(folder.file(), { durability: 'process' })
    const store = storeOver(connection, await loadDriver(), { durability: 'process' })
    const by = await store.join({ nonce: 'n' })
    const other = await store.join({ nonce: 'm' })
    const all = {
      create: { definition: 'd', version: '1', tags: { a: 'b', c: 'd' } },
      marks: [{ kind: 'm', key: 'k', body: '1' }],
      puts: [{ kind: 'p', key: 'k', expect: 0, body: '1' }],
      blobs: [{ hash: 'h', body: '1' }],
      snapshot: { seq: 1, version: '1', body: '1' },
      own: 'take',
    } as const
    await store.commit([{ ...started('r', by), ...all }])
    await store.commit([{ run: 'r', expect: 1, head: 2, by: other, at: 2, rows: [{ seq: 2, n: 1, body: '2' }], ended: true }])
    expect(await store.gc({ endedBefore: 9, limit: 9 })).toBe(1)
    await store.leave(by, 0)
    await store.leave(other, 0)
    const tables = connection.all<{ name: string }>("select name from sqlite_schema where type = 'table' and name not like 'sqlite_%'")
    expect(tables.length).toBeGreaterThan(8)
    const left = tables.map(({ name }) => [name, connection.get<{ n: number }>(`select count(*) as n from ${name}`)?.n])
    expect(left).toEqual(tables.map(({ name }) => [name, 0]))
    await store.close()
  })
})

describe('a process killed while it commits', () => {
  test('leaves a whole file with all that it was told is kept', { timeout: soaking ? 600_000 : 60_000 }, async () => {
    const path = folder.file()
    let acknowledged = 0
    for (let round = 0; round < (soaking ? 100 : 10); round++) {
      const child = new Child('commit-until-killed', path)
      acknowledged = Number(await child.line())
      await new Promise((resolve) => setTimeout(resolve, Math.random() * 60))
      await child.kill()
      acknowledged = Math.max(acknowledged, ...child.said.map(Number))

      const store = await sqliteStore(path, { durability: 'process' })
      const { row, rows = [] } = (await store.load('main')) ?? {}
      expect(row?.head).toBeGreaterThanOrEqual(acknowledged)
      expect(row?.head).toBeLessThanOrEqual(acknowledged + 1)
      expect(rows.map(({ seq }) => seq)).toEqual(Array.from({ length: row?.head ?? 0 }, (_, index) => index + 1))
      // Each batch was whole.
      expect(await store.list({ limit: 100_000 })).toHaveLength((row?.head ?? 0) + 1)
      expect(await store.marks({ kind: 'm' })).toHaveLength(row?.head ?? 0)
      await store.close()
    }
    const db = openDatabase(await loadDriver(), path, 'read')
    expect(db.prepare('pragma integrity_check').all()).toMatchObject([{ integrity_check: 'ok' }])
    db.close()
  })
})
