import type { Database, SqlValue, Statement } from './sqlite-driver.js'
import { failureOf, isBusy, storeClosed } from './sqlite-failure.js'
import { patiently } from './sqlite-patience.js'
import { placeOf } from './sqlite-place.js'
import { migrations, tooNew } from './sqlite-schema.js'

/**
 * One open file.
 *
 * 1. The database object is held for as long as its statements: they do not keep it alive themselves.
 * 2. No statement is left half-way: rows are read to the end, never iterated, or the log could not be cut back.
 * 3. After a transaction that failed none is open.
 * 4. Writes happen in the order in which they were asked for, also when the file was locked meanwhile.
 * 5. Nothing is written to a file that is not where it was opened.
 * 6. Nothing is read from or written to a file that a later version has made its own since: what it writes may not be what is known here.
 */
export class Connection {
  readonly path: string
  readonly #db: Database
  readonly #writeMs: number
  /** The last version of a file that is known here. */
  readonly #known: number
  readonly #prepared = new Map<string, Statement>()
  readonly #checkPlace: () => void
  #held = 0
  #last: Promise<unknown> = Promise.resolve()
  #closed = false

  constructor(db: Database, path: string, writeMs: number, known: number = migrations.length) {
    this.#db = db
    this.path = path
    this.#writeMs = writeMs
    this.#known = known
    this.#checkPlace = placeOf(path)
  }

  get closed(): boolean {
    return this.#closed
  }

  /** Whether nobody in this process waits for the file: what is written now is written in its turn. Throws if it is not in its place. */
  isFree(): boolean {
    this.#checkPlace()
    return this.#held === 0
  }

  exec(sql: string): void {
    this.#db.exec(sql)
  }

  /** One that stays: it is not to be held by anybody else. */
  statement(sql: string): Statement {
    if (this.#closed) throw storeClosed(this.path)
    const known = this.#prepared.get(sql)
    if (known !== undefined) return known
    const made = this.#db.prepare(sql)
    this.#prepared.set(sql, made)
    return made
  }

  run(sql: string, ...values: readonly SqlValue[]): { readonly changes: number; readonly rowid: number } {
    const { changes, lastInsertRowid } = this.statement(sql).run(...values)
    return { changes: Number(changes), rowid: Number(lastInsertRowid) }
  }

  /** What has no result is asked for none: that costs less than being told what it changed. */
  do(sql: string, ...values: readonly SqlValue[]): void {
    this.statement(sql).get(...values)
  }

  get<Row>(sql: string, ...values: readonly SqlValue[]): Row | undefined {
    return this.statement(sql).get(...values) as Row | undefined
  }

  all<Row>(sql: string, ...values: readonly SqlValue[]): Row[] {
    return this.statement(sql).all(...values) as Row[]
  }

  /** Reads, all from one moment. */
  read<T>(work: () => T): Promise<T> {
    return patiently(() => this.#transaction('begin', work), this.path, this.#writeMs)
  }

  /** Writes all or nothing: now if nobody else writes, else as soon as they have done. `committed` follows before anybody can look. */
  write<T>(work: () => T, committed: (result: T) => void = () => {}): Promise<T> {
    const once = (): T => {
      this.#checkPlace()
      const result = this.#transaction('begin immediate', work)
      committed(result)
      return result
    }
    const since = performance.now()
    // Mostly nobody is in the way: then it is done before anybody has waited.
    if (this.#held === 0) {
      try {
        return Promise.resolve(once())
      } catch (error) {
        if (!isBusy(error)) return Promise.reject(failureOf(error, this.path))
      }
    }
    const attempt = (since: number): Promise<T> => patiently(once, this.path, this.#writeMs, since)
    const turn = this.#held === 0 ? attempt(since) : this.#last.then(() => attempt(since))
    this.#held++
    this.#last = turn.then(
      () => this.#held--,
      () => this.#held--,
    )
    return turn
  }

  close(): void {
    if (this.#closed) return
    this.#closed = true
    this.#prepared.clear()
    try {
      // One of the drivers lets go of the file only when its statements are collected, so that the log would stay: who then copies
      // the file alone would lose what is newest.
      this.#db.exec('pragma wal_checkpoint(truncate)')
    } catch {
      // Somebody else is at work; the last to close does it.
    }
    this.#db.close()
  }

  #transaction<T>(begin: 'begin' | 'begin immediate', work: () => T): T {
    this.do(begin)
    try {
      const version = this.get<{ readonly user_version: number }>('pragma user_version')?.user_version ?? 0
      if (version > this.#known) throw tooNew(this.path, version, this.#known)
      const result = work()
      this.do('commit')
      return result
    } catch (error) {
      this.#rollback()
      throw error
    }
  }

  #rollback(): void {
    // A full disk has already rolled back by itself.
    if (this.#closed || this.#db.isTransaction === false) return
    try {
      this.do('rollback')
    } catch {
      // There was none: the error that led here says more.
    }
  }
}
