import { agent, graph, topology } from 'tutti'
import { script } from 'tutti/testing'
import { expect, test } from 'vitest'
import { z } from 'zod'
import { loadDriver, openDatabase } from '../../src/stores/sqlite-driver.js'
import { Place, until } from '../durable/processes.js'
import { journal, opened, rest, timed } from '../engine/opened.js'

const boom = (): never => {
  throw new Error('no')
}

test('what a child run has done is undone by a run of its own when its parent fails', async () => {
  const log: string[] = []
  const child = graph('child')
    .step('a', {
      run: () => 'a',
      compensate: ({ idempotencyKey }) => void log.push(`undo a ${idempotencyKey.split('/').slice(1).join('/')}`),
    })
    .step('b', { after: ['a'], run: () => 'b', compensate: () => void log.push('undo b') })
    .output()
  const parent = graph('parent')
    .step('before', { run: () => 1, compensate: () => void log.push('undo before') })
    .step('part', { after: ['before'], run: child, input: () => null, compensate: () => void log.push('undo part') })
    .step('end', { after: ['part'], run: boom })
    .output()
  await using tutti = await opened()
  const run = await tutti.start(parent, { id: 'p' })
  expect(await run.result()).toMatchObject({ status: 'failed', rollback: 'complete' })
  expect(log).toEqual(['undo part', 'undo b', expect.stringMatching(/^undo a p:part\/r\.0\/1\/undo$/), 'undo before'])
  const undo = await tutti.run('p:part:undo')
  expect(await undo.result()).toMatchObject({ status: 'succeeded', rollback: 'complete' })
})

test('a run that undoes a child is not cancelled, and who tries is told what it does', async () => {
  let go = (): void => {}
  const child = graph('child')
    .step('a', { run: () => 'a', compensate: () => new Promise<void>((resolve) => void (go = resolve)) })
    .output()
  const parent = graph('parent')
    .step('part', { run: child, input: () => null })
    .step('end', { after: ['part'], run: boom })
    .output()
  await using tutti = await opened()
  const run = await tutti.start(parent, { id: 'p' })
  await rest()
  const undo = await tutti.run('p:part:undo')
  await expect(undo.cancel()).rejects.toMatchObject({
    code: 'RUN_ENDED',
    message: 'the run p:part:undo undoes what p:part has done: that is not cancelled',
  })
  go()
  expect(await run.result()).toMatchObject({ rollback: 'complete' })
})

test('a child run is kept for as long as its parent may need it, and can be undone', async () => {
  await using at = await timed()
  const log: string[] = []
  const child = graph('child')
    .step('a', { run: () => 'a', compensate: () => void log.push('undo a') })
    .output()
  const deleted: number[] = []
  const parent = graph('parent')
    .step('part', { run: child, input: () => null })
    .step('end', {
      after: ['part'],
      run: async () => {
        await at.clock.sleep(1)
        deleted.push(await at.tutti.gc({ olderThanMs: 0 }))
        boom()
      },
    })
    .output()
  const run = await at.tutti.start(parent, { id: 'p' })
  await rest()
  await at.clock.advance(1)
  expect(await run.result()).toMatchObject({ status: 'failed', rollback: 'complete' })
  expect({ deleted, log }).toEqual({ deleted: [0], log: ['undo a'] })
  await at.clock.advance(1)
  // With its parent it goes: the parent, the child, and the run that undid it.
  expect(await at.tutti.gc({ olderThanMs: 0 })).toBe(3)
})

test('what a child has done that is gone all the same can not be undone, and the failure says why', async () => {
  using place = new Place()
  const child = graph('child')
    .step('a', { run: () => 'a', compensate: () => {} })
    .output()
  const parent = graph('parent')
    .step('part', { run: child, input: () => null })
    .ask('sure', { after: ['part'], question: () => 'sure?', schema: z.any() })
    .step('end', { after: ['sure'], run: boom })
    .output()
  const first = await opened({ store: place.store })
  const asking = await first.start(parent, { id: 'p' })
  await until('it asks', async () => (await asking.asks()).length === 1)
  await first.close()
  const file = openDatabase(await loadDriver(), place.store, 'write')
  file.exec("delete from run where id = 'p:part'")
  file.close()
  await using tutti = await opened({ store: place.store, definitions: [parent, child] })
  const run = await tutti.run('p')
  await run.answer((await run.asks())[0]?.id ?? '', true)
  expect(await run.result()).toMatchObject({ status: 'failed', rollback: 'partial' })
  const failed = (await journal(run)).find(({ type }) => type === 'undo.failed')
  expect(failed).toMatchObject({
    final: true,
    error: { code: 'CHILD_FAILED', message: expect.stringMatching(/^the child run p:part is gone, and nobody knows what to undo of it/) },
  })
})

test('a child that has nothing to undo leaves nothing to undo', async () => {
  const child = graph('child')
    .step('a', { run: () => 'a' })
    .output()
  const parent = graph('parent')
    .step('part', { run: child, input: () => null })
    .step('end', { after: ['part'], run: boom })
    .output()
  await using tutti = await opened()
  expect(await (await tutti.start(parent)).result()).toMatchObject({ status: 'failed', rollback: 'none' })
})

