/**
 * The words of the scenarios, made executable for whatever engine and store is at hand: effects that are held until the schedule
 * releases them, a clock that stands still, a store that can be stalled, and a search over orders.
 *
 * 1. Nothing a scenario does depends on real time: the order in which effects are released is the schedule, and the schedule is chosen.
 * 2. Every effect is on record, from its start on, with the run, branch, turn, attempt and idempotency key that it was made under.
 * 3. `overrun` has every effect that was still going on when the last event of its run was committed.
 */
import type { ActivityContext, OpenOptions, Store, Turn, Tutti } from 'tutti'
import { open } from 'tutti'
import { virtualClock } from 'tutti/testing'
import { test } from 'vitest'
import { isAppend } from '../../src/engine/store.js'
import { memoryStore } from '../../src/stores/memory.js'

export type StoreMaker = () => string | Store | Promise<string | Store>

/** The stores that every scenario is played on. */
export const stores: Readonly<Record<string, StoreMaker>> = { 'memory:': () => 'memory:' }

/** A turn of which the types know nothing: scenarios are played by agents of any name. */
export type AnyTurn = Turn<any>

type Raise = (options?: OpenOptions) => Promise<Stage>

/** Hundreds of schedules take a few seconds, and more on a machine that is busy. */
const scenarioMs = 120_000

/** One scenario, as a test on each of the stores. */
export function scenario(name: string, play: (raise: Raise) => Promise<unknown>): void {
  const makers = Object.entries(stores)
  for (const [store, make] of makers)
    test(makers.length > 1 ? `${name} (${store})` : name, { timeout: scenarioMs }, async () => {
      await play((options) => Stage.open(make, options))
    })
}

/** Something that happens outside, by the hand of a run. */
export interface Effect {
  /** `run/branch/turn/key` and the attempt: the same in every execution of a schedule. */
  readonly id: string
  readonly name: string
  readonly run: string
  readonly branch: string
  readonly turn: string
  readonly attempt: number
  readonly key: string
  readonly startedAt: number
  /** It was started although its signal had been aborted already. */
  readonly late: boolean
  readonly status: 'held' | 'done' | 'threw' | 'aborted'
}

/** What a held effect comes to; nothing: the value that it was made with. */
export type Outcome = { readonly value: unknown } | { readonly throw: unknown }

interface Held {
  effect: Effect
  readonly settle: (status: Effect['status'], outcome?: Outcome) => void
}

type Context = Pick<ActivityContext, 'idempotencyKey' | 'attempt' | 'signal'>

/** After so many macrotasks in which nothing happened, nothing will. */
const quietTasks = 6

/** What is left when nothing is runnable any more. */
export interface Leftovers {
  readonly held: readonly string[]
  /** Of all effects, those that were going on when their run had ended. */
  readonly overrun: readonly string[]
  /** How many timers are armed. */
  readonly sleeping: number
}

export const nothingLeft: Leftovers = { held: [], overrun: [], sleeping: 0 }

export class Stage implements AsyncDisposable {
  readonly tutti: Tutti
  readonly #clock: ReturnType<typeof virtualClock>
  readonly #watched: Watched
  readonly #all: Held[] = []
  readonly #held = new Map<string, Held>()
  readonly #sleeping: { count: number }
  #pattern = /(?:)/

  private constructor(tutti: Tutti, watched: Watched, clock: ReturnType<typeof virtualClock>, sleeping: { count: number }) {
    this.tutti = tutti
    this.#watched = watched
    this.#clock = clock
    this.#sleeping = sleeping
    watched.live = (run) => this.waiting().flatMap((effect) => (effect.run === run ? [effect.id] : []))
  }

  static async open(make: StoreMaker = () => 'memory:', options: OpenOptions = {}): Promise<Stage> {
    const made = await make()
    const watched = new Watched(made === 'memory:' ? memoryStore() : made)
    const clock = virtualClock()
    const sleeping = { count: 0 }
    const counted = {
      now: clock.now,
      sleep: async (ms: number, signal?: AbortSignal) => {
        sleeping.count++
        await clock.sleep(ms, signal)
        sleeping.count--
      },
    }
    return new Stage(await open({ store: watched.store, clock: counted, invariants: true, ...options }), watched, clock, sleeping)
  }

