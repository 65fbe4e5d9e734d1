/** Whose turn it was: the mix-up that Tutti exists to make impossible. */
import { describe, expect, test } from 'vitest'
import { decide } from '../../src/kernel/decide.js'
import type { Event } from '../../src/kernel/event.js'
import { evolve } from '../../src/kernel/evolve.js'
import { checkStep, invariants } from '../../src/kernel/invariants.js'
import type { Act } from './acts.js'
import { finish, forks, invoke, passes, replies } from './acts.js'
import type { Result } from './outcome.js'
import { eventsOf, joinsOf, turnsOf } from './outcome.js'
import type { Play } from './play.js'
import { begin, everyOrder, go, playOf, someOrders, stepsOf } from './play.js'

const flows = [
  'Start -> Orchestrator',
  'Orchestrator -> AgentA|AgentB|AgentC',
  'AgentA -> Orchestrator',
  'AgentB -> Orchestrator',
  'AgentC -> AgentD',
  'AgentD -> Orchestrator',
  'Orchestrator -> End',
]
const agents = {
  Orchestrator: forks(['AgentA', 'AgentB', 'AgentC'], 'all', (join) => finish(`The secret word is: ${join.values.join('')}`)),
  AgentA: passes('Orchestrator', 'M'),
  AgentB: passes('Orchestrator', 'A'),
  AgentC: passes('AgentD', 'R'),
  AgentD: (({ request }) => invoke('Orchestrator', `${request as string}S`)) satisfies Act,
}
const secretWord = (changed: Readonly<Record<string, Act>> = {}): Play =>
  playOf(flows, { ...agents, ...changed }, { rules: ['timeout(180)'] })

const isMars = (result: Result): void => {
  expect(result.status).toBe('succeeded')
  expect(result.output).toBe('The secret word is: MARS')
  expect(turnsOf(result, 'Orchestrator')).toHaveLength(2)
  const [join] = joinsOf(result, 'Orchestrator')
  expect(join?.slots.map((slot) => [slot.to, slot.by, slot.value])).toEqual([
    ['AgentA', 'AgentA', 'M'],
    ['AgentB', 'AgentB', 'A'],
    ['AgentC', 'AgentD', 'RS'],
  ])
}

describe('the secret word', () => {
  test('is MARS in every completion order: slots delivered by A, B and D, two turns of the Orchestrator', () => {
    expect(everyOrder(secretWord(), isMars)).toMatchObject({ orders: 12, ends: 1 })
  })

  test('is MARS in random orders too, drawn from a seed', () => {
    someOrders(secretWord(), 20_260_101, 50, isMars)
  })

  test('every turn is started and completed by the agent whose edges it is judged by', () => {
    everyOrder(secretWord(), (result) => {
      const by = Object.fromEntries(
        eventsOf(result.journal, 'turn.completed').map((event) => [`${event.branch}/${event.turn}`, event.agent]),
      )
      expect(by).toEqual({
        'r/1': 'Orchestrator',
        'r.0/1': 'AgentA',
        'r.1/1': 'AgentB',
        'r.2/1': 'AgentC',
        'r.2/2': 'AgentD',
        'r/2': 'Orchestrator',
      })
    })
  })
})

describe('if C wrongly invokes the Orchestrator', () => {
  const untouched = (result: Result): void => {
    for (const branch of ['r', 'r.0', 'r.1'])
      expect(result.turns.filter((turn) => turn.branch === branch).every((turn) => turn.attempt === 1)).toBe(true)
    const rejected = eventsOf(result.journal, 'turn.rejected')
    expect(new Set(rejected.map((event) => `${event.agent} ${event.branch}/${event.turn}`))).toEqual(new Set(['AgentC r.2/1']))
    for (const { problem } of rejected) {
      expect(problem).toContain('AgentC (branch r.2)')
      expect(problem).toContain('may not invoke Orchestrator')
      expect(problem).toContain('AgentC may invoke AgentD')
      expect(problem).not.toMatch(/AgentA|AgentB/)
    }
  }

  test('only its turn is rejected, it gets its feedback, and the word comes out in every order', () => {
    const learns: Act = ({ message }) => (message.kind === 'feedback' ? invoke('AgentD', 'R') : invoke('Orchestrator', 'R'))
    const explored = everyOrder(secretWord({ AgentC: learns }), (result) => {
      isMars(result)
      untouched(result)
      expect(turnsOf(result, 'AgentC', 'all').map((turn) => [turn.attempt, turn.message.kind])).toEqual([
        [1, 'request'],
        [2, 'feedback'],
      ])
    })
    expect(explored).toMatchObject({ orders: 20, ends: 1 })
  })

  test('and never learns, its branch fails by its own name, after A and B have answered', () => {
    everyOrder(secretWord({ AgentC: passes('Orchestrator', 'R') }), (result) => {
      untouched(result)
      expect(result.error).toMatchObject({
        code: 'JOIN_FAILED',
        cause: { code: 'REJECTED', at: { agent: 'AgentC', branch: 'r.2', turn: 1 } },
      })
      const fired = eventsOf(result.journal, 'barrier.fired').find((event) => event.barrier === 'r#1')
      expect(fired).toMatchObject({ arrived: 2, failed: 1 })
    })
  })

  test('as a reply, it is the same: a reply needs the edge too', () => {
    everyOrder(secretWord({ AgentC: replies('R') }), (result) => {
      const rejected = eventsOf(result.journal, 'turn.rejected')
      expect(rejected).toHaveLength(3)
      for (const { agent, problem } of rejected)
        expect([agent, problem.includes('AgentC (branch r.2) may not reply to Orchestrator')]).toEqual(['AgentC', true])
    })
  })
})

