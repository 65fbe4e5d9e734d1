/** What fails, whom it takes with it, and what is said about it. */
import { describe, expect, test } from 'vitest'
import type { Command } from '../../src/kernel/command.js'
import { decide } from '../../src/kernel/decide.js'
import type { Join } from '../../src/kernel/join.js'
import { backoffMs } from '../../src/kernel/retry.js'
import type { Act, Made } from './acts.js'
import { failing, finish, fork, forks, invoke, passes, replies, reply, seen } from './acts.js'
import type { Result } from './outcome.js'
import { codesOf, eventsOf, joinsOf, requestsOf, rootCauseOf, turnsOf } from './outcome.js'
import type { TestAgent } from './play.js'
import { begin, everyOrder, firing, go, playOf, refusalOf, submit, take, toEnd } from './play.js'
import { attemptOf } from '../../src/kernel/state.js'

const flows = ['Start->H->End', 'H<->A|B|C']
const broken: Act = ({ agent }) => failing(`${agent.toLowerCase()} broke`)

/** What each choice led to: the slots as H saw them, or the codes of the failure. */
function outcomes(join: Join, agents: Readonly<Record<'A' | 'B' | 'C', Act>>, answers: readonly boolean[] = []): Record<string, unknown> {
  const play = playOf(flows, { H: forks(['A', 'B', 'C'], join), ...agents }, { answers: () => answers })
  const found: Record<string, unknown> = {}
  everyOrder(play, (result) => {
    const key = result.choices.map((choice) =>
      'join' in choice ? `${choice.ok ? 'ok' : 'not ok'} by ${choice.decidedBy.join()}` : JSON.stringify(choice),
    )
    found[key.join(', ') || 'no choice'] = result.status === 'failed' ? told(result) : result.output
  })
  return found
}

const told = (result: Result): string => `${codesOf(result.error).join(' < ')}: ${rootCauseOf(result.error)?.at.agent ?? ''}`

