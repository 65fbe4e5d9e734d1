import { execFileSync, spawn, spawnSync } from 'node:child_process'
import { closeSync, constants, existsSync, mkdirSync, openSync, readFileSync, symlinkSync, writeFileSync, writeSync } from 'node:fs'
import * as nodeModule from 'node:module'
import { join } from 'node:path'
import type { Readable } from 'node:stream'
import { text as textFrom } from 'node:stream/consumers'
import { open, type Topology, topology } from 'tutti'
import { virtualClock } from 'tutti/testing'
import { describe, expect, test, vi } from 'vitest'
import { commands } from '../../src/cli/commands.js'
import { perform } from '../../src/cli/start.js'
import { Terminal } from '../../src/cli/terminal.js'
import { ask, loadDriver, openDatabase } from '../../src/stores/sqlite-driver.js'
import { askers, askingAtOnce } from '../engine/asking-at-once.js'
import { files, main, Place, patience, type Said } from './place.js'

vi.setConfig(patience)

const escape = '\u001b'

describe('the demo', () => {
  test('lets five agents find the word in a pipe: counted at the barrier, answered by itself, with no colour and no key', async () => {
    using place = new Place()
    const { code, out, err } = await place.tutti('demo')
    expect({ code, out }).toEqual({ code: 0, out: 'The secret word is: MARS\n' })
    expect(err.replaceAll('\n', ' ')).toMatch(
      /scripted.*fork opens.*1\/3.*AgentC invokes AgentD.*2\/3.*3\/3.*make MARS.*says yes.*tutti show @last/,
    )
    expect(err).not.toContain(escape)
    expect(await place.json<{ status: string }[]>('ls')).toMatchObject([{ definition: 'secret-word', status: 'succeeded' }])
  })

  test('and a new project tell what came of them as JSON, where that is asked for', async () => {
    using place = new Place()
    expect(await place.json('demo')).toMatchObject({ id: expect.any(String), status: 'succeeded', output: 'The secret word is: MARS' })
    expect(await place.json('init', 'shop')).toEqual({ files: expect.arrayContaining(['shop/workflow.ts', 'shop/workflow.test.ts']) })
  })
})

