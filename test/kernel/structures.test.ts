/** What the kernel is built from: tries, ids and JSON. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { ActivityLog } from '../../src/kernel/activity-log.js'
import { byId, compareIds } from '../../src/kernel/ids.js'
import { jsonSize, sameJson, toJson } from '../../src/kernel/json.js'
import { effectsOf, outstanding, owedSince } from '../../src/kernel/outstanding.js'
import { reachOf } from '../../src/kernel/reach.js'
import { SlotMap } from '../../src/kernel/slot-map.js'
import type { ActivityRecord, SettledSlot, State } from '../../src/kernel/state.js'
import { Trie } from '../../src/kernel/trie.js'
import { TurnQueue } from '../../src/kernel/turn-queue.js'
import { forks, replies } from './acts.js'
import { everyOrder, playOf } from './play.js'

/**
 * Pairs of keys whose hashes are equal. The hash takes a key one 16-bit unit at a time: two first units after which the upper halves
 * are equal leave a difference that a second unit can make up for.
 */
function twinsOf(pairs: number): string[] {
  const found: string[] = []
  const byUpperHalf = new Map<number, number>()
  for (let unit = 0x4e00; found.length < 2 * pairs; unit++) {
    const after = Math.imul(0x811c9dc5 ^ unit, 0x01000193)
    const other = byUpperHalf.get(after >>> 16)
    byUpperHalf.set(after >>> 16, unit)
    if (other === undefined) continue
    const difference = (after ^ Math.imul(0x811c9dc5 ^ other, 0x01000193)) & 0xffff
    found.push(String.fromCharCode(unit, 0x41), String.fromCharCode(other, 0x41 ^ difference))
  }
  return found
}

/** The hash of the trie, which it keeps to itself; if it changes there, the test below says so. */
function hashOf(key: string): number {
  let hash = 0x811c9dc5
  for (let i = 0; i < key.length; i++) hash = Math.imul(hash ^ key.charCodeAt(i), 0x01000193)
  hash ^= hash >>> 15
  hash = Math.imul(hash, 0x2c1b3c6d)
  return hash ^ (hash >>> 13)
}

const twins = twinsOf(12)
const key = fc.oneof(
  { weight: 3, arbitrary: fc.constantFrom(...twins) },
  { weight: 3, arbitrary: fc.nat(40).map((n) => `r.${n}`) },
  { weight: 1, arbitrary: fc.string() },
)
const update = fc.oneof(
  fc.record({ type: fc.constant('set' as const), key, value: fc.nat(5) }),
  fc.record({ type: fc.constant('delete' as const), key }),
)
type Update = typeof update extends fc.Arbitrary<infer U> ? U : never

const applied = (trie: Trie<number>, change: Update): Trie<number> =>
  change.type === 'set' ? trie.set(change.key, change.value) : trie.delete(change.key)

