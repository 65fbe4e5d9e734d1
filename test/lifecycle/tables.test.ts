import { describe, expect, test } from 'vitest'
import {
  type AgentCall,
  type AgentLife,
  agentAfter,
  agentCalls,
  change,
  lifecycle,
  type Machine,
  newAgent,
} from '../../src/kernel/lifecycle.js'

/** Written down a second time, by hand, as rows of yes and no: from the state on the left to the state above. */
const status = ['pending', 'running', 'paused', 'stopped', 'failed', 'terminated'] as const
const statusMayBecome = {
  pending: '= y . y y y',
  running: '. = y y y y',
  paused: '. y = y y y',
  stopped: 'y y . = . y',
  failed: 'y y . . = y',
  terminated: '. . . . . =',
}
const runtime = ['stopped', 'starting', 'running', 'paused', 'stopping', 'crashed'] as const
const runtimeMayBecome = {
  stopped: '= y . . . .',
  starting: '. = y . . y',
  running: '. . = y y y',
  paused: '. . y = y y',
  stopping: 'y . . . = y',
  crashed: '. y . . . =',
}

describe('each of the 36 changes of an agent is allowed or not, as written', () => {
  const cases = (states: readonly string[], may: Readonly<Record<string, string>>) =>
    states.flatMap((from) => states.map((to, at) => [from, to, may[from]?.split(' ')[at] ?? '?'] as const))

  test.each(cases(status, statusMayBecome))('status: %s to %s is %s', (from, to, may) => {
    expect(verdict('agentStatus', from, to)).toBe(may)
  })
  test.each(cases(runtime, runtimeMayBecome))('runtime: %s to %s is %s', (from, to, may) => {
    expect(verdict('agentRuntime', from, to)).toBe(may)
  })

  function verdict(machine: 'agentStatus' | 'agentRuntime', from: string, to: string): string {
    const next = change(machine, from as never, to as never)
    return next === null ? '.' : from === to ? '=' : 'y'
  }
})

/** What the calls do from every state that an agent can be in; everything else is refused. */
const written: Readonly<Record<AgentCall, Readonly<Record<string, string>>>> = {
  register: { 'pending/stopped': 'running/running' },
  pause: { 'running/running': 'paused/paused', 'running/starting': 'paused/paused', 'paused/paused': 'same' },
  resume: { 'paused/paused': 'running/running' },
  stop: {
    'running/running': 'stopped/stopping',
    'running/starting': 'stopped/stopping',
    'paused/paused': 'stopped/stopping',
    'stopped/stopping': 'same',
    'stopped/stopped': 'same',
  },
  settle: { 'stopped/stopping': 'stopped/stopped', 'terminated/stopping': 'terminated/stopped' },
  start: {
    'pending/stopped': 'running/running',
    'stopped/stopped': 'running/running',
    'failed/crashed': 'running/running',
    'running/running': 'same',
    'running/starting': 'same',
  },
  trip: { 'running/running': 'failed/crashed', 'running/starting': 'failed/crashed' },
  probe: { 'failed/crashed': 'running/starting' },
  recover: { 'running/starting': 'running/running' },
  terminate: {
    'pending/stopped': 'terminated/stopped',
    'running/running': 'terminated/stopping',
    'running/starting': 'terminated/stopping',
    'paused/paused': 'terminated/stopping',
    'stopped/stopping': 'terminated/stopping',
    'stopped/stopped': 'terminated/stopped',
    'failed/crashed': 'terminated/stopping',
    'terminated/stopping': 'same',
    'terminated/stopped': 'same',
  },
}

const calls = Object.keys(agentCalls) as AgentCall[]
const text = (life: AgentLife): string => `${life.status}/${life.runtime}`

/** Every state that some calls lead to from the first. */
function reachable(): AgentLife[] {
  const found = new Map([[text(newAgent), newAgent]])
  for (const from of found.values())
    for (const call of calls) {
      const to = agentAfter(call, from)
      if (to !== null && to !== 'same') found.set(text(to), to)
    }
  return [...found.values()]
}

test('the calls lead to these states of an agent and to no other', () => {
  expect(reachable().map(text).sort()).toEqual([
    'failed/crashed',
    'paused/paused',
    'pending/stopped',
    'running/running',
    'running/starting',
    'stopped/stopped',
    'stopped/stopping',
    'terminated/stopped',
    'terminated/stopping',
  ])
})

test.each(calls)('%s does what is written, and is refused everywhere else', (call) => {
  for (const from of reachable()) {
    const after = agentAfter(call, from)
    expect.soft(after === null ? undefined : after === 'same' ? 'same' : text(after), text(from)).toBe(written[call][text(from)])
  }
})

test('a call whose one half is legal and whose other half is not changes neither', () => {
  expect(change('agentStatus', 'paused', 'running')).toBe('running')
  expect(agentAfter('resume', { status: 'paused', runtime: 'crashed' })).toBeNull()
  expect(agentAfter('resume', { status: 'paused', runtime: 'stopping' })).toBeNull()
  expect(agentAfter('start', { status: 'stopped', runtime: 'stopping' })).toBeNull()
})

test('what is over stays over', () => {
  const final: Readonly<Record<Machine, readonly string[]>> = {
    run: ['succeeded', 'failed', 'cancelled'],
    agentStatus: ['terminated'],
    agentRuntime: [],
    undo: ['compensated', 'failed'],
    ask: ['answered', 'expired', 'closed'],
  }
  for (const [machine, table] of Object.entries(lifecycle))
    expect(
      Object.entries(table)
        .filter(([, to]) => to.length === 0)
        .map(([state]) => state),
    ).toEqual(final[machine as Machine])
})
