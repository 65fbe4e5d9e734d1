import { type Definition, type Graph, graph } from 'tutti'
import { expect, test } from 'vitest'
import { z } from 'zod'
import { Place } from '../durable/processes.js'
import { deferred, forksEach, hub, opened, rest, solo } from './opened.js'

/** A definition that says which one of its name it is, before and after a person has answered. */
const saying = (which: string): Definition<unknown, unknown> =>
  solo((turn) => (turn.message.kind === 'answer' ? turn.finish(which) : turn.ask(which)))

/** A graph that is run by a step, and says which one of its name it is: in its output, in its question and when it is undone. */
function inner(which: string, undone: string[] = [], version = '1'): Graph<unknown, unknown> {
  return graph('inner', { input: z.unknown(), version })
    .step('does', { run: () => which, compensate: ({ output }) => void undone.push(`${which} undoes ${output}`) })
    .ask('waits', { after: ['does'], question: () => which, schema: z.unknown() })
    .step('says', { after: ['does', 'waits'], run: ({ steps }) => [steps.does, which] })
    .output(({ steps }) => steps.says)
}

/** Two steps that run different definitions of one name; then a person says whether it fails. */
function outer(undone: string[], versions: readonly [string, string] = ['1', '1']) {
  return graph('outer')
    .step('a', { input: () => 1, run: inner('first', undone, versions[0]) })
    .step('b', { input: () => 1, run: inner('second', undone, versions[1]) })
    .ask('fails', { after: ['a', 'b'], question: () => 'fail?', schema: z.boolean() })
    .step('ends', {
      after: ['a', 'b', 'fails'],
      run: ({ steps }) => {
        if (steps.fails) throw new Error('it was to fail')
        return [steps.a, steps.b]
      },
    })
    .output(({ steps }) => steps.ends)
}

/** Answers everything that is asked now, and lets what follows happen. */
async function answerAll(tutti: Awaited<ReturnType<typeof opened>>, value: unknown): Promise<string[]> {
  const asks = await tutti.asks()
  for (const { runId, id } of asks) await (await tutti.run(runId)).answer(id, value)
  await rest()
  return asks.map((ask) => (ask.kind === 'question' ? String(ask.question) : ask.kind)).sort()
}

test('a name means what the engine was opened with, whatever else of that name was started', async () => {
  await using tutti = await opened({ definitions: [saying('given')] })
  for (const which of ['another', 'a third']) {
    const runs = [await tutti.start('solo'), await tutti.start(saying(which)), await tutti.start('solo')]
    await rest()
    expect(await answerAll(tutti, 'go on')).toHaveLength(3)
    expect(await Promise.all(runs.map((run) => run.output()))).toEqual(['given', which, 'given'])
  }
})

test('a name means what the engine was opened with, and not what a step runs under that name', async () => {
  const given = graph('inner')
    .step('only', { run: () => 'given' })
    .output(({ steps }) => steps.only)
  for (const definitions of [
    [outer([]), given],
    [given, outer([])],
  ]) {
    await using tutti = await opened({ definitions })
    await tutti.start('outer')
    expect(await (await tutti.start('inner')).output()).toBe('given')
  }
})

test('a run goes on with the object that it was started with, also after it was let go from memory', async () => {
  await using tutti = await opened({ definitions: [saying('given')], invariants: false })
  const run = await tutti.start(saying('another'))
  await rest()
  for (let i = 0; i < 300; i++) await tutti.start('solo')
  await rest()
  const [ask] = await run.asks()
  await run.answer(ask?.id ?? '', 'go on')
  expect(await run.output()).toBe('another')
})

test('the concurrency of an agent holds for a definition whose name means another', async () => {
  await using tutti = await opened({ definitions: [hub(forksEach([1]), (turn) => turn.reply(0))] })
  const held = deferred()
  let begun = 0
  const act = async (turn: { reply(value: unknown): unknown }) => {
    begun++
    await held.promise
    return turn.reply(1)
  }
  const run = await tutti.start(hub(forksEach([1, 2, 3]), { concurrency: 1, act }))
  await rest()
  expect(begun).toBe(1)
  held.resolve()
  expect(await run.output()).toEqual([1, 1, 1])
})

test('a definition whose step runs another one of its own name is not taken for it', async () => {
  const same = graph('same', { input: z.unknown() })
    .step('only', { run: () => 'inner' })
    .output(({ steps }) => steps.only)
  const definition = graph('same')
    .step('only', { input: () => 1, run: same })
    .output(({ steps }) => ['outer', steps.only])
  await using tutti = await opened({ definitions: [definition] })
  for (let i = 0; i < 2; i++) expect(await (await tutti.start('same')).output()).toEqual(['outer', 'inner'])
})

test('two steps that run definitions of one name run each its own, and each undoes what it has done itself', async () => {
  const undone: string[] = []
  await using tutti = await opened()
  const run = await tutti.start(outer(undone))
  await rest()
  expect(await answerAll(tutti, true)).toEqual(['first', 'second'])
  expect(await answerAll(tutti, true)).toEqual(['fail?'])
  expect(await run.result()).toMatchObject({ status: 'failed', rollback: 'complete' })
  expect(undone.toSorted()).toEqual(['first undoes first', 'second undoes second'])
})

for (const versions of [
  ['1', '1'],
  ['1', '2'],
] as const)
  test(`after a restart a child run goes on with what its step says, although another has its name: versions ${versions.join(' and ')}`, async () => {
    using place = new Place()
    const undone: string[] = []
    const open = () => opened({ store: place.store, definitions: [outer(undone, versions)] })
    await (async () => {
      await using first = await open()
      await first.start('outer', { id: 'goes-well' })
      await first.start('outer', { id: 'fails' })
      await rest()
      expect(await first.asks()).toHaveLength(4)
    })()
    await (async () => {
      await using second = await open()
      expect(await answerAll(second, true)).toEqual(['first', 'first', 'second', 'second'])
      while ((await second.asks()).length < 2) await rest()
    })()
    await using third = await open()
    for (const id of ['goes-well', 'fails']) {
      const run = await third.run(id)
      const [ask] = await run.asks()
      await run.answer(ask?.id ?? '', id === 'fails')
    }
    expect(await (await third.run('goes-well')).output()).toEqual([
      ['first', 'first'],
      ['second', 'second'],
    ])
    expect(await (await third.run('fails')).result()).toMatchObject({ status: 'failed', rollback: 'complete' })
    expect(undone.toSorted()).toEqual(['first undoes first', 'second undoes second'])
  })
