import type { Class, Outcome } from './outcome.js'
import { eventsOf } from './outcome.js'

/** One place in which two outcomes differ. */
export interface Difference {
  readonly where: string
  readonly a: string
  readonly b: string
}

const linesMax = 12
const longest = 160
/** So much is shown before the first difference. */
const around = 60

/** Where two outcomes differ, in what makes their class. */
export function differencesOf(kind: Class, a: Outcome, b: Outcome): Difference[] {
  switch (kind) {
    case 'effect-count':
      return lines('effect', a.effects?.bag ?? '', b.effects?.bag ?? '')
    case 'effect-order':
      return byKey(a.effects?.order ?? '', b.effects?.order ?? '')
    case 'prompt':
      return lines('shown', a.shown, b.shown)
    case 'order':
      return lines('event', eventsOf(a), eventsOf(b))
    default:
      return told(a, b)
  }
}

function told(a: Outcome, b: Outcome): Difference[] {
  const [reportA, observedA] = JSON.parse(a.told) as [Record<string, unknown>, unknown]
  const [reportB, observedB] = JSON.parse(b.told) as [Record<string, unknown>, unknown]
  const found: Difference[] = []
  // What users look at first is told first.
  for (const key of ['status', 'output', 'error']) leaves(key, reportA[key], reportB[key], found)
  leaves('observed', observedA, observedB, found)
  if (found.length > 0) return found
  for (const key of Object.keys(reportA))
    if (!['status', 'output', 'error'].includes(key)) leaves(`report.${key}`, reportA[key], reportB[key], found)
  return found.slice(0, linesMax)
}

function leaves(where: string, a: unknown, b: unknown, found: Difference[]): void {
  if (JSON.stringify(a) === JSON.stringify(b) || found.length >= linesMax) return
  if (isRecord(a) && isRecord(b)) {
    const keys = [...new Set([...Object.keys(a), ...Object.keys(b)])]
    const before = found.length
    for (const key of keys) leaves(Array.isArray(a) ? `${where}[${key}]` : `${where}.${key}`, a[key], b[key], found)
    // The same entries in another order.
    if (found.length === before)
      found.push({ where: `${where} (order of keys)`, a: Object.keys(a).join(', '), b: Object.keys(b).join(', ') })
    return
  }
  found.push({ where, ...beside(shown(a), shown(b)) })
}

const isRecord = (value: unknown): value is Record<string, unknown> => typeof value === 'object' && value !== null

const shown = (value: unknown): string => (value === undefined ? 'nothing' : JSON.stringify(value))

/** Two texts, cut so that where they differ can be seen. */
function beside(a: string, b: string): Pick<Difference, 'a' | 'b'> {
  let same = 0
  while (same < a.length && a[same] === b[same]) same++
  // What fits shows all that is before it as well.
  const from = same < longest - around ? 0 : same - around
  const cut = (text: string): string =>
    `${from > 0 ? '…' : ''}${text.slice(from, from + longest)}${text.length > from + longest ? '…' : ''}`
  return { a: cut(a), b: cut(b) }
}

/** What stands in one and not, or less often, in the other. */
function lines(where: string, a: string, b: string): Difference[] {
  const more = (one: string, other: string): string[] => {
    const left = new Map<string, number>()
    for (const line of other.split('\n')) left.set(line, (left.get(line) ?? 0) + 1)
    return one.split('\n').filter((line) => {
      const count = left.get(line) ?? 0
      left.set(line, count - 1)
      return line !== '' && count <= 0
    })
  }
  const onlyA = more(a, b)
  const onlyB = more(b, a)
  if (onlyA.length + onlyB.length === 0) return [{ where: `order of ${where}s`, ...beside(a, b) }]
  return Array.from({ length: Math.min(linesMax, Math.max(onlyA.length, onlyB.length)) }, (_, index) => ({
    where,
    ...beside(onlyA[index] ?? '—', onlyB[index] ?? '—'),
  }))
}

/** Each line is a list: a thing, and the calls that were about it. */
function byKey(a: string, b: string): Difference[] {
  const found: Difference[] = []
  const other = thingsOf(b)
  thingsOf(a).forEach(([thing = '', ...calls], index) => {
    const [, ...theirs] = other[index] ?? []
    const sides = beside(calls.join('; '), theirs.join('; '))
    if (sides.a !== sides.b) found.push({ where: `calls to ${thing.replace(/\s+/g, ' ').slice(0, longest)}`, ...sides })
  })
  return found.slice(0, linesMax)
}

const thingsOf = (order: string): readonly (readonly string[])[] =>
  order === '' ? [] : order.split('\n').map((line) => JSON.parse(line) as string[])
