import { childBranch } from './ids.js'
import type { Barrier, Branch } from './state.js'
import { type Edit, Trie } from './trie.js'

/** The children of a fork that nothing has happened to but that they were opened and started, one right after the other. */
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
  readonly parted: Parted
  edit: Edit | null
  opened: number
  /** How many of them have started: those with the lowest slots, the first by this event and the others by those after it. */
  started: number
  startSeq: number
  startAt: number
}

/** When something has happened to which, counted over all of a log; and to how many of these. */
interface Parted {
  readonly when: (number | undefined)[]
  count: number
}

/** What several versions write to. Each sees as much of it as was there when it was made; one that is not the latest takes a copy. */
interface Log {
  length: number
}

/** How many children a fork has at least for them to be worth keeping as one: a few are kept, changed and compared faster by themselves. */
export const alikeFrom = 32

const started: Branch['standing'] = Object.freeze({ status: 'ready', ticket: null })
const noCarried: Branch['carried'] = Object.freeze([])
const noFamily: readonly Siblings[] = Object.freeze([])

/**
 * The live branches, by id. Persistent, as a trie is.
 *
 * 1. A wide fork opens thousands that are all alike until their first turn is over: those are not kept one by one, but made from what
 *    they have in common when somebody asks for them.
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
  /** What was last made: one decision asks for the same few again and again. */
  #last: Branch | null

  private constructor(
    kept: Trie<Branch>,
    alike: Trie<readonly Siblings[]>,
    log: Log,
    seen: number,
    size: number,
    edit: Edit | null,
    last: Branch | null,
  ) {
    this.#kept = kept
    this.#alike = alike
    this.#log = log
    this.#seen = seen
    this.#size = size
    this.#edit = edit
    this.#last = last
  }

  static empty(): Branches {
    return Branches.from([])
  }

  static from(entries: Iterable<readonly [string, Branch]>): Branches {
    const kept = Trie.from(entries)
    return new Branches(kept, Trie.empty(), { length: 0 }, 0, kept.size, null, null)
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
    this.#last = oneOf(siblings, slotIn(siblings, id), id)
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
    if (own.#kept.size > size && !own.part(id, edit)) own.#size++
    if (own.#last?.id === id) own.#last = null
    return own
  }

  delete(id: string, edit: Edit | null = null): Branches {
    const own = this.by(edit)
    const { size } = own.#kept
    own.#kept = own.#kept.delete(id, edit)
    if (own.#kept.size < size || own.part(id, edit)) own.#size--
    if (own.#last?.id === id) own.#last = null
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
      parted: { when: [], count: 0 },
      edit,
      opened: 1,
      started: 0,
      startSeq: 0,
      startAt: 0,
    }
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
        for (const branch of after.those(siblings, siblings.started)) if (!isSameTurn(before.get(branch.id), branch)) begun.push(branch)
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

  /** Those of the first slots that are still alike. */
  private those(siblings: Siblings, slots: number): Branch[] {
    const { opener, first } = siblings
    const those: Branch[] = []
    for (let slot = 0; slot < slots; slot++)
      if (!this.isParted(siblings, slot)) those.push(oneOf(siblings, slot, childBranch(opener, first + slot)))
    return those
  }

  private isParted({ parted }: Siblings, slot: number): boolean {
    const when = parted.when[slot]
    return when !== undefined && when < this.#seen
  }

  /** Those that a branch is like, if it is like others. */
  private siblingsOf(id: string): Siblings | null {
    if (this.#alike.size === 0) return null
    const family = this.#alike.get(id.slice(0, id.lastIndexOf('.')))
    if (family === undefined) return null
    for (let place = 0; place < family.length; place++) {
      const siblings = family[place]
      const slot = siblings === undefined ? -1 : slotIn(siblings, id)
      if (siblings !== undefined && slot >= 0 && slot < siblings.opened) return this.isParted(siblings, slot) ? null : siblings
    }
    return null
  }

  /** This one, if it belongs to this edit, else a copy that does. */
  private by(edit: Edit | null): Branches {
    if (edit !== null && this.#edit === edit) return this
    return new Branches(this.#kept, this.#alike, this.#log, this.#seen, this.#size, edit, this.#last)
  }

  /** From here on a branch is not like its siblings: whether it was. */
  private part(id: string, edit: Edit | null): boolean {
    const found = this.siblingsOf(id)
    if (found === null) return false
    const siblings = this.#log.length === this.#seen ? found : this.copyLog(id)
    if (siblings === null) return false
    const { opener, opened, parted } = siblings
    parted.when[slotIn(siblings, id)] = this.#log.length++
    this.#seen++
    if (++parted.count < opened) return true
    const others = (this.#alike.get(opener) ?? noFamily).filter((some) => some.scope !== siblings.scope)
    this.#alike = others.length === 0 ? this.#alike.delete(opener, edit) : this.#alike.set(opener, others, edit)
    return true
  }

  /** Others have written to the log after what this version sees of it. Gives the siblings of a branch again. */
  private copyLog(id: string): Siblings | null {
    const seen = this.#seen
    const copied = (siblings: Siblings): Siblings => {
      const when = siblings.parted.when.map((place) => (place !== undefined && place < seen ? place : undefined))
      return { ...siblings, parted: { when, count: when.filter((place) => place !== undefined).length } }
    }
    this.#alike = Trie.from(this.#alike.entries().map(([opener, family]) => [opener, family.map(copied)] as const))
    this.#log = { length: seen }
    return this.siblingsOf(id)
  }

  private changing(siblings: Siblings, edit: Edit | null): Siblings {
    if (edit !== null && siblings.edit === edit) return siblings
    const copy = { ...siblings }
    copy.edit = edit
    const family = this.#alike.get(siblings.opener) ?? noFamily
    this.#alike = this.#alike.set(
      siblings.opener,
      family.map((some) => (some.scope === siblings.scope ? copy : some)),
      edit,
    )
    return copy
  }
}

/** Which of the siblings an id is that of: its last part is a number as ids have it. Below 0: of none. */
function slotIn({ first, opener }: Siblings, id: string): number {
  const from = opener.length + 1
  let ordinal = 0
  for (let at = from; at < id.length; at++) {
    const digit = id.charCodeAt(at) - 48
    if (digit < 0 || digit > 9 || (digit === 0 && at === from && id.length > from + 1)) return -1
    ordinal = ordinal * 10 + digit
  }
  return id.length === from ? -1 : ordinal - first
}

function oneOf({ scope, from, calls, depth, ticket, started: all, startSeq, startAt }: Siblings, slot: number, id: string): Branch {
  const call = calls[slot]
  const isStarted = slot < all
  return {
    id,
    agent: call?.to ?? '',
    scope,
    slot,
    slots: null,
    depth,
    turn: 1,
    attempt: 1,
    startSeq: isStarted ? startSeq + slot : 0,
    startAt: isStarted ? startAt : 0,
    rejections: 0,
    failures: 0,
    standing: isStarted ? started : { status: 'ready', ticket: ticket + slot },
    state: undefined,
    message: call?.request === undefined ? { kind: 'request', from } : { kind: 'request', from, value: call.request },
    requests: null,
    carried: noCarried,
    memory: null,
    action: null,
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
