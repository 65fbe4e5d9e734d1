import type { Code } from '../../kernel/shape.js'
import type { State } from '../../kernel/state.js'
import type { Happening, Option } from './happening.js'
import type { Deviation } from './schedule.js'

/** Where a schedule has to be decided: everything has come to rest, and something must be let go. */
export interface Point {
  readonly step: number
  /** How many options there are; option 0 is what first-come order would do. */
  readonly count: number
  option(which: number): Option
  /** Where the run stands. */
  readonly situation: Situation
}

/** The state of the run, the time, and the definition's functions that decisions may call. */
export interface Situation {
  readonly state: State
  readonly at: number
  readonly code: Code | null
}

/** What is let go. `hold`: places in the queue that are put back first. Null: this schedule is not worth going on with. */
export interface Move {
  readonly take: number
  readonly hold?: readonly number[]
  readonly fault?: number
}

export type Chooser = (point: Point) => Move | null

/** What the scheduler needs of what it schedules. */
export interface Scheduled {
  /** `rest`: everything waits for the scheduler; `away`: something waits for what is not the scheduler's; `over`: there is nothing more. */
  standing(): 'rest' | 'away' | 'over'
  release(option: Option, fault: number | null): void
  /** The clock as something that can happen; null: nobody waits for it. */
  clock(): Happening | null
  situation(): Situation
  /** Nothing can happen. */
  stuck(): void
}

/** So many macrotasks are asked for at a time: promises drain after each, and the event loop looks for other things after all of them. */
const ticksAtOnce = 16

/** For so long, things that wait for what is not the scheduler's are looked at in every turn of the event loop; then less often. */
const eagerMs = 2

const byNumbers = new Intl.Collator('en', { numeric: true })

const stepOf = ({ command }: Happening): string | null => (command !== null && 'key' in command ? command.key : null)

/** What a body says last is of no step. */
function byStep(a: Happening, b: Happening): number {
  const [ofA, ofB] = [stepOf(a), stepOf(b)]
  return ofA === null || ofB === null ? Number(ofA === null) - Number(ofB === null) : byNumbers.compare(ofA, ofB)
}

/**
 * Lets go what waits, one option after the other, in the order that a chooser says.
 *
 * 1. Nothing is let go before everything that followed from the last has come to rest: the engine's own macrotasks are counted, and
 *    promises have drained when a macrotask begins.
 * 2. What waits is in the order in which it came: option 0 is always first-come. Only what is not the scheduler's comes by chance, and is
 *    put in order.
 * 3. Time passes when nothing else can happen, or, where timeouts are explored, as an option of its own.
 */
export class Scheduler {
  readonly #port: Scheduled
  readonly #choose: Chooser
  readonly #timeouts: boolean
  readonly #stepsMax: number
  #ready: Happening[] = []
  /** Held back until nothing else can happen. */
  #late: Happening[] = []
  #tasks: (() => void)[] = []
  #step = 0
  #awaySince: number | null = null
  /** What came while something was waited for that is not the scheduler's; null: nothing was. */
  #brought: Set<Happening> | null = null
  /** How it went, as deviations. */
  readonly deviations: Deviation[] = []
  /** The longest wait for what is not the scheduler's. */
  awayMs = 0
  end: 'over' | 'stuck' | 'given-up' | 'endless' = 'over'

  constructor(port: Scheduled, choose: Chooser, options: { readonly timeouts: boolean; readonly stepsMax: number }) {
    this.#port = port
    this.#choose = choose
    this.#timeouts = options.timeouts
    this.#stepsMax = options.stepsMax
  }

  get step(): number {
    return this.#step
  }

  /** Whether anything but time can be let go. */
  get isHolding(): boolean {
    return this.#ready.length + this.#late.length > 0
  }

  add(happening: Happening): void {
    this.#ready.push(happening)
    this.#brought?.add(happening)
  }

  has(id: string): boolean {
    return this.#ready.some((happening) => happening.id === id) || this.#late.some((happening) => happening.id === id)
  }

  /** What can't happen any more is taken out. */
  drop(is: (happening: Happening) => boolean): void {
    const isNot = (happening: Happening): boolean => !is(happening)
    this.#ready = this.#ready.filter(isNot)
    this.#late = this.#late.filter(isNot)
  }

  /** Somebody waits for what is not the scheduler's: what comes before the next is let go is brought by chance. */
  awaits(): void {
    this.#brought ??= new Set()
  }

