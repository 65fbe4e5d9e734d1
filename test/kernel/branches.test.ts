/** Branches that are alike are not kept one by one: nobody can tell. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { Branches } from '../../src/kernel/branches.js'
import type { Barrier, Branch } from '../../src/kernel/state.js'
import { Trie } from '../../src/kernel/trie.js'

interface Version {
  readonly branches: Branches
  /** What must be in it. */
  readonly model: ReadonlyMap<string, Branch>
  readonly opened: Readonly<Record<string, number>>
  readonly seq: number
  readonly tail: number
}

const forks = [
  { opener: 'r', scope: 'r#1', first: 0, width: 5 },
  { opener: 'r', scope: 'r#2', first: 5, width: 3 },
  { opener: 'r.1', scope: 'r.1#1', first: 2, width: 4 },
]

const callsOf = ({ scope, width }: (typeof forks)[number]): Barrier['calls'] =>
  Array.from({ length: width }, (_, slot) => (slot === 2 ? { to: 'B' } : { to: 'A', request: `${scope}/${slot}` }))

function branchOf(fork: (typeof forks)[number], slot: number, ticket: number): Branch {
  const { to, request } = callsOf(fork)[slot] ?? { to: '' }
  return {
    id: `${fork.opener}.${fork.first + slot}`,
    agent: to,
    scope: fork.scope,
    slot,
    slots: null,
    depth: 1,
    turn: 1,
    attempt: 1,
    startSeq: 0,
    startAt: 0,
    rejections: 0,
    failures: 0,
    standing: { status: 'ready', ticket },
    state: undefined,
    message: request === undefined ? { kind: 'request', from: 'H' } : { kind: 'request', from: 'H', value: request },
    requests: null,
    carried: [],
    memory: null,
    action: null,
    children: 0,
    forks: 0,
    asks: 0,
  }
}

const move = fc.oneof(
  { weight: 4, arbitrary: fc.record({ type: fc.constant('open' as const), fork: fc.nat(2), gap: fc.nat(9) }) },
  {
    weight: 4,
    arbitrary: fc.record({ type: fc.constant('start' as const), which: fc.oneof(fc.constant(-1), fc.nat(20)), gap: fc.nat(9) }),
  },
  { weight: 3, arbitrary: fc.record({ type: fc.constant('open all' as const), fork: fc.nat(2) }) },
  { weight: 3, arbitrary: fc.record({ type: fc.constant('start all' as const), fork: fc.nat(2) }) },
  { weight: 2, arbitrary: fc.record({ type: fc.constant('change' as const), which: fc.nat(20) }) },
  { weight: 4, arbitrary: fc.record({ type: fc.constant('hold' as const), which: fc.nat(20), request: fc.option(fc.nat(9)) }) },
  { weight: 2, arbitrary: fc.record({ type: fc.constant('delete' as const), which: fc.nat(20) }) },
)
/** Moves under one token, from one of the versions that there are. */
const piece = fc.record({ from: fc.nat(30), owned: fc.boolean(), moves: fc.array(move, { minLength: 1, maxLength: 8 }) })
type Move = typeof move extends fc.Arbitrary<infer M> ? M : never

const barrierOf = (fork: (typeof forks)[number]): Barrier =>
  ({ id: fork.scope, firstChild: fork.first, calls: callsOf(fork) }) as unknown as Barrier
const parentOf = (fork: (typeof forks)[number]): Branch => ({ id: fork.opener, agent: 'H', depth: 0 }) as unknown as Branch

/** All children of a fork of which none was opened yet. */
function openedAll(version: Version, fork: (typeof forks)[number], edit: number | null): Version {
  const { width, scope } = fork
  if ((version.opened[scope] ?? 0) > 0) return version
  const model = new Map(version.model)
  const ids: string[] = []
  for (let slot = 0; slot < width; slot++) {
    const made = branchOf(fork, slot, version.tail + slot)
    model.set(made.id, made)
    ids.push(made.id)
  }
  const branches = version.branches.openFirst(barrierOf(fork), parentOf(fork), ids, version.tail, edit)
  return { branches, model, opened: { ...version.opened, [scope]: width }, seq: version.seq + 1, tail: version.tail + width }
}

/** All of them, if nothing has happened to any: which must be known. */
function startedAll(version: Version, fork: (typeof forks)[number], edit: number | null): Version {
  const { opener, first, width } = fork
  const siblings = version.branches.untouchedFrom(`${opener}.${first}`)
  if (siblings === null) return version
  const model = new Map(version.model)
  expect(siblings.opened).toBe(width)
  for (let slot = 0; slot < width; slot++) {
    const branch = model.get(`${opener}.${first + slot}`)
    expect(branch).toMatchObject({ startSeq: 0, standing: { status: 'ready', ticket: siblings.ticket + slot } })
    if (branch === undefined) continue
    model.set(branch.id, { ...branch, startSeq: version.seq + 1 + slot, startAt: 7, standing: { status: 'ready', ticket: null } })
  }
  allStarted++
  return { ...version, branches: version.branches.startAll(siblings, version.seq + 1, 7, edit), model, seq: version.seq + width }
}

let allStarted = 0

