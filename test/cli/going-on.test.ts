import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { open, topology } from 'tutti'
import { describe, expect, test, vi } from 'vitest'
import { until } from '../durable/processes.js'
import { files, Place, patience } from './place.js'

vi.setConfig(patience)

describe('Ctrl-C', () => {
  test('pauses durably, says how to resume, and a resume from another process goes on without repeating what is recorded', async () => {
    using place = new Place()
    place.write('waiting.mjs', files.waiting)
    const run = place.begin('run', 'waiting.mjs', '--id', 'w')
    await until('the second step has begun', () => place.read('effects.log').includes('begin'))
    run.process.kill('SIGINT')
    const interrupted = await run.end
    expect(interrupted).toMatchObject({ code: 130, out: '' })
    expect(interrupted.err).toMatch(/paused w; go on with: tutti resume w\n$/)
    expect(await place.json('ls', '--status', 'paused')).toMatchObject([{ id: 'w', status: 'paused' }])
    place.write('go', '')
    expect(await place.tutti('resume', 'w')).toMatchObject({ code: 0, out: 'gone on\n' })
    expect(place.read('effects.log')).toBe('first\nbegin\n')
  })

  test('lets the turn in flight come to its end, and a resume does not do its effect again', async () => {
    using place = new Place()
    place.write(
      'charging.mjs',
      `import { appendFileSync, existsSync } from 'node:fs'
import { topology } from 'tutti'
const log = (text) => appendFileSync('effects.log', text + '\\n')
export default topology({
  name: 'charging',
  flows: ['Start -> A -> B -> End'],
  agents: {
    A: async (turn) => {
      await turn.step('charge', async () => {
        log('begin')
        while (!existsSync('go')) await new Promise((resolve) => setTimeout(resolve, 10))
        log('charged')
      })
      return turn.invoke('B')
    },
    B: (turn) => (log('B'), turn.finish('done')),
  },
})
`,
    )
    const run = place.begin('run', 'charging.mjs', '--id', 'c')
    await until('it charges', () => place.read('effects.log') === 'begin\n')
    run.process.kill('SIGINT')
    await until('it is paused', () => run.err().includes('run.paused'))
    place.write('go', '')
    expect(await run.end).toMatchObject({
      code: 130,
      err: expect.stringMatching(/turn\.completed[^]*paused c; go on with: tutti resume c\n$/),
    })
    expect(await place.tutti('resume', 'c')).toMatchObject({ code: 0, out: 'done\n' })
    expect(place.read('effects.log')).toBe('begin\ncharged\nB\n')
  })

  test('twice kills, also code that does not listen, and the run is paused all the same', async () => {
    using place = new Place()
    place.write('deaf.mjs', files.waiting.replace('if (signal.aborted) throw signal.reason', ''))
    const run = place.begin('run', 'deaf.mjs', '--id', 'd')
    await until('the second step has begun', () => place.read('effects.log').includes('begin'))
    run.process.kill('SIGINT')
    await until('it says so', () => run.err().includes('paused d'))
    run.process.kill('SIGINT')
    expect(await run.end).toMatchObject({ code: 130 })
    expect(await place.json('show', 'd')).toMatchObject({ status: 'paused' })
    expect(await place.tutti('cancel', 'd', '--reason', 'enough')).toMatchObject({
      code: 0,
      err: expect.stringContaining('d is cancelled'),
    })
  })
})

test('Ctrl-C twice, the second while turns in flight have their second, still says how to resume', async () => {
  using place = new Place()
  place.write('deaf.mjs', files.waiting.replace('if (signal.aborted) throw signal.reason', ''))
  const run = place.begin('run', 'deaf.mjs', '--id', 'd')
  await until('the second step has begun', () => place.read('effects.log').includes('begin'))
  run.process.kill('SIGINT')
  await until('it is paused', () => run.err().includes('run.paused'))
  run.process.kill('SIGINT')
  expect(await run.end).toMatchObject({ code: 130, err: expect.stringMatching(/^paused d; go on with: tutti resume d\n/m) })
})

test('one of five racing resumes wins, the others are refused', async () => {
  using place = new Place()
  place.write('waiting.mjs', files.waiting)
  const run = place.begin('run', 'waiting.mjs', '--id', 'w')
  await until('the second step has begun', () => place.read('effects.log').includes('begin'))
  expect(await place.tutti('pause', 'w')).toMatchObject({ code: 0 })
  run.process.kill('SIGKILL')
  await run.end
  const racing = Array.from({ length: 5 }, () => place.begin('resume', 'w', '--json'))
  // Nobody ends before all have been decided.
  await until('four are refused', () => racing.filter(({ err }) => err().includes('RUN_NOT_PAUSED')).length >= 4, 45_000)
  place.write('go', '')
  const ends = await Promise.all(racing.map(({ end }) => end))
  expect(ends.map(({ code }) => code).sort((a, b) => Number(a) - Number(b))).toEqual([0, 1, 1, 1, 1])
  for (const { err } of ends.filter(({ code }) => code === 1)) expect(err).toMatch(/RUN_NOT_PAUSED: .*; tutti show tells how it stands\n$/)
  const [winner] = ends.filter(({ code }) => code === 0)
  expect(JSON.parse(winner?.out ?? '')).toEqual({ id: 'w', status: 'succeeded', output: 'gone on' })
})

