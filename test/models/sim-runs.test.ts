import fc from 'fast-check'
import { agent, type Edge, open, patterns, TuttiError, tool, topology } from 'tutti'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { z } from 'zod'

beforeEach(() => vi.stubEnv('TUTTI_MODEL', 'sim'))
afterEach(() => vi.unstubAllEnvs())

type Flows = readonly (string | Edge)[] | { readonly edges: readonly Edge[] }

const namesIn = (flows: Flows): string[] => {
  const texts =
    'edges' in flows
      ? flows.edges.flatMap(({ from, to }) => [from, to])
      : flows.flatMap((flow) => (typeof flow === 'string' ? flow.split(/[<~>|\- ]+/) : [flow.from, flow.to]))
  return [...new Set(texts)].filter((name) => !['Start', 'End', 'User', ''].includes(name))
}

/** A run in which everybody is simulated. */
async function played(flows: Flows, more: object = {}, agents: readonly object[] = []) {
  const given = new Map((agents as { name: string }[]).map((each) => [each.name, each]))
  const team = topology({
    name: 'team',
    flows: flows as string[],
    agents: namesIn(flows).map((name) => (given.get(name) ?? agent({ name })) as ReturnType<typeof agent>),
    limits: { maxTurns: 200 },
    ...more,
  })
  await using tutti = await open({ store: 'memory:', invariants: true })
  const run = await tutti.start(team, { input: 'a poem about the sea' })
  return await run.result()
}

describe('with no key at all, a run follows its topology and ends:', () => {
  test.each<[string, Flows, object?]>([
    ['a hub and its spokes', patterns.hubAndSpoke({ hub: 'Hub', spokes: ['A', 'B', 'C'] })],
    ['a hub and one spoke', patterns.hubAndSpoke({ hub: 'Hub', spokes: ['A'] })],
    ['a star', patterns.star({ hub: 'Hub', spokes: ['A', 'B', 'C'] })],
    ['a hierarchy', patterns.hierarchy({ Chief: { East: { E1: {}, E2: {} }, West: { W1: {}, W2: {} } } })],
    ['a pipeline', patterns.pipeline(['Draft', 'Edit', 'Print'])],
    ['a mesh', patterns.mesh({ entry: 'A', members: ['A', 'B', 'C', 'D', 'E'] })],
    ['a ring', patterns.ring(['A', 'B', 'C', 'D'])],
    ['a broadcast', patterns.broadcast({ from: 'Hub', to: ['A', 'B'] }), { result: 'list' }],
    ['a writer and a critic', ['Start -> Writer -> End', 'Writer <-> Critic']],
    ['helpers, then somebody who takes over', ['Start -> Planner', 'Planner <-> Search | Read', 'Planner -> Writer -> End']],
    ['one of several who take over', ['Start -> Triage', 'Triage -> Billing | Tech -> End']],
    ['who asks people if they must', ['Start -> Triage', 'Triage <-> Billing | Tech', 'Triage | Billing | Tech -> User | End']],
    ['a rendezvous', ['Start -> Hub -> End', 'Hub -> A | B', 'A | B -> C', 'C -> Hub'], { joins: ['C'] }],
    ['who is only told', ['Start -> Hub -> End', 'Hub ~> Log', 'Log -> End']],
    ['a loop that leads out at one place', ['Start -> A -> B -> C -> A', 'C -> End']],
    ['several beginnings', ['Start -> A', 'Start -> B', 'A | B -> End'], { result: 'list' }],
  ])('%s', async (_, flows, more) => {
    const first = await played(flows, more)
    expect(first).toMatchObject({ status: 'succeeded' })
    expect(JSON.stringify(first.status === 'succeeded' && first.output)).toContain('[simulated]')
    const again = await played(flows, more)
    expect(again.status === 'succeeded' && again.output).toEqual(first.status === 'succeeded' && first.output)
    expect(again.report.interactions).toEqual(first.report.interactions)
  })
})

