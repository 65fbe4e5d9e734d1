/** Which turns are given up when their process dies in them again and again. */
import { graph, topology } from 'tutti'
import { expect, test } from 'vitest'
import type { Definition } from '../../src/define/definition.js'
import { internalsOf } from '../../src/define/definition.js'
import type { Action } from '../../src/kernel/action.js'
import type { Command } from '../../src/kernel/command.js'
import type { Decision } from '../../src/kernel/decide.js'
import { decide } from '../../src/kernel/decide.js'
import { sleepTimer } from '../../src/kernel/ids.js'
import { outstanding } from '../../src/kernel/outstanding.js'
import type { State } from '../../src/kernel/state.js'
import { newState } from '../../src/kernel/state.js'

function accepted(state: State, command: Command): Exclude<Decision, { refusal: unknown }> {
  const decision = decide(state, command, state.at + 1, null)
  if ('refusal' in decision) throw new Error(decision.refusal.message)
  return decision
}

const decided = (state: State, command: Command): State => accepted(state, command).state

const started = (definition: Definition): State =>
  decided(newState, { type: 'run.start', runId: 'R', nonce: 'n', shape: internalsOf(definition).shape, tags: {} })

/** After how many deaths of its owner a run has failed; null: after none of seven. */
function failedAfter(start: State): number | null {
  let state = start
  for (let deaths = 1; deaths <= 7; deaths++) {
    state = decided(state, { type: 'run.claim', epoch: deaths + 1 })
    if (state.status === 'failed') return deaths
    expect(outstanding(state).some(({ type }) => type === 'turn.perform' || type === 'turn.abort')).toBe(true)
  }
  return null
}

const speaker = { branch: 'r', agent: 'A', turn: 1, attempt: 1, delivered: 0 }
const solo = topology({ name: 'solo', flows: ['Start -> A -> End'], agents: { A: (turn) => turn.finish(1) } })

test('a turn is given up after five deaths', () => {
  expect(failedAfter(started(solo))).toBe(5)
})

test('a turn that sleeps is not, until its sleep is over', () => {
  const asleep = decided(started(solo), { type: 'sleep.start', ...speaker, key: 'sleep#0', name: 'sleep', ms: 1 })
  expect(failedAfter(asleep)).toBe(null)
  const awake = decided(asleep, { type: 'timer.fire', timer: sleepTimer('r', 'sleep#0') })
  expect(failedAfter(awake)).toBe(5)
})

test('one that is at work beside its sleep is, until that is over', () => {
  const asleep = decided(started(solo), { type: 'sleep.start', ...speaker, key: 'sleep#0', name: 'sleep', ms: 1 })
  const working = decided(asleep, { type: 'activity.start', ...speaker, key: 'work#0', name: 'work' })
  expect(failedAfter(working)).toBe(5)
  const done = decided(working, { type: 'activity.complete', ...speaker, key: 'work#0', name: 'work' })
  expect(failedAfter(done)).toBe(null)
})

test('nor is one of a run that is paused, of which nobody who has it executes anything: only the death that found it at work counts', () => {
  const paused = decided(started(solo), { type: 'run.pause' })
  expect(failedAfter(paused)).toBe(null)
  const claimed = [2, 3, 4, 5, 6].reduce((state, epoch) => decided(state, { type: 'run.claim', epoch }), paused)
  // Whoever was given it paused may have been dead when it was resumed: the four are those after it.
  expect(failedAfter(decided(decided(claimed, { type: 'run.resume' }), { type: 'run.claim', epoch: 7 }))).toBe(4)
})

test('nor is one of a run that is resumed and paused while nobody has it, however many have died who were given it paused', () => {
  let state = decided(started(solo), { type: 'run.pause' })
  for (let epoch = 2; epoch <= 9; epoch++)
    for (const command of [{ type: 'run.claim', epoch }, { type: 'run.resume' }, { type: 'run.pause' }] as const)
      state = decided(state, command)
  expect(state.status).toBe('running')
  expect(state.crashes.get('r')).toBe(1)
})

test('nor is an undo of a run that is paused', () => {
  const undone = graph('undone')
    .step('a', { run: () => 1, compensate: () => {} })
    .step('b', { after: ['a'], run: () => 1 })
    .output()
  const at = (branch: string, agent: string) => ({ branch, agent, turn: 1, attempt: 1 })
  const done = decided(started(undone), { type: 'step.complete', ...at('r.0', 'a'), output: 1 })
  const error = { code: 'STEP_FAILED', message: 'bad', retryable: false, at: {} } as const
  const undoing = decided(done, { type: 'turn.fail', ...at('r.1', 'b'), error, retryable: false })
  const claims = (from: State) => [2, 3, 4, 5, 6].reduce((state, epoch) => decided(state, { type: 'run.claim', epoch }), from)
  const dead = claims(undoing)
  expect(dead.status).toBe('failed')
  expect(dead.undo.left.size).toBe(1)
  const paused = claims(decided(undoing, { type: 'run.pause' }))
  expect(paused.status).toBe('compensating')
  expect(paused.undo.running.size).toBe(1)
})

test('nor is a step that waits for a run of its own, which takes its deaths itself', () => {
  const child = graph('child')
    .step('a', { run: () => 1 })
    .output()
  const parent = graph('parent')
    .step('part', { run: child, input: () => null })
    .output()
  expect(failedAfter(started(parent))).toBe(null)
  const plain = graph('plain')
    .step('part', { run: () => 1 })
    .output()
  expect(failedAfter(started(plain))).toBe(5)
})

