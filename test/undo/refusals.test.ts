import { graph } from 'tutti'
import { expect, test } from 'vitest'
import { internalsOf } from '../../src/define/definition.js'
import type { Command, RefusalCode } from '../../src/kernel/command.js'
import { decide } from '../../src/kernel/decide.js'
import type { Event } from '../../src/kernel/event.js'
import { attemptsOf, isOver, newState, type State } from '../../src/kernel/state.js'
import { dump } from '../kernel/dump.js'

/** A graph on the bare kernel: what is owed is said by the test. */
class Bare {
  state: State = newState
  readonly events: Event[] = []
  readonly #definition = internalsOf(
    graph('bare')
      .step('a', { run: () => 1, compensate: () => {} })
      .step('b', { after: ['a'], run: () => 1, compensate: () => {} })
      .step('c', { after: ['b'], run: () => 1 })
      .step('d', { after: ['b'], run: () => 1 })
      .output(),
  )

  constructor() {
    this.say({ type: 'run.start', runId: 'run', nonce: 'n', shape: this.#definition.shape, tags: {} })
    for (const step of ['a', 'b']) this.say({ type: 'step.complete', ...this.turn(step), output: step })
  }

  turn(step: string): { branch: string; agent: string; turn: number; attempt: number } {
    const found = attemptsOf(this.state).find(({ agent }) => agent === step)
    if (found === undefined) throw new Error(`${step} is not owed`)
    return found
  }

  /** What is said changes something, or gives the code of its refusal and changes nothing. */
  say(command: Command): RefusalCode | null {
    const before = dump(this.state)
    const decision = decide(this.state, command, this.state.at + 1, this.#definition.code)
    if ('refusal' in decision) {
      expect(dump(this.state)).toBe(before)
      return decision.refusal.code
    }
    this.state = decision.state
    this.events.push(...decision.events)
    return null
  }

  fail(step: string): void {
    const error = { code: 'STEP_FAILED', message: step, retryable: false, at: {} } as const
    expect(this.say({ type: 'turn.fail', ...this.turn(step), error, retryable: false })).toBeNull()
  }

  get plans(): number {
    return this.events.filter(({ type }) => type === 'undo.planned').length
  }
}

const sorry = { code: 'STEP_FAILED', message: 'sorry', retryable: true, at: {} } as const

test('an undo that is not owed, of another attempt, of another revision, or of what is undone already is refused by its own code and changes nothing', () => {
  const bare = new Bare()
  bare.fail('c')
  expect(bare.plans).toBe(0)
  bare.fail('d')
  expect(bare.plans).toBe(1)
  const owed = bare.state.undo.running.get('b')
  if (owed === undefined) throw new Error('b is not being undone')
  const { of, attempt, revision } = owed
  expect(bare.say({ type: 'undo.complete', of: 'a', attempt: 1, revision: 1 })).toBe('STALE_ATTEMPT')
  expect(bare.say({ type: 'undo.complete', of, attempt: attempt + 1, revision })).toBe('STALE_ATTEMPT')
  expect(bare.say({ type: 'undo.complete', of, attempt, revision: revision - 1 })).toBe('STALE_REVISION')
  expect(bare.say({ type: 'undo.fail', of, attempt, revision: revision + 1, error: sorry, retryable: true })).toBe('STALE_REVISION')
  expect(bare.say({ type: 'undo.complete', of: 'nobody', attempt: 1, revision: 1 })).toBe('STALE_ATTEMPT')
  expect(bare.say({ type: 'undo.complete', of, attempt, revision })).toBeNull()
  expect(bare.say({ type: 'undo.complete', of, attempt, revision })).toBe('ALREADY_COMPENSATED')
  expect(bare.say({ type: 'undo.fail', of, attempt, revision, error: sorry, retryable: true })).toBe('ALREADY_COMPENSATED')
})

test('the success of an attempt that was given up is refused: the next one has its place', () => {
  const bare = new Bare()
  bare.fail('c')
  bare.fail('d')
  const { of, attempt, revision } = bare.state.undo.running.get('b') ?? { of: '', attempt: 0, revision: 0 }
  expect(bare.say({ type: 'undo.fail', of, attempt, revision, error: sorry, retryable: true })).toBeNull()
  expect(bare.say({ type: 'undo.complete', of, attempt, revision })).toBe('STALE_ATTEMPT')
  const [timer] = [...bare.state.timers.values()].filter(({ kind }) => kind === 'undo')
  if (timer === undefined) throw new Error('nothing waits for the next attempt')
  const rung = decide(bare.state, { type: 'timer.fire', timer: timer.id }, timer.due, null)
  if ('refusal' in rung) throw new Error(rung.refusal.message)
  bare.state = rung.state
  expect(bare.state.undo.running.get('b')).toMatchObject({ attempt: 2 })
  expect(bare.say({ type: 'undo.complete', of, attempt, revision })).toBe('STALE_ATTEMPT')
})

test('a second cancel of a run that is being undone is a no-op, and makes no second plan', () => {
  const bare = new Bare()
  expect(bare.say({ type: 'run.cancel' })).toBeNull()
  for (const attempt of bare.state.aborting.values()) bare.say({ type: 'turn.settle', ...attempt, how: 'ended' })
  expect(bare.state.status).toBe('compensating')
  const events = bare.events.length
  expect(bare.say({ type: 'run.cancel' })).toBeNull()
  expect(bare.events).toHaveLength(events)
  for (const of of ['b', 'a']) {
    const { attempt, revision } = bare.state.undo.running.get(of) ?? { attempt: 0, revision: 0 }
    expect(bare.say({ type: 'undo.complete', of, attempt, revision })).toBeNull()
  }
  expect(isOver(bare.state)).toBe(true)
  expect(bare.plans).toBe(1)
  expect(bare.events.at(-1)).toMatchObject({ type: 'run.cancelled', rollback: 'complete' })
})

test('a cancelled run retries nothing', () => {
  const bare = new Bare()
  bare.say({ type: 'run.cancel', compensate: false })
  const turns = [...bare.state.aborting.values()]
  expect(turns).toHaveLength(2)
  for (const attempt of turns) {
    expect(bare.say({ type: 'turn.fail', ...attempt, error: sorry, retryable: true })).toBe('STALE_ATTEMPT')
    expect(bare.say({ type: 'step.complete', ...attempt, output: 'late' })).toBe('STALE_ATTEMPT')
  }
  for (const attempt of turns) bare.say({ type: 'turn.settle', ...attempt, how: 'ended' })
  expect(bare.events.at(-1)).toMatchObject({ type: 'run.cancelled', rollback: 'none' })
  expect(bare.state.running + bare.state.timers.size).toBe(0)
})
