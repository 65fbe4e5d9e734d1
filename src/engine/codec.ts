import { createHash } from 'node:crypto'
import { TuttiError } from '../define/tutti-error.js'
import type { Event } from '../kernel/event.js'
import type { State } from '../kernel/state.js'
import { loadState, saveState, snapshotVersion } from '../kernel/snapshot.js'
import { deepFreeze } from '../kernel/deep-freeze.js'
import { countOf, isPack, type Pack, packAt, packMin, unpacked } from './packing.js'
import type { EventRow, Snapshot } from './store.js'

/** How many events share a row of the store: so many of any kind, and so many that several of them are written as one. */
const perRow = 256
const packedPerRow = 1_024
/** For about how many characters there is room where several are written as one, and what another event takes of that. */
const packedCharacters = 40 * 1024
const eventCharacters = 200
/** A value with more characters than this is stored once, by its hash. */
const blobMin = 64 * 1024

export interface Blob {
  readonly hash: string
  readonly body: string
}

/** Stands for a value that is stored by its hash. Objects of users that look like one are wrapped, so that none is taken for it. */
const refMark = '$tutti.'
const refKey = '$tutti.blob'
const wrapKey = '$tutti.plain'
/** Says of the first event of a row who wrote it. */
const viaKey = 'via'

interface Encoded {
  readonly rows: readonly EventRow[]
  readonly blobs: readonly Blob[]
}

/** Events as rows of JSON text, with the values that are too large to stand in them. */
export function encodeEvents(events: readonly Event[]): Encoded {
  // Most are few and small.
  const areFew = events.length > 0 && events.length < packMin && !events.some(isVast)
  if (areFew) {
    const body = jsonOf(events)
    if (body !== null && isPlain(body)) return { rows: [{ seq: events[0]?.seq ?? 0, n: events.length, body }], blobs: none }
  }
  const rows: EventRow[] = []
  // Made when it is needed: most rows have nothing that stands elsewhere.
  let blobs: Map<string, string> | null = null
  for (let from = 0; from < events.length; ) {
    const seq = events[from]?.seq ?? 0
    const { items, n, isLarge } = areFew ? { items: events, n: events.length, isLarge: true } : rowFrom(events, from)
    const body = isLarge ? null : jsonOf(items)
    if (body !== null && isPlain(body)) {
      rows.push({ seq, n, body })
      from += n
    } else {
      // What has something large in it is written event by event.
      const part = events.slice(from, from + Math.min(n, perRow))
      const into = (blobs ??= new Map<string, string>())
      // What is known to be large need not be written whole to see that.
      const isKnown = isLarge || part.length === 1
      const text = isKnown ? part.map((event) => partsOf(event, into)).join(',') : itemsOf(part, partsOf, into)
      rows.push({ seq, n: part.length, body: `[${text}]` })
      from += part.length
    }
  }
  return { rows, blobs: blobs === null ? none : Array.from(blobs, ([hash, body]) => ({ hash, body })) }
}

const none: readonly Blob[] = Object.freeze([])

/** The same rows, by whom they are: another may write equal events at the same moment. Who reads the events is not told, nor disturbed. */
export function signed(rows: readonly EventRow[], worker: number): readonly EventRow[] {
  const [first, ...others] = rows
  return first === undefined ? rows : [{ ...first, body: `[{"${viaKey}":${worker},${first.body.slice('[{'.length)}` }, ...others]
}

interface Row {
  readonly items: readonly (Event | Pack)[]
  /** How many events these are. */
  readonly n: number
  /** It has what is larger than what may stand in a row, for sure. */
  readonly isLarge: boolean
}

/** What one row has of the events from a place on. */
function rowFrom(events: readonly Event[], from: number): Row {
  const items: (Event | Pack)[] = []
  const end = Math.min(events.length, from + packedPerRow)
  let plain = 0
  let next = from
  let room = packedCharacters
  while (next < end && plain < perRow && room > 0) {
    const event = events[next]
    if (event === undefined) break
    // One that is large by itself is a row by itself: the others need not be written twice for it.
    if (isVast(event)) {
      if (next > from) break
      return { items: [event], n: 1, isLarge: true }
    }
    const found = packAt(events, next, end, room)
    if (found === null) {
      items.push(event)
      next++
      // Without packs there is room for so many of them.
      if (++plain < next - from) room -= eventCharacters
    } else {
      items.push(found.pack)
      next += countOf(found.pack)
      room = found.room
      // What is left has no room for another pack, which may begin the next row.
      if (end - next < packMin) break
    }
  }
  return { items, n: next - from, isLarge: false }
}

