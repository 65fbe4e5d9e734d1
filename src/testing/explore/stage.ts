import type { Definition, Internals } from '../../define/definition.js'
import { internalsOf } from '../../define/definition.js'
import { isLater } from '../../define/maybe.js'
import type { Provided } from '../../define/resource.js'
import { TuttiError } from '../../define/tutti-error.js'
import { runHandle } from '../../engine/run-handle.js'
import { askView } from '../../engine/run-view.js'
import type { ActivityOutcome, Borrower, Held, Seam } from '../../engine/seam.js'
import { startRun, type Starting } from '../../engine/start.js'
import type { Store } from '../../engine/store.js'
import type { LogEntry } from '../../engine/tutti.js'
import type { ActivitySpeaker, Command } from '../../kernel/command.js'
import type { Event } from '../../kernel/event.js'
import { attemptId } from '../../kernel/ids.js'
import type { State } from '../../kernel/state.js'
import { isOver, newState } from '../../kernel/state.js'
import type { LanguageModel } from '../../define/language-model.js'
import type { ModelFactory } from '../../models/model-factory.js'
import { simModel } from '../../models/sim.js'
import { memoryStore } from '../../stores/memory.js'
import type { Effect } from './effects.js'
import { Effects } from './effects.js'
import type { Happening, Option } from './happening.js'
import { heldOf } from './held.js'
import { journalsOf } from './journals.js'
import type { AtCommit, ProcessPort } from './process.js'
import { Process } from './process.js'
import type { Journals } from './recorded.js'
import type { Schedule } from './schedule.js'
import type { Chooser } from './scheduler.js'
import { Scheduler } from './scheduler.js'
import type { Setting, Steering } from './setting.js'
import { faultOf, startsAt, within } from './setting.js'
import { VirtualTime } from './virtual-time.js'
import type { Prompt } from './watched-model.js'
import { watchedModel } from './watched-model.js'

/** What went wrong in one schedule, whatever the others do. */
export interface Broken {
  readonly invariant: 'ghost' | 'deadlock' | 'invariant' | 'endless' | 'prompt'
  readonly explain: string
}

/** One thing that was let go, and where the journal stood before it. */
export interface Taken {
  readonly option: Option
  readonly journal: number
  readonly fault: number | null
  readonly at: number
}

/** How one schedule went. */
export interface Played {
  readonly schedule: Schedule
  readonly taken: readonly Taken[]
  readonly journal: readonly Event[]
  /** That of the run, and those of its child runs. */
  readonly journals: Journals
  readonly state: State
  readonly definition: Definition
  readonly effects: readonly Effect[]
  readonly prompts: readonly Prompt[]
  readonly broken: readonly Broken[]
  /** Who waited for something that is not the scheduler's. */
  readonly away: readonly string[]
  /** Whether the chooser gave it up. */
  readonly givenUp: boolean
  /** Whether time passed before other things as often as it may. */
  readonly isHurried: boolean
  readonly crashes: number
  /** Where it left what was recorded, and was not followed further. */
  readonly left: string | null
  /** Who asked a person there that the record has no answer of. */
  readonly asks: string | null
}

/** A turn that is executed five times with no progress fails, as it should: more crashes than this would be another story. */
const crashesMax = 3
/** For so long something is waited for that has not come before and that nothing seems to bring. */
const idleMs = 20
/** So often a step that pauses its run is tried: one that always fails would be for ever. */
const triesMax = 20
/**
 * So often time passes while something else could happen; from then on it waits for all else. Who looks again and again, with a sleep
 * between, whether another has done something, would be let look for ever.
 */
export const hurriesMax = 40

interface Body {
  readonly agent: string
  readonly lane: string
  readonly branch: string
  readonly run: string
  /** How much of what it has to say is held. */
  held: number
  /** The keys of its steps that have begun and come to nothing yet. */
  readonly steps: Set<string>
  /** It was waited for in vain, and is not waited for again. */
  lost: boolean
  stopped: boolean
}

/** Plays one schedule: a fresh engine over a fresh store, with a clock, a network of people and a fate that the chooser decides. */
export async function play(setting: Setting, choose: Chooser): Promise<Played> {
  const stage = new Stage(setting, choose)
  return stage.play()
}

