/** Pausing, resuming, cancelling and answering, at every point of a run. */
import { describe, expect, test } from 'vitest'
import type { Command } from '../../src/kernel/command.js'
import { decide } from '../../src/kernel/decide.js'
import type { Join } from '../../src/kernel/join.js'
import type { State, Timer } from '../../src/kernel/state.js'
import { attemptOf, attemptsOf, isOver } from '../../src/kernel/state.js'
import type { Act } from './acts.js'
import { ask, failing, finish, forks, invoke, replies, reply, seen } from './acts.js'
import { dumpTimeless } from './dump.js'
import { codesOf, eventsOf, reportedOf, turnsOf } from './outcome.js'
import type { Node, Play, TestAgent } from './play.js'
import { begin, completionOf, everyOrder, firing, go, playOf, refusalOf, stepsOf, submit, take, toEnd } from './play.js'

const pause: Command = { type: 'run.pause' }
const resume: Command = { type: 'run.resume' }
const cancel: Command = { type: 'run.cancel', reason: 'enough' }

const asks = (timeoutMs?: number): Act => {
  return ({ message }) => {
    if (message.kind === 'answer') return reply(message.value)
    return message.kind === 'expired' ? reply('nobody') : ask('which?', timeoutMs)
  }
}
const retried: TestAgent = {
  act: ({ attempt }) => (attempt === 1 ? { throw: 'not yet' } : reply('b')),
  retry: { attempts: 2, backoffMs: 100 },
}

/** A fork with an ask, a backoff and a timeout of its join in it. */
const everything = playOf(
  ['Start->H->End', 'H<->A|B|D', 'A->User'],
  {
    H: forks(['A', 'B', 'D'], { policy: 'all', timeoutMs: 500, insufficient: 'resume' }),
    A: asks(300),
    B: retried,
    D: replies(),
  },
  { answers: () => ['yes'] },
)

/** Every different place that a run of `everything` can be in, on every way. */
const places: Node[] = []
everyOrder(everything, () => {}, { onStep: (node) => places.push(node) })

function everyPlace(visit: (node: Node) => void): void {
  expect(places.length).toBeGreaterThan(100)
  for (const node of places) visit(node)
}

/** Nothing is left to steer: the run is over, or only waits for attempts that were aborted. */
const isDecided = (state: State): boolean => isOver(state) || state.closing

/** With nothing checked, where there is much of it. */
function stateAfter(state: State, command: Command): State {
  const decision = decide(state, command, state.at, null)
  if ('refusal' in decision) throw new Error(decision.refusal.message)
  return decision.state
}

const timerOf = (state: State, kind: Timer['kind']): Timer => {
  const found = [...state.timers.values()].find((timer) => timer.kind === kind)
  if (found === undefined) throw new Error(`there is no timer of a ${kind}`)
  return found
}