describe('a trie', () => {
  test('property: holds what a map holds, after any updates', () => {
    fc.assert(
      fc.property(fc.array(update, { maxLength: 200 }), (updates) => {
        const map = new Map<string, number>()
        let trie = Trie.empty<number>()
        for (const change of updates) {
          trie = applied(trie, change)
          if (change.type === 'set') map.set(change.key, change.value)
          else map.delete(change.key)
          expect(trie.size).toBe(map.size)
          expect(trie.get(change.key)).toBe(map.get(change.key))
          expect(trie.has(change.key)).toBe(map.has(change.key))
        }
        expect(new Map(trie.entries())).toEqual(map)
        expect(new Set(trie.keys())).toEqual(new Set(map.keys()))
        expect([...trie.values()].sort((a, b) => a - b)).toEqual([...map.values()].sort((a, b) => a - b))
        expect([...trie.keys()]).toHaveLength(map.size)
      }),
      { numRuns: 200 },
    )
  })

  test('property: an update changes no older version', () => {
    fc.assert(
      fc.property(fc.array(update, { maxLength: 60 }), (updates) => {
        const versions: { trie: Trie<number>; entries: [string, number][] }[] = []
        let trie = Trie.empty<number>()
        for (const change of updates) {
          versions.push({ trie, entries: [...trie.entries()] })
          trie = applied(trie, change)
        }
        for (const version of versions) expect([...version.trie.entries()]).toEqual(version.entries)
      }),
    )
  })

  test('property: is iterated in an order that its content alone determines', () => {
    fc.assert(
      fc.property(fc.array(update, { maxLength: 120 }), fc.array(key, { maxLength: 20 }), (updates, detour) => {
        const trie = updates.reduce(applied, Trie.empty<number>())
        const direct = Trie.from([...trie.entries()].reverse())
        expect([...direct.entries()]).toEqual([...trie.entries()])
        // Keys that came and went leave nothing behind.
        const passing = detour.filter((item) => !trie.has(item))
        const there = passing.reduce((all, item) => all.set(item, 9), trie)
        const back = passing.reduce((all, item) => all.delete(item), there)
        expect([...back.entries()]).toEqual([...trie.entries()])
        expect(back.size).toBe(trie.size)
      }),
      { numRuns: 200 },
    )
  })

  test('property: says what changed between any two versions', () => {
    fc.assert(
      fc.property(
        fc.array(update, { maxLength: 80 }),
        fc.array(update, { maxLength: 40 }),
        fc.array(update, { maxLength: 40 }),
        (shared, left, right) => {
          const base = shared.reduce(applied, Trie.empty<number>())
          const before = left.reduce(applied, base)
          const after = right.reduce(applied, base)
          const { set, gone } = Trie.changes(before, after)
          expect(new Set(set.map(([changed]) => changed)).size).toBe(set.length)
          const expected = [...after.entries()].filter(([name, value]) => before.get(name) !== value)
          expect(new Map(set)).toEqual(new Map(expected))
          expect(set).toHaveLength(expected.length)
          expect([...gone].sort()).toEqual([...before.keys()].filter((name) => !after.has(name)).sort())
        },
      ),
      { numRuns: 200 },
    )
  })

  test('keeps keys of equal hashes apart', () => {
    expect(twins.length).toBeGreaterThanOrEqual(24)
    const [first = '', second = ''] = twins
    expect(first).not.toBe(second)
    expect(hashOf(first)).toBe(hashOf(second))
    const both = Trie.from([
      [first, 1],
      [second, 2],
    ])
    expect([both.get(first), both.get(second), both.size]).toEqual([1, 2, 2])
    expect([...both.delete(first).entries()]).toEqual([[second, 2]])
    expect(both.delete(first).get(first)).toBeUndefined()
    const reversed = Trie.from([
      [second, 2],
      [first, 1],
    ])
    // Were their hashes not equal in the trie, something between them could come between them.
    expect([...reversed.keys()]).toEqual([...both.keys()])
    const many = Trie.from(twins.map((name, at) => [name, at] as const))
    const order = [...many.keys()]
    for (let at = 0; at < twins.length; at += 2) {
      const places = [order.indexOf(twins[at] ?? ''), order.indexOf(twins[at + 1] ?? '')]
      expect(Math.abs((places[0] ?? 0) - (places[1] ?? 0))).toBe(1)
    }
  })

  test('of a hundred thousand keys finds them all', () => {
    let trie = Trie.empty<number>()
    for (let i = 0; i < 100_000; i++) trie = trie.set(`r.${i}`, i)
    expect(trie.size).toBe(100_000)
    for (let i = 0; i < 100_000; i += 997) expect(trie.get(`r.${i}`)).toBe(i)
    expect(Trie.changes(trie, trie.set('r.5', -1).delete('r.6'))).toEqual({ set: [['r.5', -1]], gone: ['r.6'] })
  })
})