describe('failures under each policy', () => {
  const oneFails = { A: broken, B: replies(), C: replies() }
  const twoFail = { A: replies(), B: broken, C: broken }
  const allFail = { A: broken, B: broken, C: broken }

  test('all: waits for everybody, then fails with the lowest failure', () => {
    expect(outcomes('all', oneFails)).toEqual({ 'no choice': 'JOIN_FAILED < AGENT_FAILED: A' })
    expect(outcomes('all', twoFail)).toEqual({ 'no choice': 'JOIN_FAILED < AGENT_FAILED: B' })
  })

  test('all, of forks in forks: each says where the failure began, and what lies between stands in the causes alone', () => {
    const { error } = toEnd(
      playOf(['Start->H->End', 'H<->M', 'M<->L', 'L<->A'], { H: forks(['M']), M: forks(['L']), L: forks(['A']), A: broken }),
    )
    expect(codesOf(error)).toEqual(['JOIN_FAILED', 'JOIN_FAILED', 'JOIN_FAILED', 'AGENT_FAILED'])
    expect([error?.message, error?.cause?.message, error?.cause?.cause?.message]).toEqual([
      'the join of H (barrier r#1) failed in slot 0, M: a broke',
      'the join of M (barrier r.0#1) failed in slot 0, L: a broke',
      'the join of L (barrier r.0.0#1) failed in slot 0, A: a broke',
    ])
  })

  test('all, cancelling: fails at the first failure, as a choice; what had not settled reads cancelled', () => {
    const join: Join = { policy: 'all', stragglers: 'cancel', insufficient: 'resume' }
    expect(outcomes(join, { A: broken, B: replies(), C: broken })).toEqual({
      'not ok by 0': ['failed', 'cancelled', 'cancelled'],
      'not ok by 2': ['cancelled', 'cancelled', 'failed'],
      'not ok by 0,1': ['failed', 'b', 'cancelled'],
      'not ok by 1,2': ['cancelled', 'b', 'failed'],
    })
    expect(outcomes({ policy: 'all', stragglers: 'cancel' }, { A: replies(), B: replies(), C: replies() })).toEqual({
      'no choice': ['a', 'b', 'c'],
    })
  })

  test('any: one that replies is enough, and only if all fail it fails with the lowest', () => {
    expect(outcomes('any', twoFail)).toEqual({ 'ok by 0': ['a', 'cancelled', 'cancelled'] })
    expect(outcomes('any', allFail)).toEqual({ 'not ok by 0,1,2': 'JOIN_FAILED < AGENT_FAILED: A' })
  })

  test('any, waiting: everybody is waited for and nothing is a choice', () => {
    expect(outcomes({ policy: 'any', stragglers: 'wait' }, twoFail)).toEqual({ 'no choice': ['a', 'failed', 'failed'] })
    expect(outcomes({ policy: 'any', stragglers: 'wait' }, allFail)).toEqual({ 'no choice': 'JOIN_FAILED < AGENT_FAILED: A' })
  })

  test('majority: two of three decide, and two failures decide against', () => {
    expect(outcomes('majority', oneFails)).toEqual({ 'ok by 1,2': ['cancelled', 'b', 'c'] })
    expect(outcomes('majority', { A: replies(), B: replies(), C: replies() })).toEqual({
      'ok by 0,1': ['a', 'b', 'cancelled'],
      'ok by 0,2': ['a', 'cancelled', 'c'],
      'ok by 1,2': ['cancelled', 'b', 'c'],
    })
    expect(outcomes('majority', twoFail)).toEqual({
      'not ok by 1,2': 'JOIN_FAILED < AGENT_FAILED: B',
      'not ok by 0,1,2': 'JOIN_FAILED < AGENT_FAILED: B',
    })
  })

  test('quorum: as many as it says; waiting, they all count', () => {
    expect(outcomes({ quorum: 1 }, oneFails)).toEqual({
      'ok by 1': ['cancelled', 'b', 'cancelled'],
      'ok by 2': ['cancelled', 'cancelled', 'c'],
    })
    expect(outcomes({ quorum: 3 }, oneFails)).toEqual({
      'not ok by 0': 'JOIN_FAILED < AGENT_FAILED: A',
      'not ok by 0,1': 'JOIN_FAILED < AGENT_FAILED: A',
      'not ok by 0,2': 'JOIN_FAILED < AGENT_FAILED: A',
      'not ok by 0,1,2': 'JOIN_FAILED < AGENT_FAILED: A',
    })
    expect(outcomes({ policy: { quorum: 2 }, stragglers: 'wait' }, oneFails)).toEqual({ 'no choice': ['failed', 'b', 'c'] })
    expect(outcomes({ policy: { quorum: 2 }, stragglers: 'wait' }, twoFail)).toEqual({ 'no choice': 'JOIN_FAILED < AGENT_FAILED: B' })
  })

  test('ratio: the share is rounded up, with room for what floating point gets wrong', () => {
    expect(outcomes({ ratio: 0.5 }, oneFails)).toEqual({ 'ok by 1,2': ['cancelled', 'b', 'c'] })
    expect(outcomes({ ratio: 2 / 3 }, oneFails)).toEqual({ 'ok by 1,2': ['cancelled', 'b', 'c'] })
    expect(outcomes({ ratio: 0.67 }, oneFails)).toMatchObject({ 'not ok by 0': 'JOIN_FAILED < AGENT_FAILED: A' })
    expect(outcomes({ policy: { ratio: 1 / 3 }, stragglers: 'wait' }, twoFail)).toEqual({ 'no choice': ['a', 'failed', 'failed'] })
  })

  test('settled: goes on with whatever came', () => {
    expect(outcomes('settled', allFail)).toEqual({ 'no choice': ['failed', 'failed', 'failed'] })
    expect(outcomes('settled', oneFails)).toEqual({ 'no choice': ['failed', 'b', 'c'] })
  })

  test('settled with cancel, a quorum of more than there are and a ratio of none are rejected', () => {
    const joins: Join[] = [
      { policy: 'settled', stragglers: 'cancel' },
      { quorum: 4 },
      { quorum: 0 },
      { ratio: 0 },
      { ratio: 1.1 },
      { ratio: Number.NaN },
    ]
    for (const join of joins) {
      const result = toEnd(playOf(flows, { H: forks(['A', 'B', 'C'], join), ...oneFails }))
      expect(result.error).toMatchObject({ code: 'REJECTED', at: { agent: 'H', branch: 'r', turn: 1 } })
      expect(result.turns).toHaveLength(3)
    }
  })
})

