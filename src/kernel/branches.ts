import type { Invoke } from './action.js'
import { childBranch } from './ids.js'
import type { Barrier, Branch } from './state.js'
import { type Edit, Trie } from './trie.js'

/** The children of a fork that were opened and started one right after the other, and what they have in common. */
interface Siblings {
  readonly scope: string
  readonly opener: string
  /** The ordinal of the one at slot 0; the others follow. */
  readonly first: number
  /** Who asks, and what for. */
  readonly from: string
  readonly calls: Barrier['calls']
  readonly depth: number
  /** The place in the queue of turns of the one at slot 0; the others follow. */
  readonly ticket: number
  readonly fates: Fates
  edit: Edit | null
  opened: number
  /** How many of them have started: those with the lowest slots, the first by this event and the others by those after it. */
  started: number
  startSeq: number
  startAt: number
}

/** What has become of siblings since. When, by slot, is counted over all of a log. */
interface Fates {
  /** When something first happened to it: from then on it is kept by itself, or is over, */
  readonly parted: Int32Array
  /** unless it came to a rendezvous by its first turn, and nothing is to be known of it but this action, */
  readonly held: Int32Array
  readonly actions: (Invoke | undefined)[]
  /** until something happened to it there. */
  readonly left: Int32Array
  /** How many are kept by themselves, or are over. */
  gone: number
}

/** When something happens that has not. */
const never = 2 ** 31 - 1

/** What several versions write to. Each sees as much of it as was there when it was made; one that is not the latest takes a copy. */
interface Log {
  length: number
}

/** How many children a fork has at least for them to be worth keeping as one: a few are kept, changed and compared faster by themselves. */
export const alikeFrom = 32

