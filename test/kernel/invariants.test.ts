/** Each invariant (KERNEL §9) finds what it is there to find. */
import { describe, expect, test } from 'vitest'
import { decide } from '../../src/kernel/decide.js'
import type { Event, EventBody } from '../../src/kernel/event.js'
import { evolve } from '../../src/kernel/evolve.js'
import { checkEvent, checkState, checkStep, InvariantError } from '../../src/kernel/invariants.js'
import type { Barrier, Branch, State } from '../../src/kernel/state.js'
import { attemptsOf, barrierOf, branchOf, isOver } from '../../src/kernel/state.js'
import { forks, passes, replies } from './acts.js'
import { begin, completionOf, go, playOf, toEnd } from './play.js'

const play = playOf(
  ['Start->H->End', 'H->A|B', 'A|B->C', 'C->H', 'A->H'],
  { H: forks(['A', 'B']), A: passes('C'), B: replies(), C: replies() },
  { joins: ['C'] },
)
const { state: open } = go(play, begin(play), 'H r/1')
const { state: held } = go(play, begin(play), 'H r/1', 'A r.0/1')

const next = (state: State, body: EventBody): Event => ({ seq: state.seq + 1, at: state.at, ...body })
const found = (state: State): number[] => [...new Set(checkState(state).map((violation) => violation.invariant))]
const withBranch = (state: State, id: string, change: Partial<Branch>): State => ({
  ...state,
  branches: state.branches.set(id, { ...branchOf(state, id), ...change }),
})
const notStarted = (state: State, id: string): State => ({ ...withBranch(state, id, { startSeq: 0 }), running: state.running - 1 })
const withBarrier = (state: State, id: string, change: Partial<Barrier>): State => ({
  ...state,
  barriers: state.barriers.set(id, { ...barrierOf(state, id), ...change }),
})

describe('a sound state', () => {
  test('has no violation', () => {
    expect(found(open)).toEqual([])
    expect(found(held)).toEqual([])
  })
})

