import { expect, test } from 'vitest'
import { memoryStore } from '../../src/stores/memory.js'
import { type HubTurn, hub, rest, type SoloTurn, solo, timed, type WorkerTurn } from './opened.js'

const hour = 3_600_000

test('runs that sleep for long are let go from memory, and wake when it is time, with what they had recorded', async () => {
  const store = memoryStore()
  const before: string[] = []
  let executions = 0
  const definition = solo(async (turn: SoloTurn) => {
    executions++
    const drawn = await turn.step('draw', () => before.push(turn.runId))
    await turn.sleep(hour)
    return turn.finish([drawn, turn.request])
  })
  await using at = await timed({ store, definitions: [definition] })
  const { tutti, clock } = at
  const runs = await Promise.all(Array.from({ length: 330 }, (_, n) => tutti.start(definition, { input: n })))
  await rest(200)
  const rows = await store.list({ limit: 1_000 })
  const letGo = rows.filter(({ worker }) => worker === null).length
  expect(letGo).toBeGreaterThan(50)
  expect(rows.every(({ waits }) => waits.includes('timer'))).toBe(true)
  await clock.advance(hour - 1)
  await rest()
  expect(executions).toBe(330)
  await clock.advance(1)
  const outputs = await Promise.all(runs.map((run) => run.output()))
  expect(outputs.map((output) => (output as unknown[])[1])).toEqual(runs.map((_, n) => n))
  // Each drew once; those that were let go were executed a second time.
  expect(before).toHaveLength(330)
  expect(executions).toBe(330 + letGo)
})

test('a run is not let go while anything of it is at work beside the sleep, nor when it sleeps for a moment only', async () => {
  const store = memoryStore()
  const busy = hub(
    (turn: HubTurn) => (turn.message.kind === 'join' ? turn.finish('done') : turn.fork([{ to: 'W' }, { to: 'W', request: 'now' }])),
    async (turn: WorkerTurn) => {
      if (turn.request === 'now') await turn.step('long', () => new Promise((resolve) => setTimeout(resolve, 60_000).unref()))
      else await turn.sleep(hour)
      return turn.reply(null)
    },
  )
  const brief = solo(async (turn: SoloTurn) => {
    await turn.sleep(1_000)
    return turn.finish('done')
  })
  await using at = await timed({ store, definitions: [busy, brief], graceMs: 0 })
  const { tutti, clock } = at
  for (const definition of [busy, brief]) await Promise.all(Array.from({ length: 270 }, () => tutti.start(definition)))
  await rest(100)
  expect((await store.list({ limit: 1_000 })).filter(({ worker }) => worker === null)).toEqual([])
  await clock.advance(1_000)
  await rest(100)
  expect((await tutti.runs({ definition: 'solo', limit: 1_000 })).runs.every(({ status }) => status === 'succeeded')).toBe(true)
})

test('a run that was let go in its sleep can be paused, resumed and cancelled', async () => {
  const store = memoryStore()
  const definition = solo(async (turn: SoloTurn) => {
    await turn.sleep(hour)
    return turn.finish('done')
  })
  await using at = await timed({ store, definitions: [definition] })
  const { tutti, clock } = at
  const runs = await Promise.all(Array.from({ length: 300 }, () => tutti.start(definition)))
  await rest(200)
  const [row, other] = (await store.list({ limit: 1_000 })).filter(({ worker }) => worker === null)
  const run = runs.find(({ id }) => id === row?.id)
  const cancelled = runs.find(({ id }) => id === other?.id)
  await cancelled?.cancel()
  expect(await cancelled?.result()).toMatchObject({ status: 'cancelled' })
  await run?.pause()
  await clock.advance(2 * hour)
  await rest(100)
  expect(await run?.status()).toBe('paused')
  await run?.resume()
  await clock.advance(hour)
  expect(await run?.output()).toBe('done')
  expect((await tutti.runs({ status: 'succeeded', limit: 1_000 })).runs).toHaveLength(299)
})

test('runs that sleep for long keep nobody from the room that there is, in the process or of their agent', async () => {
  const definition = (options: object = {}) =>
    solo({
      ...options,
      act: async (turn: SoloTurn) => {
        if (turn.request === 'sleep') await turn.sleep(48 * hour)
        return turn.finish(turn.request)
      },
    } as never)
  for (const [process, agent] of [
    [{ concurrency: 2 }, {}],
    [{}, { concurrency: 2 }],
  ]) {
    const own = definition(agent)
    await using at = await timed({ definitions: [own], ...process })
    const { tutti, clock } = at
    const asleep = await Promise.all([1, 2, 3].map(() => tutti.start(own, { input: 'sleep' })))
    await rest()
    const awake = await tutti.start(own, { input: 'now' })
    expect(await awake.output()).toBe('now')
    await clock.advance(48 * hour)
    expect(await Promise.all(asleep.map((run) => run.output()))).toEqual(['sleep', 'sleep', 'sleep'])
    expect(clock.now()).toBe(48 * hour)
  }
})

test('nor do those that are paused in their sleep, which has what it had left at the resume', async () => {
  const definition = solo(async (turn: SoloTurn) => {
    if (turn.request === 'sleep') await turn.sleep(2_000)
    return turn.finish(turn.request)
  })
  await using at = await timed({ definitions: [definition], concurrency: 1 })
  const { tutti, clock } = at
  const asleep = await tutti.start(definition, { input: 'sleep' })
  await clock.advance(500)
  const awake = await tutti.start(definition, { input: 'now' })
  await rest()
  expect(await awake.status()).toBe('running')
  await asleep.pause()
  expect(await awake.output()).toBe('now')
  await clock.advance(hour)
  await asleep.resume()
  await clock.advance(1_499)
  expect(await asleep.status()).toBe('running')
  await clock.advance(1)
  expect(await asleep.output()).toBe('sleep')
})
