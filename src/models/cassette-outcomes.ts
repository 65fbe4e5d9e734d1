import { sameJson } from '../kernel/json.js'
import { type CassetteEntry, placeText } from './cassette-entry.js'
import { isBrokenOff } from './model-answer.js'

/**
 * What came of each call, of all that was written down.
 *
 * 1. Only what failed is tried again: what the same run has next at the same place takes its place.
 * 2. Whatever else has the same place and asks the same is of another run. Where all were answered alike, they are one; else each keeps its run.
 */
export function outcomesIn(entries: readonly CassetteEntry[]): readonly CassetteEntry[] {
  const calls = new Map<string, CassetteEntry[]>()
  for (const entry of entries) {
    const key = `${placeText(entry)} ${entry.hash}`
    const known = calls.get(key) ?? []
    calls.set(key, known)
    const place = known.findLastIndex(({ run }) => run === entry.run)
    const before = known[place]
    if (before !== undefined && hasFailed(before)) known[place] = after(before, entry)
    else if (!known.some(({ run, answer }) => run === entry.run && sameJson(answer, entry.answer))) known.push(entry)
  }
  return [...calls.values()].flatMap(toldApart)
}

function toldApart(known: readonly CassetteEntry[]): readonly CassetteEntry[] {
  const [first, ...others] = known
  if (first === undefined || others.some(({ answer }) => !sameJson(answer, first.answer))) return known
  const { run: _, ...entry } = first
  return [entry]
}

const hasFailed = ({ answer }: CassetteEntry): boolean => 'error' in answer || isBrokenOff(answer.finishReason)

/** A call that was tried again. */
function after(before: CassetteEntry, entry: CassetteEntry): CassetteEntry {
  const { answer } = entry
  if (!('error' in before.answer) || !('error' in answer)) return entry
  return { ...entry, answer: { error: { ...answer.error, attempts: (before.answer.error.attempts ?? 1) + 1 } } }
}
