import type { Action, Fail } from '../kernel/action.js'
import type { Failure } from '../kernel/failure.js'
import { markCriticalPath, type PathBar } from './critical-path.js'
import type { Events, JournalEvent } from './events.js'
import type { Rollback, RunStatus } from './report-data.js'

/** A place in a journal. Two moments of one millisecond still have an order. */
export interface Moment {
  readonly seq: number
  readonly at: number
}

export interface Span {
  readonly from: Moment
  readonly to: Moment
}

/** `sleep` is a long sleep within a turn, `backoff` waits for the next attempt, `barrier` for the answers to a fork, `rendezvous` for the others to come, `person` for an answer. */
export type BarKind =
  | 'turn'
  | 'failed'
  | 'rejected'
  | 'aborted'
  | 'sleep'
  | 'backoff'
  | 'barrier'
  | 'rendezvous'
  | 'person'
  | 'undo'
  | 'undo-failed'

/** A stretch of a lane in which one thing goes on. Texts are as the journal has them: whoever draws them escapes them. */
export interface Bar extends Span {
  readonly kind: BarKind
  /** It goes on; `to` is where the picture ends. */
  readonly open: boolean
  readonly agent: string
  readonly turn: number | null
  readonly attempt: number | null
  /** What it did, or what it waits for. */
  readonly text: string
  /** What it did on the way and is recorded: the steps of a turn. */
  readonly activities: readonly string[]
  /** On the way that decided when the run ended. */
  readonly critical: boolean
}

export type LaneOutcome = 'arrived' | 'failed' | 'escaped' | 'cancelled' | 'merged' | 'skipped' | 'running' | 'waiting'

/** A branch, or a step of a graph, or one item of such a step. */
export interface Lane extends Span {
  readonly id: string
  readonly parent: string | null
  /** The agents it came by, each once for as long as it stayed; or the step. */
  readonly agents: readonly string[]
  readonly item: number | null
  readonly outcome: LaneOutcome
  /** Why it failed or was skipped. */
  readonly cause: string | null
  readonly bars: readonly Bar[]
  readonly critical: boolean
}

/** A run as it can be drawn. */
export interface Timeline extends Span {
  readonly runId: string
  readonly definition: string
  readonly version: string
  readonly kind: 'topology' | 'graph'
  readonly status: RunStatus
  readonly output?: unknown
  readonly error?: Failure
  readonly rollback?: Rollback
  /** In the order in which they were opened. */
  readonly lanes: readonly Lane[]
  readonly pauses: readonly Span[]
  /** When another process, or the same one after a restart, took the run over. */
  readonly takeovers: readonly Moment[]
}

/** Makes the timeline of a run from its events, from the first on; `now` is where the bars of a run that goes on end. */
export function timelineOf(events: Iterable<JournalEvent>, now?: number): Timeline {
  let drawing: Drawing | null = null
  for (const event of events) {
    if (event.type === 'run.started') drawing = newDrawing(event)
    else if (drawing === null) throw new TypeError(`a timeline begins with run.started, not with ${event.type}`)
    else note(drawing, event)
  }
  if (drawing === null) throw new TypeError('there is no timeline of an empty journal')
  return finished(drawing, now)
}

type Of<T extends keyof Events> = Extract<JournalEvent, { readonly type: T }>
type Writable<T> = { -readonly [K in keyof T]: T[K] }

/** A bar while it grows. */
type GrowingBar = Writable<Omit<Bar, 'activities' | 'to'> & PathBar> & { to: Moment | null; readonly activities: string[] }

interface GrowingLane extends Writable<Omit<Lane, 'bars' | 'agents' | 'to' | 'critical'>> {
  to: Moment | null
  readonly agents: string[]
  readonly bars: GrowingBar[]
  /** Those of them that are open: few, where a lane may have thousands. */
  readonly going: GrowingBar[]
}

interface Drawing {
  readonly started: Of<'run.started'>
  last: Moment
  ended: boolean
  status: RunStatus
  compensating: boolean
  output?: unknown
  error?: Failure
  rollback?: Rollback
  graph: boolean
  readonly lanes: Map<string, GrowingLane>
  /** The lane that waits at each barrier, and how many have come. */
  readonly barriers: Map<string, { readonly owner: GrowingLane | null; readonly width: number; readonly policy: string; arrived: number }>
  readonly pauses: Writable<Span & { open: boolean }>[]
  readonly takeovers: Moment[]
}

