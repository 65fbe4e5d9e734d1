import type { ActivityRecord } from './state.js'

/** What several versions write to. `before`: where the record of the same key stands that this one took the place of, if there was one. */
interface Log {
  readonly records: ActivityRecord[]
  readonly before: (number | undefined)[]
  readonly places: Map<string, number>
  /** Whether all that was ever written is what activities came to. */
  isSettled: boolean
}

const newLog = (): Log => ({ records: [], before: [], places: new Map(), isSettled: true })

/**
 * What is recorded of the activities of an attempt, by key. Persistent, as a trie is, but nearly always written in one order: so all
 * versions share one log that only grows, and each sees as much of it as was there when it was made. A version that is not the latest of
 * its log takes a copy before it goes on.
 */
export class ActivityLog {
  readonly #log: Log
  readonly #count: number

  private constructor(log: Log) {
    this.#log = log
    this.#count = log.records.length
  }

  static from(records: Iterable<ActivityRecord>): ActivityLog {
    const log = newLog()
    for (const record of records) write(log, record)
    return new ActivityLog(log)
  }

  get(key: string): ActivityRecord | undefined {
    const log = this.#log
    let place = log.places.get(key)
    while (place !== undefined && place >= this.#count) place = log.before[place]
    return place === undefined ? undefined : log.records[place]
  }

  /** Whether nothing of it is under way, for sure. */
  get isSettled(): boolean {
    return this.#log.isSettled
  }

  /** With one more record, in the place of the one of its key. */
  with(record: ActivityRecord): ActivityLog {
    // What nobody has written to may be everybody's beginning.
    const isLatest = this.#log.records.length === this.#count
    const log = this.#count === 0 ? newLog() : isLatest ? this.#log : ActivityLog.from(this.values()).#log
    write(log, record)
    return new ActivityLog(log)
  }

  /** In the order of their keys, whatever the order in which they were written. */
  values(): ActivityRecord[] {
    const found: ActivityRecord[] = []
    for (const key of [...this.#log.places.keys()].sort()) {
      const record = this.get(key)
      if (record !== undefined) found.push(record)
    }
    return found
  }
}

function write(log: Log, record: ActivityRecord): void {
  log.before.push(log.places.get(record.key))
  log.places.set(record.key, log.records.length)
  log.records.push(record)
  if (record.status === 'started' || record.status === 'sleeping') log.isSettled = false
}
