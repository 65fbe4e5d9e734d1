import { agent, topology } from 'tutti'
import { expect } from 'vitest'
import { type AnyTurn, everyOrder, nothingLeft, scenario, someOrders, type Stage } from './adapter.js'

/** Everyone asks a person; what comes after them all is an effect. */
function asking(stage: Stage, width: number, nested: boolean) {
  return topology({
    name: 'asking',
    flows: ['Start -> H', 'H <-> M', 'H <-> P', 'M <-> P', 'P -> User', 'H -> Next -> End'],
    agents: [
      agent({
        name: 'H',
        act: {
          request: (turn) => turn.fork(Array.from({ length: width }, (_, at) => ({ to: nested ? 'M' : 'P', request: at }))),
          join: (turn, join) => turn.invoke('Next', join.values),
        },
      }),
      agent({
        name: 'M',
        act: { request: (turn) => turn.fork([{ to: 'P', request: turn.request }]), join: (turn, join) => turn.reply(join.values[0]) },
      }),
      agent({
        name: 'P',
        act: {
          request: (turn) => (turn as AnyTurn).ask(turn.request),
          answer: (turn, value) => turn.reply(value),
        },
      }),
      agent({
        name: 'Next',
        act: async (turn) => {
          await stage.step(turn, 'next')
          return (turn as AnyTurn).finish(turn.request)
        },
      }),
    ],
  })
}

scenario('C2 as long as one of several asks is open nothing after their join starts, whichever are answered first', async (raise) => {
  for (const { width, nested } of [
    { width: 2, nested: false },
    { width: 3, nested: false },
    { width: 2, nested: true },
    { width: 4, nested: true },
  ])
    await everyOrder(width, async (schedule) => {
      await using stage = await raise()
      stage.hold(/^$/)
      const run = await stage.tutti.start(asking(stage, width, nested))
      await stage.quiesce()
      for (let open = width; open > 0; open--) {
        const asks = await run.asks()
        expect(asks).toHaveLength(open)
        expect(stage.effects()).toEqual([])
        expect(await run.summary()).toMatchObject({ status: 'running', waitsFor: ['person'] })
        const sorted = [...asks].sort((a, b) => (a.id < b.id ? -1 : 1))
        const ask = schedule.pick(sorted, ({ id }) => id)
        await run.answer(ask.id, `answer to ${ask.kind === 'question' ? String(ask.question) : ''}`)
        await stage.quiesce()
      }
      expect(await run.output()).toEqual(Array.from({ length: width }, (_, at) => `answer to ${at}`))
      expect(stage.effects().map(({ name }) => name)).toEqual(['next'])
      expect(await stage.quiesce()).toEqual(nothingLeft)
    })
})

/** A fork whose list is only known after a step has said so. */
function dynamic(stage: Stage) {
  const spread = (to: string) => async (turn: AnyTurn) => {
    if (turn.message.kind === 'join') {
      const { values } = turn.message.join
      return turn.waiting === null ? turn.invoke('Sum', values.flat()) : turn.reply(values.flat())
    }
    const [first = 0, ...rest] = turn.request as readonly number[]
    const count = await stage.step(turn, 'list', first)
    return turn.fork(
      Array.from({ length: count }, (_, at) => ({ to: rest.length > 0 ? to : 'Leaf', request: rest.length > 0 ? rest : at })),
    )
  }
  return topology({
    name: 'dynamic',
    flows: ['Start -> Top', 'Top <-> Part', 'Top | Part <-> Leaf', 'Top -> Sum -> End'],
    agents: [
      agent({ name: 'Top', act: spread('Part') }),
      agent({ name: 'Part', act: spread('Part') }),
      agent({ name: 'Leaf', act: async (turn) => turn.reply(await stage.held('leaf', turn, Number(turn.request))) }),
      agent({
        name: 'Sum',
        act: (turn) => (turn as AnyTurn).finish((turn.request as readonly unknown[]).length),
      }),
    ],
  })
}

