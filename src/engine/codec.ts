import { createHash } from 'node:crypto'
import type { Event } from '../kernel/event.js'
import type { State } from '../kernel/state.js'
import { loadState, saveState, snapshotVersion } from '../kernel/snapshot.js'
import { deepFreeze } from './deep-freeze.js'
import type { EventRow, Snapshot } from './store.js'

/** How many events share a row of the store. */
const perRow = 256
/** A value with more characters than this is stored once, by its hash. */
const blobMin = 64 * 1024

export interface Blob {
  readonly hash: string
  readonly body: string
}

/** Stands for a value that is stored by its hash. Objects of users that look like one are wrapped, so that none is taken for it. */
const refKey = '$tutti.blob'
const wrapKey = '$tutti.plain'

/** Events as rows of JSON text, with the values that are too large to stand in them. */
export function encodeEvents(events: readonly Event[]): { readonly rows: readonly EventRow[]; readonly blobs: readonly Blob[] } {
  const rows: EventRow[] = []
  const blobs = new Map<string, string>()
  for (let from = 0; from < events.length; from += perRow) {
    const part = events.length <= perRow ? events : events.slice(from, from + perRow)
    rows.push({ seq: part[0]?.seq ?? 0, n: part.length, body: encode(part, blobs) })
  }
  return { rows, blobs: [...blobs].map(([hash, body]) => ({ hash, body })) }
}

function encode(events: readonly Event[], blobs: Map<string, string>): string {
  const text = JSON.stringify(events)
  return isPlain(text) ? text : `[${events.map((event) => partsOf(event, blobs)).join(',')}]`
}

/** Whether a text is small enough to stand where it is, and has nothing in it that could be taken for a reference. */
const isPlain = (text: string): boolean => text.length < blobMin && !text.includes('"$tutti.')

/** A value as JSON text: itself, or a reference to where it is stored. */
function textOf(value: unknown, blobs: Map<string, string>): string {
  const whole = JSON.stringify(value) ?? 'null'
  if (isPlain(whole)) return whole
  const text = typeof value === 'object' && value !== null ? partsOf(value, blobs) : whole
  return text.length < blobMin ? text : refTo(text, blobs)
}

function partsOf(value: object, blobs: Map<string, string>): string {
  if (Array.isArray(value)) return `[${value.map((item) => textOf(item, blobs)).join(',')}]`
  const parts = Object.entries(value).flatMap(([key, item]) =>
    item === undefined ? [] : [`${JSON.stringify(key)}:${textOf(item, blobs)}`],
  )
  const text = `{${parts.join(',')}}`
  return Object.hasOwn(value, refKey) || Object.hasOwn(value, wrapKey) ? `{"${wrapKey}":${text}}` : text
}

function refTo(body: string, blobs: Map<string, string>): string {
  const hash = createHash('sha256').update(body).digest('hex')
  blobs.set(hash, body)
  return `{"${refKey}":"${hash}"}`
}

/** The events of rows that come after a sequence number; `blob` finds what stands elsewhere. */
export async function decodeEvents(
  rows: readonly EventRow[],
  after: number,
  blob: (hash: string) => Promise<string | null>,
): Promise<Event[]> {
  const events: Event[] = []
  for (const { body } of rows) {
    const parsed = JSON.parse(body) as Event[]
    const whole = body.includes('"$tutti.') ? ((await joined(parsed, blob)) as Event[]) : parsed
    for (const event of whole) if (event.seq > after) events.push(deepFreeze(event))
  }
  return events
}

async function joined(value: unknown, blob: (hash: string) => Promise<string | null>): Promise<unknown> {
  if (typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) return Promise.all(value.map((item) => joined(item, blob)))
  const record = value as Record<string, unknown>
  const hash = record[refKey]
  if (typeof hash === 'string') {
    const body = await blob(hash)
    if (body === null) throw new Error(`the value ${hash} is missing from the store`)
    return joined(JSON.parse(body), blob)
  }
  const inner = record[wrapKey]
  const plain = typeof inner === 'object' && inner !== null ? (inner as Record<string, unknown>) : record
  return Object.fromEntries(await Promise.all(Object.entries(plain).map(async ([key, item]) => [key, await joined(item, blob)] as const)))
}

/** A state as a snapshot. It is written whole: what is large in it is in the journal's rows of the same store anyway. */
export function encodeSnapshot(state: State): Snapshot {
  return { seq: state.seq, version: snapshotVersion, body: JSON.stringify(saveState(state)) }
}

/** The state of a snapshot, or null if it is of another format: then the journal is read from its start. */
export function decodeSnapshot(snapshot: Snapshot | null): State | null {
  if (snapshot === null || snapshot.version !== snapshotVersion) return null
  return loadState(deepFreeze(JSON.parse(snapshot.body)))
}
