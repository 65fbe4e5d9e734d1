import { graph, open, TuttiError } from 'tutti'
import { expect, test } from 'vitest'
import { z } from 'zod'
import { nothingLeft, Stage } from '../scenarios/adapter.js'

const approval = () =>
  graph('approval', { input: z.object({ tag: z.string() }) })
    .step('build', { run: ({ input }) => `${input.tag}.tgz` })
    .ask('approve', {
      after: ['build'],
      question: ({ steps, input }) => ({ ship: steps.build, tag: input.tag }),
      schema: z.object({ go: z.boolean(), note: z.string().default('none') }),
      timeoutMs: 60_000,
    })
    .step('ship', { after: ['approve'], when: ({ steps }) => steps.approve.go, run: ({ steps }) => steps.approve.note })
    .step('log', { run: () => 'logged' })
    .output()

test('an ask shows its question, and its answer, as the schema makes it, is the output of its step', async () => {
  await using stage = await Stage.open()
  const run = await stage.tutti.start(approval(), { input: { tag: 'v1' } })
  await stage.quiesce()
  const [ask, ...others] = await run.asks()
  expect(others).toEqual([])
  expect(ask).toMatchObject({ kind: 'question', agent: 'approve', question: { ship: 'v1.tgz', tag: 'v1' }, runId: run.id })
  expect(ask?.schema).toMatchObject({ type: 'object' })
  expect((await stage.tutti.asks({ agent: 'approve' })).map(({ id }) => id)).toEqual([ask?.id])
  expect((await run.summary()).waitsFor).toContain('person')
  await run.answer(ask?.id ?? '', { go: true })
  expect(await run.output()).toEqual({ build: 'v1.tgz', approve: { go: true, note: 'none' }, ship: 'none', log: 'logged' })
  expect(await stage.tutti.asks()).toEqual([])
})

test('an answer that the schema refuses leaves the ask open; a second answer is refused', async () => {
  await using stage = await Stage.open()
  const run = await stage.tutti.start(approval(), { input: { tag: 'v1' } })
  await stage.quiesce()
  const [ask] = await run.asks()
  const id = ask?.id ?? ''
  const codeOf = async (call: Promise<unknown>): Promise<unknown> => {
    try {
      await call
      return 'taken'
    } catch (error) {
      return TuttiError.is(error) ? error.code : error
    }
  }
  expect(await codeOf(run.answer(id, { go: 'yes' }))).toBe('ASK_INVALID_ANSWER')
  expect(await codeOf(run.answer('r.9~1', { go: true }))).toBe('ASK_NOT_FOUND')
  expect((await run.asks()).map((open) => open.id)).toEqual([id])
  expect(await Promise.all([codeOf(run.answer(id, { go: false })), codeOf(run.answer(id, { go: true }))])).toEqual([
    'taken',
    'ASK_ALREADY_ANSWERED',
  ])
  expect(await run.output()).toEqual({ build: 'v1.tgz', approve: { go: false, note: 'none' }, log: 'logged' })
})

test('an ask that nobody answers in time fails its step, as a choice, and skips what depends on it', async () => {
  await using stage = await Stage.open()
  const run = await stage.tutti.start(approval(), { input: { tag: 'v1' } })
  await stage.advance(59_999)
  expect(await run.status()).toBe('running')
  await stage.advance(1)
  expect(await run.result()).toMatchObject({ status: 'failed', error: { code: 'ASK_EXPIRED', at: { step: 'approve' } } })
  const events: string[] = []
  for await (const event of run.events()) if (event.type === 'ask.expired' || event.type === 'step.skipped') events.push(event.type)
  expect(events).toEqual(['ask.expired', 'step.skipped'])
  const [ask] = await run.asks()
  expect(ask).toBeUndefined()
  expect(await stage.quiesce()).toEqual(nothingLeft)
})

test('while the run is paused an ask can be answered and does not expire', async () => {
  await using stage = await Stage.open()
  const run = await stage.tutti.start(approval(), { input: { tag: 'v1' } })
  await stage.advance(50_000)
  await run.pause()
  await stage.advance(100_000)
  expect(await run.status()).toBe('paused')
  const [ask] = await run.asks()
  await run.answer(ask?.id ?? '', { go: true, note: 'late' })
  await stage.quiesce()
  expect(await run.status()).toBe('paused')
  await run.resume()
  expect((await run.output()).ship).toBe('late')
})

test('an ask holds up nothing that does not depend on it', async () => {
  await using tutti = await open({ store: 'memory:', invariants: true })
  const done: string[] = []
  const definition = graph('beside')
    .ask('question', { question: () => 'well?', schema: z.string() })
    .step('one', { run: () => done.push('one') })
    .step('two', { after: ['one'], run: () => done.push('two') })
    .step('after', { after: ['question'], run: ({ steps }) => steps.question })
    .output(({ steps }) => steps.after)
  const run = await tutti.start(definition)
  for await (const event of run.events()) if (event.type === 'step.completed' && event.step === 'two') break
  const [ask] = await run.asks()
  expect(done).toEqual(['one', 'two'])
  await run.answer(ask?.id ?? '', 'yes')
  expect(await run.output()).toBe('yes')
})

test('a question that throws fails its step', async () => {
  await using tutti = await open({ store: 'memory:', invariants: true })
  const definition = graph('mute')
    .ask('question', {
      question: () => {
        throw new Error('nothing to ask')
      },
      schema: z.string(),
    })
    .output()
  expect(await (await tutti.start(definition)).result()).toMatchObject({
    status: 'failed',
    error: { code: 'STEP_FAILED', message: 'nothing to ask', at: { step: 'question' } },
  })
})

test('cancelling a run closes its asks', async () => {
  await using stage = await Stage.open()
  const run = await stage.tutti.start(approval(), { input: { tag: 'v1' } })
  await stage.quiesce()
  const [ask] = await run.asks()
  await run.cancel({ reason: 'changed my mind' })
  expect(await run.result()).toMatchObject({ status: 'cancelled', reason: 'changed my mind' })
  await expect(run.answer(ask?.id ?? '', { go: true })).rejects.toMatchObject({ code: 'ASK_NOT_FOUND' })
  expect(await stage.quiesce()).toEqual(nothingLeft)
})
