import type { Append, Executable, Store, Verdict } from '../engine/store.js'

/** One thing that every store promises, and how to find out whether it holds. */
export interface StoreCheck<S = OneStore> {
  readonly promise: string
  readonly holds: (stores: S) => Promise<void>
}

export interface OneStore {
  readonly store: Store
}

/** `again`: another handle on the same data, which not everybody can open. */
export interface TwoHandles extends OneStore {
  readonly again: () => Promise<Store>
}

export const executable: readonly Executable[] = [{ name: 'trip', versions: ['1'] }]
const create = { definition: 'trip', version: '1', tags: {} }

/** The append that starts a run, with one event. */
export function starting(run: string, by: number, more: Partial<Append> = {}): Append {
  return { run, create, expect: 0, head: 1, by, at: 1_000, rows: [{ seq: 1, n: 1, body: '["started"]' }], ...more }
}

/** The append of one event after `expect`. */
export function adding(run: string, by: number, expect: number, more: Partial<Append> = {}): Append {
  return { run, expect, head: expect + 1, by, at: 2_000, rows: [{ seq: expect + 1, n: 1, body: `["event ${expect + 1}"]` }], ...more }
}

/** Commits, and says of the first item that is refused why. */
export async function commit(store: Store, ...batch: Parameters<Store['commit']>[0]): Promise<readonly Verdict[]> {
  const verdicts = await store.commit(batch)
  const refused = verdicts.find(({ ok }) => !ok)
  if (refused !== undefined) throw new Error(`an item was refused: ${JSON.stringify(refused)}`)
  return verdicts
}

export async function joined(store: Store): Promise<number> {
  return store.join({ nonce: crypto.randomUUID() })
}

/** Waits for a promise of the store that has no time of its own, but not for ever. */
export async function within<T>(ms: number, what: string, promise: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`${what} took longer than ${ms} ms`)), ms)
  })
  try {
    return await Promise.race([promise, late])
  } finally {
    clearTimeout(timer)
  }
}
