import { TuttiError } from 'tutti'
import type { Append, Put, Store } from '../../src/engine/store.js'

type Batch = readonly (Append | Put)[]

export interface Lossy {
  readonly store: Store
  /** How many commits there were. */
  commits(): number
  /** How many were done and not acknowledged. */
  lost(): number
}

const lost = (): TuttiError => new TuttiError('STORE_UNAVAILABLE', 'the acknowledgement was lost')

/** A store that does a commit and then fails, where it is told to; `blind`: so many reads after it fail as well. */
export function lossy(inner: Store, loses: (batch: Batch, number: number) => boolean, blind = 0): Lossy {
  let commits = 0
  let losses = 0
  let left = 0
  const store: Store = {
    ...inner,
    commit: async (batch) => {
      const loss = loses(batch, commits++)
      const verdicts = await inner.commit(batch)
      if (!loss) return verdicts
      losses++
      left = blind
      throw lost()
    },
    load: (run, options) => (left-- > 0 ? Promise.reject(lost()) : inner.load(run, options)),
  }
  return { store, commits: () => commits, lost: () => losses }
}

/** Loses the first acknowledgement of what says something. */
export function losing(inner: Store, text: string, blind = 0): Lossy {
  const made = lossy(inner, (batch) => made.lost() === 0 && JSON.stringify(batch).includes(text), blind)
  return made
}

/** Fails the first commits in which a run is said something, which are not done, and the read after each. */
export function refusing(inner: Store, run: string, text: string, times: number): { readonly store: Store; refused(): number } {
  let refused = 0
  let isBlind = false
  const isMeant = (part: Append | Put): boolean => 'run' in part && part.run === run && JSON.stringify(part).includes(text)
  const store: Store = {
    ...inner,
    commit: (batch) => {
      if (refused === times || !batch.some(isMeant)) return inner.commit(batch)
      refused++
      isBlind = true
      return Promise.reject(lost())
    },
    load: (of, options) => {
      const fails = isBlind
      isBlind = false
      return fails ? Promise.reject(lost()) : inner.load(of, options)
    },
  }
  return { store, refused: () => refused }
}

/** Asks again while the store is out of reach, as whoever has an idempotency key does. */
export async function again<T>(ask: () => Promise<T>): Promise<T> {
  for (let tries = 1; ; tries++) {
    try {
      return await ask()
    } catch (error) {
      if (tries === 50 || !TuttiError.is(error, 'STORE_UNAVAILABLE')) throw error
      await new Promise((resolve) => setTimeout(resolve, 1))
    }
  }
}