describe('a join that is not met', () => {
  const agents = { A: broken, B: replies(), C: replies() }

  test('fails by default', () => {
    expect(outcomes({ policy: 'all', insufficient: 'fail' }, agents)).toEqual({ 'no choice': 'JOIN_FAILED < AGENT_FAILED: A' })
  })

  test('resumes with what there is, and says that it is not ok', () => {
    expect(outcomes({ policy: 'all', insufficient: 'resume' }, agents)).toEqual({ 'no choice': ['failed', 'b', 'c'] })
    const play = playOf(flows, { H: forks(['A', 'B', 'C'], { policy: 'all', insufficient: 'resume' }), ...agents })
    everyOrder(play, (result) => expect(joinsOf(result, 'H')).toMatchObject([{ ok: false, values: ['b', 'c'] }]))
  })

  test('asks a person: true goes on with what there is, false fails', () => {
    expect(outcomes({ policy: 'all', insufficient: 'ask' }, agents, [true, false])).toEqual({
      '{"answered":"r~1","value":true}': ['failed', 'b', 'c'],
      '{"answered":"r~1","value":false}': 'JOIN_FAILED < AGENT_FAILED: A',
    })
  })

  test('asks with what there is, needs no edge to User for it, and never expires', () => {
    const play = playOf(
      flows,
      { H: forks(['A', 'B', 'C'], { policy: 'all', insufficient: 'ask', timeoutMs: 10 }), ...agents },
      { timers: () => false },
    )
    everyOrder(play, (result) => {
      expect(result.status).toBe('running')
      expect(result.asks).toMatchObject([{ id: 'r~1', branch: 'r', agent: 'H', kind: 'join', barrier: 'r#1' }])
      expect([...result.state.timers.keys()]).toEqual([])
      const [opened] = eventsOf(result.journal, 'ask.opened')
      expect(opened?.ask).toMatchObject({ kind: 'join', join: { ok: false, values: ['b', 'c'] } })
    })
  })

  test('asks with a choice, and what did not count stays cancelled after the answer', () => {
    expect(outcomes({ policy: { quorum: 3 }, insufficient: 'ask' }, agents, [true])).toEqual({
      'not ok by 0, {"answered":"r~1","value":true}': ['failed', 'cancelled', 'cancelled'],
      'not ok by 0,1, {"answered":"r~1","value":true}': ['failed', 'b', 'cancelled'],
      'not ok by 0,2, {"answered":"r~1","value":true}': ['failed', 'cancelled', 'c'],
      'not ok by 0,1,2, {"answered":"r~1","value":true}': ['failed', 'b', 'c'],
    })
  })

  test('with no failure in it is JOIN_INSUFFICIENT: a timeout, and nobody failed', () => {
    const play = playOf(flows, {
      H: forks(['A', 'B', 'C'], { policy: 'all', timeoutMs: 5 }),
      A: replies(),
      B: () => ({ hangs: true }),
      C: replies(),
    })
    everyOrder(play, (result) => {
      expect(codesOf(result.error)).toEqual(['JOIN_INSUFFICIENT'])
      expect(result.error).toMatchObject({ at: { agent: 'H', branch: 'r', turn: 1 } })
    })
  })

  test('below a join that goes on is a failed slot there, with its causes', () => {
    const play = playOf(['Start->H->End', 'H<->M|A', 'M<->W|V'], {
      H: forks(['M', 'A'], 'settled', (join) =>
        finish(join.slots.map((slot) => (slot.status === 'failed' ? codesOf(slot.error) : slot.status))),
      ),
      M: forks(['W', 'V']),
      A: replies(),
      W: replies(),
      V: broken,
    })
    everyOrder(play, (result) => {
      expect(result.output).toEqual([['JOIN_FAILED', 'AGENT_FAILED'], 'arrived'])
      expect(turnsOf(result, 'M')).toHaveLength(1)
    })
  })
})

describe('the chain of causes', () => {
  test('goes down to the agent and turn where it began, and is the same in every order', () => {
    const play = playOf(['Start->H->End', 'H<->L|R', 'L<->M', 'M<->W|V', 'W->X', 'X->M'], {
      H: forks(['L', 'R']),
      R: broken,
      L: forks(['M']),
      M: forks(['V', 'W']),
      V: replies(),
      W: passes('X'),
      X: () => ({ throw: 'x broke' }),
    })
    const explored = everyOrder(play, (result) => {
      const { error } = result
      expect(codesOf(error)).toEqual(['JOIN_FAILED', 'JOIN_FAILED', 'JOIN_FAILED', 'AGENT_FAILED'])
      expect([error?.at, error?.cause?.at, error?.cause?.cause?.at]).toEqual([
        { branch: 'r', agent: 'H', turn: 1 },
        { branch: 'r.0', agent: 'L', turn: 1 },
        { branch: 'r.0.0', agent: 'M', turn: 1 },
      ])
      expect(rootCauseOf(error)).toMatchObject({ message: 'x broke', at: { branch: 'r.0.0.1', agent: 'X', turn: 2 } })
      expect(JSON.stringify(error)).not.toContain('attempt')
    })
    expect(explored.ends).toBe(1)
  })
})

