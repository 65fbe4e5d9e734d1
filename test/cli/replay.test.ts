import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test, vi } from 'vitest'
import { files, patience, Place } from './place.js'

vi.setConfig(patience)

/** Everything that a journal can say of a turn: steps, sleeps, items, a retry, a skip, a failure, a child run. */
const varied = `import { appendFileSync } from 'node:fs'
import { graph } from 'tutti'
const inner = graph('inner').step('only', { run: async ({ sleep }) => { await sleep(5); return 1 } }).output()
export default graph('varied')
  .step('list', { run: ({ step }) => step('fetch', () => (appendFileSync('effects.log', 'fetch\\n'), [1, 2, 3])) })
  .step('each', { after: ['list'], each: ({ steps }) => steps.list, run: async ({ item, step, random }) => (await step('double', () => item * 2)) + random() })
  .step('never', { after: ['list'], when: ({ steps }) => steps.list.length > 5, run: () => 1 })
  .step('flaky', { retry: { attempts: 2 }, run: ({ attempt }) => { if (attempt < 2) throw new Error('flaky'); return process.env.WORD ?? 'same' } })
  .step('child', { input: () => 1, run: inner })
  .step('fails', { onError: 'skip', run: () => { throw new Error('no') } })
  .output()
`

test('a recorded run is executed again without its effects, and code that does something else is found', async () => {
  using place = Place.bare()
  place.write('varied.mjs', varied)
  expect((await place.tutti('run', 'varied.mjs', '--id', 'v')).code).toBe(0)
  expect(await place.tutti('replay', 'v')).toMatchObject({ code: 0, out: expect.stringContaining('the outcome is the same (succeeded)') })
  expect(place.read('effects.log')).toBe('fetch\n')
  place.write('varied.mjs', varied.replace("'same'", "'other'"))
  const changed = await place.tutti('replay', 'v', '--json')
  expect(changed.code).toBe(5)
  expect(JSON.parse(changed.out)).toMatchObject({ same: false, attempts: 10, different: [{ agent: 'flaky', at: 'r.3/1/2' }] })
  // A step that is not recorded is not executed either.
  place.write('varied.mjs', varied.replace("step('fetch'", "step('fetch twice'"))
  expect((await place.tutti('replay', 'v')).out).toMatch(/1 differ\n {2}list r\.0\/1\/1: .*fetch/)
  expect(place.read('effects.log')).toBe('fetch\n')
})

test('what a step has recorded is given back; all other code is executed again, and the help says so', async () => {
  using place = new Place()
  place.write(
    'plain.mjs',
    `import { appendFileSync } from 'node:fs'
import { graph } from 'tutti'
const write = (text) => appendFileSync('effects.log', text)
export default graph('plain').step('a', { run: async ({ step }) => (write('outside '), step('in', () => write('inside '))) }).output()`,
  )
  expect((await place.tutti('run', 'plain.mjs', '--id', 'p')).code).toBe(0)
  expect((await place.tutti('replay', 'p')).code).toBe(0)
  expect(place.read('effects.log')).toBe('outside inside outside ')
  expect((await place.tutti('check', '--from-run', 'p', '--schedules', '1')).code).toBe(0)
  expect(place.read('effects.log').match(/inside/g)).toHaveLength(1)
  const helps = await Promise.all(['replay', 'check'].map((name) => place.tutti(name, '--help')))
  for (const { out } of helps) expect(out).toContain('All other code is executed, also the `run` of a graph step')
})

test('the demo, with its fork, its question and its answer, does the same again; what can not be executed again says why', async () => {
  using place = new Place()
  place.write('asking.mjs', files.asking)
  await place.tutti('demo')
  const [demo, other] = await Promise.all([place.json('replay', '@last'), place.tutti('replay', '@last', '--file', 'asking.mjs')])
  expect(demo).toMatchObject({ same: true, attempts: 7, different: [], skipped: [] })
  expect(other).toMatchObject({ code: 1, err: expect.stringContaining("can't be executed again with asking") })
})

