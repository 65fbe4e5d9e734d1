import { topology } from 'tutti'
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
