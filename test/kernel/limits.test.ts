/** Limits of a run: reserved before anything starts, crossed by the run and by nobody in it. */
import { describe, expect, test } from 'vitest'
import type { Limits } from '../../src/define/limits.js'
import type { Act } from './acts.js'
import { finish, fork, forks, invoke, passes, replies, reply } from './acts.js'
import type { Result } from './outcome.js'
import { eventsOf, reportedOf } from './outcome.js'
import type { Play } from './play.js'
import { begin, everyOrder, go, playOf, refusalOf, submit, toEnd } from './play.js'

/** Nothing but the run itself is said to have failed. */
function blamesNobody(result: Result, code: string): void {
  expect(result.status).toBe('failed')
  expect(result.error).toMatchObject({ code, at: {} })
  expect(Object.keys(result.error?.at ?? {})).toEqual([])
  expect(result.error).not.toHaveProperty('cause')
  expect(eventsOf(result.journal, 'branch.settled').filter((event) => event.status === 'failed')).toEqual([])
  expect(result.choices.at(-1)).toEqual({ closed: 'limit' })
}

/** Two levels: 1 turn of H, 3 below, 2 below one of these, then 1 and 1: eight turns in all. */
const tree = (limits: Limits): Play =>
  playOf(
    ['Start->H->End', 'H<->A|B|C', 'A<->X|Y'],
    { H: forks(['A', 'B', 'C']), A: forks(['X', 'Y'], 'all', () => reply('a')), B: replies(), C: replies(), X: replies(), Y: replies() },
    { limits },
  )

const started = (result: Result): number => result.turns.filter((turn) => turn.attempt === 1).length

describe('the turns of a run', () => {
  for (const maxTurns of [1, 2, 3, 4, 5, 6, 7])
    test(`with a budget of ${maxTurns} of the 8 it needs: no more than that ever start, in every order`, () => {
      everyOrder(tree({ maxTurns }), (result) => {
        blamesNobody(result, 'LIMIT_TURNS')
        expect(started(result)).toBeLessThanOrEqual(maxTurns)
        expect(result.state.turnsUsed).toBe(started(result))
      })
    })

  test('are enough with exactly what it needs', () => {
    everyOrder(tree({ maxTurns: 8 }), (result) => {
      expect(result).toMatchObject({ status: 'succeeded', output: ['a', 'b', 'c'] })
      expect(started(result)).toBe(8)
    })
  })

  test('are reserved before any starts: of a fork of three none does where there is room for two', () => {
    everyOrder(tree({ maxTurns: 3 }), (result) => {
      blamesNobody(result, 'LIMIT_TURNS')
      expect(started(result)).toBe(1)
    })
  })

  test('are not used by retries and rejections', () => {
    const play = playOf(
      ['Start->A->End'],
      {
        A: {
          act: ({ attempt }) => (attempt === 1 ? { throw: 'no' } : attempt === 2 ? invoke('Nobody') : finish(attempt)),
          retry: { attempts: 2, backoffMs: 10 },
        },
      },
      { limits: { maxTurns: 1, maxTurnsPerBranch: 1 } },
    )
    everyOrder(play, (result) => expect(result).toMatchObject({ status: 'succeeded', output: 3 }))
  })

  test('are used by detached branches as well', () => {
    const play = playOf(
      ['Start->H->End', 'H~>N', 'N->End'],
      { H: ({ message }) => (message.kind === 'join' ? finish('h') : invoke('N')), N: () => finish('n') },
      { limits: { maxTurns: 2 } },
    )
    everyOrder(play, (result) => {
      blamesNobody(result, 'LIMIT_TURNS')
      expect(started(result)).toBe(1)
    })
  })

  test('crossed by a run that is paused fail it all the same', () => {
    const play = tree({ maxTurns: 3 })
    const node = go(play, submit(play, begin(play), { type: 'run.pause' }), 'H r/1')
    expect(node.state).toMatchObject({ status: 'failed', pausedAt: null })
  })
})