test('a run whose process was killed is gone on with by resume; while it lives, resume is refused', async () => {
  using place = Place.bare()
  place.write('waiting.mjs', files.waiting)
  const run = place.begin('run', 'waiting.mjs', '--id', 'w')
  await until('the second step has begun', () => place.read('effects.log').includes('begin'))
  expect(await place.tutti('resume', 'w')).toMatchObject({ code: 1, err: expect.stringContaining('RUN_NOT_PAUSED') })
  run.process.kill('SIGKILL')
  await run.end
  place.write('go', '')
  expect(await place.tutti('resume', 'w')).toMatchObject({ code: 0, out: 'gone on\n' })
  expect(place.read('effects.log')).toBe('first\nbegin\n')
})

test('a command goes on with the run that it is about, and begins nothing of others, which it would cut off when it ends', async () => {
  using place = new Place()
  place.write(
    'held.mjs',
    `import { appendFileSync, existsSync } from 'node:fs'
import { topology } from 'tutti'
export default topology({
  name: 'held',
  flows: ['Start -> A -> End'],
  agents: {
    A: async (turn) => {
      appendFileSync('effects.log', turn.runId + '\\n')
      while (!existsSync(turn.runId)) await new Promise((resolve) => setTimeout(resolve, 10))
      return turn.finish(turn.runId)
    },
  },
})
`,
  )
  const left = place.begin('run', 'held.mjs', '--id', 'left')
  await until('the first has begun', () => place.read('effects.log') === 'left\n')
  left.process.kill('SIGKILL')
  await left.end
  place.write('left', '')
  const other = place.begin('run', 'held.mjs', '--id', 'other')
  await until('somebody is seen to have died', () => other.err().includes('runs of workers that died'))
  place.write('other', '')
  expect(await other.end).toMatchObject({ code: 0, out: 'other\n' })
  expect(place.read('effects.log')).toBe('left\nother\n')
  expect(await place.json('show', 'left')).toMatchObject({ status: 'running', waitsFor: ['process'] })
  expect(await place.tutti('resume', 'left')).toMatchObject({ code: 0, out: 'left\n' })
})

test('an answer that is refused, and a cancel of a child run, begin nothing of a run that nobody has', async () => {
  using place = new Place()
  place.write(
    'both.mjs',
    `import { appendFileSync, existsSync } from 'node:fs'
import { graph, topology } from 'tutti'
const clerk = topology({
  name: 'clerk',
  flows: ['Start -> Clerk -> End', 'Clerk -> User'],
  agents: { Clerk: { act: { request: (turn) => turn.ask(turn.request), answer: (turn, value) => turn.finish(value) } } },
})
export default graph('both')
  .step('asks', { each: () => ['north', 'south'], run: clerk, input: ({ item }) => item, onError: { fallback: [] } })
  .step('works', {
    run: async () => {
      appendFileSync('effects.log', 'begun\\n')
      while (!existsSync('go')) await new Promise((resolve) => setTimeout(resolve, 10))
      return 'worked'
    },
  })
  .output(({ steps }) => steps.works)
`,
  )
  const run = place.begin('run', 'both.mjs', '--id', 'b')
  await until('it is under way', () => place.has('effects.log') && run.err().split('ask.opened').length > 2)
  run.process.kill('SIGKILL')
  await run.end
  expect(await place.tutti('answer', 'b:asks:0', 'nobody', '1')).toMatchObject({ code: 3, err: expect.stringContaining('ASK_NOT_FOUND') })
  expect(await place.tutti('cancel', 'b:asks:0')).toMatchObject({ code: 0, err: expect.stringContaining('b:asks:0 is cancelled') })
  expect(place.read('effects.log')).toBe('begun\n')
  place.write('go', '')
  expect(await place.tutti('resume', 'b')).toMatchObject({ code: 4, err: expect.stringContaining('tutti answer b:asks:1') })
  expect(await place.tutti('answer', 'b:asks:1', 'Clerk', '1')).toMatchObject({ code: 0, out: 'worked\n' })
})

