/**
 * The rules of graphs (KERNEL §11), played by the slowest means that is obviously right: after every move all gates are looked at again,
 * until none changes. It shares nothing with the kernel, so that a mistake has to be made twice to go unseen.
 *
 * 1. A slot settles once: succeeded, failed, skipped, or (when the graph closes over it) cancelled.
 * 2. A gate is decided once, and what its step sees is fixed at that moment.
 * 3. Nothing here knows in which order moves come, except where a choice is written down.
 * 4. An attempt starts as soon as it may: not while the run is paused, and not before `concurrency` lets its item through.
 *
 * Undoing (§13), as it is read here; what is common to topologies is said in test/reference:
 *
 * 5. An entry is `step` or `step:item`, and an activity of its body `step/key` or `step:item/key`. A body that did not return (`when`
 *    said no, its failure was skipped or replaced) is none, and neither is the list that `each` gives; the activities it completed are.
 * 6. A step is undone after every step that names it in `after`, directly or through others, whatever became of those and however early
 *    their gate opened. Items of one step are independent of each other.
 * 7. Only the run undoes. Its plan is a choice if it has an entry of a step that reads cancelled, or an unknown one; all of its entries are
 *    named if the run was cancelled.
 * 8. A failure that ends the graph at once leaves a pause as it is; a cancellation ends it.
 */
import type { RefEntry } from '../reference/undoing.js'
import { Undoing } from '../reference/undoing.js'

export type RefPolicy = 'all' | 'settled' | 'any' | 'majority' | { readonly quorum: number } | { readonly ratio: number }
export type RefOnError = 'fail' | 'skip' | 'pause' | { readonly fallback: unknown }

export interface RefStep {
  readonly id: string
  readonly after: readonly string[]
  readonly join: RefPolicy
  readonly kind: 'run' | 'each' | 'ask'
  readonly concurrency?: number
  readonly attempts: number
  readonly onError: RefOnError
  readonly compensates?: boolean
}

/** What a body does before it returns. */
export interface RefActivity {
  readonly key: string
  readonly compensates: boolean
  readonly outcome: 'done' | 'unknown'
}

export interface RefGraph {
  readonly steps: readonly RefStep[]
  readonly stragglers: 'wait' | 'cancel'
  readonly required: readonly string[]
}

/** What one attempt came to. `skip`, `items` and `question` are the words of `when`, `each` and an ask: they come before anything runs. */
export type RefOutcome =
  | { readonly type: 'value'; readonly value: unknown }
  | { readonly type: 'failure'; readonly message: string }
  | { readonly type: 'skip' }
  | { readonly type: 'question' }
  | { readonly type: 'items'; readonly items: readonly unknown[] }

/** An attempt that is being made, or waits to be. */
export interface RefOwed {
  readonly step: string
  readonly item?: number
  readonly value?: unknown
  readonly attempt: number
  readonly sees: Readonly<Record<string, unknown>>
}

export interface RefFailure {
  readonly message: string
  readonly step: string
  readonly item?: number
}

export type RefSettled =
  | { readonly status: 'succeeded'; readonly output: unknown }
  | { readonly status: 'failed'; readonly failure: RefFailure }
  | { readonly status: 'skipped'; readonly cause: RefCause }
  | { readonly status: 'cancelled' }

/** Why a step was skipped: a dependency (by its id), its own `when`, or the failure that `onError: 'skip'` took. */
export type RefCause = { readonly step: string } | 'when' | { readonly failure: RefFailure }

export type RefChoice =
  | { readonly kind: 'gate'; readonly at: string; readonly decidedBy: readonly string[] }
  | { readonly kind: 'join'; readonly decidedBy: readonly string[] }
  | { readonly kind: 'timeout'; readonly at: string }
  | { readonly kind: 'undo'; readonly decidedBy: readonly string[] }

export interface RefEnd {
  readonly status: 'succeeded' | 'failed' | 'cancelled'
  readonly output?: Readonly<Record<string, unknown>>
  readonly error?: RefFailure | { readonly requiredSkipped: readonly string[] }
  readonly others?: readonly RefFailure[]
  readonly rollback: 'none' | 'complete' | 'partial'
  readonly notUndone: readonly string[]
}

type Ending = Omit<RefEnd, 'rollback' | 'notUndone'>