describe('a run', () => {
  test('that asks a person stops with 4, and its answer from another process goes on to the output', async () => {
    using place = Place.bare()
    place.write('asking.ts', files.asking)
    place.write('input.json', '{"what":"lunch"}')
    const run = await place.tutti('run', 'asking.ts', '-i', '@input.json', '--id', 'lunch')
    expect(run).toMatchObject({ code: 4, out: '' })
    expect(run.err).toContain("tutti answer lunch r~1 '<json>'")
    expect(await place.json('asks')).toMatchObject([{ id: 'r~1', runId: 'lunch', question: { about: { what: 'lunch' } } }])
    const [shown, early] = await Promise.all([place.json('show', 'lunch'), place.tutti('resume', 'lunch')])
    expect(shown).toMatchObject({ id: 'lunch', status: 'running', waitsFor: ['person'], asks: [{ id: 'r~1' }], report: { runId: 'lunch' } })
    expect(early).toMatchObject({ code: 1, err: expect.stringContaining('RUN_NOT_PAUSED') })
    expect(await place.tutti('answer', 'lun', 'r~1', '{"soup":true}')).toMatchObject({ code: 0, out: '{"said":{"soup":true}}\n' })
    expect(await place.tutti('answer', '@last', 'r~1', '1')).toMatchObject({
      code: 1,
      err: expect.stringContaining('ASK_ALREADY_ANSWERED'),
    })
  })

  test('takes its input from standard input, prints its end as JSON, and what its code prints is no data', async () => {
    using place = new Place()
    place.write(
      'echo.mjs',
      `import { topology } from 'tutti'
export default topology({ name: 'echo', flows: ['Start -> A -> End'], agents: { A: (turn) => (console.log('noise'), turn.finish(turn.request)) } })`,
    )
    const run = place.begin('run', 'echo.mjs', '-i', '-', '--json', '--id', 'e1')
    run.process.stdin.end('["hello"]')
    const { code, out, err } = await run.end
    expect({ code, out: JSON.parse(out) }).toEqual({ code: 0, out: { id: 'e1', status: 'succeeded', output: ['hello'] } })
    expect(err).toContain('noise')
  })

  test('prints a text as it is, with its lines, and anything else as JSON that others can read; neither steers the terminal', async () => {
    using place = new Place()
    place.write(
      'echo.mjs',
      `import { graph } from 'tutti'\nexport default graph('echo').step('a', { run: ({ input }) => input }).output(({ steps }) => steps.a)`,
    )
    const [text, data] = await Promise.all(
      ['# Title\n\n\tindented\r\nred \u001b[31m\rgone', { odd: 'a\u202e\u0085\u200b\u{e0041}\nb' }].map((value) =>
        place.tutti('run', 'echo.mjs', '--store', 'memory:', '-i', JSON.stringify(value)),
      ),
    )
    expect(text).toMatchObject({ code: 0, out: '# Title\n\n\tindented\r\nred \\u{1b}[31m\\rgone\n' })
    expect(JSON.parse(data?.out ?? '')).toEqual({ odd: 'a\u202e\u0085\u200b\u{e0041}\nb' })
    expect(data?.out).toMatch(/^[\u0020-\u007e]+\n$/)
  })

  test('takes its input from a file of any editor, and from a standard input that does not wait', async () => {
    using place = new Place()
    place.write('asking.mjs', files.asking)
    place.write('marked.json', '\uFEFF{"a":1}')
    const marked = await place.tutti('run', 'asking.mjs', '-i', '@marked.json')
    expect(marked).toMatchObject({ code: 4, err: expect.stringContaining('asks {"about":{"a":1}}') })
    // A pipe that has nothing yet says so, instead of letting its reader wait.
    const pipe = join(place.folder, 'pipe')
    execFileSync('sh', ['-c', 'mkfifo "$0"', pipe])
    const there = openSync(pipe, constants.O_RDONLY | constants.O_NONBLOCK)
    const here = openSync(pipe, 'w')
    const late = spawn('sh', ['-c', '"$0" "$@" <&3', process.execPath, main, 'run', 'asking.mjs', '-i', '-'], {
      cwd: place.folder,
      stdio: ['ignore', 'ignore', 'pipe', there],
    })
    await new Promise((resolve) => setTimeout(resolve, 1_000))
    writeSync(here, '"late"')
    closeSync(here)
    closeSync(there)
    expect(await textFrom(late.stderr as Readable)).toContain('asks {"about":"late"}')
  })

  test('may print as it likes, when it is loaded and when it runs: no command that loads it lets that into its data', async () => {
    using place = new Place()
    const noise = `import { log } from 'node:console'
import { stdout } from 'node:process'
export const noise = () => { console.log('noise 1'); process.stdout.write('noise 2\\n'); stdout.write('noise 3\\n'); log('noise 4') }
noise()
`
    place.write('noise.mjs', noise)
    place.write(
      'noisy.mjs',
      `import { noise } from './noise.mjs'\n${files.asking.replace('request: (turn) =>', 'request: (turn) => noise() ??')}
export const check = { answers: () => 1 }`,
    )
    const calls = [
      ['run', 'noisy.mjs', '--id', 'n', '--json'],
      ['answer', 'n', 'r~1', '1', '--json'],
      ['replay', 'n', '--json'],
      ['run', 'noisy.mjs', '--id', 'o', '--json'],
      ['cancel', 'o', '--json'],
      ['check', 'noisy.mjs', '--json', '--schedules', '2'],
      ['graph', 'noisy.mjs', '--json'],
    ]
    for (const call of calls) {
      const { out, err } = await place.tutti(...call)
      expect(() => JSON.parse(out), call.join(' ')).not.toThrow()
      for (const way of [1, 2, 3, 4]) expect(err, call.join(' ')).toContain(`noise ${way}\n`)
    }
    const drawings = await Promise.all(['--mermaid', '--svg'].map((form) => place.tutti('graph', 'noisy.mjs', form)))
    for (const { out } of drawings) expect(out).toMatch(/^(flowchart|<svg) (?![^]*noise )/)
  })

  test('is loaded from TypeScript with all that it imports, in a folder that says nothing of modules', async () => {
    using place = Place.bare()
    place.write('letters.ts', `export enum Letter { A = 'a' }\nexport const first: Letter = Letter.A\n`)
    place.write(
      'several.ts',
      `import { graph } from 'tutti'
import { first } from './letters.js'
export default graph('several').step('only', { run: async () => { await using none = { [Symbol.asyncDispose]: async () => {} }; return first } }).output()`,
    )
    expect(await place.tutti('run', 'several.ts')).toMatchObject({ code: 0, out: '{"only":"a"}\n' })
  })

  test('that can not be loaded says why, line by line; one with no default says what it has instead', async () => {
    using place = Place.bare()
    const one = (name: string): string => `graph('${name}').step('a', { run: () => 1 }).output()`
    place.write('odd.ts', 'const a = 1\nconst a = 2\nexport default }\n')
    place.write(
      'several.mjs',
      `import { graph } from 'tutti'\nexport const one = ${one('one')}\nexport const two = ${one('two')}\nexport default 5\n`,
    )
    place.write('single.mjs', `import { graph } from 'tutti'\nexport const one = ${one('one')}\n`)
    mkdirSync(join(place.folder, 'folder.ts'))
    place.write('throwing.ts', `interface Unused { a: 1 }\nexport function f(): never {\n  throw new Error('not today')\n}\n`)
    place.write('calling.ts', `import { f } from './throwing.js'\nf()\nexport default 1\n`)
    place.write('making.mjs', `import { graph } from 'tutti'\nexport default () => ${one('one')}\n`)
    const [odd, several, single, folder, calling, making] = await Promise.all(
      ['odd.ts', 'several.mjs', 'single.mjs', 'folder.ts', 'calling.ts', 'making.mjs'].map((file) => place.tutti('graph', file)),
    )
    expect(odd?.code).toBe(1)
    expect(odd?.err).toMatch(/odd\.ts could not be loaded: Transform failed with \d errors?:\n.*odd\.ts:\d+:\d+: ERROR: .*\n/)
    expect(several).toMatchObject({ code: 2, err: expect.stringMatching(/it exports one, two: export one of them as the default\n$/) })
    expect(single).toMatchObject({ code: 2, err: expect.stringMatching(/it exports one: export that as the default\n$/) })
    expect(making).toMatchObject({
      code: 2,
      err: expect.stringContaining('it is a function: export what that gives; a check evaluates the file anew'),
    })
    expect(folder).toMatchObject({ code: 3, err: 'tutti: there is no file folder.ts\n' })
    expect(calling).toMatchObject({
      code: 1,
      err: expect.stringMatching(/calling\.ts could not be loaded: not today\n {2}at \/.*\/throwing\.ts:3:9\n$/),
    })
  })

  test.skipIf('registerHooks' in nodeModule)('in CommonJS that has no tutti says what to do', async () => {
    using place = Place.bare()
    place.write('old.cjs', `const { graph } = require('tutti')\nmodule.exports = graph('old').step('a', { run: () => 1 }).output()`)
    expect(await place.tutti('run', 'old.cjs')).toMatchObject({
      code: 1,
      err: expect.stringMatching(/Cannot find module 'tutti'; .*npm install tutti.*\.mjs/),
    })
  })

  test.skipIf('registerHooks' in nodeModule)('in TypeScript that is named as CommonJS is run, with what it imports', async () => {
    using place = new Place()
    place.write('sum.cts', `import path = require('node:path')\nexport const sum = () => path.posix.join('a', 'b')`)
    place.write(
      'old.cts',
      `import { graph } from 'tutti'\nimport { sum } from './sum.cts'\nexport default graph('old').step('a', { run: sum }).output(({ steps }) => steps.a)`,
    )
    expect(await place.tutti('run', 'old.cts')).toMatchObject({ code: 0, out: 'a/b\n' })
  })

  test('that fails ends with 1 and says where it began; one that is refused says why', async () => {
    using place = new Place()
    place.write(
      'failing.mjs',
      `import { topology } from 'tutti'
export default topology({ name: 'failing', flows: ['Start -> A -> B -> End'], agents: { A: (turn) => turn.invoke('B'), B: () => { throw new Error('no bread') } } })`,
    )
    place.write('none.mjs', 'export default 1')
    place.write(
      'broken.ts',
      `import { topology } from 'tutti'\nexport default topology({ name: 'x', flows: ['Start -> A'], agents: {} } as never)`,
    )
    const ends = await Promise.all([
      place.tutti('run', 'failing.mjs', '--store', 'a/b.db', '--id', 'f'),
      place.tutti('run', 'none.mjs'),
      place.tutti('run', 'broken.ts'),
      place.tutti('run', 'missing.mjs'),
    ])
    expect(ends.map(({ code }) => code)).toEqual([1, 2, 1, 3])
    expect(ends[0]?.err).toMatch(/the run f failed: .*AGENT_FAILED no bread \(B at r\)/)
    expect(ends[1]?.err).toMatch(/^tutti: the default export of none.mjs is no definition.*\n$/)
    expect(ends[2]?.err).toContain('INVALID_TOPOLOGY')
    expect(await place.tutti('run', 'failing.mjs', '--store', 'a/b.db', '--id', 'f')).toMatchObject({
      code: 1,
      err: expect.stringContaining('RUN_EXISTS'),
    })
  })
})

