import { agent, TuttiError, topology } from 'tutti'
import { expect } from 'vitest'
import { type AnyTurn, everyOrder, nothingLeft, scenario, type Stage } from './adapter.js'

scenario('B1 the keys that parallel branches write are all there at the join, with the same values in every order', async (raise) => {
  const played = async (width: number, nested: boolean): Promise<void> => {
    const leaves = nested ? width * 2 : width
    const keys = Array.from({ length: leaves }, (_, at) => `key${at}`)
    const merge = Object.fromEntries(keys.map((key) => [key, 'last' as const]))
    const reports = new Set<string>()
    await everyOrder(leaves, async (schedule) => {
      await using stage = await raise()
      const writes = async (turn: AnyTurn) => {
        const key = `key${turn.request}`
        const value = await stage.step(turn, 'write', `by ${key}`)
        return turn.reply(key, { state: { ...(turn.state as object), [key]: value } })
      }
      const forks = (count: number, of: (at: number) => { to: string; request: unknown }) => (turn: AnyTurn) => {
        if (turn.message.kind !== 'join') return turn.fork(Array.from({ length: count }, (_, at) => of(at)))
        return turn.waiting === null ? turn.invoke('Report', turn.message.join.values) : turn.reply(turn.message.join.values)
      }
      const definition = topology({
        name: 'keys',
        flows: ['Start -> Top', 'Top <-> Middle', 'Middle <-> Leaf', 'Top <-> Leaf', 'Top -> Report -> End'],
        state: () => Object.fromEntries(keys.map((key) => [key, 'not written'])),
        merge,
        agents: [
          agent({ name: 'Top', act: forks(width, (at) => ({ to: nested ? 'Middle' : 'Leaf', request: at })) }),
          agent({
            name: 'Middle',
            act: (turn) => forks(2, (at) => ({ to: 'Leaf', request: Number(turn.request) * 2 + at }))(turn),
          }),
          agent({ name: 'Leaf', act: writes }),
          agent({ name: 'Report', act: (turn) => (turn as AnyTurn).finish(turn.state) }),
        ],
      })
      const run = await stage.tutti.start(definition, { id: 'R' })
      await stage.drain(schedule)
      expect(await run.output()).toEqual(Object.fromEntries(keys.map((key) => [key, `by ${key}`])))
      const { measured: _, ...report } = await run.report()
      reports.add(JSON.stringify(report))
      expect(await stage.quiesce()).toEqual(nothingLeft)
    })
    expect(reports.size).toBe(1)
  }
  for (const width of [1, 2, 3, 4, 5]) await played(width, false)
  await played(2, true)
  await played(4, true)
})

scenario('B2 what was done in sequence and what was done beside it are all there, in the order of their declaration', async (raise) => {
  const orders = await everyOrder(4, async (schedule) => {
    await using stage = await raise()
    const definition = topology({
      name: 'steps',
      flows: ['Start -> A -> End'],
      agents: {
        A: async (turn) => {
          const s1 = await stage.step(turn, 'S1', 's1')
          const beside = [stage.step(turn, 'A1', 'a1'), stage.step(turn, 'A2', 'a2')]
          const s2 = await stage.step(turn, 'S2', 's2')
          return turn.finish([s1, ...(await Promise.all(beside)), s2])
        },
      },
    })
    const run = await stage.tutti.start(definition)
    await stage.drain(schedule)
    expect(await run.output()).toEqual(['s1', 'a1', 'a2', 's2'])
    expect(await stage.quiesce()).toEqual(nothingLeft)
  })
  expect(orders).toBe(6)
  for (const width of [2, 3, 4, 5]) {
    const names = Array.from({ length: width }, (_, at) => `W${at}`)
    const orders = await everyOrder(width, async (schedule) => {
      await using stage = await raise()
      const definition = topology({
        name: 'agents',
        flows: ['Start -> First -> Lead -> End', `Lead <-> ${names.join(' | ')}`],
        agents: [
          agent({ name: 'First', act: (turn) => turn.invoke('Lead', 'first') }),
          agent({
            name: 'Lead',
            act: { request: (turn) => turn.fork(names), join: (turn, join) => turn.finish([turn.request, ...join.values]) },
          }),
          ...names.map((name) => agent({ name, act: async (turn) => turn.reply(await stage.step(turn, name, name)) })),
        ],
      })
      const run = await stage.tutti.start(definition)
      await stage.drain(schedule)
      expect(await run.output()).toEqual(['first', ...names])
    })
    expect(orders).toBe([0, 1, 2, 6, 24, 120][width])
  }
})

/** A loop of fan-out and fan-in; each arrival names its loop and its round. */
function loops(stage: Stage, rounds: number, width: number, parallel: number) {
  return topology({
    name: 'loops',
    flows: ['Start -> Top -> End', 'Top <-> Loop', 'Loop <-> Arm'],
    agents: [
      agent({
        name: 'Top',
        act: {
          request: (turn) => turn.fork(Array.from({ length: parallel }, (_, loop) => ({ to: 'Loop', request: loop }))),
          join: (turn, join) => turn.finish(join.values),
        },
      }),
      agent({
        name: 'Loop',
        act: async (turn) => {
          const round = turn.turn - 1
          const got = turn.message.kind === 'join' ? turn.message.join.values : []
          if (turn.message.kind === 'join') {
            expect(got).toEqual(Array.from({ length: width }, (_, arm) => `loop ${turn.request}, round ${round - 1}, arm ${arm}`))
            expect(turn.message.join.slots.map(({ status }) => status)).toEqual(Array.from({ length: width }, () => 'arrived'))
          }
          if (round === rounds) return turn.reply([turn.request, round])
          return turn.fork(
            Array.from({ length: width }, (_, arm) => ({ to: 'Arm', request: `loop ${turn.request}, round ${round}, arm ${arm}` })),
          )
        },
      }),
      agent({ name: 'Arm', act: async (turn) => turn.reply(await stage.step(turn, 'arm', turn.request)) }),
    ],
  })
}