describe('orphans', () => {
  const play = playOf(['Start->H->End', 'H<->A|B', 'B<->M', 'M<->W|V'], {
    H: forks(['A', 'B'], 'any'),
    A: replies(),
    B: forks(['M'], 'all', () => reply('b')),
    M: forks(['W', 'V'], 'all', () => reply('m')),
    W: replies(),
    V: replies(),
  })

  test('are cancelled down to the last grandchild, their attempts are aborted, and the run ends after these have', () => {
    const node = go(play, begin(play), 'H r/1', 'B r.1/1', 'M r.1.0/1', 'A r.0/1')
    expect([...node.state.aborting.keys()].sort()).toEqual(['r.1.0.0/1/1', 'r.1.0.1/1/1'])
    expect([...node.state.branches.keys()]).toEqual(['r'])
    expect([...node.state.barriers.keys()]).toEqual(['#'])
    const decided = go(play, node, 'H r/2')
    expect(decided.state.status).toBe('running')
    expect(decided.state.outcome).toEqual({ status: 'succeeded', output: ['a', 'cancelled'] })
    const half = go(play, decided, 'settle W r.1.0.0/1')
    expect(half.state.status).toBe('running')
    const done = go(play, half, 'settle V r.1.0.1/1')
    expect(done.state.status).toBe('succeeded')
  })

  test('are cancelled in every order, and nothing of them shows', () => {
    everyOrder(play, (result) => {
      const [choice] = result.choices
      if (choice === undefined || !('join' in choice) || choice.join !== 'r#1' || !choice.decidedBy.includes(0)) return
      expect(result.output).toEqual(['a', 'cancelled'])
      expect(joinsOf(result, 'H')[0]?.extra).toEqual([])
    })
  })

  test('of a grace that ran out are fenced off', () => {
    const node = go(play, begin(play), 'H r/1', 'B r.1/1', 'A r.0/1', 'H r/2')
    const settle: Command = { type: 'turn.settle', branch: 'r.1.0', agent: 'M', turn: 1, attempt: 1, how: 'fenced' }
    const done = submit(play, node, settle)
    expect(done.state.status).toBe('succeeded')
    expect(eventsOf(done.journal, 'turn.aborted')).toMatchObject([{ branch: 'r.1.0', how: 'fenced' }])
  })
})

describe('late deliveries', () => {
  test('to a barrier that has closed are refused as stale, and nothing changes', () => {
    const play = playOf(flows, { H: forks(['A', 'B', 'C'], 'any', () => ({ hangs: true })), A: replies(), B: replies(), C: replies() })
    const open = go(play, begin(play), 'H r/1')
    const closed = go(play, open, 'A r.0/1')
    const completions: Command[] = [
      { type: 'turn.complete', branch: 'r.1', agent: 'B', turn: 1, attempt: 1, action: reply('b') },
      { type: 'turn.reject', branch: 'r.1', agent: 'B', turn: 1, attempt: 1, problem: 'no' },
      {
        type: 'turn.fail',
        branch: 'r.1',
        agent: 'B',
        turn: 1,
        attempt: 1,
        retryable: true,
        error: { code: 'AGENT_FAILED', message: 'no', retryable: true, at: {} },
      },
      { type: 'activity.complete', branch: 'r.1', agent: 'B', turn: 1, attempt: 1, key: 'k', name: 'n', delivered: 0, value: 1 },
      { type: 'sleep.start', branch: 'r.1', agent: 'B', turn: 1, attempt: 1, key: 'k', name: 'n', delivered: 0, ms: 1 },
    ]
    for (const command of completions) {
      expect('refusal' in decide(open.state, command, open.state.at, play.code)).toBe(false)
      expect(refusalOf(play, closed.state, command)).toBe('STALE_ATTEMPT')
    }
  })

  test('of another turn, attempt or agent than is owed are refused as stale', () => {
    const play = playOf(flows, { H: forks(['A', 'B', 'C']), A: replies(), B: replies(), C: replies() })
    const { state } = go(play, begin(play), 'H r/1')
    const right = { type: 'turn.complete', branch: 'r.0', agent: 'A', turn: 1, attempt: 1, action: reply('a') } as const
    expect(refusalOf(play, state, right)).toBeNull()
    for (const wrong of [{ turn: 2 }, { turn: 0 }, { attempt: 2 }, { agent: 'B' }, { branch: 'r' }, { branch: 'r.9' }])
      expect(refusalOf(play, state, { ...right, ...wrong })).toBe('STALE_ATTEMPT')
  })

  test('after the run has ended are refused as stale', () => {
    const play = playOf(flows, { H: () => finish(1), A: replies(), B: replies(), C: replies() })
    const { state } = go(play, begin(play), 'H r/1')
    expect(state.status).toBe('succeeded')
    expect(refusalOf(play, state, { type: 'turn.complete', branch: 'r', agent: 'H', turn: 1, attempt: 1, action: finish(2) })).toBe(
      'STALE_ATTEMPT',
    )
    expect(refusalOf(play, state, { type: 'timer.fire', timer: 'run' })).toBe('STALE_TIMER')
  })
})