describe('a pause, at every point of a run', () => {
  test('lets timers stand still: none fires, and after the resume each has what it had left', () => {
    everyPlace((node) => {
      if (isDecided(node.state)) return
      const { at } = node.state
      const paused = submit(everything, node, pause)
      for (const timer of paused.state.timers.values())
        expect(refusalOf(everything, paused.state, { type: 'timer.fire', timer: timer.id }, at + 1_000_000)).toBe('TIMER_NOT_DUE')
      const resumed = submit(everything, paused, resume, at + 7_000)
      for (const before of node.state.timers.values()) {
        const timer = resumed.state.timers.get(before.id)
        if (timer === undefined) throw new Error(`${before.id} is gone`)
        const { command, at: due } = firing(resumed.state, timer)
        // What is left at the resume is what was left at the pause.
        expect(due - (at + 7_000)).toBe(firing(node.state, before).at - at)
        if (due > resumed.state.at) expect(refusalOf(everything, resumed.state, command, due - 1)).toBe('TIMER_NOT_DUE')
        expect(refusalOf(everything, resumed.state, command, due)).toBeNull()
      }
    })
  })

  test('decides completions and answers as they come, and starts no turn', () => {
    everyPlace((node) => {
      if (isDecided(node.state)) return
      let paused = submit(everything, node, pause)
      const before = paused.journal.length
      for (let steps = stepsOf(everything, paused); steps[0] !== undefined; steps = stepsOf(everything, paused))
        paused = take(everything, paused, steps[0])
      const since = paused.journal.slice(before)
      expect(eventsOf(since, 'turn.started')).toEqual([])
      expect(eventsOf(since, 'timer.fired')).toEqual([])
      expect(paused.state.running + paused.state.aborting.size).toBe(0)
      expect(eventsOf(since, 'turn.completed').length + eventsOf(since, 'turn.failed').length).toBe(node.state.running)
      if (isOver(paused.state)) return
      const resumed = submit(everything, paused, resume)
      const owed = eventsOf(resumed.journal.slice(paused.journal.length), 'turn.started').map((event) => event.branch)
      expect(owed.sort()).toEqual([...paused.state.queue.values()].sort())
    })
  })

  test('changes nothing about the outcome: for equal choices it is that of a run that was never paused', () => {
    const paused: Play = {
      ...everything,
      steering: ({ state, schedule }) => {
        if (state.pausedAt !== null) return [resume]
        return schedule.includes('run.pause') || isDecided(state) ? [] : [pause]
      },
    }
    const plain = new Map<string, string>()
    everyOrder(everything, (result) => {
      const { choices, outcome } = reportedOf(result)
      plain.set(choices, outcome)
    })
    const steered = new Map<string, string>()
    everyOrder(paused, (result) => {
      if (result.state.pausedAt !== null) return
      const { choices, outcome } = reportedOf(result)
      steered.set(choices, outcome)
    })
    expect(steered.size).toBe(plain.size)
    for (const [choices, outcome] of plain) expect(steered.get(choices)).toBe(outcome)
  })

  test('of a run that is paused is a no-op, and so it is refused for one that has ended', () => {
    everyPlace((node) => {
      if (isDecided(node.state)) return expect(refusalOf(everything, node.state, pause)).toBe('RUN_ENDED')
      const paused = submit(everything, node, pause)
      const again = submit(everything, paused, pause)
      expect(again.state).toBe(paused.state)
      expect(again.journal).toHaveLength(paused.journal.length)
    })
  })
})

describe('a resume', () => {
  test('of a run that is not paused is refused, at every point and after its end', () => {
    everyPlace((node) => expect(refusalOf(everything, node.state, resume)).toBe('RUN_NOT_PAUSED'))
  })

  test('is done by one of five: the others are refused', () => {
    const node = submit(everything, go(everything, begin(everything), 'H r/1'), pause)
    const after = submit(everything, node, resume)
    for (let i = 0; i < 4; i++) expect(refusalOf(everything, after.state, resume)).toBe('RUN_NOT_PAUSED')
  })

  test('goes on with what was decided meanwhile', () => {
    let node = go(everything, begin(everything), 'H r/1')
    node = submit(everything, node, pause)
    node = go(everything, node, 'A r.0/1', 'B r.1/1', 'D r.2/1')
    expect(node.state.running).toBe(0)
    node = go(everything, node, 'answer r.0~1')
    expect(node.state.running).toBe(0)
    node = submit(everything, node, resume)
    expect(attemptsOf(node.state).map(({ branch }) => branch)).toEqual(['r.0'])
    expect(toEnd(everything, go(everything, node, 'A r.0/2', 'timer r.1/backoff', 'B r.1/1/2')).output).toEqual(['yes', 'b', 'd'])
  })
})