test('what could not be undone is said wherever the end of a run is told, in words and as data', async () => {
  using place = new Place()
  const file = (then: string): string => `import { graph } from 'tutti'
const schema = { '~standard': { version: 1, vendor: 'test', validate: (value) => ({ value }) } }
export default graph('stuck').step('a', { run: () => 1, compensate: () => { throw new Error('stuck') } })${then}.output()`
  place.write('failing.mjs', file(".step('b', { after: ['a'], run: () => { throw new Error('b broke') } })"))
  place.write('asking.mjs', file(".ask('b', { after: ['a'], question: () => 'go on?', schema })"))
  const [told, data, asked] = await Promise.all([
    place.tutti('run', 'failing.mjs', '--id', 'told'),
    place.tutti('run', 'failing.mjs', '--id', 'data', '--json'),
    place.tutti('run', 'asking.mjs', '--id', 'asked'),
    place.tutti('run', 'asking.mjs', '--id', 'also'),
  ])
  expect(told).toMatchObject({ code: 1, err: expect.stringMatching(/the run told failed: STEP_FAILED b broke.*; not undone: a\n$/) })
  expect(JSON.parse(data.out)).toMatchObject({ status: 'failed', rollback: 'partial', notUndone: ['a'] })
  expect((await place.tutti('tail', 'told')).out).toMatch(/run\.failed STEP_FAILED b broke.*; not undone: a\n$/)
  expect((await place.tutti('show', 'told')).out).toMatch(/STEP_FAILED b broke.*\nnot undone: a\n$/)
  expect(asked.code).toBe(4)
  expect((await place.tutti('cancel', 'asked')).err).toMatch(/asked is cancelled; not undone: a\n$/)
  expect(await place.json('cancel', 'also')).toEqual({ id: 'also', status: 'cancelled', rollback: 'partial', notUndone: ['a'] })
})