describe('the turns of one branch', () => {
  const pingPong: Act = ({ agent }) => invoke(agent === 'A' ? 'B' : 'A')
  const play = (maxTurnsPerBranch: number): Play =>
    playOf(
      ['Start->H->End', 'H<->A|B|C', 'A<->B'],
      { H: forks(['A', 'C'], 'settled'), A: pingPong, B: pingPong, C: replies() },
      { limits: { maxTurnsPerBranch } },
    )

  test('are counted by branch, and crossing them fails the run', () => {
    for (const budget of [1, 2, 5])
      everyOrder(play(budget), (result) => {
        blamesNobody(result, 'LIMIT_TURNS')
        const most = Math.max(...result.turns.map((turn) => turn.turn))
        expect(most).toBe(budget)
        expect(eventsOf(result.journal, 'turn.started').filter((event) => event.branch === 'r.0')).toHaveLength(budget)
      })
  })

  test('are a thousand if nothing is said', () => {
    const { shape } = playOf(['Start->A->End'], {})
    expect(shape.limits).toEqual({
      timeoutMs: null,
      maxTurns: 1_000_000,
      maxTurnsPerBranch: 1_000,
      maxBranches: 1_000_000,
      maxDepth: 32,
      maxFanOut: 100_000,
      concurrency: null,
    })
    const result = toEnd(playOf(['Start->A<->B->End'], { A: passes('B'), B: passes('A') }))
    blamesNobody(result, 'LIMIT_TURNS')
    expect(result.turns).toHaveLength(1_000)
  })
})

describe('the branches of a run', () => {
  test('are reserved for a whole fork: where there is no room for all, none is opened', () => {
    for (const maxBranches of [1, 2, 3])
      everyOrder(tree({ maxBranches }), (result) => {
        blamesNobody(result, 'LIMIT_BRANCHES')
        expect(eventsOf(result.journal, 'branch.opened')).toHaveLength(1)
        expect(started(result)).toBe(1)
      })
    for (const maxBranches of [4, 5])
      everyOrder(tree({ maxBranches }), (result) => {
        blamesNobody(result, 'LIMIT_BRANCHES')
        expect(eventsOf(result.journal, 'branch.opened')).toHaveLength(4)
      })
  })

  test('are enough with exactly what it needs', () => {
    everyOrder(tree({ maxBranches: 6 }), (result) => expect(result.status).toBe('succeeded'))
  })

  test('are needed by Start edges and by notifications too', () => {
    const starts = playOf(['Start->A|B', 'A|B->End'], { A: replies(), B: replies() }, { limits: { maxBranches: 1 } })
    everyOrder(starts, (result) => {
      blamesNobody(result, 'LIMIT_BRANCHES')
      expect(result.turns).toEqual([])
    })
    for (const act of [() => invoke('N'), () => fork(['N'])]) {
      const notifies = playOf(['Start->H->End', 'H~>N', 'N->End'], { H: act, N: replies() }, { limits: { maxBranches: 1 } })
      everyOrder(notifies, (result) => blamesNobody(result, 'LIMIT_BRANCHES'))
    }
  })

  test('that are over still count: it is how many a run may ever have', () => {
    const again: Act = ({ turn }) => (turn === 4 ? finish(turn) : fork(['A']))
    const play = (maxBranches: number): Play => playOf(['Start->H->End', 'H<->A'], { H: again, A: replies() }, { limits: { maxBranches } })
    everyOrder(play(4), (result) => expect(result.output).toBe(4))
    everyOrder(play(3), (result) => blamesNobody(result, 'LIMIT_BRANCHES'))
  })
})

describe('the depth of a run', () => {
  test('is how deep forks and notifications nest', () => {
    everyOrder(tree({ maxDepth: 2 }), (result) => expect(result.status).toBe('succeeded'))
    everyOrder(tree({ maxDepth: 1 }), (result) => {
      blamesNobody(result, 'LIMIT_DEPTH')
      expect(result.turns.every((turn) => turn.branch.split('.').length <= 2)).toBe(true)
    })
  })

  test('does not grow where a branch moves or forks again', () => {
    const play = playOf(
      ['Start->H->End', 'H<->A', 'H->G', 'G<->A', 'G->End'],
      {
        H: ({ message, turn }) => (message.kind === 'join' && turn > 3 ? invoke('G') : fork(['A'])),
        G: forks(['A'], 'all', () => finish('g')),
        A: replies(),
      },
      { limits: { maxDepth: 1 } },
    )
    everyOrder(play, (result) => expect(result.output).toBe('g'))
  })
})

describe('the fan-out of a fork', () => {
  test('is how many calls it may have: one more fails the run before any starts', () => {
    everyOrder(tree({ maxFanOut: 3 }), (result) => expect(result.status).toBe('succeeded'))
    everyOrder(tree({ maxFanOut: 2 }), (result) => {
      blamesNobody(result, 'LIMIT_FANOUT')
      expect(eventsOf(result.journal, 'branch.opened')).toHaveLength(1)
    })
  })
})