test('that nobody executes a run, because its process died, is said by whoever looks, until somebody goes on with it', async () => {
  using place = new Place()
  place.write('waiting.mjs', files.waiting)
  const run = place.begin('run', 'waiting.mjs', '--id', 'w')
  await until('the second step has begun', () => place.read('effects.log').includes('begin'))
  expect(await place.json('ls')).toMatchObject([{ id: 'w', status: 'running', waitsFor: [] }])
  run.process.kill('SIGKILL')
  await run.end
  const [[listed], shown, table, words] = await Promise.all([
    place.json<{ waitsFor: readonly string[] }[]>('ls'),
    place.json('show', 'w'),
    place.tutti('ls'),
    place.tutti('show', 'w'),
  ])
  expect([listed, shown]).toMatchObject([1, 2].map(() => ({ id: 'w', status: 'running', waitsFor: ['process'] })))
  expect(table.out).toMatch(/^w +waiting +running +\S+ +process$/m)
  const advice = 'nobody executes w, its process has gone; go on with: tutti resume w\n'
  expect(words.out).toContain(advice)
  const tail = place.begin('tail', 'w')
  await until('who follows it is told', () => tail.err() === advice)
  place.write('go', '')
  expect(await place.tutti('resume', 'w')).toMatchObject({ code: 0 })
  expect(await tail.end).toMatchObject({ code: 0, err: advice })
  expect(await place.json('ls')).toMatchObject([{ id: 'w', status: 'succeeded', waitsFor: [] }])
})

test('that nobody executes a run any more is said to who follows it while its process dies', async () => {
  using place = new Place()
  place.write('waiting.mjs', files.waiting)
  const run = place.begin('run', 'waiting.mjs', '--id', 'w')
  await until('the second step has begun', () => place.read('effects.log').includes('begin'))
  const tail = place.begin('tail', 'w')
  await until('it is followed', () => tail.out().includes('second'))
  run.process.kill('SIGKILL')
  await run.end
  await until('who follows it is told', () => tail.err().endsWith('go on with: tutti resume w\n'), 30_000)
  place.write('go', '')
  expect(await place.tutti('resume', 'w')).toMatchObject({ code: 0 })
  expect(await tail.end).toMatchObject({ code: 0, err: 'nobody executes w, its process has gone; go on with: tutti resume w\n' })
})

test('what a run does when nobody answers in time is done by resume: who looks is told so, and no answer is proposed any more', async () => {
  using place = new Place()
  place.write(
    'door.mjs',
    `import { topology } from 'tutti'
export default topology({
  name: 'door',
  flows: ['Start -> Porter -> End', 'Porter -> User'],
  agents: { Porter: { act: {
    request: (turn) => turn.ask('Who is there?', { timeoutMs: 1_500 }),
    answer: (turn, name) => turn.finish(name),
    expired: (turn) => turn.finish('Nobody was there.'),
  } } },
})
`,
  )
  expect(await place.tutti('run', 'door.mjs', '--id', 'd')).toMatchObject({ code: 4, err: expect.stringContaining('tutti answer d') })
  const tooLate = 'its time is over; go on with: tutti resume d\n'
  await vi.waitFor(async () => expect((await place.tutti('asks')).out).toMatch(tooLate), { timeout: 20_000 })
  const [listed, shown] = await Promise.all([place.json('ls'), place.tutti('show', 'd')])
  expect(listed).toMatchObject([{ id: 'd', status: 'running', waitsFor: ['person', 'process'] }])
  expect(shown.out).toContain(`${tooLate}nobody executes d, its process has gone; go on with: tutti resume d\n`)
  expect(await place.tutti('resume', 'd')).toMatchObject({ code: 0, out: 'Nobody was there.\n' })
})

test('a cancel that is under way is to be seen', async () => {
  using place = new Place()
  place.write(
    'undoing.mjs',
    `import { existsSync } from 'node:fs'
import { graph } from 'tutti'
const untilThere = async () => { while (!existsSync('go')) await new Promise((resolve) => setTimeout(resolve, 10)) }
export default graph('undoing')
  .step('done', { run: () => 1, compensate: untilThere })
  .ask('on', { after: ['done'], question: () => 'Go on?', schema: { '~standard': { version: 1, vendor: 'test', validate: (value) => ({ value }) } } })
  .output()
`,
  )
  await place.tutti('run', 'undoing.mjs', '--id', 'u')
  const cancel = place.begin('cancel', 'u', '--reason', 'enough')
  await vi.waitFor(async () => expect(await place.json('ls')).toMatchObject([{ status: 'compensating' }]), { timeout: 30_000 })
  const [listed, table, shown] = await Promise.all([place.json('ls'), place.tutti('ls'), place.tutti('show', 'u')])
  expect(listed).toMatchObject([{ status: 'compensating', cancelling: true, reason: 'enough' }])
  expect(table.out).toMatch(/^u +undoing +cancelling /m)
  expect(shown.out).toContain('\nbeing cancelled: enough\n')
  place.write('go', '')
  expect(await cancel.end).toMatchObject({ code: 0, err: 'u is cancelled\n' })
  expect((await place.tutti('show', 'u')).out).toContain('\ncancelled: enough\n')
})

