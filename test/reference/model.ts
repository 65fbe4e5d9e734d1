/**
 * A naive reference of the rules of a run: one mutable object that scans everything again after every command.
 *
 * It is written from the rule book alone and shares no code with the kernel, so that the two can be held against each other.
 * Slow and obvious on purpose: reach is searched anew each time, nothing is counted ahead, no index is kept.
 *
 * How undoing (§13) is read here, where the rule book leaves room or where only one reading is the same in every order:
 *
 * 1. An entry's id is `branch/turn` for a turn and `branch/turn/key` for an activity; after n rejections `branch/turn!n/key`. No attempt
 *    is in it: what a retry is given back is the same entry.
 * 2. A fork with `compensate: true` waits, once it has fired and (under 'ask') was answered, until no attempt under any of its slots is
 *    aborting and no plan under it runs; only then does it take what it is to undo. A merge that throws has been found out by then, and
 *    counts as a failed join. With nothing to wait for and nothing to undo its branch is never *undoing*: it goes on in the same step,
 *    before any rendezvous is looked at.
 * 3. An attempt that was aborted ends in one of three ways: it *ended* (what it had in flight did not happen), it was *late* (its body
 *    returned: the turn is an entry, unless what it returned is a failure), or it was *fenced* (its turn, and an activity in flight,
 *    are unknown if they can be undone). An activity in flight may complete late before that, and is an entry then.
 * 4. A plan is a choice if one of its entries lies under a slot that reads cancelled, however far out, or is unknown. It is decided by the ids of those entries; an unknown one is written with a `?`, because it is not undone, and that must not be the
 *    same choice as one where it was. Of a run that was cancelled or crossed a limit, all entries of its plan are named.
 * 5. A plan at a fork that lies under a slot that reads cancelled (every fork, in a run that was cancelled or crossed a limit) leaves no
 *    trace in what is reported, like everything there, except for what it did not undo: nobody may overlook that. It is reported in
 *    `notUndone`, and as a choice decided by just these ids.
 * 6. `rollback` is partial if anything was not undone, wherever; else complete if a plan that is reported undid something; else none.
 * 7. A turn came because of: the turn before it on its branch; for a first turn, the turn that forked or notified it; for a join, the
 *    last turns of the slots that count (arrived, escaped), through branches that went past their fork without a turn; at a rendezvous,
 *    the last turns of all that met. Slots that failed or read cancelled are no cause.
 * 8. Cancelling a run ends its pause, a limit that is crossed does not; a plan is made while the run is paused, but none of its undos starts. While the run itself
 *    compensates there is no timer left that could end it otherwise.
 */
import { Undoing } from './undoing.js'
import type { RefEntry, RefPlan } from './undoing.js'

export interface RefTopology {
  nodes: readonly string[]
  edges: readonly { from: string; to: string; notify?: boolean }[]
  joins: readonly string[]
  result: 'one' | 'list'
  state?: Record<string, unknown>
  merge?: Record<string, RefMerge>
  limits?: {
    maxTurns?: number
    maxTurnsPerBranch?: number
    maxBranches?: number
    maxDepth?: number
    maxFanOut?: number
    timeoutMs?: number
  }
  agents?: Record<string, { maxRejections?: number; attempts?: number; compensates?: boolean }>
}
export type RefMerge = 'mine' | 'last' | ((base: unknown, changed: readonly unknown[]) => unknown)
export type RefPolicy = 'all' | 'any' | 'majority' | 'settled' | { quorum: number } | { ratio: number }
export type RefJoin =
  | RefPolicy
  | { policy: RefPolicy; timeoutMs?: number; stragglers?: 'cancel' | 'wait'; insufficient?: 'fail' | 'resume' | 'ask' }
export type RefState = Record<string, unknown>
export type RefAction =
  | { type: 'invoke'; to: string; request?: unknown; state?: RefState }
  | { type: 'reply'; value?: unknown; state?: RefState }
  | { type: 'fork'; calls: readonly { to: string; request?: unknown }[]; join?: RefJoin; compensate?: boolean; state?: RefState }
  | { type: 'finish'; output?: unknown }
  | { type: 'ask'; question: unknown; timeoutMs?: number; state?: RefState }
  | { type: 'fail'; error: string }
  | { type: 'throw'; error: string }

export interface RefFailure {
  code: string
  message: string
  retryable: false
  at: { branch?: string; agent?: string; turn?: number }
  cause?: RefFailure
}
export type RefSlot = { index: number; to: string; request: unknown } & (
  | { status: 'arrived'; by: string; value: unknown }
  | { status: 'failed'; by: string | null; error: RefFailure }
  | { status: 'escaped' | 'cancelled'; by: null }
)
export interface RefJoinData {
  ok: boolean
  slots: RefSlot[]
  values: unknown[]
  extra: { by: string; value: unknown }[]
}
export type RefMessage =
  | { kind: 'request'; from: string; value: unknown }
  | { kind: 'merged'; requests: { from: string; value: unknown }[] }
  | { kind: 'join'; join: RefJoinData }
  | { kind: 'answer'; askId: string; question: unknown; value: unknown }
  | { kind: 'expired'; askId: string; question: unknown }
  | { kind: 'feedback'; problem: string }
export interface Owed {
  branch: string
  agent: string
  turn: number
  attempt: number
  message: RefMessage
  waiting: string | null
  state: unknown
  requests: readonly { from: string; value: unknown; state: unknown }[]
}
export interface RefChoice {
  at: string
  kind: 'join' | 'timeout' | 'limit' | 'undo'
  decidedBy: readonly (number | string)[]
}
export interface RefOutcome {
  status: 'succeeded' | 'failed' | 'cancelled'
  output?: unknown
  error?: RefFailure & { branch?: string; agent?: string }
  rollback: 'none' | 'complete' | 'partial'
  notUndone: string[]
}
/** What a turn does besides its action. */
export interface RefActivity {
  key: string
  compensates: boolean
  outcome: 'done' | 'unknown'
}
/** What must be equal in every order for equal choices: nothing in it lies under a slot that reads cancelled. */
export interface RefReport {
  status: string
  output?: unknown
  error?: unknown
  rollback?: string
  notUndone: string[]
  plans: object[]
  branches: { id: string; agent: string; turns: number; status: string }[]
  turns: object[]
  joins: object[]
  merges: object[]
  detached: object[]
}