function isVast(event: Event): boolean {
  if (event.type === 'turn.completed') return event.action.type === 'fork' && event.action.calls.length > callsMax
  return event.type === 'turn.started' && event.message.kind === 'join' && event.message.join.slots.length > slotsMax
}

/** A call has this many characters at least: `{"to":"A"},`; and a slot these: `{"index":0,"to":"A","status":"failed","by":null},`. */
const callsMax = blobMin / 11
const slotsMax = blobMin / 47

/** A value as JSON; null if that would be longer than a string can be: dozens of the largest values together are. */
function jsonOf(value: unknown): string | null {
  try {
    return JSON.stringify(value)
  } catch (error) {
    if (error instanceof RangeError) return null
    throw error
  }
}

/** Whether a text is small enough to stand where it is, and has nothing in it that could be taken for a reference. */
const isPlain = (text: string): boolean => text.length < blobMin && !hasRefs(text)

/** Whether there may be a reference in a text. Not looked for with the quote before it: JSON is full of those, and each is a place to look. */
const hasRefs = (text: string): boolean => text.indexOf(refMark) !== -1

/** A value as JSON text: itself, or a reference to where it is stored. */
function textOf(value: unknown, blobs: Map<string, string>): string {
  if (lengthOf(value, blobMin) < blobMin || typeof value === 'string') {
    const whole = JSON.stringify(value) ?? 'null'
    if (isPlain(whole)) return whole
    if (typeof value === 'string') return whole.length < blobMin ? whole : refTo(whole, blobs)
  }
  const text = partsOf(value as object, blobs)
  return text.length < blobMin ? text : refTo(text, blobs)
}

/** Whether values are large together, as those that are written elsewhere are one by one. */
export function areLarge(values: Iterable<unknown>): boolean {
  let room = blobMin
  for (const value of values) {
    room -= lengthOf(value, room)
    if (room <= 0) return true
  }
  return false
}

/** At least how many characters a value has as JSON, counted up to a limit: so that what is large need not be written to be known for it. */
function lengthOf(value: unknown, most: number): number {
  if (typeof value === 'string') return value.length + 2
  if (typeof value !== 'object' || value === null) return 1
  let length = 2
  if (Array.isArray(value)) {
    for (let place = 0; place < value.length && length < most; place++) length += 1 + lengthOf(value[place], most - length)
    return length
  }
  for (const key in value) {
    const item = (value as Record<string, unknown>)[key]
    if (item !== undefined) length += key.length + 4 + lengthOf(item, most - length)
    if (length >= most) return length
  }
  return length
}

function partsOf(value: object, blobs: Map<string, string>): string {
  if (Array.isArray(value)) return `[${itemsOf(value, textOf, blobs)}]`
  let parts = ''
  for (const [key, item] of Object.entries(value)) {
    if (item !== undefined) parts += `${parts === '' ? '' : ','}${JSON.stringify(key)}:${textOf(item, blobs)}`
  }
  const text = `{${parts}}`
  return Object.hasOwn(value, refKey) || Object.hasOwn(value, wrapKey) ? `{"${wrapKey}":${text}}` : text
}

/** Many at a time: what is small together is small each. */
function itemsOf<T>(items: readonly T[], partOf: (item: T, blobs: Map<string, string>) => string, blobs: Map<string, string>): string {
  const texts: string[] = []
  for (let from = 0; from < items.length; from += together) {
    const some = items.slice(from, from + together)
    const text = jsonOf(some)
    if (text !== null && isPlain(text)) texts.push(text.slice(1, -1))
    else for (const item of some) texts.push(partOf(item, blobs))
  }
  return texts.join(',')
}

const together = 64

function refTo(body: string, blobs: Map<string, string>): string {
  const hash = createHash('sha256').update(body).digest('hex')
  blobs.set(hash, body)
  return `{"${refKey}":"${hash}"}`
}

/** The events of rows that come after a sequence number, none missing; `blob` finds what stands elsewhere. */
export async function decodeEvents(
  rows: readonly EventRow[],
  after: number,
  blob: (hash: string) => Promise<string | null>,
): Promise<Event[]> {
  const events: Event[] = []
  const parts = new Map<string, Part>()
  for (const { seq, n, body } of rows) {
    const parsed = parse(body, seq)
    if (parsed.length !== n) throw new JournalDamaged(`${parsed.length} of ${n} events from ${seq} on are there`)
    if (hasRefs(body)) {
      await read(parsed, blob, parts)
      filled(parsed, parts)
    }
    for (const event of parsed) {
      if (event.seq <= after) continue
      const next = after + events.length + 1
      if (event.seq !== next) throw new JournalDamaged(`event ${next} is not there`)
      events.push(deepFreeze(event))
    }
  }
  return events
}

