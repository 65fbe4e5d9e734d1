import { agent, type Delta, type JournalEvent, type Join, topology } from 'tutti'
import { expect } from 'vitest'
import { type AnyTurn, everyOrder, nothingLeft, par, scenario, type Stage } from './adapter.js'

async function journalOf(run: { events(): AsyncIterable<JournalEvent> }): Promise<JournalEvent[]> {
  const events: JournalEvent[] = []
  for await (const event of run.events()) events.push(event)
  return events
}

/** Some events are in the journal and not in the public union. */
const types = (events: readonly JournalEvent[]): string[] => events.map(({ type }) => type)

/** A guardrail beside a model whose answer calls tools. */
function guarded(stage: Stage, tools: number, join: Join) {
  return topology({
    name: 'guarded',
    flows: ['Start -> H -> End', 'H <-> G | M'],
    agents: [
      agent({
        name: 'H',
        act: { request: (turn) => turn.fork(['G', 'M'], { join }), join: (turn, joined) => (turn as AnyTurn).finish(joined.values) },
      }),
      agent({ name: 'G', act: async (turn) => turn.reply(await stage.step(turn, 'guardrail', 'fine')) }),
      agent({
        name: 'M',
        act: async (turn) => {
          await stage.step(turn, 'model')
          for (let tool = 0; tool < tools; tool++) await stage.step(turn, `tool ${tool}`, null, { idempotent: false })
          return turn.reply('done')
        },
      }),
    ],
  })
}

scenario('F1 once a guardrail has tripped no tool starts, and one that had started before is on record', async (raise) => {
  const join: Join = { policy: 'all', stragglers: 'cancel' }
  for (const tools of [1, 3])
    await everyOrder(2 + tools, async (schedule) => {
      await using stage = await raise()
      const run = await stage.tutti.start(guarded(stage, tools, join))
      let tripped: number | null = null
      await stage.drain(schedule, {
        outcome: ({ name }) => {
          if (name !== 'guardrail') return undefined
          tripped = stage.effects(/tool/).length
          return { throw: new Error('tripped') }
        },
      })
      expect(stage.effects(/tool/)).toHaveLength(tripped ?? -1)
      expect(await run.result()).toMatchObject({
        status: 'failed',
        error: { code: 'JOIN_FAILED', cause: { message: 'tripped', at: { agent: 'G' } } },
      })
      expect(types(await journalOf(run)).filter((type) => type === 'activity.started')).toHaveLength(tripped ?? -1)
      expect(await stage.quiesce()).toEqual(nothingLeft)
    })
})

scenario(
  'F1 when a guardrail trips in the very moment in which a tool is about to start, the record says which came first',
  async (raise) => {
    for (const tools of [1, 2])
      for (let before = 0; before <= tools; before++)
        for (const order of ['guardrail first', 'model first']) {
          await using stage = await raise()
          const run = await stage.tutti.start(guarded(stage, tools, { policy: 'all', stragglers: 'cancel' }))
          await stage.quiesce()
          for (let at = 0; at < before; at++) {
            stage.release(at === 0 ? 'model' : `tool ${at - 1}`)
            await stage.quiesce()
          }
          const trip = (): void => stage.release('guardrail', { throw: new Error('tripped') })
          const goOn = (): void => stage.release(before === 0 ? 'model' : `tool ${before - 1}`)
          await (order === 'guardrail first' ? par(trip, goOn) : par(goOn, trip))
          await stage.quiesce()
          for (const effect of stage.waiting()) stage.release(effect)
          await run.result()
          // A start may be on record and not be made any more; never the other way round.
          const started = types(await journalOf(run)).filter((type) => type === 'activity.started').length
          expect(started - stage.effects(/tool/).length).toBeOneOf([0, 1])
          expect(stage.effects().filter(({ late }) => late)).toEqual([])
          expect(await stage.quiesce()).toEqual(nothingLeft)
        }
  },
)