type Live = 'ready' | 'forked' | 'undoing' | 'asking' | 'held'
type Over = 'done' | 'failed' | 'escaped' | 'cancelled' | 'merged'
interface Contribution {
  for: string
  by: string
  branch: string
  value: unknown
}
interface Slot {
  index: number
  to: string
  request: unknown
  status: 'pending' | 'arrived' | 'failed' | 'escaped' | 'cancelled'
  by: string | null
  value?: unknown
  error?: RefFailure
  branch?: string
  state?: RefState | undefined
  carried: Contribution[]
  /** The last turns of what was delivered here. */
  lasts?: string[]
}
interface Barrier {
  id: string
  kind: 'root' | 'fork' | 'detached'
  /** Who waits at a fork; who started a detached one; nobody at the root. */
  owner: string | null
  policy: RefPolicy
  stragglers: 'cancel' | 'wait'
  insufficient: 'fail' | 'resume' | 'ask'
  timed: boolean
  compensate: boolean
  slots: Slot[]
  /** What is reported, once it has fired: the deciding slots as they are, the others cancelled. */
  read: Slot[] | null
  extra: Contribution[]
  ok: boolean
  open: boolean
  /** The state with which the scope began. */
  base: RefState | undefined
}
/** What becomes of a waiting branch once its fork has fired. */
type Sequel = { type: 'past' } | { type: 'join'; state: RefState | undefined } | { type: 'fail'; error: RefFailure }
interface Branch {
  id: string
  agent: string
  scope: string
  /** The slot it was opened for; `slots` are those it owes now. */
  seat: number
  slots: number[]
  turn: number
  attempt: number
  rejections: number
  throws: number
  state: RefState | undefined
  carried: Contribution[]
  status: Live | Over
  /** An attempt is running. */
  owed: boolean
  /** An attempt is to run once the run is resumed. */
  queued: boolean
  /** The compensable activity that has started and not ended. */
  inFlight: string | null
  recorded: Set<string>
  /** The turns that its next turn comes because of. */
  because: string[]
  sequel: Sequel | null
  /** The message of the turn that becomes owed once the command has been handled to the end. */
  next: RefMessage | null
  message: RefMessage
  requests: { from: string; value: unknown; state: unknown }[]
  heldAt: string | null
  heldWith: { from: string; value: unknown } | null
  fork: string | null
  ask: string | null
  forks: number
  children: number
  asks: number
}
interface Ask {
  id: string
  branch: string
  kind: 'question' | 'join'
  question: unknown
  timed: boolean
}

const reserved: readonly string[] = ['Start', 'End', 'User']
const defaults = { maxTurns: 1_000_000, maxTurnsPerBranch: 1_000, maxBranches: 1_000_000, maxDepth: 32, maxFanOut: 100_000 }

/** Orders branch, barrier and ask ids by their parts as numbers; what a branch owns comes after it and before its children. */
export function compareIds(a: string, b: string): number {
  const [branchA, tailA] = split(a)
  const [branchB, tailB] = split(b)
  return compareParts(branchA, branchB) || compareParts(tailA, tailB)
}

