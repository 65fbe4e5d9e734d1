import { TuttiError } from '../define/tutti-error.js'
import { engineOf } from '../engine/engine-of.js'
import type { Run, Tutti } from '../engine/tutti.js'
import type { Store } from '../engine/store.js'
import type { Ask } from '../inspect/ask.js'
import { attemptId } from '../kernel/ids.js'
import { attemptsOf, isOver } from '../kernel/state.js'
import { open } from '../open.js'
import { exitCode, type ExitCode } from './exit-code.js'
import type { Loaded } from './load-file.js'
import { type Progress, progressOn } from './progress.js'
import { RunTree, type Stop } from './run-tree.js'
import { escaped } from './shown.js'
import type { Terminal } from './terminal.js'
import { WatchedStore } from './watched-store.js'

/**
 * When a person has interrupted: how long what is in flight may take to come to its end, and then how long bodies that do not listen to
 * their signal are waited for; a run survives that they are cut off.
 */
const letGoMs = 1_000

/** How often is looked whether a run that is paused has come to rest. */
const lookMs = 200

/** What became of a run that was executed here, or followed. */
export type Driven = Stop | { readonly kind: 'interrupted' }

/** How far a run was read, and who is told. */
export interface Following {
  readonly tree: RunTree
  readonly progress: Progress
}

/** An engine on a store, for one command. */
export class Session implements AsyncDisposable {
  readonly tutti: Tutti
  readonly terminal: Terminal
  readonly #watched: WatchedStore
  #interrupt: Interrupt | null = null

  readonly #close: () => Promise<void>

  private constructor(terminal: Terminal, watched: WatchedStore, tutti: Tutti, close: () => Promise<void>) {
    this.#close = close
    this.terminal = terminal
    this.#watched = watched
    this.tutti = tutti
  }

  /** Opens an engine that executes what was loaded; with nothing loaded it can only look and steer. `close`: what ends with it. */
  static async open(
    terminal: Terminal,
    store: Store,
    loaded: Loaded | null,
    close: () => Promise<void> = async () => {},
  ): Promise<Session> {
    const watched = new WatchedStore(store)
    const tutti = await open({
      store: watched.store,
      ...(loaded !== null && { definitions: [loaded.definition], ...loaded.given }),
      onLog: ({ level, message }) => {
        if (level === 'warn' || level === 'error') terminal.note(escaped(message, level === 'error' ? 'bad' : 'retry'))
      },
    })
    return new Session(terminal, watched, tutti, close)
  }

  get store(): Store {
    return this.#watched.store
  }

  /**
   * From now on the run is gone on with if nobody has it. Said once what was asked for is recorded: what is begun before would be cut off if
   * that is refused, and needless if it ends the run.
   */
  about(run: Run): void {
    this.#watched.about(run.id)
    engineOf(this.tutti).lookForRuns()
  }