function newDrawing(started: Of<'run.started'>): Drawing {
  const last = momentOf(started)
  const maps = { lanes: new Map(), barriers: new Map(), pauses: [], takeovers: [] }
  return { started, last, ended: false, status: 'running', compensating: false, graph: false, ...maps }
}

const momentOf = ({ seq, at }: Moment): Moment => ({ seq, at })

/** Notes what one event adds. Types that come with later versions are passed over. */
function note(drawing: Drawing, event: JournalEvent): void {
  const at = momentOf(event)
  drawing.last = at
  const lane = event.branch === undefined ? undefined : drawing.lanes.get(event.branch)
  switch (event.type) {
    case 'run.claimed':
      if (event.epoch > 1) drawing.takeovers.push(at)
      return
    case 'run.paused':
      drawing.status = 'paused'
      drawing.pauses.push({ from: at, to: at, open: true })
      return
    case 'run.resumed':
      return unpaused(drawing, at)
    case 'run.closing':
      // Whoever cancels a run takes its pause back; one that crossed a limit stands still until it is resumed.
      return event.cause === 'cancel' ? unpaused(drawing, at) : undefined
    case 'run.compensating':
      drawing.compensating = true
      if (drawing.status !== 'paused') drawing.status = 'compensating'
      return
    case 'run.succeeded':
    case 'run.failed':
    case 'run.cancelled':
      return runEnded(drawing, event)
    case 'branch.opened':
      return laneOpened(drawing, event)
    case 'branch.settled':
      if (lane !== undefined) settled(lane, event.status, at, event.error === undefined ? null : failureText(event.error))
      return
    case 'branch.held':
      if (lane !== undefined) begin(lane, 'rendezvous', at, { agent: event.node, text: `waits at ${event.node} for the others` })
      return
    case 'rendezvous.fired':
      for (const id of event.merged) {
        const merged = drawing.lanes.get(id)
        if (merged !== undefined && merged !== lane) settled(merged, 'merged', at)
      }
      return lane === undefined ? undefined : waited(lane, at)
    case 'turn.started':
      return lane === undefined ? undefined : turnStarted(lane, event)
    case 'turn.completed':
      return lane === undefined ? undefined : turnCompleted(lane, event)
    case 'turn.rejected':
      return lane === undefined ? undefined : turnEnded(lane, event, 'rejected', event.problem)
    case 'turn.aborted':
      return lane === undefined ? undefined : turnEnded(lane, event, 'aborted', event.how === 'fenced' ? 'shut out' : 'told to stop')
    case 'turn.failed':
      return lane === undefined ? undefined : turnFailed(lane, event)
    case 'sleep.started':
      if (lane !== undefined && event.ms >= sleepMsMin && openBar(lane, 'sleep') === undefined)
        begin(lane, 'sleep', at, { agent: event.agent, text: event.key })
      return
    case 'activity.completed':
    case 'activity.failed':
      return lane === undefined ? undefined : activityEnded(lane, event)
    case 'step.completed':
    case 'step.skipped':
      return lane === undefined ? undefined : stepSettled(lane, event)
    case 'barrier.opened':
      return barrierOpened(drawing, event, lane)
    case 'barrier.arrived':
      return arrived(drawing, event)
    case 'barrier.fired':
      return fired(drawing, event)
    case 'barrier.released': {
      const owner = drawing.barriers.get(event.barrier)?.owner
      return owner ? waited(owner, at) : undefined
    }
    case 'ask.opened':
      return lane === undefined ? undefined : asked(lane, event)
    case 'ask.answered':
      return lane === undefined ? undefined : waited(lane, at, `, answered${event.by === undefined ? '' : ` by ${event.by}`}`)
    case 'ask.expired':
      return lane === undefined ? undefined : waited(lane, at, ', expired')
    case 'undo.started':
      return undoStarted(undoneLane(drawing, event.of) ?? undoOpened(drawing, event), event)
    case 'undo.completed':
    case 'undo.failed':
      return undone(undoneLane(drawing, event.of), event)
    default:
      return
  }
}