describe('a rendezvous', () => {
  const joining = ['Start->H->End', 'H->A|B', 'A|B->C', 'C->H']

  test('goes on without a merge partner that failed: C has one turn with what came, and the join tells of the failure', () => {
    const play = playOf(
      joining,
      { H: forks(['A', 'B'], 'settled', (join) => finish(seen(join))), A: broken, B: passes('C'), C: replies() },
      { joins: ['C'] },
    )
    const explored = everyOrder(play, (result) => {
      expect(requestsOf(result, 'C')).toEqual([['b']])
      expect(turnsOf(result, 'C')[0]?.message).toMatchObject({ kind: 'request', from: 'B' })
      expect(result.output).toEqual(['failed', 'c'])
    })
    expect(explored.orders).toBe(2)
  })

  test('that fails after it met fails all its slots, with one cause', () => {
    const play = playOf(
      joining,
      {
        H: forks(['A', 'B'], 'settled', (join) => finish(join.slots.map((slot) => (slot.status === 'failed' ? slot.error.at : null)))),
        A: passes('C'),
        B: passes('C'),
        C: broken,
      },
      { joins: ['C'] },
    )
    everyOrder(play, (result) => {
      const at = { branch: 'r.0', agent: 'C', turn: 2 }
      expect(result.output).toEqual([at, at])
    })
  })
})

describe('a merge function that throws', () => {
  const explode = (): never => {
    throw new Error('can not merge')
  }

  test('at a join fails the waiting branch with MERGE_FAILED', () => {
    const play = playOf(
      ['Start->H->End', 'H<->A|B'],
      { H: forks(['A', 'B'], 'all'), A: () => reply('a', { n: 1 }), B: () => reply('b', { n: 2 }) },
      { state: () => ({ n: 0 }), merge: { n: explode } },
    )
    everyOrder(play, (result) => {
      expect(result.status).toBe('failed')
      expect(rootCauseOf(result.error)).toMatchObject({ code: 'MERGE_FAILED', at: { branch: 'r', agent: 'H', turn: 1 } })
      expect(rootCauseOf(result.error)?.message).toContain('can not merge')
      expect(turnsOf(result, 'H')).toHaveLength(1)
    })
  })

  test('at a join below fails that slot only', () => {
    const play = playOf(
      ['Start->H->End', 'H<->M|C', 'M<->A|B'],
      {
        H: forks(['M', 'C'], 'settled'),
        M: forks(['A', 'B']),
        C: replies(),
        A: () => reply('a', { n: 1 }),
        B: () => reply('b', { n: 2 }),
      },
      { state: () => ({ n: 0 }), merge: { n: explode } },
    )
    everyOrder(play, (result) => expect(result.output).toEqual(['failed', 'c']))
  })

  test('at a rendezvous fails the merged branch, with all its slots', () => {
    const play = playOf(
      ['Start->H->End', 'H->A|B|D', 'A|B->C', 'C|D->H'],
      {
        H: forks(['A', 'B', 'D'], 'settled', (join) =>
          finish(join.slots.map((slot) => (slot.status === 'failed' ? slot.error.code : slot.status))),
        ),
        A: () => invoke('C', 'a', { n: 1 }),
        B: () => invoke('C', 'b', { n: 2 }),
        C: replies(),
        D: replies(),
      },
      { state: () => ({ n: 0 }), merge: { n: explode }, joins: ['C'] },
    )
    everyOrder(play, (result) => {
      expect(result.output).toEqual(['MERGE_FAILED', 'MERGE_FAILED', 'arrived'])
      expect(turnsOf(result, 'C')).toEqual([])
    })
  })

  test('that gives what is no JSON fails like one that throws', () => {
    const play = playOf(
      ['Start->H->End', 'H<->A|B'],
      { H: forks(['A', 'B'], 'all'), A: () => reply('a', { n: 1 }), B: replies() },
      { state: () => ({ n: 0 }), merge: { n: () => Number.NaN } },
    )
    everyOrder(play, (result) => expect(rootCauseOf(result.error)).toMatchObject({ code: 'MERGE_FAILED' }))
  })

  test('and is not there is refused with NEEDS_CODE, and changes nothing', () => {
    const play = playOf(
      ['Start->H->End', 'H<->A|B'],
      { H: forks(['A', 'B'], 'all'), A: () => reply('a', { n: 1 }), B: replies() },
      { state: () => ({ n: 0 }), merge: { n: () => 7 } },
    )
    const node = go(play, begin(play), 'H r/1', 'A r.0/1')
    const last: Command = { type: 'turn.complete', branch: 'r.1', agent: 'B', turn: 1, attempt: 1, action: reply('b') }
    const decision = decide(node.state, last, node.state.at, null)
    expect(decision).toMatchObject({ refusal: { code: 'NEEDS_CODE' } })
    expect(submit(play, node, last).state.branches.get('r')?.state).toEqual({ n: 7 })
  })
})