/**
 * A kernel with the bug of the first report: "the agent that runs now" is a field, written when a turn starts and read when one is
 * completed, by whichever branch that is.
 */
function mixedUp(): typeof decide {
  let current = ''
  return (state, command, at, code) => {
    const decision = decide(state, command, at, code)
    if ('refusal' in decision) return decision
    const events = decision.events.map((event): Event => {
      if (event.type === 'turn.started') current = event.agent
      return event.type === 'turn.completed' ? { ...event, agent: current } : event
    })
    return { events, state: events.reduce(evolve, state) }
  }
}

describe('a mix-up of identities', () => {
  /** Siblings whose edges are equal: what one may do, each may, so that no judgement by the wrong edges shows. */
  const twins = playOf(['Start->H->End', 'H<->A|B'], { H: forks(['A', 'B']), A: replies(), B: replies() })

  test('among siblings of equal edges is caught by invariant 4, and the kernel as it is has none', () => {
    const open = go(twins, begin(twins), 'H r/1')
    const [first] = stepsOf(twins, open)
    if (first === undefined) throw new Error('no turn is owed')
    const broken = mixedUp()
    // It starts the turns of A and B, so that B is the last one it has seen; then A completes.
    broken(
      begin(twins).state,
      { type: 'turn.complete', branch: 'r', agent: 'H', turn: 1, attempt: 1, action: { type: 'fork', calls: [{ to: 'A' }, { to: 'B' }] } },
      1_000,
      twins.code,
    )
    const decision = broken(open.state, first.command, first.at, twins.code)
    if ('refusal' in decision) throw new Error(decision.refusal.message)
    const violations = checkStep(open.state, decision.events, evolve)
    expect(violations.map((violation) => violation.invariant)).toEqual([4])
    expect(violations[0]?.explain).toBe('turn.completed on r.0 names B, but its agent is A')
    const right = decide(open.state, first.command, first.at, twins.code)
    expect('refusal' in right ? null : checkStep(open.state, right.events, evolve)).toEqual([])
  })

  test('is caught in a run as soon as it happens, in the order that shows it', () => {
    expect(() => everyOrder({ ...twins, decide: mixedUp() }, () => {})).toThrow(invariants[4])
    expect(() => everyOrder({ ...twins, decide: mixedUp() }, () => {})).toThrow(/in the order: start, H r\/1, A r\.0\/1/)
    expect(() => everyOrder(twins, () => {})).not.toThrow()
  })

  test('in what a turn is judged by is caught as well: an action that the edges of its own agent do not allow', () => {
    const play = secretWord()
    const open = go(play, begin(play), 'Orchestrator r/1')
    const decision = decide(
      open.state,
      { type: 'turn.complete', branch: 'r.2', agent: 'AgentC', turn: 1, attempt: 1, action: invoke('AgentD', 'R') },
      open.state.at,
      play.code,
    )
    if ('refusal' in decision) throw new Error(decision.refusal.message)
    const [completed, ...rest] = decision.events
    if (completed?.type !== 'turn.completed') throw new Error('no turn was completed')
    const forged: Event[] = [{ ...completed, action: invoke('Orchestrator', 'R') }, ...rest]
    const found = checkStep(open.state, forged, evolve)
    expect(found).toContainEqual({ invariant: 4, explain: 'AgentC on r.2 invoked Orchestrator with no edge' })
  })

  test('is refused at the door: a completion in the name of another agent is stale', () => {
    const open = go(twins, begin(twins), 'H r/1')
    const command = {
      type: 'turn.complete',
      branch: 'r.0',
      agent: 'B',
      turn: 1,
      attempt: 1,
      action: { type: 'reply', value: 'x' },
    } as const
    expect(decide(open.state, command, open.state.at, twins.code)).toMatchObject({ refusal: { code: 'STALE_ATTEMPT' } })
  })
})