test('code that ends the process, or waits for what never comes, does not let a command look as if it were done', async () => {
  using place = new Place()
  place.write('leaving.mjs', 'process.exit(0)')
  place.write('forever.ts', 'await new Promise(() => {})\nexport default 1')
  place.write(
    'amid.mjs',
    `import { graph } from 'tutti'
export default graph('amid').step('a', { run: () => process.exit(3) }).output()`,
  )
  place.write(
    'thrown.mjs',
    `setTimeout(() => { throw new Error('later') }, 1)\nawait new Promise((r) => setTimeout(r, 1_000))\nexport default 1`,
  )
  const ends = await Promise.all([
    place.tutti('run', 'leaving.mjs', '--json'),
    place.tutti('check', 'forever.ts'),
    place.tutti('run', 'amid.mjs', '--id', 'a'),
    place.tutti('graph', 'thrown.mjs'),
    place.tutti('run', 'leaving.mjs', '--detach'),
    place.tutti('run', 'forever.ts', '--detach'),
  ])
  for (const { code, out } of ends) expect({ code, out }).toEqual({ code: 1, out: '' })
  expect(ends[0]?.err).toMatch(/^tutti: code that was loaded has ended the process, with 0: the command is not done.*\n$/)
  expect(ends[1]?.err).toMatch(/tutti: what was loaded waits for something that never comes: the command is not done.*\n$/)
  expect(ends[2]?.err).toMatch(/turn\.started r a.*\ntutti: code that was loaded has ended the process, with 3: .*resumed\n$/)
  expect([ends[4]?.err, ends[5]?.err]).toEqual([
    ends[0]?.err,
    expect.stringMatching(/^tutti: what was loaded waits for something that never comes: the command is not done.*\n$/),
  ])
  expect(ends[3]?.err).toMatch(/tutti: code that was loaded has ended the process, with 1: [^]*Error: later/)
})

test('an input or an answer that is too large is not taken, and the question stays open', async () => {
  using place = new Place()
  place.write('asking.mjs', files.asking)
  place.write('large.json', JSON.stringify('x'.repeat(2 ** 24)))
  const started = await place.tutti('run', 'asking.mjs', '--input', '@large.json')
  expect(started).toMatchObject({ code: 2, out: '', err: expect.stringContaining('VALUE_TOO_LARGE: the input has') })
  await place.tutti('run', 'asking.mjs', '--id', 'a')
  const answered = await place.tutti('answer', 'a', 'r~1', '@large.json')
  expect(answered).toMatchObject({ code: 2, out: '', err: expect.stringContaining('VALUE_TOO_LARGE: the answer has') })
  expect((await place.tutti('answer', 'a', 'r~1', '1')).code).toBe(0)
})

test('what is wrong with options is not said of the definition, and a run that was cancelled was cancelled', async () => {
  using place = new Place()
  place.write('asking.mjs', files.asking)
  const { code, err } = await place.tutti('run', 'asking.mjs', '--id', 'a b')
  expect([code, err]).toEqual([2, expect.stringMatching(/^tutti: INVALID_INPUT: there is a problem with what was given\n {2}id: /)])
  await place.tutti('run', 'asking.mjs', '--id', 'c')
  await place.tutti('cancel', 'c', '--reason', 'because')
  expect((await place.tutti('show', 'c')).out).toMatch(/\ncancelled: because\n$/)
  expect(await place.json('show', 'c')).toMatchObject({ status: 'cancelled', reason: 'because' })
  expect(await place.tutti('resume', 'c')).toMatchObject({ code: 1, err: expect.stringContaining('has ended: it was cancelled;') })
})