describe('time', () => {
  test('of a join that is opened while the run is paused begins at the resume', () => {
    const play = playOf(['Start->H->End', 'H<->A'], {
      H: forks(['A'], { policy: 'all', timeoutMs: 100, insufficient: 'resume' }),
      A: () => ({ hangs: true }),
    })
    let node = submit(play, begin(play), pause, 2_000)
    const [step] = stepsOf(play, node)
    if (step === undefined) throw new Error('no turn')
    node = take(play, node, { ...step, at: 2_050 })
    node = submit(play, node, resume, 2_200)
    const fire: Command = { type: 'timer.fire', timer: timerOf(node.state, 'join').id }
    expect(refusalOf(play, node.state, fire, 2_299)).toBe('TIMER_NOT_DUE')
    expect(refusalOf(play, node.state, fire, 2_300)).toBeNull()
  })

  test('of two pauses adds up', () => {
    const play = playOf(['Start->H->End', 'H->User'], { H: asks(100) })
    let node = go(play, begin(play), 'H r/1')
    for (const [from, to] of [
      [1_010, 1_500],
      [1_550, 2_000],
    ] as const)
      node = submit(play, submit(play, node, pause, from), resume, to)
    const fire: Command = { type: 'timer.fire', timer: 'r~1' }
    expect(refusalOf(play, node.state, fire, 2_039)).toBe('TIMER_NOT_DUE')
    expect(refusalOf(play, node.state, fire, 2_040)).toBeNull()
  })

  test("of the run's own limit stands still too", () => {
    const play = playOf(['Start->H->End', 'H->User'], { H: asks() }, { limits: { timeoutMs: 1_000 } })
    let node = go(play, begin(play), 'H r/1')
    node = submit(play, submit(play, node, pause, 1_400), resume, 5_000)
    const fire: Command = { type: 'timer.fire', timer: 'run' }
    expect(refusalOf(play, node.state, fire, 5_599)).toBe('TIMER_NOT_DUE')
    const over = submit(play, node, fire, 5_600)
    expect(over.state.outcome).toMatchObject({ status: 'failed', error: { code: 'LIMIT_TIME' } })
  })

  test('of a backoff is told by the clock on the wall, however long the run was paused before', () => {
    const play = playOf(['Start->A->End'], { A: { act: () => finish(1), retry: { attempts: 2, backoffMs: 100 } } })
    let node = submit(play, submit(play, begin(play), pause, 1_010), resume, 9_000)
    const error = { code: 'AGENT_FAILED', message: 'no', retryable: true, at: {} } as const
    const speaker = { branch: 'r', agent: 'A', turn: 1, attempt: 1 } as const
    node = submit(play, node, { type: 'turn.fail', ...speaker, error, retryable: true }, 9_500)
    const [failed] = eventsOf(node.journal, 'turn.failed')
    const retryAt = failed?.retryAt ?? 0
    expect(retryAt).toBeGreaterThanOrEqual(9_550)
    expect(retryAt).toBeLessThanOrEqual(9_600)
    const fire: Command = { type: 'timer.fire', timer: 'r/backoff' }
    expect(refusalOf(play, node.state, fire, retryAt - 1)).toBe('TIMER_NOT_DUE')
    expect(refusalOf(play, node.state, fire, retryAt)).toBeNull()
  })

  test('of a durable sleep stands still, and its end is its result', () => {
    const play = playOf(['Start->A->End'], { A: () => finish(1) })
    const speaker = { branch: 'r', agent: 'A', turn: 1, attempt: 1, key: 'sleep/1', name: 'sleep', delivered: 0 } as const
    let node = submit(play, begin(play), { type: 'sleep.start', ...speaker, ms: 100 })
    expect(refusalOf(play, node.state, { type: 'sleep.start', ...speaker, ms: 100 })).toBe('ACTIVITY_RECORDED')
    const { id } = timerOf(node.state, 'sleep')
    node = submit(play, node, pause, 1_090)
    expect(refusalOf(play, node.state, { type: 'timer.fire', timer: id }, 9_000)).toBe('TIMER_NOT_DUE')
    node = submit(play, node, resume, 2_000)
    expect(refusalOf(play, node.state, { type: 'timer.fire', timer: id }, 2_009)).toBe('TIMER_NOT_DUE')
    node = submit(play, node, { type: 'timer.fire', timer: id }, 2_010)
    expect(node.state.work.get('r')?.records.get('sleep/1')).toMatchObject({ status: 'completed' })
    expect(node.state.timers.size).toBe(0)
    expect(toEnd(play, node).output).toBe(1)
  })

  test('of an attempt runs on while the run is paused: it times out, and its retry waits for the resume', () => {
    const play = playOf(['Start->A->End'], {
      A: { act: ({ attempt }) => (attempt === 1 ? { timesOut: 'slow' } : finish(attempt)), retry: { attempts: 2 } },
    })
    let node = submit(play, begin(play), pause)
    node = go(play, node, 'A r/1')
    expect(node.state.running).toBe(0)
    expect([...node.state.aborting.keys()]).toEqual(['r/1/1'])
    node = submit(play, node, resume)
    expect(attemptOf(node.state, 'r')).toMatchObject({ attempt: 2 })
  })

  test('that a caller gives never goes back', () => {
    const node = submit(everything, go(everything, begin(everything), 'H r/1'), pause, 5_000)
    const earlier = submit(everything, node, resume, 1)
    expect(earlier.state.at).toBe(5_000)
    expect(earlier.state.pausedMs).toBe(0)
  })
})

