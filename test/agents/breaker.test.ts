import { expect, test } from 'vitest'
import { memoryStore } from '../../src/stores/memory.js'
import { deferred, opened, rest, type SoloTurn, solo, timed, untilAborted } from '../engine/opened.js'

/** An agent that fails while the test wants it to. */
function flaky(options: Readonly<Record<string, unknown>>) {
  const is = { down: true, attempts: 0, hold: null as Promise<void> | null }
  const act = async (turn: SoloTurn) => {
    is.attempts++
    await is.hold
    if (is.down) throw new Error('it is down')
    return turn.finish('up')
  }
  return { is, definition: solo({ act, ...options } as never) }
}
const breaker = { failures: 3, probeMs: 1_000 }
const failure = (message: string) => ({ status: 'failed', error: { code: 'AGENT_STOPPED', message: expect.stringContaining(message) } })

test('failures in a row over all runs trip it; then turns fail at once, and after its time one tries', async () => {
  const { is, definition } = flaky({ breaker })
  await using at = await timed({ definitions: [definition] })
  const { tutti, clock } = at
  const fails = async () => (await tutti.start(definition)).result()
  await fails()
  await fails()
  is.down = false
  expect(await tutti.execute(definition)).toBe('up')
  is.down = true
  // In a row: the two before do not count any more.
  await fails()
  await fails()
  expect(await tutti.agents.get('A')).toMatchObject({ status: 'running', runtime: 'running', revision: 1 })
  await fails()
  expect(await tutti.agents.get('A')).toMatchObject({ status: 'failed', runtime: 'crashed', revision: 2, attempt: 1 })
  expect(is.attempts).toBe(6)
  expect(await fails()).toMatchObject(failure('failed too often'))
  expect(is.attempts).toBe(6)

  await clock.advance(1_000)
  const probe = deferred()
  is.hold = probe.promise
  const trying = await tutti.start(definition)
  await rest()
  expect(is.attempts).toBe(7)
  expect(await tutti.agents.get('A')).toMatchObject({ status: 'running', runtime: 'starting', attempt: 2 })
  // One probe: whoever comes meanwhile waits for what it comes to.
  const waiting = await tutti.start(definition)
  await rest()
  expect(is.attempts).toBe(7)
  expect((await waiting.summary()).waitsFor).toEqual(['agent'])
  probe.resolve()
  expect(await trying.result()).toMatchObject({ status: 'failed', error: { code: 'AGENT_FAILED' } })
  expect(await waiting.result()).toMatchObject(failure('failed too often'))
  expect(await tutti.agents.get('A')).toMatchObject({ status: 'failed', runtime: 'crashed' })

  await clock.advance(1_000)
  is.down = false
  expect(await tutti.execute(definition)).toBe('up')
  expect(await tutti.agents.get('A')).toMatchObject({ status: 'running', runtime: 'running', attempt: 3 })
  expect((await tutti.agents.history('A')).map(({ call }) => call)).toEqual(['register', 'trip', 'probe', 'trip', 'probe', 'recover'])
})

test('the attempts of one turn count too, and the one after the last that may be is not made', async () => {
  const { is, definition } = flaky({ breaker, retry: { attempts: 10 } })
  await using tutti = await opened({ definitions: [definition] })
  expect(await (await tutti.start(definition)).result()).toMatchObject(failure('failed too often'))
  expect(is.attempts).toBe(3)
})

test('a rejected attempt does not count: the failures around it are in a row, and one that tries has not failed', async () => {
  let does: 'fail' | 'reject' = 'fail'
  const act = (turn: SoloTurn) => {
    if (does === 'fail') throw new Error('it is down')
    return turn.reply('nobody waits')
  }
  const definition = solo({ act, breaker: { failures: 2, probeMs: 1_000 }, maxRejections: 0 } as never)
  await using at = await timed({ definitions: [definition] })
  const { tutti, clock } = at
  const code = async () => {
    const result = await (await tutti.start(definition)).result()
    return result.status === 'failed' && result.error.code
  }
  expect(await code()).toBe('AGENT_FAILED')
  does = 'reject'
  expect(await code()).toBe('REJECTED')
  does = 'fail'
  expect(await code()).toBe('AGENT_FAILED')
  expect(await code()).toBe('AGENT_STOPPED')
  does = 'reject'
  await clock.advance(1_000)
  expect(await code()).toBe('REJECTED')
  expect(await tutti.agents.get('A')).toMatchObject({ status: 'running', runtime: 'running' })
})