  /**
   * Goes on with a run until it stops, and tells how it goes. Ctrl-C pauses it, durably, and what is in flight is decided if it ends soon;
   * another one kills. `killed` says what is left behind if that comes before this returns.
   */
  async drive(run: Run, { tree, progress }: Following, killed: () => void = () => {}): Promise<Driven> {
    // Kept to the end of the process: the second one must kill also while what the first has paused is let go.
    const interrupt = (this.#interrupt ??= new Interrupt(this.terminal, () => this.#watched.moved()))
    let pausedHere: number | null = null
    try {
      for (;;) {
        const { version } = this.#watched
        progress.take(await tree.catchUp(), tree)
        const stop = tree.stop()
        if (stop !== null) return stop.kind === 'paused' && pausedHere !== null ? { kind: 'interrupted' } : stop
        if (interrupt.came && pausedHere === null && (await pausedBy(run))) {
          pausedHere = performance.now()
          interrupt.last = () => (progress.end(), killed())
        }
        if (pausedHere !== null && performance.now() - pausedHere >= letGoMs) return { kind: 'interrupted' }
        if ((await run.summary()).waitsFor.includes('definition')) throw await this.#cannotContinue(run)
        // That something is not in flight any more is written nowhere.
        const again = tree.state().pausedAt === null ? undefined : setTimeout(() => this.#watched.moved(), lookMs)
        await this.#watched.movedSince(version)
        clearTimeout(again)
      }
    } finally {
      progress.end()
      interrupt.last = () => {}
    }
  }

  /** Why was said in a note, when the run was given back. */
  async #cannotContinue(run: Run): Promise<TuttiError> {
    await this.letGo()
    return new TuttiError('DEFINITION_NOT_FOUND', `this version of ${run.definition} can't go on with the run ${run.id}`, {
      hint: 'go on with the version that it was started with, or cancel it: tutti cancel',
    })
  }

  /** A run to follow, by one who knows what of it is executed here. */
  treeOf(id: string): RunTree {
    return new RunTree(this.store, id, async (run) => {
      const entry = await engineOf(this.tutti).current(run)
      if (entry === null || entry.owner === null) return null
      // What was said and is not decided yet may be of any of them, and of many that are owed each has its time.
      if (entry.queue.length > 0 || entry.owed > 0)
        return new Set(attemptsOf(entry.state).map(({ branch, turn, attempt }) => attemptId(branch, turn, attempt)))
      return new Set([...entry.executions.values()].filter(({ isAsleep }) => !isAsleep).map(({ id: of }) => of))
    })
  }

  /** Begins to follow a run: what has happened so far is known, and told to nobody. */
  async follow(id: string, progress: Progress = progressOn(this.terminal)): Promise<Following> {
    const tree = this.treeOf(id)
    progress.past(await tree.catchUp())
    return { tree, progress }
  }

  /** Where a run that was cancelled comes to: its end, if anybody has the code to let go of what was in flight; null if nobody has. */
  async settled(run: Run): Promise<Stop | null> {
    const tree = new RunTree(this.#watched.store, run.id)
    for (;;) {
      const { version } = this.#watched
      await tree.catchUp()
      const stop = tree.stop()
      if (stop !== null || (await run.summary()).waitsFor.includes('definition')) return stop
      await this.#watched.movedSince(version)
    }
  }

  /** Waits until a question is not open any more, and says why not; null if whoever waits has enough before that. */
  async closed(ask: Ask, enough: AbortSignal): Promise<'answered' | 'ended' | null> {
    const tree = new RunTree(this.#watched.store, ask.runId)
    enough.addEventListener('abort', () => this.#watched.moved(), { once: true })
    while (!enough.aborted) {
      const { version } = this.#watched
      await tree.catchUp()
      const state = tree.state()
      if (isOver(state)) return 'ended'
      if (!state.asks.has(ask.id)) return 'answered'
      await this.#watched.movedSince(version)
    }
    return null
  }

  /** Lets go of what a person has interrupted without waiting for long. */
  async letGo(): Promise<void> {
    let timer: NodeJS.Timeout | undefined
    const enough = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, letGoMs)
    })
    await Promise.race([this[Symbol.asyncDispose](), enough])
    clearTimeout(timer)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.tutti.close()
    await this.#watched.close()
    await this.#close()
  }
}

/** Whether the run is paused now; not if it has ended meanwhile. */
export async function pausedBy(run: Run): Promise<boolean> {
  try {
    await run.pause({ by: 'Ctrl-C' })
    return true
  } catch {
    return false
  }
}

/** Waits for Ctrl-C. The second one ends the process at once. */
class Interrupt {
  came = false
  /** What is said before the process ends. */
  last = (): void => {}

  constructor(terminal: Terminal, tell: () => void) {
    process.on('SIGINT', () => {
      if (this.came) {
        this.last()
        terminal.leave(exitCode.interrupted)
      }
      this.came = true
      tell()
    })
  }
}

/** How a command ends after a run has stopped so. */
export function exitOf(driven: Driven): ExitCode {
  switch (driven.kind) {
    case 'ended':
      return driven.outcome.status === 'succeeded' ? exitCode.done : exitCode.failed
    case 'paused':
    case 'person':
    case 'agent':
      return exitCode.waits
    case 'interrupted':
      return exitCode.interrupted
  }
}
