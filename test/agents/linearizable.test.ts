import { topology, type Tutti, TuttiError } from 'tutti'
import { expect, test } from 'vitest'
import { agentKind } from '../../src/engine/agent-record.js'
import type { Store } from '../../src/engine/store.js'
import { memoryStore } from '../../src/stores/memory.js'
import { sqliteStore } from '../../src/stores/sqlite.js'
import { patience, Place, seed, times } from '../durable/processes.js'
import { opened, rest, solo } from '../engine/opened.js'
import { type Call, linearization, record, type Sequential, shown } from './linearizable.js'

type AgentOp = 'pause' | 'resume'
type RunOp = 'pause' | 'resume' | 'cancel'

interface AgentState {
  readonly paused: boolean
  readonly revision: number
}

/** What an agent does when one calls at a time; the result names the revision, so that no change may get lost or be made twice. */
const agentModel: Sequential<AgentState, AgentOp> = (state, op) => {
  if (op === 'resume' && !state.paused) return { result: 'AGENT_NOT_PAUSED', next: state }
  const paused = op === 'pause'
  const next = paused === state.paused ? state : { paused, revision: state.revision + 1 }
  return { result: `revision ${next.revision}`, next }
}

const runModel: Sequential<'going' | 'paused' | 'cancelled', RunOp> = (state, op) => {
  switch (op) {
    case 'pause':
      return state === 'cancelled' ? { result: 'RUN_ENDED', next: state } : { result: 'done', next: 'paused' }
    case 'resume':
      return state === 'paused' ? { result: 'done', next: 'going' } : { result: 'RUN_NOT_PAUSED', next: state }
    case 'cancel':
      return { result: 'done', next: 'cancelled' }
  }
}

/** Numbers from a seed. */
function randomOf(from: number): (below: number) => number {
  let state = (from * 2_654_435_761 + 1) >>> 0
  return (below) => {
    state ^= state << 13
    state ^= state >>> 17
    state ^= state << 5
    state >>>= 0
    return state % below
  }
}

/** A store whose every call takes a while, now this long, now that, so that calls of others come in between. */
function slow(store: Store, random: (below: number) => number): Store {
  const hops = async (): Promise<void> => {
    for (let hop = random(3); hop > 0; hop--) await Promise.resolve()
    if (random(8) === 0) await new Promise((resolve) => setImmediate(resolve))
  }
  const late =
    <A extends unknown[], R>(call: (...args: A) => Promise<R>) =>
    async (...args: A): Promise<R> => {
      await hops()
      const result = await call(...args)
      await hops()
      return result
    }
  return { ...store, record: late(store.record), commit: late(store.commit), load: late(store.load) }
}

const resultOf = async (call: Promise<unknown>, done: (value: unknown) => string): Promise<string> => {
  try {
    return done(await call)
  } catch (error) {
    if (TuttiError.is(error)) return error.code
    throw error
  }
}

const pair = topology({ name: 'pair', flows: ['Start -> Ada -> End'], agents: { Ada: (turn) => turn.finish('done') } })

function drawn<Op extends string>(random: (below: number) => number, ops: readonly Op[]): Op[][] {
  return Array.from({ length: 2 + random(3) }, () => Array.from({ length: 1 + random(3) }, () => ops[random(ops.length)] as Op))
}

type Steers = (engine: Tutti, op: AgentOp) => Promise<{ readonly revision: number }>
const asItIs: Steers = (engine, op) => engine.agents[op]('Ada')

/** Histories of one agent, from clients in several engines on one store; the first that no order explains. */
async function firstIllegal(store: Store, count: number, steers: Steers = asItIs): Promise<Call[] | null> {
  const random = randomOf(seed)
  const slowed = slow(store, random)
  const engines = await Promise.all([1, 2, 3].map(() => opened({ store: slowed, definitions: [pair] })))
  try {
    for (let round = 0; round < count; round++) {
      const { status, revision } = (await engines[0]?.agents.get('Ada')) ?? { status: 'running', revision: 1 }
      const history = await record(drawn(random, ['pause', 'resume'] as const), (client, op) =>
        resultOf(steers(engines[client % 3] as Tutti, op), (after) => `revision ${(after as { revision: number }).revision}`),
      )
      if (linearization(history, { paused: status === 'paused', revision }, agentModel) === null) return history
    }
    return null
  } finally {
    await Promise.all(engines.map((engine) => engine.close()))
  }
}

