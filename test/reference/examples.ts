/**
 * The examples of the rule book as data: what each agent does, and what must be true of the run in every order.
 *
 * `expect` says nothing if a run is as promised, what is wrong if it is not, and `otherChoice` if it is about other choices than were made.
 */
import type { Owed, RefAction, RefJoin, RefJoinData, RefMessage, RefTopology, Reference } from './model.js'

export interface Example {
  name: string
  topology: RefTopology
  agents: Record<string, (owed: Owed) => RefAction>
  expect: (run: Reference) => string | null
}
/** What `expect` says of a run in which the choices it is about were not made. */
export const otherChoice = 'other choice'

/** Reads flow strings: `A -> B | C`, `A <-> B`, `A ~> B`, and chains of them. */
export function flows(...texts: readonly string[]): Pick<RefTopology, 'nodes' | 'edges'> {
  const edges: { from: string; to: string; notify?: boolean }[] = []
  const add = (from: string, to: string, notify: boolean): void => {
    if (!edges.some((edge) => edge.from === from && edge.to === to)) edges.push(notify ? { from, to, notify } : { from, to })
  }
  for (const text of texts) {
    const parts = text.split(/\s*(<->|~>|->)\s*/)
    for (let i = 0; i + 2 < parts.length; i += 2) {
      const [left, arrow, right] = parts.slice(i, i + 3).map((part) => part.split('|').map((name) => name.trim())) as [
        string[],
        string[],
        string[],
      ]
      for (const a of left) {
        for (const b of right) {
          add(a, b, arrow[0] === '~>')
          if (arrow[0] === '<->') add(b, a, false)
        }
      }
    }
  }
  const nodes = [...new Set(edges.flatMap((edge) => [edge.from, edge.to]))].filter((name) => !['Start', 'End', 'User'].includes(name))
  return { nodes, edges }
}

const invoke =
  (to: string, request?: unknown) =>
  ({ agent }: Owed): RefAction => ({ type: 'invoke', to, request: request ?? agent.toLowerCase() })
const reply = ({ agent }: Owed): RefAction => ({ type: 'reply', value: agent.toLowerCase() })
const finish = ({ agent }: Owed): RefAction => ({ type: 'finish', output: agent.toLowerCase() })
const fail = ({ agent }: Owed): RefAction => ({ type: 'fail', error: agent.toLowerCase() })
/** Forks on its first turn and finishes, or replies, with what the join had. */
const forkThen = (to: readonly string[], then: 'finish' | 'reply' = 'finish', join?: RefJoin) => {
  return ({ message }: Owed): RefAction => {
    if (message.kind !== 'join') return { type: 'fork', calls: to.map((name) => ({ to: name })), ...(join === undefined ? {} : { join }) }
    const output = seen(message.join)
    return then === 'finish' ? { type: 'finish', output } : { type: 'reply', value: output }
  }
}

/** A join in short: the value of a slot that arrived, else its status; what was contributed from further in comes after. */
function seen(join: RefJoinData): unknown[] {
  const slots = join.slots.map((slot) => (slot.status === 'arrived' ? slot.value : slot.status))
  return [...slots, ...join.extra.map(({ by, value }) => ({ by, value }))]
}

interface TurnEntry {
  type: 'turn'
  branch: string
  agent: string
  turn: number
  attempt: number
  message: RefMessage
}

/** The turns of an agent that are reported: those under slots that read cancelled are not. */
export function turnsOf(run: Reference, agent: string): TurnEntry[] {
  return (run.report().turns as TurnEntry[]).filter((entry) => entry.agent === agent && entry.attempt === 1)
}

const same = (what: string, is: unknown, expected: unknown): string | null =>
  JSON.stringify(is) === JSON.stringify(expected) ? null : `${what}: ${JSON.stringify(is)} instead of ${JSON.stringify(expected)}`
const all = (...problems: readonly (string | null)[]): string | null => problems.find((problem) => problem !== null) ?? null
const output = (run: Reference, expected: unknown): string | null => same('output', run.outcome()?.output, expected)
const choices = (run: Reference, expected: readonly unknown[]): string | null => same('choices', run.choices(), expected)
/** What the first turn of an agent was asked, one entry for each request. */
const askedOf = (run: Reference, agent: string): unknown[] =>
  turnsOf(run, agent).map(({ message }) =>
    message.kind === 'merged' ? message.requests.map(({ value }) => value) : message.kind === 'request' ? [message.value] : message.kind,
  )
const base = { joins: [], result: 'one' as const }
const hub = flows('Start -> H -> End', 'H <-> A | B')