describe('a trie of numbers', () => {
  const number = fc.oneof(fc.nat(70), fc.nat(40_000), fc.constant(2 ** 31 - 1))

  test('property: holds what an array holds, in its order, and older versions stay as they are', () => {
    fc.assert(
      fc.property(fc.array(fc.record({ at: number, value: fc.nat() }), { maxLength: 60 }), (sets) => {
        const all = new Map<number, number>()
        let trie = Trie.empty<number, number>()
        for (const { at, value } of sets) {
          const before = trie
          const old = trie.get(at)
          trie = trie.set(at, value)
          all.set(at, value)
          expect(before.get(at)).toBe(old)
          expect(trie.get(at)).toBe(value)
        }
        expect([...trie.entries()]).toEqual([...all].sort(([a], [b]) => a - b))
      }),
    )
  })
})

describe('an edit of a trie', () => {
  test('property: gives what the same updates give without one, and leaves what was there before as it was', () => {
    fc.assert(
      fc.property(fc.array(update, { maxLength: 80 }), fc.array(fc.array(update, { maxLength: 30 }), { maxLength: 4 }), (first, edits) => {
        let plain = first.reduce(applied, Trie.empty<number>())
        let edited = Trie.from(plain.entries())
        edits.forEach((updates, edit) => {
          const before = edited
          const entries = [...before.entries()]
          for (const change of updates) {
            plain = applied(plain, change)
            edited = change.type === 'set' ? edited.set(change.key, change.value, edit) : edited.delete(change.key, edit)
          }
          expect([...before.entries()]).toEqual(entries)
          expect(before.size).toBe(entries.length)
          expect([...edited.entries()]).toEqual([...plain.entries()])
          expect(edited.size).toBe(plain.size)
        })
      }),
      { numRuns: 200 },
    )
  })

  test('owns what it has put, and nothing that was there before', () => {
    const before = Trie.from<object>([
      ['r.0', {}],
      ['r.1', {}],
    ])
    const during = before.set('r.1', {}, 7)
    expect([during.own('r.0', 7), during.own('r.1', 7)]).toEqual([undefined, {}])
    expect([during.own('r.1', 8), during.own('r.1', null), before.set('r.1', {}).own('r.1', null)]).toEqual([
      undefined,
      undefined,
      undefined,
    ])
  })
})

describe('ids', () => {
  const id = fc.array(fc.nat(12), { maxLength: 5 }).map((parts) => ['r', ...parts].join('.'))

  test('are ordered by their parts as numbers, a parent before its children', () => {
    const sorted = byId(['r.10', 'r.2', 'r.2.0', 'r', 'r.0.11', 'r.0.9', 'r.0'], (item) => item)
    expect(sorted).toEqual(['r', 'r.0', 'r.0.9', 'r.0.11', 'r.2', 'r.2.0', 'r.10'])
  })

  test('property: have a total order', () => {
    fc.assert(
      fc.property(id, id, id, (a, b, c) => {
        expect(Math.sign(compareIds(a, b))).toBe(-Math.sign(compareIds(b, a)) + 0)
        expect(compareIds(a, b) === 0).toBe(a === b)
        if (compareIds(a, b) < 0 && compareIds(b, c) < 0) expect(compareIds(a, c)).toBeLessThan(0)
        if (b.startsWith(`${a}.`)) expect(compareIds(a, b)).toBeLessThan(0)
      }),
    )
  })

  test('property: are sorted into a copy, whatever order they came in', () => {
    fc.assert(
      fc.property(fc.uniqueArray(id), (ids) => {
        const given = [...ids]
        const sorted = byId(ids, (item) => item)
        expect(ids).toEqual(given)
        expect(byId([...ids].reverse(), (item) => item)).toEqual(sorted)
      }),
    )
  })
})