scenario('B3 every round of a loop is given its own arrivals, all of them, and those of no other round', async (raise) => {
  for (const { rounds, width, parallel } of [
    { rounds: 3, width: 2, parallel: 1 },
    { rounds: 2, width: 3, parallel: 1 },
    { rounds: 1, width: 2, parallel: 2 },
    { rounds: 3, width: 2, parallel: 2 },
  ])
    await everyOrder(rounds * width * parallel, async (schedule) => {
      await using stage = await raise()
      const run = await stage.tutti.start(loops(stage, rounds, width, parallel))
      await stage.drain(schedule)
      const result = await run.result()
      expect(result).toMatchObject({ status: 'succeeded', output: Array.from({ length: parallel }, (_, loop) => [loop, rounds]) })
      expect(stage.effects()).toHaveLength(rounds * width * parallel)
      expect(await stage.quiesce()).toEqual(nothingLeft)
    })
})

scenario(
  'B6 parallel writers of a key with no declared merge are refused when they are defined, before anything happens',
  async (raise) => {
    let acted = 0
    const act = (turn: AnyTurn) => {
      acted++
      return turn.fail('it runs')
    }
    const define = (state: (input: unknown) => object, merge?: object): unknown =>
      topology({
        name: 'writers',
        flows: ['Start -> H -> End', 'H <-> W'],
        state,
        ...(merge === undefined ? {} : { merge }),
        agents: [agent({ name: 'H', act }), agent({ name: 'W', act })],
      } as never)
    const codes = (make: () => unknown): unknown => {
      try {
        make()
        return 'accepted'
      } catch (error) {
        return TuttiError.is(error, 'INVALID_TOPOLOGY') ? error.problems?.map(({ where }) => where) : error
      }
    }
    for (let keys = 1; keys <= 4; keys++) {
      const names = Array.from({ length: keys }, (_, at) => `k${at}`)
      const state = (): object => Object.fromEntries(names.map((name) => [name, 0]))
      expect(codes(() => define(state))).toHaveLength(keys)
      for (const missing of names) {
        const others = Object.fromEntries(names.filter((name) => name !== missing).map((name) => [name, 'last']))
        expect(codes(() => define(state, others))).toEqual([expect.stringContaining(missing)])
      }
      expect(codes(() => define(state, Object.fromEntries(names.map((name) => [name, 'mine']))))).toBe('accepted')
    }
    // Keys that only an input brings to light are found when the run is started: nothing of it is recorded.
    await using stage = await raise()
    const late = define((input) => ({ ...(input as object) }), {}) as never
    await expect(stage.tutti.start(late, { id: 'R', input: { surprise: 1 } } as never)).rejects.toMatchObject({ code: 'INVALID_TOPOLOGY' })
    await expect(stage.tutti.run('R')).rejects.toMatchObject({ code: 'RUN_NOT_FOUND' })
    expect(acted).toBe(0)
  },
)

scenario('B7 a branch asks its model only after what it recorded before is durable, and shows it', async (raise) => {
  for (const width of [1, 2, 4]) {
    await using stage = await raise()
    const asked: string[][] = []
    const definition = topology({
      name: 'writes-then-asks',
      flows: ['Start -> H -> End', 'H <-> W'],
      agents: [
        agent({
          name: 'H',
          act: {
            request: (turn) => turn.fork(Array.from({ length: width }, (_, at) => ({ to: 'W', request: at }))),
            join: (turn, join) => turn.finish(join.values),
          },
        }),
        agent({
          name: 'W',
          act: async (turn) => {
            const transcript: string[] = []
            transcript.push(await stage.step(turn, 'tool', `r${turn.request}`))
            await turn.step('model', (ctx) => {
              asked.push([...transcript])
              return stage.held('model', ctx)
            })
            return turn.reply(transcript)
          },
        }),
      ],
    })
    const run = await stage.tutti.start(definition)
    await stage.quiesce()
    stage.stall('activity.completed')
    for (const effect of stage.waiting()) stage.release(effect)
    await stage.quiesce()
    expect(stage.effects(/tool/).map(({ status }) => status)).toEqual(Array.from({ length: width }, () => 'done'))
    expect(stage.effects(/model/)).toEqual([])
    expect(asked).toEqual([])
    await stage.unstall()
    expect(asked).toHaveLength(width)
    expect(new Set(asked.flat())).toEqual(new Set(Array.from({ length: width }, (_, at) => `r${at}`)))
    for (const effect of stage.waiting()) stage.release(effect)
    expect(await run.output()).toEqual(Array.from({ length: width }, (_, at) => [`r${at}`]))
  }
})