describe('the time of a run', () => {
  test('fails it with LIMIT_TIME, whenever it is over, and what was running is aborted and awaited', () => {
    const play: Play = { ...tree({ timeoutMs: 100 }), timers: () => true }
    const kinds = new Set<string>()
    everyOrder(play, (result) => {
      kinds.add(result.status)
      if (result.status === 'succeeded') return
      blamesNobody(result, 'LIMIT_TIME')
      expect(result.state.aborting.size).toBe(0)
    })
    expect(kinds).toEqual(new Set(['succeeded', 'failed']))
  })

  test('is not over before it is', () => {
    const play = tree({ timeoutMs: 100 })
    const node = begin(play)
    expect(() => submit(play, node, { type: 'timer.fire', timer: 'run' }, 1_099)).toThrow('TIMER_NOT_DUE')
    expect(submit(play, node, { type: 'timer.fire', timer: 'run' }, 1_100).state.outcome).toMatchObject({ status: 'failed' })
  })
})

describe('what child runs use', () => {
  const play = playOf(['Start->H->End'], { H: () => finish('h') }, { limits: { tokens: 100 } })
  const node = begin(play)
  const over = (tokens: number, seq = node.state.seq) => ({ type: 'run.overspend', more: { tokens, costUsd: 0 }, seq }) as const

  test('crosses the limit of the run if it is too much, and is nothing if it is not', () => {
    expect(submit(play, node, over(101)).state).toMatchObject({ closing: true })
    expect(submit(play, node, over(100)).state.seq).toBe(node.state.seq)
  })

  test('is refused if the run has gone on since: what they have used may be counted by then', () => {
    expect(refusalOf(play, node.state, over(101, node.state.seq - 1))).toBe('STALE_REVISION')
  })

  test('changes nothing of a run that is ending', () => {
    const cancelled = submit(play, node, { type: 'run.cancel' })
    const { seq } = cancelled.state
    expect(submit(play, cancelled, over(101, seq)).state.seq).toBe(seq)
  })
})

describe('concurrency', () => {
  test('only delays: never more turns at once, and the outcome is what it is without', () => {
    const outcomes = new Set<string>()
    everyOrder(tree({}), (result) => outcomes.add(reportedOf(result).outcome.replace(/"run\.started".*/, '')))
    for (const concurrency of [1, 2, 3]) {
      const most: number[] = []
      everyOrder(tree({ concurrency }), (result) => expect(result).toMatchObject({ status: 'succeeded', output: ['a', 'b', 'c'] }), {
        onStep: ({ state }) => most.push(state.running),
      })
      expect(Math.max(...most)).toBe(concurrency)
    }
    expect(outcomes.size).toBe(1)
  })

  test('starts what has waited longest', () => {
    const play = playOf(
      ['Start->H->End', 'H<->A|B|C'],
      { H: forks(['A', 'B', 'C']), A: replies(), B: replies(), C: replies() },
      { limits: { concurrency: 1 } },
    )
    const explored = everyOrder(play, (result) => expect(result.turns.map((turn) => turn.agent)).toEqual(['H', 'A', 'B', 'C', 'H']))
    expect(explored.orders).toBe(1)
  })

  test('is given back by what is cancelled: a branch that waits for its turn and is cancelled never starts', () => {
    const play = playOf(
      ['Start->H->End', 'H<->A|B|C'],
      { H: forks(['A', 'B', 'C'], 'any'), A: replies(), B: replies(), C: replies() },
      { limits: { concurrency: 1 } },
    )
    everyOrder(play, (result) => {
      expect(result.output).toEqual(['a', 'cancelled', 'cancelled'])
      expect(result.turns.map((turn) => turn.agent)).toEqual(['H', 'A', 'H'])
    })
  })
})

test('what a call that is tried again has used so far counts before it is, and once', () => {
  const play = playOf(['Start->H->End'], { H: () => finish('h') }, { limits: { tokens: 100 } })
  const speaker = { branch: 'r', agent: 'H', turn: 1, attempt: 1, key: 'model/0', name: 'model', delivered: 0 } as const
  const reserve = { tokens: 40, costUsd: 0 }
  const start = { type: 'activity.start', ...speaker, reserve } as const
  const again = { ...start, used: { tokens: 30, costUsd: 0 } }
  const twice = submit(play, submit(play, begin(play), start), again)
  expect(twice.state.spent).toEqual({ tokens: 30, costUsd: 0, reserved: reserve })
  const usage = { calls: 3, inputTokens: 60, outputTokens: 35 }
  const thrice = submit(play, twice, again)
  const done = submit(play, thrice, { type: 'activity.complete', ...speaker, value: 'said', usage })
  expect(done.state).toMatchObject({ status: 'running', spent: { tokens: 95, reserved: { tokens: 0 } } })
  // There is no room for a fourth: 90 are used, and it may use 40.
  blamesNobody(toEnd(play, submit(play, thrice, again)), 'LIMIT_TOKENS')
})
