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
    using place = new Place()
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

  test('has nothing against what depends on no order, with the input and the answers of a recorded run', async () => {
    using place = new Place()
    place.write('asking.mjs', files.asking)
    await place.tutti('run', 'asking.mjs', '--id', 'a', '-i', '"tea?"')
    await place.tutti('answer', 'a', 'r~1', '"yes"')
    const found = await place.json<Outcomes>('check', '--from-run', 'a', '--schedules', 'all')
    expect(found).toMatchObject({ definition: 'asking', independent: true, exhaustive: true, outcomes: [{ status: 'succeeded' }] })
    // Without them there is nobody to answer; a file can say it too.
    const [alone, told] = await Promise.all([
      place.tutti('check', 'asking.mjs'),
      (place.write('told.mjs', `${files.asking}export const check = { answers: () => 'yes', input: 'tea?' }\n`),
      place.tutti('check', 'told.mjs')),
    ])
    expect(alone).toMatchObject({ code: 2, err: expect.stringContaining('there is nobody to answer') })
    expect(told.code).toBe(0)
  })
})

test('a recorded run of models is checked with what they said, not with what they would say now', async () => {
  using place = new Place()
  const file = (letter: string): string => `import { topology } from 'tutti'
import { script } from 'tutti/testing'
export const models = script({ A: [{ reply: '${letter}' }], B: [{ reply: 'b' }] })
export default topology({
  name: 'modelled',
  flows: ['Start -> Boss -> End', 'Boss -> A | B', 'A | B -> Boss'],
  agents: {
    Boss: { act: { request: (turn) => turn.fork(['A', 'B']), join: (turn, join) => turn.finish(join.values.join('')) } },
    A: { instructions: 'Say a.' },
    B: { instructions: 'Say b.' },
  },
})`
  place.write('modelled.mjs', file('a'))
  expect(await place.tutti('run', 'modelled.mjs', '--id', 'm')).toMatchObject({ code: 0, out: 'ab\n' })
  place.write('modelled.mjs', file('x'))
  const digest = async (...args: string[]): Promise<unknown> => (await place.json<Outcomes>('check', ...args)).outcomes[0]?.digest
  const [now, then] = await Promise.all([digest('modelled.mjs'), digest('--from-run', 'm')])
  place.write('modelled.mjs', file('a'))
  expect(then).toBe(await digest('modelled.mjs'))
  expect(now).not.toBe(then)
})

interface Outcomes {
  readonly outcomes: readonly { readonly digest: string }[]
}
