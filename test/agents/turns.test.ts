import { agent, graph, topology } from 'tutti'
import { describe, expect, test } from 'vitest'
import { agentKind } from '../../src/engine/agent-record.js'
import { memoryStore } from '../../src/stores/memory.js'
import { deferred, forksEach, hub, journalSoFar, opened, rest, solo, typesOf } from '../engine/opened.js'

/** A hub with workers that say when they begin and wait to be let on. */
function workers(count: number, options: Readonly<Record<string, unknown>> = {}) {
  const held = deferred()
  const begun: unknown[] = []
  const act = async (turn: { request: unknown; reply(value: unknown): unknown }) => {
    begun.push(turn.request)
    await held.promise
    return turn.reply(turn.request)
  }
  const definition = hub(forksEach(Array.from({ length: count }, (_, at) => at)), { act, ...options } as never)
  return { held, begun, definition }
}

describe('while an agent is paused', () => {
  test('its turns wait, the rest goes on, and the run says what it waits for', async () => {
    const begun: string[] = []
    const definition = topology({
      name: 'two',
      flows: ['Start -> H -> End', 'H <-> A | B'],
      agents: {
        H: (turn) => (turn.message.kind === 'join' ? turn.finish(turn.message.join.values) : turn.fork([{ to: 'A' }, { to: 'B' }])),
        A: (turn) => {
          begun.push('A')
          return turn.reply('a')
        },
        B: (turn) => {
          begun.push('B')
          return turn.reply('b')
        },
      },
    })
    await using tutti = await opened({ definitions: [definition] })
    await tutti.agents.pause('A')
    const run = await tutti.start(definition)
    await rest()
    expect(begun).toEqual(['B'])
    expect(await run.summary()).toMatchObject({ status: 'running', paused: false, waitsFor: ['agent'] })
    expect((await tutti.runs()).runs).toMatchObject([{ waitsFor: ['agent'] }])
    await tutti.agents.resume('A')
    expect(await run.output()).toEqual(['a', 'b'])
    expect(begun).toEqual(['B', 'A'])
    expect(await run.summary()).toMatchObject({ status: 'succeeded', waitsFor: [] })
  })

  test('a turn in flight finishes and no other begins, not even one that waited for room', async () => {
    const { held, begun, definition } = workers(3, { concurrency: 1 })
    await using tutti = await opened({ definitions: [definition] })
    const run = await tutti.start(definition)
    await rest()
    expect(begun).toEqual([0])
    await tutti.agents.pause('W')
    held.resolve()
    await rest()
    expect(begun).toEqual([0])
    expect((await run.report()).branches.filter(({ status }) => status === 'arrived')).toHaveLength(1)
    await tutti.agents.resume('W')
    expect(await run.output()).toEqual([0, 1, 2])
  })

  test('its retries wait as well', async () => {
    let attempts = 0
    const first = deferred()
    const definition = solo({
      retry: { attempts: 3 },
      act: async (turn: { finish(value: unknown): unknown }) => {
        if (++attempts > 1) return turn.finish(attempts)
        await first.promise
        throw new Error('not yet')
      },
    } as never)
    await using tutti = await opened({ definitions: [definition] })
    const run = await tutti.start(definition)
    await rest()
    await tutti.agents.pause('A')
    first.resolve()
    await rest()
    expect(attempts).toBe(1)
    await tutti.agents.resume('A')
    expect(await run.output()).toBe(2)
  })

  test('its turns wait in every process, whoever paused it, and after a restart', async () => {
    const store = memoryStore()
    const { held, begun, definition } = workers(2)
    held.resolve()
    const first = await opened({ store, definitions: [definition] })
    const other = await opened({ store })
    await other.agents.pause('W')
    const run = await first.start(definition, { id: 'r' })
    await rest()
    expect(begun).toEqual([])
    expect((await run.summary()).waitsFor).toEqual(['agent'])
    await first.close()
    await using second = await opened({ store, definitions: [definition] })
    await rest()
    expect(begun).toEqual([])
    expect((await (await second.run('r')).summary()).waitsFor).toEqual(['agent'])
    await other.agents.resume('W')
    expect(await (await second.run('r')).output()).toEqual([0, 1])
    expect(await store.marks({ kind: agentKind })).toEqual([])
    await other.close()
  })

  test('a run can be paused, resumed and cancelled all the same', async () => {
    const { held, begun, definition } = workers(1)
    held.resolve()
    await using tutti = await opened({ definitions: [definition] })
    await tutti.agents.pause('W')
    const run = await tutti.start(definition)
    await rest()
    await run.pause()
    await tutti.agents.resume('W')
    await rest()
    expect(begun).toEqual([])
    await tutti.agents.pause('W')
    await run.resume()
    await rest()
    expect(begun).toEqual([])
    expect((await run.summary()).waitsFor).toEqual(['agent'])
    await run.cancel()
    expect(await run.result()).toMatchObject({ status: 'cancelled' })
    await tutti.agents.resume('W')
    await rest()
    expect(begun).toEqual([])
  })

  test('runs that only wait for it are let go from memory, and all of them go on when it is resumed', async () => {
    const store = memoryStore()
    let done = 0
    const definition = solo((turn) => {
      done++
      return turn.finish(null)
    })
    await using tutti = await opened({ store, definitions: [definition] })
    await tutti.agents.pause('A')
    const runs = await Promise.all(Array.from({ length: 400 }, () => tutti.start(definition)))
    await rest(200)
    const rows = await store.list({ limit: 1_000 })
    expect(rows.filter(({ worker }) => worker === null).length).toBeGreaterThan(100)
    expect(rows.every(({ waits }) => waits.includes('agent'))).toBe(true)
    expect(done).toBe(0)
    await tutti.agents.resume('A')
    await Promise.all(runs.map((run) => run.output()))
    expect(done).toBe(400)
    expect(await store.marks({ kind: agentKind })).toEqual([])
  })

  test('a process that dies again and again is not taken for the work of a turn that only waits', async () => {
    const store = memoryStore()
    const definition = solo((turn) => turn.finish('done'))
    const first = await opened({ store, definitions: [definition] })
    await first.agents.pause('A')
    await first.start(definition, { id: 'r' })
    await rest()
    // As if each owner died with the run in its hands.
    for (let death = 0; death < 7; death++) {
      const row = (await store.list({ limit: 1 }))[0]
      const peer = (await store.beat(999)).find(({ worker }) => worker === row?.worker)
      if (peer !== undefined) await store.fence(peer, 0)
      const next = await opened({ store, definitions: [definition] })
      await rest()
      if (death === 6) await next.agents.resume('A')
      else continue
      expect(await (await next.run('r')).output()).toBe('done')
    }
  })

  test('nothing of an outcome changes: a pause is only a delay', async () => {
    const reports = []
    for (const pauses of [false, true]) {
      const { held, definition } = workers(3)
      held.resolve()
      await using tutti = await opened({ definitions: [definition] })
      if (pauses) await tutti.agents.pause('W')
      const run = await tutti.start(definition, { id: 'same' })
      await rest()
      if (pauses) await tutti.agents.resume('W')
      const { report } = await run.result()
      reports.push(JSON.stringify({ ...report, measured: null }))
    }
    expect(reports[0]).toBe(reports[1])
  })
})