// ── what events do to lanes ──────────────────────────────────────────────────────────────────────────────

function begin(lane: GrowingLane, kind: BarKind, from: Moment, more: Partial<GrowingBar> = {}): GrowingBar {
  const agent = more.agent ?? lane.agents.at(-1) ?? ''
  // A sleep is part of a turn, which holds the run up by itself.
  const waitsForOthers = kind === 'barrier' || kind === 'rendezvous' || kind === 'sleep'
  const empty = { to: null, open: true, turn: null, attempt: null, text: '', critical: false, activities: [] }
  const bar: GrowingBar = { kind, from, waitsForOthers, ...empty, ...more, agent }
  lane.bars.push(bar)
  lane.going.push(bar)
  return bar
}

function end({ going }: GrowingLane, bar: GrowingBar | undefined, to: Moment): void {
  if (bar === undefined) return
  bar.to = to
  bar.open = false
  going.splice(going.lastIndexOf(bar), 1)
}

const openBar = (lane: GrowingLane | undefined, ...kinds: readonly BarKind[]): GrowingBar | undefined =>
  lane?.going.findLast((bar) => kinds.includes(bar.kind))

/** Whatever the lane waited for is over. */
function waited(lane: GrowingLane, at: Moment, how = ''): void {
  for (let bar = openWait(lane); bar !== undefined; bar = openWait(lane)) {
    bar.text += how
    end(lane, bar, at)
  }
}

const openWait = (lane: GrowingLane): GrowingBar | undefined => openBar(lane, 'backoff', 'barrier', 'rendezvous', 'person')

function laneOpened(drawing: Drawing, event: Of<'branch.opened'>): void {
  if (event.branch === undefined) return
  if (event.gated === true) drawing.graph = true
  drawing.lanes.set(event.branch, {
    id: event.branch,
    parent: event.parent,
    agents: [event.to],
    item: event.gated === true && event.parent !== null ? event.slot : null,
    from: momentOf(event),
    to: null,
    outcome: 'waiting',
    cause: null,
    bars: [],
    going: [],
  })
}

function settled(lane: GrowingLane, outcome: LaneOutcome, at: Moment, cause: string | null = null): void {
  waited(lane, at)
  lane.outcome = outcome
  lane.cause = cause
  lane.to = at
}

function turnStarted(lane: GrowingLane, event: Of<'turn.started'>): void {
  const at = momentOf(event)
  waited(lane, at)
  if (lane.bars.length === 0) lane.from = at
  if (lane.agents.at(-1) !== event.agent) {
    if (lane.bars.length === 0) lane.agents.pop()
    lane.agents.push(event.agent)
  }
  lane.outcome = 'running'
  begin(lane, 'turn', at, { agent: event.agent, turn: event.turn, attempt: event.attempt })
}

/** A shorter sleep is part of the work. */
const sleepMsMin = 60_000

function activityEnded(lane: GrowingLane, event: Of<'activity.completed' | 'activity.failed'>): void {
  end(
    lane,
    lane.going.findLast(({ kind, text }) => kind === 'sleep' && text === event.key),
    momentOf(event),
  )
  if (!event.name.startsWith('~')) openBar(lane, 'turn')?.activities.push(event.name)
}

type TurnEnd = Of<'turn.completed' | 'turn.rejected' | 'turn.failed' | 'turn.aborted'>

function turnEnded(lane: GrowingLane, event: TurnEnd, kind: BarKind, text: string): void {
  const bar = lane.going.findLast(({ turn, attempt }) => turn === event.turn && attempt === event.attempt)
  if (bar === undefined) return
  bar.kind = kind
  bar.text = text
  end(lane, bar, momentOf(event))
  for (const sleep of lane.going.filter((other) => other.kind === 'sleep')) end(lane, sleep, momentOf(event))
}

/** A turn that says that it fails has failed like one that throws. */
function turnCompleted(lane: GrowingLane, event: Of<'turn.completed'>): void {
  const { action } = event
  if (action.type === 'fail') turnEnded(lane, event, 'failed', failureText(action.error))
  else turnEnded(lane, event, 'turn', actionText(action))
}