/**
 * One run under control.
 *
 * 1. Whatever the engine is about to do is put into the scheduler's queue, and done when that lets it go.
 * 2. A body that has been let go either holds something in the queue, sleeps, waits for a child, has ended, or is *away*: it waits for
 *    what nobody here controls.
 */
class Stage {
  readonly #setting: Setting
  readonly #scheduler: Scheduler
  readonly #store: Store = memoryStore()
  readonly #time: VirtualTime
  /** The id of the run that is played. */
  readonly #own: string
  readonly #effects = new Effects()
  /** What this process waited for before it began. */
  readonly #active = activeNow()
  #resources: readonly Provided[] = []
  readonly #bodies = new Map<string, Body>()
  readonly #states = new Map<string, State>()
  /** How many runs below each are not over: those of its steps, theirs, and those that undo them. */
  readonly #below = new Map<string, number>()
  readonly #journal: Event[] = []
  /** By what the id of each run adds to that of the run. */
  readonly #journals = new Map([['', this.#journal]])
  readonly #prompts: Prompt[] = []
  readonly #taken: Taken[] = []
  readonly #broken: Broken[] = []
  readonly #away = new Set<string>()
  #internals: Internals | null = null
  #definition: Definition | null = null
  #process: Process | null = null
  #fault: AtCommit | null = null
  #reviving: Promise<void> | null = null
  #crashes = 0
  #left: string | null = null
  #asks: string | null = null
  #steered = 0
  /** Asks again for what somebody has asked of the run and had no answer to yet. */
  readonly #unanswered = new Set<() => void>()
  /** The attempts that have paused their run, for somebody to look at. */
  readonly #seen = new Set<string>()
  #hopeless: string | null = null
  /** A step has paused its run because time was let pass: from then on it passes when nothing else can happen, or there would be no end of it. */
  #isPatient = false
  /** How often time has passed while something else could happen. */
  #hurries = 0
  #error: unknown = null
  #starting = true
  #unacknowledged = 0

