import { thrownText } from '../kernel/thrown-text.js'
import { systemClock } from './clock.js'
import { dueNow, type Executable, type Refused, type RunRow, type Store } from './store.js'
import type { Clock, LogEntry } from './tutti.js'

export interface WorkerPort {
  readonly store: Store
  readonly worker: number
  readonly clock: Clock
  readonly ttlMs: number
  readonly onLog: (entry: LogEntry) => void
  executables(): readonly Executable[]
  /** What it was given and can't go on with. */
  refused(): readonly Refused[]
  /** This worker was given a run. Rejects if the store is out of reach. */
  claimed(row: RunRow): Promise<void>
  /** Takes the runs that are this worker's in the store and that it does not know of. */
  reclaim(): Promise<void>
  /** The other workers were looked at: some may have come or gone. */
  watched(): Promise<void>
  /** Calls at a time of the clock; gives a function that takes it back. */
  at(due: number, ring: () => void): () => void
}

/** How many beats make a time to live. */
const beatsPerTtl = 4
/** The longest that a timer can wait: one that is asked for more fires at once, again and again. */
const tickMax = 2 ** 31 - 1
/** How many runs are claimed at once, so that several workers share what is there. */
const claimsMax = 64

/**
 * One process among those that share a store: it says that it is alive, watches the others, and takes runs that nobody owns.
 *
 * 1. A peer is dead when the store is certain of it, or when its beat has not changed for its time to live, or this worker's if that is
 *    longer, counted in this worker's own ticks: no two clocks are compared, and a machine that slept fences nobody.
 * 2. Nothing is claimed that a live peer may own: a run is due only once its owner has let it go or was fenced.
 */
export class Worker {
  readonly #port: WorkerPort
  readonly #watched = new Map<number, { readonly beat: number; readonly ticks: number }>()
  readonly #stop = new AbortController()
  #started = false
  #claiming: Promise<void> | null = null
  #wakeUp: () => void = () => {}
  /** Somebody has come, gone, or written since the others were last asked after. */
  #isNews = false
  #claimAgain = false
  /** Nobody knows whether the last claim was granted, or one that was granted could not be taken. */
  #unsure = false
  #unalarm: () => void = () => {}

  constructor(port: WorkerPort) {
    this.#port = port
  }

  start(): void {
    this.#started = true
    void this.#beat()
    this.claim()
  }

  async stop(): Promise<void> {
    this.#stop.abort()
    this.#unalarm()
    await this.#claiming
  }

  /** Takes what is due, now or right after the look that is under way. */
  claim(): void {
    if (!this.#started || this.#stop.signal.aborted) return
    if (this.#claiming !== null) {
      this.#claimAgain = true
      return
    }
    // Set before the store is asked: it may say at once that something has moved, and be asked again meanwhile.
    this.#claiming = Promise.resolve()
      .then(() => this.#claim())
      .catch((error: unknown) => this.#warn('runs could not be claimed', error))
      .finally(() => {
        this.#claiming = null
        if (this.#claimAgain) {
          this.#claimAgain = false
          this.claim()
        }
      })
  }

  async #claim(): Promise<void> {
    const { store, worker, clock } = this.#port
    for (;;) {
      const definitions = this.#port.executables()
      if (definitions.length === 0 || this.#stop.signal.aborted) return
      if (this.#unsure) await this.#port.reclaim()
      this.#unsure = true
      const except = this.#port.refused()
      const now = clock.now()
      const { rows, nextWake } = await store.claim({ worker, definitions, except, now, limit: claimsMax })
      const taken = await Promise.allSettled(rows.map((row) => this.#port.claimed(row)))
      for (const outcome of taken) if (outcome.status === 'rejected') throw outcome.reason
      this.#unsure = false
      if (rows.length > 0) continue
      this.#unalarm()
      // What is due and is not given is kept from a worker that was fenced: it asks again with its next beat, by which it joins again.
      this.#unalarm = nextWake === null || nextWake <= now ? () => {} : this.#port.at(nextWake, () => this.claim())
      return
    }
  }

  async #beat(): Promise<void> {
    const everyMs = Math.max(1, Math.floor(this.#port.ttlMs / beatsPerTtl))
    while (!this.#stop.signal.aborted) {
      // What comes from now on may not be in what the store answers.
      this.#isNews = false
      try {
        await this.#watch()
      } catch (error) {
        this.#isNews = true
        this.#warn('the other workers could not be watched', error)
      }
      // Alone on a clock of its own, a worker has nobody to watch and nobody to tell: it waits until somebody comes.
      if (this.#port.clock !== systemClock && this.#watched.size === 0 && !this.#isNews) await this.#company()
      else await this.#tick(everyMs)
    }
  }

  /** Somebody has come, gone, or written to the store. */
  noticed(): void {
    this.#isNews = true
    this.#wakeUp()
    this.claim()
  }

  #company(): Promise<void> {
    const { signal } = this.#stop
    return new Promise((resolve) => {
      const done = (): void => {
        signal.removeEventListener('abort', done)
        resolve()
      }
      this.#wakeUp = done
      signal.addEventListener('abort', done, { once: true })
    })
  }

  async #watch(): Promise<void> {
    const { store, worker, ttlMs } = this.#port
    const peers = await store.beat(worker)
    for (const number of this.#watched.keys()) if (!peers.some((peer) => peer.worker === number)) this.#watched.delete(number)
    let freed = 0
    for (const { worker: number, beat, gone, ttlMs: itsTtlMs = ttlMs } of peers) {
      const before = this.#watched.get(number)
      const ticks = before?.beat === beat ? before.ticks + 1 : 0
      this.#watched.set(number, { beat, ticks })
      // One that beats more rarely than this worker is silent for longer between two beats.
      if (!gone && ticks <= beatsPerTtl * Math.max(1, itsTtlMs / ttlMs)) continue
      freed += await store.fence({ worker: number, beat }, dueNow)
      this.#watched.delete(number)
    }
    await this.#port.watched()
    if (freed > 0) this.#port.onLog({ level: 'warn', message: `runs of workers that died are free to be taken over: ${freed}` })
    // The safety net under everything that should have been told.
    this.claim()
  }

  /** A worker on a shared store stays for what may come; in the memory of one process it must not keep the process alive. */
  #tick(ms: number): Promise<void> {
    const { clock, store } = this.#port
    if (clock !== systemClock) return clock.sleep(ms, this.#stop.signal)
    const { signal } = this.#stop
    return new Promise((resolve) => {
      const done = (): void => {
        clearTimeout(timer)
        signal.removeEventListener('abort', done)
        resolve()
      }
      const timer = setTimeout(done, Math.min(ms, tickMax))
      if (store.promises.reach === 'process' || this.#port.executables().length === 0) timer.unref()
      signal.addEventListener('abort', done, { once: true })
    })
  }

  #warn(what: string, error: unknown): void {
    if (!this.#stop.signal.aborted) this.#port.onLog({ level: 'warn', message: `${what}: ${thrownText(error)}` })
  }
}