describe('a cancellation, at every point of a run', () => {
  const cancelled = (node: Node): Node => {
    const after = submit(everything, node, cancel)
    const { state } = after
    expect([state.branches.size, state.barriers.size, state.running, state.queue.size, state.asks.size, state.timers.size]).toEqual([
      0, 0, 0, 0, 0, 0,
    ])
    expect(state.pausedAt).toBeNull()
    const running = [...attemptsOf(node.state), ...node.state.aborting.values()].map((attempt) => attempt.branch)
    expect([...state.aborting.values()].map((attempt) => attempt.branch).sort()).toEqual(running.sort())
    return after
  }

  test('closes everything, waits for what was running, and is the end', () => {
    everyPlace((node) => {
      if (isDecided(node.state)) return expect(refusalOf(everything, node.state, cancel)).toBe('RUN_ENDED')
      const after = cancelled(node)
      expect(after.state.status).toBe(after.state.aborting.size === 0 ? 'cancelled' : 'running')
      const result = toEnd(everything, after)
      expect(result.status).toBe('cancelled')
      expect(result.journal.at(-1)).toMatchObject({ type: 'run.cancelled', reason: 'enough' })
      expect(eventsOf(result.journal.slice(node.journal.length), 'turn.started')).toEqual([])
    })
  })

  test('clears the pause of a run that is paused', () => {
    everyPlace((node) => {
      if (isDecided(node.state)) return
      const after = cancelled(submit(everything, node, pause))
      expect(refusalOf(everything, after.state, resume)).toBe('RUN_NOT_PAUSED')
      expect(toEnd(everything, after).status).toBe('cancelled')
    })
  })

  test('is a no-op the second time, before and after the end', () => {
    everyPlace((node) => {
      if (isDecided(node.state)) return
      const after = submit(everything, node, cancel)
      expect(submit(everything, after, { type: 'run.cancel', reason: 'really' }).state).toBe(after.state)
      const { state } = toEnd(everything, after)
      expect(decide(state, cancel, state.at, everything.code)).toEqual({ events: [], state })
    })
  })

  test('lets nothing in that comes late: completions, answers, timers, a pause', () => {
    everyPlace((node) => {
      if (isDecided(node.state)) return
      const steps = stepsOf(everything, node)
      const { state } = submit(everything, node, cancel)
      for (const { command, at } of steps) {
        if (command.type === 'turn.settle') continue
        const expected = { 'ask.answer': 'ASK_NOT_FOUND', 'timer.fire': 'STALE_TIMER' }[command.type as string] ?? 'STALE_ATTEMPT'
        expect(refusalOf(everything, state, command, at)).toBe(expected)
      }
      expect(refusalOf(everything, state, pause)).toBe('RUN_ENDED')
    })
  })

  test('is what a pause is told of while the run still waits for what was in flight', () => {
    everyPlace((node) => {
      if (isDecided(node.state)) return
      const { state } = submit(everything, node, cancel)
      const said = state.status === 'cancelled' ? /has ended$/ : /is being cancelled: it only waits for what was in flight to stop$/
      expect(decide(state, pause, state.at, everything.code)).toEqual({
        refusal: { code: 'RUN_ENDED', message: expect.stringMatching(said) as string },
      })
    })
  })

  test('closes forks in forks, however deep they nest', () => {
    const depth = 6_000
    const play = playOf(['Start->H->End', 'H<->M'], { H: forks(['M']), M: forks(['H']) }, { limits: { maxDepth: depth } })
    let { state } = begin(play)
    for (let level = 0; level < depth; level++) {
      const [attempt] = attemptsOf(state)
      const command = attempt === undefined ? null : completionOf(play, state, attempt)
      if (command === null) throw new Error('nothing is owed')
      state = stateAfter(state, command)
    }
    expect(state.branches.size).toBe(depth + 1)
    const { branches, barriers, aborting } = stateAfter(state, cancel)
    expect([branches.size, barriers.size, [...aborting.values()].map(({ branch }) => branch.split('.').length)]).toEqual([
      0,
      0,
      [depth + 1],
    ])
  })

  test('closes detached branches too', () => {
    const play = playOf(['Start->H->End', 'H~>N', 'N->End'], {
      H: ({ message }) => (message.kind === 'join' ? finish('h') : invoke('N')),
      N: () => ({ hangs: true }),
    })
    const node = go(play, begin(play), 'H r/1', 'H r/2')
    expect(node.state.outcome).toEqual({ status: 'succeeded', output: 'h' })
    const after = submit(play, node, cancel)
    expect([...after.state.aborting.keys()]).toEqual(['r.0/1/1'])
    expect(toEnd(play, after).status).toBe('cancelled')
  })

  test('of a run that was never started is refused, and so is everything else', () => {
    const { state } = { state: begin(everything).state }
    const start: Command = { type: 'run.start', runId: 'run', nonce: 'n', shape: everything.shape, tags: {} }
    expect(refusalOf(everything, state, start)).toBe('RUN_EXISTS')
  })
})