test('a question is answered by its id, or by the name of who asks it', async () => {
  using place = new Place()
  place.write(
    'asked.mjs',
    `import { graph } from 'tutti'
const schema = { '~standard': { version: 1, vendor: 'test', validate: (value) => ({ value }) } }
export default graph('asked').ask('first', { question: () => 1, schema }).ask('second', { question: () => 2, schema }).output()
`,
  )
  await place.tutti('run', 'asked.mjs', '--id', 'a')
  expect(await place.tutti('answer', 'a', 'third', '0')).toMatchObject({ code: 3, err: expect.stringContaining('ASK_NOT_FOUND') })
  expect(await place.tutti('answer', 'a', 'second', '20')).toMatchObject({ code: 4 })
  expect(await place.json('answer', 'a', 'r.0~1', '10')).toMatchObject({ output: { first: 10, second: 20 } })
})

test('who asks several questions is not name enough for an answer, and that is said', async () => {
  using place = new Place()
  place.write(
    'twice.mjs',
    `import { topology } from 'tutti'
export default topology({
  name: 'twice',
  flows: ['Start -> Desk -> End', 'Desk <-> Clerk', 'Clerk -> User'],
  agents: {
    Desk: { act: { request: (turn) => turn.fork(['Clerk', 'Clerk']), join: (turn, { values }) => turn.finish(values) } },
    Clerk: { act: { request: (turn) => turn.ask('tea?'), answer: (turn, value) => turn.reply(value) } },
  },
})
`,
  )
  await place.tutti('run', 'twice.mjs', '--id', 't')
  const err = 'tutti: Clerk asks 2 questions; name the id of one: tutti asks lists them\n'
  expect(await place.tutti('answer', 't', 'Clerk', '1')).toMatchObject({ code: 2, out: '', err })
  expect(await place.tutti('answer', 't', 'r.0~1', '1')).toMatchObject({ code: 4 })
  expect(await place.json('answer', 't', 'Clerk', '2')).toMatchObject({ output: [1, 2] })
})

test('an answer to who has been answered already is refused as one by the id of the question is', async () => {
  using place = new Place()
  place.write(
    'asks.mjs',
    `import { topology } from 'tutti'
export default topology({
  name: 'asks',
  flows: ['Start -> Clerk -> End', 'Clerk -> User'],
  agents: { Clerk: { act: { request: (turn) => turn.ask('tea?'), answer: (turn, value) => turn.finish(value) } } },
})
`,
  )
  await place.tutti('run', 'asks.mjs', '--id', 'a')
  expect(await place.tutti('answer', 'a', 'Clerk', '1')).toMatchObject({ code: 0, out: '1\n' })
  for (const named of ['r~1', 'Clerk'])
    expect(await place.tutti('answer', 'a', named, '2')).toMatchObject({
      code: 1,
      err: 'tutti: ASK_ALREADY_ANSWERED: the ask r~1 has been answered already; the first answer stands\n',
    })
  expect(await place.tutti('answer', 'a', 'Nobody', '2')).toMatchObject({ code: 3, err: expect.stringContaining('ASK_NOT_FOUND') })
})

test('a pause from elsewhere stops a run that is being executed, with 4', async () => {
  using place = new Place()
  place.write('waiting.mjs', files.waiting)
  const run = place.begin('run', 'waiting.mjs', '--id', 'w')
  await until('the second step has begun', () => place.read('effects.log').includes('begin'))
  await place.tutti('pause', 'w')
  // What was in flight finishes; then nothing else starts.
  place.write('go', '')
  expect(await run.end).toMatchObject({ code: 4, err: expect.stringMatching(/is paused; go on with: tutti resume w\n$/) })
})