  constructor(setting: Setting, choose: Chooser) {
    this.#setting = setting
    this.#own = setting.run
    this.#time = new VirtualTime(setting.recorded?.of.at ?? startsAt)
    const options = { timeouts: setting.faults.includes('timeout'), stepsMax: setting.stepsMax }
    this.#scheduler = new Scheduler(
      {
        standing: () => this.#standing(),
        release: (option, fault) => this.#release(option, fault),
        clock: () => this.#clock(),
        situation: () => ({ state: this.#state, at: this.#time.now, code: this.#internals?.code ?? null }),
        stuck: () => this.#stuck(),
      },
      choose,
      options,
    )
  }

  async play(): Promise<Played> {
    this.#resources = await this.#setting.resources()
    const definition = await this.#setting.definition()
    this.#definition = definition
    this.#internals = internalsOf(definition)
    this.#process = await Process.begin(this.#port(), definition)
    startRun(this.#process.engine, definition, this.#given()).then(
      () => {
        this.#starting = false
        this.#steer()
      },
      (error: unknown) => {
        this.#error = error
      },
    )
    await this.#scheduler.play()
    if (this.#error !== null) throw this.#error
    // What was committed right before a crash was told to nobody: the store has it.
    const engine = this.#process.engine
    const journals = this.#crashes === 0 ? this.#journals : await journalsOf(engine, this.#own, await engine.journal(this.#own))
    this.#process.leave()
    return this.#played(definition, journals)
  }

  /** How the run is started: as the recorded one was, if one is played. */
  #given(): Starting {
    const { input, recorded } = this.#setting
    const { tags, session, conversation } = recorded?.of ?? {}
    return { id: this.#own, input, tags, session, ...(conversation !== undefined && { conversation }), limits: {} }
  }

  #nonce(run: string): string {
    const suffix = run.slice(this.#own.length)
    return this.#setting.recorded?.nonce(suffix) ?? `${this.#setting.seed}${suffix === '' ? '' : run}`
  }

  #played(definition: Definition, journals: Journals): Played {
    if (this.#scheduler.end === 'endless')
      this.#broken.push({ invariant: 'endless', explain: `the run is not over after ${this.#setting.stepsMax} steps` })
    for (const { agent, branch, late, call, resource } of this.#effects.log)
      if (late) this.#ghost(`${agent} on ${branch} called ${resource}.${call.slice(0, 200)} after it had been told to stop`)
    return {
      schedule: this.#scheduler.deviations,
      taken: this.#taken,
      journal: journals.get('') ?? [],
      journals,
      state: this.#state,
      definition,
      effects: this.#effects.log,
      prompts: this.#prompts,
      broken: this.#broken,
      away: [...this.#away],
      givenUp: this.#scheduler.end === 'given-up',
      isHurried: this.#hurries >= hurriesMax,
      crashes: this.#crashes,
      left: this.#left,
      asks: this.#asks,
    }
  }

  get #state(): State {
    return this.#states.get(this.#own) ?? newState
  }

  // ── the processes ──────────────────────────────────────────────────────────────────────────────────────

  #port(): ProcessPort {
    const seam: Seam = {
      hold: (what, go) => this.#hold(what, go),
      later: (task) => this.#scheduler.later(task),
      nonce: (run) => this.#nonce(run),
      lend: (name, value, to) => this.#lend(name, value, to),
      committed: (run, events, state) => this.#committed(run, events, state),
      activity: (run, of) => this.#known(run, of),
    }
    return {
      setting: this.#setting,
      store: this.#store,
      time: this.#time,
      seam,
      resources: this.#resources,
      models: (ref) => this.#model(ref),
      atCommit: () => {
        const fault = this.#fault
        this.#fault = null
        return fault
      },
      applied: (acknowledge) => this.#applied(acknowledge),
      died: () => this.#died(),
      onLog: (entry) => this.#log(entry),
    }
  }

  #died(): void {
    this.#crashes++
    this.#scheduler.forgetTasks()
    this.#scheduler.drop(({ kind }) => kind !== 'person' && kind !== 'steering')
    this.#time.clear()
    this.#bodies.clear()
    this.#fault = null
    this.#unacknowledged = 0
    this.#reviving = this.#revive().catch((error: unknown) => {
      this.#error = error
    })
  }

  async #revive(): Promise<void> {
    const definition = await this.#setting.definition()
    this.#process = await Process.begin(this.#port(), definition)
    // It may have ended with the last thing that was recorded: then nobody claims it any more.
    const entry = await this.#process.engine.entry(this.#own)
    if (entry !== null) this.#standsAt(this.#own, entry.state)
    // Nor is anybody told of a step that paused its run with the last thing that was recorded.
    for (const [run, state] of this.#states)
      if (!isOver(state)) for (const event of await this.#process.engine.journal(run)) this.#failed(run, event)
    this.#reviving = null
    // Whoever was left without an answer asks again, before anybody asks for anything else.
    const asked = [...this.#unanswered]
    this.#unanswered.clear()
    for (const again of asked) again()
  }

  #log({ level, message }: LogEntry): void {
    if (level === 'error' && message.startsWith('the run is stopped')) this.#broken.push({ invariant: 'invariant', explain: message })
  }

  /** Nobody is asked but those that were given: by default every model is simulated, whatever the agents name. */
  #model(ref: Parameters<ModelFactory>[0]): LanguageModel {
    const model = this.#setting.models?.(ref) ?? simModel(ref.agent)
    return watchedModel(model, this.#own, ref.agent, (prompt) => this.#prompts.push(prompt))
  }

  // ── what waits ─────────────────────────────────────────────────────────────────────────────────────────

  #hold(what: Held, go: (instead?: Command) => void): void {
    const happening = heldOf(what, this.#own, this.#scheduler.step, go, (agent) => this.#isModel(agent))
    if (what.type === 'command') this.#note(what.run, what.command)
    else this.#bodies.delete(startedBy(happening))
    this.#scheduler.add(happening)
  }

  /**
   * A model with no code of the user's beside it: between its calls, nothing runs but the engine. Schemas are taken to look at nothing but the
   * value: nearly every model has one, and orders in which only they change places would be most of all.
   */
  #isModel(agent: string): boolean {
    const code = this.#internals?.kind === 'topology' ? this.#internals.agents[agent] : undefined
    if (code === undefined || code.act !== null || code.retryIf !== undefined) return false
    const { instructions, tools, guardrails } = code.options
    return typeof instructions !== 'function' && tools === undefined && guardrails === undefined
  }

  /** What a body has to say shows how far it is. */
  #note(run: string, command: Command): void {
    const key = bodyOf(run, command)
    if (key === null) return
    const body = this.#bodies.get(key)
    // One whose words are held here can't stop before they are let go: that its grace was over says nothing of it.
    const isFenced = command.type === 'turn.settle' && command.how === 'fenced'
    const isHeld = (body?.held ?? 0) > 0 || this.#unacknowledged > 0
    if (isFenced && !isHeld) this.#ghost(`${command.agent} on ${command.branch} went on after it had been told to stop, and was fenced off`)
    // A turn that was aborted while its start was held does not start.
    if (command.type === 'turn.settle' && body === undefined)
      this.#scheduler.drop(({ kind, id }) => kind === 'start' && id === `start ${key}`)
    if (body === undefined) return
    if (command.type === 'activity.complete' || command.type === 'activity.fail') body.steps.delete(command.key)
    if (endsBody(command)) this.#bodies.delete(key)
    else body.held++
  }

  #ghost(explain: string): void {
    if (!this.#broken.some((known) => known.explain === explain)) this.#broken.push({ invariant: 'ghost', explain })
  }

  #lend(name: string, value: unknown, to: Borrower): unknown {
    const key = `${to.run} ${to.id}`
    return this.#effects.lend(name, value, to, () => {
      const body = this.#bodies.get(key)
      return body === undefined || body.stopped
    })
  }

  #standsAt(run: string, state: State): void {
    const before = this.#states.get(run)
    this.#states.set(run, state)
    const change = Number(!isOver(state)) - Number(before !== undefined && !isOver(before))
    if (change === 0) return
    // Counted, because a list may be mapped to a thousand of them.
    for (let end = run.lastIndexOf(':'); end > 0; end = run.lastIndexOf(':', end - 1)) {
      const above = run.slice(0, end)
      this.#below.set(above, (this.#below.get(above) ?? 0) + change)
    }
  }

  #committed(run: string, events: readonly Event[], state: State): void {
    this.#standsAt(run, state)
    // What has not begun is taken back while its run is paused, and held again when it is resumed.
    if (state.pausedAt !== null) this.#scheduler.drop((held) => held.kind === 'start' && held.run === run)
    const suffix = run.slice(this.#own.length)
    const journal = this.#journals.get(suffix) ?? []
    this.#journals.set(suffix, journal)
    for (const event of events) {
      journal.push(event)
      this.#compared(suffix, event)
      if (event.type === 'ask.opened') this.#asked(run, state, event.ask.id)
      if (event.type === 'run.claimed') for (const ask of state.asks.keys()) this.#asked(run, state, ask)
      this.#failed(run, event)
    }
    for (const attempt of state.aborting.values()) {
      const body = this.#bodies.get(keyOf(run, attempt))
      if (body !== undefined) body.stopped = true
    }
  }

  /** A step begins. What the record has of it; without one the path ends here, unless it may go on by itself. */
  #known(run: string, of: ActivitySpeaker): Promise<ActivityOutcome> | null {
    this.#bodies.get(keyOf(run, of))?.steps.add(of.key)
    const { recorded } = this.#setting
    if (recorded === null) return null
    const known = recorded.activity(run.slice(this.#own.length), of)
    if (known !== null) return Promise.resolve(known)
    if (recorded.beyond === 'perform') return null
    this.#left ??= `${of.agent} on ${of.branch} calls '${of.name}', which was not recorded`
    return new Promise(() => {})
  }

  /** A turn that is shown something else than in the record, for the same choices, is a finding; for others it is another story. */
  #compared(run: string, event: Event): void {
    const { recorded } = this.#setting
    if (recorded === null || event.type !== 'turn.started' || !recorded.differs(run, event)) return
    const what = `${event.agent} on ${within(run)}${event.branch} is shown something else than in the recorded run`
    if (recorded.chose(this.#journals)) {
      if (recorded.beyond === 'stop') this.#left ??= `after another choice, ${what}`
      return
    }
    this.#broken.push({ invariant: 'prompt', explain: `${what}: ${JSON.stringify(event.message).slice(0, 300)}` })
    if (recorded.beyond === 'stop') this.#left ??= what
  }

  #asked(run: string, state: State, askId: string): void {
    const { recorded } = this.#setting
    const answers = recorded === null ? this.#setting.answers : () => recorded.answer(run.slice(this.#own.length), askId)
    const open = state.asks.get(askId)
    if (answers === undefined || open === undefined) return
    const id = `answer ${run} ${askId}`
    if (this.#scheduler.has(id)) return
    const ask = askView(state, open)
    let value: unknown
    try {
      value = answers(ask)
    } catch (error) {
      // It is called within a commit, which must not be torn: whoever asked for the check is told.
      this.#error ??= error
      return
    }
    if (value === undefined) return
    this.#scheduler.add({
      ...outside(
        'person',
        id,
        `a person answers ${ask.agent} on ${within(run.slice(this.#own.length))}${ask.branch}`,
        this.#scheduler.step,
      ),
      run,
      command: { type: 'ask.answer', askId, value },
      go: () => this.#order(run, (handle) => handle.answer(askId, value)),
    })
  }

  /** Who is to look at a step that has paused its run does so, sooner or later, and resumes it. */
  #failed(run: string, event: Event): void {
    if (event.type !== 'turn.failed' || event.pauses !== true) return
    const id = `resume ${keyOf(run, event)}`
    if (this.#seen.has(id)) return
    this.#seen.add(id)
    if (event.timedOut === true) this.#isPatient = true
    const who = `${event.agent} on ${within(run.slice(this.#own.length))}${event.branch}`
    if (event.attempt >= triesMax) {
      this.#hopeless = `${who} fails and pauses it however often it is tried again`
      return
    }
    this.#scheduler.add({
      ...outside('steering', id, `somebody resumes after ${who} has failed`, this.#scheduler.step),
      go: () => this.#ask('resume', run),
    })
  }

  #steer(): void {
    const next = this.#setting.steering[this.#steered]
    if (next === undefined) return
    this.#steered++
    this.#scheduler.add({
      ...outside('steering', `${next} ${this.#steered}`, `somebody asks to ${next}`, this.#scheduler.step),
      go: () => {
        this.#ask(next)
        this.#steer()
      },
    })
  }

  #ask(what: Steering, run = this.#own): void {
    const again = (): void => this.#ask(what, run)
    this.#order(run, async (handle) => {
      this.#unanswered.add(again)
      await handle[what]().finally(() => this.#unanswered.delete(again))
    })
  }

  /** What people ask for is asked of whichever process is alive. */
  #order(run: string, order: (handle: ReturnType<typeof runHandle>) => Promise<void>): void {
    const engine = this.#process?.engine
    const definition = this.#definition
    if (engine === undefined || definition === null) return
    order(runHandle(engine, run, definition.name, {})).catch((error: unknown) => {
      // Whoever is told that it may not have been recorded asks again.
      if (TuttiError.is(error, 'STORE_UNAVAILABLE')) return this.#order(run, order)
      const late = ['RUN_ENDED', 'ASK_ALREADY_ANSWERED', 'ASK_NOT_FOUND', 'RUN_NOT_PAUSED']
      if (!(TuttiError.is(error) && late.includes(error.code))) this.#error = error
    })
  }

  #applied(acknowledge: () => void): void {
    if (this.#starting) return acknowledge()
    this.#unacknowledged++
    this.#scheduler.add({
      ...outside('append', `append ${this.#journal.length}`, 'the store acknowledges', this.#scheduler.step),
      go: () => {
        this.#unacknowledged--
        acknowledge()
      },
    })
  }

  #clock(): Happening | null {
    const { due } = this.#time
    const isPatient = this.#isPatient || this.#hurries >= hurriesMax
    if (due === null || (isPatient && this.#scheduler.isHolding)) return null
    return {
      ...outside('clock', `clock ${due}`, `time passes (${due - this.#time.now} ms)`, 0),
      runsCode: true,
      go: () => this.#time.advance(),
    }
  }

  // ── letting go ─────────────────────────────────────────────────────────────────────────────────────────

  #release(option: Option, number: number | null): void {
    const wanted = number === null ? null : faultOf(number, this.#setting.faults)
    const fault = wanted?.kind.startsWith('crash') && this.#crashes >= crashesMax ? null : wanted
    this.#taken.push({ option, journal: this.#journal.length, fault: fault === null ? null : number, at: this.#time.now })
    if (fault?.kind === 'crash-before' || fault?.kind === 'crash-after' || fault?.kind === 'lost-ack') this.#fault = fault.kind
    if (option[0]?.kind === 'clock' && this.#scheduler.isHolding) this.#hurries++
    for (const happening of option) {
      this.#begun(happening)
      const instead = fault?.kind === 'agent' ? failing(happening, fault) : undefined
      happening.go(instead)
      if (fault?.kind === 'duplicate' && happening.kind !== 'start') happening.go()
    }
  }

  #begun(happening: Happening): void {
    const { kind, run, command, agent, lane } = happening
    if (kind === 'start') {
      const branch = lane.slice(run.length + 1)
      this.#bodies.set(startedBy(happening), {
        agent: agent ?? '',
        lane,
        branch,
        run,
        held: 0,
        steps: new Set(),
        lost: false,
        stopped: false,
      })
    } else if (command !== null) {
      const body = this.#bodies.get(bodyOf(run, command) ?? '')
      if (body !== undefined && !endsBody(command)) body.held--
    }
  }

  // ── where it stands ────────────────────────────────────────────────────────────────────────────────────

  #standing(): 'rest' | 'away' | 'over' {
    if (this.#error !== null || this.#left !== null) return 'over'
    if (this.#starting || this.#reviving !== null) return 'away'
    // Nothing was committed where the process was to die: it dies here.
    if (this.#fault !== null && this.#fault !== 'lost-ack') {
      this.#process?.kill()
      return 'away'
    }
    if (this.#broken.some(({ invariant }) => invariant === 'invariant')) return 'over'
    for (const [key, body] of this.#bodies) {
      if (!this.#isAway(body)) continue
      if (!this.#isExecuted(key, body)) {
        this.#bodies.delete(key)
        continue
      }
      this.#away.add(body.agent)
      this.#scheduler.awaits()
      if (this.#scheduler.waitedMs < this.#patienceFor(body)) return 'away'
      body.lost = true
      this.#setting.vain.add(placeOf(body))
    }
    return isOver(this.#state) ? 'over' : 'rest'
  }

  /** What was once waited for in vain will hardly come the next time, if nothing is under way that could bring it. That alone can't be seen of everything. */
  #patienceFor(body: Body): number {
    const { patienceMs, vain } = this.#setting
    const isInVain = this.#scheduler.waitedMs >= idleMs && vain.has(placeOf(body)) && !moreThan(this.#active, activeNow())
    return isInVain ? idleMs : patienceMs
  }

  /** A deadline is no sleep: who has one is at work, and time does not pass before that is waited for. */
  #isAway(body: Body): boolean {
    if (body.lost || this.#unacknowledged > 0 || (body.held > 0 && body.steps.size === 0)) return false
    // A step sleeps where it waits to be tried again; one that does not is at work, whatever sleeps or is held beside it.
    const asleep = this.#time.asleepIn(body.lane)
    if (body.steps.size > asleep) return true
    if (body.held > 0 || asleep > 0) return false
    const state = this.#states.get(body.run)
    // A step that runs a definition, and an undo of one, wait for a run of their own: an undo is one of those below it.
    const waiter = waiterOf(body.run)
    const itself = waiter !== body.run && state !== undefined && !isOver(state) ? 1 : 0
    if ((this.#below.get(waiter) ?? 0) > itself) return false
    for (const record of state?.work.get(body.branch)?.records.values() ?? []) if (record.status === 'sleeping') return false
    return true
  }

  /** Whether the engine executes it: a turn that was let go is held back if its agent may not act any more, and is let go again. */
  #isExecuted(key: string, { run }: Body): boolean {
    const id = key.slice(run.length + 1)
    const entry = this.#process?.engine.entry(run)
    return entry === undefined || entry === null || isLater(entry) || id.startsWith('undo ') || entry.executions.has(id)
  }

  #stuck(): void {
    if (isOver(this.#state)) return
    // It may be a child run that waits for somebody.
    const runs = [...this.#states].filter(([, state]) => !isOver(state))
    const [asked] = runs.flatMap(([, { asks }]) => [...asks.values()])
    if (asked !== undefined && this.#setting.recorded !== null) {
      this.#asks = asked.agent
      this.#left ??= `${asked.agent} asks, and nobody had answered`
      return
    }
    if (asked !== undefined) {
      this.#error = new TuttiError('INVALID_INPUT', `${asked.agent} asks a person, and there is nobody to answer`, {
        hint: 'give explore({ answers: (ask) => … }), or to tutti check: export const check = { answers: (ask) => … }',
      })
      return
    }
    const waiting = [...this.#bodies.values()].map(({ agent, branch }) => `${agent} on ${branch}`)
    const paused = runs.find(([, { pausedAt }]) => pausedAt !== null)
    const still =
      paused === undefined
        ? `nothing can happen any more; unfinished: ${waiting.join(', ') || 'nobody'}`
        : `${paused[0] === this.#own ? 'it' : `its child run ${within(paused[0].slice(this.#own.length)).trim()}`} is paused, and nobody resumes it`
    const why = this.#hopeless ?? still
    this.#broken.push({ invariant: 'deadlock', explain: `the run is not over: ${why}` })
  }
}

/** Where somebody waits: in which of its steps, if in one. */
const placeOf = ({ agent, steps }: Body): string => [agent, ...steps].join(' ')

/** What keeps this process busy, by kind and number: timers, sockets, files. */
function activeNow(): ReadonlyMap<string, number> {
  const counts = new Map<string, number>()
  for (const kind of process.getActiveResourcesInfo()) if (kind !== 'Immediate') counts.set(kind, (counts.get(kind) ?? 0) + 1)
  return counts
}

function moreThan(before: ReadonlyMap<string, number>, now: ReadonlyMap<string, number>): boolean {
  return [...now].some(([kind, count]) => count > (before.get(kind) ?? 0))
}

/** Whose child runs a run waits for: one that undoes a run waits for those that undo its children. */
const waiterOf = (run: string): string => (run.endsWith(':undo') ? run.slice(0, -':undo'.length) : run)

const keyOf = (run: string, of: { readonly branch: string; readonly turn: number; readonly attempt: number }): string =>
  `${run} ${attemptId(of.branch, of.turn, of.attempt)}`

/** The body that begins with this. */
const startedBy = ({ id }: Happening): string => id.slice('start '.length)

/** The body that says this, if one does. */
function bodyOf(run: string, command: Command): string | null {
  if ('branch' in command) return keyOf(run, command)
  return 'of' in command ? `${run} undo ${command.of}/${command.attempt}` : null
}

/** Whether a body that says this has come to its end. One that timed out says so and runs on. */
function endsBody(command: Command): boolean {
  switch (command.type) {
    case 'turn.complete':
    case 'turn.reject':
    case 'turn.settle':
    case 'step.complete':
    case 'step.skip':
    case 'step.each':
    case 'undo.complete':
    case 'undo.fail':
      return true
    case 'turn.fail':
      return command.timedOut !== true
    default:
      return false
  }
}

const outside = (kind: Happening['kind'], id: string, label: string, born: number): Omit<Happening, 'go'> => ({
  id,
  lane: kind,
  kind,
  agent: null,
  label,
  born,
  runsCode: false,
  run: '',
  command: null,
})

/** The agent's turn throws instead of coming to what it came to. */
function failing({ kind, command }: Happening, fault: { readonly agent: string; readonly error: string }): Command | undefined {
  if (kind !== 'end' || command === null || !('branch' in command) || command.agent !== fault.agent) return undefined
  const { branch, agent, turn, attempt } = command
  const error = { code: 'AGENT_FAILED', message: fault.error, retryable: true, at: {} } as const
  return { type: 'turn.fail', branch, agent, turn, attempt, error, retryable: true }
}
