import { topology } from 'tutti'
import { expect, test } from 'vitest'
import { internalsOf } from '../../src/define/definition.js'
import type { Command } from '../../src/kernel/command.js'
import { decide } from '../../src/kernel/decide.js'
import { evolve } from '../../src/kernel/evolve.js'
import type { State } from '../../src/kernel/state.js'
import { newState } from '../../src/kernel/state.js'
import { commutingIn } from '../../src/testing/explore/commuting.js'
import type { Happening } from '../../src/testing/explore/happening.js'
import { runId } from '../../src/testing/explore/setting.js'

const { shape, code } = internalsOf(
  topology({
    name: 'two',
    flows: ['Start -> H -> End', 'H <-> A'],
    agents: { H: (turn) => turn.finish(null), A: (turn) => turn.reply(null) },
  }),
)

const after = (state: State, command: Command): State => {
  const decided = decide(state, command, 1, code)
  if ('refusal' in decided) throw new Error(decided.refusal.message)
  return decided.events.reduce(evolve, state)
}

/** Two branches of a fork whose turns run. */
const state = [
  { type: 'run.start', runId, nonce: 'n', shape, tags: {} },
  {
    type: 'turn.complete',
    branch: 'r',
    agent: 'H',
    turn: 1,
    attempt: 1,
    action: { type: 'fork', calls: [{ to: 'A' }, { to: 'A' }, { to: 'A' }] },
  },
].reduce((now, command) => after(now, command as Command), newState)

const ends = (branch: string, other: Partial<Happening> = {}): Happening => ({
  id: branch,
  lane: branch,
  kind: 'end',
  agent: 'A',
  label: branch,
  born: 0,
  runsCode: false,
  run: runId,
  command: { type: 'turn.complete', branch, agent: 'A', turn: 1, attempt: 1, action: { type: 'reply', value: branch } } as Command,
  go: () => {},
  ...other,
})

const commutes = commutingIn({ state, at: 2, code })

test('two turns of a fork that is not over may end in either order', () => {
  expect(commutes([ends('r.0')], [ends('r.1')])).toBe(true)
  expect(commutes([ends('r.0', { runsCode: true })], [ends('r.1')])).toBe(true)
})

test.each<[string, Partial<Happening>]>([
  ['the clock', { kind: 'clock' }],
  ['an acknowledgement', { kind: 'append' }],
  ['what steers', { kind: 'steering' }],
  ['what belongs to another run', { run: 'other' }],
])('%s commutes with nothing', (_, other) => {
  expect(commutes([ends('r.0')], [ends('r.1', other)])).toBe(false)
  expect(commutes([ends('r.0', other)], [ends('r.1')])).toBe(false)
})

test('two that may run code, or are of one lane, commute in no case', () => {
  expect(commutes([ends('r.0', { runsCode: true })], [ends('r.1', { runsCode: true })])).toBe(false)
  expect(commutes([ends('r.0', { lane: 'x' })], [ends('r.1', { lane: 'x' })])).toBe(false)
})

test('the turns of one commit can begin at once after another has ended as well; of other code, more would wait then', () => {
  const starts = (branch: string, born: number): Happening => ends(branch, { kind: 'start', born, runsCode: true, command: null })
  expect(commutes([starts('r.0', 1), starts('r.1', 1)], [ends('r.2')])).toBe(true)
  expect(commutes([starts('r.0', 1), starts('r.1', 2)], [ends('r.2')])).toBe(false)
  expect(commutes([ends('r.2')], [starts('r.0', 1), ends('r.1', { kind: 'activity', born: 1, runsCode: true })])).toBe(false)
})
