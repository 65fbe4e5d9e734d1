import type { Event } from '../kernel/event.js'
import { jsonSize } from '../kernel/json.js'

type Of<T extends Event['type']> = Extract<Event, { type: T }>

interface Packed {
  /** Of the first of them; the others follow, at the same time. */
  readonly seq: number
  readonly at: number
  readonly branches: readonly string[]
}

interface OfTurns extends Packed {
  readonly agent: string
  readonly turn: number
  readonly attempt: number
  /** Absent if none of them has a value. */
  readonly values?: readonly unknown[]
}

/**
 * What a wide fan-out does by the thousand, written as one: what the events have in common stands once, and what differs in lists. It is
 * a way to write events and none to think of them: whoever reads a journal reads the events.
 */
export type Pack =
  /** `branch.opened`, of slots that follow each other. */
  | (Packed & { readonly pack: 'opened'; readonly parent: string; readonly to: string; readonly barrier: string; readonly slot: number })
  /** `turn.started`, with a request each. */
  | (OfTurns & { readonly pack: 'started'; readonly from: string })
  /** `turn.completed`, `barrier.arrived` and `branch.settled` of each: it has replied. */
  | (OfTurns & { readonly pack: 'replied'; readonly barrier: string; readonly slots: readonly number[] })

/** Fewer are written as they are. */
export const packMin = 8

export const isPack = (item: Event | Pack): item is Pack => 'pack' in item

/** What could be packed, and for about how many characters there is room after it. */
export interface Found {
  readonly pack: Pack
  readonly room: number
}

/**
 * As many events from a place on as can be written as one, before another place and in about so many characters; null if they are better
 * written one by one.
 */
export function packAt(events: readonly Event[], from: number, end: number, room: number): Found | null {
  const first = events[from]
  if (end - from < packMin || first === undefined) return null
  switch (first.type) {
    case 'branch.opened':
      return openedFrom(events, from, end, room, first)
    case 'turn.started':
      return startedFrom(events, from, end, room, first)
    case 'turn.completed':
      return repliedFrom(events, from, end, room, first)
    default:
      return null
  }
}

/** About how many characters one more branch adds, with its value. */
function charactersOf(branch: string, value: unknown): number {
  return branch.length + 10 + (typeof value === 'object' ? jsonSize(value) : typeof value === 'string' ? value.length : 0)
}

/** How many events a pack stands for. */
export const countOf = ({ pack, branches }: Pack): number => (pack === 'replied' ? 3 * branches.length : branches.length)

function openedFrom(events: readonly Event[], from: number, end: number, room: number, first: Of<'branch.opened'>): Found | null {
  const { seq, at, parent, to, barrier, slot } = first
  if (parent === null) return null
  const branches: string[] = []
  let left = room
  for (let place = from; place < end && left > 0; place++) {
    const event = events[place]
    if (event?.type !== 'branch.opened' || event.parent !== parent || event.to !== to || event.barrier !== barrier) break
    if (event.slot !== slot + place - from || event.gated !== undefined || event.at !== at) break
    branches.push(event.branch)
    left -= charactersOf(event.branch, undefined)
  }
  return branches.length < packMin ? null : { pack: { pack: 'opened', seq, at, parent, to, barrier, slot, branches }, room: left }
}

function startedFrom(events: readonly Event[], from: number, end: number, room: number, first: Of<'turn.started'>): Found | null {
  const { seq, at, agent, turn, attempt, message } = first
  if (message.kind !== 'request') return null
  const asks = message.value !== undefined
  const branches: string[] = []
  const values: unknown[] = []
  let left = room
  for (let place = from; place < end && left > 0; place++) {
    const event = events[place]
    if (event?.type !== 'turn.started' || event.agent !== agent || event.turn !== turn || event.attempt !== attempt || event.at !== at)
      break
    const asked = event.message
    if (asked.kind !== 'request' || asked.from !== message.from || (asked.value !== undefined) !== asks) break
    branches.push(event.branch)
    if (asks) values.push(asked.value)
    left -= charactersOf(event.branch, asked.value)
  }
  if (branches.length < packMin) return null
  return { pack: { pack: 'started', seq, at, agent, turn, attempt, from: message.from, branches, ...(asks && { values }) }, room: left }
}

function repliedFrom(events: readonly Event[], from: number, end: number, room: number, first: Of<'turn.completed'>): Found | null {
  const { seq, at, agent, turn, attempt, action } = first
  const barrier = events[from + 1]
  if (action.type !== 'reply' || barrier?.type !== 'barrier.arrived') return null
  const says = action.value !== undefined
  const branches: string[] = []
  const slots: number[] = []
  const values: unknown[] = []
  let left = room
  for (let place = from; place + 2 < end && left > 0; place += 3) {
    const completed = events[place]
    const arrived = events[place + 1]
    const settled = events[place + 2]
    if (completed?.type !== 'turn.completed' || arrived?.type !== 'barrier.arrived' || settled?.type !== 'branch.settled') break
    const { branch, action: given } = completed
    if (completed.agent !== agent || completed.turn !== turn || completed.attempt !== attempt || completed.at !== at) break
    if (given.type !== 'reply' || given.state !== undefined || (given.value !== undefined) !== says) break
    if (arrived.barrier !== barrier.barrier || arrived.by !== agent || arrived.branch !== branch) break
    if (settled.branch !== branch || settled.status !== 'arrived' || arrived.at !== at || settled.at !== at) break
    branches.push(branch)
    slots.push(arrived.slot)
    if (says) values.push(given.value)
    left -= charactersOf(branch, given.value)
  }
  if (branches.length < packMin) return null
  const of = { seq, at, agent, turn, attempt, barrier: barrier.barrier }
  return { pack: { pack: 'replied', ...of, branches, slots, ...(says && { values }) }, room: left }
}

/** The events that a pack stands for. */
export function unpacked(pack: Pack): Event[] {
  const { seq, at, branches } = pack
  switch (pack.pack) {
    case 'opened': {
      const { parent, to, barrier, slot } = pack
      return branches.map((branch, place) => ({
        seq: seq + place,
        at,
        type: 'branch.opened',
        branch,
        parent,
        to,
        barrier,
        slot: slot + place,
      }))
    }
    case 'started': {
      const { agent, turn, attempt, from, values } = pack
      return branches.map((branch, place) => ({
        seq: seq + place,
        at,
        type: 'turn.started',
        branch,
        agent,
        turn,
        attempt,
        message: { kind: 'request', from, ...(values !== undefined && { value: values[place] }) },
      }))
    }
    case 'replied': {
      const { agent, turn, attempt, barrier, slots, values } = pack
      return branches.flatMap((branch, place) => {
        const next = seq + 3 * place
        const action = { type: 'reply', ...(values !== undefined && { value: values[place] }) } as const
        return [
          { seq: next, at, type: 'turn.completed', branch, agent, turn, attempt, action },
          { seq: next + 1, at, type: 'barrier.arrived', barrier, slot: slots[place] ?? 0, by: agent, branch },
          { seq: next + 2, at, type: 'branch.settled', branch, status: 'arrived' },
        ] satisfies Event[]
      })
    }
  }
}
