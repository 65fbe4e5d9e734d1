/**
 * Judges a run of the reference by its log alone, with nothing that the reference itself goes by: was everything undone against causality,
 * once, by the plan that had to, and by no plan too early?
 *
 * Detached branches are out of the reach of every plan but the run's, so that nothing is asked of them where a fork undoes what started them.
 */

type Line =
  | { type: 'open'; branch: string; scope: string; seat: number; detached: boolean }
  | { type: 'because'; turn: string; of: readonly string[] }
  | { type: 'entry'; turn: string; id: string; kind: 'node' | 'activity'; status: 'done' | 'unknown' }
  | { type: 'aborting'; turn: string; attempt: string }
  | { type: 'settled'; attempt: string }
  | { type: 'plan'; at: string; entries: readonly string[] }
  | { type: 'undoing'; of: string; attempt: number }
  /** Everything that may be undone now is being undone. */
  | { type: 'started' }
  | { type: 'undo'; of: string; attempt: number; status: 'compensated' | 'failed' | 'pending' }
  | { type: 'follow'; barrier: string; compensate: boolean; counts: readonly boolean[] }
  | { type: 'end'; compensate: boolean }

interface Entry {
  id: string
  turn: string
  kind: 'node' | 'activity'
  place: number
  plan: string | null
  /** It has not been undone, is being undone, or nothing more is done about it. */
  stage: 'before' | 'during' | 'after'
}

/** What is wrong with a run, as sentences; empty if nothing is. */
export function audit(log: readonly object[]): string[] {
  const auditor = new Auditor()
  for (const line of log) auditor.read(line as Line)
  return auditor.found
}

const branchOf = (turn: string): string => turn.split('/')[0] as string

class Auditor {
  readonly found: string[] = []
  readonly #entries = new Map<string, Entry>()
  readonly #because = new Map<string, readonly string[]>()
  readonly #seats = new Map<string, { scope: string; seat: number }>()
  readonly #detached: string[] = []
  readonly #aborting = new Map<string, string>()
  readonly #plans = new Set<string>()
  readonly #follows: { barrier: string; counts: readonly boolean[] }[] = []

  read(line: Line): void {
    switch (line.type) {
      case 'open':
        this.#seats.set(line.branch, line)
        if (line.detached) this.#detached.push(line.branch)
        return
      case 'because':
        this.#because.set(line.turn, line.of)
        return
      case 'entry':
        return this.#enter(line)
      case 'aborting':
        this.#aborting.set(line.attempt, line.turn)
        return
      case 'settled':
        this.#aborting.delete(line.attempt)
        return
      case 'plan':
        return this.#plan(line.at, line.entries)
      case 'undoing':
        return this.#start(line.of)
      case 'started':
        return this.#allStarted()
      case 'undo': {
        const entry = this.#entry(line.of)
        if (entry.stage !== 'during') this.found.push(`${line.of} is undone and was not being undone`)
        entry.stage = line.status === 'pending' ? 'before' : 'after'
        return
      }
      case 'follow':
        if (line.compensate) this.#follows.push(line)
        return this.#follow(line.barrier)
      case 'end':
        return this.#end(line.compensate)
    }
  }

  #entry(id: string): Entry {
    return this.#entries.get(id) as Entry
  }

  #enter({ id, turn, kind, status }: Extract<Line, { type: 'entry' }>): void {
    if (this.#entries.has(id)) return
    const stage = status === 'unknown' ? 'after' : 'before'
    this.#entries.set(id, { id, turn, kind, place: this.#entries.size, plan: null, stage })
  }

  #plan(at: string, entries: readonly string[]): void {
    if (this.#plans.has(at)) this.found.push(`there are two plans at ${at}`)
    this.#plans.add(at)
    for (const id of entries) {
      const entry = this.#entry(id)
      if (entry.plan !== null) this.found.push(`${id} is taken twice`)
      entry.plan = at
      for (const other of this.#entries.values())
        if (
          other.plan !== null &&
          other.plan !== at &&
          other.stage !== 'before' &&
          this.#mustGoFirst(entry, other) &&
          !this.#isListed(other)
        )
          this.found.push(`${id} is taken when ${other.id}, which it came because of, has been undone`)
    }
  }

  /** Unknown outcomes are never undone, and so never too early. */
  #isListed(entry: Entry): boolean {
    return entry.stage === 'after' && !this.#started.has(entry.id)
  }

  readonly #started = new Set<string>()

  #start(id: string): void {
    const entry = this.#entry(id)
    if (entry.plan === null || entry.stage !== 'before') this.found.push(`the undo of ${id} starts out of turn`)
    entry.stage = 'during'
    this.#started.add(id)
    for (const other of this.#entries.values())
      if (other.plan !== null && other.stage !== 'after' && this.#mustGoFirst(other, entry))
        this.found.push(`the undo of ${id} starts before that of ${other.id} has settled`)
    for (const turn of this.#aborting.values())
      if ((turn === entry.turn || this.#came(turn, entry.turn)) && !this.#isApart(turn, entry))
        this.found.push(`the undo of ${id} starts while ${turn} is being aborted`)
  }

  #allStarted(): void {
    for (const entry of this.#entries.values()) {
      if (entry.plan === null || entry.stage !== 'before') continue
      const others = [...this.#entries.values()].filter((other) => other.plan === entry.plan && other.stage !== 'after')
      if (!others.some((other) => this.#mustGoFirst(other, entry))) this.found.push(`${entry.id} is not undone, and nothing holds it back`)
    }
  }

  #mustGoFirst(later: Entry, earlier: Entry): boolean {
    if (later === earlier || this.#isApart(later.turn, earlier)) return false
    if (later.turn !== earlier.turn) return this.#came(later.turn, earlier.turn)
    if (later.kind !== earlier.kind) return later.kind === 'node'
    return later.place > earlier.place
  }

  /** Whether a turn lies in a detached branch that an entry is not in, out of the reach of the entry's plan. */
  #isApart(turn: string, entry: Entry): boolean {
    if (entry.plan === '#') return false
    const isIn = (branch: string, detached: string): boolean => `${branch}.`.startsWith(`${detached}.`)
    return this.#detached.some((detached) => isIn(branchOf(turn), detached) && !isIn(branchOf(entry.turn), detached))
  }

  #came(turn: string, of: string): boolean {
    const seen = new Set([turn])
    for (const next of seen) for (const cause of this.#because.get(next) ?? []) seen.add(cause)
    return turn !== of && seen.has(of)
  }

  /** Its branch goes on: its plan, if there is one, is over. */
  #follow(barrier: string): void {
    for (const { id, plan, stage } of this.#entries.values())
      if (plan === barrier && stage !== 'after') this.found.push(`${barrier} goes on before ${id} is undone`)
  }

  #end(compensate: boolean): void {
    for (const { id, turn, plan, stage } of this.#entries.values()) {
      if (plan !== null && stage !== 'after') this.found.push(`the run ends before ${id} is undone`)
      if (plan === null && (compensate || this.#wasToBeUndone(branchOf(turn)))) this.found.push(`no plan has taken ${id}`)
    }
  }

  /** Whether a fork around the branch compensates, and the slot did not count there. */
  #wasToBeUndone(branch: string): boolean {
    const { scope, seat } = this.#seats.get(branch) as { scope: string; seat: number }
    if (scope === '#' || this.#detached.includes(branch)) return false
    const follow = this.#follows.find(({ barrier }) => barrier === scope)
    return (follow !== undefined && !follow.counts[seat]) || this.#wasToBeUndone(scope.split('#')[0] as string)
  }
}
