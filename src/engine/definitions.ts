import type { Definition, Internals } from '../define/definition.js'
import { internalsOf } from '../define/definition.js'
import type { Executable } from './store.js'

/**
 * The definitions of a process: those that it was opened with, those that runs were started with, and those that steps of them run.
 *
 * 1. What a name means does not change: it is what the process was opened with, or else what came first.
 * 2. A run that was started with another object of that name has it to itself until it is over.
 */
export class Definitions {
  readonly #named = new Map<string, Internals>()
  readonly #own = new Map<string, Internals>()
  /** How many runs have an object to themselves. */
  readonly #uses = new Map<Internals, number>()
  readonly #seen = new WeakSet<Internals>()
  /** Those whose agents the store has not been told of. */
  readonly #news = new Set<Internals>()
  /** All of them, each once; null: not known yet. */
  #all: readonly Internals[] | null = null

  constructor(given: readonly Definition[]) {
    for (const definition of given) this.#named.set(definition.name, internalsOf(definition))
    for (const definition of given) this.add(internalsOf(definition))
  }

  /** Makes a definition known, and those that its steps run; whether it was not. */
  add(internals: Internals): boolean {
    if (this.#seen.has(internals)) return false
    this.#all = null
    for (const each of withChildren([internals])) {
      this.#seen.add(each)
      this.#news.add(each)
      if (!this.#named.has(each.shape.name)) this.#named.set(each.shape.name, each)
    }
    return true
  }

  named(name: string): Internals | null {
    return this.#named.get(name) ?? null
  }

  all(): readonly Internals[] {
    this.#all ??= [...withChildren([...this.#named.values(), ...this.#uses.keys()])]
    return this.#all
  }

  executables(): Executable[] {
    return this.all().map(({ shape, continues }) => ({ name: shape.name, versions: [shape.version, ...continues] }))
  }

  // ── of runs ────────────────────────────────────────────────────────────────────────────────────────────

  /** A run is started with this object; whether it has it to itself. */
  keep(run: string, internals: Internals): boolean {
    if (this.#named.get(internals.shape.name) === internals || this.#own.has(run)) return false
    this.#own.set(run, internals)
    const uses = this.#uses.get(internals) ?? 0
    this.#uses.set(internals, uses + 1)
    if (uses === 0) this.#all = null
    return true
  }

  /** A run is over; whether its definition is known here no longer. */
  forget(run: string): boolean {
    const internals = this.#own.get(run)
    if (internals === undefined) return false
    this.#own.delete(run)
    const uses = (this.#uses.get(internals) ?? 1) - 1
    if (uses > 0) this.#uses.set(internals, uses)
    else {
      this.#uses.delete(internals)
      this.#all = null
    }
    return uses === 0
  }

  /** The object that a run was started with here; of a child, the one of its step; else one of its name: the first of them that goes on with it. */
  of(run: { readonly id: string; readonly name: string; readonly version: string }, ofStep: Internals | null): Internals | null {
    const fits = (one: Internals | null | undefined): one is Internals => one?.shape.name === run.name && goesOnWith(one, run.version)
    return [this.#own.get(run.id), ofStep, this.#named.get(run.name)].find(fits) ?? this.all().find(fits) ?? null
  }

  // ── their agents ───────────────────────────────────────────────────────────────────────────────────────

  /** Those whose agents the store has to be told of. */
  get news(): ReadonlySet<Internals> {
    return this.#news
  }

  announced(internals: Internals): void {
    this.#news.delete(internals)
  }
}

const goesOnWith = ({ shape, continues }: Internals, version: string): boolean => shape.version === version || continues.includes(version)

/** Definitions with those that their steps run, down to the last, each once. */
function withChildren(definitions: readonly Internals[]): Set<Internals> {
  const all = new Set(definitions)
  // What is added to a set while it is walked is walked too.
  for (const internals of all)
    if (internals.kind === 'graph')
      for (const step of Object.values(internals.steps)) if (step.kind === 'child') all.add(internalsOf(step.child))
  return all
}
