import { tool, topology } from 'tutti'
import { expect, test } from 'vitest'
import { z } from 'zod'
import { internalsOf } from '../../src/define/definition.js'
import type { Command } from '../../src/kernel/command.js'
import { decide } from '../../src/kernel/decide.js'
import type { Failure } from '../../src/kernel/failure.js'
import { loadState, saveState } from '../../src/kernel/snapshot.js'
import { outstanding } from '../../src/kernel/outstanding.js'
import type { State } from '../../src/kernel/state.js'
import { newState } from '../../src/kernel/state.js'

const nothing = (): void => {}
const kept = tool({ description: 'keeps something', input: z.unknown(), run: nothing, compensate: nothing })

/** A retried turn, one after it, and one that fails the run. `undone`: whether the first turn can be undone as such. */
const lineOf = (undone: boolean) =>
  topology({
    name: 'line',
    flows: ['Start -> A -> B', 'B -> C', 'C -> End'],
    agents: {
      A: { tools: { kept }, retry: { attempts: 2, backoffMs: 0 }, ...(undone && { compensate: nothing }) },
      B: { act: nothing as never, compensate: nothing },
      C: nothing as never,
    },
  })

const of = (agent: 'A' | 'B' | 'C', attempt = 1) => ({ branch: 'r', agent, turn: { A: 1, B: 2, C: 3 }[agent], attempt })
const activity = (key: string, attempt: number) => ({ ...of('A', attempt), key, name: 'kept', delivered: 0 })
const starts = (key: string, attempt: number): Command => ({
  type: 'activity.start',
  ...activity(key, attempt),
  undo: { tool: 'kept', input: key },
})
const completes = (key: string, attempt: number): Command => ({ type: 'activity.complete', ...activity(key, attempt), value: key })
const failed = (code: 'TIMEOUT' | 'AGENT_FAILED'): Failure => ({ code, message: 'no', retryable: true, at: {} })
const timesOut: Command = { type: 'turn.fail', ...of('A'), error: failed('TIMEOUT'), retryable: true, timedOut: true }
const throws: Command = { type: 'turn.fail', ...of('A'), error: failed('AGENT_FAILED'), retryable: true }
const fenced: Command = { type: 'turn.settle', ...of('A'), how: 'fenced' }
const ended: Command = { type: 'turn.settle', ...of('A'), how: 'ended' }
const endedLate: Command = { type: 'turn.settle', ...of('A'), how: 'ended', done: { output: 'late' } }
const returns: Command = { type: 'turn.complete', ...of('A', 2), action: { type: 'invoke', to: 'B' } }

/** Which undos are begun together, one after the other; and what is not undone. */
function undoing(undone: boolean, commands: readonly Command[]): { readonly begun: string[][]; readonly left: string[] } {
  const { shape, code } = internalsOf(lineOf(undone))
  let state: State = newState
  let at = 1
  const say = (command: Command): void => {
    const decision = decide(state, command, at++, code)
    if ('refusal' in decision) throw new Error(`${command.type}: ${decision.refusal.message}`)
    state = decision.state
  }
  say({ type: 'run.start', runId: 'x', nonce: 'n', shape, tags: {} })
  for (const command of commands) say(command)
  say({ type: 'turn.complete', ...of('B'), action: { type: 'invoke', to: 'C' } })
  say({ type: 'turn.complete', ...of('C'), action: { type: 'fail', error: failed('AGENT_FAILED') } })
  const begun: string[][] = []
  for (;;) {
    const owed = outstanding(state).flatMap((effect) => (effect.type === 'undo.perform' ? [effect.undo] : []))
    if (owed.length === 0) return { begun, left: state.undo.left.keys() }
    begun.push(owed.map((undo) => undo.of))
    for (const { of: id, attempt, revision } of owed) say({ type: 'undo.complete', of: id, attempt, revision })
  }
}

test.each<[string, readonly Command[]]>([
  ['was fenced off before its retry began', [timesOut, fenced, starts('k', 2), completes('k', 2), returns]],
  ['was fenced off while its retry ran', [timesOut, starts('k', 2), completes('k', 2), fenced, returns]],
  ['returned late', [timesOut, endedLate, starts('k', 2), completes('k', 2), returns]],
  ['threw', [throws, starts('k', 2), completes('k', 2), returns]],
])('what a retry has done is undone after what came of it, where the attempt before %s', (_, commands) => {
  expect(undoing(true, commands)).toEqual({ begun: [['r/2'], ['r/1'], ['r/1/k']], left: [] })
  expect(undoing(false, commands)).toEqual({ begun: [['r/2'], ['r/1/k']], left: [] })
})

