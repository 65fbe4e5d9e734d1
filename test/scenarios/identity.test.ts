import { agent, graph, resource, topology } from 'tutti'
import { expect } from 'vitest'
import { type AnyTurn, everyOrder, nothingLeft, scenario, type Stage } from './adapter.js'

interface Memory {
  write(text: string): void
  read(): readonly string[]
}

scenario('A1 every write to a memory, and every read of it, carries the session of the run that issued it', async (raise) => {
  const memory = resource<Memory>('memory')
  for (const { runs, calls } of [
    { runs: 2, calls: 1 },
    { runs: 2, calls: 3 },
    { runs: 3, calls: 2 },
    { runs: 4, calls: 2 },
  ]) {
    await everyOrder(runs * calls, async (schedule) => {
      const kept = new Map<string, string[]>()
      const perRun = memory.perRun(({ id, session = '' }) => ({
        write: (text) => kept.set(session, [...(kept.get(session) ?? []), `${id} ${text}`]),
        read: () => kept.get(session) ?? [],
      }))
      await using stage = await raise({ resources: [perRun] })
      const assistant = topology({
        name: 'assistant',
        flows: ['Start -> A -> End'],
        agents: {
          A: async (turn) => {
            for (let call = 0; call < calls; call++)
              await turn.step('remember', async (ctx) => {
                await stage.held('remember', ctx)
                ctx.use(memory).write(`${turn.runId} ${turn.tags['who']} ${ctx.idempotencyKey.split('/')[1]} ${call}`)
              })
            return turn.finish(await turn.step('recall', ({ use }) => use(memory).read()))
          },
        },
      })
      const started = await Promise.all(
        Array.from({ length: runs }, (_, at) => stage.tutti.start(assistant, { id: `R${at}`, session: `S${at}`, tags: { who: `T${at}` } })),
      )
      await stage.drain(schedule)
      for (const [at, run] of started.entries()) {
        const own = Array.from({ length: calls }, (_, call) => `R${at} R${at} T${at} R${at} ${call}`)
        expect(await run.output()).toEqual(own)
        expect(kept.get(`S${at}`)).toEqual(own)
      }
      expect(await stage.quiesce()).toEqual(nothingLeft)
    })
  }
})

scenario('A1 what child runs do, and what undoes it, carries the session and the tags of the run that they belong to', async (raise) => {
  const memory = resource<{ note(what: string): void }>('memory')
  for (const depth of [1, 2])
    await everyOrder(4, async (schedule) => {
      const notes: string[] = []
      const perRun = memory.perRun(({ id, session = 'none', tags }) => ({
        note: (what) => void notes.push(`${what} in ${session} of ${tags['who']} for ${id.slice(0, 2)}`),
      }))
      await using stage = await raise({ resources: [perRun] })
      const keeper = topology({
        name: 'keeper',
        flows: ['Start -> A -> End'],
        agents: {
          A: {
            act: async (turn) => {
              await stage.step(turn, 'keep')
              turn.use(memory).note('kept')
              return turn.finish()
            },
            compensate: async (done) => {
              await stage.held('forget', done)
              done.use(memory).note('forgotten')
            },
          },
        },
      })
      const below = graph('below')
        .step('k', { input: () => undefined, run: keeper })
        .output()
      const line = graph('line')
        .step('k', depth === 1 ? { input: () => undefined, run: keeper } : { input: () => undefined, run: below })
        .step('fails', { after: ['k'], run: () => Promise.reject(new Error('it is not to be kept')) })
        .output()
      const runs = await Promise.all(
        ['R0', 'R1'].map((id) => stage.tutti.start(line, { id, session: `S of ${id}`, tags: { who: `T of ${id}` } })),
      )
      await stage.drain(schedule)
      for (const run of runs) expect(await run.result()).toMatchObject({ status: 'failed', rollback: 'complete' })
      const own = (what: string) => runs.map(({ id }) => `${what} in S of ${id} of T of ${id} for ${id}`)
      expect(notes.toSorted()).toEqual([...own('forgotten'), ...own('kept')])
      expect(await stage.quiesce()).toEqual(nothingLeft)
    })
})

/** Speaks with a model in several rounds; the transcript is its own variable, as people write it. */
const talks = (stage: Stage, rounds: number) => async (turn: AnyTurn) => {
  const transcript: string[] = [`task ${turn.request}`]
  for (let round = 0; round < rounds; round++)
    transcript.push(
      await turn.step('model', async (ctx) => `${await stage.held('model', ctx, 'answer')} to ${transcript.at(-1)} of ${turn.request}`),
    )
  return turn.reply(transcript)
}

const ownTranscript = (task: string, rounds: number): string[] => {
  const lines = [`task ${task}`]
  for (let round = 0; round < rounds; round++) lines.push(`answer to ${lines.at(-1)} of ${task}`)
  return lines
}

scenario('A2 one agent with parallel tasks keeps their transcripts apart, and none finds it already running', async (raise) => {
  for (const { tasks, rounds } of [
    { tasks: 2, rounds: 1 },
    { tasks: 2, rounds: 3 },
    { tasks: 3, rounds: 2 },
    { tasks: 4, rounds: 2 },
  ]) {
    const names = Array.from({ length: tasks }, (_, at) => `T${at}`)
    await everyOrder(tasks * rounds, async (schedule) => {
      await using stage = await raise()
      const crew = topology({
        name: 'crew',
        flows: ['Start -> Lead -> End', 'Lead <-> Worker'],
        agents: [
          agent({
            name: 'Lead',
            act: {
              request: (turn) => turn.fork(names.map((task) => ({ to: 'Worker', request: task }))),
              join: (turn, join) => turn.finish(join.values),
            },
          }),
          agent({ name: 'Worker', act: talks(stage, rounds) }),
        ],
      })
      const run = await stage.tutti.start(crew)
      await stage.drain(schedule)
      expect(await run.output()).toEqual(names.map((task) => ownTranscript(task, rounds)))
      expect(await stage.quiesce()).toEqual(nothingLeft)
    })
  }
})