describe('JSON', () => {
  const problemOf = (value: unknown): string | null => {
    const json = toJson(value)
    return 'problem' in json ? `${json.path}: ${json.problem}` : null
  }
  const valueOf = (value: unknown): unknown => {
    const json = toJson(value)
    if ('problem' in json) throw new Error(json.problem)
    return json.value
  }
  const isFrozenThroughout = (value: unknown): boolean =>
    typeof value !== 'object' || value === null || (Object.isFrozen(value) && Object.values(value).every(isFrozenThroughout))

  test('property: any JSON value is copied as it is, frozen throughout, and its original is left alone', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (given) => {
        fc.pre(!JSON.stringify(given).includes('"__proto__"'))
        const text = JSON.stringify(given)
        const made = valueOf(given)
        expect(JSON.stringify(made)).toBe(text)
        expect(isFrozenThroughout(made)).toBe(true)
        expect(sameJson(made, JSON.parse(text))).toBe(true)
        if (typeof given === 'object' && given !== null) {
          expect(made).not.toBe(given)
          expect(Object.isFrozen(given)).toBe(false)
        }
      }),
    )
  })

  test('property: a list has at most six bytes of JSON for each that it is taken to have, and at least one for five', () => {
    const anyValue = fc.jsonValue({ stringUnit: 'binary' })
    const longest = fc.constantFrom(-1.234567890123456e-300, '\u0001'.repeat(9), '\ud800', null, true, 1)
    fc.assert(
      fc.property(fc.array(fc.oneof(anyValue, longest)), (given) => {
        fc.pre(!JSON.stringify(given).includes('"__proto__"'))
        const bytes = Buffer.byteLength(JSON.stringify(given))
        const json = toJson(given)
        for (const size of [jsonSize(given), 'size' in json ? json.size : 0]) {
          expect(bytes).toBeLessThanOrEqual(6 * size)
          expect(5 * bytes).toBeGreaterThanOrEqual(size)
        }
      }),
    )
  })

  test('property: anything at all is either refused, or comes back from its text as it is', () => {
    fc.assert(
      fc.property(
        fc.anything({
          withBigInt: true,
          withDate: true,
          withMap: true,
          withSet: true,
          withTypedArray: true,
          withNullPrototype: true,
          withSparseArray: true,
        }),
        (given) => {
          const json = toJson(given)
          if ('problem' in json || json.value === undefined) return
          expect(sameJson(JSON.parse(JSON.stringify(json.value)), json.value)).toBe(true)
          expect(JSON.parse(JSON.stringify(json.value))).toStrictEqual(json.value)
        },
      ),
      { numRuns: 500 },
    )
  })

  class Point {
    x = 1
  }
  class Loose extends Array<number> {}
  const cycle: Record<string, unknown> = { a: { b: [] } }
  ;((cycle['a'] as Record<string, unknown>)['b'] as unknown[]).push(cycle)
  const refused: readonly (readonly [string, unknown, string])[] = [
    ['a function', { a: [() => 1] }, 'a[0]: '],
    ['a function itself', () => 1, '(the value itself): '],
    ['a value that contains itself', cycle, 'a.b[0]: '],
    ['a BigInt', { n: 1n }, 'n: '],
    ['NaN', { a: { b: Number.NaN } }, 'a.b: '],
    ['an infinity', [1, Number.NEGATIVE_INFINITY], '[1]: '],
    ['a date', { at: new Date(0) }, 'at: '],
    ['a map', new Map(), '(the value itself): '],
    ['a set', [new Set()], '[0]: '],
    ['a typed array', { bytes: new Uint8Array(2) }, 'bytes: '],
    ['an error', { e: new Error('x') }, 'e: '],
    ['a promise', { p: Promise.resolve(1) }, 'p: '],
    ['an instance of a class', { p: new Point() }, 'p: '],
    ['a boxed number', { n: new Number(1) }, 'n: '],
    ['an object made from another', { o: Object.create({ a: 1 }) }, 'o: '],
    ['undefined in a list', { a: [1, undefined] }, 'a[1]: '],
    ['a hole in a list', { a: Object.assign([], { length: 2 }) }, 'a[0]: '],
    ['a symbol', { s: Symbol('x') }, 's: '],
    ['a property named by a symbol', { o: { [Symbol('x')]: 1 } }, 'o: '],
    ['a list with a property of its own', { found: 'abc'.match(/b/) }, 'found: a list with a property of its own, index, '],
    ['a property of a list named by a symbol', { a: Object.assign([1], { [Symbol('x')]: 1 }) }, 'a: '],
    ['a property named __proto__', JSON.parse('{"a":{"__proto__":{"x":1}}}'), 'a.__proto__: '],
  ]
  for (const [what, value, place] of refused)
    test(`refuses ${what}, with its place`, () => expect(problemOf(value)?.startsWith(place)).toBe(true))

  test('takes the same object in two places, lists of a class of lists, and objects with no prototype', () => {
    const shared = { a: 1 }
    expect(valueOf([shared, shared])).toEqual([{ a: 1 }, { a: 1 }])
    expect(valueOf(Loose.from([1, 2]))).toEqual([1, 2])
    expect(valueOf(Object.assign(Object.create(null), { a: 1 }))).toEqual({ a: 1 })
  })

  test('has no -0, which nobody would find again in its text', () => {
    for (const given of [-0, [-0], { a: { b: -0 } }]) expect(valueOf(given)).toStrictEqual(JSON.parse(JSON.stringify(given)))
  })

  test('drops properties that are undefined, and keeps no value apart from null', () => {
    expect(valueOf({ a: undefined, b: null, c: { d: undefined } })).toStrictEqual({ b: null, c: {} })
    expect(toJson(undefined)).toMatchObject({ value: undefined })
  })

  test('takes what is deeply nested up to a bound, and refuses the rest without running out of stack', () => {
    const nested = (depth: number): unknown => {
      let value: unknown = 1
      for (let i = 0; i < depth; i++) value = i % 2 === 0 ? [value] : { a: value }
      return value
    }
    expect(problemOf(nested(400))).toBeNull()
    expect(problemOf(nested(100_000))).toContain('levels deep')
  })

  test('names the whole path to what is wrong', () => {
    expect(problemOf({ a: [{ 'b c': [0, { d: 1n }] }] })).toMatch(/^a\[0\]\.b c\[1\]\.d: /)
  })

  test('property: is equal whatever the order of its keys, and to nothing else', () => {
    const shuffled = (value: unknown): unknown => {
      if (Array.isArray(value)) return value.map(shuffled)
      if (typeof value !== 'object' || value === null) return value
      return Object.fromEntries(
        Object.entries(value)
          .reverse()
          .map(([name, item]) => [name, shuffled(item)]),
      )
    }
    fc.assert(
      fc.property(fc.jsonValue(), fc.jsonValue(), (a, b) => {
        fc.pre(!JSON.stringify([a, b]).includes('"__proto__"'))
        expect(sameJson(a, shuffled(a))).toBe(true)
        const same = canonical(a) === canonical(b)
        expect(sameJson(a, b)).toBe(same)
        expect(sameJson(b, a)).toBe(same)
      }),
    )
  })

  const canonical = (value: unknown): string => {
    if (Array.isArray(value)) return `[${value.map(canonical).join()}]`
    if (typeof value !== 'object' || value === null) return JSON.stringify(value)
    const entries = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1))
    return `{${entries.map(([name, item]) => `${JSON.stringify(name)}:${canonical(item)}`).join()}}`
  }

  test('tells lists from objects, null from nothing, and what is inherited from what is there', () => {
    expect(sameJson([], {})).toBe(false)
    expect(sameJson(null, undefined)).toBe(false)
    expect(sameJson({ a: 1 }, { a: 1, b: 2 })).toBe(false)
    expect(sameJson({ toString: 1 }, { a: 1 })).toBe(false)
    expect(sameJson({ valueOf: undefined, a: 1 }, { b: 1, a: 1 })).toBe(false)
    expect(sameJson('1', 1)).toBe(false)
  })
})

