import { accessSync, closeSync, constants, existsSync, fsyncSync, lstatSync, openSync, readlinkSync, realpathSync, statSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { TuttiError } from '../define/tutti-error.js'
import { makeFolder } from '../models/make-folder.js'
import { Connection } from './sqlite-connection.js'
import type { Database, Driver } from './sqlite-driver.js'
import { ask, loadDriver, openDatabase } from './sqlite-driver.js'
import { isNotADatabase, unreachable } from './sqlite-failure.js'
import { patiently } from './sqlite-patience.js'
import type { Header } from './sqlite-schema.js'
import { applicationId, checkHeader, migrations, notAStore } from './sqlite-schema.js'

export interface OpenFile {
  /** `process`: what was acknowledged survives the death of the process. `power`: also that of the machine. */
  readonly durability: 'process' | 'power'
  /** How long to wait for a file that somebody else has locked: while opening, and while writing. */
  readonly patience?: { readonly openMs?: number; readonly writeMs?: number }
}

/**
 * Opens the file of a store, and makes it if there is none.
 *
 * 1. A file that is not ours, or too new, is not written to: it is looked at through a connection that can't.
 * 2. Any number of processes may open a fresh file at once: whoever comes to write looks again, under the lock, at what is to be done.
 * 3. The file is only ever touched by SQLite: closing any other handle on it would drop the locks of the whole process.
 */
export async function openConnection(
  given: string,
  { durability, patience = {} }: OpenFile,
  steps: readonly string[] = migrations,
): Promise<Connection> {
  // Whoever means memory would find a file of that name, and yesterday's runs in it.
  if (given === '' || given === ':memory:' || given === 'memory') {
    throw new TuttiError('INVALID_INPUT', `'${given}' is no path of a store`, {
      hint: `give the path of a file${given === 'memory' ? ", './memory' if that is its name" : ''}, or open({ store: 'memory:' })`,
    })
  }
  const path = placeMeant(given)
  const driver = await loadDriver()
  prepareFolder(path, durability)
  return patiently(() => openOnce(driver, path, durability, steps, patience.writeMs ?? 10_000), path, patience.openMs ?? 5_000)
}

/** Where the file is: what lies beside it, as its log and who has it open, lies there and not beside a link to it. */
function placeMeant(given: string): string {
  const path = resolve(given)
  try {
    if (!lstatSync(path).isSymbolicLink()) return path
    // SQLite makes what is not there yet where the link leads to.
    return isThere(path) ? realpathSync(path) : placeMeant(resolve(realpathSync(dirname(path)), readlinkSync(path)))
  } catch {
    // It is not there yet, or can't be reached: that is said when it is opened.
    return path
  }
}

/** Throws if nobody can say, as of a link that leads to itself. */
const isThere = (path: string): boolean => statSync(path, { throwIfNoEntry: false }) !== undefined

function openOnce(driver: Driver, path: string, durability: 'process' | 'power', steps: readonly string[], writeMs: number): Connection {
  if (existsSync(path)) lookAt(driver, path, steps.length)
  const db = openDatabase(driver, path, 'write')
  try {
    prepareFile(db, path, durability, steps)
    return new Connection(db, path, writeMs, steps.length)
  } catch (error) {
    db.close()
    throw isNotADatabase(error) ? notADatabase(path, error) : error
  }
}

const withoutFile = 'it is missing or empty, and its -wal file has what was written last: put the file back beside it, or take both away'

/** The folder is made for its owner's eyes only: what runs say is nobody else's business. */
function prepareFolder(path: string, durability: 'process' | 'power'): void {
  const folder = dirname(path)
  try {
    const made = makeFolder(folder, 0o700)
    if (made !== undefined && durability === 'power') syncFolder(dirname(made))
    accessSync(folder, constants.R_OK | constants.W_OK | constants.X_OK)
    // Looked at first: a file that is being made is not empty any more when its log has something in it.
    const log = statSync(`${path}-wal`, { throwIfNoEntry: false })
    const there = statSync(path, { throwIfNoEntry: false })
    // SQLite would take it for a new one, and the log away.
    if ((there?.size ?? 0) === 0 && (log?.size ?? 0) > 0 && log?.isFile() === true) throw new Error(withoutFile)
    if (there === undefined) return
    if (there.isDirectory()) throw new Error('it is a folder')
    // Whoever opens a pipe waits for somebody at its other end, with all else that the process does.
    if (!there.isFile()) throw new Error('it is no file but a pipe or a device')
    accessSync(path, constants.R_OK | constants.W_OK)
  } catch (error) {
    throw unreachable(error, path)
  }
}

/** Else a power cut could take the new folder away, with all that was synced inside it. */
function syncFolder(folder: string): void {
  if (process.platform === 'win32') return
  const handle = openSync(folder, 'r')
  try {
    fsyncSync(handle)
  } finally {
    closeSync(handle)
  }
}

function lookAt(driver: Driver, path: string, known: number): void {
  const db = openDatabase(driver, path, 'read')
  try {
    checkHeader(headerOf(db), path, known)
  } catch (error) {
    throw isNotADatabase(error) ? notADatabase(path, error) : error
  } finally {
    db.close()
  }
}

const notADatabase = (path: string, cause: unknown): TuttiError =>
  notAStore(path, 'it is no SQLite database, or its beginning is damaged', cause)

function headerOf(db: Database): Header {
  const tables = '(select count(*) from sqlite_schema)'
  const [id, version, count] = ask(db, `application_id, user_version, ${tables}`, 'from pragma_application_id, pragma_user_version')
  return { applicationId: Number(id), version: Number(version), empty: count === 0 }
}

/**
 * How each durability syncs, and after how many pages the log is cut back. One that syncs every commit has a short log: it is soon
 * written over, and to sync what does not grow a file costs a third less. Without fullfsync macOS only hands the data to the disk, which
 * may lose it.
 */
const syncing = {
  process: 'pragma synchronous = normal; pragma wal_autocheckpoint = 1000',
  power: 'pragma synchronous = full; pragma fullfsync = on; pragma wal_autocheckpoint = 250',
} as const

function prepareFile(db: Database, path: string, durability: 'process' | 'power', steps: readonly string[]): void {
  checkHeader(headerOf(db), path, steps.length)
  db.exec('pragma journal_mode = wal')
  if (ask(db, 'journal_mode', 'from pragma_journal_mode')[0] !== 'wal') {
    throw new TuttiError('STORE_UNAVAILABLE', `${path} can't be shared between processes: its file system gives no shared memory`, {
      hint: 'put it on a disk of this machine; network file systems are not supported',
    })
  }
  db.exec(`pragma foreign_keys = off; ${syncing[durability]}`)
  if (headerOf(db).version < steps.length) migrate(db, path, steps)
}

function migrate(db: Database, path: string, steps: readonly string[]): void {
  db.exec('begin immediate')
  try {
    // Another process may have been here since.
    const header = headerOf(db)
    checkHeader(header, path, steps.length)
    for (const sql of steps.slice(header.version)) db.exec(sql)
    if (header.version < steps.length) db.exec(`pragma application_id = ${applicationId}; pragma user_version = ${steps.length}`)
    db.exec('commit')
  } catch (error) {
    if (db.isTransaction !== false) {
      try {
        db.exec('rollback')
      } catch {
        // It has rolled back by itself.
      }
    }
    throw error
  }
}
