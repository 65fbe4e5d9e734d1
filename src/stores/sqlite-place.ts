import { statSync } from 'node:fs'
import { TuttiError } from '../define/tutti-error.js'

/** How often to look at most: what is written in between may be lost. */
const restMs = 100

/**
 * Refuses to write once the files of a store are not where they were opened. The system keeps what was removed for those who have it open,
 * and it is gone when they end: whatever they were told until then.
 */
export function placeOf(path: string): () => void {
  const files = [path, `${path}-wal`].map((file) => ({ file, id: identityOf(file) }))
  let lookedAt = performance.now()
  let isThere = true
  return () => {
    const now = performance.now()
    if (isThere && now - lookedAt < restMs) return
    lookedAt = now
    isThere = files.every(({ file, id }) => isSame(id, identityOf(file)))
    if (!isThere)
      throw new TuttiError('STORE_UNAVAILABLE', `${path} was removed or replaced while it was open`, {
        hint: 'nothing of this was written; put it back with its -wal file, or close this engine and open what is there now',
      })
  }
}

const isSame = (before: string | null, now: string | null): boolean => before === null || now === null || before === now

/** Null: nobody can say. */
function identityOf(file: string): string | null {
  try {
    const { dev, ino } = statSync(file, { bigint: true })
    return `${dev}/${ino}`
  } catch (error) {
    return (error as { readonly code?: unknown }).code === 'ENOENT' ? 'not there' : null
  }
}