scenario('C5 a join over thousands of children, listed only at run time, waits for its width and for every one of them', async (raise) => {
  for (const { widths, orders } of [
    { widths: [5_000], orders: 1 },
    { widths: [40, 25], orders: 2 },
    { widths: [3, 0], orders: 2 },
    { widths: [0], orders: 1 },
  ]) {
    const leaves = widths.reduce((product, width) => product * width, 1)
    await someOrders(leaves, orders, async (schedule) => {
      await using stage = await raise()
      const run = await stage.tutti.start(dynamic(stage), { input: widths })
      await stage.quiesce()
      expect(await run.status()).toBe('running')
      expect(stage.waiting().map(({ name }) => name)).toEqual(['list'])
      for (let listing = stage.waiting(); listing.some(({ name }) => name === 'list'); listing = stage.waiting()) {
        for (const effect of listing) if (effect.name === 'list') stage.release(effect)
        await stage.quiesce()
      }
      expect(stage.waiting()).toHaveLength(leaves)
      for (let waiting = stage.waiting(); waiting.length > 0; ) {
        const last = schedule.pick(waiting, ({ branch }) => branch)
        for (const effect of waiting) if (effect !== last) stage.release(effect)
        await stage.quiesce()
        expect(await run.status()).toBe('running')
        stage.release(last)
        await stage.quiesce()
        waiting = stage.waiting()
      }
      expect(await run.output()).toBe(leaves)
      for await (const event of run.events())
        if (event.type === 'barrier.fired') expect(event.arrived + event.failed + event.escaped + event.cancelled).toBe(event.width)
      expect(await stage.quiesce()).toEqual(nothingLeft)
    })
  }
})

scenario('D3 each runner of a race runs once, what comes after it runs once, and no attempt number is used twice', async (raise) => {
  for (const { width, inOneTurn } of [
    { width: 2, inOneTurn: false },
    { width: 3, inOneTurn: false },
    { width: 3, inOneTurn: true },
    { width: 5, inOneTurn: true },
  ]) {
    const names = Array.from({ length: width }, (_, at) => `s${at}`)
    await everyOrder(width + 1, async (schedule) => {
      await using stage = await raise({ graceMs: 10_000 })
      // Losers are deaf: they finish late, when the schedule says so, and what they say then counts for nothing.
      const race = topology({
        name: 'race',
        flows: ['Start -> H', 'H <-> S', 'H -> T -> End'],
        agents: [
          agent({
            name: 'H',
            act: async (turn) => {
              if (turn.message.kind === 'join') return turn.invoke('T', turn.message.join.values)
              if (!inOneTurn)
                return turn.fork(
                  names.map((name) => ({ to: 'S', request: name })),
                  { join: 'any' },
                )
              const first = await Promise.race(names.map((name) => stage.step(turn, name, name)))
              return turn.invoke('T', [first])
            },
          }),
          agent({ name: 'S', act: async (turn) => turn.reply(await stage.held(String(turn.request), turn, turn.request, { deaf: true })) }),
          agent({
            name: 'T',
            act: async (turn) => {
              await stage.step(turn, 't')
              return (turn as AnyTurn).finish(turn.request)
            },
          }),
        ],
      })
      const run = await stage.tutti.start(race)
      let winner: string | undefined
      await stage.drain(schedule, {
        outcome: ({ name }) => {
          winner ??= name
          return undefined
        },
      })
      expect(await run.output()).toEqual([winner])
      expect(stage.effects().map(({ name }) => name)).toEqual([...names, 't'])
      expect(new Set(stage.effects().map(({ key, attempt }) => `${key}@${attempt}`)).size).toBe(width + 1)
      const attempts: string[] = []
      for await (const event of run.events())
        if (event.type === 'turn.started') attempts.push(`${event.branch}/${event.turn}/${event.attempt}`)
      expect(new Set(attempts).size).toBe(attempts.length)
      expect(await stage.quiesce()).toEqual(nothingLeft)
    })
  }
})
