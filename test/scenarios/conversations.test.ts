import { agent, topology } from 'tutti'
import { expect } from 'vitest'
import { type AnyTurn, everyOrder, nothingLeft, scenario, someOrders, type Stage } from './adapter.js'

scenario('A3 cancelling one run never cancels another of the same agents, at any point of either', async (raise) => {
  for (const { calls, nested } of [
    { calls: 1, nested: false },
    { calls: 2, nested: false },
    { calls: 1, nested: true },
    { calls: 2, nested: true },
  ]) {
    await everyOrder(2 * calls * (nested ? 2 : 1) + 1, async (schedule) => {
      await using stage = await raise()
      const work = async (turn: AnyTurn): Promise<number> => {
        for (let call = 0; call < calls; call++) await stage.step(turn, 'work')
        return calls
      }
      const team = topology({
        name: 'team',
        flows: ['Start -> H -> End', 'H <-> W'],
        agents: [
          agent({
            name: 'H',
            act: async (turn) => {
              if (turn.message.kind === 'join') return turn.finish(turn.message.join.values)
              return nested ? turn.fork(['W', 'W']) : turn.finish([await work(turn)])
            },
          }),
          agent({ name: 'W', act: async (turn) => turn.reply(await work(turn)) }),
        ],
      })
      const [first, second] = await Promise.all([stage.tutti.start(team, { id: 'R1' }), stage.tutti.start(team, { id: 'R2' })])
      let whole = false
      const cancel = async (): Promise<void> => {
        whole = (await first.status()) !== 'running'
        await first.cancel({ reason: 'enough' }).catch(() => {})
      }
      await stage.drain(schedule, { moves: { cancel } })
      expect(await second.output()).toEqual(nested ? [calls, calls] : [calls])
      expect(await first.status()).toBe(whole ? 'succeeded' : 'cancelled')
      expect(stage.effects().filter(({ run, status }) => run === 'R2' && status !== 'done')).toEqual([])
      expect(await stage.quiesce()).toEqual(nothingLeft)
    })
  }
})

scenario('A4 each rendered prompt is a function of its own conversation only, however the turns interleave', async (raise) => {
  const turns = 4
  const prompts = new Map<string, string[]>()
  const conversation = (stage: Stage) =>
    topology({
      name: 'conversation',
      flows: ['Start -> Desk -> End', 'Desk <-> Speaker', 'Speaker <-> Listener'],
      state: () => ({ history: [] as string[] }),
      merge: { history: 'mine' },
      agents: [
        agent({
          name: 'Desk',
          act: (turn) =>
            turn.message.kind === 'join'
              ? turn.finish(turn.message.join.values)
              : turn.fork((turn.request as readonly string[]).map((topic) => ({ to: 'Speaker', request: topic }))),
        }),
        agent({
          name: 'Speaker',
          act: async (turn) => {
            const { history } = turn.state as { history: readonly string[] }
            const topic = history[0] ?? String(turn.request)
            if (history.length > turns) return turn.reply(history)
            const prompt = JSON.stringify({ topic, history, request: turn.request })
            prompts.set(topic, [...(prompts.get(topic) ?? []), prompt])
            const said = await stage.step(turn, 'model', `${topic}, line ${history.length}`)
            return turn.invoke('Listener', said, { state: { history: history.length === 0 ? [topic, said] : [...history, said] } })
          },
        }),
        agent({ name: 'Listener', act: (turn) => turn.invoke('Speaker', `heard: ${String(turn.request)}`) }),
      ],
    })
  const topics = ['rain', 'snow', 'wind']
  const told = async (inputs: readonly (readonly string[])[], drain: (stage: Stage) => Promise<unknown>): Promise<unknown> => {
    prompts.clear()
    await using stage = await raise()
    const definition = conversation(stage)
    const runs = await Promise.all(inputs.map((input, at) => stage.tutti.start(definition, { id: `R${at}`, input })))
    await drain(stage)
    const outputs = await Promise.all(runs.map((run) => run.output()))
    expect(await stage.quiesce()).toEqual(nothingLeft)
    return { outputs, prompts: topics.map((topic) => prompts.get(topic)) }
  }
  const apart = topics.map((topic) => [topic])
  const sequential = { name: 'one conversation after the other', pick: <T>(options: readonly T[]) => options[0] as T }
  for (const inputs of [apart, [topics]]) {
    const expected = JSON.stringify(await told(inputs, (stage) => stage.drain(sequential)))
    expect(JSON.parse(expected)).toMatchObject({ prompts: topics.map(() => ({ length: turns })) })
    await someOrders(topics.length * turns, inputs === apart ? 200 : 15, async (schedule) => {
      expect(JSON.stringify(await told(inputs, (stage) => stage.drain(schedule)))).toBe(expected)
    })
  }
})