scenario('F2 when a model and its guardrail both fail, in either order, both errors are journaled and nobody runs on', async (raise) => {
  for (const width of [2, 3, 4])
    await everyOrder(width, async (schedule) => {
      await using stage = await raise()
      const names = Array.from({ length: width }, (_, at) => `P${at}`)
      const definition = topology({
        name: 'both',
        flows: ['Start -> H -> End', `H <-> ${names.join(' | ')}`],
        agents: [
          agent({
            name: 'H',
            act: { request: (turn) => turn.fork(names), join: (turn) => (turn as AnyTurn).finish() },
          }),
          ...names.map((name) => agent({ name, act: async (turn) => turn.reply(await stage.held(name, turn)) })),
        ],
      })
      const run = await stage.tutti.start(definition)
      await stage.drain(schedule, { outcome: ({ name }) => ({ throw: new Error(`${name} broke`) }) })
      expect(await run.result()).toMatchObject({ status: 'failed', error: { code: 'JOIN_FAILED', cause: { message: 'P0 broke' } } })
      const failed = (await journalOf(run)).flatMap((event) => (event.type === 'turn.failed' ? [event.error.message] : []))
      expect(failed.sort()).toEqual(names.map((name) => `${name} broke`))
      expect(await stage.quiesce()).toEqual(nothingLeft)
    })
  // Failing fast: the other is told to stop, and awaited.
  for (const first of ['guardrail', 'model']) {
    await using stage = await raise()
    const run = await stage.tutti.start(guarded(stage, 1, { policy: 'all', stragglers: 'cancel' }))
    await stage.quiesce()
    stage.release(first, { throw: new Error(`${first} broke`) })
    expect(await run.result()).toMatchObject({ status: 'failed', error: { cause: { message: `${first} broke` } } })
    expect(await stage.quiesce()).toEqual(nothingLeft)
    expect(
      stage
        .effects()
        .map(({ status }) => status)
        .sort(),
    ).toEqual(['aborted', 'threw'])
  }
})

scenario('F3 when one of several parallel tools throws, the others are cancelled and awaited before the run ends', async (raise) => {
  for (const { width, nested } of [
    { width: 3, nested: false },
    { width: 5, nested: false },
    { width: 3, nested: true },
  ])
    for (let thrower = 0; thrower < width; thrower++) {
      await using stage = await raise()
      const ended: string[] = []
      // Each needs a while to stop: an effect of its own, after its abort.
      const tool = async (turn: AnyTurn) => {
        try {
          return turn.reply(await stage.held(`tool ${turn.request}`, turn))
        } catch (error) {
          if (turn.signal.aborted) await stage.held(`cleanup ${turn.request}`, turn, null, { deaf: true })
          ended.push(`tool ${turn.request}`)
          throw error
        }
      }
      const definition = topology({
        name: 'tools',
        flows: ['Start -> H -> End', 'H <-> Mid', 'H | Mid <-> Tool'],
        agents: [
          agent({
            name: 'H',
            act: {
              request: (turn) =>
                turn.fork(
                  Array.from({ length: width }, (_, at) => ({ to: nested && at !== thrower ? 'Mid' : 'Tool', request: at })),
                  {
                    join: { policy: 'all', stragglers: 'cancel' },
                  },
                ),
              join: (turn) => (turn as AnyTurn).finish(),
            },
          }),
          agent({
            name: 'Mid',
            act: { request: (turn) => turn.fork([{ to: 'Tool', request: turn.request }]), join: (turn, join) => turn.reply(join.values) },
          }),
          agent({ name: 'Tool', act: tool }),
        ],
      })
      const run = await stage.tutti.start(definition)
      let over = false
      const result = run.result().then((value) => {
        over = true
        return value
      })
      await stage.quiesce()
      stage.release(`tool ${thrower}`, { throw: new Error('broke') })
      await stage.quiesce()
      expect(stage.waiting().map(({ name }) => name)).toEqual(
        Array.from({ length: width }, (_, at) => `cleanup ${at}`).filter((name) => name !== `cleanup ${thrower}`),
      )
      for (const effect of stage.waiting()) {
        expect(over).toBe(false)
        stage.release(effect)
        await stage.quiesce()
      }
      expect(await result).toMatchObject({ status: 'failed', error: { code: 'JOIN_FAILED', cause: { message: 'broke' } } })
      expect(ended).toHaveLength(width)
      expect(await stage.quiesce()).toEqual(nothingLeft)
    }
})

scenario(
  'F5 a step that polls its signal sees the cancel, and nothing is written for it after the cancel is acknowledged',
  async (raise) => {
    for (const cancelAt of [0, 1_000, 4_500, 7_500])
      for (const hears of [true, false]) {
        await using stage = await raise({ graceMs: 2_000 })
        let saw: number | null = null
        const definition = topology({
          name: 'polling',
          flows: ['Start -> A -> End'],
          agents: {
            A: async (turn) => {
              await turn.step('poll', async (ctx) => {
                for (let ms = 0; ms < 8_000; ms += 100) {
                  if (ctx.signal.aborted) {
                    saw ??= stage.now()
                    if (hears) throw ctx.signal.reason
                  }
                  await stage.nap(100)
                }
                return 'polled'
              })
              return turn.finish(await stage.step(turn, 'write'))
            },
          },
        })
        const run = await stage.tutti.start(definition)
        await stage.advance(cancelAt)
        await run.cancel({ reason: 'enough' })
        const acknowledged = (await recorded(stage, run.id)).length
        await stage.advance(20_000)
        expect(await run.result()).toMatchObject({ status: 'cancelled', reason: 'enough' })
        expect(saw).toBeLessThanOrEqual(cancelAt + 100)
        expect(stage.effects(/write/)).toEqual([])
        const after = (await journalOf(run)).slice(acknowledged)
        expect(types(after).filter((type) => type.startsWith('activity') || type.startsWith('turn.completed'))).toEqual([])
        expect(after.map(({ at }) => at)).toEqual(after.map(() => (hears ? (saw ?? -1) : Math.min(8_000, cancelAt + 2_000))))
        expect(await stage.quiesce()).toEqual(nothingLeft)
      }
  },
)