test('a pause from elsewhere stops a run with 4 also if not all that it had started could begin', async () => {
  using place = new Place()
  place.write(
    'crowd.mjs',
    `import { appendFileSync, existsSync } from 'node:fs'
import { topology } from 'tutti'
export default topology({
  name: 'crowd',
  flows: ['Start -> Desk -> End', 'Desk <-> Clerk'],
  agents: {
    Desk: { act: { request: (turn) => turn.fork(['Clerk', 'Clerk', 'Clerk']), join: (turn, { values }) => turn.finish(values.join('')) } },
    Clerk: {
      concurrency: 1,
      act: async (turn) => {
        appendFileSync('begun', 'x')
        while (!existsSync('go')) await new Promise((resolve) => setTimeout(resolve, 10))
        return turn.reply('c')
      },
    },
  },
})
`,
  )
  const run = place.begin('run', 'crowd.mjs', '--id', 'c')
  await until('one of three has begun', () => place.read('begun') === 'x' && run.err().includes('turn.started r.2 Clerk'))
  await place.tutti('pause', 'c')
  await until('it is known', () => run.err().includes('run.paused'))
  place.write('go', '')
  expect(await run.end).toMatchObject({ code: 4, err: expect.stringMatching(/is paused; go on with: tutti resume c\n$/) })
  expect(place.read('begun')).toBe('x')
  expect(await place.tutti('resume', 'c')).toMatchObject({ code: 0, out: 'ccc\n' })
})

describe('a pause from elsewhere stops a run that only sleeps, with 4, and so it does once that is resumed:', () => {
  const agents = `topology({
  name: 'sleeping',
  flows: ['Start -> A -> End'],
  agents: { A: async (turn) => (await turn.sleep(3_600_000), turn.finish(1)) },
})`
  test.each([
    ['in a turn', agents],
    ['in a step of a graph', `graph('sleeping').step('a', { run: ({ sleep }) => sleep(3_600_000) }).output()`],
    ['in a child run', `graph('above').step('a', { run: ${agents} }).output()`],
    [
      'beside a step that comes to its end',
      agents.replace('await turn.sleep(3_600_000)', `await Promise.all([turn.step('quick', () => 1), turn.sleep(3_600_000)])`),
    ],
  ])('%s', async (_, definition) => {
    using place = new Place()
    place.write('sleeping.mjs', `import { graph, topology } from 'tutti'\nexport default ${definition}\n`)
    const run = place.begin('run', 'sleeping.mjs', '--id', 's')
    await until('it sleeps', () => run.err().includes('sleep.started'))
    expect(await place.tutti('pause', 's')).toMatchObject({ code: 0 })
    expect(await run.end).toMatchObject({ code: 4, err: expect.stringMatching(/the run s is paused; go on with: tutti resume s\n$/) })
    const resumed = place.begin('resume', 's')
    await until('it goes on', () => resumed.err().includes('run.resumed'))
    expect(await place.tutti('pause', 's')).toMatchObject({ code: 0 })
    expect(await resumed.end).toMatchObject({ code: 4 })
  })

  test('also where it is only looked on, while another process has it', async () => {
    using place = new Place()
    const flows = ['Start -> Desk -> End', 'Desk <-> Clerk | Slow', 'Clerk -> User'] as const
    place.write(
      'both.mjs',
      `import { topology } from 'tutti'
const never = () => { throw new Error('another process has it') }
export default topology({
  name: 'both',
  flows: ${JSON.stringify(flows)},
  agents: { Desk: { act: { request: never, join: never } }, Clerk: { act: { request: never, answer: never } }, Slow: never },
})
`,
    )
    const both = topology({
      name: 'both',
      flows,
      agents: {
        Desk: { act: { request: (turn) => turn.fork(['Clerk', 'Slow']), join: (turn, { values }) => turn.finish(values) } },
        Clerk: { act: { request: (turn) => turn.ask('tea?'), answer: (turn, value) => turn.reply(value) } },
        Slow: async (turn) => {
          await turn.sleep(3_600_000)
          return turn.reply('slow')
        },
      },
    })
    await using tutti = await open({ store: join(place.folder, '.tutti', 'tutti.db') })
    const run = await tutti.start(both, { id: 'b' })
    await until('it asks and sleeps', async () => (await run.summary()).waitsFor.join() === 'person,timer')
    const answer = place.begin('answer', 'b', 'r.0~1', '"yes"', '--file', 'both.mjs')
    await until('it is answered', () => answer.err().includes('branch.settled r.0'))
    await run.pause()
    expect(await answer.end).toMatchObject({ code: 4, err: expect.stringMatching(/the run b is paused; go on with: tutti resume b\n$/) })
  })
})

