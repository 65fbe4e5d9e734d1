import { expect, test } from 'vitest'
import { eventLine } from '../../src/cli/event-line.js'
import { pieces } from '../../src/cli/shown.js'
import type { Event, EventBody } from '../../src/kernel/event.js'

const lineOf = (body: EventBody): string =>
  pieces(eventLine({ seq: 1, at: 0, ...body } as Event, 0))
    .map(({ text }) => text)
    .join('')

const error = { code: 'STEP_FAILED', message: 'no\u001b[31m', retryable: true, at: {} } as const

test('a line about an undo says what is undone, and why it was not', () => {
  expect(lineOf({ type: 'undo.started', of: 'hotel', attempt: 1 })).toMatch(/undo\.started hotel$/)
  expect(lineOf({ type: 'undo.failed', of: 'hotel', attempt: 1, error, final: true })).toMatch(/hotel STEP_FAILED no/)
  expect(lineOf({ type: 'undo.failed', of: 'hotel', attempt: 1, error, final: true })).not.toContain('\u001b')
})

test('a line about an approval says what for', () => {
  const ask = { id: 'r~1', branch: 'r', agent: 'Buyer', openedAt: 0, kind: 'approval', call: 0, tool: 'pay', input: { cents: 5 } } as const
  expect(lineOf({ type: 'ask.opened', branch: 'r', ask })).toMatch(/r~1 to use pay with \{"cents":5\}$/)
  const turn = { type: 'turn.completed', branch: 'r', agent: 'Buyer', turn: 1, attempt: 1 } as const
  const approval = { tool: 'pay', input: { cents: 5 }, call: 0 }
  expect(lineOf({ ...turn, action: { type: 'ask', question: null, approval } })).toMatch(
    /Buyer asks a person to use pay with \{"cents":5\}$/,
  )
})

test('a line about a turn that invokes says just that: to invoke who waits is to reply, to invoke another is to hand over', () => {
  const turn = { type: 'turn.completed', branch: 'r.0', agent: 'Ann', turn: 1, attempt: 1 } as const
  expect(lineOf({ ...turn, action: { type: 'invoke', to: 'Lead', request: 1 } })).toMatch(/r\.0 Ann invokes Lead 1$/)
})

test('a line about how a run comes to its end says why, and no line ends in a blank', () => {
  expect(lineOf({ type: 'run.closing', cause: 'cancel', by: 'ann', reason: 'enough' })).toMatch(/run\.closing cancel by ann: enough$/)
  expect(lineOf({ type: 'run.closing', cause: 'cancel' })).toMatch(/run\.closing cancel$/)
  expect(lineOf({ type: 'run.closing', cause: 'limit', error })).toMatch(/run\.closing STEP_FAILED no/)
  expect(lineOf({ type: 'run.decided', status: 'failed', error })).toMatch(/run\.decided STEP_FAILED no/)
  expect(lineOf({ type: 'run.decided', status: 'succeeded' })).toMatch(/run\.decided succeeded$/)
  expect(lineOf({ type: 'timer.fired', timer: 'r.0/backoff' })).toMatch(/timer\.fired r\.0\/backoff$/)
  expect(lineOf({ type: 'turn.aborted', branch: 'r.0', agent: 'A', turn: 1, attempt: 1, how: 'ended' })).toMatch(
    /turn\.aborted r\.0 A ended$/,
  )
  expect(lineOf({ type: 'gate.opened', branch: 'r.0' })).toMatch(/gate\.opened r\.0$/)
  expect(lineOf({ type: 'run.released' })).toMatch(/run\.released$/)
})