describe('an answer', () => {
  const play = playOf(['Start->H->End', 'H->User'], {
    H: ({ message }) => (message.kind === 'answer' ? finish([message.question, message.value]) : ask('which?', 100)),
  })
  const answer = (value: unknown, askId = 'r~1'): Command => ({ type: 'ask.answer', askId, value })

  test('is the message of the next turn, with the question', () => {
    const node = submit(play, go(play, begin(play), 'H r/1'), answer({ a: 1 }))
    expect(node.state.branches.get('r')?.message).toEqual({ kind: 'answer', askId: 'r~1', question: 'which?', value: { a: 1 } })
    expect(node.state.timers.size).toBe(0)
    expect(toEnd(play, node).output).toEqual(['which?', { a: 1 }])
  })

  test('that is the second is refused with ASK_ALREADY_ANSWERED, also after the run has ended', () => {
    const node = submit(play, go(play, begin(play), 'H r/1'), answer(1))
    expect(refusalOf(play, node.state, answer(2))).toBe('ASK_ALREADY_ANSWERED')
    expect(refusalOf(play, toEnd(play, node).state, answer(2))).toBe('ASK_ALREADY_ANSWERED')
  })

  test('to an ask that was never open, has expired or was closed is refused with ASK_NOT_FOUND', () => {
    const node = go(play, begin(play), 'H r/1')
    expect(refusalOf(play, node.state, answer(1, 'r~2'))).toBe('ASK_NOT_FOUND')
    expect(refusalOf(play, go(play, node, 'timer r~1').state, answer(1))).toBe('ASK_NOT_FOUND')
    expect(refusalOf(play, submit(play, node, cancel).state, answer(1))).toBe('ASK_NOT_FOUND')
  })

  test('while the run is paused is decided, and its turn waits', () => {
    const node = submit(play, submit(play, go(play, begin(play), 'H r/1'), pause), answer(1))
    expect(node.state.running).toBe(0)
    expect(submit(play, node, resume).state.running).toBe(1)
  })

  test('and the expiry exclude each other, in every order', () => {
    const seenKinds = new Set<string>()
    const either = playOf(['Start->H->End', 'H->User'], { H: asksThenFinishes }, { answers: () => ['yes'] })
    everyOrder(either, (result) => {
      expect(turnsOf(result, 'H')).toHaveLength(2)
      seenKinds.add(result.output as string)
    })
    expect(seenKinds).toEqual(new Set(['answer', 'expired']))
  })
})

const asksThenFinishes: Act = ({ message }) =>
  message.kind === 'answer' || message.kind === 'expired' ? finish(message.kind) : ask('which?', 50)

describe('the expiry of an ask', () => {
  test('is the message of the next turn where there is a handler for it', () => {
    const play = playOf(['Start->H->End', 'H->User'], { H: { act: asksThenFinishes, takes: ['request', 'answer', 'expired'] } })
    everyOrder(play, (result) => {
      expect(result.output).toBe('expired')
      expect(turnsOf(result, 'H')[1]?.message).toEqual({ kind: 'expired', askId: 'r~1', question: 'which?' })
      expect(result.choices).toEqual([{ expired: 'r~1' }])
    })
  })

  test('fails the branch with ASK_EXPIRED where there is none', () => {
    const play = playOf(['Start->H->End', 'H<->A|B', 'A->User'], {
      H: forks(['A', 'B']),
      A: { act: () => ask('which?', 50), takes: ['request', 'answer'] },
      B: replies(),
    })
    everyOrder(play, (result) => {
      expect(codesOf(result.error)).toEqual(['JOIN_FAILED', 'ASK_EXPIRED'])
      expect(result.error?.cause).toMatchObject({ at: { agent: 'A', branch: 'r.0' } })
      expect(turnsOf(result, 'A')).toHaveLength(1)
    })
  })

  test('does not come where none was asked for', () => {
    const play = playOf(['Start->H->End', 'H->User'], { H: asks() })
    const node = go(play, begin(play), 'H r/1')
    expect(node.state.timers.size).toBe(0)
    expect(toEnd(play, node)).toMatchObject({ status: 'running', asks: [{ id: 'r~1', expiresAt: null }] })
  })
})