describe('--detach', () => {
  test('prints the id at once; the run goes on in a process of its own, through a question, to its end', async () => {
    using place = Place.bare()
    place.write('asking.mjs', files.asking)
    const run = await place.tutti('run', 'asking.mjs', '-i', '1', '--detach')
    expect(run.code).toBe(0)
    const id = run.out.trim()
    await until('it asks', async () => (await place.json<object[]>('asks')).length === 1)
    expect(await place.tutti('answer', id, 'r~1', '2', '--detach')).toMatchObject({ code: 0, out: `${id}\n` })
    expect((await place.tutti('tail', id)).out).toMatch(/run\.succeeded \{"said":2\}\n$/)
  })

  test('says what is wrong as if it were done here', async () => {
    using place = new Place()
    const { code, out, err } = await place.tutti('run', 'nowhere.mjs', '--detach')
    expect({ code, out, err }).toEqual({ code: 3, out: '', err: 'tutti: there is no file nowhere.mjs\n' })
    place.write('broken.mjs', `import { topology } from 'tutti'\nexport default topology({ name: 'x', flows: ['Start -> A'], agents: {} })`)
    expect(await place.tutti('run', 'broken.mjs', '--detach')).toEqual(await place.tutti('run', 'broken.mjs'))
  })

  test('is refused where nobody could find the run', async () => {
    using place = new Place()
    place.write('asking.mjs', files.asking)
    expect(await place.tutti('run', 'asking.mjs', '--detach', '--store', 'memory:')).toMatchObject({ code: 2, out: '' })
  })
})

describe('a run in memory', () => {
  test('that stops is lost with its process, and nothing is proposed that could not work', async () => {
    using place = new Place()
    place.write('asking.mjs', files.asking)
    const { code, out, err } = await place.tutti('run', 'asking.mjs', '--id', 'a', '--store', 'memory:')
    expect({ code, out }).toEqual({ code: 4, out: '' })
    expect(err).toMatch(/\? Clerk asks \{.*\}\nthe run a waits for a person, and is lost: .*memory:/)
    expect(err).not.toMatch(/tutti (answer|resume)/)
    const demo = await place.tutti('demo', '--store', 'memory:')
    expect(demo.code).toBe(0)
    expect(demo.err).toMatch(/Where to look next/)
    expect(demo.err).not.toMatch(/@last/)
  })
})

describe('tail', () => {
  test('follows a run that another process executes to its end, through a question, and ends as the run does', async () => {
    using place = new Place()
    place.write('asking.mjs', files.asking)
    expect(await place.tutti('run', 'asking.mjs', '--id', 'a')).toMatchObject({ code: 4 })
    const tail = place.begin('tail', 'a')
    await until('all that has happened so far is printed', () => tail.out().includes('ask.opened'))
    // It waits now, with nothing to do, for as long as another command takes.
    expect(await place.tutti('run', 'asking.mjs', '--id', 'b')).toMatchObject({ code: 4 })
    expect(tail.process.exitCode).toBeNull()
    expect(await place.tutti('answer', 'a', 'r~1', '2')).toMatchObject({ code: 0 })
    expect(await tail.end).toMatchObject({ code: 0, out: expect.stringMatching(/run\.succeeded \{"said":2\}\n$/), err: '' })
  })

  test('of a run that is cancelled ends with 1, and Ctrl-C ends one that still waits', async () => {
    using place = new Place()
    place.write('asking.mjs', files.asking)
    await place.tutti('run', 'asking.mjs', '--id', 'a')
    const [tail, interrupted] = [place.begin('tail', 'a', '--json'), place.begin('tail', 'a')]
    await until('both wait', () => [tail, interrupted].every(({ out }) => out().includes('ask.opened')))
    interrupted.process.kill('SIGINT')
    await interrupted.end
    expect(interrupted.process.signalCode).toBe('SIGINT')
    await place.tutti('cancel', 'a')
    expect(await tail.end).toMatchObject({ code: 1, out: expect.stringContaining('"run.cancelled"'), err: '' })
  })
})

test('a file that was moved is named again, and another version of it is refused', async () => {
  using place = new Place()
  place.write('old.mjs', files.asking)
  await place.tutti('run', 'old.mjs', '--id', 'm')
  place.write('new.mjs', files.asking)
  place.write('other.mjs', files.asking.replace("name: 'asking',", "name: 'asking', version: 'two',"))
  rmSync(`${place.folder}/old.mjs`)
  const gone = await place.tutti('answer', 'm', 'r~1', '1')
  expect(gone).toMatchObject({ code: 3, err: expect.stringContaining('name where it is now with --file') })
  expect(await place.tutti('answer', 'm', 'r~1', '1', '--file', 'other.mjs')).toMatchObject({
    code: 3,
    err: expect.stringContaining('version two'),
  })
  expect(await place.tutti('answer', 'm', 'r~1', '1', '--file', 'new.mjs')).toMatchObject({ code: 0, out: '{"said":1}\n' })
})