function turnFailed(lane: GrowingLane, event: Of<'turn.failed'>): void {
  turnEnded(lane, event, 'failed', failureText(event.error))
  if (event.retryAt !== undefined)
    begin(lane, 'backoff', momentOf(event), { agent: event.agent, text: `waits before attempt ${event.attempt + 1}` })
}

function stepSettled(lane: GrowingLane, event: Of<'step.completed' | 'step.skipped'>): void {
  const at = momentOf(event)
  end(lane, openBar(lane, 'turn'), at)
  if (lane.bars.length === 0) lane.from = at
  if (event.type === 'step.completed') settled(lane, 'arrived', at)
  else settled(lane, 'skipped', at, event.cause === 'when' ? 'its condition did not hold' : event.cause)
}

function barrierOpened(drawing: Drawing, event: Of<'barrier.opened'>, owner: GrowingLane | undefined): void {
  const waits = event.kind === 'fork' ? (owner ?? null) : null
  const policy = policyText(event.join)
  drawing.barriers.set(event.barrier, { owner: waits, width: event.width, policy, arrived: 0 })
  if (waits !== null) begin(waits, 'barrier', momentOf(event), { text: `waits for ${event.width} (${policy})` })
}

function policyText(join: Of<'barrier.opened'>['join']): string {
  const policy = typeof join === 'object' && 'policy' in join ? join.policy : join
  if (typeof policy === 'string') return policy
  return 'quorum' in policy ? `quorum ${policy.quorum}` : `ratio ${policy.ratio}`
}

function arrived(drawing: Drawing, event: Of<'barrier.arrived'>): void {
  const barrier = drawing.barriers.get(event.barrier)
  if (barrier === undefined) return
  barrier.arrived++
  const bar = openBar(barrier.owner ?? undefined, 'barrier')
  if (bar !== undefined) bar.text = `waits for ${barrier.width} (${barrier.policy}), ${barrier.arrived} arrived`
}

function fired(drawing: Drawing, event: Of<'barrier.fired'>): void {
  const owner = drawing.barriers.get(event.barrier)?.owner
  if (!owner) return
  const bar = openBar(owner, 'barrier')
  const counts = [`${event.arrived} of ${event.width} arrived`]
  for (const how of ['failed', 'escaped', 'cancelled'] as const) if (event[how] > 0) counts.push(`${event[how]} ${how}`)
  if (bar === undefined) return
  bar.text = `${counts.join(', ')}${event.byTimeout === true ? ', out of time' : ''}`
  if (event.byTimeout === true) bar.waitsForOthers = false
  end(owner, bar, momentOf(event))
}

function asked(lane: GrowingLane, event: Of<'ask.opened'>): void {
  const { ask } = event
  const what =
    ask.kind === 'question' ? json(ask.question) : ask.kind === 'approval' ? `approve ${ask.tool}?` : 'go on with too few answers?'
  begin(lane, 'person', momentOf(event), { text: `asks a person: ${what}` })
  lane.outcome = 'running'
}

/** The lane of what is undone: an entry is called by its step and item, by its branch, turn and activity, or by the child run of its step. */
function undoneLane(drawing: Drawing, of: string): GrowingLane | undefined {
  const { lanes, started } = drawing
  const branch = lanes.get(of) ?? lanes.get(of.split('/')[0] ?? '')
  if (branch !== undefined) return branch
  const child = `${started.runId}:`
  return stepLane(drawing, of) ?? (of.startsWith(child) ? stepLane(drawing, of.slice(child.length).replace(/@\d+$/, '')) : undefined)
}

function stepLane({ lanes }: Drawing, of: string): GrowingLane | undefined {
  const [, step, item] = /^(.*?)(?::(\d+))?$/.exec(of) ?? []
  for (const lane of lanes.values()) if (lane.agents[0] === step && lane.item === (item === undefined ? null : Number(item))) return lane
  return undefined
}

const undoText = (of: string): string => `undo of ${of}`

/** A run that only undoes has no branches: each thing that it undoes has a lane. */
function undoOpened({ lanes }: Drawing, event: Of<'undo.started'>): GrowingLane {
  const at = momentOf(event)
  const none = { parent: null, item: null, to: null, cause: null }
  const lane: GrowingLane = { id: event.of, agents: [event.of], from: at, outcome: 'running', bars: [], going: [], ...none }
  lanes.set(event.of, lane)
  return lane
}

