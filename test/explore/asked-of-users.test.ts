import { graph, open, resource, topology } from 'tutti'
import { explore, exploreRun, script } from 'tutti/testing'
import { expect, test } from 'vitest'

const fork = (width: number) => () =>
  topology({
    name: 'wide',
    flows: ['Start -> Hub -> End', 'Hub <-> Worker'],
    agents: {
      Hub: {
        act: {
          request: (turn) => turn.fork(Array.from({ length: width }, () => 'Worker' as const)),
          join: (turn, { values }) => turn.finish(values.length),
        },
      },
      Worker: (turn) => turn.reply(1),
    },
  })

test.each(['auto', 'exhaustive'] as const)(
  'a budget is one for a wide fork, too, where almost every order is redundant: %s',
  async (strategy) => {
    const found = await explore(fork(12), { schedules: 10, strategy })
    expect(found.independent).toBe(true)
    expect(found.exhaustive).toBe(false)
    expect(found.schedules).toBeLessThanOrEqual(10)
    expect(found.data().redundant).toBeLessThanOrEqual(100)
  },
)

/** Who comes last is seen from outside only. */
function last() {
  const rows: string[] = []
  const act = async (turn: any) => {
    await turn.step('write', () => void rows.push(turn.agent))
    return turn.reply(1)
  }
  const definition = topology({
    name: 'rows',
    flows: ['Start -> Hub -> End', 'Hub <-> A | B'],
    agents: { Hub: { act: { request: (turn) => turn.fork(['A', 'B']), join: (turn) => turn.finish(1) } }, A: { act }, B: { act } },
  })
  return { definition, rows }
}

test('what is observed is awaited, and what can not be compared is refused', async () => {
  let rows: string[] = []
  const make = () => {
    const made = last()
    rows = made.rows
    return made.definition
  }
  const found = await explore(make, { observe: async () => rows.join(' ') })
  expect(found.divergence?.explain).toContain('observed')
  await expect(explore(make, { observe: () => new Set(rows) })).rejects.toMatchObject({
    code: 'INVALID_INPUT',
    message: expect.stringMatching(/^what observe gives is no JSON at /),
  })
  expect((await explore(make, { observe: () => undefined })).independent).toBe(true)
})

test('resources may be made in time, and must be some', async () => {
  const db = resource<{ getSize(): number }>('db')
  const uses = topology({
    name: 'uses',
    flows: ['Start -> A -> End'],
    agents: { A: (turn) => turn.finish(turn.use(db).getSize()) },
  })
  const found = await explore(uses, { resources: async () => [db.of({ getSize: () => 3 })] })
  expect(found.outcomes[0]?.result).toMatchObject({ status: 'succeeded', output: 3 })
  expect(found.notes).toEqual([])
  await expect(explore(uses, { resources: () => db as never })).rejects.toMatchObject({
    code: 'INVALID_INPUT',
    message: expect.stringMatching(/the function given as resources makes a list of .*, not an object/),
  })
})

const asking = topology({
  name: 'asking',
  flows: ['Start -> Clerk -> End', 'Clerk -> User'],
  agents: {
    Clerk: {
      act: {
        request: (turn) => turn.ask('sure?', { timeoutMs: 100 }),
        answer: (turn, yes) => turn.finish(yes),
        expired: (turn) => turn.finish('late'),
      },
    },
  },
})

test('answers that throw end the check, and nothing else', async () => {
  const answers = () => {
    throw new Error('no such person')
  }
  await expect(explore(asking, { answers })).rejects.toThrow('no such person')
})

test('timeouts are told by whose they are, and of a turn by the attempt that took too long', async () => {
  const expired = await explore(asking)
  expect(expired.choices).toMatchObject([{ at: 'r~1', agent: 'Clerk', kind: 'timeout' }])
  const slow = () =>
    topology({
      name: 'slow',
      flows: ['Start -> Hub -> End', 'Hub <-> A | B'],
      agents: {
        Hub: {
          timeoutMs: 50,
          retry: { attempts: 2 },
          act: async (turn) => {
            if (turn.message.kind === 'join') return turn.finish(1)
            if (turn.attempt === 1) await new Promise((stop) => turn.signal.addEventListener('abort', stop))
            return turn.fork(['A', 'B'])
          },
        },
        A: (turn) => turn.reply(1),
        B: (turn) => turn.reply(1),
      },
    })
  const found = await explore(slow, { schedules: 3, patienceMs: 5 })
  expect(found.choices).toMatchObject([{ at: 'r/1', agent: 'Hub', kind: 'timeout', decidedBy: [{ who: 'attempt 1' }] }])
})

