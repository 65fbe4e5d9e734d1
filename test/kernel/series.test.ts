/** Commands that are decided together: the same as one after the other, and what they began from stays as it was. */
import { describe, expect, test } from 'vitest'
import type { Command } from '../../src/kernel/command.js'
import { decide } from '../../src/kernel/decide.js'
import { DecisionSeries } from '../../src/kernel/decision-series.js'
import type { Event } from '../../src/kernel/event.js'
import { evolve } from '../../src/kernel/evolve.js'
import type { Code } from '../../src/kernel/shape.js'
import type { State } from '../../src/kernel/state.js'
import { type Act, failing, finish, fork, forks, invoke, passes, replies, reply } from './acts.js'
import { Writer } from './dump.js'
import { begin, go, type Play, playOf, randomOf, stepsOf, take } from './play.js'

const six = ['A', 'A', 'B', 'A', 'B', 'A']
const plays: Readonly<Record<string, Play>> = {
  'a fork that waits for all': playOf(['Start->H->End', 'H<->A|B'], { H: forks(six), A: replies(), B: replies() }),
  'a fork that cancels the others': playOf(['Start->H->End', 'H<->A|B'], { H: forks(six, { quorum: 2 }), A: replies(), B: replies() }),
  'a rendezvous on the way': playOf(
    ['Start->H->End', 'H->A|B', 'A->C', 'B->A', 'C->H'],
    { H: forks(six), A: passes('C'), B: passes('A'), C: replies() },
    { joins: ['C'] },
  ),
  'turns that wait for others': playOf(
    ['Start->H->End', 'H<->A|B'],
    { H: forks(six, { quorum: 4 }), A: replies(), B: () => ({ throw: 'not today', retryable: true }) },
    { limits: { concurrency: 2 } },
  ),
}

/** Wide enough that its children are kept as one, and those that only answer are decided by a short way. */
const wide = Array.from({ length: 40 }, (_, index) => ({ to: index % 9 === 4 ? 'B' : 'A', request: index }))
const odd: Act = ({ branch, attempt, request, message }) => {
  if (message.kind === 'join') return reply('joined')
  const kind = Number(branch.split('.').at(-1)) % 7
  if (kind === 0) return failing('not this one')
  if (kind === 1) return attempt === 1 ? { throw: 'not yet', retryable: true } : reply(request)
  if (kind === 2) return invoke('C', request)
  if (kind === 3) return fork(['C', 'C'])
  if (kind === 4) return attempt === 1 ? { unacceptable: 'not like this' } : reply()
  return reply(kind === 5 ? undefined : { of: request })
}
const flows = ['Start->H->End', 'H<->A|B', 'B<->C', 'C->H']
const team = { A: replies(), B: { act: odd, retry: { attempts: 2 } }, C: replies() }
const widePlays: Readonly<Record<string, Play>> = {
  'that waits for all': playOf(['Start->H->End', 'H<->A|B'], { H: forks(wide), A: replies(), B: () => reply() }),
  'of which some do other things': playOf(flows, { H: forks(wide, 'settled'), ...team }),
  'that cancels the others': playOf(flows, { H: forks(wide, { quorum: 20 }), ...team }),
  'whose turns wait for room': playOf(flows, { H: forks(wide, 'settled'), ...team }, { limits: { concurrency: 5 } }),
  'beside which something else works on': playOf(
    ['Start->H|I', 'H|I->End', 'H<->A|B'],
    { H: forks(wide), A: replies(), B: () => reply(), I: () => ({ hangs: true }) },
    { result: 'list' },
  ),
  'with a rendezvous behind it': playOf(flows, { H: forks(wide, 'settled'), ...team }, { joins: ['C'] }),
  'with a state': playOf(
    flows,
    { H: forks(wide, 'settled'), ...team, A: ({ branch }) => (branch.endsWith('3') ? reply(1, { n: 1 }) : reply(2)) },
    { state: () => ({ n: 0 }), merge: { n: 'last' } },
  ),
}

/** The commands of one order, with some that come again and are refused. */
function commandsOf(play: Play, seed: number): Command[] {
  const random = randomOf(seed)
  const commands: Command[] = []
  let node = begin(play)
  for (let steps = stepsOf(play, node); steps.length > 0; steps = stepsOf(play, node)) {
    const step = steps[Math.floor(random() * steps.length)] as (typeof steps)[number]
    node = take(play, node, { ...step, at: node.state.at })
    commands.push(step.command)
    if (random() < 0.3) commands.push(step.command)
  }
  return commands
}

function oneByOne(origin: State, commands: readonly Command[], code: Code | null): { state: State; made: unknown[] } {
  let state = origin
  const made = commands.map((command) => {
    const decision = decide(state, command, origin.at, code)
    if ('refusal' in decision) return decision
    state = decision.state
    return { events: decision.events }
  })
  return { state, made }
}

/** Written down anew: a writer remembers what it has seen, and what must not have changed is looked at again. */
const written = (state: State): string => new Writer().write(state)

function expectSame(origin: State, commands: readonly Command[], code: Code | null): readonly unknown[] {
  const before = written(origin)
  const expected = oneByOne(origin, commands, code)
  const series = new DecisionSeries(origin, origin.at, code)
  const made = commands.map((command) => series.decide(command))
  expect(made).toEqual(expected.made)
  expect(written(series.made().state)).toBe(written(expected.state))
  expect(written(origin)).toBe(before)
  return made
}

