/** Commands that are decided together: the same as one after the other, and what they began from stays as it was. */
import { describe, expect, test } from 'vitest'
import type { Command } from '../../src/kernel/command.js'
import { decide } from '../../src/kernel/decide.js'
import { DecisionSeries } from '../../src/kernel/decision-series.js'
import type { Event } from '../../src/kernel/event.js'
import type { Code } from '../../src/kernel/shape.js'
import type { State } from '../../src/kernel/state.js'
import { finish, forks, passes, replies, reply } from './acts.js'
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
  expect(written(series.state())).toBe(written(expected.state))
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
    expect(series.state()).toBe(state)
  })

  test('leave a state as it was that was asked for in between', () => {
    const play = plays['a fork that waits for all'] as Play
    const node = go(play, begin(play), 'H')
    const series = new DecisionSeries(node.state, node.state.at, play.code)
    const [first, second] = stepsOf(play, node)
    if (first !== undefined) series.decide(first.command)
    const between = series.state()
    const before = written(between)
    if (second !== undefined) series.decide(second.command)
    expect(series.state().seq).toBeGreaterThan(between.seq)
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

const isOf =
  (agent: string) =>
  (command: Command): boolean =>
    'agent' in command && command.agent === agent