describe('retries', () => {
  const retry = { attempts: 3, backoffMs: 100, factor: 3, maxBackoffMs: 250 }
  const fallible = (made: (attempt: number) => Made): TestAgent => ({ act: ({ attempt }) => made(attempt), retry, maxRejections: 1 })
  const alone = ['Start->A->End']
  const delaysOf = (result: Result): number[] =>
    eventsOf(result.journal, 'turn.failed').flatMap(({ retryAt, at }) => (retryAt === undefined ? [] : [retryAt - at]))

  test('come after a backoff that grows, is bounded and has its jitter from a seed: the same seed, the same delays', () => {
    const agents = { A: fallible(() => ({ throw: 'a broke' })) }
    const first = toEnd(playOf(alone, agents, { nonce: 'one' }))
    const again = toEnd(playOf(alone, agents, { nonce: 'one' }))
    const other = toEnd(playOf(alone, agents, { nonce: 'two' }))
    expect(delaysOf(first)).toHaveLength(2)
    expect(delaysOf(again)).toEqual(delaysOf(first))
    expect(delaysOf(other)).not.toEqual(delaysOf(first))
    const [one = 0, two = 0] = delaysOf(first)
    expect(one).toBeGreaterThanOrEqual(50)
    expect(one).toBeLessThanOrEqual(100)
    expect(two).toBeGreaterThanOrEqual(125)
    expect(two).toBeLessThanOrEqual(250)
  })

  test('have jitter of their own on sibling branches', () => {
    const delays = Array.from({ length: 50 }, (_, i) =>
      backoffMs({ attempts: 2, backoffMs: 10_000, factor: 2, maxBackoffMs: 60_000 }, 1, `n/r.${i}/1/1`),
    )
    expect(new Set(delays).size).toBeGreaterThan(45)
    for (const delay of delays) expect(delay >= 5_000 && delay <= 10_000).toBe(true)
  })

  test('end with the failure of the last attempt, which names no attempt', () => {
    const play = playOf(alone, { A: fallible((attempt) => ({ throw: `a broke ${attempt}` })) })
    everyOrder(play, (result) => {
      expect(turnsOf(result, 'A', 'all').map((turn) => turn.attempt)).toEqual([1, 2, 3])
      expect(result.error).toEqual({
        code: 'AGENT_FAILED',
        message: 'a broke 3',
        retryable: true,
        at: { branch: 'r', agent: 'A', turn: 1 },
      })
    })
  })

  test('show the same message again, and succeed if an attempt does', () => {
    const play = playOf(alone, { A: fallible((attempt) => (attempt < 3 ? { throw: 'not yet' } : finish('done'))) }, { input: 'hi' })
    everyOrder(play, (result) => {
      expect(result.output).toBe('done')
      expect(result.messages.get('r/1')).toEqual(Array.from({ length: 3 }, () => ({ kind: 'request', from: 'Start', value: 'hi' })))
      expect(result.state.turnsUsed).toBe(1)
    })
  })

  test('do not come for what is not to be tried again', () => {
    const result = toEnd(playOf(alone, { A: fallible(() => ({ throw: 'for good', retryable: false })) }))
    expect(result.turns).toHaveLength(1)
    expect(result.error).toMatchObject({ message: 'for good' })
  })

  test('and rejections have budgets of their own, and raise one attempt number', () => {
    const made = (attempt: number): Made => {
      if (attempt === 1 || attempt === 3) return { throw: 'not yet' }
      return attempt === 2 ? invoke('Nobody') : finish(attempt)
    }
    const result = toEnd(playOf(alone, { A: fallible(made) }))
    expect(result.output).toBe(4)
    expect(result.messages.get('r/1')?.map((message) => message.kind)).toEqual(['request', 'request', 'feedback', 'feedback'])
    expect(result.state.turnsUsed).toBe(1)
  })

  test('do not refill the budget of rejections, nor these that of retries', () => {
    const rejected = toEnd(playOf(alone, { A: fallible((attempt) => (attempt % 2 === 0 ? { throw: 'no' } : invoke('Nobody'))) }))
    expect(rejected.turns).toHaveLength(3)
    expect(rejected.error).toMatchObject({ code: 'REJECTED' })
    const thrown = toEnd(playOf(alone, { A: fallible((attempt) => (attempt === 2 ? invoke('Nobody') : { throw: `no ${attempt}` })) }))
    expect(thrown.turns).toHaveLength(4)
    expect(thrown.error).toMatchObject({ code: 'AGENT_FAILED', message: 'no 4' })
  })

  test('start from nothing in the next turn', () => {
    const shy: TestAgent = {
      retry,
      maxRejections: 1,
      act: ({ attempt, agent }) => (attempt < 3 ? { throw: 'no' } : agent === 'A' ? invoke('B') : finish('b')),
    }
    expect(toEnd(playOf(['Start->A->B->End'], { A: shy, B: shy }))).toMatchObject({ status: 'succeeded', output: 'b' })
  })

  test('with no backoff are owed at once', () => {
    const play = playOf(alone, { A: { act: ({ attempt }) => (attempt === 1 ? { throw: 'no' } : finish(attempt)), retry: { attempts: 2 } } })
    const node = go(play, begin(play), 'A r/1')
    expect([...node.state.timers.keys()]).toEqual([])
    expect(attemptOf(node.state, 'r')?.attempt).toBe(2)
  })

  test('of a branch that is cancelled do not come', () => {
    const play = playOf(flows, { H: forks(['A', 'B'], 'any'), A: replies(), B: fallible(() => ({ throw: 'b broke' })), C: replies() })
    const node = go(play, begin(play), 'H r/1', 'B r.1/1')
    const [timer] = [...node.state.timers.values()]
    if (timer === undefined) throw new Error('no backoff')
    const after = go(play, node, 'A r.0/1')
    expect([...after.state.timers.keys()]).toEqual([])
    expect(refusalOf(play, after.state, firing(node.state, timer).command, timer.due)).toBe('STALE_TIMER')
    expect(refusalOf(play, node.state, firing(node.state, timer).command, timer.due - 1)).toBe('TIMER_NOT_DUE')
  })
})

