import type { Definition } from '../../define/definition.js'
import type { Provided } from '../../define/resource.js'
import { TuttiError } from '../../define/tutti-error.js'
import { Engine } from '../../engine/engine.js'
import type { Seam } from '../../engine/seam.js'
import type { Store, Verdict } from '../../engine/store.js'
import type { LogEntry } from '../../engine/tutti.js'
import type { ModelFactory } from '../../models/model-factory.js'
import type { Setting } from './setting.js'
import type { VirtualTime } from './virtual-time.js'

/** What becomes of the next commit. */
export type AtCommit = 'crash-before' | 'crash-after' | 'lost-ack'

export interface ProcessPort {
  readonly setting: Setting
  readonly store: Store
  readonly time: VirtualTime
  readonly seam: Seam
  readonly models: ModelFactory
  /** What is outside outlives a crash. */
  readonly resources: readonly Provided[]
  /** Takes the fault that is meant for this commit. */
  atCommit(): AtCommit | null
  /** A commit was applied, and is acknowledged when this calls back. */
  applied(acknowledge: () => void): void
  died(): void
  onLog(entry: LogEntry): void
}

/**
 * An engine as if in a process of its own: it can die at a commit. What is dead does nothing any more: it gets no answer from the store,
 * no time passes for it, and nothing that it holds is let go.
 */
export class Process {
  alive = true
  readonly engine: Engine
  readonly worker: number
  readonly #port: ProcessPort

  private constructor(port: ProcessPort, worker: number, definition: Definition) {
    this.#port = port
    this.worker = worker
    const { setting, time, seam } = port
    this.engine = new Engine({
      store: this.#store(),
      worker,
      clock: time.clockOf(() => this.alive, null),
      ttlMs: 10_000,
      graceMs: 5_000,
      concurrency: Number.POSITIVE_INFINITY,
      definitions: [definition],
      resources: port.resources,
      models: port.models,
      invariants: setting.invariants,
      onLog: (entry) => port.onLog(entry),
      seam: {
        hold: (what, go) => (this.alive ? seam.hold(what, go) : undefined),
        later: (task) => (this.alive ? seam.later(task) : undefined),
        nonce: (run) => seam.nonce(run),
        lend: (name, value, to) => seam.lend(name, value, to),
        clock: (run, branch) => time.clockOf(() => this.alive, `${run} ${branch}`),
        activity: (run, of) => (this.alive ? (seam.activity?.(run, of) ?? null) : new Promise(() => {})),
        committed: (run, events, state) => (this.alive ? seam.committed(run, events, state) : undefined),
      },
    })
  }

  static async begin(port: ProcessPort, definition: Definition): Promise<Process> {
    const { store, time } = port
    const worker = await store.join({ nonce: port.setting.seed })
    // Whoever was there before is dead: its runs are taken over at once.
    for (const peer of await store.beat(worker)) await store.fence(peer, time.now)
    return new Process(port, worker, definition)
  }

  kill(): void {
    this.leave()
    this.#port.died()
  }

  /** Nothing of it goes on, and whoever waits in it keeps the real process alive no more. */
  leave(): void {
    this.alive = false
    this.engine.listeners.close()
  }

  #store(): Store {
    const { store } = this.#port
    const dead = new Promise<never>(() => {})
    return {
      ...store,
      commit: (batch) => (this.alive ? this.#commit(batch) : dead),
      claim: (wanted) => (this.alive ? store.claim(wanted) : dead),
      load: (run, options) => (this.alive ? store.load(run, options) : dead),
      mine: (worker) => (this.alive ? store.mine(worker) : dead),
      beat: (worker) => (this.alive ? store.beat(worker) : dead),
      moved: (worker) => this.alive && store.moved(worker),
      onMoved: (wake) => store.onMoved(() => (this.alive ? wake() : undefined)),
    }
  }

  #commit(batch: Parameters<Store['commit']>[0]): Promise<readonly Verdict[]> {
    const fault = this.#port.atCommit()
    if (fault === null) return this.#acknowledged(this.#port.store.commit(batch))
    if (fault === 'crash-before') {
      this.kill()
      return new Promise(() => {})
    }
    return this.#port.store.commit(batch).then(() => {
      if (fault === 'lost-ack') throw new TuttiError('STORE_UNAVAILABLE', 'the acknowledgement was lost')
      this.kill()
      return new Promise(() => {})
    })
  }

  #acknowledged(applied: Promise<readonly Verdict[]>): Promise<readonly Verdict[]> {
    if (!this.#port.setting.appends) return applied
    return applied.then((verdicts) => new Promise((resolve) => this.#port.applied(() => resolve(verdicts))))
  }
}