describe('whoever reads', () => {
  test('may go: a run that nobody looks on goes on to its end', async () => {
    using place = new Place()
    place.write('waiting.mjs', files.waiting)
    const { process: child, end, err } = place.begin('run', 'waiting.mjs', '--id', 'w')
    await expect.poll(err, { timeout: 20_000 }).toContain('run.started')
    child.stderr.destroy()
    // The next lines of progress meet a pipe that is closed.
    await expect.poll(() => place.read('effects.log'), { timeout: 20_000 }).toContain('begin')
    place.write('go', '')
    expect(await end).toMatchObject({ code: 0, out: 'gone on\n' })
    expect(await place.json('show', 'w')).toMatchObject({ status: 'succeeded' })
  })

  test('may go before the data comes: what a command does and ends with is the same, and only tail has nothing more to do', async () => {
    using place = new Place()
    place.write('asking.mjs', files.asking)
    place.write(
      'failing.mjs',
      `import { graph } from 'tutti'\nexport default graph('f').step('a', { run: () => { throw new Error('no') } }).output()`,
    )
    place.write(
      'racy.mjs',
      `import { graph } from 'tutti'
let seen = ''
export default graph('racy').step('a', { run: () => (seen += 'a') }).step('b', { run: () => (seen += 'b') }).output()`,
    )
    const unread = async (...args: readonly string[]): Promise<number | null> => {
      const run = place.begin(...args)
      run.process.stdout.destroy()
      return (await run.end).code
    }
    expect(await unread('run', 'asking.mjs', '--id', 'a', '--json')).toBe(4)
    const codes = await Promise.all([
      unread('run', 'failing.mjs', '--id', 'f', '--json'),
      unread('check', 'racy.mjs'),
      unread('ls'),
      // The run waits for a person: it would be followed for ever.
      unread('tail', 'a'),
    ])
    expect(codes).toEqual([1, 5, 0, 0])
    expect(await unread('answer', 'a', 'r~1', '1')).toBe(0)
    expect(await place.json('show', 'a')).toMatchObject({ status: 'succeeded' })
  })

  test.skipIf(!existsSync('/dev/full'))('is told when there is no room for the data', async () => {
    using place = new Place()
    place.write('asking.mjs', files.asking)
    await place.tutti('run', 'asking.mjs', '--id', 'a')
    const full = openSync('/dev/full', 'w')
    for (const args of [['report', 'a'], ['ls', '--json'], ['export', 'a', '--svg'], ['--help']]) {
      const { status, stderr } = spawnSync(process.execPath, [main, ...args], { cwd: place.folder, stdio: ['ignore', full, 'pipe'] })
      expect([args, status, String(stderr)]).toEqual([
        args,
        1,
        expect.stringMatching(/^tutti: standard output could not be written: ENOSPC.*\n$/),
      ])
    }
    closeSync(full)
  })
})