describe('what is outstanding', () => {
  test('is the same taken from a state as added up from the differences', () => {
    const play = playOf(['Start->H->End', 'H<->A|B|C'], {
      H: forks(['A', 'B', 'C'], { policy: { quorum: 2 }, timeoutMs: 100, insufficient: 'resume' }),
      A: replies(),
      B: { act: ({ attempt }) => (attempt === 1 ? { throw: 'no' } : { hangs: true }), retry: { attempts: 2, backoffMs: 50 } },
      C: replies(),
    })
    const named = (effects: ReturnType<typeof outstanding>): string[] => effects.map((effect) => JSON.stringify(effect)).sort()
    let pairs = 0
    const states: State[] = []
    everyOrder(play, () => {}, { onStep: ({ state }) => states.push(state) })
    for (const before of states.slice(0, 40))
      for (const after of states.slice(0, 40)) {
        const since = owedSince(before, after)
        const begun = effectsOf(since)
        const here = new Set(named(outstanding(before)))
        const there = named(outstanding(after))
        expect(named(begun).filter((effect) => !there.includes(effect))).toEqual([])
        for (const effect of there) if (!here.has(effect)) expect(named(begun)).toContain(effect)
        expect(since.timersGone.toSorted()).toEqual([...before.timers.keys()].filter((id) => !after.timers.has(id)).sort())
        pairs++
      }
    expect(pairs).toBeGreaterThan(400)
  })
})