  /** An effect: it is on record, and comes to its end when the schedule says so or, unless it is deaf, when it is aborted. */
  held<T>(name: string, ctx: Context, value?: T, { deaf = false } = {}): Promise<T> {
    const { idempotencyKey: key, attempt, signal } = ctx
    const [, run = '', branch = '', turn = ''] = key.split('/')
    const id = `${key.slice(key.indexOf('/') + 1)}/${name}@${attempt}`
    this.#watched.activity++
    return new Promise<T>((resolve, reject) => {
      const settle = (status: Effect['status'], outcome: Outcome = { value }): void => {
        if (held.effect.status !== 'held') return
        held.effect = { ...held.effect, status }
        if (this.#held.get(id) === held) this.#held.delete(id)
        this.#watched.activity++
        if ('throw' in outcome) reject(outcome.throw)
        else resolve(outcome.value as T)
      }
      const effect: Effect = { id, name, run, branch, turn, attempt, key, startedAt: this.now(), late: signal.aborted, status: 'held' }
      const held: Held = { effect, settle }
      this.#all.push(held)
      this.#held.set(id, held)
      const abort = (): void => settle('aborted', { throw: signal.reason })
      if (!this.#pattern.test(name)) settle('done')
      else if (!deaf && signal.aborted) abort()
      else if (!deaf) signal.addEventListener('abort', abort, { once: true })
    })
  }

  /** An effect as a journaled step of a turn. */
  step<T>(turn: Pick<Turn, 'step'>, name: string, value?: T, options: { deaf?: boolean; idempotent?: boolean } = {}): Promise<T> {
    const { deaf = false, ...rest } = options
    return turn.step(name, (ctx) => this.held(name, ctx, value, { deaf }), rest)
  }

  /** Only effects with such names are held; the others come to their end at once. */
  hold(pattern: RegExp): void {
    this.#pattern = pattern
  }

  /** The effects that are held, in an order that does not depend on when they came. */
  waiting(): Effect[] {
    return [...this.#held.values()].map(({ effect }) => effect).sort((a, b) => (a.id < b.id ? -1 : 1))
  }

  /** Lets a held effect come to its end: by its record, or by its name if only one of that name is held. */
  release(which: Effect | string, outcome?: Outcome): void {
    const found = typeof which === 'string' ? this.waiting().filter(({ name }) => name === which) : [which]
    const held = this.#held.get(found[0]?.id ?? '')
    if (held === undefined || found.length > 1)
      throw new Error(`${found.length} effects are held as ${typeof which === 'string' ? which : which.id}`)
    held.settle(outcome !== undefined && 'throw' in outcome ? 'threw' : 'done', outcome)
  }

  /** Everything that happened outside, in the order of its start. */
  effects(pattern?: RegExp): Effect[] {
    return this.#all.map(({ effect }) => effect).filter(({ name }) => pattern?.test(name) ?? true)
  }

  now(): number {
    return this.#clock.now()
  }

  /** Waits in virtual time, as the code of an agent might. */
  nap(ms: number): Promise<void> {
    return this.#clock.sleep(ms)
  }

  async advance(ms: number): Promise<void> {
    await this.#clock.advance(ms)
    await this.quiesce()
  }

  /** Commits that contain this text wait, and all that come after them. */
  stall(text: string): void {
    this.#watched.stall(text)
  }

  async unstall(): Promise<void> {
    this.#watched.unstall()
    await this.quiesce()
  }

  /** Goes on until nothing is runnable, also after a run is over, and gives what is left behind. */
  async quiesce(): Promise<Leftovers> {
    for (let quiet = 0, seen = this.#watched.activity; quiet < quietTasks; quiet++) {
      await new Promise((resolve) => setImmediate(resolve))
      if (this.#watched.activity === seen) continue
      seen = this.#watched.activity
      quiet = 0
    }
    return { held: this.waiting().map(({ id }) => id), overrun: this.#watched.overrun, sleeping: this.#sleeping.count }
  }

  /**
   * Releases what is held, one after the other as the schedule picks, until nothing is. `moves` are things done beside it, each at
   * whatever point the schedule picks, and once.
   */
  async drain(schedule: Schedule, options: { outcome?: (effect: Effect) => Outcome | undefined; moves?: Moves } = {}): Promise<void> {
    const moves = new Map(Object.entries(options.moves ?? {}))
    for (;;) {
      await this.quiesce()
      const waiting = this.waiting()
      if (waiting.length + moves.size === 0) return
      const picked = schedule.pick([...waiting, ...moves.keys()], (option) =>
        typeof option === 'string' ? option : `${option.run}/${option.branch}`,
      )
      if (typeof picked !== 'string') this.release(picked, options.outcome?.(picked))
      else {
        const move = moves.get(picked)
        moves.delete(picked)
        await move?.()
      }
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#watched.unstall()
    for (const { settle } of this.#all) settle('aborted', { throw: new Error('the scenario is over') })
    let isClosed = false
    const closed = this.tutti.close().then(() => {
      isClosed = true
    })
    // What does not hear its signal is left to its grace.
    await this.quiesce()
    if (!isClosed) await this.#clock.advance(60_000)
    await closed
  }
}

type Moves = Readonly<Record<string, () => unknown>>

/** Issues all of them before any of them can go on; gives what each came to. */
export function par<T>(...calls: readonly (() => T | Promise<T>)[]): Promise<PromiseSettledResult<T>[]> {
  return Promise.allSettled(calls.map(async (call) => call()))
}

/** Chooses what happens next. */
export interface Schedule {
  readonly name: string
  pick<T>(options: readonly T[], laneOf?: (option: T) => string): T
}

const exhaustiveMax = 6
const seeds = 200

/**
 * Plays every order of n held effects (and moves): all of them up to six, beyond that 200 schedules with random priorities of branches
 * that change at up to two places. Gives how many were played. What fails says in which order it did.
 */
export async function everyOrder(n: number, play: (schedule: Schedule) => Promise<unknown>): Promise<number> {
  if (n > exhaustiveMax) {
    for (let seed = 1; seed <= seeds; seed++) await played(seeded(seed, n), play)
    return seeds
  }
  let count = 0
  for (let prefix: number[] | null = []; prefix !== null; count++) {
    const schedule = new Prefixed(prefix, n)
    await played(schedule, play)
    prefix = schedule.next()
  }
  return count
}

/** A number of schedules of one's own choosing, for what is too large for every order. */
export async function someOrders(n: number, count: number, play: (schedule: Schedule) => Promise<unknown>): Promise<void> {
  for (let seed = 1; seed <= count; seed++) await played(seeded(seed, n), play)
}

async function played(schedule: Schedule, play: (schedule: Schedule) => Promise<unknown>): Promise<void> {
  try {
    await play(schedule)
  } catch (error) {
    if (error instanceof Error) error.message += `\n  in the order ${schedule.name}`
    throw error
  }
}

/** Takes the given choices, then always the first. */
class Prefixed implements Schedule {
  readonly #prefix: readonly number[]
  readonly #max: number
  readonly #taken: { readonly choice: number; readonly of: number }[] = []

  constructor(prefix: readonly number[], max: number) {
    this.#prefix = prefix
    this.#max = max
  }

  get name(): string {
    return `[${this.#taken.map(({ choice }) => choice).join(', ')}]`
  }

  pick<T>(options: readonly T[]): T {
    if (this.#taken.length >= this.#max) throw new Error(`there is more than the ${this.#max} to be ordered that were announced`)
    const choice = this.#prefix[this.#taken.length] ?? 0
    if (choice >= options.length) throw new Error('the same order did not lead to the same place')
    this.#taken.push({ choice, of: options.length })
    return options[choice] as T
  }

  /** The choices of the order after this one; null after the last. */
  next(): number[] | null {
    const left = [...this.#taken]
    for (let last = left.at(-1); last !== undefined && last.choice === last.of - 1; last = left.at(-1)) left.pop()
    const last = left.pop()
    return last === undefined ? null : [...left.map(({ choice }) => choice), last.choice + 1]
  }
}

function seeded(seed: number, steps: number): Schedule {
  const random = randomOf(seed)
  const priorities = new Map<string, number>()
  const changes = new Set([Math.floor(random() * steps), Math.floor(random() * steps)])
  let step = 0
  return {
    name: `of seed ${seed}`,
    pick: (options, laneOf = String) => {
      for (const option of options) if (!priorities.has(laneOf(option))) priorities.set(laneOf(option), random())
      const first = [...options].sort((a, b) => (priorities.get(laneOf(b)) ?? 0) - (priorities.get(laneOf(a)) ?? 0))[0]
      if (first === undefined) throw new Error('there is nothing to pick from')
      if (changes.has(step++)) priorities.set(laneOf(first), -step)
      return first
    },
  }
}

/** Mulberry32. */
export function randomOf(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}

/** A store that tells when it is written to, what was going on when a run ended, and that can be stalled. */
class Watched {
  readonly store: string | Store
  activity = 0
  live: (run: string) => readonly string[] = () => []
  readonly overrun: string[] = []
  #stalled: { readonly text: string; readonly gate: Promise<void>; readonly open: () => void } | null = null
  #blocked = false

  constructor(inner: string | Store) {
    this.store = typeof inner === 'string' ? inner : this.#watching(inner)
  }

  #watching(inner: Store): Store {
    const commit: Store['commit'] = (batch) => this.#commit(inner, batch)
    const get = (key: string): unknown => {
      const value: unknown = key === 'commit' ? commit : inner[key as keyof Store]
      return typeof value === 'function' ? value.bind(inner) : value
    }
    // A proxy of nothing: the store itself may be frozen, or an instance whose methods need their own `this`.
    return new Proxy({}, { get: (_, key) => get(String(key)) }) as Store
  }

  stall(text: string): void {
    let openGate = (): void => {}
    const gate = new Promise<void>((resolve) => {
      openGate = resolve
    })
    this.#stalled = { text, gate, open: openGate }
  }

  unstall(): void {
    this.#stalled?.open()
    this.#stalled = null
    this.#blocked = false
  }

  async #commit(inner: Store, batch: Parameters<Store['commit']>[0]): ReturnType<Store['commit']> {
    this.activity++
    const stalled = this.#stalled
    if (stalled !== null) {
      const matches = batch.some((item) => isAppend(item) && item.rows.some(({ body }) => body.includes(stalled.text)))
      this.#blocked ||= matches
      if (this.#blocked) await stalled.gate
    }
    // Before the commit, not after: what an effect does once the store says yes comes too late for it.
    this.overrun.push(...batch.flatMap((item) => (isAppend(item) && item.ended === true ? this.live(item.run) : [])))
    const verdicts = await inner.commit(batch)
    this.activity++
    return verdicts
  }
}