test('the checker takes what an order explains, and nothing else', () => {
  const call = (client: number, op: AgentOp, from: number, to: number, result: string) => ({ client, op, from, to, result })
  const paused = { paused: true, revision: 5 }
  const racing = [call(0, 'resume', 1, 4, 'revision 6'), call(1, 'resume', 2, 3, 'AGENT_NOT_PAUSED')]
  expect(linearization(racing, paused, agentModel)?.map(({ client }) => client)).toEqual([0, 1])
  const twice = [call(0, 'resume', 1, 4, 'revision 6'), call(1, 'resume', 2, 3, 'revision 6')]
  expect(linearization(twice, paused, agentModel)).toBeNull()
  const lost = [call(0, 'resume', 1, 4, 'revision 6'), call(1, 'pause', 2, 3, 'revision 5'), call(0, 'resume', 5, 6, 'revision 7')]
  expect(linearization(lost, paused, agentModel)).toBeNull()
  // The same results, but one after the other: who came second can't have come first.
  const tooLate = [call(0, 'resume', 3, 4, 'revision 6'), call(1, 'resume', 1, 2, 'AGENT_NOT_PAUSED')]
  expect(linearization(tooLate, paused, agentModel)).toBeNull()
})

test('property: whatever clients do to an agent at once, one order explains it', patience, async () => {
  const illegal = await firstIllegal(memoryStore(), times(1_000, 20_000))
  expect(illegal === null ? null : shown(illegal), `TUTTI_SEED=${seed}`).toBeNull()
})

test('property: so it is on SQLite', patience, async () => {
  using place = new Place()
  const store = await sqliteStore(place.store, { durability: 'process' })
  const illegal = await firstIllegal(store, times(200, 5_000))
  await store.close()
  expect(illegal === null ? null : shown(illegal), `TUTTI_SEED=${seed}`).toBeNull()
})

test('an agent that is looked at first and written afterwards is found out', patience, async () => {
  const store = memoryStore()
  // As it is often done: whether it may be is asked, and then it is written, whatever has become of it meanwhile.
  const checkThenAct: Steers = async (engine, op) => {
    const seen = await engine.agents.get('Ada')
    if (op === 'resume' && seen.status !== 'paused') throw new TuttiError('AGENT_NOT_PAUSED', 'it is not paused')
    const status = op === 'pause' ? 'paused' : 'running'
    if (seen.status === status) return seen
    await Promise.resolve()
    for (;;) {
      const found = await store.record(agentKind, 'Ada')
      const revision = seen.revision + 1
      const body = JSON.stringify({ ...JSON.parse(found?.body ?? '{}'), status, runtime: status, revision })
      const [verdict] = await store.commit([{ kind: agentKind, key: 'Ada', expect: found?.revision ?? 0, body }])
      if (verdict?.ok) return { revision }
    }
  }
  expect(await firstIllegal(store, 500, checkThenAct)).not.toBeNull()
})

test('property: whatever clients do to a run at once, one order explains it', patience, async () => {
  const random = randomOf(seed + 1)
  const store = slow(memoryStore(), random)
  const definition = solo((turn) => turn.ask('go on?'))
  const engines = await Promise.all([1, 2, 3].map(() => opened({ store, definitions: [definition] })))
  for (let round = 0; round < times(300, 5_000); round++) {
    const first = await (engines[0] as Tutti).start(definition)
    await rest(3)
    const runs = await Promise.all(engines.map((engine) => engine.run(first.id)))
    const clients = drawn(random, ['pause', 'pause', 'resume', 'resume', 'cancel'] as const)
    const history = await record(clients, (client, op) => resultOf((runs[client % 3] ?? first)[op](), () => 'done'))
    expect(linearization(history, 'going', runModel), `TUTTI_SEED=${seed}, round ${round}\n${shown(history)}`).not.toBeNull()
    await first.cancel().catch(() => {})
  }
  await Promise.all(engines.map((engine) => engine.close()))
})
