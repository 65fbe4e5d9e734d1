import { vi } from 'vitest'
import { Trie } from '../../src/kernel/trie.js'

/** How many entries of the collections of all runs are looked at while something happens, where it is not one that is looked up. */
export async function handedOut(during: () => Promise<void>): Promise<number> {
  const { values, keys, entries } = Trie.prototype
  let handed = 0
  const counted = <T>(of: () => T) =>
    function (this: Trie<unknown>): T {
      handed += this.size
      return of.call(this)
    }
  const spies = [
    vi.spyOn(Trie.prototype, 'values').mockImplementation(counted(values)),
    vi.spyOn(Trie.prototype, 'keys').mockImplementation(counted(keys)),
    vi.spyOn(Trie.prototype, 'entries').mockImplementation(counted(entries)),
  ]
  try {
    await during()
  } finally {
    for (const spy of spies) spy.mockRestore()
  }
  return handed
}