test('a child that is only partly rolled back is no clean failure: its parent does not skip it, does not retry it, and is partial too', async () => {
  let children = 0
  const child = graph('child')
    .step('a', {
      run: () => {
        children++
        return 'a'
      },
      compensate: boom,
    })
    .step('b', { after: ['a'], run: boom })
    .output()
  for (const onError of ['skip', { fallback: 1 }, 'pause'] as const) {
    children = 0
    const parent = graph('parent')
      .step('part', { run: child, input: () => null, onError, retry: { attempts: 3 } })
      .step('next', { after: ['part'], run: () => expect.unreachable() })
      .output()
    await using at = await timed()
    const run = await at.tutti.start(parent, { id: 'p' })
    const result = run.result()
    for (let i = 0; i < 8; i++) {
      await rest()
      await at.clock.advance(60_000)
    }
    expect(await result).toMatchObject({
      status: 'failed',
      rollback: 'partial',
      error: { code: 'CHILD_FAILED' },
      report: { notUndone: ['p:part/a'] },
    })
    expect(children).toBe(1)
  }
})

test('a child whose undo fails for good leaves its parent partly rolled back', async () => {
  const child = graph('child')
    .step('a', { run: () => 'a', compensate: boom })
    .output()
  const parent = graph('parent')
    .step('part', { run: child, input: () => null })
    .step('end', { after: ['part'], run: boom })
    .output()
  await using at = await timed()
  const result = (await at.tutti.start(parent, { id: 'p' })).result()
  for (let i = 0; i < 8; i++) {
    await rest()
    await at.clock.advance(60_000)
  }
  expect(await result).toMatchObject({ status: 'failed', rollback: 'partial', report: { notUndone: ['p:part'] } })
})

/** A fork in it keeps one of two, and can't undo the other: it succeeds all the same. */
const tidied = (log: string[]) =>
  topology({
    name: 'tidied',
    flows: ['Start -> Hub -> End', 'Hub <-> Kept', 'Hub -> Lost -> Last -> Hub'],
    agents: {
      Hub: {
        act: {
          request: (turn) => turn.fork(['Kept', 'Lost'], { join: { policy: 'all', insufficient: 'resume' }, compensate: true }),
          join: (turn, { values }) => turn.finish(values),
        },
        compensate: () => void log.push('undo Hub'),
      },
      Kept: { act: (turn) => turn.reply('kept'), compensate: () => void log.push('undo Kept') },
      Lost: { act: (turn) => turn.invoke('Last'), compensate: boom },
      Last: (turn) => turn.fail('no'),
    },
  })

test.each([
  ['succeeds', 'succeeded'],
  ['fails and undoes the rest', 'failed'],
] as const)('what a child that succeeds could not undo is listed by its parent, which %s', async (_, status) => {
  const log: string[] = []
  const parent = graph('parent')
    .step('part', {
      run: graph('between')
        .step('deep', { run: tidied(log) })
        .output(),
    })
    .step('end', { after: ['part'], run: () => (status === 'failed' ? boom() : 1) })
    .output()
  await using at = await timed()
  const result = (await at.tutti.start(parent, { id: 'p' })).result()
  for (let i = 0; i < 8; i++) {
    await rest()
    await at.clock.advance(60_000)
  }
  expect(await (await at.tutti.run('p:part:deep')).result()).toMatchObject({ status: 'succeeded', rollback: 'partial' })
  expect(await result).toMatchObject({ status, rollback: 'partial', report: { notUndone: ['p:part/p:part:deep/r.1/1'] } })
  expect(log).toEqual(status === 'failed' ? ['undo Hub', 'undo Kept', 'undo Hub'] : [])
})

test('what a child could not undo is listed also if it crossed a limit of its parent, which fails with that', async () => {
  const child = graph('child')
    .step('a', { run: () => 'a', compensate: boom })
    .step('b', { after: ['a'], input: () => 'go', run: agent({ name: 'Writer', model: 'sim' }) })
    .output()
  const parent = graph('parent', { limits: { tokens: 10 } })
    .step('part', { run: child, input: () => null, onError: 'skip' })
    .output()
  await using at = await timed({ models: script({ Writer: [{ finish: 'done' }] }) })
  const result = (await at.tutti.start(parent, { id: 'p' })).result()
  for (let i = 0; i < 8; i++) {
    await rest()
    await at.clock.advance(60_000)
  }
  expect(await result).toMatchObject({
    status: 'failed',
    error: { code: 'LIMIT_TOKENS' },
    rollback: 'partial',
    report: { notUndone: ['p:part/a'] },
  })
})

test.each(['runs out of time', 'is cancelled'])(
  'what a child left undone whose step %s depends on when that was, and is a choice in the report',
  async (how) => {
    const child = graph('child')
      .step('a', { run: () => 'a', compensate: boom })
      .step('b', {
        after: ['a'],
        run: ({ signal }) => new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason))),
      })
      .output()
    const parent = graph('parent')
      .step('own', { run: () => 1, compensate: () => 1 })
      .step('part', { after: ['own'], run: child, input: () => null, onError: 'skip', timeoutMs: 1_000 })
      .output()
    await using at = await timed()
    const run = await at.tutti.start(parent, { id: 'p' })
    await rest()
    if (how === 'is cancelled') await run.cancel()
    for (let i = 0; i < 8; i++) {
      await rest()
      await at.clock.advance(60_000)
    }
    const { report } = await run.result()
    expect(report).toMatchObject({ rollback: 'partial', notUndone: ['p:part/a'] })
    expect(report.choices).toContainEqual({
      at: '#',
      kind: 'undo',
      decidedBy: how === 'is cancelled' ? ['own', 'p:part/a'] : ['p:part/a'],
    })
  },
)