const started: Branch['standing'] = Object.freeze({ status: 'ready', ticket: null })
const held: Branch['standing'] = Object.freeze({ status: 'held' })
const noCarried: Branch['carried'] = Object.freeze([])
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
  /** What was last made, and whose siblings were last looked for: one decision asks for the same few again and again. */
  #last: Branch | null
  #near: Siblings | null

  private constructor(
    kept: Trie<Branch>,
    alike: Trie<readonly Siblings[]>,
    log: Log,
    seen: number,
    size: number,
    edit: Edit | null,
    last: Branch | null,
    near: Siblings | null,
  ) {
    this.#kept = kept
    this.#alike = alike
    this.#log = log
    this.#seen = seen
    this.#size = size
    this.#edit = edit
    this.#last = last
    this.#near = near
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
    const kept = this.#kept.get(id)
    if (kept !== undefined) return kept
    const siblings = this.siblingsOf(id)
    if (siblings === null) return undefined
    this.#last = this.one(siblings, slotIn(siblings, id), id)
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
    if (own.#kept.size > size && !own.goes(id, edit)) own.#size++
    if (own.#last?.id === id) own.#last = null
    return own
  }

  delete(id: string, edit: Edit | null = null): Branches {
    const own = this.by(edit)
    const { size } = own.#kept
    own.#kept = own.#kept.delete(id, edit)
    if (own.#kept.size < size || own.goes(id, edit)) own.#size--
    if (own.#last?.id === id) own.#last = null
    return own
  }

  /** A branch that is kept by itself waits at a rendezvous: it is one of its siblings again, if it differs from them in what it did alone. */
  hold({ id, slot, agent, turn, attempt, state, memory, action }: Branch, edit: Edit | null): Branches {
    if (turn !== 1 || attempt !== 1 || state !== undefined || memory !== null) return this
    if (action?.type !== 'invoke' || action.to !== agent) return this
    const siblings = this.openedWith(id)
    if (siblings === null || this.sees(siblings.fates.held, slot)) return this
    const own = this.by(edit)
    const { fates } = own.writing(siblings)
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
    const own = this.by(edit)
    const made: Siblings = {
      scope: barrier.id,
      opener: parent.id,
      first: barrier.firstChild,
      from: parent.agent,
      calls: barrier.calls,
      depth: parent.depth + 1,
      ticket,
      fates: noFates(barrier.calls.length),
      edit,
      opened: 1,
      started: 0,
      startSeq: 0,
      startAt: 0,
    }
    if (own.#alike.size === 0) own.beginLog(0)
    own.#alike = own.#alike.set(parent.id, [...family, made], edit)
    own.#size++
    return own
  }

  /** The place in the queue of a branch that can start as the next of those alike; null if it can't. */
  ticketOfNext(id: string, seq: number, at: number): number | null {
    const siblings = this.siblingsOf(id)
    if (siblings === null || slotIn(siblings, id) !== siblings.started) return null
    const follows = siblings.started === 0 || (siblings.startSeq + siblings.started === seq && siblings.startAt === at)
    return follows ? siblings.ticket + siblings.started : null
  }

  /** Starts it. */
  startNext(id: string, seq: number, at: number, edit: Edit | null): Branches {
    const own = this.by(edit)
    const siblings = own.siblingsOf(id)
    if (siblings === null) return own
    const changing = own.changing(siblings, edit)
    if (changing.started === 0) {
      changing.startSeq = seq
      changing.startAt = at
    }
    changing.started++
    own.#last = null
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

  /** The branches with an attempt that is live and was not before. Costs as much as the difference. */
  static begunSince(before: Branches, after: Branches): Branch[] {
    const begun: Branch[] = []
    if (before === after) return begun
    for (const [id, branch] of Trie.changes(before.#kept, after.#kept).set)
      if (branch.startSeq !== 0 && !isSameTurn(before.get(id), branch)) begun.push(branch)
    // Of two that do not follow each other, each may have parted what the other has not.
    const follows = before.#log === after.#log && before.#seen <= after.#seen
    const families = follows ? Trie.changes(before.#alike, after.#alike).set : after.#alike.entries()
    for (const [, family] of families)
      for (const siblings of family)
        for (const branch of after.those(siblings, siblings.started))
          if (branch.startSeq !== 0 && !isSameTurn(before.get(branch.id), branch)) begun.push(branch)
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
    const { opener, first } = siblings
    const those: Branch[] = []
    for (let slot = 0; slot < slots; slot++)
      if (this.isHere(siblings, slot)) those.push(this.one(siblings, slot, childBranch(opener, first + slot)))
    return those
  }

  private one(siblings: Siblings, slot: number, id: string): Branch {
    const { parted, actions } = siblings.fates
    const action = this.sees(parted, slot) ? actions[slot] : undefined
    return action === undefined ? oneAsOpened(siblings, slot, id) : oneHeld(siblings, slot, id, action)
  }

  /** Whether something has happened, as far as this version sees. */
  private sees(when: Int32Array, slot: number): boolean {
    return (when[slot] ?? never) < this.#seen
  }

  /** Whether one is as it was opened or held, and not kept by itself. */
  private isHere({ fates }: Siblings, slot: number): boolean {
    return !this.sees(fates.parted, slot) || (this.sees(fates.held, slot) && !this.sees(fates.left, slot))
  }

  /** Those that a branch is kept with, if it is not kept by itself. */
  private siblingsOf(id: string): Siblings | null {
    const siblings = this.openedWith(id)
    return siblings !== null && this.isHere(siblings, slotIn(siblings, id)) ? siblings : null
  }

  /** Those that a branch was opened with, if there are still some, whatever has become of it. */
  private openedWith(id: string): Siblings | null {
    if (this.#alike.size === 0) return null
    if (this.#near !== null && slotIn(this.#near, id) >= 0) return this.#near
    const family = this.#alike.get(id.slice(0, id.lastIndexOf('.'))) ?? noFamily
    const found = family.find((siblings) => slotIn(siblings, id) >= 0) ?? null
    if (found !== null) this.#near = found
    return found
  }

  /** This one, if it belongs to this edit, else a copy that does. */
  private by(edit: Edit | null): Branches {
    if (edit !== null && this.#edit === edit) return this
    return new Branches(this.#kept, this.#alike, this.#log, this.#seen, this.#size, edit, this.#last, this.#near)
  }

  /** From here on a branch is not kept with its siblings: whether it was. */
  private goes(id: string, edit: Edit | null): boolean {
    const siblings = this.siblingsOf(id)
    if (siblings === null) return false
    const { scope, opener, opened, fates } = this.writing(siblings)
    const slot = slotIn(siblings, id)
    this.happens(this.sees(fates.parted, slot) ? fates.left : fates.parted, slot)
    if (++fates.gone < opened) return true
    const others = (this.#alike.get(opener) ?? noFamily).filter((some) => some.scope !== scope)
    this.#alike = others.length === 0 ? this.#alike.delete(opener, edit) : this.#alike.set(opener, others, edit)
    this.#near = null
    return true
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

  /** The siblings, to write what becomes of one. Copies all, if others have written to the log after what this version sees of it. */
  private writing(siblings: Siblings): Siblings {
    if (this.#log.length === this.#seen) return siblings
    let own = siblings
    const copied = (some: Siblings): Siblings => {
      const copy = copyOf(some, this.seenOf(some), null)
      if (some === siblings) own = copy
      return copy
    }
    this.#alike = Trie.from(this.#alike.entries().map(([opener, family]) => [opener, family.map(copied)] as const))
    this.beginLog(this.#seen)
    this.#near = own
    return own
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
    const family = this.#alike.get(siblings.opener) ?? noFamily
    this.#alike = this.#alike.set(
      siblings.opener,
      family.map((some) => (some.scope === siblings.scope ? copy : some)),
      edit,
    )
    this.#near = copy
    return copy
  }
}

/** Which of the siblings an id is that of: its last part is a number as ids have it. Below 0: of none. */
function slotIn({ first, opener, opened }: Siblings, id: string): number {
  const from = opener.length + 1
  if (id.length <= from || id.charCodeAt(from - 1) !== 46 || !id.startsWith(opener)) return -1
  let ordinal = 0
  for (let at = from; at < id.length; at++) {
    const digit = id.charCodeAt(at) - 48
    if (digit < 0 || digit > 9 || (digit === 0 && at === from && id.length > from + 1)) return -1
    ordinal = ordinal * 10 + digit
  }
  return ordinal - first < opened ? ordinal - first : -1
}

/** Field by field: what spreading makes has a form of its own, which comes and goes with the collector, and compiled code with it. */
function copyOf(siblings: Siblings, fates: Fates, edit: Edit | null): Siblings {
  return {
    scope: siblings.scope,
    opener: siblings.opener,
    first: siblings.first,
    from: siblings.from,
    calls: siblings.calls,
    depth: siblings.depth,
    ticket: siblings.ticket,
    fates,
    edit,
    opened: siblings.opened,
    started: siblings.started,
    startSeq: siblings.startSeq,
    startAt: siblings.startAt,
  }
}

function noFates(width: number): Fates {
  const nothing = () => new Int32Array(width).fill(never)
  return { parted: nothing(), held: nothing(), actions: [], left: nothing(), gone: 0 }
}

function oneAsOpened(siblings: Siblings, slot: number, id: string): Branch {
  const { started: all, startSeq, startAt, ticket } = siblings
  const agent = siblings.calls[slot]?.to ?? ''
  if (slot < all) return one(siblings, slot, id, agent, startSeq + slot, startAt, started, null, null)
  return one(siblings, slot, id, agent, 0, 0, { status: 'ready', ticket: ticket + slot }, null, null)
}

function oneHeld(siblings: Siblings, slot: number, id: string, action: Invoke): Branch {
  const from = siblings.calls[slot]?.to ?? ''
  const requests = action.request === undefined ? { from } : { from, value: action.request }
  return one(siblings, slot, id, action.to, 0, 0, held, requests, action)
}

function one(
  { scope, from, calls, depth }: Siblings,
  slot: number,
  id: string,
  agent: string,
  startSeq: number,
  startAt: number,
  standing: Branch['standing'],
  requests: Branch['requests'],
  action: Branch['action'],
): Branch {
  const request = calls[slot]?.request
  return {
    id,
    agent,
    scope,
    slot,
    slots: null,
    depth,
    turn: 1,
    attempt: 1,
    startSeq,
    startAt,
    rejections: 0,
    failures: 0,
    standing,
    state: undefined,
    message: request === undefined ? { kind: 'request', from } : { kind: 'request', from, value: request },
    requests,
    carried: noCarried,
    memory: null,
    action,
    children: 0,
    forks: 0,
    asks: 0,
  }
}

/** Whether the attempt that is live is the one that was. */
function isSameTurn(before: Branch | undefined, { startSeq, startAt, turn, attempt, agent }: Branch): boolean {
  if (before === undefined || before.startSeq !== startSeq || before.startAt !== startAt) return false
  return before.turn === turn && before.attempt === attempt && before.agent === agent
}