  /**
   * Where chance brought something, what came since the last was let go waits in an order of its own, or no schedule could be played again:
   * by lanes, and in each as it was said; only what was brought, by the steps that it is of. That a step begins stays before that it ends.
   */
  #sort(brought: ReadonlySet<Happening>): void {
    const came = this.#ready.filter(({ born }) => born === this.#step)
    came.sort((a, b) => {
      const ofLanes = byNumbers.compare(a.lane, b.lane) || Number(brought.has(a)) - Number(brought.has(b))
      return ofLanes !== 0 || !brought.has(a) ? ofLanes : byStep(a, b)
    })
    this.#ready = [...this.#ready.filter(({ born }) => born !== this.#step), ...came]
  }

  later(task: () => void): void {
    this.#tasks.push(task)
  }

  forgetTasks(): void {
    this.#tasks = []
  }

  play(): Promise<void> {
    return new Promise((resolve, reject) => {
      let left = 0
      let next: 'again' | 'away' | 'done' = 'again'
      const round = (): void => {
        next = 'again'
        for (left = 0; left < ticksAtOnce; left++) setImmediate(tick)
      }
      const tick = (): void => {
        left--
        try {
          if (next === 'again') next = this.#next()
        } catch (error) {
          next = 'done'
          reject(error)
        }
        if (next === 'done') resolve()
        else if (left === 0 && next === 'away') setTimeout(round, 1)
        else if (left === 0) round()
      }
      round()
    })
  }

  #next(): 'again' | 'away' | 'done' {
    if (this.#tasks.length > 0) {
      // What the engine gives in one macrotask comes in one; a process that dies of it does none of the rest.
      for (let left = this.#tasks.length; left > 0; left--) this.#tasks.shift()?.()
      return 'again'
    }
    const standing = this.#port.standing()
    if (standing === 'over') return 'done'
    if (standing === 'away') return this.#away()
    if (this.#awaySince !== null) this.awayMs = Math.max(this.awayMs, performance.now() - this.#awaySince)
    this.#awaySince = null
    if (this.#brought !== null) this.#sort(this.#brought)
    this.#brought = null
    return this.#letGo()
  }

  #away(): 'again' | 'away' {
    const now = performance.now()
    this.#awaySince ??= now
    return now - this.#awaySince < eagerMs ? 'again' : 'away'
  }

  /** How long something has been waited for that is not the scheduler's. */
  get waitedMs(): number {
    return this.#awaySince === null ? 0 : performance.now() - this.#awaySince
  }

  #letGo(): 'again' | 'done' {
    const clock = this.#port.clock()
    if (!this.isHolding && clock === null) {
      this.#port.stuck()
      this.end = 'stuck'
      return 'done'
    }
    if (this.#step >= this.#stepsMax) {
      this.end = 'endless'
      return 'done'
    }
    const point = this.#point(clock)
    const move = this.#choose(point)
    if (move === null) {
      this.end = 'given-up'
      return 'done'
    }
    this.#carryOut(move, point, clock)
    return 'again'
  }

  #carryOut(move: Move, before: Point, clock: Happening | null): void {
    const at = this.#step
    let point = before
    if (move.hold !== undefined) {
      for (const which of move.hold) if (this.#hold(which)) this.deviations.push({ at, kind: 'hold', which })
      point = this.#point(clock)
    }
    const which = move.take % point.count
    if (which !== 0) this.deviations.push({ at, kind: 'take', which })
    if (move.fault !== undefined) this.deviations.push({ at, kind: 'fault', which: move.fault })
    const option = point.option(which)
    this.#step++
    for (const happening of option) this.#remove(happening)
    this.#port.release(option, move.fault ?? null)
  }

  #remove(happening: Happening): void {
    const at = this.#ready.indexOf(happening)
    if (at >= 0) this.#ready.splice(at, 1)
    else if (this.#late.length > 0) this.#late = this.#late.filter((other) => other !== happening)
  }

  #hold(which: number): boolean {
    const held = this.#ready[which]
    if (held === undefined || this.#ready.length < 2) return false
    this.#ready = this.#ready.filter((happening) => happening !== held)
    this.#late.push(held)
    return true
  }

  #point(clock: Happening | null): Point {
    const timed = clock !== null && (this.#timeouts || !this.isHolding)
    return new Waiting(this.#step, this.#ready, this.#late, timed ? clock : null, this.#port)
  }
}

/**
 * What waits when a schedule has to be decided. A burst comes first where first-come order begins with it, else after all single
 * happenings; then the clock, then all code at once. What is added here comes last: a token goes by the places of the options.
 *
 * A class, because where the run stands is told only if it is asked for: an object with a getter of its own keeps what that refers to, a
 * whole schedule here, until all of the memory is collected.
 */
class Waiting implements Point {
  readonly step: number
  readonly count: number
  readonly #ready: readonly Happening[]
  readonly #late: readonly Happening[]
  readonly #port: Scheduled
  readonly #before: readonly Option[]
  readonly #after: readonly Option[]

  constructor(step: number, ready: readonly Happening[], late: readonly Happening[], clock: Happening | null, port: Scheduled) {
    const burst = burstOf(ready)
    const code = codeOf(ready)
    const bursts = burst === null ? [] : [burst]
    const leads = burst !== null && burst[0] === ready[0]
    this.step = step
    this.#ready = ready
    this.#late = late
    this.#port = port
    this.#before = leads ? bursts : []
    this.#after = [
      ...(leads ? [] : bursts),
      ...(clock === null ? [] : [[clock]]),
      ...(code.length < 2 || code.length === burst?.length ? [] : [code]),
    ]
    this.count = this.#before.length + ready.length + late.length + this.#after.length
  }

  get situation(): Situation {
    return this.#port.situation()
  }

  option(which: number): Option {
    const first = this.#before[which]
    if (first !== undefined) return first
    const at = which - this.#before.length
    const found = this.#ready[at] ?? this.#late[at - this.#ready.length]
    if (found !== undefined) return [found]
    const last = this.#after[at - this.#ready.length - this.#late.length]
    if (last === undefined) throw new Error(`there is no option ${which}`)
    return last
  }
}

/** Several turns that one commit has started, the earliest such. What waits is in the order in which it came. */
function burstOf(ready: readonly Happening[]): Option | null {
  if (ready.length < 2) return null
  for (const first of ready) {
    if (first.kind !== 'start') continue
    const same = ready.filter(({ kind, born }) => kind === 'start' && born === first.born)
    if (same.length > 1) return same
  }
  return null
}

/** All that may run code of the user's: the engine commits together what has come meanwhile, and gives all of its results in one go. */
const codeOf = (ready: readonly Happening[]): Option => ready.filter(({ runsCode }) => runsCode)
