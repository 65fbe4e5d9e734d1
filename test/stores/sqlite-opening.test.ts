import { execFileSync } from 'node:child_process'
import { chmodSync, copyFileSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { type Code, TuttiError } from 'tutti'
import { afterAll, describe, expect, test } from 'vitest'
import type { Store } from '../../src/engine/store.js'
import { sqliteStore } from '../../src/stores/sqlite.js'
import { loadDriver, openDatabase } from '../../src/stores/sqlite-driver.js'
import { openConnection } from '../../src/stores/sqlite-open.js'
import { applicationId, migrations } from '../../src/stores/sqlite-schema.js'
import { Child, soaking } from './child.js'
import { Folder } from './folder.js'

const folder = new Folder()
afterAll(() => folder[Symbol.dispose]())

const process_ = { durability: 'process' } as const
const create = { definition: 'd', version: '1', tags: {} }
const started = (run: string, by: number, body = '1') => ({ run, create, expect: 0, head: 1, by, at: 1, rows: [{ seq: 1, n: 1, body }] })

async function database(path: string, ...statements: string[]): Promise<unknown[]> {
  mkdirSync(dirname(path), { recursive: true })
  const db = openDatabase(await loadDriver(), path, 'write')
  const results = statements.map((sql) => db.prepare(sql).all())
  db.close()
  return results
}

/** A store with this many runs in it, closed. */
async function filled(runs = 200): Promise<string> {
  const path = folder.file()
  const store = await sqliteStore(path, process_)
  const by = await store.join({ nonce: 'n' })
  await store.commit(Array.from({ length: runs }, (_, index) => started(`r${index}`, by, JSON.stringify('x'.repeat(500)))))
  await store.leave(by, 0)
  await store.close()
  return path
}

/** The same as another process would find it: SQLite shares what it knows of a file between all connections of a process. */
function copyOf(path: string): string {
  const copy = folder.file()
  mkdirSync(dirname(copy))
  copyFileSync(path, copy)
  return copy
}

async function refusal(code: Code, opening: Promise<unknown>): Promise<TuttiError> {
  const error = await opening.then(
    () => null,
    (reason: unknown) => reason,
  )
  if (!TuttiError.is(error, code)) throw new Error(`not ${code}`, { cause: error })
  expect(error.hint).toBeTypeOf('string')
  return error
}

describe('a fresh store', () => {
  test('is made with its folder, which only its owner may read', async () => {
    const path = join(folder.path, 'new', '.tutti', 'tutti.db')
    const store = await sqliteStore(path, process_)
    if (process.platform !== 'win32') expect(statSync(dirname(path)).mode & 0o777).toBe(0o700)
    expect(store.promises).toEqual({ durable: 'process', reach: 'machine', maxValue: 16 * 2 ** 20 })
    await store.close()
    // All of it is in the file itself, also where the log is only removed when the last statement has been collected.
    expect(statSync(`${path}-wal`, { throwIfNoEntry: false })?.size ?? 0).toBe(0)
    const [id, version] = await database(path, 'pragma application_id', 'pragma user_version')
    expect([id, version]).toMatchObject([[{ application_id: applicationId }], [{ user_version: migrations.length }]])
  })

  test('says how durable it is, and what a value may weigh', async () => {
    const store = await sqliteStore(folder.file(), { durability: 'power', maxValue: 1_000 })
    expect(store.promises).toEqual({ durable: 'power', reach: 'machine', maxValue: 1_000 })
    await store.close()
  })

  test.each([
    ['process', 1, 1_000],
    ['power', 2, 250],
  ] as const)('durable against the loss of %s syncs as it says, in WAL', async (durability, synchronous, pages) => {
    const connection = await openConnection(folder.file(), { durability })
    expect(connection.get('pragma synchronous')).toMatchObject({ synchronous })
    expect(connection.get('pragma journal_mode')).toMatchObject({ journal_mode: 'wal' })
    expect(connection.get('pragma foreign_keys')).toMatchObject({ foreign_keys: 0 })
    expect(connection.get('pragma busy_timeout')).toMatchObject({ timeout: 0 })
    expect(connection.get('pragma wal_autocheckpoint')).toMatchObject({ wal_autocheckpoint: pages })
    connection.close()
  })

  test('may be an empty file that is already there', async () => {
    const path = join(folder.path, 'empty.db')
    writeFileSync(path, '')
    await (await sqliteStore(path, process_)).close()
  })

  test('has a path: memory is another store', async () => {
    await refusal('INVALID_INPUT', sqliteStore('', process_))
    await refusal('INVALID_INPUT', sqliteStore(':memory:', process_))
    await refusal('INVALID_INPUT', sqliteStore('memory', process_))
  })

  test.each([2, 8])('can be opened by %i processes at once', { timeout: soaking ? 600_000 : 60_000 }, async (count) => {
    for (let round = 0; round < (soaking ? 50 : 5); round++) {
      const path = folder.file()
      const start = Date.now() + 250
      const children = Array.from({ length: count }, (_, index) => new Child('open-and-commit', path, `c${index}`, 3, start))
      await Promise.all(children.map((child) => child.end()))
      const store = await sqliteStore(path, process_)
      expect(await store.list({ limit: 100 })).toHaveLength(3 * count)
      await store.close()
    }
  })
})

describe('a store of another version', () => {
  const next = [...migrations, 'alter table run add column note text', "update run set note = 'migrated'"]

  test('is brought up to date, with what is in it', async () => {
    const path = await filled(3)
    const connection = await openConnection(path, process_, next)
    expect(connection.all('select note from run')).toMatchObject([{ note: 'migrated' }, { note: 'migrated' }, { note: 'migrated' }])
    connection.close()
    expect(await database(path, 'pragma user_version')).toMatchObject([[{ user_version: migrations.length + 2 }]])
  })

  test('that kept the heads of runs beside their events is read and gone on with', async () => {
    const path = folder.file()
    const first = await openConnection(path, process_, migrations.slice(0, 1))
    first.exec(`
      insert into run (id, definition, version, tags, status, waits, head, epoch, worker, started)
      values ('r', 'd', '1', '{}', 'running', '[]', 4, 0, null, 1);
      insert into event (rid, seq, n, at, body) values (1, 1, 1, 1, '1'), (1, 2, 3, 1, '2')`)
    first.close()
    const store = await sqliteStore(path, process_)
    expect((await store.load('r'))?.row).toMatchObject({ head: 4, status: 'running' })
    const append = { run: 'r', by: 1, at: 2, rows: [{ seq: 5, n: 1, body: '5' }] }
    expect(await store.commit([{ ...append, expect: 3, head: 4 }])).toEqual([{ ok: false, why: 'head' }])
    expect(await store.commit([{ ...append, expect: 4, head: 5 }])).toEqual([{ ok: true }])
    expect((await store.list({ limit: 1 }))[0]).toMatchObject({ id: 'r', head: 5 })
    await store.close()
  })

  test('is brought up to date once, by one of those who open it at the same time', async () => {
    const path = await filled(3)
    const once = [...migrations, 'create table once (x)']
    const opened = await Promise.all(Array.from({ length: 5 }, () => openConnection(path, process_, once)))
    for (const connection of opened) connection.close()
    expect(await database(path, 'pragma user_version')).toMatchObject([[{ user_version: migrations.length + 1 }]])
  })

  test('stays as it is if it cannot be brought up to date', async () => {
    const path = await filled(3)
    await refusal('STORE_UNAVAILABLE', openConnection(path, process_, [...migrations, 'create table half (x)', 'create table run (x)']))
    const [tables, version] = await database(path, "select name from sqlite_schema where name = 'half'", 'pragma user_version')
    expect([tables, version]).toMatchObject([[], [{ user_version: migrations.length }]])
    await (await sqliteStore(path, process_)).close()
  })

  test('that is newer is refused and not written to', async () => {
    const path = await filled(3)
    ;(await openConnection(path, process_, next)).close()
    const before = readFileSync(path)
    const error = await refusal('STORE_TOO_NEW', sqliteStore(path, process_))
    expect(error.message).toContain(`version ${next.length}`)
    expect(readFileSync(path)).toEqual(before)
  })

  test('that becomes newer while it is open is read and written no more, and others find that its worker is silent', async () => {
    const path = await filled(3)
    const store = await sqliteStore(path, process_)
    const by = await store.join({ nonce: 'old' })
    const later = await openConnection(path, process_, next)
    const rows = (): unknown => later.all('select * from run')
    const before = rows()
    const beat = (): unknown => later.get('select beat from worker where id = ?', by)
    const beaten = beat()
    await refusal('STORE_TOO_NEW', store.load('r0'))
    await refusal('STORE_TOO_NEW', store.list({ limit: 1 }))
    await refusal('STORE_TOO_NEW', store.commit([started('r9', by)]))
    await refusal('STORE_TOO_NEW', store.claim({ worker: by, definitions: [{ name: 'd', versions: ['1'] }], now: 9, limit: 9 }))
    await refusal('STORE_TOO_NEW', store.beat(by))
    await refusal('STORE_TOO_NEW', store.mine(by))
    await refusal('STORE_TOO_NEW', store.leave(by, 1))
    expect([rows(), beat()]).toEqual([before, beaten])
    await store.close()
    later.close()
  })
})

describe('a file that is no store is refused and not written to', () => {
  test.each([
    ['the database of another program', ['create table theirs (x)', 'insert into theirs values (1)']],
    ['one in WAL', ['pragma journal_mode = wal', 'create table theirs (x)']],
    ['one with a version', ['pragma user_version = 1', 'create table theirs (x)']],
    ['one with an id of its own and nothing in it', ['pragma application_id = 77']],
  ])('%s', async (_, statements) => {
    const path = folder.file()
    await database(path, ...statements)
    const before = readFileSync(path)
    await refusal('NOT_A_STORE', sqliteStore(path, process_))
    expect(readFileSync(path)).toEqual(before)
  })

  test('a text', async () => {
    const path = join(folder.path, 'notes.txt')
    writeFileSync(path, 'Remember the milk.\n'.repeat(200))
    const before = readFileSync(path)
    const error = await refusal('NOT_A_STORE', sqliteStore(path, process_))
    expect(error.cause).toBeInstanceOf(Error)
    expect(readFileSync(path)).toEqual(before)
    expect(readdirSync(folder.path).filter((name) => name.startsWith('notes.txt'))).toEqual(['notes.txt'])
  })
})

describe('a store that cannot be used says so', () => {
  test('one that was cut off', async () => {
    const path = copyOf(await filled())
    truncateSync(path, Math.floor(statSync(path).size / 2))
    const before = readFileSync(path)
    const error = await refusal('STORE_UNAVAILABLE', sqliteStore(path, process_))
    expect(error.message).toMatch(/damaged or cut off/)
    expect(error.cause).toBeInstanceOf(Error)
    expect(readFileSync(path)).toEqual(before)
  })

  const looks: readonly (readonly [string, (store: Store) => Promise<unknown>])[] = [
    ['reads a run', (store) => store.load('r7')],
    ['lists runs', (store) => store.list({ limit: 10 })],
    ['lists records', (store) => store.records('agent')],
    ['lists marks', (store) => store.marks({ kind: 'ask' })],
    ['looks what is due', (store) => store.claim({ worker: 1, definitions: [{ name: 'd', versions: ['1'] }], now: 1, limit: 1 })],
  ]

  test.each(looks)('one with damage in it, when somebody %s', async (_, look) => {
    const path = copyOf(await filled())
    const bytes = readFileSync(path)
    bytes.fill(0xa5, 4096)
    writeFileSync(path, bytes)
    const opening = async () => {
      const store = await sqliteStore(path, process_)
      try {
        await look(store)
      } finally {
        await store.close()
      }
    }
    expect((await refusal('STORE_UNAVAILABLE', opening())).message).toMatch(/damaged or cut off/)
    expect(readFileSync(path)).toEqual(bytes)
  })

  test('one that is missing or empty beside a log, which stays as it is', async () => {
    const path = folder.file()
    const store = await sqliteStore(path, process_)
    const by = await store.join({ nonce: 'n' })
    await store.commit([started('r', by)])
    const copy = copyOf(path)
    copyFileSync(`${path}-wal`, `${copy}-wal`)
    await store.close()
    const [file, log] = [readFileSync(copy), readFileSync(`${copy}-wal`)]
    truncateSync(copy, 0)
    expect((await refusal('STORE_UNAVAILABLE', sqliteStore(copy, process_))).message).toMatch(/missing or empty/)
    rmSync(copy)
    expect((await refusal('STORE_UNAVAILABLE', sqliteStore(copy, process_))).message).toMatch(/missing or empty/)
    expect(readFileSync(`${copy}-wal`)).toEqual(log)
    writeFileSync(copy, file)
    const again = await sqliteStore(copy, process_)
    expect(await again.load('r')).not.toBeNull()
    await again.close()
  })

  test('a folder in place of the file, and a file in place of the folder', async () => {
    await refusal('STORE_UNAVAILABLE', sqliteStore(folder.path, process_))
    const file = join(folder.path, 'a-file')
    writeFileSync(file, '')
    await refusal('STORE_UNAVAILABLE', sqliteStore(join(file, 'tutti.db'), process_))
  })

  test.skipIf(process.platform !== 'linux')(
    'a folder that can be made nowhere, and a pipe, which would keep the process for ever',
    async () => {
      using below = new Child('open-as-nobody', '/proc/nowhere/deeper/tutti.db')
      expect(await below.line()).toMatch(/^STORE_UNAVAILABLE hint .*no such file or directory/)
      chmodSync(folder.path, 0o777)
      const pipe = join(folder.path, 'a-pipe')
      execFileSync('sh', ['-c', 'mkfifo -m 666 "$0"', pipe])
      using piped = new Child('open-as-nobody', pipe)
      expect(await piped.line()).toMatch(/^STORE_UNAVAILABLE hint .*no file but a pipe/)
    },
  )

  test.skipIf(process.platform === 'win32')('a file or a folder that may only be read', async () => {
    const path = await filled(1)
    chmodSync(folder.path, 0o755)
    chmodSync(dirname(path), 0o777)
    chmodSync(path, 0o444)
    expect(await new Child('open-as-nobody', path).line()).toMatch(/^STORE_UNAVAILABLE hint .*may not (read and )?write/)
    chmodSync(path, 0o666)
    chmodSync(dirname(path), 0o555)
    expect(await new Child('open-as-nobody', path).line()).toMatch(/^STORE_UNAVAILABLE hint .*may not (read and )?write/)
    expect(await new Child('open-as-nobody', join(dirname(path), 'deeper', 'tutti.db')).line()).toMatch(
      /^STORE_UNAVAILABLE hint .*may not (read and )?write/,
    )
    chmodSync(dirname(path), 0o777)
    expect(await new Child('open-as-nobody', path).line()).toBe('opened')
    chmodSync(dirname(path), 0o700)
  })

  test('one that was closed', async () => {
    const store = await sqliteStore(folder.file(), process_)
    await store.close()
    await store.close()
    await refusal('CLOSED', store.commit([]))
    await refusal('CLOSED', store.load('r'))
    expect(store.moved(1)).toBe(true)
  })
})
