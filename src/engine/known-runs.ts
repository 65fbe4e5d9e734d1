import type { State } from '../kernel/state.js'
import { isOver } from '../kernel/state.js'
import { areLarge } from './codec.js'
import type { RunEntry } from './run-entry.js'

/** How many runs that nobody here owns are kept at hand at least, and how many more come before it is looked which of them need not be. */
const keptMin = 512
const roomFor = 512

/** How many runs stay at hand that are over and have something large in them: of many, that would be all of the memory. */
const largeMax = 8

/** Whether nothing more is known here of a run than the store says: it is over. */
export const isForgettable = ({ state, queue }: RunEntry): boolean => isOver(state) && queue.length === 0

/** The runs that a process knows of, by id: its own, and those that somebody asks about. */
export class KnownRuns {
  readonly #byId = new Map<string, RunEntry>()
  /** How many were added since it was last looked who need not be. */
  #addedSince = 0
  /** Those that are over and large, the oldest first. */
  readonly #large = new Set<RunEntry>()

  get(id: string): RunEntry | undefined {
    return this.#byId.get(id)
  }

  values(): Iterable<RunEntry> {
    return this.#byId.values()
  }

  /** What is only looked at is not kept for ever. Looked for once in a while: all of them may be this process's own. */
  add(entry: RunEntry): void {
    this.#byId.set(entry.id, entry)
    if (this.#byId.size <= keptMin + roomFor || ++this.#addedSince < this.#byId.size / 4) return
    this.#addedSince = 0
    for (const [id, other] of this.#byId) {
      if (this.#byId.size <= keptMin) return
      if (other !== entry && other.owner === null && other.queue.length === 0 && other.unsure === null) this.#byId.delete(id)
    }
  }

  drop(entry: RunEntry): void {
    this.#large.delete(entry)
    if (this.#byId.get(entry.id) === entry) this.#byId.delete(entry.id)
  }

  /** A run is over. Whoever asks for it next finds it at hand; it goes when there is no room. */
  over(entry: RunEntry): void {
    if (!isLarge(entry.state)) return
    this.#large.add(entry)
    const [oldest] = this.#large
    if (this.#large.size <= largeMax || oldest === undefined) return
    this.#large.delete(oldest)
    if (isForgettable(oldest)) this.drop(oldest)
  }

  /** Forgets runs that are over: the store may keep them no longer. */
  forgetOver(): void {
    this.#large.clear()
    for (const [id, entry] of this.#byId) if (isForgettable(entry)) this.#byId.delete(id)
  }
}

/** Whether what is still known of a run that is over takes much room. */
function isLarge({ run, outcome, undo }: State): boolean {
  const values: unknown[] = run === null ? [outcome] : [outcome, run.input, run.tags, run.conversation]
  if (undo.nodes.size > 0) for (const { entry } of undo.nodes.values()) values.push(entry)
  return areLarge(values)
}
