import { mkdirSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, test, vi } from 'vitest'
import { files, patience, Place } from './place.js'

vi.setConfig(patience)

/** What two branches share outside of the run: who writes first is seen in the output. */
const racy = `import { topology } from 'tutti'
let seen = []
export default topology({
  name: 'racy',
  flows: ['Start -> Boss -> End', 'Boss -> A | B', 'A | B -> Boss'],
  agents: {
    Boss: { act: { request: (turn) => ((seen = []), turn.fork(['A', 'B'])), join: (turn) => turn.finish(seen.join('')) } },
    A: (turn) => (seen.push('A'), turn.reply(1)),
    B: (turn) => (seen.push('B'), turn.reply(2)),
  },
})
`

describe('check', () => {
  test('finds a race, ends with 5, writes it as a page and for a CI server, and plays the order again that shows it', async () => {
    using place = Place.bare()
    place.write('racy.mjs', racy)
    const [text, json] = await Promise.all([
      place.tutti('check', 'racy.mjs', '--schedules', 'all', '--html', 'race.html', '--junit', 'race.xml'),
      place.tutti('check', 'racy.mjs', '--seed', '7', '--schedules', '20', '--json'),
    ])
    expect([text.code, json.code]).toEqual([5, 5])
    expect(text.out).toMatch(/What differs:[\s\S]*AB[\s\S]*BA|What differs:[\s\S]*BA[\s\S]*AB/)
    expect(text.out).not.toContain('\u001b')
    expect(place.read('race.html')).toMatch(/^<!doctype html>/i)
    expect(place.read('race.xml')).toMatch(/<failure/)
    const { independent, divergence } = JSON.parse(json.out) as { independent: boolean; divergence: { a: string; b: string } }
    expect(independent).toBe(false)
    const again = await Promise.all(
      [divergence.a, divergence.b].map((token) => place.json<Outcomes>('check', 'racy.mjs', '--replay', token)),
    )
    expect(new Set(again.map(({ outcomes }) => outcomes[0]?.digest)).size).toBe(2)
  })

  test('says what was found also if it can not be written where it is to be: the code says what was found, and the other file is written', async () => {
    using place = new Place()
    place.write('racy.mjs', racy)
    place.write('asking.mjs', `${files.asking}export const check = { answers: () => 'yes' }\n`)
    const [found, sound] = await Promise.all([
      place.tutti('check', 'racy.mjs', '--html', 'nowhere/found.html', '--junit', 'found.xml'),
      place.tutti('check', 'asking.mjs', '--html', 'nowhere/found.html', '--junit', 'nowhere/found.xml'),
    ])
    expect(found).toMatchObject({ code: 5, out: expect.stringContaining('The output depends on the order') })
    expect(found.err).toMatch(/^tutti: nowhere\/found\.html could not be written: /m)
    expect(place.read('found.xml')).toMatch(/<failure/)
    expect(sound).toMatchObject({ code: 1, out: expect.stringContaining('The same outcome in every order') })
    expect(sound.err).toMatch(/found\.html could not be written: [^]*found\.xml could not be written: /)
  })

  test('says that the resources of a file are used in every order, unless its check gives others', async () => {
    using place = new Place()
    const using = `import { appendFileSync } from 'node:fs'
import { resource, topology } from 'tutti'
const db = resource('db')
export default topology({ name: 'using', flows: ['Start -> A -> End'], agents: { A: (turn) => turn.finish(turn.use(db).size()) } })
export const resources = [db.of({ size: () => (appendFileSync('used.log', 'x'), 1) })]
`
    place.write('real.mjs', using)
    place.write('fake.mjs', `${using}export const check = { resources: () => [db.of({ size: () => 2 })] }\n`)
    const fake = await place.tutti('check', 'fake.mjs')
    expect(fake).toMatchObject({ code: 0, err: '' })
    expect(place.has('used.log')).toBe(false)
    const real = await place.tutti('check', 'real.mjs')
    expect(real.code).toBe(0)
    expect(real.err).toMatch(/the resources that the file exports are used in every order; .*check = \{ resources: \(\) => \[ … \] \}/)
    await place.tutti('run', 'real.mjs', '--id', 'r')
    expect((await place.tutti('check', '--from-run', 'r')).err).toContain('are used in every order')
  })

  test('a recorded run that waits for a person is no race: what to do is said', async () => {
    using place = new Place()
    place.write('asking.mjs', files.asking)
    expect((await place.tutti('run', 'asking.mjs', '--id', 'a', '-i', '"tea?"')).code).toBe(4)
    const { code, err } = await place.tutti('check', '--from-run', 'a')
    expect(code).toBe(2)
    expect(err).toMatch(/INVALID_INPUT: Clerk asks a person, and in the recorded run nobody has answered yet.*check = \{ answers/)
  })

  test('a recorded run that every order leaves was compared with nothing, which is no race', async () => {
    using place = new Place()
    const calling = (name: string) => `import { graph } from 'tutti'
export default graph('calling').step('a', { run: ({ step }) => step('${name}', () => 1) }).output()
`
    place.write('calling.mjs', calling('one'))
    await place.tutti('run', 'calling.mjs', '--id', 'c')
    place.write('calling.mjs', calling('another'))
    const found = await place.tutti('check', '--from-run', 'c')
    expect(found).toMatchObject({ code: 1, out: expect.stringContaining('Nothing could be compared') })
  })

  test('has nothing against what depends on no order, with the input and the answers of a recorded run', async () => {
    using place = new Place()
    place.write('asking.mjs', files.asking)
    await place.tutti('run', 'asking.mjs', '--id', 'a', '-i', '"tea?"')
    await place.tutti('answer', 'a', 'r~1', '"yes"')
    const found = await place.json<Outcomes>('check', '--from-run', 'a', '--schedules', 'all')
    expect((await place.tutti('check', '--from-run', 'a', '--schedules', '1')).out).toMatch(/ 1 schedule of 'asking'/)
    expect(found).toMatchObject({ definition: 'asking', independent: true, exhaustive: true, outcomes: [{ status: 'succeeded' }] })
    // Without them there is nobody to answer; a file can say it too.
    const [alone, told] = await Promise.all([
      place.tutti('check', 'asking.mjs'),
      (place.write('told.mjs', `${files.asking}export const check = { answers: () => 'yes', input: 'tea?' }\n`),
      place.tutti('check', 'told.mjs')),
    ])
    expect(alone).toMatchObject({
      code: 2,
      err: expect.stringMatching(/there is nobody to answer; .*export const check = \{ answers: \(ask\) => … \}/),
    })
    expect(told.code).toBe(0)
    // What the file says beside them counts for a recorded run as well.
    place.write('asking.mjs', `${files.asking}export const check = { answers: () => 'no', schedules: 1 }\n`)
    expect(await place.json('check', '--from-run', 'a')).toMatchObject({ independent: true, exhaustive: false, schedules: 1 })
  })
})

test('CommonJS is checked as it is run, compiled or not, and evaluated anew for each order', async () => {
  using place = Place.bare()
  mkdirSync(join(place.folder, 'node_modules'))
  symlinkSync(fileURLToPath(new URL('../..', import.meta.url)), join(place.folder, 'node_modules/tutti'))
  const counting = `const { topology } = require('tutti')
let count = 0
const counting = topology({ name: 'counting', flows: ['Start -> A -> End'], agents: { A: (turn) => turn.finish(++count) } })
`
  place.write('compiled.cjs', `${counting}Object.defineProperty(exports, '__esModule', { value: true })\nexports.default = counting\n`)
  place.write('written.cjs', `${counting}module.exports = counting\n`)
  for (const file of ['compiled.cjs', 'written.cjs']) {
    expect(await place.tutti('run', file)).toMatchObject({ code: 0, out: '1\n' })
    expect(await place.json('check', file, '--schedules', 'all')).toMatchObject({ definition: 'counting', independent: true })
  }
})

test('a recorded run is played in other orders with what its steps gave: nothing of it happens again', async () => {
  using place = new Place()
  place.write(
    'effects.mjs',
    `import { appendFileSync } from 'node:fs'
import { graph } from 'tutti'
const write = (name) => ({ step }) => step('write', () => (appendFileSync('effects.log', name), name))
export default graph('effects').step('a', { run: write('a') }).step('b', { run: write('b') }).output()`,
  )
  expect((await place.tutti('run', 'effects.mjs', '--id', 'e')).code).toBe(0)
  const effects = place.read('effects.log')
  expect(effects).toHaveLength(2)
  const found = await place.json<Outcomes>('check', '--from-run', 'e', '--schedules', 'all')
  expect(found).toMatchObject({ definition: 'effects', independent: true })
  expect(place.read('effects.log')).toBe(effects)
})

test('a recorded run is played with what it is a run of, also if that is a step of the file; with anything else it is refused', async () => {
  using place = new Place()
  place.write(
    'desk.mjs',
    `import { graph } from 'tutti'
const doubled = graph('doubled').step('twice', { run: ({ input }) => input * 2 }).output(({ steps }) => steps.twice)
export default graph('desk').step('each', { each: () => [1, 2], run: doubled, input: ({ item }) => item }).output()`,
  )
  place.write('other.mjs', files.asking)
  expect((await place.tutti('run', 'desk.mjs', '--id', 'd')).code).toBe(0)
  expect(await place.json('check', '--from-run', 'd:each:1')).toMatchObject({ definition: 'doubled', independent: true })
  expect(await place.json('replay', 'd:each:1')).toMatchObject({ id: 'd:each:1', same: true, attempts: 1 })
  const other = await place.tutti('check', 'other.mjs', '--from-run', 'd')
  expect(other).toMatchObject({ code: 1, out: '' })
  expect(other.err).toMatch(/RUN_OF_OTHER_DEFINITION: the run d is of 'desk', not of 'asking'/)
})

interface Outcomes {
  readonly outcomes: readonly { readonly digest: string }[]
}
