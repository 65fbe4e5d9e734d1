import type { FSWatcher } from 'node:fs'
import { watch } from 'node:fs'
import { basename, dirname } from 'node:path'
import type { Connection } from './sqlite-connection.js'
import { sql } from './sqlite-statements.js'

/** How often to look where the file system says nothing. */
const pollMs = 250
/** How often to look at most: our own commits change the log too, and each look has its price. */
const restMs = 2
/** After so many changes of the log that were only our own, nobody listens to it for a while: that costs more than looking. */
const ownMost = 32
/** How often to look then, and how long to be quiet before listening again. */
const busyMs = 10

/**
 * Knows whether anybody else has committed.
 *
 * 1. SQLite's own number changes with every commit but those of this connection; those are counted here.
 * 2. Each worker has its own idea of what it has seen; a commit of its own it has seen if it had seen all before.
 * 3. What `moved` finds out is still told to those who listen: they may be others.
 * 4. Nothing is watched while nobody listens, and watching keeps no process alive.
 */
export class Changes {
  readonly #connection: Connection
  readonly #seen = new Map<number, number>()
  readonly #listeners = new Set<() => void>()
  #version: number
  #commits = 0
  #foreign = 0
  #announced = 0
  #stop: () => void = () => {}

  constructor(connection: Connection) {
    this.#connection = connection
    this.#version = this.#readVersion()
  }

  joined(worker: number): void {
    this.moved(worker)
    this.#seen.set(worker, this.#commits)
  }

  left(worker: number): void {
    this.#seen.delete(worker)
  }

  /** This connection has committed, for a worker or for nobody in particular. */
  committed(by: number | null): void {
    const before = this.#commits++
    if (by !== null && this.#seen.get(by) === before) this.#seen.set(by, this.#commits)
    // The only worker knows what it did; among several, the others have to look.
    if (this.#seen.size !== 1 || by === null || !this.#seen.has(by)) queueMicrotask(() => this.#tell())
  }

  moved(worker: number): boolean {
    try {
      this.#look()
    } catch {
      return true
    }
    const moved = this.#seen.get(worker) !== this.#commits
    if (this.#seen.has(worker)) this.#seen.set(worker, this.#commits)
    return moved
  }

  onMoved(wake: () => void): () => void {
    // Wrapped, so that the same function may listen twice.
    const listener = (): void => wake()
    if (this.#connection.closed) return () => {}
    this.#listeners.add(listener)
    if (this.#listeners.size === 1) this.#start()
    return () => {
      if (this.#listeners.delete(listener) && this.#listeners.size === 0) this.#stop()
    }
  }

  close(): void {
    this.#listeners.clear()
    this.#stop()
  }

  #start(): void {
    this.#announced = this.#foreign
    const check = (): void => {
      try {
        this.#look()
      } catch {
        return // It can't be read at this moment; the next poll will.
      }
      if (this.#foreign === this.#announced) return
      this.#announced = this.#foreign
      this.#tell()
    }
    const poll = setInterval(check, pollMs).unref()
    const stopListening = this.#listen(check)
    this.#stop = () => {
      clearInterval(poll)
      stopListening()
    }
  }

  /** Checks when the log changes; while this process changes it again and again, every few milliseconds instead. */
  #listen(check: () => void): () => void {
    const soon = rarely(check, restMs)
    let watcher: FSWatcher | null = null
    let busy: NodeJS.Timeout | undefined
    const watch = (): void => {
      const foreign = this.#foreign
      let heard = 0
      watcher = watchLog(this.#connection.path, () => {
        if (++heard > ownMost && this.#foreign === foreign) rest()
        else soon.call()
      })
    }
    const rest = (): void => {
      watcher?.close()
      let commits = this.#commits
      busy = setInterval(() => {
        check()
        if (commits !== this.#commits) commits = this.#commits
        else {
          clearInterval(busy)
          watch()
          // What came before it listened again.
          check()
        }
      }, busyMs).unref()
    }
    watch()
    return () => {
      clearInterval(busy)
      soon.cancel()
      watcher?.close()
    }
  }

  #tell(): void {
    for (const listener of this.#listeners) listener()
  }

  #look(): void {
    const version = this.#readVersion()
    if (version === this.#version) return
    this.#version = version
    this.#commits++
    this.#foreign++
  }

  #readVersion(): number {
    return (this.#connection.statement(sql.version).get() as { readonly data_version: number }).data_version
  }
}

/** Does something at once if it has rested, else once when it has. */
function rarely(work: () => void, rest: number): { readonly call: () => void; readonly cancel: () => void } {
  let last = Number.NEGATIVE_INFINITY
  let later: NodeJS.Timeout | undefined
  const now = (): void => {
    later = undefined
    last = performance.now()
    work()
  }
  const call = (): void => {
    if (later !== undefined) return
    if (performance.now() - last >= rest) now()
    else later = setTimeout(now, rest).unref()
  }
  return { call, cancel: () => clearTimeout(later) }
}

/** Calls when the write-ahead log changes. Null where the system can't watch, or has no watches left: then the poll is all there is. */
function watchLog(path: string, check: () => void): FSWatcher | null {
  const log = `${basename(path)}-wal`
  try {
    const watcher = watch(dirname(path), { persistent: false }, (_, name) => {
      if (name === log || name === null) check()
    })
    return watcher.on('error', () => watcher.close())
  } catch {
    return null
  }
}