function moved(version: Version, step: Move, edit: number | null): Version {
  const { branches, opened } = version
  const model = new Map(version.model)
  const seq = version.seq + 1 + ('gap' in step && step.gap === 0 ? 3 : 0)
  const ids = [...model.keys()].sort()
  if (step.type === 'open all') return openedAll(version, forks[step.fork] ?? forks[0]!, edit)
  if (step.type === 'start all') return startedAll(version, forks[step.fork] ?? forks[0]!, edit)
  if (step.type === 'open') {
    const fork = forks[step.fork] ?? forks[0]!
    const slot = opened[fork.scope] ?? 0
    if (slot >= fork.width) return version
    // Somebody else may have taken a place in between.
    const tail = version.tail + (step.gap === 0 ? 1 : 0)
    const made = branchOf(fork, slot, tail)
    model.set(made.id, made)
    const after = branches.open(barrierOf(fork), parentOf(fork), slot, tail, edit) ?? branches.set(made.id, made, edit)
    return { branches: after, model, opened: { ...opened, [fork.scope]: slot + 1 }, seq, tail: tail + 1 }
  }
  const waiting = ids.find((one) => model.get(one)?.standing.status === 'ready' && model.get(one)?.startSeq === 0)
  const id = step.which < 0 ? waiting : ids[step.which % Math.max(1, ids.length)]
  const branch = id === undefined ? undefined : model.get(id)
  if (id === undefined || branch === undefined) return version
  expect(branches.get(id)).toEqual(branch)
  if (step.type === 'delete') {
    model.delete(id)
    return { ...version, branches: branches.delete(id, edit), model, seq }
  }
  if (step.type === 'change') {
    const changed: Branch = { ...branch, turn: branch.turn + 1, agent: 'C', startSeq: 0, startAt: 0, standing: { status: 'held' } }
    model.set(id, changed)
    return { ...version, branches: branches.set(id, changed, edit), model, seq }
  }
  if (step.type === 'hold') {
    const given = step.request === null ? {} : { value: step.request }
    const action = { type: 'invoke', to: 'C', ...(step.request !== null && { request: step.request }) } as const
    const requests = { from: branch.agent, ...given }
    const changed: Branch = { ...branch, agent: 'C', startSeq: 0, startAt: 0, standing: { status: 'held' }, requests, action }
    if (branch.standing.status === 'held') return version
    model.set(id, changed)
    return { ...version, branches: branches.set(id, changed, edit).hold(changed, edit), model, seq }
  }
  if (branch.standing.status !== 'ready' || branch.startSeq !== 0) return version
  const started: Branch = { ...branch, startSeq: seq, startAt: 7, standing: { status: 'ready', ticket: null } }
  model.set(id, started)
  const ticket = branches.ticketOfNext(id, seq, 7)
  if (ticket !== null) expect(ticket).toBe(branch.standing.ticket)
  const after = ticket === null ? branches.set(id, started, edit) : branches.startNext(id, seq, 7, edit)
  return { ...version, branches: after, model, seq }
}

function agrees({ branches, model }: Version): void {
  expect(branches.size).toBe(model.size)
  for (const { opener, first, width } of forks)
    for (let slot = -1; slot <= width; slot++) {
      const id = `${opener}.${first + slot}`
      expect(branches.get(id)).toEqual(model.get(id))
    }
  for (const id of ['r', 'r.', 'r.00', 'r.01', 'r.0x', 'r.-0', 'r.1e0', 'x.0', '.0', '']) expect(branches.get(id)).toBeUndefined()
  // In the order in which they would be kept.
  const kept = Trie.from(model)
  expect(branches.keys()).toEqual(kept.keys())
  expect(branches.entries()).toEqual(kept.entries())
}

const begun = (before: Version, after: Version): string[] =>
  [...after.model.values()]
    .filter((branch) => {
      const known = before.model.get(branch.id)
      return branch.startSeq !== 0 && !(known?.startSeq === branch.startSeq && known.turn === branch.turn && known.agent === branch.agent)
    })
    .map(({ id }) => id)
    .sort()

test('property: they hold what a map holds, in every version, whatever was made from an older one', () => {
  let alike = 0
  let held = 0
  fc.assert(
    fc.property(fc.array(piece, { minLength: 1, maxLength: 12 }), (pieces) => {
      const versions: Version[] = [{ branches: Branches.empty(), model: new Map(), opened: {}, seq: 0, tail: 0 }]
      pieces.forEach(({ from, owned, moves }, index) => {
        let version = versions[from % versions.length] ?? versions[0]!
        for (const step of moves) {
          version = moved(version, step, owned ? 1_000 + index : null)
          if (version.branches.ticketOfNext('r.0', version.seq + 1, 7) !== null) alike++
          const isHeld = step.type === 'hold' && version.model.get('r.0')?.standing.status === 'held'
          if (isHeld && owned && version.branches.own('r.0', 1_000 + index) === undefined) held++
        }
        versions.push(version)
      })
      for (const version of versions) agrees(version)
      for (const before of versions)
        for (const after of versions)
          expect(
            Branches.begunSince(before.branches, before.seq, after.branches)
              .map(({ branch }) => branch)
              .sort(),
          ).toEqual(begun(before, after))
    }),
    { numRuns: 300 },
  )
  expect(alike).toBeGreaterThan(100)
  expect(held).toBeGreaterThan(20)
  expect(allStarted).toBeGreaterThan(20)
})
