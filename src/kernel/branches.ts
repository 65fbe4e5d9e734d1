import { childBranch } from './ids.js'
import { attemptAt, copyOf, type Fates, idAt, never, noFates, oneOf, type Siblings, slotIn } from './siblings.js'
import type { Attempt, Barrier, Branch } from './state.js'
import { type Edit, Trie } from './trie.js'

/** Where a branch stands among those that it was opened with, whatever has become of it. */
export interface Place {
  readonly id: string
  readonly siblings: Siblings
  readonly slot: number
}

/** What several versions write to. Each sees as much of it as was there when it was made; one that is not the latest takes a copy. */
interface Log {
  length: number
}

/** How many children a fork has at least for them to be worth keeping as one: a few are kept, changed and compared faster by themselves. */
export const alikeFrom = 32

const noFamily: readonly Siblings[] = Object.freeze([])

/**
 * The live branches, by id. Persistent, as a trie is.
 *
 * 1. A wide fork opens thousands that are all alike until their first turn is over, and those that it brings to a rendezvous differ in
 *    what they did alone: such branches are not kept one by one, but made from what they have in common when somebody asks for them.
 * 2. Which of them are kept how is seen by nobody: all answers depend on what the branches are.
 */
export class Branches {
  #kept: Trie<Branch>
  /** By the branch that opened them. */
  #alike: Trie<readonly Siblings[]>
  /** Which of those alike are so no more: what its log has up to here. */
  #log: Log
  #seen: number
  #size: number
  readonly #edit: Edit | null
  /** What was last made, and whose place was last looked for: one decision asks for the same few again and again. */
  #last: Branch | null
  #place: Place | null

  private constructor(
    kept: Trie<Branch>,
    alike: Trie<readonly Siblings[]>,
    log: Log,
    seen: number,
    size: number,
    edit: Edit | null,
    last: Branch | null,
    place: Place | null,
  ) {
    this.#kept = kept
    this.#alike = alike
    this.#log = log
    this.#seen = seen
    this.#size = size
    this.#edit = edit
    this.#last = last
    this.#place = place
  }

  static empty(): Branches {
    return Branches.from([])
  }

  static from(entries: Iterable<readonly [string, Branch]>): Branches {
    const kept = Trie.from(entries)
    return new Branches(kept, Trie.empty(), { length: 0 }, 0, kept.size, null, null, null)
  }

  get size(): number {
    return this.#size
  }