/** One thing that is tried until it settles: a step, or an item of one. */
interface Piece {
  attempt: number
  started: boolean
  /** Attempts left before `onError` has its word. */
  left: number
  /** Failed under 'pause': waits for the run to be resumed. */
  stopped: boolean
  end: RefSettled | null
  /** The compensable activity that has started and not ended. */
  inFlight: string | null
  readonly recorded: Set<string>
}

interface Slot {
  readonly step: RefStep
  readonly index: number
  gate: 'closed' | 'open' | 'shut'
  sees: Record<string, unknown>
  readonly whole: Piece
  asking: boolean
  /** Known once `each` has been evaluated. */
  items: { readonly value: unknown; readonly piece: Piece }[] | null
}

export function needOf(policy: RefPolicy, width: number): number {
  if (policy === 'all') return width
  if (policy === 'settled') return 0
  if (policy === 'any') return 1
  if (policy === 'majority') return Math.floor(width / 2) + 1
  if ('quorum' in policy) return policy.quorum
  return Math.ceil(policy.ratio * width - 1e-9)
}

export class Reference {
  readonly #graph: RefGraph
  readonly #slots: Slot[]
  readonly #choices: RefChoice[] = []
  #paused = false
  /** Attempts that were running when the graph closed over them. */
  #aborting: { step: string; item?: number }[] = []
  #end: Ending | null = null
  /** Nothing is undone of a run that was cancelled so. */
  #abandoned = false
  readonly #undoing = new Undoing()
  #over: RefEnd | null = null