export const examples: readonly Example[] = [
  {
    name: 'the secret word: letters come in slot order, each judged by its own edges',
    topology: { ...flows('Start -> O -> End', 'O -> A | B | C', 'C -> D', 'A | B | D -> O'), ...base },
    agents: {
      O: ({ message }) =>
        message.kind === 'join'
          ? { type: 'finish', output: message.join.values.join('') }
          : { type: 'fork', calls: ['A', 'B', 'C'].map((to) => ({ to })) },
      A: () => ({ type: 'reply', value: 'M' }),
      B: () => ({ type: 'reply', value: 'A' }),
      C: invoke('D', 'R'),
      D: () => ({ type: 'reply', value: 'RS' }),
    },
    expect: (run) => {
      const join = turnsOf(run, 'O')[1]?.message
      if (join?.kind !== 'join') return 'the orchestrator has no second turn'
      return all(
        output(run, 'MARS'),
        same('values', join.join.values, ['M', 'A', 'RS']),
        same(
          'by',
          join.join.slots.map((slot) => slot.by),
          ['A', 'B', 'D'],
        ),
        same('turns', turnsOf(run, 'O').length, 2),
        choices(run, []),
      )
    },
  },
  {
    name: 'two branches meet at C, which finishes past H',
    topology: { ...flows('Start -> H', 'H -> A | B', 'A | B -> C', 'C -> End'), ...base, joins: ['C'] },
    agents: { H: forkThen(['A', 'B']), A: invoke('C'), B: invoke('C'), C: finish },
    expect: (run) => all(output(run, 'c'), same('C', askedOf(run, 'C'), [['a', 'b']]), same('turns of H', turnsOf(run, 'H').length, 1)),
  },
  {
    name: 'with no joins, C has two turns and the run has several finishes',
    topology: { ...flows('Start -> H', 'H -> A | B', 'A | B -> C', 'C -> End'), ...base },
    agents: { H: forkThen(['A', 'B']), A: invoke('C'), B: invoke('C'), C: finish },
    expect: (run) =>
      all(
        same('code', run.outcome()?.error?.code, 'SEVERAL_FINISHES'),
        same('hint', run.outcome()?.error?.message.includes("joins: ['C']"), true),
        same('C', askedOf(run, 'C'), [['a'], ['b']]),
      ),
  },
  {
    name: 'C waits for the group at D, which leads to it',
    topology: { ...flows('Start -> H -> End', 'H -> A | B', 'A -> C', 'B -> D', 'D -> C', 'C -> H'), ...base, joins: ['C', 'D'] },
    agents: { H: forkThen(['A', 'B']), A: invoke('C'), B: invoke('D'), D: invoke('C'), C: reply },
    expect: (run) => all(output(run, ['c', 'c']), same('C', askedOf(run, 'C'), [['a', 'd']])),
  },
  {
    name: 'C waits for B, although B waits at a fork of its own',
    topology: { ...flows('Start -> H -> End', 'H -> A | B', 'A -> C', 'B <-> X', 'B -> C', 'C -> H'), ...base, joins: ['C'] },
    agents: {
      H: forkThen(['A', 'B']),
      A: invoke('C'),
      B: (owed) => (owed.message.kind === 'join' ? invoke('C')(owed) : { type: 'fork', calls: [{ to: 'X' }] }),
      X: reply,
      C: reply,
    },
    expect: (run) => all(output(run, ['c', 'c']), same('C', askedOf(run, 'C'), [['a', 'b']])),
  },
  {
    name: 'C waits for the group at D, which waits for E',
    topology: {
      ...flows('Start -> H -> End', 'H -> A | B | E', 'A -> D', 'E -> D | H', 'B -> C', 'D -> C', 'C -> H'),
      ...base,
      joins: ['C', 'D'],
    },
    agents: {
      H: forkThen(['A', 'B', 'E']),
      A: invoke('D'),
      B: invoke('C'),
      E: reply,
      D: (owed) => invoke('C', `d(${valueOf(owed)})`)(owed),
      C: reply,
    },
    expect: (run) => all(output(run, ['c', 'c', 'e']), same('C', askedOf(run, 'C'), [['d(a)', 'b']])),
  },
  {
    name: 'C and D lead to each other, so neither waits for the other',
    topology: {
      ...flows('Start -> H -> End', 'H -> A | B', 'A -> C', 'B -> D', 'C <-> D', 'C -> H', 'D -> H'),
      ...base,
      joins: ['C', 'D'],
    },
    agents: { H: forkThen(['A', 'B']), A: invoke('C'), B: invoke('D'), C: reply, D: reply },
    expect: (run) => all(output(run, ['c', 'd']), same('C', askedOf(run, 'C'), [['a']]), same('D', askedOf(run, 'D'), [['b']])),
  },
  {
    name: 'both fail: both have settled, and the cause is the failure of A',
    topology: { ...hub, ...base },
    agents: { H: forkThen(['A', 'B']), A: fail, B: fail },
    expect: (run) => {
      const error = run.outcome()?.error
      return all(same('code', error?.code, 'JOIN_FAILED'), same('cause', error?.cause?.at.agent, 'A'), choices(run, []))
    },
  },
  {
    name: 'any: A decided, and B reads cancelled, whether or not it had failed by then',
    topology: { ...hub, ...base },
    agents: { H: forkThen(['A', 'B'], 'finish', 'any'), A: reply, B: fail },
    expect: (run) => all(output(run, ['a', 'cancelled']), choices(run, [{ at: 'r#1', kind: 'join', decidedBy: [0] }])),
  },
  {
    name: 'at a timeout all that had settled counts',
    topology: { ...hub, ...base },
    agents: {
      H: forkThen(['A', 'B'], 'finish', { policy: { ratio: 1 }, timeoutMs: 1000, insufficient: 'resume' }),
      A: reply,
      B: reply,
    },
    expect: (run) => {
      if (choices(run, [{ at: 'r#1', kind: 'timeout', decidedBy: [0] }]) !== null) return otherChoice
      return output(run, ['a', 'cancelled'])
    },
  },
  {
    name: 'any: A decided, so that what the X under B had finished is no output',
    topology: { ...flows('Start -> H -> End', 'H <-> A | B', 'B <-> X', 'X -> End'), ...base },
    agents: { H: forkThen(['A', 'B'], 'finish', 'any'), A: reply, B: forkThen(['X', 'X'], 'reply'), X: finish },
    expect: (run) => {
      if (choices(run, [{ at: 'r#1', kind: 'join', decidedBy: [0] }]) !== null) return otherChoice
      return output(run, ['a', 'cancelled'])
    },
  },
  {
    name: 'both W go past M to H: M has no second turn, and H sees them as extra',
    topology: { ...flows('Start -> H -> End', 'H <-> M', 'M <-> W', 'W -> H'), ...base },
    agents: { H: forkThen(['M']), M: forkThen(['W', 'W'], 'reply'), W: invoke('H') },
    expect: (run) =>
      all(
        output(run, ['escaped', { by: 'W', value: 'w' }, { by: 'W', value: 'w' }]),
        same('turns of M', turnsOf(run, 'M').length, 1),
        same('turns of H', turnsOf(run, 'H').length, 2),
      ),
  },
  {
    name: 'calls of a fork start at a rendezvous each on its own',
    topology: { ...flows('Start -> H -> End', 'H <-> C'), ...base, joins: ['C'] },
    agents: { H: forkThen(['C', 'C']), C: reply },
    expect: (run) => all(output(run, ['c', 'c']), same('turns of C', turnsOf(run, 'C').length, 2)),
  },
  {
    name: 'the one answer of C counts for both of its slots',
    topology: { ...flows('Start -> H -> End', 'H -> A | B | D', 'A | B -> C', 'C | D -> H'), ...base, joins: ['C'] },
    agents: { H: forkThen(['A', 'B', 'D'], 'finish', { quorum: 2 }), A: invoke('C'), B: invoke('C'), C: reply, D: reply },
    expect: (run) => {
      if (choices(run, [{ at: 'r#1', kind: 'join', decidedBy: [0, 1] }]) !== null) return otherChoice
      return output(run, ['c', 'c', 'cancelled'])
    },
  },
  {
    name: 'the fifth turn crosses the limit of four: the run fails, and no branch is blamed',
    topology: { ...flows('Start -> H -> End', 'H <-> A | B', 'A <-> X'), ...base, limits: { maxTurns: 4 } },
    agents: { H: forkThen(['A', 'B'], 'finish', 'settled'), A: forkThen(['X'], 'reply'), B: reply, X: reply },
    expect: (run) => {
      const error = run.outcome()?.error
      return all(same('code', error?.code, 'LIMIT_TURNS'), same('at', error?.at, {}))
    },
  },
  {
    name: 'the run ends after the notified N has, whose finish is no output',
    topology: { ...flows('Start -> H -> End', 'H ~> N', 'N -> End'), ...base },
    agents: { H: (owed) => (owed.message.kind === 'join' ? finish(owed) : invoke('N')(owed)), N: finish },
    expect: (run) => {
      const [, second] = turnsOf(run, 'H')
      const join = second?.message.kind === 'join' ? second.message.join : null
      return all(
        output(run, 'h'),
        same('N', askedOf(run, 'N'), [['h']]),
        same('detached', run.report().detached, [{ branch: 'r.0', status: 'arrived' }]),
        same(
          'slots',
          join?.slots.map(({ status, by, to }) => [status, by, to]),
          [['arrived', 'N', 'N']],
        ),
      )
    },
  },
]

function valueOf({ message }: Owed): string {
  return message.kind === 'request' ? String(message.value) : message.kind
}