test.each([
  [['A', 'B'], 0],
  [['B', 'A'], 1],
])('of turns that are given up together, the innermost fork takes its own first: a fork of %j', (calls, slot) => {
  const nested = topology({
    name: 'nested',
    flows: ['Start -> H -> End', 'H <-> A | B', 'A <-> X'],
    agents: { H: (turn) => turn.finish(1), A: (turn) => turn.fork(['X']), B: (turn) => turn.reply(1), X: (turn) => turn.reply(1) },
  })
  const acts = (state: State, branch: string, agent: string, action: Action) =>
    decided(state, { type: 'turn.complete', branch, agent, turn: 1, attempt: 1, action })
  const outer = acts(started(nested), 'r', 'H', {
    type: 'fork',
    calls: calls.map((to) => ({ to })),
    join: { policy: 'all', stragglers: 'cancel' },
  })
  let state = acts(outer, `r.${slot}`, 'A', { type: 'fork', calls: [{ to: 'X' }] })
  const fired: string[] = []
  for (const epoch of [2, 3, 4, 5, 6]) {
    const decision = accepted(state, { type: 'run.claim', epoch })
    for (const event of decision.events) if (event.type === 'barrier.fired' && event.barrier !== '#') fired.push(event.barrier)
    state = decision.state
  }
  expect(fired).toEqual([`r.${slot}#1`, 'r#1'])
  const cause = slot === 0 ? { code: 'JOIN_FAILED', at: { agent: 'A' } } : { code: 'TURN_CRASHED', at: { agent: 'B' } }
  expect(state.outcome).toMatchObject({ status: 'failed', error: { code: 'JOIN_FAILED', cause } })
})

test('a step that waits for a run goes on waiting for its end after a cancel, whoever takes it over', () => {
  const child = graph('child')
    .step('a', { run: () => 1 })
    .output()
  const parent = graph('parent')
    .step('part', { run: child, input: () => null })
    .step('code', { run: () => 1 })
    .output()
  const cancelled = decided(started(parent), { type: 'run.cancel' })
  const claimed = decided(cancelled, { type: 'run.claim', epoch: 2 })
  expect(claimed.status).toBe('running')
  expect(outstanding(claimed)).toMatchObject([{ type: 'turn.abort', attempt: { agent: 'part' } }])
})

test('what a turn that was given up may have done is listed as not undone, whatever is done about its failure', () => {
  const definition = (onError: 'fail' | 'skip' | 'pause') =>
    graph('undone')
      .step('a', { run: () => 1, compensate: () => {}, onError })
      .output()
  const given = (onError: 'fail' | 'skip' | 'pause') =>
    [2, 3, 4, 5, 6].reduce((state, epoch) => decided(state, { type: 'run.claim', epoch }), started(definition(onError)))
  expect(given('fail')).toMatchObject({ status: 'failed' })
  expect([...given('fail').undo.left.keys()]).toEqual(['a'])
  expect(given('skip')).toMatchObject({ status: 'succeeded' })
  const paused = given('pause')
  expect(paused.aborting.size).toBe(0)
  const cancelled = decided(paused, { type: 'run.cancel' })
  expect(cancelled.status).toBe('cancelled')
  expect([...cancelled.undo.left.keys()]).toEqual(['a'])
})

test('what a worker that died may have done of a turn is not known by its end under the next one, unless it is done there', () => {
  const definition = topology({
    name: 'undone',
    flows: ['Start -> A -> End'],
    agents: { A: { act: (turn) => turn.finish(1), compensate: () => {} } },
  })
  const at = { branch: 'r', agent: 'A', turn: 1, attempt: 1 }
  const settled = (state: State, done?: { output: unknown }): State =>
    decided(decided(state, { type: 'run.cancel' }), { type: 'turn.settle', ...at, how: 'ended', ...(done !== undefined && { done }) })
  const mine = started(definition)
  expect(settled(mine)).toMatchObject({ status: 'cancelled', undo: { left: { size: 0 } } })
  const inherited = decided(mine, { type: 'run.claim', epoch: 2 })
  expect([...settled(inherited).undo.left.keys()]).toEqual(['r/1'])
  const undoing = settled(inherited, { output: 1 })
  expect(undoing).toMatchObject({ status: 'compensating', undo: { left: { size: 0 }, running: { size: 1 } } })
  // Whoever had it before had not begun it: its agent was paused.
  const waited = decided(mine, { type: 'run.claim', epoch: 2, waited: ['A'] })
  expect(settled(waited)).toMatchObject({ status: 'cancelled', undo: { left: { size: 0 } } })
})

test('one that begins again what uses something limited is given up too; what was set aside each time counts as used', () => {
  const reserve = { tokens: 10, costUsd: 0.5 }
  const again = { type: 'activity.start', ...speaker, key: 'model/0', name: 'model', reserve } as const
  const begun = (state: State) => decided(state, again)
  const thrice = [2, 3].reduce((state, epoch) => begun(decided(state, { type: 'run.claim', epoch })), begun(started(solo)))
  expect(thrice.crashes.get('r')).toBe(2)
  expect(thrice.spent).toEqual({ tokens: 20, costUsd: 1, reserved: reserve })
  const usage = { calls: 1, inputTokens: 3, outputTokens: 1, costUsd: 0.25 }
  const done = decided(thrice, { type: 'activity.complete', ...speaker, key: 'model/0', name: 'model', usage })
  expect(done.spent).toEqual({ tokens: 24, costUsd: 1.25, reserved: { tokens: 0, costUsd: 0 } })
})
