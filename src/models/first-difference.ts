/** Where two values differ first, in words: the path to it, and both sides of it, short. undefined if they are the same. */
export function firstDifference(recorded: unknown, now: unknown, path = ''): string | undefined {
  if (typeof recorded === 'string' && typeof now === 'string') return inText(recorded, now, path)
  if (typeof recorded !== 'object' || typeof now !== 'object' || recorded === null || now === null)
    return recorded === now ? undefined : `${at(path)}: recorded ${short(recorded)}, now ${short(now)}`
  const left = recorded as Readonly<Record<string, unknown>>
  const right = now as Readonly<Record<string, unknown>>
  const list = Array.isArray(recorded)
  for (const key of new Set([...Object.keys(left), ...Object.keys(right)])) {
    const found = firstDifference(left[key], right[key], list ? `${path}[${key}]` : path === '' ? key : `${path}.${key}`)
    if (found !== undefined) return found
  }
  return undefined
}

const around = 30

function inText(recorded: string, now: string, path: string): string | undefined {
  if (recorded === now) return undefined
  let same = 0
  while (same < recorded.length && recorded[same] === now[same]) same++
  const from = Math.max(0, same - around)
  const shown = (text: string) => `${from > 0 ? '…' : ''}${text.slice(from, same + around)}${text.length > same + around ? '…' : ''}`
  return `${at(path)}, from character ${same + 1}: recorded ${JSON.stringify(shown(recorded))}, now ${JSON.stringify(shown(now))}`
}

const at = (path: string): string => (path === '' ? 'the whole' : path)

function short(value: unknown): string {
  if (value === undefined) return 'nothing'
  const text = JSON.stringify(value)
  return text.length > 2 * around ? `${text.slice(0, 2 * around)}…` : text
}