test('an attempt that runs out of time counts, and its turn is over although its body ends while it is counted', async () => {
  const aborted = (turn: SoloTurn) => untilAborted(turn.signal)
  for (const retry of [{ attempts: 1 }, { attempts: 4 }]) {
    const definition = solo({ act: aborted, breaker: { failures: 2, probeMs: 1_000 }, timeoutMs: 50, retry } as never)
    await using at = await timed({ definitions: [definition] })
    const { tutti, clock } = at
    const codes: unknown[] = []
    for (let runs = 0; runs < 3; runs++) {
      const run = await tutti.start(definition)
      for (let tries = 0; tries < 4; tries++) await clock.advance(50)
      const result = await run.result()
      codes.push(result.status === 'failed' && result.error.code)
    }
    expect(codes).toEqual(
      retry.attempts === 1 ? ['TIMEOUT', 'TIMEOUT', 'AGENT_STOPPED'] : ['AGENT_STOPPED', 'AGENT_STOPPED', 'AGENT_STOPPED'],
    )
  }
})

test("with whenStopped: 'wait' turns wait for the one that tries, in a process that was opened later too", async () => {
  const store = memoryStore()
  const { is, definition } = flaky({ breaker: { failures: 1, probeMs: 500 }, whenStopped: 'wait' })
  await using at = await timed({ store, definitions: [definition] })
  const { tutti, clock } = at
  await (await tutti.start(definition)).result()
  const waiting = await Promise.all([1, 2, 3].map(() => tutti.start(definition)))
  await rest()
  expect(is.attempts).toBe(1)
  await clock.advance(499)
  expect(is.attempts).toBe(1)
  await clock.advance(1)
  await rest()
  // One of them has tried and failed, the others go on waiting.
  expect(is.attempts).toBe(2)
  is.down = false
  await clock.advance(500)
  await rest()
  const results = await Promise.all(waiting.map((run) => run.result()))
  expect(results.map(({ status }) => status).sort()).toEqual(['failed', 'succeeded', 'succeeded'])
  expect(is.attempts).toBe(4)
})

test('a person may start a failed agent before its time, and its failures are forgotten', async () => {
  const { is, definition } = flaky({ breaker })
  await using tutti = await opened({ definitions: [definition] })
  for (let run = 0; run < 3; run++) await (await tutti.start(definition)).result()
  expect(await tutti.agents.start('A', { by: 'ann' })).toMatchObject({ status: 'running', runtime: 'running', attempt: 2 })
  await (await tutti.start(definition)).result()
  await (await tutti.start(definition)).result()
  expect(await tutti.agents.get('A')).toMatchObject({ status: 'running' })
  expect(is.attempts).toBe(5)
})

test('failures are counted over all processes of a store', async () => {
  const store = memoryStore()
  const { is, definition } = flaky({ breaker })
  await using one = await opened({ store, definitions: [definition] })
  await using two = await opened({ store, definitions: [definition] })
  await (await one.start(definition)).result()
  await (await two.start(definition)).result()
  await (await one.start(definition)).result()
  expect(await (await two.start(definition)).result()).toMatchObject(failure('failed too often'))
  expect(is.attempts).toBe(3)
})

test('a turn that was to try and was cancelled, or whose process is gone, leaves it to another', async () => {
  const store = memoryStore()
  const { is, definition } = flaky({ breaker: { failures: 1, probeMs: 0 } })
  await using tutti = await opened({ store, definitions: [definition] })
  await (await tutti.start(definition)).result()
  const held = deferred()
  is.hold = held.promise
  const cancelled = await tutti.start(definition)
  await rest()
  expect(await tutti.agents.get('A')).toMatchObject({ runtime: 'starting' })
  await cancelled.cancel()
  is.hold = null
  is.down = false
  held.resolve()
  await cancelled.result()
  await rest()
  expect(await tutti.execute(definition)).toBe('up')

  is.down = true
  await (await tutti.start(definition)).result()
  is.hold = new Promise(() => {})
  const dying = await opened({ store, definitions: [definition], graceMs: 0 })
  await dying.start(definition, { id: 'dying' })
  await rest()
  expect(await tutti.agents.get('A')).toMatchObject({ runtime: 'starting' })
  is.hold = null
  is.down = false
  await dying.close()
  await rest(100)
  expect(await tutti.execute(definition)).toBe('up')
})
