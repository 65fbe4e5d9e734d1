import { digestOf } from '../define/digest.js'
import { compareIds } from '../kernel/ids.js'
import { toJson } from '../kernel/json.js'
import type { AnyPart } from './answer-parts.js'
import { placeOf } from './call-place.js'
import type { Environment } from './model-choice.js'
import { secretsOf, withoutSecrets } from './secrets.js'

/** One call of a model as a cassette keeps it: where, what was asked, what was answered. */
export interface CassetteEntry extends CassettePlace {
  /** The id of the run that somebody has started. What is closed has it only where runs were answered differently: it is another each time. */
  readonly run?: string
  readonly model: string
  /** Of `request`. */
  readonly hash: string
  readonly request: unknown
  readonly answer:
    | { readonly content: readonly AnyPart[]; readonly finishReason: unknown; readonly usage: unknown; readonly providerMetadata?: unknown }
    /** `attempts`: how often it was tried, if more than once; `givenUp`: nobody waited for the answer any more, so there is none. */
    | { readonly error: { readonly message: string; readonly status?: number; readonly attempts?: number; readonly givenUp?: true } }
}

/** Where in a run a call was made. */
export interface CassettePlace {
  /** Of a child run: what its id adds to that of the run that somebody has started. */
  readonly child?: string
  readonly agent: string
  readonly branch: string
  readonly turn: number
  readonly call: number
}

/** Headers may hold keys, the signal is of the moment, and the place has its own fields: the rest of a call is what was asked. */
const unasked = new Set(['headers', 'abortSignal', 'providerOptions', 'includeRawChunks'])

/** What was asked, as JSON, without the secrets of this process. */
export function requestOf(options: object, env: Environment): unknown {
  const asked = Object.entries(options).filter(([key, value]) => !unasked.has(key) && value !== undefined)
  return plain(Object.fromEntries(asked), env)
}

/** The place of a call. One that is made outside of a run is counted by what was said before. */
export function cassettePlace(
  agent: string,
  options: { readonly prompt: readonly { readonly role: string }[]; readonly providerOptions?: unknown },
): CassettePlace {
  const place = placeOf(options)
  const { branch = 'r', turn = 1, call = options.prompt.filter(({ role }) => role === 'assistant').length } = place ?? {}
  const child = /:.*/.exec(place?.run ?? '')?.[0]
  return { ...(child !== undefined && { child }), agent, branch, turn, call }
}

/** A place, for people, and to tell it from others. */
export const placeText = ({ child, agent, branch, turn, call }: CassettePlace): string =>
  `${child === undefined ? '' : `child run ${child.slice(1)}, `}${agent}, branch ${branch}, turn ${turn}, call ${call}`

/** The run that somebody has started, and in which a call is made; undefined outside of one. */
export const runOf = (options: { readonly providerOptions?: unknown }): string | undefined =>
  /^[^:]+/.exec(placeOf(options)?.run ?? '')?.[0]

export const hashOf = (request: unknown): string => digestOf(request)

/** By the order of a run, so that two recordings of one run are the same lines in the same order. */
export function compareEntries(a: CassetteEntry, b: CassetteEntry): number {
  return (
    compareChildren(a, b) ||
    compareIds(a.branch, b.branch) ||
    a.turn - b.turn ||
    a.call - b.call ||
    compareTexts(a.agent, b.agent) ||
    compareTexts(a.hash, b.hash) ||
    compareTexts(a.run ?? '', b.run ?? '')
  )
}

/** Items by their number. */
const compareChildren = ({ child: a = '' }: CassettePlace, { child: b = '' }: CassettePlace): number =>
  a.localeCompare(b, 'en', { numeric: true }) || compareTexts(a, b)

const compareTexts = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0)

/** A value as it comes out of a file again, with no secret in it. */
export function plain(value: unknown, env: Environment): unknown {
  const secrets = secretsOf(env)
  const text = JSON.stringify(value, (_, item: unknown) => {
    if (item instanceof Uint8Array) return Buffer.from(item).toString('base64')
    return typeof item === 'string' ? withoutSecrets(item, secrets) : item
  })
  return text === undefined ? null : (JSON.parse(text) as unknown)
}

/** The first line of every cassette. */
export const cassetteHead: { readonly cassette: 'tutti'; readonly version: 1 } = { cassette: 'tutti', version: 1 }

/** The entries of a cassette, or what is wrong with it. */
export function entriesIn(text: string): { readonly entries: readonly CassetteEntry[] } | { readonly problem: string } {
  const lines = text.split('\n').filter((line) => line.trim() !== '')
  const values: unknown[] = []
  for (const [index, line] of lines.entries()) {
    try {
      values.push(JSON.parse(line))
    } catch {
      return { problem: `line ${index + 1} is no JSON` }
    }
  }
  const [head, ...rest] = values as [Partial<typeof cassetteHead>?, ...unknown[]]
  if (head?.cassette !== 'tutti') return { problem: 'it does not begin as a cassette does' }
  if (head.version !== 1) return { problem: 'a later version of tutti has written it' }
  const bad = rest.findIndex((value) => !isEntry(value))
  return bad === -1 ? { entries: rest as readonly CassetteEntry[] } : { problem: `line ${bad + 2} is no call of a model` }
}

function isEntry(value: unknown): value is CassetteEntry {
  const entry = value as Partial<CassetteEntry> | null
  if (typeof entry !== 'object' || entry === null || 'problem' in toJson(entry)) return false
  const texts = [entry.agent, entry.branch, entry.model, entry.hash]
  const { answer } = entry
  if ([entry.child, entry.run].some((text) => text !== undefined && typeof text !== 'string')) return false
  if (texts.some((text) => typeof text !== 'string') || !Number.isInteger(entry.turn) || !Number.isInteger(entry.call)) return false
  return typeof answer === 'object' && answer !== null && ('error' in answer || Array.isArray(answer.content))
}