describe('looking', () => {
  test('finds runs by the beginning of their ids and @last, and says when that is not one', async () => {
    using place = new Place()
    place.write('asking.mjs', files.asking)
    for (const id of ['aa1', 'aa2']) await place.tutti('run', 'asking.mjs', '--id', id)
    const shown = (id: string): Promise<{ code: number | null; err: string }> => place.tutti('show', id)
    const [two, one, last, none] = await Promise.all([shown('aa'), shown('aa1'), place.json<{ id: string }>('show', '@last'), shown('zz')])
    expect(two).toMatchObject({ code: 2, err: expect.stringMatching(/^tutti: 2 runs begin with aa: aa2, aa1\n$/) })
    expect(one.code).toBe(0)
    expect(last.id).toBe('aa2')
    expect(none).toMatchObject({ code: 3, err: expect.stringContaining('there is no run zz') })
  })

  test('lists what was asked at one moment in the order of the fork, by every command', async () => {
    using place = new Place()
    {
      await using tutti = await open({ store: join(place.folder, 'a.db'), clock: virtualClock() })
      const run = await tutti.start(askingAtOnce, { id: 'r' })
      await expect.poll(async () => (await run.asks()).length, { timeout: 20_000 }).toBe(askers.length)
    }
    const [asks, shown] = await Promise.all([
      place.json<{ agent: string }[]>('asks', '--store', 'a.db'),
      place.json<{ asks: { agent: string }[] }>('show', 'r', '--store', 'a.db'),
    ])
    for (const listed of [asks, shown.asks]) expect(listed.map(({ agent }) => agent)).toEqual(askers)
  })

  test('finds a run by the beginning of its id however many child runs it has', async () => {
    using place = new Place()
    place.write(
      'many.mjs',
      `import { graph } from 'tutti'
const one = graph('one').step('a', { run: () => 1 }).output()
export default graph('many').step('each', { each: () => Array(1_001).fill(0), run: one, input: () => 0 }).output(() => 'done')`,
    )
    expect(await place.tutti('run', 'many.mjs', '--id', 'many')).toMatchObject({ code: 0, out: 'done\n' })
    expect(await place.json('show', 'ma')).toMatchObject({ id: 'many', status: 'succeeded' })
  })

  test('makes no store where there is none', async () => {
    using place = new Place()
    const [ls, asks, show, other, asked] = await Promise.all([
      place.tutti('ls', '--json'),
      place.tutti('asks', '--json'),
      place.tutti('show', '@last'),
      place.tutti('ls', '--store', 'x.db'),
      place.tutti('asks', 'nobody'),
    ])
    expect([ls.code, ls.out, asks.code, asks.out, show.code, other.code, asked.code]).toEqual([0, '[]\n', 0, '[]\n', 3, 3, 3])
    expect([place.has('.tutti'), place.has('x.db')]).toEqual([false, false])
  })

  test('says of a store that nobody can look at that it is out of reach, and never that it is empty', async () => {
    using loop = new Place()
    using file = new Place()
    // Whoever follows it comes to no end: nobody can say whether there is a store.
    mkdirSync(join(loop.folder, '.tutti'))
    symlinkSync('tutti.db', join(loop.folder, '.tutti', 'tutti.db'))
    file.write('.tutti', 'a file')
    for (const place of [loop, file])
      for (const command of [['ls'], ['asks'], ['agents'], ['gc'], ['show', '@last']])
        expect(await place.tutti(...command)).toMatchObject({
          code: 1,
          out: '',
          err: expect.stringMatching(/^tutti: STORE_UNAVAILABLE: .*; the folder and the file must be readable and writable.*\n$/),
        })
    expect(await loop.tutti('doctor')).toMatchObject({ code: 1, out: expect.stringMatching(/✗ Store: .*can't be opened/) })
  })

  test('show says which agent a run waits for, itself or in a child run', async () => {
    using place = new Place()
    place.write(
      'desk.mjs',
      `import { graph, topology } from 'tutti'
const clerk = topology({ name: 'clerk', flows: ['Start -> Clerk -> End'], agents: { Clerk: (turn) => turn.finish(1) } })
export default graph('desk').step('ask', { run: clerk }).output()`,
    )
    expect(await place.tutti('run', 'desk.mjs')).toMatchObject({ code: 0 })
    await place.tutti('agents', 'pause', 'Clerk')
    expect(await place.tutti('run', 'desk.mjs', '--id', 'd')).toMatchObject({ code: 4 })
    for (const id of ['d', 'd:ask'])
      expect((await place.tutti('show', id)).out).toMatch(/\nwaits for Clerk, who may not act now; see tutti agents\n/)
    await place.tutti('agents', 'resume', 'Clerk')
    expect(await place.tutti('resume', 'd')).toMatchObject({ code: 0 })
    expect((await place.tutti('show', 'd')).out).not.toContain('waits for Clerk')
  })

  test('of an agent that works again show and ls say nothing but how to go on', async () => {
    using place = new Place()
    place.write(
      'solo.mjs',
      `import { topology } from 'tutti'
export default topology({ name: 'solo', flows: ['Start -> A -> End'], agents: { A: (turn) => turn.finish(1) } })`,
    )
    expect(await place.tutti('run', 'solo.mjs')).toMatchObject({ code: 0 })
    await place.tutti('agents', 'pause', 'A')
    expect(await place.tutti('run', 'solo.mjs', '--id', 's')).toMatchObject({ code: 4 })
    expect((await place.tutti('ls')).out).toMatch(/^s .* agent$/m)
    await place.tutti('agents', 'resume', 'A')
    const { out } = await place.tutti('show', 's')
    expect(out).not.toContain('waits for A')
    expect(out).toContain('nobody executes s, its process has gone; go on with: tutti resume s')
    expect((await place.tutti('ls')).out).toMatch(/^s .* agent, process$/m)
    expect(await place.tutti('resume', 's')).toMatchObject({ code: 0 })
  })

  test('tail prints the journal as lines or as JSON, in order and to its end; the report names everybody', async () => {
    using place = new Place()
    await place.tutti('demo')
    const [text, json, report, markdown] = await Promise.all([
      place.tutti('tail', '@last'),
      place.tutti('tail', '@last', '--json', '--after', '2'),
      place.json<{ agents: string[] }>('report', '@last'),
      place.tutti('report', '@last', '--markdown'),
    ])
    const events = json.out
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as { seq: number; type: string })
    expect(events.map(({ seq }) => seq)).toEqual(events.map((_, index) => index + 3))
    expect(events.at(-1)?.type).toBe('run.succeeded')
    expect(text.out.trim().split('\n')).toHaveLength(events.length + 2)
    expect([text.code, json.code]).toEqual([0, 0])
    expect(report.agents).toEqual(['Orchestrator', 'AgentA', 'AgentB', 'AgentC', 'AgentD'])
    expect(markdown.out).toContain('# Run')
  })

  test('what models and people say never steers the terminal', async () => {
    using place = new Place()
    const nasty = '\\u001b[31mred\\u0007\\u009b2J\\u202e'
    place.write(
      'nasty.mjs',
      `import { topology } from 'tutti'
const nasty = '${nasty}'
export default topology({
  name: 'nasty', flows: ['Start -> A -> End', 'A -> User'],
  agents: { A: { act: { request: (turn) => turn.ask(nasty), answer: () => { throw new Error(nasty) } } } },
})`,
    )
    const said = [await place.tutti('run', 'nasty.mjs', '-i', `"${nasty}"`)]
    const look = async (): Promise<void> => {
      const commands = [['asks'], ['asks', '--json'], ['show', '@last'], ['show', '@last', '--json'], ['report', '@last'], ['ls']]
      said.push(...(await Promise.all(commands.map((args) => place.tutti(...args)))))
    }
    await look()
    said.push(await place.tutti('answer', '@last', 'r~1', `"${nasty}"`))
    said.push(await place.tutti('show', '@last'), await place.tutti('tail', '@last', '--json'), await place.tutti('show', '\u001b[31m'))
    // oxlint-disable-next-line no-control-regex -- it is what must not be there
    for (const { out, err } of said) expect(out + err).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u202e]/)
    expect(said.map(({ out, err }) => out + err).join('')).toContain('\\u{1b}[31mred')
  })
})

/** Calls the command in this process: only what it says and how it would end is of interest. */
async function here(...args: string[]): Promise<Said> {
  const said = { out: '', err: '' }
  const stream = (to: 'out' | 'err'): NodeJS.WriteStream =>
    ({ write: (text: string) => ((said[to] += text), true) }) as unknown as NodeJS.WriteStream
  const code = await perform(new Terminal(stream('out'), stream('err'), {}), args, () => '1.2.3')
  return { code, ...said }
}