const splits = new Map<string, [number[], number[]]>()
function split(id: string): [number[], number[]] {
  const known = splits.get(id)
  if (known !== undefined) return known
  const at = id.search(/[#~]/)
  const head = at < 0 ? id : id.slice(0, at)
  const parts = head.split('.').slice(1).map(Number)
  const parsed: [number[], number[]] = [parts, at < 0 ? [] : [id[at] === '#' ? 0 : 1, Number(id.slice(at + 1) || 0)]]
  splits.set(id, parsed)
  return parsed
}

function compareParts(a: readonly number[], b: readonly number[]): number {
  for (let i = 0; i < Math.min(a.length, b.length); i++) {
    const difference = (a[i] as number) - (b[i] as number)
    if (difference !== 0) return difference
  }
  return a.length - b.length
}

/** JSON with sorted keys, so that two values are equal exactly if their texts are. */
export function canonical(value: unknown): string {
  if (value === undefined) return 'null'
  if (value === null || typeof value !== 'object') return JSON.stringify(value)
  if (Array.isArray(value)) return `[${value.map(canonical).join(',')}]`
  const entries = Object.entries(value).filter(([, v]) => v !== undefined)
  entries.sort(([a], [b]) => (a < b ? -1 : 1))
  return `{${entries.map(([k, v]) => `${JSON.stringify(k)}:${canonical(v)}`).join(',')}}`
}

function needOf(policy: RefPolicy, width: number): number {
  if (policy === 'all') return width
  if (policy === 'any') return 1
  if (policy === 'majority') return Math.floor(width / 2) + 1
  if (policy === 'settled') return 0
  if ('quorum' in policy) return policy.quorum
  return Math.max(0, Math.ceil(policy.ratio * width - 1e-9))
}

type Joining = Pick<Barrier, 'policy' | 'stragglers' | 'insufficient' | 'timed'>
function normalise(join: RefJoin | undefined): Joining {
  const full = join !== undefined && typeof join === 'object' && 'policy' in join ? join : { policy: join ?? 'all' }
  const policy = full.policy
  return {
    policy,
    stragglers: full.stragglers ?? (policy === 'all' || policy === 'settled' ? 'wait' : 'cancel'),
    insufficient: full.insufficient ?? 'fail',
    timed: full.timeoutMs !== undefined,
  }
}

const live: readonly Branch['status'][] = ['ready', 'forked', 'undoing', 'asking', 'held']
const isLive = (branch: Branch): boolean => live.includes(branch.status)
const turnOf = (branch: Branch): string => `${branch.id}/${branch.turn}`
const attemptOf = (branch: Branch): string => `${turnOf(branch)}/${branch.attempt}`

/** Orders entries by branch, then turn; the turn itself comes first. */
function compareEntries(a: string, b: string): number {
  const [branchA = '', turnA = ''] = a.split('/')
  const [branchB = '', turnB = ''] = b.split('/')
  return compareIds(branchA, branchB) || Number.parseInt(turnA, 10) - Number.parseInt(turnB, 10) || (a < b ? -1 : 1)
}

const isDelivered = (slot: Slot): boolean => slot.status === 'arrived' || slot.status === 'escaped'

export class Reference {
  readonly log: object[] = []
  readonly #topology: RefTopology
  readonly #limits: typeof defaults & { timeoutMs?: number }
  readonly #branches = new Map<string, Branch>()
  #inOrder: readonly Branch[] | null = null
  readonly #barriers = new Map<string, Barrier>()
  readonly #asks = new Map<string, Ask>()
  readonly #aborting = new Set<string>()
  readonly #choices: { choice: RefChoice; branch: string | null }[] = []
  #turns = 0
  /** The run was cancelled or crossed a limit; it ends so once nothing is aborting. */
  #closing: { status: 'failed' | 'cancelled'; error?: RefFailure; compensate: boolean } | null = null
  readonly #undoing = new Undoing()
  #paused = false
  /** How the run ends once its own plan is over. */
  #ending: Pick<RefOutcome, 'status' | 'output' | 'error'> | null = null
  #outcome: RefOutcome | null = null

  constructor(topology: RefTopology, input: unknown) {
    this.#topology = topology
    this.#limits = { ...defaults, ...topology.limits }
    const starts = topology.edges.filter((edge) => edge.from === 'Start')
    const state = topology.state
    this.#openBarrier('#', 'root', null, normalise('all'), state)
    if (starts.length > this.#limits.maxBranches) this.#cross('LIMIT_BRANCHES')
    else {
      starts.forEach((edge, index) => {
        this.#openBranch(starts.length === 1 ? 'r' : `r.${index}`, edge.to, '#', 'Start', input, state)
      })
    }
    this.#finishCommand()
  }

  // What can be seen from outside

  owed(): Owed[] {
    return this.#sorted()
      .filter((branch) => branch.owed)
      .map((branch) => this.#shown(branch))
  }

  /** The attempts that are being aborted, as they were shown. */
  aborted(): Owed[] {
    return this.aborting().map((id) => this.#shown(this.#branch(id.split('/')[0] as string)))
  }

  aborting(): string[] {
    return [...this.#aborting].sort((a, b) => compareIds(a.split('/')[0] as string, b.split('/')[0] as string))
  }

  timers(): { id: string; kind: 'join' | 'ask' | 'run' }[] {
    if (this.#outcome !== null || this.#closing !== null || this.#ending !== null) return []
    const timers: { id: string; kind: 'join' | 'ask' | 'run' }[] = []
    for (const barrier of this.#barriers.values()) if (barrier.open && barrier.timed) timers.push({ id: barrier.id, kind: 'join' })
    for (const ask of this.#asks.values()) if (ask.timed) timers.push({ id: ask.id, kind: 'ask' })
    timers.sort((a, b) => compareIds(a.id, b.id))
    if (this.#limits.timeoutMs !== undefined) timers.push({ id: 'run', kind: 'run' })
    return timers
  }

  asks(): { id: string; branch: string; kind: 'question' | 'join' }[] {
    return [...this.#asks.values()].map(({ id, branch, kind }) => ({ id, branch, kind })).sort((a, b) => compareIds(a.id, b.id))
  }

  outcome(): RefOutcome | null {
    return this.#outcome
  }

  paused(): boolean {
    return this.#paused
  }

  compensating(): boolean {
    return this.#outcome === null && this.#ending !== null
  }

  /** What an attempt has in flight, and what is recorded of its turn since it was last rejected. */
  work(branch: string): { inFlight: string | null; recorded: ReadonlySet<string> } {
    return this.#branch(branch)
  }

  /** The undos that are owed. */
  undos(): { of: string; attempt: number }[] {
    const owed = this.#undoing.owed().map(({ id, attempt }) => ({ of: id, attempt }))
    return owed.sort((a, b) => compareEntries(a.of, b.of))
  }

  /** The plans that were made, with what each of them has taken. */
  plans(): { at: string; entries: string[]; unknown: string[]; decidedBy: string[] }[] {
    return this.#undoing.plans.map(({ at, entries }) => {
      const unknown = entries.filter(({ status }) => status === 'unknown').map(({ id }) => id)
      const choice = this.#choices.find((made) => made.choice.kind === 'undo' && made.choice.at === at)?.choice
      const ids = entries.map(({ id }) => id).filter((id) => !unknown.includes(id))
      return {
        at,
        entries: ids.sort(compareEntries),
        unknown: unknown.sort(compareEntries),
        decidedBy: (choice?.decidedBy ?? []).map(String),
      }
    })
  }

  /** The choices that were made, but for those under slots that read cancelled. */
  choices(): readonly RefChoice[] {
    const seen = this.#choices.filter(({ branch }) => branch === null || this.#isVisible(branch)).map(({ choice }) => choice)
    for (const plan of this.#undoing.plans) {
      const left = this.#leftOf(plan)
      if (!this.#isVisiblePlan(plan) && left.length > 0) seen.push({ at: plan.at, kind: 'undo', decidedBy: left })
    }
    return seen.sort((a, b) => compareIds(a.at, b.at) || (`${a.at} ${a.kind}` < `${b.at} ${b.kind}` ? -1 : 1))
  }

  /** Beyond the interface of the run: what a report may contain. */
  report(): RefReport {
    const outcome = this.#outcome
    const nothing = { branches: [], turns: [], joins: [], merges: [], detached: [] }
    if (outcome === null) return { status: 'running', notUndone: [], plans: [], ...nothing }
    const { status, rollback, notUndone } = outcome
    const undone = { rollback, notUndone, plans: this.#reportedPlans() }
    if (this.#closing !== null) return { status, error: this.#comparable(outcome.error), ...undone, ...nothing }
    const branches = this.#sorted().filter((branch) => this.#isReported(branch.id))
    const ids = new Set(branches.map((branch) => branch.id))
    const entries = (type: string): object[] =>
      this.log
        .filter((entry) => 'type' in entry && entry.type === type && 'branch' in entry && ids.has(entry.branch as string))
        .map((entry) => canonical(entry))
        .sort()
        .map((text) => JSON.parse(text) as object)
    return {
      status: outcome.status,
      output: outcome.output,
      error: this.#comparable(outcome.error),
      ...undone,
      branches: branches.map(({ id, agent, turn, status }) => ({ id, agent, turns: turn, status })),
      turns: entries('turn'),
      joins: entries('join'),
      merges: entries('merge'),
      detached: branches
        .filter((branch) => this.#barrier(branch.scope).kind === 'detached')
        .map((branch) => {
          const slot = this.#barrier(branch.scope).slots[0] as Slot
          return { branch: branch.id, status: slot.status, error: this.#comparable(slot.error) }
        }),
    }
  }

  // Commands

  act(id: string, action: RefAction): 'done' | 'stale' {
    const branch = this.#branches.get(id)
    if (this.#outcome !== null || branch === undefined || !branch.owed) return 'stale'
    branch.owed = false
    branch.inFlight = null
    this.#apply(branch, action)
    this.#finishCommand()
    return 'done'
  }

  /** A compensable activity of a running turn starts. */
  startActivity(id: string, key: string): void {
    this.#branch(id).inFlight = key
  }

  /** An activity has ended; of a turn that is being aborted it is the one in flight, and late. */
  record(id: string, { key, compensates, outcome }: RefActivity): void {
    const branch = this.#branch(id)
    if (!branch.owed && branch.inFlight !== key) throw new Error(`${key} of ${id} can't be recorded`)
    branch.inFlight = null
    branch.recorded.add(key)
    if (compensates) this.#enter(branch, this.#activityOf(branch, key), 'activity', outcome)
  }

  /** An aborted attempt is over: it ended, or returned after all, or its grace ran out. */
  settle(id: string, how: 'ended' | 'late' | 'fenced'): void {
    if (!this.#aborting.delete(id)) throw new Error(`${id} is not aborting`)
    const branch = this.#branch(id.split('/')[0] as string)
    this.log.push({ type: 'settled', branch: branch.id, attempt: id })
    if (how !== 'ended' && this.#compensates(branch)) this.#enter(branch, turnOf(branch), 'node', how === 'late' ? 'done' : 'unknown')
    if (how === 'fenced' && branch.inFlight !== null) this.#enter(branch, this.#activityOf(branch, branch.inFlight), 'activity', 'unknown')
    branch.inFlight = null
    this.#finishCommand()
  }

  undo(of: string, how: 'compensated' | 'failed'): void {
    const { status, attempt } = this.#undoing.settle(of, how)
    this.log.push({ type: 'undo', of, attempt, status })
    this.#finishCommand()
  }

  pause(): void {
    if (this.#outcome === null) this.#paused = true
  }

  resumeRun(): void {
    this.#paused = false
    this.#finishCommand()
  }

  fire(id: string): void {
    if (this.#paused || !this.timers().some((timer) => timer.id === id)) throw new Error(`no timer ${id} is armed`)
    const ask = this.#asks.get(id)
    if (id === 'run') this.#cross('LIMIT_TIME')
    else if (ask !== undefined) {
      this.#asks.delete(id)
      this.#choose({ at: id, kind: 'timeout', decidedBy: [] }, ask.branch)
      this.#goOn(this.#branch(ask.branch), { kind: 'expired', askId: id, question: ask.question })
    } else this.#fireBarrier(this.#barrier(id), true)
    this.#finishCommand()
  }

  answer(id: string, value: unknown): void {
    const ask = this.#asks.get(id)
    if (ask === undefined) throw new Error(`no ask ${id} is open`)
    if (ask.kind === 'join' && typeof value !== 'boolean') throw new Error(`the answer to ${id} is true or false`)
    this.#asks.delete(id)
    const branch = this.#branch(ask.branch)
    if (ask.kind === 'question') this.#goOn(branch, { kind: 'answer', askId: id, question: ask.question, value })
    else {
      branch.ask = null
      this.#release(branch, this.#barrier(branch.fork as string), value === true)
    }
    this.#finishCommand()
  }

  cancel(compensate = true): void {
    if (this.#outcome !== null || this.#closing !== null || this.#ending !== null) return
    this.#close({ status: 'cancelled', compensate })
    this.#finishCommand()
  }

  // Actions

  #apply(branch: Branch, action: RefAction): void {
    if (action.type === 'fail') return this.#fail(branch, this.#failure(branch, 'AGENT_FAILED', action.error))
    if (action.type === 'throw') {
      branch.throws++
      if (branch.throws < (this.#topology.agents?.[branch.agent]?.attempts ?? 1)) return this.#again(branch, branch.message)
      return this.#fail(branch, this.#failure(branch, 'AGENT_FAILED', action.error))
    }
    const problem = this.#problem(branch, action)
    if (problem !== null) {
      branch.rejections++
      const max = this.#topology.agents?.[branch.agent]?.maxRejections ?? 2
      branch.recorded = new Set()
      if (branch.rejections <= max) return this.#again(branch, { kind: 'feedback', problem })
      return this.#fail(branch, this.#failure(branch, 'REJECTED', problem))
    }
    if (action.type !== 'finish' && action.state !== undefined) branch.state = action.state
    if (this.#compensates(branch)) this.#enter(branch, turnOf(branch), 'node', 'done')
    switch (action.type) {
      case 'invoke':
        return this.#invoke(branch, action.to, action.request)
      case 'reply':
        return this.#invoke(branch, this.#waiting(branch) as string, action.value)
      case 'fork':
        return this.#fork(branch, action.calls, action.join, action.compensate === true)
      case 'finish': {
        const outermost = this.#outermost(branch.scope)
        if (outermost.id === branch.scope) return this.#arrive(branch, action.output)
        return this.#escape(branch, outermost.id, action.output)
      }
      case 'ask':
        return this.#openAsk(branch, 'question', action.question, action.timeoutMs !== undefined)
    }
  }

  /** Why an action is illegal, judged by the agent of the branch that acted; null if it is legal. */
  #problem(branch: Branch, action: Exclude<RefAction, { type: 'fail' | 'throw' }>): string | null {
    const targets = this.#topology.edges.filter((edge) => edge.from === branch.agent).map((edge) => edge.to)
    const no = (tried: string): string =>
      `${branch.agent} on ${branch.id} can't ${tried}; its edges lead to ${targets.join(', ') || 'nobody'}`
    const mayInvoke = (to: string): boolean => !reserved.includes(to) && targets.includes(to)
    if (action.type !== 'finish' && action.state !== undefined) {
      const unknown = Object.keys(action.state).filter((key) => !Object.keys(this.#topology.state ?? {}).includes(key))
      if (unknown.length > 0) return no(`carry ${unknown.join(', ')}, which has no merge`)
    }
    switch (action.type) {
      case 'invoke':
        return mayInvoke(action.to) ? null : no(`invoke ${action.to}`)
      case 'reply': {
        const waiting = this.#waiting(branch)
        if (waiting === null) return no('reply: nobody waits')
        return mayInvoke(waiting) ? null : no(`reply to ${waiting}`)
      }
      case 'fork': {
        const wrong = action.calls.filter((call) => !mayInvoke(call.to))
        if (wrong.length > 0) return no(`fork ${wrong.map((call) => call.to).join(', ')}`)
        const { policy, stragglers } = normalise(action.join)
        if (policy === 'settled' && stragglers === 'cancel') return no("join 'settled' with 'cancel'")
        if (typeof policy === 'object' && 'ratio' in policy && !(policy.ratio > 0 && policy.ratio <= 1))
          return no(`join a ratio of ${policy.ratio}`)
        const need = needOf(policy, action.calls.length)
        if (need > action.calls.length) return no(`join ${need} of ${action.calls.length}`)
        return null
      }
      case 'finish':
        return targets.includes('End') ? null : no('finish')
      case 'ask':
        return targets.includes('User') ? null : no('ask')
    }
  }

  #invoke(branch: Branch, to: string, value: unknown): void {
    const edge = this.#topology.edges.find((candidate) => candidate.from === branch.agent && candidate.to === to)
    if (edge?.notify === true) {
      if (this.#wouldCross(1, 0, 0)) return
      this.#detach(branch, to, value)
      const slots: RefSlot[] = [{ index: 0, to, request: value, status: 'arrived', by: to, value: undefined }]
      return this.#goOn(branch, { kind: 'join', join: { ok: true, slots, values: [null], extra: [] } })
    }
    const nearest = this.#enclosing(branch.scope).find((barrier) => this.#branch(barrier.owner as string).agent === to)
    if (nearest !== undefined) {
      if (nearest.id === branch.scope) return this.#arrive(branch, value)
      return this.#escape(branch, nearest.id, value)
    }
    if (this.#topology.joins.includes(to)) {
      branch.status = 'held'
      branch.heldAt = to
      branch.heldWith = { from: branch.agent, value }
      return
    }
    const from = branch.agent
    branch.agent = to
    branch.requests = [{ from, value, state: branch.state }]
    this.#goOn(branch, { kind: 'request', from, value })
  }

  #fork(branch: Branch, calls: readonly { to: string; request?: unknown }[], join: RefJoin | undefined, compensate: boolean): void {
    const notifies = (to: string): boolean =>
      this.#topology.edges.some((edge) => edge.from === branch.agent && edge.to === to && edge.notify === true)
    const deeper = calls.some((call) => !notifies(call.to)) ? this.#enclosing(branch.scope).length + 1 : 0
    if (this.#wouldCross(calls.length, deeper, calls.length)) return
    const id = `${branch.id}#${++branch.forks}`
    const barrier = this.#openBarrier(id, 'fork', branch.id, normalise(join), branch.state)
    barrier.compensate = compensate
    branch.status = 'forked'
    branch.fork = id
    for (const { to, request } of calls) {
      if (notifies(to)) {
        const slot = this.#openSlot(barrier, to, request)
        this.#detach(branch, to, request)
        this.#settleSlot(barrier, slot, { status: 'arrived', by: to })
      } else this.#openBranch(`${branch.id}.${branch.children++}`, to, id, branch.agent, request, branch.state, [turnOf(branch)])
    }
  }

  #detach(branch: Branch, to: string, request: unknown): void {
    const id = `${branch.id}#${++branch.forks}`
    this.#openBarrier(id, 'detached', branch.id, normalise('all'), branch.state)
    this.#openBranch(`${branch.id}.${branch.children++}`, to, id, branch.agent, request, branch.state, [turnOf(branch)])
  }

  #openAsk(branch: Branch, kind: 'question' | 'join', question: unknown, timed: boolean): void {
    const id = `${branch.id}~${++branch.asks}`
    branch.status = 'asking'
    branch.ask = id
    this.#asks.set(id, { id, branch: branch.id, kind, question, timed })
  }

  // How a branch goes on, or is over

  /** The next turn of a branch; it becomes owed once the command has been handled to the end. */
  #goOn(branch: Branch, message: RefMessage, because: readonly string[] = []): void {
    branch.status = 'ready'
    branch.because = [turnOf(branch), ...because]
    branch.ask = null
    branch.fork = null
    branch.next = message
  }

  /** The same turn, next attempt. */
  #again(branch: Branch, message: RefMessage): void {
    branch.attempt++
    branch.message = message
    branch.queued = true
    this.#logTurn(branch)
  }

  #arrive(branch: Branch, value: unknown): void {
    const barrier = this.#barrier(branch.scope)
    for (const index of branch.slots) {
      const by = { by: branch.agent, branch: branch.id, state: branch.state, lasts: [turnOf(branch)] }
      this.#settleSlot(barrier, barrier.slots[index] as Slot, { status: 'arrived', value, ...by })
    }
    this.#leaveCarried(branch)
    branch.status = 'done'
  }

  #escape(branch: Branch, to: string, value: unknown): void {
    branch.carried.push({ for: to, by: branch.agent, branch: branch.id, value })
    this.#goPast(branch)
  }

  #goPast(branch: Branch, because: readonly string[] = []): void {
    const barrier = this.#barrier(branch.scope)
    const lasts = [turnOf(branch), ...because]
    for (const index of branch.slots)
      this.#settleSlot(barrier, barrier.slots[index] as Slot, { status: 'escaped', by: null, branch: branch.id, lasts })
    this.#leaveCarried(branch)
    branch.status = 'escaped'
    branch.fork = null
    branch.ask = null
  }

  #fail(branch: Branch, error: RefFailure): void {
    const barrier = this.#barrier(branch.scope)
    const by = { by: branch.agent, branch: branch.id }
    for (const index of branch.slots) this.#settleSlot(barrier, barrier.slots[index] as Slot, { status: 'failed', error, ...by })
    branch.carried = []
    branch.status = 'failed'
    branch.fork = null
    branch.ask = null
    branch.next = null
  }

  #leaveCarried(branch: Branch): void {
    const lowest = Math.min(...branch.slots)
    const slot = this.#barrier(branch.scope).slots[lowest] as Slot
    slot.carried = branch.carried
    branch.carried = []
  }

  #settleSlot(barrier: Barrier, slot: Slot, result: Partial<Slot> & Pick<Slot, 'status'>): void {
    if (slot.status !== 'pending') throw new Error(`slot ${slot.index} of ${barrier.id} settles twice`)
    Object.assign(slot, result)
    const { status, by, value, error } = slot
    this.log.push({ type: 'slot', barrier: barrier.id, slot: slot.index, status, by, value, error })
  }

  /** Cancels every live branch that `under` holds for, with the forks they wait at; what was running is aborting. */
  #cancelBranches(under: (branch: Branch) => boolean): void {
    for (const branch of this.#sorted().filter((candidate) => isLive(candidate) && under(candidate))) {
      if (branch.owed) {
        this.#aborting.add(attemptOf(branch))
        this.log.push({ type: 'aborting', branch: branch.id, turn: turnOf(branch), attempt: attemptOf(branch) })
      }
      if (branch.ask !== null) this.#asks.delete(branch.ask)
      branch.owed = false
      branch.queued = false
      branch.sequel = null
      branch.next = null
      branch.status = 'cancelled'
      branch.carried = []
      const scope = this.#barrier(branch.scope)
      for (const index of branch.slots) {
        const slot = scope.slots[index] as Slot
        if (slot.status === 'pending') this.#settleSlot(scope, slot, { status: 'cancelled', by: null })
      }
      if (branch.fork !== null) this.#barrier(branch.fork).open = false
    }
  }

  #isUnder(branch: Branch, barrier: Barrier): boolean {
    for (let scope = this.#barrier(branch.scope); ; scope = this.#barrier(this.#branch(scope.owner as string).scope)) {
      if (scope.id === barrier.id) return true
      if (scope.kind !== 'fork') return false
    }
  }

  // Barriers

  /** Fires one barrier that is due, the innermost first; false if there is none. */
  #evaluate(): boolean {
    const due = [...this.#barriers.values()].filter((barrier) => {
      if (!barrier.open) return false
      const pending = barrier.slots.filter((slot) => slot.status === 'pending').length
      const delivered = barrier.slots.filter(isDelivered).length
      const need = needOf(barrier.policy, barrier.slots.length)
      return pending === 0 || (barrier.stragglers === 'cancel' && (delivered >= need || delivered + pending < need))
    })
    const depth = (barrier: Barrier): number => (barrier.kind === 'fork' ? this.#enclosing(barrier.id).length : 0)
    due.sort((a, b) => depth(b) - depth(a) || compareIds(a.id, b.id))
    const first = due[0]
    if (first === undefined) return false
    this.#fireBarrier(first, false)
    return true
  }

  #fireBarrier(barrier: Barrier, timedOut: boolean): void {
    const settled = barrier.slots.filter((slot) => slot.status !== 'pending')
    this.#cancelBranches((branch) => this.#isUnder(branch, barrier))
    barrier.open = false
    const delivered = barrier.slots.filter(isDelivered)
    barrier.ok = delivered.length >= needOf(barrier.policy, barrier.slots.length)
    const isChoice = timedOut || (barrier.stragglers === 'cancel' && !(barrier.policy === 'all' && barrier.ok))
    const deciding = !isChoice ? barrier.slots : timedOut || !barrier.ok ? settled : delivered
    barrier.read = barrier.slots.map((slot) =>
      deciding.includes(slot)
        ? slot
        : { index: slot.index, to: slot.to, request: slot.request, status: 'cancelled' as const, by: null, carried: [] },
    )
    if (isChoice) {
      const decidedBy = deciding.map((slot) => slot.index)
      this.#choose({ at: barrier.id, kind: timedOut ? 'timeout' : 'join', decidedBy }, barrier.owner as string)
    }
    if (barrier.kind !== 'fork') return
    const owner = this.#branch(barrier.owner as string)
    const contributions = barrier.read.flatMap((slot) => slot.carried).sort((a, b) => compareIds(a.branch, b.branch))
    barrier.extra = contributions.filter((contribution) => contribution.for === barrier.id)
    owner.carried.push(...contributions.filter((contribution) => contribution.for !== barrier.id))
    this.log.push({ type: 'join', branch: owner.id, barrier: barrier.id, ...this.#joinData(barrier) })
    if (!barrier.ok && barrier.insufficient === 'ask') this.#openAsk(owner, 'join', null, false)
    else this.#release(owner, barrier, barrier.ok || barrier.insufficient === 'resume')
  }

  /** What becomes of the waiting branch is known; if the fork compensates, its plan comes first. */
  #release(owner: Branch, barrier: Barrier, goesOn: boolean): void {
    owner.sequel = goesOn ? this.#sequel(owner, barrier) : { type: 'fail', error: this.#joinFailure(owner, barrier) }
    owner.status = 'undoing'
    if (!barrier.compensate) this.#follow(owner, barrier)
  }

  /** The waiting branch goes on: past the fork, if everybody has gone past it; else with the join. */
  #sequel(owner: Branch, barrier: Barrier): Sequel {
    const read = barrier.read as Slot[]
    const gone =
      read.every((slot) => slot.status === 'escaped' || slot.status === 'cancelled') && read.some((slot) => slot.status === 'escaped')
    if (barrier.policy !== 'settled' && barrier.extra.length === 0 && gone) return { type: 'past' }
    const arrived = read.filter((slot) => slot.status === 'arrived' && slot.branch !== undefined)
    const once = arrived.filter((slot, index) => arrived.findIndex((other) => other.branch === slot.branch) === index)
    const merged = this.#merge(
      owner.state,
      owner.state,
      once.map((slot) => slot.state),
    )
    if ('thrown' in merged) return { type: 'fail', error: this.#failure(owner, 'MERGE_FAILED', merged.thrown) }
    return { type: 'join', state: merged.state }
  }

  #follow(owner: Branch, barrier: Barrier): void {
    const sequel = owner.sequel as Sequel
    owner.sequel = null
    const counts = (barrier.read as Slot[]).map((slot) => isDelivered(slot) && sequel.type !== 'fail')
    this.log.push({ type: 'follow', branch: owner.id, barrier: barrier.id, compensate: barrier.compensate, counts })
    const counting = (barrier.read as Slot[]).filter(isDelivered).flatMap((slot) => slot.lasts ?? [])
    if (sequel.type === 'fail') return this.#fail(owner, sequel.error)
    if (sequel.type === 'past') return this.#goPast(owner, counting)
    owner.state = sequel.state
    this.#goOn(owner, { kind: 'join', join: this.#joinData(barrier) }, counting)
  }

  // Undoing

  #compensates(branch: Branch): boolean {
    return this.#topology.agents?.[branch.agent]?.compensates === true
  }

  #enter(branch: Branch, id: string, kind: RefEntry['kind'], status: 'done' | 'unknown'): void {
    this.#undoing.enter(id, turnOf(branch), kind, status)
    this.log.push({ type: 'entry', branch: branch.id, turn: turnOf(branch), id, kind, status })
  }

  #activityOf(branch: Branch, key: string): string {
    return `${turnOf(branch)}${branch.rejections > 0 ? `!${branch.rejections}` : ''}/${key}`
  }

  /** Begins every plan that nothing under it holds back, and lets branches go on whose plan is over; false if there is none. */
  #plan(): boolean {
    const waiting = this.#sorted().filter((branch) => branch.status === 'undoing')
    const moving = waiting.filter((branch) => {
      const barrier = this.#barrier(branch.fork as string)
      const plan = this.#undoing.plans.find(({ at }) => at === barrier.id)
      if (plan !== undefined) return this.#undoing.isOver(plan)
      if (this.#isBusyUnder(barrier)) return false
      const entries = this.#undoing.free().filter((entry) => this.#isToUndo(entry, barrier, branch.sequel as Sequel))
      if (entries.length > 0) this.#beginPlan(barrier.id, branch.id, entries, this.#uncertain(entries))
      // A plan of nothing but unknown outcomes is over at once.
      return entries.every(({ status }) => status === 'unknown')
    })
    for (const branch of moving) this.#follow(branch, this.#barrier(branch.fork as string))
    return moving.length > 0
  }

  /** Whether an attempt under the barrier is aborting, or a plan under it runs. */
  #isBusyUnder(barrier: Barrier): boolean {
    const isUnder = (id: string): boolean => this.#isUnder(this.#branch(id), barrier)
    const running = this.#undoing.plans.filter((plan) => !this.#undoing.isOver(plan) && plan.at !== '#')
    return (
      [...this.#aborting].some((id) => isUnder(id.split('/')[0] as string)) ||
      running.some((plan) => isUnder(this.#barrier(plan.at).owner as string))
    )
  }

  /** What was done under the slots of a fork that don't count, and all of it if the join failed. */
  #isToUndo(entry: RefEntry, barrier: Barrier, sequel: Sequel): boolean {
    let branch = this.#branch(entry.node.split('/')[0] as string)
    if (!this.#isUnder(branch, barrier)) return false
    if (sequel.type === 'fail') return true
    while (branch.scope !== barrier.id) branch = this.#branch(this.#barrier(branch.scope).owner as string)
    return !isDelivered((barrier.read as Slot[])[branch.seat] as Slot)
  }

  /** The ids of what depends on when a choice fell: it lies under a slot that reads cancelled, or nobody knows whether it was done. */
  #uncertain(entries: readonly RefEntry[]): string[] {
    const uncertain = entries.filter(({ status, node }) => status === 'unknown' || !this.#isVisible(node.split('/')[0] as string))
    const inOrder = uncertain.sort((a, b) => compareEntries(a.id, b.id))
    return inOrder.map(({ id, status }) => (status === 'unknown' ? `${id}?` : id))
  }

  #beginPlan(at: string, owner: string | null, entries: readonly RefEntry[], uncertain: readonly string[]): void {
    this.#undoing.begin(at, entries)
    this.log.push({ type: 'plan', at, entries: entries.map(({ id }) => id) })
    if (uncertain.length > 0) this.#choose({ at, kind: 'undo', decidedBy: uncertain }, owner)
  }

  #leftOf(plan: RefPlan): string[] {
    const left = plan.entries.filter(({ status }) => status === 'failed' || status === 'unknown')
    return left.map(({ id }) => id).sort(compareEntries)
  }

  #isVisible(branch: string): boolean {
    return this.#closing === null && this.#isReported(branch)
  }

  #isVisiblePlan({ at }: RefPlan): boolean {
    return at === '#' || this.#isVisible(this.#barrier(at).owner as string)
  }

  #reportedPlans(): object[] {
    const visible = this.#undoing.plans.filter((plan) => this.#isVisiblePlan(plan))
    const plans = visible.map(({ at, entries }) => ({
      at,
      entries: entries.map(({ id, status }) => ({ id, status })).sort((a, b) => compareEntries(a.id, b.id)),
    }))
    return plans.sort((a, b) => compareIds(a.at, b.at) || (a.at < b.at ? -1 : 1))
  }

  #rollback(): Pick<RefOutcome, 'rollback' | 'notUndone'> {
    const { plans } = this.#undoing
    const notUndone = plans.flatMap((plan) => this.#leftOf(plan)).sort(compareEntries)
    const undid = plans.some((plan) => this.#isVisiblePlan(plan) && plan.entries.some(({ status }) => status === 'compensated'))
    return { rollback: notUndone.length > 0 ? 'partial' : undid ? 'complete' : 'none', notUndone }
  }

  // What waiting branches are told

  #joinData(barrier: Barrier): RefJoinData {
    const slots = (barrier.read as Slot[]).map(({ index, to, request, status, by, value, error }): RefSlot => {
      if (status === 'arrived') return { index, to, request, status, by: by as string, value }
      if (status === 'failed') return { index, to, request, status, by, error: error as RefFailure }
      return { index, to, request, status: status as 'escaped' | 'cancelled', by: null }
    })
    const values = slots.flatMap((slot) => (slot.status === 'arrived' ? [slot.value ?? null] : []))
    return { ok: barrier.ok, slots, values, extra: barrier.extra.map(({ by, value }) => ({ by, value })) }
  }

  #joinFailure(owner: Branch, barrier: Barrier): RefFailure {
    const lowest = (barrier.read as Slot[]).find((slot) => slot.status === 'failed')
    if (lowest === undefined) return this.#failure(owner, 'JOIN_INSUFFICIENT', `too few of ${barrier.id} were delivered`)
    return { ...this.#failure(owner, 'JOIN_FAILED', `${barrier.id} failed`), cause: lowest.error as RefFailure }
  }

  // Rendezvous

  /** Fires every group that can fire now, all of them judged before any of them fires; false if there is none. */
  #meet(): boolean {
    const groups: { scope: string; node: string; members: Branch[] }[] = []
    for (const branch of this.#sorted().filter((candidate) => candidate.status === 'held')) {
      const group = groups.find((candidate) => candidate.scope === branch.scope && candidate.node === branch.heldAt)
      if (group === undefined) groups.push({ scope: branch.scope, node: branch.heldAt as string, members: [branch] })
      else group.members.push(branch)
    }
    const due = groups.filter(({ scope, node }) => {
      const others = this.#sorted().filter((branch) => isLive(branch) && branch.status !== 'held' && branch.scope === scope)
      if (others.some((branch) => this.#reaches(scope, branch.agent, node))) return false
      const waiting = groups.filter((group) => group.scope === scope && group.node !== node).map((group) => group.node)
      return !waiting.some((from) => this.#reaches(scope, from, node) && !this.#reaches(scope, node, from))
    })
    for (const { scope, node, members } of due) this.#mergeGroup(scope, node, members)
    return due.length > 0
  }

  #mergeGroup(scope: string, node: string, members: Branch[]): void {
    members.sort((a, b) => Math.min(...a.slots) - Math.min(...b.slots))
    const survivor = members[0] as Branch
    const requests = members.map((member) => ({ ...(member.heldWith as { from: string; value: unknown }), state: member.state }))
    const lasts = members.map(turnOf)
    survivor.slots = members.flatMap((member) => member.slots).sort((a, b) => a - b)
    survivor.carried = members.flatMap((member) => member.carried)
    for (const member of members) {
      member.heldAt = null
      member.heldWith = null
      if (member === survivor) continue
      member.status = 'merged'
      member.slots = []
      member.carried = []
    }
    survivor.agent = node
    survivor.requests = requests
    if (members.length === 1) {
      const only = requests[0] as { from: string; value: unknown }
      return this.#goOn(survivor, { kind: 'request', from: only.from, value: only.value })
    }
    const states = members.map((member) => member.state)
    const merged = this.#merge(this.#barrier(scope).base, survivor.state, states)
    const ids = members.map((member) => member.id)
    if ('thrown' in merged) {
      this.log.push({ type: 'merge', branch: survivor.id, scope, node, members: ids, slots: survivor.slots, failed: true })
      const failure = this.#failure(survivor, 'MERGE_FAILED', merged.thrown)
      return this.#fail(survivor, { ...failure, at: { ...failure.at, turn: survivor.turn + 1 } })
    }
    survivor.state = merged.state
    this.log.push({ type: 'merge', branch: survivor.id, scope, node, members: ids, slots: survivor.slots, state: survivor.state })
    this.#goOn(survivor, { kind: 'merged', requests: requests.map(({ from, value }) => ({ from, value })) }, lasts)
  }

  /** A path of at least one edge that enters no agent that waits at an enclosing fork, nor End or User, nor goes over a notify edge. */
  #reaches(scope: string, from: string, to: string): boolean {
    const closed = [...this.#enclosing(scope).map((barrier) => this.#branch(barrier.owner as string).agent), 'End', 'User']
    const seen = new Set<string>()
    const queue = [from]
    for (let node = queue.shift(); node !== undefined; node = queue.shift()) {
      for (const edge of this.#topology.edges) {
        if (edge.from !== node || edge.notify === true || closed.includes(edge.to) || seen.has(edge.to)) continue
        seen.add(edge.to)
        queue.push(edge.to)
      }
    }
    return seen.has(to)
  }

  // State

  #merge(
    base: RefState | undefined,
    mine: RefState | undefined,
    states: readonly (RefState | undefined)[],
  ): { state: RefState | undefined } | { thrown: string } {
    if (base === undefined) return { state: mine }
    const merged: RefState = {}
    for (const key of Object.keys(this.#topology.state ?? {})) {
      const changed = states.map((state) => state?.[key]).filter((value) => canonical(value) !== canonical(base[key]))
      const rule = this.#topology.merge?.[key] ?? 'mine'
      if (rule === 'mine') merged[key] = mine?.[key]
      else if (changed.length === 0) merged[key] = base[key]
      else if (rule === 'last') merged[key] = changed.at(-1)
      else {
        try {
          merged[key] = rule(base[key], changed)
        } catch (error) {
          return { thrown: String(error) }
        }
      }
    }
    return { state: merged }
  }

  // Limits, and the end

  /** Fails the run if so many new branches, that depth or that fan-out are over a limit. */
  #wouldCross(branches: number, depth: number, fanOut: number): boolean {
    if (this.#branches.size + branches > this.#limits.maxBranches) this.#cross('LIMIT_BRANCHES')
    else if (depth > this.#limits.maxDepth) this.#cross('LIMIT_DEPTH')
    else if (fanOut > this.#limits.maxFanOut) this.#cross('LIMIT_FANOUT')
    return this.#closing !== null
  }

  #cross(code: string): void {
    this.#choose({ at: 'run', kind: code === 'LIMIT_TIME' ? 'timeout' : 'limit', decidedBy: [code] }, null)
    const error: RefFailure = { code, message: `the run crossed ${code}`, retryable: false, at: {} }
    this.#close({ status: 'failed', error, compensate: true })
  }

  #close(closing: { status: 'failed' | 'cancelled'; error?: RefFailure; compensate: boolean }): void {
    this.#closing = closing
    if (closing.status === 'cancelled') this.#paused = false
    this.#cancelBranches(() => true)
    for (const barrier of this.#barriers.values()) barrier.open = false
  }

  #finishCommand(): void {
    if (this.#closing === null) {
      do {
        let changed = true
        while (changed) changed = this.#evaluate() || this.#plan()
      } while (this.#meet())
      this.#begin()
    }
    this.#conclude()
    this.#startAll()
  }

  /** Turns, retries and undos start, unless the run is paused. */
  #startAll(): void {
    if (this.#paused || this.#outcome !== null) return
    for (const branch of this.#sorted().filter(({ queued }) => queued)) {
      branch.queued = false
      branch.owed = true
    }
    for (const { id, attempt } of this.#undoing.startAll()) this.log.push({ type: 'undoing', of: id, attempt })
    if (this.#undoing.owed().length > 0) this.log.push({ type: 'started' })
  }

  /** Reserves all turns that are to begin, then begins them. */
  #begin(): void {
    const starting = this.#sorted().filter((branch) => branch.next !== null)
    const tooMany = this.#turns + starting.length > this.#limits.maxTurns
    if (tooMany || starting.some((branch) => branch.turn + 1 > this.#limits.maxTurnsPerBranch)) return this.#cross('LIMIT_TURNS')
    this.#turns += starting.length
    for (const branch of starting) {
      branch.turn++
      branch.attempt = 1
      branch.rejections = 0
      branch.throws = 0
      branch.message = branch.next as RefMessage
      branch.next = null
      branch.queued = true
      branch.recorded = new Set()
      this.#undoing.came(turnOf(branch), branch.because)
      this.log.push({ type: 'because', branch: branch.id, turn: turnOf(branch), of: branch.because })
      this.#logTurn(branch)
    }
  }

  #conclude(): void {
    if (this.#outcome !== null || this.#aborting.size > 0) return
    if (this.#undoing.plans.some((plan) => !this.#undoing.isOver(plan))) return
    if (this.#ending !== null) return this.#end(this.#ending)
    if (this.#closing === null && (this.#barrier('#').open || [...this.#branches.values()].some(isLive))) return
    const ending = this.#closing ?? this.#result()
    const compensates = ending.status !== 'succeeded' && (this.#closing?.compensate ?? true)
    const entries = compensates ? this.#undoing.free() : []
    if (entries.length === 0) return this.#end(ending)
    this.#ending = ending
    this.#beginPlan('#', null, entries, this.#uncertain(entries))
    this.#conclude()
  }

  #end({ status, output, error }: Pick<RefOutcome, 'status' | 'output' | 'error'>): void {
    const given = { ...(output === undefined ? {} : { output }), ...(error === undefined ? {} : { error }) }
    this.#outcome = { status, ...given, ...this.#rollback() }
    const compensate = status !== 'succeeded' && (this.#closing?.compensate ?? true)
    this.log.push({ type: 'end', compensate })
  }

  #result(): Pick<RefOutcome, 'status' | 'output' | 'error'> {
    const root = this.#barrier('#')
    const failed = root.slots.find((slot) => slot.status === 'failed')
    if (failed !== undefined) {
      const error = failed.error as RefFailure
      const { branch, agent } = error.at
      return {
        status: 'failed',
        error: { ...error, ...(branch === undefined ? {} : { branch }), ...(agent === undefined ? {} : { agent }) },
      }
    }
    const finishes = root.slots.flatMap((slot) => slot.carried).filter((contribution) => contribution.for === '#')
    for (const slot of root.slots) {
      if (slot.status !== 'arrived' || finishes.some((finish) => finish.branch === slot.branch)) continue
      finishes.push({ for: '#', by: slot.by as string, branch: slot.branch as string, value: slot.value })
    }
    finishes.sort((a, b) => compareIds(a.branch, b.branch))
    if (this.#topology.result === 'list') return { status: 'succeeded', output: finishes.map((finish) => finish.value ?? null) }
    if (finishes.length === 1) return { status: 'succeeded', output: finishes[0]?.value }
    const code = finishes.length === 0 ? 'NO_RESULT' : 'SEVERAL_FINISHES'
    const twice = [...new Set(finishes.map((finish) => finish.by))].filter((by) => finishes.filter((finish) => finish.by === by).length > 1)
    const hint = twice.length === 0 ? "result: 'list'" : `joins: [${twice.map((by) => `'${by}'`).join(', ')}]`
    const branches = finishes.map((finish) => finish.branch).join(', ') || 'nobody'
    return { status: 'failed', error: { code, message: `finished by ${branches}; perhaps ${hint}`, retryable: false, at: {} } }
  }

  // Small things

  #sorted(): readonly Branch[] {
    this.#inOrder ??= [...this.#branches.values()].sort((a, b) => compareIds(a.id, b.id))
    return this.#inOrder
  }

  #branch(id: string): Branch {
    return this.#branches.get(id) as Branch
  }

  #barrier(id: string): Barrier {
    return this.#barriers.get(id) as Barrier
  }

  /** The forks around a scope, itself first, up to the root or a detached barrier. */
  #enclosing(scope: string): Barrier[] {
    const forks: Barrier[] = []
    let barrier = this.#barrier(scope)
    while (barrier.kind === 'fork') {
      forks.push(barrier)
      barrier = this.#barrier(this.#branch(barrier.owner as string).scope)
    }
    return forks
  }

  #outermost(scope: string): Barrier {
    const last = this.#enclosing(scope).at(-1)
    return this.#barrier(last === undefined ? scope : this.#branch(last.owner as string).scope)
  }

  #waiting(branch: Branch): string | null {
    const scope = this.#barrier(branch.scope)
    return scope.kind === 'fork' ? this.#branch(scope.owner as string).agent : null
  }

  #openBarrier(id: string, kind: Barrier['kind'], owner: string | null, join: Joining, base: RefState | undefined): Barrier {
    const unfired = { slots: [], read: null, extra: [], ok: false, open: true }
    const barrier: Barrier = { id, kind, owner, ...join, compensate: false, ...unfired, base }
    this.#barriers.set(id, barrier)
    return barrier
  }

  #openSlot(barrier: Barrier, to: string, request: unknown): Slot {
    const slot: Slot = { index: barrier.slots.length, to, request, status: 'pending', by: null, carried: [] }
    barrier.slots.push(slot)
    return slot
  }

  #openBranch(
    id: string,
    to: string,
    scope: string,
    from: string,
    request: unknown,
    state: RefState | undefined,
    because: string[] = [],
  ): void {
    const { index } = this.#openSlot(this.#barrier(scope), to, request)
    const message: RefMessage = { kind: 'request', from, value: request }
    this.log.push({ type: 'open', branch: id, scope, seat: index, detached: this.#barrier(scope).kind === 'detached' })
    this.#inOrder = null
    this.#branches.set(id, {
      id,
      agent: to,
      scope,
      seat: index,
      slots: [index],
      turn: 0,
      attempt: 0,
      rejections: 0,
      throws: 0,
      state,
      carried: [],
      status: 'ready',
      owed: false,
      queued: false,
      inFlight: null,
      recorded: new Set(),
      because,
      sequel: null,
      next: message,
      message,
      requests: [{ from, value: request, state }],
      heldAt: null,
      heldWith: null,
      fork: null,
      ask: null,
      forks: 0,
      children: 0,
      asks: 0,
    })
  }

  #failure(branch: Branch, code: string, message: string): RefFailure {
    return { code, message, retryable: false, at: { branch: branch.id, agent: branch.agent, turn: branch.turn } }
  }

  #choose(choice: RefChoice, branch: string | null): void {
    this.#choices.push({ choice, branch })
    this.log.push({ type: 'choice', ...choice })
  }

  #shown(branch: Branch): Owed {
    const { id, agent, turn, attempt, message, state, requests } = branch
    return { branch: id, agent, turn, attempt, message, waiting: this.#waiting(branch), state, requests }
  }

  #logTurn(branch: Branch): void {
    this.log.push({ type: 'turn', ...this.#shown(branch) })
  }

  /** Whether neither the branch's slot nor that of a branch around it, or of the one that started it, reads cancelled. */
  #isReported(id: string): boolean {
    const branch = this.#branch(id)
    const scope = this.#barrier(branch.scope)
    const slot = (scope.read ?? scope.slots)[branch.seat] as Slot
    if (slot.status === 'cancelled') return false
    return scope.owner === null || this.#isReported(scope.owner)
  }

  #comparable(error: RefFailure | undefined): unknown {
    if (error === undefined) return undefined
    return { code: error.code, at: error.at, cause: this.#comparable(error.cause) }
  }

  /** What is wrong by the invariants of a run, as sentences; empty if nothing is. */
  violations(): string[] {
    const found: string[] = []
    const live = [...this.#branches.values()].filter(isLive)
    for (const barrier of this.#barriers.values()) {
      for (const slot of barrier.slots) {
        if (slot.status !== 'pending') continue
        if (!barrier.open) found.push(`slot ${slot.index} of the closed ${barrier.id} is pending`)
        const owing = live.filter((branch) => branch.scope === barrier.id && branch.slots.includes(slot.index))
        if (barrier.open && owing.length !== 1) found.push(`slot ${slot.index} of ${barrier.id} is owed by ${owing.length} branches`)
      }
    }
    for (const branch of live) {
      if (branch.slots.length === 0) found.push(`${branch.id} owes no slot`)
      if (!this.#barrier(branch.scope).open) found.push(`${branch.id} owes a closed barrier`)
      if (branch.status === 'ready' && branch.owed === branch.queued) found.push(`${branch.id} is ready and owes no turn`)
      if (branch.status === 'forked' && !this.#barrier(branch.fork as string).open) found.push(`${branch.id} waits at a closed fork`)
      if (branch.status === 'asking' && !this.#asks.has(branch.ask as string)) found.push(`${branch.id} asks nothing`)
      if (branch.status === 'undoing' && branch.sequel === null) found.push(`${branch.id} is undoing and does not know what follows`)
      if (branch.status !== 'ready' && branch.owed) found.push(`${branch.id} is ${branch.status} and owes a turn`)
    }
    if (this.#outcome !== null && live.length > 0) found.push('the run is over and a branch is live')
    if (
      this.#outcome === null &&
      this.#aborting.size === 0 &&
      this.#asks.size === 0 &&
      this.timers().every((timer) => timer.kind === 'run')
    ) {
      const owes = live.some((branch) => branch.owed) || this.#undoing.owed().length > 0
      if (!owes && !this.#paused) found.push('the run is not over and owes nothing')
    }
    return found
  }
}
