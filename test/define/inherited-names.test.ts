/** Names that every object has something under, like `toString`, are names like any other. */
import { type Definition, graph, topology } from 'tutti'
import { expect, test } from 'vitest'
import { memoryStore } from '../../src/stores/memory.js'
import { opened, rest } from '../engine/opened.js'

const odd = ['toString', 'valueOf', 'hasOwnProperty', 'isPrototypeOf'] as const

test('agents of such names run beside definitions that have none', async () => {
  await using tutti = await opened()
  for (const name of odd) {
    const one = topology({
      name: `of ${name}`,
      flows: [`Start -> ${name}`, `${name} -> End`],
      agents: { [name]: (turn: any) => turn.finish(name) },
    } as never)
    expect(await tutti.execute(one as Definition<unknown>)).toBe(name)
  }
})

test.each([...odd, 'constructor'])('a key %s of the state is there only where somebody has put it', async (key) => {
  await using tutti = await opened()
  const last = async (how: unknown, first: object, left: object) => {
    const definition = topology({
      name: 'state',
      flows: ['Start -> H -> End', 'H <-> W'],
      state: () => first as { n: number },
      merge: { n: 'last', [key]: how } as never,
      agents: {
        H: (turn) => (turn.message.kind === 'join' ? turn.finish(turn.state) : turn.fork(['W'])),
        W: (turn) => turn.reply(1, { state: left as { n: number } }),
      },
    })
    return tutti.execute(definition)
  }
  const count = (base: unknown, changed: readonly unknown[]) => [base ?? 'none', changed.length]
  for (const how of ['mine', 'last', count]) expect(await last(how, { n: 0 }, { n: 1 })).toEqual({ n: 1 })
  expect(await last('mine', { n: 0, [key]: 5 }, { n: 1 })).toEqual({ n: 1, [key]: 5 })
  expect(await last('last', { n: 0, [key]: 5 }, { n: 1 })).toEqual({ n: 1 })
  expect(await last(count, { n: 0, [key]: 5 }, { n: 1 })).toEqual({ n: 1, [key]: [5, 1] })
  expect(await last(count, { n: 0 }, { n: 0, [key]: 5 })).toEqual({ n: 0, [key]: ['none', 1] })
})

test('a step of such a name can be new in the version under which a run goes on', async () => {
  const begun = (version: string, run: () => unknown) => graph('grows', { version, continues: ['1'] }).step('first', { run })
  const store = memoryStore()
  const first = await opened({ store, graceMs: 1, definitions: [begun('1', () => new Promise(() => {})).output()] })
  const { id } = await first.start('grows')
  await rest()
  await first.close()
  // A second new step, so that what the first one adds to the run is looked at too.
  const grown = begun('2', () => 7)
    .step('toString', { run: () => 'new' })
    .step('valueOf', { after: ['toString'], run: ({ steps }) => `${steps.toString}er` })
    .output()
  await using tutti = await opened({ store, definitions: [grown] })
  expect(await (await tutti.run(id)).output()).toEqual({ first: 7, toString: 'new', valueOf: 'newer' })
})