function undoStarted(lane: GrowingLane, event: Of<'undo.started'>): void {
  const at = momentOf(event)
  end(
    lane,
    lane.going.findLast(({ kind, text }) => kind === 'backoff' && text === undoText(event.of)),
    at,
  )
  begin(lane, 'undo', at, { text: undoText(event.of), attempt: event.attempt })
}

function undone(lane: GrowingLane | undefined, event: Of<'undo.completed' | 'undo.failed'>): void {
  const bar = lane?.going.findLast(({ kind, text }) => kind === 'undo' && text === undoText(event.of))
  if (lane === undefined || bar === undefined) return
  end(lane, bar, momentOf(event))
  if (event.type === 'undo.completed') return
  bar.kind = event.final ? 'undo-failed' : 'failed'
  bar.text += `: ${failureText(event.error)}`
  if (!event.final) begin(lane, 'backoff', momentOf(event), { text: undoText(event.of) })
}

function unpaused(drawing: Drawing, at: Moment): void {
  const pause = drawing.pauses.at(-1)
  if (pause?.open !== true) return
  pause.open = false
  pause.to = at
  drawing.status = drawing.compensating ? 'compensating' : 'running'
}

function runEnded(drawing: Drawing, event: Of<'run.succeeded' | 'run.failed' | 'run.cancelled'>): void {
  unpaused(drawing, momentOf(event))
  drawing.ended = true
  switch (event.type) {
    case 'run.succeeded':
      drawing.status = 'succeeded'
      drawing.output = event.output
      return
    case 'run.failed':
      drawing.status = 'failed'
      drawing.error = event.error
      drawing.rollback = event.rollback
      return
    case 'run.cancelled':
      drawing.status = 'cancelled'
      drawing.rollback = event.rollback
  }
}

// ── what is drawn ────────────────────────────────────────────────────────────────────────────────────────

function finished(drawing: Drawing, now: number | undefined): Timeline {
  const { started, last, ended, graph, lanes } = drawing
  const to: Moment = ended || now === undefined || now <= last.at ? last : { seq: last.seq + 1, at: now }
  markCriticalPath([...lanes.values()].flatMap(({ bars }) => bars))
  return {
    runId: started.runId,
    definition: started.definition,
    version: started.version,
    kind: graph ? 'graph' : 'topology',
    status: drawing.status,
    ...(drawing.output !== undefined && { output: drawing.output }),
    ...(drawing.error !== undefined && { error: drawing.error }),
    ...(drawing.rollback !== undefined && { rollback: drawing.rollback }),
    from: momentOf(started),
    to,
    lanes: [...lanes.values()].map((lane) => laneOf(lane, to)),
    pauses: drawing.pauses.map((pause) => ({ from: pause.from, to: pause.open ? to : pause.to })),
    takeovers: drawing.takeovers,
  }
}

function laneOf(growingLane: GrowingLane, to: Moment): Lane {
  const { going: _, ...lane } = growingLane
  const bars = lane.bars.map((growing): Bar => {
    const { waitsForOthers: __, ...bar } = growing
    return { ...bar, to: bar.to ?? to }
  })
  const last = bars.at(-1)?.to ?? lane.from
  return { ...lane, bars, to: lane.to === null || last.seq > lane.to.seq ? last : lane.to, critical: bars.some(({ critical }) => critical) }
}

function actionText(action: Exclude<Action, Fail>): string {
  switch (action.type) {
    case 'invoke':
      return `invokes ${action.to}`
    case 'reply':
      return 'replies'
    case 'fork':
      return `asks ${listed(action.calls.map(({ to }) => to))}`
    case 'finish':
      return 'finishes'
    case 'ask':
      return 'asks a person'
  }
}

function listed(names: readonly string[]): string {
  const some = names.slice(0, 4).join(', ')
  return names.length <= 4 ? some : `${some} and ${names.length - 4} more`
}

const failureText = ({ code, message }: Failure): string => `${code}: ${message}`

const json = (value: unknown): string => (typeof value === 'string' ? value : (JSON.stringify(value) ?? ''))