describe('a rejection', () => {
  test('names the agent, the branch, what was tried and what is allowed', () => {
    const play = playOf(['Start->H->End', 'H<->A', 'H->B', 'B->H', 'B->User'], { H: forks(['A', 'B']), A: () => invoke('B'), B: replies() })
    everyOrder(play, (result) => {
      expect(turnsOf(result, 'A', 'all').map((turn) => turn.message.kind)).toEqual(['request', 'feedback', 'feedback'])
      const [message] = eventsOf(result.journal, 'turn.rejected').map((event) => event.problem)
      for (const part of ['A (branch r.0)', 'invoke B', 'A may invoke H']) expect(message).toContain(part)
      expect(codesOf(result.error)).toEqual(['JOIN_FAILED', 'REJECTED'])
      expect(rootCauseOf(result.error)).toMatchObject({ message, at: { agent: 'A', branch: 'r.0', turn: 1 } })
    })
  })

  const illegal: readonly (readonly [string, Made])[] = [
    ['an invoke without an edge', invoke('C')],
    ['an invoke of End', invoke('End')],
    ['an invoke of User', invoke('User')],
    ['a reply where nobody waits', reply('x')],
    ['a fork with one target that has no edge', fork(['A', 'C'])],
    ['a fork to End', fork(['End'])],
    ['an ask without an edge to User', { type: 'ask', question: 'may I?' }],
    ['what the host could not accept', { unacceptable: 'that is no action' }],
  ]
  for (const [what, made] of illegal)
    test(`meets ${what}`, () => {
      const play = playOf(['Start->H->End', 'H<->A', 'A<->C'], { H: () => made, A: replies(), C: replies() })
      const result = toEnd(play)
      expect(result.error).toMatchObject({ code: 'REJECTED', at: { agent: 'H', branch: 'r', turn: 1 } })
      expect(result.turns).toHaveLength(3)
      expect(result.state.turnsUsed).toBe(1)
    })

  test('meets a finish without an edge to End, and a reply without an edge back', () => {
    const play = playOf(['Start->H->End', 'H->A|B', 'A->B', 'B->H'], { H: forks(['A', 'B'], 'settled'), A: () => finish(1), B: replies() })
    everyOrder(play, (result) => expect(result.output).toEqual(['failed', 'b']))
    const other = playOf(['Start->H->End', 'H->A|B', 'A->B', 'B->H'], { H: forks(['A', 'B'], 'settled'), A: replies(), B: replies() })
    everyOrder(other, (result) => expect(result.output).toEqual(['failed', 'b']))
  })

  test('meets what handlers could not take the sequel of: a fork or a notification with no join, an ask with no answer', () => {
    for (const made of [fork(['A']), invoke('N'), { type: 'ask', question: 1 } as const]) {
      const play = playOf(['Start->H->End', 'H<->A', 'H~>N', 'N->End', 'H->User'], {
        H: { act: () => made, takes: ['request', 'feedback'] },
        A: replies(),
        N: replies(),
      })
      expect(toEnd(play).error).toMatchObject({ code: 'REJECTED', at: { agent: 'H' } })
    }
  })

  test('is final at once for handlers with no feedback, and with maxRejections of none', () => {
    for (const agent of [{ takes: ['request'] }, { maxRejections: 0 }] as const) {
      const play = playOf(['Start->H->End'], { H: { act: () => invoke('Nobody'), ...agent } })
      const result = toEnd(play)
      expect(result.turns).toHaveLength(1)
      expect(result.error).toMatchObject({ code: 'REJECTED' })
    }
  })
})