describe('the reach of a node', () => {
  const edges = (...pairs: string[]): { from: string; to: string; notify?: boolean }[] =>
    pairs.map((pair) => {
      const [from = '', to = ''] = pair.split(/[-~]/)
      return pair.includes('~') ? { from, to, notify: true } : { from, to }
    })

  test('takes at least one edge, and goes through other rendezvous', () => {
    const { from } = reachOf(['A', 'C', 'D'], edges('A-D', 'D-C', 'C-End'), ['C', 'D'], new Set())
    expect(from['A']).toEqual([0, 1])
    expect(from['D']).toEqual([0])
    expect(from['C']).toEqual([])
  })

  test('comes back to its own node over a cycle', () => {
    expect(reachOf(['A', 'C'], edges('A-C', 'C-A'), ['C'], new Set()).from['C']).toEqual([0])
  })

  test('enters none who waits, nor End, nor User, and takes no notify edge', () => {
    const all = ['H', 'A', 'B', 'C', 'N']
    expect(reachOf(all, edges('A-H', 'H-C'), ['C'], new Set()).from['A']).toEqual([0])
    expect(reachOf(all, edges('A-H', 'H-C'), ['C'], new Set(['H'])).from['A']).toEqual([])
    expect(reachOf(all, edges('A~B', 'B-C'), ['C'], new Set()).from['A']).toEqual([])
    expect(reachOf(all, edges('A-User', 'User-C', 'B-End', 'End-C'), ['C'], new Set()).from).toMatchObject({ A: [], B: [] })
  })

  test('is upstream one way only: of two that lead to each other neither is', () => {
    const { upstream } = reachOf(['C', 'D', 'E'], edges('C-D', 'D-C', 'D-E'), ['C', 'D', 'E'], new Set())
    expect(upstream).toEqual([[], [], [0, 1]])
  })
})

/** Goes on from any version that there was, and looks at all of them again at the end. */
function versions<T, M>(first: readonly [T, M], steps: readonly number[], next: (value: T, model: M, step: number) => readonly [T, M]) {
  const all = [first]
  for (const step of steps) {
    // Mostly the latest, now and then an older one.
    const [value, model] = all[step % 5 === 0 ? step % all.length : all.length - 1] ?? first
    all.push(next(value, model, step))
  }
  return all
}

describe('what stands at slots', () => {
  const slotOf = (step: number): SettledSlot => ({ status: 'cancelled', branch: `r.${step}`, first: true })

  test('property: is what a map of it is, in every version', () => {
    fc.assert(
      fc.property(fc.array(fc.nat(10_000), { maxLength: 60 }), (steps) => {
        const first = [SlotMap.from<SettledSlot>([]), new Map<number, SettledSlot>()] as const
        let pieces = 0
        const all = versions<SlotMap<SettledSlot>, Map<number, SettledSlot>>(first, steps, (slots, map, step) => {
          const slot = slotOf(step)
          const edit = step % 3 === 0 ? ++pieces : null
          const left = new Map(map)
          // Some leave, two under one edit.
          if (step % 4 === 0 && left.delete(step % 12) && left.delete((step + 1) % 12))
            return [slots.delete(step % 12, edit).delete((step + 1) % 12, edit), left]
          // Some are written, two under one edit: the second in place.
          if (step % 4 === 1)
            return [
              slots.set(step % 12, slot, edit).set((step + 3) % 12, slot, edit),
              new Map(map).set(step % 12, slot).set((step + 3) % 12, slot),
            ]
          return [slots.set(step % 12, slot, edit), new Map(map).set(step % 12, slot)]
        })
        for (const [slots, map] of all) {
          expect(slots.size).toBe(map.size)
          expect(slots.entries()).toEqual([...map].sort(([a], [b]) => a - b))
          for (let index = 0; index < 12; index++) expect(slots.get(index)).toBe(map.get(index))
          expect(SlotMap.from(slots.entries()).entries()).toEqual(slots.entries())
        }
      }),
    )
  })
})