function parse(body: string, seq: number): Event[] {
  try {
    const items = JSON.parse(body) as ((Event | Pack) & { [viaKey]?: number })[]
    if (items[0]?.[viaKey] !== undefined) delete items[0][viaKey]
    const events = items.some(isPack) ? items.flatMap((item) => (isPack(item) ? unpacked(item) : item)) : (items as Event[])
    return numbered(events)
  } catch (cause) {
    throw new JournalDamaged(`what is there from event ${seq} on can't be read`, cause)
  }
}

/** Rows of before say the number and the time of their first event only, and noughts for the others. */
function numbered(events: Event[]): Event[] {
  const [first, second] = events
  if (first === undefined || second?.seq !== 0) return events
  return events.map((event, place) => ({ ...event, seq: first.seq + place, at: first.at }))
}

/** A journal that is not whole is not gone on with: what would come of it is not what has happened. */
export class JournalDamaged extends TuttiError {
  readonly #what: string

  constructor(what: string, cause?: unknown, run?: string) {
    super('STORE_UNAVAILABLE', `the journal of the run ${run === undefined ? '' : `${run} `}is damaged: ${what}`, {
      hint: 'restore the store from a backup; other runs of it are not concerned',
      cause,
    })
    this.#what = what
  }

  /** The same, saying whose journal it is. */
  of(run: string): JournalDamaged {
    return new JournalDamaged(this.#what, this.cause, run)
  }
}

/** A value that stands elsewhere. `isFilled`: what stands elsewhere again is in its place. */
interface Part {
  value: unknown
  isFilled: boolean
}

/** Reads all that a value refers to, each once. */
async function read(value: unknown, blob: (hash: string) => Promise<string | null>, parts: Map<string, Part>): Promise<void> {
  // What is found on the way is read too.
  const hashes = new Set<string>()
  refsIn(value, hashes)
  for (const hash of hashes) {
    if (parts.has(hash)) continue
    const body = await blob(hash)
    if (body === null) throw new JournalDamaged(`the value ${hash} is not there`)
    const part = { value: JSON.parse(body) as unknown, isFilled: !hasRefs(body) }
    parts.set(hash, part)
    if (!part.isFilled) refsIn(part.value, hashes)
  }
}

function refsIn(value: unknown, hashes: Set<string>): void {
  if (typeof value !== 'object' || value === null) return
  const hash = (value as Record<string, unknown>)[refKey]
  if (typeof hash === 'string') hashes.add(hash)
  else for (const item of Object.values(unwrapped(value))) refsIn(item, hashes)
}

/** Puts what stands elsewhere in its place, in a value that is nobody else's yet. */
function filled(value: unknown, parts: Map<string, Part>): unknown {
  if (typeof value !== 'object' || value === null) return value
  const hash = (value as Record<string, unknown>)[refKey]
  if (typeof hash === 'string') return filledPart(parts.get(hash), parts)
  const plain = unwrapped(value)
  for (const [key, item] of Object.entries(plain)) if (typeof item === 'object') plain[key] = filled(item, parts)
  return plain
}

/** Once: an object of a user that looks like a reference is one no more when it has been unwrapped. */
function filledPart(part: Part | undefined, parts: Map<string, Part>): unknown {
  if (part === undefined || part.isFilled) return part?.value
  part.isFilled = true
  part.value = filled(part.value, parts)
  return part.value
}

/** An object with its own entries, also if it was wrapped. */
function unwrapped(value: object): Record<string, unknown> {
  const inner = (value as Record<string, unknown>)[wrapKey]
  return typeof inner === 'object' && inner !== null ? (inner as Record<string, unknown>) : (value as Record<string, unknown>)
}

/** A state as a snapshot, or null if there is too much in it. It is written whole: what is large in it is in the journal's rows of the same store anyway. */
export function encodeSnapshot(state: State): Snapshot | null {
  const body = jsonOf(saveState(state))
  return body === null ? null : { seq: state.seq, version: snapshotVersion, body }
}

/** The state of a snapshot, or null if it is of another format: then the journal is read from its start. */
export function decodeSnapshot(snapshot: Snapshot | null): State | null {
  if (snapshot === null || snapshot.version !== snapshotVersion) return null
  return loadState(deepFreeze(JSON.parse(snapshot.body)))
}