test('wrong use of any command is one clear line, and exit code 2', async () => {
  const wrong = [
    ['nonsense'],
    ['--nonsense'],
    ['demo', 'more'],
    ['run'],
    ['run', 'x.ts', '--nonsense'],
    ['run', 'x.txt'],
    ['run', 'x.ts', '-i', 'hello'],
    ['ls', 'more'],
    ['ls', '--status', 'odd'],
    ['ls', '--limit', '0'],
    ['ls', '--limit', '2.5'],
    ['show'],
    ['tail', 'a', '--after', 'x'],
    ['report', 'a', 'b'],
    ['report', 'a', '--markdown', '--json'],
    ['pause'],
    ['resume', '--store'],
    ['cancel', 'a', '--no-such'],
    ['asks', 'a', 'b'],
    ['answer', 'a', 'b'],
    ['answer', 'a', 'b', '{'],
    ['export', 'a'],
    ['export', 'a', '--svg', '--html'],
    ['export', 'a', '--svg', '--json'],
    ['agents', 'shout', 'A'],
    ['agents', 'pause'],
    ['check'],
    ['check', 'x.mjs', '--schedules', 'many'],
    ['check', 'x.mjs', '--json', '--what'],
    ['check', '--from-run', 'a', '-i', '1'],
    ['run', 'x.mjs', '--record', 'a', '--replay', 'b'],
    ['replay'],
    ['graph'],
    ['graph', 'x.mjs', '--svg', '--mermaid'],
    ['init', 'a', 'b'],
    ['doctor', 'more'],
    ['gc', '--older-than', 'long'],
    ['completion'],
    ['completion', 'tcsh'],
  ]
  const said = await Promise.all(wrong.map((args) => here(...args)))
  for (const [index, { code, out, err }] of said.entries()) {
    expect({ args: wrong[index], code, out, lines: err.split('\n').length - 1 }).toEqual({ args: wrong[index], code: 2, out: '', lines: 1 })
    expect(err).toMatch(/^tutti: .+\n$/)
  }
  // As a process of its own it ends no other way.
  using place = new Place()
  expect(await place.tutti('show')).toEqual({ code: 2, out: '', err: said[wrong.findIndex(([name]) => name === 'show')]?.err })
})

test('every command has a help text, and help is no wrong use', async () => {
  const help = await here('--help')
  expect(await here()).toEqual(help)
  const names = [...help.out.matchAll(/^ {2}(\w+) {2,}\S/gm)].map(([, name]) => name ?? '')
  expect(names).toEqual(commands.map(({ name }) => name))
  for (const name of names) {
    const { code, out, err } = await here(name, '--help')
    expect({ code, err }).toEqual({ code: 0, err: '' })
    expect(out).toContain(`Usage: tutti ${name}`)
  }
  using place = new Place()
  const versions = await Promise.all([place.tutti('--version'), place.tutti('--version', 'extra'), place.tutti('-V')])
  for (const { code, out } of versions) expect({ code, out }).toEqual({ code: 0, out: expect.stringMatching(/^\d+\.\d+\.\d+\n$/) })
})

describe('export', () => {
  test('writes the journal, a picture, a page and a trace, to a pipe or to a file', async () => {
    using place = new Place()
    await place.tutti('demo')
    const [jsonl, svg, html, otlp, list, trace] = await Promise.all([
      place.tutti('export', '@last', '--jsonl'),
      place.tutti('export', '@last', '--svg'),
      place.tutti('export', '@last', '--html', '-o', 'run.html'),
      place.tutti('export', '@last', '--otlp'),
      place.tutti('export', '@last', '--json'),
      place.tutti('export', '@last', '--otlp', '--json'),
    ])
    expect(JSON.parse(list.out)).toEqual(
      jsonl.out
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line) as unknown),
    )
    expect(trace.out).toBe(otlp.out)
    expect(
      jsonl.out
        .trim()
        .split('\n')
        .map((line) => (JSON.parse(line) as { seq: number }).seq),
    ).toEqual(
      jsonl.out
        .trim()
        .split('\n')
        .map((_, index) => index + 1),
    )
    expect(svg.out).toMatch(/^<svg [\s\S]*AgentA[\s\S]*<\/svg>\s*$/)
    expect([html.code, html.out, html.err]).toEqual([0, '', 'wrote run.html\n'])
    expect(place.read('run.html')).toMatch(/^<!doctype html>/i)
    const { resourceSpans } = JSON.parse(otlp.out) as { resourceSpans: { scopeSpans: { spans: OtlpSpan[] }[] }[] }
    const spans = resourceSpans[0]?.scopeSpans[0]?.spans ?? []
    const known = new Set(spans.map(({ spanId }) => spanId))
    expect(known.size).toBe(spans.length)
    expect(new Set(spans.map(({ traceId }) => traceId)).size).toBe(1)
    expect(spans.filter(({ parentSpanId }) => parentSpanId === undefined).map(({ name }) => name)).toEqual(['invoke_workflow secret-word'])
    for (const { parentSpanId } of spans.slice(1)) expect(known).toContain(parentSpanId)
    expect(spans.map(({ name }) => name)).toEqual(
      expect.arrayContaining(['invoke_agent AgentD', 'barrier Orchestrator', 'person Orchestrator']),
    )
    // What agents said stays at home.
    expect(otlp.out).not.toContain('MARS')
  })
})