test.each<[string, readonly Command[], string[]]>([
  [
    'completes in the retry again',
    [starts('k', 1), completes('k', 1), starts('l', 1), completes('l', 1), throws, starts('k', 2), completes('k', 2), returns],
    ['r/1/l', 'r/1/k'],
  ],
  [
    'completes late, before that of the retry',
    [starts('k', 1), timesOut, completes('k', 1), ended, starts('l', 2), completes('l', 2), returns],
    ['r/1/l', 'r/1/k'],
  ],
  [
    'completes late, after that of the retry',
    [starts('k', 1), timesOut, starts('l', 2), completes('l', 2), completes('k', 1), ended, returns],
    ['r/1/k', 'r/1/l'],
  ],
])('an activity that %s keeps its place in the line', (_, commands, activities) => {
  const line = activities.map((id) => [id])
  expect(undoing(true, commands)).toEqual({ begun: [['r/2'], ['r/1'], ...line], left: [] })
  expect(undoing(false, commands)).toEqual({ begun: [['r/2'], ...line], left: [] })
})

test('what a worker that is gone has begun is undone if the retry has done it again, and listed if it has not', () => {
  const begun = [starts('k', 1), { type: 'run.claim', epoch: 2 } as const, throws]
  const again = [...begun, starts('k', 2), completes('k', 2), returns]
  expect(undoing(true, again)).toEqual({ begun: [['r/2'], ['r/1'], ['r/1/k']], left: [] })
  expect(undoing(false, again)).toEqual({ begun: [['r/2'], ['r/1/k']], left: [] })
  expect(undoing(true, [...begun, returns])).toEqual({ begun: [['r/2'], ['r/1']], left: ['r/1/k'] })
  expect(undoing(false, [...begun, returns])).toEqual({ begun: [['r/2']], left: ['r/1/k'] })
})

test('what is known best of a turn stands, in whatever order its attempts have settled', () => {
  const third = { ...returns, attempt: 3 }
  const late: Command = { type: 'turn.settle', ...of('A', 2), how: 'ended', done: { output: 'late' } }
  const again: Command = { ...timesOut, attempt: 2 }
  const { shape, code } = internalsOf(
    topology({
      name: 'line',
      flows: ['Start -> A -> End'],
      agents: { A: { act: nothing as never, compensate: nothing, retry: { attempts: 3, backoffMs: 0 } } },
    }),
  )
  for (const [first, second, known] of [
    [fenced, late, 'late'],
    [late, fenced, 'late'],
  ] as const) {
    let state: State = newState
    let at = 1
    for (const command of [{ type: 'run.start', runId: 'x', nonce: 'n', shape, tags: {} }, timesOut, again, first, second] as Command[]) {
      const decision = decide(state, command, at++, code)
      if ('refusal' in decision) throw new Error(decision.refusal.message)
      state = decision.state
    }
    expect(state.undo.nodes.get('r/1')?.entry).toMatchObject({ known })
    const decision = decide(state, { ...third, action: { type: 'finish', output: 1 } } as Command, at, code)
    expect('refusal' in decision ? decision : decision.state.undo.nodes.get('r/1')?.entry).toMatchObject({ known: 'returned' })
  }
})

test('what an aborted turn had recorded is given to its undo, also if the run was loaded from a snapshot meanwhile', () => {
  const { shape, code } = internalsOf(
    topology({ name: 'solo', flows: ['Start -> A -> End'], agents: { A: { act: nothing as never, compensate: nothing } } }),
  )
  let state: State = newState
  for (const command of [
    { type: 'run.start', runId: 'x', nonce: 'n', shape, tags: {} },
    { type: 'activity.complete', ...activity('reserve', 1), value: 'seat 7' },
    { type: 'run.cancel' },
    endedLate,
  ] as Command[]) {
    const decision = decide(state, command, state.at + 1, code)
    if ('refusal' in decision) throw new Error(decision.refusal.message)
    state = loadState(JSON.parse(JSON.stringify(saveState(decision.state))))
  }
  expect(state.undo.nodes.get('r/1')?.entry).toMatchObject({ known: 'late', output: 'late', activities: { reserve: 'seat 7' } })
})
