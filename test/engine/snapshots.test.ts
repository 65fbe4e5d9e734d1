import { type Store, topology } from 'tutti'
import { expect, test } from 'vitest'
import { memoryStore } from '../../src/stores/memory.js'
import { journal, opened } from './opened.js'

test('a long run that another engine goes on with from a snapshot is where it was', { timeout: 60_000 }, async () => {
  const turns = 700
  const pingPong = topology({
    name: 'ping-pong',
    flows: ['Start -> Ping', 'Ping <-> Pong', 'Ping -> End', 'Pong -> User'],
    state: () => ({ count: 0 }),
    merge: { count: 'last' },
    agents: {
      Ping: (turn) => {
        const count = turn.state.count + 1
        return count > turns ? turn.finish(count) : turn.invoke('Pong', count, { state: { count } })
      },
      Pong: (turn) =>
        turn.state.count === turns && turn.message.kind !== 'answer' ? turn.ask('go on?') : turn.invoke('Ping', turn.request),
    },
    limits: { maxTurnsPerBranch: 2_000 },
  })
  const store = memoryStore()
  const first = await opened({ store, definitions: [pingPong] })
  const run = await first.start(pingPong, { id: 'long' })
  for await (const event of run.events()) if (event.type === 'ask.opened') break
  await first.close()
  expect((await store.load('long', { snapshot: true }))?.snapshot).toBeTruthy()
  await using second = await opened({ store, definitions: [pingPong] })
  const again = await second.run('long')
  const [ask] = await again.asks()
  await again.answer(ask?.id ?? '', true)
  expect(await again.output()).toBe(turns + 1)
  // Nothing that was between the snapshot and the end is missing: every turn has a number of its own.
  const numbers = (await journal(again)).flatMap((event) => (event.type === 'turn.started' ? [event.turn] : []))
  expect(numbers).toEqual(numbers.map((_, index) => index + 1))
})

test('a run of wide forks has a snapshot for as many events as any other, although they are written as one', {
  timeout: 60_000,
}, async () => {
  const rounds = 6
  const wide = topology({
    name: 'wide',
    flows: ['Start -> H -> End', 'H <-> W'],
    agents: {
      H: (turn) => (turn.turn > rounds ? turn.finish(turn.turn) : turn.fork(Array.from({ length: 1_000 }, () => 'W' as const))),
      W: (turn) => turn.reply(1),
    },
  })
  const inner = memoryStore()
  const seqs: number[] = [0]
  const store: Store = {
    ...inner,
    commit: (batch) => {
      for (const item of batch) if ('run' in item && item.snapshot !== undefined) seqs.push(item.snapshot.seq)
      return inner.commit(batch)
    },
  }
  await using tutti = await opened({ store, invariants: false })
  const run = await tutti.start(wide, { id: 'wide' })
  expect(await run.output()).toBe(rounds + 1)
  const events = (await journal(run)).length
  expect(events).toBeGreaterThan(25_000)
  const gaps = [...seqs.slice(1), events].map((seq, index) => seq - (seqs[index] ?? 0))
  expect(Math.max(...gaps)).toBeLessThan(10_000)
})