test('a turn that its code had no part in is not executed again: its agent was stopped, or a resource could not be made', async () => {
  using place = new Place()
  place.write(
    'outside.mjs',
    `import { existsSync } from 'node:fs'
import { resource, topology } from 'tutti'
const db = resource('db')
export const resources = [db.perRun(() => { if (existsSync('down')) throw new Error('down'); return 'up' })]
export default topology({ name: 'outside', flows: ['Start -> A -> End'], agents: { A: (turn) => turn.finish(turn.use(db)) } })
`,
  )
  await place.tutti('run', 'outside.mjs')
  await place.tutti('agents', 'stop', 'A')
  expect((await place.tutti('run', 'outside.mjs', '--id', 'stopped')).code).toBe(1)
  await place.tutti('agents', 'start', 'A')
  place.write('down', '')
  expect((await place.tutti('run', 'outside.mjs', '--id', 'missing')).code).toBe(1)
  rmSync(join(place.folder, 'down'))
  const told = await Promise.all(['stopped', 'missing'].map((id) => place.json('replay', id)))
  expect(told).toMatchObject([
    { same: true, attempts: 0, different: [], skipped: [{ agent: 'A', problem: 'the agent A is stopped' }] },
    { same: true, attempts: 0, different: [], skipped: [{ agent: 'A', problem: expect.stringContaining("'db' could not be made: down") }] },
  ])
})

test('graph draws a definition as text, as Mermaid, as a picture and as data', async () => {
  using place = new Place()
  place.write('asking.mjs', files.asking)
  const [text, mermaid, svg, json, ...toFiles] = await Promise.all([
    place.tutti('graph', 'asking.mjs'),
    place.tutti('graph', 'asking.mjs', '--mermaid'),
    place.tutti('graph', 'asking.mjs', '--svg', '-o', 'asking.svg'),
    place.json('graph', 'asking.mjs'),
    place.tutti('graph', 'asking.mjs', '-o', 'asking.txt'),
    place.tutti('graph', 'asking.mjs', '--mermaid', '-o', 'asking.mmd'),
    place.tutti('graph', 'asking.mjs', '--json', '-o', 'asking.json'),
  ])
  expect(text.out).toMatch(/Clerk +→ End, User/)
  expect(mermaid.out).toMatch(/^flowchart/)
  expect(svg).toMatchObject({ code: 0, out: '' })
  expect(place.read('asking.svg')).toMatch(/^<svg .*Clerk/s)
  expect(json).toMatchObject({ kind: 'topology', name: 'asking' })
  for (const said of toFiles) expect(said).toMatchObject({ code: 0, out: '' })
  expect(['asking.txt', 'asking.mmd'].map((file) => place.read(file))).toEqual([text.out, mermaid.out])
  expect(JSON.parse(place.read('asking.json'))).toEqual(json)
})

test('what models say is recorded with --record and played with --replay; a call that is not there says where it differs', async () => {
  using place = new Place()
  place.write(
    'modelled.mjs',
    `import { topology } from 'tutti'
export default topology({ name: 'modelled', flows: ['Start -> Writer -> End'], agents: { Writer: { instructions: 'Write one word.' } } })`,
  )
  const first = await place.tutti('run', 'modelled.mjs', '-i', '"hi"', '--id', 'm', '--record', 'said.jsonl')
  expect(first).toMatchObject({ code: 0, out: expect.stringContaining('[simulated]') })
  expect(first.err).toMatch(/^model: sim \(none of .* is set; its answers are simulated\)\n/)
  const [played, other, again] = await Promise.all([
    place.tutti('run', 'modelled.mjs', '-i', '"hi"', '--replay', 'said.jsonl'),
    place.tutti('run', 'modelled.mjs', '-i', '"ho"', '--replay', 'said.jsonl', '--store', 'other.db'),
    place.tutti('replay', 'm'),
  ])
  expect(played).toMatchObject({ code: 0, out: first.out })
  expect(other).toMatchObject({ code: 1, err: expect.stringMatching(/recorded "hi", now "ho"/) })
  expect(again).toMatchObject({ code: 0, out: expect.stringContaining('the outcome is the same') })
  expect(await place.tutti('run', 'modelled.mjs', '--replay', 'none.jsonl')).toMatchObject({ code: 3 })
})
