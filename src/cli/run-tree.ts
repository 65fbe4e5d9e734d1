import { agentKind, decodeAgent } from '../engine/agent-record.js'
import { childRunId } from '../engine/child-run.js'
import { askView, dueAt, longSleepMs, sleepsUntil } from '../engine/run-view.js'
import type { RunRow, Store } from '../engine/store.js'
import type { Ask } from '../inspect/ask.js'
import { oldestFirst } from '../inspect/oldest-first.js'
import { rollbackOf } from '../kernel/compensation.js'
import type { Event, RolledBack } from '../kernel/event.js'
import { evolve } from '../kernel/evolve.js'
import { attemptId } from '../kernel/ids.js'
import type { Attempt, Outcome, State } from '../kernel/state.js'
import { attemptsOf, isOver, newState } from '../kernel/state.js'
import { eventsOf } from './journal.js'

/** An event, and the run it is of: the one that is followed, or one that a step of it runs. */
export interface Seen {
  readonly run: string
  readonly event: Event
}

/** Where a run does not go on by itself. */
export type Stop =
  | { readonly kind: 'ended'; readonly outcome: Outcome; readonly rolled: RolledBack }
  /** It is paused itself, or waits for child runs that are. */
  | { readonly kind: 'paused'; readonly runs: readonly string[] }
  | { readonly kind: 'person'; readonly asks: readonly Ask[] }
  /** Those who would have to act may not, until somebody says so. */
  | { readonly kind: 'agent'; readonly agents: readonly string[] }

/** The attempts of a run that do something in this process, and do not only sleep; null if it is not executed here. */
export type Executing = (run: string) => Promise<ReadonlySet<string> | null>

/** A run and its child runs, as far as their journals have been read. Whoever executes them, this only reads. */
export class RunTree {
  readonly id: string
  readonly #store: Store
  readonly #states = new Map<string, State>()
  /** Per run that is paused: the attempts that still do something; null: whoever executes it knows. */
  readonly #inFlight = new Map<string, ReadonlySet<string> | null>()
  readonly #executing: Executing
  /** Per run: the agents that may not act, with no end in sight. */
  readonly #held = new Map<string, ReadonlySet<string>>()
  #last: Event | null = null

  constructor(store: Store, id: string, executing: Executing = async () => null) {
    this.#store = store
    this.#executing = executing
    this.id = id
  }

  /** The state of the run, or of one of its child runs. */
  state(id: string = this.id): State {
    return this.#states.get(id) ?? newState
  }

  /** The newest event of the run itself. */
  last(): Event | null {
    return this.#last
  }

  /** Whether somebody has cancelled the run, and what that takes is not done yet. */
  isBeingCancelled(): boolean {
    const state = this.state()
    return state.outcome?.status === 'cancelled' && !isOver(state)
  }