describe('the timeout of an attempt', () => {
  const slow: TestAgent = { act: ({ attempt }) => (attempt === 1 ? { timesOut: 'too slow' } : reply('in time')), retry: { attempts: 2 } }

  test('is retried like a throw, while the first attempt is aborted and awaited', () => {
    const play = playOf(flows, { H: forks(['A', 'B'], 'all'), A: slow, B: replies(), C: replies() })
    const node = go(play, begin(play), 'H r/1', 'A r.0/1')
    expect([...node.state.aborting.keys()]).toEqual(['r.0/1/1'])
    expect(attemptOf(node.state, 'r.0')).toMatchObject({ turn: 1, attempt: 2 })
    everyOrder(play, (result) => {
      expect(result.output).toEqual(['in time', 'b'])
      expect(result.choices).toEqual([{ timedOut: 'r.0/1/1' }])
      expect(eventsOf(result.journal, 'turn.aborted')).toHaveLength(1)
    })
  })

  test('of the last attempt fails the branch with TIMEOUT, and the run ends after the attempt has', () => {
    const play = playOf(flows, { H: forks(['A', 'B'], 'all'), A: () => ({ timesOut: 'too slow' }), B: replies(), C: replies() })
    everyOrder(play, (result) => {
      expect(codesOf(result.error)).toEqual(['JOIN_FAILED', 'TIMEOUT'])
      const settled = result.journal.findIndex((event) => event.type === 'turn.aborted')
      expect(settled).toBeGreaterThan(0)
      expect(settled).toBeLessThan(result.journal.findIndex((event) => event.type === 'run.failed'))
    })
  })
})

test('a timer of a fork that fires before it is due is refused, and so is one that has fired', () => {
  const play = playOf(flows, {
    H: forks(['A', 'B'], { policy: 'settled', timeoutMs: 100 }),
    A: replies(),
    B: () => ({ hangs: true }),
    C: replies(),
  })
  const node = go(play, begin(play), 'H r/1')
  const [timer] = [...node.state.timers.values()]
  if (timer === undefined) throw new Error('no timer')
  const { command, at } = firing(node.state, timer)
  expect(refusalOf(play, node.state, command, at - 1)).toBe('TIMER_NOT_DUE')
  const fired = take(play, node, { label: 'timer', command, at })
  expect(refusalOf(play, fired.state, command, at)).toBe('STALE_TIMER')
})
