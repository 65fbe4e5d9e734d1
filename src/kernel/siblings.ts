import type { Invoke } from './action.js'
import type { TurnMessage } from './message.js'
import { childBranch } from './ids.js'
import type { Attempt, Barrier, Branch } from './state.js'
import type { Edit } from './trie.js'

/** The children of a fork that were opened and started one right after the other, and what they have in common. */
export interface Siblings {
  readonly scope: string
  readonly opener: string
  /** The ordinal of the one at slot 0; the others follow. */
  readonly first: number
  /** The ids of those that were opened at once: they are in the events of that too, and not made again. */
  readonly ids: readonly string[]
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
export interface Fates {
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
export const never: number = 2 ** 31 - 1

const started: Branch['standing'] = Object.freeze({ status: 'ready', ticket: null })
const held: Branch['standing'] = Object.freeze({ status: 'held' })
const noCarried: Branch['carried'] = Object.freeze([])

/** Which of the siblings an id is that of: its last part is a number as ids have it. Below 0: of none. */
export function slotIn({ first, opener, opened }: Siblings, id: string): number {
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
export function copyOf(siblings: Siblings, fates: Fates, edit: Edit | null): Siblings {
  return {
    scope: siblings.scope,
    opener: siblings.opener,
    first: siblings.first,
    ids: siblings.ids,
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

export function noFates(width: number): Fates {
  const nothing = () => new Int32Array(width).fill(never)
  return { parted: nothing(), held: nothing(), actions: [], left: nothing(), gone: 0 }
}

export function idAt({ ids, opener, first }: Siblings, slot: number): string {
  return ids[slot] ?? childBranch(opener, first + slot)
}

/** The first attempt of one that has started. */
export function attemptAt(siblings: Siblings, slot: number): Attempt {
  const { calls, startAt, startSeq } = siblings
  return { branch: idAt(siblings, slot), agent: calls[slot]?.to ?? '', turn: 1, attempt: 1, at: startAt, seq: startSeq + slot }
}

/** What one of them is asked. */
export function messageAt({ from, calls }: Siblings, slot: number): TurnMessage {
  const request = calls[slot]?.request
  return request === undefined ? { kind: 'request', from } : { kind: 'request', from, value: request }
}

/** One of them, as it was opened or has started, or as it is held since it did this. */
export function oneOf(siblings: Siblings, slot: number, id: string, action: Invoke | undefined): Branch {
  const to = siblings.calls[slot]?.to ?? ''
  const isHeld = action !== undefined
  const hasStarted = !isHeld && slot < siblings.started
  return {
    id,
    agent: isHeld ? action.to : to,
    scope: siblings.scope,
    slot,
    slots: null,
    depth: siblings.depth,
    turn: 1,
    attempt: 1,
    startSeq: hasStarted ? siblings.startSeq + slot : 0,
    startAt: hasStarted ? siblings.startAt : 0,
    rejections: 0,
    failures: 0,
    standing: isHeld ? held : hasStarted ? started : { status: 'ready', ticket: siblings.ticket + slot },
    state: undefined,
    message: messageAt(siblings, slot),
    requests: !isHeld ? null : action.request === undefined ? { from: to } : { from: to, value: action.request },
    carried: noCarried,
    memory: null,
    action: action ?? null,
    children: 0,
    forks: 0,
    asks: 0,
  }
}