describe('an answer about a join', () => {
  const join: Join = { policy: 'all', insufficient: 'ask' }
  const play = playOf(['Start->H->End', 'H<->A|B'], { H: forks(['A', 'B'], join), A: replies(), B: () => failing('b broke') })
  const answer = (value: unknown): Command => ({ type: 'ask.answer', askId: 'r~1', value })
  const open = go(play, begin(play), 'H r/1', 'A r.0/1', 'B r.1/1')

  test('that is no boolean is refused with ASK_INVALID_ANSWER, and the ask stays open', () => {
    for (const value of ['true', 1, null, undefined, {}, []]) expect(refusalOf(play, open.state, answer(value))).toBe('ASK_INVALID_ANSWER')
    expect(open.state.asks.has('r~1')).toBe(true)
  })

  test('of true goes on with what there is, of false fails the join', () => {
    expect(toEnd(play, submit(play, open, answer(true)))).toMatchObject({ status: 'succeeded', output: ['a', 'failed'] })
    expect(codesOf(toEnd(play, submit(play, open, answer(false))).error)).toEqual(['JOIN_FAILED', 'AGENT_FAILED'])
  })

  test('that is the second is refused with ASK_ALREADY_ANSWERED, if the first was true', () => {
    expect(refusalOf(play, submit(play, open, answer(true)).state, answer(true))).toBe('ASK_ALREADY_ANSWERED')
  })

  test('that is the second is refused with ASK_ALREADY_ANSWERED, if the first was false', () => {
    expect(refusalOf(play, submit(play, open, answer(false)).state, answer(true))).toBe('ASK_ALREADY_ANSWERED')
  })

  test('that is the second is refused with ASK_ALREADY_ANSWERED, if the first let the branch go past its fork', () => {
    const flows = ['Start->H->End', 'H<->M', 'M<->W|V', 'W->H']
    const past = playOf(flows, {
      H: forks(['M'], 'settled', (joined) => finish({ slots: seen(joined), extra: joined.extra })),
      M: forks(['W', 'V'], { policy: 'all', insufficient: 'ask', timeoutMs: 10 }, () => reply('m')),
      W: () => invoke('H', 'w'),
      V: () => ({ hangs: true }),
    })
    const node = go(past, begin(past), 'H r/1', 'M r.0/1', 'W r.0.0/1', 'timer r.0#1')
    const first: Command = { type: 'ask.answer', askId: 'r.0~1', value: true }
    const after = submit(past, node, first)
    expect(refusalOf(past, after.state, first)).toBe('ASK_ALREADY_ANSWERED')
    const result = toEnd(past, after)
    expect(result.output).toEqual({ slots: ['escaped'], extra: [{ by: 'W', value: 'w' }] })
    expect(turnsOf(result, 'M')).toHaveLength(1)
  })

  test('comes too late for a branch that was cancelled meanwhile', () => {
    const outer = playOf(['Start->H->End', 'H<->A|M', 'M<->B'], {
      H: forks(['A', 'M'], 'any', (joined) => finish(seen(joined))),
      A: replies(),
      M: forks(['B'], join),
      B: () => failing('b broke'),
    })
    const node = go(outer, begin(outer), 'H r/1', 'M r.1/1', 'B r.1.0/1', 'A r.0/1')
    expect(node.state.asks.size).toBe(0)
    expect(refusalOf(outer, node.state, { type: 'ask.answer', askId: 'r.1~1', value: true })).toBe('ASK_NOT_FOUND')
    expect(toEnd(outer, node).output).toEqual(['a', 'cancelled'])
  })

  test('is decided while the run is paused', () => {
    const node = submit(play, submit(play, open, pause), answer(true))
    expect(node.state.running).toBe(0)
    expect(toEnd(play, submit(play, node, resume)).output).toEqual(['a', 'failed'])
  })
})

test('a refused command leaves no trace: the state it was refused on is as it was', () => {
  const node = go(everything, begin(everything), 'H r/1')
  const before = dumpTimeless(node.state)
  for (const command of [resume, { type: 'timer.fire', timer: 'x' }, { type: 'ask.answer', askId: 'x', value: 1 }] as const)
    expect(refusalOf(everything, node.state, command)).not.toBeNull()
  expect(dumpTimeless(node.state)).toBe(before)
})