describe('commands that are decided in a series', () => {
  for (const [name, play] of Object.entries(plays))
    test(`come to the same events and the same state as one by one: ${name}`, () => {
      for (let seed = 0; seed < 20; seed++) {
        const commands = commandsOf(play, seed)
        const from = Math.floor(randomOf(seed)() * commands.length)
        const { state } = oneByOne(begin(play).state, commands.slice(0, from), play.code)
        expectSame(state, commands.slice(from), play.code)
      }
    })

  for (const [name, play] of Object.entries(widePlays))
    test(`come to the same of a wide fork ${name}, also paused and resumed on the way`, () => {
      for (let seed = 0; seed < 4; seed++) {
        const random = randomOf(seed + 100)
        const commands = commandsOf(play, seed)
        for (const command of [{ type: 'run.pause' }, { type: 'run.resume' }, { type: 'run.release' }] as const)
          if (random() < 0.5) commands.splice(Math.floor(random() * commands.length), 0, command)
        const from = Math.floor(random() * 20)
        const { state } = oneByOne(begin(play).state, commands.slice(0, from), play.code)
        expectSame(state, commands.slice(from), play.code)
        // Each by itself, too: what it leaves is what the next one is decided on.
        let now = state
        for (const command of commands.slice(from)) {
          for (const forged of forgeriesOf(command)) expectSame(now, [forged, command], play.code)
          const [made] = expectSame(now, [command], play.code)
          now = made !== undefined && 'events' in (made as object) ? (made as { events: Event[] }).events.reduce(evolve, now) : now
        }
      }
    })

  test('answer a wide fork by the short way, but for the last', () => {
    const play = widePlays['that waits for all'] as Play
    const node = go(play, begin(play), 'H')
    const series = new DecisionSeries(node.state, node.state.at, play.code)
    const quiet = stepsOf(play, node).map(({ command }) => {
      series.decide(command)
      return series.made().isQuiet
    })
    expect(quiet).toEqual([...Array.from({ length: 39 }, () => true), false])
  })

  test('are not told as quiet by the last that is in a turn, though others are awaited', () => {
    const play = playOf(['Start->H->End', 'H<->A|B', 'A->User'], { H: forks(wide), A: replies(), B: () => reply() })
    const node = go(play, begin(play), 'H')
    const [first, ...others] = stepsOf(play, node)
    const asking = { ...first?.command, action: { type: 'ask', question: 'well?' } } as Command
    const asked = decide(node.state, asking, node.state.at, play.code)
    const series = new DecisionSeries('state' in asked ? asked.state : node.state, node.state.at, play.code)
    const quiet = others.map(({ command }) => {
      series.decide(command)
      return series.made().isQuiet
    })
    expect(quiet.slice(-2)).toEqual([true, false])
    expect(series.made().state).toMatchObject({ status: 'running', running: 0 })
  })

  test('go on after one that began and could not be decided', () => {
    const play = playOf(
      ['Start->H->End', 'H<->A', 'H~>N', 'N->End'],
      { H: forks(['A', 'A', 'N'], 'all', () => finish('joined')), A: () => reply(1, { n: 1 }), N: () => finish('noted') },
      { state: () => ({ n: 0 }), merge: { n: (base: number, changed: readonly number[]) => base + changed.length }, result: 'list' },
    )
    const node = go(play, begin(play), 'H')
    const owed = stepsOf(play, node).map((step) => step.command)
    // The second of A's replies joins them, which needs the merge.
    const made = expectSame(node.state, [...owed.filter(isOf('A')), ...owed.filter(isOf('N'))], null)
    expect(made).toMatchObject([{ events: expect.anything() }, { refusal: { code: 'NEEDS_CODE' } }, { events: expect.anything() }])
  })

  test('that are all refused leave the very state they began from', () => {
    const { state } = begin(plays['a fork that waits for all'] as Play)
    const series = new DecisionSeries(state, state.at, null)
    expect(series.decide({ type: 'run.resume' })).toMatchObject({ refusal: { code: 'RUN_NOT_PAUSED' } })
    expect(series.made().state).toBe(state)
  })

  test('leave a state as it was that was asked for in between', () => {
    const play = plays['a fork that waits for all'] as Play
    const node = go(play, begin(play), 'H')
    const series = new DecisionSeries(node.state, node.state.at, play.code)
    const [first, second] = stepsOf(play, node)
    if (first !== undefined) series.decide(first.command)
    const between = series.made().state
    const before = written(between)
    if (second !== undefined) series.decide(second.command)
    expect(series.made().state.seq).toBeGreaterThan(between.seq)
    expect(written(between)).toBe(before)
  })

  test('give each its own events', () => {
    const play = plays['a fork that waits for all'] as Play
    const node = go(play, begin(play), 'H')
    const series = new DecisionSeries(node.state, node.state.at, play.code)
    const owed = stepsOf(play, node).slice(0, 2)
    const events = owed.flatMap(({ command }) => (series.decide(command) as { events: readonly Event[] }).events)
    expect(events.map(({ seq }) => seq - node.state.seq)).toEqual([1, 2, 3, 4, 5, 6])
  })
})

/** What nobody is owed, what is not allowed, and a turn that has done something before. */
function forgeriesOf(command: Command): Command[] {
  if (command.type !== 'turn.complete') return []
  const { branch, agent, turn, attempt, action } = command
  const step = { branch, agent, turn, attempt, key: 'a step', name: 'a step', delivered: 0 }
  return [
    { ...command, agent: agent === 'A' ? 'B' : 'A' },
    { ...command, turn: turn + 1 },
    { ...command, attempt: attempt + 1 },
    { ...command, action: { ...action, state: { unknown: 1 } } as never },
    { type: 'activity.complete', ...step, value: 1 },
    { type: 'sleep.start', ...step, ms: 10 },
  ]
}

const isOf =
  (agent: string) =>
  (command: Command): boolean =>
    'agent' in command && command.agent === agent