test('what happens in a child run is told by whose it is', async () => {
  const make = () => {
    let count = 0
    const child = topology({
      name: 'child',
      flows: ['Start -> Adder -> End'],
      agents: {
        Adder: async (turn) => {
          const before = count
          await turn.step('think', () => 1)
          count = before + 1
          return turn.finish(count)
        },
      },
    })
    return graph('both')
      .step('left', { run: child })
      .step('right', { run: child })
      .output(({ steps }) => [steps.left, steps.right])
  }
  const found = await explore(make)
  expect(found.divergence?.swap).toEqual(['Adder starts on left r', "Adder on right r has 'think'"])
  expect(found.data().divergence?.pictures[0].lanes).toEqual(['r.0', 'r.1', 'left r', 'right r'])
})

test('that a run fails in every order is told: what is the same may be what was not given', async () => {
  const db = resource<object>('db')
  const uses = topology({ name: 'uses', flows: ['Start -> A -> End'], agents: { A: (turn) => turn.finish(turn.use(db)) } })
  const found = await explore(uses)
  expect(found.independent).toBe(true)
  expect(found.text()).toMatch(/Note: the run fails in every order that was played: RESOURCE_MISSING there is no resource 'db'/)
  expect((await explore(fork(2), { schedules: 2 })).notes).toEqual([])
})

test('a schedule that is played alone is shown, with what came of it, and claims nothing of others', async () => {
  const make = () => {
    let current = ''
    const act = async (turn: any) => {
      current = turn.agent
      await turn.step('think', () => 1)
      return turn.reply(current)
    }
    return topology({
      name: 'talk',
      flows: ['Start -> Hub -> End', 'Hub <-> A | B'],
      agents: {
        Hub: { act: { request: (turn) => turn.fork(['A', 'B']), join: (turn, { values }) => turn.finish(values) } },
        A: { act },
        B: { act },
      },
    })
  }
  const { divergence } = await explore(make)
  const again = await explore(make, { replay: divergence?.b ?? '' })
  expect(again.text()).toMatch(/^The schedule 2T2 of 'talk' was played: succeeded$/m)
  expect(again.text()).toMatch(/B starts on r\.1[^]*A starts on r\.0[^]*It came to \["A","A"\]/)
  expect(again.svg()).toContain('schedule 2T2')
})

test.each([
  [5, /exploreRun\(\) takes an object of options, not 5/],
  [{ beyond: 'go' }, /beyond is 'stop' or 'perform', not 'go'/],
  [{ input: 1 }, /there is no option 'input' here/],
  [{ answers: () => 1 }, /there is no option 'answers' here/],
])('no recorded run is checked with %j', async (options, message) => {
  const one = topology({ name: 'one', flows: ['Start -> A -> End'], agents: { A: (turn) => turn.finish(1) } })
  const tutti = await open({ store: 'memory:' })
  await tutti.execute(one, { id: 'done' })
  await expect(exploreRun(tutti, 'done', options as never)).rejects.toMatchObject({
    code: 'INVALID_INPUT',
    message: expect.stringMatching(message),
  })
  await tutti.close()
})

test('who waits to try a call of a model again waits for the time of the check, and for nothing outside, whoever else has begun with it', async () => {
  const team = () =>
    topology({
      name: 'team',
      flows: ['Start -> Hub -> End', 'Hub <-> A | B'],
      agents: {
        Hub: { act: { request: (turn) => turn.fork(['A', 'B']), join: (turn, { values }) => turn.finish(values) } },
        A: { model: 'sim' },
        B: { model: 'sim' },
      },
    })
  const models = script({ A: [{ error: { status: 429, retryAfterMs: 10 } }, { reply: 'a' }], B: [{ reply: 'b' }] })
  const checked = await explore(team, { models })
  expect(checked, checked.text()).toMatchObject({ independent: true, exhaustive: true, notes: [] })
})

test('answers are given at once: a promise of one is refused, and nobody has to handle what becomes of it', async () => {
  const asking = topology({ name: 'asking', flows: ['Start -> A -> End', 'A -> User'], agents: { A: (turn) => turn.ask('sure?') } })
  const answers = (): unknown => Promise.reject(new Error('later'))
  await expect(explore(asking, { answers })).rejects.toThrow('`answers` gave a promise')
})
