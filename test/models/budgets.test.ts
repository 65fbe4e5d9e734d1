import type { ModelFactory } from 'tutti'
import { topology } from 'tutti'
import { script } from 'tutti/testing'
import { describe, expect, test } from 'vitest'
import { deferred, journal, opened, rest } from '../engine/opened.js'
import { called, saying } from './spied.js'

const team = topology({
  name: 'team',
  flows: ['Start -> H -> End', 'H <-> W'],
  agents: {
    H: (turn) =>
      turn.message.kind === 'join'
        ? turn.finish(turn.message.join.values.length)
        : turn.fork(Array.from({ length: 8 }, (_, n) => ({ to: 'W' as const, request: n }))),
    W: {},
  },
})

/** Models that answer when the test says so, and how many were called. */
function counted(): { models: ModelFactory; calls: () => number; go: () => void } {
  const gate = deferred()
  let calls = 0
  const model = saying(() => [{ type: 'text', text: 'done' }])
  return {
    calls: () => calls,
    go: () => gate.resolve(),
    models: () => ({
      ...model,
      doGenerate: async (options: Parameters<typeof model.doGenerate>[0]) => {
        calls++
        await gate.promise
        return model.doGenerate(options)
      },
    }),
  }
}

describe('a limit of tokens', () => {
  test('I4 is kept before anything is called: with room for some of eight calls at once, no more than those start', async () => {
    const { models, calls, go } = counted()
    await using tutti = await opened({ models })
    const run = await tutti.start(team, { limits: { tokens: 20_000 } })
    const result = await run.result()
    expect(result).toMatchObject({ status: 'failed', error: { code: 'LIMIT_TOKENS' } })
    expect(calls()).toBeLessThan(8)
    const started = (await journal(run)).filter(({ type }) => (type as string) === 'activity.started')
    const reserved = started.reduce((sum, event) => sum + (event as unknown as { reserve: { tokens: number } }).reserve.tokens, 0)
    expect(reserved).toBeLessThanOrEqual(20_000)
    expect(calls()).toBeLessThanOrEqual(started.length)
    go()
  })

  test('counts what calls really used once they are over', async () => {
    const { models, calls, go } = counted()
    go()
    await using tutti = await opened({ models })
    const result = await (await tutti.start(team, { limits: { tokens: 100_000 } })).result()
    expect(result).toMatchObject({ status: 'succeeded', output: 8, report: { measured: { usage: { inputTokens: 80, outputTokens: 40 } } } })
    expect(calls()).toBe(8)
  })

  test('that is not there journals no start of a call', async () => {
    await using tutti = await opened({ models: script({ W: ['w'] }) })
    const run = await tutti.start(team)
    await run.output()
    expect((await journal(run)).filter(({ type }) => (type as string) === 'activity.started')).toEqual([])
  })
})

describe('a limit of cost', () => {
  const solo = topology({ name: 'solo', flows: ['Start -> A -> End'], agents: { A: {} } })
  const models: ModelFactory = () => saying(({ index }) => (index < 3 ? [called('nothing', {})] : [called('finish', { output: 'ok' })]))

  test('is kept by the prices that are given', async () => {
    const prices = { 'test/saying': { input: 1_000, output: 1_000 } }
    await using tutti = await opened({ models, prices })
    expect(await (await tutti.start(solo, { limits: { costUsd: 0.001 } })).result()).toMatchObject({
      status: 'failed',
      error: { code: 'LIMIT_COST' },
    })
    const rich = await (await tutti.start(solo, { limits: { costUsd: 1_000 } })).result()
    // Three answers were sent back, so there were three; each took 15 tokens.
    expect(rich.report.measured.usage).toMatchObject({ inputTokens: 30, outputTokens: 15, costUsd: expect.closeTo(0.045, 6) })
  })

  test('that nobody can keep, because no price is known, is no limit: the call is not made', async () => {
    await using tutti = await opened({ models })
    const result = await (await tutti.start(solo, { limits: { costUsd: 5 } })).result()
    expect(result).toMatchObject({
      status: 'failed',
      error: { code: 'MODEL_FAILED', message: expect.stringMatching(/nobody knows what test\/saying costs/) },
    })
    expect(result.report.measured.usage).toEqual({ inputTokens: 0, outputTokens: 0 })
  })
})

test('text is told as it comes to those who listen, and is in no journal', async () => {
  const solo = topology({ name: 'solo', flows: ['Start -> A -> End'], agents: { A: {} } })
  await using tutti = await opened({ models: script({ A: ['one two three'] }) })
  const run = await tutti.start(solo)
  const heard: string[] = []
  for await (const event of run.events({ deltas: true }))
    if (event.type === 'text.delta') heard.push(`${event.branch} ${event.agent}: ${event.text}`)
  expect(heard).toEqual(['r A: one ', 'r A: two ', 'r A: three'])
  expect((await journal(run)).map(({ type }) => type as string)).not.toContain('text.delta')
  await rest(1)
})