  constructor(graph: RefGraph) {
    this.#graph = graph
    this.#slots = graph.steps.map((step, index) => ({
      step,
      index,
      gate: 'closed',
      sees: {},
      whole: fresh(step),
      asking: false,
      items: null,
    }))
    for (const step of graph.steps) this.#undoing.came(step.id, step.after)
    this.#decideGates()
    this.#startAll()
  }

  get paused(): boolean {
    return this.#paused
  }

  /** How it ends is known, and what it did is being undone. */
  get compensating(): boolean {
    return this.#over === null && this.#undoing.plans.length > 0
  }

  /** How it ends is known, whatever is still running. */
  get decided(): boolean {
    return this.#end !== null
  }

  /** The attempts that are being made, in declared order and then by item. */
  owed(): RefOwed[] {
    return this.#live().flatMap(({ piece, owed }) => (piece.started ? [owed] : []))
  }

  /** What could be tried, and waits: for the run to be resumed, or for an item before it. */
  waiting(): RefOwed[] {
    return this.#live().flatMap(({ piece, owed }) => (piece.started ? [] : [owed]))
  }

  /** The questions that are open. */
  asks(): string[] {
    return this.#slots.filter(({ asking, whole }) => asking && whole.end === null).map(({ step }) => step.id)
  }

  aborting(): readonly { readonly step: string; readonly item?: number }[] {
    return this.#aborting
  }

  /** What an attempt that is being aborted was shown. */
  aborted(step: string, item: number | undefined): RefOwed {
    const { sees, items } = this.#slot(step)
    const { attempt } = this.#piece(step, item)
    return { step, attempt, sees, ...(item === undefined ? {} : { item, value: items?.[item]?.value }) }
  }

  /** What an attempt has in flight, and what is recorded of it. */
  work(step: string, item: number | undefined): { readonly inFlight: string | null; readonly recorded: ReadonlySet<string> } {
    return this.#piece(step, item)
  }

  startActivity(step: string, item: number | undefined, key: string): void {
    this.#piece(step, item).inFlight = key
  }

  /** An activity has ended; of an attempt that is being aborted it is the one in flight, and late. */
  record(step: string, item: number | undefined, { key, compensates, outcome }: RefActivity): void {
    const piece = this.#piece(step, item)
    piece.inFlight = null
    piece.recorded.add(key)
    if (compensates) this.#undoing.enter(`${placeOf(step, item)}/${key}`, placeOf(step, item), 'activity', outcome)
  }

  /** An attempt that was aborted is over: it ended, or returned after all, or its grace ran out. */
  settle(step: string, item: number | undefined, how: 'ended' | 'late' | 'fenced' = 'ended'): void {
    this.#aborting = this.#aborting.filter((one) => one.step !== step || one.item !== item)
    const piece = this.#piece(step, item)
    if (how !== 'ended' && this.#isBody(step, item)) this.#enter(step, item, how === 'late' ? 'done' : 'unknown')
    if (how === 'fenced' && piece.inFlight !== null)
      this.#undoing.enter(`${placeOf(step, item)}/${piece.inFlight}`, placeOf(step, item), 'activity', 'unknown')
    piece.inFlight = null
    this.#wind()
  }

  /** The undos that are owed. */
  undos(): { readonly of: string; readonly attempt: number }[] {
    return this.#undoing.owed().map(({ id, attempt }) => ({ of: id, attempt }))
  }

  undo(of: string, how: 'compensated' | 'failed'): void {
    this.#undoing.settle(of, how)
    this.#wind()
  }

  /** All that can be undone, and what became of it. */
  entries(): readonly RefEntry[] {
    return [...this.#undoing.entries.values()]
  }

  complete(id: string, item: number | undefined, outcome: RefOutcome): void {
    const slot = this.#owing(id, item)
    const piece = this.#piece(id, item)
    piece.inFlight = null
    switch (outcome.type) {
      case 'items':
        slot.items = outcome.items.map((value) => ({ value, piece: fresh(slot.step) }))
        for (const index of slot.items.keys()) {
          this.#undoing.came(placeOf(id, index), slot.step.after)
          this.#undoing.came(id, [placeOf(id, index)])
        }
        break
      case 'skip':
        piece.end = { status: 'skipped', cause: 'when' }
        break
      case 'question':
        piece.started = false
        slot.asking = true
        break
      case 'value':
        piece.end = { status: 'succeeded', output: outcome.value }
        this.#enter(id, item, 'done')
        break
      case 'failure':
        this.#failed(slot, piece, { message: outcome.message, step: id, ...(item === undefined ? {} : { item }) })
        break
    }
    this.#after(slot)
  }

  answer(id: string, value: unknown): void {
    const slot = this.#slot(id)
    slot.whole.end = { status: 'succeeded', output: value }
    this.#after(slot)
  }

  /** The question's time is over: a choice, and a failure like any other. */
  expire(id: string): void {
    this.#choices.push({ kind: 'timeout', at: id })
    const slot = this.#slot(id)
    slot.whole.end = { status: 'failed', failure: { message: 'expired', step: id } }
    this.#after(slot)
  }

  pause(): void {
    this.#paused = true
  }

  /** Everything that had failed under 'pause' is tried again, with all of its attempts. */
  resume(): void {
    this.#paused = false
    for (const { whole, items, step } of this.#slots)
      for (const piece of [whole, ...(items ?? []).map((one) => one.piece)])
        if (piece.stopped) {
          piece.stopped = false
          piece.left = step.attempts
        }
    this.#startAll()
    this.#wind()
  }

  /** What is decided already can't be cancelled. */
  cancel(compensate = true): void {
    if (this.#end !== null) return
    this.#close()
    this.#paused = false
    this.#abandoned = !compensate
    this.#end = { status: 'cancelled' }
    this.#wind()
  }

  /** How it ended, once nothing of it is still running or being undone. */
  end(): RefEnd | null {
    return this.#over
  }

  /** How each step ended, in declared order. */
  settled(): readonly { readonly id: string; readonly end: RefSettled | null; readonly items: readonly (RefSettled | null)[] | null }[] {
    return this.#slots.map(({ step, whole, items }) => ({
      id: step.id,
      end: whole.end,
      items: items === null ? null : items.map(({ piece }) => piece.end),
    }))
  }

  /** What each step was shown, for all whose gate has opened. */
  saw(): Readonly<Record<string, Readonly<Record<string, unknown>>>> {
    return Object.fromEntries(this.#slots.filter(({ gate }) => gate === 'open').map(({ step, sees }) => [step.id, sees]))
  }

  /** The choices that count: what was chosen under a step that reads cancelled left no trace (KERNEL §12). */
  choices(): readonly RefChoice[] {
    return this.#choices.filter((choice) => !('at' in choice) || this.#slot(choice.at).whole.end?.status !== 'cancelled')
  }

  #failed(slot: Slot, piece: Piece, failure: RefFailure): void {
    piece.left -= 1
    piece.started = false
    piece.attempt += 1
    if (piece.left > 0) return
    // With `each`, what `onError` offers instead of a result is for an item: a list that was never made has none.
    const noItem = slot.step.kind === 'each' && failure.item === undefined
    const { onError } = slot.step
    if (onError === 'pause') {
      piece.stopped = true
      this.#paused = true
    } else if (onError === 'fail' || noItem) piece.end = { status: 'failed', failure }
    else if (onError === 'skip') piece.end = { status: 'skipped', cause: { failure } }
    else piece.end = { status: 'succeeded', output: onError.fallback }
  }

  #after(slot: Slot): void {
    if (slot.whole.end === null && slot.items !== null && slot.items.every(({ piece }) => piece.end !== null)) {
      const ends = slot.items.map(({ piece }) => piece.end as RefSettled)
      const failed = ends.find((end) => end.status === 'failed')
      slot.whole.end = failed ?? { status: 'succeeded', output: ends.map((end) => (end.status === 'succeeded' ? end.output : undefined)) }
    }
    if (this.#graph.stragglers === 'cancel' && slot.whole.end?.status === 'failed') {
      this.#choices.push({ kind: 'join', decidedBy: this.#slots.filter(({ whole }) => whole.end !== null).map(({ step }) => step.id) })
      this.#close()
      this.#end = { status: 'failed', error: slot.whole.end.failure, others: [] }
    } else {
      this.#decideGates()
      this.#startAll()
    }
    this.#wind()
  }

  /** Takes a run that is decided to its end: what was aborted ends, then everything is undone that has to be. */
  #wind(): void {
    if (this.#end === null || this.#over !== null || this.#aborting.length > 0) return
    if (this.#end.status !== 'succeeded' && !this.#abandoned && this.#undoing.plans.length === 0) this.#plan()
    if (!this.#paused) this.#undoing.startAll()
    if (!this.#undoing.plans.every((plan) => this.#undoing.isOver(plan))) return
    const taken = this.#undoing.plans.flatMap(({ entries }) => entries)
    const left = taken.filter(({ status }) => status !== 'compensated')
    const rollback = taken.length === 0 ? 'none' : left.length === 0 ? 'complete' : 'partial'
    this.#over = { ...this.#end, rollback, notUndone: this.#named(left).map(({ id }) => id) }
  }

  #plan(): void {
    const entries = this.#undoing.free()
    if (entries.length === 0) return
    const uncertain = entries.filter(
      (entry) => entry.status === 'unknown' || this.#end?.status === 'cancelled' || this.#slotOf(entry).whole.end?.status === 'cancelled',
    )
    if (uncertain.length > 0)
      this.#choices.push({
        kind: 'undo',
        decidedBy: this.#named(uncertain).map(({ id, status }) => (status === 'unknown' ? `${id}?` : id)),
      })
    this.#undoing.begin('run', entries)
  }

  /** In declared order, then by item, then by key. */
  #named(entries: readonly RefEntry[]): RefEntry[] {
    const itemOf = ({ id }: RefEntry): number => Number(id.split('/')[0]?.split(':')[1] ?? -1)
    const key = (entry: RefEntry): number[] => [this.#slotOf(entry).index, itemOf(entry)]
    return entries.toSorted((a, b) => {
      const [[stepA = 0, itemA = 0], [stepB = 0, itemB = 0]] = [key(a), key(b)]
      return stepA - stepB || itemA - itemB || (a.id < b.id ? -1 : 1)
    })
  }

  /** Whether what is tried here is a body, and not the list of an `each`. */
  #isBody(step: string, item: number | undefined): boolean {
    return item !== undefined || this.#slot(step).step.kind === 'run'
  }

  #enter(step: string, item: number | undefined, status: 'done' | 'unknown'): void {
    if (this.#slot(step).step.compensates === true) this.#undoing.enter(placeOf(step, item), placeOf(step, item), 'node', status)
  }

  /** All that is to be tried and has not come to an end, with what it is shown. */
  #live(): { piece: Piece; owed: RefOwed }[] {
    if (this.#end !== null) return []
    return this.#slots.flatMap(({ gate, step, sees, whole, asking, items }) => {
      if (gate !== 'open' || whole.end !== null || asking) return []
      if (items === null) return [{ piece: whole, owed: { step: step.id, attempt: whole.attempt, sees } }]
      return items.flatMap(({ value, piece }, item) =>
        piece.end === null ? [{ piece, owed: { step: step.id, item, value, attempt: piece.attempt, sees } }] : [],
      )
    })
  }

  #startAll(): void {
    if (this.#paused) return
    for (const { piece, owed } of this.#live()) if (owed.item === undefined || this.#mayBegin(owed.step, owed.item)) piece.started = true
  }

  /** Items begin in their order; one that is to be tried again keeps its place. */
  #mayBegin(id: string, item: number): boolean {
    const { step, items } = this.#slot(id)
    const unsettledBefore = (items ?? []).slice(0, item).filter(({ piece }) => piece.end === null).length
    return step.concurrency === undefined || unsettledBefore < step.concurrency
  }

  #decideGates(): void {
    let changed = true
    while (changed) {
      changed = false
      for (const slot of this.#slots) changed = (slot.gate === 'closed' && this.#decideGate(slot)) || changed
    }
    if (this.#slots.every(({ whole }) => whole.end !== null)) this.#finish()
  }

  #decideGate(slot: Slot): boolean {
    const { join, id } = slot.step
    // In declared order, whatever order `after` names them in.
    const watched = this.#slots.filter(({ step }) => slot.step.after.includes(step.id))
    const succeeded = watched.filter(({ whole }) => whole.end?.status === 'succeeded')
    const pending = watched.filter(({ whole }) => whole.end === null)
    const need = needOf(join, watched.length)
    const patient = join === 'all' || join === 'settled'
    if (pending.length > 0 && (patient || succeeded.length < need)) return false
    if (succeeded.length < need) {
      const lowest = watched.find(({ whole }) => whole.end?.status === 'failed' || whole.end?.status === 'skipped') as Slot
      slot.gate = 'shut'
      slot.whole.end = { status: 'skipped', cause: { step: lowest.step.id } }
      return true
    }
    slot.gate = 'open'
    for (const { step, whole } of succeeded) slot.sees[step.id] = (whole.end as { output: unknown }).output
    if (!patient) this.#choices.push({ kind: 'gate', at: id, decidedBy: succeeded.map(({ step }) => step.id) })
    return true
  }

  #finish(): void {
    const failures = this.#slots.flatMap(({ whole }) => (whole.end?.status === 'failed' ? [whole.end.failure] : []))
    const [error, ...others] = failures
    if (error !== undefined) {
      this.#end = { status: 'failed', error, others }
      return
    }
    const missing = this.#slots.filter(({ step, whole }) => this.#graph.required.includes(step.id) && whole.end?.status === 'skipped')
    if (missing.length > 0) {
      this.#end = { status: 'failed', error: { requiredSkipped: missing.map(({ step }) => step.id) }, others: [] }
      return
    }
    const output: Record<string, unknown> = {}
    for (const { step, whole } of this.#slots) if (whole.end?.status === 'succeeded') output[step.id] = whole.end.output
    this.#end = { status: 'succeeded', output }
  }

  #close(): void {
    this.#aborting = this.owed().map(({ step, item }) => ({ step, ...(item === undefined ? {} : { item }) }))
    for (const { whole } of this.#slots) whole.end ??= { status: 'cancelled' }
  }

  #slot(id: string): Slot {
    const slot = this.#slots.find(({ step }) => step.id === id)
    if (slot === undefined) throw new Error(`no step ${id}`)
    return slot
  }

  #slotOf({ node }: RefEntry): Slot {
    return this.#slot(node.split(':')[0] as string)
  }

  #owing(id: string, item: number | undefined): Slot {
    if (!this.owed().some((owed) => owed.step === id && owed.item === item)) throw new Error(`nothing is owed at ${id} ${item ?? ''}`)
    return this.#slot(id)
  }

  #piece(id: string, item: number | undefined): Piece {
    const slot = this.#slot(id)
    const piece = item === undefined ? slot.whole : slot.items?.[item]?.piece
    if (piece === undefined) throw new Error(`${id} has no item ${item}`)
    return piece
  }
}

const placeOf = (step: string, item: number | undefined): string => (item === undefined ? step : `${step}:${item}`)

function fresh(step: RefStep): Piece {
  return { attempt: 1, started: false, left: step.attempts, stopped: false, end: null, inFlight: null, recorded: new Set() }
}
