import * as tutti from 'tutti'
import { afterAll, expect, test } from 'vitest'
import { counted } from '../durable/children/counted.js'
import { Child, patience, Place, times } from '../durable/processes.js'
import { codeOf } from '../engine/opened.js'

type Said = { readonly done?: { readonly revision: number }; readonly code?: string }

const pair = tutti.topology({
  name: 'pair',
  flows: ['Start -> Ada -> End', 'Ada <-> Bob'],
  agents: { Ada: (turn) => turn.finish('done'), Bob: (turn) => turn.reply('done') },
})

async function resumed(engine: tutti.Tutti, callers: number): Promise<{ wins: unknown[]; codes: unknown[] }> {
  const said = await Promise.all(Array.from({ length: callers }, (_, at) => codeOf(engine.agents.resume('Ada', { by: `caller ${at}` }))))
  return { wins: said.filter((one) => typeof one !== 'string'), codes: said.filter((one) => typeof one === 'string') }
}

for (const callers of [2, 5, 64])
  test.each(['memory', 'sqlite'])(`D1 I2 of ${callers} racing resumes of an agent in one process one wins (%s)`, async (kind) => {
    using place = new Place()
    await using engine = await tutti.open({ store: kind === 'memory' ? 'memory:' : place.store, definitions: [pair] })
    for (let round = 0; round < times(5, 50); round++) {
      const { revision } = await engine.agents.pause('Ada')
      const { wins, codes } = await resumed(engine, callers)
      expect(wins).toEqual([{ accepted: { name: 'Ada', status: 'running', runtime: 'running', revision: revision + 1, attempt: 1 } }])
      expect(codes).toEqual(Array.from({ length: callers - 1 }, () => 'AGENT_NOT_PAUSED'))
      expect(await engine.agents.get('Ada')).toMatchObject({ status: 'running', revision: revision + 1 })
    }
    const history = await engine.agents.history('Ada')
    expect(history.filter(({ call }) => call === 'resume').length).toBe(Math.min(25, times(5, 50)))
  })

// Started once: what costs most is starting processes.
const eight = (async () => {
  const place = new Place()
  const definition = counted(tutti, (line) => place.write(line))
  const engine = await tutti.open({ store: place.store, definitions: [definition, pair], invariants: true })
  const children = Array.from({ length: 8 }, () => new Child('caller', place))
  for (const child of children) await child.line()
  const all = async (order: (caller: number) => object): Promise<Said[]> => {
    const at = Date.now() + 8
    for (const [caller, child] of children.entries()) child.tell(JSON.stringify({ ...order(caller), at }))
    return Promise.all(children.map((child) => child.said<Said>()))
  }
  return { place, engine, definition, children, all }
})()
afterAll(async () => {
  const { place, engine, children } = await eight
  await Promise.all(children.map((child) => child.kill()))
  await engine.close()
  place[Symbol.dispose]()
})

test('D1 D2 I2 of eight processes on one file one resume of an agent wins, in every round', patience, async () => {
  const { engine, all } = await eight
  for (let round = 0; round < times(15, 200); round++) {
    const { revision } = await engine.agents.pause('Ada')
    const said = await all((caller) => ({ act: 'resume', agent: 'Ada', by: `caller ${caller}` }))
    expect(
      said.flatMap(({ done }) => done?.revision ?? []),
      `round ${round}`,
    ).toEqual([revision + 1])
    expect(said.flatMap(({ code }) => code ?? [])).toEqual(Array.from({ length: 7 }, () => 'AGENT_NOT_PAUSED'))
    expect(await engine.agents.get('Ada')).toMatchObject({ status: 'running', runtime: 'running', revision: revision + 1 })
  }
})

test('what waits for an agent goes on once, when one of eight processes has resumed it', patience, async () => {
  const { engine, definition, place, all } = await eight
  const name = 'A'
  for (let round = 0; round < times(3, 30); round++) {
    await engine.agents.pause(name)
    const run = await engine.start(definition)
    const said = await all(() => ({ act: 'resume', agent: name }))
    expect(said.filter(({ code }) => code === undefined)).toHaveLength(1)
    for await (const event of run.events()) if (event.type === 'ask.opened') await run.answer(event.ask.id, 'go')
    expect(await run.output()).toBe('go')
    for (const word of ['before', 'after']) expect(place.lines(word).filter((line) => line.includes(`/${run.id}/`))).toHaveLength(1)
  }
})

test('one key given by all of eight processes changes an agent once', patience, async () => {
  const { engine, all } = await eight
  for (let round = 0; round < times(5, 50); round++) {
    const { revision } = await engine.agents.pause('Bob')
    const said = await all(() => ({ act: 'resume', agent: 'Bob', key: `round ${round}` }))
    expect(said.map(({ done }) => done?.revision)).toEqual(Array.from({ length: 8 }, () => revision + 1))
    expect(await engine.agents.get('Bob')).toMatchObject({ revision: revision + 1 })
  }
})

test('pauses and resumes of different agents from many callers and processes hinder nobody for ever', patience, async () => {
  const { engine, all } = await eight
  const names = ['Ada', 'Bob']
  for (let round = 0; round < times(5, 50); round++) {
    const here = Promise.all(
      names.flatMap((name) => [engine.agents.pause(name), codeOf(engine.agents.resume(name)), engine.agents.pause(name)]),
    )
    const there = all((caller) => ({ act: caller % 2 === 0 ? 'pause' : 'resume', agent: names[caller % 3 === 0 ? 0 : 1] }))
    await here
    for (const { code } of await there) expect([undefined, 'AGENT_NOT_PAUSED']).toContain(code)
    for (const name of names) await codeOf(engine.agents.resume(name))
    expect((await engine.agents.list()).filter(({ name }) => names.includes(name))).toMatchObject([
      { status: 'running', runtime: 'running' },
      { status: 'running', runtime: 'running' },
    ])
  }
})