  /** Whether the run owes nothing before a time, as far as is written: until then nobody need have it. */
  isResting(): boolean {
    const state = this.state()
    const due = dueAt(state, new Map(), this.#last?.type === 'run.released' && isAsleep(state))
    return due === null || due > Date.now()
  }

  /** What has been written since the last time. */
  async catchUp(): Promise<readonly Seen[]> {
    const seen = await this.#read(this.id)
    if (!hasChildren(this.state())) return seen
    const children = await this.#store.list({ prefix: `${this.id}:`, limit: Number.POSITIVE_INFINITY })
    for (const child of children) await this.#look(child)
    const behind = children.filter(({ id, head, waits }) => head > this.state(id).seq || waits.includes('agent') || this.#held.has(id))
    const all = await Promise.all(behind.map(({ id }) => this.#read(id)))
    return [...seen, ...all.flat()].sort((a, b) => a.event.at - b.event.at)
  }

  async #read(run: string): Promise<readonly Seen[]> {
    const state = this.state(run)
    const loaded = await this.#store.load(run, { after: state.seq })
    if (loaded === null) return []
    const events = await eventsOf(this.#store, loaded, state.seq)
    this.#states.set(run, events.reduce(evolve, state))
    if (run === this.id) this.#last = events.at(-1) ?? this.#last
    await this.#look(loaded.row)
    if (loaded.row.waits.includes('agent')) this.#held.set(run, await this.#heldIn(run))
    else this.#held.delete(run)
    return events.map((event) => ({ run, event }))
  }

  /** What has not begun when its run is paused, or was in flight when its process died, is not executed before somebody resumes the run. */
  async #look({ id, status, worker }: RunRow): Promise<void> {
    if (status === 'paused') this.#inFlight.set(id, worker === null ? new Set() : await this.#executing(id))
  }

  /** One that is held until a time goes on by itself; and who was let go since has only not been told yet. */
  async #heldIn(run: string): Promise<ReadonlySet<string>> {
    const marks = await this.#store.marks({ kind: agentKind, run })
    const names = marks.filter(({ body }) => body === 'null').map(({ key }) => key)
    return new Set(await whoMayNotAct(this.#store, names))
  }

  /** Why the run does not go on; null: it does. */
  stop(id: string = this.id): Stop | null {
    const state = this.state(id)
    if (state.run === null) return null
    if (isOver(state)) return state.outcome === null ? null : { kind: 'ended', outcome: state.outcome, rolled: rollbackOf(state) }
    if (state.aborting.size > 0) return null
    const inFlight = state.pausedAt === null ? null : (this.#inFlight.get(id) ?? null)
    const children: Stop[] = []
    for (const attempt of attemptsOf(state)) {
      if (state.pausedAt !== null && !isAtWork(state, attempt, inFlight)) continue
      const stop = this.#stopOfTurn(state, attempt)
      if (stop === null || stop.kind === 'ended') return null
      children.push(stop)
    }
    if (state.pausedAt !== null) return { kind: 'paused', runs: [id] }
    const now = Date.now() - state.pausedMs
    // What has a time that has come goes on too: nobody waits for a person whose time to answer is over.
    if ([...state.timers.values()].some(({ kind, due }) => kind === 'backoff' || kind === 'sleep' || due <= now)) return null
    const own = [...state.asks.values()].map((ask) => askView(state, ask))
    const asks = [...own, ...children.flatMap((stop) => (stop.kind === 'person' ? stop.asks : []))]
    if (asks.length > 0) return { kind: 'person', asks: asks.sort(oldestFirst) }
    const agents = new Set(children.flatMap((stop) => (stop.kind === 'agent' ? stop.agents : [])))
    if (agents.size > 0) return { kind: 'agent', agents: [...agents].sort() }
    const runs = children.flatMap((stop) => (stop.kind === 'paused' ? stop.runs : []))
    return runs.length > 0 ? { kind: 'paused', runs } : null
  }

  /** A step that runs a definition stops where that does, a turn whose agent may not act stops there; every other in flight goes on. */
  #stopOfTurn(state: State, attempt: Attempt): Stop | null {
    if (isChildStep(state, attempt.agent)) return this.stop(childRunId(state, attempt))
    const isHeld = this.#held.get(state.run?.id ?? '')?.has(attempt.agent) === true
    return isHeld ? { kind: 'agent', agents: [attempt.agent] } : null
  }
}

/** Whether an attempt of a run that is paused may come to something: what sleeps stands still until the run is resumed. */
function isAtWork({ work }: State, { branch, turn, attempt }: Attempt, inFlight: ReadonlySet<string> | null): boolean {
  if (inFlight !== null) return inFlight.has(attemptId(branch, turn, attempt))
  const records = work.get(branch)?.records.values() ?? []
  return !records.some(({ status }) => status === 'sleeping')
}

/** Whether all turns of a run that was given back sleep, and for so long that whoever had it need not keep them. */
function isAsleep(state: State): boolean {
  return attemptsOf(state).every((attempt) => !isAtWork(state, attempt, null)) && (sleepsUntil(state) ?? 0) > state.at + longSleepMs
}

/** Those of some agents that may not act now. */
export async function whoMayNotAct(store: Store, names: readonly string[]): Promise<readonly string[]> {
  const records = await Promise.all(names.map((name) => store.record(agentKind, name)))
  return names.filter((name, index) => !mayAct(name, records[index]?.body))
}

function mayAct(name: string, body: string | undefined): boolean {
  return body === undefined || decodeAgent(name, body).runtime === 'running'
}

function isChildStep({ run }: State, step: string): boolean {
  return run?.shape.kind === 'graph' && run.shape.steps.some(({ id, kind }) => id === step && kind === 'child')
}

function hasChildren({ run }: State): boolean {
  return run?.shape.kind === 'graph' && run.shape.steps.some(({ kind }) => kind === 'child')
}