/** What the journal has so far. */
async function recorded(stage: Stage, id: string): Promise<JournalEvent[]> {
  const run = await stage.tutti.run(id)
  const stop = new AbortController()
  const events: JournalEvent[] = []
  const read = (async () => {
    for await (const event of run.events({ signal: stop.signal })) events.push(event)
  })()
  await stage.quiesce()
  stop.abort()
  await read
  return events
}

scenario('F7 a reader of transient parts sees at most one more after a cancel, then the end, and no gap in the journal', async (raise) => {
  for (const { buffered, consumed, deaf } of [
    { buffered: 100, consumed: 3, deaf: false },
    // It takes its time to stop: the reader is there all the while.
    { buffered: 100, consumed: 3, deaf: true },
    { buffered: 100, consumed: 0, deaf: true },
    { buffered: 5, consumed: 5, deaf: false },
    { buffered: 2_000, consumed: 10, deaf: true },
  ]) {
    await using stage = await raise()
    const definition = topology({
      name: 'talker',
      flows: ['Start -> A -> End'],
      agents: {
        A: async (turn) => {
          await stage.held('speak', turn)
          for (let at = 0; at < buffered; at++) turn.emit(at)
          await stage.held('talk', turn, null, { deaf })
          return turn.finish()
        },
      },
    })
    const run = await stage.tutti.start(definition)
    const seen: (JournalEvent | Delta)[] = []
    const parts = (): number => seen.filter(({ type }) => type === 'emit').length
    const reader = run.events({ deltas: true })[Symbol.asyncIterator]()
    const next = async (): Promise<boolean> => {
      const { done, value } = await reader.next()
      if (!done) seen.push(value)
      return done !== true
    }
    while (seen.at(-1)?.type !== 'turn.started') await next()
    await stage.quiesce()
    stage.release('speak')
    await stage.quiesce()
    while (parts() < consumed) await next()
    await run.cancel()
    const rest = (async () => {
      while (await next());
    })()
    await stage.quiesce()
    if (deaf) stage.release('talk')
    await rest
    expect(parts()).toBeLessThanOrEqual(consumed + 1)
    expect(seen.at(-1)?.type).toBe('run.cancelled')
    expect(seen.flatMap((event) => ('seq' in event ? [event.seq] : []))).toEqual((await journalOf(run)).map(({ seq }) => seq))
  }
})

scenario('F8 the error that surfaces is the first one, and the cleanup of the others is finished by then', async (raise) => {
  for (const { width, masks } of [
    { width: 2, masks: true },
    { width: 2, masks: false },
    { width: 4, masks: true },
  ])
    await everyOrder(width - 1, async (schedule) => {
      await using stage = await raise()
      const cleaned: number[] = []
      const definition = topology({
        name: 'cleanup',
        flows: ['Start -> H -> End', 'H <-> A | B'],
        agents: [
          agent({
            name: 'H',
            act: {
              request: (turn) =>
                turn.fork(['A', ...Array.from({ length: width - 1 }, (_, at) => ({ to: 'B', request: at }))], {
                  join: { policy: 'all', stragglers: 'cancel' },
                }),
              join: (turn) => (turn as AnyTurn).finish(),
            },
          }),
          agent({ name: 'A', act: async (turn) => turn.reply(await stage.held('a', turn)) }),
          agent({
            name: 'B',
            act: async (turn) => {
              const outcome = await stage.held('b', turn).catch((error: unknown) => error)
              await stage.held('close', turn, null, { deaf: true })
              cleaned.push(Number(turn.request))
              throw masks ? new Error('closing it failed') : outcome
            },
          }),
        ],
      })
      const run = await stage.tutti.start(definition)
      await stage.quiesce()
      stage.release('a', { throw: new Error('a failed') })
      const result = run.result().then((value) => ({ value, cleaned: cleaned.length }))
      await stage.drain(schedule)
      expect(await result).toMatchObject({
        value: { status: 'failed', error: { code: 'JOIN_FAILED', cause: { message: 'a failed', at: { agent: 'A' } } } },
        cleaned: width - 1,
      })
      expect(await stage.quiesce()).toEqual(nothingLeft)
    })
})
