import { agent, type Limits, topology } from 'tutti'
import { expect } from 'vitest'
import { type AnyTurn, everyOrder, nothingLeft, scenario, type Stage } from './adapter.js'

/** A tree of forks; every leaf is an effect. */
function tree(stage: Stage) {
  return topology({
    name: 'tree',
    flows: ['Start -> Top -> End', 'Top <-> Node', 'Top | Node <-> Leaf', 'Node <-> Inner', 'Inner <-> Leaf'],
    agents: ['Top', 'Node', 'Inner', 'Leaf'].map((name) =>
      agent({
        name,
        act: async (turn) => {
          if (turn.message.kind === 'join') {
            const { values } = turn.message.join
            return turn.waiting === null ? (turn as AnyTurn).finish(values.flat()) : turn.reply(values.flat())
          }
          if (name === 'Leaf') return turn.reply(await stage.held('leaf', turn, 1))
          const [width = 0, ...rest] = turn.request as readonly number[]
          if (name !== 'Top') await stage.held('node', turn)
          const to = rest.length === 0 ? 'Leaf' : name === 'Top' ? 'Node' : 'Inner'
          return turn.fork(Array.from({ length: width }, () => ({ to, request: rest })))
        },
      }),
    ),
  })
}

scenario(
  'I4 with a budget of b and more than b to do, no more than b ever start: what there is no room for is not begun',
  async (raise) => {
    for (const { widths, limits, code, most } of [
      // The Top's own turn and branch count: five are left, and six are wanted.
      { widths: [6], limits: { maxTurns: 6 }, code: 'LIMIT_TURNS', most: 0 },
      { widths: [6], limits: { maxBranches: 6 }, code: 'LIMIT_BRANCHES', most: 0 },
      { widths: [6], limits: { maxFanOut: 5 }, code: 'LIMIT_FANOUT', most: 0 },
      { widths: [1, 1, 1], limits: { maxDepth: 2 }, code: 'LIMIT_DEPTH', most: 0 },
      // Three nodes of two leaves each: there is room for two of them, whichever come first.
      { widths: [3, 2], limits: { maxBranches: 1 + 3 + 5 }, code: 'LIMIT_BRANCHES', most: 4 },
      // Two nodes of two leaves each: there is room for one of them.
      { widths: [2, 2], limits: { maxTurns: 1 + 2 + 3 }, code: 'LIMIT_TURNS', most: 2 },
      { widths: [2, 2], limits: { maxBranches: 1 + 2 + 3 }, code: 'LIMIT_BRANCHES', most: 2 },
    ] satisfies { widths: number[]; limits: Limits; code: string; most: number }[]) {
      const started = new Set<number>()
      await everyOrder(Math.max(6, most + (widths[0] ?? 0)), async (schedule) => {
        await using stage = await raise()
        const run = await stage.tutti.start(tree(stage), { input: widths, limits })
        await stage.drain(schedule)
        const leaves = stage.effects(/leaf/).length
        started.add(leaves)
        expect(leaves).toBeLessThanOrEqual(most)
        expect(await run.result()).toMatchObject({ status: 'failed', error: { code } })
        expect(await stage.quiesce()).toEqual(nothingLeft)
      })
      expect(Math.max(...started)).toBe(most)
    }
  },
)

scenario('I4 a limit of how much happens at once is never exceeded, in any order, and delays without failing', async (raise) => {
  for (const { width, concurrency, by } of [
    { width: 4, concurrency: 2, by: 'run' },
    { width: 5, concurrency: 1, by: 'run' },
    { width: 4, concurrency: 2, by: 'process' },
    { width: 4, concurrency: 3, by: 'agent' },
    { width: 12, concurrency: 5, by: 'run' },
  ])
    await everyOrder(width, async (schedule) => {
      await using stage = await raise(by === 'process' ? { concurrency } : {})
      let most = 0
      const definition = topology({
        name: 'crowd',
        flows: ['Start -> H -> End', 'H <-> W'],
        ...(by === 'run' && { limits: { concurrency } }),
        agents: [
          agent({
            name: 'H',
            act: {
              request: (turn) => turn.fork(Array.from({ length: width }, () => 'W')),
              join: (turn, join) => (turn as AnyTurn).finish(join.values.length),
            },
          }),
          agent({
            name: 'W',
            ...(by === 'agent' && { concurrency }),
            act: async (turn) => {
              const done = stage.held('work', turn)
              most = Math.max(most, stage.waiting().length)
              return turn.reply(await done)
            },
          }),
        ],
      })
      const run = await stage.tutti.start(definition)
      await stage.drain(schedule)
      expect(await run.output()).toBe(width)
      expect(most).toBe(concurrency)
      expect(await stage.quiesce()).toEqual(nothingLeft)
    })
})