describe('what is recorded of activities', () => {
  const recordOf = (step: number): ActivityRecord => {
    const common = { key: `s${step % 12}`, name: 's', order: step, delivered: 0, at: step }
    return step % 3 === 0 ? { ...common, status: 'started' } : { ...common, status: 'completed', value: step }
  }

  test('property: is what a map of it is, in every version, in the order of its keys', () => {
    fc.assert(
      fc.property(fc.array(fc.nat(10_000), { maxLength: 60 }), (steps) => {
        const first = [ActivityLog.from([]), new Map<string, ActivityRecord>()] as const
        const all = versions<ActivityLog, Map<string, ActivityRecord>>(first, steps, (log, map, step) => {
          const record = recordOf(step)
          return [log.with(record), new Map(map).set(record.key, record)]
        })
        for (const [log, map] of all) {
          const sorted = [...map.values()].sort((a, b) => (a.key < b.key ? -1 : 1))
          expect(log.values()).toEqual(sorted)
          for (let step = 0; step < 12; step++) expect(log.get(`s${step}`)).toBe(map.get(`s${step}`))
          expect(ActivityLog.from(log.values()).values()).toEqual(sorted)
        }
      }),
    )
  })
})

describe('the queue of turns', () => {
  interface Waiting {
    readonly tail: number
    readonly ids: ReadonlyMap<number, string>
  }

  test('property: holds who waits, by ticket, in every version', () => {
    fc.assert(
      fc.property(fc.array(fc.nat(10_000), { maxLength: 200 }), fc.boolean(), (steps, edits) => {
        let edit = 0
        const all = versions<TurnQueue, Waiting>(
          [TurnQueue.from([], 0), { tail: 0, ids: new Map() }],
          steps,
          (queue, { tail, ids }, step) => {
            edit++
            const by = edits ? edit : null
            if (step % 2 === 0) {
              const more = step % 3 === 0 ? queue.pushAll([`r.${step}`, 'r'], by) : queue.push(`r.${step}`, by).push('r', by)
              return [more, { tail: tail + 2, ids: new Map([...ids, [tail, `r.${step}`], [tail + 1, 'r']]) }]
            }
            const tickets = [...ids.keys()]
            const [first, second] = tickets
            if (step % 11 === 0 && first !== undefined && second === first + 1)
              return [queue.dropFirst(2, by), { tail, ids: new Map([...ids].filter(([other]) => other > second)) }]
            // Nearly always who is first.
            const ticket = (step % 7 === 0 ? tickets[step % tickets.length] : tickets[0]) ?? tail
            return [queue.delete(ticket, by), { tail, ids: new Map([...ids].filter(([other]) => other !== ticket)) }]
          },
        )
        for (const [queue, { tail, ids }] of all) {
          expect(queue.entries()).toEqual([...ids])
          expect([queue.size, queue.tail, queue.first]).toEqual([ids.size, tail, [...ids.values()][0]])
          expect(TurnQueue.from(queue.entries(), queue.tail).entries()).toEqual([...ids])
        }
      }),
    )
  })

  test('lets go of those that have left', () => {
    let queue = TurnQueue.from([], 0)
    for (let ticket = 0; ticket < 1_000; ticket++) queue = queue.push(`r.${ticket}`, null)
    for (let ticket = 0; ticket < 999; ticket++) queue = queue.delete(ticket, null)
    expect(queue.entries()).toEqual([[999, 'r.999']])
  })
})
