import { TuttiError } from '../define/tutti-error.js'
import { holderOf } from './sqlite-holder.js'

/** SQLite's result codes that are told apart here. Extended codes carry them in their lowest byte. */
const code = { busy: 5, readOnly: 8, io: 10, corrupt: 11, full: 13, cannotOpen: 14, protocol: 15, notADatabase: 26 } as const

/** SQLite's own words for them: one of the drivers says no more of what fails while many rows are read. */
const words: Readonly<Record<string, number>> = {
  'database is locked': code.busy,
  'attempt to write a readonly database': code.readOnly,
  'disk I/O error': code.io,
  'database disk image is malformed': code.corrupt,
  'database or disk is full': code.full,
  'unable to open database file': code.cannotOpen,
  'locking protocol': code.protocol,
  'file is not a database': code.notADatabase,
}

/** What SQLite calls an error that it has no other name for. */
const someError = 1

/** SQLite's result code, or null if the error is none of SQLite's. */
export function sqliteCode(error: unknown): number | null {
  if (typeof error !== 'object' || error === null) return null
  const { errcode, code: name, message } = error as { readonly errcode?: unknown; readonly code?: unknown; readonly message?: unknown }
  if (typeof errcode === 'number') return errcode & 0xff
  return name === 'ERR_SQLITE_ERROR' ? (words[String(message)] ?? someError) : null
}

/** Somebody else holds a lock: it may be tried again. */
export function isBusy(error: unknown): boolean {
  const found = sqliteCode(error)
  return found === code.busy || found === code.protocol
}

export function isNotADatabase(error: unknown): boolean {
  return sqliteCode(error) === code.notADatabase
}

/** Says what is wrong with the file, to whom, and what to do. Errors that are not SQLite's stay as they are. */
export function failureOf(error: unknown, path: string): unknown {
  const found = sqliteCode(error)
  if (found === null) return error
  const { what, hint } = wordsOf(found, error)
  return new TuttiError('STORE_UNAVAILABLE', `${path}: ${what}`, { hint, cause: error })
}

export function locked(error: unknown, path: string, forMs: number): TuttiError {
  const holder = holderOf(path)
  return new TuttiError(
    'STORE_LOCKED',
    `${path} has been locked for ${(forMs / 1000).toFixed(1)} s${holder === null ? '' : ` by ${holder}`}`,
    {
      hint: 'another process is frozen or busy inside a transaction; nothing of this was written; it goes on once that process does, or ends',
      cause: error,
    },
  )
}

export function storeClosed(path: string): TuttiError {
  return new TuttiError('CLOSED', `the store ${path} is closed`, { hint: 'open it again' })
}

/** What the file system says about a path that can't be used, if it says anything. */
export function unreachable(error: unknown, path: string): TuttiError {
  const found = typeof error === 'object' && error !== null ? (error as { readonly code?: unknown }).code : undefined
  const why =
    found === 'EACCES' || found === 'EPERM' || found === 'EROFS'
      ? 'this process may not read and write there'
      : found === 'ENOTDIR' || found === 'EEXIST'
        ? 'a part of its path is a file, not a folder'
        : String(error instanceof Error ? error.message : error)
  return new TuttiError('STORE_UNAVAILABLE', `${path} can't be opened: ${why}`, {
    hint: 'the folder and the file must be readable and writable for this process',
    cause: error,
  })
}

function wordsOf(found: number, error: unknown): { readonly what: string; readonly hint: string } {
  switch (found) {
    case code.full:
      return { what: 'the disk is full', hint: 'nothing of this was written; make room, then it can be tried again' }
    case code.readOnly:
      return { what: 'the file is read-only', hint: 'the folder and the file must be writable for this process' }
    case code.corrupt:
    case code.notADatabase:
      return { what: 'the file is damaged or cut off', hint: 'restore it from a backup, or keep it for analysis and open another path' }
    case code.cannotOpen:
      return { what: "the file can't be opened", hint: 'the folder and the file must be readable and writable for this process' }
    case code.io:
      return {
        what: 'the disk failed to read or write',
        hint: 'look at the disk and at the file system; network file systems are not supported',
      }
    default:
      return { what: error instanceof Error ? error.message : `SQLite failed with code ${found}`, hint: 'the cause says more' }
  }
}