test('a picture and a page of a run that goes on say how long it has gone on until now', async () => {
  using place = new Place()
  const definition = topology({
    name: 'long',
    flows: ['Start -> A -> End', 'A -> User'],
    agents: { A: (turn: any) => turn.ask('well?') },
  } as never)
  {
    const clock = virtualClock(Date.now() - 3 * 3_600_000)
    await using tutti = await open({ store: join(place.folder, 'a.db'), clock, definitions: [definition] })
    const run = await tutti.start(definition as Topology<unknown, unknown>, { id: 'r' })
    await expect.poll(async () => (await run.asks()).length, { timeout: 20_000 }).toBe(1)
  }
  const drawings = await Promise.all(['--svg', '--html'].map((form) => place.tutti('export', 'r', form, '--store', 'a.db')))
  for (const { out } of drawings) expect(out).toMatch(/long: running [^<]*3 h/)
})

interface OtlpSpan {
  readonly traceId: string
  readonly spanId: string
  readonly parentSpanId?: string
  readonly name: string
}

test('gc deletes what ended long ago, and keeps what goes on', async () => {
  using place = new Place()
  place.write('asking.mjs', files.asking)
  await place.tutti('demo')
  await place.tutti('run', 'asking.mjs', '--id', 'open')
  expect((await place.tutti('gc')).out).toBe('deleted 0 runs\n')
  expect(await place.json('gc', '--older-than', '0s')).toEqual({ deleted: 1 })
  expect(await place.json('ls')).toMatchObject([{ id: 'open' }])
})

test('doctor says what is there, names keys without showing them, and says how to mend what is not', async () => {
  using place = new Place()
  place.write('other.db', 'this is no database, it is a text that is long enough to be none')
  const good = await place.json<{ name: string; ok: boolean }[]>('doctor')
  expect(good.map(({ name, ok }) => [name, ok])).toEqual(
    ['Node', 'SQLite', 'Store', 'TypeScript', 'Model', 'Ports'].map((name) => [name, true]),
  )
  const bad = await place.tutti('doctor', '--store', 'other.db')
  expect(bad.code).toBe(1)
  expect(bad.out).toMatch(/✗ Store: .*no store of tutti[^\n]*\n {2}fix: /)
  // It has nothing against what a run takes, and something against what it does not.
  expect(await place.tutti('demo', '--store', 'other.db/x.db')).toMatchObject({ code: 1 })
  const inFile = await place.tutti('doctor', '--store', 'other.db/x.db')
  expect(inFile).toMatchObject({ code: 1, out: expect.stringMatching(/✗ Store: .*a part of its path is a file, not a folder\n {2}fix: /) })
  expect(await place.tutti('demo', '--store', 'file:odd.db')).toMatchObject({ code: 0 })
  expect(await place.tutti('doctor', '--store', 'file:odd.db')).toMatchObject({ code: 0 })
  expect(place.has('.tutti')).toBe(false)
})

test('doctor finds a store that is damaged where nobody has looked yet', async () => {
  using place = new Place()
  await place.tutti('demo')
  const path = join(place.folder, '.tutti/tutti.db')
  const db = openDatabase(await loadDriver(), path, 'read')
  const [page, size] = ask(db, 'rootpage, page_size', "from sqlite_schema, pragma_page_size where name = 'snapshot'").map(Number)
  db.close()
  const file = readFileSync(path)
  file.fill(0xff, ((page ?? 0) - 1) * (size ?? 0), (page ?? 0) * (size ?? 0))
  writeFileSync(path, file)
  expect(await place.json('ls')).toHaveLength(1)
  const { code, out } = await place.tutti('doctor')
  expect(code).toBe(1)
  expect(out).toMatch(/✗ Store: [^\n]*(damaged|malformed)[^\n]*\n {2}fix: /)
})

test('completion scripts name every command and its options', async () => {
  using place = new Place()
  const scripts = await Promise.all(['bash', 'zsh', 'fish'].map((shell) => place.tutti('completion', shell)))
  for (const { code, out } of scripts) {
    expect(code).toBe(0)
    expect(out).toContain('answer')
    expect(out).toMatch(/(--|-l )detach/)
  }
  // That of the shell that every machine has is tried.
  place.write(
    'complete.sh',
    `${scripts[0]?.out}\nCOMP_WORDS=(tutti ex); COMP_CWORD=1; _tutti; echo "\${COMPREPLY[@]}"; COMP_WORDS=(tutti export --o); COMP_CWORD=2; _tutti; echo "\${COMPREPLY[@]}"`,
  )
  expect(execFileSync('bash', ['complete.sh'], { cwd: place.folder, encoding: 'utf8' })).toBe('export\n--otlp --output\n')
})