  get(id: string): Branch | undefined {
    if (this.#last !== null && this.#last.id === id) return this.#last
    if (this.#alike.size === 0) return this.#kept.get(id)
    const place = this.placeOf(id)
    if (place === null || !this.isHere(place.siblings, place.slot)) return this.#kept.get(id)
    this.#last = this.one(place.siblings, place.slot, id)
    return this.#last
  }

  /** The branch, if it was put here under this edit: whoever has the token made it and may change it. */
  own(id: string, edit: Edit | null): Branch | undefined {
    return this.#kept.own(id, edit)
  }

  set(id: string, branch: Branch, edit: Edit | null = null): Branches {
    const own = this.by(edit)
    const { size } = own.#kept
    own.#kept = own.#kept.set(id, branch, edit)
    if (own.#kept.size > size && (own.#alike.size === 0 || !own.goes(id, edit))) own.#size++
    if (own.#last?.id === id) own.#last = null
    return own
  }

  delete(id: string, edit: Edit | null = null): Branches {
    const own = this.by(edit)
    const { size } = own.#kept
    own.#kept = own.#kept.delete(id, edit)
    if (own.#kept.size < size || (own.#alike.size > 0 && own.goes(id, edit))) own.#size--
    if (own.#last?.id === id) own.#last = null
    return own
  }

  /** A branch that is kept by itself waits at a rendezvous: it is one of its siblings again, if it differs from them in what it did alone. */
  hold({ id, slot, agent, turn, attempt, state, memory, action }: Branch, edit: Edit | null): Branches {
    if (turn !== 1 || attempt !== 1 || state !== undefined || memory !== null) return this
    if (action?.type !== 'invoke' || action.to !== agent) return this
    const place = this.placeOf(id)
    if (place === null || this.sees(place.siblings.fates.held, slot)) return this
    const own = this.by(edit)
    const { fates } = own.writing(place)
    // Without holes, which would make a list that begins far out a slow one.
    while (fates.actions.length < slot) fates.actions.push(undefined)
    fates.actions[slot] = action
    fates.gone--
    own.happens(fates.held, slot)
    own.#kept = own.#kept.delete(id, edit)
    return own
  }

  /** Opens the next child of a fork as one like its siblings, with its place in the queue of turns; null if it is not like them. */
  open(barrier: Barrier, parent: Branch, slot: number, ticket: number, edit: Edit | null): Branches | null {
    const family = this.#alike.get(parent.id) ?? noFamily
    const siblings = family[family.length - 1]
    if (slot > 0) {
      if (siblings?.scope !== barrier.id || siblings.opened !== slot || siblings.ticket + slot !== ticket) return null
      const own = this.by(edit)
      own.changing(siblings, edit).opened++
      own.#size++
      return own
    }
    return this.openFirst(barrier, parent, [childBranch(parent.id, barrier.firstChild)], ticket, edit)
  }

  /** The same for all children of a fork, or the first of them, with their places one after the other. */
  openFirst(barrier: Barrier, parent: Branch, ids: readonly string[], ticket: number, edit: Edit | null): Branches {
    const own = this.by(edit)
    const made: Siblings = {
      scope: barrier.id,
      opener: parent.id,
      first: barrier.firstChild,
      ids,
      from: parent.agent,
      calls: barrier.calls,
      depth: parent.depth + 1,
      ticket,
      fates: noFates(barrier.calls.length),
      edit,
      opened: ids.length,
      started: 0,
      startSeq: 0,
      startAt: 0,
    }
    if (own.#alike.size === 0) own.beginLog(0)
    own.#alike = own.#alike.set(parent.id, [...(own.#alike.get(parent.id) ?? noFamily), made], edit)
    own.#size += ids.length
    return own
  }

  /** Those that a branch was opened with, if it is the first of them and nothing has happened to any; null if not. */
  untouchedFrom(id: string): Siblings | null {
    if (this.#alike.size === 0) return null
    const place = this.placeOf(id)
    if (place === null || place.slot > 0) return null
    const { started, opened, fates } = place.siblings
    if (started > 0 || opened < place.siblings.calls.length) return null
    // What others have written to the log after this version counts as well: those are then started one by one.
    return fates.gone === 0 && fates.actions.length === 0 && this.#log.length === this.#seen ? place.siblings : null
  }

  /** Starts all of them, the first by this event and the others by those after it. */
  startAll(siblings: Siblings, seq: number, at: number, edit: Edit | null): Branches {
    const own = this.by(edit)
    const changing = own.changing(siblings, edit)
    changing.startSeq = seq
    changing.startAt = at
    changing.started = changing.opened
    own.#last = null
    return own
  }

  /** The place in the queue of a branch that can start as the next of those alike; null if it can't. */
  ticketOfNext(id: string, seq: number, at: number): number | null {
    if (this.#alike.size === 0) return null
    const place = this.placeOf(id)
    if (place === null || place.slot !== place.siblings.started || !this.isHere(place.siblings, place.slot)) return null
    const { started, startSeq, startAt, ticket } = place.siblings
    const follows = started === 0 || (startSeq + started === seq && startAt === at)
    return follows ? ticket + started : null
  }

  /** Starts it. */
  startNext(id: string, seq: number, at: number, edit: Edit | null): Branches {
    const own = this.by(edit)
    const place = own.placeOf(id)
    if (place === null) return own
    const changing = own.changing(place.siblings, edit)
    if (changing.started === 0) {
      changing.startSeq = seq
      changing.startAt = at
    }
    changing.started++
    own.#last = null
    return own
  }

  /** Where a branch stands that is in its first turn, as all that were opened with it began it; null if it is not. */
  begunAlike(id: string): Place | null {
    if (this.#alike.size === 0) return null
    const place = this.placeOf(id)
    if (place === null || place.slot >= place.siblings.started) return null
    return (place.siblings.fates.parted[place.slot] ?? never) < this.#seen ? null : place
  }

  /** Whether an attempt has started and not ended. */
  isLive({ branch: id, turn, attempt }: Attempt): boolean {
    if (this.begunAlike(id) !== null) return turn === 1 && attempt === 1
    const branch = this.get(id)
    return branch !== undefined && branch.startSeq !== 0 && branch.turn === turn && branch.attempt === attempt
  }

  /** One that is there with its siblings is over. */
  endAlike(place: Place, edit: Edit | null): Branches {
    const own = this.by(edit)
    own.part(place, edit)
    own.#size--
    if (own.#last !== null && own.#last.id === place.id) own.#last = null
    return own
  }

  keys(): string[] {
    return this.all().keys()
  }

  values(): Branch[] {
    return this.all().values()
  }

  entries(): [string, Branch][] {
    return this.all().entries()
  }

  /** The attempts that are live and were not before, when the journal went up to `seq`. Costs as much as the difference. */
  static begunSince(before: Branches, seq: number, after: Branches): Attempt[] {
    const begun: Attempt[] = []
    if (before === after || after.#size === 0) return begun
    for (const [id, branch] of Trie.changes(before.#kept, after.#kept).set)
      if (branch.startSeq !== 0 && !isSameTurn(before.get(id), liveAttempt(branch))) begun.push(liveAttempt(branch))
    // Of two that do not follow each other, each may have parted what the other has not.
    const follows = before.#log === after.#log && before.#seen <= after.#seen
    const families = follows ? Trie.changes(before.#alike, after.#alike).set : after.#alike.entries()
    for (const [, family] of families)
      for (const siblings of family)
        for (let slot = 0; slot < siblings.started; slot++) {
          // What has happened to one ends its first turn.
          if ((siblings.fates.parted[slot] ?? never) < after.#seen) continue
          const attempt = attemptAt(siblings, slot)
          if (attempt.seq > seq || !isSameTurn(before.get(attempt.branch), attempt)) begun.push(attempt)
        }
    return begun
  }

  /** Each of them kept: so their order depends on what they are, and not on what became of them. */
  private all(): Trie<Branch> {
    if (this.#alike.size === 0) return this.#kept
    const all = this.#kept.values()
    for (const family of this.#alike.values())
      for (const siblings of family) for (const branch of this.those(siblings, siblings.opened)) all.push(branch)
    return Trie.from(all.map((branch) => [branch.id, branch] as const))
  }

  /** Those of the first slots that are not kept by themselves. */
  private those(siblings: Siblings, slots: number): Branch[] {
    const those: Branch[] = []
    for (let slot = 0; slot < slots; slot++) if (this.isHere(siblings, slot)) those.push(this.one(siblings, slot, idAt(siblings, slot)))
    return those
  }

  private one(siblings: Siblings, slot: number, id: string): Branch {
    const { parted, actions } = siblings.fates
    return oneOf(siblings, slot, id, (parted[slot] ?? never) < this.#seen ? actions[slot] : undefined)
  }

  /** Whether something has happened, as far as this version sees. */
  private sees(when: Int32Array, slot: number): boolean {
    return (when[slot] ?? never) < this.#seen
  }

  /** Whether one is as it was opened or held, and not kept by itself. */
  private isHere({ fates }: Siblings, slot: number): boolean {
    return !((fates.parted[slot] ?? never) < this.#seen) || (this.sees(fates.held, slot) && !this.sees(fates.left, slot))
  }

  private placeOf(id: string): Place | null {
    const last = this.#place
    if (last !== null) {
      if (last.id === id) return last
      const slot = slotIn(last.siblings, id)
      if (slot >= 0) {
        this.#place = { id, siblings: last.siblings, slot }
        return this.#place
      }
    } else if (this.#alike.size === 0) return null
    const place = this.lookFor(id)
    if (place !== null) this.#place = place
    return place
  }

  private lookFor(id: string): Place | null {
    for (const siblings of this.#alike.get(id.slice(0, id.lastIndexOf('.'))) ?? noFamily) {
      const slot = slotIn(siblings, id)
      if (slot >= 0) return { id, siblings, slot }
    }
    return null
  }

  /** This one, if it belongs to this edit, else a copy that does. */
  private by(edit: Edit | null): Branches {
    if (edit !== null && this.#edit === edit) return this
    return new Branches(this.#kept, this.#alike, this.#log, this.#seen, this.#size, edit, this.#last, this.#place)
  }

  /** From here on a branch is not kept with its siblings: whether it was. */
  private goes(id: string, edit: Edit | null): boolean {
    const place = this.placeOf(id)
    if (place === null || !this.isHere(place.siblings, place.slot)) return false
    this.part(place, edit)
    return true
  }

  private part(place: Place, edit: Edit | null): void {
    const siblings = this.#log.length === this.#seen ? place.siblings : this.writing(place)
    const { opened, fates } = siblings
    const when = (fates.parted[place.slot] ?? never) < this.#seen ? fates.left : fates.parted
    when[place.slot] = this.#log.length++
    this.#seen++
    if (++fates.gone === opened) this.replace(siblings, [], edit)
  }

  /** A log that no other version writes to, with as much in it already. */
  private beginLog(seen: number): void {
    this.#log = { length: seen }
    this.#seen = seen
  }

  private happens(when: Int32Array, slot: number): void {
    when[slot] = this.#log.length++
    this.#seen++
  }

  /** The siblings at a place, to write what becomes of one. */
  private writing(place: Place): Siblings {
    if (this.#log.length === this.#seen) return place.siblings
    this.copyLog()
    return this.placeOf(place.id)?.siblings ?? place.siblings
  }

  /** Others have written to the log after what this version sees of it. */
  private copyLog(): void {
    const copied = (siblings: Siblings): Siblings => copyOf(siblings, this.seenOf(siblings), null)
    this.#alike = Trie.from(this.#alike.entries().map(([opener, family]) => [opener, family.map(copied)] as const))
    this.#place = null
    this.beginLog(this.#seen)
  }

  /** What this version sees of what has become of them. */
  private seenOf(siblings: Siblings): Fates {
    const { parted, held, actions, left } = siblings.fates
    const seen = (when: Int32Array) => when.map((moment) => (moment < this.#seen ? moment : never))
    let gone = 0
    for (let slot = 0; slot < siblings.opened; slot++) if (!this.isHere(siblings, slot)) gone++
    return { parted: seen(parted), held: seen(held), actions: actions.slice(), left: seen(left), gone }
  }

  private changing(siblings: Siblings, edit: Edit | null): Siblings {
    if (edit !== null && siblings.edit === edit) return siblings
    const copy = copyOf(siblings, siblings.fates, edit)
    this.replace(siblings, [copy], edit)
    return copy
  }

  private replace({ opener, scope }: Siblings, by: readonly Siblings[], edit: Edit | null): void {
    const family = (this.#alike.get(opener) ?? noFamily).flatMap((some) => (some.scope === scope ? by : some))
    this.#alike = family.length === 0 ? this.#alike.delete(opener, edit) : this.#alike.set(opener, family, edit)
    this.#place = null
  }
}

/** The attempt of a branch that has started and not ended. */
export function liveAttempt({ id, agent, turn, attempt, startAt, startSeq }: Branch): Attempt {
  return { branch: id, agent, turn, attempt, at: startAt, seq: startSeq }
}

/** Whether the attempt that is live is the one that was. */
function isSameTurn(before: Branch | undefined, { seq, at, turn, attempt, agent }: Attempt): boolean {
  if (before === undefined || before.startSeq !== seq || before.startAt !== at) return false
  return before.turn === turn && before.attempt === attempt && before.agent === agent
}
