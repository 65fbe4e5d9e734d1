/**
 * A naive reference of undoing (KERNEL §13), for topologies and graphs alike: what came because of what, what can be undone, which plan
 * has taken it, and what may be undone now. Like the rest of the reference it knows nothing of the kernel and looks at everything again.
 *
 * A *node* is a turn or a step. Where the rules leave room, this is how they are read here:
 *
 * 1. Within a node one thing is undone at a time: the node's own entry first, then its activities, the last one recorded first.
 * 2. What came because of what is asked through nodes that have no entry, or whose entry is in no plan or in another one.
 * 3. An entry whose outcome nobody knows is taken by a plan like any other, is settled at once, and is not undone.
 * 4. What was not undone in one plan is never tried in another.
 */

export type RefEntryStatus =
  /** In no plan. */
  | 'done'
  | 'pending'
  | 'compensating'
  | 'compensated'
  | 'failed'
  /** Nobody knows whether it was done. */
  | 'unknown'

export interface RefEntry {
  readonly id: string
  readonly node: string
  readonly kind: 'node' | 'activity'
  /** Its place among the entries of the run, in the order in which they were recorded. */
  readonly place: number
  status: RefEntryStatus
  /** The attempt at undoing it that is owed, or was the last. */
  attempt: number
  plan: RefPlan | null
}

export interface RefPlan {
  /** The barrier it was made at; `#` is the run's own. */
  readonly at: string
  readonly entries: readonly RefEntry[]
}

/** How often an undo is tried. */
export const undoAttempts = 5

const isSettled = ({ status }: RefEntry): boolean => status === 'compensated' || status === 'failed' || status === 'unknown'

export class Undoing {
  readonly entries = new Map<string, RefEntry>()
  readonly plans: RefPlan[] = []
  readonly #because = new Map<string, Set<string>>()

  /** `node` came because of all of `others`. */
  came(node: string, others: readonly string[]): void {
    this.#because.set(node, new Set([...(this.#because.get(node) ?? []), ...others]))
  }

  /** Something that can be undone was done, or nobody knows whether it was. A retry that is given the same result adds nothing. */
  enter(id: string, node: string, kind: RefEntry['kind'], status: 'done' | 'unknown'): void {
    if (this.entries.has(id)) return
    this.entries.set(id, { id, node, kind, place: this.entries.size, status, attempt: 0, plan: null })
  }

  free(): RefEntry[] {
    return [...this.entries.values()].filter((entry) => entry.plan === null)
  }

  begin(at: string, entries: readonly RefEntry[]): RefPlan {
    const plan: RefPlan = { at, entries }
    for (const entry of entries) {
      entry.plan = plan
      if (entry.status === 'done') entry.status = 'pending'
    }
    this.plans.push(plan)
    return plan
  }

  isOver(plan: RefPlan): boolean {
    return plan.entries.every(isSettled)
  }

  /** Starts every undo that may start now: nothing that came because of it is still to be undone in its plan. */
  startAll(): RefEntry[] {
    const starting = this.plans.flatMap(({ entries }) =>
      entries.filter((entry) => entry.status === 'pending' && entries.every((other) => isSettled(other) || !this.follows(other, entry))),
    )
    for (const entry of starting) {
      entry.status = 'compensating'
      entry.attempt += 1
    }
    return starting
  }

  /** The undos that are owed. */
  owed(): RefEntry[] {
    return [...this.entries.values()].filter((entry) => entry.status === 'compensating')
  }

  settle(id: string, how: 'compensated' | 'failed'): RefEntry {
    const entry = this.entries.get(id)
    if (entry?.status !== 'compensating') throw new Error(`no undo of ${id} is owed`)
    if (how === 'compensated') entry.status = 'compensated'
    else entry.status = entry.attempt < undoAttempts ? 'pending' : 'failed'
    return entry
  }

  /** Whether `later` must be settled before `earlier` is undone. */
  follows(later: RefEntry, earlier: RefEntry): boolean {
    if (later === earlier) return false
    if (later.node !== earlier.node) return this.cameBecauseOf(later.node, earlier.node)
    if (later.kind !== earlier.kind) return later.kind === 'node'
    return later.place > earlier.place
  }

  cameBecauseOf(node: string, of: string): boolean {
    const seen = new Set<string>()
    const queue = [node]
    for (let next = queue.shift(); next !== undefined; next = queue.shift()) {
      for (const cause of this.#because.get(next) ?? []) {
        if (cause === of) return true
        if (!seen.has(cause)) queue.push(cause)
        seen.add(cause)
      }
    }
    return false
  }
}
