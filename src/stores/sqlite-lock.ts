import { readdirSync, rmSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import type { Database, Driver } from './sqlite-driver.js'
import { openDatabase } from './sqlite-driver.js'
import { isBusy } from './sqlite-failure.js'

/**
 * Tells at once that a process of this machine has died: each worker holds a lock on a small file of its own, which the system releases
 * with the process, however it ends.
 *
 * 1. A worker's lock is taken before the worker can be seen, so that nobody finds it unlocked while it lives.
 * 2. The files are only ever opened by SQLite: closing any other handle on one would drop the lock of this process.
 * 3. Where there is no file nothing is known, and only the beat counts.
 */
export class WorkerLocks {
  readonly #driver: Driver
  readonly #path: string
  readonly #held = new Map<number, Database>()
  /** Kept open, since opening is what costs. */
  readonly #probes = new Map<number, Database>()

  constructor(driver: Driver, path: string) {
    this.#driver = driver
    this.#path = path
  }

  hold(worker: number): void {
    if (this.#held.has(worker)) return
    const db = openDatabase(this.#driver, this.#fileOf(worker), 'write')
    try {
      // Without this a journal would lie beside each of them.
      db.exec('pragma journal_mode = memory')
      db.exec('begin exclusive')
    } catch (error) {
      db.close()
      throw error
    }
    this.#held.set(worker, db)
  }

  /** False: somebody else holds it. */
  holdFree(worker: number): boolean {
    try {
      this.hold(worker)
      return true
    } catch (error) {
      if (isBusy(error)) return false
      throw error
    }
  }

  /**
   * True: its process is certainly dead. What is open here may be a file that was taken away since, and the worker have joined again with another:
   * so nobody is dead by one that was not opened just now.
   */
  isGone(worker: number): boolean {
    if (this.#held.has(worker) || !this.#isFree(worker)) return false
    this.#closeProbe(worker)
    return this.#isFree(worker)
  }

  /** Keeps only what is needed to look at these. */
  lookOnlyAt(workers: ReadonlySet<number>): void {
    for (const worker of this.#probes.keys()) if (!workers.has(worker)) this.#closeProbe(worker)
  }

  /** Lets a worker's file be: it never became known, and its number may be given to another. */
  release(worker: number): void {
    this.#held.get(worker)?.close()
    this.#held.delete(worker)
  }

  /** Takes a worker's file away, whoever's it was. */
  remove(worker: number): void {
    this.release(worker)
    this.#closeProbe(worker)
    this.#removeFile(this.#fileOf(worker))
  }

  /** Takes away what processes left behind that died between leaving and cleaning up. To be called while nobody else can join. */
  removeOthers(workers: ReadonlySet<number>): void {
    const prefix = `${basename(this.#path)}-worker-`
    for (const name of readdirSync(dirname(this.#path))) {
      const number = name.startsWith(prefix) ? Number(name.slice(prefix.length)) : Number.NaN
      if (Number.isInteger(number) && !workers.has(number)) this.#removeFile(join(dirname(this.#path), name))
    }
  }

  /** Lets go of everything, as the death of the process would. */
  close(): void {
    for (const db of [...this.#held.values(), ...this.#probes.values()]) db.close()
    this.#held.clear()
    this.#probes.clear()
  }

  #fileOf(worker: number): string {
    return `${this.#path}-worker-${worker}`
  }

  #isFree(worker: number): boolean {
    try {
      const probe = this.#probes.get(worker) ?? openDatabase(this.#driver, this.#fileOf(worker), 'read')
      this.#probes.set(worker, probe)
      probe.exec('select count(*) from sqlite_schema')
      return true
    } catch (error) {
      if (!isBusy(error)) this.#closeProbe(worker)
      return false
    }
  }

  #closeProbe(worker: number): void {
    this.#probes.get(worker)?.close()
    this.#probes.delete(worker)
  }

  #removeFile(file: string): void {
    try {
      rmSync(file, { force: true })
    } catch {
      // Where a file in use can't be removed, the next to join does it.
    }
  }
}