test('everybody in a hierarchy is asked once, and answers', async () => {
  const { report } = await played(patterns.hierarchy({ Chief: { East: { E1: {}, E2: {} }, West: { W1: {}, W2: {} } } }))
  const asked = ['Chief East', 'Chief West', 'East E1', 'East E2', 'West W1', 'West W2']
  const answers = asked.map((edge) => edge.split(' ').reverse().join(' '))
  const seen = report.interactions.map(({ from, to }) => `${from} ${to}`).filter((edge) => !edge.endsWith('End'))
  expect(seen.sort()).toEqual([...asked, ...answers].sort())
})

test('simulated agents call real tools, and give what schemas demand, to each other and at the end', async () => {
  const calls: unknown[] = []
  const look = tool({
    description: 'Looks.',
    input: z.object({ city: z.enum(['Bern', 'Oslo']), days: z.int().min(1).max(3) }),
    run: (input) => calls.push(input),
  })
  const rated = z.object({ stars: z.int().min(1).max(5), words: z.string().min(1) })
  const result = await played(
    patterns.hubAndSpoke({ hub: 'Hub', spokes: ['A', 'B'] }),
    { output: z.object({ title: z.string(), on: z.iso.date() }) },
    [agent({ name: 'A', input: z.object({ topic: z.string() }), output: rated, tools: { look } }), agent({ name: 'B', output: rated })],
  )
  expect(result).toMatchObject({ status: 'succeeded', output: { title: expect.stringContaining('[simulated]') as string } })
  expect(calls).toHaveLength(1)
  expect(result.report.agents).toEqual(expect.arrayContaining(['Hub', 'A', 'B']))
})

test.each([z.null(), z.object({ n: z.number() }).nullable()])(
  'simulated agents say nothing where nothing is what the schema takes (%#)',
  async (output) => {
    await using tutti = await open({ store: 'memory:' })
    const solo = topology({ name: 'solo', flows: ['Start -> A -> End'], agents: { A: { output } } })
    const said = await Promise.all(Array.from({ length: 40 }, (_, input) => tutti.execute(solo, { input })))
    expect(said).toContain(null)
  },
)

test.each<[string, Flows]>([
  ['a ring', ['Start -> A -> B -> C -> A', 'C -> End']],
  ['a mesh of three', ['Start -> A -> End', 'A <-> B', 'B <-> C', 'C <-> A']],
  ['a mesh of four', ['Start -> A -> End', 'A <-> B | C | D', 'B <-> C | D', 'C <-> D']],
])('simulated agents come to an end though what they take has no room for a word: %s', async (_, flows) => {
  const counting = namesIn(flows).map((name) => agent({ name, ...(name !== 'A' && { input: z.object({ id: z.number() }) }) }))
  expect(await played(flows, { limits: { maxTurns: 400 } }, counting)).toMatchObject({ status: 'succeeded' })
})

test('simulated agents work beside agents that are code, which know nothing of them', async () => {
  const hub = agent({
    name: 'Hub',
    act: (turn) => (turn.message.kind === 'join' ? turn.finish(turn.message.join.values) : turn.fork(['A', 'B'], { request: 'hello' })),
  })
  const flows = ['Start -> Hub -> End', 'Hub <-> A | B', 'A <-> B', 'A | B -> End']
  expect(await played(flows, {}, [hub])).toMatchObject({
    status: 'succeeded',
    output: [expect.stringContaining('hello'), expect.stringContaining('hello')],
  })
})

test('property: in every topology that can end, simulated agents come to an end without being stopped by a limit', async () => {
  const names = ['A', 'B', 'C', 'D']
  const edge = fc.tuple(fc.constantFrom(...names), fc.constantFrom(...names, 'End'))
  const flows = fc
    .tuple(fc.uniqueArray(edge, { selector: String, minLength: 2, maxLength: 10 }))
    .map(([edges]) => ['Start -> A', ...edges.map(([from, to]) => `${from} -> ${to}`)])
  await fc.assert(
    fc.asyncProperty(flows, async (given) => {
      const result = await played(given, { result: 'list' }).catch((error: unknown) => {
        // What can't end, or has agents that nobody can reach, is no topology.
        if (TuttiError.is(error, 'INVALID_TOPOLOGY')) fc.pre(false)
        throw error
      })
      expect(result).toMatchObject({ status: 'succeeded' })
    }),
    { numRuns: 40, maxSkipsPerRun: 1_000 },
  )
})