describe('invariant', () => {
  test('1: a slot that settles again, counts that do not add up, a pending slot that nobody owes', () => {
    const arrive: EventBody = { type: 'barrier.arrived', barrier: 'r#1', slot: 0, by: 'A', branch: 'r.0' }
    const once = evolve(open, next(open, arrive))
    const again = next(once, arrive)
    expect(checkEvent(once, again, evolve(once, again)).map((violation) => violation.invariant)).toEqual([1])
    expect(found(withBarrier(open, 'r#1', { arrived: 1 }))).toEqual([1])
    expect(found(withBranch(open, 'r.1', { slots: [0] }))).toEqual([1])
    expect(found(once)).toEqual([1])
  })

  test('2: a barrier that fires with slots pending, or a second time', () => {
    const fire: EventBody = {
      type: 'barrier.fired',
      barrier: 'r#1',
      ok: true,
      width: 2,
      arrived: 0,
      failed: 0,
      escaped: 0,
      cancelled: 0,
      goes: 'turn',
    }
    const event = next(open, fire)
    const after = evolve(open, event)
    expect(checkEvent(open, event, after).map((violation) => violation.invariant)).toEqual([2])
    expect(checkEvent(after, next(after, fire), after).map((violation) => violation.invariant)).toEqual([2])
    expect(found(withBarrier(open, 'r#1', { fired: { ok: true, deciding: null, byTimeout: false } }))).toContain(2)
  })

  test('3: a live branch that owes nothing, or slots of what is not open', () => {
    expect(found(withBranch(open, 'r.0', { slots: [] }))).toContain(3)
    expect(found(withBranch(open, 'r.0', { scope: 'r#9' }))).toContain(3)
    expect(found({ ...open, barriers: open.barriers.delete('r#1') })).toContain(3)
  })

  test('4: a turn that starts in the name of another', () => {
    const { message } = branchOf(open, 'r.0')
    const started = next(open, { type: 'turn.started', branch: 'r.0', agent: 'B', turn: 1, attempt: 1, message })
    expect(checkEvent(notStarted(open, 'r.0'), started, open).map((violation) => violation.invariant)).toEqual([4])
  })

  test('5: two attempts at once, a completion of none, numbers that go back', () => {
    const { message } = branchOf(open, 'r.0')
    const started = next(open, { type: 'turn.started', branch: 'r.0', agent: 'A', turn: 1, attempt: 1, message })
    expect(checkEvent(open, started, open).map((violation) => violation.invariant)).toEqual([5])
    const completed = next(open, {
      type: 'turn.completed',
      branch: 'r.0',
      agent: 'A',
      turn: 1,
      attempt: 1,
      action: { type: 'invoke', to: 'C' },
    })
    expect(checkEvent(notStarted(open, 'r.0'), completed, open).map((violation) => violation.invariant)).toEqual([5])
    expect(checkEvent(withBranch(open, 'r.0', { turn: 2 }), completed, open).map((violation) => violation.invariant)).toEqual([5])
    expect(found(notStarted(open, 'r.0'))).toContain(5)
  })

  test('6: a fork that nobody waits at, a branch that is held in no group', () => {
    expect(found(withBranch(open, 'r', { standing: { status: 'forked', barrier: 'r#2' } }))).toEqual([6])
    expect(found(withBarrier(held, 'r#1', { groups: [null] }))).toContain(6)
  })

  test('7: a gap in the sequence, an event after the end, a turn owed for what is not there', () => {
    const event: Event = { seq: open.seq + 2, at: open.at, type: 'run.paused' }
    expect(checkEvent(open, event, open).map((violation) => violation.invariant)).toEqual([7])
    const { state } = toEnd(play)
    expect(checkEvent(state, next(state, { type: 'run.paused' }), state).map((violation) => violation.invariant)).toEqual([7])
    expect(found({ ...open, running: open.running + 1 })).toEqual([7])
    expect(found({ ...open, status: 'succeeded' })).toEqual([7])
  })

  test('8: a limit that is exceeded, and a run that waits for nothing', () => {
    expect(found({ ...open, turnsUsed: 1_000_001 })).toEqual([8])
    expect(found({ ...open, branchesUsed: 1_000_001 })).toEqual([8])
    let stuck = open
    for (const { branch } of attemptsOf(open)) stuck = notStarted(stuck, branch)
    expect(found(stuck)).toContain(8)
  })

  test('all that is found is told, with the number and the words of the invariant', () => {
    const error = new InvariantError(checkState(withBranch(open, 'r.0', { slots: [] })))
    expect(error.message).toMatch(/^invariant \d \(.+\): /)
    expect(error.violations.length).toBeGreaterThan(0)
  })
})

test('a fan-out of 600 with a rendezvous keeps them all, above the size where only what was touched is looked at', () => {
  const width = 600
  const wide = playOf(
    ['Start->H->End', 'H->A|B', 'A->C', 'C|B->H'],
    {
      H: forks([...Array.from({ length: width }, () => 'A'), 'B'], 'all', (join) => ({ type: 'finish', output: join.values.length })),
      A: passes('C'),
      B: replies(),
      C: replies(),
    },
    { joins: ['C'] },
  )
  let { state } = begin(wide)
  let most = 0
  while (!isOver(state)) {
    const [attempt] = attemptsOf(state)
    const command = attempt === undefined ? null : completionOf(wide, state, attempt)
    if (command === null) throw new Error('nothing is owed')
    const decision = decide(state, command, state.at, wide.code)
    if ('refusal' in decision) throw new Error(decision.refusal.message)
    expect(checkStep(state, decision.events, evolve)).toEqual([])
    state = decision.state
    most = Math.max(most, state.branches.size)
  }
  expect(most).toBe(width + 2)
  expect(state.status).toBe('succeeded')
})