test('a version that says it continues a run and has no place for what is under way in it is refused, and the old one goes on', async () => {
  using place = new Place()
  const file = (agent: string, more: string): string => `import { existsSync, writeFileSync } from 'node:fs'
import { topology } from 'tutti'
export default topology({
  name: 'slow', ${more}
  flows: ['Start -> ${agent} -> End'],
  agents: { ${agent}: async (turn) => {
    writeFileSync('begun', '')
    while (!existsSync('go')) await new Promise((resolve) => setTimeout(resolve, 20))
    return turn.finish('${agent}')
  } },
})`
  place.write('old.mjs', file('Clerk', ''))
  place.write('renamed.mjs', file('Writer', "version: 'two', continues: ['1'],"))
  const run = place.begin('run', 'old.mjs', '--id', 'm')
  await expect.poll(() => place.has('begun'), { timeout: 20_000 }).toBe(true)
  run.process.kill('SIGKILL')
  await run.end
  const refused = await place.tutti('resume', 'm', '--file', 'renamed.mjs')
  expect(refused).toMatchObject({ code: 3, out: '', err: expect.stringMatching(/Clerk[^]*can't go on with the run m/) })
  place.write('go', '')
  expect(await place.tutti('resume', 'm')).toMatchObject({ code: 0, out: 'Clerk\n' })
})

test('a run that needs an agent who is paused stops with 4, and goes on once the agent may act again', async () => {
  using place = new Place()
  await place.tutti('demo')
  expect(await place.json('agents', 'pause', 'AgentB')).toMatchObject({ name: 'AgentB', status: 'paused', runtime: 'paused' })
  const [demo, twice] = [await place.tutti('demo'), await place.tutti('agents', 'pause', 'Nobody')]
  expect(demo).toMatchObject({ code: 4, out: '', err: expect.stringMatching(/waits for AgentB, who may not act now/) })
  expect(twice).toMatchObject({ code: 3, err: expect.stringContaining('AGENT_NOT_FOUND') })
  expect(await place.tutti('resume', '@last')).toMatchObject({ code: 1, err: expect.stringContaining('see tutti agents') })
  expect((await place.tutti('agents', 'resume', 'AgentB')).out).toMatch(/AgentB +running +running/)
  expect(await place.tutti('resume', '@last')).toMatchObject({ code: 4, err: expect.stringContaining('Orchestrator asks') })
})

test('an answer to a run that was paused after its process died stops there, with 4, whatever was in flight', async () => {
  using place = new Place()
  place.write(
    'both.mjs',
    `import { appendFileSync, existsSync } from 'node:fs'
import { topology } from 'tutti'
export default topology({
  name: 'both',
  flows: ['Start -> Desk -> End', 'Desk <-> Clerk | Slow', 'Clerk -> User'],
  agents: {
    Desk: { act: { request: (turn) => turn.fork(['Clerk', 'Slow']), join: (turn, { values }) => turn.finish(values.join(' ')) } },
    Clerk: { act: { request: (turn) => turn.ask('tea?'), answer: (turn, value) => turn.reply(value) } },
    Slow: async (turn) => {
      appendFileSync('begun', 'x')
      while (!existsSync('go')) await new Promise((resolve) => setTimeout(resolve, 10))
      return turn.reply('slow')
    },
  },
})`,
  )
  const run = place.begin('run', 'both.mjs', '--id', 'b')
  await until('both are under way', () => place.has('begun') && run.err().includes('ask.opened'))
  run.process.kill('SIGKILL')
  await run.end
  expect(await place.tutti('pause', 'b')).toMatchObject({ code: 0 })
  const answered = await place.tutti('answer', 'b', 'r.0~1', '"yes"')
  expect(answered).toMatchObject({ code: 4, err: expect.stringMatching(/the run b is paused; go on with: tutti resume b\n$/) })
  place.write('go', '')
  expect(await place.tutti('resume', 'b')).toMatchObject({ code: 0, out: 'yes slow\n' })
})

test('a run whose code nobody has named is resumed and answered, and what is left to do is said as JSON too', async () => {
  using place = new Place()
  await using tutti = await open({ store: join(place.folder, '.tutti', 'tutti.db') })
  const clerk = topology({
    name: 'clerk',
    flows: ['Start -> Clerk -> End', 'Clerk -> User'],
    agents: { Clerk: { act: { request: (turn) => turn.ask('tea?'), answer: (turn) => turn.finish(1) } } },
  })
  const run = await tutti.start(clerk, { id: 'c' })
  await run.asks()
  await run.pause()
  await tutti.close()
  expect(await place.json('resume', 'c')).toEqual({ id: 'c', status: 'running', waitsFor: ['person', 'definition'] })
  expect(await place.json('answer', 'c', 'r~1', 'true')).toEqual({ id: 'c', status: 'running', waitsFor: ['definition'] })
})

describe('a question of a child run', () => {
  const files = {
    asking: `import { graph, topology } from 'tutti'
export const clerk = topology({
  name: 'clerk',
  flows: ['Start -> Clerk -> End', 'Clerk -> User'],
  agents: { Clerk: { act: { request: (turn) => turn.ask(turn.request), answer: (turn, value) => turn.finish(value) } } },
})
export default graph('desk')
  .step('each', { each: () => ['north', 'south'], run: clerk, input: ({ item }) => item })
  .step('sum', { after: ['each'], run: ({ steps }) => steps.each.join(' ') })
  .output(({ steps }) => steps.sum)
`,
    clerk: `export { clerk as default } from './asking.mjs'\n`,
  }

  test('is answered with the command that was proposed, and the run that waits for it goes on to its next stop', async () => {
    using place = new Place()
    place.write('asking.mjs', files.asking)
    const first = await place.tutti('run', 'asking.mjs', '--id', 'd')
    expect(first).toMatchObject({ code: 4, out: '' })
    expect(first.err).toMatch(/tutti answer d:each:0 r~1 '<json>'\n.*\n.*tutti answer d:each:1 r~1 '<json>'\n$/)
    const second = await place.tutti('answer', 'd:each:0', 'r~1', '"n"', '--json')
    expect(second.code).toBe(4)
    expect(JSON.parse(second.out)).toMatchObject({ id: 'd', status: 'running', waitsFor: ['person'], asks: [{ runId: 'd:each:1' }] })
    expect(await place.tutti('answer', 'd:each:1', 'r~1', '"s"')).toMatchObject({ code: 0, out: 'n s\n' })
    expect(await place.json('ls')).toMatchObject([{ id: 'd', status: 'succeeded' }])
  })

  test('is what the run that waits for it waits for, where its child runs are not listed beside it', async () => {
    using place = new Place()
    place.write('asking.mjs', files.asking)
    await place.tutti('run', 'asking.mjs', '--id', 'd')
    expect(await place.json('ls')).toMatchObject([{ id: 'd', status: 'running', waitsFor: ['person'] }])
    expect((await place.tutti('ls', '--definition', 'desk')).out).toMatch(/^d +desk +running .* person$/m)
    expect(await place.json('show', 'd')).toMatchObject({ waitsFor: ['person'], asks: [{}, {}] })
    expect(await place.json('ls', '--all')).toMatchObject([{ waitsFor: ['person'] }, { waitsFor: ['person'] }, { id: 'd', waitsFor: [] }])
  })

  test('whose run is paused by itself is not said of the run that waits for it', async () => {
    using place = new Place()
    place.write('asking.mjs', files.asking)
    expect(await place.tutti('run', 'asking.mjs', '--id', 'd')).toMatchObject({ code: 4 })
    const waits = await place.tutti('resume', 'd')
    expect(waits).toMatchObject({ code: 1, err: expect.stringMatching(/RUN_NOT_PAUSED.*it waits for a person/) })
    expect(await place.tutti('pause', 'd:each:0')).toMatchObject({ code: 0 })
    const other = await place.tutti('answer', 'd:each:1', 'r~1', '"s"', '--json')
    expect(other).toMatchObject({ code: 4, err: expect.stringMatching(/the run d:each:0 is paused; go on with: tutti resume d:each:0\n$/) })
    expect(JSON.parse(other.out)).toEqual({ id: 'd', status: 'running', paused: ['d:each:0'] })
    expect((await place.tutti('show', 'd')).out).toMatch(/^the run d:each:0 is paused; go on with: tutti resume d:each:0$/m)
    expect(await place.tutti('resume', 'd')).toMatchObject({ code: 1, err: expect.stringMatching(/it waits for d:each:0: resume that/) })
    expect(await place.tutti('resume', 'd:each:0')).toMatchObject({ code: 4, err: expect.stringMatching(/answer d:each:0 r~1/) })
    expect(await place.tutti('answer', 'd:each:0', 'r~1', '"n"')).toMatchObject({ code: 0, out: 'n s\n' })
  })

  test('goes on with the child run alone where the file that is named has only that', async () => {
    using place = new Place()
    place.write('asking.mjs', files.asking)
    place.write('clerk.mjs', files.clerk)
    expect(await place.tutti('run', 'asking.mjs', '--id', 'd')).toMatchObject({ code: 4 })
    expect(await place.tutti('answer', 'd:each:0', 'r~1', '"n"', '--file', 'clerk.mjs')).toMatchObject({ code: 0, out: 'n\n' })
    expect(await place.tutti('pause', 'd:each:1')).toMatchObject({ code: 0 })
    expect(await place.tutti('resume', 'd:each:1')).toMatchObject({ code: 4, err: expect.stringMatching(/answer d:each:1 r~1/) })
    expect(await place.tutti('answer', 'd:each:1', 'r~1', '"s"', '--detach')).toMatchObject({ code: 0, out: 'd\n' })
    expect(await place.tutti('tail', 'd')).toMatchObject({ code: 0 })
  })
})