describe('when an agent is stopped', () => {
  test('its turn in flight finishes, no other begins, and it has stopped when the last one has ended', async () => {
    const { held, begun, definition } = workers(2, { concurrency: 1 })
    await using tutti = await opened({ definitions: [definition] })
    const run = await tutti.start(definition)
    await rest()
    expect(await tutti.agents.stop('W')).toMatchObject({ status: 'stopped', runtime: 'stopping', revision: 2 })
    await rest()
    expect(await tutti.agents.get('W')).toMatchObject({ runtime: 'stopping' })
    held.resolve()
    const result = await run.result()
    expect(begun).toEqual([0])
    expect(result).toMatchObject({
      status: 'failed',
      error: { code: 'JOIN_FAILED', cause: { code: 'AGENT_STOPPED', retryable: false, at: { agent: 'W', branch: 'r.1' } } },
    })
    await rest()
    expect(await tutti.agents.get('W')).toMatchObject({ status: 'stopped', runtime: 'stopped', revision: 3 })
  })

  test('with turns in flight in another process, it has stopped when these have ended or that process is gone', async () => {
    const store = memoryStore()
    const { held, definition } = workers(1)
    await using one = await opened({ store, definitions: [definition] })
    await using two = await opened({ store })
    const run = await one.start(definition)
    await rest()
    expect(await two.agents.stop('W')).toMatchObject({ runtime: 'stopping' })
    await rest()
    expect(await two.agents.get('W')).toMatchObject({ runtime: 'stopping' })
    held.resolve()
    await run.output()
    await rest()
    expect(await two.agents.get('W')).toMatchObject({ status: 'stopped', runtime: 'stopped' })

    await two.agents.start('W')
    const stuck = workers(1)
    const dying = await opened({ store, definitions: [stuck.definition], graceMs: 0 })
    await dying.start(stuck.definition)
    await rest()
    expect(await two.agents.terminate('W')).toMatchObject({ status: 'terminated', runtime: 'stopping' })
    await rest()
    expect(await two.agents.get('W')).toMatchObject({ runtime: 'stopping' })
    await dying.close()
    await rest()
    expect(await two.agents.get('W')).toMatchObject({ status: 'terminated', runtime: 'stopped' })
  })

  test("its turns fail for good, with no retry, unless it says 'wait'", async () => {
    let attempts = 0
    const act = (turn: { finish(value: unknown): unknown }) => {
      attempts++
      return turn.finish('done')
    }
    const failing = solo({ act, retry: { attempts: 5 } } as never)
    const waiting = topology({ name: 'waiting', flows: ['Start -> B -> End'], agents: { B: { act: act as never, whenStopped: 'wait' } } })
    await using tutti = await opened({ definitions: [failing, waiting] })
    await tutti.agents.stop('A')
    await tutti.agents.stop('B')
    expect(await (await tutti.start(failing)).result()).toMatchObject({ status: 'failed', error: { code: 'AGENT_STOPPED' } })
    const run = await tutti.start(waiting)
    await rest()
    expect(attempts).toBe(0)
    expect((await run.summary()).waitsFor).toEqual(['agent'])
    expect(typesOf(await journalSoFar(run))).not.toContain('turn.failed')
    await tutti.agents.start('B')
    expect(await run.output()).toBe('done')
    await tutti.agents.start('A')
    expect(await tutti.execute(failing)).toBe('done')
  })

  test('turns that wait for an agent fail once it is terminated, in every process and whatever it says: it never acts again', async () => {
    const waiting = () =>
      topology({
        name: 'waiting',
        flows: ['Start -> A -> End'],
        agents: { A: { act: (turn) => turn.finish('done'), whenStopped: 'wait' } },
      })
    const store = memoryStore()
    await using one = await opened({ store, definitions: [waiting()] })
    await using two = await opened({ store, definitions: [waiting()] })
    await one.agents.stop('A')
    const runs = [await one.start('waiting'), await two.start('waiting')]
    await rest()
    for (const run of runs) expect((await run.summary()).waitsFor).toEqual(['agent'])
    await one.agents.terminate('A')
    for (const run of [...runs, await two.start('waiting')])
      expect(await run.result()).toMatchObject({ status: 'failed', error: { code: 'AGENT_STOPPED', message: 'the agent A is terminated' } })
  })

  test('an agent that is a step of a graph is stopped there too, and the step does what is said of its errors', async () => {
    const Ada = agent({ name: 'Ada', act: (turn) => turn.finish('by Ada') })
    const steps = graph('steps')
      .step('asks', { run: Ada, onError: { fallback: 'nobody' } })
      .output()
    await using tutti = await opened({ definitions: [steps] })
    await tutti.agents.terminate('Ada')
    expect(await tutti.execute(steps)).toEqual({ asks: 'nobody' })
  })
})

test('what is said of concurrency holds for an agent over all runs of a process', async () => {
  let now = 0
  let most = 0
  const definition = solo({
    concurrency: 2,
    act: async (turn: { finish(value: unknown): unknown }) => {
      most = Math.max(most, ++now)
      await rest(2)
      now--
      return turn.finish(null)
    },
  } as never)
  await using tutti = await opened({ definitions: [definition] })
  await Promise.all(Array.from({ length: 12 }, () => tutti.execute(definition)))
  expect(most).toBe(2)
})

test('the options of an agent are checked, and those that are accepted hold', () => {
  const make = (options: object) => () => solo({ act: () => undefined, ...options } as never)
  for (const bad of [{ whenStopped: 'maybe' }, { breaker: { failures: 3 } }, { breaker: { failures: 0, probeMs: 1 } }, { breaker: 3 }])
    expect(make(bad), JSON.stringify(bad)).toThrow()
  expect(make({ whenStopped: 'wait', breaker: { failures: 1, probeMs: 0 } })).not.toThrow()
})
