/**
 * What happened to others, tried on agents as well as on runs. D1, D2 and I2, the racing resumes, are in `races`; a process that loses its place
 * while its turn tries a failed agent is E4.
 */
import { topology } from 'tutti'
import { expect, test } from 'vitest'
import { memoryStore } from '../../src/stores/memory.js'
import { codeOf, deferred, opened, rest, type SoloTurn, solo, untilAborted } from '../engine/opened.js'

test('E3 a monitor that acts on what it read long ago changes nothing of an agent that was terminated since', async () => {
  const store = memoryStore()
  const definition = solo((turn) => turn.finish('done'))
  await using engine = await opened({ store, definitions: [definition] })
  await using monitor = await opened({ store })
  const seen = await monitor.agents.get('A')
  await engine.agents.terminate('A', { by: 'ann' })
  const last = await engine.agents.get('A')
  for (const call of ['pause', 'stop', 'start', 'resume', 'terminate'] as const)
    expect(await codeOf(monitor.agents[call]('A', { ifRevision: seen.revision }))).toBe('REVISION_CHANGED')
  // Without saying what it is based on, it is refused too: terminated is final.
  for (const call of ['pause', 'stop', 'start'] as const) expect(await codeOf(monitor.agents[call]('A'))).toBe('INVALID_TRANSITION')
  expect(await engine.agents.get('A')).toEqual(last)
})

for (const late of ['success', 'failure'] as const)
  test(`E4 a process that was taken for dead while its turn tried an agent decides nothing about it with a late ${late}`, async () => {
    const store = memoryStore()
    const held: { process: number; go: ReturnType<typeof deferred<boolean>> }[] = []
    const definitionOf = (process: number) =>
      solo({
        breaker: { failures: 1, probeMs: 0 },
        act: async (turn: SoloTurn) => {
          const go = deferred<boolean>()
          held.push({ process, go })
          if (await go.promise) return turn.finish(process)
          throw new Error('it is down')
        },
      } as never)
    await using one = await opened({ store, definitions: [definitionOf(1)] })
    const failing = await one.start(definitionOf(1))
    await rest()
    held[0]?.go.resolve(false)
    await failing.result()
    const run = await one.start(definitionOf(1), { id: 'r' })
    await rest()
    expect(held[1]?.process).toBe(1)
    expect(await one.agents.get('A')).toMatchObject({ runtime: 'starting' })

    // Another fences it, takes its run over, and tries in its place.
    await using two = await opened({ store, definitions: [definitionOf(2)] })
    const row = (await store.load('r'))?.row
    const peer = (await store.beat(0)).find(({ worker }) => worker === row?.worker)
    await store.fence(peer ?? { worker: -1, beat: -1 }, 0)
    await rest(100)
    expect(held[2]?.process).toBe(2)
    const trying = await two.agents.get('A')
    expect(trying).toMatchObject({ status: 'running', runtime: 'starting' })

    held[1]?.go.resolve(late === 'success')
    await rest()
    expect(await two.agents.get('A')).toEqual(trying)
    held[2]?.go.resolve(late === 'failure')
    const result = await (await two.run(run.id)).result()
    expect(result).toMatchObject(late === 'failure' ? { status: 'succeeded', output: 2 } : { status: 'failed' })
    expect(await two.agents.get('A')).toMatchObject(late === 'failure' ? { runtime: 'running' } : { runtime: 'crashed' })
  })

test('F8 where a turn fails because its agent is stopped, that is what surfaces, and the cleanup of the others is finished by then', async () => {
  const cleaned: string[] = []
  const definition = topology({
    name: 'parallel',
    flows: ['Start -> H -> End', 'H <-> A | B'],
    agents: {
      H: (turn) =>
        turn.message.kind === 'join'
          ? turn.finish(null)
          : turn.fork([{ to: 'A' }, { to: 'B' }], { join: { policy: 'all', stragglers: 'cancel' } }),
      A: { retry: { attempts: 2, backoffMs: 0 }, act: (turn) => turn.reply('a') },
      B: async (turn) => {
        try {
          return await untilAborted(turn.signal)
        } finally {
          await rest(20)
          cleaned.push('B')
        }
      },
    },
  })
  await using tutti = await opened({ definitions: [definition] })
  await tutti.agents.pause('A')
  const run = await tutti.start(definition)
  await rest()
  await tutti.agents.stop('A')
  expect(await run.result()).toMatchObject({
    status: 'failed',
    error: { code: 'JOIN_FAILED', cause: { code: 'AGENT_STOPPED', at: { agent: 'A' } } },
  })
  expect(cleaned).toEqual(['B'])
})

test('F10 a turn that waits for its agent while it is resumed and its run is cancelled is either begun before, or never', async () => {
  const store = memoryStore()
  const begun: string[] = []
  const acknowledged: string[] = []
  const late: string[] = []
  const definition = solo((turn) => {
    if (acknowledged.includes(turn.runId)) late.push(turn.runId)
    begun.push(turn.runId)
    return turn.finish('done')
  })
  await using one = await opened({ store, definitions: [definition] })
  await using two = await opened({ store })
  let cancelled = 0
  for (let round = 0; round < 60; round++) {
    await two.agents.pause('A')
    const run = await one.start(definition, { id: `run-${round}` })
    await rest(5)
    expect(begun).not.toContain(run.id)
    const elsewhere = await two.run(run.id)
    const cancel = async (): Promise<void> => {
      await rest(round % 4)
      if (typeof (await codeOf(elsewhere.cancel())) !== 'string') acknowledged.push(run.id)
    }
    const resume = async (): Promise<void> => {
      await rest(Math.floor(round / 4) % 4)
      await two.agents.resume('A')
    }
    await Promise.all([cancel(), resume()])
    const { status } = await run.result()
    expect(status).toBe(acknowledged.includes(run.id) ? 'cancelled' : 'succeeded')
    if (status === 'cancelled') cancelled++
  }
  expect(late).toEqual([])
  expect(cancelled).toBeGreaterThan(0)
})
